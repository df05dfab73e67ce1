"""One step of a RobotTask for all rows, called like a planar task's Program."""

from __future__ import annotations

from typing import Any

import numpy as np

from dyn_core.tasks.robot_steps import STEPS
from dyn_core.tasks.robot_task import RobotRows, RobotTask

FASTEST = 1e6  # a row with a larger joint velocity has diverged [rad/s | m/s]


class RobotProgram:
    """A step of a task: state and action to state, observation, reward and end.

        after, seen, reward, over = program(state, action)

    A row diverges if its position is not finite, a joint velocity exceeds 1e6 or its
    reward is not finite. It has NaN as state and observation and a reward of 0; its end
    has no meaning. It does not affect other rows.

    Args:
        task: Task.
        rows: Number of rows of a call.
        choices: Engine and threads of the Programs.

    Raises:
        UnsupportedError: The task has a world, and its stepping is free.
        ModelError, ShapeError: A function of the task is invalid, see
            RobotTask.prepare.
    """

    def __init__(self, task: RobotTask, rows: int, **choices: Any) -> None:
        self.task, self.rows = task, rows
        kind, paths = STEPS[task.stepping], list(task.values)
        choices = {**choices, **task.options}
        self._step = kind(task.model, task.world, task.dt, rows, paths, choices)
        self._low, self._high = np.array(task.action_bounds, float).T
        self._shape = (rows, task.no)
        task.prepare()

    def __call__(
        self, state: np.ndarray, action: np.ndarray, out: Any = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return flat states, observations (rows, no), rewards and ends (rows,).

        Actions beyond their bounds are clipped. An end is 1 if the episode ends, else
        0. The state is NaN for a row that diverges, but for its action entries.

        Args:
            state: Flat states, (rows, ns).
            action: (rows, na).
            out: Four arrays to write into, in the order of the results, which are then
                these; None: new ones.
        """
        if out is None:
            out = tuple(
                np.empty(shape)
                for shape in (state.shape, self._shape, self.rows, self.rows)
            )
        action = np.clip(action, self._low, self._high)
        before, part = self.task.rows(state), self.task.layout
        after, lost = self._moved(state, before, action)
        rows = self.task.rows(after)
        out[0][:] = after
        out[1][:] = self.task.observe(rows)
        out[2][:] = self.task.reward(before, action, rows)
        out[3][:] = self.task.over(rows)
        lost |= ~np.isfinite(out[2])
        for array in out[:2]:
            array[lost] = np.nan
        out[2][lost] = 0.0
        out[0][:, part["action"]] = action
        return out

    def _moved(
        self, state: np.ndarray, before: RobotRows, action: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the flat states after all substeps, and whether each row diverged.

        A row that diverges continues from its state before the step, so that the
        functions of the task are never called with numbers that are not finite.

        Args:
            state: Flat states, (rows, ns).
            before: The same as RobotRows.
            action: Clipped actions, (rows, na).
        """
        task, part = self.task, self.task.layout
        after = state.copy()
        after[:, part["action"]] = action
        q, qd, impulses = (after[:, part[key]] for key in ("q", "qd", "impulses"))
        values = [state[:, part[path]] for path in task.values]
        lost, time = np.zeros(len(state), bool), before.time
        self._step.begin()
        for k in range(task.substeps):
            now = before._replace(q=q, qd=qd, time=time + k * task.dt)
            tau = task.control(now, action)
            if task.outside is not None:
                tau = tau + task.outside(now)
            q, qd, impulses = self._step.step(q, qd, impulses, tau, values)
            bad = ~(np.isfinite(q).all(axis=1) & (np.abs(qd) <= FASTEST).all(axis=1))
            if bad.any():
                lost |= bad
                q[bad], qd[bad] = before.q[bad], before.qd[bad]
                impulses = np.where(bad[:, None], 0.0, impulses)
        after[:, part["q"]], after[:, part["qd"]] = q, qd
        after[:, part["impulses"]] = impulses
        after[:, part["time"].start] += task.interval
        return after, lost

    def observe(self, state: np.ndarray) -> np.ndarray:
        """Return the observations of flat states, (n, no)."""
        return np.asarray(self.task.observe(self.task.rows(state)), float)
