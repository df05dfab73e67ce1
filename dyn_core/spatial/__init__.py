"""Spatial (6-D) quantities: motions, forces, transforms and inertias, a type each."""

from dyn_core.spatial.inertia import (
    ArticulatedInertia,
    ForceSubspace,
    MotionSubspace,
    RigidInertia,
    VelocityProduct,
)
from dyn_core.spatial.symmetric import Symmetric
from dyn_core.spatial.transforms import Transform
from dyn_core.spatial.vectors import (
    Force,
    Matrix,
    Motion,
    Vector,
    cross,
    cross3,
    cross_force,
    cross_motion,
    rotation_rates,
    skew,
)

__all__ = [
    "ArticulatedInertia",
    "Force",
    "ForceSubspace",
    "Matrix",
    "Motion",
    "MotionSubspace",
    "RigidInertia",
    "Symmetric",
    "Transform",
    "Vector",
    "VelocityProduct",
    "cross",
    "cross3",
    "cross_force",
    "cross_motion",
    "rotation_rates",
    "skew",
]
