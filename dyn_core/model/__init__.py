"""The Model of a robot: read from a file, checked and immutable."""

from dyn_core.model.assembly.build import Build
from dyn_core.model.assembly.tree import Tree
from dyn_core.model.description import Description, JointSpec, LinkSpec, Mimic
from dyn_core.model.frames import Follower, Frame
from dyn_core.model.mjcf import load_mjcf
from dyn_core.model.model import Model, assemble
from dyn_core.model.sources.loading import load
from dyn_core.model.sources.origin import Origin
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
    "Origin",
    "Tree",
    "assemble",
    "load",
    "load_mjcf",
    "load_urdf",
]
