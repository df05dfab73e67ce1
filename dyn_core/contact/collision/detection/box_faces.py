"""Contacts of a face of a box with the opposite face of a box, or with a segment.

The other face is clipped to the first one, in the coordinates of the first one's box.
Every point has a feature that does not depend on which box has the first face. Written
in the subset of Python that is compiled (dyn_core.engines.machine_code).

A frame is (12,): a rotation R, row by row, and a position p [m], x_outer = R x + p.

Source: C. Ericson, Real-Time Collision Detection, 2005, 8.3.4 (clipping of the incident
face); the features and tolerances are not from the literature.
"""

from __future__ import annotations

import math

from dyn_core.contact.collision.detection.detection_arrays import POLYGON, Work
from dyn_core.engines.machine_code import FloatArray, FloatArray2, machine_code

# Features of boxes: corners of a (8), corners of b (8), ends of a segment (2), and from
# EDGES on a pair of edges; from EDGES + PAIRS on both ends of two parallel edges.
CORNER_OF_A = 0
CORNER_OF_B = 8
END = 16
EDGES = 32
PAIRS = 576
_DISTINCT = 1e-9  # fraction of a segment below which two of its points coincide


@machine_code
def corner_bits(x: float, y: float, z: float) -> int:
    """Return the number of the box corner in the octant of a point, 0 to 7.

    1, 2 and 4 are added for x, y and z above 0.
    """
    bits = 0
    if x > 0.0:
        bits += 1
    if y > 0.0:
        bits += 2
    if z > 0.0:
        bits += 4
    return bits


@machine_code
def edge_number(direction: int, bits: int) -> int:
    """Return the number of a box's edge, 8 direction + corner, below 24.

    Args:
        direction: Axis along the edge, 0 to 2.
        bits: Number of either corner of the edge, see corner_bits; `corner` is the one
            on the negative side.
    """
    weight = 1
    if direction > 0:
        weight = 2 * direction
    if bits // weight % 2 == 1:
        bits -= weight
    return 8 * direction + bits


@machine_code
def clip(polygon: FloatArray2, size: int, h_x: float, h_y: float, tol: float) -> int:
    """Clip a polygon to |x| <= h_x, |y| <= h_y; return the number of its corners.

    0: nothing of it is inside.

    Args:
        polygon: Corners (x, y, height) from row 0 on [m], replaced by the corners of
            the clipped polygon; rows from POLYGON (64) on are overwritten.
        size: Number of corners before; of a segment (2), ends may come out twice.
        h_x, h_y: Half lengths of the rectangle [m].
        tol: Distance up to which a corner beyond a side is not clipped [m].
    """
    for side in range(4):
        k = side // 2
        sign = 1.0 if side % 2 == 1 else -1.0
        limit = h_x if k == 0 else h_y
        kept = 0
        for m in range(size):
            last = m - 1 if m > 0 else size - 1
            d_p, d_q = sign * polygon[m, k] - limit, sign * polygon[last, k] - limit
            if (d_p > tol) != (d_q > tol):
                t = d_q / (d_q - d_p)
                for c in range(3):
                    q = polygon[last, c]
                    polygon[POLYGON + kept, c] = q + (polygon[m, c] - q) * t
                kept += 1
            if d_p <= tol:
                for c in range(3):
                    polygon[POLYGON + kept, c] = polygon[m, c]
                kept += 1
        for m in range(kept):
            for c in range(3):
                polygon[m, c] = polygon[POLYGON + m, c]
        size = kept
    return size


