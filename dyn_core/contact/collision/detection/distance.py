"""Distance and depth of two convex cores by their support points.

Separated pairs use the algorithm of Gilbert, Johnson and Keerthi (GJK). Overlapping
pairs use the expanding polytope algorithm (EPA): a polytope in the Minkowski difference
of both grows until its face closest to the origin is a face of the difference.
Everything is computed in the frame of b. Written in the subset of Python that
is compiled (dyn_core.engines.machine_code).

A frame is (12,): a rotation R, row by row, and a position p [m], x_outer = R x + p.

Source: C. Ericson, Real-Time Collision Detection, 2005, 9.5 (distance); G. van den
Bergen, Collision Detection in Interactive 3D Environments, 2003, 4.3.8 (depth).
"""

from __future__ import annotations

import math

from dyn_core.contact.collision.detection.detection_arrays import (
    BOX,
    CYLINDER,
    FACES,
    HULL,
    SPHERE,
    Shapes,
    Work,
)
from dyn_core.contact.collision.detection.rounded import normal_to
from dyn_core.contact.collision.detection.simplex import reduce
from dyn_core.engines.machine_code import FloatArray, FloatArray2, machine_code

ACCURACY = 1e-12  # relative accuracy of a distance
TOUCHING = 1e-10  # of the size: cores this close count as overlapping
ROUND = 1e-5  # of the size: so do cylinders, whose closest points are less accurate
FLAT = 1e-10  # of the size: a difference this thin has no inside


@machine_code
def support(
    shapes: Shapes, k: int, dx: float, dy: float, dz: float
) -> tuple[float, float, float]:
    """Return x, y, z of core k's point farthest along a direction, in its frame [m].

    Of several, it is a corner or end on the positive side, the first such vertex of a
    hull, or, along the axis of a cylinder, the point of the rim at y = 0, x > 0.
    """
    kind = shapes.kind[k]
    size = shapes.size[k]
    if kind == HULL:
        first, number = shapes.first[k, 0], shapes.first[k, 1]
        best, row = -math.inf, first
        for m in range(first, first + number):
            along = dx * shapes.vertices[m, 0] + dy * shapes.vertices[m, 1]
            along += dz * shapes.vertices[m, 2]
            if along > best:
                best, row = along, m
        return shapes.vertices[row, 0], shapes.vertices[row, 1], shapes.vertices[row, 2]
    if kind == SPHERE:
        return 0.0, 0.0, 0.0
    z = size[2] if dz >= 0.0 else -size[2]
    if kind == BOX:
        x = size[0] if dx >= 0.0 else -size[0]
        y = size[1] if dy >= 0.0 else -size[1]
        return x, y, z
    if kind == CYLINDER:
        across = math.sqrt(dx * dx + dy * dy)
        if across > 0.0:
            return size[0] * (dx / across), size[0] * (dy / across), z
        return size[0], 0.0, z
    return 0.0, 0.0, z


@machine_code
def difference(
    shapes: Shapes,
    a: int,
    C: FloatArray,
    b: int,
    dx: float,
    dy: float,
    dz: float,
    P: FloatArray2,
    row: int,
) -> None:
    """Write the support point of the Minkowski difference a - b along a direction.

    Args:
        shapes, a, b: Table, and indices of the shapes.
        C: Frame of a in b, (12,).
        dx, dy, dz: Direction of any length, in the frame of b.
        P, row: Array and row that is written, (6,): x_a - x_b, then the point x_a of
            core a, in the frame of b [m].
    """
    x, y, z = support(
        shapes,
        a,
        C[0] * dx + C[3] * dy + C[6] * dz,
        C[1] * dx + C[4] * dy + C[7] * dz,
        C[2] * dx + C[5] * dy + C[8] * dz,
    )
    px = C[0] * x + C[1] * y + C[2] * z + C[9]
    py = C[3] * x + C[4] * y + C[5] * z + C[10]
    pz = C[6] * x + C[7] * y + C[8] * z + C[11]
    x, y, z = support(shapes, b, -dx, -dy, -dz)
    P[row, 0] = px - x
    P[row, 1] = py - y
    P[row, 2] = pz - z
    P[row, 3] = px
    P[row, 4] = py
    P[row, 5] = pz


