"""Environments of one task that step together: one kernel call for all."""

from __future__ import annotations

from typing import Any

import numpy as np

from dyn_core.envs.env import (
    RENDER_MODES,
    action_space,
    checked_divergence,
    checked_dtype,
    checked_limit,
    checked_mode,
    checked_options,
    checked_states,
    diverged_rows,
    divergence_error,
    gymnasium,
    metadata_of,
    observation_space,
)
from dyn_core.errors import NonFiniteError, SettingError, ShapeError
from dyn_core.solving.registry import solver
from dyn_core.tasks import RobotTask, planar_task
from dyn_core.tasks.task import OBSERVATION, Task

AutoresetMode = gymnasium.vector.AutoresetMode


class TaskVectorEnv(gymnasium.vector.VectorEnv[np.ndarray, Any, np.ndarray]):
    """Environments of one task that step together: the rules that all tasks share.

    All rows draw from one generator, row by row: with one environment, and a mode that
    resets at the same times, the numbers equal those of TaskEnv. Finite actions beyond
    their bounds are clipped.

    Modes of reset, by gymnasium's names: NEXT_STEP (a finished environment is reset in
    the next step, which ignores its action and returns reward 0), SAME_STEP (at once;
    the last observation is in info["final_obs"], for the rows of info["_final_obs"]),
    DISABLED (by reset(options={"reset_mask": rows}); until then a finished environment
    continues).

    A row whose motion diverges is terminated, the others continue: its observation is
    the one of its last valid state, its reward is 0, and info["diverged"] is True
    there.

    Attributes:
        task: The task.

    Args:
        task: Task.
        program: Step of the task, for all rows; program(states, actions, out) writes
            states, observations, rewards and ends (nonzero: over) to `out`.
        seen: Function from states to their observations.
        num_envs: Number of environments.
        copy: Whether each step returns new arrays; otherwise the next step overwrites
            them.
        dtype: Of observations: float64 or float32.
        max_episode_steps, render_mode, autoreset_mode, divergence: See PlanarVectorEnv.

    Raises:
        SettingError: An argument is invalid.

    Source: WAW-15.4, WAW-15.5.
    """

    metadata = {
        "render_modes": list(RENDER_MODES),
        "render_fps": 50,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        task: Task | RobotTask,
        program: Any,
        seen: Any,
        num_envs: int,
        max_episode_steps: int | None,
        render_mode: str | None,
        autoreset_mode: Any,
        copy: bool,
        divergence: str,
        dtype: str,
    ) -> None:
        if not isinstance(copy, bool):
            raise SettingError(f"copy is {copy!r}; valid: True, False", "copy")
        self.task, self.num_envs = task, num_envs
        self._mode = _autoreset(autoreset_mode)
        self._divergence, self._dtype = (
            checked_divergence(divergence),
            checked_dtype(dtype),
        )
        self.metadata = metadata_of(self.task, autoreset_mode=self._mode)
        self.render_mode = checked_mode(render_mode)
        self._limit = checked_limit(self.task, max_episode_steps)
        self.single_observation_space = observation_space(self.task, self._dtype)
        self.single_action_space = action_space(self.task)
        batched = gymnasium.vector.utils.batch_space
        self.observation_space = batched(self.single_observation_space, num_envs)
        self.action_space = batched(self.single_action_space, num_envs)
        self._program, self._seen = program, seen
        self._table = np.array(self.task.choices or (), np.float64)
        self._state = np.empty((num_envs, self.task.ns))
        self._next = np.empty_like(self._state)
        self._action = np.empty((num_envs, self.task.na))
        self._over = np.empty(num_envs)
        self._steps = np.zeros(num_envs, np.int32)
        self._done = np.zeros(num_envs, bool)
        self._started, self._buffers = False, None if copy else self._fresh()
        self._cast_buffer = None if copy else self._fresh()[0].astype(self._dtype)
        self._picture: Any = None

    def _cast(self, seen: np.ndarray) -> np.ndarray:
        """Return observations in the dtype of the environments."""
        if seen.dtype == self._dtype:
            return seen
        if self._cast_buffer is None:
            return seen.astype(self._dtype)
        self._cast_buffer[:] = seen
        return self._cast_buffer

    def _fresh(self) -> tuple[np.ndarray, np.ndarray]:
        """Return empty arrays for observations and rewards."""
        return np.empty((self.num_envs, self.task.no)), np.empty(self.num_envs)

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin episodes; return all observations and an empty info.

        Args:
            seed: An integer; equal seeds give equal bits.
            options: {"state": (num_envs, ns)} begins with these states; {"reset_mask":
                (num_envs,)}, booleans, selects the environments that are reset. With
                both, the states of other environments are checked and ignored.

        Raises:
            SettingError: A seed that is not an integer, an unknown option, or a
                reset_mask before the first reset.
            ShapeError, NonFiniteError: Invalid states, or a mask of another shape or
                dtype.
        """
        if seed is not None and not isinstance(seed, (int, np.integer)):
            message = f"seed must be one whole number for all rows, got {seed!r}"
            raise SettingError(message, "seed")
        super().reset(seed=None if seed is None else int(seed))
        checked = checked_options(options, ("state", "reset_mask"))
        rows = np.arange(self.num_envs)
        if "reset_mask" in checked:
            mask = np.asarray(checked["reset_mask"])
            if mask.shape != (self.num_envs,) or mask.dtype != bool:
                wanted = f"booleans of shape ({self.num_envs},)"
                raise ShapeError("reset_mask", wanted, f"{mask.dtype} {mask.shape}")
            self._demand_reset()
            rows = np.flatnonzero(mask)
        if "state" in checked:
            shape = (self.num_envs, self.task.ns)
            self._state[rows] = checked_states(checked["state"], shape)[rows]
        else:
            self._state[rows] = self.task.start(self.np_random, len(rows))
        self._steps[rows], self._done[rows], self._started = 0, False, True
        return self._cast(self._seen(self._state)), {}

    def step(
        self, actions: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Return observations, rewards, terminated, truncated and info after one step.

        Raises:
            ShapeError, NonFiniteError: An action is invalid.
            NonFiniteError: A motion diverged, and divergence is "raise".
            SettingError: There was no reset yet.
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

        The result is {} if none did. Raises NonFiniteError if divergence is "raise".

        Args:
            seen, reward: Results of the step, corrected in place.
        """
        rows = diverged_rows(seen)
        if self._mode is AutoresetMode.NEXT_STEP:
            rows = rows[~self._done[rows]]  # the others begin anew, whatever came out
        if not len(rows):
            return {}
        if self._divergence == "raise":
            raise divergence_error(self.task, self._next, self._steps + 1, rows)
        self._next[rows], self._over[rows] = self._state[rows], 1.0
        seen[rows], reward[rows] = self._seen(self._state[rows]), 0.0
        diverged = np.zeros(self.num_envs, bool)
        diverged[rows] = True
        return {"diverged": diverged, "_diverged": diverged.copy()}

    def _begin(self, rows: np.ndarray) -> np.ndarray:
        """Reset the environments with these indices; return their observations."""
        states = self.task.start(self.np_random, len(rows))
        self._state[rows], self._steps[rows] = states, 0
        return self._seen(states)

    def _acted(self, actions: Any) -> np.ndarray:
        """Return the actions in SI units, (rows, na).

        Raises ShapeError for another shape, dtype or choice, NonFiniteError for NaN.
        """
        array, rows, na = np.asarray(actions), self.num_envs, self.task.na
        if self.task.choices is not None:
            last = len(self._table) - 1
            if array.shape != (rows,) or array.dtype.kind not in "iu":
                wanted = f"whole numbers of shape ({rows},)"
                got = f"{array.dtype} of shape {array.shape}"
                raise ShapeError("actions", wanted, got)
            if array.min() < 0 or array.max() > last:
                wanted = f"whole numbers 0..{last}"
                raise ShapeError("actions", wanted, f"{array.min()}..{array.max()}")
            return self._table.take(array, axis=0, out=self._action, mode="clip")
        if array.shape != (rows, na) or array.dtype.kind not in "fiu":
            wanted = f"numbers of shape ({rows}, {na})"
            got = f"{array.dtype} of shape {array.shape}"
            raise ShapeError("actions", wanted, got)
        # A sum may overflow although all numbers are finite: then each is checked.
        if not _finite_sum(array):
            bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
            if len(bad):
                shown = ", ".join(map(str, bad[:8]))
                message = f"actions are not finite in rows {shown}"
                raise NonFiniteError(message, "actions", bad.tolist())
        return array.astype(np.float64, copy=False)

    def _demand_reset(self) -> None:
        if not self._started:
            raise SettingError("there is no state yet: call reset first", "reset")

    def get_state(self) -> np.ndarray:
        """Return a copy of the states, (rows, ns) [SI]; SettingError before a reset."""
        self._demand_reset()
        return self._state.copy()

    def set_state(self, states: Any) -> np.ndarray:
        """Continue from states, (rows, ns) [SI]; the numbers of steps stay.

        Finished environments continue, too: the next step does not reset them. No reset
        is needed before.

        Returns:
            Observations, (rows, no).

        Raises:
            ShapeError, NonFiniteError: The states are invalid.
        """
        self._state[:] = checked_states(states, self._state.shape)
        self._done[:], self._started = False, True
        return self._cast(self._seen(self._state))

    def render(self) -> Any:
        """Return a picture of each state, as a tuple; None without a render mode.

        Raises SettingError before a reset.
        """
        if self.render_mode is None:
            return None
        if self._picture is None:
            from dyn_core.envs.pictures import picture_of

            self._picture = picture_of(self.task)
        return tuple(self._picture.draw(state) for state in self.get_state())


