"""Which joint states a robot can have: within its limits, positions and velocities of
one motion. What cannot be is refused; a torque of it could only be wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dyn_core.control.joint_values import joint_values
from dyn_core.errors import SettingError, StateError
from dyn_core.model import Model
from dyn_core.validation import Quantity, known_keywords

JITTER = 2e-3  # by which the time between two states may be longer [s]
SHORTEST = 0.5  # part of the time between two states, or of its mean, that may be it
DRIFT = 0.05  # time for which velocities may be wrong by velocity_mismatch [s]
# By kind of joint: (slack, least mismatch, mismatch without a velocity limit).
TURNING, SLIDING = (0.2, 2.0, 10.0), (0.05, 0.5, 2.0)
BEYOND = "position beyond limits"
TOO_FAST = "velocity too large"
DISAGREE = "position and velocity disagree"


@known_keywords
@dataclass(frozen=True)
class StateBounds:
    """Bounds of joint states that are believed.

    Those of joints are one number, one number a joint, or numbers by the joint's name.

    Attributes:
        position_slack: Distance beyond a position limit of the model [rad | m]; None:
            0.2 rad, 0.05 m.
        velocity_factor: Largest velocity, in velocity limits of the model.
        velocity_mismatch: Largest difference between a velocity and that of the
            positions [rad/s | m/s]; None: twice the velocity limit, at least 2 rad/s,
            0.5 m/s; without a limit 10 rad/s, 2 m/s.
    """

    position_slack: Any = None
    velocity_factor: float = 10.0
    velocity_mismatch: Any = None

    def __post_init__(self) -> None:
        kind = Quantity(1.0)
        if not kind.takes(self.velocity_factor) or not self.velocity_factor >= 1:
            raise SettingError(
                f"velocity_factor is {self.velocity_factor!r}; valid: {kind.valid}",
                "velocity_factor",
            )


class StateCheck:
    """Checks joint states against the limits of a robot, and against each other.

    Attributes:
        joints: Names.
        low, high: Positions that are believed, infinite where none is tested, (n,).
        fastest: Velocities that are believed, infinite where none is tested, (n,).
        mismatch: Difference of velocity and positions that is allowed, (n,).
        untested: Sentences on joints whose limits say nothing.
    """

    def __init__(self, model: Model, bounds: StateBounds, made: bool = False) -> None:
        """Prepare the bounds.

        Args:
            model: Robot with joints of one coordinate.
            bounds: What was asked for.
            made: Whether velocities are computed from positions, and so are not
                compared with them or with the velocity limits.
        """
        self.joints, self.made = tuple(model.joint_names), made
        kinds = [model.joint_kind(name) for name in self.joints]
        rows = [SLIDING if kind == "prismatic" else TURNING for kind in kinds]
        slack, least, free = np.array(rows, float).reshape(-1, 3).T
        slack = joint_values(model, "position_slack", bounds.position_slack, slack)
        limit = model.velocity_limit
        limited = np.isfinite(limit) & (limit > 0)
        ranged = model.lower < model.upper
        self.low = np.where(ranged, model.lower - slack, -np.inf)
        self.high = np.where(ranged, model.upper + slack, np.inf)
        known = np.where(limited, limit, 0.0)
        factor = np.inf if made else bounds.velocity_factor
        self.fastest = np.where(limited, factor * np.maximum(known, 1e-300), np.inf)
        usual = np.where(limited, np.maximum(2 * known, least), free)
        self.mismatch = joint_values(
            model, "velocity_mismatch", bounds.velocity_mismatch, usual
        )
        endless = np.array([kind == "continuous" for kind in kinds], bool)
        # Of a few joints lists are several times faster than arrays.
        self._alone = list(
            zip(*(x.tolist() for x in (self.low, self.high, self.fastest)), strict=True)
        )
        self._mismatch: list[float] = self.mismatch.tolist()
        self.untested = (
            *_sentences(
                self.joints,
                ~ranged & ~endless,
                "has no range of positions (lower >= upper): they are not tested",
            ),
            *_sentences(
                self.joints,
                ~limited,
                "has no velocity limit: positions alone test its velocity",
            ),
        )

    def check_alone(self, q: np.ndarray, qd: np.ndarray) -> None:
        """Raise a StateError for a state that no robot of these limits can have."""
        for x, v, (low, high, fastest) in zip(
            q.tolist(), qd.tolist(), self._alone, strict=True
        ):
            if not (low <= x <= high and -fastest <= v <= fastest):
                raise self._beyond(q, qd)

    def _beyond(self, q: np.ndarray, qd: np.ndarray) -> StateError:
        """Return the error of a state beyond the bounds."""
        if not ((q >= self.low) & (q <= self.high)).all():
            j = int(np.argmax(np.maximum(self.low - q, q - self.high)))
            return StateError(
                f"joint '{self.joints[j]}' is at {q[j]:.6g}; believed: from"
                f" {self.low[j]:.6g} to {self.high[j]:.6g}, its limits and"
                " position_slack",
                BEYOND,
            )
        j = int(np.argmax(np.abs(qd) / self.fastest))
        return StateError(
            f"joint '{self.joints[j]}' moves at {qd[j]:.6g}; believed: up to"
            f" {self.fastest[j]:.6g}, its velocity limit by velocity_factor",
            TOO_FAST,
        )

    def check_motion(
        self,
        change: list[float],
        before: np.ndarray,
        after: np.ndarray,
        dt: float,
        period: float,
    ) -> None:
        """Raise a StateError where positions and velocities are not of one motion.

        The mean velocity of the positions must be that at the end of the step, or the
        mean of both ends, within velocity_mismatch, for a duration from half the
        shorter of dt and the mean period to the longer one and JITTER.

        Args:
            change: Displacement of the positions, (n,).
            before, after: Velocities at both ends, (n,).
            dt: Duration of the step as it was measured [s].
            period: Mean duration of a step [s]; 0: not known.
        """
        if self.made:
            after = before
        rows = zip(change, after.tolist(), self._mismatch, strict=True)
        if all(abs(x - v * dt) <= most * dt for x, v, most in rows):
            return
        self._examine(np.array(change), before, after, dt, period)

    def _examine(
        self,
        change: np.ndarray,
        before: np.ndarray,
        after: np.ndarray,
        dt: float,
        period: float,
    ) -> None:
        """Raise a StateError unless another duration of the step explains it."""
        shortest = SHORTEST * min(dt, period or dt)
        longest = max(dt, period) + JITTER
        agrees = np.zeros(len(change), bool)
        for rate in (after, (before + after) / 2):
            with np.errstate(divide="ignore", invalid="ignore"):
                best = np.where(rate == 0, longest, change / rate)
            for span in (np.clip(best, shortest, longest), longest):
                agrees |= np.abs(change - rate * span) <= self.mismatch * span
        if agrees.all():
            return
        gap = np.abs(change / longest - after) / self.mismatch
        j = int(np.argmax(np.where(agrees, -1.0, gap)))
        moved = change[j] / max(dt, period, JITTER)
        raise StateError(
            f"joint '{self.joints[j]}' moved at {moved:.6g} by its positions in"
            f" {dt:.3g} s, and at {after[j]:.6g} by its velocity; believed: a"
            f" difference up to {self.mismatch[j]:.6g} (velocity_mismatch)",
            DISAGREE,
        )


class LongMotion:
    """Compares positions with the integral of velocities over a window of time.

    A source that repeats positions with a velocity, or velocities of another robot, are
    a small difference in each step. Once both differ by DRIFT velocity_mismatch, states
    are not believed until they agree for a whole window.

    Attributes:
        window: Its length [s].
        gap: Time between two states after which a new window begins [s].
        most: Difference that is allowed in a window, (n,) [rad | m].
        doubt: Joint, both distances and their time of the last disagreement, or None.
    """

    _said: list[float]
    _differs: list[float]

    def __init__(
        self,
        check: StateCheck,
        window: float,
        gap: float,
        change: Callable[[np.ndarray, np.ndarray], list[float]],
    ) -> None:
        self.check, self.window, self.gap, self._change = check, window, gap, change
        self.most: list[float] = (DRIFT * check.mismatch).tolist()
        self._zero = [0.0] * len(self.most)
        self.restart()

    def restart(self) -> None:
        """Begin anew, without doubt."""
        self.doubt: tuple[int, float, float, float] | None = None
        self._last: tuple[float, np.ndarray, np.ndarray] | None = None
        self._begin(0.0)

    def interrupt(self) -> None:
        """Begin a new window with the next state; a doubt stays."""
        self._last = None

    def add(self, stamp: float, q: np.ndarray, qd: np.ndarray) -> None:
        """Take a state into account that has passed the other checks.

        Raises:
            StateError: Positions and velocities disagree, or did in the last window.
        """
        last = self._last
        self._last = stamp, q, qd
        if last is None or not 0 <= stamp - last[0] <= self.gap:
            self._begin(stamp)
        else:
            self._compare(last, stamp, q, qd)
        if self.doubt is not None:
            raise self._error(*self.doubt)

    def _compare(
        self,
        last: tuple[float, np.ndarray, np.ndarray],
        stamp: float,
        q: np.ndarray,
        qd: np.ndarray,
    ) -> None:
        """Add a step to the window; begin or end a doubt."""
        half = 0.5 * (stamp - last[0])
        said = [half * v for v in (last[2] + qd).tolist()]
        moved = self._change(last[1], q)
        self._said = [x + y for x, y in zip(self._said, said, strict=True)]
        rows = zip(self._differs, moved, said, strict=True)
        self._differs = [x + y - z for x, y, z in rows]
        seconds = stamp - self._start
        pairs = zip(self._differs, self.most, strict=True)
        if not all(-most <= x <= most for x, most in pairs):
            j = int(np.argmax(np.abs(self._differs) / np.array(self.most)))
            self.doubt = j, self._said[j] + self._differs[j], self._said[j], seconds
            self._begin(stamp)
        elif seconds >= self.window:
            self.doubt = None
            self._begin(stamp)

    def _begin(self, stamp: float) -> None:
        self._start = stamp
        self._said, self._differs = self._zero, self._zero

    def _error(self, j: int, moved: float, said: float, seconds: float) -> StateError:
        return StateError(
            f"joint '{self.check.joints[j]}' moved by {moved:.6g} in {seconds:.3g} s by"
            f" its positions, and by {said:.6g} by its velocities; believed: a"
            f" difference up to {self.most[j]:.6g} in {self.window:g} s"
            f" (velocity_mismatch by {DRIFT:g} s)",
            DISAGREE,
        )


def _sentences(
    joints: tuple[str, ...], which: np.ndarray, said: str
) -> tuple[str, ...]:
    """Return a sentence for each joint that a condition names."""
    pairs = zip(joints, which, strict=True)
    return tuple(f"joint '{name}' {said}" for name, named in pairs if named)
