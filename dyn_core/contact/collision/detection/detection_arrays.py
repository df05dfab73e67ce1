"""Arrays of collision detection: shapes, tested pairs, contacts, and work memory.

They are records of arrays for functions of dyn_core.engines.machine_code;
shape_tables.py builds them from a Model. A frame is a row of 12: a rotation, row by
row, and a position, x_outer = R x + p. A shape is a core (a point, a segment, a box, a
cylinder, the hull of its vertices) and all points within a radius of the core. n is the
number of shapes, pairs that of tested pairs; FEATURES is 2^40, POLYGON 64, FACES 512.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dyn_core.engines.machine_code import (
    FloatArray,
    FloatArray2,
    IntArray,
    IntArray2,
    machine_code,
)

# Kinds of shapes. In a pair the kind of the first shape is not the larger one.
SPHERE = 0
CAPSULE = 1
BOX = 2
CYLINDER = 3
HULL = 4
PLANE = 5
HEIGHTS = 6

FEATURES = 1099511627776  # ids of one pair: 2^40
POLYGON = 64  # maximum number of corners of a clipped face
FACES = 512  # maximum number of faces of an expanding polytope


class Shapes(NamedTuple):
    """The shapes of a robot and its world; constant.

    Attributes:
        kind: SPHERE 0, CAPSULE 1, BOX 2, CYLINDER 3, HULL 4, PLANE 5 (a half-space) or
            HEIGHTS 6, (n,).
        body: Number of the body; 0 is the world, (n,).
        place: Frame of each shape in its body, (n, 12).
        size: Half lengths of a box, a segment (0, 0, half), or a cylinder (radius,
            radius, half), then the radius about the core, (n, 4) [m]; of a half-space
            its normal, then 0.
        bounds: Centre and half lengths of a box about the core in the shape's frame,
            (n, 6) [m].
        first: First vertex, number of vertices, first face and number of faces of a
            shape; of a height field first height, numbers of corners along x and y, 0,
            (n, 4).
        vertices: Vertices of hulls, and the fixed candidate points of other shapes
            (halfspaces.ball_points), in the shapes' frames, (count, 3) [m].
        faces: Outward normal and offset of each face of all hulls, (count, 4).
        corners: Start in `loops`, and number of corners, of each face, (count, 2).
        loops: Vertices round each face, numbered from 0 in each hull.
        heights: Heights of all height fields, row by row, a row for each x [m].
        cells: Lengths of a cell of a height field along x and y, (n, 2) [m].
    """

    kind: IntArray
    body: IntArray
    place: FloatArray2
    size: FloatArray2
    bounds: FloatArray2
    first: IntArray2
    vertices: FloatArray2
    faces: FloatArray2
    corners: IntArray2
    loops: IntArray
    heights: FloatArray
    cells: FloatArray2


class Pairs(NamedTuple):
    """The tested pairs of shapes; constant.

    First come pairs with half-spaces and height fields. The others are sorted by their
    first and then by their second shape, the first with the lower index.

    Attributes:
        first, second: Indices of both shapes, (pairs,).
        materials: Friction along tangents [1], torsion [m], rolling [m] and restitution
            of each pair, (pairs, 4).
        number: Index of the pair of two shapes, the lower one first; -1: not tested,
            (n, n). Empty, (0, 0), unless there are more than near_pairs.MANY pairs.
    """

    first: IntArray
    second: IntArray
    materials: FloatArray2
    number: IntArray2


class Contacts(NamedTuple):
    """Contacts, sorted by pair.

    Attributes:
        id: Equal in two steps if the same features of the same pair touch:
            pair FEATURES + feature, (capacity,).
        pair: Index of the pair, (capacity,).
        body_a, body_b: Bodies of its first and its second shape, (capacity,).
        gap: Distance along the normal; negative in an overlap, (capacity,) [m].
        point: Midway between the surfaces, world, (capacity, 3) [m].
        normal: From b to a, into body a, unit, world, (capacity, 3).
        turn: 0 for contacts at the given poses. For pairs that meet within the step,
            one plus the index of the velocity that leads to the meeting, (capacity,).
        time: Time of the meeting, from the start of the step, (capacity,) [s].
    """

    id: IntArray
    pair: IntArray
    body_a: IntArray
    body_b: IntArray
    gap: FloatArray
    point: FloatArray2
    normal: FloatArray2
    turn: IntArray
    time: FloatArray


class Work(NamedTuple):
    """Memory for intermediate values.

    Attributes:
        frames: Frame of each shape in the world, (n, 12).
        middle, half: Centre and half lengths of a box about each shape along the axes
            of the world, (n, 3) [m].
        relative: Frame of a in b, and of b in a, (2, 12).
        axis: Normal of each candidate axis of boxes, and separation along it, (15, 4).
        polygon: Corners of two clipped faces, x, y, height, (2 POLYGON, 3).
        tags: Vertex and edge of each corner, (2 POLYGON, 2).
        simplex: Difference of two points, and the point of a, (8, 6).
        weights: Weights of the corners of a simplex, (4,).
        corner: Corners of an expanding polytope, as in simplex, (FACES, 6).
        face: Outward normals and distances of its faces, (FACES, 4).
        triple: Corners of its faces, (FACES, 3).
        rim: Edges round the faces that are removed, (FACES, 2).
        near: Indices of the pairs that may touch, (pairs,).
        candidate: Indices of such pairs in the order of the sweep, (pairs,).
        order: The shapes in the order of the previous sweep, (n,).
        key: Lowest coordinate of each shape along the axis of the sweep, (n,) [m].
        number: Number of candidates whose first shape it is, (n,).
    """

    frames: FloatArray2
    middle: FloatArray2
    half: FloatArray2
    relative: FloatArray2
    axis: FloatArray2
    polygon: FloatArray2
    tags: IntArray2
    simplex: FloatArray2
    weights: FloatArray
    corner: FloatArray2
    face: FloatArray2
    triple: IntArray2
    rim: IntArray2
    near: IntArray
    candidate: IntArray
    order: IntArray
    key: FloatArray
    number: IntArray


def allocate_contacts(capacity: int) -> Contacts:
    """Return Contacts of zeros for `capacity` contacts."""
    return Contacts(
        id=np.zeros(capacity, np.int64),
        pair=np.zeros(capacity, np.int64),
        body_a=np.zeros(capacity, np.int64),
        body_b=np.zeros(capacity, np.int64),
        gap=np.zeros(capacity),
        point=np.zeros((capacity, 3)),
        normal=np.zeros((capacity, 3)),
        turn=np.zeros(capacity, np.int64),
        time=np.zeros(capacity),
    )


def allocate_work(shapes: int, pairs: int) -> Work:
    """Return work memory of zeros; `order` has the indices of the shapes."""
    return Work(
        frames=np.zeros((shapes, 12)),
        middle=np.zeros((shapes, 3)),
        half=np.zeros((shapes, 3)),
        relative=np.zeros((2, 12)),
        axis=np.zeros((15, 4)),
        polygon=np.zeros((2 * POLYGON, 3)),
        tags=np.zeros((2 * POLYGON, 2), np.int64),
        simplex=np.zeros((8, 6)),
        weights=np.zeros(4),
        corner=np.zeros((FACES, 6)),
        face=np.zeros((FACES, 4)),
        triple=np.zeros((FACES, 3), np.int64),
        rim=np.zeros((FACES, 2), np.int64),
        near=np.zeros(pairs, np.int64),
        candidate=np.zeros(pairs, np.int64),
        order=np.arange(shapes),
        key=np.zeros(shapes),
        number=np.zeros(shapes, np.int64),
    )


@machine_code
def vertex(shapes: Shapes, k: int, m: int) -> tuple[float, float, float]:
    """Return x, y, z of vertex m of shape k, counted from 0, in its frame [m]."""
    row = shapes.first[k, 0] + m
    return shapes.vertices[row, 0], shapes.vertices[row, 1], shapes.vertices[row, 2]


@machine_code
def put(
    contacts: Contacts,
    count: int,
    feature: int,
    x: float,
    y: float,
    z: float,
    nx: float,
    ny: float,
    nz: float,
    gap: float,
) -> int:
    """Write a contact to row `count` if that is below the capacity; return count + 1.

    The feature becomes the id. Point (midway between the surfaces) and normal (from the
    second shape to the first) are in the world. all_pairs.add_pair writes the rest but
    `time`, and adds 2^40 times the pair to the id.
    """
    if count < len(contacts.id):
        contacts.id[count] = feature
        contacts.point[count, 0] = x
        contacts.point[count, 1] = y
        contacts.point[count, 2] = z
        contacts.normal[count, 0] = nx
        contacts.normal[count, 1] = ny
        contacts.normal[count, 2] = nz
        contacts.gap[count] = gap
    return count + 1


@machine_code
def put_in_frame(
    contacts: Contacts,
    count: int,
    F: FloatArray,
    feature: int,
    x: float,
    y: float,
    z: float,
    nx: float,
    ny: float,
    nz: float,
    gap: float,
) -> int:
    """Write a contact given in the coordinates of F, as `put`; return count + 1."""
    return put(
        contacts,
        count,
        feature,
        F[0] * x + F[1] * y + F[2] * z + F[9],
        F[3] * x + F[4] * y + F[5] * z + F[10],
        F[6] * x + F[7] * y + F[8] * z + F[11],
        F[0] * nx + F[1] * ny + F[2] * nz,
        F[3] * nx + F[4] * ny + F[5] * nz,
        F[6] * nx + F[7] * ny + F[8] * nz,
        gap,
    )


@machine_code
def compose(A: FloatArray, B: FloatArray, out: FloatArray) -> None:
    """Write the frame A B, with B given in A, to `out`, which is neither A nor B.

        R = R_a R_b,   p = R_a p_b + p_a

    All are (12,): a rotation, row by row, and a position.
    """
    for i in range(3):
        x, y, z = A[3 * i], A[3 * i + 1], A[3 * i + 2]
        for j in range(3):
            out[3 * i + j] = x * B[j] + y * B[3 + j] + z * B[6 + j]
        out[9 + i] = x * B[9] + y * B[10] + z * B[11] + A[9 + i]


@machine_code
def relate(A: FloatArray, B: FloatArray, out: FloatArray) -> None:
    """Write the frame of A in B to `out`, which is neither A nor B.

    A and B are given in the same coordinates; all are (12,).

        R = R_b^T R_a,   p = R_b^T (p_a - p_b)
    """
    dx, dy, dz = A[9] - B[9], A[10] - B[10], A[11] - B[11]
    for i in range(3):
        x, y, z = B[i], B[3 + i], B[6 + i]
        for j in range(3):
            out[3 * i + j] = x * A[j] + y * A[3 + j] + z * A[6 + j]
        out[9 + i] = x * dx + y * dy + z * dz
