"""Contacts of a box with a box or a capsule: separating axes, faces, edges.

The largest separation over the axes of S. Gottschalk is a lower bound of the distance,
and equal to it if the points of that axis attain it. Otherwise (a corner near an edge
or a corner, parallel edges) all pairs of edges are compared. Faces are enlarged by a
millionth of the size, so that equal boxes stacked with small vibrations keep four
contacts; all other distances are exact. For an overlap the depth is the smallest over
the faces, unless a pair of edges is more than 5 % less deep: a face has the more stable
contacts. A separation is the distance of both cores along an axis, negative if they
overlap in it.

Edges of two boxes, or a segment and edges of a box, are compared by code of their own.
Everything is computed in the frame of b. Contacts beyond the capacity are counted, not
written. Written in the subset of Python that is compiled
(dyn_core.engines.machine_code).

A frame is (12,): a rotation R, row by row, and a position p [m], x_outer = R x + p.
Number of a corner: 1, 2 and 4 added for +x, +y and +z. Number of an edge: 8 axis + its
corner on the negative side. A feature of edges is EDGES + 24 edge of a + edge of b;
EDGES is 32, PAIRS 576.

Source: C. Ericson, Real-Time Collision Detection, 2005, 4.4.1 (separating axes); the
tolerances and the test of exactness are not from the literature.
"""

from __future__ import annotations

import math

from dyn_core.contact.collision.detection.box_faces import (
    EDGES,
    PAIRS,
    corner_bits,
    edge_number,
    face_points,
)
from dyn_core.contact.collision.detection.detection_arrays import (
    Contacts,
    Work,
    put_in_frame,
    relate,
)
from dyn_core.contact.collision.detection.rounded import between_segments
from dyn_core.engines.machine_code import FloatArray, FloatArray2, machine_code

PARALLEL = 1e-6  # sine below which edges are parallel
EXACT = 1e-10  # relative to the size: distances this close are equal
SAME = 1e-6  # relative to the size: a point this far beyond a rim is over the face
STEADY = 0.95  # relative depth below which edges are preferred to a face


@machine_code
def corner_of(F: FloatArray, half: FloatArray, bits: int) -> tuple[float, float, float]:
    """Return x, y, z of a box's corner in the coordinates in which F is given [m]."""
    x = half[0] if bits % 2 == 1 else -half[0]
    y = half[1] if bits // 2 % 2 == 1 else -half[1]
    z = half[2] if bits // 4 % 2 == 1 else -half[2]
    return (
        F[0] * x + F[1] * y + F[2] * z + F[9],
        F[3] * x + F[4] * y + F[5] * z + F[10],
        F[6] * x + F[7] * y + F[8] * z + F[11],
    )


@machine_code
def box_corner(half: FloatArray, bits: int) -> tuple[float, float, float]:
    """Return x, y, z of corner `bits` (corner_bits) of a box in its own frame [m]."""
    x = half[0] if bits % 2 == 1 else -half[0]
    y = half[1] if bits // 2 % 2 == 1 else -half[1]
    z = half[2] if bits // 4 % 2 == 1 else -half[2]
    return x, y, z


@machine_code
def edge_ends(number: int, box: bool) -> tuple[int, int, int]:
    """Return the numbers of both corners of an edge, and of the edge (edge_number).

    Edges are along x from 0, y from 4, z from 8. Of a segment they are 0, 4 and 0.
    """
    if not box:
        return 0, 4, 0
    k, rest = number // 4, number % 4
    if k == 0:
        return 2 * rest, 2 * rest + 1, 2 * rest
    if k == 1:
        low = rest % 2 + rest // 2 * 4
        return low, low + 2, 8 + low
    return rest, rest + 4, 16 + rest


