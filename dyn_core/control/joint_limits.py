"""Joint limits, and checks of polynomial curves against them between their points.

n is the number of joints, k that of points or pieces.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dyn_core.errors import SettingError, TrajectoryError
from dyn_core.model import Model
from dyn_core.sharing import once
from dyn_core.validation import is_finite, shown

ROUNDING = 1e-9  # tolerance for rounding errors of interpolation, absolute
SPEED_MARGIN = 0.01  # relative excess of a velocity limit that interpolation may have
BLOCK = 1000  # number of pieces in one vectorised check
HALVINGS = 40  # subdivisions of a piece; a curve undecided after them is accepted


@dataclass(frozen=True, eq=False)
class JointLimits:
    """Limits of position and velocity, infinite where a joint has none.

    In the joint order of the controller. `units` are "rad" or "m", for messages.
    """

    joints: tuple[str, ...]
    lower: np.ndarray
    upper: np.ndarray
    velocity: np.ndarray
    units: tuple[str, ...] = ()

    @classmethod
    def of(cls, model: Model) -> JointLimits:
        """Return the limits of a robot with joints of one coordinate, not checked."""
        limits = model.lower, model.upper, model.velocity_limit
        order = sorted((model.v_slices[i].start, i) for i in model.independent)
        kinds = [model.joint[i].kind for _, i in order]
        units = ("m" if kind == "prismatic" else "rad" for kind in kinds)
        return cls(model.joint_names, *limits, tuple(units))

    @classmethod
    def of_arrays(
        cls,
        joints: Sequence[str],
        lower: np.ndarray | None,
        upper: np.ndarray | None,
        velocity: np.ndarray | None,
    ) -> JointLimits:
        """Return limits from arrays, (n,), unchecked; None means infinite limits."""
        free = np.full(len(joints), np.inf)
        return cls(
            tuple(joints),
            -free if lower is None else np.asarray(lower, float),
            free if upper is None else np.asarray(upper, float),
            free if velocity is None else np.asarray(velocity, float),
        )

    def widened(self, tolerance: float, *places: np.ndarray | None) -> JointLimits:
        """Return limits whose position limits are widened to include given positions.

        A robot or a reference outside its limits can so be led back. `tolerance` is
        then added on both sides of every range [rad | m]. None and NaN among `places`
        are ignored. The velocity limits stay.
        """
        lower, upper = self.lower, self.upper
        for q in places:
            if q is not None:
                lower, upper = np.fmin(lower, q), np.fmax(upper, q)
        return replace(self, lower=lower - tolerance, upper=upper + tolerance)

    def check_points(self, q: np.ndarray) -> None:
        """Refuse points (k, n) more than 1e-9 outside the limits; NaN passes."""
        bad = np.argwhere((q < self.lower - ROUNDING) | (q > self.upper + ROUNDING))
        if len(bad):
            k, j = bad[0]
            raise TrajectoryError(
                f"point {k}: joint '{self.joints[j]}' at {q[k, j]:.6g} is outside its"
                f" limits {self._range(j, q[k, j])}"
            )

    def check_pieces(
        self, lengths: np.ndarray, c: np.ndarray, where: Callable[[int], str]
    ) -> None:
        """Refuse polynomials beyond the position and velocity limits.

        TrajectoryError: beyond a position limit by more than 1e-9, a velocity limit by
        more than 1 % of it, or a coefficient is not finite. c are coefficients in
        ascending powers of the time since the piece began, (k, coefficients, n);
        `where` describes a piece.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # the checks refuse overflow
            for k in range(0, len(c), BLOCK):
                rows = slice(k, k + BLOCK)
                self._check_block(lengths[rows], c[rows], k, where)

    def _check_block(
        self,
        lengths: np.ndarray,
        c: np.ndarray,
        number: int,
        where: Callable[[int], str],
    ) -> None:
        """Check one block of pieces, with the tolerances of check_pieces.

        `c` is (k, coefficients, n), in ascending powers of the time since the piece
        began; `number` is the index of the first piece. TrajectoryError: a limit is
        exceeded, or a coefficient is not finite.
        """
        powers = lengths[:, None] ** np.arange(c.shape[1])
        excess = first_excess(c * powers[:, :, None], self.lower, self.upper)
        if excess is not None:
            k, j, value = excess
            raise TrajectoryError(
                f"{where(number + k)}: joint '{self.joints[j]}' reaches {value:.6g},"
                f" outside its limits {self._range(j, value)}"
            )
        if c.shape[1] == 1:
            return
        slopes = c[:, 1:] * np.arange(1, c.shape[1])[None, :, None]
        bound = self.velocity * (1 + SPEED_MARGIN)
        excess = first_excess(slopes * powers[:, :-1, None], -bound, bound)
        if excess is not None:
            k, j, value = excess
            longer = abs(value) / self.velocity[j]
            raise TrajectoryError(
                f"{where(number + k)}: joint '{self.joints[j]}' moves at {value:.6g},"
                f" its velocity limit is {self.velocity[j]:.6g}; a motion"
                f" {np.ceil(100 * longer) / 100:g} times as long keeps it here"
            )

    def _range(self, j: int, value: float) -> str:
        """Return "[lower, upper] UNIT" of a joint; ask if `value` is in degrees."""
        unit = f" {self.units[j]}" if self.units else ""
        degrees = unit == " rad" and abs(value) > 2 * math.pi
        doubt = "; is it in degrees?" if degrees else ""
        return f"[{self.lower[j]:.6g}, {self.upper[j]:.6g}]{unit}{doubt}"