class PlanarVectorEnv(TaskVectorEnv):
    """Environments of one planar task, by the rules of TaskVectorEnv.

    Args:
        task: Name of a task, or a Task.
        num_envs: Number of environments.
        max_episode_steps: Steps after which an episode is truncated; None: as the task.
        render_mode: rgb_array or None.
        autoreset_mode: When finished environments are reset.
        threads: Maximum number of threads of a step; None: all cores.
        copy: Whether each step returns new arrays; otherwise the next step overwrites
            them.
        engine: Of the Programs; None: the default.
        divergence: Reaction to a motion whose observation is not finite or beyond 1e9:
            terminate, or raise a NonFiniteError.
        dtype: Of observations: float64 or float32.
        changes: Attributes of the task (planar_task).

    Raises:
        ModelError: An unknown task or attribute.
        SettingError: Another argument is invalid.

    Source: WAW-15.4, WAW-15.5.
    """

    def __init__(
        self,
        task: str | Task = "pendulum",
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
        chosen, rows = planar_task(task, **changes), checked_rows(num_envs)
        choices = {"engine": engine, "threads": threads}
        step = solver("task_step").build(chosen, **choices)  # type: ignore[arg-type]
        seen = OBSERVATION.build(chosen, **choices)  # type: ignore[arg-type]
        for program in (step, seen):
            program.prepare(batch=True)  # nothing compiles while episodes run
        super().__init__(
            chosen,
            step,
            seen,
            rows,
            max_episode_steps,
            render_mode,
            autoreset_mode,
            copy,
            divergence,
            dtype,
        )


def checked_rows(num_envs: int) -> int:
    """Return num_envs; raise SettingError unless it is an integer of at least 1."""
    if not isinstance(num_envs, int) or num_envs < 1:
        message = f"num_envs must be a whole number >= 1, got {num_envs!r}"
        raise SettingError(message, "num_envs")
    return num_envs


def _finite_sum(numbers: np.ndarray) -> bool:
    """Return whether the sum is finite: if so, all numbers are."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(np.add.reduce(numbers, axis=None)))


def _autoreset(mode: Any) -> Any:
    """Return the AutoresetMode of a mode or its name; else raise SettingError."""
    try:
        return AutoresetMode(mode)
    except ValueError as error:
        valid = ", ".join(mode.value for mode in AutoresetMode)
        raise SettingError(
            f"autoreset_mode {mode!r}; valid: {valid}", "autoreset_mode"
        ) from error
