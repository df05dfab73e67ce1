"""Candidate points of all shapes, and their contacts with a half-space.

The points serve half-spaces and height fields (height_field_contacts.py).
halfspaces.py describes them, and is the traced form.

Written in the subset of Python that is compiled (dyn_core.engines.machine_code).

A frame is (12,): a rotation R, row by row, and a position p [m], x_outer = R x + p.
"""

from __future__ import annotations

import math

from dyn_core.contact.collision.detection.detection_arrays import (
    CYLINDER,
    Contacts,
    Shapes,
    Work,
    put,
    vertex,
)
from dyn_core.contact.collision.halfspaces import UPRIGHT, deepest_on_rim
from dyn_core.engines.machine_code import FloatArray, machine_code
from dyn_core.numbers.scalar import where

RETAINED = 9  # number of points of a hull deep in the ground (deep_hulls.py)


@machine_code
def points_of(shapes: Shapes, k: int) -> int:
    """Return how many candidate points (local_point) shape k, no height field, has."""
    if shapes.kind[k] == CYLINDER:
        return fixed_points(shapes, k) + 2
    return fixed_points(shapes, k)


@machine_code
def fixed_points(shapes: Shapes, k: int) -> int:
    """Return the number of vertices of shape k that are candidate points."""
    return shapes.first[k, 1]


@machine_code
def local_point(
    shapes: Shapes, k: int, m: int, nx: float, ny: float
) -> tuple[float, float, float]:
    """Return a candidate point of a shape in its frame [m].

    The points are the vertices of the table; a cylinder has two more, the deepest
    points of its rims at -z and +z. They lie opposite to (nx, ny), the normal along x
    and y of the shape, or along (1, 1) if the cylinder is upright (both almost 0).
    """
    if m < fixed_points(shapes, k):
        return vertex(shapes, k, m)
    radius, z = shapes.size[k, 0], shapes.size[k, 2]
    square = nx * nx + ny * ny
    size = math.sqrt(where(square > UPRIGHT, square, 1.0))
    x, y = deepest_on_rim(nx, ny, square, size)
    return radius * x, radius * y, z if m > fixed_points(shapes, k) else -z


@machine_code
def is_retained(work: Work, m: int) -> bool:
    """Return whether point m is among those that deep_hulls.retain_few chose."""
    for k in range(RETAINED):
        if work.tags[k, 0] == m:
            return True
    return False


@machine_code
def with_plane(
    contacts: Contacts,
    count: int,
    shapes: Shapes,
    k: int,
    F: FloatArray,
    plane: int,
    margin: float,
    few: bool,
    work: Work,
) -> int:
    """Add the contacts of a shape with a half-space; return the new number.

        gap = n . (R x + p) - n . p_0 - radius

    x is a candidate point, R and p are of F, p_0 is a point of the half-space's plane.

    Each candidate point with a gap up to `margin` is a contact. Its normal is the
    normal of the half-space, its feature the index of the point, and its position is
    half-way between the surfaces. Contacts beyond the capacity are counted, not
    written.

    Args:
        contacts, count: Contacts, and their number so far.
        shapes, k, F: Table, index of the shape, and its frame in the world, (12,).
        plane: Index of the half-space in the table.
        margin: Maximum gap of a contact [m].
        few, work: Whether the points that retain_few chose are candidates only, and its
            memory; not changed.
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
        if few and not is_retained(work, m):
            continue
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