@machine_code
def core_size(shapes: Shapes, k: int) -> float:
    """Return the sum of the half lengths of the box about the core of shape k [m]."""
    return shapes.bounds[k, 3] + shapes.bounds[k, 4] + shapes.bounds[k, 5]


@machine_code
def closest_points(
    shapes: Shapes, a: int, b: int, work: Work, reach: float
) -> tuple[float, float, float, float, float, float, float]:
    """Return the closest or deepest points of two cores, in the frame of b.

    The result is the signed distance, negative in an overlap [m], the unit normal from
    b to a, and the point of a [m]; the point of b is this minus normal times distance.
    If the distance exceeds `reach` [m] by more than rounding errors, about 1e-9 of it,
    it is inf, and normal and point are meaningless. work.relative[0] is the frame of a
    in b; simplex, weights and polytope are overwritten.

    Source: Ericson 9.5.4; the bound |v| - v.w/|v| of van den Bergen ends the search.
    """
    C, P = work.relative[0], work.simplex
    weights = work.weights
    # Above zero for two points, too.
    size = core_size(shapes, a) + core_size(shapes, b) + 1e-300
    vx, vy, vz = C[9], C[10], C[11]
    if vx * vx + vy * vy + vz * vz <= 0.0:
        vx = 1.0
    difference(shapes, a, C, b, -vx, -vy, -vz, P, 0)
    vx, vy, vz = P[0, 0], P[0, 1], P[0, 2]
    ax, ay, az = P[0, 3], P[0, 4], P[0, 5]
    near = TOUCHING * size
    if shapes.kind[a] == CYLINDER or shapes.kind[b] == CYLINDER:
        near = ROUND * size
    corners = 1
    square = vx * vx + vy * vy + vz * vz
    for _ in range(100):
        d = math.sqrt(square)
        if d <= near:
            break
        difference(shapes, a, C, b, -vx, -vy, -vz, P, corners)
        along = vx * P[corners, 0] + vy * P[corners, 1] + vz * P[corners, 2]
        if along > d * reach:
            return math.inf, 0.0, 0.0, 1.0, ax, ay, az
        if square - along <= ACCURACY * square + 1e-15 * d * size:
            return d, vx / d, vy / d, vz / d, ax, ay, az
        known = False
        for m in range(corners):
            known = known or (
                P[m, 0] == P[corners, 0]
                and P[m, 1] == P[corners, 1]
                and P[m, 2] == P[corners, 2]
            )
        if known:
            return d, vx / d, vy / d, vz / d, ax, ay, az
        corners = reduce(P, weights, corners + 1)
        if corners == 4:
            break
        x, y, z, px, py, pz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for m in range(corners):
            x += weights[m] * P[m, 0]
            y += weights[m] * P[m, 1]
            z += weights[m] * P[m, 2]
            px += weights[m] * P[m, 3]
            py += weights[m] * P[m, 4]
            pz += weights[m] * P[m, 5]
        now = x * x + y * y + z * z
        if now >= square:
            return d, vx / d, vy / d, vz / d, ax, ay, az
        vx, vy, vz, ax, ay, az, square = x, y, z, px, py, pz, now
    if corners < 4 and square > near * near:
        d = math.sqrt(square)
        return d, vx / d, vy / d, vz / d, ax, ay, az
    return deepest_points(shapes, a, b, work, size)


