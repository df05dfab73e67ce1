"""Motions of a plan under many samples of joint forces, in lanes.

An array in lanes is flat: number i of lane l is at i * lanes + l. No size and no index
is checked: machine code reads and writes beyond an array that is too short. N is the
number of knots.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dyn_core.engines.machine_code import (
    BlockKernel,
    FloatArray,
    FloatArray2,
    FloatArray3,
    IntArray,
    TiedBlock,
    compiled,
    machine_code,
    run_block,
)
from dyn_core.model import Model
from dyn_core.prediction.problem import ControlProblem
from dyn_core.prediction.result import PlanStart
from dyn_core.prediction.riccati import copy_row
from dyn_core.problems import KNOT_COST, KNOT_POLICY
from dyn_core.sharing import Lock
from dyn_core.solving.registry import solver

POLICY_FEEDBACK = ("q_plan", "qd_plan", "k", "K", "gap", "length")


class PlanPath(NamedTuple):
    """States and joint forces: q (N + 1, nq), qd (N + 1, nv), tau (N, nv)."""

    q: FloatArray2
    qd: FloatArray2
    tau: FloatArray2


class PlanSamples(NamedTuple):
    """Random joint forces of n samples.

        tau[k] = mean[k] + scale ((1 - part) drawn[node[k]] + part drawn[after[k]])

    Attributes:
        mean: (N, nv).
        drawn: Numbers at the nodes, (n, nodes, nv).
        node, after, part: Nodes of each knot, and the share of the second, (N,).
        scale: (nv,).
    """

    mean: FloatArray2
    drawn: FloatArray3
    node: IntArray
    after: IntArray
    part: FloatArray
    scale: FloatArray


class BlockArrays(NamedTuple):
    """The kernel of KNOT_POLICY for one block, and its arrays, (size lanes,).

    They are in lanes: number i of lane l is at i * lanes + l.
    """

    kernel: BlockKernel
    status: IntArray
    q: FloatArray
    qd: FloatArray
    tau_plan: FloatArray
    settings: FloatArray
    time: FloatArray
    q_next: FloatArray
    qd_next: FloatArray
    tau: FloatArray
    value: FloatArray


class PlanMotions(NamedTuple):
    """Results: joint forces, (n, N, nv), values and last states of n samples.

    Of the first samples the states are stored, (m, N + 1, nq) and (m, N + 1, nv).
    """

    tau: FloatArray3
    values: FloatArray
    q_end: FloatArray2
    qd_end: FloatArray2
    q: FloatArray3
    qd: FloatArray3


@machine_code
def roll_out(
    block: BlockArrays, samples: PlanSamples, settings: FloatArray2, times: FloatArray,
    to: PlanMotions, begin: int, end: int,
) -> None:  # fmt: skip
    """Continue the motions of all samples in `to`, from knot `begin` to `end` - 1.

    They go on from to.q_end and to.qd_end, which are replaced. Costs are added to
    to.values, infinity where a step fails; `settings` are their weights and targets,
    (N, numbers). Bounded joint forces are written to to.tau, states of the first
    samples to to.q and to.qd.
    """
    n, lanes, stored = len(to.values), len(block.status), len(to.q)
    for block_number in range((n + lanes - 1) // lanes):
        first = lanes * block_number
        count = min(lanes, n - first)
        for lane in range(lanes):
            s = min(first + lane, n - 1)
            put(block.q, lane, lanes, to.q_end[s])
            put(block.qd, lane, lanes, to.qd_end[s])
        for k in range(begin, end):
            fill(block.time, 0, lanes, times[k])
            for i in range(settings.shape[1]):
                if block.settings[i * lanes] != settings[k, i]:  # few change with k
                    fill(block.settings, i, lanes, settings[k, i])
            set_forces(block, samples, first, count, k)
            run_block(block.kernel)
            copy_row(block.q, block.q_next)
            copy_row(block.qd, block.qd_next)
            for lane in range(count):
                s = first + lane
                if block.status[lane] != 0:
                    to.values[s] = np.inf
                    block.status[lane] = 0
                to.values[s] += block.value[lane]
                take(to.tau[s, k], block.tau, lane, lanes)
                if s < stored:
                    take(to.q[s, k + 1], block.q, lane, lanes)
                    take(to.qd[s, k + 1], block.qd, lane, lanes)
        for lane in range(count):
            take(to.q_end[first + lane], block.q, lane, lanes)
            take(to.qd_end[first + lane], block.qd, lane, lanes)


@machine_code
def set_forces(
    block: BlockArrays, samples: PlanSamples, first: int, count: int, k: int
) -> None:
    """Write the joint forces of `count` samples at knot k to block.tau_plan, in lanes.

    Sample `first` is in lane 0. `count` is at most the number of lanes; lanes from
    `count` on stay. The forces are not limited.
    """
    part, mean, scale = samples.part[k], samples.mean[k], samples.scale
    lanes = len(block.status)
    for lane in range(count):
        here = samples.drawn[first + lane, samples.node[k]]
        if part == 0.0:
            for i in range(len(scale)):
                block.tau_plan[i * lanes + lane] = mean[i] + scale[i] * here[i]
        else:
            after = samples.drawn[first + lane, samples.after[k]]
            for i in range(len(scale)):
                x = here[i] * (1.0 - part) + after[i] * part
                block.tau_plan[i * lanes + lane] = mean[i] + scale[i] * x


@machine_code
def fill(array: FloatArray, i: int, lanes: int, x: float) -> None:
    """Set number i of an array in lanes, at i * lanes + lane, to x in all lanes."""
    for lane in range(lanes):
        array[i * lanes + lane] = x


@machine_code
def spread(array: FloatArray, first: int, lanes: int, row: FloatArray) -> None:
    """Set numbers first, first + 1, ... of an array in lanes to `row`, in all lanes."""
    for i in range(len(row)):
        fill(array, first + i, lanes, row[i])


@machine_code
def put(array: FloatArray, lane: int, lanes: int, row: FloatArray) -> None:
    """Write `row` to one lane of an array in lanes: number i to i * lanes + lane."""
    for i in range(len(row)):
        array[i * lanes + lane] = row[i]


@machine_code
def take(to: FloatArray, array: FloatArray, lane: int, lanes: int) -> None:
    """Copy the first len(to) numbers of one lane of an array in lanes to `to`."""
    for i in range(len(to)):
        to[i] = array[i * lanes + lane]


def bound_block(
    program: Any, problem: ControlProblem, record: Any
) -> tuple[TiedBlock, dict[str, Any], Any]:
    """Bind KNOT_POLICY to arrays in lanes, with step and bounds of a problem.

    `record` is a NamedTuple class: a BlockKernel, the status, then any inputs and
    outputs by their names, and `time`, even if it is none of them. Returns the
    TiedBlock, which must be kept; arrays by name, (size, lanes), zeros but for dt,
    lower and upper; a record of flat views of them.
    """
    tied, bounds = TiedBlock(program), problem.bounds
    arrays = {"time": np.zeros((1, len(tied.status)))}
    ports = *program.inputs, *program.outputs
    pairs = zip(ports, (*tied.inputs, *tied.outputs), strict=True)
    arrays.update({port.name: x for port, x in pairs})
    arrays["dt"][:] = problem.dt
    arrays["lower"][:] = bounds.tau_lower[:, None]
    arrays["upper"][:] = bounds.tau_upper[:, None]
    fields = [arrays[name].reshape(-1) for name in record._fields[2:]]
    return tied, arrays, record(tied.kernel, tied.status, *fields)


def step_of(model: Model) -> str:
    """Return the step's name: projected_euler with loops, else semi_implicit_euler."""
    return "projected_euler" if model.loops else "semi_implicit_euler"