@machine_code
def edge_contacts(
    contacts: Contacts,
    count: int,
    work: Work,
    B: FloatArray,
    a: FloatArray,
    b: FloatArray,
    box: bool,
    best: float,
    best_edge: float,
    tol: float,
    margin: float,
) -> int:
    """Add the contact of the edges with the largest separation, or of the closest ones.

    The first are taken if the cores overlap (best <= 0), or if their closest points
    attain the largest separation of all axes; otherwise the closest pair, with two
    contacts if its edges are parallel, see closest_edges. `work`, only read, has the
    separations in `axis` and the frame of a in b in relative[0]. `best` and `best_edge`
    are the largest separations of all axes and of the axes of edges [m], best_edge
    -inf if all edges are parallel. Returns the new number of contacts.
    """
    C, axis = work.relative[0], work.axis
    first = 0 if box else 2
    row = 6 + 3 * first
    while row < 14 and axis[row, 3] < best_edge:
        row += 1
    if best_edge > -math.inf:
        nx, ny, nz = axis[row, 0], axis[row, 1], axis[row, 2]
        i, j = (row - 6) // 3, (row - 6) % 3
        bits = corner_bits(
            -(C[0] * nx + C[3] * ny + C[6] * nz),
            -(C[1] * nx + C[4] * ny + C[7] * nz),
            -(C[2] * nx + C[5] * ny + C[8] * nz),
        )
        name_a = edge_number(i, bits)
        name_b = edge_number(j, corner_bits(nx, ny, nz))
        low = name_a % 8
        weight = 4 if i == 2 else i + 1
        ax, ay, az = corner_of(C, a, low)
        bx, by, bz = corner_of(C, a, low + weight)
        if not box:
            name_a = 0
        low = name_b % 8
        weight = 4 if j == 2 else j + 1
        cx, cy, cz = box_corner(b, low)
        dx, dy, dz = box_corner(b, low + weight)
        x, y, z, p, q, r = between_segments(
            ax, ay, az, bx, by, bz, cx, cy, cz, dx, dy, dz
        )
        apart = math.sqrt((x - p) * (x - p) + (y - q) * (y - q) + (z - r) * (z - r))
        if best <= 0.0 or (apart <= best_edge + tol and best_edge >= best - tol):
            return put_edges(
                contacts, count, B, EDGES + 24 * name_a + name_b,
                x, y, z, p, q, r, nx, ny, nz, a[3], margin,
            )  # fmt: skip
    row = 0
    while row < 14 and axis[row, 3] < best:
        row += 1
    return closest_edges(
        contacts, count, work, B, a, b, box, axis[row, 0], axis[row, 1], axis[row, 2],
        tol, margin,
    )  # fmt: skip


@machine_code
def put_edges(
    contacts: Contacts,
    count: int,
    B: FloatArray,
    feature: int,
    x: float,
    y: float,
    z: float,
    p: float,
    q: float,
    r: float,
    nx: float,
    ny: float,
    nz: float,
    radius: float,
    margin: float,
) -> int:
    """Add the contact of two points up to the gap `margin`; return the new number.

    The points x, y, z of a and p, q, r of b [m] and the unit normal from b to a are in
    coordinates of b; B is its frame in the world. The gap is their distance along the
    normal minus `radius`, about the point of a; a gap of NaN is above the margin.
    """
    gap = nx * (x - p) + ny * (y - q) + nz * (z - r) - radius
    if not gap <= margin:
        return count
    return put_in_frame(
        contacts, count, B, feature,
        (x - radius * nx + p) / 2, (y - radius * ny + q) / 2, (z - radius * nz + r) / 2,
        nx, ny, nz, gap,
    )  # fmt: skip


