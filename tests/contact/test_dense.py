"""Small dense matrices in machine code: every size gives NumPy's products and inverses.

Tiles overlap at the last column and the last row: sizes around multiples of a tile,
and numbers outside of the leading part, show a tile that reaches too far.
"""

from __future__ import annotations

import numpy as np
import pytest

from dyn_core.contact.solvers.matrices.dense import (
    add,
    add_by_sparse,
    add_sparse,
    invert,
    product,
    product_of_columns,
)
from dyn_core.engines.machine_code import FloatArray2, compiled, machine_code

SIZES = [
    (1, 1, 1),
    (2, 3, 7),
    (3, 2, 8),
    (5, 4, 9),
    (8, 8, 16),
    (7, 35, 17),
    (18, 24, 35),
]
PRODUCTS = {
    "product": product,
    "add_sparse": add_sparse,
    "add_by_sparse": add_by_sparse,
}


def in_python(function, *arrays):
    return lambda *numbers: function(*arrays, *numbers)


def in_machine_code(function, *arrays):
    return compiled(function).bind(*arrays)


CALLS = pytest.mark.parametrize("call", [in_python, in_machine_code])


@CALLS
@pytest.mark.parametrize("kind", PRODUCTS)
@pytest.mark.parametrize("rows, inner, columns", SIZES)
def test_a_product_is_numpy_s_and_changes_nothing_else(
    call, kind, rows, inner, columns
):
    rng = np.random.default_rng(20261128)
    A, B = (
        rng.standard_normal((rows + 2, inner + 1)),
        rng.standard_normal((inner + 1, columns + 3)),
    )
    A[rng.random(A.shape) < 0.5] = 0.0
    before = rng.standard_normal((rows + 3, columns + 5))
    to = before.copy()
    call(PRODUCTS[kind], A, B, to)(rows, inner, columns, 2)
    wanted = before.copy()
    if kind == "product":
        wanted[:rows, 2 : columns + 2] = 0.0
    wanted[:rows, 2 : columns + 2] += A[:rows, :inner] @ B[:inner, :columns]
    np.testing.assert_allclose(to, wanted, 0, 1e-13)


@CALLS
@pytest.mark.parametrize("lower", [0, 1])
@pytest.mark.parametrize("rows, inner, columns", SIZES)
def test_a_product_of_columns_is_numpy_s(call, rows, inner, columns, lower):
    rng = np.random.default_rng(20261129)
    columns = rows if lower else columns
    A = rng.standard_normal((inner + 2, rows + 1))
    B = rng.standard_normal((inner + 1, columns + 3))
    before = rng.standard_normal((rows + 3, columns + 5))
    to = before.copy()
    call(product_of_columns, A, B, to)(rows, inner, columns, lower)
    wanted, result = A[:inner, :rows].T @ B[:inner, :columns], to[:rows, :columns]
    if lower:
        wanted, result = np.tril(wanted), np.tril(result)
    np.testing.assert_allclose(result, wanted, 0, 1e-13)
    to[:rows, :columns] = before[:rows, :columns]
    np.testing.assert_array_equal(to, before)


@machine_code
def inverted(
    a: FloatArray2, work: FloatArray2, n: int, rank: float, nothing: float
) -> int:
    return invert(a, n, rank, nothing, work)


@CALLS
@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 18, 35])
def test_an_inverse_is_numpy_s_and_changes_nothing_else(call, n):
    rng = np.random.default_rng(n)
    matrix = rng.standard_normal((n + 2, n + 2))
    matrix[:n, :n] += 2 * n * np.eye(n)
    result = matrix.copy()
    assert call(inverted, result, np.zeros((2, n)))(n, 0.0, 0.0) == 0
    wanted = matrix.copy()
    wanted[:n, :n] = np.linalg.inv(matrix[:n, :n])
    np.testing.assert_allclose(result, wanted, 0, 1e-14)


@pytest.mark.parametrize("n, rank", [(4, 2), (12, 9), (20, 6)])
def test_dependent_rows_are_zero_and_the_others_solve_the_system(n, rank):
    rng = np.random.default_rng(n)
    Y = rng.standard_normal((n, rank))
    inverse = Y @ Y.T
    assert invert(inverse, n, 1e-9, 1e-12, np.zeros((2, n))) == n - rank
    right = Y @ rng.standard_normal(rank)
    np.testing.assert_allclose(Y @ Y.T @ (inverse @ right), right, 0, 1e-8)


def test_a_sum_is_numpy_s_and_changes_nothing_else():
    rng = np.random.default_rng(0)
    a, before = rng.standard_normal((9, 9)), rng.standard_normal((9, 9))
    to = before.copy()
    add(a, to, 7, 8)
    before[:7, :8] += a[:7, :8]
    np.testing.assert_array_equal(to, before)
