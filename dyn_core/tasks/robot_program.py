"""One step of a RobotTask for all rows, called like a planar task's Program."""

from __future__ import annotations

from typing import Any

import numpy as np

from dyn_core.tasks.robot_steps import STEPS
from dyn_core.tasks.robot_task import RobotRows, RobotTask

FASTEST = 1e6  # a row with a larger joint velocity has diverged [rad/s | m/s]


class RobotProgram:
    """A step of a RobotTask for many rows, called like a Program.

        after, seen, reward, over = program(state, action)

    A row diverges if its position or reward is not finite, or a joint velocity is not
    finite or exceeds 1e6 rad/s or m/s. Such a row has NaN as observation and state
    (except the action entries of the state) and the reward 0; its end flag has no
    meaning. Other rows are not affected. A flat state has the parts of
    RobotTask.layout. `choices` are the build options `engine` and `threads`;
    task.options replace equal ones.
    """

    def __init__(self, task: RobotTask, rows: int, **choices: Any) -> None:
        self.task, self.rows = task, rows
        kind, paths = STEPS[task.stepping], list(task.draws)
        choices = {**choices, **task.options}
        self._step = kind(task.model, task.world, task.dt, rows, paths, choices)
        self._low, self._high = np.array(task.action_bounds, float).T
        self._shape = (rows, task.no)
        task.prepare()

    def __call__(
        self, state: np.ndarray, action: np.ndarray, out: Any = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Compute one step of the task for each row.

        Actions beyond their bounds are clipped; the clipped action is stored in the new
        state. Errors of the task's functions pass through. Other shapes of `state` and
        `action` are not checked: mostly they raise ValueError or ShapeError.

        Args:
            state: Flat states, (rows, ns); unchanged.
            action: Actions, (rows, na); unchanged.
            out: Four float64 arrays that the results are written to and returned as;
                none may overlap `state`. None: new arrays.

        Returns:
            Flat states (rows, ns), observations (rows, no), rewards (rows,) and end
                flags (rows,): nonzero if the episode ends. For rows that diverge see
                the class.
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
        """Return new flat states after all substeps, and a mask of rows that diverged.

        Such a row continues from q and qd in `before` with zero impulses, so that the
        functions of the task get finite numbers if `state` is finite. Times advance by
        the interval of the task; memory and parameters stay. The clipped `action` is
        stored in the new states.
        """
        task, part = self.task, self.task.layout
        after = state.copy()
        after[:, part["action"]] = action
        q, qd, impulses = (after[:, part[key]] for key in ("q", "qd", "impulses"))
        values = [state[:, part[path]] for path in task.draws]
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
        """Return observations (n, no) of flat states (n, ns); n may be any number."""
        return np.asarray(self.task.observe(self.task.rows(state)), float)
