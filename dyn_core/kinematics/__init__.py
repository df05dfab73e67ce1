"""Inverse kinematics of robots, by search from several start positions at once."""

from dyn_core.kinematics.inverse import InverseKinematics, Reached, inverse_kinematics
from dyn_core.kinematics.poses import pose_matrices

__all__ = ["InverseKinematics", "Reached", "inverse_kinematics", "pose_matrices"]
