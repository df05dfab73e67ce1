"""Rolled products of matrices: one operation with one meaning on every engine."""

import numpy as np
import pytest

from dyn_core.authoring import (
    Matrix,
    Taylor,
    Vector,
    product,
    sparse_products,
    where,
)
from dyn_core.engines.graph import trace as tracing
from dyn_core.engines.graph.source import compile_graph
from dyn_core.engines.graph.trace import trace
from dyn_core.engines.llvm import host_machine, kernel
from dyn_core.engines.llvm.function_ir import Ports
from dyn_core.engines.llvm.kernel import Kernel, compile_pieces, pointers
from dyn_core.engines.llvm.lower import lower
from dyn_core.numbers.scalar import Column
from dyn_core.spatial.block_factors import BlockFactored
from dyn_core.spatial.linear import Factored

pytestmark = pytest.mark.quick
SHAPES = [(9, 7, 11), (1, 600, 1), (5, 1, 40), (35, 6, 13), (16, 16, 16), (4, 40, 8)]
MANY_BLOCKS = (26, 9, 39)  # of every size, more than one each way
native = pytest.mark.skipif(bool(host_machine.missing()), reason="no machine code here")


def _matrix(x, rows, columns):
    return Matrix(x[k : k + columns] for k in range(0, rows * columns, columns))


