"""Calls into machine code: arrays of any kind, memory, threads, processes."""

import multiprocessing
import os
import pickle
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.engines import entry, native
from dyn_core.engines.entry import MODES
from dyn_core.engines.threads import WORKERS

pytestmark = pytest.mark.skipif(bool(native.missing()), reason=native.missing())


@pytest.fixture(params=MODES)
def build(request, monkeypatch):
    """Build solvers whose calls are entered in each of the three ways."""
    monkeypatch.setenv("DYN_ENTRY", request.param)

    def make(name, model, **choices):
        program = dyn.solver(name).build(model, engine="native", **choices)
        program.prepare(batch=True)
        assert isinstance(program, dyn.Program)
        return program

    make.mode = request.param
    return make


@pytest.fixture(scope="module")
def arm(shipped):
    """Give the 7-joint arm."""
    return shipped["arm7"]


def _inputs(*lead, seed=0):
    return list(np.random.default_rng(seed).normal(size=(3, *lead, 7)))


def test_the_struct_is_as_expected_here():
    """This NumPy is read directly; a NumPy that lies otherwise would be noticed."""
    assert entry.arrays_lie_as_expected()
    assert entry.mode() == "struct"


def test_another_struct_is_noticed(monkeypatch):
    """Where a field lies elsewhere, the buffer protocol is used."""
    for field in ("DATA", "ND", "DIMS", "KIND", "FLAGS"):
        entry.arrays_lie_as_expected.cache_clear()
        with monkeypatch.context() as patch:
            patch.setattr(entry.code, field, getattr(entry.code, field) + 16)
            assert entry.mode() == "buffer", field
    entry.arrays_lie_as_expected.cache_clear()


def test_what_the_entry_calls_is_checked():
    """The names in its text are those that are looked for before it is used."""
    text = entry.words.translate(entry.code, "entry", array="array_buffer", PLACE=0)
    declared = re.findall(r"declare i64 @(\w+)", text)
    assert sorted(declared) == sorted(entry._CALLED)


def test_all_ways_in_give_the_same_bits(build, arm):
    """One state and a batch, new arrays and given ones."""
    program = build("rnea", arm)
    graph = dyn.solver("rnea").build(arm, engine="graph")
    for lead in ((), (1,), (5,), (8,), (50,)):
        inputs = _inputs(*lead)
        wanted = program.__call__(*[x.tolist() for x in inputs])
        np.testing.assert_allclose(wanted, graph(*inputs), rtol=1e-11, atol=1e-11)
        np.testing.assert_array_equal(program(*inputs), wanted)
        out = np.full((*lead, 7), np.nan)
        assert program(*inputs, out=out) is out
        np.testing.assert_array_equal(out, wanted)


def test_several_outputs_are_named(build, arm):
    """Tuples of arrays are taken as out and given with names."""
    program = build("semi_implicit_euler", arm)
    for lead in ((), (20,)):
        inputs = [*_inputs(*lead), 1e-3]
        wanted = program(*inputs)
        assert wanted._fields == ("q_next", "qd_next")
        out = (np.zeros((*lead, 7)), np.zeros((*lead, 7)))
        assert program(*inputs, out=out) is out
        for a, b in zip(out, wanted, strict=True):
            np.testing.assert_array_equal(a, b)
        assert pickle.loads(pickle.dumps(wanted)).q_next.shape == (*lead, 7)


def test_numbers_come_as_floats(build, arm):
    """Outputs of no axes are Python floats for one state, arrays for a batch."""
    program = build("energy", arm)
    q, qd, _ = _inputs()
    one = program(q, qd)
    assert type(one.kinetic) is float and type(one.potential) is float
    many = program(np.stack([q] * 9), np.stack([qd] * 9))
    np.testing.assert_array_equal(many.kinetic, [one.kinetic] * 9)


