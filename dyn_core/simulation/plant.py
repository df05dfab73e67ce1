"""Base of simulated plants: limits of commands, rules for stale ones, counters."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import fields
from numbers import Integral, Real
from typing import Any

import numpy as np

from dyn_core.errors import DynError, NonFiniteError, SettingError, ShapeError
from dyn_core.validation import float_array, shown


class SimulatedPlant(ABC):
    """Something in one process that takes joint forces and moves by periods.

    A leaf has the settings as attributes, calls `_check_settings` and then `reset`,
    sets `effort_limit`, and writes `_begin_period`, `_return_to` and `_step`.

    Attributes:
        period: Time that `advance` covers [s].
        substeps: Steps in a period.
        command_timeout: Age at which a command counts as stale: then zero [s].
        counters: What was refused or late, by name.
        effort_limit: Largest joint forces, infinity where there is none [N·m | N].
        tau: Joint forces commanded, within the limits [N·m | N].
        commanded: Time of the command, or None [s].
        accelerated: Time of the accelerations, for a leaf that takes any, or None [s].
        paused: Whether `advance` does nothing.
        braked: Whether brakes hold the robot until the first command.
    """

    period: float
    substeps: int
    command_timeout: float
    counters: Counter
    effort_limit: np.ndarray
    tau: np.ndarray
    commanded: float | None
    accelerated: float | None = None
    paused: bool = False
    braked: bool = False

    def _check_settings(self, *times: str) -> None:
        """Refuse settings that make no sense.

        Args:
            times: Names of more times that must be positive.
        """
        for name in ("period", "command_timeout", *times):
            value = getattr(self, name)
            if not (
                isinstance(value, Real) and float(value) > 0 and math.isfinite(value)
            ):
                raise SettingError(
                    f"{name} must be > 0 and finite, got {value!r}", name
                )
        count = self.substeps
        if isinstance(count, bool) or not isinstance(count, Integral) or count < 1:
            raise SettingError(
                f"substeps must be >= 1 and whole, got {count!r}", "substeps"
            )
        for item in fields(self):  # type: ignore[arg-type]  # leaves are dataclasses
            value = getattr(self, item.name)
            if isinstance(item.default, bool) and not isinstance(value, bool):
                raise SettingError(
                    f"{item.name} is {value!r}; valid: True, False", item.name
                )

    def reset(self) -> None:
        """Forget commands; a leaf goes back to the start, too."""
        self.tau = np.zeros_like(self.effort_limit)
        self.commanded = None

    def command(self, t: float, tau: Any) -> None:
        """Take joint forces at the time t; bad ones raise and change nothing."""
        tau = float_array("command", tau, f"shape {self.effort_limit.shape}")
        if tau.shape != self.effort_limit.shape:
            self.counters["command of wrong size"] += 1
            wanted = f"shape {self.effort_limit.shape}"
            raise ShapeError("command", wanted, f"shape {tau.shape}")
        if not math.isfinite(np.dot(tau, tau)) and not np.isfinite(tau).all():
            self.counters["command not finite"] += 1
            raise NonFiniteError("command is not finite", "command")
        limit = self.effort_limit
        limited = np.minimum(np.maximum(tau, -limit), limit)
        if limited.tobytes() != tau.tobytes() and (limited != tau).any():
            self.counters["command limited"] += 1
        self.tau, self.commanded, self.braked = limited, t, False

    @property
    def effort(self) -> np.ndarray:
        """Joint forces that act: commanded ones, and what constraints of joints add."""
        return self.tau

    def stale(self, t: float) -> bool:
        """Whether there is no command young enough at t."""
        return self.commanded is None or t - self.commanded > self.command_timeout

    def advance(self, t: float, now: float | None = None) -> None:
        """Move by one period from the time t.

        Args:
            t: Time of the motion; driven places are where they are then [s].
            now: Time by which the age of commands counts, as for `command`; None: t.

        Raises:
            SettingError: A time is no number.
            DynError: The step failed; the state before the period is kept and it
                pauses.
        """
        if type(t) is not float:
            t = _time("t", t)
        if now is None:
            now = t
        elif type(now) is not float:
            now = _time("now", now)
        if self.paused or self.braked:
            return
        since, count = self.commanded, self.substeps  # few calls: it is every step
        if since is not None and now - since > self.command_timeout:
            self.counters["command stale"] += 1
            self.tau, self.commanded = np.zeros_like(self.tau), None
        if self.accelerated is not None:
            self._forget_accelerations(now)
        before, dt = self._begin_period(), self.period / count
        try:
            for k in range(count):
                self._step(t + k * dt, dt)
        except DynError as error:
            self._return_to(before)
            self.paused = True
            self.counters["step failed"] += 1
            raise self._explained(error) from error.__cause__

    def _explained(self, error: DynError) -> DynError:
        """Return the error of a step, with what is known of its cause."""
        return error

    def _forget_accelerations(self, t: float) -> None:
        """Let accelerations that have grown stale become zero; here there are none."""
        self.accelerated = None

    @abstractmethod
    def _begin_period(self) -> Any:
        """Return the state, for `_return_to`; forget what is kept of one period."""

    @abstractmethod
    def _return_to(self, state: Any) -> None:
        """Go back to a state."""

    @abstractmethod
    def _step(self, t: float, dt: float) -> None:
        """Move by one substep."""


def _time(name: str, value: Any) -> float:
    """Return a time as a float; anything but a number is refused."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise SettingError(
            f"{name} is {shown(value)}; valid: the time, a number [s]; joint forces go"
            " to command(t, tau)",
            name,
        )
    return float(value)
