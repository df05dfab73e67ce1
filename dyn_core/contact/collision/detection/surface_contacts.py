"""Contacts of shapes with a height field: the surface over a grid of heights.

Each cell of the grid is two triangles. A shape touches with its candidate points (those
of halfspaces.py, of a cylinder the eight that are fixed): each is the centre of a ball
whose distance from the surface is exact. A capsule also touches with the point of its
axis that is closest to an edge of the surface, and a shape with faces with tops of the
surface (tops.py).

Written in the subset of Python that is compiled (dyn_core.engines.machine_code).
"""

from __future__ import annotations

import math

from dyn_core.contact.collision.detection.planes import local_point, points_of
from dyn_core.contact.collision.detection.rounded import TOGETHER, between_segments
from dyn_core.contact.collision.detection.simplex import in_triangle
from dyn_core.contact.collision.detection.tables import (
    BOX,
    CAPSULE,
    CYLINDER,
    Contacts,
    Shapes,
    Work,
    put_in_frame,
    relate,
)
from dyn_core.contact.collision.detection.tops import cells_within, height, with_tops
from dyn_core.engines.machine_code import Reals, machine_code

TRIANGLES = 16777216  # features of a point: 0, or 1 + the triangle that it is over
WINDOW = 8  # cells around a point below the surface in which the closest is looked for
INSIDE = 1e-9  # weight above which a closest point is inside its triangle


@machine_code
def surface_below(shapes: Shapes, k: int, x: float, y: float) -> float:
    """Return the height of the surface at x, y in the field's frame; -inf beside it."""
    u, v = x / shapes.cells[k, 0], y / shapes.cells[k, 1]
    columns, rows = shapes.first[k, 1] - 1, shapes.first[k, 2] - 1
    if not (0.0 <= u <= float(columns) and 0.0 <= v <= float(rows)):
        return -math.inf
    i, j = min(int(u), columns - 1), min(int(v), rows - 1)
    s, t = u - float(i), v - float(j)
    low, high = height(shapes, k, i, j), height(shapes, k, i + 1, j + 1)
    if s >= t:
        side = height(shapes, k, i + 1, j)
        return low + s * (side - low) + t * (high - side)
    side = height(shapes, k, i, j + 1)
    return low + t * (side - low) + s * (high - side)


@machine_code
def in_surface(
    shapes: Shapes, k: int, triangle: int, x: float, y: float, z: float
) -> tuple[float, float, float, bool]:
    """Return the point of a triangle that is closest to a point, and if it is inside.

    Triangles are numbered 2 (i rows + j), and 1 more for the one above the diagonal.
    """
    rows = shapes.first[k, 2] - 1
    i, j = triangle // 2 // rows, triangle // 2 % rows
    a, b = shapes.cells[k, 0], shapes.cells[k, 1]
    i_2, j_2, i_3, j_3 = i + 1, j, i + 1, j + 1
    if triangle % 2 == 1:
        i_2, j_2, i_3, j_3 = i + 1, j + 1, i, j + 1
    x_1, y_1, z_1 = float(i) * a, float(j) * b, height(shapes, k, i, j)
    x_2, y_2, z_2 = float(i_2) * a, float(j_2) * b, height(shapes, k, i_2, j_2)
    x_3, y_3, z_3 = float(i_3) * a, float(j_3) * b, height(shapes, k, i_3, j_3)
    s, t, u = in_triangle(
        x_1 - x, y_1 - y, z_1 - z, x_2 - x, y_2 - y, z_2 - z, x_3 - x, y_3 - y, z_3 - z
    )
    inside = s > INSIDE and t > INSIDE and u > INSIDE
    return (
        s * x_1 + t * x_2 + u * x_3,
        s * y_1 + t * y_2 + u * y_3,
        s * z_1 + t * z_2 + u * z_3,
        inside,
    )


@machine_code
def put_ball(
    contacts: Contacts,
    count: int,
    F: Reals,
    feature: int,
    x: float,
    y: float,
    z: float,
    radius: float,
    p: float,
    q: float,
    r: float,
    below: bool,
    margin: float,
) -> int:
    """Add the contact of a ball at (x, y, z) with the point (p, q, r) of a surface.

    The normal is upright if both are one point.
    """
    nx, ny, nz = x - p, y - q, z - r
    d = math.sqrt(nx * nx + ny * ny + nz * nz)
    if below:
        d = -d
    if abs(d) > TOGETHER:
        nx, ny, nz = nx / d, ny / d, nz / d
    else:
        nx, ny, nz = 0.0, 0.0, 1.0
    gap = d - radius
    if not gap <= margin:
        return count
    return put_in_frame(
        contacts, count, F, feature,
        (x - radius * nx + p) / 2, (y - radius * ny + q) / 2, (z - radius * nz + r) / 2,
        nx, ny, nz, gap,
    )  # fmt: skip


