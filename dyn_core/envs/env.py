"""A task as an environment of gymnasium.

A state has ns numbers, an action na, an observation no: attributes of the task.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dyn_core.envs.rules import (
    EpisodeRules,
    action_space,
    changed_task,
    checked_options,
    checked_states,
    diverged_rows,
    divergence_error,
    gymnasium,
    observation_space,
)
from dyn_core.tasks import RobotTask, Task


class TaskEnv(EpisodeRules, gymnasium.Env[np.ndarray, Any]):
    """A task of a planar system or a robot as an environment of gymnasium.

    `reset` or `set_state` must come before `step`. Finite actions beyond their bounds
    are clipped. In an environment from gymnasium.make the wrapper TimeLimit truncates
    episodes; otherwise max_episode_steps does. A step after the end of an episode
    continues the motion. A motion that diverges ends the episode with the observation
    of the last valid state, the reward 0 and info["diverged"] True.

    Attributes:
        task: The task.

    Args:
        task: Name of a task, a Task or a RobotTask.
        render_mode: rgb_array or None.
        max_episode_steps: Steps after which an episode is truncated; None:
            task.max_steps.
        engine: Engine of the Programs; None: the default.
        divergence: Reaction to a motion that diverges (an entry of its observation is
            not finite or beyond ±1e9): terminate, or raise for a NonFiniteError.
        dtype: Type of observations: float64 or float32.
        changes: Attributes of the task that are replaced (planar_task, robot_task).

    Raises:
        ModelError: The task or an attribute is unknown, or an attribute is invalid.
        SettingError: Another argument, or a function of a RobotTask, is invalid.
        UnsupportedError: The task's stepping does not support its world; the engine is
            unknown; or there is a render mode, and matplotlib is not installed.
        ShapeError: A function of a RobotTask returns arrays of another shape.

    Source: WAW-15.5.
    """

    def __init__(
        self,
        task: str | Task | RobotTask,
        render_mode: str | None = None,
        max_episode_steps: int | None = None,
        engine: str | None = None,
        divergence: str = "terminate",
        dtype: Any = "float64",
        **changes: Any,
    ) -> None:
        chosen = changed_task(task, changes, TaskEnv)
        limits = render_mode, max_episode_steps, divergence, dtype
        super().__init__(chosen, (), *limits, engine=engine)
        self.observation_space = observation_space(chosen, self._dtype)
        self.action_space = action_space(chosen)
        self._steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode; return its first observation, (no,), and an empty info.

        Args:
            seed: Seed of the task's random numbers; equal seeds give equal bits; None:
                they continue. It is set also if the options are then refused.
            options: {"state": (ns,)} begins with that state [SI]; None: a state is
                drawn.

        Raises:
            SettingError: An unknown option, or options that are no mapping.
            ShapeError, NonFiniteError: An invalid state.
            gymnasium.error.Error: A seed that is no integer from 0 on.
        """
        gymnasium.Env.reset(self, seed=seed)
        checked = checked_options(options, ("state",))
        if "state" in checked:
            state = checked_states(checked["state"], (self.task.ns,))
        else:
            state = self.task.start(self.np_random, 1)[0]
        self._state, self._steps, self._started = state, 0, True
        return self._cast(self._observed(state)), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Return observation, reward, terminated, truncated, info after one step.

        `truncated` is True from the step max_episode_steps on, but always False in an
        environment from gymnasium.make, whose wrapper truncates. info is empty, or
        {"diverged": True}: then state and observation are those before the step, the
        reward is 0, and `terminated` is True.

        Args:
            action: Action, (na,) [SI], or with task.choices its index.

        Raises:
            ShapeError, NonFiniteError: The action is invalid.
            NonFiniteError: The motion diverged, and divergence is "raise"; the state
                stays as before, and the step is counted.
            SettingError: Neither reset nor set_state was called yet.
        """
        self._demand_reset()
        after, seen, reward, over = self._program(self._state, self._acted(action))
        self._steps += 1
        late = self.spec is None and self._steps >= self._limit
        rows = diverged_rows(seen[None])
        if len(rows):
            if self._divergence == "raise":
                steps = np.array([self._steps])
                raise divergence_error(self.task, after[None], steps, rows)
            seen = self._cast(self._observed(self._state))
            return seen, 0.0, True, late, {"diverged": True}
        self._state = after
        return self._cast(seen), float(reward), bool(over != 0.0), late, {}
