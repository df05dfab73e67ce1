"""Ramps of a reference: at the ends of linear interpolation, and braking to rest.

A trajectory of positions alone has a speed from its first moment to its last. Near both
ends its path is traversed at another rate (path time per time): at the beginning from
the reference's rate up to slightly more than 1, so that the lost time is made up for,
and at the end down to 0. The path itself does not change. k is the number of straight
pieces, n that of joints.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from dyn_core.control.joint_limits import SPEED_MARGIN, JointLimits
from dyn_core.control.reference.trajectory import (
    Reference,
    Trajectory,
    trajectory_of_pieces,
)

FASTER = 0.1  # preferred excess of the rate over 1
MOST_FASTER = 1 / 3  # largest excess, where the ramp has little time
LEAST_FASTER = 2e-3  # excess where the path itself is at its velocity limit
MOMENT = 1e-9  # initial duration of a ramp, within its first piece [s]
SAME = 1e-6  # difference of rates below which no ramp is made
STILL = 1e-9  # speed below which no braking is needed [rad/s | m/s]
ROUNDS = 50  # maximum number of iterations for the duration of a ramp


class Path(Protocol):
    """Interface that Trajectory and LedTrajectory share."""

    def sample(self, t: float) -> Reference:
        """Return the reference at time t since the start [s]."""

    def window(self, start: float, end: float) -> tuple[np.ndarray, np.ndarray]:
        """Return start times (k,) and coefficients (k, 6, n) between two times.

        The first start time is `start`, all are before `end`.
        Coefficients are in ascending powers of the time since each start [s].
        """


def ramp(
    path: Path,
    since: float,
    until: float,
    limits: JointLimits,
    acceleration: float,
    rate: float = 0.0,
    end: bool = False,
) -> Trajectory | None:
    """Return a ramp at one end of a path of straight pieces, or None.

    Times of the result are times of the path. The path is traversed at a varying rate
    (path time per time). A ramp at the beginning starts with the given rate, and joins
    the path at the path's own time and rate 1; one at the end does the reverse. None if
    no ramp is needed: the rate is 1, the path rests, or there is no time.

    Args:
        path: Trajectory with linear interpolation.
        since, until: Times of the path between which the ramp lies [s].
        limits: Joint limits; the velocity limits are respected within their margin.
        acceleration: Acceleration of the fastest joint, exceeded only where the time is
            too short [rad/s² | m/s²].
        rate: Rate at `since`, or at `until` if `end`; from 0 to 1.
        end: Whether the ramp is at the end of the path.
    """
    change, most = 1.0 - rate, until - since
    if change < SAME or most <= MOMENT:
        return None
    width = MOMENT
    for _ in range(ROUNDS):  # the ramp grows until it is long enough for its pieces
        span = (until - width, until) if end else (since, since + width)
        starts, c = path.window(*span)
        speed, faster = _speeds(c, limits)
        if speed == 0:
            return None
        faster = min(faster, change / math.sqrt(2))
        needed = speed / acceleration * _length(min(FASTER, faster), change)
        if needed <= width or width >= most:
            break
        width = min(needed, most)
    excess = _excess(width * acceleration / speed, change, faster)
    unit = width / _length(excess, change)
    times = np.array([0.0, (excess + change) * unit, width - excess * unit, width])
    rates = np.array([rate, 1 + excess, 1 + excess, 1.0])
    if end:
        times, rates = (width - times)[::-1], rates[::-1]
    times += span[0]
    times[[0, -1]] = span  # without rounding
    made = _run_through(starts, c, times, rates)
    made.q[-1] = path.sample(until if end else times[-1]).q  # without rounding
    return made


def _speeds(c: np.ndarray, limits: JointLimits) -> tuple[float, float]:
    """Return the largest speed of a joint in straight pieces, and the rate's excess.

    Velocity limits permit an excess over 1 of 2e-3 to 1/3, 1/3 at rest; c is (k, 6, n).
    """
    speeds = np.abs(c[:, 1])
    with np.errstate(divide="ignore", invalid="ignore"):
        room = limits.velocity * (1 + SPEED_MARGIN) / speeds - 1
    faster = float(np.nanmin(room, initial=MOST_FASTER))
    return float(speeds.max(initial=0.0)), max(faster, LEAST_FASTER)


def _length(excess: float, change: float) -> float:
    """Return the duration of a ramp, in units of speed / acceleration.

    The rate rises by change + excess, is constant until the lost time is made up for,
    and falls by the excess. `change` is 1 minus the rate at the end of rest.
    """
    return excess + change + change**2 / (2 * excess)


def _excess(length: float, change: float, most: float) -> float:
    """Return the excess of a ramp over rate 1: the inverse of _length, up to `most`."""
    free = length - change
    if free <= math.sqrt(2) * change:
        return most
    return min(change**2 / (free + math.sqrt(free**2 - 2 * change**2)), most)


def _run_through(
    starts: np.ndarray, c: np.ndarray, times: np.ndarray, rates: np.ndarray
) -> Trajectory:
    """Return straight pieces traversed at a rate that is piecewise linear in time.

    The result begins and ends with `times`, the breakpoints of `rates`, from starts[0]
    on. The mean rate over all of them is 1. `c` is (k, 6, n).
    """
    spans = np.diff(times)
    slopes = np.diff(rates) / np.where(spans > 0, spans, 1.0)
    places = times[0] + np.cumsum([0.0, *(spans * (rates[1:] + rates[:-1]) / 2)])
    k = np.searchsorted(places[1:-1], starts[1:], side="right")
    way = (starts[1:] - places[k]).clip(0)
    # This form of the quadratic formula is stable for small slopes.
    root = np.sqrt((rates[k] ** 2 + 2 * slopes[k] * way).clip(0))
    with np.errstate(divide="ignore", invalid="ignore"):
        inner = times[k] + np.nan_to_num(2 * way / (rates[k] + root))
    knots = np.unique(np.clip(np.concatenate([times, inner]), times[0], times[-1]))
    middles = (knots[1:] + knots[:-1]) / 2
    i = np.searchsorted(times[1:-1], middles, side="right")

    def place(t: np.ndarray) -> np.ndarray:
        s = t - times[i]
        return places[i] + (rates[i] + slopes[i] * s / 2) * s

    piece = np.searchsorted(starts, place(middles), side="right") - 1
    rate = (rates[i] + slopes[i] * (knots[:-1] - times[i]))[:, None]
    since = (place(knots[:-1]) - starts[piece])[:, None]
    pieces = np.zeros((len(middles), 6, c.shape[2]))
    pieces[:, 0] = c[piece, 0] + since * c[piece, 1]
    pieces[:, 1] = rate * c[piece, 1]
    pieces[:, 2] = slopes[i][:, None] / 2 * c[piece, 1]
    return trajectory_of_pieces(knots, pieces)


def braking(
    q: np.ndarray,
    qd: np.ndarray,
    limits: JointLimits,
    deceleration: float,
    room: float,
    start: float = 0.0,
) -> Trajectory | None:
    """Return a motion to rest in which all joints stop together; None if at rest.

    A joint that would exceed its position limit brakes faster and stops earlier.
    `deceleration` is that of the fastest joint, above 0 [rad/s² | m/s²]. A joint with
    less room to its limit brakes within `room` [rad | m], and may pass the limit.
    """
    speed = np.abs(qd)
    if speed.max(initial=0.0) <= STILL:
        return None
    left = np.where(qd > 0, limits.upper - q, q - limits.lower).clip(room)
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.fmin(speed.max() / deceleration, 2 * left / speed)
    knots = np.unique(np.concatenate([[0.0], ends]))
    s = np.minimum(knots[:-1, None], ends)
    moving = knots[:-1, None] < ends
    pieces = np.zeros((len(s), 6, len(q)))
    pieces[:, 0] = q + (qd - qd * s / (2 * ends)) * s
    pieces[:, 1] = np.where(moving, qd * (1 - s / ends), 0.0)
    pieces[:, 2] = np.where(moving, -qd / (2 * ends), 0.0)
    return trajectory_of_pieces(start + knots, pieces)
