"""Joint trajectories: checked by make_trajectory, sampled at any time.

In shapes k is the number of points, n the number of joints.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import comb
from typing import Any, NamedTuple

import numpy as np

from dyn_core.control.joint_limits import JointLimits
from dyn_core.errors import SHOWN, TrajectoryError
from dyn_core.sharing import cached_property
from dyn_core.validation import known_keywords

METHODS = ("splines", "none")
MOST_POINTS = 100_000
LONGEST = 86_400.0  # maximum duration of a trajectory, and wait for its start [s]
BLOCK = 1000  # number of pieces computed at once, so that they fit in the cache


def power_rows(s: float) -> np.ndarray:
    """Return powers s^0 to s^5, and their first and second derivatives, (3, 6)."""
    s2 = s * s
    s3, s4 = s2 * s, s2 * s2
    return np.array(
        (
            (1.0, s, s2, s3, s4, s4 * s),
            (0.0, 1.0, 2 * s, 3 * s2, 4 * s3, 5 * s4),
            (0.0, 0.0, 2.0, 6 * s, 12 * s2, 20 * s3),
        )
    )


class Reference(NamedTuple):
    """Reference at one time: position, velocity, acceleration, (n,) each."""

    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray


@known_keywords
@dataclass(frozen=True, eq=False)
class Trajectory:
    """Trajectory points of joints with one coordinate, in the order of the controller.

    Interpolation is linear for positions alone, cubic with velocities, and quintic with
    accelerations. After the end the last position is the reference. The constructor
    checks nothing; make_trajectory does.

    Attributes:
        times: Times of the points from the start, strictly increasing, (k,) [s].
        q: Positions, (k, n).
        qd, qdd: Velocities and accelerations, (k, n), or None.
        method: splines, or none (at each point, jumps to the position of the next).
        limits: JointLimits of the follower that checked it; None if no follower did,
            as after the function make_trajectory.
        effort: Feed-forward efforts at the points, (k, n), linear between them and
            constant before the first and after the last; None if absent.
    """

    times: np.ndarray
    q: np.ndarray
    qd: np.ndarray | None
    qdd: np.ndarray | None
    method: str = "splines"
    limits: JointLimits | None = None
    effort: np.ndarray | None = None

    @property
    def duration(self) -> float:
        """Time of the last point [s]."""
        return float(self.times[-1])

    def moved(self, shift: np.ndarray) -> Trajectory:
        """Return the trajectory shifted by a displacement, (n,), e.g. whole turns.

        Its other fields stay. The trajectory itself if the displacement is zero.

        Args:
            shift: Added to all positions, in the joint order of `q` [rad | m].
        """
        if not shift.any():
            return self
        pieces = self.pieces.copy()
        pieces[:, 0] += shift
        moved = replace(self, q=self.q + shift)
        moved.__dict__["pieces"] = pieces  # fill the cache: only constants have changed
        return moved

    def sample(self, t: float) -> Reference:
        """Return the reference at time t since the start [s].

        It is at rest at the first position before the first point, and at the last
        position from the last point on, even if this point has a velocity; with method
        none, at rest at the position of the first point later than t.
        """
        k = int(self.times.searchsorted(t, side="right")) - 1
        last = len(self.times) - 1
        if 0 <= k < last and self.method != "none":
            return Reference(*(power_rows(t - float(self.times[k])) @ self.pieces[k]))
        point = last if k >= last else k + 1
        q = self.q[max(point, 0)].copy()
        return Reference(q, 0 * q, 0 * q)

    def sample_effort(self, t: float) -> np.ndarray:
        """Return the feed-forward effort at time t since the start, (n,) [N·m | N].

        Zeros if the trajectory has no efforts.
        """
        if self.effort is None:
            return np.zeros(self.q.shape[1])
        k = int(np.clip(np.searchsorted(self.times, t), 1, max(len(self.times) - 1, 1)))
        if len(self.times) == 1:
            return self.effort[0].copy()
        first, last = self.times[k - 1], self.times[k]
        share = min(max((t - first) / (last - first), 0.0), 1.0)
        return (1 - share) * self.effort[k - 1] + share * self.effort[k]

    def window(self, start: float, end: float) -> tuple[np.ndarray, np.ndarray]:
        """Return start times (p,) and coefficients (p, 6, n) of p pieces of a window.

        The first start time is `start`, the others are the points between it and `end`.
        Coefficients are in ascending powers of the time since each start [s]. Before
        the first and after the last point the position is constant.
        """
        low = np.searchsorted(self.times, start, side="right")
        high = np.searchsorted(self.times, end, side="left")
        starts = np.concatenate([[start], self.times[low:high]])
        c = np.zeros((len(starts), 6, self.q.shape[1]))
        k = np.searchsorted(self.times, starts, side="right") - 1
        before, after = k < 0, k >= len(self.times) - 1
        c[before, 0], c[after, 0] = self.q[0], self.q[-1]
        inside = ~(before | after)
        s = (starts - self.times[k])[inside, None]
        pieces = self.pieces[k[inside]]
        for i in range(self.order):
            for j in range(i, self.order):
                c[inside, i] += comb(j, i) * s ** (j - i) * pieces[:, j]
        return starts, c

    @property
    def order(self) -> int:
        """Number of coefficients of a piece that may be nonzero: 1, 2, 4 or 6.

        1 with method none, 2 for positions alone, 4 with velocities, 6 with
        accelerations.
        """
        if self.method == "none":
            return 1
        return 2 if self.qd is None else 4 if self.qdd is None else 6

    def check(self, limits: JointLimits) -> None:
        """Raise a TrajectoryError if the motion between points exceeds the limits.

        They are those of position and velocity, see JointLimits.check_pieces.
        """
        c = self.pieces[:, : self.order]
        limits.check_pieces(
            np.diff(self.times), c, lambda k: f"between points {k} and {k + 1}"
        )

    @cached_property
    def pieces(self) -> np.ndarray:
        """Coefficients of the polynomial from each point to the next, (k - 1, 6, n).

        They are in ascending powers of the time since the piece began [s]; cached.
        """
        count = len(self.times) - 1
        c = np.zeros((6, count, self.q.shape[1]))
        with np.errstate(all="ignore"):  # the checks refuse overflow
            for k in range(0, count, BLOCK):
                end = min(k + BLOCK, count)
                self._fill(c[:, k:end], slice(k, end), slice(k + 1, end + 1))
        return c.transpose(1, 0, 2)

    def _fill(self, c: np.ndarray, first: slice, last: slice) -> None:
        """Write the pieces from points first to last into zeros c, (6, pieces, n)."""
        T = (self.times[last] - self.times[first])[:, None]
        c[0] = p0 = self.q[first]
        d = self.q[last] - p0
        if self.method == "none":
            c[0] = self.q[last]
            return
        if self.qd is None:
            c[1] = d / T
            return
        c[1] = v0 = self.qd[first]
        v1 = self.qd[last]
        if self.qdd is None:
            c[2] = (3 * d - (2 * v0 + v1) * T) / T**2
            c[3] = (-2 * d + (v0 + v1) * T) / T**3
            return
        a0, a1 = self.qdd[first], self.qdd[last]
        c[2] = a0 / 2
        c[3] = (20 * d - (8 * v1 + 12 * v0) * T - (3 * a0 - a1) * T**2) / (2 * T**3)
        c[4] = -30 * d + (14 * v1 + 16 * v0) * T + (3 * a0 - 2 * a1) * T**2
        c[4] /= 2 * T**4
        c[5] = (12 * d - 6 * (v1 + v0) * T - (a0 - a1) * T**2) / (2 * T**5)


def trajectory_of_pieces(times: np.ndarray, pieces: np.ndarray) -> Trajectory:
    """Return a trajectory with given polynomials; nothing is checked.

    Its points have the positions and velocities of the pieces, and no accelerations, so
    powers above three count in `sample` only, not in `window` and `check`. `times`
    (p + 1,) [s] end with the end of the last piece; `pieces` (p, 6, n), not copied, are
    coefficients in ascending powers of the time since a piece began.
    """
    ends = power_rows(float(times[-1] - times[-2])) @ pieces[-1]
    q, qd = (np.vstack([pieces[:, i], ends[i]]) for i in range(2))
    made = Trajectory(times, q, qd, None)
    made.__dict__["pieces"] = pieces  # fill the cache: points do not determine them
    return made


@known_keywords
def make_trajectory(
    joints: Sequence[str],
    names: Sequence[str],
    times: Any,
    positions: Any,
    velocities: Any = (),
    accelerations: Any = (),
    *,
    effort: Any = (),
    lower: np.ndarray | None = None,
    upper: np.ndarray | None = None,
    velocity: np.ndarray | None = None,
    method: str = "splines",
    moving_end: bool = False,
) -> Trajectory:
    """Return a checked trajectory in the joint order of the controller.

    Args:
        joints: Joints of the controller.
        names: Joints of the columns; each of `joints` once, in any order.
        times: Times of the points from the start, (k,), strictly increasing, >= 0, at
            most a day [s]; at most 100,000 points.
        positions, velocities, accelerations: One row per point, (k, n) [rad | m],
            [rad/s | m/s], [rad/s² | m/s²]; the last two may be empty, but accelerations
            need velocities.
        effort: Feed-forward efforts, one row per point, or empty [N·m | N].
        lower, upper: Position limits in the controller's order, (n,), checked at the
            points and between them; None: no limits [rad | m].
        velocity: Velocity limits in the same order; None: no limits [rad/s | m/s].
        method: splines or none.
        moving_end: Whether the last point may have a velocity.

    Raises:
        TrajectoryError: The trajectory is invalid or exceeds a limit; names the point
            or joint and the valid values.
        ValueError: An array of limits has another size.
        SettingError: There is no such keyword.
    """
    if method not in METHODS:
        raise TrajectoryError(f"interpolation '{method}'; valid: {', '.join(METHODS)}")
    order = _order(joints, names)
    t = _times(times)
    q = _ordered("positions", positions, t, order, joints)
    if q is None:
        raise TrajectoryError("every point needs positions")
    qd = _ordered("velocities", velocities, t, order, joints)
    qdd = _ordered("accelerations", accelerations, t, order, joints)
    if qdd is not None and qd is None:
        raise TrajectoryError("accelerations without velocities")
    if qd is not None and not moving_end and np.abs(qd[-1]).max(initial=0) > 1e-9:
        raise TrajectoryError(
            "the last point has a velocity; end at rest or set"
            " allow_nonzero_velocity_at_trajectory_end"
        )
    limits = JointLimits.of_arrays(joints, lower, upper, velocity)
    limits.check_points(q)
    added = _ordered("efforts", effort, t, order, joints)
    trajectory = Trajectory(t, q, qd, qdd, method, effort=added)
    trajectory.check(limits)
    return trajectory


def point_rows(what: str, rows: Any, width: int | None = None) -> np.ndarray:
    """Return rows of numbers, one per point, as an array (k, width).

    TrajectoryError: a row is no sequence of numbers, or not of length `width` (None:
    that of the first row). The shape is (k, 0) if all rows are empty. Numbers that are
    not finite pass.
    """
    if isinstance(rows, np.ndarray) and rows.ndim == 2 and rows.dtype.kind in "fiub":
        sizes = np.full(len(rows), rows.shape[1])
        flat = np.asarray(rows, float).ravel()
    else:
        k, numbers = 0, array("d")
        try:
            sizes = np.array([len(row) for row in rows], int)
            for row in rows:
                numbers.extend(row)
                k += 1
        except (TypeError, ValueError, OverflowError) as error:
            message = f"point {k}: {what} are not rows of numbers"
            raise TrajectoryError(message) from error
        flat = np.frombuffer(numbers) if numbers else np.zeros(0)
    if not sizes.any():
        return np.zeros((len(sizes), 0))
    width = int(sizes[0]) if width is None else width
    wrong = np.flatnonzero(sizes != width)
    if wrong.size:
        k = wrong[0]
        raise TrajectoryError(
            f"point {k} has {sizes[k]} {what}; needs {width} (all alike)"
        )
    return flat.reshape(-1, width)


def _times(times: Any) -> np.ndarray:
    """Return the times of the points as an array, (k,).

    TrajectoryError unless they are 1 to MOST_POINTS numbers, finite, >= 0, strictly
    increasing and at most LONGEST.
    """
    try:
        t = np.array(times, float)
    except (TypeError, ValueError, OverflowError) as error:
        raise TrajectoryError("times are not numbers, one per point") from error
    if t.ndim != 1 or len(t) == 0:
        raise TrajectoryError("the trajectory has no points")
    if len(t) > MOST_POINTS:
        raise TrajectoryError(f"{len(t)} points; valid: at most {MOST_POINTS}")
    before = np.concatenate([[-np.inf], t[:-1]])
    bad = np.flatnonzero(~(np.isfinite(t) & (t >= 0) & (t > before)))
    if bad.size:
        k = bad[0]
        after = f" after {t[k - 1]:.9g} s" if k else ""
        raise TrajectoryError(
            "times must be finite, >= 0 and increase:"
            f" point {k} is due at {t[k]:.9g} s{after}"
        )
    if t[-1] > LONGEST:
        k = int(np.argmax(t > LONGEST))
        raise TrajectoryError(
            f"point {k} is due at {t[k]:.9g} s; valid: at most {LONGEST:.6g} s, a day"
        )
    return t


def _order(joints: Sequence[str], names: Sequence[str]) -> list[int]:
    """Return the index in `names` of each of `joints`; refuse names that differ."""
    names = list(names)
    known, named = set(joints), set(names)
    unknown = [name for name in names if name not in known]
    missing = [name for name in joints if name not in named]
    double = sorted(name for name, count in Counter(names).items() if count > 1)
    for what, faulty in (
        ("unknown", unknown),
        ("missing", missing),
        ("double", double),
    ):
        if faulty:
            shown, valid = _listed(faulty), _listed(joints)
            raise TrajectoryError(f"{what} joints {shown}; needs {valid}")
    return [names.index(name) for name in joints]


def _listed(names: Sequence[str]) -> str:
    """Return the first SHOWN (12) names joined by commas; of more, also how many."""
    more = f", ... ({len(names)} in all)" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _ordered(
    what: str, rows: Any, t: np.ndarray, order: list[int], joints: Sequence[str]
) -> np.ndarray | None:
    """Return rows in the controller's joint order, (k, n); None if all are empty."""
    checked = point_rows(what, rows, len(order))
    if not checked.size:
        return None
    if len(checked) != len(t):
        raise TrajectoryError(f"{len(t)} times but {len(checked)} rows of {what}")
    checked = checked[:, order]
    bad = np.argwhere(~np.isfinite(checked))
    if bad.size:
        k, j = bad[0]
        raise TrajectoryError(
            f"point {k}: {what} are not finite: {checked[k, j]} for '{joints[j]}'"
        )
    return checked
