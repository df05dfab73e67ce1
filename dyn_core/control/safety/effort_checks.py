"""Checks and stops between the control law and the output of a controller."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from dyn_core.control.rules import Rules
from dyn_core.control.safety.envelope import Envelope
from dyn_core.control.safety.shadow import Shadow
from dyn_core.control.safety.stops import AUTO, STOPS, Gate, Stop
from dyn_core.errors import one_line
from dyn_core.validation import shown

Effort = Callable[[], np.ndarray]
SWINGS = 1.4  # limit-to-limit changes at the full rate that count as an oscillation


@dataclass(eq=False)
class Safety:
    """Checks every effort of the control law, and replaces it during a stop.

    Attributes:
        joints: Names, for messages.
        limit: Effort limits, (nv,) [N·m | N].
        slew: Largest rate of change of the effort, (nv,) [N·m/s | N/s].
        rules: on_violation, stop_time, last_good_cycles.
        weight: Function of q and qd that returns the effort of gravity compensation
            with braking, (nv,).
        brake: Function that brings the reference to rest; its argument: whether to
            start from the measured state.
        can_brake: Function that returns whether the efforts can carry the weight.
        rate: Function that returns the velocity on which positions and velocities
            agree, (nv,).
        pause: Function of the time [s] that returns a clause, such as "; the control
            loop paused ...", for the reason of a stop by the envelope, or "".
        counters: Counters of the controller.
        envelope: Bounds of every effort; None if absent.
        shadow: Second solver; None if absent.
        gate: Gate that every stop and reset closes for earlier efforts.
        running: Stop in force; None while the law acts.
        ticket: Gate ticket of the last effort.
        clock: Function that returns the time of driven joints [s].
        failure: Reason why the last failed effort could not be computed.
        cycles: Number of calls of `effort`.
        sent: Time [s] and value of the last effort, (nv,); None after a restart.
        good: Last valid effort of the law within limits and slew rate, (nv,); zeros
            after a restart.
        zero: Zero effort, (nv,).
    """

    joints: tuple[str, ...]
    limit: np.ndarray
    slew: np.ndarray
    rules: Rules
    weight: Callable[[np.ndarray, np.ndarray], np.ndarray]
    brake: Callable[[bool], None]
    can_brake: Callable[[], bool]
    rate: Callable[[], np.ndarray]
    pause: Callable[[float], str]
    counters: Counter
    envelope: Envelope | None = None
    shadow: Shadow | None = None
    gate: Gate = field(default_factory=Gate)
    running: Stop | None = None
    ticket: int = 0
    clock: Callable[[], float] = lambda: 0.0
    failure: str = ""
    cycles: int = 0

    def __post_init__(self) -> None:
        self.zero = np.zeros(len(self.limit))
        self.restart()

    def restart(self) -> None:
        """Discard earlier efforts: `sent` becomes None, `good` and `failures` zero.

        `ticket` becomes the gate's present one. A stop remains in force.
        """
        self.ticket = self.gate.ticket()
        self.sent: tuple[float, np.ndarray] | None = None
        self.good = self.zero
        self.failures = 0
        self._braking: Stop | None = None  # the ramp of the last effort
        self._slewing: np.ndarray | None = None  # start by joint, (nv,), or inf [s]

    def stop(self, t: float, cause: str, kind: str, reason: str) -> None:
        """Stop the robot; a stop in force that is as strong or stronger remains.

        The order is zero, ramp, hold, from the strongest. Even where the earlier stop
        remains, the cause is counted and efforts being computed are discarded. The
        reference is not braked; see `violated`.

        Args:
            t: Time [s].
            cause: Cause for the counters, such as violation.
            kind: zero, ramp or hold.
            reason: Explanation, as a sentence.
        """
        if self.running is None or _rank(kind) < _rank(self.running.kind):
            self.running = Stop(kind, reason, t, cause)
        self.counters[f"stopped: {cause}"] += 1
        self.gate.close()

    def reset(self) -> None:
        """End a stop; to be called only on a person's request.

        Earlier efforts, and efforts being computed, are discarded.
        """
        self.running = None
        self.gate.close()
        self.restart()

    def effort(
        self,
        t: float,
        q: np.ndarray,
        qd: np.ndarray,
        error: Callable[[], np.ndarray],
        law: Effort,
    ) -> np.ndarray:
        """Return the effort to send, (nv,) [N·m | N].

        The effort of the law is limited and checked. A violation (see `_of_law` and
        `_fault`) stops the robot; then, and while a stop is in force, the result is the
        effort of the stop, see `_of_stop`. The attributes sent, ticket and cycles are
        updated.

        Args:
            t: Time [s].
            q, qd: Joint position and velocity, (nv,).
            error: Function that returns the tracking error, (nv,).
            law: Function that returns the effort of the control law, (nv,); also called
                during a stop of kind hold.
        """
        ticket = self.gate.ticket()
        self.cycles += 1
        tau = None
        if self.running is None:
            tau = self._of_law(t, law)
            fault = self._fault(t, q, qd, tau, error)
            if fault is not None and self.running is None:
                self.violated(t, fault)
        self.ticket = self.gate.ticket()
        if tau is None or ticket != self.ticket:  # a stop, here or in another thread
            tau = self._of_stop(t, q, qd, error, law)
        self.sent = (t, tau.copy())  # the caller may modify the returned array
        return tau

    @property
    def saturated(self) -> np.ndarray:
        """Sign of `good` for joints at their effort limit, else 0, (nv,).

        `good` is the last valid effort of the law.
        """
        return np.where(np.abs(self.good) >= self.limit, np.sign(self.good), 0.0)

    def carried(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Return the effort of gravity compensation with braking, within limits, (nv,).

        Zeros, and a count of "torque not finite", if it cannot be computed or is not
        finite.

        Args:
            q, qd: Joint position and velocity, (nv,).
        """
        tau = self._finite(lambda: self.weight(q, qd))
        if tau is None:
            self.counters["torque not finite"] += 1
            return self.zero.copy()
        return self._limited(tau)

    def _of_law(self, t: float, law: Effort) -> np.ndarray:
        """Return the law's effort within limits and slew rate, (nv,), stored in `good`.

        If it cannot be computed or is not finite, it is the previous `good`; after more
        than last_good_cycles such cycles in a row a stop is set, too. A disagreement of
        the shadow sets a stop; the effort is returned nevertheless.
        """
        tau = self._finite(law)
        if tau is None:
            self.counters["torque not finite"] += 1
            self.failures += 1
            if self.failures > self.rules.last_good_cycles:
                cycles = f"torque not finite in {self.failures} cycles"
                self.violated(t, f"{cycles}: {self.failure}")
            return self.good.copy()
        self.failures = 0
        doubt = self._doubt(tau)
        if doubt is not None:
            self.violated(t, doubt)
        self.good = self._slewed(t, self._limited(tau))
        return self.good.copy()

    def _doubt(self, tau: np.ndarray) -> str | None:
        """Return why the shadow stops an effort, or None; count any disagreement."""
        if self.shadow is None:
            return None
        doubt = self.shadow.disagreement(tau)
        if doubt is None:
            return None
        self.counters["shadow disagrees"] += 1
        return doubt if self.shadow.settings.stop else None

    def _fault(
        self,
        t: float,
        q: np.ndarray,
        qd: np.ndarray,
        tau: np.ndarray,
        error: Callable[[], np.ndarray],
    ) -> str | None:
        """Return the reason why an effort must not be sent, or None.

        It checks for oscillation, then against the envelope, whose reason ends with the
        clause of `pause`. A check that raises is a reason. error() is (nv,).
        """
        oscillation = self._oscillation(t)
        if self.envelope is None or oscillation is not None:
            return oscillation
        since, before = (t, tau) if self.sent is None else self.sent
        try:
            violation = self.envelope.violation(
                q, qd, tau, before, error(), self.rate(), t - since, self.clock()
            )
        except Exception as failure:  # a check that fails stops the robot
            return one_line(f"the envelope fails: {failure}")
        return None if violation is None else f"{violation}{self.pause(t)}"

    def violated(self, t: float, reason: str) -> None:
        """Stop as set by the rule on_violation, and brake from the measured state.

        With "auto": ramp if the efforts can carry the weight, else zero. A stop in
        force that is as strong or stronger remains, but the reference brakes again.

        Args:
            t: Time [s].
            reason: Explanation, as a sentence.
        """
        kind = self.rules.on_violation
        if kind == AUTO:
            kind = "ramp" if self.can_brake() else "zero"
        self.stop(t, "violation", kind, reason)
        self.brake(True)

    def _of_stop(
        self,
        t: float,
        q: np.ndarray,
        qd: np.ndarray,
        error: Callable[[], np.ndarray],
        law: Effort,
    ) -> np.ndarray:
        """Return the effort of the stop in force, (nv,); zeros if there is none.

        Stop ramp: gravity compensation with braking during stop_time, then zeros; the
        first such effort is not limited in its rate. Stop hold: the law's effort, which
        the shadow checks in each cycle, and `_fault` after stop_time, when the robot
        should be at rest. A fault, or an effort that is not finite, turns a stop hold
        into zero.
        """
        stop = self.running
        if stop is None:
            return self.zero.copy()
        late = t - stop.since > self.rules.stop_time
        if stop.kind == "ramp" and not late:
            carried = self.carried(q, qd)
            goes_on, self._braking = self._braking is stop, stop
            return self._slewed(t, carried) if goes_on else carried  # at once, first
        if stop.kind == "hold":
            tau = self._finite(law)
            if tau is not None:
                fault = self._doubt(tau)
                tau = self._slewed(t, self._limited(tau))
                if fault is None and late:
                    fault = self._fault(t, q, qd, tau, error)
                if fault is None:
                    return tau
                self.stop(t, "violation", "zero", fault)
            else:
                self.counters["torque not finite"] += 1
                self.stop(t, "violation", "zero", "torque not finite while holding")
        return self.zero.copy()

    def _finite(self, compute: Effort) -> np.ndarray | None:
        """Return a finite effort, (nv,), of `compute`; else None, and set `failure`."""
        try:
            result = np.asarray(compute())
            if np.iscomplexobj(result) and result.imag.any():
                self.failure = "the solver returned complex numbers"
                return None
            tau = np.asarray(result.real, float)
        except Exception as error:  # whatever fails in a plugin: no effort is sent
            self.failure = one_line(f"{type(error).__name__}: {error}")
            return None
        if tau.shape == self.limit.shape and all(map(math.isfinite, tau.tolist())):
            return tau
        self.failure = f"the solver returned {shown(tau)}"
        return None

    def _limited(self, tau: np.ndarray) -> np.ndarray:
        """Return an effort clipped to its limits, and counted; itself if within."""
        # For a few joints, lists are several times faster than arrays.
        for x, limit in zip(tau.tolist(), self.limit.tolist(), strict=True):
            if not -limit <= x <= limit:
                break
        else:
            return tau
        self.counters["torque limited"] += 1
        return np.minimum(np.maximum(tau, -self.limit), self.limit)

    def _slewed(self, t: float, tau: np.ndarray) -> np.ndarray:
        """Return an effort limited in its rate of change from the last effort, (nv,).

        A single wrong sample that no check refuses thus moves the robot little. A
        limited effort is counted; `_slewing` becomes the time since when each joint is
        limited, inf where it is not, or None if none is.
        """
        if self.sent is None:
            return tau
        since, before = self.sent
        dt = max(t - since, 0.0)
        rows = zip(tau.tolist(), before.tolist(), self.slew.tolist(), strict=True)
        for x, y, slew in rows:
            if not y - slew * dt <= x <= y + slew * dt:
                break
        else:
            self._slewing = None
            return tau
        most = self.slew * dt
        slewed = np.minimum(np.maximum(tau, before - most), before + most)
        differs = slewed != tau
        self.counters["torque slewed"] += 1
        first = np.full(len(tau), np.inf) if self._slewing is None else self._slewing
        self._slewing = np.where(differs, np.minimum(first, t), np.inf)
        return slewed

    def _oscillation(self, t: float) -> str | None:
        """Return a sentence on a joint whose effort oscillates, or None.

        From one limit to the other an effort takes 2 limit / slew at its largest rate.
        A law that demands this rate for more than 1.4 times as long oscillates. A law
        that saturates meanwhile moves the robot, which the envelope detects.
        """
        if self._slewing is None:
            return None
        long = t - self._slewing > SWINGS * 2 * self.limit / self.slew
        if not long.any():
            return None
        j = int(np.argmax(long))
        return (
            f"the effort of joint '{self.joints[j]}' has changed at its largest rate"
            f" for {t - self._slewing[j]:.3g} s: the law oscillates"
        )


def _rank(kind: str) -> int:
    """Return the rank of a kind of stop: 0 for zero, the strongest, 1 ramp, 2 hold."""
    return STOPS.index(kind)
