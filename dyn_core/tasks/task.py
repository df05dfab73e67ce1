"""Tasks of a planar system: actions, observation, reward, and drawn parameters."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from dyn_core.errors import ModelError, warn
from dyn_core.numbers.scalar import maximum, minimum
from dyn_core.planar.chain.states import from_angles
from dyn_core.planar.objects.objects import Bounds, PlanarObject
from dyn_core.problems import Port, Signature
from dyn_core.problems.system import System
from dyn_core.solving.solver import TracedSolver
from dyn_core.spatial import Vector
from dyn_core.validation import Whole, finite_array, known_name, refuse

RUNS_WHILE_TRACED = "wings"  # a mark, see engines/llvm/cached/fingerprint.py
OPEN = (-math.inf, math.inf)
UNIT = (-1.0, 1.0)
LONG = 0.5  # a longer step is warned of [s]


def checked_limits(task: Any) -> np.ndarray:
    """Check times and bounds of a task; return its actions' minima, maxima, (2, na)."""
    dt: float = task.dt
    bounds = task.action_bounds
    if not (isinstance(dt, Real) and math.isfinite(dt) and dt > 0):
        message = f"{task.name}: dt must be finite and > 0, got {dt!r}"
        raise ModelError(message, "dt")
    for key in ("substeps", "max_steps"):
        value = getattr(task, key)
        if not Whole(1).takes(value):
            message = f"{task.name}: {key} must be a whole number >= 1, got {value!r}"
            raise ModelError(message, key)
    if dt > LONG:
        warn(
            f"{task.name}: steps of {dt:g} s are long; valid: dt in seconds, such as"
            " 0.002; a step of the task is dt times substeps"
        )
    try:
        low, high = limits = np.array(bounds, float).reshape(len(bounds), 2).T
        good = bool(limits.size and np.isfinite(limits).all() and (low < high).all())
    except (TypeError, ValueError, OverflowError):
        good = False
    if not good:
        message = f"{task.name}: action_bounds must be finite pairs (least, most)"
        raise ModelError(f"{message}, got {bounds}", "action_bounds")
    return limits


