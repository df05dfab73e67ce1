"""Joint kinds, one file per family; a kind is one class."""

from dyn_core.model.joints.base import Joint
from dyn_core.model.joints.driven import Driven
from dyn_core.model.joints.multi import BallRPY, Floating, Planar, Spherical
from dyn_core.model.joints.single import Continuous, Prismatic, Revolute

KINDS: dict[str, type[Joint]] = {
    joint.kind: joint
    for joint in (
        Revolute,
        Continuous,
        Prismatic,
        Planar,
        Floating,
        Spherical,
        BallRPY,
    )
}

__all__ = [
    "KINDS",
    "BallRPY",
    "Continuous",
    "Driven",
    "Floating",
    "Joint",
    "Planar",
    "Prismatic",
    "Revolute",
    "Spherical",
]
