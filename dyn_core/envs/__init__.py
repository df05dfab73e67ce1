"""Environments for reinforcement learning: tasks of systems and robots, and gymnasium.

Tasks need numpy only; the environments need gymnasium, the extra `env`:
pip install 'dyn_ros[env]'. gymnasium does not search for plugins, so a call registers
its ids:

    import dyn_core.envs, gymnasium
    dyn_core.envs.register()
    env = gymnasium.make("dyn_ros/Pendulum-v0")
    many = gymnasium.make_vec("dyn_ros/QuadrupedWalk-v0", num_envs=4096)

`sb3` returns environments for Stable-Baselines3, with the extra `sb3`.
"""

from __future__ import annotations

import importlib
from typing import Any

from dyn_core.errors import unknown_name
from dyn_core.tasks import (
    ROBOT_TASKS,
    TASKS,
    ChainTask,
    ObjectTask,
    RobotTask,
    Task,
    named_task,
    planar_task,
    robot_task,
)

RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py
IDS = {
    f"dyn_ros/{''.join(part.capitalize() for part in name.split('_'))}-v0": name
    for name in (*TASKS, *ROBOT_TASKS)
}
_LAZY = {
    "TaskEnv": "dyn_core.envs.env",
    "TaskVectorEnv": "dyn_core.envs.vector",
    "Picture": "dyn_core.envs.pictures",
    "RobotPicture": "dyn_core.envs.pictures",
    "record": "dyn_core.envs.pictures",
}


def register() -> None:
    """Register the environments of all shipped tasks with gymnasium.

    Ids are the keys of IDS, such as dyn_ros/Pendulum-v0, for gymnasium.make and
    make_vec. Ids that are registered already stay as they are.

    Raises:
        UnsupportedError: gymnasium is not installed.

    Source: WAW-15.5.
    """
    importlib.import_module("dyn_core.envs.env")  # refuses in words
    registration = importlib.import_module("gymnasium.envs.registration")
    for name, task in IDS.items():
        if name not in registration.registry:
            registration.register(
                id=name,
                entry_point="dyn_core.envs.env:TaskEnv",
                vector_entry_point="dyn_core.envs.vector:TaskVectorEnv",
                max_episode_steps=(TASKS | ROBOT_TASKS)[task].max_steps,
                kwargs={"task": task},
            )


def sb3(task: str | Task | RobotTask, num_envs: int = 1, **settings: Any) -> Any:
    """Return environments of one task as a VecEnv of Stable-Baselines3.

        model = stable_baselines3.PPO("MlpPolicy", dyn_core.envs.sb3("reach", 64))

    They step together, in one kernel call for all; see TaskVecEnv in
    dyn_core/envs/stable_baselines.py.

    Args:
        task: Name of a task, a Task or a RobotTask.
        num_envs: Number of environments, at least 1.
        settings: Arguments of TaskVectorEnv, but for autoreset_mode and copy, and
            attributes of the task that are replaced. The default of dtype is float32,
            the type of the networks.

    Raises:
        UnsupportedError: Stable-Baselines3 or gymnasium is not installed, or as of
            TaskVectorEnv.
        SettingError, ModelError, ShapeError: As of TaskVectorEnv.
    """
    stable_baselines = importlib.import_module("dyn_core.envs.stable_baselines")
    return stable_baselines.TaskVecEnv(task, num_envs, **settings)


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        if name.startswith("_"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        raise AttributeError(unknown_name(f"name of {__name__}", name, __all__))
    return getattr(importlib.import_module(_LAZY[name]), name)


__all__ = [
    "IDS",
    "ROBOT_TASKS",
    "TASKS",
    "ChainTask",
    "ObjectTask",
    "Picture",
    "RobotPicture",
    "RobotTask",
    "Task",
    "TaskEnv",
    "TaskVectorEnv",
    "named_task",
    "planar_task",
    "record",
    "register",
    "robot_task",
    "sb3",
]
