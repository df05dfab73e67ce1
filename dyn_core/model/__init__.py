"""The Model of a robot: read from URDF, checked, frozen."""

from dyn_core.model.assemble import Build, assemble
from dyn_core.model.description import Description, JointSpec, LinkSpec, Mimic
from dyn_core.model.model import Model
from dyn_core.model.parts import Follower, Frame
from dyn_core.model.urdf import load_urdf

__all__ = [
    "Build",
    "Description",
    "Follower",
    "Frame",
    "JointSpec",
    "LinkSpec",
    "Mimic",
    "Model",
    "assemble",
    "load_urdf",
]
