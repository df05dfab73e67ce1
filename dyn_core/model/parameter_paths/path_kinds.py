"""Table of the kinds of parameter paths with meaning, size and unit."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class PathKind:
    """A kind of parameter path.

    Attributes:
        owner: robot, link, joint, spring (between points) or loop.
        name: Last component of the path.
        size: Number of values, as text such as "6" or "nv of it".
        unit: SI unit.
        meaning: Meaning, for the documentation.
        option: Build option that the parameter needs to have an effect; empty: none.
        minimum: Smallest number that has a physical meaning.
    """

    owner: str
    name: str
    size: str
    unit: str
    meaning: str
    option: str = ""
    minimum: float = -math.inf

    @property
    def path(self) -> str:
        """The path as documented, with its owner in capitals: LINK.mass."""
        return (
            self.name if self.owner == "robot" else f"{self.owner.upper()}.{self.name}"
        )


_FRICTION, _SPRINGS = "joint_friction", "joint_springs"
_ABOVE_0 = 1e-12  # of lengths, and of numbers that the law of friction divides by
_FRAME = "x y z roll pitch yaw of the {} frame in its link"
KINDS = (
    PathKind("robot", "gravity", "3", "m/s²", "in the root frame"),
    PathKind("robot", "time", "1", "s", "of driven joints"),
    PathKind(
        "robot", "armature", "nv", "SI", "of all independent joints", minimum=0.0
    ),
    PathKind("link", "mass", "1", "kg", "mass", minimum=0.0),
    PathKind("link", "com", "3", "m", "centre of mass in the link's frame"),
    PathKind(
        "link", "inertia", "6", "kg·m²", "xx xy xz yy yz zz about the centre of mass"
    ),
    PathKind(
        "link", "payload", "10", "SI",
        "m, m c, Ixx Ixy Iyy Ixz Iyz Izz about the link's origin, added to the link",
    ),
    PathKind("joint", "damping", "1", "SI", "viscous friction", _FRICTION, 0.0),
    PathKind(
        "joint", "friction", "1", "SI", "dry friction, the mean of both directions",
        _FRICTION, 0.0,
    ),
    PathKind(
        "joint", "friction_asymmetry", "1", "SI",
        "half of what dry friction is more in positive direction", _FRICTION,
    ),
    PathKind(
        "joint", "friction_speed", "1", "SI",
        "width v of dry friction's transition through rest, tanh(qd / v)", _FRICTION,
        _ABOVE_0,
    ),
    PathKind(
        "joint", "stribeck", "1", "SI", "what dry friction is more near rest",
        _FRICTION, 0.0,
    ),
    PathKind(
        "joint", "stribeck_speed", "1", "SI", "speed at which e^-1 of that is left",
        _FRICTION, _ABOVE_0,
    ),
    PathKind("joint", "armature", "1", "SI", "inertia of the rotor", minimum=0.0),
    PathKind(
        "joint", "origin", "6", "m; rad",
        "x y z roll pitch yaw in the parent link; of fixed joints, too",
    ),
    PathKind(
        "joint", "plug", "6", "m; rad",
        "x y z roll pitch yaw in the child link; of fixed joints, too",
    ),
    PathKind("joint", "axis", "3", "-", "direction; its length does not count"),
    PathKind(
        "joint", "axes", "6", "-", "of a universal joint, first and second direction"
    ),
    PathKind("joint", "pitch", "1", "m/rad", "of a helical joint"),
    PathKind("joint", "stiffness", "1", "SI", "of the joint's spring", _SPRINGS, 0.0),
    PathKind(
        "joint", "rest", "nv of it", "SI", "where the joint's spring is slack", _SPRINGS
    ),
    PathKind(
        "joint", "ratio", "nv x nv", "-",
        "of a mimic or geared joint to the one it follows, row by row",
    ),
    PathKind("joint", "offset", "nv of it", "rad | m", "of a mimic or geared joint"),
    PathKind(
        "spring", "stiffness", "1", "N/m", "of a spring between points", _SPRINGS, 0.0
    ),
    PathKind("spring", "rest_length", "1", "m", "where it is slack", _SPRINGS, 0.0),
    PathKind(
        "spring", "damping", "1", "N·s/m", "of the damper beside it", _SPRINGS, 0.0
    ),
    PathKind("loop", "at_a", "6", "m; rad", _FRAME.format("first")),
    PathKind("loop", "at_b", "6", "m; rad", _FRAME.format("second")),
    PathKind("loop", "length", "1", "m", "of kind distance", "", _ABOVE_0),
    PathKind("loop", "radius", "1", "m", "of kinds that roll", "", _ABOVE_0),
)  # fmt: skip
OWNERS = ("link", "joint", "spring", "loop")


def named(owner: str) -> dict[str, PathKind]:
    """Return the kinds of an owner (robot, link, ...) by name; {} for another."""
    return {kind.name: kind for kind in KINDS if kind.owner == owner}


ROBOT, LINK = named("robot"), named("link")
