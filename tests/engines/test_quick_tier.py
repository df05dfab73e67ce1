"""First calls never wait long: the interpreter answers while the compiler works."""

import gc
import os
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core import robots
from dyn_core.engines import native_program
from dyn_core.engines.llvm import compiler, host_machine, interpreter, kernel
from dyn_core.engines.llvm.call import result_memory_code
from dyn_core.engines.llvm.threads import LONG_TASKS, LongTasks
from dyn_core.sharing import Lock
from dyn_core.testing.models import chain

pytestmark = pytest.mark.skipif(
    bool(host_machine.missing()), reason=host_machine.missing()
)
LONG = 60.0  # nothing here takes so long [s]


class Gate:
    """A compiler that waits until it is let go, or fails.

    Attributes:
        compiled: Number of modules that came.
    """

    def __init__(self, monkeypatch):
        self.open, self.began = threading.Event(), threading.Event()
        self.compiled, self.error = 0, None
        self._compile = compiler.compile_ir
        monkeypatch.setattr(compiler, "compile_ir", self)

    def __call__(self, ir, passes=0):
        self.compiled += 1
        self.began.set()
        assert self.open.wait(LONG)
        if self.error:
            raise self.error
        return self._compile(ir, passes)


@pytest.fixture
def gate(tmp_path, monkeypatch):
    """A compiler that waits; every kernel counts as a large one, none is on the disk."""
    interpreter.machine_code()
    dyn.solver("gravity").build(chain(1), engine="native")  # the entry is there
    idle = threading.Event()  # after what earlier tests compile in the background
    LONG_TASKS.later("idle", lambda: None, lambda job: idle.set())
    assert idle.wait(LONG)
    monkeypatch.setenv("DYN_CACHE_DIR", str(tmp_path / "kernels"))
    monkeypatch.setattr(native_program, "AT_ONCE", 0)
    kernel.forget()
    made = Gate(monkeypatch)
    yield made
    made.open.set()


def rows(count=20):
    return list(np.random.default_rng(0).normal(size=(3, count, 3)))


def test_an_answer_comes_while_the_compiler_works(gate):
    """At once and with the bits of the kernel, of one state and of rows."""
    program = dyn.solver("rnea").build(chain(3), engine="native")
    many = rows()
    one = [x[0] for x in many]
    first, firsts = program(*one), program(*many)
    assert gate.began.wait(LONG)
    assert not program.kernels()
    np.testing.assert_array_equal(program(*one), first)
    gate.open.set()
    program.prepare(batch=True)
    assert len(program.kernels()) == 2
    assert gate.compiled == 2  # what was under way was waited for
    np.testing.assert_array_equal(program(*one), first)
    np.testing.assert_array_equal(program(*many), firsts)


def test_results_outside_the_cache(gate, monkeypatch):
    """The interpreter writes them, too, by the entry and by Python, with equal bits."""
    program = dyn.solver("crba").build(chain(3), engine="native")
    q = rows(1500)[0]
    wanted = program(q)
    monkeypatch.setattr(result_memory_code, "FAR", 0)
    out = np.empty((6000, 3, 3))
    program(np.tile(q, (4, 1)), out=out)  # too many for the entry
    np.testing.assert_array_equal(out, np.tile(wanted, (4, 1, 1)))
    for _ in range(2):  # the second time in memory that was used before
        kept = [program(q) for _ in range(40)]
        assert all(np.array_equal(result, wanted) for result in kept)
    assert not program.kernels()
    gate.open.set()
    program.prepare(batch=True)
    np.testing.assert_array_equal(program(q), wanted)


def test_the_kernel_takes_over_by_itself(gate, monkeypatch):
    """Without another call of prepare; the entry, too, goes to it from then on."""
    program = dyn.solver("rnea").build(chain(3), engine="native")
    ended, adopt = threading.Event(), program.adopt

    def adopted(variant, made):
        adopt(variant, made)
        if isinstance(made, kernel.Kernel):
            ended.set()

    program.adopt = adopted
    one = [x[0] for x in rows()]
    first = program(*one)
    if hasattr(program, "_table"):
        before = program._table.table[0]
    gate.open.set()
    assert ended.wait(LONG)
    assert [made.compiled for made in program.kernels()] == [True]
    if hasattr(program, "_table"):
        assert program._table.table[0] == program.kernels()[0].addresses["scalar"]
        assert before not in (0, program._table.table[0])
    np.testing.assert_array_equal(program(*one), first)


