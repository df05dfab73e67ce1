"""Exciting motions: trajectories designed for the identification of a robot."""

from dyn_core.identification.excitation.design import excite
from dyn_core.identification.excitation.limits import BrokenLimit, MotionLimits
from dyn_core.identification.excitation.result import Excitation

__all__ = ["BrokenLimit", "Excitation", "MotionLimits", "excite"]
