"""Gymnasium environments of robots in three dimensions, single and vectorised."""

from __future__ import annotations

from typing import Any

import numpy as np

from dyn_core.envs.env import TaskEnv
from dyn_core.envs.vector import AutoresetMode, TaskVectorEnv, checked_rows
from dyn_core.tasks.robot_program import RobotProgram
from dyn_core.tasks.robot_task import RobotTask
from dyn_core.tasks.robots import robot_task


class _OneRow:
    """A RobotProgram of one row, called with one state."""

    def __init__(self, program: RobotProgram) -> None:
        self._program = program

    def __call__(self, state: np.ndarray, action: np.ndarray) -> tuple[Any, ...]:
        """Return state, observation, reward and end of one row."""
        return tuple(x[0] for x in self._program(state[None], action[None]))

    def observe(self, state: np.ndarray) -> np.ndarray:
        """Return the observation of one state, (no,)."""
        seen: np.ndarray = self._program.observe(state[None])[0]
        return seen


class RobotEnv(TaskEnv):
    """A robot task as an environment of gymnasium, by the rules of TaskEnv.

    Args:
        task: Name of a task, or a RobotTask.
        render_mode: rgb_array or None.
        max_episode_steps: Steps after which an episode is truncated; None: as the task.
        engine: Of the Programs; None: the default.
        divergence: Reaction to a motion that diverges: terminate, or raise a
            NonFiniteError.
        dtype: Of observations: float64 or float32.
        changes: Attributes of the task (robot_task).

    Raises:
        ModelError: An unknown task or attribute.
        SettingError: Another argument is invalid.

    Source: WAW-15.5, in three dimensions.
    """

    def __init__(
        self,
        task: str | RobotTask = "reach",
        render_mode: str | None = None,
        max_episode_steps: int | None = None,
        engine: str | None = None,
        divergence: str = "terminate",
        dtype: str = "float64",
        **changes: Any,
    ) -> None:
        chosen = robot_task(task, **changes)
        program = _OneRow(RobotProgram(chosen, 1, engine=engine))
        super().__init__(
            chosen,
            program,
            program.observe,
            render_mode,
            max_episode_steps,
            divergence,
            dtype,
        )


class RobotVectorEnv(TaskVectorEnv):
    """Environments of one robot task, by the rules of TaskVectorEnv.

    Args:
        task: Name of a task, or a RobotTask.
        num_envs: Number of environments.
        max_episode_steps: Steps after which an episode is truncated; None: as the task.
        render_mode: rgb_array or None.
        autoreset_mode: When finished environments are reset.
        threads: Maximum number of threads of a step; None: all cores.
        copy: Whether each step returns new arrays; otherwise the next step overwrites
            them.
        engine: Of the Programs; None: the default.
        divergence: Reaction to a motion that diverges: terminate, or raise a
            NonFiniteError.
        dtype: Of observations: float64 or float32.
        changes: Attributes of the task (robot_task).

    Raises:
        ModelError: An unknown task or attribute.
        SettingError: Another argument is invalid.

    Source: WAW-15.4, WAW-15.5, in three dimensions.
    """

    def __init__(
        self,
        task: str | RobotTask = "reach",
        num_envs: int = 1,
        max_episode_steps: int | None = None,
        render_mode: str | None = None,
        autoreset_mode: Any = AutoresetMode.NEXT_STEP,
        threads: int | None = None,
        copy: bool = True,
        engine: str | None = None,
        divergence: str = "terminate",
        dtype: str = "float64",
        **changes: Any,
    ) -> None:
        chosen, rows = robot_task(task, **changes), checked_rows(num_envs)
        program = RobotProgram(chosen, rows, engine=engine, threads=threads)
        super().__init__(
            chosen,
            program,
            program.observe,
            rows,
            max_episode_steps,
            render_mode,
            autoreset_mode,
            copy,
            divergence,
            dtype,
        )
