"""Inverse kinematics of robots, by search from several start positions at once."""

from dyn_core.kinematics.inverse import InverseKinematics, Reached, inverse_kinematics
from dyn_core.kinematics.poses import pose_matrices

RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py

__all__ = ["InverseKinematics", "Reached", "inverse_kinematics", "pose_matrices"]
