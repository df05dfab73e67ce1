"""Rules of episodes that one environment and a vector of them share.

A state has ns numbers, an action na, an observation no: attributes of the task.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from inspect import signature
from typing import Any

import numpy as np

from dyn_core.envs.pictures import picture_of
from dyn_core.errors import NonFiniteError, SettingError, ShapeError, UnsupportedError
from dyn_core.plots.figures import can_draw
from dyn_core.solving.registry import solver
from dyn_core.tasks import RobotTask, Task, named_task
from dyn_core.tasks.robot_program import RobotProgram
from dyn_core.tasks.task import OBSERVATION
from dyn_core.validation import (
    Whole,
    known_name,
    named_settings,
    shaped_array,
)

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
    """Return the space of observations, a Box (no,), with limits of ±inf for none.

    Kernels compute in float64; float32 costs another pass over memory.
    """
    low, high = np.array(task.observation_bounds, np.float64).T
    return gymnasium.spaces.Box(
        low.astype(dtype),
        high.astype(dtype),
        dtype=dtype,  # type: ignore[arg-type]
    )


def checked_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the np.dtype of float64 or float32, a name or np.dtype; refuse others."""
    if dtype not in DTYPES:
        message = f"dtype {dtype!r}; valid: {', '.join(DTYPES)}"
        raise SettingError(message, "dtype")
    return np.dtype(dtype)


def changed_task(
    task: str | Task | RobotTask, changes: Mapping[str, Any], kind: type
) -> Task | RobotTask:
    """Return a task with `changes`; errors suggest the arguments of `kind`, too."""
    chosen = named_task(task)
    valid = [*(part.name for part in fields(chosen)), *signature(kind).parameters]
    if isinstance(chosen, Task):
        valid.append("parameters")  # see planar_task
    for key in changes:
        known_name(f"task '{chosen.name}'", "attribute", key, valid)
    return named_task(chosen, **changes)


def action_space(task: Task | RobotTask) -> Any:
    """Return the space of actions: Discrete for task.choices, else a Box (na,).

    The Box has the limits of task.action_bounds [SI] and dtype float64; an element of
    the Discrete space is an index into task.choices.
    """
    if task.choices is not None:
        return gymnasium.spaces.Discrete(len(task.choices))
    low, high = np.array(task.action_bounds, np.float64).T
    return gymnasium.spaces.Box(low, high, dtype=np.float64)


def metadata_of(task: Task | RobotTask, **more: Any) -> dict[str, Any]:
    """Return gymnasium's metadata with the entries `more`.

    render_fps shows a task in real time: one picture a step, rounded, at least 1 [1/s].
    """
    fps = max(1, round(1.0 / task.interval))
    return {"render_modes": list(RENDER_MODES), "render_fps": fps, **more}


def checked_mode(render_mode: str | None) -> str | None:
    """Return the render mode, None or "rgb_array" (needs matplotlib); refuse others."""
    if render_mode is not None and render_mode not in RENDER_MODES:
        valid = ", ".join(RENDER_MODES)
        raise SettingError(
            f"render_mode {render_mode!r}; valid: {valid}", "render_mode"
        )
    if render_mode is not None and not can_draw():
        raise UnsupportedError(
            f"render_mode {render_mode!r} needs matplotlib, which is not installed: pip"
            " install 'dyn_ros[env,plot]'; without render_mode it is not needed"
        )
    return render_mode


def checked_divergence(divergence: str) -> str:
    """Return `divergence`; raise SettingError unless it is "terminate" or "raise"."""
    if divergence not in DIVERGENCE:
        valid = ", ".join(DIVERGENCE)
        raise SettingError(f"divergence {divergence!r}; valid: {valid}", "divergence")
    return divergence


def diverged_rows(observations: np.ndarray) -> np.ndarray:
    """Return the indices of rows with an entry that is not finite or beyond ±1e9."""
    # Two reductions suffice if no row diverged; comparisons with NaN are false.
    flat = observations.reshape(-1)
    if np.maximum.reduce(flat) <= LARGEST and np.minimum.reduce(flat) >= -LARGEST:
        return np.empty(0, int)
    return np.flatnonzero(~(np.abs(observations) <= LARGEST).all(axis=-1))