@machine_code
def facing(
    work: Work,
    half: FloatArray,
    other: FloatArray,
    segment: bool,
    k: int,
    out: float,
    top: float,
) -> int:
    """Write the other shape's face opposite to a box's face; return its corner count.

    Args:
        work: The corners are written to work.polygon from row 0 on, in order around the
            face (of a segment, the end at -z first): coordinates along the axes (k + 1)
            % 3 and (k + 2) % 3 of the box, and height over its face [m].
        half: Half lengths of the other shape, (3,) [m]; 0, 0, half length of a segment.
        other: Frame of the other shape in the box with the face, (12,).
        segment: Whether the other shape is a segment along its z, with two corners;
            else it is a box, with four.
        k, out: Axis and side (-1 or 1) of the box's face.
        top: Distance of the face from the box's centre [m].
    """
    i, j = (k + 1) % 3, (k + 2) % 3
    a = 2
    if not segment:
        x, y = abs(other[3 * k]), abs(other[3 * k + 1])
        if x >= y and x >= abs(other[3 * k + 2]):
            a = 0
        elif y >= abs(other[3 * k + 2]):
            a = 1
    b, c = (a + 1) % 3, (a + 2) % 3
    count = 2 if segment else 4
    for m in range(count):
        s_a = -1.0 if out * other[3 * k + a] > 0.0 else 1.0
        s_b = 1.0 if m == 1 or m == 2 else -1.0
        s_c = 1.0 if m > 1 else -1.0
        if segment:
            s_a = -1.0 if m == 0 else 1.0
        d_a, d_b, d_c = s_a * half[a], s_b * half[b], s_c * half[c]
        for c3 in range(3):
            row = i if c3 == 0 else j
            if c3 == 2:
                row = k
            start = 3 * row
            x = other[9 + row] + d_a * other[start + a]
            x = x + d_b * other[start + b] + d_c * other[start + c]
            work.polygon[m, c3] = x if c3 < 2 else out * x - top
    return count


@machine_code
def segment_features(work: Work, size: int) -> int:
    """Keep the two outermost points of a clipped segment; return their number, 0 to 2.

    The feature of a point is END (16) for the one nearer the segment's first end, END +
    1 for the other. Two points closer than 1e-9 of the segment's length become one,
    with the feature of the nearer end.

    Args:
        work: work.polygon has the clipped points from row 0 on, and the ends of the
            segment in rows 96 and 97 (POLYGON + 32). The kept points are written to its
            first rows, the features to the first column of work.tags.
        size: Number of clipped points, may be 0.
    """
    polygon, first = work.polygon, POLYGON + 32
    ux = polygon[first + 1, 0] - polygon[first, 0]
    uy = polygon[first + 1, 1] - polygon[first, 1]
    uz = polygon[first + 1, 2] - polygon[first, 2]
    square = max(ux * ux + uy * uy + uz * uz, 1e-300)
    low, high = 0, 0
    t_low, t_high = math.inf, -math.inf
    for m in range(size):
        t = (polygon[m, 0] - polygon[first, 0]) * ux
        t += (polygon[m, 1] - polygon[first, 1]) * uy
        t += (polygon[m, 2] - polygon[first, 2]) * uz
        t = t / square
        if t < t_low:
            low, t_low = m, t
        if t > t_high:
            high, t_high = m, t
    if size < 1:
        return 0
    if size < 2 or t_high - t_low < _DISTINCT:
        for c in range(3):
            polygon[0, c] = polygon[low, c]
        work.tags[0, 0] = END + 1 if t_low > 0.5 else END
        return 1
    for c in range(3):
        x, y = polygon[low, c], polygon[high, c]
        polygon[0, c] = x
        polygon[1, c] = y
    work.tags[0, 0] = END
    work.tags[1, 0] = END + 1
    return 2


@machine_code
def edge_beside(
    x: float, y: float, z: float, half: FloatArray, normal: int, tol: float
) -> int:
    """Return the corner or edge of a box nearest to a point of a face.

    Args:
        x, y, z: The point in the box's frame [m].
        half: Half lengths of the box, (3,) [m].
        normal: Axis of the face's normal, 0 to 2; only edges and corners of this face
            are compared.
        tol: Largest offset along either axis up to which the point counts as a corner
            [m].

    Returns:
        The number of the corner (corner_bits), or 8 plus the number of the edge
        (edge_number).
    """
    off_x, off_y, off_z = abs(abs(x) - half[0]), abs(abs(y) - half[1]), 0.0
    off_z = abs(abs(z) - half[2])
    if normal == 0:
        off_x = 0.0
    elif normal == 1:
        off_y = 0.0
    else:
        off_z = 0.0
    bits = corner_bits(x, y, z)
    if max(max(off_x, off_y), off_z) <= tol:
        return bits
    if normal == 0:
        off_x = math.inf
    elif normal == 1:
        off_y = math.inf
    else:
        off_z = math.inf
    nearest = 2
    if off_x <= off_y and off_x <= off_z:
        nearest = 0
    elif off_y <= off_z:
        nearest = 1
    return 8 + edge_number(3 - normal - nearest, bits)


