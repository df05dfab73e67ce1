"""Ctrl-C gives the prompt back, in a long batch and while LLVM compiles; few threads."""

import os
import signal
import subprocess
import sys
import threading
from itertools import zip_longest

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.engines.llvm import compiler, host_machine, kernel
from dyn_core.engines.llvm.blocks import Blocks
from dyn_core.engines.llvm.threads import LongTasks, Workers
from dyn_core.testing.models import chain

pytestmark = pytest.mark.skipif(
    bool(host_machine.missing()), reason=host_machine.missing()
)
posix = pytest.mark.skipif(
    not hasattr(signal, "pthread_sigmask"), reason="signals of POSIX"
)

COMPILING = """
import os, signal
import numpy as np
import dyn_core as dyn
from dyn_core.engines.llvm import compiler, host_machine
from dyn_core.testing.models import chain

signal.alarm(100)
real, calls = compiler.compile_ir, []


def compile_ir(ir, passes=0):
    if passes:
        return real(ir, passes)
    calls.append(1)  # as long as LLVM works, no signal gets through to Python
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    print("compiling", flush=True)
    os.read(0, 1)
    return real(ir)


compiler.compile_ir = compile_ir
program = dyn.solver("gravity").build(chain(3), engine="native")
try:
    program.prepare()
except KeyboardInterrupt:
    print("interrupted", flush=True)
program.prepare()
print(len(calls), program.kernels()[0].compiled, program(np.zeros(3)).shape, flush=True)
"""

RUNNING = """
import signal, threading
import numpy as np
import dyn_core as dyn
from dyn_core.authoring import Vector, loop, sin
from dyn_core.testing.models import chain

signal.alarm(100)


def slow(model, q):
    rounds = 1e6
    x, _ = loop((q[0], 0.0), lambda s: (sin(s[0]) + 0.1, s[1] + 1.0),
                lambda s: s[1] < rounds, int(rounds))
    return Vector([x])


solver = dyn.authoring.TracedSolver("slow", dyn.problems.GRAVITY_FORCE, slow, by_joint=False)
program = solver.build(chain(1), engine="native", threads=THREADS)
program.prepare(batch=True)
q = np.ones((100_000, 1))
out = np.full(q.shape, np.nan)


def watch():
    while np.isnan(out[0, 0]):
        pass
    print("running", flush=True)


threading.Thread(target=watch, daemon=True).start()
try:
    program(q, out=out)
except KeyboardInterrupt:
    print("interrupted", flush=True)
before = np.isnan(out).sum()
program(q[: program.lanes], out=out[: program.lanes])  # takes as long as a block
print(before, np.isnan(out).sum(), flush=True)
"""


# A run in the background of a shell, whose children inherit it, ignores the signal.
LISTENING = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"


