"""Contacts of a box, cylinder or hull with the tops of a height field below its faces.

A top is a corner of the grid that is above the middle of its neighbours. A top inside a
shape or over one of its faces touches that face: in each quarter of the shape the
deepest one. Normals point from the field to the shape. Written in the subset of Python
that is compiled (dyn_core.engines.machine_code).

A frame is (12,): a rotation R, row by row, and a position p [m], x_outer = R x + p.
"""

from __future__ import annotations

import math

from dyn_core.contact.collision.detection.detection_arrays import (
    CYLINDER,
    HULL,
    Contacts,
    Shapes,
    Work,
    put_in_frame,
)
from dyn_core.engines.machine_code import FloatArray, machine_code

FIRST = 549755813888  # feature of the grid's first corner: 2^39
LEVEL = 1e-9  # fraction of the cell by which a top is above its neighbours

LOOKS_UP = 0.5  # z of a face's normal from which on no ground touches it


@machine_code
def height(shapes: Shapes, k: int, i: int, j: int) -> float:
    """Return the height of corner (i, j) of height field k, in the field's frame [m].

    `i` counts along x, `j` along y, from 0.
    """
    return shapes.heights[shapes.first[k, 0] + i * shapes.first[k, 2] + j]


@machine_code
def cells_within(
    centre: float, reach: float, cell: float, cells: int
) -> tuple[int, int]:
    """Return the first and the last index of cells that an interval covers on an axis.

    Both are inclusive, 0 and -1 beside the grid. `centre` of the interval is from the
    start of the grid, `reach` is half its length [m].
    """
    low = max((centre - reach) / cell, 0.0)
    high = min((centre + reach) / cell, float(cells) - 0.5)
    if high < 0.0 or low > float(cells):
        return 0, -1
    return min(int(low), cells - 1), int(high)


@machine_code
def is_top(shapes: Shapes, k: int, i: int, j: int) -> bool:
    """Return whether corner (i, j) of field k is above the middle of its neighbours.

    It is above the mean of both along at least one grid line (x, y, diagonal), below it
    along none, by over 1e-9 of the sum of a cell's lengths. Lines beyond the grid do
    not count.
    """
    columns, rows = shapes.first[k, 1] - 1, shapes.first[k, 2] - 1
    z, above = height(shapes, k, i, j), False
    least = LEVEL * (shapes.cells[k, 0] + shapes.cells[k, 1])
    for way in range(3):
        d_i = 0 if way == 1 else 1
        d_j = 0 if way == 0 else 1
        if i < d_i or j < d_j or i + d_i > columns or j + d_j > rows:
            continue
        before, after = height(shapes, k, i - d_i, j - d_j), 0.0
        after = height(shapes, k, i + d_i, j + d_j)
        if z < (before + after) / 2 - least:
            return False
        above = above or z > (before + after) / 2 + least
    return above


@machine_code
def over_a_face(
    shapes: Shapes, a: int, x: float, y: float, z: float, C: FloatArray
) -> tuple[float, float, float, float]:
    """Return the gap of a point and a shape, and the nearest face's outward normal.

    Point and normal are in the shape's frame, C is this frame in the field; the gap is
    negative inside [m]. Faces that look up, with z of 0.5 or more in the field, are
    left out: the ground is not above them. The side of a cylinder counts as a face; on
    the axis its normal is the one that looks down most, or along x if it stands. The
    gap is inf, the normal along z, outside of several faces, where an edge is closer,
    and if all look up.
    """
    kind, size = shapes.kind[a], shapes.size[a]
    best, nx, ny, nz = -math.inf, 0.0, 0.0, 0.0
    outside, sides = 0, 6
    if kind == CYLINDER:
        sides = 3
    elif kind == HULL:
        sides = shapes.first[a, 3]
    for side in range(sides):
        u, v, w, gap = 0.0, 0.0, 0.0, 0.0
        sign = 1.0 if side % 2 == 0 else -1.0
        if kind == HULL:
            row = shapes.first[a, 2] + side
            u, v, w = shapes.faces[row, 0], shapes.faces[row, 1], shapes.faces[row, 2]
            gap = u * x + v * y + w * z - shapes.faces[row, 3]
        elif kind == CYLINDER and side == 2:
            across = math.sqrt(x * x + y * y)
            gap = across - size[0]
            u, v = x, y
            if across == 0.0:  # on the axis every side is as near
                u, v = -C[6], -C[7]
                across = math.sqrt(u * u + v * v)
            if across == 0.0:
                u, across = 1.0, 1.0
            u, v = u / across, v / across
        elif kind == CYLINDER or side > 3:
            w, gap = sign, sign * z - size[2]
        elif side > 1:
            v, gap = sign, sign * y - size[1]
        else:
            u, gap = sign, sign * x - size[0]
        if gap > 0.0:
            outside += 1
        up = C[6] * u + C[7] * v + C[8] * w
        if gap > best and up < LOOKS_UP:
            best, nx, ny, nz = gap, u, v, w
    if outside > 1 or best == -math.inf:
        return math.inf, 0.0, 0.0, 1.0
    return best, nx, ny, nz


