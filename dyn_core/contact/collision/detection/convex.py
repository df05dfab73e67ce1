"""Contacts of two convex shapes, one of them a cylinder or a hull.

The closest or deepest points give the normal and the gap. If the normal is the normal
of a face, the other shape's face or line is clipped to it; two nearly parallel lines
touch at two points. Otherwise the closest points are the only contact. Contacts beyond
the capacity are counted, not written. Written in the subset of Python that is compiled
(dyn_core.engines.machine_code).

A frame is (12,): a rotation R, row by row, and a position p [m], x_outer = R x + p.
Rows of work.polygon and work.tags from OTHER (0) on are a polygon of one shape, those
from FACE (88) on a face of the other one (polygons.py).
"""

from __future__ import annotations

import math

from dyn_core.contact.collision.detection.detection_arrays import (
    Contacts,
    Shapes,
    Work,
    put_in_frame,
    relate,
)
from dyn_core.contact.collision.detection.distance import closest_points, core_size
from dyn_core.contact.collision.detection.polygons import (
    CUT,
    FACE,
    OTHER,
    clip_to_face,
    face_towards,
    write_face,
    write_feature,
)
from dyn_core.contact.collision.detection.rounded import PARALLEL
from dyn_core.engines.machine_code import FloatArray, machine_code

CLOSEST = 0  # features: closest points, ends of parallel lines, and from here on:
LINE = 1
VERTEX = 4  # 4 + 4 vertex: of a; 5 + 4 vertex: of b; 6 + 4 (...): a side cut by a side
SAME = 1e-6  # relative to the size: a point this far beyond a rim is over the face
ALIGNED = 1e-10  # squared sine of the angle up to which a normal is a face's normal
EXACT = 1e-9  # relative to the size: up to this, a face's smallest gap is the gap


@machine_code
def convex_convex(
    contacts: Contacts,
    count: int,
    shapes: Shapes,
    a: int,
    A: FloatArray,
    b: int,
    B: FloatArray,
    work: Work,
    margin: float,
) -> int:
    """Add the contacts of two convex shapes; return the new number.

        gap = n . (x_a - x_b) - r_a - r_b,   n from b to a

    x_a and x_b are on the cores, r_a and r_b the radii about them; A and B are in the
    world. Contacts are the points of a face or line of one over a face of the other, or
    the ends of two parallel lines; and the closest points if these are closer.
    """
    C, r_a, r_b = work.relative[0], shapes.size[a, 3], shapes.size[b, 3]
    relate(A, B, C)
    d, nx, ny, nz, x, y, z = closest_points(shapes, a, b, work, margin + r_a + r_b)
    gap = d - r_a - r_b
    if not gap <= margin:
        return count
    size = core_size(shapes, a) + core_size(shapes, b)
    face_b, bx, by, bz = face_towards(shapes, b, nx, ny, nz)
    ux = -(C[0] * nx + C[3] * ny + C[6] * nz)
    uy = -(C[1] * nx + C[4] * ny + C[7] * nz)
    uz = -(C[2] * nx + C[5] * ny + C[8] * nz)
    face_a, ax, ay, az = face_towards(shapes, a, ux, uy, uz)
    least = math.inf
    if face_b >= 0 and aligned(bx, by, bz, nx, ny, nz):
        relate(B, B, work.relative[1])
        corners = write_feature(shapes, a, work, C, OTHER, ux, uy, uz)
        sides = write_face(shapes, b, work, work.relative[1], FACE, face_b)
        count, least = over_face(
            contacts, count, work, B, corners, sides, bx, by, bz, True, r_a, r_b,
            SAME * size, margin,
        )  # fmt: skip
    elif face_a >= 0 and aligned(ax, ay, az, ux, uy, uz):
        relate(B, B, work.relative[1])
        corners = write_feature(shapes, b, work, work.relative[1], OTHER, nx, ny, nz)
        sides = write_face(shapes, a, work, C, FACE, face_a)
        count, least = over_face(
            contacts, count, work, B, corners, sides,
            C[0] * ax + C[1] * ay + C[2] * az,
            C[3] * ax + C[4] * ay + C[5] * az,
            C[6] * ax + C[7] * ay + C[8] * az,
            False, r_b, r_a, SAME * size, margin,
        )  # fmt: skip
    elif abs(uz) < 0.5 and abs(nz) < 0.5:  # lines are along z
        relate(B, B, work.relative[1])
        on_a = write_feature(shapes, a, work, C, OTHER, ux, uy, uz)
        on_b = write_feature(shapes, b, work, work.relative[1], FACE, nx, ny, nz)
        if on_a == 2 and on_b == 2:
            count, least = along_lines(
                contacts, count, work, B, nx, ny, nz, r_a, r_b, margin
            )
    if least > gap + EXACT * size:
        h = (d + r_a - r_b) / 2  # from the point of a to the middle
        count = put_in_frame(
            contacts, count, B, CLOSEST, x - nx * h, y - ny * h, z - nz * h,
            nx, ny, nz, gap,
        )  # fmt: skip
    return count


@machine_code
def aligned(ax: float, ay: float, az: float, bx: float, by: float, bz: float) -> bool:
    """Return whether two unit vectors have the same direction; False for opposite ones.

    The squared sine of their angle is below 1e-10.
    """
    x, y, z = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
    ahead = ax * bx + ay * by + az * bz
    return ahead > 0.0 and x * x + y * y + z * z < ALIGNED


