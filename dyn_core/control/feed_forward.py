"""Feed-forward efforts at the points of a trajectory, by inverse dynamics.

Arrays (k, n) have a row for each of k points, a column for each of n joints.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dyn_core.control.law_programs import check_joints
from dyn_core.control.reference.trajectory import (
    MOST_POINTS,
    Trajectory,
    make_trajectory,
)
from dyn_core.errors import (
    SettingError,
    TrajectoryError,
    unknown_name,
)
from dyn_core.model import Model
from dyn_core.problems import INVERSE_DYNAMICS
from dyn_core.solving.registry import solver_of


class FeedForward:
    """Computes the efforts of trajectories by inverse dynamics.

        effort_k = ID(q_k, qd_k, qdd_k)

    Velocity and acceleration are the derivatives of the interpolation at point k:
    linear for positions alone, cubic with velocities, quintic with accelerations. Where
    the derivative jumps at a point, the mean of both sides is used. Joint springs act.

    Joints have one coordinate. `hold` has the positions of joints that a trajectory may
    omit, by name [rad | m]. SettingError: a joint has several coordinates, or `hold`
    names an unknown joint.
    """

    def __init__(
        self,
        model: Model,
        hold: Mapping[str, float] | None = None,
        inverse_dynamics: Any = "auto",
        engine: str | None = None,
        joint_friction: bool = True,
    ) -> None:
        check_joints(model)
        self.model, self.hold = model, dict(hold or {})
        for name in self.hold:
            if name not in model.joint_names:
                message = unknown_name("joint", name, model.joint_names)
                raise SettingError(f"hold: {message}", "hold")
        self.program = solver_of(inverse_dynamics, INVERSE_DYNAMICS).build(
            model, engine=engine, joint_friction=joint_friction, joint_springs=True
        )

    def trajectory(
        self, names: Sequence[str], times: Any, *rows: Any, period: float = 0.0
    ) -> Trajectory:
        """Return a trajectory with efforts, its columns in the order of `names`.

        Joint limits are not checked, and the last point may have a velocity. Other
        joints are at `hold`. `rows` are positions and optionally velocities and
        accelerations, (k, n) each. Points at most `period` [s] apart are inserted on
        the same motion, so that efforts are exact there, too; 0: none.
        """
        known = [name for name in self.model.joint_names if name in names]
        lacking = {*self.model.joint_names} - {*names} - {*self.hold}
        if lacking:
            missing = [x for x in self.model.joint_names if x in lacking]
            raise TrajectoryError(
                f"joints {', '.join(missing)} are missing; valid: all joints of the"
                " robot, or a position at which each that is missing is held"
            )
        made = make_trajectory(known, names, times, *rows, moving_end=True)
        made = with_points(made, period) if period > 0 else made
        effort = self.effort(made, known)
        columns = [known.index(name) for name in names]
        return replace(
            made,
            q=made.q[:, columns],
            qd=None if made.qd is None else made.qd[:, columns],
            qdd=None if made.qdd is None else made.qdd[:, columns],
            effort=effort[:, columns],
        )

    def effort(self, trajectory: Trajectory, joints: Sequence[str]) -> np.ndarray:
        """Return the efforts of a trajectory's joints at its points, (k, n) [N·m | N].

        Joints that the trajectory omits are at their positions in `hold`, else at 0.
        """
        model = self.model
        rest = [self.hold.get(name, 0.0) for name in model.joint_names]
        columns = [model.joint_names.index(name) for name in joints]
        q = np.tile(np.array(rest, float), (len(trajectory.times), 1))
        qd, qdd = np.zeros_like(q), np.zeros_like(q)
        q[:, columns] = trajectory.q
        qd[:, columns], qdd[:, columns] = motion_at_points(trajectory)
        effort = np.asarray(self.program(q, qd, qdd), float)[:, columns]
        bad = np.argwhere(~np.isfinite(effort))
        if bad.size:
            k, j = bad[0]
            raise TrajectoryError(f"point {k}: no finite effort of '{joints[j]}'")
        return effort

    def excess(self, effort: np.ndarray, joints: Sequence[str]) -> list[str]:
        """Return a sentence for each joint with an effort above its limit (> 0)."""
        lines = []
        for j, name in enumerate(joints):
            limit = float(self.model.effort_limit[self.model.v_slice(name)][0])
            k = int(np.abs(effort[:, j]).argmax())
            if limit > 0 and abs(effort[k, j]) > limit:
                lines.append(
                    f"joint '{name}' needs {effort[k, j]:.6g} at point {k}, its effort"
                    f" limit is {limit:.6g}"
                )
        return lines


def motion_at_points(trajectory: Trajectory) -> tuple[np.ndarray, np.ndarray]:
    """Return velocity and acceleration of the interpolation at the points, (k, n) each.

    Given ones are returned as they are. Inner points get the mean of the two adjacent
    polynomials, a single point gets zeros.
    """
    shape = trajectory.q.shape
    if len(trajectory.times) == 1:
        single = (trajectory.qd, trajectory.qdd)
        qd, qdd = (np.zeros(shape) if x is None else x.copy() for x in single)
        return qd, qdd
    c, T = trajectory.pieces, np.diff(trajectory.times)[:, None]
    after = c[:, 1], 2 * c[:, 2]
    before = (
        sum(i * c[:, i] * T ** (i - 1) for i in range(1, 6)),
        sum(i * (i - 1) * c[:, i] * T ** (i - 2) for i in range(2, 6)),
    )
    exact = trajectory.qd, trajectory.qdd
    return tuple(  # type: ignore[return-value]
        _met(left, right) if given_rows is None else given_rows
        for left, right, given_rows in zip(before, after, exact, strict=True)
    )


def _met(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Return values at points, (k, n), of pieces, (k - 1, n); inner ones are means."""
    inner = (before[:-1] + after[1:]) / 2
    return np.concatenate([after[:1], inner, before[-1:]])


