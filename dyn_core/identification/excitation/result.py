"""Result of a design: a trajectory, checked at 1 kHz, as message, file and figure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dyn_core.control.reference.trajectory import Trajectory, power_rows
from dyn_core.errors import SettingError
from dyn_core.identification.excitation.conditioning import condition_number
from dyn_core.identification.excitation.fourier import Fourier
from dyn_core.identification.excitation.limits import BrokenLimit, MotionLimits
from dyn_core.identification.excitation.link_pairs import LinkPairs, NearPair
from dyn_core.identification.regressor_rank import BaseParameters
from dyn_core.model import Model
from dyn_core.plots import plot_motion
from dyn_core.solving.registry import solver
from dyn_core.validation import writing
from dyn_core.validation.file_names import check_file_name

CHECKED = 1e-3  # maximum time between samples of the check [s]


@dataclass(frozen=True)
class CostlyJoint:
    """A joint without which the other parameters are distinguished much better.

    Bodies that follow it count as its own. `rank` is that of the robot with this joint
    locked, `random_condition` the smallest condition number of its random motions.
    """

    name: str
    rank: int
    random_condition: float


@dataclass(frozen=True, eq=False)
class Excitation:
    """A motion that excites the base parameters of a robot.

    Attributes:
        names: Joint of each column.
        trajectory: Trajectory with quintic interpolation between its points.
        tau: Joint forces at the points, with joint friction and springs, (points, nv)
            [N·m | N].
        series: Duration and number of harmonics.
        start: Positions at start and end, (nv,) [rad | m].
        even, odd: Coefficients a and b of start + sum_k a_k (cos k w t - 1) + b_k sin k
            w t, (harmonics, nv).
        base: Base parameters that it was designed for.
        condition: Condition number of their regressor over the points, columns scaled
            to unit length.
        random_condition: Smallest condition number of the random motions at the
            beginning of the design.
        limits: Joint limits.
        distance: Smallest distance of links [m]; infinite if there are no pairs.
        pairs: Number of pairs of collision shapes that were checked.
        near: Pairs whose capsules are too close at the start: their hulls or meshes
            were checked, or nothing where they touch at the start.
        broken: Violated limits, also between the points: the worst violation of each,
            the largest relative to its limit first.
        costly: Joint that increases a large condition number most, if one does; else
            None.
    """

    names: tuple[str, ...]
    trajectory: Trajectory
    tau: np.ndarray
    series: Fourier
    start: np.ndarray
    even: np.ndarray
    odd: np.ndarray
    base: BaseParameters
    condition: float
    random_condition: float
    limits: MotionLimits
    distance: float
    pairs: int
    near: tuple[NearPair, ...]
    broken: tuple[BrokenLimit, ...]
    costly: CostlyJoint | None = None

    @property
    def kept(self) -> bool:
        """Whether all limits are satisfied."""
        return not self.broken

    @property
    def left_out(self) -> tuple[tuple[str, str], ...]:
        """Names of both links of each pair that touches at the start.

        These pairs are not checked. Each pair of links occurs once.
        """
        pairs = [pair.links for pair in self.near if pair.by == "nothing"]
        return tuple(dict.fromkeys(pairs))

    @property
    def t(self) -> np.ndarray:
        """Times of the points, (points,) [s]."""
        return self.trajectory.times

    @property
    def q(self) -> np.ndarray:
        """Positions at the points, (points, nv) [rad | m]."""
        return self.trajectory.q

    @property
    def qd(self) -> np.ndarray:
        """Velocities at the points, (points, nv) [rad/s | m/s]."""
        return np.asarray(self.trajectory.qd)

    @property
    def qdd(self) -> np.ndarray:
        """Accelerations at the points, (points, nv) [rad/s² | m/s²]."""
        return np.asarray(self.trajectory.qdd)

    def message(self) -> dict[str, Any]:
        """Return joint_names and points of a JointTrajectory message, without header.

        Efforts are empty; times are whole nanoseconds, as sec and nanosec. Violated
        limits are not refused.
        """
        points = []
        for t, *row in zip(self.t, self.q, self.qd, self.qdd, strict=True):
            sec, nanosec = divmod(round(float(t) * 1e9), 10**9)
            kinds = ("positions", "velocities", "accelerations")
            rows = {k: x.tolist() for k, x in zip(kinds, row, strict=True)}
            stamp = {"sec": sec, "nanosec": nanosec}
            points.append({**rows, "effort": [], "time_from_start": stamp})
        return {"joint_names": list(self.names), "points": points}

    def write(self, path: str | Path) -> None:
        """Write the trajectory as JSON, which `dyn feed-forward` and nodes read.

        Args:
            path: Name that ends with .json; an existing file is replaced.

        Raises:
            SettingError: Limits are violated, the name or folder is invalid, or the
                file cannot be written.
        """
        check_file(path)
        if self.broken:
            raise SettingError(
                f"{path} is not written: {self.broken[0]}"
                + (f", and {len(self.broken) - 1} more" if self.broken[1:] else "")
            )
        with writing(path, "out"):
            Path(path).write_text(json.dumps(self.message()) + "\n", encoding="utf-8")

    def plot(self, title: str = "") -> Any:
        """Return a matplotlib figure of the motion and its joint forces.

        It shows positions, velocities, accelerations and joint forces, limits for the
        forces only, under `title`; empty: none.

        Raises UnsupportedError if matplotlib is not installed.
        """
        columns = {"q": self.q, "qd": self.qd, "qdd": self.qdd, "tau": self.tau}
        labels = dict.fromkeys(columns, self.names)
        return plot_motion(
            self.t, columns, labels, {"tau": self.limits.effort}, title=title
        )


def check_file(path: str | Path) -> None:
    """Refuse a trajectory file, before it is computed: not .json, or without folder."""
    check_file_name(path, [".json"], "out")


class DenseCheck:
    """Checks motions at 1 kHz, interpolated as by a controller."""

    def __init__(
        self,
        model: Model,
        base: BaseParameters,
        limits: MotionLimits,
        links: LinkPairs,
        period: float,
        engine: str | None = None,
    ) -> None:
        """Build the Programs.

        Args:
            model: Robot.
            base: Base parameters.
            limits: Limits to check.
            links: Pairs of links to check.
            period: Time between points, rounded so that it divides the duration [s];
                above 0, which is not checked.
            engine: Engine of the Programs; None: the default.

        Raises UnsupportedError for an unknown engine or a robot with loops.
        """
        self.base, self.limits, self.links = base, limits, links
        self.period = period
        self.forces = solver("rnea").build(
            model, joint_friction=True, joint_springs=True, engine=engine
        )
        names = set(base.names)
        joints = model.joint_names
        friction = any(f"{name}.damping" in names for name in joints)
        rotors = any(f"{name}.armature" in names for name in joints)
        self.regressor = solver("regressor").build(
            model, friction=friction, rotors=rotors, engine=engine
        )

    def excitation(
        self, series: Fourier, c: np.ndarray, random_condition: float
    ) -> Excitation:
        """Return a motion as an Excitation, with all limits that it violates.

        Joint limits and distances are checked along the interpolated trajectory, at
        most 1e-3 s (CHECKED) apart; the largest violation, relative to its limit, comes
        first. c, (series.size, nv), is start, then coefficients of the series.
        """
        count = max(10, round(series.duration / self.period))
        t = np.linspace(0.0, series.duration, count + 1)
        q, qd, qdd = (matrix @ c for matrix in series.matrices(t))
        for row in (qd, qdd):
            row[[0, -1]] = 0.0  # zero but for rounding
        q[-1] = q[0]
        trajectory = Trajectory(t, q, qd, qdd)
        rows = self.rows(trajectory)
        dense = dense_samples(trajectory)
        tau = np.asarray(self.forces(*dense[1:]))
        broken = self.limits.broken(*dense, tau)
        distance, pairs, too_close = self._distances(*dense[:2])
        broken += too_close
        broken.sort(key=lambda x: -abs(x.value - x.limit) / max(abs(x.limit), 1e-3))
        even, odd = series.coefficients(c)
        return Excitation(
            self.limits.names, trajectory, np.asarray(self.forces(q, qd, qdd)), series,
            q[0], even, odd, self.base, condition_number(rows),
            random_condition, self.limits, distance, pairs, self.links.near,
            tuple(broken),
        )  # fmt: skip

    def rows(self, trajectory: Trajectory) -> np.ndarray:
        """Return the base regressor at a trajectory's points, (points * nv, rank).

        Columns are base.independent; the rows of a point follow each other.
        """
        states = trajectory.q, np.asarray(trajectory.qd), np.asarray(trajectory.qdd)
        Y = np.asarray(self.regressor(*states))[:, :, list(self.base.independent)]
        return Y.reshape(-1, Y.shape[2])

    def _distances(
        self, t: np.ndarray, q: np.ndarray
    ) -> tuple[float, int, list[BrokenLimit]]:
        """Return smallest distance [m], number of pairs, and violated distances.

        The smallest distance is infinite without pairs. Each violated pair is listed
        once, at its smallest distance.
        """
        values = self.links.distances(q).values.T
        links = zip(self.links.links, self.links.limits, values, strict=True)
        checked: list[Any] = [("distance", *each) for each in links]
        for pair, apart in self.links.of_meshes(q):
            checked.append(("mesh distance", pair.links, pair.limit, apart))
        least, broken = np.inf, []
        for kind, names, limit, apart in checked:
            row = int(apart.argmin())
            least = min(least, float(apart[row]))
            if not apart[row] >= limit:
                place = float(t[row]), float(apart[row]), float(limit)
                broken.append(BrokenLimit(kind, " and ".join(names), *place))
        return least, len(checked), broken


def dense_samples(
    trajectory: Trajectory, step: float = CHECKED
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return times (samples,), q, qd and qdd (samples, joints) along a trajectory.

    They include all its points, which must be evenly spaced, at most `step` [s] apart.
    """
    lengths = np.diff(trajectory.times)
    parts = max(1, int(np.ceil(lengths.max() / step - 1e-9)))
    times, samples = [], []
    for k in range(parts):
        s = k / parts * lengths
        # All pieces have the same length, but for rounding.
        powers = np.array([power_rows(float(x)) for x in s])
        times.append(trajectory.times[:-1] + s)
        samples.append(powers @ trajectory.pieces)
    t = np.concatenate([np.stack(times, axis=1).ravel(), trajectory.times[-1:]])
    both = np.stack(samples, axis=1)  # (pieces, parts, 3, n)
    states = both.reshape(-1, 3, both.shape[-1])
    last = (
        trajectory.q[-1],
        np.asarray(trajectory.qd)[-1],
        np.asarray(trajectory.qdd)[-1],
    )
    q, qd, qdd = (np.concatenate([states[:, k], x[None]]) for k, x in enumerate(last))
    return t, q, qd, qdd
