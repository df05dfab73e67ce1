"""Collision geometry: shapes of links, and which links may collide.

Data only: shape_reader.py reads them, dyn_core.contact computes distances.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from dyn_core.spatial import Transform

ANY, WORLD = "*", "world"  # in pairs: any link; any half-space of the world


@dataclass(frozen=True)
class Shape:
    """A collision shape, centred in its frame; X: from the link's frame to its own."""

    X: Transform
    kind: ClassVar[str] = ""

    @property
    def reach(self) -> float:
        """Largest distance of a point from the centre [m]; infinite if undefined."""
        return math.inf


@dataclass(frozen=True)
class Sphere(Shape):
    """All points within `radius` [m] of the centre."""

    radius: float
    kind: ClassVar[str] = "sphere"

    @property
    def reach(self) -> float:
        """Largest distance of the shape's points from its centre [m]."""
        return self.radius


@dataclass(frozen=True)
class Box(Shape):
    """A box with side lengths `size` along x, y, z: 3 [m]."""

    size: tuple[float, float, float]
    kind: ClassVar[str] = "box"

    @property
    def reach(self) -> float:
        """Largest distance of the shape's points from its centre [m]."""
        return math.hypot(*self.size) / 2


@dataclass(frozen=True)
class Cylinder(Shape):
    """A cylinder about the z axis with `radius` and height `length` [m]."""

    radius: float
    length: float
    kind: ClassVar[str] = "cylinder"

    @property
    def reach(self) -> float:
        """Largest distance of the shape's points from its centre [m]."""
        return math.hypot(self.radius, self.length / 2)


@dataclass(frozen=True)
class Capsule(Shape):
    """All points within `radius` of a segment of the z axis, `length` long [m]."""

    radius: float
    length: float
    kind: ClassVar[str] = "capsule"

    @property
    def reach(self) -> float:
        """Largest distance of the shape's points from its centre [m]."""
        return self.radius + self.length / 2


@dataclass(frozen=True)
class Mesh(Shape):
    """The convex hull of a mesh file, which is read when it is first needed.

    `file` is a path or package:// address; `scale` has factors along x, y, z.
    """

    file: str
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)
    kind: ClassVar[str] = "mesh"


class PlacedShape(NamedTuple):
    """A collision shape with its body and placement in a Model.

    `body` is the number of the body, 0 for the base, X the transform from its frame to
    the shape's, and `number` the index among the link's shapes.
    """

    link: str
    body: int
    X: Transform
    shape: Shape
    number: int


@dataclass(frozen=True)
class PairRules:
    """Explicit rules for the pairs of links that are tested for contact, or are not.

    A pair is a set of two names, of links, `*` for any link or `world` for any
    half-space; a set of `*` alone is any two links. Precedence: see `decision`.
    """

    allow: frozenset[frozenset[str]] = frozenset()
    deny: frozenset[frozenset[str]] = frozenset()

    def decision(self, a: str, b: str) -> bool | None:
        """Return whether a pair is tested for contact; None: no rule applies.

        A rule for (a, b) precedes rules for (a, `*`) and (b, `*`), which precede the
        rule for (`*`, `*`). Of rules of equal rank, `deny` precedes `allow`. `*` stands
        for links only: for (a, `world`) only that rule and (`world`, `*`) apply.
        """
        named = [{a, b}]
        starred = [{WORLD, ANY}] if WORLD in (a, b) else [{a, ANY}, {b, ANY}]
        all_links = [] if WORLD in (a, b) else [{ANY}]
        for names in (named, starred, all_links):
            keys = {frozenset(pair) for pair in names}
            if keys & self.deny:
                return False
            if keys & self.allow:
                return True
        return None
