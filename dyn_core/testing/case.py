"""What a law looks at: one solver on one robot and engine, at a random state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dyn_core.engines import Program
from dyn_core.model import Model
from dyn_core.registry import solver as find
from dyn_core.signature import Port
from dyn_core.solver import Solver

# Eighth-order central differences: offsets in steps, and weights.
_WEIGHTS = ((1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280))
_STEP = 1e-2

Pairs = Iterator[tuple[Any, Any]]


def derivative(function: Callable[[float], Any], step: float = _STEP) -> Any:
    """Differentiate at zero by eighth-order central differences."""
    terms = [
        (np.asarray(function(k * step)) - np.asarray(function(-k * step))) * w
        for k, w in _WEIGHTS
    ]
    return sum(terms) / step


@dataclass
class SystemCase:
    """One solver on one system and engine, at random inputs.

    Attributes:
        solver, model, engine: What is tested.
        rng: Draws states; seeded.
    """

    solver: Solver
    model: Any
    engine: str
    rng: np.random.Generator

    def options(self, solver: Solver) -> dict[str, Any]:
        """Give values for options that have no useful default."""
        return {}

    def program(self, **choices: Any) -> Program:
        """Build the solver under test."""
        return self.build(self.solver, engine=self.engine, **choices)

    def other(self, name: str, **choices: Any) -> Program:
        """Build a shipped solver to compare with."""
        return self.build(find(name), **choices)

    def build(self, solver: Solver, **choices: Any) -> Program:
        """Build any solver for this system."""
        if choices.get("engine") == "array" or not hasattr(solver, "text"):
            choices.pop("engine", None)
        return solver.build(self.model, **{**self.options(solver), **choices})

    def arguments(self, program: Program) -> list[np.ndarray]:
        """Draw inputs for any Program."""
        return [self._argument(port) for port in program.inputs]

    def _argument(self, port: Port) -> np.ndarray:
        if port.name == "dt":
            return np.array(1e-3)
        return self.rng.normal(size=port.shape)


@dataclass
class Case(SystemCase):
    """One solver on one robot and engine, at one random state.

    Attributes:
        solver, model, engine: What is tested.
        rng: Draws states; seeded.
    """

    model: Model
    q: np.ndarray = field(init=False)
    qd: np.ndarray = field(init=False)
    qdd: np.ndarray = field(init=False)
    f_ext: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.q = self.model.random(self.rng)
        self.qd = self.rng.normal(size=self.model.nv)
        self.qdd = self.rng.normal(size=self.model.nv)
        self.f_ext = self.rng.normal(size=(self.model.nb, 6))

    @property
    def frame(self) -> str:
        """A link far from the base."""
        return self.model.frame_names[-1]

    def options(self, solver: Solver) -> dict[str, Any]:
        """Give values for options that have no useful default."""
        own = getattr(solver, "options", {})
        middle = self.model.frame_names[len(self.model.frame_names) // 2]
        single = [n for n in self.model.names[1:] if self.width(n) == 1]
        values = {
            "frame": self.frame,
            "moved": self.frame,
            "pushed": middle,
            "damping": 0.1,
            "rows": [(self.frame, None)] * 2 + [(middle, self.frame)] * 2,
            "points": [(self.frame, (0.1, -0.2, 0.3)), (middle, (0.0, 0.0, 0.1))],
            "active": self.model.joint_names,
            "prescribed": self.model.joint_names[::2],
            "paths": ("gravity", f"{self.frame}.mass"),
            "joint_rows": [*single[:1], *single[-1:]],
            "solver_options": {"tolerance": 1e-13, "max_iterations": 5000},
        }
        return {key: values[key] for key in own if key in values}

    def width(self, joint: str) -> int:
        """Number of a joint's own velocities."""
        return self.model.joint[self.model.body_of_joint(joint)].nv

    def moved(self, t: float) -> np.ndarray:
        """Position after the time t at velocity qd."""
        return self.model.integrate(self.q, self.qd * t)

    def _argument(self, port: Port) -> np.ndarray:
        if port.kind == "position":
            return self.model.random(self.rng)
        if port.name == "dt" and self.solver.signature.name == "contact_step":
            return np.array(0.1)  # gaps over dt stay small: proofs are near zero
        return super()._argument(port)
