"""Small symmetric systems of number-like entries: LDL' without square roots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dyn_core.errors import SingularError
from dyn_core.scalar import logical_not, require
from dyn_core.spatial.vectors import Matrix, Vector


class Factored:
    """Factors of a symmetric positive definite matrix A = L.T D L.

    Elimination goes from the last row to the first: with parents first, zeros between
    branches of a tree stay zeros, and the pivots are those of articulated bodies.

    A pivot at or below its floor is a SingularError that names the row's item. NaN
    passes, so that NaN in means NaN out.
    """

    def __init__(
        self, A: Matrix, floors: Sequence[float], items: Sequence[str]
    ) -> None:
        n = A.shape[0]
        L: list[list[Any]] = [[0.0] * n for _ in range(n)]
        D: list[Any] = [0.0] * n
        for j in reversed(range(n)):
            d = A[j, j]
            for k in range(j + 1, n):
                d = d - L[k][j] * L[k][j] * D[k]
            require(logical_not(d <= floors[j]), SingularError, items[j])
            D[j] = d
            for i in range(j):
                x = A[i, j]
                for k in range(j + 1, n):
                    x = x - L[k][i] * L[k][j] * D[k]
                L[j][i] = x / d
        self.L, self.D = L, D

    def solve(self, b: Sequence[Any]) -> Vector:
        """Give x of A x = b."""
        n = len(self.D)
        x = list(b)
        for i in reversed(range(n)):
            for k in range(i + 1, n):
                x[i] = x[i] - self.L[k][i] * x[k]
        x = [value / d for value, d in zip(x, self.D, strict=True)]
        for i in range(n):
            for k in range(i):
                x[i] = x[i] - self.L[i][k] * x[k]
        return Vector(x)

    def inverse(self) -> Matrix:
        """Give the inverse of A, symmetric to the last bit."""
        n = len(self.D)
        columns = [self.solve([float(i == j) for i in range(n)]) for j in range(n)]
        return Matrix(
            [columns[max(i, j)][min(i, j)] for j in range(n)] for i in range(n)
        )
