"""A batch chunk by chunk is the batch: the same bits, no copies, errors with its rows."""

import pickle
import sys
import threading
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.batch import FailedRows, map_rows
from dyn_core.batch.chunk_task import CHUNK, LIGHT_CHUNK, STRIP, sizes
from dyn_core.batch.failed_rows import joined
from dyn_core.batch.storage.batch_rows import BatchRows
from dyn_core.engines.llvm.cached import kernel_cache, trace_cache
from dyn_core.errors import BatchError

ROWS = 20_011


@pytest.fixture(scope="module")
def rnea():
    return dyn.solver("rnea").build(dyn.load("arm7"))


@pytest.fixture(scope="module")
def states():
    return np.random.default_rng(5).normal(size=(3, ROWS, 7))


@pytest.fixture(scope="module")
def floating():
    """Inverse dynamics of a floating robot, states, and rows whose quaternion is none."""
    model = dyn.load("quadruped")
    program = dyn.solver("rnea").build(model, finite=True)
    rng = np.random.default_rng(7)
    q = np.tile(model.neutral(), (9000, 1))
    q[:, 7:] += rng.normal(size=(9000, model.nq - 7))
    bad = np.array([17, 18, 19, 4095, 4096, 8999])
    q[bad, 3:7] *= 2.0
    return program, q, rng.normal(size=(2, 9000, model.nv)), bad


@pytest.mark.parametrize("chunk_rows", [None, 1, 777, 4096, 10**9])
def test_chunks_change_no_bit(rnea, states, chunk_rows):
    rows = 50 if chunk_rows == 1 else ROWS
    arrays = [x[:rows] for x in states]
    tau = rnea.map(*arrays, chunk_rows=chunk_rows, workers=3)
    assert isinstance(tau, np.ndarray)
    assert (tau == rnea(*arrays)).all()


@pytest.mark.parametrize("engine", ["plain", "graph", "native"])
def test_every_engine_has_it(states, engine):
    program = dyn.solver("aba").build(dyn.load("two_link"), engine=engine)
    arrays = [x[:70, :2] for x in states]
    assert (program.map(*arrays, chunk_rows=30) == program(*arrays)).all()


def test_several_outputs_are_a_named_tuple(states):
    program = dyn.solver("fd_derivatives").build(dyn.load("two_link"))
    arrays = [x[:5000, :2] for x in states]
    wanted, result = program(*arrays), program.map(*arrays)
    assert result._fields == wanted._fields
    assert all((a == b).all() for a, b in zip(result, wanted, strict=True))


def test_inputs_by_name_shared_ones_and_lists(rnea, states):
    q, qd, qdd = states
    tau = rnea.map(q, qdd=qdd[0], qd=qd.tolist())
    assert (tau == rnea(q, qd, qdd[0])).all()


def test_inputs_of_any_layout_and_dtype_give_the_bits_of_a_call(rnea, states):
    q, qd, qdd = states
    odd = [q.astype(np.float32), np.asfortranarray(qd), (4 * qdd).astype(int)]
    assert (rnea.map(*odd) == rnea(*odd)).all()
    backward = [x[::-2] for x in states]
    assert (rnea.map(*backward, chunk_rows=1000) == rnea(*backward)).all()
    bytes_swapped = [x.astype(">f8") for x in states]
    assert (rnea.map(*bytes_swapped) == rnea(*states)).all()


def test_programs_of_float32(states):
    program = dyn.solver("rnea").build(dyn.load("arm7"), dtype="float32")
    narrow = [x.astype(np.float32) for x in states]
    tau = program.map(*states)  # float64 is converted, chunk by chunk
    assert tau.dtype == np.float32
    assert (tau == program(*narrow)).all()


