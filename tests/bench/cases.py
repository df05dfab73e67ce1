"""Cases that are measured: robots, states, algorithms."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from dyn_core import robots
from dyn_core.errors import ModelError
from dyn_core.model import Model, load_urdf
from dyn_core.model.sources import example_robots
from dyn_core.model.sources.loading import read_robot
from dyn_core.model.sources.locate import Located, locate
from dyn_core.sharing import cached_property

DT = 1e-3  # of steps [s]
STATES = 64  # single calls go through so many, one after the other
# Solvers with their inputs; behind a colon the form of their matrices.
INPUTS = {
    "rnea": "q, v, a", "aba": "q, v, tau", "bias": "q, v",
    "crba": "q", "crba:sparse": "q", "mass_matrix_inverse": "q",
    "id_derivatives": "q, v, a", "id_derivatives:sparse": "q, v, a",
    "fd_derivatives": "q, v, tau",
    "id_second_contracted": "q, v, a, tau", "fd_second_contracted": "q, v, tau, a",
    "id_second_derivatives": "q, v, a", "semi_implicit_euler": "q, v, tau",
    "point_delassus": "q", "operational_inertia": "q",
}  # fmt: skip


@dataclass
class Robot:
    """A robot as every peer gets it: one URDF without shapes, locked joints fixed.

    Attributes:
        name, path: Of its file.
        floating: Whether its root link floats.
        locked: Joints that are fixed at zero.
        located: What the path was looked up as, where it was.
        xacro_arguments: Values of <xacro:arg>, by name.
    """

    name: str
    path: Path
    floating: bool = False
    locked: tuple[str, ...] = ()
    located: Located | None = None
    xacro_arguments: Mapping[str, str] = field(default_factory=dict)
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(7))

    @cached_property
    def urdf(self) -> str:
        """The URDF."""
        located = self.located or locate(self.path)
        _, root, origin = read_robot(located, self.xacro_arguments or None)
        if origin.kind == "mjcf":
            raise ModelError(f"{self.path} is MJCF; valid for peers: URDF and xacro")
        for link in root.iter("link"):
            for shape in [*link.findall("visual"), *link.findall("collision")]:
                link.remove(shape)
        for joint in root.iter("joint"):
            if joint.find("origin") is None:  # some readers need it said
                ElementTree.SubElement(joint, "origin", xyz="0 0 0", rpy="0 0 0")
            if joint.get("name") in self.locked:
                joint.set("type", "fixed")
                for mimic in joint.findall("mimic"):
                    joint.remove(mimic)
        for other in [*root.findall("gazebo"), *root.findall("transmission")]:
            root.remove(other)
        return ElementTree.tostring(root, encoding="unicode")

    @cached_property
    def model(self) -> Model:
        """The robot here."""
        root = "floating" if self.floating else "fixed"
        return load_urdf(self.urdf, root_joint=root, check="warn")

    @cached_property
    def tips(self) -> list[str]:
        """Links at the ends of branches, one for each, at most four: feet, hands."""
        model = self.model
        ends = [i for i in model.bodies if i not in model.parent]
        return [model.child_links[i] for i in ends[:4]]

    def choices(self, algorithm: str) -> dict[str, Any]:
        """Options that an algorithm needs: points at the tips, or the first tip."""
        if algorithm == "point_delassus":
            return {"points": [(tip, (0.0, 0.0, 0.0)) for tip in self.tips]}
        if algorithm == "operational_inertia":
            return {"frame": self.tips[0]}
        return {}

    @property
    def title(self) -> str:
        """Name, degrees of freedom, file and locks."""
        base = "floating" if self.floating else "fixed base"
        locks = f", locked: {', '.join(self.locked)}" if self.locked else ""
        return f"{self.name}: {self.model.nv} dof, {base}, {self.path.name}{locks}"

    @cached_property
    def state(self) -> dict[str, np.ndarray]:
        """STATES states by rows: q, v, a, tau; nothing drives a floating base."""
        nv = self.model.nv
        q = [
            self.model.integrate(self.model.neutral(), self.rng.uniform(-1.2, 1.2, nv))
            for _ in range(STATES)
        ]
        v, a = self.rng.uniform(-1, 1, (2, STATES, nv))
        tau = self.rng.uniform(-5, 5, (STATES, nv))
        tau[:, : 6 * self.floating] = 0.0
        return {"q": np.array(q), "v": v, "a": a, "tau": tau}


def named(
    source: str,
    floating: bool,
    locked: Sequence[str] = (),
    package_paths: Sequence[str] = (),
    xacro_arguments: Mapping[str, str] | None = None,
) -> Robot:
    """Return the robot of a path or name; it floats, too, where its source says so.

    Args:
        source: Path or name.
        floating: Whether its root link floats.
        locked: Joints that are fixed at zero.
        package_paths, xacro_arguments: Those of dyn.load.
    """
    located = locate(source, package_paths)
    path = located.file or Path("robot.urdf")
    floats = floating or robots.root_joint(located.file) == "floating"
    arguments = xacro_arguments or {}
    return Robot(path.stem, path, floats, tuple(locked), located, arguments)


def usual() -> list[Robot]:
    """Return arm, quadruped and humanoid of example-robot-data, or shipped robots."""
    if example_robots.home() is None:
        return [named("arm7", False), named("quadruped", True)]
    fingers = ("panda_finger_joint1", "panda_finger_joint2")
    g1 = replace(named("g1_29dof_rev_1_0", True), name="g1")
    return [named("panda", False, fingers), named("go2", True), g1]
