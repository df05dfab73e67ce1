"""Goals of trajectories: followed, checked in each cycle, and finished with a code.

A goal succeeds, is aborted or is canceled, each with a code and a sentence. When a goal
is aborted or canceled, the robot brakes and holds its position. n is the number of
joints.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from dyn_core.control.controller import Controller
from dyn_core.control.reference.following import TimedTrajectory
from dyn_core.control.reference.goal_requests import GoalCode
from dyn_core.control.reference.goal_tolerances import Tolerances
from dyn_core.control.reference.trajectory import Reference, Trajectory
from dyn_core.errors import DynError, GoalError

# Counters of the events that reset a controller.
DROPS = ("stale", "position jumped", "time went back", "time jumped")


class GoalOutcome(NamedTuple):
    """Result of a goal; its `state` is succeeded, aborted or canceled."""

    goal: Any
    state: str
    code: GoalCode
    sentence: str


class GoalFeedback(NamedTuple):
    """Progress of a goal, `since` the start of its trajectory [s]; negative before it.

    `error`, wrapped for wrapped joints, and `rate` are desired - actual, (n,).
    """

    since: float
    desired: Reference
    q: np.ndarray
    qd: np.ndarray
    error: np.ndarray
    rate: np.ndarray


@dataclass(eq=False)
class _Tracked:
    """A goal that is being followed, or after `canceled` is only braking.

    `drops` are the counters of controller resets at its acceptance, in the order of
    DROPS. `reason` says why the tracker dropped its trajectory, if it did.
    """

    goal: Hashable
    motion: TimedTrajectory
    tolerances: Tolerances
    drops: tuple[int, ...]
    canceled: bool = False
    reason: str | None = None


@dataclass(eq=False)
class GoalTracker:
    """Goals of a controller, from their acceptance to their outcome.

    `advance` must be called once after each update of the controller, and by the
    watchdog while no state comes. A newer trajectory ends a goal when it begins, not
    before.

    Attributes:
        controller: Controller that follows the trajectories.
        tolerances: Tolerances of goals without their own; may be replaced at any time.
        tracked: Goals without an outcome.
        cmd_timeout: Time after the end of the last trajectory from which its command is
            stale, see `checked_timeout`; 0 for never; may be replaced [s].
        last: Trajectory that was followed last, while the robot holds its end; else
            None.
    """

    controller: Controller
    tolerances: Tolerances
    tracked: list[_Tracked] = field(default_factory=list)
    cmd_timeout: float = 0.0
    last: TimedTrajectory | None = None

    def accept(
        self,
        goal: Hashable,
        trajectory: Trajectory,
        start: float,
        tolerances: Tolerances | None = None,
    ) -> None:
        """Follow a trajectory as a goal.

        A pending trajectory is dropped, and the running one as well if the start is not
        in the future: `advance` aborts their goals.

        Args:
            goal: Identifier of the goal; that no tracked goal has it is not checked.
            trajectory: Trajectory of Controller.make_trajectory.
            start: Time of the trajectory's time zero, on the controller's clock `now`
                [s].
            tolerances: Tolerances of this goal; None: the default ones.

        Raises:
            GoalError: The controller refuses the trajectory, see Controller.follow;
                code INVALID_GOAL.
        """
        before = [x for x in self.tracked if self._leads(x)]
        try:
            self.controller.follow(trajectory, start)
        except DynError as error:
            raise GoalError(str(error), GoalCode.INVALID_GOAL) from error
        for tracked in before:
            if not self._leads(tracked):
                tracked.reason = "another trajectory has taken over"
        follower = self.controller.follower
        motion = follower.running if follower.pending is None else follower.pending
        assert motion is not None
        chosen = self.tolerances if tolerances is None else tolerances
        self.tracked.append(_Tracked(goal, motion, chosen, self._drops()))

    def cancel(self, goal: Hashable) -> bool:
        """Cancel a goal: if its trajectory runs, the reference brakes.

        The goal then ends at rest, and a pending trajectory of another goal is dropped.
        A goal whose trajectory has not begun loses it, and the end of one that has
        ended is held, both without braking. The outcome, canceled, comes from a later
        `advance`.

        Returns:
            Whether the goal is in `tracked`; False after its outcome.
        """
        for tracked in self.tracked:
            if tracked.goal != goal:
                continue
            follower = self.controller.follower
            tracked.canceled = True
            if follower.pending is tracked.motion:
                follower.forget_next("canceled")
            elif follower.running is tracked.motion:
                self._brake(tracked)
            return True
        return False

    def end_all(self, reason: str) -> list[GoalOutcome]:
        """Abort all goals and return their outcomes, such as at deactivation.

        `reason` is the sentence of the outcomes; their code is INVALID_GOAL.

        The reference brakes if it follows one of them, or one of them is pending.
        `tracked` becomes empty, and `last` None.
        """
        ended = [self._dropped(x, reason) for x in self.tracked]
        if any(self._leads(x) for x in self.tracked):
            self.controller.stop(f"stopped: {reason}")
        self.tracked, self.last = [], None
        return ended

    def advance(self, t: float) -> list[GoalOutcome]:
        """Return the outcomes of goals that ended in the controller's cycle.

        A violated tolerance or a stale command makes the robot brake and hold. Goals
        that ended leave `tracked`.

        Args:
            t: Time of receipt of the state, or time of the watchdog [s].
        """
        pairs = [(tracked, self._outcome(tracked, t)) for tracked in self.tracked]
        self.tracked = [x for x, outcome in pairs if outcome is None]
        stale = self._end_stale()
        return [outcome for _, outcome in pairs if outcome is not None] + stale

    def feedback(self, goal: Hashable) -> GoalFeedback | None:
        """Return the progress of a goal; None if not tracked, or without a reference.

        The arrays are the controller's own.
        """
        c = self.controller
        for tracked in self.tracked:
            if tracked.goal == goal and c.reference is not None and c.q is not None:
                assert c.qd is not None
                since = c.now - tracked.motion.start
                rate = c.reference.qd - c.qd
                return GoalFeedback(since, c.reference, c.q, c.qd, c.error, rate)
        return None

    def _drops(self) -> tuple[int, ...]:
        """Return the counters of controller resets, in the order of DROPS."""
        return tuple(self.controller.counters[name] for name in DROPS)

    def _leads(self, tracked: _Tracked) -> bool:
        """Return whether the goal's motion is the running or pending trajectory."""
        follower = self.controller.follower
        return tracked.motion in (follower.running, follower.pending)

    def _brake(self, tracked: _Tracked) -> None:
        """Brake the reference for a canceled goal; this becomes the goal's motion.

        A goal that waits for the end of this one gets a reason why it will not begin.
        """
        self._drop_waiting("the trajectory before it was canceled")
        self.controller.stop("stopped: canceled")
        motion = self.controller.follower.running
        if motion is not None:
            tracked.motion = motion

    def _outcome(self, tracked: _Tracked, t: float) -> GoalOutcome | None:
        """Return the outcome of a goal in this cycle, or None if it continues.

        It succeeds once its trajectory has ended and the goal tolerances are met. A
        goal that the controller no longer follows is aborted with INVALID_GOAL, see
        `_interruption`. If a path tolerance is violated, or a goal tolerance still
        after goal_time (0: no limit), the robot brakes, see `_aborted`. A canceled goal
        has its outcome, SUCCESSFUL, when its braking motion has ended or is
        interrupted.
        """
        motion, c = tracked.motion, self.controller
        reason = self._interruption(tracked, t)
        if tracked.canceled and (reason or not self._leads(tracked)):
            sentence = f"canceled: {reason or 'the robot brakes and holds'}"
            return GoalOutcome(tracked.goal, "canceled", GoalCode.SUCCESSFUL, sentence)
        if reason is not None:
            return self._dropped(tracked, reason)
        if tracked.canceled or c.follower.pending is motion:
            return None
        assert c.reference is not None and c.qd is not None
        errors = c.error, c.reference.qd - c.qd
        if c.follower.running is motion:
            fault = tracked.tolerances.path_fault(*errors)
            if fault is None:
                return None
            code = GoalCode.PATH_TOLERANCE_VIOLATED
            when = f"{c.now - motion.start:.3f} s after the start"
            return self._aborted(tracked, code, f"{fault} on the path, {when}")
        fault = tracked.tolerances.goal_fault(*errors)
        if fault is None:
            code, sentence = GoalCode.SUCCESSFUL, "the goal is reached"
            return GoalOutcome(tracked.goal, "succeeded", code, sentence)
        late, most = c.now - motion.ends, tracked.tolerances.goal_time
        if most == 0 or late <= most:
            return None
        code = GoalCode.GOAL_TOLERANCE_VIOLATED
        when = f"{late:.3f} s after the end (goal_time {most:.6g} s)"
        return self._aborted(tracked, code, f"{fault} at the goal, {when}")

    def _aborted(self, tracked: _Tracked, code: GoalCode, sentence: str) -> GoalOutcome:
        """Brake and hold the robot; return the outcome "aborted" of a goal.

        The robot brakes from its measured state: a reference that remained on the
        trajectory would continue to pull it there. A waiting goal will not begin.
        """
        self._drop_waiting(f"the trajectory before it was aborted: {sentence}")
        self._hold(f"stopped: {sentence}")
        return GoalOutcome(tracked.goal, "aborted", code, sentence)

    def _hold(self, why: str) -> None:
        """Brake from the measured state, which must exist; tell listeners `why`."""
        c = self.controller
        assert c.q is not None and c.qd is not None
        c.follower.take(c.q, c.samples.rate, why)
        c.stop(why)

    def _drop_waiting(self, reason: str) -> None:
        """Record in the pending goal, if any, the reason why it will not begin."""
        for tracked in self.tracked:
            if tracked.motion is self.controller.follower.pending:
                tracked.reason = reason

    def _end_stale(self) -> list[GoalOutcome]:
        """Hold the measured position, and abort goals, if the last command is stale.

        A goal with a goal_time is waited for: its tolerance decides within this time.
        """
        c = self.controller
        if not self._ended():
            return []
        assert self.last is not None
        waiting = [x for x in self.tracked if x.motion is self.last]
        late = c.now - self.last.ends
        if not 0 < self.cmd_timeout < late or any(
            x.tolerances.goal_time > 0 for x in waiting
        ):
            return []
        said = f"no trajectory for {late:.3f} s (cmd_timeout {self.cmd_timeout:.6g} s)"
        asked, self.last = self.last.asked, None
        self.tracked = [x for x in self.tracked if x not in waiting]
        self._hold(f"stopped: {said}")
        for listener in c.listeners:
            assert asked is not None
            listener(asked, f"stopped: {said}: the robot holds where it is")
        code = GoalCode.GOAL_TOLERANCE_VIOLATED
        sentence = f"the goal was not reached: {said}"
        return [GoalOutcome(x.goal, "aborted", code, sentence) for x in waiting]

    def _ended(self) -> bool:
        """Return whether the robot holds the end of a trajectory, and none is pending.

        `last` is updated: None for a braking motion or if the end is no longer held.
        """
        c = self.controller
        running, last = c.follower.running, self.last
        if running is not None:
            self.last = None if running.asked is None else running
            return False
        if last is None or c.reference is None or c.stopped or not c.enabled:
            self.last = None
        elif not np.array_equal(c.reference.q, last.trajectory.sample(math.inf).q):
            self.last = None
        return self.last is not None and c.follower.pending is None and c.q is not None

    def _dropped(self, tracked: _Tracked, reason: str) -> GoalOutcome:
        """Return the outcome "aborted" with the code INVALID_GOAL; no other effect."""
        return GoalOutcome(tracked.goal, "aborted", GoalCode.INVALID_GOAL, reason)

    def _interruption(self, tracked: _Tracked, t: float) -> str | None:
        """Return the reason why the controller does not follow a goal, or None.

        A stop, a disabled controller, a stale state (not while the clock is paused) and
        a reset since its acceptance are reasons for any goal. A replaced or dropped
        trajectory is one for a goal that is not canceled, also if the reference rests
        where one ends that never began.
        """
        c, motion = self.controller, tracked.motion
        if c.stopped is not None:
            return f"stopped: {c.stopped.reason}"
        if not c.enabled:
            return "the controller is disabled"
        silent = c.seen is None or c.samples.silence(t) is not None
        if silent and not c.samples.paused:
            return "the joint state is stale"
        for name, before, now in zip(DROPS, tracked.drops, self._drops(), strict=True):
            if now > before:
                return f"the controller was reset: {name}"
        if self._leads(tracked) or tracked.canceled:
            return None
        if tracked.reason is not None:
            return tracked.reason
        if c.follower.running is not None:
            stop = c.follower.running.asked is None
            return "stopped" if stop else "another trajectory has taken over"
        if c.reference is None:
            return "the controller was reset"
        end = motion.trajectory.sample(math.inf).q
        if c.now < motion.begins or not np.array_equal(c.reference.q, end):
            return "the trajectory was replaced or stopped"
        return None