def _interrupted(code, first):
    """Run code, press Ctrl-C when its first line comes; return process and next line."""
    process = subprocess.Popen(
        [sys.executable, "-c", LISTENING + code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )  # fmt: skip
    assert process.stdout.readline() == first
    os.kill(process.pid, signal.SIGINT)
    return process, process.stdout.readline()


@posix
def test_ctrl_c_abandons_a_compile_and_keeps_its_result(tmp_path, monkeypatch):
    """The wait ends at once; who asks again gets what was compiled meanwhile."""
    monkeypatch.setenv("DYN_CACHE_DIR", str(tmp_path / "kernels"))
    process, line = _interrupted(COMPILING, "compiling\n")
    assert line == "interrupted\n"
    out, _ = process.communicate("x", timeout=100)
    assert out == "1 True (3,)\n"


@posix
@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_ends_a_batch_between_blocks(threads):
    """Rows that are not done stay as they were; no thread goes on."""
    process, line = _interrupted(RUNNING.replace("THREADS", str(threads)), "running\n")
    assert line == "interrupted\n"
    before, after = map(int, process.communicate(timeout=100)[0].split())
    assert before == after > 50_000


@pytest.mark.parametrize("seconds", [0.0, 1e-9, 1e-4, 1.0])
@pytest.mark.parametrize("step", [1, 8])
@pytest.mark.parametrize("threads", [1, 3])
def test_blocks_cover_all_rows(seconds, step, threads):
    """Each row once, in order; blocks of whole groups, the last one not below one."""

    class Made:
        steps, rounds, taken = max(int(seconds / 0.07e-9), 1), 1, 0

        def memory(self):
            self.taken += 1
            return None, 64

        def give_back(self, memory):
            self.taken -= 1

    made, last = Made(), 8 * 1000 + 3
    rows = Blocks(made, step, last, threads)
    iterators = [rows() for _ in range(threads)]
    blocks = [block for turn in zip_longest(*iterators) for block in turn if block]
    assert [a for a, _, _ in blocks] == [0, *(b for _, b, _ in blocks[:-1])]
    assert blocks[-1][1] == last
    assert all((b - a) % step == 0 for a, b, _ in blocks[:-1])
    assert all(b - a >= step for a, b, _ in blocks)
    assert made.taken == 0
    stopped = Blocks(made, step, 100, threads)
    stopped.stop()
    assert not list(stopped())


def test_a_batch_of_many_blocks_has_the_same_bits(monkeypatch):
    """However long its rows take: the same as a batch at once."""
    program = dyn.solver("rnea").build(chain(3), engine="native", threads=2)
    x = np.random.default_rng(0).normal(size=(3, 1003, 3))
    monkeypatch.setattr("dyn_core.engines.native_program._SPREAD", 1e-9)
    wanted = program(*x)
    monkeypatch.setattr("dyn_core.engines.llvm.blocks.DEAF", 1e-8)
    monkeypatch.setattr("dyn_core.engines.llvm.blocks._BLOCK", 0.0)
    again = dyn.solver("rnea").build(chain(3), engine="native", threads=2)
    np.testing.assert_array_equal(again(*x), wanted)
    np.testing.assert_array_equal(wanted[1000], program(*x[:, 1000]))


@pytest.fixture
def no_threads(monkeypatch):
    """The process may have no more threads, as where its memory is limited."""

    def refuses(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuses)


def test_without_threads_everything_is_done_here(no_threads, tmp_path, monkeypatch):
    """Compiling, batches for several threads, kernels in the background: right results."""
    monkeypatch.setenv("DYN_CACHE_DIR", str(tmp_path / "kernels"))
    monkeypatch.setattr("dyn_core.engines.native_program._SPREAD", 0.0)
    monkeypatch.setattr("dyn_core.engines.native_program.WORKERS", Workers())
    monkeypatch.setattr(compiler, "_terminal", lambda: print)  # progress is watched
    kernel.forget()
    program = dyn.solver("gravity").build(chain(3), engine="native", threads=2)
    q = np.random.default_rng(0).normal(size=(64, 3))
    batch = program(q)
    assert program.kernels()[-1].compiled
    kernel.forget()
    waiting = dyn.solver("gravity").build(chain(3), engine="native", wait=False)
    np.testing.assert_allclose(waiting(q[0]), batch[0], atol=1e-12)


def test_a_long_task_that_fails_raises_and_can_be_asked_again():
    """Its error comes out where it was asked for, each time."""
    tasks = LongTasks()

    def fails():
        raise dyn.CompileError("no")

    for _ in range(2):
        with pytest.raises(dyn.CompileError, match="no"):
            tasks.result("name", fails)
    assert tasks.result("name", lambda: 3) == 3


@pytest.mark.parametrize("setting", ["maybe", "2", "graph"])
def test_a_switch_is_on_or_off(monkeypatch, setting):
    """DYN_NATIVE is refused like the other variables where it is neither."""
    monkeypatch.setenv("DYN_NATIVE", setting)
    host_machine.missing.cache_clear()
    with pytest.raises(dyn.SettingError, match=f"must be on or off, got '{setting}'"):
        dyn.solver("gravity").build(chain(1))
    monkeypatch.setenv("DYN_NATIVE", "Off")
    assert host_machine.missing() == "DYN_NATIVE is off"
    host_machine.missing.cache_clear()
    monkeypatch.setenv("DYN_NATIVE", "on")
    assert host_machine.missing() == ""
    host_machine.missing.cache_clear()
