"""Contacts of shapes with a height field: the surface over a grid of heights.

Each cell of the grid is two triangles. A shape touches with its candidate points, the
same as on a half-space (planes.py): each is the centre of a ball whose distance from
the surface is exact. The deepest point of a rim depends on the normal: there is
one for each triangle, and one for the closest edge or corner. A capsule and the side of
a cylinder also touch with the point of their axis that is closest to an edge of the
surface, and a shape with faces touches tops of the surface (tops.py). Normals point
from the field to the shape. Contacts beyond the capacity are counted, not written.

Written in the subset of Python that is compiled (dyn_core.engines.machine_code).

A frame is (12,): a rotation R, row by row, and a position p [m], x_outer = R x + p.
"""

from __future__ import annotations

import math

from dyn_core.contact.collision.detection.detection_arrays import (
    BOX,
    CAPSULE,
    CYLINDER,
    Contacts,
    Shapes,
    Work,
    put_in_frame,
    relate,
)
from dyn_core.contact.collision.detection.planes import (
    fixed_points,
    is_retained,
    local_point,
    points_of,
)
from dyn_core.contact.collision.detection.rounded import TOGETHER, between_segments
from dyn_core.contact.collision.detection.simplex import in_triangle
from dyn_core.contact.collision.detection.tops import cells_within, height, with_tops
from dyn_core.engines.machine_code import FloatArray, machine_code

TRIANGLES = 16777216  # features per point: 0 (edge or corner), or 1 + triangle
WINDOW = 8  # maximum half width, in cells, of the search for a point below the surface
INSIDE = 1e-9  # weight above which a closest point is inside its triangle

# Contacts of a ball that are added; a number from 0 on: with this triangle only.
ALL = -1
BORDERS = -2  # with edges and corners, and with the closest point from below
NONE = -3
TURNS = 4  # maximum number of projections of the closest point on a rim


