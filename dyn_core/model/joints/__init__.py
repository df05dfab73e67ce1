"""Joint kinds: one class for each kind, one file for each family."""

from __future__ import annotations

from dyn_core.model.description import JointSpec
from dyn_core.model.joints.base import GroupJoint, Joint
from dyn_core.model.joints.custom import Custom, Driven
from dyn_core.model.joints.one_axis import Continuous, Helical, Prismatic, Revolute
from dyn_core.model.joints.product import (
    BallRPY,
    Cylindrical,
    FreeRPY,
    Planar,
    Product,
    Universal,
)
from dyn_core.model.joints.quaternion import BallExp, Floating, Spherical

KINDS: dict[str, type[Joint]] = {
    joint.kind: joint
    for joint in (
        Revolute,
        Continuous,
        Prismatic,
        Helical,
        Cylindrical,
        Universal,
        Planar,
        Floating,
        FreeRPY,
        Spherical,
        BallRPY,
        BallExp,
        Product,
    )
}


def make_joint(spec: JointSpec) -> Joint:
    """Return the Joint object of a specification.

    Placement, limits and forces of the specification are not used.

    Raises:
        ModelError: The numbers do not make such a joint.
        KeyError: Its kind, or the kind of a factor, is not in KINDS, such as fixed.
        TypeError: A universal joint has more than two axes.

    Source: KIM-2.4 (the library of joints).
    """
    return KINDS[spec.kind].specified(spec, [make_joint(f) for f in spec.factors])


__all__ = [
    "KINDS",
    "BallExp",
    "BallRPY",
    "Continuous",
    "Custom",
    "Cylindrical",
    "Driven",
    "Floating",
    "FreeRPY",
    "GroupJoint",
    "Helical",
    "Joint",
    "Planar",
    "Prismatic",
    "Product",
    "Revolute",
    "Spherical",
    "Universal",
    "make_joint",
]
