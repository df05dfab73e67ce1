"""Plans for users: `plan(model, costs).solve(q, qd)`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dyn_core.errors import (
    NearAttributes,
    NonFiniteError,
    SettingError,
    ShapeError,
    SignatureError,
    StateError,
)
from dyn_core.model import Model
from dyn_core.model.checks.robots import in_degrees, too_fast
from dyn_core.prediction.cost import Cost
from dyn_core.prediction.problem import LIMIT_TOLERANCE, ControlProblem
from dyn_core.prediction.result import PlanGoal, PlanResult, PlanStart
from dyn_core.prediction.solving import PlanSolver
from dyn_core.problems import OPTIMAL_CONTROL
from dyn_core.solving.build_options import check_names
from dyn_core.solving.registry import solver as find
from dyn_core.validation import float_array, one_state, shown, state_array


class Plan(NearAttributes):
    """A problem of optimal control and a solver, for repeated calls.

    Attributes:
        problem: Robot, costs, time grid and limits.
        solver: The solver.
        options: Value of each option of the solver.
        slack: Distance by which a start may be beyond a limit [rad | m | rad/s | m/s];
            LIMIT_TOLERANCE (1e-4), within which plans obey limits, unless it is set.
            From farther away a plan comes back until its end.

    Of these only `slack` is to be set. Other options are those of the constructor and
    cannot be changed later: setting an attribute that is not in this list raises
    AttributeError.
    """

    __slots__ = ("_holds", "_slack", "_times", "options", "problem", "solver")

    def __init__(
        self, problem: ControlProblem, solver: Any = "box_fddp", **options: Any
    ) -> None:
        """Choose the solver and compile what it needs.

        Args:
            problem: Problem.
            solver: Name of a solver of OPTIMAL_CONTROL, or a PlanSolver.
            options: Options of the solver.

        Raises:
            SolverNotFound: No solver has this name.
            SignatureError: The solver solves another problem.
            UnsupportedError: The solver has no such option, its value is invalid, or
                it does not suit the robot, such as second_derivatives.
            TraceError: The function of a custom cost cannot be traced.
        """
        chosen = find(solver, OPTIMAL_CONTROL)
        if not isinstance(chosen, PlanSolver):
            raise SignatureError(
                f"{chosen.name} is no PlanSolver; valid: a solver of optimal_control"
            )
        self.problem, self.solver, self.slack = problem, chosen, LIMIT_TOLERANCE
        _, self.options = chosen.read_options(problem, options)
        self._times = (0.0,) if problem.model.driven else ()
        inputs = {"inputs": ["time"]} if problem.model.driven else {}
        chosen.prepared(problem, **self.options)
        self._holds = [_hold(phase.model, **inputs) for phase in problem.phases]

    def __repr__(self) -> str:
        problem = self.problem
        size = f"{problem.knots} knots of {problem.dt:g} s, {len(problem.costs)} costs"
        return f"<Plan of '{problem.model.name}' by {self.solver.name}: {size}>"

    @property
    def slack(self) -> float:
        """Distance by which a start may be beyond a limit [rad | m | rad/s | m/s].

        Setting it raises SettingError unless it is a number of at least 0. With
        infinity every start is valid.
        """
        return self._slack

    @slack.setter
    def slack(self, distance: float) -> None:
        if not isinstance(distance, (int, float, np.number)) or not distance >= 0:
            text = f"plan: slack is {shown(distance)}; valid: a number of at least 0"
            raise SettingError(text, "slack")
        self._slack = float(distance)

    def solve(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        guess: PlanResult | Any = None,
        targets: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return the plan from a start, or a list of plans from many.

        Plans from many starts are those from each start, with the same bits; several
        are searched for at once where the solver and the machine can.

        Args:
            q, qd: State at the start, (nq,) and (nv,), or a row for each start; a
                vector beside rows counts for all starts.
            guess: Earlier result to start from, or joint forces, (knots, nv) [N·m | N],
                for all starts; None: the forces that hold the start, as far as the
                bounds allow.
            targets: By name of a cost its target, in place of its own, for all starts.

        Returns:
            A PlanResult, or a list of them if q or qd has rows, even one; its `reason`
            tells how the search ended, its `errors` how far from the targets.

        Raises:
            ShapeError: An array has the wrong shape, or the guess another number of
                knots.
            NonFiniteError: A number is NaN or infinite.
            StateError: A start is beyond a limit by more than `slack`.
            SettingError: A target is invalid or of an unknown cost, or the guess is of
                another robot.
            QuaternionError: A quaternion in q has not the length 1, within 1e-3.
        """
        model = self.problem.model
        settings = self.problem.settings({} if targets is None else targets)
        goals = tuple(
            PlanGoal(cost, settings[1][weights], settings[1][target])
            for cost, weights, target in self.problem.goals
        )
        if np.ndim(q) == 2 or np.ndim(qd) == 2:
            starts = state_array("q", q, model.nq), state_array("qd", qd, model.nv)
            count = max(len(x) for x in starts if x.ndim == 2)
            if any(x.ndim == 2 and len(x) != count for x in starts):
                raise ShapeError("qd", f"{count} rows", f"shape {starts[1].shape}")
            rows = zip(*(np.broadcast_to(x, (count, x.shape[-1])) for x in starts),
                       strict=True)  # fmt: skip
            checked = [self._start(a, b, guess, settings) for a, b in rows]
            results = self.solver.solve_all(self.problem, checked, **self.options)
            return [_with_goals(result, goals) for result in results]
        start = self._start(q, qd, guess, settings)
        result = self.solver.solve(self.problem, start, **self.options)
        return _with_goals(result, goals)

    def _start(
        self, q: Any, qd: Any, guess: Any, settings: tuple[np.ndarray, np.ndarray]
    ) -> PlanStart:
        """Return the start and first guess of one plan, checked.

        The guess is a PlanResult, or joint forces (knots, nv), which are not clipped;
        None: forces that hold q, clipped to the bounds. Only a PlanResult has guesses
        of the states, of which the first stays as it is, and of multipliers of the
        limits; else the states of the guess rest at q. Its arrays are copied.
        """
        model, N, penalty = self.problem.model, self.problem.knots, None
        q, qd = self._state("q", q, model.nq), self._state("qd", qd, model.nv)
        model.require_position(q.tolist())
        self._check_limits(q, qd)
        if isinstance(guess, PlanResult):
            states, speeds, tau = guess.q, guess.qd, guess.tau
            penalty = guess.penalty
            if guess.model.joint_names != model.joint_names:
                raise SettingError(
                    f"guess is a plan of robot '{guess.model.name}'; valid: a plan of"
                    f" '{model.name}', with the same joints, or joint forces",
                    "guess",
                )
            if len(tau) != N:
                raise ShapeError("guess", f"a plan of {N} knots", f"one of {len(tau)}")
        else:
            states, speeds = np.tile(q, (N + 1, 1)), np.zeros((N + 1, model.nv))
            tau = np.zeros((N, model.nv))
            if guess is None:
                still, bounds = np.zeros(model.nv), self.problem.bounds
                low, high = bounds.tau_lower, bounds.tau_upper
                for phase, hold in zip(self.problem.phases, self._holds, strict=True):
                    forces = hold(q, still, still, *self._times)
                    tau[phase.first : phase.end] = np.clip(forces, low, high)
            else:
                wanted = f"shape {tau.shape}"
                forces = float_array("guess", guess, wanted)
                if forces.shape != tau.shape:
                    raise ShapeError("guess", wanted, f"shape {forces.shape}")
                tau = forces
        arrays = [np.array(x) for x in (states, speeds, tau)]
        if not all(np.isfinite(x).all() for x in arrays):
            raise NonFiniteError("guess holds NaN or infinity; valid: finite numbers")
        return PlanStart._make([q, qd, *arrays, *settings, penalty])

    def _state(self, name: str, values: Any, size: int) -> np.ndarray:
        """Return a copy of one state vector (size,) of finite numbers."""
        array = one_state(name, values, size)
        if not np.isfinite(array).all():
            raise NonFiniteError(f"{name} holds NaN or infinity; valid: finite numbers")
        return array

    def _check_limits(self, q: np.ndarray, qd: np.ndarray) -> None:
        """Raise StateError if the start is beyond a limit by more than `slack`.

        It names the joint, and asks whether a start far beyond its limits is in
        degrees. Joints with nq != nv are not checked, nor are their velocities.
        """
        bounds, model = self.problem.bounds, self.problem.model
        slack, places = self.slack, np.maximum(bounds.place, 0)
        over = np.maximum(bounds.q_lower - q[places], q[places] - bounds.q_upper)
        if not (over > slack).any() and not (np.abs(qd) - bounds.qd > slack).any():
            return
        for k, place in enumerate(bounds.place):
            for what, x, low, high in (
                ("position", q[place], bounds.q_lower[k], bounds.q_upper[k]),
                ("velocity", qd[k], -bounds.qd[k], bounds.qd[k]),
            ):
                if place >= 0 and max(low - x, x - high) > self.slack:
                    degrees = ""
                    if what == "position" and in_degrees(model, "q", q[None]):
                        degrees = "; is q in degrees?"
                    elif what == "velocity" and too_fast(model, "qd", qd, ""):
                        degrees = "; is qd in degrees per second?"
                    raise StateError(
                        f"plan: the start is beyond a limit: {what} of joint"
                        f" '{self.problem.coordinate(k)}' is {x:.6g}; valid: {low:g} to"
                        f" {high:g}, or limits=False{degrees}",
                        "limit",
                    )


