"""Life of action goals: accept, follow, report, end; without ROS."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dyn_core.control.reference.goal_requests import GoalCode, goal_trajectory
from dyn_core.control.reference.goals import GoalOutcome, GoalTracker
from dyn_core.errors import DynError, GoalError
from ros_nodes.conversions import stamp_seconds
from ros_nodes.messages.goal_messages import (
    check_followed,
    duration_seconds,
    fill_feedback,
    fill_result,
    joint_tolerances,
    trajectory_rows,
)


@dataclass(eq=False)
class GoalService:
    """Connects the goal handles of an action server with a GoalTracker.

    A goal that cannot be followed is accepted and aborted at once, so that its client
    gets code and reason: a rejection carries neither.

    Attributes:
        action: Type of the action; None: there are no goals of clients.
        wall, now: Return the node's time, to which stamps refer, and the controller's
            [s].
        settings: Returns the arguments partial, method and moving_end of
            goal_trajectory.
        finish: Sends a result: finish(handle, result).
        prepare: Calls its first argument, possibly in another thread, then its second
            in the controller's thread, with the result or with a DynError.
        refusal: Returns why no goal can be followed now, or None.
        log: Called with each outcome, and with whether it belongs to a client's goal.
        canceled: Identifiers of goals canceled while they were being checked.
        ending: Outcomes whose results are still to be sent.
    """

    tracker: GoalTracker
    action: Any
    wall: Callable[[], float]
    now: Callable[[], float]
    settings: Callable[[], dict[str, Any]]
    finish: Callable[[Any, Any], None]
    prepare: Callable[[Callable[[], Any], Callable[[Any], None]], None]
    refusal: Callable[[], str | None] = lambda: None
    log: Callable[[GoalOutcome, bool], None] = lambda outcome, asked: None
    counters: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.handles: dict[bytes, Any] = {}
        self.canceled: set[bytes] = set()
        self.ending: list[GoalOutcome] = []

    def accept(self, handle: Any) -> None:
        """Begin to check a goal, which is then followed or aborted with a reason.

        An exception of marking the handle as executing is raised; others abort.
        """
        goal, request = key(handle), handle.request
        self.handles[goal] = handle
        handle.execute()
        try:
            reason = self.refusal()
            if reason is not None:
                raise GoalError(reason)
            settings = self.settings()
            self.prepare(
                lambda: self._checked(request, settings),
                lambda made: self._follow(goal, request, made),
            )
        except Exception as error:  # any failure: the client is informed
            self._abort(goal, error)

    def cancel(self, handle: Any) -> bool:
        """Cancel a goal; return whether it is known. The outcome is delivered later.

        If its trajectory runs, the reference brakes.
        """
        goal = key(handle)
        if goal not in self.handles:
            return False
        if not self.tracker.cancel(goal):
            self.canceled.add(goal)  # it is still being checked
        return True

    def observe(self, t: float) -> None:
        """Check all goals in a cycle at time t [s]; append outcomes to `ending`.

        A violated tolerance or a stale command makes the robot brake and hold.
        """
        self.ending += self.tracker.advance(t)

    def deliver(self) -> None:
        """Send the results of the goals that have ended.

        A canceled goal is postponed to a later call until the server has marked its
        handle as canceling.
        """
        waiting, self.ending = self.ending, []
        for outcome in waiting:
            self._end(outcome)

    def end_all(self, reason: str) -> None:
        """Abort every goal, also goals that are still being checked; send the results.

        Ended goals keep their outcome. The reference brakes if a goal runs or waits.
        """
        self.ending += self.tracker.end_all(reason)
        self.deliver()
        for goal in list(self.handles):
            self._abort(goal, GoalError(reason))

    def report(self, stamp: Any) -> None:
        """Publish the feedback of each client's goal that is followed."""
        joints = self.tracker.tolerances.joints
        for goal, handle in list(self.handles.items()):
            feedback = self.tracker.feedback(goal)
            if feedback is not None:
                message = fill_feedback(self.action.Feedback(), joints, feedback)
                message.header.stamp = stamp
                handle.publish_feedback(message)

    def _wait(self, request: Any) -> float:
        """Return the time to the start [s], negative if past; 0 for a stamp of zero."""
        start = stamp_seconds(request.trajectory.header.stamp)
        return 0.0 if start is None else start - self.wall()

    def _checked(self, request: Any, settings: dict[str, Any]) -> Any:
        """Return a goal's trajectory and tolerances, or refuse it with a DynError."""
        check_followed(request)
        tolerances = self.tracker.tolerances.overridden(
            joint_tolerances(request.path_tolerance),
            joint_tolerances(request.goal_tolerance),
            duration_seconds(request.goal_time_tolerance),
        )
        rows, wait = trajectory_rows(request.trajectory), self._wait(request)
        made = goal_trajectory(self.tracker.controller, rows, wait, **settings)
        return made, tolerances

    def _follow(self, goal: bytes, request: Any, made: Any) -> None:
        """Follow a goal that was checked, or abort it; ignored if it has ended.

        `made` is the pair of `_checked` or a DynError.
        """
        if goal not in self.handles:
            return
        if goal in self.canceled:
            sentence = "canceled before it was followed"
            self._end(GoalOutcome(goal, "canceled", GoalCode.SUCCESSFUL, sentence))
            return
        try:
            if isinstance(made, DynError):
                raise made
            trajectory, tolerances = made
            start = self.now() + self._wait(request)
            self.tracker.accept(goal, trajectory, start, tolerances)
        except Exception as error:  # any failure: the client is informed
            self._abort(goal, error)

    def _abort(self, goal: bytes, error: Exception) -> None:
        """Abort a goal for an error; if it has ended, only log the error."""
        known = isinstance(error, DynError)
        sentence = str(error) if known else f"{type(error).__name__}: {error}"
        code = error.code if isinstance(error, GoalError) else GoalCode.INVALID_GOAL
        self._end(GoalOutcome(goal, "aborted", GoalCode(code), sentence))

    def _end(self, outcome: GoalOutcome) -> None:
        """End a goal: set the final state of its handle, count, log, send its result.

        The outcome of a trajectory without a client is only logged. A canceled goal
        that the server has not yet marked as canceling stays in `ending` for the next
        `deliver`.
        """
        handle = self.handles.get(outcome.goal)
        if handle is None:
            self.log(outcome, False)
            return
        # A server marks a goal as canceling after it has called `cancel`, perhaps in
        # another thread; until then a canceled goal cannot end.
        if outcome.state == "canceled" and not handle.is_cancel_requested:
            self.ending.append(outcome)
            return
        del self.handles[outcome.goal]
        self.canceled.discard(outcome.goal)
        self.counters[f"goal {outcome.state}"] += 1
        self.log(outcome, True)
        ends = {
            "succeeded": handle.succeed,
            "aborted": handle.abort,
            "canceled": handle.canceled,
        }
        ends[outcome.state]()
        self.finish(handle, fill_result(self.action.Result(), outcome))


def key(handle: Any) -> bytes:
    """Return the identifier of a goal, the 16 bytes of its UUID."""
    return bytes(handle.goal_id.uuid)
