"""Linear system (Y Y.T + D) dx = r of scaled rows, by the cheaper of two factors.

In coordinates, K = 1 + Y.T D^-1 Y as an envelope:
    K w = Y.T D^-1 r,   dx = D^-1 (r - Y w),   Y Y.T dx = Y w
In rows, Y Y.T + D as a full matrix:
    Y Y.T dx = r - D dx
"""

from __future__ import annotations

from typing import NamedTuple

from dyn_core.contact.problem.rows import Rows
from dyn_core.contact.solvers.laws.scaling import Scaled
from dyn_core.contact.solvers.matrices.row_products import add_transposed, multiply
from dyn_core.contact.solvers.matrices.skyline import (
    Skyline,
    factorise,
    lay_out,
    order,
    solve_factorised,
)
from dyn_core.engines.machine_code import FloatArray, machine_code

UNFIT = -1  # in place of a number of unknowns: the matrix does not fit its arrays


class LinearSystem(NamedTuple):
    """Diagonal matrix D of the linear system, and work arrays w (nv,), g (rows,).

    `gram` is the lower triangle of Y Y.T with its diagonal, row by row, in one
    dimension; used if the system is in rows.
    """

    D: FloatArray
    gram: FloatArray
    w: FloatArray
    g: FloatArray


@machine_code
def prepare(
    rows: Rows, blocks: int, m: int, nv: int, scaled: Scaled, envelope: Skyline,
    system: LinearSystem,
) -> tuple[int, bool]:  # fmt: skip
    """Choose the factor with the cheaper solution, and set up its layout.

    Args:
        rows, blocks, m, nv: Problem, and its numbers of blocks, rows, coordinates.
        scaled: Scaled problem.
        envelope: Set to the layout of the factor.
        system: If the factor is in rows, gram is set, and w and g are overwritten.

    Returns:
        The number of unknowns of the factor, UNFIT (-1) if its arrays are too small;
        and whether it is in rows.
    """
    count, entries = order(rows, blocks, nv, envelope)
    products = 0
    for k in range(blocks):
        products += rows.count[k] * rows.support_count[k]
    room = min(len(envelope.values), len(system.gram))
    small = m * (m + 1) // 2
    if m * m <= 2 * (entries + products) and small <= room:
        if m <= len(envelope.inverse):
            _lay_out_rows(rows, blocks, m, scaled, envelope, system, count)
            return m, True
    if entries > len(envelope.values):
        return UNFIT, False
    return count, False


@machine_code
def _lay_out_rows(
    rows: Rows, blocks: int, m: int, scaled: Scaled, envelope: Skyline,
    system: LinearSystem, count: int,
) -> None:  # fmt: skip
    """Set system.gram to the lower triangle of Y Y.T, and lay out a full matrix.

    Entry (i, j), j <= i, of Y Y.T is system.gram[i (i + 1) / 2 + j]. The envelope gets
    the layout of a full lower triangle of m rows; its cached order becomes invalid.
    `count` is the number of coordinates of `order`; system.w and g are overwritten.
    """
    w = system.w
    for v in range(count):
        w[v] = 0.0
    for k in range(blocks):
        s, width = rows.support_start[k], rows.support_count[k]
        for row in range(rows.count[k]):
            i, a = rows.start[k] + row, rows.y_start[k] + row * width
            for j in range(width):
                w[envelope.local[s + j]] = scaled.y[a + j]
            for other in range(blocks):
                if rows.start[other] <= i:
                    multiply_into(rows, envelope, scaled, other, w, system.g)
            for j in range(i + 1):
                system.gram[i * (i + 1) // 2 + j] = system.g[j]
            for j in range(width):
                w[envelope.local[s + j]] = 0.0
    envelope.kept[0] = -1  # `first` is overwritten, so the cached order is invalid
    for i in range(m):
        envelope.first[i] = 0
    lay_out(m, envelope)


@machine_code
def multiply_into(
    rows: Rows, envelope: Skyline, scaled: Scaled, k: int, w: FloatArray, g: FloatArray
) -> None:
    """Set the rows of block k of g to Y w, with w in the order of elimination."""
    s, width, a = rows.support_start[k], rows.support_count[k], rows.y_start[k]
    for row in range(rows.count[k]):
        total = 0.0
        for j in range(width):
            total += scaled.y[a + row * width + j] * w[envelope.local[s + j]]
        g[rows.start[k] + row] = total


@machine_code
def refactor(
    rows: Rows, blocks: int, scaled: Scaled, envelope: Skyline, system: LinearSystem,
    count: int, in_rows: bool,
) -> bool:  # fmt: skip
    """Factorise the matrix for system.D; return whether it is positive definite."""
    values, begin = envelope.values, envelope.begin
    if in_rows:
        for e in range(count * (count + 1) // 2):
            values[e] = system.gram[e]
        for i in range(count):
            values[begin[i] + i] += system.D[i]
        return factorise(count, envelope)
    for i in range(count):
        for j in range(envelope.first[i], i):
            values[begin[i] + j] = 0.0
        values[begin[i] + i] = 1.0
    for k in range(blocks):
        s, width = rows.support_start[k], rows.support_count[k]
        for row in range(rows.count[k]):
            a = rows.y_start[k] + row * width
            weight = 1.0 / system.D[rows.start[k] + row]
            for j in range(width):
                p, value = envelope.local[s + j], weight * scaled.y[a + j]
                for e in range(j + 1):
                    q = envelope.local[s + e]
                    place = begin[p] + q if q < p else begin[q] + p
                    values[place] += value * scaled.y[a + e]
    return factorise(count, envelope)


@machine_code
def solve_system(
    rows: Rows, blocks: int, m: int, scaled: Scaled, envelope: Skyline,
    system: LinearSystem, count: int, in_rows: bool, r: FloatArray, dx: FloatArray,
) -> None:  # fmt: skip
    """Set dx to the solution of (Y Y.T + D) dx = r, and r to Y Y.T dx.

    system.w and g are overwritten unless the factor is in rows.
    """
    w, g, D = system.w, system.g, system.D
    if in_rows:
        for i in range(m):
            dx[i] = r[i]
        solve_factorised(count, envelope, dx)
        for i in range(m):
            r[i] -= D[i] * dx[i]
        return
    for i in range(m):
        g[i] = r[i] / D[i]
    for v in range(count):
        w[v] = 0.0
    add_transposed(rows, envelope.local, scaled.y, blocks, g, w)
    solve_factorised(count, envelope, w)
    for i in range(m):
        dx[i] = g[i]
    multiply(rows, envelope.local, scaled.y, blocks, w, r)
    for i in range(m):
        dx[i] -= r[i] / D[i]
