"""A trajectory with a beginning and an end of its own."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dyn_core.control.joint_limits import JointLimits
from dyn_core.control.reference.ramps import braking, ramp
from dyn_core.control.reference.trajectory import (
    Reference,
    Trajectory,
    trajectory_of_pieces,
)
from dyn_core.control.rules import Rules


@dataclass(frozen=True, eq=False)
class LedTrajectory:
    """A trajectory between a beginning and an end; it is not copied: it may be long.

    Attributes:
        rest: The trajectory.
        way: What comes before it, up to its last time; None for nothing.
        end: What comes after it, from its first time on; None for nothing.
    """

    rest: Trajectory
    way: Trajectory | None = None
    end: Trajectory | None = None

    @property
    def effort(self) -> np.ndarray | None:
        """Efforts to be added at the trajectory's points, (k, n); None for none."""
        return self.rest.effort

    @property
    def method(self) -> str:
        """Method of interpolation."""
        return self.rest.method

    @property
    def duration(self) -> float:
        """Time from which nothing changes any more [s]."""
        return self.rest.duration if self.end is None else self.end.duration

    def sample(self, t: float) -> Reference:
        """Return the reference at a time since the start [s]."""
        if self.end is not None and t >= self.end.times[0]:
            return self.end.sample(t)
        if self.way is not None and t < self.way.duration:
            return self.way.sample(t)
        return self.rest.sample(t)

    def sample_effort(self, t: float) -> np.ndarray:
        """Return the effort to be added at a time since the start, (n,) [N·m | N]."""
        return self.rest.sample_effort(t)

    def window(self, start: float, end: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the polynomials from one time to another: starts, coefficients."""
        last = math.inf if self.end is None else float(self.end.times[0])
        first = -math.inf if self.way is None else min(self.way.duration, last)
        rows = []
        for part, low, high in (
            (self.way, start, min(first, end)),
            (self.rest, max(start, first), min(last, end)),
            (self.end, max(start, last), end),
        ):
            if part is not None and low < high:
                rows.append(part.window(low, high))
        starts, c = zip(*rows, strict=True)
        return np.concatenate(starts), np.concatenate(c)

    def check_way(self, limits: JointLimits) -> None:
        """Raise a TrajectoryError where the way leaves the limits."""
        if self.way is not None:
            c = self.way.pieces[:, : self.way.order]
            where = "before point 0"
            limits.check_pieces(np.diff(self.way.times), c, lambda k: where)


def starting_from(
    trajectory: Trajectory, now: Reference, t: float = 0.0
) -> Trajectory | LedTrajectory:
    """Return a trajectory with a way to it from a reference at a time before."""
    if trajectory.times[0] <= t:
        return trajectory
    q, qd, qdd = (
        None if x is None else np.vstack([y, x[:1]])
        for x, y in zip((trajectory.q, trajectory.qd, trajectory.qdd), now, strict=True)
    )
    assert q is not None
    times = np.array([t, trajectory.times[0]])
    way = Trajectory(times, q, qd, qdd, trajectory.method)
    return LedTrajectory(trajectory, way)


def with_ramps(
    path: Trajectory | LedTrajectory,
    t: float,
    qd: np.ndarray,
    limits: JointLimits,
    rules: Rules,
) -> Trajectory | LedTrajectory:
    """Return a trajectory that begins and ends without a jump of velocity.

    Positions alone get a ramp at either end; a last velocity, if it is allowed, is
    braked after the end.

    Args:
        path: As it is given, with the way to it.
        t: Time at which it takes over [s].
        qd: Velocity of the reference then; the part along the path remains.
        limits: Of the joints.
        rules: deceleration, limit_tolerance.
    """
    rest, way = (
        (path.rest, path.way) if isinstance(path, LedTrajectory) else (path, None)
    )
    T = rest.duration
    if rest.method == "none" or T <= t:
        return path
    if rest.qd is not None:
        room = rules.limit_tolerance
        last = braking(rest.q[-1], rest.qd[-1], limits, rules.deceleration, room, T)
        return path if last is None else LedTrajectory(rest, way, last)
    first = path.sample(t).qd
    rate = min(max(float(qd @ first) / (float(first @ first) or 1.0), 0.0), 1.0)
    half, settings = (t + T) / 2, (limits, rules.deceleration)
    begin = ramp(path, t, half, *settings, rate=rate)
    end = ramp(path, half, T, *settings, end=True)
    if begin is not None:
        way = begin if way is None else _joined(begin, way)
    return LedTrajectory(rest, way, end)


def _joined(begin: Trajectory, way: Trajectory) -> Trajectory:
    """Return a ramp, and then what is left of the way."""
    if begin.duration >= way.duration:
        return begin
    starts, c = way.window(begin.duration, way.duration)
    times = np.concatenate([begin.times[:-1], starts, way.times[-1:]])
    return trajectory_of_pieces(times, np.concatenate([begin.pieces, c]))