@machine_code
def edges_apart(
    C: FloatArray, a: FloatArray, b: FloatArray, box: bool, one: int, two: int, d: float
) -> bool:
    """Return whether balls about edge `one` of a and `two` of b are over d [m] apart.

    If not, the edges themselves may still be. C is the frame of a in b, (12,).
    """
    low, high, _ = edge_ends(one, box)
    ax, ay, az = corner_of(C, a, low)
    bx, by, bz = corner_of(C, a, high)
    low, high, _ = edge_ends(two, True)
    cx, cy, cz = box_corner(b, low)
    dx, dy, dz = box_corner(b, high)
    reach = a[2] + b[two // 4] + d
    if box:
        reach += a[one // 4] - a[2]
    x, y, z = (ax + bx - cx - dx) / 2, (ay + by - cy - dy) / 2, (az + bz - cz - dz) / 2
    return x * x + y * y + z * z > 1.000000001 * reach * reach


@machine_code
def edge_pair(
    C: FloatArray, a: FloatArray, b: FloatArray, box: bool, one: int, two: int
) -> tuple[float, float, float, float, float, float]:
    """Return the closest points of edges `one` of a and `two` of b, in b's frame [m].

    C is the frame of a in b; indices of edges are those of edge_ends.
    """
    low, high, _ = edge_ends(one, box)
    ax, ay, az = corner_of(C, a, low)
    bx, by, bz = corner_of(C, a, high)
    low, high, _ = edge_ends(two, True)
    cx, cy, cz = box_corner(b, low)
    dx, dy, dz = box_corner(b, high)
    return between_segments(ax, ay, az, bx, by, bz, cx, cy, cz, dx, dy, dz)


@machine_code
def closest_edges(
    contacts: Contacts,
    count: int,
    work: Work,
    B: FloatArray,
    a: FloatArray,
    b: FloatArray,
    box: bool,
    nx: float,
    ny: float,
    nz: float,
    tol: float,
    margin: float,
) -> int:
    """Add the contact of the closest edges, two if parallel; return the new number.

    The two are at the ends of the longest common length of edges side by side, with the
    features EDGES + PAIRS + 2 (24 edge of a + edge of b), and one more. The unit normal
    from b to a, in coordinates of b, is used if the closest edges touch; separations
    within `tol` are equal [m]. work.relative[0] is the frame of a in b.
    """
    C = work.relative[0]
    edges = 12 if box else 1
    d = math.inf
    for one in range(edges):
        for two in range(12):
            if edges_apart(C, a, b, box, one, two, d):
                continue
            x, y, z, p, q, r = edge_pair(C, a, b, box, one, two)
            size = (x - p) * (x - p) + (y - q) * (y - q) + (z - r) * (z - r)
            d = min(d, math.sqrt(size))
    start = -1
    best = 0.0
    feature, t_low, t_high, from_a = 0, 0.0, 0.0, 0
    fx, fy, fz, fp, fq, fr = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for one in range(edges):
        for two in range(12):
            if edges_apart(C, a, b, box, one, two, d + 10.0 * tol):
                continue
            x, y, z, p, q, r = edge_pair(C, a, b, box, one, two)
            size = (x - p) * (x - p) + (y - q) * (y - q) + (z - r) * (z - r)
            apart = math.sqrt(size)
            low, high, name_a = edge_ends(one, box)
            first, second, name_b = edge_ends(two, True)
            if start < 0 and apart <= d + 1e-3 * tol:
                start = EDGES + 24 * name_a + name_b
                fx, fy, fz, fp, fq, fr = x, y, z, p, q, r
                if d > tol:
                    nx, ny, nz = (x - p) / d, (y - q) / d, (z - r) / d
            if not apart <= d + 10.0 * tol:
                continue
            ax, ay, az = corner_of(C, a, low)
            bx, by, bz = corner_of(C, a, high)
            cx, cy, cz = box_corner(b, first)
            dx, dy, dz = box_corner(b, second)
            ux, uy, uz = bx - ax, by - ay, bz - az
            vx, vy, vz = dx - cx, dy - cy, dz - cz
            length = math.sqrt(ux * ux + uy * uy + uz * uz)
            wx, wy, wz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
            sine = math.sqrt(wx * wx + wy * wy + wz * wz)
            if sine > PARALLEL * length * math.sqrt(vx * vx + vy * vy + vz * vz):
                continue
            if not length > 0.0:
                continue
            s = ((cx - ax) * ux + (cy - ay) * uy + (cz - az) * uz) / length
            t = ((dx - ax) * ux + (dy - ay) * uy + (dz - az) * uz) / length
            s, t = max(0.0, min(s, t)), min(length, max(s, t))
            if t - s > max(best, 10.0 * tol):
                best = t - s
                feature = EDGES + PAIRS + 2 * (24 * name_a + name_b)
                t_low, t_high, from_a = s / length, t / length, one
    if best <= 0.0:
        return put_edges(
            contacts, count, B, start, fx, fy, fz, fp, fq, fr, nx, ny, nz, a[3], margin
        )
    low, high, _ = edge_ends(from_a, box)
    ax, ay, az = corner_of(C, a, low)
    bx, by, bz = corner_of(C, a, high)
    for end in range(2):
        t = t_low if end == 0 else t_high
        x, y, z = ax + t * (bx - ax), ay + t * (by - ay), az + t * (bz - az)
        count = put_edges(
            contacts, count, B, feature + end,
            x, y, z, x - nx * d, y - ny * d, z - nz * d, nx, ny, nz, a[3], margin,
        )  # fmt: skip
    return count


@machine_code
def face_axes(
    C: FloatArray, a: FloatArray, b: FloatArray, box: bool, axis: FloatArray2
) -> float:
    """Write the separations along face normals of b and of a box a; return the largest.

        s = |n . (c_a - c_b)| - sum_k h_k |n . u_k|

    n is the normal, c are the centres, u_k and h_k all axes and half lengths of both; C
    is the frame of a in b. Rows 0 to 2 (faces of b) and 3 to 5 (of a) of `axis`, (15,
    4), become the normal from b to a in b, and s [m]; of a segment only s, -inf.
    """
    best = -math.inf
    for k in range(3):
        r = 3 * k
        extent = abs(C[r]) * a[0] + abs(C[r + 1]) * a[1] + abs(C[r + 2]) * a[2]
        s = abs(C[9 + k]) - extent - b[k]
        for i in range(3):
            axis[k, i] = 0.0
        axis[k, k] = -1.0 if C[9 + k] < 0.0 else 1.0
        axis[k, 3] = s
        best = max(best, s)
    for k in range(3):
        axis[3 + k, 3] = -math.inf
        if box:
            x, y, z = C[k], C[3 + k], C[6 + k]
            along = x * C[9] + y * C[10] + z * C[11]
            s = abs(along) - a[k] - abs(x) * b[0] - abs(y) * b[1] - abs(z) * b[2]
            sign = -1.0 if along < 0.0 else 1.0
            axis[3 + k, 0] = sign * x
            axis[3 + k, 1] = sign * y
            axis[3 + k, 2] = sign * z
            axis[3 + k, 3] = s
            best = max(best, s)
    return best


@machine_code
def edge_axes(
    C: FloatArray, a: FloatArray, b: FloatArray, first: int, axis: FloatArray2
) -> float:
    """Write the separations along cross products of edges of a and b as in face_axes.

    Row 6 + 3 i + j of `axis` is for edges along axis i of a and j of b. For parallel
    edges, and axes of a before `first` (0 for a box, 2 for a segment), only the
    separation is written, -inf. Returns the largest one.
    """
    best = -math.inf
    for row in range(6, 6 + 3 * first):
        axis[row, 3] = -math.inf
    for i in range(first, 3):
        x, y, z = C[i], C[3 + i], C[6 + i]
        for j in range(3):
            nx, ny, nz = 0.0, z, -y
            if j == 1:
                nx, ny, nz = -z, 0.0, x
            elif j == 2:
                nx, ny, nz = y, -x, 0.0
            row = 6 + 3 * i + j
            size = math.sqrt(nx * nx + ny * ny + nz * nz)
            axis[row, 3] = -math.inf
            if not size > PARALLEL:
                continue
            nx, ny, nz = nx / size, ny / size, nz / size
            along = nx * C[9] + ny * C[10] + nz * C[11]
            s = abs(along)
            for k in range(first, 3):
                s -= a[k] * abs(nx * C[k] + ny * C[3 + k] + nz * C[6 + k])
            s = s - abs(nx) * b[0] - abs(ny) * b[1] - abs(nz) * b[2]
            sign = -1.0 if along < 0.0 else 1.0
            axis[row, 0] = sign * nx
            axis[row, 1] = sign * ny
            axis[row, 2] = sign * nz
            axis[row, 3] = s
            best = max(best, s)
    return best


@machine_code
def box_or_capsule_box(
    contacts: Contacts,
    count: int,
    work: Work,
    A: FloatArray,
    a: FloatArray,
    B: FloatArray,
    b: FloatArray,
    box: bool,
    margin: float,
) -> int:
    """Add the contacts of a box or capsule a with a box b; return the new number.

        gap = n . (x_a - x_b) - a[3],   n from b to a

    x_a is on the core of a (its box or segment), x_b on b. `a` and `b` are half lengths
    and radius, of a capsule 0, 0, half length, radius, (4,) [m]; the radius of b is
    ignored. A and B are frames in the world. relative, axis, polygon and tags of `work`
    are overwritten.
    """
    C, axis, radius = work.relative[0], work.axis, a[3]
    relate(A, B, C)
    best_face = face_axes(C, a, b, box, axis)
    if not best_face - radius <= margin:
        return count
    first = 0 if box else 2
    best_edge = edge_axes(C, a, b, first, axis)
    best = max(best_face, best_edge)
    if not best - radius <= margin:
        return count
    tol = EXACT * (a[0] + a[1] + a[2] + b[0] + b[1] + b[2])
    face = 0
    while face < 5 and not axis[face, 3] >= best_face - tol:
        face += 1
    s_face = axis[face, 3]
    if s_face >= best - tol or (best < 0.0 and STEADY * s_face >= best - tol):
        before = count
        count = face_contacts(contacts, count, work, A, a, B, b, box, face, tol, margin)
        if count > before or count < 0:
            return before if count < 0 else count
    return edge_contacts(
        contacts, count, work, B, a, b, box, best, best_edge, tol, margin
    )


@machine_code
def face_contacts(
    contacts: Contacts,
    count: int,
    work: Work,
    A: FloatArray,
    a: FloatArray,
    B: FloatArray,
    b: FloatArray,
    box: bool,
    face: int,
    tol: float,
    margin: float,
) -> int:
    """Add the contacts of a face, if its points attain the separation along its normal.

    A and B are frames in the world, a and b half lengths and radius, (4,). `face` is
    the row in work.axis, 0 to 2 of b, 3 to 5 of a. work.relative[0] is the frame of a
    in b; polygon, tags and relative[1] are overwritten. Returns the new number of
    contacts; the old one if the points do not attain the separation (within tol [m]);
    -1 if they do and none is within the margin.
    """
    C, axis, polygon = work.relative[0], work.axis, work.polygon
    k, of_b, radius = face % 3, face < 3, a[3]
    over = SAME / EXACT * tol
    if of_b:
        out = axis[face, k]
        size = face_points(work, b, a, C, not box, True, k, out, over)
    else:
        along = C[k] * C[9] + C[3 + k] * C[10] + C[6 + k] * C[11]
        out = 1.0 if along < 0.0 else -1.0
        relate(B, A, work.relative[1])
        size = face_points(work, a, b, work.relative[1], False, False, k, out, over)
    least = math.inf
    for m in range(size):
        least = min(least, polygon[m, 2])
    if size < 1 or least > axis[face, 3] + tol:
        return count
    i, j = (k + 1) % 3, (k + 2) % 3
    top = b[k] if of_b else a[k]
    before = count
    for m in range(size):
        gap = polygon[m, 2] - radius
        if not gap <= margin:
            continue
        # Midway between the surfaces, along the face's normal.
        h = out * (top + gap / 2)
        u, v = polygon[m, 0], polygon[m, 1]
        x, y, z, nx, ny, nz = h, u, v, out, 0.0, 0.0
        if i == 0:
            x, y, z, nx, nz = u, v, h, 0.0, out
        elif j == 0:
            x, y, z, nx, ny = v, h, u, 0.0, out
        feature = work.tags[m, 0]
        if of_b:
            count = put_in_frame(contacts, count, B, feature, x, y, z, nx, ny, nz, gap)
        else:
            count = put_in_frame(
                contacts, count, A, feature, x, y, z, -nx, -ny, -nz, gap
            )
    return count if count > before else -1