def test_every_kind_of_array_is_served(build, arm):
    """Strided, reversed, Fortran, byte-swapped, unaligned, read-only, subclasses."""
    program = build("rnea", arm)
    for lead in ((), (20,)):
        q, qd, qdd = _inputs(*lead)
        wanted = program(q, qd, qdd)
        apart = np.zeros((*lead, 14))
        apart[..., ::2] = q
        locked = q.copy()
        locked.flags.writeable = False
        raw = np.zeros(q.nbytes + 1, np.uint8)
        unaligned = raw[1:].view(np.float64).reshape(q.shape)
        unaligned[...] = q
        backward = np.ascontiguousarray(q[..., ::-1])
        for kind in (
            apart[..., ::2], backward[..., ::-1], np.asfortranarray(q), locked, unaligned,
            q.astype(">f8"), q.view(np.recarray), np.ma.array(q), q.tolist(),
            q.astype(np.longdouble),
        ):  # fmt: skip
            np.testing.assert_array_equal(program(kind, qd, qdd), wanted)


def test_what_does_not_fit_is_refused(build, arm):
    """Each wrong argument gets words, and nothing is written."""
    program = build("rnea", arm)
    q, qd, qdd = _inputs()
    Q, Qd, Qdd = _inputs(20)
    out = np.full(7, 3.0)
    locked = np.zeros(7)
    locked.flags.writeable = False
    wrong = [
        ((q[:6], qd, qdd), {}, "q: wanted shape"),
        ((Q, Qd[:19], Qdd), {}, "qd: wanted a batch of 20"),
        ((q, qd), {}, "qdd: wanted an array, got nothing"),
        ((q, qd, qdd, q), {}, "arguments: wanted 3"),
        ((q.astype(object), qd, None), {}, "wanted numbers"),
        ((q, qd, qdd), {"out": np.zeros(6)}, "out tau: wanted .*shape \\(7,\\)"),
        ((Q, Qd, Qdd), {"out": np.zeros(7)}, "out tau: wanted .*shape \\(20, 7\\)"),
        ((q, qd, qdd), {"out": locked}, "read-only"),
        ((q, qd, qdd), {"out": [0.0] * 7}, "out tau: .* got list"),
        ((q, qd, qdd), {"out": np.zeros(7, np.float32)}, "float32"),
        ((q, qd, qdd), {"into": out}, "into: wanted one of"),
        ((q[:6], qd, qdd), {"out": out}, "q: wanted shape"),
    ]
    for args, named, words in wrong:
        with pytest.raises(dyn.ShapeError, match=words):
            program(*args, **named)
    np.testing.assert_array_equal(out, np.full(7, 3.0))


def test_out_may_share_memory_with_inputs(build, arm):
    """Overlapping memory gives the same bits as separate memory."""
    program = build("rnea", arm)
    for lead in ((), (50,)):
        inputs = _inputs(*lead)
        wanted = program(*inputs)
        for k in range(3):
            given = [x.copy() for x in inputs]
            program(*given, out=given[k])
            np.testing.assert_array_equal(given[k], wanted)
        wide = np.zeros((*lead, 21))
        strided = wide[..., ::3]
        program(*inputs, out=strided)
        np.testing.assert_array_equal(strided, wanted)
    rows = np.zeros((51, 7))
    rows[:50] = inputs[0]
    program(rows[:50], *inputs[1:], out=rows[1:])
    np.testing.assert_array_equal(rows[1:], wanted)


def test_requirements_raise_with_rows(build, arm):
    """A state that cannot be solved raises, in a batch with its rows; out is kept."""
    program = build("aba", arm, inputs=["armature"])
    q, qd, tau = _inputs()
    out = np.full(7, 3.0)
    with pytest.raises(dyn.SingularError):
        program(q, qd, tau, np.full(7, -9.0), out=out)
    np.testing.assert_array_equal(out, np.full(7, 3.0))
    Q, Qd, Tau = _inputs(20)
    armature = np.ones((20, 7))
    armature[[3, 17]] = -9.0
    with pytest.raises(dyn.SingularError) as caught:
        program(Q, Qd, Tau, armature)
    assert caught.value.rows == (3, 17)
    given, status = program(Q, Qd, Tau, armature, status=True)
    assert np.flatnonzero(status).tolist() == [3, 17]
    assert np.isnan(given[[3, 17]]).all() and np.isfinite(given[status == 0]).all()


