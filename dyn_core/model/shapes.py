"""Collision geometry: shapes of links, materials, and which links may collide.

Values only. shape_reader.py reads them, dyn_core.contact computes distances.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from dyn_core.spatial import Transform
from dyn_core.validation import known_keywords

ANY, WORLD = "*", "world"  # in pairs: any link; any half-space of the world


@dataclass(frozen=True)
class Shape:
    """A collision shape, centred in its frame.

    Class attributes:
        kind: Its name in files.

    Attributes:
        X: Transform from the link's frame to the shape's.
    """

    X: Transform
    kind: ClassVar[str] = ""

    @property
    def reach(self) -> float:
        """Largest distance of its points from its centre [m]."""
        return math.inf


@dataclass(frozen=True)
class Sphere(Shape):
    """All points within `radius` [m] of the centre."""

    radius: float
    kind: ClassVar[str] = "sphere"

    @property
    def reach(self) -> float:
        """Radius of the sphere about its centre that holds it [m]."""
        return self.radius


@dataclass(frozen=True)
class Box(Shape):
    """A box with sides `size` along x, y, z: 3 [m]."""

    size: tuple[float, float, float]
    kind: ClassVar[str] = "box"

    @property
    def reach(self) -> float:
        """Radius of the sphere about its centre that holds it [m]."""
        return math.hypot(*self.size) / 2


@dataclass(frozen=True)
class Cylinder(Shape):
    """A cylinder of `radius` [m] about z, `length` [m] high."""

    radius: float
    length: float
    kind: ClassVar[str] = "cylinder"

    @property
    def reach(self) -> float:
        """Radius of the sphere about its centre that holds it [m]."""
        return math.hypot(self.radius, self.length / 2)


@dataclass(frozen=True)
class Capsule(Shape):
    """All points within `radius` [m] of a piece of z, `length` [m] long, caps apart."""

    radius: float
    length: float
    kind: ClassVar[str] = "capsule"

    @property
    def reach(self) -> float:
        """Radius of the sphere about its centre that holds it [m]."""
        return self.radius + self.length / 2


@dataclass(frozen=True)
class Mesh(Shape):
    """The convex hull of a mesh file, which nothing reads before it is needed.

    Attributes:
        file: Path or package:// address, as the robot's file has it.
        scale: Factors along x, y, z, 3.
    """

    file: str
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)
    kind: ClassVar[str] = "mesh"


class PlacedShape(NamedTuple):
    """A shape of a Model.

    Attributes:
        link: The link that has it.
        body: Number of the body the link belongs to; 0 is the base.
        X: Transform from the body's frame to the shape's.
        shape: The shape.
        number: Which of the link's shapes it is, from 0.
    """

    link: str
    body: int
    X: Transform
    shape: Shape
    number: int


@known_keywords
@dataclass(frozen=True)
class Material:
    """How a surface meets others.

    Attributes:
        mu: Coulomb's coefficient of friction.
        torsion: Ratio of the friction torque about the normal to the normal force [m].
        rolling: Alike, of the torque about the tangents [m].
        restitution: Ratio of normal speeds after and before an impact, 0..1.
    """

    mu: float = 1.0
    torsion: float = 0.0
    rolling: float = 0.0
    restitution: float = 0.0

    def combined(self, other: Material | None) -> Material:
        """Return the material of a contact; None takes the other's as it is.

            mu = sqrt(mu_a mu_b),   restitution = max(e_a, e_b)

        Torsion and rolling combine like mu: a surface without friction makes the
        contact frictionless, and two equal surfaces keep their values. Neither law is
        physics; both are common choices.
        """
        if other is None:
            return self
        return Material(
            math.sqrt(self.mu * other.mu),
            math.sqrt(self.torsion * other.torsion),
            math.sqrt(self.rolling * other.rolling),
            max(self.restitution, other.restitution),
        )


@dataclass(frozen=True)
class PairRules:
    """Which links are tested for contact, where the robot's file says it.

    Attributes:
        allow, deny: Sets of one or two names: links, `*` for any link, `world` for any
            half-space. A rule with `*` gives way to one without.
    """

    allow: frozenset[frozenset[str]] = frozenset()
    deny: frozenset[frozenset[str]] = frozenset()

    def decision(self, a: str, b: str) -> bool | None:
        """Return whether two links, or a link and `world`, meet; None: no rule.

        `*` stands for links only: one that meets no link may still meet the world.
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
