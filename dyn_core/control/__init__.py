"""Controllers and trajectories, without ROS."""

from dyn_core.control.controller import Controller
from dyn_core.control.trajectory import Trajectory, make_trajectory

__all__ = [
    "Controller",
    "Trajectory",
    "make_trajectory",
]