def with_points(trajectory: Trajectory, period: float) -> Trajectory:
    """Return the same motion with points at most `period` apart; refuse over 100,000.

    An inserted point has those of position, velocity and acceleration of the polynomial
    there that the trajectory has; efforts, if any, are interpolated linearly. A
    controller with the same interpolation moves as before.
    """
    times = trajectory.times
    # Without 1e-9 rounding would add a point where the quotient is a whole number.
    counts = np.maximum(np.ceil(np.diff(times) / period - 1e-9), 1.0)
    if counts.sum() + 1 > MOST_POINTS:
        raise TrajectoryError(
            f"a point every {period:g} s is {counts.sum() + 1:.0f} points; valid: at"
            f" most {MOST_POINTS}"
        )
    rows = []
    for k, count in enumerate(counts.astype(int)):
        spans = np.linspace(times[k], times[k + 1], count, endpoint=False)
        inner = [(float(t), trajectory.sample(float(t))) for t in spans[1:]]
        rows += [(float(times[k]), _point(trajectory, k)), *inner]
    rows.append((float(times[-1]), _point(trajectory, len(times) - 1)))
    q, qd, qdd = (np.array([row[1][i] for row in rows], float) for i in range(3))
    effort = [trajectory.sample_effort(t) for t, _ in rows]
    return replace(
        trajectory,
        times=np.array([row[0] for row in rows]),
        q=q,
        qd=None if trajectory.qd is None else qd,
        qdd=None if trajectory.qdd is None else qdd,
        effort=None if trajectory.effort is None else np.array(effort),
    )


def _point(trajectory: Trajectory, k: int) -> tuple[np.ndarray, ...]:
    """Return position, velocity and acceleration of point k, (n,); zeros if absent."""
    zero = np.zeros(trajectory.q.shape[1])
    return tuple(
        zero if rows is None else rows[k]
        for rows in (trajectory.q, trajectory.qd, trajectory.qdd)
    )
