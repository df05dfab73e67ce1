"""Steps of planar systems: calls, batches, environments, beside their peers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from bench.cases import STATES
from bench.planar import planar_peers
from bench.planar.planar_peers import CHUNK, PlanarMuJoCo
from bench.printed_tables import Progress, Table
from bench.rollout import STEPS, version
from dyn_core.commands.timing import per_call
from dyn_core.planar import make_chain
from dyn_core.solving.registry import solver
from dyn_core.tasks import ChainTask, Task, planar_task

ROWS, ENVIRONMENTS = 4096, 65536
JOINTS, BATCHES = (2, 4, 10), (1, 8, 64, 512, 4096, 65536)
NAMES = ("classic_cart_pole", "classic_pendulum", "classic_acrobot", "walker")
STEP = "walker, one step"  # a step of the integrator, without task
LEGEND = f"""\
Steps: ns of one call from Python, out given, {STATES} states in turn; M/s: million
steps a second of a batch of {ROWS} rows on one core, out given. classic_* are
gymnasium's own tasks (a kernel gives state, observation, reward and end); '{STEP}'
is chain_fixed_step of 7 links with ground and limits, 'walker' the task: eight such
steps, and lengths corrected. Environments: VectorEnv.step of {ENVIRONMENTS}, ended
episodes begin anew. mujoco: the same system, interval and number of evaluations; ns of
mj_step from Python with state and forces copied in; M/s of mujoco.rollout on one
thread, {STEPS} steps from each of {CHUNK} states. gymnasium: a single environment of
its own without wrappers, and its own vector of cart-poles. call, batch: how much
faster here."""


@dataclass
class Measured:
    """A system that is measured.

    Attributes:
        name: Of the row.
        task: Task.
        program: Its step, on one thread.
        inputs: Inputs of ROWS states; numbers are for all of them.
        states, actions: Of the task, (ROWS, ns) and (ROWS, na).
        steps: Steps of the integrator in one call.
    """

    name: str
    task: Task
    program: Any
    inputs: tuple[Any, ...]
    states: np.ndarray
    actions: np.ndarray
    steps: int = 1


def cases() -> Iterator[Measured]:
    """Return the tasks, and the walker's step, with states that episodes begin with.

    Programs are compiled: until then a call is answered by an interpreter.
    """
    rng = np.random.default_rng(7)
    for name in NAMES:
        task = planar_task(name)
        states = task.start(rng, ROWS)
        actions = _drawn(rng, task, ROWS)
        if isinstance(task, ChainTask):
            step = solver("chain_fixed_step").build(
                task.system, engine="native", threads=1
            )
            step.prepare()
            yield Measured(
                STEP, task, step, _parts(task, states, actions), states, actions
            )
        program = solver("task_step").build(task, engine="native", threads=1)
        program.prepare()
        steps = task.substeps
        yield Measured(name, task, program, (states, actions), states, actions, steps)


def _drawn(rng: np.random.Generator, task: Task, rows: int) -> np.ndarray:
    """Draw actions within their bounds."""
    low, high = np.array(task.action_bounds).T
    return rng.uniform(low, high, (rows, task.na))


def _parts(task: ChainTask, states: np.ndarray, actions: np.ndarray) -> tuple[Any, ...]:
    """Return what chain_fixed_step takes of states and actions."""
    n, rows = task.system.n, len(states)
    tau = np.zeros((rows, n))
    tau[:, list(task.motors)] = actions
    x, v = (states[:, k : k + 2 * n].reshape(rows, n, 2) for k in (0, 2 * n))
    flags = (states[:, k : k + n].copy() for k in (4 * n, 5 * n))
    return x.copy(), v.copy(), *flags, tau, task.dt


def tables(progress: Progress) -> Iterator[tuple[str, Table]]:
    """Return titles and tables, one after the other as they are measured."""
    versions = {name: version(name) for name in ("mujoco", "gymnasium")}
    for name, there in versions.items():
        if not there:
            progress(f"{name} is not installed; its columns are left out")
    beside = ", ".join(filter(None, versions.values())) or "no peers"
    mujoco, gymnasium = map(bool, versions.values())
    measured = list(cases())
    yield f"steps ({beside})", _steps(measured, mujoco, gymnasium, progress)
    if gymnasium:
        title = f"environments: VectorEnv.step of {ENVIRONMENTS}"
        yield title, _environments(measured, progress)
    title = "chain_recursion: ns of a row, by joints and rows of the batch; one core"
    yield title, _accelerations(progress)


def _steps(
    cases: list[Measured], mujoco: bool, gymnasium: bool, progress: Progress
) -> Table:
    """Measure calls and batches, and right after them the peers."""
    head = ["system", "ns/call", "M/s core"]
    head += ["mujoco ns", "call", "mujoco M/s", "batch"] if mujoco else []
    head += ["gymnasium ns", "call"] if gymnasium else []
    table = [head]
    for case in cases:
        progress(f"{case.name}: a call and {ROWS} rows")
        call, rate = _call(case), _rate(case)
        line = [case.name, f"{call * 1e9:.0f}", f"{rate / 1e6:.2f}"]
        if mujoco:
            progress(f"{case.name}: mujoco")
            peer = PlanarMuJoCo(case.task)
            one = peer.call(case.states[:STATES], case.actions[:STATES], case.steps)
            many = peer.rate(case.states[:CHUNK], case.actions[:CHUNK]) / case.steps
            line += [f"{one * 1e9:.0f}", _ratio(one / call)]
            line += [f"{many / 1e6:.3f}", _ratio(rate / many)]
        if gymnasium:
            line += ["", ""]
            if case.name in planar_peers.SINGLE:
                progress(f"{case.name}: gymnasium")
                one = planar_peers.gymnasium_call(case.name, STATES)
                line[-2:] = [f"{one * 1e9:.0f}", _ratio(one / call)]
        table.append(line)
    return table


def _ratio(factor: float) -> str:
    """Return how many times faster it is here."""
    return f"{factor:.1f}x" if factor < 10 else f"{factor:.0f}x"


def _call(case: Measured) -> float:
    """Measure a step of one state [s]."""
    out = tuple(np.empty(port.shape) for port in case.program.outputs)
    states = [
        tuple(x if isinstance(x, float) else x[k] for x in case.inputs)
        for k in range(min(STATES, ROWS))
    ]
    return _timed(case.program, states, out)


def _rate(case: Measured) -> float:
    """Measure steps a second of a batch of ROWS."""
    out = tuple(np.empty((ROWS, *port.shape)) for port in case.program.outputs)
    return ROWS / _timed(case.program, [case.inputs], out)


def _timed(program: Any, inputs: list[tuple[Any, ...]], out: Any) -> float:
    """Measure a Program on inputs, out given [s]."""
    names = ", ".join(f"x{k}" for k in range(len(inputs[0])))
    return per_call(f"p({names}, out=o)", inputs, names, {"p": program, "o": out})


def _environments(cases: list[Measured], progress: Progress) -> Table:
    """Measure VectorEnv.step of each task on one and on all threads."""
    vector = import_module("dyn_core.envs.vector")
    count, rng = ENVIRONMENTS, np.random.default_rng(7)
    table = [["task", "M/s, 1 thread", "M/s, all", "gymnasium M/s", "1 thread", "all"]]
    for task in (case.task for case in cases if case.name in NAMES):
        progress(f"{task.name}: {count} environments")
        if task.choices is None:
            actions = [_drawn(rng, task, count) for _ in range(2)]
        else:
            actions = [rng.integers(len(task.choices), size=count) for _ in range(2)]
        one, every = (
            planar_peers.stepped(
                vector.TaskVectorEnv(task, count, threads=threads),
                actions,
                count,
                clock=clock,
            )
            for threads, clock in ((1, time.process_time), (None, time.perf_counter))
        )
        line = [task.name, f"{one / 1e6:.2f}", f"{every / 1e6:.2f}", "", "", ""]
        if task.name == "classic_cart_pole":
            progress(f"{task.name}: gymnasium")
            peer = planar_peers.gymnasium_cart_poles(count, actions)
            line[3:] = [f"{peer / 1e6:.2f}", _ratio(one / peer), _ratio(every / peer)]
        table.append(line)
    return table


def _accelerations(progress: Progress) -> Table:
    """Measure chain_recursion by the number of joints and of rows.

    Source: WAW-15.4.
    """
    rng = np.random.default_rng(7)
    head = ["rows", *(f"{n} joints, ns" for n in JOINTS)]
    table = [[*head, *(f"{n} joints, M/s" for n in JOINTS)]]
    programs = []
    for n in JOINTS:
        kind = {0: "fixed", n - 1: "line"} if n > 2 else {0: "fixed"}
        modes = {"kind": kind, "s": {n - 1: (0.0, 1.0)}}
        chain = make_chain([0.5] * (n - 1), [1.0] * n, constraints=modes)
        build = solver("chain_recursion").build
        programs.append((n, build(chain, engine="native", threads=1)))
    for rows in BATCHES:
        progress(f"chain_recursion: {rows} rows")
        times = []
        for n, program in programs:
            turns = rng.uniform(-0.6, 0.6, (rows, n - 1)).cumsum(axis=1)
            links = 0.5 * np.stack([np.cos(turns), np.sin(turns)], axis=-1)
            x = np.concatenate([np.zeros((rows, 1, 2)), links.cumsum(axis=1)], axis=1)
            v, F = rng.uniform(-1, 1, (2, rows, n, 2))
            shapes = [(rows, *port.shape) for port in program.outputs]
            out = tuple(np.empty(shape) for shape in shapes)
            times.append(_timed(program, [(x, v, F)], out) / rows)
        line = [f"{t * 1e9:.1f}" for t in times]
        table.append([str(rows), *line, *(f"{1e-6 / t:.2f}" for t in times)])
    return table
