"""Products with the sparse rows of a problem, in the subset of machine code."""

from __future__ import annotations

from dyn_core.contact.problem.rows import Rows
from dyn_core.engines.machine_code import FloatArray, IntArray, machine_code


@machine_code
def add_transposed(
    rows: Rows,
    index: IntArray,
    y: FloatArray,
    blocks: int,
    x: FloatArray,
    z: FloatArray,
) -> None:
    """Add Y.T x to z; `index` has the index in z of each entry of rows.support."""
    for k in range(blocks):
        add_block(rows, index, y, k, x, z)


@machine_code
def add_block(
    rows: Rows, index: IntArray, y: FloatArray, k: int, x: FloatArray, z: FloatArray
) -> None:
    """Add Y.T x of the rows of block k to z, with `index` as in add_transposed."""
    i, n = rows.start[k], rows.count[k]
    s, width, a = rows.support_start[k], rows.support_count[k], rows.y_start[k]
    if n == 3:  # the usual contact, in one pass over z
        x0, x1, x2 = x[i], x[i + 1], x[i + 2]
        for j in range(width):
            more = x0 * y[a + j] + x1 * y[a + width + j] + x2 * y[a + 2 * width + j]
            z[index[s + j]] += more
        return
    for row in range(n):
        value = x[i + row]
        for j in range(width):
            z[index[s + j]] += value * y[a + row * width + j]


@machine_code
def multiply(
    rows: Rows,
    index: IntArray,
    y: FloatArray,
    blocks: int,
    z: FloatArray,
    u: FloatArray,
) -> None:
    """Set u to Y z in the rows of the blocks, with `index` as in add_transposed."""
    for k in range(blocks):
        multiply_block(rows, index, y, k, z, u)


@machine_code
def multiply_block(
    rows: Rows, index: IntArray, y: FloatArray, k: int, z: FloatArray, u: FloatArray
) -> None:
    """Set the rows of block k of u to Y z, with `index` as in add_transposed."""
    i, n = rows.start[k], rows.count[k]
    s, width, a = rows.support_start[k], rows.support_count[k], rows.y_start[k]
    if n == 3:  # the usual contact, in one pass over z
        u0, u1, u2 = 0.0, 0.0, 0.0
        for j in range(width):
            value = z[index[s + j]]
            u0 += y[a + j] * value
            u1 += y[a + width + j] * value
            u2 += y[a + 2 * width + j] * value
        u[i] = u0
        u[i + 1] = u1
        u[i + 2] = u2
        return
    for row in range(n):
        total = 0.0
        for j in range(width):
            total += y[a + row * width + j] * z[index[s + j]]
        u[i + row] = total


@machine_code
def row_response(rows: Rows, k: int, row: int) -> float:
    """Return the response G_ii + R_i of a row, without scaling [(m/s)/(N·s)]."""
    width = rows.support_count[k]
    a = rows.y_start[k] + row * width
    total = 0.0
    for j in range(width):
        total += rows.y[a + j] * rows.y[a + j]
    return total + rows.compliance[rows.start[k] + row]
