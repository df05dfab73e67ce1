"""The library may be used first by many threads, also while it forks or compiles."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from dyn_core import sharing
from dyn_core.engines.llvm import host_machine
from dyn_core.identification import blas_threads
from dyn_core.sharing import Lock, cached_property, once

SCRIPT = Path(__file__).with_name("first_use.py")
WAYS = ("programs", "single_objects", "shared_program", "forked", "spawned")
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
LONG = 60.0  # nothing here takes so long [s]


def _in_threads(count, work):
    """Return what threads return that call a function at once."""
    barrier, results = threading.Barrier(count), []

    def run():
        barrier.wait()
        results.append(work())

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@pytest.mark.one_of(2)
@needs_fork
@pytest.mark.skipif(bool(host_machine.missing()), reason=host_machine.missing())
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("way", WAYS)
def test_first_use_from_threads(way, full):
    """Processes of 2 to 16 threads, without a cache: no crash, no hang, right bits.

    One process each, of another number of threads; 50 each with --full.
    `python tests/engines/first_use.py WAY 500` by hand.
    """
    count, first = (50, 0) if full else (1, WAYS[::-1].index(way))
    environment = {**os.environ, "DYN_CACHE_DIR": "off"}
    command = [sys.executable, str(SCRIPT), way, str(count), str(first)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_is_made_once_is_one_object_for_all_threads():
    """However long it takes to make; other arguments make another one."""
    calls = []

    @once
    def make(name):
        calls.append(name)
        time.sleep(0.02)
        return object()

    assert len(set(_in_threads(16, lambda: make("a")))) == 1
    assert make("b") is make("b") is not make("a")
    assert calls == ["a", "b"]
    make.cache_clear()
    make("a")
    assert calls == ["a", "b", "a"]


def test_what_cannot_be_made_is_tried_again():
    """The error comes out, and nothing is kept."""
    errors = [ValueError("no")]

    @once
    def make():
        if errors:
            raise errors.pop()
        return 3

    with pytest.raises(ValueError, match="no"):
        make()
    assert make() == 3


def test_a_property_is_one_object_for_all_threads():
    """Threads may compute it side by side; all get what the first has stored."""

    class Robot:
        @cached_property
        def graph(self):
            """Return something."""
            time.sleep(0.02)
            return object()

    robot = Robot()
    assert len(set(_in_threads(16, lambda: robot.graph))) == 1
    assert Robot.graph.func(robot) is not robot.graph


@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_finds_open_locks_and_whole_values():
    """Another thread has a lock; a third makes a value, for which the fork waits."""
    lock, closed, making = Lock(), threading.Event(), threading.Event()
    finish, made = threading.Event(), []

    @once
    def value():
        making.set()
        time.sleep(0.1)
        made.append(True)
        return 3

    def close():
        with lock:
            closed.set()
            finish.wait(LONG)

    threads = [threading.Thread(target=close), threading.Thread(target=value)]
    for thread in threads:
        thread.start()
    assert closed.wait(LONG)
    assert making.wait(LONG)
    child = os.fork()
    if not child:
        with lock:
            os._exit(0 if made and value() == 3 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finish.set()
    for thread in threads:
        thread.join()
    with lock:
        assert value() == 3


@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_who_forks_while_it_makes_a_value_waits_for_nobody():
    """Such as a plugin that starts a process when it is imported."""

    @once
    def forks():
        child = os.fork()
        if not child:
            return os._exit
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    other, finish = threading.Event(), threading.Event()

    @once
    def slow():
        other.set()
        finish.wait(LONG)

    thread = threading.Thread(target=slow)
    thread.start()
    assert other.wait(LONG)
    result = forks()
    if result is os._exit:
        result(7)  # the child has come out of all locks
    assert result == 7
    finish.set()
    thread.join()
    assert not sharing._FORKS._making
    assert not sharing._FORKS._forking


def test_two_fits_at_once_leave_blas_as_it_was(monkeypatch):
    """Whoever ends last puts the number of threads back."""
    count = [4]
    switch = (lambda: count[0], lambda n: count.__setitem__(0, n))
    monkeypatch.setattr(blas_threads, "_switches", lambda: (switch,))
    first, second = blas_threads.one_blas_thread(), blas_threads.one_blas_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert count == [1]
    second.__exit__(None, None, None)
    assert count == [4]
