"""Choice of the drawing for a task."""

from __future__ import annotations

from dyn_core.envs.render import Picture
from dyn_core.envs.robot_picture import RobotPicture
from dyn_core.tasks import RobotTask, Task


def picture_of(task: Task | RobotTask) -> Picture | RobotPicture:
    """Return a new drawing of the task's states."""
    return RobotPicture(task) if isinstance(task, RobotTask) else Picture(task)
