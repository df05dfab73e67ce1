"""Contacts of a box with a box or a capsule: separating axes, faces, edges.

The largest separation over the axes of S. Gottschalk is a lower bound of the distance,
and equal to it if the points of that axis attain it. Otherwise (a corner near an edge
or a corner, parallel edges) all pairs of edges are compared. Faces are enlarged by a
millionth of the size, so that equal boxes stacked with small vibrations keep four
contacts; all other distances are exact. For an overlap the depth is the smallest over
the faces, unless a pair of edges is more than 5 % less deep: a face has the more stable
contacts.

Everything is computed in the frame of b. Written in the subset of Python that is
compiled (dyn_core.engines.machine_code).

Source: C. Ericson, Real-Time Collision Detection, 2005, 4.4.1 (separating axes); the
tolerances and the test of exactness are not from the literature.
"""

from __future__ import annotations

import math

from dyn_core.contact.collision.detection.box_edges import PARALLEL, edge_contacts
from dyn_core.contact.collision.detection.box_faces import face_points
from dyn_core.contact.collision.detection.tables import (
    Contacts,
    Work,
    put_in_frame,
    relate,
)
from dyn_core.engines.machine_code import FloatArray, FloatArray2, machine_code

EXACT = 1e-10  # relative to the size: distances this close are equal
SAME = 1e-6  # relative to the size: a point this far beyond a rim is over the face
STEADY = 0.95  # relative depth below which edges are preferred to a face


@machine_code
def face_axes(
    C: FloatArray, a: FloatArray, b: FloatArray, box: bool, axis: FloatArray2
) -> float:
    """Write the separations along the face normals of b and of a box a.

        s = |n . (c_a - c_b)| - sum_k h_k |n . u_k|

    Args:
        C: Frame of a in b.
        a, b: Half lengths of both shapes.
        box: Whether a is a box; False: a segment, without faces.
        axis: Rows 0 to 5 are written: normal from b to a in the frame of b, and s; -inf
            for faces that do not exist.

    Returns:
        The largest separation [m].
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
    """Write the separations along the cross products of edges of a and b.

    Args:
        C: Frame of a in b.
        a, b: Half lengths of both shapes.
        first: First axis of a that has edges: 0 for a box, 2 for a segment.
        axis: Rows 6 to 14 are written, 6 + 3 i + j for edges along axis i of a and j of
            b: normal from b to a in the frame of b, and separation; -inf for parallel
            edges.

    Returns:
        The largest separation [m]; -inf if all edges are parallel.
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

        gap = n . (x_a - x_b) - radius

    Args:
        contacts, count: Contacts, and their number.
        work: Memory.
        A, B: Frames of both in the world.
        a, b: Half lengths and radius of both; of a capsule 0, 0, half length, radius.
        box: Whether a is a box.
        margin: Maximum gap of a contact [m].
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
    """Add the contacts of a face, if its points attain the separation.

    Args:
        contacts, count: Contacts, and their number.
        work: Memory, with the separations in `axis` and the frame of a in b.
        A, a, B, b: Frames in the world, and half lengths and radius, of both shapes.
        box: Whether a is a box; False: a capsule.
        face: Row of the face in work.axis: 0 to 2 of b, 3 to 5 of a.
        tol: Distance up to which separations are equal [m].
        margin: Maximum gap of a contact [m].

    Returns:
        The new number of contacts; the old one if the points do not attain the
        separation; -1 if they do and none is within the margin.
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
