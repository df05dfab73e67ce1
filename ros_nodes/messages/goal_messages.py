"""Conversion between FollowJointTrajectory messages and arrays; without ROS."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dyn_core.control.reference.goal_requests import TrajectoryRows
from dyn_core.control.reference.goal_tolerances import JointTolerance
from dyn_core.control.reference.goals import GoalFeedback, GoalOutcome
from dyn_core.control.reference.trajectory import point_rows
from dyn_core.errors import GoalError, TrajectoryError

_TOLERANCE = ("position", "velocity", "acceleration", "effort")


def duration_seconds(duration: Any) -> float:
    """Return a Duration or Time message, sec and nanosec, in seconds."""
    return float(duration.sec + 1e-9 * duration.nanosec)


def trajectory_rows(message: Any) -> TrajectoryRows:
    """Return the arrays of a JointTrajectory message, including efforts.

    They are names, times (points,) [s], positions, velocities, accelerations, effort. A
    field that the message lacks has rows without columns, (points, 0).
    """
    points = message.points
    kinds = ("positions", "velocities", "accelerations", "effort")
    try:
        rows = [point_rows(kind, [getattr(p, kind) for p in points]) for kind in kinds]
    except TrajectoryError as error:
        raise GoalError(str(error)) from error
    times = np.array([duration_seconds(p.time_from_start) for p in points], float)
    return TrajectoryRows(list(message.joint_names), times, *rows)


def check_followed(request: Any) -> None:
    """Check that a goal, a request message, has no parts that would be ignored."""
    multi = getattr(request, "multi_dof_trajectory", None)  # older messages have none
    if multi is not None and (multi.joint_names or multi.points):
        raise GoalError("multi_dof_trajectory is not followed; valid: an empty one")
    for name in ("component_path_tolerance", "component_goal_tolerance"):
        if getattr(request, name, ()):
            raise GoalError(f"{name} is not checked; valid: an empty one")


def joint_tolerances(messages: Iterable[Any]) -> list[JointTolerance]:
    """Return JointTolerance messages as objects, in order; a field they lack is 0."""
    return [
        JointTolerance(x.name, *(float(getattr(x, what, 0.0)) for what in _TOLERANCE))
        for x in messages
    ]


def fill_feedback(message: Any, joints: Sequence[str], now: GoalFeedback) -> Any:
    """Fill in a Feedback message in place, except its header, and return it.

    A time before the start counts as 0; times are rounded down to nanoseconds.
    """
    message.joint_names = list(joints)
    desired, actual, error = message.desired, message.actual, message.error
    desired.positions, desired.velocities, desired.accelerations = (
        x.tolist() for x in now.desired
    )
    actual.positions, actual.velocities = now.q.tolist(), now.qd.tolist()
    error.positions, error.velocities = now.error.tolist(), now.rate.tolist()
    part, whole = math.modf(max(now.since, 0.0))
    for point in (desired, actual, error):
        point.time_from_start.sec = int(whole)
        point.time_from_start.nanosec = int(part * 1e9)
    return message


def fill_result(message: Any, outcome: GoalOutcome) -> Any:
    """Fill in a Result message in place: error_code and error_string; return it."""
    message.error_code = int(outcome.code)
    message.error_string = outcome.sentence
    return message
