"""Tasks for robots in three dimensions: data, and plain functions over arrays of rows.

Every function takes and returns arrays with n rows, one for each environment, so that
the same code serves one environment and many; NumPy is all that is needed to write one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from dyn_core.errors import ModelError, ShapeError
from dyn_core.model import Model
from dyn_core.model.parameter_paths import kind_of
from dyn_core.sharing import cached_property
from dyn_core.solving.registry import solver
from dyn_core.solving.solver import check_function
from dyn_core.tasks.draws import Draw, draws_by_path
from dyn_core.tasks.robot_steps import STEPS
from dyn_core.tasks.task import checked_limits
from dyn_core.validation import known_keywords, known_name, shown

Pairs: TypeAlias = tuple[tuple[float, float], ...]
Start: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]  # q, qd, memory


class RobotRows(NamedTuple):
    """Arguments of the functions of a RobotTask, one row for each environment.

    Attributes:
        q, qd: State of the robot, (n, nq) and (n, nv) [SI]. A floating base has in q
            its position and quaternion (x, y, z, w), in qd its angular and linear
            velocity in its own axes.
        poses: Poses of the task's links in the world, (n, links, 4, 4) [m], in the
            order of RobotTask.links.
        memory: Numbers that `initial` drew at the start of the episode, (n, k), such as
            goals; constant in the episode.
        action: The last action, clipped, (n, na); zeros at the start.
        time: Time since the start of the episode, (n,) [s].
    """

    q: np.ndarray
    qd: np.ndarray
    poses: np.ndarray
    memory: np.ndarray
    action: np.ndarray
    time: np.ndarray

    def place(self, link: int) -> np.ndarray:
        """Return the world position of a link's origin, (n, 3) [m], a view of `poses`.

        Args:
            link: Index of the link in RobotTask.links; -1: the last one.
        """
        return self.poses[:, link, :3, 3]

    def axes(self, link: int) -> np.ndarray:
        """Return the rotations from a link's axes to the world's, (n, 3, 3), a view.

        Args:
            link: Index of the link in RobotTask.links.
        """
        return self.poses[:, link, :3, :3]


OPTIONS = ("solver_options", "erp", "push_out_speed", "restitution_threshold")


def never(after: RobotRows) -> np.ndarray:
    """Return False for each row: no state ends an episode, (n,)."""
    return np.zeros(len(after.q), bool)


@known_keywords
@dataclass(frozen=True, eq=False)
class RobotTask:
    """A control task of a robot: its world, actions, observation and reward.

    A step of a task lasts `interval` = dt times substeps. The action is constant in it;
    `control` and `outside` are evaluated in each substep, with q, qd and time of the
    substep but poses and last action of the step's beginning. `changed` returns a task
    with other functions or numbers.

    Attributes:
        name: Name of the task.
        model: Robot.
        initial: Function of a generator and a number of rows; returns q (rows, nq), qd
            (rows, nv) and memory (rows, k).
        control: Function of RobotRows and actions (n, na) within their bounds; returns
            joint forces (n, nv) [N·m | N]. See JointTargets and JointTorques.
        observe: Function of RobotRows; returns observations, (n, no).
        reward: Function of RobotRows before the step, clipped actions and RobotRows
            after it; returns (n,).
        action_bounds: Minimum and maximum of each entry of the action.
        over: Function of the RobotRows after a step; returns for each row whether the
            episode ends, (n,).
        outside: Function of RobotRows; returns generalized forces added to those of
            `control`, (n, nv); the entries of a floating base are moment and force in
            its axes; None: none.
        values: Parameters that differ by row: by parameter path (gravity, LINK.payload,
            *.mass, ...) a Uniform, UniformFactor or PayloadMass, or a function of a
            generator and a number of rows, called anew for each episode; it returns
            (rows, entries). `*` stands for all moving links or joints.
        links: Names of the links in RobotRows.poses; pictures show them.
        stepping: free: no contacts; floor: contacts of shapes with half-spaces; bodies:
            contacts of all shapes with one another, joint limits and loops. Limits of
            joints act with bodies only.
        world: For floor, a tuple of HalfSpace; for bodies, a World or a mapping of its
            fields; None: a floor. With free it must be None.
        options: Options of the contact step of floor: solver_options, erp,
            push_out_speed, restitution_threshold; empty for other steppings.
        dt: Step of the integrator [s].
        substeps: Steps of the integrator within one step of the task.
        max_steps: Steps of the task after which an environment truncates an episode.

    Raises:
        ModelError: An attribute is invalid, or a link is unknown. `world` is not
            checked by the constructor.
        ShapeError: Raised when an environment is made, not by the constructor: a
            function returns an array of another shape.
        SettingError: The constructor got an unknown keyword, or no function where one
            is needed.
    """

    name: str
    model: Model
    initial: Callable[[np.random.Generator, int], Start]
    control: Callable[[RobotRows, np.ndarray], np.ndarray]
    observe: Callable[[RobotRows], np.ndarray]
    reward: Callable[[RobotRows, np.ndarray, RobotRows], np.ndarray]
    action_bounds: Pairs
    over: Callable[[RobotRows], np.ndarray] = never
    outside: Callable[[RobotRows], np.ndarray] | None = None
    values: Mapping[str, Draw] = field(default_factory=dict)
    links: tuple[str, ...] = ()
    stepping: str = "free"
    world: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)
    dt: float = 0.002
    substeps: int = 10
    max_steps: int = 500

    choices = None  # actions are boxes

    def __post_init__(self) -> None:
        if not isinstance(self.model, Model):
            message = f"{self.name}: model is {shown(self.model)}; valid: a Model"
            raise ModelError(f"{message}, such as dyn.load('arm7')", "model")
        checked_limits(self)
        outside = ("outside",) if self.outside is not None else ()
        for part in ("initial", "control", "observe", "reward", "over", *outside):
            check_function(f"{self.name}: {part}", getattr(self, part), "a function")
        if self.stepping not in STEPS:
            message = f"{self.name}: stepping {self.stepping!r}; valid:"
            raise ModelError(f"{message} {', '.join(STEPS)}", "stepping")
        if self.values and not STEPS[self.stepping].takes_values:
            message = f"{self.name}: values do not act with stepping {self.stepping!r}"
            valid = ", ".join(k for k, step in STEPS.items() if step.takes_values)
            raise ModelError(f"{message}; valid: {valid}", "values")
        if not isinstance(self.values, Mapping):
            message = f"{self.name}: values are {shown(self.values)}; valid: a mapping"
            raise ModelError(f"{message} from parameter path to distribution", "values")
        _ = self.draws  # refuses what is unknown or impossible
        if self.options and self.stepping != "floor":
            message = f"{self.name}: options act with stepping 'floor' only"
            raise ModelError(f"{message}, not {self.stepping!r}", "options")
        for key in self.options:
            if key not in OPTIONS:
                message = f"{self.name}: no option {key!r}; valid: {', '.join(OPTIONS)}"
                raise ModelError(message, key)
        for link in self.links:
            try:
                self.model.frame(link)
            except ModelError as error:
                raise ModelError(
                    f"{self.name}: links of the task: {error}; for another robot write"
                    " a task: docs/environments.md#your-own-task",
                    link,
                ) from error

    @property
    def interval(self) -> float:
        """Duration of a step of the task [s]."""
        return self.dt * self.substeps

    @property
    def na(self) -> int:
        """Number of entries of the action."""
        return len(self.action_bounds)

    @cached_property
    def draws(self) -> dict[str, Draw]:
        """Distribution of each parameter that differs by row, by path without `*`.

        A UniformFactor leaves out parameters that are zero. Raises ModelError for an
        unknown path or an invalid distribution.
        """
        return draws_by_path(self.model, self.values)

    @cached_property
    def value_sizes(self) -> dict[str, int]:
        """Number of entries of each parameter path in `draws`, by path.

        Raises ModelError for an unknown path or an invalid distribution.
        """
        return {path: len(self.model.parameter(path)) for path in self.draws}

    @cached_property
    def _minima(self) -> np.ndarray:
        """Minimum of each number that follows the time in a flat state; -inf without.

        They are in the order of `draws`, each path's once for each of its entries.
        """
        minima = [kind_of(self.model, path).minimum for path in self.draws]
        return np.repeat(minima, list(self.value_sizes.values()))

    @cached_property
    def layout(self) -> dict[str, slice]:
        """Slices of the flat state by name, in this order.

        q, qd, impulses (contact impulses of the previous step), memory, action (the
        last one), time, and one slice for each path in `draws`. The first access calls
        `initial` once, whose errors pass through.

        Raises:
            ShapeError, TypeError, ValueError: `initial` returns something else than
                `drawn` accepts.
            UnsupportedError: With stepping floor, a moving body's shape cannot touch
                half-spaces.
        """
        sample = self.drawn(np.random.default_rng(0), 1)
        step = STEPS[self.stepping]
        sizes = {
            "q": self.model.nq,
            "qd": self.model.nv,
            "impulses": step.impulses(self.model, self.world),
            "memory": sample[2].shape[1],
            "action": self.na,
            "time": 1,
            **self.value_sizes,
        }
        stops = np.cumsum(list(sizes.values())).tolist()
        return {
            key: slice(stop - size, stop)
            for (key, size), stop in zip(sizes.items(), stops, strict=True)
        }

    @property
    def ns(self) -> int:
        """Number of entries of the flat state, whose parts are in `layout`.

        The first access calls `initial` once. Errors are those of `layout`:
        ShapeError, TypeError or ValueError if `initial` returns something else than
        `drawn` accepts, UnsupportedError if with stepping floor a moving body's shape
        cannot touch half-spaces.
        """
        return max(part.stop for part in self.layout.values())

    @property
    def entries(self) -> tuple[str, ...]:
        """Names of the entries of the flat state, in its order: q[0], ..., time[0], ...

        Raises ShapeError, TypeError or ValueError if `initial` returns something else
        than `drawn` accepts, UnsupportedError if with stepping floor a moving
        body's shape cannot touch half-spaces.
        """
        return tuple(
            f"{key}[{k}]"
            for key, part in self.layout.items()
            for k in range(part.stop - part.start)
        )

    @cached_property
    def no(self) -> int:
        """Number of entries of the observation.

        The first access calls `observe` with two initial rows. Raises ShapeError if its
        result is not (2, no), or if `initial` or `values` return other shapes;
        ModelError if `observe` raises TypeError, ValueError, OverflowError,
        AttributeError or LookupError, or if `values` draw an invalid number;
        UnsupportedError if with stepping floor a shape cannot touch half-spaces. Other
        errors of the functions pass through.
        """
        rows = self.rows(self.start(np.random.default_rng(0), 2))
        with self._named("observe", "two rows"):
            seen = np.asarray(self.observe(rows))
        if seen.ndim != 2 or len(seen) != 2:
            message = f"{self.name}: the result of observe"
            raise ShapeError(message, "shape (n, no)", f"shape {seen.shape} for n = 2")
        return int(seen.shape[1])

    @property
    def observation_bounds(self) -> Pairs:
        """The pair (-inf, inf) for each entry of the observation.

        The first access calls `observe` with two initial rows to count them, with the
        errors of `no`.
        """
        return ((-math.inf, math.inf),) * self.no

    def drawn(self, rng: np.random.Generator, rows: int) -> Start:
        """Return q (rows, nq), qd (rows, nv) and memory (rows, k) from `initial`.

        They are float64 arrays; finiteness is not checked. `rng` is advanced. Errors of
        `initial` pass through.

        Raises:
            ShapeError: `initial` does not return a tuple or list of three arrays, or an
                array has another shape.
            TypeError, ValueError: A part is no array of numbers, or is ragged.
        """
        drawn = self.initial(rng, rows)
        if not isinstance(drawn, (tuple, list)) or len(drawn) != 3:
            what = f"{self.name}: the result of initial"
            got = f"{len(drawn)} parts" if isinstance(drawn, tuple) else shown(drawn)
            raise ShapeError(what, "three arrays: q, qd, memory, (n, 0) for none", got)
        q, qd, memory = (np.asarray(x, float) for x in drawn)
        sizes = {"q": self.model.nq, "qd": self.model.nv}
        for (key, size), array in zip(sizes.items(), (q, qd), strict=True):
            if array.shape != (rows, size):
                what = f"{self.name}: {key} of initial"
                raise ShapeError(what, f"shape ({rows}, {size})", f"{array.shape}")
        if memory.ndim != 2 or len(memory) != rows:
            what = f"{self.name}: memory of initial"
            raise ShapeError(what, f"shape ({rows}, k)", f"{memory.shape}")
        return q, qd, memory

    def start(self, rng: np.random.Generator, rows: int) -> np.ndarray:
        """Draw initial flat states, (rows, ns).

        q, qd and memory come from `initial`, parameters from `values`; impulses, action
        and time are zero. These functions are called for one row at a time: first
        `initial`, then `values` in the order of `draws`. Their errors pass through,
        except as below. `rng` is advanced.

        Raises:
            ModelError: `values` draw a number that is not finite or below the minimum
                of its parameter, or have a function that raises TypeError.
            ShapeError: `values` draw another number of entries, or `initial` returns
                arrays of other shapes.
            UnsupportedError: With stepping floor, a moving body's shape cannot touch
                half-spaces.
        """
        part, state = self.layout, np.zeros((rows, self.ns))
        for row in state:
            one = self.drawn(rng, 1)
            for key, array in zip(("q", "qd", "memory"), one, strict=True):
                row[part[key]] = array[0]
            for path, draw in self.draws.items():
                try:
                    numbers, size = np.ravel(draw(rng, 1)), self.value_sizes[path]
                except TypeError as error:
                    message = f"{self.name}: values of '{path}': {error}; valid: a"
                    raise ModelError(f"{message} function (rng, n)", path) from error
                if len(numbers) != size:
                    what = f"{self.name}: values of '{path}'"
                    wanted = f"{size} numbers a row"
                    if path.endswith(".payload"):
                        wanted += ", as of PayloadMass(low, high)"
                    raise ShapeError(what, wanted, f"{len(numbers)}")
                row[part[path]] = numbers
        numbers = state[:, part["time"].stop :]
        wrong = ~(np.isfinite(numbers) & (numbers >= self._minima))
        for row, k in np.argwhere(wrong)[:1]:
            path = np.repeat(list(self.draws), list(self.value_sizes.values()))[k]
            message = f"{self.name}: values draw {numbers[row, k]:g} for {path}; valid:"
            raise ModelError(f"{message} finite numbers >= {self._minima[k]:g}", path)
        return state

    def rows(self, state: np.ndarray, poses: np.ndarray | None = None) -> RobotRows:
        """Return flat states as RobotRows, views of `state` except for the poses.

        Args:
            state: Flat states, (n, ns).
            poses: Poses of the links, (n, links, 4, 4); None: they are computed from q.
        """
        part = self.layout
        if poses is None:
            poses = self.place_links(state[:, part["q"]])
        q, qd, memory, action = (
            state[:, part[key]] for key in ("q", "qd", "memory", "action")
        )
        return RobotRows(q, qd, poses, memory, action, state[:, part["time"].start])

    @cached_property
    def _kinematics(self) -> Any:
        options = {"frames": list(self.links)}
        return solver("forward_kinematics").build(self.model, **options)

    def place_links(self, q: np.ndarray) -> np.ndarray:
        """Return the world poses of the task's links, (n, links, 4, 4).

        Without links the result is (n, 0, 4, 4). No error is raised for rows of q
        without a finite result.

        Args:
            q: Positions of the robot, (n, nq).
        """
        if not self.links:
            return np.zeros((len(q), 0, 4, 4))
        return np.asarray(self._kinematics(q, status=True)[0])

    def prepare(self) -> None:
        """Compile the kinematics of the links; check the results of the functions.

        `control`, `reward`, `over` and `outside` are called with two initial rows and
        zero actions. A scalar is refused: it would be that of all rows.

        Raises:
            ModelError: A function raises TypeError, ValueError, OverflowError,
                AttributeError or LookupError (other errors pass), such as for another
                number of actions than action_bounds has, or its result has a None or
                cannot be converted to floats; or `values` draw an invalid number.
            ShapeError: The result of `control` or `outside` is not (2, nv), that of
                `reward` or `over` not (2,), or `initial` or `values` return other
                shapes.
            UnsupportedError: With stepping floor, a moving body's shape cannot touch
                half-spaces.
        """
        if self.links:
            self._kinematics.prepare(batch=True)
        rows = self.rows(self.start(np.random.default_rng(0), 2))
        action, nv = np.zeros((2, self.na)), self.model.nv
        self._check_result("control", (nv,), rows, action)
        self._check_result("reward", (), rows, action, rows)
        self._check_result("over", (), rows)
        if self.outside is not None:
            self._check_result("outside", (nv,), rows)

    def _check_result(self, name: str, row: tuple[int, ...], *arguments: Any) -> None:
        """Call a function of the task for two rows; its result must be (2, *row).

        NaN as a result passes; None, and an error that _named names, is a ModelError.
        """
        inputs = "two rows"
        if len(arguments) > 1:
            inputs += f" and {self.na} actions, as many as action_bounds"
        with self._named(name, inputs):
            result = getattr(self, name)(*arguments)
            numbers = np.asarray(result, float)
            if any(x is None for x in np.array(result, object).ravel()):
                raise TypeError("None is no number")
        if numbers.shape != (2, *row):
            message = f"{self.name}: the result of {name}"
            wanted = f"shape (n, {row[0]})" if row else "shape (n,)"
            raise ShapeError(message, wanted, f"shape {numbers.shape} for n = 2")

    @contextmanager
    def _named(self, name: str, inputs: str) -> Iterator[None]:
        """Raise a ModelError for an error of a function of the task inside a block."""
        try:
            yield
        except (TypeError, ValueError, OverflowError, AttributeError, LookupError) as e:
            raise ModelError(
                f"task '{self.name}': {name} of {inputs}: {e}; valid: arithmetic on"
                f" arrays of rows ({', '.join(RobotRows._fields)}), np.where in the"
                " place of if"
            ) from e

    def changed(self, **changes: Any) -> RobotTask:
        """Return a copy of the task with attributes (reward, dt, ...) replaced.

        Args:
            changes: New values by name of the attribute; they are checked as by the
                constructor.

        Raises:
            ModelError: An unknown attribute, or an invalid value.
            SettingError: The new value for a function is a Solver or no function.
        """
        valid = [part.name for part in fields(self)]
        for key in changes:
            known_name(f"task '{self.name}'", "attribute", key, valid)
        return replace(self, **changes)
