"""Choice of a few points of a hull that lies deep in the ground.

A hull has a contact at each vertex that touches the ground. A mesh of a robot has
hundreds of them: a humanoid that starts below a floor had 35000 rows.

Written in the subset of Python that is compiled (dyn_core.engines.machine_code).

A frame is (12,): a rotation R, row by row, and a position p [m], x_outer = R x + p.
"""

from __future__ import annotations

import math

from dyn_core.contact.collision.detection.detection_arrays import (
    HEIGHTS,
    HULL,
    Shapes,
    Work,
    relate,
    vertex,
)
from dyn_core.contact.collision.detection.height_field_contacts import surface_below
from dyn_core.contact.collision.detection.planes import RETAINED
from dyn_core.contact.collision.detection.rounded import normal_to
from dyn_core.engines.machine_code import FloatArray, machine_code

SUNK = 0.01  # overlap above which a hull has few contacts [m]
MANY = 16  # number of touching points up to which a hull has a contact at each


@machine_code
def height_above(
    shapes: Shapes, ground: int, C: FloatArray, x: float, y: float, z: float
) -> float:
    """Return the height of a point over the ground [m]; inf beside a height field.

    It is along the normal of a half-space of the world, or along z of a height field.
    The point is in the frame of its shape, and C is that frame in the world, or in the
    height field.
    """
    u = C[0] * x + C[1] * y + C[2] * z + C[9]
    v = C[3] * x + C[4] * y + C[5] * z + C[10]
    w = C[6] * x + C[7] * y + C[8] * z + C[11]
    if shapes.kind[ground] == HEIGHTS:
        return w - surface_below(shapes, ground, u, v)
    size, place = shapes.size, shapes.place
    return (
        (u - place[ground, 9]) * size[ground, 0]
        + (v - place[ground, 10]) * size[ground, 1]
        + (w - place[ground, 11]) * size[ground, 2]
    )


@machine_code
def retain_few(
    shapes: Shapes,
    a: int,
    A: FloatArray,
    ground: int,
    B: FloatArray,
    margin: float,
    work: Work,
) -> bool:
    """Choose the points of a hull deep in the ground that become contacts.

    They are the deepest vertex and the outermost ones of those that touch, in eight
    directions across the normal. These surround the hull, so that it is pushed out
    without tilting, and the step does not wait for hundreds of contacts. The points,
    which may repeat, are in the first column of RETAINED (9) rows of work.tags;
    relative and axis are overwritten. False: all that touch become contacts: the shape
    is no hull, overlaps by at most SUNK (1 cm), or at most MANY (16) points touch.
    """
    count = shapes.first[a, 1]
    if shapes.kind[a] != HULL or count <= MANY:
        return False
    C, n = A, shapes.size[ground]
    x, y, z = n[0], n[1], n[2]
    if shapes.kind[ground] == HEIGHTS:
        relate(A, B, work.relative[0])
        C = work.relative[0]
        x, y, z = 0.0, 0.0, 1.0
    nx, ny, nz = (
        C[0] * x + C[3] * y + C[6] * z,
        C[1] * x + C[4] * y + C[7] * z,
        C[2] * x + C[5] * y + C[8] * z,
    )
    sx, sy, sz = normal_to(nx, ny, nz)
    tx, ty, tz = ny * sz - nz * sy, nz * sx - nx * sz, nx * sy - ny * sx
    best, chosen, touching = work.axis, work.tags, 0
    for k in range(RETAINED):
        best[k, 0] = -math.inf
    for m in range(count):
        x, y, z = vertex(shapes, a, m)
        gap = height_above(shapes, ground, C, x, y, z) - shapes.size[a, 3]
        if not gap <= margin:
            continue
        touching += 1
        s, t = sx * x + sy * y + sz * z, tx * x + ty * y + tz * z
        for k in range(RETAINED):
            value = -gap
            if k // 2 == 0:
                value = s
            elif k // 2 == 1:
                value = t
            elif k // 2 == 2:
                value = s + t
            elif k // 2 == 3:
                value = s - t
            if k % 2 == 1:
                value = -value
            if value > best[k, 0]:
                best[k, 0], chosen[k, 0] = value, m
    return touching > MANY and best[RETAINED - 1, 0] > SUNK
