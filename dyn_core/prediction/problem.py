"""Problems of optimal control: a robot, costs, a time grid and limits, as data."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dyn_core.errors import ModelError, SettingError, UnsupportedError
from dyn_core.model import Model
from dyn_core.model.coordinates.labels import coordinates_of
from dyn_core.model.loops.loop_constraints import Loop
from dyn_core.prediction.cost import Cost
from dyn_core.problems.prediction import PLAN
from dyn_core.problems.signatures import PASSIVE
from dyn_core.problems.system import System
from dyn_core.sharing import cached_property
from dyn_core.validation import (
    Quantity,
    Switch,
    Whole,
    float_array,
    known_keywords,
    known_name,
    shown,
)

MOST_KNOTS = 100_000  # more are a mistake: a plan keeps several matrices for each
GOALS = ("pose", "posture", "centre_of_mass", "distance")
LIMIT_TOLERANCE = 1e-4  # largest violation of a limit [rad | m | rad/s | m/s]
STEP_OPTIONS = ("engine", *PASSIVE)
_CONTACTS = "a list of (loop of dyn.make_loop, begin, end) with times [s]"


@dataclass(frozen=True)
class CoordinateBounds:
    """Limits of the coordinates of a robot, infinite where there is none.

    Attributes:
        tau_lower, tau_upper: Joint forces, (nv,) [N·m | N].
        q_lower, q_upper: Positions of joints whose nq = nv, (nv,) [rad | m].
        qd: Velocities, both directions, (nv,) [rad/s | m/s].
        place: Index in q of each coordinate of qd, (nv,); -1 for joints with nq != nv.
    """

    tau_lower: np.ndarray
    tau_upper: np.ndarray
    q_lower: np.ndarray
    q_upper: np.ndarray
    qd: np.ndarray
    place: np.ndarray


class Phase(NamedTuple):
    """Knots `first` to `end` - 1 with the same contacts, the loops of `model`."""

    model: Model
    first: int
    end: int


@known_keywords
@dataclass(frozen=True, eq=False)
class ControlProblem(System):
    """A robot, the costs of its motion, a time grid and limits.

        least  sum of the costs,   x[k+1] = step(x[k], tau[k]),   tau within its bounds

    Attributes:
        model: Robot.
        costs: Costs.
        duration: Length of the plan [s].
        knots: Number N of steps, at least 2; a plan has N + 1 states.
        effort_limits: By joint the largest joint force in both directions, or (lower,
            upper) [N·m | N]; None: unlimited. Other joints keep the limits of the
            robot, in which 0 stands for unlimited.
        passive: Names of joints without a drive: their force is zero. Floating joints
            are passive, unless effort_limits names them.
        limits: Whether the robot's limits of position and velocity hold.
        step_options: Build options of the step: joint_friction, joint_springs, engine.
        contacts: Scheduled contacts, (loop, begin, end) with a loop of make_loop and
            times [s]: the loop holds in the steps that begin in begin <= t < end. Its
            first step stops the robot along it without rebound, and moves the robot
            onto it: a foot should be near its place by then.
        name: Name in messages.

    Raises:
        SettingError: A number, cost, target or name is invalid; there are no costs, or
            fewer than two knots.
        ShapeError: A limit is not numeric.
        ModelError: The robot has no link that a cost names.
        TraceError: The function of a custom cost cannot be traced.
    """

    kind: ClassVar[str] = PLAN
    model: Model
    costs: Sequence[Cost]
    duration: float = 1.0
    knots: int = 50
    effort_limits: Mapping[str, Any] = field(default_factory=dict)
    passive: Sequence[str] = ()
    limits: bool = True
    step_options: Mapping[str, Any] = field(default_factory=dict)
    contacts: Sequence[tuple[Loop, float, float]] = ()
    name: str = "plan"

    def __post_init__(self) -> None:
        if not isinstance(self.model, Model) or not self.model.nv:
            self._refuse("model", self.model, "a robot with a joint, as of dyn.load")
        costs = self.costs
        good = isinstance(costs, (list, tuple)) and costs
        if not good or not all(isinstance(x, Cost) for x in costs):
            text = f"plan: costs are {shown(costs)}; valid: a list of one cost or more,"
            raise SettingError(f"{text} such as dyn.cost.effort(1e-3)", "costs")
        object.__setattr__(self, "costs", tuple(costs))
        for name, kind in (
            ("duration", Quantity(0.0, above=True)),
            ("knots", Whole(2, MOST_KNOTS)),
            ("limits", Switch()),
        ):
            try:
                value = kind.read(f"plan: {name}", getattr(self, name))
            except ModelError as error:
                raise SettingError(str(error), name) from error
            object.__setattr__(self, name, value)
        names = self.passive
        if isinstance(names, str) or not isinstance(names, Collection):
            self._refuse("passive", self.passive, "a list of names of joints")
        for name, valid in (
            ("effort_limits", "limits by name of the joint, such as {'joint2': 35.0}"),
            ("step_options", "values by name of the option"),
        ):
            if not isinstance(getattr(self, name), Mapping):
                self._refuse(name, getattr(self, name), valid)
        for option in self.step_options:
            if option not in STEP_OPTIONS:
                self._refuse("step_options", option, ", ".join(STEP_OPTIONS))
        for name in self.passive:
            if name in self.effort_limits:
                text = f"plan: joint {shown(name)} is passive and has effort_limits"
                raise SettingError(f"{text}; valid: one of the two", "passive")
        if not isinstance(self.contacts, (list, tuple)):
            self._refuse("contacts", self.contacts, _CONTACTS)
        _ = self.bounds, self.phases, self.settings({})

    def _refuse(self, setting: str, value: Any, valid: str) -> None:
        """Raise a SettingError: the value of a setting is not what `valid` says."""
        text = f"plan: {setting} is {shown(value)}; valid: {valid}"
        raise SettingError(text, setting)

    def __getstate__(self) -> dict[str, Any]:
        return {k: x for k, x in self.__dict__.items() if k != "planners"}

    @property
    def dt(self) -> float:
        """Length of a step [s]."""
        return self.duration / self.knots

    @property
    def sizes(self) -> dict[str, int]:
        """Named sizes of Ports: nq, nv, nb, nx (2 nv), knots (N) and states (N + 1)."""
        more = {"knots": self.knots, "states": self.knots + 1, "nx": 2 * self.model.nv}
        return {**self.model.sizes, **more}

    @cached_property
    def planners(self) -> dict[Any, Any]:
        """What solvers have prepared for this problem.

        The key is (solver, sorted pairs of option and value). Empty at first;
        PlanSolver.prepared adds to it. It is not pickled.
        """
        return {}

    @cached_property
    def running(self) -> tuple[Cost, ...]:
        """Costs that count at the knots, in the order of `costs`."""
        return tuple(cost for cost in self.costs if cost.runs)

    @cached_property
    def ending(self) -> tuple[Cost, ...]:
        """Costs that count at the last state, in the order of `costs`."""
        return tuple(cost for cost in self.costs if cost.ends)

    @cached_property
    def goals(self) -> tuple[tuple[Cost, slice, slice], ...]:
        """Costs of the end that have a place as their target; computed once.

        They are poses, postures, centres of mass and distances. Each is (cost, its
        weights, its target); the slices are those of end costs in `settings`.
        """
        return tuple(
            (cost, slice(target.start - cost.size(self.model), target.start), target)
            for cost, _, target in self._places
            if cost.ends and cost.kind in GOALS
        )

    @cached_property
    def _places(self) -> tuple[tuple[Cost, slice, slice], ...]:
        """Each cost, and where `settings` has its target: at the knots, at the end.

        A slice counts only where the cost runs or ends.
        """
        places, knot, end = [], 0, 0
        for cost in self.costs:
            size, count = cost.size(self.model), cost.target_size(self.model)
            at_knots = slice(knot + size, knot + size + count)
            at_end = slice(end + size, end + size + count)
            places.append((cost, at_knots, at_end))
            knot = at_knots.stop if cost.runs else knot
            end = at_end.stop if cost.ends else end
        return tuple(places)

    @cached_property
    def bounds(self) -> CoordinateBounds:
        """Limits of all coordinates, in the order of qd, (nv,) each; computed once.

        They are tau_lower and tau_upper, q_lower and q_upper, qd in both directions,
        infinite where there is none; and `place`, the index in q of each coordinate, -1
        for joints with quaternions.

        Joint forces are zero for passive and floating joints that effort_limits does
        not name. Positions and velocities are unlimited without `limits`, and for
        joints with quaternions; a robot's velocity limit of 0 is none.

        Raises:
            SettingError: A joint or a limit is invalid.
            ShapeError: A limit is not numeric.
        """
        model = self.model
        free = np.full(model.nv, np.inf)
        upper = np.where(model.effort_limit > 0, model.effort_limit, np.inf)
        lower, place = -upper, np.full(model.nv, -1)
        passive = [self._joint("passive", name) for name in self.passive]
        for name in model.joint_names:
            part, joint = model.v_slice(name), model.joint[model.body_of_joint(name)]
            if joint.nq == joint.nv:
                start = model.q_slice(name).start
                place[part] = np.arange(start, start + joint.nv)
            if name in passive or joint.kind == "floating":
                lower[part] = upper[part] = 0.0
        for name, limit in self.effort_limits.items():
            part = model.v_slice(self._joint("effort_limits", name))
            lower[part], upper[part] = _range(name, limit)
        on = self.limits & (place >= 0)
        return CoordinateBounds(
            lower,
            upper,
            np.where(on, model.lower, -free),
            np.where(on, model.upper, free),
            np.where(on & (model.velocity_limit > 0), model.velocity_limit, free),
            place,
        )

    @cached_property
    def phases(self) -> tuple[Phase, ...]:
        """Runs of knots with the same contacts, one after another; computed once.

        Each is (robot with their loops, first knot, the first knot behind). They cover
        all knots; without contacts there is one phase.

        Raises:
            SettingError: A contact is no loop with two times in ascending order, holds
                at no knot, or its loop does not fit the robot.
        """
        spans = [self._span(contact) for contact in self.contacts]
        edges = {0, self.knots, *(k for _, *ends in spans for k in ends)}
        borders, phases = sorted(edges), []
        robots: dict[Any, Model] = {(): self.model}
        for first, end in pairwise(borders):
            loops = [loop for loop, begin, last in spans if begin <= first < last]
            key = tuple(map(id, loops))
            if key not in robots:
                try:
                    robots[key] = self.model.with_loops(*loops)
                except ModelError as error:
                    raise SettingError(
                        f"plan: contacts: {error}", "contacts"
                    ) from error
            phases.append(Phase(robots[key], first, end))
        return tuple(phases)

    def _span(self, contact: Any) -> tuple[Any, int, int]:
        """Return the loop of a contact, its first knot and the first one behind it.

        A contact is (loop, begin, end) [s]; its times are clipped to those of the plan.
        A knot at `begin` belongs to it, one at `end` does not; at least one must.
        """
        row = contact if isinstance(contact, (list, tuple)) else ()
        if len(row) != 3 or not isinstance(row[0], Loop):
            self._refuse("contacts", contact, _CONTACTS)
        try:
            times = [Quantity().read("plan: contacts: time", t) for t in row[1:]]
        except ModelError as error:
            raise SettingError(str(error), "contacts") from error
        begin, end = np.clip(times, 0.0, self.duration)
        # A knot at the time itself belongs to what begins there, whatever the rounding.
        first, last = (int(np.ceil(t / self.dt - 1e-9)) for t in (begin, end))
        if not first < last:
            valid = f"times that contain a knot, begin < end, 0 to {self.duration:g} s"
            self._refuse("contacts", f"{row[0].name}: {row[1]} to {row[2]} s", valid)
        return row[0], first, last

    def _joint(self, setting: str, name: str) -> str:
        """Return the name of an independent joint; SettingError for another."""
        try:
            return known_name(f"plan: {setting}", "joint", name, self.model.joint_names)
        except ModelError as error:
            raise SettingError(str(error), setting) from error

    def settings(self, targets: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
        """Return weights and targets of running and end costs, (knots, n) and (m,).

        A row has for each of these costs its weights, then its target, in the order of
        `costs`: n numbers at a knot, m at the end. The weights at the knots are times
        dt.

        Args:
            targets: By name of a cost its target, in place of its own.

        Raises:
            SettingError: Targets have no names, a name is unknown or of several costs,
                or a weight or target is invalid.
            ModelError: The robot has no link that a cost names.
        """
        if not isinstance(targets, Mapping):
            self._refuse("targets", targets, "targets by name of their costs")
        running, ending = (table.copy() for table in self._own_settings)
        names = [cost.name for cost in self.costs]
        for name, target in targets.items():
            if names.count(name) != 1:
                valid = ", ".join(sorted({x for x in names if names.count(x) == 1}))
                text = f"plan: target of {shown(name)}"
                if (count := names.count(name)) > 1:
                    text = f"plan: {count} costs are called {shown(name)}: give each"
                    text += " its own name="
                text += f"; valid: {valid or 'none'}"
                raise SettingError(text, "targets")
            cost, at_knots, at_end = self._places[names.index(name)]
            rows = cost.targets(self.model, self.knots + 1, target)
            if cost.runs:
                running[:, at_knots] = rows if rows.ndim == 1 else rows[:-1]
            if cost.ends:
                ending[at_end] = rows if rows.ndim == 1 else rows[-1]
        return running, ending

    @cached_property
    def _own_settings(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights and targets of the costs themselves, as of `settings`."""
        running, ending = [np.zeros((self.knots, 0))], [np.zeros(0)]
        for cost in self.costs:
            table = cost.settings(self.model, self.knots + 1)
            if cost.ends:
                ending.append(table[-1])
            if cost.runs:
                weights = np.ones(table.shape[1])
                weights[: cost.size(self.model)] = self.dt
                running.append(table[:-1] * weights)
        return np.hstack(running), np.hstack(ending)

    def coordinate(self, k: int) -> str:
        """Return the name of the velocity coordinate with index k, for messages."""
        return coordinates_of(self.model).velocities[k]

    def parameter(self, path: str) -> list[Any]:
        """Return the numbers of a parameter path of the robot, flat.

        Raises ModelError for an unknown path.
        """
        return self.model.parameter(path)

    def unit(self, path: str) -> str:
        """Return the SI unit of a parameter path; raise ModelError if it is unknown."""
        return self.model.unit(path)

    def with_values(self, values: Mapping[str, Sequence[Any]]) -> ControlProblem:
        """Return self for an empty mapping; raise a ModelError for any path."""
        for path in values:
            raise ModelError(
                f"a plan has no parameter '{path}'; valid: none, the robot has them"
            )
        return self


