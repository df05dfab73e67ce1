"""What stands between the law of a controller and its output: checks and stops."""

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
SWINGS = 1.4  # from one effort limit to the other, after which a law oscillates


@dataclass(eq=False)
class Safety:
    """Checks every effort, and replaces it where a stop is due.

    Attributes:
        joints: Names, for reasons.
        limit: Effort limits, (nv,).
        slew: Largest change of an effort in a second, (nv,) [N·m/s | N/s].
        rules: on_violation, stop_time, last_good_cycles.
        weight: Returns the effort that carries the weight and brakes, of q and qd.
        brake: Makes the reference come to rest; True from the measured state.
        can_brake: Returns whether the efforts can carry the weight.
        counters: Of the controller.
        envelope: Bounds of every effort, if any.
        shadow: A second solver, if any.
        gate: Raised by every stop and reset.
        running: The Stop that is in force; None while the law drives.
        ticket: What the last effort needs to pass the gate.
        clock: Returns the time of driven places [s].
        rate: Returns the velocity that positions and velocities agree on, (nv,).
        failure: Why the last effort that failed was none.
        cycles: Number of efforts.
    """

    joints: tuple[str, ...]
    limit: np.ndarray
    slew: np.ndarray
    rules: Rules
    weight: Callable[[np.ndarray, np.ndarray], np.ndarray]
    brake: Callable[[bool], None]
    can_brake: Callable[[], bool]
    rate: Callable[[], np.ndarray]
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
        """Forget earlier efforts; a stop stays in force."""
        self.ticket = self.gate.ticket()
        self.sent: tuple[float, np.ndarray] | None = None
        self.good = self.zero
        self.failures = 0
        self._braking: Stop | None = None  # the ramp of the last effort
        self._slewing: np.ndarray | None = None  # since when, infinite: not, (n,) [s]

    def stop(self, t: float, cause: str, kind: str, reason: str) -> None:
        """Stop; an earlier stop that is stronger stays."""
        if self.running is None or _rank(kind) < _rank(self.running.kind):
            self.running = Stop(kind, reason, t, cause)
        self.counters[f"stopped: {cause}"] += 1
        self.gate.close()

    def reset(self) -> None:
        """End a stop; only a person's request may call it."""
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
        """Return the effort to send, (nv,).

        Args:
            t: Time [s].
            q, qd: State.
            error: Returns the tracking error.
            law: Returns the effort of the control law.
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
        self.sent = (t, tau.copy())  # the caller may write into what it gets
        return tau

    @property
    def saturated(self) -> np.ndarray:
        """Sign of the last torque of joints at their limit, else 0, (nv,)."""
        return np.where(np.abs(self.good) >= self.limit, np.sign(self.good), 0.0)

    def carried(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Return the effort that carries the weight and brakes; zero without one."""
        tau = self._finite(lambda: self.weight(q, qd))
        if tau is None:
            self.counters["torque not finite"] += 1
            return self.zero.copy()
        return self._limited(tau)

    def _of_law(self, t: float, law: Effort) -> np.ndarray:
        """Return the law's effort within limits and slew, or the last good one."""
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
        """Return why the shadow stops an effort of the law; count a disagreement."""
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
        """Return what is wrong with an effort that is about to be sent, or None."""
        oscillation = self._oscillation(t)
        if self.envelope is None or oscillation is not None:
            return oscillation
        since, before = (t, tau) if self.sent is None else self.sent
        try:
            violation = self.envelope.violation(
                q, qd, tau, before, error(), self.rate(), t - since, self.clock()
            )
        except Exception as failure:  # what fails to check stops
            return one_line(f"the envelope fails: {failure}")
        return None if violation is None else str(violation)

    def violated(self, t: float, reason: str) -> None:
        """Stop as the rules say for on_violation."""
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
        """Return the effort of the stop in force.

        A position that is held is checked again after stop_time, when it should rest;
        by the shadow it is checked in each cycle.
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
        """Return an effort, or None where there is none that is finite."""
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
        """Return an effort within the limits; count where it was not."""
        # Of a few joints lists are several times faster than arrays.
        for x, limit in zip(tau.tolist(), self.limit.tolist(), strict=True):
            if not -limit <= x <= limit:
                break
        else:
            return tau
        self.counters["torque limited"] += 1
        return np.minimum(np.maximum(tau, -self.limit), self.limit)

    def _slewed(self, t: float, tau: np.ndarray) -> np.ndarray:
        """Return an effort that differs from the last one by no more than the slew.

        So a single wrong sample that no check refuses moves the robot little.
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
        """Return which joint's effort has changed at its largest rate for too long.

        An effort goes from one limit to the other in 2 limit / slew: a law that wants
        more than SWINGS of that, cycle by cycle, oscillates. One that saturates
        meanwhile moves the robot, which the envelope sees.
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
    """Return the order of stops, the strongest first."""
    return STOPS.index(kind)