def test_float32_and_strided_inputs_are_not_copied_whole(rnea):
    """NumPy's memory in use at most: results, and strips of the inputs."""
    rows = 300_000
    wide = np.zeros((rows, 14), np.float32)
    inputs = [wide[:, :7], wide[:, 7:], wide[:, ::2]]
    out = np.zeros((rows, 7))
    rnea.map(*[x[:100] for x in inputs])
    tracemalloc.start()
    try:
        rnea.map(*inputs, out=out, workers=2, chunk_rows=50_000)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        rnea(*inputs, out=out)
        _, whole = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    copies = 3 * rows * 7 * 8
    assert whole > 0.9 * copies  # what a call takes
    assert peak < 2 * 2 * STRIP
    assert 2 * 2 * STRIP < copies / 4


def test_results_go_into_arrays_that_are_there(rnea, states):
    out = np.empty((ROWS, 7))
    assert rnea.map(*states, out=out) is out
    assert (out == rnea(*states)).all()
    program = dyn.solver("fd_derivatives").build(dyn.load("two_link"))
    arrays = [x[:500, :2] for x in states]
    both = tuple(np.empty_like(x) for x in program(*arrays))
    result = program.map(*arrays, out=both)
    assert all(a is b for a, b in zip(result, both, strict=True))


def test_sizes_of_chunks_depend_on_the_batch_alone(rnea, states):
    rows = BatchRows([dyn_source(rnea, k, x) for k, x in enumerate(states)])
    strip, chunk = sizes(rnea, rows, 1, light=True)
    assert strip * 28 * 8 <= STRIP
    assert (strip, chunk) == (9216, 9216)
    rows.count = 10**9
    assert CHUNK / 2 < sizes(rnea, rows, 1, light=False)[1] * 28 * 8 <= CHUNK
    assert sizes(rnea, rows, 1, light=False)[1] * 28 * 8 <= CHUNK
    assert LIGHT_CHUNK / 2 < sizes(rnea, rows, 1, light=True)[1] * 28 * 8 <= LIGHT_CHUNK
    assert sizes(rnea, rows, 1, light=True)[1] % strip == 0
    assert sizes(rnea, rows, 700, light=False)[1] % 700 == 0  # files of a store


def dyn_source(program, k, array):
    from dyn_core.batch.storage.row_sources import source

    return source(program.inputs[k], array, program.dtype)


def test_rows_that_fail_raise_with_their_indices(floating):
    program, q, (qd, qdd), bad = floating
    with pytest.raises(dyn.QuaternionError) as caught:
        program.map(q[20:], qd[20:], qdd[20:], chunk_rows=1000, workers=1)
    assert caught.value.rows == (4075, 4076)  # of the first chunk that fails


@pytest.mark.parametrize("engine", ["graph", "native"])
def test_rows_that_fail_come_back_as_a_mask(floating, engine):
    program, q, (qd, qdd), bad = floating
    program = dyn.solver("rnea").build(program.model, engine=engine, finite=True)
    tau, failed = program.map(q, qd, qdd, status=True, chunk_rows=1000)
    assert isinstance(failed, FailedRows)
    assert failed.rows.tolist() == bad.tolist()
    assert np.flatnonzero(failed.mask).tolist() == bad.tolist()
    assert (len(failed.mask), len(failed)) == (9000, 6)
    assert [run[:2] for run in failed.runs] == [(17, 20), (4095, 4097), (8999, 9000)]
    assert list(failed.reasons.values()) == [6]
    assert "QuaternionError" in repr(failed) and "6 of 9000" in repr(failed)
    wanted, status = program(q, qd, qdd, status=True)
    assert (np.flatnonzero(status) == bad).all()
    assert np.array_equal(tau, wanted, equal_nan=True)
    assert np.isnan(tau[bad]).all()


def test_a_solver_in_python_says_why_rows_failed(floating):
    """Its reasons are noted call by call."""
    program, q, (qd, qdd), bad = floating
    program = dyn.solver("rnea").build(program.model, engine="plain", finite=True)
    rows = slice(0, 40)
    _, failed = program.map(q[rows], qd[rows], qdd[rows], status=True)
    assert failed.rows.tolist() == [17, 18, 19]
    assert all("QuaternionError" in reason for reason in failed.reasons)


