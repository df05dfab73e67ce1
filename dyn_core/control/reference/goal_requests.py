"""Goals as requested by a client: names, start times, and missing joints.

Arrays (n,) have an entry for each of the controller's n joints.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from dyn_core.control.controller import Controller
from dyn_core.control.reference.trajectory import Trajectory, point_rows
from dyn_core.errors import GoalError, TrajectoryError, unknown_name


class GoalCode(IntEnum):
    """Result codes of control_msgs/action/FollowJointTrajectory."""

    SUCCESSFUL = 0
    INVALID_GOAL = -1
    INVALID_JOINTS = -2
    OLD_HEADER_TIMESTAMP = -3
    PATH_TOLERANCE_VIOLATED = -4
    GOAL_TOLERANCE_VIOLATED = -5


class TrajectoryRows(NamedTuple):
    """Arrays of a trajectory as in messages: (k, columns), or (k, 0) if not given.

    `names` are the joints of the columns; `times` count from the start [s].
    """

    names: Sequence[str]
    times: np.ndarray
    positions: Any
    velocities: Any = ()
    accelerations: Any = ()
    effort: Any = ()


def with_missing_joints(
    rows: TrajectoryRows, joints: Sequence[str], q: np.ndarray
) -> TrajectoryRows:
    """Return a trajectory of all joints, in which missing joints rest at their q, (n,).

    Missing joints are appended, with zero velocities, accelerations and efforts where
    the trajectory has any. A trajectory that has all joints is returned unchanged; so
    is a quantity whose number of rows differs from the number of times.
    """
    missing = [j for j, name in enumerate(joints) if name not in rows.names]
    if not missing:
        return rows
    count = len(rows.times)
    still = np.tile(np.asarray(q, float)[missing], (count, 1))

    def widened(what: str, values: Any, added: np.ndarray) -> np.ndarray:
        numbers = point_rows(what, values)
        if not numbers.size or len(numbers) != count:
            return numbers
        return np.hstack([numbers, added])

    names = [*rows.names, *(joints[j] for j in missing)]
    return TrajectoryRows(
        names,
        rows.times,
        widened("positions", rows.positions, still),
        widened("velocities", rows.velocities, 0 * still),
        widened("accelerations", rows.accelerations, 0 * still),
        widened("efforts", rows.effort, 0 * still),
    )


def goal_trajectory(
    controller: Controller,
    rows: TrajectoryRows,
    wait: float = 0.0,
    partial: bool = False,
    **settings: Any,
) -> Trajectory:
    """Return the checked trajectory of a goal, with time zero `wait` [s] from now.

    If `partial`, missing joints rest at the reference's position at its start.

    GoalError, by `code`: INVALID_JOINTS: names are unknown, repeated or, unless
    `partial`, missing, or there are none; OLD_HEADER_TIMESTAMP: it ended before now;
    INVALID_GOAL: the trajectory is invalid, or `partial` before the first state.
    """
    joints = controller.model.joint_names
    _check_names(rows.names, joints, partial)
    try:
        if partial:
            rows = with_missing_joints(rows, joints, resting_place(controller, wait))
        *motion, effort = rows
        made = controller.make_trajectory(*motion, effort=effort, **settings)
    except GoalError:
        raise
    except TrajectoryError as error:
        raise GoalError(str(error), GoalCode.INVALID_GOAL) from error
    if wait + made.duration < 0:
        ago = -(wait + made.duration)
        message = f"the trajectory ended {ago:.3f} s ago"
        raise GoalError(message, GoalCode.OLD_HEADER_TIMESTAMP)
    return made


def resting_place(controller: Controller, wait: float = 0.0) -> np.ndarray:
    """Return the position of the reference `wait` [s] from now (negative: now), (n,).

    The running trajectory continues; a pending one is ignored. Without a running one
    the result is the reference's own array. GoalError, INVALID_GOAL: no state.
    """
    reference, running = controller.reference, controller.follower.running
    if reference is None:
        message = "no state has been received: the trajectory has no start"
        raise GoalError(message, GoalCode.INVALID_GOAL)
    if running is None:
        return reference.q
    return running.sample(controller.now + max(wait, 0.0)).q


def _check_names(names: Sequence[str], joints: Sequence[str], partial: bool) -> None:
    """Refuse joint names: unknown, repeated, none, or missing without `partial`."""
    code = GoalCode.INVALID_JOINTS
    for name in names:
        if name not in joints:
            raise GoalError(unknown_name("joint", name, joints), code)
        if list(names).count(name) > 1:
            raise GoalError(f"joint '{name}' is there more than once", code)
    missing = [name for name in joints if name not in names]
    if not names:
        raise GoalError("no joint_names; valid: those of the controller", code)
    if missing and not partial:
        raise GoalError(
            f"joint '{missing[0]}' is missing; valid: all joints, or set"
            " allow_partial_joints_goal",
            code,
        )
