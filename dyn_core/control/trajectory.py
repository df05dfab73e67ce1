"""Joint trajectories: checked on construction, sampled at any time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from dyn_core.errors import TrajectoryError

METHODS = ("splines", "none")


class Reference(NamedTuple):
    """Reference at one time: position, velocity, acceleration, (n,) each."""

    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Trajectory points of joints with one coordinate, in the order of the controller.

    Interpolation is linear for positions alone, cubic with velocities, and quintic with
    accelerations. After the end the last position is the reference.

    Attributes:
        times: Seconds from the start, strictly increasing, (k,).
        q, qd, qdd: (k, n); qd and qdd may be None.
        method: splines, or none (steps to the position of the next point).
    """

    times: np.ndarray
    q: np.ndarray
    qd: np.ndarray | None
    qdd: np.ndarray | None
    method: str = "splines"

    @property
    def duration(self) -> float:
        """Time of the last point [s]."""
        return float(self.times[-1])

    def starting_from(self, now: Reference) -> Trajectory:
        """Return the trajectory with the present reference as point at time zero."""
        if self.times[0] <= 0:
            return self
        qd = None if self.qd is None else np.vstack([now.qd, self.qd])
        qdd = None if self.qdd is None else np.vstack([now.qdd, self.qdd])
        times, q = np.concatenate([[0.0], self.times]), np.vstack([now.q, self.q])
        return Trajectory(times, q, qd, qdd, self.method)

    def sample(self, t: float) -> Reference:
        """Return the reference at a time since the start [s]."""
        zeros = np.zeros(self.q.shape[1])
        if t >= self.times[-1]:
            return Reference(self.q[-1].copy(), zeros, zeros.copy())
        k = int(np.searchsorted(self.times, t, side="right")) - 1
        if k < 0:
            return Reference(self.q[0].copy(), zeros, zeros.copy())
        if self.method == "none":
            return Reference(self.q[k + 1].copy(), zeros, zeros.copy())
        s = t - float(self.times[k])
        s2, s3, s4, s5 = s * s, s**3, s**4, s**5
        powers = (
            (1.0, s, s2, s3, s4, s5),
            (0.0, 1.0, 2 * s, 3 * s2, 4 * s3, 5 * s4),
            (0.0, 0.0, 2.0, 6 * s, 12 * s2, 20 * s3),
        )
        return Reference(*(np.array(powers) @ self._pieces[k]))

    @cached_property
    def _pieces(self) -> np.ndarray:
        """Coefficients of the polynomial of each piece, (pieces, 6, n)."""
        T = np.diff(self.times)[:, None]
        p0, d = self.q[:-1], np.diff(self.q, axis=0)
        c = np.zeros((len(d), 6, d.shape[1]))
        c[:, 0] = p0
        if self.qd is None:
            c[:, 1] = d / T
            return c
        c[:, 1] = v0 = self.qd[:-1]
        v1 = self.qd[1:]
        if self.qdd is None:
            c[:, 2] = (3 * d - (2 * v0 + v1) * T) / T**2
            c[:, 3] = (-2 * d + (v0 + v1) * T) / T**3
            return c
        a0, a1 = self.qdd[:-1], self.qdd[1:]
        c[:, 2] = a0 / 2
        c[:, 3] = (20 * d - (8 * v1 + 12 * v0) * T - (3 * a0 - a1) * T**2) / (2 * T**3)
        c[:, 4] = -30 * d + (14 * v1 + 16 * v0) * T + (3 * a0 - 2 * a1) * T**2
        c[:, 4] /= 2 * T**4
        c[:, 5] = (12 * d - 6 * (v1 + v0) * T - (a0 - a1) * T**2) / (2 * T**5)
        return c


