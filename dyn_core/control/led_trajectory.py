"""A trajectory with a way to its first point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dyn_core.control.joint_limits import JointLimits
from dyn_core.control.trajectory import Reference, Trajectory


@dataclass(frozen=True, eq=False)
class LedTrajectory:
    """A trajectory with a way to its first point; it is not copied: it may be long.

    Attributes:
        way: From a reference to the first point, two points.
        rest: The trajectory.
    """

    way: Trajectory
    rest: Trajectory

    @property
    def times(self) -> np.ndarray:
        """Times of the way [s]."""
        return self.way.times

    @property
    def q(self) -> np.ndarray:
        """Positions of the points behind the way, (k, n)."""
        return self.rest.q

    @property
    def effort(self) -> np.ndarray | None:
        """Efforts to be added at the points behind the way, (k, n); None for none."""
        return self.rest.effort

    @property
    def method(self) -> str:
        """Method of interpolation."""
        return self.rest.method

    @property
    def duration(self) -> float:
        """Time of the last point [s]."""
        return self.rest.duration

    def sample(self, t: float) -> Reference:
        """Return the reference at a time since the start [s]."""
        return (self.way if t < self.way.duration else self.rest).sample(t)

    def sample_effort(self, t: float) -> np.ndarray:
        """Return the effort to be added at a time since the start, (n,) [N·m | N]."""
        return self.rest.sample_effort(t)

    def window(self, start: float, end: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the polynomials from one time to another: starts, coefficients."""
        first = self.way.duration
        if end <= first:
            return self.way.window(start, end)
        if start >= first:
            return self.rest.window(start, end)
        (s1, c1), (s2, c2) = self.way.window(start, first), self.rest.window(first, end)
        return np.concatenate([s1, s2]), np.concatenate([c1, c2])

    def check_way(self, limits: JointLimits) -> None:
        """Raise a TrajectoryError where the way leaves the limits."""
        c = self.way.pieces[:, : self.way.order]
        limits.check_pieces(np.diff(self.times), c, lambda k: "before point 0")


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
    return LedTrajectory(Trajectory(times, q, qd, qdd, trajectory.method), trajectory)