@machine_code
def ball_on_surface(
    contacts: Contacts,
    count: int,
    shapes: Shapes,
    k: int,
    F: Reals,
    first_feature: int,
    x: float,
    y: float,
    z: float,
    radius: float,
    margin: float,
) -> tuple[int, float]:
    """Add the contacts of a ball with the surface.

    A ball whose centre is above the surface touches every triangle that has its closest
    point inside, and the closest edge or corner if that is closer than all triangles.
    One whose centre is below touches the closest point.

    Args:
        contacts, count: Contacts, and how many there are.
        shapes, k: Table, and number of the height field.
        F: Frame of the field.
        first_feature: Feature of the ball; that of a triangle is added.
        x, y, z: Centre in the field's frame [m].
        radius, margin: Of the ball, and largest gap [m].

    Returns:
        The new number, and the signed distance of the centre; inf beyond the reach.
    """
    ground = surface_below(shapes, k, x, y)
    below = z < ground
    reach = radius + margin
    best, p, q, r, best_inside = math.inf, x, y, ground, True
    w_x, w_y = reach, reach
    if below:
        best = (ground - z) * (ground - z)
        w_x = min(ground - z, float(WINDOW) * shapes.cells[k, 0])
        w_y = min(ground - z, float(WINDOW) * shapes.cells[k, 1])
        best_inside = False
    rows = shapes.first[k, 2] - 1
    i_1, i_2 = cells_within(x, w_x, shapes.cells[k, 0], shapes.first[k, 1] - 1)
    j_1, j_2 = cells_within(y, w_y, shapes.cells[k, 1], rows)
    for i in range(i_1, i_2 + 1):
        for j in range(j_1, j_2 + 1):
            for upper in range(2):
                triangle = 2 * (i * rows + j) + upper
                a, b, c, inside = in_surface(shapes, k, triangle, x, y, z)
                square = (x - a) * (x - a) + (y - b) * (y - b) + (z - c) * (z - c)
                if inside and not below and square <= reach * reach:
                    feature = first_feature + 1 + triangle
                    count = put_ball(
                        contacts, count, F, feature, x, y, z, radius, a, b, c, False,
                        margin,
                    )  # fmt: skip
                if square < best:
                    best, p, q, r, best_inside = square, a, b, c, inside
    if best == math.inf or (not below and best > reach * reach):
        return count, math.inf
    if below or not best_inside:
        count = put_ball(
            contacts, count, F, first_feature, x, y, z, radius, p, q, r, below, margin
        )
    return count, -math.sqrt(best) if below else math.sqrt(best)


@machine_code
def axis_on_edges(
    contacts: Contacts,
    count: int,
    shapes: Shapes,
    k: int,
    F: Reals,
    ax: float,
    ay: float,
    az: float,
    bx: float,
    by: float,
    bz: float,
    radius: float,
    margin: float,
    least: float,
) -> int:
    """Add the contact of a capsule between its ends with the closest edge.

    Only if the edge is closer than `least`, the distance of the ends.
    """
    columns, rows = shapes.first[k, 1] - 1, shapes.first[k, 2] - 1
    c_x, c_y = shapes.cells[k, 0], shapes.cells[k, 1]
    reach = radius + margin
    wide, deep = abs(bx - ax) / 2 + reach, abs(by - ay) / 2 + reach
    i_1, i_2 = cells_within((ax + bx) / 2, wide, c_x, columns)
    j_1, j_2 = cells_within((ay + by) / 2, deep, c_y, rows)
    best = min(reach, least - INSIDE * (abs(bx - ax) + abs(by - ay) + abs(bz - az)))
    ex, ey, ez, ep, eq, er = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    edge = -1
    for i in range(i_1, i_2 + 2):
        for j in range(j_1, j_2 + 2):
            for way in range(3):
                i_to = i + 1 if way != 1 else i
                j_to = j + 1 if way != 0 else j
                if i_2 < i_1 or j_2 < j_1 or i_to > columns or j_to > rows:
                    continue
                x, y, z, p, q, r = between_segments(
                    ax, ay, az, bx, by, bz,
                    float(i) * c_x, float(j) * c_y, height(shapes, k, i, j),
                    float(i_to) * c_x, float(j_to) * c_y,
                    height(shapes, k, i_to, j_to),
                )  # fmt: skip
                d = math.sqrt((x - p) * (x - p) + (y - q) * (y - q) + (z - r) * (z - r))
                if d < best and z >= surface_below(shapes, k, x, y):
                    best, edge = d, 3 * (i * (rows + 1) + j) + way
                    ex, ey, ez, ep, eq, er = x, y, z, p, q, r
    if edge < 0:
        return count
    return put_ball(
        contacts, count, F, 2 * TRIANGLES + edge, ex, ey, ez, radius, ep, eq, er, False,
        margin,
    )  # fmt: skip


@machine_code
def with_heights(
    contacts: Contacts,
    count: int,
    shapes: Shapes,
    a: int,
    A: Reals,
    k: int,
    F: Reals,
    work: Work,
    margin: float,
) -> int:
    """Add the contacts of a shape with a height field; return the new number.

    Args:
        contacts, count: Contacts, and how many there are.
        shapes: Table.
        a, A: Number of the shape, and its frame.
        k, F: Number of the field, and its frame.
        work: Room.
        margin: Largest gap that counts [m].
    """
    C = work.relative[0]
    relate(A, F, C)
    radius, least = shapes.size[a, 3], math.inf
    number = points_of(shapes, a)
    if shapes.kind[a] == CYLINDER:
        number = 8
    for m in range(number):
        x, y, z = local_point(shapes, a, m, 0.0, 0.0)
        count, d = ball_on_surface(
            contacts, count, shapes, k, F, m * TRIANGLES,
            C[0] * x + C[1] * y + C[2] * z + C[9],
            C[3] * x + C[4] * y + C[5] * z + C[10],
            C[6] * x + C[7] * y + C[8] * z + C[11],
            radius, margin,
        )  # fmt: skip
        least = min(least, d)
    if shapes.kind[a] == CAPSULE:
        half = shapes.size[a, 2]
        ux, uy, uz = half * C[2], half * C[5], half * C[8]
        count = axis_on_edges(
            contacts, count, shapes, k, F, C[9] - ux, C[10] - uy, C[11] - uz,
            C[9] + ux, C[10] + uy, C[11] + uz, radius, margin, least,
        )  # fmt: skip
    if shapes.kind[a] >= BOX:
        count = with_tops(contacts, count, shapes, a, A, k, C, work, margin)
    return count
