"""Products of matrices: one order of multiplications and additions on every number.

    c_ij = a_i0 b_0j,   then   c_ij = c_ij + a_ik b_kj   for k = 1, 2, ...

or, with a third matrix C, all terms are added to its entries. Small products are
written out, operation by operation. Large ones are one operation of a Graph: a loop
over blocks in machine code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

Matrices = tuple[Sequence[Any], Sequence[Any], Sequence[Any]]


class ProductShape(NamedTuple):
    """Sizes of a matrix product, its sign, and whether it is added to a third matrix.

    A is rows x inner, B inner x columns. `negative` means -A B, or C - A B; `onto` that
    it is added to a matrix C, rows x columns.
    """

    rows: int
    inner: int
    columns: int
    negative: bool = False
    onto: bool = False

    def split(
        self, entries: Sequence[Any]
    ) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
        """Return the parts of `entries`: of A, of B, and of C, empty without C."""
        a = self.rows * self.inner
        b = a + self.inner * self.columns
        return entries[:a], entries[a:b], entries[b:]

    @property
    def work(self) -> int:
        """Number of multiplications."""
        return self.rows * self.inner * self.columns


def unrolled_product(
    a: Sequence[Any], b: Sequence[Any], c: Sequence[Any], shape: ProductShape
) -> list[Any]:
    """Return the entries of A B, -A B, C + A B or C - A B, by scalar operators.

    All entries are row by row; c is read only where shape.onto. shape.inner is at least
    1.
    """
    rows, inner, columns, negative, onto = shape
    result = []
    for i in range(rows):
        row = a[i * inner : (i + 1) * inner]
        for j in range(columns):
            if onto:
                total = c[i * columns + j]
            else:
                total = row[0] * b[j]
                total = -total if negative else total
            for k in range(0 if onto else 1, inner):
                term = row[k] * b[k * columns + j]
                total = total - term if negative else total + term
            result.append(total)
    return result
