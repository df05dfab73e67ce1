"""Coordinates of a robot: conversions by joint and by name, and integration."""

from dyn_core.model.coordinates.configuration_space import (
    advance,
    difference,
    gyroscopic_change,
    integrate,
    normalize,
    position_rate,
    rate_in_initial_axes,
    tangent_rate,
    velocity_of,
)
from dyn_core.model.coordinates.joints_and_followers import (
    join_columns,
    join_force,
    join_matrix,
    join_slopes,
    join_v,
    split_q,
    split_v,
)
from dyn_core.model.coordinates.pivots import joint_factors

__all__ = [
    "advance",
    "difference",
    "gyroscopic_change",
    "integrate",
    "join_columns",
    "join_force",
    "join_matrix",
    "join_slopes",
    "join_v",
    "joint_factors",
    "normalize",
    "position_rate",
    "rate_in_initial_axes",
    "split_q",
    "split_v",
    "tangent_rate",
    "velocity_of",
]
