"""Iterations of several problems at once, one in each lane of the vectors.

All arrays have the lanes on the last axis. Work is done for all lanes: in those that
did not ask for it, the same numbers are computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dyn_core.engines.machine_code import (
    FloatArray,
    FloatArray2,
    TiedBlock,
    compiled,
    in_lanes,
    machine_code,
    run_blocks,
)
from dyn_core.prediction.limits import LimitLanes, Penalty
from dyn_core.prediction.result import PlanStart
from dyn_core.prediction.riccati import (
    Expansion,
    Sweep,
    largest_slope,
    slopes_back,
    sweep_lanes,
)
from dyn_core.prediction.rollouts import PlanPath
from dyn_core.prediction.shooting import Iteration, PlanState

LARGEST = 24  # size nx of the state up to which lanes are faster; at 36 they are slower


@machine_code
def slopes_in_lanes(
    model: Expansion, work: Sweep, y: FloatArray2, to: FloatArray
) -> int:
    """Set y (N + 1, nx) to the costates and to[0] to the largest_slope; return 0.

    This is for one lane. work.left is overwritten.
    """
    slopes_back(model, y)
    to[0] = largest_slope(model, work, y)
    return 0


def useful(state: Iteration, count: int) -> bool:
    """Return whether so many problems are solved faster in lanes.

    The Programs must be machine code of two lanes or more, nx at most 24 (LARGEST), and
    the problems at least half as many as lanes.
    """
    programs, lanes = state.programs, state.lanes
    known = (*programs.steps, *programs.policies, *programs[2:])
    native = all(x is None or hasattr(x, "batch_kernel") for x in known)
    small = 2 * state.problem.model.nv <= LARGEST
    return native and small and 1 < lanes <= 2 * count


def begin(lanes: int) -> None:
    """Begin to compile sweep_lanes and slopes_in_lanes for these lanes; do not wait."""
    for function in (sweep_lanes, slopes_in_lanes):
        compiled(function, lanes=lanes).prepare_later()


def ready(lanes: int) -> bool:
    """Return whether sweep_lanes and slopes_in_lanes are compiled and loaded."""
    functions = sweep_lanes, slopes_in_lanes
    return all(compiled(function, lanes=lanes).loaded for function in functions)


class LaneState(PlanState):
    """The trajectory in one lane, as views of the arrays of PlanLanes.

    After `accept`, `plan` is the one before until PlanLanes.settle.
    """

    lanes = 1

    def __init__(self, plan: Any, tried: Any, model: Any, sweep: Any, lane: int):
        self.accepted = False
        self.plan, self.model, self.sweep = (
            x._make(y[..., lane] if isinstance(y, np.ndarray) else y for y in x)
            for x in (plan, model, sweep)
        )
        self.tried = PlanPath(*(x[..., lane : lane + 1] for x in tried))

    def accept(self, trial: int) -> None:
        """Let PlanLanes.settle copy the only trial; the index `trial` is not used."""
        self.accepted = True


class PlanLanes:
    """The work of an Iteration for as many searches as there are lanes.

    A method of its work takes a mapping, `wanted`, from the index of a lane to the
    arguments of the same method of Iteration, a tuple, and returns a dict from the same
    indices to its results. Failed requirements raise nothing.
    """

    def __init__(self, single: Iteration) -> None:
        """Allocate single.lanes lanes, and bind the Programs of an Iteration to them.

        Its Programs must be machine code, see `useful`.
        """
        problem, lanes = single.problem, single.lanes
        known: dict[int, tuple[Any, Any]] = {}
        kept = single.plan, single.tried, single.model, single.sweep
        plan, _, model, sweep = (in_lanes(x, lanes, known) for x in kept)
        tried = PlanPath(*(np.zeros_like(x) for x in plan))
        self.problem, self._lanes, self._kept = problem, lanes, kept
        self.states = [LaneState(plan, tried, model, sweep, i) for i in range(lanes)]
        self._plan, self._tried, self._model = plan, tried, model
        self._bind_knots(single, sweep)
        self._bind_end(single)
        shape = problem.knots + 1, 2 * problem.model.nv, lanes
        self._limits: LimitLanes | None = None
        self._damping, self._swept = np.zeros((1, lanes)), np.zeros((3, lanes))
        self._steepest = np.zeros((1, lanes))
        self._sweep = compiled(sweep_lanes, lanes=lanes).tied(
            model, sweep, self._damping, self._swept
        )
        self._slopes = compiled(slopes_in_lanes, lanes=lanes).tied(
            model, sweep, np.zeros(shape), self._steepest
        )

    def _bind_knots(self, single: Iteration, sweep: Sweep) -> None:
        """Bind steps, costs and policies of all knots to the arrays in lanes.

        Creates the lists _steps and _policies.
        """
        problem, lanes, model = self.problem, self._lanes, self._model
        N, nv, programs = problem.knots, problem.model.nv, single.programs

        def array(*shape: int) -> np.ndarray:
            return np.zeros((*shape, lanes))

        def equal(rows: Any) -> np.ndarray:
            return np.repeat(np.asarray(rows, float)[..., None], lanes, -1)

        def knots(row: Any) -> np.ndarray:
            return equal(np.tile(row, (N, 1)))

        plan, tried, bounds = self._plan, self._tried, problem.bounds
        ends = array(N, problem.model.nq), array(N, nv)
        dt, times = knots([problem.dt]), equal(single.times[:, None])
        timed = [times] if problem.model.driven else []
        self._ends, self._displaced = ends, array(N, nv)
        self._costs, self._values = array(N, 1), array(N, 1)
        self._length = knots([1.0])
        self._settings = array(N, programs.slopes.inputs[3].size)
        self._steps, self._policies, none = [], [], array(N, 0)
        for k, phase in enumerate(problem.phases):
            some, behind = (slice(phase.first + i, phase.end + i) for i in (0, 1))
            inputs = [x[some] for x in (plan.q, plan.qd, plan.tau, dt, *timed)]
            outputs = [x[some] for x in (*ends, model.A, model.B, none)]
            self._steps.append(self._tied(programs.steps[k], inputs, outputs))
            inputs = [x[some] for x in (
                tried.q, tried.qd, plan.q, plan.qd, plan.tau, sweep.k, sweep.K,
                knots(bounds.tau_lower), knots(bounds.tau_upper),
            )]  # fmt: skip
            inputs.append(model.gap[behind])
            rest = self._length, self._settings, dt, *timed
            inputs += [x[some] for x in rest]
            outputs = [tried.q[behind], tried.qd[behind]]
            outputs += [tried.tau[some], self._values[some]]
            self._policies.append(self._tied(programs.policies[k], inputs, outputs))
        inputs = [plan.q[:N], plan.qd[:N], plan.tau, self._settings, *timed]
        outputs = [self._costs, model.l_x[:N], model.l_u, model.l_xx[:N]]
        outputs += [model.l_ux, model.l_uu]
        self._steps.append(self._tied(programs.slopes, inputs, outputs))
        if programs.displacement is not None:
            inputs = [plan.q[1:], ends[0]]
            self._apart = self._tied(programs.displacement, inputs, [self._displaced])

    def _bind_end(self, single: Iteration) -> None:
        """Bind the costs of the last state, of plan and trials, after _bind_knots.

        Appends one entry each to _steps and _policies.
        """
        problem, lanes, programs = self.problem, self._lanes, single.programs
        nv, model = problem.model.nv, self._model
        self._end_settings = np.zeros((1, programs.end.inputs[3].size, lanes))
        none, end = np.zeros((1, nv, lanes)), [np.full((1, 1, lanes), problem.duration)]
        rest = [none, self._end_settings, *(end if problem.model.driven else [])]
        self._end_cost, self._end_value = np.zeros((2, 1, 1, lanes))
        unused = [
            np.zeros((1, *x.shape[1:])) for x in (model.l_u, model.l_ux, model.l_uu)
        ]
        outputs = [self._end_cost, model.l_x[-1:], unused[0], model.l_xx[-1:]]
        inputs = [self._plan.q[-1:], self._plan.qd[-1:], *rest]
        self._steps.append(
            self._tied(programs.end_slopes, inputs, outputs + unused[1:])
        )
        inputs = [self._tried.q[-1:], self._tried.qd[-1:], *rest]
        end_values = self._tied(programs.end, inputs, [self._end_value])
        self._policies.append(end_values)

    def _tied(self, program: Any, inputs: Any, outputs: Any) -> Callable[[], Any]:
        """Return a function that runs a Program on blocks, and returns what failed.

        The result is None if nothing failed, else for each lane whether a requirement
        failed in a block, (lanes,) bool; nothing is raised for it. Inputs and outputs
        are arrays (blocks, ..., lanes), one for each Port.
        """
        tied = TiedBlock(program, inputs, outputs)
        call, blocks = compiled(run_blocks).bind(tied.kernel), len(outputs[0])

        def run() -> Any:
            if not call(blocks):
                return None
            failed = (tied.status != 0).any(0)
            tied.status[...] = 0
            return failed

        run.kept = tied  # type: ignore[attr-defined]
        return run

    def _failed(self, runs: list[Callable[[], Any]]) -> np.ndarray:
        """Run functions of _tied; return for each lane whether one failed, (lanes,)."""
        failed = np.zeros(self._lanes, bool)
        for run in runs:
            some = run()
            if some is not None:
                failed |= some
        return failed

    def set_costs(self, start: PlanStart) -> None:
        """Copy the settings of the costs of a start to all lanes."""
        self._settings[...] = start.running[..., None]
        self._end_settings[0] = start.ending[:, None]

    def settle(self) -> None:
        """Copy accepted trials to the plans, before trials change; clear `accepted`."""
        accepted = np.array([state.accepted for state in self.states])
        if accepted.any():
            for state in self.states:
                state.accepted = False
            for plan, tried in zip(self._plan, self._tried, strict=True):
                np.copyto(plan, tried, where=accepted)

    def expand(self, wanted: Mapping[int, tuple[Penalty]]) -> dict[int, float]:
        """Compute the quadratic models along the plans; return their values by lane.

        As Iteration.expand, after a `settle`; second derivatives of steps are never
        added.
        """
        self.settle()
        failed, model, plan = self._failed(self._steps), self._model, self._plan
        nv, (q, qd) = self.problem.model.nv, self._ends
        if hasattr(self, "_apart"):
            failed |= self._failed([self._apart])
            model.gap[1:, :nv] = self._displaced
        else:
            np.subtract(q, plan.q[1:], out=model.gap[1:, :nv])
        np.subtract(qd, plan.qd[1:], out=model.gap[1:, nv:])
        model.gap[1:, :, failed] = np.nan
        apart = np.abs(self._by_lane(model.gap))
        largest, sums = apart.max(1).tolist(), apart.sum(1).tolist()
        costs = (self._by_lane(self._costs).sum(1) + self._end_cost[0, 0]).tolist()
        values = {}
        for lane in wanted:
            state = self.states[lane]
            state.damping, state.gap, state.gaps = np.nan, largest[lane], sums[lane]
            state.value = values[lane] = costs[lane]
        limits = self._limits_of({lane: x[0] for lane, x in wanted.items()})
        if limits is not None:
            limits.of_plans()
            for lane in wanted:
                values[lane] += float(limits.value[0, lane])
            diagonal = np.arange(2 * nv)
            model.l_x[...] += limits.gradient
            model.l_xx[:, diagonal, diagonal] += limits.curved
        return values

    def _by_lane(self, array: np.ndarray) -> np.ndarray:
        """Return (..., lanes) as rows, (lanes, n): sums have one problem's order."""
        return np.ascontiguousarray(array.reshape(-1, self._lanes).T)

    def _limits_of(self, penalties: Mapping[int, Penalty]) -> LimitLanes | None:
        """Return the terms of the limits, by lane; None without limits."""
        if not any(penalty.active for penalty in penalties.values()):
            return None
        if self._limits is None:
            first = next(iter(penalties.values()))
            self._limits = LimitLanes(first, self._plan, self._tried)
        for lane, penalty in penalties.items():
            self._limits.read(lane, penalty)
        return self._limits

    def feedback(self, wanted: Mapping[int, tuple[float]]) -> dict[int, Any]:
        """Sweep back; return by lane (slope, curvature) along the full step, or None.

        `sweep` and `damping` of the lane's state are set; see Iteration.feedback.
        """
        for lane, (damping,) in wanted.items():
            self._damping[0, lane] = damping
        self._sweep()
        good = (self._swept[0] > 0.0) & np.isfinite(self._swept).all(0)
        results = {}
        for lane, (damping,) in wanted.items():
            state, (_, slope, curvature) = self.states[lane], self._swept[:, lane]
            state.damping = damping if good[lane] else np.nan
            results[lane] = (float(slope), float(curvature)) if good[lane] else None
        return results

    def attempt(self, wanted: Mapping[int, tuple[Penalty, Any]]) -> dict[int, Any]:
        """Compute a motion of one step length in each lane; return the values by lane.

        As Iteration.attempt, after a `settle`. The first step length is used.
        """
        self.settle()
        for lane, (_, lengths) in wanted.items():
            self._length[..., lane] = lengths[0]
        failed = self._failed(self._policies)
        values = self._values.sum((0, 1)) + self._end_value[0, 0]
        limits = self._limits_of({lane: x[0] for lane, x in wanted.items()})
        if limits is not None:
            limits.of_trials()
            values = values + limits.values[0]
        values[failed | ~np.isfinite(values)] = np.inf
        return {lane: values[lane : lane + 1] for lane in wanted}

    def roll(self, wanted: Mapping[int, tuple[Penalty]]) -> dict[int, Any]:
        """Compute the motions under the plans' joint forces, as Iteration.roll."""
        for lane in wanted:
            self.states[lane].clear()
        ones = np.ones(1)
        return self.attempt({lane: (x[0], ones) for lane, x in wanted.items()})

    def stationarity(self, wanted: Mapping[int, tuple[()]]) -> dict[int, float]:
        """Return by lane the largest_slope of its plan; see Iteration.stationarity."""
        self._slopes()
        return {lane: float(self._steepest[0, lane]) for lane in wanted}
