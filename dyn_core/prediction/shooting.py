"""Programs of a plan's knots, bound to the arrays of one trajectory.

N is the number of knots; a state has nx = 2 nv entries: position, then velocity.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dyn_core.engines.machine_code import (
    BlockKernel,
    FloatArray,
    FloatArray2,
    IntArray,
    TiedBatch,
    TiedBlock,
    compiled,
    machine_code,
    run_block,
)
from dyn_core.errors import UnsupportedError
from dyn_core.model import Model
from dyn_core.prediction.limits import LimitTerms, Penalty
from dyn_core.prediction.problem import ControlProblem
from dyn_core.prediction.result import PlanStart
from dyn_core.prediction.riccati import (
    Expansion,
    Sweep,
    allocate_sweep,
    copy_row,
    largest_slope,
    slopes_back,
    sweep_back,
)
from dyn_core.prediction.rollouts import (
    POLICY_FEEDBACK,
    PlanPath,
    bound_block,
    fill,
    spread,
    step_of,
)
from dyn_core.problems import (
    KNOT_COST,
    KNOT_COST_DERIVATIVES,
    KNOT_POLICY,
    STEP_DERIVATIVES,
    ports,
)
from dyn_core.problems.signatures import Signature, port_row
from dyn_core.solving.registry import solver
from dyn_core.solving.solver import TracedSolver


class KnotArrays(NamedTuple):
    """The kernel of KNOT_POLICY for a block of lanes, and its arrays, (size lanes,)."""

    kernel: BlockKernel
    status: IntArray
    q: FloatArray
    qd: FloatArray
    q_plan: FloatArray
    qd_plan: FloatArray
    tau_plan: FloatArray
    k: FloatArray
    K: FloatArray
    gap: FloatArray
    settings: FloatArray
    time: FloatArray
    q_next: FloatArray
    qd_next: FloatArray
    tau: FloatArray
    value: FloatArray


class PlanTrials(NamedTuple):
    """Motions with different step lengths, one in each lane.

    q (N + 1, nq lanes), qd (N + 1, nv lanes), tau (N, nv lanes), values (lanes,).
    """

    q: FloatArray2
    qd: FloatArray2
    tau: FloatArray2
    values: FloatArray


@machine_code
def follow(
    knot: KnotArrays,
    plan: PlanPath,
    model: Expansion,
    work: Sweep,
    tried: PlanTrials,
    settings: FloatArray2,
    times: FloatArray,
) -> None:
    """Continue motions under the feedback of a sweep, each with its own step length.

    The kernel's input `length` is the share of the feedback's change and gaps.

    Args:
        knot: Kernel of the knots, and its arrays.
        plan: Plan of the sweep.
        model: Quadratic model of the sweep, of which the gaps are read.
        work: Results of the sweep.
        tried: Motions; the first rows of q and qd are read, the others written. The
            costs of the knots are added to the values, which become infinite at a
            failed step. The cost of the last state is not included.
        settings: Weights and targets of the costs at each knot, (N, numbers).
        times: Time of each knot, (N,) [s].
    """
    lanes, n = len(knot.status), work.K.shape[2]
    copy_row(knot.q, tried.q[0])
    copy_row(knot.qd, tried.qd[0])
    for i in range(len(plan.tau)):
        spread(knot.q_plan, 0, lanes, plan.q[i])
        spread(knot.qd_plan, 0, lanes, plan.qd[i])
        spread(knot.tau_plan, 0, lanes, plan.tau[i])
        spread(knot.k, 0, lanes, work.k[i])
        for j in range(work.K.shape[1]):
            spread(knot.K, j * n, lanes, work.K[i, j])
        spread(knot.gap, 0, lanes, model.gap[i + 1])
        for j in range(settings.shape[1]):
            if knot.settings[j * lanes] != settings[i, j]:  # few change with i
                fill(knot.settings, j, lanes, settings[i, j])
        fill(knot.time, 0, lanes, times[i])
        run_block(knot.kernel)
        copy_row(knot.q, knot.q_next)
        copy_row(knot.qd, knot.qd_next)
        for lane in range(lanes):
            tried.values[lane] += knot.value[lane]
            if knot.status[lane] != 0:
                tried.values[lane], knot.status[lane] = np.inf, 0
        copy_row(tried.q[i + 1], knot.q)
        copy_row(tried.qd[i + 1], knot.qd)
        copy_row(tried.tau[i], knot.tau)


def _displacement(model: Any, q: Any, q_next: Any) -> tuple[Any]:
    """Return the displacement (nv,) from q to q_next, (nq,) each, in a tuple."""
    return (model.difference(q, q_next),)


_DISPLACEMENT = Signature(
    "displacement",
    (ports.q, ports.q_next),
    (port_row("dv", "nv", "rad | m", "displacement from q to q_next"),),
    meaning="displacement from one position to another",
)
DISPLACEMENT = TracedSolver(
    "displacement", _DISPLACEMENT, _displacement, by_joint=False
)
_FLAT = ("revolute", "continuous", "prismatic")  # kinds with one number for a position


def _flat_coordinates(model: Model) -> np.ndarray:
    """Return for each velocity, (nv,), whether displacements are differences of q."""
    flat = np.zeros(model.nv, bool)
    for name in model.joint_names:
        joint = model.joint[model.body_of_joint(name)]
        flat[model.v_slice(name)] = joint.kind in _FLAT
    return flat


def curvature_program(problem: ControlProblem) -> Any:
    """Return the Program of fd_second_contracted for a problem's robot.

    UnsupportedError: Its steps have other second derivatives than dt qdd. It has joints
    of several axes, loops, contacts, prescribed joints, or friction.
    """
    model, friction = problem.model, problem.step_options.get("joint_friction")
    contacts = model.loops or problem.contacts
    if not _flat_coordinates(model).all() or model.driven or friction or contacts:
        raise UnsupportedError(
            f"second_derivatives of robot '{model.name}'; valid: False, or a tree of"
            " joints of one axis without contacts, prescribed joints and joint_friction"
        )
    return solver("fd_second_contracted").build(model, **dict(problem.step_options))


class KnotPrograms(NamedTuple):
    """Programs of the knots of a problem; `steps` and `policies` one for each phase.

    They are STEP_DERIVATIVES, KNOT_POLICY, KNOT_COST_DERIVATIVES (`slopes`,
    `end_slopes`), KNOT_COST at the `end`, and DISPLACEMENT, None where it is q_next -
    q.
    """

    steps: list[Any]
    policies: list[Any]
    slopes: Any
    end_slopes: Any
    end: Any
    displacement: Any


def knot_programs(problem: ControlProblem) -> KnotPrograms:
    """Return the Programs of a problem. Driven robots have the time as last input."""
    model, steps, policies = problem.model, [], []
    inputs: Any = ["time"] if model.driven else []
    for phase in problem.phases:
        name = step_of(phase.model)
        options = {**problem.step_options, "inputs": inputs}
        build = solver(f"{name}_derivatives", STEP_DERIVATIVES).build
        steps.append(build(phase.model, **options))
        options.update(inputs=[*POLICY_FEEDBACK, *inputs], step=name)
        build = solver("knot_policy", KNOT_POLICY).build
        policies.append(build(phase.model, costs=problem.running, **options))
    build = solver("knot_cost_derivatives", KNOT_COST_DERIVATIVES).build
    slopes = build(model, costs=problem.running, inputs=inputs)
    end_slopes = build(model, costs=problem.ending, inputs=inputs)
    end = solver("knot_cost", KNOT_COST).build(
        model, costs=problem.ending, inputs=inputs
    )
    apart = None if _flat_coordinates(model).all() else DISPLACEMENT.build(model)
    return KnotPrograms(steps, policies, slopes, end_slopes, end, apart)


class PlanState:
    """One trajectory with its quadratic model, sweep and trials, in arrays that stay.

    Attributes:
        tried: The last trials, each with the lanes on the last axis.
        lanes: Number of step lengths of one attempt.
        value: Costs of the plan, without the penalty of the limits.
        gap, gaps: Largest entry of the gaps, and sum of the absolute entries.
        damping: Damping of the last sweep since `expand`; NaN: none succeeded.
        curved: Whether `expand` adds second derivatives of the steps.
    """

    plan: PlanPath
    model: Expansion
    sweep: Sweep
    tried: PlanPath
    lanes: int
    value, gap, gaps, damping, curved = np.inf, 0.0, 0.0, np.nan, False

    def load(self, start: PlanStart, plan: PlanPath) -> None:
        """Copy a trajectory into self.plan, and the state of the start into `tried`."""
        for mine, new in zip(self.plan, plan, strict=True):
            mine[...] = new
        for tried, x in zip(self.tried, (start.q, start.qd), strict=False):
            tried[0] = x[:, None]

    def clear(self) -> None:
        """Set feedback and gaps to zero: the next trial is the motion of the forces."""
        for array in (self.sweep.k, self.sweep.K, self.model.gap):
            array[...] = 0.0
        self.gap = self.gaps = 0.0

    def accept(self, trial: int) -> None:
        """Copy a trial of the last `attempt`, by index, into `plan`; nothing else."""
        for mine, tried in zip(self.plan, self.tried, strict=True):
            mine[...] = tried[..., trial]


class Iteration(PlanState):
    """The trajectory of one problem, and the Programs of its knots."""

    def __init__(
        self, problem: ControlProblem, second_derivatives: bool = False
    ) -> None:
        for function in (sweep_back, follow, largest_slope, slopes_back, run_block):
            compiled(function).prepare_later()  # while the Programs below are traced
        self._curvature = curvature_program(problem) if second_derivatives else None
        self.curved, self.damping = second_derivatives, np.nan
        self.problem, model = problem, problem.model
        N, nv, nx = problem.knots, model.nv, 2 * model.nv
        self._end_time = (problem.duration,) if model.driven else ()
        self.times, self.zero = problem.dt * np.arange(N), np.zeros(nv)
        self.programs = programs = knot_programs(problem)
        linear, running = programs.steps, programs.slopes
        self._end_slopes = programs.end_slopes
        lanes = max(getattr(program, "lanes", 1) for program in (*linear, running))

        def whole(rows: int) -> int:
            return -(-rows // lanes) * lanes

        # Batches are multiples of the lanes; what they write behind their rows is
        # replaced by the next phase, or not read.
        rows = max(p.first + whole(p.end - p.first) for p in problem.phases)
        rows = max(rows, whole(N))

        def allocate(*shape: int) -> np.ndarray:
            return np.zeros((max(rows, N) + 1, *shape))

        q, qd, tau, settings = map(allocate, (model.nq, nv, nv, running.inputs[3].size))
        ends = allocate(model.nq), allocate(nv)
        A, B, none = allocate(nx, nx), allocate(nx, nv), allocate(nx, 0)
        shapes: Any = (), (nx,), (nv,), (nx, nx)
        values, l_x, l_u, l_xx = (allocate(*shape) for shape in shapes)
        l_ux, l_uu, gap = allocate(nv, nx), allocate(nv, nv), allocate(nx)
        times, dt = allocate(), np.array(problem.dt)
        times[:N] = self.times
        timed = (times,) if model.driven else ()
        self._linear = []
        for phase, program in zip(problem.phases, linear, strict=True):
            count = phase.end - phase.first
            some = slice(phase.first, phase.first + whole(count))
            inputs = *(x[some] for x in (q, qd, tau)), dt, *(x[some] for x in timed)
            out = [x[some] for x in (*ends, A, B, none)]
            self._linear.append((TiedBatch(program, inputs, out), count))
        some = slice(whole(N))
        out = [x[some] for x in (values, l_x, l_u, l_xx, l_ux, l_uu)]
        inputs = (*(x[some] for x in (q, qd, tau, settings, *timed)),)
        self._slopes = TiedBatch(running, inputs, out)
        self.plan = PlanPath(q[: N + 1], qd[: N + 1], tau[:N])
        states, knots = (gap, l_x), (l_u, l_ux, l_uu)
        gap, l_x, l_xx = (x[: N + 1] for x in (*states, l_xx))
        l_u, l_ux, l_uu = (x[:N] for x in knots)
        parts = A[:N], B[:N], gap, l_x, l_u, l_xx, l_ux, l_uu, self.plan.tau
        self.model = Expansion(*parts)
        self._diagonals = np.einsum("kii->ki", l_xx)  # the same memory
        self._ends = ends[0][:N], ends[1][:N]
        self._running, self._values, self.value = settings[:N], values[:N], np.inf
        bounds = problem.bounds
        flat, limits = _flat_coordinates(model), (bounds.tau_lower, bounds.tau_upper)
        self._apart, displaced = None, allocate(nv)
        if programs.displacement is not None:
            some = slice(whole(N))
            inputs = q[1:][some], ends[0][some]
            self._apart = TiedBatch(programs.displacement, inputs, [displaced[some]])
        self._displaced = displaced[:N]
        # Loops move positions besides.
        flat &= not any(phase.model.loops for phase in problem.phases)
        self.sweep = allocate_sweep(N, *limits, flat, problem.dt)
        self._costates = np.zeros((N + 1, nx))
        self._back = compiled(sweep_back).bind(self.model, self.sweep)
        self._slopes_back = compiled(slopes_back).bind(self.model, self._costates)
        self._largest_slope = compiled(largest_slope).bind(
            self.model, self.sweep, self._costates
        )
        self._bind_policies()
        self._limits: LimitTerms | None = None

    def _bind_policies(self) -> None:
        """Bind `follow` to the knots and the policy of each phase, and the end costs.

        Sets `lanes`, as in the first policy, and `tried`, arrays of zeros.
        """
        self._blocks, self._follows, self._lengths = [], [], []
        problem, policies = self.problem, self.programs.policies
        self.lanes = getattr(policies[0], "lanes", 1)
        q, qd, tau = (np.zeros((len(x), x.shape[1] * self.lanes)) for x in self.plan)
        self._trials = PlanTrials(q, qd, tau, np.zeros(self.lanes))
        # The same memory, with the lanes on the last axis.
        rows = (x.reshape(len(x), -1, self.lanes) for x in self._trials[:3])
        self.tried = PlanPath(*rows)
        for phase, policy in zip(problem.phases, policies, strict=True):
            tied, arrays, knot = bound_block(policy, problem, KnotArrays)
            self._blocks.append(tied)
            self._lengths.append(arrays["length"])
            knots, states = (slice(phase.first, phase.end + i) for i in (0, 1))
            plan, tried = (
                x._replace(q=x.q[states], qd=x.qd[states], tau=x.tau[knots])
                for x in (self.plan, self._trials)
            )
            model = self.model._replace(gap=self.model.gap[states])
            sweep = self.sweep._replace(k=self.sweep.k[knots], K=self.sweep.K[knots])
            follows = compiled(follow).bind(
                knot, plan, model, sweep, tried, self._running[knots], self.times[knots]
            )
            self._follows.append(follows)
        self._end = TiedBlock(self.programs.end)
        for array, time in zip(self._end.inputs[4:], self._end_time, strict=True):
            array[:] = time
        self._run_end = compiled(run_block).bind(self._end.kernel)

    def load(self, start: PlanStart, plan: PlanPath) -> None:
        """Copy a trajectory, cost settings and state of the start; see PlanState."""
        super().load(start, plan)
        self._running[...], self._ending = start.running, start.ending
        self._end.inputs[3][...] = start.ending[:, None]

    def take(self, other: PlanState, start: PlanStart) -> None:
        """Copy trajectory, model, feedback and numbers of another one of this problem.

        `start` is its start, as in `load`. `curved` becomes False.
        """
        self.load(start, other.plan)
        for mine, new in zip(self.model, other.model, strict=True):
            mine[...] = new
        self.sweep.k[...], self.sweep.K[...] = other.sweep.k, other.sweep.K
        self.value, self.damping, self.curved = other.value, other.damping, False
        self.gap, self.gaps = other.gap, other.gaps

    def expand(self, penalty: Penalty) -> float:
        """Compute the quadratic model along the plan, in place; return its value.

        That is `value`, the costs, plus the penalty, whose slopes are in the model. If
        `curved`, the Hessians have the second derivatives of the steps. `damping`
        becomes NaN. Where a requirement of a step fails, its gap is NaN.
        """
        plan, m, N = self.plan, self.model, self.problem.knots
        self.damping = np.nan
        for linear, count in self._linear:
            linear(count)
        self._slopes(N)
        ends = plan.q[-1], plan.qd[-1], self.zero, self._ending, *self._end_time
        end = self._end_slopes(*ends)
        m.l_x[N], m.l_xx[N] = end.l_x, end.l_xx
        nv, (q, qd) = self.problem.model.nv, self._ends
        if self._apart is None:
            np.subtract(q, plan.q[1:], out=m.gap[1:, :nv])
        else:
            self._apart(N)
            m.gap[1:, :nv] = self._displaced
        np.subtract(qd, plan.qd[1:], out=m.gap[1:, nv:])
        apart = np.abs(m.gap)
        self.gap, self.gaps = float(apart.max()), float(apart.sum())
        value = self.value = float(self._values.sum() + end.value)
        if penalty.active:
            limits = self._limits_of(penalty)
            limits.of_plan()
            value += float(limits.value[0])
            m.l_x[...] += limits.gradient
            self._diagonals += limits.curved
        if self.curved:
            self._add_curvature(self._curvature)
        return value

    def _limits_of(self, penalty: Penalty) -> LimitTerms:
        """Return the terms of the limits, with the numbers of a penalty."""
        if self._limits is None:  # most of the time is that of compiling them
            self._limits = LimitTerms(penalty, self.plan, self.tried)
        self._limits.read(penalty)
        return self._limits

    def feedback(self, damping: float) -> tuple[float, float] | None:
        """Sweep back; return slope and curvature along the full step, or None.

        They are derivatives of the quadratic model, with the penalty. `damping` is as
        in sweep_back. None, and NaN as self.damping: Q_uu is not positive definite, or
        a number not finite.
        """
        success, slope, curvature = self._back(damping)
        good = success > 0.0 and math.isfinite(slope + curvature)
        self.damping = damping if good else np.nan
        return (slope, curvature) if good else None

    def stationarity(self) -> float:
        """Return the largest_slope of the plan by its costates."""
        self._slopes_back()
        return float(self._largest_slope())

    def costates(self) -> np.ndarray:
        """Return slopes_back of the plan, (N + 1, nx); the next call overwrites it."""
        self._slopes_back()
        return self._costates

    def _add_curvature(self, program: Any) -> None:
        """Add the second derivatives of the steps, times the costates, to the Hessians.

        They follow from y . x_next = (y_v + dt y_q) . dt qdd + linear terms.
        """
        m, nv, dt = self.model, self.problem.model.nv, self.problem.dt
        y = self.costates()[1:]
        weights = dt * (y[:, nv:] + dt * y[:, :nv])
        q, qd = self.plan.q[:-1], self.plan.qd[:-1]
        curved, _ = program(q, qd, self.plan.tau, weights, status=True)
        l_xx = m.l_xx[:-1]
        l_xx[:, :nv, :nv] += curved.d2qdd_dqdq
        l_xx[:, :nv, nv:] += curved.d2qdd_dqdqd
        l_xx[:, nv:, :nv] += curved.d2qdd_dqdqd.swapaxes(1, 2)
        l_xx[:, nv:, nv:] += curved.d2qdd_dqddqd
        m.l_ux[:, :, :nv] += curved.d2qdd_dqdtau.swapaxes(1, 2)

    def attempt(self, penalty: Penalty, lengths: np.ndarray) -> np.ndarray:
        """Compute motions of step lengths in `tried`; return their values, (n,).

        A length is a share of the feedback's change and gaps; lanes from n on keep
        their last ones. A value has the penalty; it is infinite without finite costs.
        """
        for array in self._lengths:
            array[0, : len(lengths)] = lengths
        self._trials.values[:] = 0.0
        for follows in self._follows:
            follows()
        (q, qd, _), end = self.tried, self._end
        end.inputs[0][...], end.inputs[1][...] = q[-1], qd[-1]
        failed = self._run_end()
        values = self._trials.values + end.outputs[0][0]
        if penalty.active:
            values += self._limits_of(penalty).of_trials()
        bad = ~np.isfinite(values)
        if failed:
            bad |= end.status != 0
            end.status[:] = 0
        values[bad] = np.inf
        return values[: len(lengths)]

    def roll(self, penalty: Penalty) -> np.ndarray:
        """Compute the motion under the plan's joint forces as trial 0; see `attempt`.

        Gaps and the feedback become zero.
        """
        self.clear()
        return self.attempt(penalty, np.ones(1))
