"""Conditions of a running controller as sentences, with their beginning and end."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dyn_core.control.controller import Controller
from dyn_core.control.joint_limits import raised_limits
from dyn_core.control.reference.trajectory import Trajectory
from dyn_core.control.states.state_samples import BACK, JUMPED, MOVED

OK, WARN, ERROR, STALE = range(4)
WINDOW = 1.0  # time over which events are counted [s]
REMEMBERED = 10.0  # time for which a trajectory that was dropped is reported [s]
MOST_SATURATED = 0.5  # fraction of efforts at a limit above which it is reported
ALTERNATE = (
    "effort is zero: joint states jump to and fro, as those of two robots; until none"
    " has jumped for state_timeout"
)
PAUSED = "paused: /clock stands, and so do the joint states; effort is zero"
# Conditions that are normal at a start and are not logged.
QUIET = ("no state", "waiting", "inactive", "ok", "raised limits")


class Condition(NamedTuple):
    """A condition of a controller, such as a fault or a warning.

    Attributes:
        level: OK, WARN, ERROR or STALE.
        key: Identifier that matches the end of a condition to its beginning.
        message: Explanation, as a sentence.
    """

    level: int
    key: str
    message: str


class Health:
    """Evaluates the state and the counters of a controller, to which it listens.

    A distance to the reference above `large_error` [rad | m] is reported. `reached`
    counts trajectories followed to their end; `dropped` is the outcome of the last one,
    if it was stopped or dropped.
    """

    def __init__(self, controller: Controller, large_error: float) -> None:
        self.controller, self.large_error = controller, large_error
        self.dropped: str | None = None
        self.reached = 0
        self._dropped_since = 0.0
        self._before: deque[tuple[float, int, Counter]] = deque()
        self._known: dict[str, Condition] = {}
        controller.listeners.append(self._on_end)

    def _on_end(self, trajectory: Trajectory, outcome: str) -> None:
        """Record the outcome of a trajectory; "replaced" changes nothing."""
        self.reached += outcome == "reached"
        if outcome not in ("reached", "replaced"):
            self.dropped, self._dropped_since = outcome, -1.0

    def conditions(self, t: float, more: Sequence[Condition] = ()) -> list[Condition]:
        """Return the active conditions with `more`, most severe first; at least one.

        The order is ERROR, STALE, WARN, OK. Events are counted since a call 1 s ago:
        each call stores the counters. `t` is on the clock of `update` [s]. The distance
        to the reference and the law's warnings count only while the state is OK.
        """
        state = self._state(t)
        rest = [*more, *self._events(t), *self._settings()]
        if state.level == OK:
            rest += self._tracking()
            warnings = self.controller.control_law.warnings
            rest += [Condition(WARN, key, text) for key, text in warnings.items()]
        rest += self._trajectory(t)
        return sorted([state, *rest], key=lambda c: -_GRAVITY[c.level])

    def summary(self, conditions: Sequence[Condition]) -> tuple[int, str]:
        """Return the most severe level and the messages of conditions, joined by "; ".

        Messages of level OK are left out; if all are OK, only the first is returned.
        """
        bad = [c for c in conditions if c.level != OK] or conditions[:1]
        return bad[0].level, "; ".join(c.message for c in bad)

    def changes(self, conditions: Sequence[Condition]) -> list[Condition]:
        """Return the conditions that began or ended since the previous call.

        They are compared by `key`: another level or message alone is no change, but a
        stop for another reason is: the one before ended unseen. Those of level OK, or
        with a key normal at a start (no state, waiting, inactive, ok, raised limits),
        do not count. An ended one is returned with level OK, as "no longer: ...".
        """
        now = {c.key: c for c in conditions if c.level != OK and c.key not in QUIET}
        known = {key: c.message for key, c in self._known.items()}
        started = [
            c
            for key, c in now.items()
            if key not in known or (key == "stopped" and c.message != known[key])
        ]
        ended = [
            Condition(OK, key, f"no longer: {c.message.partition('; valid: ')[0]}")
            for key, c in self._known.items()
            if key not in now
        ]
        self._known = now
        return [*started, *ended]

    def _state(self, t: float) -> Condition:
        """Return the first condition that describes the controller's activity."""
        controller = self.controller
        if controller.stopped is not None:
            return Condition(ERROR, "stopped", controller.idle)
        if controller.seen is None:
            return Condition(STALE, "no state", "no joint state yet")
        if controller.samples.silence(t) is not None:
            return self._silent(t)
        if not controller.enabled:
            return Condition(WARN, "disabled", "disabled: effort is zero")
        if controller.samples.alternate(t):
            return Condition(WARN, "alternate", ALTERNATE)
        if controller.good < controller.rules.good_samples:
            return Condition(WARN, "waiting", "waiting for good joint states")
        if not controller.control_mode.follows:
            return Condition(OK, "ok", controller.control_law.status)
        follower = controller.follower
        if follower.running is not None:
            return Condition(OK, "ok", "tracking")
        wait = "" if follower.pending is None else ", a trajectory starts later"
        return Condition(OK, "ok", f"holding{wait}")

    def _silent(self, t: float) -> Condition:
        """Return the condition for stale states: a WARN if the clock is paused."""
        samples = self.controller.samples
        if samples.paused:
            return Condition(WARN, "paused", PAUSED)
        stands = t - samples.repeated <= samples.rules.state_timeout
        why = ": states come, but its stamp stands still" if stands else ""
        return Condition(ERROR, "stale", f"joint state is stale{why}")

    def _events(self, t: float) -> list[Condition]:
        """Return what counters show in the last second; store them for later calls."""
        controller, counters = self.controller, self.controller.counters
        cycles = controller.safety.cycles
        self._before.append((t, cycles, Counter(counters)))
        while len(self._before) > 2 and self._before[1][0] <= t - WINDOW:
            self._before.popleft()
        _, cycles_before, before = self._before[0]
        seen = []

        def new(key: str) -> int:
            return counters[key] - before[key] if key in counters else 0

        if new("torque not finite"):
            why = f"torque not finite: {controller.safety.failure}"
            seen.append(Condition(ERROR, "not finite", why))
        for key in (BACK, JUMPED, MOVED):
            if new(key):
                seen.append(Condition(WARN, key, f"{key}: {new(key)} times in 1 s"))
        if new("shadow disagrees"):
            seen.append(Condition(WARN, "shadow", "the shadow disagrees"))
        share = max(cycles - cycles_before, 1)
        limited = new("torque limited")
        if limited > MOST_SATURATED * share:
            which = np.flatnonzero(controller.safety.saturated)
            names = ", ".join(controller.model.joint_names[j] for j in which)
            part = min(limited / share, 1.0)
            seen.append(
                Condition(
                    WARN,
                    "saturated",
                    f"effort at its limit in {part:.0%} of the cycles"
                    + (f": {names}" if names else ""),
                )
            )
        return seen

    def _settings(self) -> list[Condition]:
        """Return WARNs of raised effort limits, and of gains near their bounds."""
        controller = self.controller
        raised = raised_limits(controller.model, controller.limit)
        seen = [Condition(WARN, "raised limits", "; ".join(raised))] if raised else []
        near = controller.gain_doubts()
        return seen + ([Condition(WARN, "gains", "; ".join(near))] if near else [])

    def _tracking(self) -> list[Condition]:
        """Return a WARN on the joint farthest from its reference, above large_error."""
        error = np.abs(self.controller.error)
        if error.max(initial=0.0) <= self.large_error:
            return []
        j = int(np.argmax(error))
        name = self.controller.model.joint_names[j]
        message = f"joint '{name}' is {error[j]:.3g} from its reference"
        return [Condition(WARN, "large error", message)]

    def _trajectory(self, t: float) -> list[Condition]:
        """Return a WARN if the last trajectory was dropped, for 10 s; else []."""
        if self.dropped is None:
            return []
        if self._dropped_since < 0:
            self._dropped_since = t
        over = t - self._dropped_since > REMEMBERED
        follower = self.controller.follower
        next_one = follower.pending or follower.running
        if over or (next_one is not None and next_one.asked is not None):
            self.dropped = None
            return []
        return [Condition(WARN, "dropped", f"trajectory {self.dropped}")]


_GRAVITY = {OK: 0, WARN: 1, STALE: 2, ERROR: 3}