@dataclass(frozen=True, eq=False)
class Task(System):
    """A control task of a planar system: its parameters and its algorithms.

    A step of a task lasts `interval` = dt times substeps, with a constant action:

        a = saturated(action)
        after = settle(state after `interval` with inputs control(a))
        observation = observe(after)
        reward = reward(state, a, after),   end = over(after)

    The methods control, observe, reward, over and settle may be traced: their arguments
    are then symbols in place of numbers, without a batch axis.

    Class attributes:
        schemes: Supported integrators. ObjectTask: euler, semi_implicit, rk4;
            ChainTask: fixed.

    Attributes:
        name: Name of the task.
        system: Planar system that moves: a PlanarObject or a ChainModel. Parameter
            paths of the task are those of the system.
        dt: Step of the integrator [s].
        substeps: Steps of the integrator within one step of the task.
        scheme: Integrator, one of `schemes`.
        max_steps: Steps of the task after which an environment truncates an episode.
        action_bounds: Minimum and maximum of each entry of the action [N·m | N | V];
            actions beyond them are clipped.
        choices: Actions of a discrete action space, na numbers each; None: any action
            within the bounds.

    Raises:
        ModelError: dt is not finite or not > 0, substeps or max_steps is no integer >=
            1, the scheme is not supported, there are no bounds or they are not finite
            with minimum < maximum, or a choice is not na finite numbers within them.

    Source: WAW-15.5.
    """

    kind = "task"
    schemes: ClassVar[tuple[str, ...]] = ()

    name: str
    system: Any
    dt: float
    substeps: int
    scheme: str
    max_steps: int
    action_bounds: Bounds
    choices: Bounds | tuple[tuple[float, ...], ...] | None = None

    def __post_init__(self) -> None:
        low, high = checked_limits(self)
        if self.scheme not in self.schemes:
            valid = ", ".join(self.schemes)
            raise ModelError(
                f"{self.name}: scheme {self.scheme!r}; valid: {valid}", "scheme"
            )
        choices = () if self.choices is None else self.choices
        for choice in choices if np.iterable(choices) else [choices]:
            row = np.array(finite_array(f"{self.name}: choice", choice))
            if len(row) != self.na or any(row < low) or any(row > high):
                raise ModelError(
                    f"{self.name}: choice {choice} is not within action_bounds"
                    f" {self.action_bounds}",
                    "choices",
                )

    @property
    @abstractmethod
    def ns(self) -> int:
        """Number of entries of the state, ns."""

    @property
    @abstractmethod
    def observation_bounds(self) -> Bounds:
        """A pair (minimum, maximum) for each entry of the observation, in its order.

        Infinite ones mean that it is unbounded.
        """

    def control(self, action: Any) -> Sequence[Any]:
        """Return the inputs of the system for an action, constant during the step.

        By default they are the entries of the action.

        Args:
            action: Clipped action, na entries.

        Returns:
            One number for each effort of a planar object [N | N·m | V], or for each
            joint of a chain [N·m].
        """
        return list(action)

    @abstractmethod
    def observe(self, state: Any) -> Sequence[Any]:
        """Return the observation of a state, entries as in `observation_bounds`.

        Args:
            state: State, ns entries.
        """

    @abstractmethod
    def reward(self, before: Any, action: Any, after: Any) -> Any:
        """Return the reward of a step, one number.

        Args:
            before, after: States before and after the step, (ns,); `after` is a result
                of `settle`.
            action: Clipped action, (na,).
        """

    def over(self, after: Any) -> Any:
        """Return 1 if the state after a step ends the episode, else 0; by default 0.

        Args:
            after: State after the step, (ns,), a result of `settle`.
        """
        return 0.0

    def settle(self, state: Any) -> Any:
        """Return the state that replaces the integrated state at the end of a step.

        It is evaluated once, after all substeps. By default the state is unchanged;
        classic tasks clip rates and wrap angles here.

        Args:
            state: State after the last substep, (ns,).
        """
        return state

    @abstractmethod
    def start(self, rng: np.random.Generator, rows: int) -> np.ndarray:
        """Draw the initial states of `rows` episodes from `rng`, (rows, ns).

        `rng` is advanced.
        """

    @abstractmethod
    def points(self, state: np.ndarray) -> np.ndarray:
        """Return x, y of the ends of k - 1 rods or links, (k, 2) [m], from joint 0 on.

        Args:
            state: State, (ns,).
        """

    @property
    @abstractmethod
    def entries(self) -> tuple[str, ...]:
        """Names of the ns entries of the state, in their order."""

    @property
    def cart(self) -> bool:
        """Whether the first of the points is a cart, for pictures; by default False."""
        return False

    def view(self, points: np.ndarray) -> tuple[float, float, float, float]:
        """Return a picture's limits: minimum and maximum x, then y [m].

        They are a square about the first point; half its side is 1.2 times the length
        of the polyline through all points.

        Args:
            points: Result of `points`, (k, 2) [m].
        """
        reach = 1.2 * np.linalg.norm(np.diff(points, axis=0), axis=1).sum()
        x, y = points[0]
        return (x - reach, x + reach, y - reach, y + reach)

    @property
    def interval(self) -> float:
        """Duration of a step of the task [s]."""
        return self.dt * self.substeps

    @property
    def na(self) -> int:
        """Number of entries of the action."""
        return len(self.action_bounds)

    @property
    def no(self) -> int:
        """Number of entries of the observation."""
        return len(self.observation_bounds)

    @property
    def sizes(self) -> dict[str, int]:
        """Named sizes of Ports: ns of states, na of actions, no of observations."""
        return {"ns": self.ns, "na": self.na, "no": self.no}

    def parameter(self, path: str) -> list[Any]:
        """Return the numbers of a parameter of the system; ModelError: unknown path."""
        return self.system.parameter(path)

    def unit(self, path: str) -> str:
        """Return the unit of a parameter of the system; ModelError: unknown path."""
        return self.system.unit(path)

    def with_values(self, values: Mapping[str, Sequence[Any]]) -> Task:
        """Return a copy of the task with parameters of its system replaced.

        `values` has numbers by parameter path. Raises ModelError for an unknown path or
        another number of values.
        """
        return replace(self, system=self.system.with_values(values))

    def changed(self, **changes: Any) -> Task:
        """Return a copy of the task with attributes (dt, max_steps, ...) replaced.

        Args:
            changes: New values by name of the attribute; they are checked.

        Raises:
            ModelError: An unknown attribute, or an invalid value.
        """
        valid = [part.name for part in fields(self)]
        for key in changes:
            known_name(f"task '{self.name}'", "attribute", key, valid)
        return replace(self, **changes)

    def saturated(self, action: Any) -> Vector:
        """Return an action of na entries with each entry clipped to its bounds.

        NaN stays NaN. Raises ValueError for another number of entries.
        """
        return Vector(
            minimum(high, maximum(a, low))  # in this order NaN stays NaN
            for a, (low, high) in zip(action, self.action_bounds, strict=True)
        )

    def cost(self, action: Any) -> Any:
        """Return sum_i (action_i / bound_i)² of an action of na entries.

        bound_i is the larger absolute value of the two bounds of entry i. Raises
        ValueError for another number of entries.
        """
        squares = 0.0
        for a, (low, high) in zip(action, self.action_bounds, strict=True):
            part = a * (1.0 / max(-low, high))
            squares = squares + part * part
        return squares


