"""Memory of large results: used again, bounded, never shared; streamed results."""

import os
import random
import subprocess
import sys

import numpy as np
import pytest

from dyn_core.engines.llvm import host_machine
from dyn_core.engines.llvm.call import result_memory
from dyn_core.engines.llvm.call import result_memory_code as code
from dyn_core.engines.llvm.kernel import pointers

pytestmark = pytest.mark.skipif(
    result_memory.memory() is None, reason=host_machine.missing() or "not Linux"
)


def _check(array, number):
    """Check the marks at both ends of an array."""
    flat = array.ravel()
    assert flat[0] == number and flat[-1] == number


def test_arrays_of_all_sizes_keep_their_content():
    """Taken, given back and resized in any order, none is written by another."""
    rng, live = random.Random(7), []
    for number in range(4000):
        if live and rng.random() < 0.5:
            array, mark = live.pop(rng.randrange(len(live)))
            _check(array, mark)
            if rng.random() < 0.2:
                n = array.size
                array.resize(2 * n, refcheck=False)
                _check(array[:n], mark)
                assert not array[n:].any()
        else:
            octave = rng.uniform(10, 17) if rng.random() < 0.95 else rng.uniform(17, 21)
            array = result_memory.empty((int(2**octave),))
            assert array.flags.owndata
            array[0] = array[-1] = number
            live.append((array, number))
            if len(live) > 50:
                _check(*live.pop(0))
    for array, mark in live:
        _check(array, mark)


# Of 2**59 numbers too, an endless loop was the answer.
@pytest.mark.parametrize("count", [2**60 - 1, 2**46])
def test_memory_that_no_machine_has_is_refused(count):
    """A size near 2**63 bytes does not wrap round to a small one."""
    with pytest.raises(MemoryError):
        result_memory.empty((count,))
    with pytest.raises(MemoryError):
        result_memory.empty((1 << 14,)).resize(count, refcheck=False)


def test_idle_memory_is_bounded():
    """What died goes back to the system but for a rest, which is used again."""
    owner = result_memory.memory()
    kept = [result_memory.empty((1 << 17,)) for _ in range(300)]  # 1 MiB each
    places = {array.ctypes.data for array in kept}
    assert len(places) == 300
    before = _mapped()
    del kept
    assert 0 < owner.count(code.IDLE) <= code.LIMIT
    assert before - _mapped() >= 300 - (code.LIMIT >> 20) - 2 * (code.SLAB >> 20)
    assert result_memory.empty((1 << 17,)).ctypes.data in places
    before = _mapped()
    result_memory.trim()
    assert owner.count(code.IDLE) == 0
    assert _mapped() < before


def _mapped():
    """Return the virtual memory of this process in MiB."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE") >> 20


def test_kept_results_are_each_their_own(build, arm):
    """Results of many calls that are kept have the bits of a call with `out`."""
    program = build("crba", arm)
    states = np.random.default_rng(7).normal(size=(100, 400, 7))
    out = np.empty((400, 7, 7))
    for _ in range(2):  # the second time in memory that was used, past the cache
        for k, result in [(k, program(q)) for k, q in enumerate(states)]:
            assert result.flags.owndata and result.ctypes.data % 64 == 0
            np.testing.assert_array_equal(result, program(states[k], out=out))


def test_streamed_results_have_the_same_bits(build, arm):
    """For arrays that lie as streaming needs it, and for others; any number of rows."""
    program = build("crba", arm)
    program.prepare(batch=True)
    made = program.kernels()[-1]
    rng, memory = np.random.default_rng(7), made.memory()
    for rows in (program.lanes, 24, 37, 100):
        q = rng.normal(size=(rows, 7))
        wanted, status = program(q), np.zeros(rows, np.int64)
        for shift in (0, 1):
            space = np.full(rows * 49 + 16, np.nan)
            start = -(space.ctypes.data // 8) % 8 + shift
            out = space[start : start + rows * 49]
            made.call["streamed"](
                pointers([q.ctypes.data]), pointers([56]), pointers([out.ctypes.data]),
                status.ctypes.data, 0, rows, memory[1],
            )  # fmt: skip
            np.testing.assert_array_equal(out.reshape(rows, 7, 7), wanted)
            assert np.isnan(space[:start]).all()
            assert np.isnan(space[start + rows * 49 :]).all()


LAST = """
import builtins
import numpy as np
import dyn_core as dyn
from dyn_core.engines.llvm.call import result_memory
builtins.kept = [result_memory.empty((100_000,)) for _ in range(50)]
class Last:
    def __del__(self):
        self.array[:] = 1.0
last = Last()
last.array = result_memory.empty((100_000,))
builtins.last = last
"""


def test_arrays_outlive_the_library():
    """An array that dies after all modules are gone ends no process."""
    done = subprocess.run(
        [sys.executable, "-c", LAST], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()


def test_a_forked_process_has_its_own():
    """Results of a child are not seen by its parent, and both go on."""
    array = result_memory.empty((50_000,))
    array[:] = 1.0
    child = os.fork()
    if child == 0:
        array[:] = 2.0
        more = [result_memory.empty((50_000,)) for _ in range(20)]
        for other in more:
            other[:] = 3.0
        os._exit(0 if (array == 2.0).all() else 1)
    assert os.waitpid(child, 0)[1] == 0
    result_memory.empty((50_000,))[:] = 4.0
    assert (array == 1.0).all()