@machine_code
def with_tops(
    contacts: Contacts,
    count: int,
    shapes: Shapes,
    a: int,
    A: FloatArray,
    k: int,
    C: FloatArray,
    work: Work,
    margin: float,
) -> int:
    """Add the contacts of a shape's faces with tops of a height field.

    At most 4 are added, the deepest for each quarter of the shape's extent along x and
    y of the field; returns the new number. The feature is 2^39 (FIRST) plus the number
    of the grid's corner, i times the corners along y plus j. C is the frame of the
    shape in the field; weights, polygon and tags are overwritten. Contacts beyond the
    capacity are counted, not written.
    """
    bounds, cells = shapes.bounds[a], shapes.cells[k]
    x_0 = C[0] * bounds[0] + C[1] * bounds[1] + C[2] * bounds[2] + C[9]
    y_0 = C[3] * bounds[0] + C[4] * bounds[1] + C[5] * bounds[2] + C[10]
    w_x = abs(C[0]) * bounds[3] + abs(C[1]) * bounds[4] + abs(C[2]) * bounds[5]
    w_y = abs(C[3]) * bounds[3] + abs(C[4]) * bounds[4] + abs(C[5]) * bounds[5]
    columns, rows = shapes.first[k, 1] - 1, shapes.first[k, 2] - 1
    i_1, i_2 = cells_within(x_0, w_x + margin, cells[0], columns)
    j_1, j_2 = cells_within(y_0, w_y + margin, cells[1], rows)
    if i_2 < i_1 or j_2 < j_1:
        return count
    least, places, tags = work.weights, work.polygon, work.tags
    for quarter in range(4):
        least[quarter] = math.inf
    for i in range(i_1, i_2 + 2):
        for j in range(j_1, j_2 + 2):
            if not is_top(shapes, k, i, j):
                continue
            dx, dy = float(i) * cells[0] - C[9], float(j) * cells[1] - C[10]
            dz = height(shapes, k, i, j) - C[11]
            x = C[0] * dx + C[3] * dy + C[6] * dz
            y = C[1] * dx + C[4] * dy + C[7] * dz
            z = C[2] * dx + C[5] * dy + C[8] * dz
            gap, nx, ny, nz = over_a_face(shapes, a, x, y, z, C)
            quarter = 0
            if float(i) * cells[0] > x_0:
                quarter += 1
            if float(j) * cells[1] > y_0:
                quarter += 2
            if gap <= margin and gap < least[quarter]:
                least[quarter] = gap
                tags[quarter, 0] = i * (rows + 1) + j
                places[2 * quarter, 0] = x
                places[2 * quarter, 1] = y
                places[2 * quarter, 2] = z
                places[2 * quarter + 1, 0] = nx
                places[2 * quarter + 1, 1] = ny
                places[2 * quarter + 1, 2] = nz
    for quarter in range(4):
        if least[quarter] < math.inf:
            gap, row = least[quarter], 2 * quarter
            nx, ny, nz = places[row + 1, 0], places[row + 1, 1], places[row + 1, 2]
            count = put_in_frame(
                contacts, count, A, FIRST + tags[quarter, 0],
                places[row, 0] - nx * gap / 2, places[row, 1] - ny * gap / 2,
                places[row, 2] - nz * gap / 2, -nx, -ny, -nz, gap,
            )  # fmt: skip
    return count
