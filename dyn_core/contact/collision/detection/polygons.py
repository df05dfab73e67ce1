"""Faces of convex shapes as polygons, and clipping of a polygon to another one.

All corners are points in the frame of the pair's second shape. Written in the subset of
Python that is compiled (dyn_core.engines.machine_code).

A frame is (12,): a rotation R, row by row, and a position p [m], x_outer = R x + p.
Rows of work.polygon and work.tags: the polygon to be clipped from OTHER (0) on, its
copy from COPY (40) on, the face it is clipped to from FACE (88) on. CUT is 16384,
CORNERS 16.

Source: C. Ericson, Real-Time Collision Detection, 2005, 8.3.4 (clipping of the incident
face); the features are not from the literature.
"""

from __future__ import annotations

import math

from dyn_core.contact.collision.detection.detection_arrays import (
    BOX,
    CAPSULE,
    CYLINDER,
    HULL,
    Shapes,
    Work,
    vertex,
)
from dyn_core.engines.machine_code import FloatArray, FloatArray2, machine_code

CORNERS = 16  # maximum number of corners of a face
OTHER = 0  # rows of Work.polygon: the clipped face, its copy, the face it is clipped to
COPY = 40
FACE = 88
CUT = 16384  # a side made by clipping has the number CUT + number of a corner


@machine_code
def face_towards(
    shapes: Shapes, k: int, dx: float, dy: float, dz: float
) -> tuple[int, float, float, float]:
    """Return the face whose outward normal is closest to a direction, and the normal.

    Both are in the shape's frame. The index of a face is, for a box, 2 axis for its
    negative and 2 axis + 1 for its positive side; for a cylinder, 0 or 1 for its end at
    -z or +z; for a hull, its row in Shapes.faces. It is -1 and the normal is 0 for
    spheres and capsules, hulls without faces, and directions closer to the side of a
    cylinder than to its axis.
    """
    kind = shapes.kind[k]
    if kind == BOX:
        x, y, z = abs(dx), abs(dy), abs(dz)
        if x >= y and x >= z:
            if dx <= 0.0:
                return 0, -1.0, 0.0, 0.0
            return 1, 1.0, 0.0, 0.0
        if y >= z:
            if dy <= 0.0:
                return 2, 0.0, -1.0, 0.0
            return 3, 0.0, 1.0, 0.0
        if dz <= 0.0:
            return 4, 0.0, 0.0, -1.0
        return 5, 0.0, 0.0, 1.0
    if kind == CYLINDER and dz * dz >= dx * dx + dy * dy:
        if dz <= 0.0:
            return 0, 0.0, 0.0, -1.0
        return 1, 0.0, 0.0, 1.0
    if kind == HULL and shapes.first[k, 3] > 0:
        first = shapes.first[k, 2]
        best, row = -math.inf, first
        for m in range(first, first + shapes.first[k, 3]):
            along = dx * shapes.faces[m, 0] + dy * shapes.faces[m, 1]
            along += dz * shapes.faces[m, 2]
            if along > best:
                best, row = along, m
        faces = shapes.faces
        return row, faces[row, 0], faces[row, 1], faces[row, 2]
    return -1, 0.0, 0.0, 0.0


@machine_code
def face_corner(
    shapes: Shapes, k: int, face: int, m: int
) -> tuple[int, float, float, float]:
    """Return the number of corner m of a face, and x, y, z in the shape's frame [m].

    Corners are counterclockwise about the outward normal. The number identifies the
    vertex: of a hull, as in Shapes.loops; of a box, 1 for +x, plus 2 for +y, plus 4 for
    +z; of a cylinder, the index in rim_point for its end at -z, CORNERS more at +z.
    """
    size = shapes.size[k]
    kind = shapes.kind[k]
    if kind == HULL:
        number = shapes.loops[shapes.corners[face, 0] + m]
        x, y, z = vertex(shapes, k, number)
        return number, x, y, z
    up = face % 2 == 1
    if kind == CYLINDER:
        turn = m if up else CORNERS - 1 - m
        # The rim by halving: (1, 0), (0, 1), and points between them.
        x, y = rim_point(turn)
        z = size[2] if up else -size[2]
        return (CORNERS + turn if up else turn), size[0] * x, size[0] * y, z
    axis = face // 2
    turn = m if up else 3 - m
    s_i = 1.0 if turn == 1 or turn == 2 else -1.0
    s_j = 1.0 if turn > 1 else -1.0
    s_k = 1.0 if up else -1.0
    x, y, z = s_k, s_i, s_j
    if axis == 1:
        x, y, z = s_j, s_k, s_i
    elif axis == 2:
        x, y, z = s_i, s_j, s_k
    number = 0
    if x > 0.0:
        number += 1
    if y > 0.0:
        number += 2
    if z > 0.0:
        number += 4
    x, y, z = vertex(shapes, k, number)
    return number, x, y, z