def make_trajectory(
    joints: Sequence[str],
    names: Sequence[str],
    times: Any,
    positions: Any,
    velocities: Any = (),
    accelerations: Any = (),
    *,
    lower: np.ndarray | None = None,
    upper: np.ndarray | None = None,
    method: str = "splines",
    moving_end: bool = False,
) -> Trajectory:
    """Return a checked trajectory in the order of the controller.

    Args:
        joints: The controller's joints.
        names: Joints of the columns, each of `joints` once, in any order.
        times: Seconds from the start of each point, strictly increasing, >= 0.
        positions, velocities, accelerations: One row per point; the last two may be
            empty.
        lower, upper: Position limits in the controller's order [rad | m].
        method: splines or none.
        moving_end: Whether the last point may have a velocity.

    Raises:
        TrajectoryError: The trajectory is invalid; names the point or joint and the
            valid values.
    """
    if method not in METHODS:
        raise TrajectoryError(f"interpolation '{method}'; valid: {', '.join(METHODS)}")
    order = _order(joints, names)
    t = np.asarray(times, float)
    if t.ndim != 1 or len(t) == 0:
        raise TrajectoryError("the trajectory has no points")
    if not np.isfinite(t).all() or t[0] < 0 or (np.diff(t) <= 0).any():
        raise TrajectoryError(
            f"times must be finite, >= 0 and increase, got {t.tolist()}"
        )
    q = _rows("positions", positions, t, order, joints)
    if q is None:
        raise TrajectoryError("every point needs positions")
    qd = _rows("velocities", velocities, t, order, joints)
    qdd = _rows("accelerations", accelerations, t, order, joints)
    if qdd is not None and qd is None:
        raise TrajectoryError("accelerations without velocities")
    if qd is not None and not moving_end and np.abs(qd[-1]).max(initial=0) > 1e-9:
        raise TrajectoryError(
            "the last point has a velocity; end at rest or set"
            " allow_nonzero_velocity_at_trajectory_end"
        )
    _check_limits(q, joints, lower, upper)
    return Trajectory(t, q, qd, qdd, method)


def _order(joints: Sequence[str], names: Sequence[str]) -> list[int]:
    """Return the column of each joint."""
    names = list(names)
    unknown = [name for name in names if name not in joints]
    missing = [name for name in joints if name not in names]
    double = sorted({name for name in names if names.count(name) > 1})
    for what, faulty in (
        ("unknown", unknown),
        ("missing", missing),
        ("double", double),
    ):
        if faulty:
            valid = ", ".join(joints)
            raise TrajectoryError(f"{what} joints {', '.join(faulty)}; needs {valid}")
    return [names.index(name) for name in joints]


def _rows(
    what: str,
    rows: Sequence[Any],
    t: np.ndarray,
    order: list[int],
    joints: Sequence[str],
) -> np.ndarray | None:
    """Return rows in the order of the controller, or None if all are empty."""
    rows = [np.asarray(row, float) for row in rows]
    if all(row.size == 0 for row in rows):
        return None
    if len(rows) != len(t):
        raise TrajectoryError(f"{len(t)} times but {len(rows)} rows of {what}")
    for k, row in enumerate(rows):
        if row.shape != (len(order),):
            raise TrajectoryError(
                f"point {k} has {row.size} {what}; needs {len(order)} (all alike)"
            )
        if not np.isfinite(row).all():
            raise TrajectoryError(f"point {k}: {what} are not finite: {row.tolist()}")
    return np.array(rows)[:, order]


def _check_limits(
    q: np.ndarray,
    joints: Sequence[str],
    lower: np.ndarray | None,
    upper: np.ndarray | None,
) -> None:
    """Raise a TrajectoryError for points outside the position limits."""
    n = q.shape[1]
    low = np.full(n, -np.inf) if lower is None else lower
    high = np.full(n, np.inf) if upper is None else upper
    bad = np.argwhere((q < low - 1e-9) | (q > high + 1e-9))
    if len(bad):
        k, j = bad[0]
        raise TrajectoryError(
            f"point {k}: joint '{joints[j]}' at {q[k, j]:.6g} is outside its limits"
            f" [{low[j]:.6g}, {high[j]:.6g}]"
        )
