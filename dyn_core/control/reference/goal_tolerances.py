"""Tolerances of path and goal, with the semantics of joint_trajectory_controller.

Arrays (n,) have an entry for each of the n joints of the controller, in its order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dyn_core.errors import GoalError, SettingError, unknown_name
from dyn_core.validation import is_finite, known_keywords, named_settings, shown

ERASED = -1.0  # in a goal: disables the controller's tolerance
STOPPED_VELOCITY = 0.01  # the controller's default [rad/s | m/s]


class JointTolerance(NamedTuple):
    """Tolerance of one joint in a goal; 0: the controller's default, -1: no check.

    Attributes:
        name: Joint.
        position: Position tolerance [rad | m].
        velocity: Velocity tolerance [rad/s | m/s].
        acceleration, effort: Not checked; only 0 and -1 are valid.
    """

    name: str
    position: float = 0.0
    velocity: float = 0.0
    acceleration: float = 0.0
    effort: float = 0.0


@known_keywords
@dataclass(frozen=True, eq=False)
class Tolerances:
    """Tolerances that a goal is checked against; 0 disables a check.

    Attributes:
        joints: Names, in the order of the controller.
        path_position, path_velocity: Tolerances while the trajectory runs, (n,)
            [rad | m], [rad/s | m/s].
        goal_position, goal_velocity: Tolerances after its end, (n,).
        goal_time: Longest time after the end until the goal is reached; 0: no limit
            [s].
    """

    joints: tuple[str, ...]
    path_position: np.ndarray
    path_velocity: np.ndarray
    goal_position: np.ndarray
    goal_velocity: np.ndarray
    goal_time: float = 0.0

    @classmethod
    def of(
        cls,
        joints: Sequence[str],
        trajectory: Mapping[str, float] | None = None,
        goal: Mapping[str, float] | None = None,
        goal_time: float = 0.0,
        stopped_velocity: float = STOPPED_VELOCITY,
    ) -> Tolerances:
        """Return the default tolerances of a controller.

        Path velocities are not checked.

        Args:
            joints: Names of all joints, in the order of the controller.
            trajectory: Position tolerances on the path, by joint name; 0 if omitted
                [rad | m].
            goal: Position tolerances at the goal, by joint name; 0 if omitted [rad |
                m].
            goal_time: Longest time after the end until the goal is reached; 0: no limit
                [s].
            stopped_velocity: Largest velocity error of each joint at the goal [rad/s |
                m/s].

        Raises:
            SettingError: `trajectory` or `goal` is no mapping, a joint is unknown, or a
                value is no number, negative or not finite.
        """
        paths = _by_joint("trajectory", trajectory or {}, joints)
        ends = _by_joint("goal", goal or {}, joints)
        _check("goal_time", goal_time)
        _check("stopped_velocity_tolerance", stopped_velocity)
        still = np.full(len(joints), float(stopped_velocity))
        return cls(tuple(joints), paths, 0 * paths, ends, still, float(goal_time))

    def overridden(
        self,
        path: Iterable[JointTolerance] = (),
        goal: Iterable[JointTolerance] = (),
        goal_time: float = 0.0,
    ) -> Tolerances:
        """Return a copy in which the tolerances of a goal replace the defaults.

        Args:
            path, goal: Tolerances by joint on the path and at the goal; 0: the default,
                -1: no check. If a joint comes twice, its later numbers count, except 0.
            goal_time: Longest time after the end [s]; 0: the default, -1: no limit.

        Raises:
            GoalError: A joint is unknown, a number is neither -1 nor finite and >= 0,
                or an acceleration or effort is neither 0 nor -1; code INVALID_GOAL.
        """
        arrays = {
            "path_position": self.path_position.copy(),
            "path_velocity": self.path_velocity.copy(),
            "goal_position": self.goal_position.copy(),
            "goal_velocity": self.goal_velocity.copy(),
        }
        for kind, rows in (("path", path), ("goal", goal)):
            for row in rows:
                j = self._number(kind, row.name)
                for what in ("position", "velocity"):
                    wanted = getattr(row, what)
                    values = arrays[f"{kind}_{what}"]
                    where = f"{kind}_tolerance of '{row.name}': {what}"
                    values[j] = _resolved(where, wanted, float(values[j]))
                for what in ("acceleration", "effort"):
                    if getattr(row, what) not in (0.0, ERASED):
                        raise GoalError(
                            f"{kind}_tolerance of '{row.name}': {what} is not checked;"
                            " valid: 0 or -1"
                        )
        seconds = _resolved("goal_time_tolerance", goal_time, self.goal_time)
        return Tolerances(self.joints, **arrays, goal_time=seconds)

    def _number(self, kind: str, name: str) -> int:
        """Return the index of a joint that a goal names in path or goal tolerances."""
        if name not in self.joints:
            message = unknown_name("joint", name, self.joints)
            raise GoalError(f"{kind}_tolerance: {message}")
        return self.joints.index(name)

    def path_fault(self, error: np.ndarray, rate: np.ndarray) -> str | None:
        """Return a sentence on the joint that exceeds a path tolerance most, or None.

        The largest ratio of error to tolerance counts, of velocities only if no
        position exceeds. A tolerance of 0 is not checked; NaN exceeds any other.

        Args:
            error: Position error, desired - actual, (n,) [rad | m].
            rate: Velocity error, desired - actual, (n,) [rad/s | m/s].
        """
        return self._fault(error, rate, self.path_position, self.path_velocity)

    def goal_fault(self, error: np.ndarray, rate: np.ndarray) -> str | None:
        """Return a sentence on the joint that exceeds a goal tolerance most, or None.

        The largest ratio of error to tolerance counts, of velocities only if no
        position exceeds. A tolerance of 0 is not checked; NaN exceeds any other.

        Args:
            error: Position error, desired - actual, (n,) [rad | m].
            rate: Velocity error, desired - actual, (n,) [rad/s | m/s].
        """
        return self._fault(error, rate, self.goal_position, self.goal_velocity)

    def _fault(
        self, error: np.ndarray, rate: np.ndarray, far: np.ndarray, fast: np.ndarray
    ) -> str | None:
        """Return a sentence on the joint with the largest ratio to its tolerance.

        None if no tolerance is exceeded; 0 disables one. Positions are checked before
        velocities; NaN exceeds any tolerance above 0.
        """
        rows = (("", error, far), ("the velocity of ", rate, fast))
        for what, x, limit in rows:
            # NaN counts as outside.
            bad = np.flatnonzero((limit > 0) & ~(np.abs(x) <= limit))
            if bad.size:
                j = int(bad[np.argmax(np.abs(x[bad]) / limit[bad])])
                return (
                    f"{what}joint '{self.joints[j]}' is off by {abs(x[j]):.6g};"
                    f" tolerance {limit[j]:.6g}"
                )
        return None


def checked_timeout(cmd_timeout: float, goal_time: float) -> float:
    """Return cmd_timeout, after the last trajectory's end [s]; 0 for never.

    SettingError if it is neither 0 nor finite and greater than goal_time (0: no limit):
    a goal which may still be reached would be stale.
    """
    if cmd_timeout != 0 and not goal_time < cmd_timeout < math.inf:
        raise SettingError(
            f"cmd_timeout is {cmd_timeout:.6g}; valid: 0 (never), or more than"
            f" constraints.goal_time ({goal_time:.6g}): until then a goal may be"
            " reached",
            "cmd_timeout",
        )
    return float(cmd_timeout)


def _by_joint(
    what: str, values: Mapping[str, float], joints: Sequence[str]
) -> np.ndarray:
    """Return tolerances in the order of the joints, (n,); 0 where none is given."""
    for name, value in named_settings(f"constraints: {what}", values).items():
        if name not in joints:
            message = unknown_name("joint", name, joints)
            raise SettingError(f"constraints.{name}.{what}: {message}", name)
        _check(f"{name}.{what}", value)
    return np.array([values.get(name, 0.0) for name in joints], float)


def _check(name: str, value: float) -> None:
    """Raise SettingError unless `value` is finite and >= 0; says constraints.NAME."""
    if not (is_finite(value) and value >= 0):
        setting = f"constraints.{name}"
        message = f"{setting} is {shown(value)}; valid: a number >= 0"
        raise SettingError(message, setting)


def _resolved(where: str, wanted: float, default: float) -> float:
    """Return the tolerance of a goal: `wanted`, the default for 0, or 0 for -1."""
    if wanted == ERASED:
        return 0.0
    if not (is_finite(wanted) and wanted >= 0):
        valid = "valid: > 0, 0 (default) or -1 (none)"
        raise GoalError(f"{where} is {shown(wanted)}; {valid}")
    return wanted if wanted > 0 else default
