"""Base class of simulated plants: command limits, stale commands, counters."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import fields
from numbers import Integral, Real
from typing import Any

import numpy as np

from dyn_core.errors import (
    DynError,
    NearAttributes,
    NonFiniteError,
    SettingError,
    ShapeError,
)
from dyn_core.simulation.channels import Channels
from dyn_core.validation import float_array, is_finite, shown

HOW_TO_ADVANCE = "valid: command(t, tau), then advance(t)"


class SimulatedPlant(NearAttributes, ABC):
    """A simulated plant that accepts joint forces and advances by periods.

    A subclass is a dataclass with the settings as fields. It calls `_check_settings`,
    sets `effort_limit`, calls `reset`, and implements `channels`, `_begin_period`,
    `_return_to` and `_step`.

    Attributes:
        period: Time that `advance` simulates [s].
        substeps: Number of steps in a period.
        command_timeout: Age from which a command is stale and replaced by zero [s].
        counters: Number of refused, limited or late events, by name.
        effort_limit: Largest joint forces, (n,), infinite for joints without a limit
            [N·m | N].
        tau: Commanded joint forces, within the limits [N·m | N].
        commanded: Time of the command [s]; None if there is none.
        accelerated: Time of the prescribed accelerations, if the subclass accepts them
            [s]; None if there are none.
        paused: Whether `advance` does nothing. Callers may set it.
        failed: Whether `paused` was set by a step that failed; `reset` then ends it.
        braked: Whether brakes hold the robot: `advance` does nothing until the first
            command. Callers may set it.
    """

    OTHERWISE = HOW_TO_ADVANCE

    period: float
    substeps: int
    command_timeout: float
    counters: Counter
    effort_limit: np.ndarray
    tau: np.ndarray
    commanded: float | None
    accelerated: float | None = None
    paused: bool = False
    failed: bool = False
    braked: bool = False

    def _check_settings(self, *times: str) -> None:
        """Check the settings; none is changed.

        `times` are names of further attributes that are durations, finite and above 0.
        """
        for name in ("period", "command_timeout", *times):
            value = getattr(self, name)
            if not (is_finite(value) and value > 0):
                message = f"{name} must be > 0 and finite, got {value!r}"
                raise SettingError(message, name)
        count = self.substeps
        if isinstance(count, bool) or not isinstance(count, Integral) or count < 1:
            message = f"substeps must be >= 1 and whole, got {count!r}"
            raise SettingError(message, "substeps")
        if not is_finite(count):
            raise SettingError(f"substeps are too many: {shown(count)}", "substeps")
        for item in fields(self):  # type: ignore[arg-type]  # leaves are dataclasses
            value = getattr(self, item.name)
            if isinstance(item.default, bool) and not isinstance(value, bool):
                raise SettingError(
                    f"{item.name} is {value!r}; valid: True, False", item.name
                )

    def reset(self) -> None:
        """Set `tau` to zeros, `commanded` to None; a subclass also restores its state.

        A plant that a failed step has paused runs again. A plant that was paused
        otherwise stays paused; `braked` and `counters` are unchanged.
        """
        if self.failed:
            self.paused = self.failed = False
        self.tau = np.zeros_like(self.effort_limit)
        self.commanded = None

    def command(self, t: float, tau: Any) -> None:
        """Set the joint forces at time t, clipped to the limits; ends `braked`.

        Clipped and refused commands are counted in `counters` ("command limited",
        "command of wrong size", "command not finite"), except values that are not
        numbers; a refused one does not end `braked`.

        Args:
            t: Time of the command [s]; not checked.
            tau: Joint forces, in the order of `effort_limit`, (n,) [N·m | N].

        Raises:
            ShapeError, NonFiniteError: The array is invalid; the previous command
                remains.
        """
        tau = float_array("command", tau, f"shape {self.effort_limit.shape}")
        if tau.shape != self.effort_limit.shape:
            self.counters["command of wrong size"] += 1
            wanted = f"shape {self.effort_limit.shape}"
            if tau.shape == (len(self.channels().joints),):
                several = set(range(len(self.effort_limit)))
                several -= set(self.channels().columns.tolist())
                wanted += (
                    f", those at {sorted(several)}, of joints of several coordinates,"
                    " among them: 0 without a motor"
                )
            if tau.ndim == 2 and tau.shape[1:] == self.effort_limit.shape:
                wanted += ", of one state (gains kp, kd are a number a joint: a matrix"
                wanted += " is a batch of them)"
            raise ShapeError("command", wanted, f"shape {tau.shape}")
        # Floats of Python overflow without a warning.
        if not math.isfinite(sum(tau.tolist())) and not np.isfinite(tau).all():
            self.counters["command not finite"] += 1
            message = f"command is not finite at t = {t:g} s{self._at_joint(tau)}"
            raise NonFiniteError(message, "command")
        limit = self.effort_limit
        limited = np.minimum(np.maximum(tau, -limit), limit)
        if limited.tobytes() != tau.tobytes() and (limited != tau).any():
            self.counters["command limited"] += 1
        self.tau, self.commanded, self.braked = limited, t, False

    def _at_joint(self, tau: np.ndarray) -> str:
        """Return " at joint NAME" for the first joint force (n,) that is not finite.

        The result is "" if that entry belongs to a joint of several coordinates.
        """
        channels, bad = self.channels(), np.flatnonzero(~np.isfinite(tau))[0]
        named = dict(zip(channels.columns.tolist(), channels.joints, strict=True))
        return f" at joint {named[bad]}" if bad in named else ""

    @property
    def effort(self) -> np.ndarray:
        """Joint forces that act, (n,) [N·m | N]; here the array `tau`, no copy."""
        return self.tau

    def stale(self, t: float) -> bool:
        """Return whether there is no command, or it is too old.

        Args:
            t: Time at which its age must not exceed command_timeout [s]; an age of NaN
                is too old.
        """
        # An age that is NaN is too old.
        return self.commanded is None or not t - self.commanded <= self.command_timeout

    def advance(self, t: float, now: float | None = None) -> None:
        """Simulate one period from time t; no effect while paused or braked.

        Before the period, a command older than command_timeout is replaced by zero and
        counted once ("command stale"), and `commanded` becomes None; so are prescribed
        accelerations ("acceleration stale").

        Args:
            t: Time of the motion, which driven joints follow [s].
            now: Time that the age of commands is computed with, on the clock of
                `command` [s]; None: t.

        Raises:
            SettingError: t or now is no real number. NaN and infinite times are not
                refused; with NaN every command is stale.
            DynError: A step failed. The state before the period is restored, the
                failure is counted ("step failed"), and `paused` and `failed` become
                True.
        """
        if type(t) is not float:
            t = _time("t", t)
        if now is None:
            now = t
        elif type(now) is not float:
            now = _time("now", now)
        if self.paused or self.braked:
            return
        since, count = self.commanded, self.substeps  # inlined `stale`, for speed
        if since is not None and not now - since <= self.command_timeout:
            self.counters["command stale"] += 1
            self.tau, self.commanded = np.zeros_like(self.tau), None
        if self.accelerated is not None:
            self._forget_accelerations(now)
        self.failed = False  # it runs again: a later pause has another cause
        before, dt = self._begin_period(), self.period / count
        try:
            for k in range(count):
                self._step(t + k * dt, dt)
        except DynError as error:
            self._return_to(before)
            self.paused = self.failed = True
            self.counters["step failed"] += 1
            raise self._explained(error) from error.__cause__

    def _explained(self, error: DynError) -> DynError:
        """Return the error of a step that `advance` raises; here the same error.

        Subclasses may return one with known causes added to the message.
        """
        return error

    def _forget_accelerations(self, t: float) -> None:
        """Replace prescribed accelerations that are stale at time t [s] by zero.

        `advance` calls it while `accelerated` is not None. This class has no
        accelerations.
        """
        self.accelerated = None

    @abstractmethod
    def channels(self) -> Channels:
        """Return the inputs and outputs that the plant offers."""

    @abstractmethod
    def _begin_period(self) -> Any:
        """Discard data of the last period; return the state for `_return_to`."""

    @abstractmethod
    def _return_to(self, state: Any) -> None:
        """Restore the state before a period, the result of `_begin_period`."""

    @abstractmethod
    def _step(self, t: float, dt: float) -> None:
        """Simulate one substep of length dt [s] from time t [s], changing the state."""


def _time(name: str, value: Any) -> float:
    """Return a time as a float; it may be infinite or NaN."""
    try:
        if isinstance(value, Real) and not isinstance(value, bool):
            return float(value)
    except OverflowError:
        pass  # an int too large for a float
    raise SettingError(
        f"{name} is {shown(value)}; valid: the time, a number [s]; joint forces go to"
        " command(t, tau)",
        name,
    )
