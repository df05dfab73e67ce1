"""Large symmetric systems of number-like entries, by blocks: A = L.T D L."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from dyn_core.spatial.linear import Factored, is_structural_zero, product
from dyn_core.spatial.vectors import Matrix, Vector

_LARGE = 1000  # multiplications from which a product is cut where its columns differ


class BlockFactored:
    """Factors of a symmetric positive definite matrix A = L.T D L, D of blocks.

    Elimination goes from the last block to the first: with parents first, blocks of
    zeros between branches of a tree stay such, and cost nothing. Pivots and what is
    required of them are those of Factored.

    What a block takes off those above it is C.T D^-1 C, with the rows C that couple it
    to them. By an inverse of its D it would lose as many digits as the inverse does; by
    L^-T C, with D = L.T d L, it is a sum of squares that loses none to speak of (N.
    Higham, Accuracy and Stability of Numerical Algorithms, sections 10.1 and 14.1).

    Args:
        A: The matrix.
        pivot_tolerances, items: By row, as Factored takes them.
        blocks: Rows of each block, every row in one.

    Attributes:
        above: By block, the columns of earlier blocks that are not zero in its rows.
        D_inverse: By block, the inverse of its block of D.
        L: By row, entries by column, those of `above`; L is one on the diagonal.
    """

    def __init__(
        self,
        A: Matrix,
        pivot_tolerances: Sequence[float],
        items: Sequence[str],
        blocks: Sequence[Sequence[int]],
    ) -> None:
        self.blocks, self.n, count = blocks, sum(map(len, blocks)), len(blocks)
        self.above: list[list[int]] = [[]] * count
        self.D_inverse: list[Matrix] = [Matrix(())] * count
        self.L: list[dict[int, Any]] = [{} for _ in range(self.n)]
        rest, left = [list(row) for row in A.rows], list(reversed(range(count)))
        while left:
            ends = [k for k in left if not self._coupled(rest, k, left)]
            systems = [
                (
                    _part(rest, blocks[k], blocks[k]),
                    [pivot_tolerances[x] for x in blocks[k]],
                    [items[x] for x in blocks[k]],
                )
                for k in ends
            ]
            for k, factors in zip(ends, Factored.together(systems), strict=True):
                self.D_inverse[k] = factors.inverse()
                self._eliminate(rest, k, factors)
            left = [k for k in left if k not in ends]

    def _coupled(self, rest: list[list[Any]], k: int, left: Sequence[int]) -> bool:
        """Return whether one of the blocks behind k that are left depends on it."""
        return any(
            not is_structural_zero(rest[x][y])
            for m in reversed(left)
            if m > k
            for x in self.blocks[m]
            for y in self.blocks[k]
        )

    def _eliminate(self, rest: list[list[Any]], k: int, factors: Factored) -> None:
        """Take a block's share off the rows above it; `factors` are those of its D."""
        rows, blocks = self.blocks[k], self.blocks
        above = self.above[k] = _filled(rest, rows, chain(*blocks[:k]))
        if not above:
            return
        coupling = _part(rest, rows, above)
        left, half = factors.inverse_of_L(), coupling
        if len(rows) > 1:
            half = product(left.T, coupling)
        scaled = Matrix(
            [x * over for x in row]
            for row, over in zip(half.rows, factors.over_D, strict=True)
        )
        part = product(left, scaled) if len(rows) > 1 else scaled
        for x, row in zip(rows, part.rows, strict=True):
            self.L[x] = dict(zip(above, row, strict=True))
        for block in blocks[:k]:
            here = [y for y in above if y in block]
            if here:
                columns = above[: above.index(here[-1]) + 1]
                first = [above.index(y) for y in here]
                within, n = range(len(rows)), range(len(columns))
                moves = _part(half.rows, within, first).T, _part(scaled.rows, within, n)
                onto = _part(rest, here, columns)
                _put(rest, here, columns, product(*moves, onto, negative=True))

    def solve(self, b: Sequence[Any]) -> Vector:
        """Return x of A x = b."""
        x = self.solve_matrix(Matrix([value] for value in b))
        return Vector(value for (value,) in x.rows)

    def solve_matrix(self, B: Matrix, negative: bool = False) -> Matrix:
        """Return X of A X = B, or of A X = -B.

        What is zero by structure in B is left out: the columns of one branch of a tree
        cost nothing in others until they have come to the base.
        """
        rest, groups = [list(row) for row in B.rows], self._alike(B)
        for columns in groups:
            self._towards_the_first(rest, columns)
        X: list[list[Any]] = [[0.0] * B.shape[1] for _ in range(self.n)]
        for k, rows in enumerate(self.blocks):
            for columns in groups:
                right = _part(rest, rows, columns)
                if _any(right):
                    share = product(self.D_inverse[k], right, None, negative)
                    _put(X, rows, columns, share)
            for run in _runs(self.above[k]):
                moved = _filled(X, run, range(B.shape[1]))
                large = len(rows) * len(run) * len(moved) >= _LARGE
                parts = _alike_there(X, rows, moved) if large else [moved]
                for columns in filter(None, parts):
                    onto = _part(X, rows, columns)
                    moves = self._part_of_L(rows, run), _part(X, run, columns)
                    whole = product(*moves, onto if _any(onto) else None, True)
                    _put(X, rows, columns, whole)
        return Matrix(X)

    def halves(self, b: Sequence[Any]) -> tuple[Vector, Vector]:
        """Return z = L^-T b and D^-1 z, so that b.T A^-1 c = z(b) . D^-1 z(c)."""
        z, scaled = [[value] for value in b], [[0.0] for _ in range(self.n)]
        self._towards_the_first(z, [0])
        for rows, inverse in zip(self.blocks, self.D_inverse, strict=True):
            _put(scaled, rows, [0], product(inverse, _part(z, rows, [0])))
        return Vector(x for (x,) in z), Vector(x for (x,) in scaled)

    def inverse(self) -> Matrix:
        """Return the inverse of A, symmetric to the last bit.

        Row after row of blocks, from those above, a: X_kj = -L_ka X_aj for earlier
        blocks j, and X_kk = D_k^-1 - L_ka X_ak.
        """
        X: list[list[Any]] = [[0.0] * self.n for _ in range(self.n)]
        for k, rows in enumerate(self.blocks):
            square, earlier = self.D_inverse[k], list(chain(*self.blocks[:k]))
            part: Matrix | None = None
            before = _filled(X, self.above[k], earlier)
            for run in _runs(self.above[k]):
                moves = self._part_of_L(rows, run), _part(X, run, before)
                part = product(*moves, part, negative=True)
            if part is not None:
                _put(X, rows, before, part)
                _put(X, before, rows, part.T)
            for run in _runs(self.above[k]):
                moves = self._part_of_L(rows, run), _part(X, run, rows)
                square = product(*moves, square, negative=True)
            n = range(len(rows))
            lower = Matrix([square[max(i, j), min(i, j)] for j in n] for i in n)
            _put(X, rows, rows, lower)
        return Matrix(X)

    def _towards_the_first(self, rest: list[list[Any]], columns: list[int]) -> None:
        """Make L^-T B of columns of B: each block takes off those that depend on it."""
        for k in reversed(range(len(self.blocks))):
            rows = self.blocks[k]
            below = [
                x
                for x in chain(*self.blocks[k + 1 :])
                if any(y in self.L[x] for y in rows)
                and not all(is_structural_zero(rest[x][y]) for y in columns)
            ]
            for run in _runs(below):
                left = Matrix([self.L[x].get(y, 0.0) for x in run] for y in rows)
                right, onto = _part(rest, run, columns), _part(rest, rows, columns)
                _put(rest, rows, columns, product(left, right, onto, negative=True))

    def _part_of_L(self, rows: Sequence[int], columns: Sequence[int]) -> Matrix:
        return Matrix([self.L[x][y] for y in columns] for x in rows)

    def _alike(self, B: Matrix) -> list[list[int]]:
        """Return the columns of B, neighbours that are not zero in the same blocks."""
        groups: list[list[int]] = []
        last: list[bool] = []
        for y in range(B.shape[1]):
            filled = [_any(_part(B.rows, rows, [y])) for rows in self.blocks]
            if not groups or filled != last:
                groups.append([])
            groups[-1].append(y)
            last = filled
        return groups


