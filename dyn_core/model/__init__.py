"""The Model of a robot: read from URDF, checked, frozen."""

from dyn_core.model.build import Build
from dyn_core.model.description import Description, JointSpec, LinkSpec, Mimic
from dyn_core.model.frames import Follower, Frame
from dyn_core.model.model import Model, assemble
from dyn_core.model.tree import Tree
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
    "Tree",
    "assemble",
    "load_urdf",
]
