"""Inverse kinematics beside mink and pink: the same poses, starts and limits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from bench.cases import Robot
from bench.printed_tables import Progress, Table
from bench.rollout import version
from dyn_core.kinematics import InverseKinematics
from dyn_core.solving.registry import solver

POSES, ROWS, REPEATS = 200, 4096, 5
STEPS, THERE = 100, 1e-9  # most steps from one start; error that counts as there
DAMPING = 0.1  # of the squared error, as here
LEGEND = f"""\
{POSES} poses that random positions inside the limits have. Reached: the pose is there
to {THERE:g} rad and m by this library's forward kinematics. us: CPU time for a pose,
reached or not, called from Python. One start: a random one, the same for everybody,
{STEPS} steps at most; 8 starts: dyn.inverse_kinematics without restarts; many: a batch
of {ROWS} poses, one start after the other, one core. mink, pink: differential inverse
kinematics, gain 1, steps of 1 s, quadratic programs by daqp, limits of positions, the
damping of this library, one start; ratio: how much longer it takes than one start."""


class Reaching(NamedTuple):
    """How a method reaches poses.

    Attributes:
        name: Of the row.
        q: Positions, by pose.
        seconds: CPU time for a pose.
    """

    name: str
    q: np.ndarray
    seconds: float


Solve = Callable[[np.ndarray, np.ndarray], np.ndarray]  # position from start and pose


def tables(robots: Sequence[Robot], progress: Progress) -> Iterator[tuple[str, Table]]:
    """Return a table of each robot as it is measured."""
    for robot in robots:
        frame = robot.tips[0]
        model = robot.model
        kinematics = solver("forward_kinematics").build(model, frames=[frame])
        rng = np.random.default_rng(7)
        poses = kinematics(np.array([model.random(rng) for _ in range(POSES)]))[:, 0]
        starts = np.array([model.random(rng) for _ in range(POSES)])
        table = [["method", "reached %", "us", "ratio"]]
        first: Reaching | None = None
        for row in _measured(robot, frame, starts, poses, progress):
            first = first or row
            error = np.abs(kinematics(row.q)[:, 0] - poses).max((1, 2))
            table.append(_line(row, float((error <= THERE).mean()), first))
        yield f"{robot.name}: {frame}", table


def _line(row: Reaching, share: float, first: Reaching) -> list[str]:
    """Return a row of the table; of a peer with how much longer it takes."""
    peer = row.name.startswith(("mink", "pink"))
    ratio = f"{row.seconds / first.seconds:.0f}x" if peer else ""
    return [row.name, f"{100 * share:.1f}", f"{row.seconds * 1e6:.2f}", ratio]


def _measured(
    robot: Robot,
    frame: str,
    starts: np.ndarray,
    poses: np.ndarray,
    progress: Progress,
) -> Iterator[Reaching]:
    """Measure this library, and the peers that are installed."""
    progress(f"{robot.name}: inverse_kinematics")
    program = solver("inverse_kinematics").build(
        robot.model, frame=frame, max_iterations=STEPS, tolerance=THERE / 10
    )
    yield _one_by_one("one start", lambda q, x: program(q, x).q_reached, starts, poses)
    reach = InverseKinematics(robot.model, frame, restarts=0)
    yield _one_by_one("8 starts", lambda q, x: reach(x).q, starts, poses)
    all_starts = InverseKinematics(robot.model, frame, threads=1)
    many = np.resize(poses, (ROWS, 4, 4))
    seconds = min(_seconds(lambda: all_starts.many(many)) for _ in range(REPEATS))
    yield Reaching("many", all_starts.many(poses).q, seconds / ROWS)
    for name, prepare in (("mink", _mink), ("pin-pink", _pink)):
        title = version(name)
        if title is None:
            progress(f"{name} is not installed; its row is left out")
            continue
        if robot.model.nq != robot.model.nv:
            progress(f"{name} is measured on robots of hinges and slides only")
            continue
        progress(f"{robot.name}: {title}")
        solve = prepare(robot, frame)
        yield _one_by_one(title.removeprefix("pin-"), solve, starts, poses, 1)


def _one_by_one(
    name: str,
    solve: Solve,
    starts: np.ndarray,
    poses: np.ndarray,
    repeats: int = REPEATS,
) -> Reaching:
    """Call for each pose; the least of several rounds."""
    pairs = list(zip(starts, poses, strict=True))
    q = np.array([solve(*pair) for pair in pairs])
    seconds = min(
        _seconds(lambda: [solve(*pair) for pair in pairs]) for _ in range(repeats)
    )
    return Reaching(name, q, seconds / len(pairs))


def _seconds(function: Callable[[], Any]) -> float:
    """Return the CPU time of a call."""
    start = time.process_time()
    function()
    return time.process_time() - start


def _mink(robot: Robot, frame: str) -> Solve:
    """Return mink's way from a start to a pose."""
    mujoco, mink = import_module("mujoco"), import_module("mink")
    plain = '<mujoco><compiler fusestatic="false"/></mujoco></robot>'
    model = mujoco.MjModel.from_xml_string(robot.urdf.replace("</robot>", plain))
    order = [model.joint(name).qposadr[0] for name in robot.model.joint_names]
    configuration = mink.Configuration(model)
    task = mink.FrameTask(frame, "body", 1.0, 1.0, lm_damping=DAMPING)
    limits = [mink.ConfigurationLimit(model)]

    def solve(start: np.ndarray, pose: np.ndarray) -> np.ndarray:
        q = np.zeros(model.nq)
        q[order] = start
        configuration.update(q)
        task.set_target(mink.SE3.from_matrix(pose))
        for _ in range(STEPS):
            if np.linalg.norm(task.compute_error(configuration)) <= THERE / 10:
                break
            try:
                v = mink.solve_ik(configuration, [task], 1.0, "daqp", limits=limits)
            except mink.exceptions.NoSolutionFound:
                break  # rounding left the limits
            configuration.integrate_inplace(v, 1.0)
        return np.array(configuration.q[order])

    return solve


def _pink(robot: Robot, frame: str) -> Solve:
    """Return pink's way from a start to a pose."""
    pin, pink = import_module("pinocchio"), import_module("pink")
    tasks = import_module("pink.tasks")
    limits = import_module("pink.limits")
    model = pin.buildModelFromXML(robot.urdf)
    names = robot.model.joint_names
    order = [model.joints[model.getJointId(name)].idx_q for name in names]
    task, data = tasks.FrameTask(frame, 1.0, 1.0, DAMPING), model.createData()
    bounds = [limits.ConfigurationLimit(model, 1.0)]

    def solve(start: np.ndarray, pose: np.ndarray) -> np.ndarray:
        q = pin.neutral(model)
        q[order] = start
        configuration = pink.Configuration(model, data, q)
        task.set_target(pin.SE3(pose))
        for _ in range(STEPS):
            if np.linalg.norm(task.compute_error(configuration)) <= THERE / 10:
                break
            try:
                v = pink.solve_ik(
                    configuration, [task], 1.0, "daqp", limits=bounds,
                    safety_break=False,
                )  # fmt: skip
            except pink.exceptions.NoSolutionFound:
                break
            configuration.integrate_inplace(v, 1.0)
        return np.array(configuration.q[order])

    return solve