@machine_code
def rim_point(turn: int) -> tuple[float, float]:
    """Return x, y on the unit circle, `turn` / CORNERS counterclockwise of (1, 0)."""
    eighth = math.sqrt(0.5)
    c, s = math.sqrt(0.5 + 0.5 * eighth), math.sqrt(0.5 - 0.5 * eighth)
    quarter, rest = turn // 4, turn % 4
    x, y = 1.0, 0.0
    if rest == 1:
        x, y = c, s
    elif rest == 2:
        x, y = eighth, eighth
    elif rest == 3:
        x, y = s, c
    if quarter == 1:
        return -y, x
    if quarter == 2:
        return -x, -y
    if quarter == 3:
        return y, -x
    return x, y


@machine_code
def corners_of(shapes: Shapes, k: int, face: int) -> int:
    """Return the number of corners of a face of shape k, a box, cylinder or hull."""
    if shapes.kind[k] == HULL:
        return shapes.corners[face, 1]
    if shapes.kind[k] == CYLINDER:
        return CORNERS
    return 4


@machine_code
def write_point(
    work: Work, row: int, F: FloatArray, tag: int, x: float, y: float, z: float
) -> None:
    """Write a corner of a polygon, and `tag`, the number of its vertex, as both tags.

    x, y, z are in coordinates of F, the shape's frame in the pair's second shape [m].
    """
    work.polygon[row, 0] = F[0] * x + F[1] * y + F[2] * z + F[9]
    work.polygon[row, 1] = F[3] * x + F[4] * y + F[5] * z + F[10]
    work.polygon[row, 2] = F[6] * x + F[7] * y + F[8] * z + F[11]
    work.tags[row, 0] = tag
    work.tags[row, 1] = tag


@machine_code
def write_face(
    shapes: Shapes, k: int, work: Work, F: FloatArray, start: int, face: int
) -> int:
    """Write the corners of a face of shape k, and their numbers in it; return how many.

    The number becomes both tags. F is the shape's frame in the pair's second shape.
    """
    size = corners_of(shapes, k, face)
    for m in range(size):
        tag, x, y, z = face_corner(shapes, k, face, m)
        write_point(work, start + m, F, tag, x, y, z)
    return size


@machine_code
def write_feature(
    shapes: Shapes,
    k: int,
    work: Work,
    F: FloatArray,
    start: int,
    dx: float,
    dy: float,
    dz: float,
) -> int:
    """Write a shape's face or line towards a direction; return its number of corners.

    The direction is in the shape's frame, F is this frame in the pair's second shape.
    Rows of work.polygon and work.tags from `start` on are written. 2 corners are a line
    along z of length above 0, the axis of a capsule or on the side of a cylinder: first
    the end at -z, with the first tags 32 and 33, and the second tag 32 of both. 0:
    spheres, hulls without faces, lines of length 0.
    """
    face, _, _, _ = face_towards(shapes, k, dx, dy, dz)
    if face >= 0:
        return write_face(shapes, k, work, F, start, face)
    kind = shapes.kind[k]
    if kind != CAPSULE and kind != CYLINDER:
        return 0
    half = shapes.size[k, 2]
    x, y = 0.0, 0.0
    if kind == CYLINDER:
        across = math.sqrt(dx * dx + dy * dy)
        x, y = shapes.size[k, 0] * dx / across, shapes.size[k, 0] * dy / across
    write_point(work, start, F, 2 * CORNERS, x, y, -half)
    write_point(work, start + 1, F, 2 * CORNERS + 1, x, y, half)
    if shapes.size[k, 2] > 0.0:
        work.tags[start + 1, 1] = 2 * CORNERS
        return 2
    return 0


