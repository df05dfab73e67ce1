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
    """Add Y.T x to z.

    Args:
        rows: Starts and counts of the blocks.
        index: Index in z of each entry of rows.support, in the same order.
        y: Values of Y, indexed like rows.y.
        blocks: Number of blocks.
        x: Vector of rows, (rows,).
        z: Vector of coordinates; changed.
    """
    for k in range(blocks):
        add_block(rows, index, y, k, x, z)


@machine_code
def add_block(
    rows: Rows, index: IntArray, y: FloatArray, k: int, x: FloatArray, z: FloatArray
) -> None:
    """Add Y.T x of the rows of block k to z.

    Args:
        rows: Starts and counts of the blocks.
        index: Index in z of each entry of rows.support, in the same order.
        y: Values of Y, indexed like rows.y.
        k: Index of the block.
        x: Vector of all rows, (rows,); read in the rows of the block.
        z: Vector of coordinates; changed.
    """
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
    """Set u to Y z.

    Args:
        rows: Starts and counts of the blocks.
        index: Index in z of each entry of rows.support, in the same order.
        y: Values of Y, indexed like rows.y.
        blocks: Number of blocks.
        z: Vector of coordinates.
        u: Vector of rows, (rows,); overwritten in the rows of these blocks.
    """
    for k in range(blocks):
        multiply_block(rows, index, y, k, z, u)


@machine_code
def multiply_block(
    rows: Rows, index: IntArray, y: FloatArray, k: int, z: FloatArray, u: FloatArray
) -> None:
    """Set the rows of block k of u to Y z.

    Args:
        rows: Starts and counts of the blocks.
        index: Index in z of each entry of rows.support, in the same order.
        y: Values of Y, indexed like rows.y.
        k: Index of the block.
        z: Vector of coordinates.
        u: Vector of all rows, (rows,); overwritten in the rows of the block.
    """
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
    """Return the response G_ii + R_i of a row [(m/s)/(N·s)].

    Args:
        rows: Problem; y is read without scaling.
        k: Index of the block.
        row: Index of the row within the block.
    """
    width = rows.support_count[k]
    a = rows.y_start[k] + row * width
    total = 0.0
    for j in range(width):
        total += rows.y[a + j] * rows.y[a + j]
    return total + rows.compliance[rows.start[k] + row]
