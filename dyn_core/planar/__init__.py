"""Planar kinematic chains: models, states, conversion, simulation with impacts."""

from dyn_core.planar.chain.chain import (
    FREE,
    GUIDED,
    LINE,
    ChainModel,
    Constraints,
    HalfPlane,
    make_chain,
    make_chain_like,
)
from dyn_core.planar.chain.modes import TAUT, JointModes
from dyn_core.planar.chain.simulator import ChainSimulator
from dyn_core.planar.chain.states import (
    ChainState,
    from_angles,
    joint_angles,
    joint_rates,
    link_rates,
    repair_drift,
    to_angles,
)
from dyn_core.planar.objects.objects import OBJECTS, PlanarObject, planar_object

__all__ = [
    "FREE",
    "GUIDED",
    "LINE",
    "OBJECTS",
    "TAUT",
    "ChainModel",
    "ChainSimulator",
    "ChainState",
    "Constraints",
    "HalfPlane",
    "JointModes",
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
