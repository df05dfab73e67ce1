"""Least squares in n parameters with bounds, and with physically consistent bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from dyn_core.errors import SettingError
from dyn_core.model.checks.pseudo_inertia import (
    BASIS,
    is_consistent,
    parameters_of_pseudo,
    pseudo_inertia,
)

# Weight of the divergence from the prior, beside squares over the noise: a body with
# all masses e^0.5 = 1.6 times its prior's costs as much as 1/70 of a row.
NEARNESS = 0.005
STAGE = 0.2  # factor on that weight from stage to stage, until it is NEARNESS
PRECISION = 1e-9  # relative change of the cost at which the fit ends
LOOSE = 0.2  # decrease of the cost that ends a stage, fraction of the weight
EVALUATIONS = 200  # default maximum number of cost evaluations
SLIM = 1e-9  # smallest eigenvalue of a consistent start, fraction of the largest
THICK = 0.05  # smallest moment of a body from a prior, fraction of the largest
INSIDE = 0.95  # largest fraction of the distance to the boundary of consistency
ROUNDING = 1e-12  # relative distance at which a parameter counts as at its bound
STIFFEST = 1e12  # largest damping; the fit ends if no step decreases the cost
USUAL = np.array([1.0, 0, 0, 0, 0.01, 0, 0.01, 0, 0, 0.01])
Bounds = tuple[np.ndarray, np.ndarray]


def check_fit(fitted: bool, most_evaluations: Any, progress: Any) -> None:
    """Check the arguments of a fit; unless `fitted` they must be the defaults."""
    whole = isinstance(most_evaluations, Integral)
    if not whole or isinstance(most_evaluations, bool) or most_evaluations < 1:
        raise SettingError(
            f"most_evaluations is {most_evaluations!r}; valid: 1 or more",
            "most_evaluations",
        )
    if progress is not None and not callable(progress):
        raise SettingError(
            f"progress is {progress!r}; valid: a function (evaluations, cost), or None",
            "progress",
        )
    idle = {
        "most_evaluations": most_evaluations != EVALUATIONS,
        "progress": progress is not None,
    }
    for name in idle:
        if idle[name] and not fitted:
            message = f"{name} changes nothing without a fit; valid: consistent=True"
            raise SettingError(message, name)


@dataclass(frozen=True, eq=False)
class Knowledge:
    """Prior knowledge on parameters; `scale` are their typical sizes, (n,).

    Ten parameters from each index in `blocks` must be physically consistent; `bounds`
    are infinite there, but for masses, whose lower bound may be 0.
    """

    prior: np.ndarray
    scale: np.ndarray
    bounds: Bounds
    blocks: Sequence[int] = ()


def fit_consistent(
    A: np.ndarray,
    b: np.ndarray,
    known: Knowledge,
    start: np.ndarray,
    most_evaluations: int,
    progress: Callable[[int, float], None] | None,
) -> tuple[np.ndarray, int, bool]:
    """Return the best parameters within bounds, with positive definite pseudo-inertias.

        least |A pi - b|² / 2 + NEARNESS sum of D(J, J0)
        D(J, J0) = tr(J0^-1 J) - log det(J0^-1 J) - 4

    J is the pseudo-inertia of a block and J0 its prior. D does not depend on the frame,
    and grows without bound towards bodies without volume. Its weight NEARNESS, 0.005,
    is small beside the rows; it determines parameters of bodies that the data do not.
    Parameters outside of blocks have no such term: directions in which the cost is flat
    stay at the start, which is clipped to the bounds, and an inconsistent block becomes
    a nearby body. The problem is convex: Newton steps, projected on the bounds,
    converge to the optimum, and their cost does not depend on the number of rows.

    The result is the parameters, the number of evaluations, and whether the fit
    converged: also True if no step decreases the cost. progress(evaluations, cost) is
    called, if not None.

    Source: T. Lee, P. Wensing and F. Park, Geometric Robot Dynamic Identification: A
    Convex Programming Approach, IEEE Transactions on Robotics 36 (2020), for D.
    """
    if not all(np.isfinite(x).all() for x in (A, b, start)):
        raise np.linalg.LinAlgError("rows, right sides or the start are not finite")
    problem = _Problem.of(A, b, known, progress)
    x, converged = problem.inside(start), True
    nearness = max(NEARNESS, problem.squares(x) / max(10 * len(known.blocks), 1))
    while known.blocks and nearness > NEARNESS / STAGE:
        problem.nearness = nearness
        x, _ = _minimum(problem, x, most_evaluations, LOOSE * nearness)
        nearness *= STAGE
    problem.nearness = NEARNESS
    enough = PRECISION * problem.squares(x) + 1e-3 * NEARNESS
    x, converged = _minimum(problem, x, most_evaluations, enough)
    return x, problem.evaluations, converged


def _minimum(
    problem: _Problem, x: np.ndarray, most_evaluations: int, enough: float
) -> tuple[np.ndarray, bool]:
    """Minimise the cost from a start; return parameters (n,) and whether it converged.

    x is within bounds and consistent. The search ends where a step would decrease the
    cost by less than `enough`; it counts as converged if no step decreases the cost.
    """
    cost, gradient, H = problem.expansion(x)
    softness, growth = 1e-9, 10.0
    while problem.evaluations < most_evaluations and softness < STIFFEST:
        whole = _step(H, gradient, x, problem.bounds, softness)
        if _decrease(whole, gradient, H) <= enough:
            return x, True
        step = whole * min(1.0, INSIDE * problem.way_out(x, whole))
        step = _within(x, step, problem.bounds, gradient, H)
        expected = _decrease(step, gradient, H)
        new_cost = problem.cost(x + step)
        if cost - new_cost > 1e-3 * expected:
            x = np.clip(x + step, *problem.bounds)
            cost, gradient, H = problem.expansion(x)
            softness, growth = max(softness * 0.1, 1e-12), 10.0
        else:
            softness, growth = max(softness, 1e-6) * growth, 10 * growth
    return x, softness >= STIFFEST


def _decrease(step: np.ndarray, gradient: np.ndarray, H: np.ndarray) -> float:
    """Return the decrease of the cost by a step (n,), predicted to second order."""
    return -float(gradient @ step) - 0.5 * float(step @ H @ step)


def _within(
    x: np.ndarray, step: np.ndarray, bounds: Bounds, gradient: np.ndarray, H: np.ndarray
) -> np.ndarray:
    """Return a step within the bounds: projected, or else shortened.

    The projection is used if it has a tenth of the full step's predicted decrease.
    """
    low, high = bounds
    projected = np.clip(x + step, low, high) - x
    if _decrease(projected, gradient, H) > 0.1 * _decrease(step, gradient, H):
        return np.asarray(projected)
    with np.errstate(divide="ignore", invalid="ignore"):
        ways = np.where(step < 0, (low - x) / step, (high - x) / step)
    return step * min(1.0, float(np.min(ways[step != 0], initial=1.0)))


def _step(
    H: np.ndarray, gradient: np.ndarray, x: np.ndarray, bounds: Bounds, softness: float
) -> np.ndarray:
    """Return the damped Newton step, (n,), zero for parameters held at their bounds.

    Zero, too, for parameters without curvature. `softness` is the damping, added to the
    diagonal of the scaled Hessian.
    """
    from scipy.linalg import cho_factor, cho_solve

    near = ROUNDING * (1 + np.abs(x))
    low, high = x - bounds[0] <= near, bounds[1] - x <= near
    free = ~((low & (gradient > 0)) | (high & (gradient < 0))) & (np.diag(H) > 0)
    while True:
        step = np.zeros(len(gradient))
        if not free.any():
            return step
        size = 1 / np.sqrt(np.diag(H)[free])
        part = H[np.ix_(free, free)] * size * size[:, None]
        part[np.diag_indices_from(part)] += softness
        factor = cho_factor(part, lower=True, check_finite=False)
        step[free] = -size * cho_solve(factor, size * gradient[free])
        beyond = free & ((low & (step < 0)) | (high & (step > 0)))
        if not beyond.any():
            return step
        free &= ~beyond


@dataclass(eq=False)
class _Problem:
    """Convex problem in the parameters themselves.

    `R` and `rest` are few rows and right sides with the same solution as all rows,
    `places` (blocks, 10) the ten parameters of each block, `anchors` (blocks, 4, 4)
    inverse pseudo-inertias of the prior, `nearness` the weight of the divergence from
    it.
    """

    R: np.ndarray
    rest: np.ndarray
    bounds: Bounds
    places: np.ndarray
    anchors: np.ndarray
    progress: Callable[[int, float], None] | None
    nearness: float = NEARNESS
    evaluations: int = 0

    @classmethod
    def of(
        cls,
        A: np.ndarray,
        b: np.ndarray,
        known: Knowledge,
        progress: Callable[[int, float], None] | None,
    ) -> _Problem:
        """Return the problem of weighted rows A (rows, n), b (rows,) and a prior.

        For the anchors, thin bodies of the prior are made thicker, even consistent
        ones.
        """
        places = np.array(known.blocks, int)[:, None] + np.arange(10)
        tens = [_roundish(known.prior[row]) for row in places]
        J = pseudo_inertia(np.array(tens).reshape(-1, 10))
        R, rest = _reduced(A, b)
        return cls(R, rest, known.bounds, places, np.linalg.inv(J), progress)

    def inside(self, start: np.ndarray) -> np.ndarray:
        """Return `start` clipped to the bounds, with all blocks consistent, (n,).

        A nearby body that replaces one need not be within the bounds.
        """
        x = np.clip(start, *self.bounds)
        for row in self.places:
            x[row] = _lifted(x[row])
        return x

    def squares(self, x: np.ndarray) -> float:
        """Return half the sum of squared residuals at x (n,), |R x - rest|² / 2."""
        left = self.R @ x - self.rest
        return 0.5 * float(left @ left)

    def cost(self, x: np.ndarray) -> float:
        """Return squares(x) plus `nearness` times the divergence from the prior.

        It is infinite if a block has det(J0^-1 J) <= 0.
        """
        J = pseudo_inertia(x[self.places])
        signs, logs = np.linalg.slogdet(self.anchors @ J)
        apart = np.einsum("bij,bij->b", self.anchors, J) - logs - 4
        inside = bool((signs > 0).all())
        cost = self.squares(x) + (self.nearness * apart.sum() if inside else np.inf)
        self.evaluations += 1
        if self.progress is not None:
            self.progress(self.evaluations, float(cost))
        return float(cost)

    def way_out(self, x: np.ndarray, step: np.ndarray) -> float:
        """Return the multiple of a step that reaches the boundary of consistency.

        The blocks must be consistent at x.
        """
        if not len(self.places):
            return np.inf
        factors = np.linalg.cholesky(pseudo_inertia(x[self.places]))
        half = np.linalg.solve(factors, pseudo_inertia(step[self.places]))
        both = np.linalg.solve(factors, half.swapaxes(1, 2))
        least = float(np.linalg.eigvalsh(0.5 * (both + both.swapaxes(1, 2))).min())
        return 1 / -least if least < 0 else np.inf

    def expansion(self, x: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Return the cost at x, its gradient (n,) and Hessian (n, n).

        The blocks must be consistent at x; that is not checked, and the cost then not
        infinite. No evaluation is counted.
        """
        left = self.R @ x - self.rest
        gradient, H = self.R.T @ left, self.R.T @ self.R
        J = pseudo_inertia(x[self.places])
        inverse = np.linalg.inv(J)
        for row, anchor, back in zip(self.places, self.anchors, inverse, strict=True):
            turned = back @ BASIS
            gradient[row] += self.nearness * np.tensordot(BASIS, anchor - back, 2)
            more = np.einsum("aij,bji->ab", turned, turned)
            H[np.ix_(row, row)] += self.nearness * more
        apart = np.einsum("bij,bij->b", self.anchors, J) - 4
        apart -= np.linalg.slogdet(self.anchors @ J)[1]
        cost = 0.5 * float(left @ left) + self.nearness * apart.sum()
        return float(cost), gradient, H