def test_finite_refuses_nan_on_both_sides(build, arm):
    """finite=True checks inputs and results, for a state and in a batch."""
    program = build("rnea", arm, finite=True)
    for lead in ((), (20,)):
        q, qd, qdd = _inputs(*lead)
        out = np.full((*lead, 7), 3.0)
        np.testing.assert_array_equal(program(q, qd, qdd, out=out.copy()),
                                      program(q, qd, qdd))  # fmt: skip
        bad = qd.copy()
        bad[..., 2] = np.nan
        with pytest.raises(dyn.NonFiniteError, match="input qd is not finite"):
            program(q, bad, qdd, out=out)
        huge = np.full_like(qd, 1e200)
        with pytest.raises(dyn.NonFiniteError, match="result tau is not finite"):
            program(q, huge, qdd, out=out)
        np.testing.assert_array_equal(out, np.full((*lead, 7), 3.0))


def test_a_million_calls_leave_reference_counts(build, arm):
    """Neither arguments nor results nor the Program gain or lose references."""
    program = build("gravity", arm)
    calls = 1_000_000 if build.mode == "struct" else 50_000
    q = np.zeros(7)
    out, name, result = np.zeros(7), "out", None
    watched = [q, out, name, program, np.ndarray, None, program.__class__]
    if build.mode != "python":  # there np.empty of NumPy 2.4 itself counts dtypes up
        watched.append(q.dtype)
    before = [sys.getrefcount(x) for x in watched]
    for _ in range(calls // 2):
        program(q, out=out)
        result = program(q)
    after = [sys.getrefcount(x) for x in watched]
    assert all(abs(a - b) < 50 for a, b in zip(after, before, strict=True))
    assert sys.getrefcount(result) <= 2 + (sys.version_info < (3, 14))


def test_a_call_with_out_allocates_nothing(build, arm):
    """Python's allocator and NumPy's see no new block in calls with out."""
    import tracemalloc

    if build.mode == "python":
        pytest.skip("the way through Python makes arrays")
    program = build("aba", arm)
    inputs, out = _inputs(), np.zeros(7)
    program(*inputs, out=out)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        for _ in range(100):
            program(*inputs, out=out)
        now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert now - before < 200 and peak - before < 400


def test_eight_threads_give_the_serial_bits(build, arm):
    """One Program, eight threads, states and batches small and large, mixed."""
    program = build("aba", arm)
    sizes = [None, 1, 5, 50, 3000, 20000]
    jobs = [(size, seed) for seed in range(8) for size in sizes]

    def work(job):
        size, seed = job
        lead = () if size is None else (size,)
        return program(*_inputs(*lead, seed=seed))

    serial = [work(job) for job in jobs]
    with ThreadPoolExecutor(8) as pool:
        for wanted, given in zip(serial, pool.map(work, jobs * 3), strict=False):
            np.testing.assert_array_equal(given, wanted)


def test_work_that_takes_long_lets_others_run(arm):
    """While a large batch is computed another thread of Python makes progress."""
    program = dyn.solver("aba").build(arm, engine="native", threads=1)
    program.prepare(batch=True)
    inputs = _inputs(400_000)
    ended, began, count = threading.Event(), threading.Event(), 0

    def work():
        began.set()
        program(*inputs)
        ended.set()

    thread = threading.Thread(target=work)
    thread.start()
    began.wait()
    while not ended.is_set():
        count += 1
    thread.join()
    assert count > 1000


def test_programs_pickle_and_live_on(build, arm):
    """A pickled Program computes the same elsewhere; a deleted one takes nothing along."""
    program = build("crba", arm)
    q = _inputs()[0]
    again = pickle.loads(pickle.dumps(program))
    np.testing.assert_array_equal(again(q), program(q))
    H = program(q)
    kept = H.copy()
    del program, again
    np.testing.assert_array_equal(H, kept)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_environments_in_other_processes(arm, method):
    """Like a vector of environments: processes step their own copies of a Program."""
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    program = dyn.solver("semi_implicit_euler").build(arm, engine="native", threads=2)
    large = [*_inputs(30_000), 1e-3]
    program(*large)  # worker threads run in this process
    states = _inputs(12, seed=9)
    wanted = program(*states, 1e-3)
    with multiprocessing.get_context(method).Pool(3) as pool:
        jobs = [(*[x[k] for x in states], 1e-3) for k in range(12)]
        for k, given in enumerate(pool.starmap(program, jobs)):
            np.testing.assert_array_equal(given.q_next, wanted.q_next[k])
        given = pool.apply_async(program, large).get(60)
    np.testing.assert_array_equal(given.q_next, program(*large).q_next)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_in_the_middle_of_a_build_does_no_harm(shipped):
    """A child forked while a thread compiles builds and computes by itself."""
    program = dyn.solver("aba").build(shipped["quadruped"], engine="native", wait=False)
    model, rng = shipped["quadruped"], np.random.default_rng(0)
    state = (model.random(rng), rng.normal(size=18), rng.normal(size=18))
    wanted = program(*state)  # a thread begins to compile
    there, here = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            program.prepare()
            os.write(here, np.asarray(program(*state)).tobytes())
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0
    np.testing.assert_allclose(np.frombuffer(os.read(there, 4096)), wanted, rtol=1e-9)
    os.close(there)
    os.close(here)


def test_workers_hand_errors_back():
    """What a task raises in a worker is raised where the tasks were given."""

    def fail():
        raise RuntimeError("from a worker")

    done = []
    with pytest.raises(RuntimeError, match="from a worker"):
        WORKERS.run([fail, lambda: done.append(1)])
    assert done == [1]


def test_small_stacks_are_enough(build, shipped):
    """A thread of 64 KiB stack runs the largest shipped kernels."""
    model = shipped["quadruped"]
    program = build("rnea", model)
    rng = np.random.default_rng(0)
    q, v = model.random(rng), rng.normal(size=model.nv)
    wanted, found = program(q, v, v), []
    before = threading.stack_size(64 * 1024)
    try:
        thread = threading.Thread(target=lambda: found.append(program(q, v, v)))
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    np.testing.assert_array_equal(found[0], wanted)


def test_a_quick_form_serves_until_the_kernel_comes(arm):
    """wait=False answers at once; the kernel takes over and agrees."""
    program = dyn.solver("rnea").build(arm, engine="native", wait=False)
    inputs, many = _inputs(), _inputs(20)
    first, firsts = program(*inputs), program(*many)
    program.prepare(batch=True)
    ready = dyn.solver("rnea").build(arm, engine="native")
    np.testing.assert_array_equal(program(*inputs), ready(*inputs))
    np.testing.assert_array_equal(program(*many), ready(*many))
    np.testing.assert_allclose(first, ready(*inputs), rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(firsts, ready(*many), rtol=1e-11, atol=1e-11)


_SCRIPT = """
import sys, warnings
{before}
import numpy as np, dyn_core as dyn
from dyn_core import robots
model = dyn.load_urdf(robots.path("arm7"))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    program = dyn.solver("rnea").build(model)
    dyn.solver("aba").build(model)
    print(program.engine, len(caught), caught[0].message)
    one, many = program(*np.ones((3, 7))), program(*np.ones((3, 9, 7)))
    print(np.allclose(many, one, rtol=1e-12))
try:
    dyn.solver("rnea").build(model, engine="native")
except dyn.UnsupportedError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("before", "words"),
    [
        ("import os; os.environ['DYN_NATIVE'] = 'off'", "DYN_NATIVE is off"),
        ("sys.modules['llvmlite'] = None", "llvmlite cannot be loaded"),
        (
            "import llvmlite; llvmlite.__version__ = '0.40.1'",
            "llvmlite 0.40.1 is older than 0.45",
        ),
        (
            "import llvmlite.binding as b; b.get_process_triple = lambda: 'riscv64-linux'",
            "riscv64-linux",
        ),
    ],
)
def test_without_llvm_other_engines_serve(before, words):
    """One warning that says why, then engine graph; asking for native is refused."""
    script = _SCRIPT.format(before=before)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    first, equal, refused = done.stdout.splitlines()
    assert first.startswith("graph 1 Programs run on engine 'graph'")
    assert words in first and words in refused
    assert equal == "True"


def test_import_starts_no_llvm():
    """Importing the library loads no LLVM; the first native build does."""
    code = "import sys, dyn_core; print('llvmlite' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["False"]
