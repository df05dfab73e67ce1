"""Environments of one task that step together: one kernel call for all."""

from __future__ import annotations

from numbers import Integral
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
from dyn_core.errors import SettingError, ShapeError
from dyn_core.tasks import RobotTask, Task

AutoresetMode = gymnasium.vector.AutoresetMode


class TaskVectorEnv(
    EpisodeRules, gymnasium.vector.VectorEnv[np.ndarray, Any, np.ndarray]
):
    """Environments of one task that step together.

    All rows draw from one generator, row by row: with one environment, and a mode that
    resets at the same times, the numbers equal those of TaskEnv. Finite actions beyond
    their bounds are clipped. `reset` or `set_state` must come before `step`.

    Modes of reset, by gymnasium's names: NEXT_STEP (a finished environment is reset in
    the next step, which checks but does not use its action, with reward 0; it is then
    neither terminated nor truncated), SAME_STEP (at once; the last observation is in
    info["final_obs"], for the rows of info["_final_obs"]), DISABLED (by
    reset(options={"reset_mask": rows}); until then a finished environment continues).

    A row whose motion diverges is terminated, with the observation of its last valid
    state, the reward 0 and info["diverged"] True; the others continue.

    Attributes:
        task: The task; task.ns, task.na and task.no are the sizes of its state, action
            and observation.
        num_envs: Number of environments.

    Args:
        task: Name of a task, a Task or a RobotTask.
        num_envs: Number of environments, at least 1.
        max_episode_steps: Steps after which an episode is truncated; None:
            task.max_steps.
        render_mode: rgb_array or None.
        autoreset_mode: When finished environments are reset: an AutoresetMode or its
            value.
        threads: Maximum number of threads of a step; None: the environment variable
            DYN_THREADS, else all cores.
        copy: Whether each step returns new observations and rewards; otherwise they are
            buffers that the next step overwrites.
        engine: Engine of the Programs; None: the default.
        divergence: Reaction to a motion that diverges (an entry of its observation is
            not finite or beyond ±1e9): terminate, or raise for a NonFiniteError.
        dtype: Type of observations: float64 or float32.
        changes: Attributes of the task that are replaced (planar_task, robot_task).

    Raises:
        ModelError: The task or an attribute is unknown, or an attribute is invalid.
        SettingError: Another argument, or a function of a RobotTask, is invalid.
        UnsupportedError: The task's stepping does not support its world; `engine` or
            `threads` is invalid; or there is a render mode, and matplotlib is not
            installed.
        ShapeError: A function of a RobotTask returns arrays of another shape.

    Source: WAW-15.4, WAW-15.5.
    """

    metadata = {
        **EpisodeRules.metadata, "autoreset_mode": AutoresetMode.NEXT_STEP,
    }  # fmt: skip

    def __init__(
        self,
        task: str | Task | RobotTask,
        num_envs: int = 1,
        max_episode_steps: int | None = None,
        render_mode: str | None = None,
        autoreset_mode: Any = AutoresetMode.NEXT_STEP,
        threads: int | None = None,
        copy: bool = True,
        engine: str | None = None,
        divergence: str = "terminate",
        dtype: Any = "float64",
        **changes: Any,
    ) -> None:
        chosen = changed_task(task, changes, TaskVectorEnv)
        num_envs = self.num_envs = checked_rows(num_envs)
        if not isinstance(copy, bool):
            raise SettingError(f"copy is {copy!r}; valid: True, False", "copy")
        self._mode = _autoreset(autoreset_mode)
        limits = render_mode, max_episode_steps, divergence, dtype
        super().__init__(chosen, (num_envs,), *limits, engine=engine, threads=threads)
        self.metadata["autoreset_mode"] = self._mode
        self.single_observation_space = observation_space(chosen, self._dtype)
        self.single_action_space = action_space(chosen)
        batched = gymnasium.vector.utils.batch_space
        self.observation_space = batched(self.single_observation_space, num_envs)
        self.action_space = batched(self.single_action_space, num_envs)
        self._next, self._over = np.empty_like(self._state), np.empty(num_envs)
        self._steps = np.zeros(num_envs, np.int32)
        self._done = np.zeros(num_envs, bool)
        self._buffers = None if copy else self._fresh()
        self._cast_buffer = None if copy else self._fresh()[0].astype(self._dtype)

    def _fresh(self) -> tuple[np.ndarray, np.ndarray]:
        """Return new float64 arrays of observations and rewards, not set."""
        return np.empty((self.num_envs, self.task.no)), np.empty(self.num_envs)

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin episodes; return all observations, (num_envs, no), and an empty info.

        Args:
            seed: An integer; equal seeds give equal bits; None: the random numbers
                continue. It is set also if the options are then refused.
            options: {"state": (num_envs, ns)} begins with these states [SI];
                {"reset_mask": (num_envs,)}, booleans, selects the environments that are
                reset, others stay as they are. With both, the states of other
                environments are checked and ignored. None: all are reset, with states
                drawn.

        Raises:
            SettingError: A seed that is not an integer, an unknown option, options
                that are no mapping, or a reset_mask before the first reset or
                set_state.
            ShapeError, NonFiniteError: Invalid states, or a mask of another shape or
                dtype.
            gymnasium.error.Error: A negative seed.
        """
        whole = isinstance(seed, (int, np.integer)) and not isinstance(seed, bool)
        if seed is not None and not whole:
            message = f"seed must be one whole number for all rows, got {seed!r}"
            raise SettingError(message, "seed")
        gymnasium.vector.VectorEnv.reset(self, seed=None if seed is None else int(seed))
        checked = checked_options(options, ("state", "reset_mask"))
        rows = np.arange(self.num_envs)
        if "reset_mask" in checked:
            wanted = f"booleans of shape ({self.num_envs},)"
            try:
                mask = np.asarray(checked["reset_mask"])
            except ValueError as error:
                raise ShapeError("reset_mask", wanted, "a ragged list") from error
            if mask.shape != (self.num_envs,) or mask.dtype != bool:
                raise ShapeError("reset_mask", wanted, f"{mask.dtype} {mask.shape}")
            self._demand_reset()
            rows = np.flatnonzero(mask)
        if "state" in checked:
            shape = (self.num_envs, self.task.ns)
            self._state[rows] = checked_states(checked["state"], shape)[rows]
        else:
            self._state[rows] = self.task.start(self.np_random, len(rows))
        self._steps[rows], self._done[rows], self._started = 0, False, True
        return self._cast(self._observed(self._state)), {}

    def step(
        self, actions: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Return observations, rewards, terminated, truncated and info after one step.

        Finished environments are reset as set by autoreset_mode, see the class. info is
        empty, but for "diverged" and "_diverged" (num_envs,) booleans if a motion
        diverged, and in mode SAME_STEP, if an episode ended, "final_obs" (num_envs, no)
        and "_final_obs" (num_envs,), True for the rows whose last observation it has.
        With `copy` False the next step overwrites observations and rewards.

        Args:
            actions: Actions, (num_envs, na) [SI], or with task.choices their indices,
                (num_envs,).

        Returns:
            Observations (num_envs, no), float64 rewards (num_envs,), two arrays of
            booleans (num_envs,), and info.

        Raises:
            ShapeError, NonFiniteError: An action is invalid.
            NonFiniteError: A motion diverged, and divergence is "raise"; all states and
                counts of steps stay as before.
            SettingError: Neither reset nor set_state was called yet.
        """
        self._demand_reset()
        seen, reward = self._fresh() if self._buffers is None else self._buffers
        out = (self._next, seen, reward, self._over)
        self._program(self._state, self._acted(actions), out=out)
        info = self._without_divergence(seen, reward)
        self._state, self._next = self._next, self._state
        self._steps += 1
        terminated, truncated = self._over != 0.0, self._steps >= self._limit
        if self._mode is AutoresetMode.NEXT_STEP:
            rows = np.flatnonzero(self._done)
            if len(rows):
                seen[rows], reward[rows] = self._begin(rows), 0.0
                terminated[rows] = truncated[rows] = False
        np.logical_or(terminated, truncated, out=self._done)
        if self._mode is AutoresetMode.SAME_STEP:
            rows = np.flatnonzero(self._done)
            if len(rows):
                final = seen.astype(self._dtype)
                info |= {"final_obs": final, "_final_obs": self._done.copy()}
                seen[rows] = self._begin(rows)
        return self._cast(seen), reward, terminated, truncated, info

    def _without_divergence(
        self, seen: np.ndarray, reward: np.ndarray
    ) -> dict[str, Any]:
        """Restore the last valid state of rows that diverged; return info about them.

        It is restored in self._next; the rows are marked in self._over, and `seen` and
        `reward` get its observation and 0, in place. In mode NEXT_STEP rows that are
        about to be reset are ignored. If divergence is "raise", a NonFiniteError leaves
        all states as before the step.
        """
        rows = diverged_rows(seen)
        if self._mode is AutoresetMode.NEXT_STEP:
            rows = rows[~self._done[rows]]  # the others begin anew, whatever came out
        if not len(rows):
            return {}
        if self._divergence == "raise":
            raise divergence_error(self.task, self._next, self._steps + 1, rows)
        self._next[rows], self._over[rows] = self._state[rows], 1.0
        seen[rows], reward[rows] = self._observed(self._state[rows]), 0.0
        diverged = np.zeros(self.num_envs, bool)
        diverged[rows] = True
        return {"diverged": diverged, "_diverged": diverged.copy()}

    def _begin(self, rows: np.ndarray) -> np.ndarray:
        """Draw new states of `rows`, with step counts 0; return their observations."""
        states = self.task.start(self.np_random, len(rows))
        self._state[rows], self._steps[rows] = states, 0
        return self._observed(states)

    def set_state(self, state: Any) -> np.ndarray:
        """Continue all episodes from states, (num_envs, ns) [SI]; return observations.

        The count of steps in an episode continues, and so does a finished episode: the
        next step does not reset it. No reset is needed before.

        Raises:
            ShapeError, NonFiniteError: The states are invalid.
        """
        seen = super().set_state(state)
        self._done[:] = False
        return seen


def checked_rows(num_envs: int) -> int:
    """Return num_envs; raise SettingError unless it is an integer of at least 1."""
    whole = isinstance(num_envs, Integral) and not isinstance(num_envs, bool)
    if not whole or num_envs < 1:
        message = f"num_envs must be a whole number >= 1, got {num_envs!r}"
        raise SettingError(message, "num_envs")
    return int(num_envs)


def _autoreset(mode: Any) -> Any:
    """Return the AutoresetMode of a mode or of its value, such as "NextStep"."""
    try:
        return AutoresetMode(mode)
    except ValueError as error:
        valid = ", ".join(mode.value for mode in AutoresetMode)
        raise SettingError(
            f"autoreset_mode {mode!r}; valid: {valid}", "autoreset_mode"
        ) from error
