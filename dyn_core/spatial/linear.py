"""Small symmetric linear systems of number-like entries, by factors A = L.T D L."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

from dyn_core.errors import SingularError
from dyn_core.numbers.product import ProductShape
from dyn_core.numbers.scalar import flat_product, logical_not, require
from dyn_core.spatial.vectors import Matrix, Vector


def product(
    A: Matrix, B: Matrix, onto: Matrix | None = None, negative: bool = False
) -> Matrix:
    """Return A B or C + A B; if `negative`, -A B or C - A B.

    A large product is one operation of a Graph instead of many.

    Args:
        A, B: (m, n) and (n, p), not empty.
        onto: The matrix C, (m, p); None: zero.
        negative: Whether the product is subtracted.

    Raises:
        TypeError: The shapes of A, B or `onto` do not match, or A or B is empty.
    """
    (rows, inner), (also_inner, columns) = A.shape, B.shape
    fits = inner == also_inner and (onto is None or onto.shape == (rows, columns))
    if not fits or not rows * inner * columns:
        raise TypeError(f"no product of matrices {A.shape} and {B.shape}")
    shape = ProductShape(rows, inner, columns, negative, onto is not None)
    a, b, c = ([x for row in M.rows for x in row] for M in (A, B, onto or Matrix(())))
    flat = flat_product(a, b, c, shape)
    starts = range(0, rows * columns, columns)
    return Matrix(flat[k : k + columns] for k in starts)


def sparse_products(
    A: Matrix, Bs: Sequence[Matrix], negative: bool = False
) -> tuple[Matrix, ...]:
    """Return A B for several matrices B with one pattern of zeros, or -A B.

    Columns with the same nonzero rows are multiplied together; in joint-space matrices
    of a tree these are the columns of one branch. An entry counts as zero if it is a
    structural zero in all matrices B.

    Args:
        A: (m, n), of any pattern.
        Bs: One or more matrices, all (n, p).
        negative: Whether the sign of the products is changed.

    Returns:
        The products, (m, p) each, in the order of Bs.

    Raises:
        TypeError: The shapes do not match; not checked if A has no rows.
        IndexError: Bs is empty.
    """
    groups: dict[tuple[int, ...], list[int]] = {}
    (rows, inner), width = A.shape, Bs[0].shape[1]
    if rows and any(B.shape != (inner, width) for B in Bs):
        shapes = ", ".join(str(B.shape) for B in Bs)
        raise TypeError(f"no products of matrices {A.shape} and {shapes}")
    for j in range(width):
        filled = tuple(
            k for k in range(inner) if not all(is_structural_zero(B[k, j]) for B in Bs)
        )
        groups.setdefault(filled, []).append(j)
    results = [[[0.0] * width for _ in range(rows)] for _ in Bs]
    for filled, columns in groups.items():
        C = None
        for run in _runs(filled):
            right = Matrix([B[k, j] for B in Bs for j in columns] for k in run)
            left = Matrix(row[run.start : run.stop] for row in A.rows)
            C = product(left, right, C, negative)
        for i, row in enumerate(C.rows if C is not None else ()):
            for n, result in enumerate(results):
                part = row[n * len(columns) : (n + 1) * len(columns)]
                for j, x in zip(columns, part, strict=True):
                    result[i][j] = x
    return tuple(map(Matrix, results))


def _runs(numbers: Sequence[int]) -> list[range]:
    """Return the runs of consecutive integers in an ascending list."""
    runs: list[range] = []
    for k in numbers:
        if runs and runs[-1].stop == k:
            runs[-1] = range(runs[-1].start, k + 1)
        else:
            runs.append(range(k, k + 1))
    return runs


def is_structural_zero(x: Any) -> bool:
    """Return whether x is a Python float 0.0 or -0.0; no other type counts."""
    return type(x) is float and x == 0


class Factored:
    """Factors of a symmetric positive definite matrix A = L.T D L.

    Elimination goes from the last row to the first: with parents first, zeros between
    branches of a tree stay zero, and the pivots are articulated-body inertias.

    Args:
        A: The matrix, (n, n); only the upper triangle is read.
        pivot_tolerances: By row: pivots at or below this raise an error.
        items: By row: name for the error.

    Raises:
        SingularError: A pivot is at or below its tolerance. NaN is no error: it leads
            to NaN results.

    Attributes:
        L: Rows of L, n each: the entries below the diagonal. Its diagonal of ones is
            not stored (0.0).
        over_D: Reciprocals of the n pivots, the entries of D.
    """

    def __init__(
        self, A: Matrix, pivot_tolerances: Sequence[float], items: Sequence[str]
    ) -> None:
        for _ in self._eliminated(A, pivot_tolerances, items):
            pass

    @classmethod
    def together(
        cls, systems: Sequence[tuple[Matrix, Sequence[float], Sequence[str]]]
    ) -> list[Factored]:
        """Return the factors of several systems, computed in lockstep, pivot by pivot.

        Each step computes one pivot of every system, so that in traced code no system
        waits for the result of another. Each system is (A, pivot_tolerances, items),
        with errors, as for the constructor; sizes may differ. The factors are in the
        order of `systems`.
        """
        results = [cls.__new__(cls) for _ in systems]
        pairs = zip(results, systems, strict=True)
        for _ in zip_longest(*(x._eliminated(*system) for x, system in pairs)):
            pass
        return results

    def _eliminated(
        self, A: Matrix, pivot_tolerances: Sequence[float], items: Sequence[str]
    ) -> Iterator[None]:
        """Compute L and over_D: eliminate a row at each iteration, and yield after it.

        The factors are complete when the iterator is exhausted. In each sum the newest
        term comes last, so that the others need not wait for it. SingularError for a
        pivot at or below its tolerance, but not for NaN.
        """
        n = A.shape[0]
        L: list[list[Any]] = [[0.0] * n for _ in range(n)]
        DL: list[list[Any]] = [[0.0] * n for _ in range(n)]
        self.L, self.over_D = L, [0.0] * n
        for j in reversed(range(n)):
            d = A[j, j]
            for k in reversed(range(j + 1, n)):
                d = d - L[k][j] * DL[k][j]
            require(logical_not(d <= pivot_tolerances[j]), SingularError, items[j])
            self.over_D[j] = 1.0 / d
            for i in range(j):
                x = A[i, j]
                for k in reversed(range(j + 1, n)):
                    x = x - L[k][j] * DL[k][i]
                DL[j][i] = x
                L[j][i] = x * self.over_D[j]
            yield

    def solve(self, b: Sequence[Any]) -> Vector:
        """Return x of A x = b, for b (n).

        Raises IndexError or ValueError for another number of entries.
        """
        n = len(self.L)
        x = list(b)
        for i in reversed(range(n)):
            for k in reversed(range(i + 1, n)):
                x[i] = x[i] - self.L[k][i] * x[k]
        x = [value * over for value, over in zip(x, self.over_D, strict=True)]
        for i in range(n):
            for k in range(i):
                x[i] = x[i] - self.L[i][k] * x[k]
        return Vector(x)

    def solve_matrix(self, B: Matrix, negative: bool = False) -> Matrix:
        """Return X (n, m) of A X = B, or of A X = -B if `negative`, for B (n, m).

        Raises TypeError for another number of rows.
        """
        return sparse_products(self.inverse(), (B,), negative)[0]

    def halves(self, b: Sequence[Any]) -> tuple[Vector, Vector]:
        """Return z = L^-T b and D^-1 z, so that b.T A^-1 c = z(b) . D^-1 z(c).

        All are (n,). Raises IndexError or ValueError for another number of entries.
        """
        n = len(self.L)
        z = list(b)
        for i in reversed(range(n)):
            for k in reversed(range(i + 1, n)):
                z[i] = z[i] - self.L[k][i] * z[k]
        scaled = [value * over for value, over in zip(z, self.over_D, strict=True)]
        return Vector(z), Vector(scaled)

    def inverse_of_L(self) -> Matrix:
        """Return L^-1, (n, n), with ones on its diagonal: A^-1 = L^-1 D^-1 L^-T."""
        n = len(self.L)
        X: list[list[Any]] = [[float(i == j) for j in range(n)] for i in range(n)]
        for i in range(n):
            for j in range(i):
                for k in range(j, i):
                    X[i][j] = X[i][j] - self.L[i][k] * X[k][j]
        return Matrix(X)

    def inverse(self) -> Matrix:
        """Return the inverse of A, (n, n), symmetric to the last bit."""
        n = len(self.L)
        columns = [self.solve([float(i == j) for i in range(n)]) for j in range(n)]
        return Matrix(
            [columns[max(i, j)][min(i, j)] for j in range(n)] for i in range(n)
        )
