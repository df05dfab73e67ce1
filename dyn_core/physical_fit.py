"""Least squares among bodies of this world: positive definite pseudo-inertias."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dyn_core.spatial.pseudo_inertia import (
    log_cholesky,
    of_log_cholesky,
    parameters_of_pseudo,
    pseudo_inertia,
)

JOINT_WIDTH = 10.0  # joints' numbers count as known to so many times the scale
BODY_WIDTH = 3.0  # theta counts as known to so much: logarithms, and radii of the body
PRECISION = 1e-8  # relative change of the cost at which the fit ends
FARTHEST = 12.0  # most change of theta's logarithms: a factor of e^24 of the mass
MARGIN = 1e-8  # least eigenvalue of a start, as part of its largest


def fit_consistent(
    A: np.ndarray,
    b: np.ndarray,
    prior: np.ndarray,
    scale: np.ndarray,
    inertial: int,
    most_evaluations: int,
    progress: Callable[[int, float], None] | None,
) -> tuple[np.ndarray, int, bool]:
    """Give the best parameters with every pseudo-inertia positive definite.

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

    R, rest = _reduced(A, b)
    tens = prior[:inertial].reshape(-1, 10)
    thetas = np.array([log_cholesky(_started(ten)) for ten in tens]).reshape(-1, 10)
    widths = np.ones_like(thetas)
    widths[:, 4:] = np.exp(thetas[:, 1:4].mean(axis=1, keepdims=True))
    start = np.concatenate([thetas.ravel(), np.maximum(prior[inertial:], 0.0)])
    width = np.concatenate(
        [BODY_WIDTH * widths.ravel(), JOINT_WIDTH * scale[inertial:]]
    )
    low, high = np.zeros(len(prior)), np.full(len(prior), np.inf)
    low[:inertial] = start[:inertial] - FARTHEST * widths.ravel()
    high[:inertial] = start[:inertial] + FARTHEST * widths.ravel()
    count = 0

    def parameters(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Give pi and its derivatives by x."""
        pi, slopes = x.copy(), np.eye(len(x))
        for at in range(0, inertial, 10):
            part = slice(at, at + 10)
            pi[part], slopes[part, part] = of_log_cholesky(x[part])
        return pi, slopes

    def residual(x: np.ndarray) -> np.ndarray:
        nonlocal count
        pull = (x - start) / width
        left = np.concatenate([R @ parameters(x)[0] - rest, pull])
        count += 1
        if progress is not None:
            progress(count, float(left @ left) / 2)
        return left

    def jacobian(x: np.ndarray) -> np.ndarray:
        return np.vstack([R @ parameters(x)[1], np.diag(1 / width)])

    found = least_squares(
        residual,
        start,
        jacobian,
        bounds=(low, high),
        x_scale="jac",
        ftol=PRECISION,
        xtol=PRECISION,
        gtol=PRECISION,
        max_nfev=most_evaluations,
    )
    return parameters(found.x)[0], count, found.status > 0


def _reduced(A: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Give few rows with the same least-squares problem."""
    if len(A) <= A.shape[1]:
        return A, b
    Q, R = np.linalg.qr(A)
    return R, Q.T @ b


def _started(ten: np.ndarray) -> np.ndarray:
    """Give ten numbers with positive definite pseudo-inertia near to those given."""
    values, vectors = np.linalg.eigh(pseudo_inertia(ten))
    largest = values[-1] if values[-1] > 0 else 1.0
    lifted = np.maximum(values, MARGIN * largest)
    return parameters_of_pseudo((vectors * lifted) @ vectors.T)