@dataclass(frozen=True, eq=False)
class ObjectTask(Task):
    """A task of a planar object; its state is (q, qd), 2 nq numbers [rad | m, /s].

    Attributes:
        system: Planar object.
        home: Mean of the initial states, 2 nq.
        spread: Half-widths of the uniform distribution of initial states, 2 nq.

    Raises:
        ModelError: An attribute is invalid as in Task, `system` is no PlanarObject,
            `home` or `spread` has not 2 nq finite numbers, or the actions do not give
            one number for each effort of `system`.
    """

    schemes = ("euler", "semi_implicit", "rk4")

    system: PlanarObject
    home: tuple[float, ...] = ()
    spread: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.system, PlanarObject):
            refuse(f"{self.name}: system", self.system, "a PlanarObject")
        for key in ("home", "spread"):
            row = finite_array(f"{self.name}: {key}", getattr(self, key))
            if len(row) != self.ns:
                raise ModelError(f"{self.name}: {key} must have {self.ns} numbers", key)
        inputs, nu = len(self.control([0.0] * self.na)), self.system.nu
        if inputs != nu:
            raise ModelError(
                f"{self.name}: action_bounds: {self.na} actions are {inputs} inputs of"
                f" '{self.system.name}'; valid: as many actions as give {nu}",
                "action_bounds",
            )

    @property
    def ns(self) -> int:
        """Number of entries of the state: 2 nq."""
        return 2 * self.system.nq

    @property
    def entries(self) -> tuple[str, ...]:
        """Names of the entries of the state: the coordinates, then their rates.

        The rate of coordinate NAME is called NAME_rate.
        """
        names = self.system.coordinates
        return (*names, *(f"{name}_rate" for name in names))

    @property
    def cart(self) -> bool:
        """Whether the first point is a cart: the first coordinate is called x."""
        return self.system.coordinates[0] == "x"

    def parts(self, state: Any) -> tuple[Any, Any]:
        """Return (q, qd), the two halves of a state of 2 nq entries."""
        return state[: self.system.nq], state[self.system.nq :]

    def start(self, rng: np.random.Generator, rows: int) -> np.ndarray:
        """Draw initial states from rng, (rows, ns), uniform in home ± spread."""
        drawn = rng.uniform(-1.0, 1.0, (rows, self.ns))
        return np.array(self.home) + np.array(self.spread) * drawn

    def points(self, state: np.ndarray) -> np.ndarray:
        """Return x, y of the ends of k - 1 rods, (k, 2) [m], from joint 0 on.

        Raises:
            ModelError: The object has no equivalent mechanism of rods.
            ShapeError: The state has another number of entries.
        """
        q, qd = self.parts(np.asarray(state, float))
        angles = self.system.chain_state(list(q), list(qd))
        return from_angles(self.system.to_chain(), *angles).x


def task_observation(model, state):  # type: ignore[no-untyped-def]
    """Return the observation of a state of a task.

        observation = model.observe(state)

    Args:
        model: Task.
        state: Its state, ns [SI].

    Returns:
        Observation, no [SI].

    Source: WAW-15.5.
    """
    return Vector(model.observe(state))


# Environments call it after a reset; a step returns the observation itself.
OBSERVATION = TracedSolver(
    "task_observation",
    Signature(
        "task_observation",
        (Port("state", ("ns",), "SI", meaning="state of the task"),),
        (Port("observation", ("no",), "SI", meaning="what the agent observes"),),
        system="task",
        meaning="what the agent observes after a reset",
    ),
    task_observation,
    by_joint=False,
)
