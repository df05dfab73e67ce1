"""Test cases of laws: one solver on one robot and engine, at a random state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dyn_core.engines import Program
from dyn_core.model import Model
from dyn_core.problems import Port
from dyn_core.solving.registry import solver as find
from dyn_core.solving.solver import Solver
from dyn_core.spatial import Vector
from dyn_core.spatial.conventions.common import quaternion
from dyn_core.spatial.lie import exp3

# Eighth-order central differences: offsets in steps, and weights.
_WEIGHTS = ((1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280))
_STEP = 1e-2

Pairs = Iterator[tuple[Any, Any]]


def derivative(function: Callable[[float], Any], step: float = _STEP) -> Any:
    """Return the derivative at zero by eighth-order central differences."""
    terms = [
        (np.asarray(function(k * step)) - np.asarray(function(-k * step))) * w
        for k, w in _WEIGHTS
    ]
    return sum(terms) / step


class _Identity:
    """A dictionary key that compares a value by identity, and keeps it alive."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.value is self.value


def _frozen(value: Any) -> Any:
    """Return a hashable key for an option: equal for equal values of the same types.

    What is no plain data, such as an array, is compared by identity.
    """
    if isinstance(value, dict):
        return dict, tuple((key, _frozen(value[key])) for key in sorted(value))
    if isinstance(value, (list, tuple)):
        return type(value), tuple(map(_frozen, value))
    if isinstance(value, (bool, int, float, str, type(None))):
        return type(value), repr(value)
    return _Identity(value)


@dataclass
class SystemCase:
    """One solver on one system and engine, at random inputs.

    Attributes:
        solver, model, engine: Solver under test, its system and engine.
        rng: Seeded random generator of the inputs; draws advance it.
        programs: Cache of Programs built for this system; cases of one system may share
            it.
        dtype: float64 or float32, of the Programs of the solver under test.
    """

    solver: Solver
    model: Any
    engine: str
    rng: np.random.Generator
    programs: dict[Any, Program] = field(default_factory=dict, kw_only=True, repr=False)
    dtype: str = field(default="float64", kw_only=True)

    def options(self, solver: Solver) -> dict[str, Any]:
        """Return values for a solver's options without a useful default; {} here."""
        return {}

    def program(self, **choices: Any) -> Program:
        """Return the Program of the solver under test, on the case's engine and dtype.

        It is cached as in `build`, whose errors pass through. choices: Further options;
        a dtype overrides the case's, an engine raises TypeError.
        """
        if self.dtype != "float64":
            choices = {"dtype": self.dtype, **choices}
        return self.build(self.solver, engine=self.engine, **choices)

    def other(self, name: str, **choices: Any) -> Program:
        """Return the Program of another shipped solver, for comparison.

        It is cached as in `build`. The default engine is graph: for some calls it takes
        less time than compiling. The default dtype is float64, also of a case with
        float32.

        Args:
            name: Name of a solver, or of a problem for its default solver.
            choices: Options of build.

        Raises SolverNotFound for an unknown name, and errors of the build.
        """
        return self.build(find(name), **{"engine": "graph", **choices})

    def build(self, solver: Solver, **choices: Any) -> Program:
        """Return the Program of a solver for this system, cached by its options.

        `options` are added to the choices. The choice `engine` is dropped if it is
        "array" or the solver has no algorithm.

        Args:
            solver: Solver.
            choices: Options of its build, which override `options`.

        Raises UnsupportedError and other errors of the build.
        """
        solver = solver.for_model(self.model)
        if choices.get("engine") == "array" or not hasattr(solver, "algorithm"):
            choices.pop("engine", None)
        choices = {**self.options(solver), **choices}
        key = solver, _Identity(self.model), _frozen(choices)
        if key not in self.programs:
            self.programs[key] = solver.build(self.model, **choices)
        return self.programs[key]

    def arguments(self, program: Program) -> list[np.ndarray]:
        """Draw new random inputs of a Program, in the order and shapes of its Ports.

        They are normal numbers, but an input "dt" is 1e-3. Subclasses draw some inputs
        otherwise; a Case draws valid positions and poses.
        """
        return [self._argument(port) for port in program.inputs]

    def _argument(self, port: Port) -> np.ndarray:
        if port.name == "dt":
            return np.array(1e-3)
        return self.rng.normal(size=port.shape)


@dataclass
class Case(SystemCase):
    """One solver on one robot and engine, at one random state.

    Attributes:
        solver, model, engine: Solver under test, its robot and engine.
        rng: Seeded random generator of the states.
        q, qd, qdd: Random positions, (nq,), velocities and accelerations, (nv,), drawn
            when the case is created. Laws of forward dynamics take qdd as joint forces.
        f_ext: Random external forces, (nb, 6).
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
        """Name of the model's last frame, which laws use."""
        return self.model.frame_names[-1]

    def options(self, solver: Solver) -> dict[str, Any]:
        """Return values for a solver's options that have no useful default.

        Only options that the solver accepts are in the result.
        """
        accepted = getattr(solver, "options", {})
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
        return {key: values[key] for key in accepted if key in values}

    def width(self, joint: str) -> int:
        """Return the number of velocity coordinates of a moving joint, or a follower.

        Raises ModelError for an unknown, fixed or locked one.
        """
        return self.model.joint[self.model.body_of_joint(joint)].nv

    def moved(self, t: float) -> np.ndarray:
        """Return the position after a time t [s] at constant velocity qd, (nq,)."""
        return self.model.integrate(self.q, self.qd * t)

    def pose_ref(self) -> np.ndarray:
        """Draw a pose near that of `frame`: position and quaternion x y z w, (7,)."""
        T = self.other("forward_kinematics", frames=[self.frame])(self.q)[0]
        turn = exp3(Vector((0.3 * self.rng.normal(size=3)).tolist()))
        place = T[:3, 3] + 0.1 * self.rng.normal(size=3)
        return np.r_[place, quaternion(T[:3, :3] @ np.array(turn.rows))]

    def _argument(self, port: Port) -> np.ndarray:
        if port.name == "pose_ref":
            return self.pose_ref()
        if port.name == "energy_limit":
            return np.array(0.1)
        near = self.solver.signature.name == "inverse_kinematics"
        if port.kind == "position":
            return self._position(near)
        if port.name == "pose":
            kinematics = self.other("forward_kinematics", frames=[self.frame])
            return np.asarray(kinematics(self._position(near))[0])
        if port.name == "dt" and self.solver.signature.name.startswith("contact_step"):
            return np.array(0.1)  # keeps gap / dt, and so the residuals, small
        return super()._argument(port)

    def _position(self, near: bool) -> np.ndarray:
        """Draw a position; if `near` q, steps of inverse kinematics converge."""
        q, model = self.model.random(self.rng), self.model
        if not near:
            return q
        return np.asarray(model.integrate(self.q, 0.05 * model.difference(self.q, q)))
