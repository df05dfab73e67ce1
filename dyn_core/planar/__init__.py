"""Planar kinematic chains: models, states, conversion, simulation with impacts."""

from dyn_core.planar.chain import (
    FREE,
    GUIDED,
    LINE,
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
from dyn_core.planar.objects import OBJECTS, PlanarObject, planar_object
from dyn_core.planar.simulator import ChainSimulator

__all__ = [
    "FREE",
    "GUIDED",
    "LINE",
    "OBJECTS",
    "ChainModel",
    "ChainSimulator",
    "ChainState",
    "Constraints",
    "HalfPlane",
    "PlanarObject",
    "from_angles",
    "joint_angles",
    "joint_rates",
    "link_rates",
    "make_chain",
    "make_chain_like",
    "planar_object",
    "repair_drift",
    "to_angles",
]
