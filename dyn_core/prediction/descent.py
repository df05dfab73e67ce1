"""Iterations of differential dynamic programming with gaps between the knots.

Each iteration makes the problem quadratic along the trajectory, computes feedback by a
Riccati sweep, and tries step lengths; limits of position and velocity are an augmented
Lagrangian around it.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np

from dyn_core.prediction.limits import Penalty
from dyn_core.prediction.plan_lanes import PlanLanes, begin, ready, useful
from dyn_core.prediction.problem import LIMIT_TOLERANCE, ControlProblem
from dyn_core.prediction.result import (
    CONVERGED,
    DIVERGED,
    INFEASIBLE,
    MAX_ITERATIONS,
    REASONS,
    STALLED,
    PlanResiduals,
    PlanResult,
    PlanStart,
)
from dyn_core.prediction.rollouts import PlanPath
from dyn_core.prediction.shooting import Iteration, PlanState
from dyn_core.sharing import Lock

LENGTHS = 0.5 ** np.arange(8)  # step lengths, the longest first
DECREASE = 1e-4  # accepted share of the predicted decrease
# Share after MANY poor steps where the predicted decrease, relative to 1 + |value|, is
# below END: along a parabola, half of it is left where the least value is.
HALF, END, MANY = 0.48, 1e-6, 10
CLOSED = 1e-9  # largest gap that counts as closed
ROUNDING = 1e-15  # relative error of a value
# Largest first-order change of the value by joint forces as large as those of the plan,
# relative to 1 + |value|, at an optimum. Beyond it rounding hides the slopes.
STATIONARY = 1e-3
LEAST_DAMPING, FIRST_DAMPING, MOST_DAMPING, CHANGE = 1e-9, 1e-5, 1e6, 10.0
POOR, GOOD = 0.25, 0.75  # ratios of decrease to prediction that change the damping
LOOSE = 1e-3  # tolerance of the first round of the augmented Lagrangian
ROUNDS = 30  # of the augmented Lagrangian

# By kind of work in the order in which it is done: what it takes for all lanes, and for
# one search alone, in units of one `expand`, as measured on an arm of seven joints.
COSTS = {
    "attempt": (1.8, 1.4),
    "feedback": (11.0, 2.6),
    "stationarity": (0.3, 0.1),
    "roll": (1.8, 1.4),
    "expand": (6.5, 1.0),
}
CREDIT = 50.0  # what lanes may lose, in the same units, before they are given up

T = TypeVar("T")
Work: TypeAlias = tuple[str, tuple[Any, ...]]  # a method and its arguments
Steps: TypeAlias = Generator[Work, Any, T]  # yields work, and is sent its result


class Descent:
    """box_fddp and ilqr of one problem.

    Args:
        problem: Problem.
        max_iterations: Largest number of iterations, of all rounds together.
        tolerance: Predicted decrease, relative to 1 + |value|, that counts as none.
        gaps: Whether the first guess of the states may have gaps; else only the first
            guess of the joint forces is used.
        second_derivatives: Whether the Hessians have the second derivatives of the
            steps: fewer iterations near an optimum, each of which takes longer.

    Raises:
        UnsupportedError: Second derivatives are wanted of a robot that has them not;
            see shooting.curvature_program.
    """

    def __init__(
        self,
        problem: ControlProblem,
        max_iterations: int = 500,
        tolerance: float = 1e-14,
        gaps: bool = True,
        second_derivatives: bool = False,
    ) -> None:
        self.problem, self.state = problem, Iteration(problem, second_derivatives)
        self._lock = Lock()  # the arrays of the iterations are shared by all calls
        self.max_iterations, self.tolerance, self.gaps = max_iterations, tolerance, gaps
        self.second_derivatives = second_derivatives
        self._room: PlanLanes | None = None

    def __call__(self, start: PlanStart) -> PlanResult:
        """Return the plan from a start; other threads wait.

        A search that fails raises nothing: the `reason` of the plan tells.
        """
        with self._lock:
            return Search(self, self.state, start).finish()

    def many(self, starts: Sequence[PlanStart]) -> list[PlanResult]:
        """Return the plans from many starts, with the bits of single calls.

        Several are searched for at once, one in each lane, if that is faster, and as
        soon as the functions for it are compiled. The settings of all starts must be
        those of the first, which is not checked. Without starts the list is empty.
        """
        results: list[PlanResult] = []
        while len(results) < len(starts):
            rest, state = starts[len(results) :], self.state
            several = not self.second_derivatives and useful(state, len(rest))
            if several and not results:
                begin(state.lanes)
            if not several or not ready(state.lanes):
                results.append(self(rest[0]))
                continue
            with self._lock:
                self._room = self._room or PlanLanes(state)
                self._room.set_costs(rest[0])
                results += self._together(self._room, rest)
        return results

    def _together(
        self, room: PlanLanes, starts: Sequence[PlanStart]
    ) -> list[PlanResult]:
        """Return the plans from many starts of equal settings, searched for in lanes.

        The kinds of work are done in turn, each for all searches that wait for it. The
        last searches, too few for the lanes, are finished one after another; and so are
        all where many lanes are idle, because searches fail or step lengths do. The
        caller has the lock of `room`, which has the cost settings of the starts.
        """
        waiting, results, gain = list(reversed(range(len(starts)))), {}, 0.0
        active: dict[int, tuple[int, Search]] = {}  # by lane
        while (waiting or 2 * len(active) >= len(room.states)) and gain > -CREDIT:
            for lane, state in enumerate(room.states):
                if waiting and lane not in active:
                    row = waiting.pop()
                    active[lane] = row, Search(self, state, starts[row])
            kinds = {search.wanted[0] for _, search in active.values()}
            work = next(kind for kind in COSTS if kind in kinds)
            arguments = {
                lane: search.wanted[1]
                for lane, (_, search) in active.items()
                if search.wanted[0] == work
            }
            lanes, alone = COSTS[work]
            # A search alone tries all step lengths at once.
            new = [x for x in arguments.values() if work != "attempt" or x[1][0] == 1.0]
            gain = min(gain + alone * len(new) - lanes, CREDIT)
            for lane, answer in getattr(room, work)(arguments).items():
                row, search = active[lane]
                if search.go_on(answer):
                    results[row] = search.result
                    del active[lane]
        room.settle()
        for row, search in active.values():
            search.move_to(self.state)
            results[row] = search.finish()
        for row in waiting:
            results[row] = Search(self, self.state, starts[row]).finish()
        return [results[row] for row in range(len(starts))]


class Search:
    """The iterations from one start, up to the next piece of work for its PlanState.

    Private methods that return Steps are generators: they yield each piece of work as
    (name, arguments), are sent its result, and return at their end. `wanted` is the
    work that the search waits for, a method of Iteration and of PlanLanes; `state` is
    an Iteration, or one lane of PlanLanes; `result` is the plan, when the search has
    ended.
    """

    def __init__(self, descent: Descent, state: PlanState, start: PlanStart) -> None:
        self.descent, self.state, self.start = descent, state, start
        self.problem, self._steps = descent.problem, self._solve()
        self.wanted: Work = next(self._steps)
        self.result: Any = None

    def go_on(self, answer: Any) -> bool:
        """Continue with the result of the work; return whether the search has ended."""
        try:
            self.wanted = self._steps.send(answer)
        except StopIteration as end:
            self.result = end.value
            return True
        return False

    def move_to(self, state: Iteration) -> None:
        """Continue with an Iteration (see `take`), before the wanted work is done."""
        state.take(self.state, self.start)
        self.state = state

    def finish(self) -> PlanResult:
        """Return the plan; the state must be an Iteration, which does the work."""
        state, ended = self.state, False
        while not ended:
            work, arguments = self.wanted
            ended = self.go_on(getattr(state, work)(*arguments))
        result: PlanResult = self.result
        return result

    def _solve(self) -> Steps[PlanResult]:
        problem, start, options = self.problem, self.start, self.descent
        bounds, penalty = problem.bounds, Penalty(problem, start)
        tau = np.clip(start.tau_guess, bounds.tau_lower, bounds.tau_upper)
        plan = self.state.plan
        self.state.load(start, PlanPath(start.q_guess, start.qd_guess, tau))
        plan.q[0], plan.qd[0] = start.q, start.qd
        if not options.gaps and not (yield from self._roll(penalty)):
            plan.q[1:] = plan.qd[1:] = np.nan
        used, reason, tolerance = 0, MAX_ITERATIONS, LOOSE if penalty.active else 0.0
        for _ in range(ROUNDS):
            tolerance = max(tolerance, options.tolerance)
            most = options.max_iterations - used
            count, reason = yield from self._minimise(penalty, most, tolerance)
            used, plan = used + count, self.state.plan
            if reason == DIVERGED:
                break
            if penalty.error(plan.q, plan.qd) > LIMIT_TOLERANCE:
                penalty.update(plan.q, plan.qd)
                tolerance *= 0.1
                if reason == MAX_ITERATIONS:  # a plan from this guess begins with it
                    break
            elif tolerance <= options.tolerance or reason in (STALLED, MAX_ITERATIONS):
                break
            else:
                tolerance = options.tolerance
        else:
            if penalty.violation(plan.q, plan.qd) > LIMIT_TOLERANCE:
                reason = INFEASIBLE
        return (yield from self._result(penalty, used, reason))

    def _roll(self, penalty: Penalty) -> Steps[bool]:
        """Replace the plan by the motion under its forces, if its costs are finite.

        Returns whether they are. Gaps and feedback become zero anyhow; `value` stays.
        """
        values = yield "roll", (penalty,)
        finite = bool(np.isfinite(values[0]))
        if finite:
            self.state.accept(0)
        return finite

    def _minimise(
        self, penalty: Penalty, most: int, tolerance: float
    ) -> Steps[tuple[int, int]]:
        """Move self.state.plan towards the optimum for fixed multipliers, in place.

        `tolerance` is a predicted decrease, relative to 1 + |value|, that counts as
        none. Returns the number of iterations, and an index of REASONS: CONVERGED,
        STALLED (no damping or no step helps), DIVERGED (the value or a gap is not
        finite) or MAX_ITERATIONS.
        """
        damping, poor = 0.0, 0
        # Far from an optimum they make the Hessians indefinite.
        self.state.curved = False
        value = yield "expand", (penalty,)
        for count in range(most):
            state, largest = self.state, self.state.gap
            if not math.isfinite(value + largest):
                return count, DIVERGED
            before = damping
            change, damping = yield from self._sweep(before)
            if state.curved and damping > before:
                state.curved = False
                value = yield "expand", (penalty,)
                change, damping = yield from self._sweep(before)
            if change is None:
                return count, STALLED
            closed = largest <= CLOSED
            small = tolerance * (1.0 + abs(value))
            if closed and -change[0] <= small and damping <= 1.0:
                return count, CONVERGED
            near = closed and -change[0] <= END * (1.0 + abs(value))
            share = HALF if near and poor >= MANY else DECREASE
            ratio = yield from self._line_search(penalty, value, share, *change)
            poor += near and ratio is not None and ratio < POOR
            if ratio is None and state.curved:
                state.curved = False
                value = yield "expand", (penalty,)
                continue
            state.curved = self.descent.second_derivatives and (ratio or 0.0) > GOOD
            if ratio is None and not closed:
                # The penalty of the gaps is too small, as where a limit begins to act.
                if not (yield from self._roll(penalty)):
                    damping = max(damping * CHANGE, FIRST_DAMPING)
                    if damping > MOST_DAMPING:
                        yield "expand", (penalty,)  # its gaps, for the result
                        return count + 1, STALLED
            elif ratio is None:
                # A decrease that rounding hides.
                if -change[0] <= 100 * ROUNDING * (1.0 + abs(value)):
                    return count, CONVERGED
                if damping >= MOST_DAMPING:
                    return count + 1, STALLED
                damping = max(damping * CHANGE, FIRST_DAMPING)
                continue
            elif ratio > GOOD:
                damping = damping / CHANGE if damping > LEAST_DAMPING else 0.0
            elif ratio < POOR:
                damping = max(damping * CHANGE, FIRST_DAMPING)
            value = yield "expand", (penalty,)
        return most, MAX_ITERATIONS if np.isfinite(value) else DIVERGED

    def _sweep(self, damping: float) -> Steps[tuple[Any, float]]:
        """Sweep back with the least damping that succeeds, from a given one on.

        The feedback is written to self.state.sweep. Returns (slope, curvature) along
        the full step, None if no damping succeeds; and the damping tried last.
        """
        change = yield "feedback", (damping,)
        while change is None and damping < MOST_DAMPING:
            damping = max(damping * CHANGE, FIRST_DAMPING)
            change = yield "feedback", (damping,)
        return change, damping

    def _line_search(
        self, penalty: Penalty, value: float, share: float, slope: float,
        curvature: float,
    ) -> Steps[float | None]:  # fmt: skip
        """Accept the longest step that decreases the merit enough, or return None.

            merit = value + nu sum |gap|_1

        nu is as large as the full step needs to be a descent of the merit. Enough is
        `share` of the decrease along the slope, of the shortest step DECREASE (1e-4).
        The result is the ratio of the decrease of the merit to its prediction, 1.0
        where rounding hides the prediction. None: no step length (1, 1/2, ..., 1/128)
        will do, the plan stays.

        Source: J. Nocedal, S. Wright, Numerical Optimization, section 18.3, in place of
        the conditions of FDDP.
        """
        noise, gap, nu = ROUNDING * (1.0 + abs(value)), self.state.gaps, 0.0
        if gap > CLOSED:
            nu = max(0.0, slope + max(0.0, curvature) / 2) / (0.5 * gap)
            noise = 0.0
        slope -= nu * gap
        # The longest, not the best: the best of one line made searches crawl along
        # valleys, and stay where the robot hangs.
        first = 0
        while first < len(LENGTHS):
            lengths = LENGTHS[first : first + self.state.lanes]
            first += len(lengths)
            values = yield "attempt", (penalty, lengths)
            changes = values - value - nu * gap * lengths
            enough = np.where(lengths > LENGTHS[-1], share, DECREASE) * lengths * slope
            allowed = changes <= enough + noise
            if allowed.any():
                trial = int(allowed.argmax())
                self.state.accept(trial)
                length, change = float(lengths[trial]), float(changes[trial])
                expected = length * (slope + length * curvature / 2)
                # What rounding hides needs no damping, which would hide an optimum.
                return change / expected if -expected > 10 * noise else 1.0
        return None

    def _result(self, penalty: Penalty, used: int, reason: int) -> Steps[PlanResult]:
        """Return the result of a search, with copies of its arrays.

        `penalty` becomes part of it. The gains are zero if no damping up to 1e6 gives a
        feedback. The reason converged becomes stalled if the stationarity times the
        largest joint force exceeds 1e-3 (STATIONARY) times 1 + |value|.
        """
        state, plan = self.state, PlanPath(*(x.copy() for x in self.state.plan))
        # The feedback around the plan that is returned.
        if state.damping != 0.0:
            yield from self._sweep(0.0)
        success = not math.isnan(state.damping)
        stationarity = yield "stationarity", ()
        gains = state.sweep.K.copy() if success else np.zeros_like(state.sweep.K)
        violation = penalty.violation(plan.q, plan.qd)
        residuals = PlanResiduals(state.gap, stationarity, violation)
        slope = stationarity * np.abs(plan.tau).max(initial=0.0)
        if reason == CONVERGED and not slope <= STATIONARY * (1.0 + abs(state.value)):
            reason = STALLED
        named = violation > 0.0 and reason != DIVERGED
        left = [penalty.worst(self.problem, *plan[:2])] if named else []
        if reason == STALLED:
            left.append(f"no step helps at a stationarity of {stationarity:.3g}")
        elif reason == MAX_ITERATIONS:
            left.append(f"a stationarity of {stationarity:.3g} is left")
            left.append(f"gaps of {state.gap:.3g}" if state.gap > CLOSED else "")
        detail = "; ".join(filter(None, left))
        return PlanResult(
            self.problem.model, self.problem.dt, *plan, gains, state.value, residuals,
            used, REASONS[reason], detail, penalty,
        )  # fmt: skip
