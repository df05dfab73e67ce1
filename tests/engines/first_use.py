"""First use of the library by several threads at once, each time in a new process.

    python tests/engines/first_use.py WAY PROCESSES [FIRST]

FIRST is the place in THREADS of the first process's number of threads.
The processes are forks of one that has imported the library and built nothing. One that
crashes, hangs or gets another number is printed, and the exit status is 1.
"""

import faulthandler
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import traceback

import numpy as np
import numpy.ma
import numpy.random  # NumPy imports it when first named, which no fork may meet

import dyn_core as dyn
from dyn_core.contact.solvers.solver_memory import final_status
from dyn_core.engines import NativeProgram, native_program
from dyn_core.engines.llvm import host_machine, interpreter
from dyn_core.engines.llvm.call import entry, result_memory
from dyn_core.engines.machine_code.loading import compiled
from dyn_core.engines.results import result_type

THREADS = (2, 4, 8, 16)
LONG = 300  # a process that takes longer hangs [s]
ROWS = 5000  # of a batch whose results lie in memory of result_memory.py


def at_once(count, work):
    """Call `work` in several threads from one barrier on; raise what one raised."""
    barrier, results, errors = threading.Barrier(count), [], []

    def run():
        barrier.wait()
        try:
            results.append(work())
        except BaseException:
            errors.append(traceback.format_exc())

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise RuntimeError(errors[0])
    return results


def programs(threads):
    """Programs of one and of several outputs, their batches, a compiled function."""
    model = dyn.load("two_link")
    one, many = np.full(2, 0.5), np.full((ROWS, 2), 0.5)

    def work():
        rnea = dyn.solver("rnea").build(model)
        motion = dyn.solver("body_motion").build(model)
        for _ in range(300):
            tau, v = rnea(one, one, one), motion(one, one, one).v
        final = compiled(final_status)
        report = np.zeros(16)
        return [tau, v, rnea(many, many, many), type(motion(one, one, one)),
                type(rnea), final, final(1, report, 1e-9)]  # fmt: skip

    results = at_once(threads, work)
    tau, v, rows, *types = results[0]
    graph = dyn.solver("rnea").build(model, engine="graph")
    np.testing.assert_allclose(tau, graph(one, one, one), rtol=1e-12)
    np.testing.assert_array_equal(rows, np.tile(tau, (ROWS, 1)))
    for other in results:
        np.testing.assert_array_equal(other[0], tau)
        np.testing.assert_array_equal(other[1], v)
        np.testing.assert_array_equal(other[2], rows)
        assert other[3:] == types, (other[3:], types)


def single_objects(threads):
    """What a process is to have once: the machine, the entry, types, registry, memory."""

    def work():
        how = entry.mode()
        return [
            host_machine.machine(), dyn.default_registry(), result_memory.memory(),
            interpreter.machine_code(), entry._loaded(how, 64, False),
            entry.fast_type(NativeProgram, how)[0],
            result_type(("a", "b")), compiled(final_status),
        ]  # fmt: skip

    for objects in zip(*at_once(threads, work), strict=True):
        assert len(set(map(id, objects))) == 1, objects[0]


def shared_program(threads):
    """One Program whose first call comes from all; the interpreter answers at first."""
    native_program.AT_ONCE = 0
    model = dyn.load("two_link")
    rnea = dyn.solver("rnea").build(model)
    one, many = np.full(2, 0.5), np.full((100, 2), 0.5)

    def work():
        return [rnea(one, one, one) for _ in range(300)], rnea(many, many, many)

    results = at_once(threads, work)
    rnea.prepare(batch=True)
    tau = rnea(one, one, one)
    for single, rows in results:
        assert all(np.array_equal(x, tau) for x in single)
        np.testing.assert_array_equal(rows, np.tile(tau, (100, 1)))


def forked(threads):
    """A process forks while its threads use the library first; so does the child."""
    barrier = threading.Barrier(threads + 1)

    def begin():
        barrier.wait()
        programs(1)

    workers = [threading.Thread(target=begin) for _ in range(threads)]
    for worker in workers:
        worker.start()
    barrier.wait()
    children = [in_a_fork(programs, 2) for _ in range(3)]
    for worker in workers:
        worker.join()
    for child in children:
        status = wait_for(child)
        assert not status, status


def spawned(threads):
    """A process that is started by `spawn` gets a Program and calls it from threads."""
    rnea = dyn.solver("rnea").build(dyn.load("two_link"))
    one = np.full(2, 0.5)
    arguments = pickle.dumps(rnea), threads, rnea(one, one, one)
    context = multiprocessing.get_context("spawn")
    child = context.Process(target=unpacked, args=arguments)
    child.start()
    child.join()
    assert not child.exitcode, child.exitcode


def unpacked(packed, threads, tau):
    """Unpack a Program and call it, in each thread."""
    one = np.full(2, 0.5)
    results = at_once(threads, lambda: pickle.loads(packed)(one, one, one))
    assert all(np.array_equal(x, tau) for x in results)


WAYS = {
    function.__name__: function
    for function in (programs, single_objects, shared_program, forked, spawned)
}


def in_a_fork(work, threads):
    """Start a child process that works in threads; return its number."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        faulthandler.register(signal.SIGALRM, chain=True)  # says where it hangs
        signal.alarm(LONG)
        work(threads)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def wait_for(child):
    """Wait for a child process; return what went wrong, empty if nothing did."""
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return signal.Signals(-code).name if code < 0 else f"status {code}" if code else ""


def main(way, processes, first=0):
    """Run a way in processes of 2 to 16 threads; return how many failed."""
    failures = 0
    for k in range(first, first + processes):
        threads = THREADS[k % len(THREADS)]
        failure = wait_for(in_a_fork(WAYS[way], threads))
        if failure:
            failures += 1
            print(f"{way}: {threads} threads: {failure}", flush=True)
    return failures


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1], *map(int, sys.argv[2:]))))
