"""Environments for reinforcement learning: tasks for planar systems, and gymnasium.

Tasks need numpy only; PlanarEnv and PlanarVectorEnv need gymnasium, the extra `env`:
pip install 'dyn_ros[env]'. gymnasium looks for no plugins, so its ids are registered
by a call:

    import dyn_core.envs, gymnasium
    dyn_core.envs.register()
    env = gymnasium.make("dyn_ros/Pendulum-v0")
    many = gymnasium.make_vec("dyn_ros/CartPole-v0", num_envs=65536)
"""

from __future__ import annotations

import importlib
from typing import Any

from dyn_core.tasks import TASKS, ChainTask, ObjectTask, Task, planar_task

IDS = {
    f"dyn_ros/{''.join(part.capitalize() for part in name.split('_'))}-v0": name
    for name in TASKS
}
_LAZY = {
    "PlanarEnv": "dyn_core.envs.env",
    "PlanarVectorEnv": "dyn_core.envs.vector",
    "Picture": "dyn_core.envs.render",
    "record": "dyn_core.envs.render",
}


def register() -> None:
    """Register the ids of the tasks with gymnasium: dyn_ros/Pendulum-v0, ...

    A second call changes nothing.

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
                entry_point="dyn_core.envs.env:PlanarEnv",
                vector_entry_point="dyn_core.envs.vector:PlanarVectorEnv",
                max_episode_steps=TASKS[task].max_steps,
                kwargs={"task": task},
            )


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_LAZY[name]), name)


__all__ = [
    "IDS",
    "TASKS",
    "ChainTask",
    "ObjectTask",
    "Picture",
    "PlanarEnv",
    "PlanarVectorEnv",
    "Task",
    "planar_task",
    "record",
    "register",
]
