"""Second-order cone programs by clarabel (extra `qp`), imported on first use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dyn_core.errors import UnsupportedError


def conic_libraries() -> tuple[Any, Any]:
    """Return the modules clarabel and scipy.sparse.

    Raises:
        UnsupportedError: One of them is not installed; names the extra.
    """
    try:
        import clarabel
        import scipy.sparse as sparse
    except ImportError as error:
        raise UnsupportedError(
            "interior_point needs clarabel, which is not installed; valid: pip install"
            " 'dyn_ros[qp]', or another solver of the convex problem (convex_newton)"
        ) from error
    return clarabel, sparse


def minimise_over_cones(
    P: np.ndarray,
    q: np.ndarray,
    rows: np.ndarray,
    offsets: np.ndarray,
    sizes: Sequence[int],
    max_iterations: int,
    tolerance: float,
) -> tuple[np.ndarray, int, bool]:
    """Return the minimiser of x.T P x / 2 + q.T x with rows x - offsets in cones.

    In a second-order cone the first entry is at least the length of the others.

    Args:
        P, q: Cost of the n entries of x, (n, n) symmetric, of which the upper triangle
            is read, and (n,).
        rows, offsets: (k, n), (k,): first the non-negative rows, then cone by cone.
        sizes: Number of non-negative rows, then the size of each second-order cone.
        max_iterations: Maximum number of iterations.
        tolerance: Absolute and relative tolerance of the duality gap and feasibility.

    Returns:
        x, iterations, and False if clarabel reports that no minimum exists; True does
        not say that it has converged.

    Raises:
        UnsupportedError: clarabel or scipy is not installed.
    """
    clarabel, sparse = conic_libraries()
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_iter = False, int(max_iterations)
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
    cones = [clarabel.NonnegativeConeT(n) for n in sizes[:1] if n]
    cones += [clarabel.SecondOrderConeT(n) for n in sizes[1:]]
    solution = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(P)),
        q,
        sparse.csc_matrix(-rows),
        -offsets,
        cones,
        settings,
    ).solve()
    return (
        np.array(solution.x),
        solution.iterations,
        "Infeasible" not in str(solution.status),
    )
