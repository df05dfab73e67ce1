"""Gauss-Seidel without a matrix: sweeps of the response to one block's impulse."""

from __future__ import annotations

import numpy as np

from dyn_core.contact.laws import CONVERGED, MAX_ITERATIONS, disc_projection, weights
from dyn_core.contact.layout import Block
from dyn_core.contact.problem import ConstraintProblem


def gauss_seidel(
    problem: ConstraintProblem,
    start: np.ndarray,
    max_iterations: int = 1000,
    tolerance: float = 1e-9,
    relaxation: float = 1.0,
) -> tuple[np.ndarray, int, float]:
    """Give impulses of a problem whose G is a function: a call of it a row.

        u <- u + G (Pi(lambda - u / d) - lambda)     row by row, tangents at once

    Args:
        problem: What to solve; only `apply` and `diagonal` of it are used.
        start: Where to begin, (m,).
        max_iterations: Most sweeps over all blocks.
        tolerance: Of the estimated error, relative to the largest impulse.
        relaxation: Factor of each step, in (0, 2).

    Returns:
        lambda, the number of sweeps, and one of laws.STATUSES.

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
        moved = 0.0
        for block, rows in parts:
            new = _nearest(problem, block, rows, x, u, d, relaxation)
            change = np.zeros(problem.m)
            change[rows] = new - x[rows]
            if change.any():
                u = u + problem.apply(change) + R * change
                x = x + change
                moved = max(moved, float(np.abs(change).max()))
        rate = min(moved / before, 1 - 1e-6) if before > 0 else 0.0
        if moved / (1 - rate) <= tolerance * np.abs(x).max(initial=0.0):
            return x, sweep, CONVERGED
        before = moved
    return x, max_iterations, MAX_ITERATIONS


def _parts(block: Block) -> list[list[int]]:
    """Give the rows of a block that move together: tangents do."""
    if block.kind != "contact" or block.rows == 1:
        return [[row] for row in block.all]
    return [[block.start], list(block.tangent)]


def _nearest(
    problem: ConstraintProblem,
    block: Block,
    rows: list[int],
    x: np.ndarray,
    u: np.ndarray,
    d: np.ndarray,
    relaxation: float,
) -> np.ndarray:
    """Give the next impulses of some rows of a block."""
    if block.kind == "contact" and rows[0] != block.start:
        return _friction(problem, block, x, u, d, relaxation)
    wanted = x[rows] - relaxation * u[rows] / d[rows]
    if block.kind == "box":
        return np.clip(wanted, problem.lo[rows], problem.hi[rows])
    if block.kind in ("unilateral", "contact"):
        return np.maximum(wanted, 0.0)
    return wanted


def _friction(
    problem: ConstraintProblem,
    block: Block,
    x: np.ndarray,
    u: np.ndarray,
    d: np.ndarray,
    relaxation: float,
) -> np.ndarray:
    """Give the next tangent impulses of a contact: a step, and back into the disc."""
    rows = list(block.tangent)
    c, weight = weights(block, problem.mu.tolist())
    w = np.array(weight)
    root = w * np.sqrt(d[rows])
    bound = root * root.sum()  # of a row of the tangents' response
    alike = len({*block.coefficients}) == 1
    slow = np.full(len(w), bound.max()) if alike else bound
    rate = (relaxation / np.where(slow > 0, slow, 1.0)).tolist()
    y = np.where(w > 0, x[rows] / np.where(w > 0, w, 1.0), 0.0) - rate * w * u[rows]
    same = [rate[0]] * len(rate) if alike else rate
    return w * np.array(disc_projection(c * x[block.start], y.tolist(), same))
