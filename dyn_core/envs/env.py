"""A gymnasium environment for one task, and checks shared with vector.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dyn_core.errors import NonFiniteError, SettingError, ShapeError, UnsupportedError
from dyn_core.solving.registry import solver
from dyn_core.tasks import RobotTask, planar_task
from dyn_core.tasks.task import OBSERVATION, Task

try:
    import gymnasium
except ImportError as error:
    raise UnsupportedError(
        "environments need gymnasium, which is not installed:"
        " pip install 'dyn_ros[env]'"
    ) from error

RENDER_MODES = ("rgb_array",)
DIVERGENCE = ("terminate", "raise")
DTYPES = ("float64", "float32")
LARGEST = 1e9  # a motion with observations beyond it has diverged [SI]


def observation_space(
    task: Task | RobotTask, dtype: np.dtype[Any]
) -> gymnasium.spaces.Box:
    """Return the space of observations of a task, a box of `dtype`.

    Kernels compute in float64; float32 costs another pass over memory.
    """
    low, high = np.array(task.observation_bounds, np.float64).T
    return gymnasium.spaces.Box(
        low.astype(dtype),
        high.astype(dtype),
        dtype=dtype,  # type: ignore[arg-type]
    )


def checked_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the dtype; raise SettingError unless it is float64 or float32."""
    if dtype not in DTYPES:
        message = f"dtype {dtype!r}; valid: {', '.join(DTYPES)}"
        raise SettingError(message, "dtype")
    return np.dtype(dtype)


def action_space(task: Task | RobotTask) -> Any:
    """Return the space of actions: Discrete for task.choices, else a Box [SI]."""
    if task.choices is not None:
        return gymnasium.spaces.Discrete(len(task.choices))
    low, high = np.array(task.action_bounds, np.float64).T
    return gymnasium.spaces.Box(low, high, dtype=np.float64)


def metadata_of(task: Task | RobotTask, **more: Any) -> dict[str, Any]:
    """Return gymnasium's metadata; the frame rate shows a task in real time.

    more: Further entries.
    """
    fps = max(1, round(1.0 / task.interval))
    return {"render_modes": list(RENDER_MODES), "render_fps": fps, **more}


def checked_mode(render_mode: str | None) -> str | None:
    """Return the render mode, None or "rgb_array"; raise SettingError for another."""
    if render_mode is not None and render_mode not in RENDER_MODES:
        valid = ", ".join(RENDER_MODES)
        raise SettingError(
            f"render_mode {render_mode!r}; valid: {valid}", "render_mode"
        )
    return render_mode


def checked_divergence(divergence: str) -> str:
    """Return `divergence`; raise SettingError unless it is "terminate" or "raise"."""
    if divergence not in DIVERGENCE:
        valid = ", ".join(DIVERGENCE)
        raise SettingError(f"divergence {divergence!r}; valid: {valid}", "divergence")
    return divergence


def diverged_rows(observations: np.ndarray) -> np.ndarray:
    """Return the indices of rows with an entry that is not finite or beyond LARGEST.

    observations: (rows, no).
    """
    # Two reductions suffice if no row diverged; comparisons with NaN are false.
    flat = observations.reshape(-1)
    if np.maximum.reduce(flat) <= LARGEST and np.minimum.reduce(flat) >= -LARGEST:
        return np.empty(0, int)
    return np.flatnonzero(~(np.abs(observations) <= LARGEST).all(axis=-1))


def checked_limit(task: Task | RobotTask, max_episode_steps: int | None) -> int:
    """Return the steps after which an episode is truncated; None: the task's max_steps.

    Raises SettingError unless it is an integer of at least 1.
    """
    limit = task.max_steps if max_episode_steps is None else max_episode_steps
    if not isinstance(limit, int) or limit < 1:
        raise SettingError(
            f"max_episode_steps must be a whole number >= 1, got {limit!r}",
            "max_episode_steps",
        )
    return limit