@machine_code
def point_feature(
    work: Work,
    m: int,
    of_b: bool,
    half: FloatArray,
    half_other: FloatArray,
    other: FloatArray,
    k: int,
    out: float,
    tol: float,
) -> int:
    """Return the feature of a point of the overlap of two box faces.

    It is the number of a corner of a, or 8 plus the number of a corner of b, or 32 + 24
    e_a + e_b for a pair of edges with these edge_numbers; a and b are the pair's first
    and second box. Where two corners meet, that of a counts. It is the same whichever
    of them has the face.

    Args:
        work, m: Memory, and row of the point in work.polygon: coordinates along the
            axes (k + 1) % 3 and (k + 2) % 3 of the box, and height over the face [m].
        of_b: Whether the face belongs to the pair's second shape.
        half, half_other: Half lengths of the box with the face, and of the other box,
            (3,) [m].
        other: Frame of the other box in the box with the face, (12,).
        k, out: Axis and side (-1 or 1) of the face.
        tol: Distance up to which the point counts as a corner [m].
    """
    i, j = (k + 1) % 3, (k + 2) % 3
    u, v = work.polygon[m, 0], work.polygon[m, 1]
    h = out * (work.polygon[m, 2] + half[k])
    x, y, z = h, u, v
    px, py, pz = out * half[k], u, v
    if i == 0:
        x, y, z = u, v, h
        px, py, pz = u, v, out * half[k]
    elif j == 0:
        x, y, z = v, h, u
        px, py, pz = v, out * half[k], u
    dx, dy, dz = x - other[9], y - other[10], z - other[11]
    qx = other[0] * dx + other[3] * dy + other[6] * dz
    qy = other[1] * dx + other[4] * dy + other[7] * dz
    qz = other[2] * dx + other[5] * dy + other[8] * dz
    facing_axis = 2
    a_x, a_y = abs(other[3 * k]), abs(other[3 * k + 1])
    a_z = abs(other[3 * k + 2])
    if a_x >= a_y and a_x >= a_z:
        facing_axis = 0
    elif a_y >= a_z:
        facing_axis = 1
    mine = edge_beside(px, py, pz, half, k, tol)
    theirs = edge_beside(qx, qy, qz, half_other, facing_axis, tol)
    of_first = theirs if of_b else mine
    of_second = mine if of_b else theirs
    if of_first < 8:
        return CORNER_OF_A + of_first
    if of_second < 8:
        return CORNER_OF_B + of_second
    return EDGES + 24 * (of_first - 8) + of_second - 8


@machine_code
def face_points(
    work: Work,
    half: FloatArray,
    half_other: FloatArray,
    other: FloatArray,
    segment: bool,
    of_b: bool,
    k: int,
    out: float,
    tol: float,
) -> int:
    """Find the points of the other shape over a face of a box, and their features.

    Args:
        work: The points are written to work.polygon from row 0 on: coordinates along
            the axes (k + 1) % 3 and (k + 2) % 3 of the box, and height over the face
            [m]; their features to the first column of work.tags.
        half, half_other: Half lengths of the box with the face, and of the other shape,
            (3,) [m].
        other: Frame of the other shape in the box with the face, (12,).
        segment: Whether the other shape is a segment along its z, not a box.
        of_b: Whether the face belongs to the pair's second shape.
        k, out: Axis and side (-1 or 1) of the face.
        tol: Distance up to which a point beyond the rim is over the face [m].

    Returns:
        The number of points, whose features differ; 0: none is over the face.
    """
    polygon, tags = work.polygon, work.tags
    size = facing(work, half_other, other, segment, k, out, half[k])
    if segment:
        for m in range(2):
            for c in range(3):
                polygon[POLYGON + 32 + m, c] = polygon[m, c]
    size = clip(polygon, size, half[(k + 1) % 3], half[(k + 2) % 3], tol)
    if segment:
        return segment_features(work, size)
    kept = 0
    for m in range(size):
        feature = point_feature(work, m, of_b, half, half_other, other, k, out, tol)
        known = False
        for e in range(kept):
            known = known or tags[e, 0] == feature
        if not known:
            for c in range(3):
                polygon[kept, c] = polygon[m, c]
            tags[kept, 0] = feature
            kept += 1
    return kept
