"""Spatial (6-D) quantities: motions, forces, transforms and inertias, a type each."""

from dyn_core.spatial.classical import (
    PairTransforms,
    Pose,
    coriolis_term,
    pair_transforms,
    pair_velocity,
    propagate_acceleration,
    propagate_velocity,
    velocity_product,
)
from dyn_core.spatial.inertia import (
    ArticulatedInertia,
    ForceSubspace,
    MotionSubspace,
    RigidInertia,
)
from dyn_core.spatial.lie import (
    SwingTwist,
    aligning_rotation,
    swing_angle,
    swing_twist,
    swing_twist_rates,
    swing_twist_rows,
    twist_angle,
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
    total,
)
from dyn_core.spatial.velocity_product import VelocityProduct

__all__ = [
    "ArticulatedInertia",
    "Force",
    "ForceSubspace",
    "Matrix",
    "Motion",
    "MotionSubspace",
    "PairTransforms",
    "Pose",
    "RigidInertia",
    "SwingTwist",
    "Symmetric",
    "Transform",
    "Vector",
    "VelocityProduct",
    "aligning_rotation",
    "coriolis_term",
    "cross",
    "cross3",
    "cross_force",
    "cross_motion",
    "pair_transforms",
    "pair_velocity",
    "propagate_acceleration",
    "propagate_velocity",
    "rotation_rates",
    "skew",
    "swing_angle",
    "swing_twist",
    "swing_twist_rates",
    "swing_twist_rows",
    "total",
    "twist_angle",
    "velocity_product",
]
