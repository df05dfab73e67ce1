"""Symmetric 3x3 matrices, stored as six numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dyn_core.spatial.vectors import Matrix, Vector

ORDER = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))
_PLACE = ((0, 1, 2), (1, 3, 4), (2, 4, 5))


class Symmetric:
    """A symmetric 3x3 matrix with the six entries xx, xy, xz, yy, yz, zz.

    `S @ x` is a Vector for a Vector x of three numbers; `+ -` need another Symmetric.
    """

    __slots__ = ("entries",)

    def __init__(self, entries: Iterable[Any]) -> None:
        self.entries = tuple(entries)

    @classmethod
    def of(cls, M: Matrix) -> Symmetric:
        """Return the Symmetric with the upper triangle of a Matrix (3, 3).

        That M is symmetric is not checked.
        """
        return cls(M[i, j] for i, j in ORDER)

    @classmethod
    def scaled_identity(cls, m: Any) -> Symmetric:
        """Return m times the identity matrix."""
        return cls((m, 0.0, 0.0, m, 0.0, m))

    def full(self) -> Matrix:
        """Return all nine entries as a Matrix."""
        return Matrix([self.entries[k] for k in row] for row in _PLACE)

    def rotated(self, R: Matrix) -> Symmetric:
        """Return R A R.T for this matrix A and a rotation R (3, 3)."""
        half = R @ self.full()
        rows, columns = half.rows, R.rows
        return Symmetric(Vector(rows[i]) @ Vector(columns[j]) for i, j in ORDER)

    def __matmul__(self, x: Vector) -> Vector:
        return self.full() @ x

    def __add__(self, other: Symmetric) -> Symmetric:
        pairs = zip(self.entries, other.entries, strict=True)
        return Symmetric(a + b for a, b in pairs)

    def __sub__(self, other: Symmetric) -> Symmetric:
        pairs = zip(self.entries, other.entries, strict=True)
        return Symmetric(a - b for a, b in pairs)