def _chain(rows, inner, columns):
    """Return a function with products of inputs, of values, of results and blocks."""

    def function(x):
        A = _matrix(x, rows, inner)
        B = _matrix(x[rows * inner :], inner, columns)
        C = product(A, B, negative=True)  # of inputs
        square = product(C.T, C)  # of a result and its transpose
        scaled = Matrix([2.0 * y for y in row] for row in C.rows)
        D = product(C, square, scaled)  # of results, onto values
        half = Matrix(row[: (columns + 1) // 2] for row in D.rows)
        E = product(half.T, D, negative=True)  # of a block of a result
        flat = [y for M in (C, D, E) for row in M.rows for y in row]
        return [*flat, C[0, 0] * E[0, 0] + D[rows - 1, columns - 1]]

    return function


def _reference(rows, inner, columns, x):
    A = x[: rows * inner].reshape(rows, inner)
    B = x[rows * inner :].reshape(inner, columns)
    C = -A @ B
    D = 2 * C + C @ (C.T @ C)
    E = -D[:, : (columns + 1) // 2].T @ D
    last = C[0, 0] * E[0, 0] + D[-1, -1]
    return np.concatenate([C.ravel(), D.ravel(), E.ravel(), [last]])


def _run(graph, sizes, rows, variant, out=None):
    """Run a kernel of one input and one output port on rows; `out` may have more."""
    written = kernel.write(graph, sizes, variant, kernel.lanes(rows.dtype))
    facts = {"scratch": written.scratch, "steps": written.steps, "rounds": 1}
    made = Kernel(compile_pieces(written.ir), {**facts, "entries": written.entries})
    owner, scratch = made.memory()
    out = np.empty((len(rows), sizes[1][0]), rows.dtype) if out is None else out
    status = np.zeros(len(rows), np.int64)
    if variant == "scalar":
        for row, result in zip(rows, out, strict=False):
            tables = pointers([row.ctypes.data]), pointers([result.ctypes.data])
            made.call["scalar"](*tables, scratch)
    else:
        tables = [pointers([x]) for x in (rows.ctypes.data, rows.strides[0])]
        end = pointers([out.ctypes.data]), status.ctypes.data, 0, len(rows), scratch
        made.call["batch"](*tables, *end)
    assert owner is not None
    return out


@pytest.mark.parametrize("shape", SHAPES)
def test_products_on_floats_graphs_and_columns(shape, monkeypatch):
    """All engines in Python give what NumPy gives; folding or not, the same bits."""
    rng = np.random.default_rng(3)
    size = shape[0] * shape[1] + shape[1] * shape[2]
    rows = rng.uniform(-1, 1, (5, size)) / shape[1] ** 0.5
    expected = np.array([_reference(*shape, x) for x in rows])
    scale = np.abs(expected).max()
    graph = trace(_chain(*shape), size)
    graph.check()
    assert graph.counts()["product"] == sum(
        m * n * p >= tracing.ROLLED
        for m, n, p in (
            shape,
            (shape[2], shape[0], shape[2]),
            (shape[0], shape[2], shape[2]),
            ((shape[2] + 1) // 2, shape[0], shape[2]),
        )
    )
    floats = [graph.run(list(x))[0] for x in rows]
    assert np.abs(floats - expected).max() < 1e-13 * scale
    assert floats[0] == _chain(*shape)(list(rows[0]))
    columns = compile_graph(graph, columns=True)(list(rows.T))[0]
    assert np.array_equal(np.array(columns).T, floats)
    as_columns = _chain(*shape)([Column(x) for x in rows.T])
    assert np.array_equal(np.array([x.values for x in as_columns]).T, floats)
    monkeypatch.setattr(tracing, "ROLLED", 10**9)
    written_out = trace(_chain(*shape), size)
    assert "product" not in written_out.counts()
    assert written_out.run(list(rows[0]))[0] == floats[0]
    assert "product" not in trace(_chain(*shape), size, folding=False).counts()


@native
@pytest.mark.turns("dtype")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", [*SHAPES, MANY_BLOCKS])
def test_products_in_machine_code(shape, dtype):
    """One state and lanes have the same bits, rows are independent of each other."""
    rng = np.random.default_rng(4)
    size = shape[0] * shape[1] + shape[1] * shape[2]
    rows = (rng.uniform(-1, 1, (39, size)) / shape[1] ** 0.5).astype(dtype)
    expected = np.array([_reference(*shape, x) for x in rows.astype(float)])
    graph = trace(_chain(*shape), size)
    sizes = (size,), (expected.shape[1],)
    single, batch = (_run(graph, sizes, rows, kind) for kind in kernel.VARIANTS)
    assert np.array_equal(single, batch)
    near = 500 * np.finfo(dtype).eps  # 1e-13 and 6e-5
    assert np.abs(single - expected).max() < near * np.abs(expected).max()


@native
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("count", [64, 71, 300])
def test_rows_times_a_number_are_one_operation(count, dtype):
    """Of each sign, alone or onto another row: the same bits for states and lanes."""

    def function(x):
        number, b, c = (
            Matrix([x[:1]]),
            Matrix([x[1 : 1 + count]]),
            Matrix([x[1 + count :]]),
        )
        parts = [
            product(number, b, onto, negative)
            for onto in (None, c)
            for negative in (False, True)
        ]
        again = product(Matrix([[parts[0][0, 0]]]), parts[3], parts[1])
        return [y for part in (*parts, again) for y in part.rows[0]]

    rows = np.random.default_rng(8).uniform(-1, 1, (20, 1 + 2 * count)).astype(dtype)
    graph = trace(function, rows.shape[1])
    assert graph.counts()["product"] == 5
    assert set(graph.counts()) == {"input", "product", "item"}
    a, b, c = (x.astype(float) for x in np.split(rows, [1, 1 + count], axis=1))
    parts = [a * b, -a * b, c + a * b, c - a * b]
    expected = np.hstack([*parts, parts[1] + parts[0][:, :1] * parts[3]])
    sizes = (rows.shape[1],), (expected.shape[1],)
    single, batch = (_run(graph, sizes, rows, kind) for kind in kernel.VARIANTS)
    assert np.array_equal(single, batch)
    assert np.abs(single - expected).max() < 4 * np.finfo(dtype).eps


@native
def test_products_of_one_size_share_their_code():
    """Of a state, products written out; of lanes, blocks of one size."""

    def function(x):
        A = _matrix(x, 6, 6)
        power = A
        for _ in range(9):
            power = product(power, A)
        return [y for row in power.rows for y in row]

    graph = trace(function, 36)
    assert graph.counts()["product"] == 9
    single, batch = (
        kernel.write(graph, ((36,), (36,)), kind, kernel.lanes(np.dtype(float))).ir
        for kind in kernel.VARIANTS
    )
    # The first reads an input, the last writes an output: their rows lie apart.
    assert single.count("define internal void @straight") <= 4
    assert batch.count("define internal void @tile") <= 4
    rows = np.random.default_rng(5).uniform(-0.5, 0.5, (9, 36))
    expected = [np.linalg.matrix_power(x.reshape(6, 6), 10).ravel() for x in rows]
    for kind in kernel.VARIANTS:
        result = _run(graph, ((36,), (36,)), rows, kind)
        assert np.abs(result - expected).max() < 1e-14


def _beside_others(x):
    """Return results among outputs: A B beside other columns, its transpose, A B B."""
    A, B = _matrix(x, 9, 7), _matrix(x[63:], 7, 7)
    C = product(A, B)
    D = product(C, B)
    wide = [[*row, x[0], x[1]] for row in C.rows]
    return [y for M in (wide, C.T.rows, D.rows) for row in M for y in row]


@native
@pytest.mark.parametrize("variant", kernel.VARIANTS)
def test_results_lie_among_the_outputs(variant):
    """A result is written where the output is, and nothing beside or behind it."""
    size, ports = 63 + 49, (9 * 9, 63, 63)
    graph = trace(_beside_others, size)
    schedule = lower(graph, True, 8, Ports("%out", ports).joined)
    steps = [step for step in schedule.rolled() if step.op == "product"]
    places = [schedule.arrays.places[step.data[2]] for step in steps]
    assert [place.result.output for place in places] == [True, True]
    assert [place.result.by_row for place in places] == [9, 7]
    assert places[1].a == places[0].result  # read there, not copied
    rows = np.random.default_rng(9).uniform(-1, 1, (24, size))
    out = np.full((25, sum(ports)), np.nan)
    _run(graph, ((size,), (sum(ports),)), rows, variant, out)
    A, B = rows[:, :63].reshape(-1, 9, 7), rows[:, 63:].reshape(-1, 7, 7)
    C = A @ B
    head = np.concatenate([C, np.broadcast_to(rows[:, None, :2], (24, 9, 2))], axis=2)
    parts = (head, C.transpose(0, 2, 1), C @ B)
    expected = np.concatenate([part.reshape(24, -1) for part in parts], axis=1)
    assert np.abs(out[:24] - expected).max() < 1e-13
    assert np.isnan(out[24]).all()


def test_results_of_other_arrays_are_not_one():
    """Outputs that follow each other, but lie in two arrays, are no block."""
    graph = trace(_beside_others, 63 + 49)
    apart = lower(graph, True, 8, lambda a, b: False)
    steps = [step for step in apart.rolled() if step.op == "product"]
    assert not any(
        place.output
        for step in steps
        for place in apart.arrays.places[step.data[2]]
        if place is not None
    )


def test_derivatives_of_products():
    """First and second derivatives follow the product rule, rolled or not."""
    rng = np.random.default_rng(5)
    parts = rng.uniform(-1, 1, (3, 9 * 8 + 8 * 8 + 9 * 8))

    def numbers(t):
        return parts[0] + t * parts[1] + t * t * parts[2]

    def value(x):
        A, B = _matrix(x, 9, 8), _matrix(x[72:], 8, 8)
        C = _matrix(x[136:], 9, 8)
        return product(A, B, C, negative=True)

    a, b, c = np.array_split(parts, [72, 136], axis=1)
    A, B, C = a.reshape(3, 9, 8), b.reshape(3, 8, 8), c.reshape(3, 9, 8)
    first = C[1] - A[1] @ B[0] - A[0] @ B[1]
    second = 2 * (C[2] - A[2] @ B[0] - A[1] @ B[1] - A[0] @ B[2])

    def along(x):
        x = [Taylor(y, d1, 2.0 * d2) for y, d1, d2 in zip(x, *parts[1:], strict=True)]
        return [z for row in value(x).rows for y in row for z in (y.x, y.d1, y.d2)]

    graph = trace(along, parts.shape[1])
    assert graph.counts()["product"] > 5
    for flat in (along(list(parts[0])), graph.run(list(parts[0]))[0]):
        x, d1, d2 = np.array(flat).reshape(9, 8, 3).transpose(2, 0, 1)
        assert np.abs(x - np.array(value(list(numbers(0))))).max() < 1e-14
        assert np.abs(d1 - first).max() < 1e-13
        assert np.abs(d2 - second).max() < 1e-13


def test_sparse_products():
    """Columns of one pattern go together; what is zero by structure stays zero."""
    rng = np.random.default_rng(6)
    A = rng.uniform(-1, 1, (12, 12))
    pattern = rng.uniform(0, 1, (12, 12)) > 0.5
    pattern[:, 3] = False
    pattern[:, 5] = pattern[:, 6]
    Bs = rng.uniform(-1, 1, (2, 12, 12)) * pattern
    as_matrix = [Matrix(B.tolist()) for B in (A, *Bs)]
    results = sparse_products(as_matrix[0], as_matrix[1:], negative=True)
    for B, C in zip(Bs, results, strict=True):
        assert np.abs(np.array(C) + A @ B).max() < 1e-14
        assert [row[3] for row in C.rows] == [0.0] * 12


def test_sizes_that_do_not_fit_are_refused():
    """A product of matrices that do not fit names both."""
    A = Matrix([[1.0, 2.0]])
    with pytest.raises(TypeError, match=r"\(1, 2\) and \(1, 2\)"):
        product(A, A)
    with pytest.raises(TypeError, match="no product"):
        product(A, A.T, onto=A)
    square, tall = Matrix.identity(2), Matrix.zeros(3, 2)
    for Bs in ((tall,), (square, tall), (A,), (square, Matrix.zeros(2, 3))):
        with pytest.raises(TypeError, match=r"no products of matrices \(2, 2\) and \("):
            sparse_products(square, Bs)
    nothing = Matrix.zeros(0, 2)
    assert sparse_products(nothing, (tall,))[0].shape == (0, 0)
    for factors in (
        Factored(square, [0.0] * 2, ["row"] * 2),
        BlockFactored(square, [0.0] * 2, ["row"] * 2, [[0], [1]]),
    ):
        for wrong in (tall, Matrix([[1.0]])):
            with pytest.raises(TypeError, match=r"no products? of matrices|rows"):
                factors.solve_matrix(wrong)
    with pytest.raises(TypeError, match="3 rows; valid: 2"):
        factors.halves([1.0] * 3)


@native
@pytest.mark.parametrize("rows", [1, 11])
def test_many_copies_and_zeros_go_by_tables(rows):
    """Entries in another order, zeros, constants and inputs between them: equal bits."""
    n, spread = 60, 120

    def function(x):
        A = _matrix(x, n, 10)
        C = product(A, A.T)
        full = [0.0] * (n * spread)
        for i in range(n):
            for j in range(n):
                full[i * spread + (7 * j) % spread] = C[j, i]
        full[1], full[spread + 1] = 3.0, x[5]
        return [*full, x[2], *(y for row in C.rows for y in row)]

    graph = trace(function, 10 * n)
    sizes = ((10 * n,), (n * spread + 1 + n * n,))
    x = np.random.default_rng(0).normal(size=(rows, 10 * n))
    got = _run(graph, sizes, x, "scalar" if rows == 1 else "batch")
    for values, state in zip(got, x, strict=True):
        expected, _ = graph.run(state.tolist())
        assert np.abs(values - expected).max() < 1e-13
    written = kernel.write(graph, sizes, "scalar" if rows == 1 else "batch", 8)
    assert "@copy_pairs" in written.ir and "@llvm.memset" in written.ir


def test_a_vector_does_not_mix_with_the_rows_of_a_column():
    """Entry k would have met row k, without an error where there are as many."""
    column, vector = Column(np.array([1.0, 2.0])), Vector([5.0, 7.0])
    for mixed in (
        lambda: where(column > 1.5, 1.0, vector),
        lambda: where(True, 1.0, vector),
        lambda: column * vector,
        lambda: column + vector,
    ):
        with pytest.raises(TypeError, match="Vector.*valid: "):
            mixed()
    chosen = where(column > 1.5, vector, 1.0)
    assert [x.values.tolist() for x in chosen] == [[1.0, 5.0], [1.0, 7.0]]