@machine_code
def surface_below(shapes: Shapes, k: int, x: float, y: float) -> float:
    """Return the height of field k at x, y, -inf beside the grid, in its frame [m].

    The grid, with its rim, begins at x = y = 0; k is the index among all shapes.
    """
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
    """Return the point of a triangle closest to a point, and whether it is interior.

    Points are in the field's frame [m]; triangles have the numbers of normal_of.
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
def normal_of(shapes: Shapes, k: int, triangle: int) -> tuple[float, float, float]:
    """Return the upward unit normal of a triangle of field k, in the field's frame.

    Its number is 2 (i rows + j) below the diagonal of cell (i, j), i along x, with
    `rows` cells along y; one more above it.
    """
    rows = shapes.first[k, 2] - 1
    i, j = triangle // 2 // rows, triangle // 2 % rows
    low, high = height(shapes, k, i, j), height(shapes, k, i + 1, j + 1)
    if triangle % 2 == 0:
        side = height(shapes, k, i + 1, j)
        u, v = side - low, high - side
    else:
        side = height(shapes, k, i, j + 1)
        u, v = high - side, side - low
    u, v = u / shapes.cells[k, 0], v / shapes.cells[k, 1]
    size = math.sqrt(u * u + v * v + 1.0)
    return -u / size, -v / size, 1.0 / size


@machine_code
def put_ball(
    contacts: Contacts,
    count: int,
    F: FloatArray,
    feature: int,
    x: float,
    y: float,
    z: float,
    radius: float,
    p: float,
    q: float,
    r: float,
    nx: float,
    ny: float,
    nz: float,
    side: float,
    margin: float,
) -> int:
    """Add the contact of a ball at (x, y, z) with the point (p, q, r) of a surface.

    Points [m] and normals are in the field's frame F. `side` is 1 or -1 for a centre
    above or below the surface, the sign of the distance of the points; the normal is
    their difference over it, or (nx, ny, nz) if they coincide. With 0 the normal is
    (nx, ny, nz), and the distance is along it. Returns the new number.
    """
    dx, dy, dz = x - p, y - q, z - r
    d = side * math.sqrt(dx * dx + dy * dy + dz * dz)
    if side == 0.0:
        d = dx * nx + dy * ny + dz * nz
    elif abs(d) > TOGETHER:
        nx, ny, nz = dx / d, dy / d, dz / d
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
    F: FloatArray,
    first_feature: int,
    x: float,
    y: float,
    z: float,
    radius: float,
    margin: float,
    which: int,
) -> tuple[int, float, float, float, float]:
    """Add the contacts of a ball with the surface.

    A ball whose centre is above the surface touches every triangle that has its closest
    point inside, and the closest edge or corner if that is closer than all triangles. A
    ball whose centre is below touches the closest point only, searched in at most 8
    cells to each side. The centre is in the field's frame [m]. The feature of an edge
    or corner is first_feature; for a triangle one plus its number is added. `which` is
    ALL (-1); BORDERS (-2): with edges and corners, and the closest point of a ball
    below; NONE (-3): only the distance; or the number of the only triangle.

    Returns the new number of contacts, the signed distance, negative below, and the
    closest point in the field's frame. The distance is inf, and the point means
    nothing, if the centre is above the surface or beside the grid, and farther than
    radius + margin.
    """
    ground = surface_below(shapes, k, x, y)
    below = z < ground
    reach = radius + margin
    best, p, q, r, closest, best_inside = math.inf, x, y, ground, -1, True
    w_x, w_y = reach, reach
    if below:
        w_x = min(ground - z, float(WINDOW) * shapes.cells[k, 0])
        w_y = min(ground - z, float(WINDOW) * shapes.cells[k, 1])
    rows = shapes.first[k, 2] - 1
    i_1, i_2 = cells_within(x, w_x, shapes.cells[k, 0], shapes.first[k, 1] - 1)
    j_1, j_2 = cells_within(y, w_y, shapes.cells[k, 1], rows)
    for i in range(i_1, i_2 + 1):
        for j in range(j_1, j_2 + 1):
            for upper in range(2):
                triangle = 2 * (i * rows + j) + upper
                a, b, c, inside = in_surface(shapes, k, triangle, x, y, z)
                square = (x - a) * (x - a) + (y - b) * (y - b) + (z - c) * (z - c)
                wanted = which == ALL or which == triangle
                if wanted and inside and not below and square <= reach * reach:
                    feature = first_feature + 1 + triangle
                    nx, ny, nz = normal_of(shapes, k, triangle)
                    if (x - a) * nx + (y - b) * ny + (z - c) * nz < -TOGETHER:
                        nx, ny, nz = -nx, -ny, -nz  # beside the grid, from below
                    count = put_ball(
                        contacts, count, F, feature, x, y, z, radius, a, b, c,
                        nx, ny, nz, 0.0, margin,
                    )  # fmt: skip
                if square < best:
                    best, p, q, r, best_inside = square, a, b, c, inside
                    closest = triangle
    if best == math.inf or (not below and best > reach * reach):
        return count, math.inf, p, q, r
    wanted = (which == ALL or which == BORDERS) and (below or not best_inside)
    if wanted or (below and best_inside and which == closest):
        feature, side = first_feature, -1.0 if below else 1.0
        if best_inside:
            feature, side = first_feature + 1 + closest, 0.0
        nx, ny, nz = normal_of(shapes, k, closest)
        count = put_ball(
            contacts, count, F, feature, x, y, z, radius, p, q, r, nx, ny, nz, side,
            margin,
        )  # fmt: skip
    return count, -math.sqrt(best) if below else math.sqrt(best), p, q, r


@machine_code
def deepest_point(
    shapes: Shapes, a: int, m: int, C: FloatArray, nx: float, ny: float, nz: float
) -> tuple[float, float, float]:
    """Return candidate point m of shape a, in the field's frame [m], as the normal.

    The last two points of a cylinder are those of its rims farthest against the normal,
    of the rim at -z first; see local_point. C is the frame of the shape in the field.
    """
    x, y, z = local_point(
        shapes, a, m,
        C[0] * nx + C[3] * ny + C[6] * nz,
        C[1] * nx + C[4] * ny + C[7] * nz,
    )  # fmt: skip
    return (
        C[0] * x + C[1] * y + C[2] * z + C[9],
        C[3] * x + C[4] * y + C[5] * z + C[10],
        C[6] * x + C[7] * y + C[8] * z + C[11],
    )


@machine_code
def rim_on_surface(
    contacts: Contacts,
    count: int,
    shapes: Shapes,
    a: int,
    C: FloatArray,
    m: int,
    k: int,
    F: FloatArray,
    margin: float,
) -> tuple[int, float]:
    """Add the contacts of a cylinder's rim with the surface, one per near triangle.

    For each triangle, the point of the rim that is deepest against its normal is
    tested. If an edge or corner is closer than all touched triangles, the rim's closest
    point touches it. m is even for the rim at -z, odd at +z; features begin at m
    TRIANGLES (2^24). Returns the new number of contacts, and the smallest signed
    distance of the tested points [m]; inf if it is above `margin`.
    """
    feature, rows = m * TRIANGLES, shapes.first[k, 2] - 1
    radius, end = shapes.size[a, 0], shapes.size[a, 2]
    end = -end if m % 2 == 0 else end
    w_x = radius * math.sqrt(max(1.0 - C[2] * C[2], 0.0)) + margin
    w_y = radius * math.sqrt(max(1.0 - C[5] * C[5], 0.0)) + margin
    columns = shapes.first[k, 1] - 1
    i_1, i_2 = cells_within(C[2] * end + C[9], w_x, shapes.cells[k, 0], columns)
    j_1, j_2 = cells_within(C[5] * end + C[10], w_y, shapes.cells[k, 1], rows)
    x_0, y_0, z_0 = C[9], C[10], C[11]
    nearest, touched = math.inf, math.inf
    for i in range(i_1, i_2 + 1):
        for j in range(j_1, j_2 + 1):
            for upper in range(2):
                triangle = 2 * (i * rows + j) + upper
                nx, ny, nz = normal_of(shapes, k, triangle)
                x, y, z = deepest_point(shapes, a, m, C, nx, ny, nz)
                p, q, r, inside = in_surface(shapes, k, triangle, x, y, z)
                square = (x - p) * (x - p) + (y - q) * (y - q) + (z - r) * (z - r)
                if square < nearest:
                    nearest, x_0, y_0, z_0 = square, x, y, z
                if not inside:
                    continue
                before = count
                count, d, p, q, r = ball_on_surface(
                    contacts, count, shapes, k, F, feature, x, y, z, 0.0, margin,
                    triangle,
                )  # fmt: skip
                if count > before:
                    touched = min(touched, d)
    count, least, p, q, r = ball_on_surface(
        contacts, count, shapes, k, F, feature, x_0, y_0, z_0, 0.0, margin, NONE
    )
    x, y, z = deepest_point(shapes, a, m, C, 0.0, 0.0, 1.0)
    count, d, u, v, w = ball_on_surface(
        contacts, count, shapes, k, F, feature, x, y, z, 0.0, margin, NONE
    )
    if d < least:
        least, x_0, y_0, z_0, p, q, r = d, x, y, z, u, v, w
    if least < math.inf:
        count, least = rim_on_border(
            contacts, count, shapes, a, C, m, k, F,
            x_0, y_0, z_0, p, q, r, least, touched, margin,
        )  # fmt: skip
    return count, least


@machine_code
def rim_on_border(
    contacts: Contacts,
    count: int,
    shapes: Shapes,
    a: int,
    C: FloatArray,
    m: int,
    k: int,
    F: FloatArray,
    x: float,
    y: float,
    z: float,
    p: float,
    q: float,
    r: float,
    least: float,
    touched: float,
    margin: float,
) -> tuple[int, float]:
    """Add the contact of a rim with an edge or corner closer than all its triangles.

    The closest point of the surface is projected on the rim, and back, at most four
    times, as long as the distance decreases. Initially x, y, z is on the rim and p, q,
    r on the surface, in the field's frame, `least` apart (signed) [m]; `touched` is the
    smallest signed distance of contacts with triangles, or inf. Returns the new number
    of contacts, and the smallest signed distance of the rim's points [m].
    """
    for _ in range(TURNS):
        nx, ny, nz = C[9] - p, C[10] - q, C[11] - r
        u, v, w = deepest_point(shapes, a, m, C, nx, ny, nz)
        count, d, p, q, r = ball_on_surface(
            contacts, count, shapes, k, F, 0, u, v, w, 0.0, margin, NONE
        )
        if not d < least:
            break
        least, x, y, z = d, u, v, w
    if least < touched - INSIDE * shapes.size[a, 0]:
        count, d, p, q, r = ball_on_surface(
            contacts, count, shapes, k, F, m * TRIANGLES, x, y, z, 0.0, margin, BORDERS
        )
    return count, least


@machine_code
def axis_on_edges(
    contacts: Contacts,
    count: int,
    shapes: Shapes,
    k: int,
    F: FloatArray,
    feature: int,
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
    """Add the contact of the side of a capsule or cylinder with the closest edge.

    It is added only if the axis point closest to the edge is not an end, lies above the
    surface, and is closer to the edge than `least`, the smallest signed distance of the
    ends, or of the rims plus the radius [m], and than any face. The number of the edge
    is added to `feature`: 3 times that of its corner of smallest x and y, plus 0, 1 or
    2 for an edge along x, y or the diagonal. The axis is in the field's frame [m].
    Returns the new number of contacts.
    """
    columns, rows = shapes.first[k, 1] - 1, shapes.first[k, 2] - 1
    c_x, c_y = shapes.cells[k, 0], shapes.cells[k, 1]
    reach = radius + margin
    wide, deep = abs(bx - ax) / 2 + reach, abs(by - ay) / 2 + reach
    i_1, i_2 = cells_within((ax + bx) / 2, wide, c_x, columns)
    j_1, j_2 = cells_within((ay + by) / 2, deep, c_y, rows)
    length = abs(bx - ax) + abs(by - ay) + abs(bz - az)
    best = min(reach, least - INSIDE * length)
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
                along = (p - x) * (bx - ax) + (q - y) * (by - ay) + (r - z) * (bz - az)
                if abs(along) > INSIDE * length * (d + length):
                    continue  # closest to an end of the axis
                if not (d < best and z >= surface_below(shapes, k, x, y)):
                    continue
                count, closest, _, _, _ = ball_on_surface(
                    contacts, count, shapes, k, F, 0, x, y, z, 0.0, 2 * d, NONE
                )
                if closest > d - INSIDE * length:  # no face is closer than the edge
                    best, edge = d, 3 * (i * (rows + 1) + j) + way
                    ex, ey, ez, ep, eq, er = x, y, z, p, q, r
    if edge < 0:
        return count
    return put_ball(
        contacts, count, F, feature + edge, ex, ey, ez, radius, ep, eq, er,
        0.0, 0.0, 1.0, 1.0, margin,
    )  # fmt: skip


@machine_code
def with_heights(
    contacts: Contacts,
    count: int,
    shapes: Shapes,
    a: int,
    A: FloatArray,
    k: int,
    F: FloatArray,
    work: Work,
    margin: float,
    few: bool,
) -> int:
    """Add the contacts of a shape with a height field; return the new number.

    They are those of its candidate points, rims and axis with the surface, and those of
    the faces of boxes, cylinders and hulls with tops (with_tops). A and F are frames in
    the world. With `few` only the points that retain_few chose are candidates; they are
    in `work`, which is overwritten.
    """
    C = work.relative[0]
    relate(A, F, C)
    kind, radius, least = shapes.kind[a], shapes.size[a, 3], math.inf
    number, fixed = points_of(shapes, a), fixed_points(shapes, a)
    for m in range(fixed):
        if few and not is_retained(work, m):
            continue
        x, y, z = deepest_point(shapes, a, m, C, 0.0, 0.0, 1.0)
        count, d, _, _, _ = ball_on_surface(
            contacts, count, shapes, k, F, m * TRIANGLES, x, y, z, radius, margin, ALL
        )
        least = min(least, d)
    for m in range(fixed, number):
        count, d = rim_on_surface(contacts, count, shapes, a, C, m, k, F, margin)
        least = min(least, d)
    if kind == CAPSULE or kind == CYLINDER:
        half = shapes.size[a, 2]
        ux, uy, uz = half * C[2], half * C[5], half * C[8]
        if kind == CYLINDER:
            radius = shapes.size[a, 0]
            least += radius
        count = axis_on_edges(
            contacts, count, shapes, k, F, number * TRIANGLES,
            C[9] - ux, C[10] - uy, C[11] - uz, C[9] + ux, C[10] + uy, C[11] + uz,
            radius, margin, least,
        )  # fmt: skip
    if kind >= BOX:
        count = with_tops(contacts, count, shapes, a, A, k, C, work, margin)
    return count
