"""Inverse kinematics of robots, from several starts at once."""

from dyn_core.kinematics.inverse import InverseKinematics, Reached, inverse_kinematics
from dyn_core.kinematics.poses import pose_matrices

__all__ = ["InverseKinematics", "Reached", "inverse_kinematics", "pose_matrices"]
