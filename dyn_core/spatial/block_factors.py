"""Large symmetric systems of number-like entries, by blocks: A = V.T V."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dyn_core.numbers.scalar import sqrt
from dyn_core.spatial.linear import Factored, is_structural_zero, product
from dyn_core.spatial.vectors import Matrix, Vector

SMALL = 2500  # multiplications up to which a part of an inverse is written out
Block = Matrix | None  # None where all entries are zero


class BlockFactored:
    """Factors of a symmetric positive definite matrix A = V.T V, V lower triangular.

    Elimination goes from the last block to the first: with parents first, blocks of
    zeros between branches of a tree stay such, and cost nothing. Pivots and what is
    required of them are those of Factored, which V is a scaled form of: V = D^1/2 L.

    Args:
        A: The matrix.
        pivot_tolerances, items: By row, as Factored takes them.
        blocks: Rows of each block, every row in one.
    """

    def __init__(
        self,
        A: Matrix,
        pivot_tolerances: Sequence[float],
        items: Sequence[str],
        blocks: Sequence[Sequence[int]],
    ) -> None:
        self.blocks, count = blocks, len(blocks)
        self.V: list[list[Block]] = [[None] * k for k in range(count)]
        self.V_inverse: list[Matrix] = [Matrix(())] * count  # of blocks (k, k)
        for j in reversed(range(count)):
            rest: list[Block] = [_block(A, blocks[j], blocks[i]) for i in range(j + 1)]
            for k in range(j + 1, count):
                left = self.V[k][j]
                for i in range(j + 1) if left is not None else ():
                    right = left if i == j else self.V[k][i]
                    rest[i] = _added(rest[i], left and left.T, right, negative=True)
            diagonal = rest[j]
            assert diagonal is not None
            factors = Factored(
                diagonal,
                [pivot_tolerances[x] for x in blocks[j]],
                [items[x] for x in blocks[j]],
            )
            self.V_inverse[j] = _scaled_inverse(factors)
            over = self.V_inverse[j].T
            self.V[j] = [_times(over, M) for M in rest[:j]]

    def solve(self, b: Sequence[Any]) -> Vector:
        """Return x of A x = b."""
        return self._second_half(self._first_half(b))

    def halves(self, b: Sequence[Any]) -> tuple[Vector, Vector]:
        """Return z = V^-T b twice, so that b.T A^-1 c = z(b) . z(c)."""
        z = Vector(x for part in self._first_half(b) for row in part.rows for x in row)
        return z, z

    def inverse(self) -> Matrix:
        """Return the inverse of A, symmetric to the last bit.

        A^-1 = Z Z.T, Z = V^-1: column after column of blocks, each onto the later ones.
        """
        Z, n = self._inverse_of_V(), sum(map(len, self.blocks))
        result: dict[tuple[int, int], Any] = {}
        for k in reversed(range(len(self.blocks))):
            below = [i for i in range(k, len(self.blocks)) if Z[i][k] is not None]
            rows = [x for i in below for x in self.blocks[i]]
            half = Matrix(row for i in below for row in _rows(Z[i][k]))
            known = Matrix([result.get((x, y), 0.0) for y in rows] for x in rows)
            if len(rows) ** 2 * half.shape[1] < SMALL:
                part = half @ half.T + known
            else:
                part = product(half, half.T, known)
            for x, row in zip(rows, part.rows, strict=True):
                result |= {(x, y): z for y, z in zip(rows, row, strict=True)}
        return Matrix([result.get((x, y), 0.0) for y in range(n)] for x in range(n))

    def _inverse_of_V(self) -> list[list[Block]]:
        """Return the blocks (k, i), i <= k, of Z = V^-1."""
        Z: list[list[Block]] = []
        for k, diagonal in enumerate(self.V_inverse):
            row: list[Block] = []
            for i in range(k):
                total: Block = None
                for m in range(i, k):
                    total = _added(total, self.V[k][m], Z[m][i])
                row.append(
                    None if total is None else product(diagonal, total, None, True)
                )
            Z.append([*row, diagonal])
        return Z

    def _first_half(self, b: Sequence[Any]) -> list[Matrix]:
        """Return V^-T b by block, as columns."""
        y = [Matrix([b[x]] for x in rows) for rows in self.blocks]
        for j in reversed(range(len(y))):
            for k in range(j + 1, len(y)):
                part = self.V[k][j]
                if part is not None:
                    y[j] = product(part.T, y[k], y[j], negative=True)
            y[j] = product(self.V_inverse[j].T, y[j])
        return y

    def _second_half(self, y: list[Matrix]) -> Vector:
        """Return V^-1 y."""
        x: list[Any] = [0.0] * sum(map(len, self.blocks))
        parts: list[Matrix] = []
        for k, part in enumerate(y):
            for i in range(k):
                block = self.V[k][i]
                if block is not None:
                    part = product(block, parts[i], part, negative=True)
            parts.append(product(self.V_inverse[k], part))
            for place, (value,) in zip(self.blocks[k], parts[k].rows, strict=True):
                x[place] = value
        return Vector(x)


def _rows(block: Block) -> Sequence[Any]:
    return () if block is None else block.rows


def _block(A: Matrix, rows: Sequence[int], columns: Sequence[int]) -> Block:
    """Return a block of A, None where it is zero."""
    entries = [[A[x, y] for y in columns] for x in rows]
    empty = all(is_structural_zero(x) for row in entries for x in row)
    return None if empty and rows is not columns else Matrix(entries)


def _times(A: Matrix, B: Block) -> Block:
    return None if B is None else product(A, B)


def _added(C: Block, A: Block, B: Block, negative: bool = False) -> Block:
    """Return C + A B or C - A B, where any may be zero."""
    return C if A is None or B is None else product(A, B, C, negative)


def _scaled_inverse(factors: Factored) -> Matrix:
    """Return the inverse of V = D^1/2 L, lower triangular, from L.T D L."""
    n = len(factors.over_D)
    W = [[float(i == j) for j in range(n)] for i in range(n)]  # L^-1
    for i in range(n):
        for j in range(i):
            total = factors.L[i][j]
            for k in range(j + 1, i):
                total = total + factors.L[i][k] * W[k][j]
            W[i][j] = -total
    roots = [sqrt(x) for x in factors.over_D]
    return Matrix([x * roots[j] for j, x in enumerate(row)] for row in W)
