"""Matrix-free projected Gauss-Seidel, for problems whose G is a function."""

from __future__ import annotations

import numpy as np

from dyn_core.contact.problem.layout import ConstraintBlock
from dyn_core.contact.problem.problem import ConstraintProblem
from dyn_core.contact.problem.residuals import (
    CONVERGED,
    MAX_ITERATIONS,
    disc_projection,
    weights,
)


def gauss_seidel(
    problem: ConstraintProblem,
    start: np.ndarray,
    max_iterations: int = 1000,
    tolerance: float = 1e-9,
    relaxation: float = 1.0,
) -> tuple[np.ndarray, int, float]:
    """Return the impulses of a problem whose G is a function, one call per row.

        u <- u + G (Pi(lambda - u / d) - lambda)     row by row, tangents at once

    Args:
        problem: What to solve; only `apply` and `diagonal` of it are used.
        start: Initial impulses, (m,).
        max_iterations: Largest number of sweeps over all blocks.
        tolerance: Tolerance of the estimated error, relative to the largest impulse.
        relaxation: Factor of each step, in (0, 2).

    Returns:
        lambda, the number of sweeps, and one of residuals.STATUSES.

    Source: LCP-9.
    """
    x, free = start.copy(), problem.b + problem.bias
    R = problem.compliance
    d = np.asarray(problem.diagonal if problem.matrix_free else np.diag(problem.matrix))
    d = np.where(d + R > 0, d + R, 1.0)
    u = free + (problem.apply(x) if x.any() else 0.0) + R * x
    parts = [(block, rows) for block in problem.layout.blocks for rows in _parts(block)]
    before = np.inf
    for sweep in range(1, max_iterations + 1):
        largest_change = 0.0
        for block, rows in parts:
            new = _nearest(problem, block, rows, x, u, d, relaxation)
            change = np.zeros(problem.m)
            change[rows] = new - x[rows]
            if change.any():
                u = u + problem.apply(change) + R * change
                x = x + change
                largest_change = max(largest_change, float(np.abs(change).max()))
        rate = min(largest_change / before, 1 - 1e-6) if before > 0 else 0.0
        if largest_change / (1 - rate) <= tolerance * np.abs(x).max(initial=0.0):
            return x, sweep, CONVERGED
        before = largest_change
    return x, max_iterations, MAX_ITERATIONS


def _parts(block: ConstraintBlock) -> list[list[int]]:
    """Return groups of rows that are updated together: tangents are one group."""
    if block.kind != "contact" or block.rows == 1:
        return [[row] for row in block.all]
    return [[block.start], list(block.tangent)]


def _nearest(
    problem: ConstraintProblem,
    block: ConstraintBlock,
    rows: list[int],
    x: np.ndarray,
    u: np.ndarray,
    d: np.ndarray,
    relaxation: float,
) -> np.ndarray:
    """Return the updated impulses of a group of rows."""
    if block.kind == "contact" and rows[0] != block.start:
        return _friction(problem, block, x, u, d, relaxation)
    candidate = x[rows] - relaxation * u[rows] / d[rows]
    if block.kind == "box":
        return np.clip(candidate, problem.lo[rows], problem.hi[rows])
    if block.kind in ("unilateral", "contact"):
        return np.maximum(candidate, 0.0)
    return candidate


def _friction(
    problem: ConstraintProblem,
    block: ConstraintBlock,
    x: np.ndarray,
    u: np.ndarray,
    d: np.ndarray,
    relaxation: float,
) -> np.ndarray:
    """Return the updated tangent impulses of a contact, projected on its disc."""
    rows = list(block.tangent)
    c, weight = weights(block, problem.mu.tolist())
    w = np.array(weight)
    root = w * np.sqrt(d[rows])
    bound = root * root.sum()  # bound on the response of a tangent row
    alike = len({*block.coefficients}) == 1
    rate_bound = np.full(len(w), bound.max()) if alike else bound
    rate = (relaxation / np.where(rate_bound > 0, rate_bound, 1.0)).tolist()
    y = np.where(w > 0, x[rows] / np.where(w > 0, w, 1.0), 0.0) - rate * w * u[rows]
    same = [rate[0]] * len(rate) if alike else rate
    return w * np.array(disc_projection(c * x[block.start], y.tolist(), same))
