"""Samples of the joint state: checks, age, interruptions, and the last valid state.

The age of a state is its time stamp compared with a clock. There are n joints, each
with one coordinate.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dyn_core.control.rules import Rules
from dyn_core.control.states.plausibility import (
    APART,
    FAR,
    NOT_FINITE,
    OUTSIDE,
    TURN,
    LongMotion,
    StateCheck,
    allocate_state_rows,
    compare_states,
)
from dyn_core.engines.machine_code import compiled
from dyn_core.errors import NonFiniteError, SettingError, ShapeError, StateError
from dyn_core.validation import shown

BACK, JUMPED, STALE = "time went back", "time jumped", "stale"
MOVED = "position jumped"
GLITCH = 2  # number of jumps that one wrong sample causes: there and back
LONGEST_STEP = 1.0  # largest step of the reference's time between fresh samples [s]
MEAN = 100  # number of samples in the running mean of the period
RECENT = 1.0  # time over which stalls are averaged [s]
KNOWN = 10  # number of samples after which the period counts as known
OLD = "state of another time"
NAMED = 2.0  # time after a pause in which a stop names it [s]
STEADY = 0.05  # variation of ages up to which two clocks are said to differ [s]
SEVERAL = 10  # refused states after which two clocks may be said to differ


def check_time(t: Any, call: str, name: str = "t") -> None:
    """Raise a SettingError, which shows `call`, unless a time is a finite number."""
    try:
        known = math.isfinite(t)
    except (TypeError, OverflowError):  # a text; an int too large for a float
        known = False
    if not known:
        text = "None" if t is None else shown(t)
        message = f"{name} is {text}; valid: the time, a number [s]; {call}"
        raise SettingError(message, name)


def check_times(t: Any, stamp: Any | None, now: Any | None, clock: Any | None) -> None:
    """Raise a SettingError unless t, and other times but None, are finite numbers."""
    isfinite = math.isfinite
    try:
        if (
            isfinite(t)
            and (stamp is None or isfinite(stamp))
            and (now is None or isfinite(now))
            and (clock is None or isfinite(clock))
        ):
            return
    except (TypeError, OverflowError):
        pass
    call = "update(t, q, qd, stamp, now, clock)"
    check_time(t, call)
    for name, time in (("stamp", stamp), ("now", now), ("clock", clock)):
        if time is not None:
            check_time(time, call, name)


class StateAge:
    """Refuses states, or other samples, that are too old or in the future.

    `longest` is the largest age and the largest lead [s], 0: no limit. `unstamped`: a
    state without a stamp, whose age cannot be checked, has come.
    """

    def __init__(self, longest: float, what: str = "state") -> None:
        self.longest, self.what = longest, what
        self.restart()

    def restart(self) -> None:
        """Discard the history of refused states and unstamped ones."""
        self.unstamped = False
        self._accept()

    def _accept(self) -> None:
        """Discard the history of refused states, but not `unstamped`."""
        self._refused, self._least, self._most = 0, math.inf, -math.inf

    def check(self, stamp: float | None, clock: float | None) -> None:
        """Raise a StateError if a state's age is above `longest`, or below -longest.

        Without `stamp`, which sets `unstamped`, or without `clock` nothing is checked.
        From the tenth refusal in a row on, with all ages within 0.05 s, the message
        says that clocks differ.
        """
        if stamp is None:
            self.unstamped = True
        if stamp is None or clock is None or not self.longest:
            return
        age = clock - stamp
        if abs(age) <= self.longest:
            if self._refused:
                self._accept()
            return
        self._refused += 1
        self._least, self._most = min(self._least, age), max(self._most, age)
        valid = f"valid: at most {self.longest:.6g} s (max_state_age)"
        side = "old" if age > 0 else "ahead of the clock"
        if self._refused >= SEVERAL and self._most - self._least <= STEADY:
            raise StateError(
                f"the {self.what} is {abs(age):.3f} s {side}, as all of the last"
                f" {self._refused}: the clock of its source differs by that; {valid},"
                " or clocks that are synchronised",
                OLD,
            )
        raise StateError(f"the {self.what} is {abs(age):.6g} s {side}; {valid}", OLD)


def check_sample(
    joints: Sequence[str], q: np.ndarray, qd: np.ndarray, counters: Counter
) -> None:
    """Refuse a state that is not (n,) or not finite, and count it in `counters`."""
    n = len(joints)
    for name, x in (("position", q), ("velocity", qd)):
        if x.shape != (n,):
            counters[f"{name} of wrong size"] += 1
            raise ShapeError(name, f"shape ({n},)", f"shape {x.shape}")
        if not all(map(math.isfinite, x.tolist())):
            counters[f"{name} not finite"] += 1
            pairs = zip(joints, x, strict=True)
            bad = ", ".join(joint for joint, value in pairs if not math.isfinite(value))
            raise NonFiniteError(f"{name} of {bad} is not finite", name)


class Samples:
    """The last valid joint state, and the checks of a new one.

    Other threads may read q, qd and seen: each is replaced as a whole.

    Attributes:
        joints: Names in the order of the arrays.
        rules: state_timeout, max_jump, max_state_age, differentiate, filter_time.
        wrapped: Joints whose position differences are wrapped to [-pi, pi), bool, (n,).
        counters: Counters of refusals and interruptions.
        check: Bounds of plausible states; None accepts all finite states.
        clock: Function that returns simulated time if trajectories use it, else None
            [s].
        q, qd: Last valid state; None before the first, and after a reset.
        seen: Time of its receipt [s]; a reset retains it, so that stale states are
            still detected.
        stamp: Its time stamp [s].
        now: Its time on the clock of trajectories [s].
        good: Number of consecutive valid states.
        jumps: Number of consecutive jumps, each within state_timeout of the previous
            one.
        mean_period: Mean time between two samples [s]; 0 before the second.
        recent_period: Mean over about the last second of the time between two samples,
            weighted by that time, so that stalls count by their length [s].
        repeated: Time at which the stamp of the last state was received again [s].
        pause: End of the last interruption "stale", and the time without a valid state
            before it [s]; -inf and 0.0 before the first.
        age: Check of the age of states.
    """

    def __init__(
        self,
        joints: tuple[str, ...],
        rules: Rules,
        wrapped: np.ndarray,
        counters: Counter,
        check: StateCheck | None = None,
    ) -> None:
        self.joints, self.rules, self.wrapped = joints, rules, wrapped
        self.counters, self.turning = counters, bool(wrapped.any())
        self.check, self.motion = check, None
        self._rows = rows = allocate_state_rows(wrapped, check)
        self._compare = compiled(compare_states).bind(rows)
        if check is not None and not check.made:
            timeout = rules.state_timeout
            self.motion = LongMotion(joints, rows, 10 * timeout, timeout)
        self.age = StateAge(rules.max_state_age)
        self.clock: Callable[[], float | None] | None = None
        self.begin()

    def begin(self) -> None:
        """Discard state, times, also `seen`, jumps, mean period and memory of checks.

        `pause` is discarded, too. The counters stay.
        """
        self.seen: float | None = None
        self.jumps, self._last_jump = 0, 0.0
        self.repeated, self.pause = -math.inf, (-math.inf, 0.0)
        self.mean_period, self._periods, self.recent_period = 0.0, 0, 0.0
        self.age.restart()
        if self.motion is not None:
            self.motion.restart()
        self.reset()

    def reset(self) -> None:
        """Discard the state, but retain the time of its receipt.

        q, qd, stamp and now become None, and good 0. Jumps and mean period stay. The
        check over a window begins anew, but a disagreement that it found remains.
        """
        self.q: np.ndarray | None = None
        self.qd: np.ndarray | None = None
        self.stamp: float | None = None
        self.now: float | None = None
        self.good = 0
        self._rate: np.ndarray | None = None
        self._compared: tuple[Any, Any, int] = None, None, 0
        if self.motion is not None:
            self.motion.interrupt()

    @property
    def period(self) -> float | None:
        """Mean time between two samples [s]; None before 10 times were measured."""
        return self.mean_period if self._periods >= KNOWN else None

    @property
    def rate(self) -> np.ndarray:
        """Velocity on which positions and velocities of the last state agree, (n,).

        Of the received velocity and the difference quotient of the positions it is the
        one with the smaller absolute value, and zero where their signs differ. Without
        a previous state it is the received velocity. Requires a state.
        """
        assert self._rate is not None
        return self._rate

    def change(self, q: np.ndarray, q_next: np.ndarray) -> np.ndarray:
        """Return the displacement from q to q_next, (n,).

        For wrapped joints it is in [-pi, pi).
        """
        change: np.ndarray = q_next - q  # joints have one coordinate each
        if not self.turning:
            return change
        turns = np.floor((change + math.pi) / TURN)
        return np.where(self.wrapped, change - turns * TURN, change)

    def _faults(
        self, t: float, q: np.ndarray, qd: np.ndarray, stamp: float | None
    ) -> int:
        """Compare a state with bounds and the last valid state; return its fault bits.

        Bits are those of compare_states, whose result is written to `_rows`. For the
        same objects self.q and q as before its bits are returned, whatever the other
        arguments are.
        """
        before, after, faults = self._compared
        if self.q is before and q is after:
            return faults
        rows, known = self._rows, self.q is not None
        rows.q[:], rows.qd[:] = q, qd
        dt = self._elapsed(t, stamp) if known else 0.0
        made = self.check is not None and self.check.made
        duration = max(dt, self.mean_period, 1e-9)
        faults = self._compare(known, made, dt, duration, self.rules.max_jump)
        self._compared = self.q, q, faults
        return faults

    def repeats(self, t: float, stamp: float | None) -> bool:
        """Return whether a stamp equals the stamp of the last state.

        A repetition is counted, and its time of receipt is stored in `repeated`. A
        state without a stamp is always new.

        Args:
            t: Time of receipt [s].
            stamp: Time stamp [s] or None.
        """
        if stamp is None or stamp != self.stamp:
            return False
        self.repeated = t
        self.counters["stamp repeated"] += 1
        return True

    def checked(
        self,
        t: float,
        q: Any,
        qd: Any | None,
        stamp: float | None = None,
        clock: float | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return position and velocity of a sample after the checks of a single state.

        Size, finite numbers, age and bounds are checked; a refusal is counted. The
        arrays are copies; `accept` stores them.

        Args:
            t: Time of receipt [s].
            q: Positions, (n,).
            qd: Velocities, (n,); None: computed from positions if the rules allow it.
            stamp: Time stamp [s]; None if there is none.
            clock: Present time of the stamps' clock [s]; None: the age is not checked.

        Returns:
            Position and velocity, (n,) each.

        Raises:
            ShapeError: An array has a wrong size, or velocities are missing.
            NonFiniteError: A number is not finite.
            StateError: The state is too old, in the future or outside its bounds.
            ValueError, TypeError: q or qd are no numbers; not counted.
        """
        q = np.array(q, float)  # a copy: the caller may change its array
        if qd is None:
            qd = self._differentiated(t, q)
        qd = np.array(qd, float)
        if not q.shape == qd.shape == self._rows.q.shape:
            check_sample(self.joints, q, qd, self.counters)
        faults = self._faults(t, q, qd, stamp)
        if faults & NOT_FINITE:
            check_sample(self.joints, q, qd, self.counters)
        try:
            self.age.check(stamp, clock)
            if faults & OUTSIDE and self.check is not None:
                raise self.check.beyond(q, qd)
        except StateError as error:
            self.counters[error.kind] += 1
            raise
        return q, qd

    def check_motion(
        self, t: float, q: np.ndarray, qd: np.ndarray, stamp: float | None
    ) -> None:
        """Check that a state and the previous one belong to one motion.

        Nothing is checked if `check` is None. A refusal is counted, and counts as a
        jump: several in a row are states of two robots.

        Args:
            t: Time of receipt [s].
            q, qd: Positions and velocities, (n,).
            stamp: Time stamp [s]; None skips the check over a window. There is none if
                velocities are computed from positions (check.made).

        Raises:
            StateError: Positions and velocities disagree, from the previous state (if
                there is one) or over a window.
        """
        if self.check is None:
            return
        try:
            if self.q is not None and self.qd is not None:
                if self._faults(t, q, qd, stamp) & APART:
                    change, dt = self._rows.change.copy(), self._elapsed(t, stamp)
                    self.check.check_motion(change, self.qd, qd, dt, self.mean_period)
            if self.motion is not None and stamp is not None:
                self.motion.add(stamp)
        except StateError as error:
            self.counters[error.kind] += 1
            self._note_jump(t)
            raise

    def _elapsed(self, t: float, stamp: float | None) -> float:
        """Return the time since the last valid state, which must exist [s].

        It is by stamps, if both states have one and it is at most the time between
        arrivals plus state_timeout; else by arrivals, at least the mean period.
        """
        assert self.seen is not None
        arrived = t - self.seen
        if stamp is not None and self.stamp is not None:
            gone = stamp - self.stamp
            if gone <= arrived + self.rules.state_timeout:
                return gone
        return max(arrived, self.mean_period)

    def _differentiated(self, t: float, q: np.ndarray) -> np.ndarray:
        """Return a low-pass filtered velocity from the last two positions, (n,).

        It is zero without a previous, earlier state, or if `checked` refuses the size
        of q. ShapeError, which is counted: the rules require velocities.
        """
        n = len(self.joints)
        if not self.rules.differentiate:
            self.counters["velocity missing"] += 1
            raise ShapeError("velocity", f"shape ({n},)", "nothing")
        if self.q is None or self.qd is None or self.seen is None or t <= self.seen:
            return np.zeros(n)
        if q.shape != (n,):
            return np.zeros(n)
        dt = t - self.seen
        weight_new = dt / (dt + self.rules.filter_time)
        raw = self.change(self.q, q) / dt
        return self.qd + weight_new * (raw - self.qd)

    def interruption(
        self,
        t: float,
        q: np.ndarray,
        qd: np.ndarray,
        stamp: float | None,
        now: float | None,
    ) -> str | None:
        """Return the reason why a state does not continue the previous ones, or None.

        The first of these that applies:

            "time went back"    the stamp or `now` is before the last one
            "stale"             the last state is stale, and the clock is not paused;
                                reported once
            "time jumped"       `now` has advanced by more than 1 s + state_timeout
            "position jumped"   a position has changed by more than max_jump, or the raw
                                position of a wrapped joint by more than 1.5 turns

        Args:
            t: Time of receipt [s].
            q, qd: Checked state, (n,).
            stamp: Time stamp [s]; None is not compared.
            now: Time on the clock of trajectories [s]; None is not compared.
        """
        if stamp is not None and self.stamp is not None and stamp < self.stamp:
            return BACK
        if now is not None and self.now is not None and now < self.now:
            return BACK
        # Reported once, because a reset clears q: else each new state would
        # restart the checks over windows.
        if self.q is not None and self.silence(t) is not None and not self.paused:
            return STALE
        if (
            now is not None
            and self.now is not None
            and now - self.now > LONGEST_STEP + self.rules.state_timeout
        ):
            return JUMPED
        if self.q is not None and self._faults(t, q, qd, stamp) & FAR:
            return MOVED
        return None

    @property
    def paused(self) -> bool:
        """Whether `clock` is at most state_timeout after the last state's time.

        If this state is stale by its time of receipt, the clock has stopped. False if
        the clock is before that time, and without such a clock or without a state.
        """
        clock = None if self.clock is None else self.clock()
        if clock is None or self.now is None:
            return False
        return 0 <= clock - self.now <= self.rules.state_timeout

    def interrupted(self, t: float, why: str) -> None:
        """Count an interruption; "position jumped" and "time went back" are jumps, too.

        The interruption "stale" sets `pause`.

        Args:
            t: Time of receipt [s].
            why: Reason, as from `interruption`.
        """
        self.counters[why] += 1
        if why in (MOVED, BACK):
            self._note_jump(t)
        if why == STALE and self.seen is not None:
            self.pause = t, t - self.seen

    def pause_before(self, t: float) -> str:
        """Return a clause on a pause that ended at most 2 s before, or "".

        It reads "; the control loop paused for 0.31 s, 0.8 s before". A pause is a time
        without a valid state that is longer than state_timeout: no state came, or the
        process did not run.

        Args:
            t: Present time, monotonic [s].
        """
        end, duration = self.pause
        if t - end > NAMED:
            return ""
        after = f"{t - end:.2g} s before"
        return f"; the control loop paused for {duration:.2f} s, {after}"

    def _note_jump(self, t: float) -> None:
        """Count a jump in `jumps`, from 1 if none came within a state_timeout."""
        row = self.jumps > 0 and t - self._last_jump <= self.rules.state_timeout
        self.jumps, self._last_jump = self.jumps + 1 if row else 1, t

    def alternate(self, t: float) -> bool:
        """Return whether states jump back and forth, as with two robots on one topic.

        One wrong sample jumps there and back, and a reset once; a third jump in a row
        is neither. True until no state has jumped for state_timeout. `t` is the present
        time [s].
        """
        quiet = t - self._last_jump > self.rules.state_timeout
        return self.jumps > GLITCH and not quiet

    def accept(
        self, t: float, q: np.ndarray, qd: np.ndarray, stamp: float | None, now: float
    ) -> None:
        """Store a checked state as the last valid one.

        `good`, `rate`, mean_period and recent_period are updated, too.

        Args:
            t: Time of receipt [s].
            q, qd: Checked positions and velocities, (n,); stored without a copy.
            stamp: Time stamp [s]; None if there is none.
            now: Time on the clock of trajectories [s].
        """
        rows = self._rows
        self._rate = qd
        if self.q is not None and self.seen is not None:
            self._faults(t, q, qd, stamp)
            self._rate = rows.rate.copy()
            dt = self._elapsed(t, stamp) if stamp is not None else t - self.seen
            self._measure(dt)
        rows.q_before[:], rows.qd_before[:] = q, qd
        self.q, self.qd, self.seen = q, qd, t
        self.stamp, self.now = stamp, now
        self.good += 1

    def _measure(self, dt: float) -> None:
        """Update mean_period and recent_period with a time dt between two states [s].

        The first is the mean of the first 100 times, then an exponential mean. Times
        above state_timeout are ignored: they are interruptions.
        """
        if dt > self.rules.state_timeout:
            return
        self._periods += 1
        weight = max(1 / self._periods, 1 / MEAN)
        self.mean_period += weight * (dt - self.mean_period)
        self.recent_period += min(dt / RECENT, 1.0) * (dt - self.recent_period)

    def silence(self, t: float) -> float | None:
        """Return the time since the state became stale [s]; None if it is fresh.

        A state becomes stale state_timeout after its receipt. None, too, before the
        first state; a reset does not change the result.

        Args:
            t: Present time, monotonic [s].
        """
        seen = self.seen
        if seen is None or t - seen <= self.rules.state_timeout:
            return None
        return t - seen - self.rules.state_timeout
