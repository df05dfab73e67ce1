"""A controller's link to its guard: which beat stops it, and what lets it go on.

A guard, a Supervisor in a process of its own, sends a Beat BEAT apart and at each
change. GuardLink holds the rules, GuardStop applies them to a Controller. Without ROS;
times are monotonic [s].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dyn_core.control.safety.health import ERROR, WARN, Condition

BEAT = 0.05  # period of the beats of a guard [s]
LATE = 0.02  # time without a look that shows that the reader itself stood [s]
GRACE = 2 * BEAT  # time for reading what arrived while it stood [s]
ANSWER = 0.015  # in which the controller answers silence, after state_timeout [s]
CAUSE = "guard"  # of a stop by a guard's word


@dataclass(frozen=True)
class Beat:
    """What a guard says of itself.

    Attributes:
        uuid: Name of its process; another process has another one.
        stopped: Whether it has stopped the robot.
        reason: Why, in a sentence.
        resets: Number of resets that it has answered.
        timeout: Its effort_timeout [s]; 0: unknown.
        ends: Whether this is its last beat.
    """

    uuid: str
    stopped: bool
    reason: str = ""
    resets: int = 0
    timeout: float = 0.0
    ends: bool = False


@dataclass(eq=False)
class KnownGuard:
    """What is known of one guard.

    Attributes:
        beat: Its newest beat.
        deadline: Time at which its silence is a fault [s].
        latch: Resets that it showed when it said that it is stopped; None: its stop was
            reset, or there was none.
        graced: Whether its silence was excused once since its newest beat.
        confirmed: Whether it was heard since the reader stood.
        lost: Whether it has fallen silent.
    """

    beat: Beat
    deadline: float
    latch: int | None = None
    graced: bool = False
    confirmed: bool = True
    lost: bool = False


@dataclass(eq=False)
class GuardLink:
    """The guards that a controller hears, and what follows from their beats.

    A stop of a guard lasts until the same process shows one more reset, or, where that
    process is gone, until `begin` under another one that lives and is not stopped. A
    guard that falls silent is a fault until `begin`. All methods are for one thread.

    Attributes:
        timeout: Silence of a guard that is a fault [s].
        required: Whether a controller without a guard is a fault.
        longest_pause: Time without a look after which the reader may have been stopped
            by a guard meanwhile: the state_timeout of the controller [s].
        guards: Known guards by uuid.
        fault: Why the controller has to stop until `begin`, or None.
    """

    timeout: float = 0.2
    required: bool = False
    longest_pause: float = 0.1
    guards: dict[str, KnownGuard] = field(default_factory=dict)
    fault: str | None = None
    _looked: float = -np.inf
    _settled: float = -np.inf

    def hear(self, t: float, beat: Beat) -> None:
        """Note a beat; one that is older than one that was heard is ignored."""
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
        """Expect no further beat of a guard that has ended in good order."""
        guard.confirmed = True
        if guard.latch is None:
            del self.guards[guard.beat.uuid]
        if self.required and all(x.beat.ends or x.lost for x in self.guards.values()):
            self.fault = self.fault or "the guard has ended"

    def check(self, t: float) -> None:
        """Look for guards that are silent; to be called more often than each LATE."""
        self._excuse(t)
        for guard in self.guards.values():
            if t >= guard.deadline and not (guard.beat.ends or guard.lost):
                guard.lost = True
                silent = f"the guard is silent for {self.timeout:g} s"
                self.fault = self.fault or silent

    def _excuse(self, t: float) -> None:
        """Wait for what was not read while this process, or its thread, stood.

        Beats that waited in the meantime may be older than the stop of a guard: only
        one that comes BEAT after the pause was sent after it.
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
        """Begin anew, on a person's request: end faults, and stops of dead guards."""
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
        """Return the guards that have not ended and are not silent."""
        guards = self.guards.values()
        return [x for x in guards if t < x.deadline and not (x.beat.ends or x.lost)]

    def refusal(self, t: float) -> str | None:
        """Return why a controller that needs a guard cannot drive, or None."""
        living = self.living(t)
        if not living:
            return "no guard is heard; valid: start the node guard in this namespace"
        for guard in living:
            if guard.latch is not None:
                return f"the guard is stopped: {guard.beat.reason}; valid: its ~/reset"
        return None

    @property
    def latch(self) -> str | None:
        """Why a guard keeps the controller at zero effort, or None."""
        for guard in self.guards.values():
            if guard.latch is not None:
                why = f" ({guard.beat.reason})" if guard.beat.reason else ""
                return f"the guard has stopped it{why}; ~/reset of the guard ends that"
        return None

    @property
    def waits(self) -> bool:
        """Whether this process stood, and a guard was not heard since."""
        return any(not (x.confirmed or x.lost) for x in self.guards.values())

    def conditions(self, t: float) -> list[Condition]:
        """Return what is wrong with the guards, beside that they stop the robot."""
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
    """Stops a controller as its GuardLink says; an observer of the controller.

    What a guard has stopped gets zero effort; what has lost its guard, the effort of
    on_violation. Stops of other causes stay.
    """

    def __init__(
        self, controller: Any, link: GuardLink, send_zero: Callable[[], object]
    ) -> None:
        """Prepare the stop.

        Args:
            controller: A Controller, of whose observers this is one.
            link: Hears the guards.
            send_zero: Sends zero effort, and discards what is being computed.
        """
        self.controller, self.link, self.send_zero = controller, link, send_zero
        self._others = -1  # stops of other causes, when the guard's came
        self._answered: str | None = None  # the fault that has stopped the controller

    def begin(self, t: float) -> None:
        """Begin with an activation; a stop that outlasts it is in force at once."""
        self.link.begin(t)
        self._answered = None
        self._act(t)

    def hear(self, t: float, beat: Beat) -> None:
        """Note a beat, and stop or go on accordingly."""
        self.link.hear(t, beat)
        self._act(t)

    def look(self, t: float) -> None:
        """Look for silence, also between two states."""
        self.link.check(t)
        self._act(t)

    def restart(self) -> None:
        """Do nothing: no reset of the controller is one of the guard."""

    def observe(
        self, t: float, q: np.ndarray, qd: np.ndarray, tau: np.ndarray
    ) -> str | None:
        """Return why the controller has lost its guard; send zero while one stops it.

        While a robot comes to rest before the end of its node, which is bounded, nobody
        reads the beats.
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
        """Stop as the link says, or end a stop of a guard that was reset."""
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
        """Return how often the controller was stopped by others."""
        counted = self.controller.counters.items()
        guards = f"stopped: {CAUSE}"
        return sum(n for k, n in counted if k.startswith("stopped: ") and k != guards)