@machine_code
def copy_row(work: Work, source: int, target: int) -> None:
    """Copy a row of work.polygon and work.tags from index `source` to `target`."""
    for c in range(3):
        work.polygon[target, c] = work.polygon[source, c]
    for c in range(2):
        work.tags[target, c] = work.tags[source, c]


@machine_code
def side_normal(
    polygon: FloatArray2, e: int, size: int, nx: float, ny: float, nz: float
) -> tuple[float, float, float]:
    """Return the unit normal out of side e of the polygon at FACE, in its plane.

    The polygon is counterclockwise about (nx, ny, nz). Zeros for a side of length 0.
    """
    row, after = FACE + e, FACE + (e + 1) % size
    x = polygon[after, 0] - polygon[row, 0]
    y = polygon[after, 1] - polygon[row, 1]
    z = polygon[after, 2] - polygon[row, 2]
    x, y, z = y * nz - z * ny, z * nx - x * nz, x * ny - y * nx
    long = math.sqrt(x * x + y * y + z * z)
    if long > 0.0:
        return x / long, y / long, z / long
    return 0.0, 0.0, 0.0


@machine_code
def clip_to_face(
    work: Work,
    size: int,
    size_face: int,
    nx: float,
    ny: float,
    nz: float,
    tol: float,
) -> int:
    """Clip the polygon at OTHER to the prism over the polygon at FACE.

    A corner has two tags: its vertex, and the vertex at which the side after it starts.
    A corner at which side e of the face cuts a side has the first tag CUT (1 + second
    tag of the cut side) + first vertex of e. Its second tag is CUT + the first vertex
    of e if the side after it lies on the face's side e, else the second tag of the side
    that was cut. Where the last side of the face cuts a side that lies on its first
    one, the first tag has the first vertex of the first side.

    The face is counterclockwise about (nx, ny, nz); a corner up to `tol` [m] beyond a
    side stays. Rows at COPY are overwritten. Returns the number of corners.
    """
    polygon, tags = work.polygon, work.tags
    for e in range(size_face):
        x, y, z = side_normal(polygon, e, size_face, nx, ny, nz)
        row = FACE + e
        limit = x * polygon[row, 0] + y * polygon[row, 1] + z * polygon[row, 2]
        kept = 0
        for m in range(size):
            p, q = OTHER + m, OTHER + m - 1
            if m == 0:
                q = OTHER + size - 1
            d_p = x * polygon[p, 0] + y * polygon[p, 1] + z * polygon[p, 2] - limit
            d_q = x * polygon[q, 0] + y * polygon[q, 1] + z * polygon[q, 2] - limit
            if (d_p > tol) != (d_q > tol):
                t = d_q / (d_q - d_p)
                for c in range(3):
                    polygon[COPY + kept, c] = (
                        polygon[q, c] + (polygon[p, c] - polygon[q, c]) * t
                    )
                vertex = tags[row, 0]
                if e == size_face - 1 and tags[q, 1] == CUT + tags[FACE, 0]:
                    vertex = tags[FACE, 0]  # the last side meets the first one
                tags[COPY + kept, 0] = cut_tag(tags[q, 1], vertex)
                tags[COPY + kept, 1] = tags[q, 1]
                if d_p > tol:
                    tags[COPY + kept, 1] = CUT + tags[row, 0]
                kept += 1
            if d_p <= tol:
                copy_row(work, p, COPY + kept)
                kept += 1
        for m in range(kept):
            copy_row(work, COPY + m, OTHER + m)
        size = kept
    return size


@machine_code
def cut_tag(side: int, vertex: int) -> int:
    """Return the tag CUT (1 + side) + vertex of a corner where the face cuts a side.

    `side` is the second tag of the corner before; at `vertex` the cutting side starts.
    """
    return CUT * (1 + side) + vertex
