"""Products of matrices: one order of multiplications and additions on every number.

    c_ij = a_i0 b_0j,   then   c_ij = c_ij + a_ik b_kj   for k = 1, 2, ...

Small ones are written out operation by operation. Large ones are one operation of a
Graph, a loop over blocks in machine code, with the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple


class ProductShape(NamedTuple):
    """Size of a product of matrices, and its sign.

    Attributes:
        rows, inner, columns: A is rows x inner, B inner x columns.
        negative: Whether the result is -A B.
    """

    rows: int
    inner: int
    columns: int
    negative: bool = False

    @property
    def work(self) -> int:
        """Number of multiplications."""
        return self.rows * self.inner * self.columns


def unrolled_product(
    a: Sequence[Any], b: Sequence[Any], shape: ProductShape
) -> list[Any]:
    """Return the entries of A B, operation by operation."""
    rows, inner, columns, negative = shape
    result = []
    for i in range(rows):
        row = a[i * inner : (i + 1) * inner]
        for j in range(columns):
            total = row[0] * b[j]
            if negative:
                total = -total
            for k in range(1, inner):
                term = row[k] * b[k * columns + j]
                total = total - term if negative else total + term
            result.append(total)
    return result
