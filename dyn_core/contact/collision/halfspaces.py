"""Half-spaces (ground, walls, slopes) and the points of shapes that can touch them.

A shape has a fixed number of candidate points, each the centre of a ball. Their gap is
a formula, so that traced algorithms can use it as well; detection/planes.py has the
same points and gaps in machine code.

    gap = n . (R x + p) - n . p_0 - radius

x is the point in its body, R and p are the pose of the body, n is the normal of the
half-space and p_0 a point of its plane.

    sphere     its centre
    capsule    both ends of its axis
    box        all eight corners
    cylinder   on each rim four points, at x, y, -x, -y, and the deepest one
    mesh       all corners of its convex hull

The deepest point of a rim moves along it, but its gap has the same derivative as for a
fixed point, as the gap is minimal there. For an exactly upright cylinder it is taken at
x + y.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dyn_core.engines.machine_code import machine_code
from dyn_core.errors import ModelError, UnsupportedError
from dyn_core.model.material import Material
from dyn_core.model.shape_reader import MATERIAL
from dyn_core.model.shapes import (
    Box,
    Capsule,
    Cylinder,
    PlacedShape,
    Shape,
    Sphere,
)
from dyn_core.numbers.scalar import sqrt, where
from dyn_core.spatial import Vector
from dyn_core.validation import (
    Either,
    Field,
    Name,
    Nothing,
    Table,
    known_keywords,
    label,
    numbers,
)

UPRIGHT = 1e-12  # squared sine of the tilt below which a cylinder is upright
DIAGONAL = math.sqrt(0.5)  # of the deepest point of a rim then, along x and y


@known_keywords
@dataclass(frozen=True)
class HalfSpace:
    """The region below a plane: a floor, a wall or a slope, fixed in the world.

    Attributes:
        name: Name in the ids of contacts.
        point: A point of the plane, 3 [m].
        normal: Outward normal, 3; stored with length 1.
        material: Material of the surface; None: the material of the touching shape.

    Raises:
        SettingError: There is no such keyword.
        ModelError: A field is invalid, or the normal is shorter than 1e-9.
    """

    name: str = "ground"
    point: tuple[float, float, float] = (0.0, 0.0, 0.0)
    normal: tuple[float, float, float] = (0.0, 0.0, 1.0)
    material: Material | None = None

    def __post_init__(self) -> None:
        for key, entry in HALF_SPACE.fields.items():
            where = f"half-space '{label(self.name)}': {key}"
            object.__setattr__(self, key, entry.read(where, getattr(self, key)))
        length = math.hypot(*self.normal)
        if length < 1e-9:
            raise ModelError(
                f"half-space '{self.name}': normal {self.normal} is zero; valid: for"
                " example (0, 0, 1), a floor",
                self.name,
            )
        object.__setattr__(self, "normal", tuple(x / length for x in self.normal))


HALF_SPACE = Table(
    Field("name", Name(), "name in the ids of contacts", "", "ground"),
    Field("point", numbers(3), "a point of the plane", "m", (0.0, 0.0, 0.0)),
    Field("normal", numbers(3), "out of the ground; any length", "", (0.0, 0.0, 1.0)),
    Field(
        "material",
        Either((MATERIAL, Nothing())),
        "of the surface; null: that of the shape that touches",
    ),
    make=HalfSpace,
)


def ball_points(shape: Shape) -> tuple[np.ndarray, float]:
    """Return the candidate points of a shape that do not depend on the half-space.

    Detection has them in its table of vertices (shape_tables.py), kernels as constants.

    Args:
        shape: A sphere, capsule, box or cylinder.

    Returns:
        Points in the shape's frame, (count, 3), and the radius of the ball about each
        [m]. Corner k of a box has bits 1, 2, 4 of k for x, y, z above 0. A capsule has
        the ends of its axis, a cylinder four points of each rim, along x, y, -x and -y;
        both begin with the end at -z.

    Raises:
        UnsupportedError: The shape is of another kind.
    """
    if isinstance(shape, Sphere):
        return np.zeros((1, 3)), shape.radius
    if isinstance(shape, Capsule):
        z = shape.length / 2
        return np.array(((0.0, 0.0, -z), (0.0, 0.0, z))), shape.radius
    if isinstance(shape, Box):
        corners = [[k >> axis & 1 for axis in range(3)] for k in range(8)]
        return (np.array(corners) - 0.5) * shape.size, 0.0
    if isinstance(shape, Cylinder):
        r, z = shape.radius, shape.length / 2
        rim = ((r, 0.0), (0.0, r), (-r, 0.0), (0.0, -r))
        return np.array([(*xy, end) for end in (-z, z) for xy in rim]), 0.0
    raise UnsupportedError(
        f"a {shape.kind} has no fixed contact points; valid: sphere, capsule, box,"
        " cylinder"
    )


@machine_code
def deepest_on_rim(
    nx: float, ny: float, square: float, size: float
) -> tuple[float, float]:
    """Return the unit direction (x, y) from the centre of a rim to its deepest point.

        -(nx, ny) / size,   along x + y where the cylinder is upright: square <= 1e-12

    nx and ny are in the cylinder's axes; if upright, `size` is any number but 0.
    """
    tilted = square > UPRIGHT
    x, y = where(tilted, -nx / size, DIAGONAL), where(tilted, -ny / size, DIAGONAL)
    return x, y


def candidate_points(placed: PlacedShape, n: Any = None) -> list[tuple[Vector, float]]:
    """Return the points of a shape that can touch a half-space.

        gap = n . (R x + p) - n . p_0 - radius

    Their number and order depend on the shape only; the index of a point is the feature
    in the id of its contact.

    Args:
        placed: Shape of a Model.
        n: Normal of the half-space in body coordinates, 3, floats or traced; needed for
            cylinders only.

    Returns:
        Points x in the body's frame [m], each with its radius [m]: those of
        ball_points, then the deepest ones of a cylinder's rims at -z and z.

    Raises:
        UnsupportedError: The shape is no sphere, capsule, box or cylinder, or a
            cylinder has no n.

    Source: LCP-2.
    """
    E, r = placed.X.E, placed.X.r
    points, radius = ball_points(placed.shape)
    candidates = [Vector(float(c) for c in x) for x in points]
    if isinstance(placed.shape, Cylinder):
        if n is None:
            raise UnsupportedError(
                f"link '{placed.link}': the deepest points of a cylinder need the"
                " normal n; valid: pass n, or use a capsule or box"
            )
        x, y, _ = E @ Vector(n)
        square = x * x + y * y
        size = sqrt(where(square > UPRIGHT, square, 1.0))
        xy = [c * placed.shape.radius for c in deepest_on_rim(x, y, square, size)]
        for end in (-1.0, 1.0):
            candidates.append(Vector((*xy, end * placed.shape.length / 2)))
    return [(E.T @ x + r, radius) for x in candidates]
