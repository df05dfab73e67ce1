"""Large symmetric linear systems of number-like entries, by blocks: A = L.T D L.

A structural zero is a Python float 0.0; symbols and zeros of other types are none.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from dyn_core.spatial.linear import Factored, is_structural_zero, product
from dyn_core.spatial.vectors import Matrix, Vector

_LARGE = 1000  # multiplications from which a product is split by its zero pattern


class BlockFactored:
    """Factors of a symmetric positive definite matrix A = L.T D L, D block-diagonal.

    Elimination goes from the last block to the first: with parents first, blocks of
    zeros between branches of a tree stay zero and cost nothing. A pivot at or below its
    row's tolerance is a SingularError with the row's item.

    The elimination of a block subtracts C.T D^-1 C from the earlier blocks, with the
    rows C that couple it to them. Computed with an inverse of D, this loses as many
    digits as the inverse; computed with L^-T C, where D = L.T d L, it is a sum of
    squares that loses almost none (N. Higham, Accuracy and Stability of Numerical
    Algorithms, sections 10.1 and 14.1).

    Attributes:
        above: By block: ascending indices of the columns of earlier blocks in which its
            rows are not structural zeros.
        L: By row: dict from column to entry, for the columns in `above` of its block.
            The diagonal blocks of L are identity matrices and are not stored.
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
        """Return whether a later block in `left` is coupled to block k.

        It is coupled if its rows of `rest` have entries in the columns of block k that
        are not structural zeros. The lower block triangle of `rest` (n, n) is valid.
        """
        return any(
            not is_structural_zero(rest[x][y])
            for m in reversed(left)
            if m > k
            for x in self.blocks[m]
            for y in self.blocks[k]
        )

    def _eliminate(self, rest: list[list[Any]], k: int, factors: Factored) -> None:
        """Eliminate block k from the earlier rows of `rest` (n, n), in place.

        Sets self.above[k] and the rows of self.L of block k. Only the lower block
        triangle is read and changed; entries above it become invalid.
        """
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
        """Return x of A x = b, for b (n); TypeError for another number of entries."""
        x = self.solve_matrix(Matrix([value] for value in b))
        return Vector(value for (value,) in x.rows)

    def solve_matrix(self, B: Matrix, negative: bool = False) -> Matrix:
        """Return X (n, m) of A X = B, or -B; structural zeros of B are skipped."""
        self._check(B.rows)
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
        """Return z = L^-T b and D^-1 z, (n,) each: b.T A^-1 c = z(b) . D^-1 z(c)."""
        self._check(b)
        z, scaled = [[value] for value in b], [[0.0] for _ in range(self.n)]
        self._towards_the_first(z, [0])
        for rows, inverse in zip(self.blocks, self.D_inverse, strict=True):
            _put(scaled, rows, [0], product(inverse, _part(z, rows, [0])))
        return Vector(x for (x,) in z), Vector(x for (x,) in scaled)

    def inverse(self) -> Matrix:
        """Return the inverse of A, symmetric to the last bit.

        From earlier blocks a and j: X_kj = -L_ka X_aj, X_kk = D_k^-1 - L_ka X_ak.
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

    def _check(self, rows: Sequence[Any]) -> None:
        if len(rows) != self.n:
            raise TypeError(f"a right side of {len(rows)} rows; valid: {self.n}")

    def _towards_the_first(self, rest: list[list[Any]], columns: list[int]) -> None:
        """Replace columns of `rest` (n, m) by L^-T times these columns, in place.

        Rows with structural zeros in all these columns are skipped.
        """
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
        """Return the entries of L in these rows and columns as a Matrix."""
        return Matrix([self.L[x][y] for y in columns] for x in rows)

    def _alike(self, B: Matrix) -> list[list[int]]:
        """Return runs of adjacent columns of B that are nonzero in the same blocks.

        A column is nonzero in a block if an entry is not a structural zero.
        """
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
    """Return the runs of integers k, k + 1, ... in a list, in order."""
    runs: list[list[int]] = []
    for k in numbers:
        if not runs or runs[-1][-1] + 1 != k:
            runs.append([])
        runs[-1].append(k)
    return runs


def _alike_there(
    M: Sequence[Sequence[Any]], rows: Sequence[int], columns: Sequence[int]
) -> list[list[int]]:
    """Return runs of consecutive column indices, all filled or all zero in some rows.

    A column is filled if one of the given rows of M is not a structural zero there. All
    columns are in one of the runs, so that operands and results of a product over a run
    are contiguous.
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
    """Return whether some entry of M is not a structural zero; False for an empty M."""
    return any(not is_structural_zero(x) for row in M.rows for x in row)


def _part(M: Sequence[Sequence[Any]], rows: Sequence[int], columns: Any) -> Matrix:
    """Return the submatrix of M with these rows and columns, in the order given.

    `columns` is a list or range (no iterator): it is iterated once for each row.
    """
    return Matrix([M[x][y] for y in columns] for x in rows)


def _put(
    M: list[list[Any]], rows: Sequence[int], columns: Sequence[int], part: Matrix
) -> None:
    """Write `part` into these rows and columns of M, in place."""
    for x, row in zip(rows, part.rows, strict=True):
        for y, value in zip(columns, row, strict=True):
            M[x][y] = value


def _filled(M: Sequence[Sequence[Any]], rows: Any, columns: Any) -> list[int]:
    """Return those of `columns`, in their order, with a nonzero entry in some `rows`.

    Only structural zeros count as zero.
    """
    return [y for y in columns if not all(is_structural_zero(M[x][y]) for x in rows)]
