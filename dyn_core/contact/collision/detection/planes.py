"""Candidate points of all shapes, and their contacts with a half-space.

The table of points serves half-spaces and height fields (surface_contacts.py);
halfspaces.py is its traced form.

Written in the subset of Python that is compiled (dyn_core.engines.machine_code).
"""

from __future__ import annotations

import math

from dyn_core.contact.collision.detection.tables import (
    BOX,
    CAPSULE,
    CYLINDER,
    HULL,
    Contacts,
    Shapes,
    put,
)
from dyn_core.engines.machine_code import Reals, machine_code

UPRIGHT = 1e-12  # squared sine of the tilt below which a cylinder is upright


@machine_code
def points_of(shapes: Shapes, k: int) -> int:
    """Return the number of candidate points of a shape."""
    kind = shapes.kind[k]
    if kind == CAPSULE:
        return 2
    if kind == BOX:
        return 8
    if kind == CYLINDER:
        return 10
    if kind == HULL:
        return shapes.first[k, 1]
    return 1


@machine_code
def fixed_points(shapes: Shapes, k: int) -> int:
    """Return the number of candidate points that are the same for all normals."""
    if shapes.kind[k] == CYLINDER:
        return 8
    return points_of(shapes, k)


@machine_code
def local_point(
    shapes: Shapes, k: int, m: int, nx: float, ny: float
) -> tuple[float, float, float]:
    """Return a candidate point of a shape in its frame.

        sphere     its centre
        capsule    both ends of its axis
        box        all eight corners
        cylinder   on each rim four points, at x, y, -x, -y, and the deepest one
        hull       all vertices

    Args:
        shapes: Table.
        k, m: Numbers of the shape and of the point.
        nx, ny: Components of the normal along x and y of the shape.
    """
    kind = shapes.kind[k]
    half = shapes.size[k]
    if kind == CAPSULE:
        return 0.0, 0.0, half[2] if m == 1 else -half[2]
    if kind == BOX:
        return (
            half[0] if m % 2 == 1 else -half[0],
            half[1] if m // 2 % 2 == 1 else -half[1],
            half[2] if m // 4 == 1 else -half[2],
        )
    if kind == HULL:
        row = shapes.first[k, 0] + m
        return shapes.vertices[row, 0], shapes.vertices[row, 1], shapes.vertices[row, 2]
    if kind == CYLINDER:
        radius = half[0]
        if m >= 8:
            square = nx * nx + ny * ny
            x, y = math.sqrt(0.5), math.sqrt(0.5)
            if square > UPRIGHT:
                size = math.sqrt(square)
                x, y = -nx / size, -ny / size
            return radius * x, radius * y, half[2] if m == 9 else -half[2]
        sign = radius if m % 4 < 2 else -radius
        z = half[2] if m >= 4 else -half[2]
        if m % 2 == 0:
            return sign, 0.0, z
        return 0.0, sign, z
    return 0.0, 0.0, 0.0


@machine_code
def with_plane(
    contacts: Contacts,
    count: int,
    shapes: Shapes,
    k: int,
    F: Reals,
    plane: int,
    margin: float,
) -> int:
    """Add the contacts of a shape with a half-space; return the new number.

    gap = n . (R x + p) - n . p_0 - radius
    """
    nx, ny, nz = shapes.size[plane, 0], shapes.size[plane, 1], shapes.size[plane, 2]
    ox, oy, oz = (
        shapes.place[plane, 9],
        shapes.place[plane, 10],
        shapes.place[plane, 11],
    )
    radius = shapes.size[k, 3]
    lx, ly = F[0] * nx + F[3] * ny + F[6] * nz, F[1] * nx + F[4] * ny + F[7] * nz
    for m in range(points_of(shapes, k)):
        a, b, c = local_point(shapes, k, m, lx, ly)
        x = F[0] * a + F[1] * b + F[2] * c + F[9]
        y = F[3] * a + F[4] * b + F[5] * c + F[10]
        z = F[6] * a + F[7] * b + F[8] * c + F[11]
        gap = (x - ox) * nx + (y - oy) * ny + (z - oz) * nz - radius
        if not gap <= margin:
            continue
        back = radius + gap / 2
        count = put(
            contacts, count, m, x - nx * back, y - ny * back, z - nz * back,
            nx, ny, nz, gap,
        )  # fmt: skip
    return count
