"""The design as an optimisation problem: variables in, objective and limits out.

    minimise log cond(Y diag(1 / |Y_k|)) - (signal / n) sum_k log |Y_k|
    so that |c| <= 1

c are positions, velocities, accelerations and joint forces in units of their limits,
and clearances of links over their distances. For a motion with N samples, all rows are
computed by one call of a Program, and the gradient by one call of its adjoint.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dyn_core.identification.excitation.conditioning import level, spread
from dyn_core.identification.excitation.fourier import Fourier
from dyn_core.identification.excitation.kernels import RowsAndPull
from dyn_core.identification.excitation.limits import KINDS, MotionLimits
from dyn_core.identification.excitation.link_pairs import LinkPairs

REACH = (
    0.1  # a distance is one unit short of its clearance when it is this much less [m]
)


class MotionSamples(NamedTuple):
    """Position, velocity, acceleration, (samples, nv) each."""

    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray


class DesignOutcome(NamedTuple):
    """Objective and limits for one choice of variables.

    Attributes:
        value: Objective, with a smooth measure of the condition number.
        excess: Scaled violation of each limit, negative where it is satisfied,
            (constraints,): for each of KINDS upper, then lower limits of all samples;
            last the distances.
        condition: Condition number.
    """

    value: float
    excess: np.ndarray
    condition: float


@dataclass(eq=False)
class DesignProblem:
    """Optimisation problem in variables of Fourier series, scaled to sizes near one.

    Attributes:
        series: Fourier series of all joints.
        limits: Joint limits.
        programs: Rows of the base regressor with joint forces, and their adjoint.
        links: Pairs of links to keep apart, with their minimum distances.
        start: Given positions at the start, (nv,); None: variables.
        dry: Largest dry friction, by which the effort limits are reduced because the
            joint forces omit it, (nv,) [N·m | N].
        samples: Number of samples.
        tightening: Margin of each kind of limit: relative, for distances in [m].
        signal: Weight of the mean logarithm of the columns' lengths.
        power: Exponent of the smooth measure of the condition number.
    """

    series: Fourier
    limits: MotionLimits
    programs: RowsAndPull
    links: LinkPairs
    start: np.ndarray | None
    dry: np.ndarray
    samples: int
    tightening: dict[str, float]
    signal: float = 0.0
    power: float = 8.0

    def __post_init__(self) -> None:
        t = np.arange(self.samples) / self.samples * self.series.duration
        self.matrices = self.series.matrices(t)
        self.nv = len(self.limits.names)
        # A variable of one makes a basis motion as fast as a third of the limit.
        scale = np.tile(self.limits.velocity / 3, (self.series.size, 1))
        scale[0] = self.limits.half
        self.scale = scale
        effort = self.limits.effort - self.dry
        self.sizes = {
            "position": self.limits.half,
            "velocity": self.limits.velocity,
            "acceleration": self.limits.acceleration,
            "effort": np.maximum(effort, 0.05 * self.limits.effort),
        }

    @property
    def count(self) -> int:
        """Number of variables."""
        return (self.series.size - (self.start is not None)) * self.nv

    def coefficients(self, x: np.ndarray) -> np.ndarray:
        """Return the variables of `series`, (size, nv), for the scaled x, (count,)."""
        if self.start is None:
            full = x.reshape(self.series.size, self.nv) * self.scale
            full[0] += self.limits.middle
            return full
        rest = x.reshape(-1, self.nv) * self.scale[1:]
        return np.vstack([self.start, rest])

    def motion(self, x: np.ndarray) -> MotionSamples:
        """Return the samples of the motion for variables x, (count,)."""
        c = self.coefficients(x)
        return MotionSamples(*(matrix @ c for matrix in self.matrices))

    def ratios(self, motion: MotionSamples, tau: np.ndarray) -> list[np.ndarray]:
        """Return limited quantities by their limits, (samples, nv) for each of KINDS.

        Args:
            motion: Samples.
            tau: Joint forces, (samples, nv).
        """
        q, qd, qdd = motion
        values = ((q - self.limits.middle), qd, qdd, tau)
        return [
            value / self.sizes[kind] for kind, value in zip(KINDS, values, strict=True)
        ]

    def random(self, rng: np.random.Generator) -> np.ndarray:
        """Return random variables of a motion within the joint limits, (count,).

        Effort limits and distances are not considered.
        """
        x = rng.normal(size=(self.series.size, self.nv))
        x[0] = rng.uniform(-0.5, 0.5, self.nv)
        if self.start is not None:
            x = x[1:]
        motion = self.motion(x.ravel())
        first = motion.q[0]
        room = np.minimum(first - self.limits.lower, self.limits.upper - first)
        away = np.abs(motion.q - first).max(axis=0)
        # Scaled to the nearer end of the range, so that both ends are respected.
        share = np.minimum(
            room / np.maximum(away, 1e-12),
            self.limits.velocity / np.maximum(np.abs(motion.qd).max(axis=0), 1e-12),
        )
        peak = np.abs(motion.qdd).max(axis=0)
        share = np.minimum(share, self.limits.acceleration / np.maximum(peak, 1e-12))
        x[-(self.series.size - 1) :] *= 0.95 * np.maximum(share, 0.0)
        return np.asarray(x.ravel())

    def outcome(self, x: np.ndarray) -> DesignOutcome:
        """Return objective and scaled violations for variables x, (count,)."""
        value, _, excess, condition = self._evaluated(x, None, 0.0)
        return DesignOutcome(value, excess, condition)

    def lagrangian(
        self, x: np.ndarray, multipliers: np.ndarray, weight: float
    ) -> tuple[float, np.ndarray]:
        """Return the augmented Lagrangian and its gradient, (count,).

            value + sum (max(0, l + w e)² - l²) / (2 w)

        Args:
            x: Variables, (count,).
            multipliers: Multiplier l of each limit, in the order of `outcome`.
            weight: Penalty weight w, above 0.
        """
        value, gradient, _, _ = self._evaluated(x, multipliers, weight)
        return value, gradient

    def _evaluated(
        self, x: np.ndarray, multipliers: np.ndarray | None, weight: float
    ) -> tuple[float, np.ndarray, np.ndarray, float]:
        """Return value, gradient, violations and condition number.

        Args:
            x: Variables, (count,).
            multipliers: Multiplier of each limit; None: the plain objective, with an
                empty gradient.
            weight: Penalty weight.
        """
        motion = self.motion(x)
        results = np.asarray(self.programs.rows(*motion))
        N, nv = self.samples, self.nv
        rows, tau = results[:, :-nv].reshape(N * nv, -1), results[:, -nv:]
        measured = spread(rows, self.power)
        height, rise = level(rows)
        slope = measured.slope - self.signal * rise
        ratios = self.ratios(motion, tau)
        excess = [
            np.concatenate([r, -r]) - (1 - self.tightening[kind])
            for kind, r in zip(KINDS, ratios, strict=True)
        ]
        apart = self.links.distances(motion.q) if len(self.links) else None
        if apart is not None:
            wanted = self.links.limits + self.tightening["distance"]
            excess.append((wanted - apart.values) / REACH)
        flat = np.concatenate([e.ravel() for e in excess])
        value = measured.value - self.signal * height
        if multipliers is None:
            return value, np.zeros(0), flat, measured.condition
        push = np.maximum(0.0, multipliers + weight * flat)
        value += float(push @ push - multipliers @ multipliers) / (2 * weight)
        parts, used = [], 0
        for kind in KINDS:
            both = push[used : used + 2 * N * nv].reshape(2, N, nv)
            parts.append((both[0] - both[1]) / self.sizes[kind])
            used += 2 * N * nv
        by_rows = slope.reshape(N, -1)
        pulled = np.asarray(self.programs.pull(*motion, np.hstack([by_rows, parts[3]])))
        slopes = [pulled[:, k * nv : (k + 1) * nv] + parts[k] for k in range(3)]
        if apart is not None:
            weights = -push[used:].reshape(apart.values.shape) / REACH
            slopes[0] = slopes[0] + self.links.gradient(motion.q, apart, weights)
        gradient = sum(
            matrix.T @ slope
            for matrix, slope in zip(self.matrices, slopes, strict=True)
        )
        gradient = gradient * self.scale
        if self.start is not None:
            gradient = gradient[1:]
        return value, gradient.ravel(), flat, measured.condition
