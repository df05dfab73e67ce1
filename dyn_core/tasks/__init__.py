"""Tasks of control for planar systems: what moves, what is seen, what is rewarded."""

from dyn_core.tasks.chain_task import ChainTask
from dyn_core.tasks.classic import classic_tasks
from dyn_core.tasks.shipped import TASKS, planar_task
from dyn_core.tasks.task import ObjectTask, Task
from dyn_core.tasks.walker import Walker, walker_chain

TASKS.update({task.name: task for task in classic_tasks()})

__all__ = [
    "TASKS",
    "ChainTask",
    "ObjectTask",
    "Task",
    "Walker",
    "planar_task",
    "walker_chain",
]
