"""Tasks of shipped robots in three dimensions, one file for each robot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from dyn_core.errors import ModelError, unknown_name
from dyn_core.tasks.robot_task import RobotTask
from dyn_core.tasks.robots import (
    humanoid_stand,
    push_box,
    quadruped,
    reach,
)


class ShippedTask(NamedTuple):
    """A task that is built on demand.

    Attributes:
        make: Function without arguments that builds and returns a new RobotTask.
        max_steps: Steps of the task after which an episode is truncated.
    """

    make: Callable[[], RobotTask]
    max_steps: int


ROBOT_TASKS: dict[str, ShippedTask] = {
    "reach": ShippedTask(reach.reach, reach.MAX_STEPS),
    "quadruped_walk": ShippedTask(quadruped.quadruped_walk, quadruped.MAX_STEPS),
    "quadruped_stand": ShippedTask(quadruped.quadruped_stand, quadruped.MAX_STEPS),
    "humanoid_stand": ShippedTask(
        humanoid_stand.humanoid_stand, humanoid_stand.MAX_STEPS
    ),
    "push_box": ShippedTask(push_box.push_box, push_box.MAX_STEPS),
}


def robot_task(name: str | RobotTask, **changes: Any) -> RobotTask:
    """Return a task of a robot, with some attributes changed.

    Args:
        name: A key of ROBOT_TASKS, or a RobotTask.
        changes: New values of attributes of RobotTask (reward, values, dt, substeps,
            ...); without any, a RobotTask is returned itself.

    Raises:
        ModelError: An unknown name or attribute, or an invalid value.
        SettingError: The new value for a function is a Solver or no function.
    """
    if not isinstance(name, RobotTask):
        if not isinstance(name, str) or name not in ROBOT_TASKS:
            raise ModelError(unknown_name("robot task", name, ROBOT_TASKS), str(name))
        name = ROBOT_TASKS[name].make()
    return name.changed(**changes) if changes else name


__all__ = ["ROBOT_TASKS", "ShippedTask", "robot_task"]
