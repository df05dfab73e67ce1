"""Tolerances of path and goal, with the meaning of joint_trajectory_controller."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dyn_core.errors import GoalError, SettingError, unknown_name
from dyn_core.validation import known_keywords

ERASED = -1.0  # of a goal: what the controller checks is not checked
STOPPED_VELOCITY = 0.01  # the controller's default [rad/s | m/s]


class JointTolerance(NamedTuple):
    """Tolerance of one joint in a goal; 0 keeps the controller's, -1 checks nothing.

    Attributes:
        name: Joint.
        position, velocity: [rad | m], [rad/s | m/s].
        acceleration, effort: Not measured: 0 and -1 alone are valid.
    """

    name: str
    position: float = 0.0
    velocity: float = 0.0
    acceleration: float = 0.0
    effort: float = 0.0


@known_keywords
@dataclass(frozen=True, eq=False)
class Tolerances:
    """What a goal is checked against; a tolerance of 0 checks nothing.

    Attributes:
        joints: Names, in the order of the controller.
        path_position, path_velocity: While the trajectory runs, (n,).
        goal_position, goal_velocity: After its end, (n,).
        goal_time: Longest time after the end until the goal is reached; 0 for any [s].
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
        """Return the tolerances of a controller.

        Args:
            joints: Names.
            trajectory, goal: Position tolerances by joint; those left out are 0.
            goal_time: As the attribute.
            stopped_velocity: Largest velocity error of a joint at the goal.

        Raises:
            SettingError: A joint is unknown, or a tolerance negative or not finite.
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
        """Return these tolerances with those of a goal.

        Raises:
            GoalError: A joint is unknown, or a number is neither >= 0 nor -1.
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
        """Return the number of a joint that a goal names."""
        if name not in self.joints:
            message = unknown_name("joint", name, self.joints)
            raise GoalError(f"{kind}_tolerance: {message}")
        return self.joints.index(name)

    def path_fault(self, error: np.ndarray, rate: np.ndarray) -> str | None:
        """Return the joint that left the path and how far, or None.

        Args:
            error, rate: Errors of position and velocity, desired - actual, (n,).
        """
        return self._fault(error, rate, self.path_position, self.path_velocity)

    def goal_fault(self, error: np.ndarray, rate: np.ndarray) -> str | None:
        """Return the joint that is not at the goal and how far off, or None."""
        return self._fault(error, rate, self.goal_position, self.goal_velocity)

    def _fault(
        self, error: np.ndarray, rate: np.ndarray, far: np.ndarray, fast: np.ndarray
    ) -> str | None:
        rows = (("", error, far), ("the velocity of ", rate, fast))
        for what, x, limit in rows:
            # What is not a number is outside, too.
            bad = np.flatnonzero((limit > 0) & ~(np.abs(x) <= limit))
            if bad.size:
                j = int(bad[np.argmax(np.abs(x[bad]) / limit[bad])])
                return (
                    f"{what}joint '{self.joints[j]}' is off by {abs(x[j]):.6g};"
                    f" tolerance {limit[j]:.6g}"
                )
        return None


def checked_timeout(cmd_timeout: float, goal_time: float) -> float:
    """Return the time after which a command is stale, checked; 0 for never [s].

    Args:
        cmd_timeout: Counts from the end of the last trajectory [s].
        goal_time: Longest time in which a goal may be reached; 0 for any [s].

    Raises:
        SettingError: A goal that may still be reached would be stale.
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
    """Return tolerances in the order of the joints."""
    for name, value in values.items():
        if name not in joints:
            message = unknown_name("joint", name, joints)
            raise SettingError(f"constraints.{name}.{what}: {message}", name)
        _check(f"{name}.{what}", value)
    return np.array([values.get(name, 0.0) for name in joints], float)


def _check(name: str, value: float) -> None:
    if not (math.isfinite(value) and value >= 0):
        setting = f"constraints.{name}"
        raise SettingError(f"{setting} is {value}; valid: a number >= 0", setting)


def _resolved(where: str, wanted: float, default: float) -> float:
    """Return a goal's tolerance, or that of the controller where it has none."""
    if wanted == ERASED:
        return 0.0
    if not (math.isfinite(wanted) and wanted >= 0):
        raise GoalError(f"{where} is {wanted}; valid: > 0, 0 (default) or -1 (none)")
    return wanted if wanted > 0 else default