def test_no_row_fails_or_all_do(rnea, states, floating):
    _, failed = rnea.map(*states, status=True)
    assert len(failed) == 0 and failed.rows.tolist() == [] and not failed.mask.any()
    program, q, (qd, qdd), _ = floating
    q = 2.0 * q
    tau, failed = program.map(q, qd, qdd, status=True, chunk_rows=1000)
    assert failed.mask.all() and len(failed.runs) == 1
    value, failed = program.map(q, qd, qdd, status=True, reduce=np.maximum)
    assert value is None and len(failed) == 9000


def test_runs_are_joined():
    assert joined([(0, 1, "a"), (1, 2, "a"), (2, 3, "b"), (4, 5, "b")]) == [
        (0, 2, "a"), (2, 3, "b"), (4, 5, "b"),
    ]  # fmt: skip


def test_numbers_that_are_not_finite_are_named_by_their_row(states):
    program = dyn.solver("rnea").build(dyn.load("arm7"), finite=True)
    q = states[0].copy()
    q[15_000, 2] = np.nan
    with pytest.raises(dyn.NonFiniteError, match="rows 15000") as caught:
        program.map(q, *states[1:], chunk_rows=1000, workers=1)
    assert caught.value.rows == (15_000,)


def test_a_reduction_is_that_of_all_rows(rnea, states):
    tau = rnea(*states)
    for ufunc in (np.maximum, np.minimum, np.add):
        value = rnea.map(*states, reduce=ufunc, chunk_rows=3000, workers=3)
        assert value.shape == (7,)
        assert np.allclose(value, ufunc.reduce(tau), rtol=1e-12, atol=0)
        again = rnea.map(*states, reduce=ufunc, chunk_rows=3000, workers=1)
        assert (value == again).all()  # in the order of the rows


def test_a_reduction_by_functions(rnea, states):
    tau = rnea(*states)
    count, peak = rnea.map(
        *states,
        reduce=lambda x: [len(x), np.abs(x).max(axis=0)],
        combine=lambda a, b: (a[0] + b[0], np.maximum(a[1], b[1])),
        chunk_rows=3000,
    )
    assert count == ROWS
    assert (peak == np.abs(tau).max(axis=0)).all()
    sums = rnea.map(*states, reduce=lambda x: {"sum": x.sum(0), "n": len(x)})
    assert sums["n"] == ROWS
    assert np.allclose(sums["sum"], tau.sum(0))
    ends = {"reduce": lambda x: x[-1], "chunk_rows": ROWS}
    last = rnea.map(*states, combine=lambda a, b: b, **ends)
    first = rnea.map(*states, combine=lambda a, b: a, **ends)
    assert (last == tau[-1]).all()
    assert (first == tau[9215]).all()  # its memory was used again for the next strip


@pytest.mark.parametrize(
    "reduce",
    [
        np.max,
        np.mean,
        lambda x: x.max(axis=0),
        lambda x: {"n": len(x), "least": x.min(axis=0)},
        lambda x: (len(x), x.std(axis=0)),
        lambda x: x[:, 1],
    ],
)
@pytest.mark.parametrize("rows", [40, ROWS])
def test_values_that_addition_does_not_combine_are_refused(rnea, states, reduce, rows):
    """The peak of ten million rows came out as the sum of the peaks of all chunks."""
    with pytest.raises(dyn.errors.SettingError, match="reduce is .* not add up"):
        rnea.map(*[x[:rows] for x in states], reduce=reduce)


