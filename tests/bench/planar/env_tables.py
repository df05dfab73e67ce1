"""Steps a second of environments: ours of robots beside gymnasium's of MuJoCo.

`dyn bench --envs`
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from bench.printed_tables import Progress, Table
from bench.rollout import version
from dyn_core.envs import ROBOT_TASKS
from dyn_core.errors import UnsupportedError
from dyn_core.tasks import robot_task

PEERS = ("Ant-v5", "Humanoid-v5", "HalfCheetah-v5", "Pusher-v5")
ROWS = 256  # environments of a vector here
PEER_ROWS = 8  # and there, where they step one after the other
SPAN, REPEATS = 0.5, 3  # time of one measurement [s], the best of so many
LEGEND = f"""\
Environments: random actions, resets of finished episodes included, by the CPU time of
one thread, the best of {REPEATS} runs of {SPAN:g} s, all in this process. single: one
environment without wrappers; vector: one of {ROWS} rows here, and {PEER_ROWS} rows of
gymnasium's SyncVectorEnv of MuJoCo, whose rate does not grow with rows. steps: time
steps of the physics in a step of the environment; physics: of these, a second, of the
vector; simulated: seconds of motion in a second of it. arrays: the same task with
steps on arrays, in lanes, which know limits of joints and contacts of links, too. The
tasks are not the same: robots, time steps and what touches what differ."""


class EnvFigures(NamedTuple):
    """What was measured of an environment.

    Attributes:
        name: Id or task.
        dof: Velocity coordinates.
        dt: Motion in a step [s].
        steps: Time steps of the physics in a step.
        single, vector: Steps of environments a second.
        rows: Of the vector.
    """

    name: str
    dof: int
    dt: float
    steps: int
    single: float
    vector: float
    rows: int

    def line(self) -> list[str]:
        """Return the row of the table."""
        return [
            self.name, f"{self.dof}", f"{self.dt * 1e3:g}", f"{self.steps}",
            f"{self.single:.0f}", f"{self.rows}", f"{self.vector:.0f}",
            f"{self.vector * self.steps:.0f}", f"{self.vector * self.dt:.0f}",
        ]  # fmt: skip


HEAD = ["environment", "dof", "ms", "steps", "single 1/s", "rows", "vector 1/s",
        "physics 1/s", "simulated s/s"]  # fmt: skip


def rate(step: Callable[[], int], span: float, repeats: int) -> float:
    """Return the best rate of what `step` counts a second.

    Args:
        step: Takes a step; returns of how many environments.
        span: Least time of a run [s].
        repeats: Runs.
    """
    step()
    best = 0.0
    for _ in range(repeats):
        start, count, spent = time.process_time(), 0, 0.0
        while spent < span:
            count += step()
            spent = time.process_time() - start
        best = max(best, count / spent)
    return best


def stepping_alone(env: Any) -> Callable[[], int]:
    """Return what takes a step of one environment by random actions."""
    actions, k = _actions(env.action_space), 0
    env.reset(seed=0)

    def step() -> int:
        nonlocal k
        k += 1
        _, _, over, late, _ = env.step(actions[k % len(actions)])
        if over or late:
            env.reset()
        return 1

    return step


def stepping_together(env: Any) -> Callable[[], int]:
    """Return what takes a step of all environments of a vector."""
    actions, k = _actions(env.action_space), 0
    env.reset(seed=0)

    def step() -> int:
        nonlocal k
        k += 1
        env.step(actions[k % len(actions)])
        return int(env.num_envs)

    return step


def _actions(space: Any) -> list[np.ndarray]:
    """Return some random actions, which are drawn before time is taken."""
    space.seed(0)
    return [space.sample() for _ in range(64)]


def ours(
    name: str, span: float, repeats: int, rows: int = ROWS, arrays: bool = False
) -> EnvFigures:
    """Measure a task of ROBOT_TASKS.

    Args:
        name: Of the task.
        span, repeats: See rate.
        rows: Environments of the vector.
        arrays: Whether steps on arrays, in lanes, take the place of a kernel's.
    """
    from dyn_core.envs import TaskEnv, TaskVectorEnv  # of the extra `env`

    changes: dict[str, Any] = {"stepping": "bodies", "options": {}} if arrays else {}
    one = TaskEnv(name, **changes)
    many = TaskVectorEnv(name, num_envs=rows, threads=1, **changes)
    task = one.task
    single = rate(stepping_alone(one), span, repeats)
    vector = rate(stepping_together(many), span, repeats)
    return EnvFigures(
        f"{name}, arrays" if arrays else name,
        task.model.nv,
        task.dt * task.substeps,
        task.substeps,
        single,
        vector,
        rows,
    )


def of_mujoco(name: str, span: float, repeats: int) -> EnvFigures:
    """Measure an environment of gymnasium that runs on MuJoCo."""
    import gymnasium  # of the extra `env`

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = gymnasium.make(name).unwrapped
        many = gymnasium.make_vec(
            name, num_envs=PEER_ROWS, vectorization_mode=gymnasium.VectorizeMode.SYNC
        )
    physics: Any = one
    single = rate(stepping_alone(one), span, repeats)
    vector = rate(stepping_together(many), span, repeats)
    many.close()
    return EnvFigures(
        f"{name}, MuJoCo", int(physics.model.nv), float(physics.dt),
        int(physics.frame_skip), single, vector, PEER_ROWS,
    )  # fmt: skip


def tables(progress: Progress) -> Iterator[tuple[str, Table]]:
    """Return the title and table.

    Args:
        progress: Called with what is measured next.

    Raises:
        UnsupportedError: gymnasium is not installed.
    """
    if not version("gymnasium"):
        raise UnsupportedError(
            "environments need gymnasium, which is not installed; valid:"
            " pip install 'dyn_ros[env]'"
        )
    table, peer = [HEAD], version("mujoco")
    for name in ROBOT_TASKS:
        progress(f"environment {name}")
        table.append(ours(name, SPAN, REPEATS).line())
        if robot_task(name).stepping == "floor":
            progress(f"environment {name}, arrays")
            table.append(ours(name, SPAN, REPEATS, arrays=True).line())
    if peer:
        for name in PEERS:
            progress(f"environment {name}")
            table.append(of_mujoco(name, SPAN, REPEATS).line())
    else:
        progress("mujoco is not installed; its environments are left out")
    title = f"environments ({', '.join(filter(None, (version('gymnasium'), peer)))})"
    yield title, table
