"""Trajectories with a lead-in before their beginning and an end motion after it.

n is the number of joints.
"""

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
    """A trajectory `rest` with a lead-in `way` and an end motion `end`, without a copy.

    The lead-in applies up to its last time, the end motion from its first time on.
    """

    rest: Trajectory
    way: Trajectory | None = None
    end: Trajectory | None = None

    @property
    def effort(self) -> np.ndarray | None:
        """Feed-forward efforts at the k points of `rest`, (k, n) [N·m | N], or None."""
        return self.rest.effort

    @property
    def method(self) -> str:
        """Interpolation method, the text "splines" or "none"."""
        return self.rest.method

    @property
    def duration(self) -> float:
        """Time from which the reference is constant [s]."""
        return self.rest.duration if self.end is None else self.end.duration

    def sample(self, t: float) -> Reference:
        """Return the reference at time t [s], from `end`, else `way`, else `rest`."""
        if self.end is not None and t >= self.end.times[0]:
            return self.end.sample(t)
        if self.way is not None and t < self.way.duration:
            return self.way.sample(t)
        return self.rest.sample(t)

    def sample_effort(self, t: float) -> np.ndarray:
        """Return the feed-forward effort of `rest` at t, (n,); zeros without one."""
        return self.rest.sample_effort(t)

    def window(self, start: float, end: float) -> tuple[np.ndarray, np.ndarray]:
        """Return start times (k,) and coefficients (k, 6, n) between two times.

        The first start time is `start`, which must be before `end`. Coefficients are in
        ascending powers of the time since each start time.
        """
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
        """Raise a TrajectoryError if there is a lead-in that exceeds the limits."""
        if self.way is not None:
            c = self.way.pieces[:, : self.way.order]
            where = "before point 0"
            limits.check_pieces(np.diff(self.way.times), c, lambda k: where)


def starting_from(
    trajectory: Trajectory, now: Reference, t: float = 0.0
) -> Trajectory | LedTrajectory:
    """Return a trajectory with a lead-in, one more piece, from `now` at its time t [s].

    The piece is interpolated as the trajectory is: velocities and accelerations of
    `now` count only if the trajectory has some. Limits are not checked. A trajectory
    that begins at t or before is returned unchanged.
    """
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
    """Return a trajectory that begins and ends without a velocity jump.

    It is followed from time t [s] on at velocity qd, whose component along the path is
    preserved. A trajectory of positions alone gets a ramp at both ends. With
    velocities, a last velocity that is not zero is braked after the end. A path of
    method none, or one that has ended, is returned unchanged.
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
    """Return a ramp followed by the remainder of the lead-in on which it ends."""
    if begin.duration >= way.duration:
        return begin
    starts, c = way.window(begin.duration, way.duration)
    times = np.concatenate([begin.times[:-1], starts, way.times[-1:]])
    return trajectory_of_pieces(times, np.concatenate([begin.pieces, c]))
