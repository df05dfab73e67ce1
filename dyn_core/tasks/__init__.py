"""Control tasks of planar systems and robots: motion, observation and reward."""

import inspect
import re
from typing import Any

from dyn_core.errors import ModelError, unknown_name
from dyn_core.tasks.chain_task import ChainTask
from dyn_core.tasks.draws import PayloadMass, Uniform, UniformFactor
from dyn_core.tasks.joint_commands import JointTargets, JointTorques
from dyn_core.tasks.robot_task import RobotRows, RobotTask
from dyn_core.tasks.robots import ROBOT_TASKS, robot_task
from dyn_core.tasks.shipped import TASKS, planar_task
from dyn_core.tasks.task import ObjectTask, Task
from dyn_core.tasks.walker import Walker, walker_chain

RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py


def named_task(task: str | Task | RobotTask, **changes: Any) -> Task | RobotTask:
    """Return a task of a planar system or a robot, with attributes changed.

    Args:
        task: A key of TASKS or ROBOT_TASKS, or a Task or RobotTask.
        changes: New values by name of an attribute of the task. For a task of a planar
            object also `parameters`, a mapping of its parameters by name. Without any,
            a Task or RobotTask is returned itself.

    Raises:
        ModelError: The name of the task or of an attribute is unknown, or a value is
            invalid.
        SettingError: A function of a RobotTask gets a Solver or no function.
    """
    if isinstance(task, RobotTask) or (isinstance(task, str) and task in ROBOT_TASKS):
        return robot_task(task, **changes)
    if not isinstance(task, Task) and str(task) not in TASKS:
        names = [*ROBOT_TASKS, *TASKS]
        camel = re.sub(r"^dyn_ros/|-v\d+$", "", str(task))  # dyn_ros/QuadrupedWalk-v0
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", camel).lower()
        if name in names:
            message = f"'{task}' is an id of gymnasium.make; valid here: '{name}'"
        else:
            message = unknown_name("task", task, names, limit=None)
        raise ModelError(message, str(task))
    return planar_task(task, **changes)


def task_page(name: str) -> str:
    """Return "NAME: " and the docstring of a task: aim, action, observation, reward.

    It is that of the function that builds the task of a robot, or of the class of a
    planar task, which several names may share.

    Args:
        name: A key of TASKS or ROBOT_TASKS.

    Raises:
        KeyError: There is no such task.
    """
    of = ROBOT_TASKS[name].make if name in ROBOT_TASKS else type(TASKS[name])
    said = (inspect.getdoc(of) or "").removeprefix("Build the task: ")
    return f"{name}: {said[:1].lower()}{said[1:]}"


__all__ = [
    "ROBOT_TASKS",
    "TASKS",
    "ChainTask",
    "JointTargets",
    "JointTorques",
    "ObjectTask",
    "PayloadMass",
    "RobotRows",
    "RobotTask",
    "Task",
    "Uniform",
    "UniformFactor",
    "Walker",
    "named_task",
    "planar_task",
    "robot_task",
    "task_page",
    "walker_chain",
]