class Shooting:
    """Motions from a start under joint forces, and their costs, in lanes.

    Threads wait for each other.
    """

    def __init__(self, problem: ControlProblem) -> None:
        """Compile the step and costs of each phase of a problem, and the end cost.

        Raises:
            TraceError: The function of a custom cost cannot be traced.
            UnsupportedError: The engine in problem.step_options is unknown, or a solver
                does not support the robot.
        """
        self.problem, model, self._lock = problem, problem.model, Lock()
        inputs = ["time"] if model.driven else []
        self._times = problem.dt * np.arange(problem.knots)
        self._end_time = (problem.duration,) if inputs else ()
        policy = solver("knot_policy", KNOT_POLICY)
        self._tied: list[TiedBlock] = []
        self._blocks: list[BlockArrays] = []
        for phase in problem.phases:
            program = policy.build(
                phase.model, costs=problem.running, step=step_of(phase.model),
                inputs=inputs, **problem.step_options,
            )  # fmt: skip
            tied, _, block = bound_block(program, problem, BlockArrays)
            self._tied.append(tied)
            self._blocks.append(block)
        end = solver("knot_cost", KNOT_COST)
        self._end_cost = end.build(model, costs=problem.ending, inputs=inputs)

    def rollouts(
        self, start: PlanStart, tau: np.ndarray
    ) -> tuple[PlanPath, np.ndarray]:
        """Return motions from the start and their costs, (n,), end cost included.

        The costs are without a penalty of limits. The motions are q (n, N + 1, nq), qd
        (n, N + 1, nv) and tau (n, N, nv), clipped to the bounds; the argument is not
        changed. A motion that fails raises nothing: its cost is infinite or NaN.

        Args:
            start: Start and settings; its guesses are not used.
            tau: Joint forces of n motions, (n, N, nv).
        """
        n, N, nv = tau.shape
        nodes = np.arange(N), np.arange(N), np.zeros(N)
        samples = PlanSamples(np.zeros((N, nv)), tau.copy(), *nodes, np.ones(nv))
        to = self.motions(n, n)
        return PlanPath(to.q, to.qd, to.tau), self.sampler(start, samples, to)()

    def motions(self, n: int, stored: int) -> PlanMotions:
        """Return zeros for n samples, and for the states of the first `stored` ones.

        They are tau (n, N, nv), values (n,), q_end (n, nq), qd_end (n, nv), q (stored,
        N + 1, nq) and qd (stored, N + 1, nv). `stored` is at most n, which is not
        checked.
        """
        N, nq, nv = self.problem.knots, self.problem.model.nq, self.problem.model.nv
        shapes = (n, N, nv), (n,), (n, nq), (n, nv), (stored, N + 1, nq)
        return PlanMotions(*(np.zeros(x) for x in (*shapes, (stored, N + 1, nv))))

    def sampler(
        self, start: PlanStart, samples: PlanSamples, to: PlanMotions
    ) -> Callable[[], np.ndarray]:
        """Return a function that computes motions under samples of joint forces.

        It takes no arguments, reads the samples anew at each call, and returns the
        costs of the n samples with end cost, (n,), a new array; to.values has them
        without it. A motion that fails raises nothing: its cost is infinite or NaN.

        Args:
            start: Start and settings; its guesses are not used.
            samples: Joint forces.
            to: Motions of so many samples, see `motions`; each call overwrites them.
                Their joint forces are clipped to the bounds.
        """
        settings, still = np.array(start.running), np.zeros(self.problem.model.nv)
        runs = [
            (phase, compiled(roll_out).bind(block, samples, settings, self._times, to))
            for phase, block in zip(self.problem.phases, self._blocks, strict=True)
        ]
        ends = to.q_end, to.qd_end, still, start.ending, *self._end_time

        def run() -> np.ndarray:
            to.values[:] = 0.0
            to.q[:, 0], to.qd[:, 0] = start.q, start.qd
            to.q_end[:], to.qd_end[:] = start.q, start.qd
            with self._lock:  # the arrays of the blocks are shared by all samplers
                for phase, go_on in runs:
                    go_on(phase.first, phase.end)
            return np.asarray(to.values + self._end_cost(*ends, status=True)[0])

        return run