def checked_limit(task: Task | RobotTask, max_episode_steps: int | None) -> int:
    """Return the steps after which an episode is truncated; None: task.max_steps."""
    limit = task.max_steps if max_episode_steps is None else max_episode_steps
    if not Whole(1).takes(limit):
        raise SettingError(
            f"max_episode_steps must be a whole number >= 1, got {limit!r}",
            "max_episode_steps",
        )
    return int(limit)


def checked_options(options: Mapping[str, Any] | None, known: tuple[str, ...]) -> dict:
    """Return a copy of the reset options, {} for None; refuse unknown keys."""
    checked = named_settings("options", {} if options is None else options)
    for key in checked:
        if key not in known:
            valid = ", ".join(known)
            raise SettingError(f"no reset option {key!r}; valid: {valid}", key)
    return checked


def checked_states(values: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return finite numbers of a shape as a new float64 array; booleans are 0, 1."""
    states = shaped_array("state", values, shape).copy()
    if not np.isfinite(states).all():
        raise NonFiniteError("state is not finite", "state")
    return states


def divergence_error(
    task: Task | RobotTask, states: np.ndarray, steps: np.ndarray, rows: np.ndarray
) -> NonFiniteError:
    """Return, without raising it, a NonFiniteError about rows that diverged.

    The message has step, from 1, and environment of the first row, and the first state
    entry that is not finite or exceeds 1e9 in magnitude, else "an observation", which
    is also the error's `name`; its `rows` are all. `states`, (environments, ns), are
    those after the step.
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


class EpisodeRules:
    """Common base of TaskEnv and TaskVectorEnv: everything but resets and steps.

    Finite actions beyond their bounds are clipped. A motion that diverges (an
    observation not finite or beyond ±1e9) ends the episode with the observation of the
    last valid state, the reward 0 and info["diverged"] True, or raises a NonFiniteError
    (divergence="raise"). `rows` are the axes before those of a state: () for one,
    (num_envs,) for a vector; `choices` are engine and threads.
    """

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": 50}

    def __init__(
        self,
        task: Task | RobotTask,
        rows: tuple[int, ...],
        render_mode: str | None,
        max_episode_steps: int | None,
        divergence: str,
        dtype: Any,
        **choices: Any,
    ) -> None:
        self.task, self._rows, self._dtype = task, rows, checked_dtype(dtype)
        self._divergence = checked_divergence(divergence)
        self.metadata = metadata_of(task)
        self.render_mode = checked_mode(render_mode)
        self._limit = checked_limit(task, max_episode_steps)
        self._program, self._observed = programs_of(task, rows, **choices)
        self._table = np.array(task.choices or (), np.float64)
        self._action = np.empty((*rows, task.na))
        self._state, self._started = np.empty((*rows, task.ns)), False
        self._cast_buffer: np.ndarray | None = None
        self._picture: Any = None

    def _cast(self, seen: np.ndarray) -> np.ndarray:
        """Return observations in the dtype of the environment: themselves, or a copy.

        The copy is in `_cast_buffer`, if there is one, which the next call overwrites.
        """
        if seen.dtype == self._dtype:
            return seen
        if self._cast_buffer is None:
            return seen.astype(self._dtype)
        self._cast_buffer[:] = seen
        return self._cast_buffer

    def _acted(self, actions: Any) -> np.ndarray:
        """Return actions in SI units as float64: (na,), or (rows, na) of a vector.

        Indices are replaced by the actions of task.choices, in an array that the next
        call overwrites; an array of float64 is returned itself. Bounds are not checked.
        """
        rows = self._rows
        name = "actions" if rows else "action"
        try:
            array = np.asarray(actions)
        except ValueError as error:  # ragged
            wanted = f"numbers of shape {(*rows, self.task.na)}"
            raise ShapeError(name, wanted, "rows of different lengths") from error
        if self.task.choices is not None:
            last = len(self._table) - 1
            wanted = f"whole numbers of shape {rows}" if rows else "a whole number"
            wanted += f", 0..{last}" if rows else f" 0..{last}"
            if array.shape != rows or array.dtype.kind not in "iu":
                got = f"{array.dtype} of shape {array.shape}" if rows else repr(actions)
                raise ShapeError(name, wanted, got)
            low, high = (array.min(), array.max()) if rows else (array, array)
            if low < 0 or high > last:
                got = f"{low}..{high}" if rows else repr(actions)
                raise ShapeError(name, wanted, got)
            return self._table.take(array, axis=0, out=self._action, mode="clip")
        shape = (*rows, self.task.na)
        if array.shape != shape or array.dtype.kind not in "fiu":
            got = f"{array.dtype} of shape {array.shape}"
            raise ShapeError(name, f"numbers of shape {shape}", got)
        # One reduction suffices for many numbers, but it costs more for few. A sum may
        # overflow although all numbers are finite: then each is checked.
        if not (_finite_sum(array) if rows else np.isfinite(array).all()):
            self._refuse_not_finite(name, array)
        return array.astype(np.float64, copy=False)

    def _refuse_not_finite(self, name: str, array: np.ndarray) -> None:
        """Raise a NonFiniteError unless actions, (na,) or (rows, na), are finite."""
        bad = np.flatnonzero(~np.isfinite(array).all(axis=-1))
        if not len(bad):
            return
        if not self._rows:
            raise NonFiniteError(f"{name} is not finite: {array}", name)
        shown = ", ".join(map(str, bad[:8]))
        raise NonFiniteError(
            f"{name} are not finite in rows {shown}", name, bad.tolist()
        )

    def _demand_reset(self) -> None:
        if not self._started:
            raise SettingError("there is no state yet: call reset first", "reset")

    def get_state(self) -> np.ndarray:
        """Return a copy of the state, (ns,) or (rows, ns) [SI].

        Raises SettingError before the first reset or set_state.
        """
        self._demand_reset()
        return self._state.copy()

    def set_state(self, state: Any) -> np.ndarray:
        """Continue from a state, (ns,) or (rows, ns) [SI]; return its observation.

        The count of steps in the episode continues, and so does a finished episode: the
        next step does not reset it. No reset is needed before.

        Raises:
            ShapeError, NonFiniteError: The state is invalid.
        """
        self._state[:] = checked_states(state, self._state.shape)
        self._started = True
        return self._cast(self._observed(self._state))

    def render(self) -> Any:
        """Return a picture of the state, (400, 600, 3) uint8; None without render mode.

        A vector returns a tuple with one picture for each row.

        Raises:
            SettingError: There is a render mode, and neither reset nor set_state came
                before.
        """
        if self.render_mode is None:
            gymnasium.logger.warn("no picture: render_mode is None; valid: rgb_array")
            return None
        if self._picture is None:
            self._picture = picture_of(self.task)
        states, draw = self.get_state(), self._picture.draw
        return tuple(draw(state) for state in states) if self._rows else draw(states)


def programs_of(
    task: Task | RobotTask, rows: tuple[int, ...], **choices: Any
) -> tuple[Callable[..., Any], Callable[..., np.ndarray]]:
    """Return (step, observe): the step of a task, and its observation of states.

    They are step(state, action) -> (state, observation, reward, end), end nonzero if
    the episode is over, and observe(state) -> observation. With rows = (num_envs,), not
    (), step takes `out`, arrays for its four results in this order, none of which
    overlaps its input. Actions are clipped to their bounds. A row of a RobotTask that
    diverges has NaN as state and observation, and the reward 0.
    """
    if isinstance(task, RobotTask):
        robot = RobotProgram(task, *(rows or (1,)), **choices)
        if rows:
            return robot, robot.observe
        return (
            lambda state, action: tuple(x[0] for x in robot(state[None], action[None])),
            lambda state: robot.observe(state[None])[0],
        )
    step = solver("task_step").build(task, **choices)  # type: ignore[arg-type]
    seen = OBSERVATION.build(task, **choices)  # type: ignore[arg-type]
    for program in (step, seen):
        program.prepare(batch=bool(rows))  # nothing compiles while an episode runs
    return step, seen


def _finite_sum(numbers: np.ndarray) -> bool:
    """Return whether the sum is finite: then all numbers are; it may overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(np.add.reduce(numbers, axis=None)))
