"""Products and inverses of small matrices, in tiles of eight columns.

In the subset of machine code. A tile is a vector of the processor: its eight sums are
written out, since loops over arrays that may overlap are not vectorised well.
"""

from __future__ import annotations

from dyn_core.engines.machine_code import (
    FloatArray,
    FloatArray2,
    in_vectors,
    machine_code,
)

RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py

TILE, HIGH = 8, 4  # number of columns of a tile; of rows of a high one


@machine_code
def product(
    A: FloatArray2, B: FloatArray2, to: FloatArray2, rows: int, inner: int,
    columns: int, column: int,
) -> None:  # fmt: skip
    """Set to[:rows, column : column + columns] to A B.

    Args:
        A, B: Matrices; A[:rows, :inner] and B[:inner, :columns] are read.
        to: Result; must not share memory with A or B.
        rows, inner, columns: Sizes of the product.
        column: First column of `to` that is written.
    """
    if columns < TILE:
        for i in range(rows):
            for j in range(columns):
                total = 0.0
                for k in range(inner):
                    total += A[i, k] * B[k, j]
                to[i, column + j] = total
        return
    for tile in range((columns + TILE - 1) // TILE):
        first = min(TILE * tile, columns - TILE)  # the last tile overlaps
        for pair in range((rows + 1) // 2):
            _set_tile(A, B, to, rows, inner, 2 * pair, first, column + first)


@machine_code
def _set_tile(
    A: FloatArray2, B: FloatArray2, to: FloatArray2, rows: int, inner: int,
    upper: int, first: int, column: int,
) -> None:  # fmt: skip
    """Set eight columns of `to`, from `column` on, in two rows to those of A B.

    Two rows at once: the additions of one fill the latency of the other. The lower row
    follows the upper one, if there is one; `first` is the first column of B.
    """
    lower = min(upper + 1, rows - 1)
    x0, x1, x2, x3, x4, x5, x6, x7 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    y0, y1, y2, y3, y4, y5, y6, y7 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(inner):
        x, y = A[upper, k], A[lower, k]
        x0 += x * B[k, first + 0]
        x1 += x * B[k, first + 1]
        x2 += x * B[k, first + 2]
        x3 += x * B[k, first + 3]
        x4 += x * B[k, first + 4]
        x5 += x * B[k, first + 5]
        x6 += x * B[k, first + 6]
        x7 += x * B[k, first + 7]
        y0 += y * B[k, first + 0]
        y1 += y * B[k, first + 1]
        y2 += y * B[k, first + 2]
        y3 += y * B[k, first + 3]
        y4 += y * B[k, first + 4]
        y5 += y * B[k, first + 5]
        y6 += y * B[k, first + 6]
        y7 += y * B[k, first + 7]
    upper_row = to[upper]
    upper_row[column] = x0
    upper_row[column + 1] = x1
    upper_row[column + 2] = x2
    upper_row[column + 3] = x3
    upper_row[column + 4] = x4
    upper_row[column + 5] = x5
    upper_row[column + 6] = x6
    upper_row[column + 7] = x7
    lower_row = to[lower]
    lower_row[column] = y0
    lower_row[column + 1] = y1
    lower_row[column + 2] = y2
    lower_row[column + 3] = y3
    lower_row[column + 4] = y4
    lower_row[column + 5] = y5
    lower_row[column + 6] = y6
    lower_row[column + 7] = y7


@machine_code
def product_of_columns(
    A: FloatArray2, B: FloatArray2, to: FloatArray2, rows: int, inner: int,
    columns: int, lower: int,
) -> None:  # fmt: skip
    """Set to[:rows, :columns] to A[:inner, :rows].T B[:inner, :columns].

    If `lower` is 1, entries above the diagonal are arbitrary. `to` is no view of A or
    B.
    """
    if columns < TILE or rows < HIGH:
        for i in range(rows):
            for j in range(columns):
                total = 0.0
                for k in range(inner):
                    total += A[k, i] * B[k, j]
                to[i, j] = total
        return
    if in_vectors():
        for group in range((rows + HIGH - 1) // HIGH):
            row = min(HIGH * group, rows - HIGH)
            width = row + HIGH if lower == 1 else columns
            for tile in range((width + HIGH - 1) // HIGH):
                _set_square(A, B, to, inner, row, min(HIGH * tile, columns - HIGH))
        return
    for tile in range((columns + TILE - 1) // TILE):
        first = min(TILE * tile, columns - TILE)  # the last tile overlaps
        for group in range(lower * first // HIGH, (rows + HIGH - 1) // HIGH):
            _set_high_tile(A, B, to, inner, min(HIGH * group, rows - HIGH), first)


@machine_code
def _set_high_tile(
    A: FloatArray2, B: FloatArray2, to: FloatArray2, inner: int, row: int, column: int
) -> None:
    """Set a block of `to`, four rows and eight columns, to its entries of A.T B."""
    a0, a1, a2, a3, a4, a5, a6, a7 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    b0, b1, b2, b3, b4, b5, b6, b7 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    c0, c1, c2, c3, c4, c5, c6, c7 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    d0, d1, d2, d3, d4, d5, d6, d7 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(inner):
        left, right = A[k], B[k]
        x = left[row]
        a0 += x * right[column]
        a1 += x * right[column + 1]
        a2 += x * right[column + 2]
        a3 += x * right[column + 3]
        a4 += x * right[column + 4]
        a5 += x * right[column + 5]
        a6 += x * right[column + 6]
        a7 += x * right[column + 7]
        x = left[row + 1]
        b0 += x * right[column]
        b1 += x * right[column + 1]
        b2 += x * right[column + 2]
        b3 += x * right[column + 3]
        b4 += x * right[column + 4]
        b5 += x * right[column + 5]
        b6 += x * right[column + 6]
        b7 += x * right[column + 7]
        x = left[row + 2]
        c0 += x * right[column]
        c1 += x * right[column + 1]
        c2 += x * right[column + 2]
        c3 += x * right[column + 3]
        c4 += x * right[column + 4]
        c5 += x * right[column + 5]
        c6 += x * right[column + 6]
        c7 += x * right[column + 7]
        x = left[row + 3]
        d0 += x * right[column]
        d1 += x * right[column + 1]
        d2 += x * right[column + 2]
        d3 += x * right[column + 3]
        d4 += x * right[column + 4]
        d5 += x * right[column + 5]
        d6 += x * right[column + 6]
        d7 += x * right[column + 7]
    stored = to[row]
    stored[column], stored[column + 1] = a0, a1
    stored[column + 2], stored[column + 3] = a2, a3
    stored[column + 4], stored[column + 5] = a4, a5
    stored[column + 6], stored[column + 7] = a6, a7
    stored = to[row + 1]
    stored[column], stored[column + 1] = b0, b1
    stored[column + 2], stored[column + 3] = b2, b3
    stored[column + 4], stored[column + 5] = b4, b5
    stored[column + 6], stored[column + 7] = b6, b7
    stored = to[row + 2]
    stored[column], stored[column + 1] = c0, c1
    stored[column + 2], stored[column + 3] = c2, c3
    stored[column + 4], stored[column + 5] = c4, c5
    stored[column + 6], stored[column + 7] = c6, c7
    stored = to[row + 3]
    stored[column], stored[column + 1] = d0, d1
    stored[column + 2], stored[column + 3] = d2, d3
    stored[column + 4], stored[column + 5] = d4, d5
    stored[column + 6], stored[column + 7] = d6, d7


@machine_code
def _set_square(
    A: FloatArray2, B: FloatArray2, to: FloatArray2, inner: int, row: int, column: int
) -> None:
    """Set a block of `to`, four rows and four columns, to its entries of A.T B.

    In lanes each sum is a vector: 32 of them, and what they read, exceed the registers.
    """
    a0, a1, a2, a3 = 0.0, 0.0, 0.0, 0.0
    b0, b1, b2, b3 = 0.0, 0.0, 0.0, 0.0
    c0, c1, c2, c3 = 0.0, 0.0, 0.0, 0.0
    d0, d1, d2, d3 = 0.0, 0.0, 0.0, 0.0
    for k in range(inner):
        left, right = A[k], B[k]
        y0, y1 = right[column], right[column + 1]
        y2, y3 = right[column + 2], right[column + 3]
        x = left[row]
        a0 += x * y0
        a1 += x * y1
        a2 += x * y2
        a3 += x * y3
        x = left[row + 1]
        b0 += x * y0
        b1 += x * y1
        b2 += x * y2
        b3 += x * y3
        x = left[row + 2]
        c0 += x * y0
        c1 += x * y1
        c2 += x * y2
        c3 += x * y3
        x = left[row + 3]
        d0 += x * y0
        d1 += x * y1
        d2 += x * y2
        d3 += x * y3
    stored = to[row]
    stored[column], stored[column + 1] = a0, a1
    stored[column + 2], stored[column + 3] = a2, a3
    stored = to[row + 1]
    stored[column], stored[column + 1] = b0, b1
    stored[column + 2], stored[column + 3] = b2, b3
    stored = to[row + 2]
    stored[column], stored[column + 1] = c0, c1
    stored[column + 2], stored[column + 3] = c2, c3
    stored = to[row + 3]
    stored[column], stored[column + 1] = d0, d1
    stored[column + 2], stored[column + 3] = d2, d3


@machine_code
def add_sparse(
    S: FloatArray2, B: FloatArray2, to: FloatArray2, rows: int, inner: int,
    columns: int, column: int,
) -> None:  # fmt: skip
    """Add S B, S sparse, to to[:rows, column : column + columns], no view of S or B."""
    for i in range(rows):
        for k in range(inner):
            x = S[i, k]
            if x != 0.0:
                for j in range(columns):
                    to[i, column + j] += x * B[k, j]


@machine_code
def add_by_sparse(
    A: FloatArray2, S: FloatArray2, to: FloatArray2, rows: int, inner: int,
    columns: int, column: int,
) -> None:  # fmt: skip
    """Add A S, S sparse, to to[:rows, column : column + columns], no view of A or S."""
    for k in range(inner):
        for j in range(columns):
            x = S[k, j]
            if x != 0.0:
                for i in range(rows):
                    to[i, column + j] += A[i, k] * x


@machine_code
def add(a: FloatArray2, to: FloatArray2, rows: int, columns: int) -> None:
    """Add a[:rows, :columns] to to[:rows, :columns], in place."""
    for i in range(rows):
        for j in range(columns):
            to[i, j] += a[i, j]


@machine_code
def invert(
    a: FloatArray2, n: int, rank: float, nothing: float, work: FloatArray2
) -> int:
    """Invert a matrix in place on its independent rows; the rest becomes zero.

    The rest are the rows and columns of dependent rows (pivot at most `rank` times the
    diagonal), whose number is returned, and of zero rows (diagonal at most `nothing`
    times the largest). Gauss-Jordan elimination in the order of the rows: for symmetric
    semidefinite a and consistent right sides, the solution satisfies dependent rows,
    too. `work` is (2, n) or larger.

    Source: G. Golub and C. Van Loan, Matrix Computations, 5.5, for the rank.
    """
    diagonal, column, largest, lost = work[0], work[1], 0.0, 0
    for k in range(n):
        diagonal[k] = abs(a[k, k])
        largest = max(largest, diagonal[k])
    for k in range(n):
        over = 0.0
        if diagonal[k] > largest * nothing:
            if abs(a[k, k]) > diagonal[k] * rank:
                over = 1.0 / a[k, k]
            else:
                lost += 1
        for i in range(n):
            column[i] = a[i, k]
            a[i, k] = 0.0
        a[k, k] = 1.0
        for j in range(n):
            a[k, j] *= over
        column[k] = 0.0
        for tile in range(n // TILE):
            _eliminate(a, k, TILE * tile, n, column)
        for j in range(n // TILE * TILE, n):
            pivot = a[k, j]
            for i in range(n):
                a[i, j] -= column[i] * pivot
    return lost


@machine_code
def _eliminate(a: FloatArray2, k: int, j: int, n: int, column: FloatArray) -> None:
    """Subtract column[i] times row k from rows i < n of a, in columns j to j + 7.

    Row k itself counts unless column[k] is 0; what is subtracted is the row before.
    """
    pivot = a[k]
    p0, p1, p2, p3 = pivot[j], pivot[j + 1], pivot[j + 2], pivot[j + 3]
    p4, p5, p6, p7 = pivot[j + 4], pivot[j + 5], pivot[j + 6], pivot[j + 7]
    for i in range(n):
        x, row = column[i], a[i]
        r0, r1, r2, r3 = row[j], row[j + 1], row[j + 2], row[j + 3]
        r4, r5, r6, r7 = row[j + 4], row[j + 5], row[j + 6], row[j + 7]
        row[j], row[j + 1] = r0 - x * p0, r1 - x * p1
        row[j + 2], row[j + 3] = r2 - x * p2, r3 - x * p3
        row[j + 4], row[j + 5] = r4 - x * p4, r5 - x * p5
        row[j + 6], row[j + 7] = r6 - x * p6, r7 - x * p7