def effort_limits(model: Model, chosen: Mapping[str, float]) -> np.ndarray:
    """Return the effort limits of all joints, (nv,) [N·m | N].

    Args:
        model: Robot with joints of one coordinate.
        chosen: Mapping from joint name to the limit that replaces the model's.

    Raises:
        SettingError: `chosen` is no mapping or has an unknown joint, or a joint has no
            finite limit above 0.
    """
    limits = model.effort_limit.copy()
    if not isinstance(chosen, Mapping):
        valid = "a mapping from joint to limit; of exports effort_limits.JOINT too"
        message = f"effort_limits is {chosen!r}; valid: {valid}"
        raise SettingError(message, "effort_limits")
    for name, value in chosen.items():
        if name not in model.joint_names:
            valid = ", ".join(model.joint_names)
            message = f"effort_limits.{name}: no such joint; valid: {valid}"
            raise SettingError(message, f"effort_limits.{name}")
        if value is not None and not (is_finite(value) and value > 0):
            message = f"effort_limits.{name} is {shown(value)}; valid: > 0 and finite"
            raise SettingError(message, f"effort_limits.{name}")
        limits[model.v_slice(name)] = math.nan if value is None else value
    for name, value in zip(model.joint_names, limits, strict=True):
        if not (math.isfinite(value) and value > 0):
            raise SettingError(
                f"joint '{name}' has no effort limit (0 or absent in the model"
                f" never means unlimited); set effort_limits.{name} > 0",
                f"effort_limits.{name}",
            )
    return limits


def raised_limits(model: Model, limits: np.ndarray) -> list[str]:
    """Return a sentence for each effort limit above the model's, if it has one."""
    return [
        f"effort limit of {name} is raised from {model_limit:g} to {limit:g}"
        for name, model_limit, limit in zip(
            model.joint_names, model.effort_limit, limits, strict=True
        )
        if 0 < model_limit < limit
    ]


def first_excess(
    c: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[int, int, float] | None:
    """Return the first piece and joint out of a range, and its extreme value; or None.

    A polynomial lies within the convex hull of its Bernstein coefficients, which
    include its end values. Pieces whose hull exceeds the range are bisected until an
    end value is outside or the hull is inside; after 40 bisections they count as
    inside. An excess up to 1e-9 is ignored. c are coefficients in ascending powers of u
    in [0, 1], (pieces, coefficients, n); the value is NaN if one is not finite.

    Source: G. Farin, Curves and Surfaces for CAGD, sections 5.1 and 5.4.
    """
    count, order, n = c.shape
    curves = _bernstein(order) @ c.transpose(1, 0, 2).reshape(order, -1)
    low, high = low - ROUNDING, high + ROUNDING
    hull = curves.reshape(order, count, n)
    bad = ~((hull.min(axis=0) >= low) & (hull.max(axis=0) <= high)).ravel()
    numbers = np.flatnonzero(bad)
    curves = curves[:, numbers]
    excess = None
    for _ in range(HALVINGS):
        if not numbers.size:
            break
        bottom, top = low[numbers % n], high[numbers % n]
        ends = curves[[0, -1]]
        outside = ~((ends >= bottom) & (ends <= top)).all(axis=0)
        if outside.any():
            first = int(numbers[outside].min())
            excess = first if excess is None else min(first, excess)
        left, right = (half @ curves for half in _halves(order))
        curves = np.concatenate([left, right], axis=1)
        numbers, bottom, top = (np.tile(x, 2) for x in (numbers, bottom, top))
        inside = (curves.min(axis=0) >= bottom) & (curves.max(axis=0) <= top)
        kept = ~inside
        if excess is not None:
            # Only an earlier piece could still be the first one.
            kept &= numbers < excess
        curves, numbers = curves[:, kept], numbers[kept]
    if excess is None:
        return None
    k, j = divmod(excess, n)
    return k, j, _extreme(c[k, :, j], float(low[j]), float(high[j]))


@once
def _bernstein(order: int) -> np.ndarray:
    """Return the cached matrix from powers to Bernstein form; do not change it."""
    top = order - 1
    return np.array(
        [
            [math.comb(i, j) / math.comb(top, j) for j in range(order)]
            for i in range(order)
        ]
    )


@once
def _halves(order: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the cached de Casteljau matrices of both halves; do not change them."""
    left = np.array(
        [[math.comb(i, j) / 2**i for j in range(order)] for i in range(order)], float
    )
    return left, left[::-1, ::-1].copy()


def _extreme(c: np.ndarray, low: float, high: float) -> float:
    """Return the value of a polynomial on [0, 1] that is furthest outside a range.

    If all are inside, it is the one nearest to an end. `c` is in ascending powers.
    """
    if not np.isfinite(c).all():
        return math.nan
    slope = (c[1:] * np.arange(1, len(c)))[::-1]
    roots = np.roots(slope) if slope.any() else np.zeros(0)
    inner = roots.real[(roots.real > 0) & (roots.real < 1)]
    values = np.polyval(c[::-1], np.concatenate([[0.0, 1.0], inner]))
    return float(values[np.argmax(np.maximum(low - values, values - high))])