def test_who_wants_to_wait_waits(gate):
    """wait=True: the first call is that of the kernel."""
    gate.open.set()
    program = dyn.solver("rnea").build(chain(3), engine="native", wait=True)
    program(*[x[0] for x in rows()])
    assert len(program.kernels()) == 1


def test_small_kernels_are_compiled_at_once(gate, monkeypatch):
    """What takes less than the patience of a person is not worth a second form."""
    monkeypatch.setattr(native_program, "AT_ONCE", 4000)
    gate.open.set()
    program = dyn.solver("rnea").build(chain(3), engine="native")
    program(*[x[0] for x in rows()])
    assert len(program.kernels()) == 1


def test_a_compiler_that_fails_is_not_silent(gate, monkeypatch):
    """A warning when it happens, an error for who waits, and answers all the same."""
    said, spoke = [], threading.Event()

    def warned(message):
        said.append(message)
        spoke.set()

    monkeypatch.setattr(native_program, "warn", warned)
    gate.error = dyn.CompileError("out of registers")
    program = dyn.solver("rnea").build(chain(3), engine="native")
    one = [x[0] for x in rows()]
    first = program(*one)
    gate.open.set()
    assert spoke.wait(LONG)
    assert "out of registers" in said[0]
    with pytest.raises(dyn.CompileError, match="out of registers"):
        program.prepare()
    np.testing.assert_array_equal(program(*one), first)
    gate.error = None
    program.prepare()
    np.testing.assert_array_equal(program(*one), first)


def test_a_program_may_go_while_its_kernel_is_made(gate):
    """The next one finds the kernel; the first is not kept alive by the compiler."""
    program = dyn.solver("rnea").build(chain(3), engine="native")
    first = program(*[x[0] for x in rows()])
    assert gate.began.wait(LONG)
    gone = weakref.ref(program)
    del program
    gc.collect()
    assert gone() is None
    gate.open.set()
    again = dyn.solver("rnea").build(chain(3), engine="native")
    again.prepare()
    assert gate.compiled == 1
    np.testing.assert_array_equal(again(*[x[0] for x in rows()]), first)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_makes_its_own_kernel(gate):
    """A fork while a thread compiles: the child answers, and can wait for a kernel."""
    program = dyn.solver("rnea").build(chain(3), engine="native")
    one = [x[0] for x in rows()]
    first = program(*one)
    assert gate.began.wait(LONG)
    there, here = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            compiler.compile_ir = gate._compile
            answers = [program(*one)]
            program.prepare()
            answers.append(program(*one))
            os.write(here, np.concatenate(answers).tobytes())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    got = np.frombuffer(os.read(there, 4096)).reshape(2, 3)
    np.testing.assert_array_equal(got, [first, first])
    os.close(there)
    os.close(here)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("piece", [1, 60])
def test_a_kernel_in_pieces_has_the_same_bits(
    piece, dtype, shipped, tmp_path, monkeypatch
):
    """However many pieces, compiled now or found on the disk."""
    model, rng = shipped["arm7"], np.random.default_rng(0)
    options = {"engine": "native", "wait": True, "dtype": dtype}
    program = dyn.solver("aba").build(model, **options)
    many = rng.normal(size=(3, 19, 7)).astype(dtype)
    wanted, one = program(*many), program(*many[:, 0])
    monkeypatch.setenv("DYN_CACHE_DIR", str(tmp_path / "kernels"))
    monkeypatch.setattr(kernel, "PIECE", piece)
    assert len(kernel.split(program.kernel_ir("scalar").ir)) > 2
    for compiled in (True, False):
        kernel.forget()
        again = dyn.solver("aba").build(model, **options)
        np.testing.assert_array_equal(again(*many), wanted)
        np.testing.assert_array_equal(again(*many[:, 0]), one)
        assert [made.compiled for made in again.kernels()] == [compiled] * 2
        del again


ENDS = """
import numpy as np, dyn_core as dyn
from dyn_core import robots
from dyn_core import robots
from dyn_core.engines import native_program
from dyn_core.engines.llvm import compiler, host_machine
import threading

began, real = threading.Event(), compiler.compile_ir

def compile_ir(ir, passes=0):
    if threading.current_thread() is not threading.main_thread():
        began.set()
    return real(ir, passes)

program = dyn.solver("fd_derivatives").build(dyn.load_urdf(robots.path("arm7")))
compiler.compile_ir = compile_ir
program(*np.ones((3, 7)))
began.wait(60)
print(len(program.kernels()))
"""