@machine_code
def first_tetrahedron(
    shapes: Shapes, a: int, b: int, C: FloatArray, P: FloatArray2, thin: float
) -> tuple[int, float, float, float]:
    """Write four support points of the difference that span a tetrahedron.

    Rows of P become x_a - x_b, then the point x_a of core a, in the frame of b [m];
    rows 4 and 5 are overwritten. C is the frame of a in b. Returns 4, or if the
    difference is thinner than `thin` [m] 1 for a point, 2 for a line, 3 for a plane;
    and a unit vector, normal to this line or plane (1: along z; 4: normal to the plane
    of rows 0 to 2).
    """
    best = -1.0
    for k in range(3):
        x = 1.0 if k == 0 else 0.0
        y = 1.0 if k == 1 else 0.0
        z = 1.0 if k == 2 else 0.0
        difference(shapes, a, C, b, x, y, z, P, 4)
        difference(shapes, a, C, b, -x, -y, -z, P, 5)
        long = P[4, k] - P[5, k]
        if long > best:
            best = long
            for c in range(6):
                P[0, c] = P[4, c]
                P[1, c] = P[5, c]
    if best <= thin:
        return 1, 0.0, 0.0, 1.0
    ux, uy, uz = P[1, 0] - P[0, 0], P[1, 1] - P[0, 1], P[1, 2] - P[0, 2]
    long = math.sqrt(ux * ux + uy * uy + uz * uz)
    ux, uy, uz = ux / long, uy / long, uz / long
    sx, sy, sz = normal_to(ux, uy, uz)
    tx, ty, tz = uy * sz - uz * sy, uz * sx - ux * sz, ux * sy - uy * sx
    best = -1.0
    nx, ny, nz = tx, ty, tz
    for k in range(4):
        sign = 1.0 if k % 2 == 0 else -1.0
        x, y, z = sign * sx, sign * sy, sign * sz
        if k > 1:
            x, y, z = sign * tx, sign * ty, sign * tz
        difference(shapes, a, C, b, x, y, z, P, 4)
        wx, wy, wz = P[4, 0] - P[0, 0], P[4, 1] - P[0, 1], P[4, 2] - P[0, 2]
        px, py, pz = uy * wz - uz * wy, uz * wx - ux * wz, ux * wy - uy * wx
        apart = math.sqrt(px * px + py * py + pz * pz)
        if apart > best:
            best = apart
            for c in range(6):
                P[2, c] = P[4, c]
            if apart > 0.0:
                nx, ny, nz = px / apart, py / apart, pz / apart
    if best <= thin:
        return 2, sx, sy, sz
    best = -1.0
    for k in range(2):
        sign = 1.0 if k == 0 else -1.0
        difference(shapes, a, C, b, sign * nx, sign * ny, sign * nz, P, 4)
        wx, wy, wz = P[4, 0] - P[0, 0], P[4, 1] - P[0, 1], P[4, 2] - P[0, 2]
        apart = abs(nx * wx + ny * wy + nz * wz)
        if apart > best:
            best = apart
            for c in range(6):
                P[3, c] = P[4, c]
    if best <= thin:
        return 3, nx, ny, nz
    return 4, nx, ny, nz


@machine_code
def make_face(work: Work, row: int, a: int, b: int, c: int) -> None:
    """Write a polytope's face with its outward normal and distance from the origin.

    a, b and c are rows of its corners, counterclockwise about the outward normal. A
    face without an area has the distance inf, and its normal is not written.
    """
    P, face = work.corner, work.face
    work.triple[row, 0] = a
    work.triple[row, 1] = b
    work.triple[row, 2] = c
    ux, uy, uz = P[b, 0] - P[a, 0], P[b, 1] - P[a, 1], P[b, 2] - P[a, 2]
    vx, vy, vz = P[c, 0] - P[a, 0], P[c, 1] - P[a, 1], P[c, 2] - P[a, 2]
    nx, ny, nz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
    size = math.sqrt(nx * nx + ny * ny + nz * nz)
    long = math.sqrt((ux * ux + uy * uy + uz * uz) * (vx * vx + vy * vy + vz * vz))
    face[row, 3] = math.inf
    if size > 1e-14 * long:
        face[row, 0] = nx / size
        face[row, 1] = ny / size
        face[row, 2] = nz / size
        face[row, 3] = (nx * P[a, 0] + ny * P[a, 1] + nz * P[a, 2]) / size


