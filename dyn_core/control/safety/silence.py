"""Effort sent while no fresh state arrives, from any thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dyn_core.control.rules import Rules
from dyn_core.control.safety.effort_checks import Safety
from dyn_core.control.states.state_samples import Samples


@dataclass(eq=False)
class Silence:
    """Effort for stale states: zero, or for a bounded time gravity compensation.

    Attributes:
        samples: Last valid state and its time of receipt.
        rules: on_stale, stop_time.
        safety: Stop in force, gate, and effort of gravity compensation.
        lasts: Whether the state was already stale at the last `answer`.
    """

    samples: Samples
    rules: Rules
    safety: Safety
    lasts: bool = False

    def torque(self, t: float, enabled: bool) -> np.ndarray | None:
        """Return the torque for a stale state, (nv,) [N·m | N]; None if it is fresh.

        None, too, before the first state. A stale state sets `samples.good` to 0.

        A stop of kind zero or ramp that is in force sets the kind of the torque, else
        on_stale does. For ramp it is gravity compensation with braking, if the
        controller is enabled and has sent an effort, and neither the silence nor the
        stop lasts longer than stop_time. Otherwise, and while the clock is paused, it
        is zero.

        Args:
            t: Present time, monotonic [s].
            enabled: Whether the controller may send a torque other than zero.
        """
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
        """Publish the torque for a stale state, see `torque`, through the gate.

        The first torque of a silence discards every effort that is still being
        computed. Nothing is published if a state or a stop comes meanwhile.

        Args:
            t: Present time, monotonic [s].
            enabled: Whether the controller may send a torque other than zero.
            publish: Function that sends a torque, (nv,); its errors pass through.

        Returns:
            Whether the state was stale at `t`, even if nothing was published; False
            before the first state.
        """
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