def _reduced(A: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return at most n + 1 rows R and c with |R x - c| = |A x - b| for every x."""
    if len(A) <= A.shape[1] + 1:
        return A, b
    R = np.asarray(np.linalg.qr(np.column_stack([A, b]), mode="r"))
    return R[:, :-1], R[:, -1]


def _lifted(ten: np.ndarray) -> np.ndarray:
    """Return ten parameters if consistent, else those of a nearby body."""
    return ten if is_consistent(ten, -SLIM) else _roundish(ten)


def _roundish(ten: np.ndarray) -> np.ndarray:
    """Return the ten parameters of a body with the same mass and centre of mass.

    The principal values of its mass distribution about the centre are raised to THICK
    times the largest one, or, if none is positive, times 0.01 m² and the mass. A mass
    of zero or less gives USUAL.
    """
    if ten[0] <= 0:
        return USUAL
    J = pseudo_inertia(ten)
    centre = J[:3, 3] / ten[0]
    spread = J[:3, :3] - ten[0] * np.outer(centre, centre)
    values, vectors = np.linalg.eigh(spread)
    largest = values[-1] if values[-1] > 0 else 0.01 * ten[0]
    values = np.maximum(values, THICK * largest)
    J[:3, :3] += (vectors * values) @ vectors.T - spread
    return parameters_of_pseudo(J)
