"""A path of a tool to a pose, with bounds of its speeds; without ROS."""

from __future__ import annotations

import math

import numpy as np
from scipy.spatial.transform import Rotation

from dyn_core.errors import SettingError

PEAK = 1.875  # largest rate of the polynomial


def apart(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return distance [m] and angle, 0 to pi [rad], between two poses.

    x, y: Position and quaternion x, y, z, w of any length but 0, (7,).
    """
    turn = Rotation.from_quat(x[3:]).inv() * Rotation.from_quat(y[3:])
    return float(np.linalg.norm(x[:3] - y[:3])), float(turn.magnitude())


class ToolPath:
    """A straight path from rest to rest, which turns about one axis.

        pose(t) = start + s(u) (end - start),   s = 10 u³ - 15 u⁴ + 6 u⁵,
        u = t / duration, cut to 0 .. 1; largest rates at u = 1/2: 1.875 / duration

    Poses are (7,): x y z [m], quaternion x y z w, which is scaled to 1. The duration
    [s] is such that neither the largest speed [m/s] nor the largest rate of rotation
    `turn` [rad/s] is exceeded.
    """

    def __init__(
        self, start: np.ndarray, end: np.ndarray, speed: float, turn: float
    ) -> None:
        for name, bound in (("speed", speed), ("turn", turn)):
            if not 0 < bound < math.inf:
                raise SettingError(f"--{name} {bound:g}; valid: more than 0", name)
        self.start, self.end = (_checked(np.array(x, float)) for x in (start, end))
        distance, angle = apart(self.start, self.end)
        self.duration = PEAK * max(distance / speed, angle / turn)
        first, last = (Rotation.from_quat(x[3:]) for x in (self.start, self.end))
        self._first, self._way = first, (first.inv() * last).as_rotvec()

    def pose(self, t: float) -> np.ndarray:
        """Return the pose at a time since the start [s], (7,).

        After `duration` its quaternion may have the opposite sign of that of `end`.
        """
        u = min(max(t / self.duration, 0.0), 1.0) if self.duration else 1.0
        s = u**3 * (10 - 15 * u + 6 * u * u)
        place = self.start[:3] + s * (self.end[:3] - self.start[:3])
        turn = self._first * Rotation.from_rotvec(s * self._way)
        return np.r_[place, turn.as_quat()]


def _checked(pose: np.ndarray) -> np.ndarray:
    """Return a new finite pose, (7,), with a unit quaternion; refuse any other."""
    length = float(np.linalg.norm(pose[3:]))
    if not np.isfinite(pose).all() or length < 1e-6:
        raise SettingError(
            f"pose {pose.tolist()}; valid: finite numbers, and a quaternion that is not"
            " zero",
            "to",
        )
    return np.r_[pose[:3], pose[3:] / length]
