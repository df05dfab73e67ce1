"""Reference of a controller, with smooth transitions from trajectory to trajectory.

Arrays (n,) have an entry for each of the controller's n joints. A Reference is the
tuple (q, qd, qdd), (n,) each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dyn_core.control.joint_limits import JointLimits
from dyn_core.control.joint_values import whole_turns
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
    """A trajectory with a start time and an offset that decays after it begins.

    Attributes:
        trajectory: With ramps and a lead-in from the reference where it has them.
        start: Time of the trajectory's time zero [s].
        begins: Time at which it replaces the previous trajectory [s].
        blend: Duration in which the offset decays [s].
        offset: Coefficients in ascending powers of the time since `begins`, (6, n);
            None for no offset.
        asked: Trajectory as it was given; None for a braking motion.
    """

    trajectory: Trajectory | LedTrajectory
    start: float
    begins: float
    blend: float
    offset: np.ndarray | None = None
    asked: Trajectory | None = None

    @property
    def ends(self) -> float:
        """Time from which the reference is constant, after trajectory and blend [s]."""
        return max(self.start + self.trajectory.duration, self.begins + self.blend)

    def sample(self, t: float) -> Reference:
        """Return the reference with the offset, at time t [s] not before `begins`."""
        reference = self.trajectory.sample(t - self.start)
        s = t - self.begins
        if self.offset is None or s >= self.blend:
            return reference
        parts = power_rows(s) @ self.offset
        return Reference(*(x + y for x, y in zip(reference, parts, strict=True)))

    def sample_effort(self, t: float, before: np.ndarray) -> np.ndarray:
        """Return the feed-forward effort at time t [s], (n,) [N·m | N].

        During `blend` it changes linearly from `before`, the effort at `begins`. A
        trajectory without efforts counts as zero; a `before` of zero is then returned.
        """
        if self.trajectory.effort is None and not before.any():
            return before
        share = min(max((t - self.begins) / self.blend, 0.0), 1.0)
        added = self.trajectory.sample_effort(t - self.start)
        return (1 - share) * before + share * added

    def check(self, limits: JointLimits) -> None:
        """Raise a TrajectoryError if the decaying offset leads beyond the limits."""
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
    """Return the quintic from an offset to zero, (6, n), in ascending powers of time.

    It begins with offset e, rate ed (n,) and no acceleration, and rests after T [s].
    """
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
    """Reference of a controller and the trajectories that it follows.

    Attributes:
        rules: start_tolerance, limit_tolerance, blend_time, deceleration.
        turning: Joints whose trajectories may be shifted by whole turns, bool, (n,).
        reference: Present reference; None before the first state.
        running: Trajectory that the reference follows; None at rest.
        pending: Trajectory that replaces it later.
        effort, effort_before: Feed-forward effort, (n,) [N·m | N], now and when the
            running trajectory began.
        listeners: Functions called with each given trajectory and its outcome.
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
        """Rest at position q (None: no reference); drop all trajectories.

        The feed-forward effort becomes zero; listeners get the outcome `why`.
        """
        self._lead(None, None, why)
        self.reference = None
        self.effort = self.effort_before = np.zeros(len(self.turning))
        if q is not None:
            self.reference = Reference(q.copy(), 0 * q, 0 * q)

    def take(self, q: np.ndarray, qd: np.ndarray, why: str = "dropped") -> None:
        """Set the reference to a measured state; drop all trajectories.

        Acceleration and feed-forward effort become zero. `advance` leaves the reference
        as it is until `follow` or `stop`. Listeners get the outcome `why`.
        """
        self.rest(q, why)
        self.reference = Reference(q.copy(), qd.copy(), 0 * qd)

    def forget_next(self, why: str) -> None:
        """Drop the pending trajectory with outcome `why`; the running one goes on."""
        self._lead(self.running, None, why)

    def make(
        self, q: np.ndarray | None, names: Sequence[str], *rows: Any, **settings: Any
    ) -> Trajectory:
        """Return a trajectory checked against the joint limits, else TrajectoryError.

        Position limits are widened to include the robot, at q or unknown (None), and
        the reference, so that both can be led back, and then by limit_tolerance.
        `names` may have any order; the result has that of `limits`.
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
        # The polynomials are cached: they need not be computed again.
        checked.__dict__["pieces"] = made.pieces
        return checked

    def follow(
        self, trajectory: Trajectory, start: float, now: float, q: np.ndarray | None
    ) -> None:
        """Follow a trajectory from `start` [s] on; until then the running one goes on.

        `start` is the trajectory's time zero; if it is past, the trajectory is joined
        where it is `now`. Joints of `turning` are shifted by whole turns to the
        reference; ramps, a lead-in and a decaying offset lead to the trajectory. A
        pending trajectory is dropped, and the running one as well if the start is not
        in the future; their outcome is "replaced".

        TrajectoryError, with nothing changed: the trajectory starts more than a day
        ahead, exceeds the limits, or, unless its method is none, a joint begins farther
        than start_tolerance from both the reference and the robot (q; None: unknown).
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
        q = before.q if q is None else q + whole_turns(q, before.q, self.turning)
        shift = whole_turns(trajectory.sample(since).q, before.q, self.turning)
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
        """Set running and pending; report dropped ones but braking to listeners."""
        before, kept = (self.running, self.pending), (running, pending)
        self.running, self.pending = running, pending
        for motion in before:
            if motion is not None and motion.asked is not None and motion not in kept:
                for listener in self.listeners:
                    listener(motion.asked, outcome)

    def stop(self, now: float, why: str = "stopped") -> None:
        """Brake the reference, if there is one, at the rules' deceleration.

        The braking motion becomes the running one, even at rest; all trajectories are
        dropped, and the feed-forward effort fades within rules.blend_time. A joint near
        a position limit brakes faster.
        """
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
        """Advance reference and feed-forward effort to time t [s] if a trajectory runs.

        The pending trajectory begins when it is due; the running one is then
        "replaced". At its end it is removed with the outcome "reached".
        """
        if self.pending is not None and t >= self.pending.begins:
            self._lead(self.pending, None, "replaced")
            self.effort_before = self.effort
        if self.running is not None:
            self.effort = self.running.sample_effort(t, self.effort_before)
            self.reference = self.running.sample(t)
            if t >= self.running.ends:
                self._lead(None, self.pending, "reached")

    def _expected(self, t: float) -> Reference:
        """Return the reference at time t [s] if the running trajectory continues."""
        assert self.reference is not None
        return self.reference if self.running is None else self.running.sample(t)

    def _check_start(
        self, first: np.ndarray, reference: np.ndarray, q: np.ndarray
    ) -> None:
        """Refuse a start beyond start_tolerance of both reference and robot, (n,)."""
        reach = self.rules.start_tolerance
        distance = np.minimum(np.abs(reference - first), np.abs(q - first))
        if distance.max(initial=0.0) > reach:
            j = int(np.argmax(distance))
            raise TrajectoryError(
                f"joint '{self.limits.joints[j]}' would start at {first[j]:.6g},"
                f" {distance[j]:.6g} from where it is; valid: at most {reach:.6g}"
                " (start_tolerance), or a first point after the start"
            )
