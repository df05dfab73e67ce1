"""Simulated plants: robots, and robots with contacts."""

from dyn_core.simulation.contacts import ContactSimulator
from dyn_core.simulation.loop_closure import close_loops, close_rates
from dyn_core.simulation.loop_report import LoopReport, loop_report
from dyn_core.simulation.plant import SimulatedPlant
from dyn_core.simulation.robot_plant import RobotPlant
from dyn_core.simulation.rollout import Rollout
from dyn_core.simulation.simulator import Simulator, simulate

RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py

__all__ = [
    "ContactSimulator",
    "LoopReport",
    "RobotPlant",
    "Rollout",
    "SimulatedPlant",
    "Simulator",
    "close_loops",
    "close_rates",
    "loop_report",
    "simulate",
]
