"""Control tasks of planar systems and robots: motion, observation and reward."""

from dyn_core.tasks.chain_task import ChainTask
from dyn_core.tasks.classic import classic_tasks
from dyn_core.tasks.draws import PayloadMass, Uniform
from dyn_core.tasks.joint_commands import JointTargets, JointTorques
from dyn_core.tasks.robot_task import RobotRows, RobotTask
from dyn_core.tasks.robots import ROBOT_TASKS, robot_task
from dyn_core.tasks.shipped import TASKS, planar_task
from dyn_core.tasks.task import ObjectTask, Task
from dyn_core.tasks.walker import Walker, walker_chain

RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py

TASKS.update({task.name: task for task in classic_tasks()})

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
    "Walker",
    "planar_task",
    "robot_task",
    "walker_chain",
]
