"""Cases that are measured: robots, states, algorithms."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from dyn_core import robots
from dyn_core.errors import ModelError
from dyn_core.model import Model, load_urdf

STATES = 64  # single calls go through so many, one after the other
# Solvers with their inputs; behind a colon the form of their matrices.
INPUTS = {
    "rnea": "q, v, a", "aba": "q, v, tau", "bias": "q, v",
    "crba": "q", "crba:sparse": "q", "mass_matrix_inverse": "q",
    "id_derivatives": "q, v, a", "id_derivatives:sparse": "q, v, a",
    "fd_derivatives": "q, v, tau", "semi_implicit_euler": "q, v, tau",
    "point_delassus": "q", "operational_inertia": "q",
}  # fmt: skip


@dataclass
class Robot:
    """A robot as every peer gets it: one URDF without shapes, locked joints fixed.

    Attributes:
        name, path: Of the URDF.
        floating: Whether its root link floats.
        locked: Joints that are fixed at zero.
    """

    name: str
    path: Path
    floating: bool = False
    locked: tuple[str, ...] = ()
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(7))

    @cached_property
    def urdf(self) -> str:
        """The URDF."""
        try:
            tree = ElementTree.parse(self.path)
        except (OSError, ElementTree.ParseError) as error:
            raise ModelError(
                f"cannot read the URDF file {self.path}: {error}"
            ) from error
        root = tree.getroot()
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
        """STATES states by rows: q, v, a, tau."""
        nv = self.model.nv
        q = [
            self.model.integrate(self.model.neutral(), self.rng.uniform(-1.2, 1.2, nv))
            for _ in range(STATES)
        ]
        v, a = self.rng.uniform(-1, 1, (2, STATES, nv))
        tau = self.rng.uniform(-5, 5, (STATES, nv))
        return {"q": np.array(q), "v": v, "a": a, "tau": tau}


def named(path: str, floating: bool, locked: Sequence[str] = ()) -> Robot:
    """Return a robot from a path or the name of a shipped one."""
    file = robots.find(path)
    return Robot(file.stem, file, floating, tuple(locked))


def usual() -> list[Robot]:
    """Return arm, quadruped and humanoid of example-robot-data, or shipped robots."""
    home = _example_robots()
    if home is None:
        return [named("arm7", False), named("quadruped", True)]
    fingers = ("panda_finger_joint1", "panda_finger_joint2")
    return [
        Robot("panda", home / "panda_description/urdf/panda.urdf", False, fingers),
        Robot("go2", home / "go2_description/urdf/go2.urdf", True),
        Robot("g1", home / "g1_description/urdf/g1_29dof_rev_1_0.urdf", True),
    ]


def _example_robots() -> Path | None:
    for folder in map(Path, sys.path):
        home = folder / "cmeel.prefix/share/example-robot-data/robots"
        if home.is_dir():
            return home
    return None
