"""A controller's link to its guard: rules for stops, and for driving again.

A guard, a Supervisor in a process of its own, sends a Beat every BEAT seconds and at
each change. GuardLink holds the rules, GuardStop applies them to a Controller. Without
ROS; times are monotonic [s].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dyn_core.control.safety.health import ERROR, WARN, Condition

BEAT = 0.05  # period of the beats of a guard [s]
LATE = 0.02  # time between two checks that shows that the reader was suspended [s]
GRACE = 2 * BEAT  # time for reading the beats that arrived meanwhile [s]
ANSWER = 0.015  # time after state_timeout in which the controller reacts [s]
CAUSE = "guard"  # cause of a stop that a guard's beat requested


@dataclass(frozen=True)
class Beat:
    """Status message of a guard; `uuid` is of its process, another after a restart.

    `resets` counts those that it has handled. `timeout` is its setting
    effort_timeout [s], 0: unknown. `ends`: it is the last beat.
    """

    uuid: str
    stopped: bool
    reason: str = ""
    resets: int = 0
    timeout: float = 0.0
    ends: bool = False


@dataclass(eq=False)
class KnownGuard:
    """State of one guard as seen by the controller.

    Attributes:
        deadline: Time at which its silence becomes a fault [s].
        latch: Resets in the beat that reported its stop; None without one in force.
        graced: Whether its deadline was extended once since the newest beat.
        confirmed: Whether a beat sent after the reader's last suspension has come.
    """

    beat: Beat
    deadline: float
    latch: int | None = None
    graced: bool = False
    confirmed: bool = True
    lost: bool = False


@dataclass(eq=False)
class GuardLink:
    """Guards of a controller, and the stops and faults that follow from their beats.

    A guard's stop lasts until the same process reports one more reset, or, if that
    process is gone, until `begin` while another guard is alive and not stopped. A guard
    that falls silent is a fault until `begin`. All methods must be called from one
    thread.

    Attributes:
        timeout: Duration of a guard's silence that is a fault [s].
        required: Whether a controller without a guard is a fault.
        longest_pause: Time between two checks after which a guard may have stopped the
            robot unnoticed: the state_timeout of the controller [s].
    """

    timeout: float = 0.2
    required: bool = False
    longest_pause: float = 0.1
    guards: dict[str, KnownGuard] = field(default_factory=dict)
    fault: str | None = None
    _looked: float = -np.inf
    _settled: float = -np.inf

    def hear(self, t: float, beat: Beat) -> None:
        """Process a beat received at time t [s]: add its guard, set or end its stop.

        Deadlines are first extended after a suspension, see _excuse. The guard's
        deadline becomes t + timeout; the last beat ends the guard (_end). A beat with
        fewer resets than an earlier one of the same guard is ignored, as it is older.
        """
        self._excuse(t)
        guard = self.guards.get(beat.uuid)
        if guard is None:
            guard = self.guards[beat.uuid] = KnownGuard(beat, t)
        elif beat.resets < guard.beat.resets:
            return
        guard.beat, guard.deadline = beat, t + self.timeout
        guard.lost = guard.graced = False
        guard.confirmed |= t >= self._settled
        if beat.stopped:
            guard.latch = beat.resets
        elif guard.latch is not None and beat.resets > guard.latch:
            guard.latch = None
        if beat.ends:
            self._end(guard)

    def _end(self, guard: KnownGuard) -> None:
        """Process the last beat of a guard: it is forgotten, but for a stop in force.

        If a guard is required, and all others have ended or fallen silent, `fault` is
        set.
        """
        guard.confirmed = True
        if guard.latch is None:
            del self.guards[guard.beat.uuid]
        if self.required and all(x.beat.ends or x.lost for x in self.guards.values()):
            self.fault = self.fault or "the guard has ended"

    def check(self, t: float) -> None:
        """Detect guards silent at time t [s]; the first one sets `fault` if it is None.

        To be called at intervals shorter than LATE (20 ms): after a longer one,
        deadlines that have passed are first extended, see _excuse.
        """
        self._excuse(t)
        for guard in self.guards.values():
            if t >= guard.deadline and not (guard.beat.ends or guard.lost):
                guard.lost = True
                silent = f"the guard is silent for {self.timeout:g} s"
                self.fault = self.fault or silent

    def _excuse(self, t: float) -> None:
        """Extend deadlines after this process, or its thread, was suspended.

        The suspension is recognised by the time since the previous call; the first call
        counts as one. After more than LATE a guard's deadline that has passed is
        extended to GRACE from now, once for each beat. After more than longest_pause
        all guards but ended ones become unconfirmed: queued beats may be older than a
        guard's stop, and only one received BEAT after the pause was certainly sent
        after it.
        """
        pause, self._looked = t - self._looked, t
        if pause > self.longest_pause:
            self._settled = t + BEAT
        for guard in self.guards.values():
            if pause > LATE and t >= guard.deadline and not guard.graced:
                guard.deadline, guard.graced = t + GRACE, True
            if pause > self.longest_pause and not guard.beat.ends:
                guard.confirmed = False

    def begin(self, t: float) -> None:
        """Clear the fault, and forget silent guards, on a person's request.

        A silent or ended guard whose stop is in force is forgotten only if another
        guard is alive and none of the living has stopped the robot. If a guard is
        required and none is alive, a new fault is set.
        """
        self._excuse(t)
        living = self.living(t)
        free = self.refusal(t) is None
        for uuid, guard in list(self.guards.items()):
            guard.lost = guard not in living
            if guard.lost and (guard.latch is None or free):
                del self.guards[uuid]
        self.fault = None
        if self.required and not living:
            self.fault = "no guard is heard"

    def living(self, t: float) -> list[KnownGuard]:
        """Return the guards that have neither ended nor fallen silent at time t [s]."""
        guards = self.guards.values()
        return [x for x in guards if t < x.deadline and not (x.beat.ends or x.lost)]

    def refusal(self, t: float) -> str | None:
        """Return why a controller that needs a guard cannot drive; None if it can.

        A guard must be alive, and no living one have stopped the robot; `fault` does
        not count.
        """
        living = self.living(t)
        if not living:
            return "no guard is heard; valid: start the node guard in this namespace"
        for guard in living:
            if guard.latch is not None:
                return f"the guard is stopped: {guard.beat.reason}; valid: its ~/reset"
        return None

    @property
    def latch(self) -> str | None:
        """Sentence on the first guard whose stop is in force; None without one."""
        for guard in self.guards.values():
            if guard.latch is not None:
                why = f" ({guard.beat.reason})" if guard.beat.reason else ""
                return f"the guard has stopped it{why}; ~/reset of the guard ends that"
        return None

    @property
    def waits(self) -> bool:
        """Whether a guard, not fallen silent, was not heard since a suspension."""
        return any(not (x.confirmed or x.lost) for x in self.guards.values())

    def conditions(self, t: float) -> list[Condition]:
        """Return warnings and errors about the guards at time t [s]; no stop, no fault.

        Several living guards (WARN, "guards"), a guard gone while its stop is in force
        (ERROR, "guard is gone"), and a living guard whose own timeout is above 0, but
        at most longest_pause + 15 ms (WARN, "guard's timeout").
        """
        living, doubts = self.living(t), []
        if len(living) > 1:
            message = f"{len(living)} guards are heard; valid: one"
            doubts.append(Condition(WARN, "guards", message))
        latched = [x for x in self.guards.values() if x.latch is not None]
        if any(guard not in living for guard in latched):
            message = (
                "the guard that has stopped it is gone: deactivate and activate under a"
                " guard that is not stopped"
            )
            doubts.append(Condition(ERROR, "guard is gone", message))
        answer = self.longest_pause + ANSWER
        for timeout in {x.beat.timeout for x in living if 0 < x.beat.timeout <= answer}:
            message = (
                f"effort_timeout of the guard is {timeout:g} s: it stops the robot"
                " where the controller itself would; valid: more than state_timeout and"
                f" 15 ms ({answer:g} s)"
            )
            doubts.append(Condition(WARN, "guard's timeout", message))
        return doubts


class GuardStop:
    """Stops a controller as its GuardLink requires; an observer of the controller.

    A guard's stop sends zero effort; the loss of the guard stops as set by
    on_violation. Stops of other causes remain in force.
    """

    def __init__(
        self, controller: Any, link: GuardLink, send_zero: Callable[[], object]
    ) -> None:
        """Connect a controller with its guards.

        Args:
            controller: Controller; the caller adds this object to its observers.
            link: Link that receives the beats.
            send_zero: Function that sends zero effort and discards efforts being
                computed.
        """
        self.controller, self.link, self.send_zero = controller, link, send_zero
        self._others = -1  # number of other stops at the guard's stop; -1: no such stop
        self._answered: str | None = None  # the fault that has stopped the controller

    def begin(self, t: float) -> None:
        """Call GuardLink.begin(t) at an activation; a stop or a fault acts at once."""
        self.link.begin(t)
        self._answered = None
        self._act(t)

    def hear(self, t: float, beat: Beat) -> None:
        """Process a beat of time t [s]; stop the controller, or end its stop."""
        self.link.hear(t, beat)
        self._act(t)

    def look(self, t: float) -> None:
        """Look for silent guards at time t [s]; to be called between states, too.

        The loss of the guard stops the controller as set by on_violation. Zero effort
        is sent once when a stop of kind zero begins by the guard or its loss.
        """
        self.link.check(t)
        self._act(t)

    def restart(self) -> None:
        """Do nothing: a reset of the controller does not reset the guard."""

    def observe(
        self, t: float, q: np.ndarray, qd: np.ndarray, tau: np.ndarray
    ) -> str | None:
        """Return the reason to stop if the guard is lost and no stop is in force.

        Stops begin or end as in `_act`, at the state's time of receipt. Zero effort is
        sent when a stop of kind zero begins there, and in each such call in which a
        guard was not heard since a suspension and `tau` is not zero. During a shutdown
        guards are ignored because nobody reads their beats.
        """
        stop = self.controller.stopped
        if stop is not None and stop.cause == "shutdown":
            return None
        self.link.check(self.controller.seen)
        if self.link.fault is not None and stop is None:
            self._answered = self.link.fault
            return self.link.fault
        self._act(self.controller.seen)
        if self.link.waits and tau.any():
            self.send_zero()  # nothing at all would leave the last effort
        return None

    def _act(self, t: float) -> None:
        """Stop the controller as the link requires, or end a stop that was reset.

        A guard's stop of kind zero replaces weaker stops. When it is reset, the
        controller's stop is reset only if it had none before and none of another cause
        since. Zero effort is sent once when a guard's stop begins, and at a new fault
        if the stop is then of kind zero.
        """
        link, safety = self.link, self.controller.safety
        stop = safety.running
        if link.latch is not None and (stop is None or stop.kind != "zero"):
            self._others = self._stops() if stop is None else -1
            safety.stop(t, CAUSE, "zero", link.latch)
            self.send_zero()
        elif link.latch is None and stop is not None and self._others == self._stops():
            self.controller.reset_stop()  # there was no stop of another cause
        if link.fault is not None and link.fault != self._answered:
            self._answered = link.fault
            safety.violated(t, link.fault)
            if safety.running.kind == "zero":
                self.send_zero()

    def _stops(self) -> int:
        """Return the number of stops of the controller that no guard requested."""
        counted = self.controller.counters.items()
        guards = f"stopped: {CAUSE}"
        return sum(n for k, n in counted if k.startswith("stopped: ") and k != guards)
