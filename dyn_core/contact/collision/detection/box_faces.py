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
    """Return the corner in a point's octant: 1, 2 and 4 added for x, y, z above 0."""
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
    """Return 8 direction + corner at an edge's negative end; `bits`: either corner."""
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

    Rows of work.polygon from 0 on become its corners, in order around the face (of a
    segment, the end at -z first): coordinates along the axes (k + 1) % 3 and (k + 2) %
    3 of the box, and height over its face [m]. `half` and `other` are the half lengths
    (of a segment 0, 0, half) and the frame, in the box, of the other shape; k and `out`
    are axis and side (-1 or 1) of the face, `top` its distance from the centre [m].
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
    1 for the other; two closer than 1e-9 of the length become one. work.polygon has the
    clipped points from row 0 on, and the ends in rows 96 and 97 (POLYGON + 32). The
    first rows become the kept points; the first column of work.tags their features.
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
    """Return the corner nearest to a point of a box's face, or 8 plus the edge_number.

    Only edges and corners of the face with axis `normal` are compared. The point, in
    the box's frame [m], is a corner up to an offset of `tol` along either axis [m].
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
    e_a + e_b for a pair of edges with these edge_numbers, whichever of both has the
    face. Where two corners meet, that of a counts. Row m of work.polygon, k and `out`
    are as in `facing`; `half` is of the box with the face, which is b with `of_b`. Up
    to the distance `tol` [m] the point counts as a corner.
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
    """Find the points of the other shape over a face of a box; return their number.

    They are written to work.polygon from row 0 on, as in `facing`, up to `tol` beyond
    the rim [m]; their features, which differ, to the first column of work.tags. `other`
    is the other shape's frame in the box; `of_b`: the face is of b.
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
