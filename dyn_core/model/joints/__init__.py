"""Joint kinds, one file per family; a kind is one class."""

from dyn_core.model.joints.base import Joint
from dyn_core.model.joints.multi import Floating, Planar, Spherical
from dyn_core.model.joints.single import Continuous, Prismatic, Revolute

KINDS: dict[str, type[Joint]] = {
    joint.kind: joint
    for joint in (Revolute, Continuous, Prismatic, Planar, Floating, Spherical)
}

__all__ = [
    "KINDS",
    "Continuous",
    "Floating",
    "Joint",
    "Planar",
    "Prismatic",
    "Revolute",
    "Spherical",
]