def _with_goals(result: Any, goals: tuple[PlanGoal, ...]) -> Any:
    """Return a PlanResult with its goals; what else a solver returns is not changed."""
    return replace(result, goals=goals) if isinstance(result, PlanResult) else result


def _hold(model: Model, **options: Any) -> Any:
    """Return the Program of the joint forces that hold a robot: (q, qd, qdd) -> tau.

    They are inverse dynamics without the forces of loops; only where loops hold a robot
    whose base is free, they are the least forces of the motors together with the loops.
    With the option inputs=["time"] the time is a fourth input.
    """
    if model.loops and any(model.joint[i].nv == 6 for i in model.independent):
        return find("rnea_loops").build(model, dependent="least_norm", **options)
    return find("rnea").build(
        model.without_loops() if model.loops else model, **options
    )


def plan(
    model: Model,
    costs: Sequence[Cost],
    duration: float = 1.0,
    knots: int = 50,
    solver: Any = "box_fddp",
    *,
    effort_limits: Mapping[str, Any] | None = None,
    passive: Sequence[str] = (),
    limits: bool = True,
    step_options: Mapping[str, Any] | None = None,
    contacts: Sequence[Any] = (),
    **options: Any,
) -> Plan:
    """Return a compiled plan, to be solved: joint forces and motion of least cost.

        swing = dyn.plan(model, costs=[dyn.cost.posture(goal, 100.0, when="end"),
                                       dyn.cost.effort(1e-3)], duration=2.0, knots=100)
        result = swing.solve(q, qd)
        result.tau, result.gains, result.reason

    Args:
        model: Robot; it may have closed loops.
        costs: Costs, as the functions of dyn.cost return them.
        duration: Length of the plan [s].
        knots: Number of steps, at least 2.
        solver: Name of a solver of optimal_control, or a PlanSolver.
        effort_limits: By name of a joint the largest joint force (0: none acts), or
            (lower, upper) [N·m | N], or None: unlimited; other joints keep the robot's
            limits, of which 0 means unlimited.
        passive: Names of joints without a drive; floating joints that effort_limits
            does not name have none either.
        limits: Whether the robot's limits of position and velocity hold.
        step_options: Build options: joint_friction, joint_springs, engine.
        contacts: Scheduled contacts, (loop, begin, end) with a loop of make_loop and
            times [s].
        options: Options of the solver, such as max_iterations.

    Raises:
        SettingError: A number, cost, target or name is invalid, or the function of a
            custom cost fails, see Cost.size.
        ShapeError: A limit is not numeric.
        ModelError: The robot has no link that a cost names.
        SolverNotFound, SignatureError: The solver is unknown, or of another problem.
        UnsupportedError: An option is unknown, invalid, or does not suit the robot.
        TraceError: The function of a custom cost cannot be traced.
    """
    chosen = find(solver, OPTIMAL_CONTROL)
    valid = [*signature(plan).parameters][2:-1] + [*getattr(chosen, "options", ())]
    check_names("dyn.plan: unknown option", options, valid)
    problem = ControlProblem(
        model,
        costs,
        duration,
        knots,
        {} if effort_limits is None else effort_limits,
        passive,
        limits,
        {} if step_options is None else step_options,
        contacts,
    )
    return Plan(problem, chosen, **options)