def _runs(numbers: Sequence[int]) -> list[list[int]]:
    """Return the runs of neighbours among whole numbers."""
    runs: list[list[int]] = []
    for k in numbers:
        if not runs or runs[-1][-1] + 1 != k:
            runs.append([])
        runs[-1].append(k)
    return runs


def _alike_there(
    M: Sequence[Sequence[Any]], rows: Sequence[int], columns: Sequence[int]
) -> list[list[int]]:
    """Return runs of neighbours among columns: some rows are filled in all or none.

    What is added to them then lies where it came from, and the result where it goes.
    """
    filled = set(_filled(M, rows, columns))
    runs: list[list[int]] = []
    for run in _runs(columns):
        for y, before in zip(run, [None, *run], strict=False):
            if before is None or (y in filled) != (before in filled):
                runs.append([])
            runs[-1].append(y)
    return runs


def _any(M: Matrix) -> bool:
    """Return whether an entry is not zero by structure."""
    return any(not is_structural_zero(x) for row in M.rows for x in row)


def _part(M: Sequence[Sequence[Any]], rows: Sequence[int], columns: Any) -> Matrix:
    return Matrix([M[x][y] for y in columns] for x in rows)


def _put(
    M: list[list[Any]], rows: Sequence[int], columns: Sequence[int], part: Matrix
) -> None:
    for x, row in zip(rows, part.rows, strict=True):
        for y, value in zip(columns, row, strict=True):
            M[x][y] = value


def _filled(M: Sequence[Sequence[Any]], rows: Any, columns: Any) -> list[int]:
    """Return the columns in which one of the rows is not zero by structure."""
    return [y for y in columns if not all(is_structural_zero(M[x][y]) for x in rows)]
