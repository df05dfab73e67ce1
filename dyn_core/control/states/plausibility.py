"""Plausibility of joint states: limits, and agreement of positions and velocities.

Implausible states are refused, because a torque computed from them would be wrong. Each
state is compared with the one before it in one call of compiled code; a state that
fails there is examined again for an error message.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dyn_core.control.joint_values import joint_values
from dyn_core.engines.machine_code import FloatArray, IntArray, compiled, machine_code
from dyn_core.errors import SettingError, StateError
from dyn_core.model import Model
from dyn_core.validation import Quantity, check_object, known_keywords

JITTER = 2e-3  # possible excess of the true time between two states [s]
SHORTEST = 0.5  # smallest true time between states, fraction of measured or mean
DRIFT = 0.05  # time for which velocities may differ by velocity_mismatch [s]
# By kind of joint: (slack, minimum mismatch, mismatch without a velocity limit).
TURNING, SLIDING = (0.2, 2.0, 10.0), (0.05, 0.5, 2.0)
BEYOND = "position beyond limits"
TOO_FAST = "velocity too large"
DISAGREE = "position and velocity disagree"
MOST_TURNS = 1.5  # raw change of a wrapped joint above which it jumped [turns]
TURN = 2 * math.pi
# Bits of the result of compare_states.
NOT_FINITE, OUTSIDE, FAR, APART = 1, 2, 4, 8


class StateRows(NamedTuple):
    """A state, the one before it, and sums over a window of states, (n,) each.

    Attributes:
        q_before, qd_before: Last valid state.
        wrapped: Whether position differences are wrapped to [-pi, pi), 0 or 1.
        change: Displacement from the previous position, wrapped.
        rate: Velocity on which positions and velocities agree: the smaller of `qd` and
            the difference quotient of the positions, zero where their signs differ.
        q_window, qd_window: Last state of the window.
        by_velocity: Displacement in the window, integrated from velocities.
        gap: Displacement in the window from positions, minus `by_velocity`.
    """

    q: FloatArray
    qd: FloatArray
    q_before: FloatArray
    qd_before: FloatArray
    low: FloatArray
    high: FloatArray
    fastest: FloatArray
    mismatch: FloatArray
    wrapped: IntArray
    change: FloatArray
    rate: FloatArray
    q_window: FloatArray
    qd_window: FloatArray
    by_velocity: FloatArray
    gap: FloatArray
    largest_gap: FloatArray


def allocate_state_rows(wrapped: np.ndarray, check: StateCheck | None) -> StateRows:
    """Return StateRows of zeros with the bounds of a check; infinite ones for None.

    `largest_gap` is `mismatch` times 0.05 s; `wrapped` is bool, (n,).
    """
    real = iter(np.zeros((len(StateRows._fields), len(wrapped))))
    rows = StateRows(*real)._replace(wrapped=np.array(wrapped, np.int64))
    rows.low[:], rows.high[:], rows.fastest[:], rows.mismatch[:] = (
        (-np.inf, np.inf, np.inf, np.inf)
        if check is None
        else (check.low, check.high, check.fastest, check.mismatch)
    )
    rows.largest_gap[:] = DRIFT * rows.mismatch
    return rows


@machine_code
def displacement(before: float, after: float, wrapped: int) -> float:
    """Return after - before, wrapped to [-pi, pi) if `wrapped` is not 0."""
    change = after - before
    if wrapped != 0:
        change -= math.floor((change + math.pi) / TURN) * TURN
    return change


@machine_code
def compare_states(
    rows: StateRows, known: int, made: int, dt: float, duration: float, jump: float
) -> int:
    """Compare a state with bounds and with the previous state, if one is `known`.

    Returns the sum of NOT_FINITE (1), OUTSIDE (2, beyond the bounds), FAR (4,
    displacement beyond `jump` [rad | m], or a raw change of a wrapped joint by more
    than 1.5 turns) and APART (8, positions and velocity differ by more than
    `mismatch`), each if it applies to any joint. If `made`, velocities are computed
    from positions: the displacement is compared with the previous velocity.

    Without a previous state there is no FAR and APART; with one it writes rows.change,
    the displacement, and rows.rate: of change / duration and the velocity the smaller
    one, 0 if their signs differ. `duration` is dt [s], but at least the mean period.
    """
    not_finite, outside, far, apart = 0, 0, 0, 0
    for k in range(len(rows.q)):
        x, v = rows.q[k], rows.qd[k]
        if not (math.isfinite(x) and math.isfinite(v)):
            not_finite = NOT_FINITE
        if not (rows.low[k] <= x <= rows.high[k]):
            outside = OUTSIDE
        if not (-rows.fastest[k] <= v <= rows.fastest[k]):
            outside = OUTSIDE
        if known == 0:
            continue
        before, w = rows.q_before[k], rows.wrapped[k]
        change = displacement(before, x, w)
        if abs(change) > jump:
            far = FAR
        if w != 0 and abs(x - before) > MOST_TURNS * TURN:
            far = FAR
        end = rows.qd_before[k] if made != 0 else v
        if not (abs(change - end * dt) <= rows.mismatch[k] * dt):
            apart = APART
        by_positions = change / duration
        rate = by_positions if abs(by_positions) < abs(v) else v
        rows.change[k] = change
        rows.rate[k] = rate if change * v > 0.0 else 0.0
    return not_finite + outside + far + apart


@machine_code
def add_to_window(rows: StateRows, first: int, half: float) -> int:
    """Add a state to the window; return 1 if a gap exceeds largest_gap or is NaN.

    Writes by_velocity, gap, q_window and qd_window of `rows`. Sums restart at 0 for the
    `first` state; `half` is half the time since the last one [s].
    """
    beyond = 0
    for k in range(len(rows.q)):
        x, v = rows.q[k], rows.qd[k]
        if first != 0:
            rows.by_velocity[k], rows.gap[k] = 0.0, 0.0
        else:
            change = displacement(rows.q_window[k], x, rows.wrapped[k])
            # Trapezoidal rule.
            said = half * (rows.qd_window[k] + v)
            rows.by_velocity[k] += said
            rows.gap[k] += change - said
        if not (abs(rows.gap[k]) <= rows.largest_gap[k]):
            beyond = 1
        rows.q_window[k], rows.qd_window[k] = x, v
    return beyond


@known_keywords
@dataclass(frozen=True)
class StateBounds:
    """Bounds of plausible joint states.

    A bound of the joints is one number, one number a joint, or a mapping from joint
    name to number.

    Attributes:
        position_slack: Distance by which positions may exceed a limit of the model
            [rad | m]; None: 0.2 rad, 0.05 m.
        velocity_factor: Largest velocity, as a multiple of the model's velocity limit,
            1 or more; joints without a limit are not checked.
        velocity_mismatch: Largest difference between a velocity and the difference
            quotient of the positions [rad/s | m/s]; None: twice the velocity limit, at
            least 2 rad/s, 0.5 m/s; without a limit 10 rad/s, 2 m/s.

    Raises:
        SettingError: velocity_factor is no number of 1 or more. StateCheck checks the
            other bounds.
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
        made: Whether velocities are computed from positions.
        low, high, fastest: Bounds of positions [rad | m] and speeds, (n,), infinite
            where none is checked.
        mismatch: Largest difference between velocities and positions' rates, (n,).
        untested: Sentences on joints whose positions or velocities cannot be checked.
    """

    def __init__(self, model: Model, bounds: StateBounds, made: bool = False) -> None:
        """Compute the bounds of all joints.

        Args:
            model: Robot with joints of one coordinate.
            bounds: Bounds as set by the user; None in them stands for the default that
                StateBounds describes.
            made: Whether velocities are computed from positions; then velocity limits
                are not tested (`fastest` is infinite), and a displacement is compared
                with the previous velocity, not with the present one.

        Raises:
            SettingError: A bound names an unknown joint, has a wrong number of values,
                or is not finite and above 0; or `bounds` are no StateBounds.
        """
        check_object("state_bounds", bounds, StateBounds)
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

    def beyond(self, q: np.ndarray, qd: np.ndarray) -> StateError:
        """Return the StateError for a state outside the bounds.

        It names one joint: the one farthest outside its positions' bounds, or, if all
        positions are inside, the one with the largest ratio of speed to bound.
        """
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
        change: np.ndarray,
        before: np.ndarray,
        after: np.ndarray,
        dt: float,
        period: float,
    ) -> None:
        """Raise a StateError unless positions and velocities belong to one motion.

        The mean velocity of the positions must equal the velocity at the end of the
        step, or the mean velocity of both ends, within velocity_mismatch. The true
        duration of the step is unknown: any duration from half the shorter of dt and
        the mean `period` (0: unknown) to the longer of them plus 2 ms is accepted.
        Where velocities are made of positions, the displacement `change` is compared
        with the velocity before alone. The error names the joint that is furthest off.
        """
        if self.made:
            after = before
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
    """Compares positions with the integral of the velocities over a time window.

    A source that repeats positions with a velocity, or velocities of another robot,
    cause only a small difference in each step. Once the difference exceeds
    velocity_mismatch times 0.05 s, states are refused until both agree for a whole
    `window` [s]; a new one begins where states are more than `gap` [s] apart. `doubt`
    is the last disagreement: joint index, displacement by positions, by velocities,
    duration [s].
    """

    def __init__(
        self, joints: tuple[str, ...], rows: StateRows, window: float, gap: float
    ) -> None:
        self.joints, self.rows, self.window, self.gap = joints, rows, window, gap
        self._add = compiled(add_to_window).bind(rows)
        self.restart()

    def restart(self) -> None:
        """Begin a new window at the next state; `doubt` becomes None."""
        self.doubt: tuple[int, float, float, float] | None = None
        self._last: float | None = None
        self._begin(0.0)

    def interrupt(self) -> None:
        """Begin a new window with the next state; a disagreement remains."""
        self._last = None

    def add(self, stamp: float) -> None:
        """Add the state in `rows`, which has passed the other checks, at `stamp` [s].

        A stamp before the last one, or more than `gap` after it, begins a new window.
        On a disagreement `doubt` is set and a new window begins; a whole window without
        one clears `doubt`; until then each state is a StateError.
        """
        last = self._last
        self._last = stamp
        if last is None or not 0 <= stamp - last <= self.gap:
            self._add(1, 0.0)
            self._start = stamp
        elif self._add(0, 0.5 * (stamp - last)):
            rows, seconds = self.rows, stamp - self._start
            j = int(np.argmax(np.abs(rows.gap) / rows.largest_gap))
            said = float(rows.by_velocity[j])
            self.doubt = j, said + float(rows.gap[j]), said, seconds
            self._begin(stamp)
        elif stamp - self._start >= self.window:
            self.doubt = None
            self._begin(stamp)
        if self.doubt is not None:
            raise self._error(*self.doubt)

    def _begin(self, stamp: float) -> None:
        """Begin a new window at time `stamp` [s]."""
        self._start = stamp
        self.rows.by_velocity[:] = self.rows.gap[:] = 0.0

    def _error(self, j: int, moved: float, said: float, seconds: float) -> StateError:
        """Return the error for displacements by positions and velocities (`said`)."""
        return StateError(
            f"joint '{self.joints[j]}' moved by {moved:.6g} in {seconds:.3g} s by its"
            f" positions, and by {said:.6g} by its velocities; believed: a difference"
            f" up to {self.rows.largest_gap[j]:.6g} in {self.window:g} s"
            f" (velocity_mismatch by {DRIFT:g} s)",
            DISAGREE,
        )


def _sentences(
    joints: tuple[str, ...], which: np.ndarray, said: str
) -> tuple[str, ...]:
    """Return "joint NAME ..." with the text `said` for each joint marked by `which`."""
    pairs = zip(joints, which, strict=True)
    return tuple(f"joint '{name}' {said}" for name, named in pairs if named)
