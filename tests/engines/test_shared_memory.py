"""Where matrices of products lie changes no bit of them."""

import numpy as np
import pytest

from dyn_core.authoring import Matrix, product
from dyn_core.engines.graph.trace import trace
from dyn_core.engines.llvm import compiler, host_machine, kernel, lower
from dyn_core.engines.llvm.kernel import Kernel, compile_pieces, pointers
from dyn_core.engines.llvm.products.product_arrays import ProductArrays

pytestmark = [
    pytest.mark.quick,
    pytest.mark.skipif(bool(host_machine.missing()), reason="no machine code here"),
]
N = 8


def _random_products(seed):
    """Return a function of two matrices: products of products, sums, parts, zeros."""

    def function(x):
        rng = np.random.default_rng(seed)
        square = range(0, N * N, N)
        known = [
            Matrix(x[first + k : first + k + N] for k in square) for first in (0, 64)
        ]
        for _ in range(14):
            a, b, c = (known[k] for k in rng.integers(len(known), size=3))
            kind = rng.integers(6)
            if kind == 0:
                c = Matrix(
                    [y if rng.random() < 0.6 else 0.0 for y in row] for row in c.rows
                )
            elif kind == 1:
                c = Matrix([*row[:5], 0.0, 0.0, x[3]] for row in c.rows)
            elif kind == 2:
                left = product(a, Matrix(row[:4] for row in b.rows))
                right = product(b, Matrix(row[4:] for row in a.rows))
                pairs = zip(left.rows, right.rows, strict=True)
                c = Matrix([*r, *s] for r, s in pairs)
            elif kind == 3:
                a = a.T
            onto = None if kind == 4 else c
            known.append(product(a * 0.3, b, onto, bool(rng.integers(2))))
            if kind == 2:
                known.append(product(b, a * 0.3, known[-1]))
        last = known[-1].rows
        return [y for M in known[3::4] for row in M.rows for y in row] + [
            y for row in last for y in row
        ]

    return function


def _made(graph, sizes, variant):
    written = kernel.write(graph, sizes, variant, 8)
    facts = {"scratch": written.scratch, "steps": written.steps, "rounds": 1}
    return Kernel(compile_pieces(written.ir), {**facts, "entries": written.entries})


def _run(made, variant, rows, count):
    """Run rows in one scratch memory, what is left of one state lying there."""
    _, scratch = made.memory()
    out, status = np.empty((len(rows), count)), np.zeros(len(rows), np.int64)
    if variant == "scalar":
        for row, result in zip(rows, out, strict=True):
            tables = pointers([row.ctypes.data]), pointers([result.ctypes.data])
            made.call["scalar"](*tables, scratch)
        return out
    tables = [pointers([x]) for x in (rows.ctypes.data, rows.strides[0])]
    end = pointers([out.ctypes.data]), status.ctypes.data, 0, len(rows), scratch
    made.call["batch"](*tables, *end)
    return out


@pytest.mark.one_of(2)
@pytest.mark.parametrize("seed", range(6))
def test_shared_memory_changes_no_bit(seed, monkeypatch):
    """Alone and in a batch, the same as where each matrix has memory of its own."""
    graph = trace(_random_products(seed), 2 * N * N)
    sizes = ((2 * N * N,), (len(graph.outputs),))
    rows = np.random.default_rng(seed).uniform(-1, 1, (19, 2 * N * N))
    made = {variant: _made(graph, sizes, variant) for variant in ("scalar", "batch")}
    shared = {v: _run(x, v, rows, sizes[1][0]) for v, x in made.items()}
    assert shared["scalar"].tobytes() == shared["batch"].tobytes()
    expected = np.array([graph.run(list(row))[0] for row in rows])
    assert np.abs(shared["scalar"] - expected).max() < 1e-12 * np.abs(expected).max()
    monkeypatch.setattr(lower, "share_memory", lambda arrays, chunks: None)
    monkeypatch.setattr(ProductArrays, "_place_sums", lambda self, k, uses: None)
    alone = _made(graph, sizes, "batch")
    assert (
        _run(alone, "batch", rows, sizes[1][0]).tobytes() == shared["batch"].tobytes()
    )
    assert made["batch"].scratch < alone.scratch


def test_a_sum_of_products_lies_where_its_result_goes():
    """Among the outputs, without an array between."""

    def function(x):
        A, B = (Matrix(x[k : k + 8] for k in range(a, a + 64, 8)) for a in (0, 64))
        return [y for row in product(B, A, product(A, B)).rows for y in row]

    graph = trace(function, 128)
    schedule = lower.lower(graph, True, 1, lambda a, b: True)
    results = [
        schedule.arrays.places[step.data[2]].result for step in schedule.rolled()
    ]
    assert len(results) == 2 and all(array.output for array in results)


def test_what_is_read_again_is_not_added_to_in_place():
    """A result that is an output itself keeps its place."""

    def function(x):
        A, B = (Matrix(x[k : k + 8] for k in range(a, a + 64, 8)) for a in (0, 64))
        first = product(A, B)
        return [y for M in (first, product(B, A, first)) for r in M.rows for y in r]

    graph = trace(function, 128)
    schedule = lower.lower(graph, True, 1, lambda a, b: True)
    places = [schedule.arrays.places[step.data[2]] for step in schedule.rolled()]
    assert places[0].result.first != places[1].result.first


def test_size_of_a_kernel_is_that_of_its_instructions():
    """Symbols and relocations of object code are not counted."""
    code = compiler.compile_ir("define i64 @one() {\n  ret i64 1\n}\n")
    assert 0 < compiler.code_size(code) < 32 < len(code)
