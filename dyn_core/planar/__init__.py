"""Planar kinematic chains: models, states, conversion, simulation with impacts."""

from dyn_core.planar.chain import (
    FREE,
    GUIDED,
    LINE,
    OFF,
    SLIDE,
    STICK,
    ChainModel,
    Constraints,
    HalfPlane,
    make_chain,
    make_chain_like,
)
from dyn_core.planar.geometry import (
    ChainState,
    from_angles,
    joint_angles,
    joint_rates,
    link_rates,
    repair_drift,
    to_angles,
)

__all__ = [
    "FREE",
    "GUIDED",
    "LINE",
    "OFF",
    "SLIDE",
    "STICK",
    "ChainModel",
    "ChainState",
    "Constraints",
    "HalfPlane",
    "from_angles",
    "joint_angles",
    "joint_rates",
    "link_rates",
    "make_chain",
    "make_chain_like",
    "repair_drift",
    "to_angles",
]