def checked_options(options: Mapping[str, Any] | None, known: tuple[str, ...]) -> dict:
    """Return a copy of the reset options; raise SettingError for an unknown one."""
    checked = dict(options or {})
    for key in checked:
        if key not in known:
            valid = ", ".join(known)
            raise SettingError(f"no reset option {key!r}; valid: {valid}", key)
    return checked


def checked_states(values: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return states as a new float64 array.

    Raises ShapeError for another shape or values that are not numbers, NonFiniteError
    for NaN or infinity.
    """
    try:
        states = np.array(values, np.float64)
    except (TypeError, ValueError) as error:
        raise ShapeError("state", f"shape {shape}", repr(values)) from error
    if states.shape != shape:
        raise ShapeError("state", f"shape {shape}", f"shape {states.shape}")
    if not np.isfinite(states).all():
        raise NonFiniteError("state is not finite", "state")
    return states


def divergence_error(
    task: Task | RobotTask, states: np.ndarray, steps: np.ndarray, rows: np.ndarray
) -> NonFiniteError:
    """Return the error that names step and state entry of the first row that diverged.

    Args:
        task: Task.
        states: After the step, (environments, ns).
        steps: Index of that step in its episode, by row.
        rows: Indices of the rows that diverged.
    """
    first = rows[0]
    large = np.flatnonzero(~(np.abs(states[first]) <= LARGEST))
    entry = task.entries[int(large[0])] if len(large) else "an observation"
    return NonFiniteError(
        f"{task.name}: {entry} is not finite, or beyond {LARGEST:g}, at step"
        f" {int(steps[first])} of environment {first} ({len(rows)} in all)",
        entry,
        rows.tolist(),
    )


class TaskEnv(gymnasium.Env[np.ndarray, Any]):
    """A task as an environment of gymnasium: the rules that all tasks share.

    Finite actions beyond their bounds are clipped. In an environment from
    gymnasium.make the wrapper TimeLimit truncates episodes; otherwise max_episode_steps
    does. A step after the end of an episode continues the motion. A motion that
    diverges ends the episode: the observation is the one of the last valid state, the
    reward is 0 and info["diverged"] is True.

    Attributes:
        task: The task.

    Args:
        task: Task.
        program: Step of the task, for one state; program(state, action) returns state,
            observation, reward and end (nonzero: over).
        seen: Function from a state to its observation.
        dtype: Of observations: float64 or float32.
        render_mode, max_episode_steps, divergence: See PlanarEnv.

    Raises:
        SettingError: An argument is invalid.

    Source: WAW-15.5.
    """

    metadata = {"render_modes": list(RENDER_MODES), "render_fps": 50}

    def __init__(
        self,
        task: Task | RobotTask,
        program: Any,
        seen: Any,
        render_mode: str | None,
        max_episode_steps: int | None,
        divergence: str,
        dtype: str,
    ) -> None:
        self.task, self._dtype = task, checked_dtype(dtype)
        self._divergence = checked_divergence(divergence)
        self.metadata = metadata_of(self.task)
        self.render_mode = checked_mode(render_mode)
        self._limit = checked_limit(self.task, max_episode_steps)
        self.observation_space = observation_space(self.task, self._dtype)
        self.action_space = action_space(self.task)
        self._program, self._observation = program, seen
        self._state: np.ndarray | None = None
        self._steps = 0
        self._picture: Any = None

    def _seen(self, state: np.ndarray) -> np.ndarray:
        """Return the observation of a state, (no,)."""
        return self._cast(self._observation(state))

    def _cast(self, seen: np.ndarray) -> np.ndarray:
        """Return observations in the dtype of the environment."""
        return seen.astype(self._dtype, copy=False)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode; return the observation and an empty info.

        Args:
            seed: Seed of the task's random numbers; equal seeds give equal bits.
            options: {"state": (ns,)} begins with that state.

        Raises:
            SettingError: An unknown option.
            ShapeError, NonFiniteError: An invalid state.
        """
        super().reset(seed=seed)
        checked = checked_options(options, ("state",))
        if "state" in checked:
            state = checked_states(checked["state"], (self.task.ns,))
        else:
            state = self.task.start(self.np_random, 1)[0]
        self._state, self._steps = state, 0
        return self._seen(state), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Return observation, reward, terminated, truncated, info after one step.

        Raises:
            ShapeError, NonFiniteError: The action is invalid.
            NonFiniteError: The motion diverged, and divergence is "raise".
            SettingError: There was no reset yet.
        """
        state = self.get_state()
        after, seen, reward, over = self._program(state, self._acted(action))
        self._steps += 1
        late = self.spec is None and self._steps >= self._limit
        rows = diverged_rows(seen[None])
        if len(rows):
            if self._divergence == "raise":
                steps = np.array([self._steps])
                raise divergence_error(self.task, after[None], steps, rows)
            return self._seen(state), 0.0, True, late, {"diverged": True}
        self._state = after
        return self._cast(seen), float(reward), bool(over != 0.0), late, {}

    def _acted(self, action: Any) -> np.ndarray:
        """Return the action in SI units, (na,).

        Raises ShapeError for another shape, dtype or choice, NonFiniteError for NaN.
        """
        choices = self.task.choices
        if choices is not None:
            number = np.asarray(action)
            good = number.shape == () and number.dtype.kind in "iu"
            if not good or not 0 <= number < len(choices):
                wanted = f"a whole number 0..{len(choices) - 1}"
                raise ShapeError("action", wanted, repr(action))
            return np.array(choices[int(number)], np.float64)
        array = np.asarray(action)
        if array.shape != (self.task.na,) or array.dtype.kind not in "fiu":
            wanted = f"numbers of shape ({self.task.na},)"
            raise ShapeError("action", wanted, f"{array.dtype} of shape {array.shape}")
        if not np.isfinite(array).all():
            raise NonFiniteError(f"action is not finite: {array}", "action")
        return array.astype(np.float64)

    def get_state(self) -> np.ndarray:
        """Return a copy of the state, (ns,) [SI]; raise SettingError before a reset."""
        if self._state is None:
            raise SettingError("there is no state yet: call reset first", "reset")
        return self._state.copy()

    def set_state(self, state: Any) -> np.ndarray:
        """Continue from a state, (ns,) [SI]; return its observation.

        The number of steps in the episode stays. No reset is needed before.

        Raises:
            ShapeError, NonFiniteError: The state is invalid.
        """
        self._state = checked_states(state, (self.task.ns,))
        return self._seen(self._state)

    def render(self) -> Any:
        """Return a picture, (400, 600, 3) uint8; None without a render mode.

        Raises SettingError before a reset.
        """
        if self.render_mode is None:
            return None
        if self._picture is None:
            from dyn_core.envs.pictures import picture_of

            self._picture = picture_of(self.task)
        return self._picture.draw(self.get_state())


class PlanarEnv(TaskEnv):
    """A planar task as an environment of gymnasium, by the rules of TaskEnv.

    Args:
        task: Name of a task, or a Task.
        render_mode: rgb_array or None.
        max_episode_steps: Steps after which an episode is truncated; None: as the task.
        engine: Of the Programs; None: the default.
        divergence: Reaction to a motion whose observation is not finite or beyond 1e9:
            terminate, or raise a NonFiniteError.
        dtype: Of observations: float64 or float32.
        changes: Attributes of the task (planar_task).

    Raises:
        ModelError: An unknown task or attribute.
        SettingError: Another argument is invalid.

    Source: WAW-15.5.
    """

    def __init__(
        self,
        task: str | Task = "pendulum",
        render_mode: str | None = None,
        max_episode_steps: int | None = None,
        engine: str | None = None,
        divergence: str = "terminate",
        dtype: str = "float64",
        **changes: Any,
    ) -> None:
        chosen = planar_task(task, **changes)
        step = solver("task_step").build(chosen, engine=engine)  # type: ignore[arg-type]
        seen = OBSERVATION.build(chosen, engine=engine)  # type: ignore[arg-type]
        for program in (step, seen):
            program.prepare()  # nothing compiles while an episode runs
        super().__init__(
            chosen, step, seen, render_mode, max_episode_steps, divergence, dtype
        )