@machine_code
def grow(work: Work, faces: int, new: int, tol: float) -> int:
    """Add corner `new` to the polytope: faces that it sees become faces with it.

    It sees a face from a height of `tol` [m] on; one without an area is never seen, and
    stays. triple and face of `work` are changed, rim is overwritten. Returns the new
    number of faces, at most FACES (512): further ones are left out.
    """
    P, face, triple, rim = work.corner, work.face, work.triple, work.rim
    edges, kept = 0, 0
    for m in range(faces):
        height = (
            face[m, 0] * P[new, 0] + face[m, 1] * P[new, 1] + face[m, 2] * P[new, 2]
        )
        if face[m, 3] < math.inf and height > face[m, 3] + tol:
            for e in range(3):
                start, end = triple[m, e], triple[m, (e + 1) % 3]
                double = -1
                for other in range(edges):
                    if rim[other, 0] == end and rim[other, 1] == start:
                        double = other
                if double >= 0:
                    edges -= 1
                    rim[double, 0] = rim[edges, 0]
                    rim[double, 1] = rim[edges, 1]
                elif edges < FACES:
                    rim[edges, 0] = start
                    rim[edges, 1] = end
                    edges += 1
        else:
            for c in range(3):
                triple[kept, c] = triple[m, c]
            for c in range(4):
                face[kept, c] = face[m, c]
            kept += 1
    for e in range(edges):
        if kept < FACES:
            make_face(work, kept, rim[e, 0], rim[e, 1], new)
            kept += 1
    return kept


@machine_code
def nearest_face(work: Work, faces: int) -> int:
    """Return the index of the face closest to the origin; the first of equal ones."""
    best = 0
    for m in range(1, faces):
        if work.face[m, 3] < work.face[best, 3]:
            best = m
    return best


@machine_code
def deepest_points(
    shapes: Shapes, a: int, b: int, work: Work, size: float
) -> tuple[float, float, float, float, float, float, float]:
    """Return the deepest points of two overlapping cores, as closest_points.

    If the Minkowski difference is flat (shapes in one plane), the depth is 0, and the
    normal is orthogonal to it. After 256 corners the search ends with the depth so far,
    which may be too small. `size` of both cores is the scale of tolerances [m].

    Source: van den Bergen 4.3.8.
    """
    C, P = work.relative[0], work.corner
    corners, nx, ny, nz = first_tetrahedron(shapes, a, b, C, P, FLAT * size)
    if corners < 4:
        if nx * C[9] + ny * C[10] + nz * C[11] < 0.0:
            nx, ny, nz = -nx, -ny, -nz
        return 0.0, nx, ny, nz, P[0, 3], P[0, 4], P[0, 5]
    make_face(work, 0, 0, 1, 2)
    face = work.face
    over = face[0, 0] * P[3, 0] + face[0, 1] * P[3, 1] + face[0, 2] * P[3, 2]
    if over > face[0, 3]:
        make_face(work, 0, 0, 2, 1)
        make_face(work, 1, 0, 1, 3)
        make_face(work, 2, 1, 2, 3)
        make_face(work, 3, 2, 0, 3)
    else:
        make_face(work, 1, 0, 3, 1)
        make_face(work, 2, 1, 3, 2)
        make_face(work, 3, 2, 3, 0)
    faces = 4
    tol = ACCURACY * size
    best = 0
    while corners < FACES // 2:
        best = nearest_face(work, faces)
        nx, ny, nz, d = face[best, 0], face[best, 1], face[best, 2], face[best, 3]
        difference(shapes, a, C, b, nx, ny, nz, P, corners)
        over = nx * P[corners, 0] + ny * P[corners, 1] + nz * P[corners, 2] - d
        if over <= 10.0 * tol:
            break
        faces = grow(work, faces, corners, tol)
        corners += 1
        best = nearest_face(work, faces)
    nx, ny, nz, d = face[best, 0], face[best, 1], face[best, 2], face[best, 3]
    for c in range(6):
        for m in range(3):
            work.simplex[m, c] = P[work.triple[best, m], c]
    # The weights of the face's corners at the foot of the origin.
    for m in range(3):
        work.simplex[m, 0] -= d * nx
        work.simplex[m, 1] -= d * ny
        work.simplex[m, 2] -= d * nz
    kept = reduce(work.simplex, work.weights, 3)
    x, y, z = 0.0, 0.0, 0.0
    for m in range(kept):
        x += work.weights[m] * work.simplex[m, 3]
        y += work.weights[m] * work.simplex[m, 4]
        z += work.weights[m] * work.simplex[m, 5]
    return -d, -nx, -ny, -nz, x, y, z