def test_values_that_addition_combines_are_not_refused(rnea, states):
    tau = rnea(*states)
    edges = np.linspace(-50.0, 50.0, 9)
    bins = rnea.map(*states, reduce=lambda x: np.histogram(x[:, 1], edges)[0])
    assert (bins == np.histogram(tau[:, 1], edges)[0]).all()
    blocks = {"reduce": lambda x: x.reshape(-1, 12, 7).mean(axis=1).sum(axis=0)}
    value = rnea.map(*[x[:1200] for x in states], **blocks)
    assert np.allclose(value, tau[:1200].sum(axis=0) / 12)
    bad = states[0].copy()
    bad[3] = np.nan
    assert np.isnan(rnea.map(bad, *states[1:], reduce=lambda x: x.sum(axis=0))).all()
    assert rnea.map(*states, reduce=lambda x: (x > tau.min()).any())
    last = rnea.map(*states, reduce=lambda x: x.max(axis=0), combine=np.add)
    assert (last > tau.max(axis=0)).any()  # as it is asked for


def test_a_reduction_of_several_outputs_keeps_their_names(states):
    program = dyn.solver("fd_derivatives").build(dyn.load("two_link"))
    arrays = [x[:5000, :2] for x in states]
    value, wanted = program.map(*arrays, reduce=np.maximum), program(*arrays)
    assert value._fields == wanted._fields
    assert all((a == b.max(0)).all() for a, b in zip(value, wanted, strict=True))


def test_failed_rows_are_left_out_of_a_reduction(floating):
    program, q, (qd, qdd), bad = floating
    value, failed = program.map(q, qd, qdd, reduce=np.maximum, status=True)
    good = np.delete(np.arange(9000), bad)
    assert (value == program(q[good], qd[good], qdd[good]).max(0)).all()
    assert failed.rows.tolist() == bad.tolist()


def test_rows_that_a_function_makes(rnea):
    asked = []

    def made(first, last):
        asked.append((first, last))
        q = np.arange(first, last)[:, None] * np.linspace(0.001, 0.002, 7)
        return {"q": q, "qd": np.cos(q), "qdd": np.zeros(7)}

    tau = rnea.map(made, count=30_000, chunk_rows=12_000, workers=1)
    q = np.arange(30_000)[:, None] * np.linspace(0.001, 0.002, 7)
    assert (tau == rnea(q, np.cos(q), np.zeros(7))).all()
    ranges = list(asked)
    assert [a for a, _ in ranges[1:]] == [b for _, b in ranges[:-1]]
    asked.clear()
    rnea.map(made, count=30_000, chunk_rows=12_000, workers=2)
    assert sorted(asked) == ranges  # the same, however many threads there are


def test_memory_stays_where_rows_are_made_and_reduced(rnea):
    """Ten times the rows: no more memory."""

    def made(first, last):
        return tuple(np.full((3, last - first, 7), 0.25))

    peaks = []
    rnea.map(made, count=10_000, reduce=np.maximum)
    for count in (100_000, 1_000_000):
        tracemalloc.start()
        try:
            how = {"chunk_rows": 40_000, "workers": 1}
            rnea.map(made, count=count, reduce=np.maximum, **how)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]
    assert peaks[1] < 4 * STRIP


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_few_rows(rnea, states, rows):
    arrays = [x[:rows] for x in states]
    assert rnea.map(*arrays).shape == (rows, 7)
    assert (rnea.map(*arrays) == rnea(*arrays)).all()


def test_progress_is_called_with_rows(rnea, states):
    seen = []
    rnea.map(
        *states, chunk_rows=5000, progress=lambda done, rows: seen.append((done, rows))
    )
    assert [rows for _, rows in seen] == [ROWS] * 5
    assert seen[-1][0] == ROWS
    assert sorted(seen) == seen


