"""The answer to silence: what is sent while no fresh state comes, in any thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dyn_core.control.rules import Rules
from dyn_core.control.safety.effort_checks import Safety
from dyn_core.control.states.state_samples import Samples


@dataclass(eq=False)
class Silence:
    """Zero, or for a bounded time what carries the weight and brakes.

    Attributes:
        samples: The last good state, and when it came.
        rules: on_stale, stop_time.
        safety: Stop in force, gate, and the torque that carries.
        lasts: Whether the last look was in a silence.
    """

    samples: Samples
    rules: Rules
    safety: Safety
    lasts: bool = False

    def torque(self, t: float, enabled: bool) -> np.ndarray | None:
        """Return the torque for a stale state at the time t, else None."""
        age = self.samples.silence(t)
        if age is None:
            return None
        self.samples.good = 0
        if self.samples.paused:
            return self.safety.zero.copy()
        stop, kind = self.safety.running, self.rules.on_stale
        if stop is not None and stop.kind != "hold":
            kind, age = stop.kind, max(age, t - stop.since)
        q, qd = self.samples.q, self.samples.qd
        drove = self.safety.sent is not None  # else there is nothing to bring to rest
        ramp = kind == "ramp" and enabled and drove and age <= self.rules.stop_time
        if ramp and q is not None and qd is not None:
            return self.safety.carried(q, qd)
        return self.safety.zero.copy()

    def answer(
        self, t: float, enabled: bool, publish: Callable[[np.ndarray], object]
    ) -> bool:
        """Publish the torque through the gate; return whether the state is stale."""
        gate = self.safety.gate
        ticket, seen = gate.ticket(), self.samples.seen
        tau = self.torque(t, enabled)
        if tau is None:
            self.lasts = False
            return False

        def send() -> None:
            if self.samples.seen == seen:  # else a state came meanwhile
                publish(tau)

        if self.lasts:
            gate.send(ticket, send)
        else:  # after a stop meanwhile the next look begins the silence
            self.lasts = gate.send(ticket, gate.close, send)
        return True
