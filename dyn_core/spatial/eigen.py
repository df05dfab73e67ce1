"""Eigenvalues and eigenvectors of small symmetric matrices by Jacobi's rotations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dyn_core.numbers.scalar import absolute, loop, maximum, sqrt, where
from dyn_core.spatial.vectors import Matrix, Vector

SWEEPS = 12  # at most; six rows need up to six
SMALL = 1e-15  # of the largest diagonal entry: what is left off the diagonal


def eigen_symmetric(A: Matrix) -> tuple[Vector, Matrix]:
    """Return eigenvalues and orthonormal eigenvectors of a symmetric matrix (n, n).

        A = U diag(values) U.T

    Each sweep turns every pair of rows and columns so that their entry of A becomes
    zero. Sweeps end when no absolute value off the diagonal exceeds 1e-15 times the
    largest one on it, or after 12 sweeps; which of both is not reported. NaN does not
    count there, and may be missing from the result. The order of the eigenvalues, and
    the signs of the vectors, are not determined. The symmetry of A is not checked: the
    upper triangle is read.

    Returns:
        Eigenvalues (n), and U (n, n) with the vectors as columns.

    Source: G. Golub and C. Van Loan, Matrix Computations, section 8.5.
    """
    n = A.shape[0]
    upper = [(i, j) for i in range(n) for j in range(i, n)]

    def sweep(state: Sequence[Any]) -> list[Any]:
        M, U = _unpacked(state, upper, n)
        for p in range(n):
            for q in range(p + 1, n):
                _rotate(M, U, p, q)
        return [*(M[i][j] for i, j in upper), *(x for row in U for x in row)]

    def unfinished(state: Sequence[Any]) -> Any:
        beside, on = 0.0, 0.0
        for (i, j), x in zip(upper, state, strict=False):
            if i == j:
                on = maximum(on, absolute(x))
            else:
                beside = maximum(beside, absolute(x))
        return beside > SMALL * on

    start = [A[i, j] for i, j in upper]
    start += [float(i == j) for i in range(n) for j in range(n)]
    M, U = _unpacked(loop(start, sweep, unfinished, SWEEPS), upper, n)
    return Vector(M[i][i] for i in range(n)), Matrix(U)


def _unpacked(
    state: Sequence[Any], upper: Sequence[tuple[int, int]], n: int
) -> tuple[list[list[Any]], list[list[Any]]]:
    """Return two matrices, lists of rows (n, n), from the numbers of the loop's state.

    `state` holds the entries of a symmetric matrix at the index pairs `upper`, then the
    n² entries of the matrix of vectors, row by row; returned in this order.
    """
    M: list[list[Any]] = [[0.0] * n for _ in range(n)]
    for (i, j), x in zip(upper, state, strict=False):
        M[i][j] = M[j][i] = x
    rest = state[len(upper) :]
    return M, [list(rest[n * i : n * (i + 1)]) for i in range(n)]


def _rotate(M: list[list[Any]], U: list[list[Any]], p: int, q: int) -> None:
    """Make M[p][q] and M[q][p] zero by rotating rows and columns p and q, in place.

    M and U are lists of rows, (n, n); M is symmetric and stays so; p and q are in any
    order. Columns p and q of U are rotated in place, too. Of the possible angles the
    smallest is used; where M[p][q] is zero, it is zero and nothing changes.
    """
    n, x = len(M), M[p][q]
    apart = M[q][q] - M[p][p]
    size = absolute(apart) + sqrt(apart * apart + 4.0 * x * x)
    sign = where(apart < 0.0, -2.0, 2.0)
    t = where(size > 0.0, sign * x / where(size > 0.0, size, 1.0), 0.0)
    c = 1.0 / sqrt(t * t + 1.0)
    s = t * c
    M[p][p], M[q][q] = M[p][p] - t * x, M[q][q] + t * x
    M[p][q] = M[q][p] = 0.0
    for k in range(n):
        if k not in (p, q):
            a, b = M[k][p], M[k][q]
            M[k][p] = M[p][k] = c * a - s * b
            M[k][q] = M[q][k] = s * a + c * b
        a, b = U[k][p], U[k][q]
        U[k][p], U[k][q] = c * a - s * b, s * a + c * b