def require_tree(model: Model) -> None:
    """Raise an UnsupportedError for closed loops, prescribed joints, or no joint."""
    if not model.nv:
        text = f"robot '{model.name}' has no joint; valid: a robot with joints"
        raise UnsupportedError(text)
    if model.loops or model.driven:
        what = "closed loops" if model.loops else "prescribed joints"
        raise UnsupportedError(
            f"robot '{model.name}' has {what}; valid: a robot without them"
        )


def _range(name: str, limit: Any) -> tuple[float, float]:
    """Return (lower, upper) of a joint force from a user's limit [N·m | N].

    A number x means (-x, x), so 0 that no force acts; None means no limit. A pair needs
    lower <= upper with a finite force between.
    """
    if limit is None:
        return -np.inf, np.inf
    array = float_array(f"effort_limits.{name}", limit, "a number, or (lower, upper)")
    pair = np.array([-array, array]) if array.ndim == 0 else array
    good = pair.shape == (2,) and pair[0] <= pair[1]  # false for NaN
    if not good or pair[0] == np.inf or pair[1] == -np.inf:
        text = f"plan: effort_limits.{name} is {shown(limit)}; valid: a number, 0 or"
        raise SettingError(f"{text} more, or (lower, upper)", "effort_limits")
    return float(pair[0]), float(pair[1])