@machine_code
def over_face(
    contacts: Contacts,
    count: int,
    work: Work,
    B: FloatArray,
    corners: int,
    sides: int,
    nx: float,
    ny: float,
    nz: float,
    of_b: bool,
    r_other: float,
    r_face: float,
    tol: float,
    margin: float,
) -> tuple[int, float]:
    """Add the points of a polygon over a face as contacts, see clipped_feature.

    The polygon at OTHER is clipped to the face at FACE, up to `tol` beyond the rim [m];
    of points with the same first tag the first one counts. Both, and the face's outward
    normal, are in the frame of b; contact normals point from b to a. `of_b`: the face
    belongs to b. r_other and r_face are radii about polygon and face [m]. Returns the
    new number of contacts, and the smallest gap of all points, added or not [m]; inf if
    none is over the face.
    """
    polygon, tags = work.polygon, work.tags
    size = clip_to_face(work, corners, sides, nx, ny, nz, tol)
    least = math.inf
    top = nx * polygon[FACE, 0] + ny * polygon[FACE, 1] + nz * polygon[FACE, 2]
    sign = 1.0 if of_b else -1.0
    for m in range(size):
        row = OTHER + m
        known = False
        for e in range(m):
            known = known or tags[OTHER + e, 0] == tags[row, 0]
        if known:
            continue
        x, y, z = polygon[row, 0], polygon[row, 1], polygon[row, 2]
        height = nx * x + ny * y + nz * z - top
        gap = height - r_other - r_face
        least = min(least, gap)
        if not gap <= margin:
            continue
        back = (height + r_other - r_face) / 2
        count = put_in_frame(
            contacts, count, B, clipped_feature(tags[row, 0], of_b),
            x - nx * back, y - ny * back, z - nz * back,
            sign * nx, sign * ny, sign * nz, gap,
        )  # fmt: skip
    return count, least


@machine_code
def clipped_feature(tag: int, of_b: bool) -> int:
    """Return the feature of a corner of a clipped polygon, by its first tag.

    It is 4 + 4 v for vertex v of a, 5 + 4 v for vertex v of b, and 6 + 4 (CUT i + j)
    where a side of a, with first vertex i, crosses a side of b, with first vertex j. A
    tag below CUT is the vertex of the clipped polygon; others are of cut_tag. With a
    side of CUT or more the corner is the face's vertex. `of_b`: the face belongs to b.
    """
    if tag < CUT:
        return VERTEX + 4 * tag + (0 if of_b else 1)
    side, vertex = tag // CUT - 1, tag % CUT
    if side >= CUT:  # two sides of the face meet
        return VERTEX + 4 * vertex + (1 if of_b else 0)
    first = side if of_b else vertex
    second = vertex if of_b else side
    return VERTEX + 2 + 4 * (first * CUT + second)


@machine_code
def along_lines(
    contacts: Contacts,
    count: int,
    work: Work,
    B: FloatArray,
    nx: float,
    ny: float,
    nz: float,
    r_a: float,
    r_b: float,
    margin: float,
) -> tuple[int, float]:
    """Add contacts at both ends of the common length of two nearly parallel lines.

    Their features are 1 and 2 (LINE, LINE + 1), in the direction of the line of a, at
    OTHER; that of b is at FACE. Both, and the unit normal from b to a, are in the frame
    of b. Returns the new number of contacts, and the smaller of both gaps, added or not
    [m]; inf if the lines are not parallel (sine above 0.05) or not side by side.
    """
    polygon, second, last = work.polygon, OTHER + 1, FACE + 1
    ux = polygon[second, 0] - polygon[OTHER, 0]
    uy = polygon[second, 1] - polygon[OTHER, 1]
    uz = polygon[second, 2] - polygon[OTHER, 2]
    vx = polygon[last, 0] - polygon[FACE, 0]
    vy = polygon[last, 1] - polygon[FACE, 1]
    vz = polygon[last, 2] - polygon[FACE, 2]
    uu, vv = ux * ux + uy * uy + uz * uz, vx * vx + vy * vy + vz * vz
    wx, wy, wz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
    if wx * wx + wy * wy + wz * wz > PARALLEL * PARALLEL * uu * vv:
        return count, math.inf
    dx = polygon[FACE, 0] - polygon[OTHER, 0]
    dy = polygon[FACE, 1] - polygon[OTHER, 1]
    dz = polygon[FACE, 2] - polygon[OTHER, 2]
    start = (dx * ux + dy * uy + dz * uz) / uu
    step = (vx * ux + vy * uy + vz * uz) / uu
    low = max(0.0, min(start, start + step))
    high = min(1.0, max(start, start + step))
    if high - low < EXACT or step == 0.0:
        return count, math.inf
    least = math.inf
    for end in range(2):
        s = low if end == 0 else high
        t = (s - start) / step
        x = polygon[OTHER, 0] + s * ux
        y = polygon[OTHER, 1] + s * uy
        z = polygon[OTHER, 2] + s * uz
        height = nx * (x - polygon[FACE, 0] - t * vx)
        height += ny * (y - polygon[FACE, 1] - t * vy)
        height += nz * (z - polygon[FACE, 2] - t * vz)
        gap = height - r_a - r_b
        least = min(least, gap)
        if gap <= margin:
            h = (height + r_a - r_b) / 2
            count = put_in_frame(
                contacts, count, B, LINE + end, x - nx * h, y - ny * h, z - nz * h,
                nx, ny, nz, gap,
            )  # fmt: skip
    return count, least
