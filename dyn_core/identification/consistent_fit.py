"""Least squares over physically consistent inertias: pseudo-inertias stay positive."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from dyn_core.errors import SettingError
from dyn_core.identification.pseudo_inertia import (
    log_cholesky,
    of_log_cholesky,
    parameters_of_pseudo,
    pseudo_inertia,
)

JOINT_WIDTH = 10.0  # joints' numbers count as known to so many times the scale
BODY_WIDTH = 3.0  # theta counts as known to so much: logarithms, and radii of the body
PRECISION = 1e-8  # relative change of the cost at which the fit ends
LARGEST_CHANGE = (
    12.0  # largest change of theta's logarithms: a factor of e^24 of the mass
)
EVALUATIONS = 200  # of the fit, unless another number is asked for
MARGIN = 1e-8  # least eigenvalue of a start, as part of its largest


def check_fit(consistent: bool, most_evaluations: Any, progress: Any) -> None:
    """Refuse arguments of this fit that make no sense, or are given without it."""
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
        if idle[name] and not consistent:
            message = f"{name} changes nothing without a fit; valid: consistent=True"
            raise SettingError(message, name)


def fit_consistent(
    A: np.ndarray,
    b: np.ndarray,
    prior: np.ndarray,
    scale: np.ndarray,
    inertial: int,
    most_evaluations: int,
    progress: Callable[[int, float], None] | None,
) -> tuple[np.ndarray, int, bool]:
    """Return the best parameters with every pseudo-inertia positive definite.

        least |A pi - b|² + |(x - prior) / width|²
        pi = of_log_cholesky(theta) by body; numbers of joints >= 0;  x has both

    The second term, small beside that of rows over their noise, settles what the data
    do not show, and keeps bodies from the edge where they have no volume. The work of a
    step does not depend on the number of rows.

    Args:
        A, b: Rows over their noise, and their right sides.
        prior: Parameters to start from and to stay near to, np.
        scale: Size of each, np.
        inertial: Number of inertial ones, ten a body; the rest are of joints.
        most_evaluations: Bound of the work.
        progress: Called as progress(evaluations, cost).

    Returns:
        Parameters, number of evaluations, and whether the fit came to its end.

    Source: C. Rucker and P. Wensing, Smooth Parameterization of Rigid-Body Inertia,
    IEEE RA-L 7 (2022).
    """
    from scipy.optimize import least_squares

    problem = _Problem.of(A, b, prior, scale, inertial, progress)
    solution = least_squares(
        problem.residual,
        problem.start,
        problem.jacobian,
        bounds=problem.bounds,
        x_scale="jac",
        ftol=PRECISION,
        xtol=PRECISION,
        gtol=PRECISION,
        max_nfev=most_evaluations,
    )
    values, _ = problem.parameters(solution.x)
    return values, problem.evaluations, solution.status > 0


@dataclass(eq=False)
class _Problem:
    """The least-squares problem in x: theta by body, then numbers of joints.

    Attributes:
        R, rest: Few rows with the same solution as all, and their right sides.
        start, width: Of x: where it starts, and how far it counts as known.
        bounds: Of x: least and largest values.
        inertial: Number of inertial ones in x.
        progress: Called as progress(evaluations, cost).
        evaluations: How often the residual was computed.
    """

    R: np.ndarray
    rest: np.ndarray
    start: np.ndarray
    width: np.ndarray
    bounds: tuple[np.ndarray, np.ndarray]
    inertial: int
    progress: Callable[[int, float], None] | None
    evaluations: int = 0

    @classmethod
    def of(
        cls,
        A: np.ndarray,
        b: np.ndarray,
        prior: np.ndarray,
        scale: np.ndarray,
        inertial: int,
        progress: Callable[[int, float], None] | None,
    ) -> _Problem:
        """Return the problem of rows and a prior; see fit_consistent."""
        tens = prior[:inertial].reshape(-1, 10)
        thetas = np.array([log_cholesky(_lifted(ten)) for ten in tens]).reshape(-1, 10)
        widths = np.ones_like(thetas)
        widths[:, 4:] = np.exp(thetas[:, 1:4].mean(axis=1, keepdims=True))
        start = np.concatenate([thetas.ravel(), np.maximum(prior[inertial:], 0.0)])
        width = np.concatenate(
            [BODY_WIDTH * widths.ravel(), JOINT_WIDTH * scale[inertial:]]
        )
        low, high = np.zeros(len(prior)), np.full(len(prior), np.inf)
        low[:inertial] = start[:inertial] - LARGEST_CHANGE * widths.ravel()
        high[:inertial] = start[:inertial] + LARGEST_CHANGE * widths.ravel()
        return cls(*_reduced(A, b), start, width, (low, high), inertial, progress)

    def parameters(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return pi and its derivatives by x."""
        pi, slopes = x.copy(), np.eye(len(x))
        for first in range(0, self.inertial, 10):
            body = slice(first, first + 10)
            pi[body], slopes[body, body] = of_log_cholesky(x[body])
        return pi, slopes

    def residual(self, x: np.ndarray) -> np.ndarray:
        """Return rows that are left, and the distance from the prior."""
        pull = (x - self.start) / self.width
        residual = np.concatenate([self.R @ self.parameters(x)[0] - self.rest, pull])
        self.evaluations += 1
        if self.progress is not None:
            self.progress(self.evaluations, float(residual @ residual) / 2)
        return residual

    def jacobian(self, x: np.ndarray) -> np.ndarray:
        """Return the derivative of the residual by x."""
        return np.vstack([self.R @ self.parameters(x)[1], np.diag(1 / self.width)])


def _reduced(A: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return few rows with the same least-squares problem."""
    if len(A) <= A.shape[1]:
        return A, b
    Q, R = np.linalg.qr(A)
    return R, Q.T @ b


def _lifted(ten: np.ndarray) -> np.ndarray:
    """Return ten numbers near to these whose pseudo-inertia is positive definite."""
    values, vectors = np.linalg.eigh(pseudo_inertia(ten))
    largest = values[-1] if values[-1] > 0 else 1.0
    lifted = np.maximum(values, MARGIN * largest)
    return parameters_of_pseudo((vectors * lifted) @ vectors.T)