def test_a_process_may_end_while_the_compiler_works(tmp_path):
    """It waits for the piece that LLVM works on: LLVM does not survive its own end."""
    environment = {**os.environ, "DYN_CACHE_DIR": str(tmp_path / "kernels")}
    done = subprocess.run(
        [sys.executable, "-c", ENDS], env=environment, capture_output=True, text=True,
        timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr


def test_a_task_that_waits_its_turn_is_done_at_once_when_asked_for():
    """Not behind those before it; what comes after its end is called all the same."""
    tasks, go_on, ended = LongTasks(), threading.Event(), threading.Event()
    results = []

    def then(job):
        results.append(job.result)
        if len(results) == 2:
            ended.set()

    tasks.later("slow", lambda: go_on.wait(LONG), then)
    tasks.later("asked", lambda: 3, then)
    assert tasks.result("asked", lambda: 4) == 3
    assert not results
    go_on.set()
    assert ended.wait(LONG)
    assert results == [True, 3]


def test_what_follows_a_task_may_raise():
    """A warning says so, and the tasks after it run; two wishes for a task are two calls."""
    tasks, go_on, ended = LongTasks(), threading.Event(), threading.Event()
    results = []

    def fails(job):
        raise ValueError(f"not wanted: {job.result}")

    tasks.later("slow", lambda: go_on.wait(LONG), fails)
    tasks.later("twice", lambda: 3, lambda job: results.append(job.result))
    tasks.later("twice", lambda: 4, lambda job: results.append(10 * job.result))
    tasks.later("last", lambda: 5, lambda _: ended.set())
    with pytest.warns(RuntimeWarning, match="after slow: ValueError: not wanted: True"):
        go_on.set()
        assert ended.wait(LONG)
    assert results == [3, 30]


def test_a_lock_goes_to_who_waits():
    """Who releases it and takes it again comes after those who wait."""
    lock, order, inside = Lock(), [], threading.Event()

    def other():
        inside.set()
        with lock:
            order.append("other")

    thread = threading.Thread(target=other)
    with lock, lock:
        thread.start()
        assert inside.wait(LONG)
        while not lock._door.locked():
            pass
    with lock:
        order.append("first again")
    thread.join()
    assert order == ["other", "first again"]


def test_a_lock_that_is_shared_lets_in_who_wants_it_alone():
    """Who shares it does not wait for others who do; newcomers wait for who waits."""
    lock, order = Lock(), []
    together, alone = threading.Barrier(2), threading.Event()

    def share(number):
        with lock.shared():
            together.wait(LONG)
            assert alone.wait(LONG)
            order.append(number)

    def take():
        with lock, lock.shared():
            order.append("alone")

    def join_late():
        with lock.shared():
            order.append("late")

    first = [threading.Thread(target=share, args=(k,)) for k in (0, 0)]
    for thread in first:
        thread.start()
    later = [threading.Thread(target=x) for x in (take, join_late)]
    while len(lock._sharing) < 2:
        pass
    for thread in later:
        thread.start()
        while not lock._door.locked():
            pass
    assert order == []
    alone.set()
    for thread in (*first, *later):
        thread.join()
    assert order == [0, 0, "alone", "late"]


def test_pieces_are_compiled_side_by_side(monkeypatch):
    """Two threads are in the compiler at once; the code is that of one thread."""
    program = dyn.solver("aba").build(dyn.load_urdf(robots.path("arm7")))
    ir = program.kernel_ir("batch").ir
    monkeypatch.setattr(kernel, "PIECE", 300)
    monkeypatch.setenv("DYN_THREADS", "1")
    alone = kernel.compile_pieces(ir)
    both, real, first = threading.Barrier(2), compiler.compile_ir, [0, 1]

    def compile_ir(piece, passes):
        if first:
            first.pop()
            both.wait(LONG)
        return real(piece, passes)

    monkeypatch.setattr(compiler, "compile_ir", compile_ir)
    monkeypatch.setenv("DYN_THREADS", "2")
    assert len(alone) > 4 and kernel.compile_pieces(ir) == alone
