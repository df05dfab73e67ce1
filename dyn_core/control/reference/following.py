"""The reference of a controller: trajectories that replace each other smoothly."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dyn_core.control.joint_limits import JointLimits
from dyn_core.control.reference.led_trajectory import (
    LedTrajectory,
    starting_from,
    with_ramps,
)
from dyn_core.control.reference.ramps import braking
from dyn_core.control.reference.trajectory import (
    LONGEST,
    Reference,
    Trajectory,
    make_trajectory,
    power_rows,
)
from dyn_core.control.rules import Rules
from dyn_core.errors import TrajectoryError


@dataclass(frozen=True, eq=False)
class TimedTrajectory:
    """A trajectory in time, with an offset that fades after it has taken over.

    Attributes:
        trajectory: With the reference at `begins` as a point, where it leads there.
        start: Time of its time zero [s].
        begins: Time at which it takes over [s].
        blend: Duration of the offset [s].
        offset: Coefficients of the offset by rising power of the time since `begins`,
            (6, n); None where there is none.
        asked: The trajectory as it was given; None for a way to rest.
    """

    trajectory: Trajectory | LedTrajectory
    start: float
    begins: float
    blend: float
    offset: np.ndarray | None = None
    asked: Trajectory | None = None

    @property
    def ends(self) -> float:
        """Time from which nothing changes any more [s]."""
        return max(self.start + self.trajectory.duration, self.begins + self.blend)

    def sample(self, t: float) -> Reference:
        """Return the reference at a time [s]."""
        reference = self.trajectory.sample(t - self.start)
        s = t - self.begins
        if self.offset is None or s >= self.blend:
            return reference
        parts = power_rows(s) @ self.offset
        return Reference(*(x + y for x, y in zip(reference, parts, strict=True)))

    def sample_effort(self, t: float, before: np.ndarray) -> np.ndarray:
        """Return the effort to be added; it fades in from that of before."""
        if self.trajectory.effort is None and not before.any():
            return before
        share = min(max((t - self.begins) / self.blend, 0.0), 1.0)
        added = self.trajectory.sample_effort(t - self.start)
        return (1 - share) * before + share * added

    def check(self, limits: JointLimits) -> None:
        """Raise a TrajectoryError where the offset leads out of the limits."""
        if self.offset is None:
            return
        since = self.begins - self.start
        starts, c = self.trajectory.window(since, since + self.blend)
        for i in range(6):
            for j in range(i, 6):
                s = (starts - since)[:, None] ** (j - i)
                c[:, i] += math.comb(j, i) * s * self.offset[j]
        lengths = np.diff(np.append(starts, since + self.blend))
        limits.check_pieces(lengths, c, lambda k: "on the way to the trajectory")


def fading(e: np.ndarray, ed: np.ndarray, T: float) -> np.ndarray:
    """Return the quintic from an offset and its rate to rest at zero, (6, n)."""
    return np.array(
        [
            e,
            ed,
            0 * e,
            (-10 * e - 6 * ed * T) / T**3,
            (15 * e + 8 * ed * T) / T**4,
            (-6 * e - 3 * ed * T) / T**5,
        ]
    )


@dataclass(eq=False)
class TrajectoryFollower:
    """The reference and the trajectories that lead it.

    Attributes:
        limits: Of the joints.
        rules: start_tolerance, limit_tolerance, blend_time, deceleration.
        turning: Which joints may be led by whole turns from what is asked, (n,).
        reference: None before the first state.
        running, pending: What leads the reference, and what takes over later.
        effort: Effort to be added, (n,), and that from which it fades.
        listeners: Hear what became of each trajectory that was given.
    """

    limits: JointLimits
    rules: Rules
    turning: np.ndarray
    reference: Reference | None = None
    running: TimedTrajectory | None = None
    pending: TimedTrajectory | None = None
    listeners: Sequence[Callable[[Trajectory, str], None]] = ()

    def __post_init__(self) -> None:
        self.rest(None)

    def rest(self, q: np.ndarray | None, why: str = "dropped") -> None:
        """Rest at a position, or have no reference; trajectories are dropped."""
        self._lead(None, None, why)
        self.reference = None
        self.effort = self.effort_before = np.zeros(len(self.turning))
        if q is not None:
            self.reference = Reference(q.copy(), 0 * q, 0 * q)

    def take(self, q: np.ndarray, qd: np.ndarray, why: str = "dropped") -> None:
        """Take a measured state as the reference; trajectories are dropped.

        Args:
            q: Position.
            qd: Velocity that positions and velocities agree on, see Samples.rate.
            why: What the listeners hear.
        """
        self.rest(q, why)
        self.reference = Reference(q.copy(), qd.copy(), 0 * qd)

    def forget_next(self, why: str) -> None:
        """Drop the trajectory that would take over; what runs runs on."""
        self._lead(self.running, None, why)

    def make(
        self, q: np.ndarray | None, names: Sequence[str], *rows: Any, **settings: Any
    ) -> Trajectory:
        """Return a trajectory checked against the limits, for a robot at a position.

        Args:
            q: Position of the robot; from outside a limit it can be led back, as can
                the reference.
            names: Joints of the columns.
            rows, settings: As for make_trajectory.
        """
        place = None if self.reference is None else self.reference.q
        limits = self.limits.widened(self.rules.limit_tolerance, q, place)
        made = make_trajectory(
            self.limits.joints,
            names,
            *rows,
            lower=limits.lower,
            upper=limits.upper,
            velocity=limits.velocity,
            **settings,
        )
        checked = replace(made, limits=self.limits)
        checked.__dict__["pieces"] = made.pieces
        return checked

    def follow(
        self, trajectory: Trajectory, start: float, now: float, q: np.ndarray | None
    ) -> None:
        """Follow a trajectory from its start on; until then what runs runs on.

        Args:
            trajectory: Checked here where it was not against these limits.
            start: Time of its time zero [s].
            now: Present time [s].
            q: Position of the robot.

        Raises:
            TrajectoryError: It starts far from the robot, waits for more than a day, or
                leaves the limits.
        """
        assert self.reference is not None
        if start - now > LONGEST:
            raise TrajectoryError(
                f"the trajectory starts {start - now:.3f} s from now; valid: at most"
                f" {LONGEST:.6g} s, a day"
            )
        begins = max(start, now)
        before = self._expected(begins)
        since = begins - start
        q = before.q if q is None else q
        turns = np.round((before.q - trajectory.sample(since).q) / (2 * math.pi))
        shift = np.where(self.turning, 2 * math.pi * turns, 0.0)
        moved = trajectory.moved(shift)
        path = starting_from(moved, before, since)
        limits = self.limits.widened(self.rules.limit_tolerance, q, before.q)
        if trajectory.limits is not self.limits:
            limits.check_points(trajectory.q + shift)
        gap = before.q - path.sample(since).q
        smooth = path.method != "none"
        if smooth:
            self._check_start(before.q - gap, before.q, q)
        if isinstance(path, LedTrajectory):
            path.check_way(limits)
        if trajectory.limits is not self.limits:
            moved.check(limits)
        path = with_ramps(path, since, before.qd, self.limits, self.rules)
        blend = self.rules.blend_time
        motion = TimedTrajectory(path, start, begins, blend, asked=trajectory)
        rate = before.qd - path.sample(since).qd
        if smooth and (gap.any() or rate.any()):
            motion = replace(motion, offset=fading(gap, rate, blend))
            motion.check(limits)
        if begins <= now:
            self._lead(motion, None, "replaced")
            self.effort_before = self.effort
        else:
            self._lead(self.running, motion, "replaced")

    def _lead(
        self,
        running: TimedTrajectory | None,
        pending: TimedTrajectory | None,
        outcome: str,
    ) -> None:
        """Set what leads the reference; say what became of the others."""
        before, kept = (self.running, self.pending), (running, pending)
        self.running, self.pending = running, pending
        for motion in before:
            if motion is not None and motion.asked is not None and motion not in kept:
                for listener in self.listeners:
                    listener(motion.asked, outcome)

    def stop(self, now: float, why: str = "stopped") -> None:
        """Brake the reference at the rules' deceleration, within the limits."""
        if self.reference is None:
            return
        q, qd, _ = self._expected(now)
        rules = self.rules
        path = braking(q, qd, self.limits, rules.deceleration, rules.limit_tolerance)
        if path is None:
            path = Trajectory(np.zeros(1), q[None], None, None)
        self.effort_before = self.effort
        self._lead(TimedTrajectory(path, now, now, rules.blend_time), None, why)

    def advance(self, t: float) -> None:
        """Advance the reference to a time [s]."""
        if self.pending is not None and t >= self.pending.begins:
            self._lead(self.pending, None, "replaced")
            self.effort_before = self.effort
        if self.running is not None:
            self.effort = self.running.sample_effort(t, self.effort_before)
            self.reference = self.running.sample(t)
            if t >= self.running.ends:
                self._lead(None, self.pending, "reached")

    def _expected(self, t: float) -> Reference:
        """Return the reference at a time, if what runs runs on."""
        assert self.reference is not None
        return self.reference if self.running is None else self.running.sample(t)

    def _check_start(
        self, first: np.ndarray, reference: np.ndarray, q: np.ndarray
    ) -> None:
        """Raise a TrajectoryError for a start far from both reference and robot."""
        reach = self.rules.start_tolerance
        distance = np.minimum(np.abs(reference - first), np.abs(q - first))
        if distance.max(initial=0.0) > reach:
            j = int(np.argmax(distance))
            raise TrajectoryError(
                f"joint '{self.limits.joints[j]}' would start at {first[j]:.6g},"
                f" {distance[j]:.6g} from where it is; valid: at most {reach:.6g}"
                " (start_tolerance), or a first point after the start"
            )