@pytest.mark.parametrize(
    ("args", "options", "message"),
    [
        (3, {"scheduler": "slurm"}, "scheduler is 'slurm'; valid: 'threads'"),
        (3, {"workers": 0}, "workers is 0; valid: a whole number from 1"),
        (3, {"scheduler": "tcp://127.0.0.1:1", "workers": 2}, "this one has its own"),
        (3, {"chunk_rows": -5}, "chunk_rows is -5; valid"),
        (3, {"count": 5}, "count is for a function of rows"),
        (3, {"n_jobs": 2}, "no argument of map is called 'n_jobs'; valid: q, qd, qdd, out, status, reduce, combine, count, chunk_rows, scheduler, workers, journal, resume, progress"),
        (3, {"combine": np.add}, "combine is for reduce"),
        (3, {"reduce": "max"}, "reduce is 'max'; valid: a ufunc of two arguments, such as np.maximum"),
        (3, {"reduce": np.sin}, "reduce is <ufunc 'sin'>; valid: a ufunc of two"),
        (3, {"reduce": max}, "reduce is <built-in function max>; valid: np.maximum"),
        (3, {"reduce": len, "combine": min}, "combine is <built-in function min>; valid: np.minimum"),
        (3, {"reduce": np.maximum, "combine": 3}, "combine is 3; valid: a function"),
        (3, {"reduce": lambda x: "a"}, "reduce returned str; valid: numbers or arrays"),
        (3, {"reduce": np.maximum, "out": "x.npy"}, "a reduction returns its value"),
        (3, {"progress": "yes"}, "progress is 'yes'; valid: True, False, a function"),
        (3, {"out": "/nowhere/x.npy"}, "there is no folder '/nowhere'"),
        (3, {"out": "x.csv"}, "out is 'x.csv'; valid: None for memory"),
        (3, {"out": 5}, "out tau: wanted a writeable float64 array of shape (40, 7), got int"),
        (3, {"journal": "x"}, "results in memory are lost with the process"),
        (2, {}, "qdd: wanted an array, as in program(q, qd, qdd), got nothing"),
        (0, {}, "q: wanted an array, as in program(q, qd, qdd), got nothing"),
        (4, {}, "arguments: wanted 3 inputs"),
    ],
)  # fmt: skip
def test_mistakes_are_said(rnea, states, args, options, message):
    arrays = [*states, states[0]][:args]
    with pytest.raises(dyn.DynError) as caught:
        rnea.map(*[x[:40] for x in arrays], **options)
    assert message in str(caught.value)


def test_mistakes_of_arrays_are_said(rnea, states):
    q, qd, qdd = (x[:40] for x in states)
    for arrays, message in (
        (
            (q, qd[:39], qdd),
            "qd: wanted 40 rows like the inputs before it, got 39 rows",
        ),
        ((q, qd[:, :6], qdd), "qd: wanted shape (7,) or (batch, 7), got (40, 6)"),
        ((q, qd + 1j, qdd), "qd: wanted real numbers, got dtype complex128"),
        ((q[0], qd[0], qdd[0]), "wanted at least one input with rows; valid: call the"),
        ((q, np.full((40, 7), "a"), qdd), "qd: wanted real numbers"),
    ):
        with pytest.raises(dyn.ShapeError) as caught:
            rnea.map(*arrays)
        assert message in str(caught.value)
    with pytest.raises(dyn.ShapeError, match="memory of its own"):
        rnea.map(q, qd, qdd, out=q)
    with pytest.raises(dyn.ShapeError, match=r"out tau.*\(40, 7\), got"):
        rnea.map(q, qd, qdd, out=np.zeros((39, 7)))
    masked = np.ma.masked_array(q, np.zeros(q.shape, bool))
    masked.mask[3, 3] = True
    with pytest.raises(dyn.ShapeError, match="masked"):
        rnea.map(masked, qd, qdd)


