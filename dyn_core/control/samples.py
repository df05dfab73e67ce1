"""Samples of a state: what is refused, what is a new start, and the last good one."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from dyn_core.control.rules import Rules
from dyn_core.errors import NonFiniteError, SettingError, ShapeError

BACK, JUMPED, STALE = "time went back", "time jumped", "stale"
MOVED = "position jumped"
GLITCH = 2  # jumps of a sample that is wrong: there and back
LONGEST_STEP = 1.0  # step of a reference's time between two samples that are fresh [s]


def check_sample(
    joints: Sequence[str], q: np.ndarray, qd: np.ndarray, counters: Counter
) -> None:
    """Raise an error for a state of wrong size or with numbers that are not finite.

    Args:
        joints: Names in the order of the arrays.
        q, qd: Positions and velocities.
        counters: Where a refusal is counted.
    """
    n = len(joints)
    for name, x in (("position", q), ("velocity", qd)):
        if x.shape != (n,):
            counters[f"{name} of wrong size"] += 1
            raise ShapeError(name, f"shape ({n},)", f"shape {x.shape}")
        if not np.isfinite(x).all():
            counters[f"{name} not finite"] += 1
            pairs = zip(joints, x, strict=True)
            bad = ", ".join(joint for joint, value in pairs if not math.isfinite(value))
            raise NonFiniteError(f"{name} of {bad} is not finite", name)


def check_age(stamp: float | None, now: float, longest: float) -> None:
    """Raise an error for a state that is too old, of the future, or has no stamp.

    Args:
        stamp: Time stamp of the state [s]; None if it has none.
        now: Present time of the same clock [s].
        longest: Largest age and largest lead; 0 allows every one [s].
    """
    if not longest:
        return
    if stamp is None:
        raise SettingError("the state has no stamp; max_state_age needs one", "stamp")
    age = now - stamp
    if not abs(age) <= longest:
        side = "old" if age > 0 else "ahead of the clock"
        raise SettingError(
            f"the state is {abs(age):.6g} s {side}; valid: at most {longest:.6g} s"
            " (max_state_age)",
            "stamp",
        )


class Samples:
    """The last good state of a robot, and what a new one means.

    Other threads may read q, qd and seen: each is replaced as a whole.

    Attributes:
        joints: Names in the order of the arrays.
        rules: state_timeout, max_jump, differentiate, filter_time.
        wrapped: Joints whose differences are wrapped to [-pi, pi), (n,).
        counters: Where refusals are counted.
        q, qd: Last good state; None before the first, and after a reset.
        seen: Time of its receipt [s]; kept by a reset, so that silence is noticed.
        stamp: Its time stamp [s].
        now: Its time as trajectories count it [s].
        good: Number of consecutive good states.
        jumps: Number of jumps in a row, each within state_timeout of the one before.
    """

    def __init__(
        self,
        joints: tuple[str, ...],
        rules: Rules,
        wrapped: np.ndarray,
        counters: Counter,
    ) -> None:
        self.joints, self.rules, self.wrapped = joints, rules, wrapped
        self.counters, self.turning = counters, bool(wrapped.any())
        self.begin()

    def begin(self) -> None:
        """Forget all."""
        self.seen: float | None = None
        self.jumps, self._last_jump = 0, 0.0
        self.reset()

    def reset(self) -> None:
        """Forget the state, but neither the time of its receipt nor jumps."""
        self.q: np.ndarray | None = None
        self.qd: np.ndarray | None = None
        self.stamp: float | None = None
        self.now: float | None = None
        self.good = 0

    def change(self, q: np.ndarray, q_next: np.ndarray) -> np.ndarray:
        """Return the displacement from q to q_next, wrapped for wrapped joints."""
        change: np.ndarray = q_next - q  # joints have one coordinate each
        if not self.turning:
            return change
        turns = np.floor((change + math.pi) / (2 * math.pi))
        return np.where(self.wrapped, change - turns * (2 * math.pi), change)

    def checked(
        self, t: float, q: Any, qd: Any | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return a checked sample; an invalid one is counted and raises."""
        q = np.array(q, float)  # a copy: the caller may change its array
        if qd is None:
            qd = self._differentiated(t, q)
        qd = np.array(qd, float)
        check_sample(self.joints, q, qd, self.counters)
        return q, qd

    def _differentiated(self, t: float, q: np.ndarray) -> np.ndarray:
        """Return a filtered velocity from two positions, if the rules allow it."""
        n = len(self.joints)
        if not self.rules.differentiate:
            self.counters["velocity missing"] += 1
            raise ShapeError("velocity", f"shape ({n},)", "nothing")
        if self.q is None or self.qd is None or self.seen is None or t <= self.seen:
            return np.zeros(n)
        dt = t - self.seen
        weight_new = dt / (dt + self.rules.filter_time)
        raw = self.change(self.q, q) / dt
        return self.qd + weight_new * (raw - self.qd)

    def interruption(
        self, t: float, q: np.ndarray, stamp: float | None, now: float | None
    ) -> str | None:
        """Return why a state does not continue the ones before it, or None.

        Args:
            t: Time of receipt [s].
            q: Checked positions.
            stamp, now: As for `accept`; None is not compared.
        """
        if stamp is not None and self.stamp is not None and stamp < self.stamp:
            return BACK
        if now is not None and self.now is not None and now < self.now:
            return BACK
        if self.seen is not None and t - self.seen > self.rules.state_timeout:
            return STALE
        if (
            now is not None
            and self.now is not None
            and now - self.now > LONGEST_STEP + self.rules.state_timeout
        ):
            return JUMPED
        if self.q is not None:
            change = np.abs(self.change(self.q, q)).max(initial=0)
            return MOVED if change > self.rules.max_jump else None
        return None

    def interrupted(self, t: float, why: str) -> None:
        """Count an interruption, and note when states jump."""
        self.counters[why] += 1
        if why in (MOVED, BACK):
            row = self.jumps > 0 and t - self._last_jump <= self.rules.state_timeout
            self.jumps, self._last_jump = self.jumps + 1 if row else 1, t

    def alternate(self, t: float) -> bool:
        """Return whether states jump to and fro, as those of two robots on one topic.

        A glitch jumps there and back, and a reset once; a third jump in a row is
        neither. It lasts until no state has jumped for state_timeout.
        """
        quiet = t - self._last_jump > self.rules.state_timeout
        return self.jumps > GLITCH and not quiet

    def accept(
        self, t: float, q: np.ndarray, qd: np.ndarray, stamp: float | None, now: float
    ) -> None:
        """Keep a checked state."""
        self.q, self.qd, self.seen = q, qd, t
        self.stamp, self.now = stamp, now
        self.good += 1

    def silence(self, t: float) -> float | None:
        """Return for how long the state is stale [s]; None while it is not."""
        seen = self.seen
        if seen is None or t - seen <= self.rules.state_timeout:
            return None
        return t - seen - self.rules.state_timeout
