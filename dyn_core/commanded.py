"""What every simulated robot does with commands: limits, stale rules, counters."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

from dyn_core.consistency import close_loops
from dyn_core.errors import DynError, NonFiniteError, SettingError, ShapeError
from dyn_core.model import Model


class Commanded:
    """A robot in one process that takes joint forces and moves by periods.

    A leaf has the settings as attributes, calls `_prepare` once, and writes `_move`.

    Attributes:
        model: Robot.
        period: Time that `advance` covers [s].
        substeps: Steps in a period.
        command_timeout: Age at which a command counts as stale: then zero [s].
        q0, qd0: Start; None for neutral within the limits, at rest.
        prescribed: Joints that follow given accelerations instead of forces.
        counters: What was refused or late, by name.
        q, qd: State.
        tau: Joint forces commanded, within the limits, nv [N·m | N].
        paused: Whether `advance` does nothing.
    """

    model: Model
    period: float
    substeps: int
    command_timeout: float
    q0: Any
    qd0: Any
    prescribed: tuple[str, ...]
    counters: Counter

    def _check_settings(self) -> None:
        """Refuse settings that make no sense."""
        for name in ("period", "command_timeout"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise SettingError(f"{name} must be > 0 and finite, got {value}", name)
        if self.substeps < 1:
            raise SettingError("substeps must be >= 1", "substeps")
        self.prescribed = tuple(self.prescribed)

    def _prepare(self) -> None:
        """Check the start, and go there."""
        self.q0 = self._start(self.q0)
        nv = self.model.nv
        self.qd0 = np.zeros(nv) if self.qd0 is None else np.asarray(self.qd0, float)
        if self.qd0.shape != (nv,) or not np.isfinite(self.qd0).all():
            raise SettingError(f"qd0 needs {nv} finite numbers, got {self.qd0}", "qd0")
        self.limit = np.where(
            self.model.effort_limit > 0, self.model.effort_limit, np.inf
        )
        self.paused = False
        self.reset()

    def _start(self, q0: Any) -> np.ndarray:
        """Check the start, or make one: neutral, in the limits; loops closed."""
        model = self.model
        if q0 is not None:
            q = np.asarray(q0, float)
            if q.shape != (model.nq,) or not np.isfinite(q).all():
                raise SettingError(f"q0 needs {model.nq} finite numbers, got {q}", "q0")
            q = model.normalize(q)
            return close_loops(model, q) if model.loops else q
        q = model.neutral()
        for i in model.independent:
            if model.joint[i].nv == 1:
                at, v = model.q_slices[i], model.v_slices[i]
                q[at] = np.clip(q[at], model.lower[v], model.upper[v])
        return close_loops(model, q, tries=20) if model.loops else q

    def reset(self) -> None:
        """Go back to the start; commands are forgotten, the time goes on."""
        self.q, self.qd = self.q0.copy(), self.qd0.copy()
        self.tau = np.zeros(self.model.nv)
        self.taken = self.tau
        self.commanded: float | None = None
        slices = [self.model.v_slice(name) for name in self.prescribed]
        self.qdd_u = np.zeros(sum(at.stop - at.start for at in slices))
        self.accelerated: float | None = None

    def command(self, t: float, tau: Any) -> None:
        """Take joint forces (nv,) at the time t; bad ones raise and change nothing."""
        tau = np.asarray(tau, float)
        if tau.shape != (self.model.nv,):
            self.counters["command of wrong size"] += 1
            raise ShapeError(
                "command", f"shape ({self.model.nv},)", f"shape {tau.shape}"
            )
        if not np.isfinite(tau).all():
            self.counters["command not finite"] += 1
            raise NonFiniteError("command is not finite", "command")
        limited = np.clip(tau, -self.limit, self.limit)
        if not np.array_equal(limited, tau):
            self.counters["command limited"] += 1
        self.tau, self.commanded = limited, t

    def accelerate(self, t: float, qdd: Any) -> None:
        """Take accelerations of the prescribed joints, in the order of coordinates.

        Bad ones raise and change nothing; without new ones for the command timeout the
        joints go on at their velocity.
        """
        qdd = np.asarray(qdd, float)
        if qdd.shape != self.qdd_u.shape:
            self.counters["acceleration of wrong size"] += 1
            wanted = f"shape {self.qdd_u.shape} for {', '.join(self.prescribed)}"
            raise ShapeError("accelerations", wanted, f"shape {qdd.shape}")
        if not np.isfinite(qdd).all():
            self.counters["acceleration not finite"] += 1
            raise NonFiniteError("acceleration is not finite", "accelerations")
        self.qdd_u, self.accelerated = qdd.copy(), t

    @property
    def effort(self) -> np.ndarray:
        """Joint forces: commanded ones, and those that given accelerations take."""
        return self.taken if self.prescribed else self.tau

    def stale(self, t: float) -> bool:
        """Whether there is no command young enough at t."""
        return self.commanded is None or t - self.commanded > self.command_timeout

    def advance(self, t: float) -> None:
        """Move by one period from the time t.

        Raises:
            DynError: The step failed; the last good state is kept and it pauses.
        """
        if self.paused:
            return
        if self.stale(t) and self.commanded is not None:
            self.counters["command stale"] += 1
            self.tau, self.commanded = np.zeros(self.model.nv), None
        given = self.accelerated
        if given is not None and t - given > self.command_timeout:
            self.counters["acceleration stale"] += 1
            self.qdd_u, self.accelerated = np.zeros_like(self.qdd_u), None
        q, qd, dt = self.q, self.qd, self.period / self.substeps
        try:
            for k in range(self.substeps):
                q, qd = self._move(t + k * dt, q, qd, dt)
        except DynError:
            self.paused = True
            self.counters["step failed"] += 1
            raise
        self.q, self.qd = q, qd

    def _move(
        self, t: float, q: np.ndarray, qd: np.ndarray, dt: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Give the state one step later."""
        raise NotImplementedError