def test_mistakes_of_functions_are_said(rnea, states):
    def good(first, last):
        return tuple(np.zeros((3, last - first, 7)))

    with pytest.raises(dyn.SettingError, match="needs count"):
        rnea.map(good)
    with pytest.raises(dyn.SettingError, match="count is 2.5; valid: a whole number"):
        rnea.map(good, count=2.5)
    with pytest.raises(dyn.ShapeError, match="nothing beside it"):
        rnea.map(good, states[0], count=5)
    with pytest.raises(dyn.ShapeError, match="wanted 5 rows for the range 0, 5, got 6"):
        rnea.map(lambda a, b: good(a, b + 1), count=5)
    with pytest.raises(dyn.ShapeError, match="qdd: wanted an array, as in program"):
        rnea.map(lambda a, b: good(a, b)[:2], count=5)
    with pytest.raises(ZeroDivisionError):  # its own errors stay as they are
        rnea.map(lambda a, b: 1 / 0, count=5)


def test_an_error_ends_all_threads(rnea, states):
    def made(first, last):
        if first >= 4000:
            raise ValueError("no such rows")
        return tuple(np.zeros((3, last - first, 7)))

    before = threading.active_count()
    with pytest.raises(ValueError, match="no such rows"):
        rnea.map(made, count=10**9, chunk_rows=1000, workers=3, reduce=np.add)
    deadline = time.monotonic() + 5
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= before


def test_names_of_options_are_free():
    """No input of any solver is called as an option of map_rows is."""
    import inspect

    kind = inspect.Parameter.KEYWORD_ONLY
    parameters = inspect.signature(map_rows).parameters.values()
    options = {x.name for x in parameters if x.kind is kind}
    assert len(options) > 10
    for name in dyn.solvers(references=True):
        inputs = {port.name for port in dyn.solver(name).signature.inputs}
        assert not inputs & options, name


def test_a_full_disk_is_said(rnea, states, tmp_path, monkeypatch):
    from dyn_core.batch.storage import result_targets

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(result_targets.os, "posix_fallocate", full, raising=False)
    with pytest.raises(BatchError, match=r"cannot be made.*No space left"):
        rnea.map(*states, out=tmp_path / "tau.npy")


def test_a_second_call_builds_and_opens_nothing(monkeypatch):
    """Kernels and the Program on one thread are of the first call; the bits are the same."""
    program = dyn.solver("rnea").build(dyn.load("arm7"))
    rows = [np.random.default_rng(1).normal(size=(1000, 7)) for _ in range(3)]
    first = program.map(*rows, progress=False)

    def refuse(*_, **__):
        raise AssertionError("built, traced or opened again")

    for owner, name in (
        (dyn.Solver, "build"),
        (trace_cache, "key"),
        (kernel_cache, "load"),
    ):
        monkeypatch.setattr(owner, name, refuse)
    monkeypatch.setattr("builtins.open", refuse)
    second = program.map(*rows, progress=False)
    monkeypatch.undo()
    assert second.tobytes() == first.tobytes() == program(*rows).tobytes()
    assert program.on_one_thread is program.on_one_thread
    assert pickle.loads(pickle.dumps(program))(*rows).tobytes() == first.tobytes()


@pytest.mark.parametrize("progress", [True, False])
def test_the_line_of_progress_ends(rnea, states, monkeypatch, progress):
    """Also where a call fails: what the terminal shows next has a line of its own."""
    seen = []

    class Line:
        def __init__(self, count, wanted):
            seen.append((count, wanted))

        def show(self, done, before):
            seen.append(done)

        def end(self):
            seen.append("end")

    monkeypatch.setattr(sys.modules[map_rows.__module__], "RowProgress", Line)
    arrays = [x[:40] for x in states]
    rnea.map(*arrays, chunk_rows=20, progress=progress)
    assert seen == [(40, progress), 20, 40, "end"]


@pytest.mark.parametrize("kind", [str, Path])
def test_the_name_of_a_file_is_no_input(kind):
    """The message says how its rows are read without loading the file."""
    rnea, q = dyn.solver("rnea").build(dyn.load("two_link"), engine="graph"), np.ones(2)
    wanted = r"q: wanted an array, as np.load\('q.npy', mmap_mode='r'\) of a file, got"
    with pytest.raises(dyn.ShapeError, match=wanted):
        rnea.map(kind("q.npy"), q, q)
