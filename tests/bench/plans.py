"""What plans cost: iterations of box_fddp and mppi, and the first answer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import dyn_core as dyn
from bench.cases import Robot, usual
from bench.printed_tables import Progress, Table
from dyn_core.engines.llvm import host_machine
from dyn_core.engines.machine_code import compiled
from dyn_core.errors import DynError
from dyn_core.prediction.plan_lanes import slopes_in_lanes, sweep_lanes

DT, MANY = 0.02, 64
REPEATS, LONG = (
    15,
    4.0,
)  # most calls that are timed; after so much time [s] three will do
SAMPLES, NODES = 1024, 6
LEGEND = f"""\
Plans by dyn.plan(...).solve, on one core, from Python, warm but for `first answer`: load,
costs, build, compile and solve. Steps of {DT} s; costs: posture (running and at the end),
velocity, effort; limits of position and velocity where a row says so. An iteration: linear steps, costs,
Riccati sweep, step lengths, divided from whole calls with a guess that holds the start;
box: effort limits of which some act. {MANY} problems: one call, each from another start.
MPPI: {SAMPLES} samples, 30 knots, with the cost of a pose; noise drawn for each knot or
at {NODES} nodes. What a cell asks for and this library has not is '-'."""
HEAD = ["what", "us", "aim us", "per second", "iterations"]


def tables(progress: Progress) -> Iterator[tuple[str, Table]]:
    """Return a table for each usual robot as it is measured."""
    for robot, knots, aim in zip(
        usual(), (50, 100, 60), (150, None, 8000), strict=False
    ):
        progress(robot.name)
        rows = [HEAD]
        try:
            rows += _rows(robot, knots, aim)
        except DynError as error:
            progress(f"{robot.name}: {error}")
            continue
        if robot.floating and aim is None:
            rows.append(_scheduled(robot.model, knots))
        yield f"{robot.title}, {knots} knots", rows


def _rows(robot: Robot, knots: int, aim: float | None) -> Iterator[list[str]]:
    """Measure the plans of one robot."""
    start, rng = time.perf_counter(), np.random.default_rng(0)
    model = robot.model
    free = _plan(model, knots, None)
    q, qd = model.start(), np.zeros(model.nv)
    free.solve(q, qd)
    first = time.perf_counter() - start
    yield _row("iteration, no bound active", *_iteration(free, q, qd), aim)
    largest = np.abs(free.solve(q, qd).tau).max()
    box = _plan(model, knots, 0.5 * float(largest))
    box.solve(q, qd)
    yield _row("iteration, box", *_iteration(box, q, qd), None)
    if not robot.floating:
        limited = _plan(model, knots, None, limits=True, max_iterations=50)
        limited.solve(q, qd)
        yield _row("iteration, limits", *_iteration(limited, q, qd), None)
    turns = rng.normal(size=(MANY, model.nv)) * 0.1
    starts = np.array([model.integrate(q, turn) for turn in turns])
    for function in (sweep_lanes, slopes_in_lanes):  # calls do not wait for them
        compiled(function, lanes=host_machine.machine().width).prepare()
    seconds, count = _iteration(free, starts, np.zeros((MANY, model.nv)))
    yield _row(f"{MANY} problems, an iteration", seconds, count, 1e6 / 12e3)
    for name, nodes, rate in (("each knot", 0, 180), (f"{NODES} nodes", NODES, 400)):
        sampled = _plan(
            model, 30, None, "mppi", samples=SAMPLES, nodes=nodes, max_iterations=5
        )
        sampled.solve(q, qd)
        seconds, count = _iteration(sampled, q, qd)
        yield _row(f"mppi, noise of {name}", seconds, count, 1e6 / rate)
    yield _row("first answer", first, 1, 1e6)


def _scheduled(model: Any, knots: int) -> list[str]:
    """Measure a plan of a quadruped on two feet in the middle, on four else."""
    q, end = model.start(), knots * DT
    feet = [name for name in model.frame_names if name.lower().endswith("foot")]
    places = dyn.solver("forward_kinematics").build(model, frames=feet)(q)
    loops = [
        dyn.make_loop(foot, "point", foot, at_a={"xyz": place[:3, 3]})
        for foot, place in zip(feet, places, strict=True)
    ]
    spans = [(0.0, 0.3 * end), (0.7 * end, end)]
    contacts = [(loop, 0.0, end) for loop in (loops[0], loops[3])]
    contacts += [(loop, *span) for loop in loops[1:3] for span in spans]
    plan = _plan(model, knots, None, turn=0.03, contacts=contacts)
    plan.solve(q, np.zeros(model.nv))
    what = "iteration, scheduled contacts"
    return _row(what, *_iteration(plan, q, np.zeros(model.nv)), 2500)


def _row(what: str, seconds: float, count: int, aim: float | None) -> list[str]:
    shown = "-" if aim is None else f"{aim:.0f}"
    return [what, f"{seconds * 1e6:.1f}", shown, f"{1 / seconds:.0f}", f"{count}"]


def _plan(
    model: Any,
    knots: int,
    bound: float | None,
    solver: str = "box_fddp",
    turn: float = 0.3,
    limits: bool = False,
    **options: Any,
) -> Any:
    """Return a plan to a posture a `turn` away in each joint, and for mppi to a pose."""
    q = model.start()
    goal = model.integrate(q, np.full(model.nv, turn))
    frame = model.frame_names[-1]
    costs = [
        dyn.cost.posture(goal, 0.1),
        dyn.cost.posture(goal, 100.0, "end", "goal"),
        dyn.cost.velocity(0.1),
        dyn.cost.effort(1e-3),
    ]
    if solver == "mppi":
        kinematics = dyn.solver("forward_kinematics").build(model, frames=[frame])
        costs.append(dyn.cost.pose(frame, np.asarray(kinematics(goal))[0], 10.0))
    bounds = {name: bound for name in model.joint_names if _one(model, name)}
    return dyn.plan(
        model, costs, knots * DT, knots, solver, effort_limits=bounds, limits=limits,
        **options,
    )  # fmt: skip


def _one(model: Any, name: str) -> bool:
    """Return whether a joint has one coordinate."""
    part = model.v_slice(name)
    return bool(part.stop - part.start == 1)


def _iteration(plan: Any, q: np.ndarray, qd: np.ndarray) -> tuple[float, int]:
    """Return the median CPU time of an iteration [s], and their number in a call."""
    seconds: list[float] = []
    count, end = 1, time.thread_time() + LONG
    while len(seconds) < (3 if time.thread_time() > end else REPEATS):
        start = time.thread_time()  # kernels may be compiled in the background
        result = plan.solve(q, qd)
        spent = time.thread_time() - start
        each = result if isinstance(result, list) else [result]
        count = max(sum(x.iterations for x in each), 1)
        seconds.append(spent / count)
    return float(np.median(seconds)), count
