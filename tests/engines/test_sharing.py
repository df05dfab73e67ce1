"""Programs in threads, forks and other processes, while they compile, and without LLVM."""

import multiprocessing
import os
import pickle
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.engines.llvm import host_machine
from dyn_core.engines.llvm.cached import kernel_cache
from dyn_core.engines.llvm.threads import WORKERS
from dyn_core.sharing import Lock, _Forks

pytestmark = pytest.mark.skipif(
    bool(host_machine.missing()), reason=host_machine.missing()
)


def _inputs(*lead, seed=0):
    return list(np.random.default_rng(seed).normal(size=(3, *lead, 7)))


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
        for wanted, result in zip(serial, pool.map(work, jobs * 3), strict=False):
            np.testing.assert_array_equal(result, wanted)


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


@pytest.mark.parametrize(
    "method", ["fork", "spawn", pytest.param("forkserver", marks=pytest.mark.full)]
)
def test_environments_in_other_processes(arm, method):
    """Like a vector of environments: processes step their own copies of a Program.

    The third way, which starts like spawn and goes on like fork, with --full.
    """
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    program = dyn.solver("semi_implicit_euler").build(arm, engine="native", threads=2)
    large = [*_inputs(30_000), 1e-3]
    program(*large)  # worker threads run in this process
    states = _inputs(12, seed=9)
    wanted = program(*states, 1e-3)
    with multiprocessing.get_context(method).Pool(2) as pool:
        jobs = [(*[x[k] for x in states], 1e-3) for k in range(12)]
        for k, result in enumerate(pool.starmap(program, jobs)):
            np.testing.assert_array_equal(result.q_next, wanted.q_next[k])
        result = pool.apply_async(program, large).get(60)
    np.testing.assert_array_equal(result.q_next, program(*large).q_next)


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


def test_a_computation_begins_after_a_fork():
    """A child would inherit one half done, behind the locks of its thread."""
    forks, order = _Forks(), []

    def compute():
        with forks.kept_off():
            order.append("computed")

    thread = threading.Thread(target=compute)
    forks.begin()
    thread.start()
    thread.join(0.1)
    order.append("forked")
    forks.end()
    thread.join()
    assert order == ["forked", "computed"]


def test_a_shared_lock_is_shared_again_while_another_thread_waits():
    """The thread that waits to have it alone comes after both blocks."""
    lock, order, inside, waits = Lock(), [], threading.Event(), threading.Event()

    def share():
        with lock.shared():
            inside.set()
            assert waits.wait(10)
            with lock.shared():
                order.append("shared")

    def exclude():
        with lock:
            order.append("alone")

    threads = [threading.Thread(target=x, daemon=True) for x in (share, exclude)]
    threads[0].start()
    assert inside.wait(10)
    threads[1].start()
    while not lock._door.locked():  # closed by the thread that waits
        pass
    waits.set()
    for thread in threads:
        thread.join(10)
    assert order == ["shared", "alone"]


def test_workers_hand_errors_back():
    """What a task raises in a worker is raised where the tasks were given."""

    def fail():
        raise RuntimeError("from a worker")

    done = []
    with pytest.raises(RuntimeError, match="from a worker"):
        WORKERS.run([fail, lambda: done.append(1)], lambda: None)
    assert done == [1]


def test_wrong_settings_are_refused(arm, monkeypatch):
    """A variable or choice that cannot be meant is named, with what would be valid."""
    batch = _inputs(50_000)
    for value in ("many", "\u00b2", "0"):
        with monkeypatch.context() as patch:
            patch.setenv("DYN_THREADS", value)
            with pytest.raises(
                dyn.SettingError, match="DYN_THREADS must be a whole number"
            ):
                dyn.solver("rnea").build(arm, engine="native")(*batch)
    with monkeypatch.context() as patch:
        patch.setenv("DYN_ENTRY", "quick")
        with pytest.raises(dyn.SettingError, match="valid: struct, buffer, python"):
            dyn.solver("rnea").build(arm, engine="native")
    with monkeypatch.context() as patch:
        patch.setenv("DYN_CACHE_LIMIT", "-1")
        with pytest.raises(dyn.SettingError, match="DYN_CACHE_LIMIT must be megabytes"):
            kernel_cache.limit()
    for threads in (0, True):
        message = f"threads {threads}; valid: a whole number >= 1"
        with pytest.raises(dyn.UnsupportedError, match=message):
            dyn.solver("rnea").build(arm, threads=threads)


@pytest.mark.parametrize("name", ["DYN_THREADS", "DYN_CACHE_LIMIT", "DYN_NATIVE"])
def test_bad_variables_are_refused_by_the_first_build(name, monkeypatch):
    """Not only where they act: by a batch of many rows, or a full folder."""
    monkeypatch.setenv(name, "-3")
    with pytest.raises(dyn.SettingError, match=f"{name} must be .*got '-3'"):
        host_machine.missing.__wrapped__()


def test_a_misspelt_variable_is_named(monkeypatch):
    """Once, with the nearest; every variable that the code reads is known."""
    read = {
        name
        for path in Path(dyn.__file__).parent.rglob("*.py")
        for name in re.findall(r'"(DYN_[A-Z_]+)"', path.read_text(encoding="utf-8"))
    }
    assert read == {*host_machine.VARIABLES}
    for name in read:
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("DYN_NATVE", "off")
    host_machine._warn_of_unknown_variables.cache_clear()
    message = "no environment variable is called 'DYN_NATVE'; did you mean 'DYN_NATIVE'"
    with pytest.warns(RuntimeWarning, match=message) as caught:
        host_machine._warn_of_unknown_variables()
        host_machine._warn_of_unknown_variables()
    assert len(caught) == 1


def test_small_stacks_are_enough(build, shipped):
    """A thread of 64 KiB stack runs the largest shipped kernels."""
    model = shipped["quadruped"]
    program = build("rnea", model)
    rng = np.random.default_rng(0)
    q, v = model.random(rng), rng.normal(size=model.nv)
    wanted, results = program(q, v, v), []
    before = threading.stack_size(64 * 1024)
    try:
        thread = threading.Thread(target=lambda: results.append(program(q, v, v)))
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    np.testing.assert_array_equal(results[0], wanted)


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


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    ("before", "message"),
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
def test_without_llvm_other_engines_serve(before, message):
    """One warning that says why, then engine graph; asking for native is refused."""
    script = _SCRIPT.format(before=before)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    first, equal, refused = done.stdout.splitlines()
    assert first.startswith("graph 1 Programs run on engine 'graph'")
    assert message in first and message in refused
    assert equal == "True"


def test_import_starts_no_llvm():
    """Importing the library loads no LLVM; the first native build does."""
    code = "import sys, dyn_core; print('llvmlite' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["False"]
