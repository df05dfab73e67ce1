"""The watchdog, the worker and the process, without ROS."""

import os
import threading
import time
from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pytest

import dyn_core as dyn
from dyn_core.control import Controller, Rules
from ros_nodes.base import worker as worker_module
from ros_nodes.base.worker import Worker
from ros_nodes.running import realtime as realtime
from ros_nodes.running.callbacks import Callbacks
from ros_nodes.running.watchdog import Watchdog, period_of

Q = np.array([0.4, -0.9])
PATIENCE = 20.0


def _until(done):
    deadline = time.monotonic() + PATIENCE
    pause = threading.Event()
    while not done():
        assert time.monotonic() < deadline
        pause.wait(1e-3)


def test_the_period_keeps_the_promise():
    """A quarter of the timeout, at most 5 ms."""
    assert period_of(0.004) == 0.001
    assert period_of(0.1) == 0.005


def test_a_watchdog_looks_on_while_another_thread_waits():
    """A state, then silence: zeros come in time, until it is stopped."""
    timeout = 0.3  # longer than a busy machine stops between two lines
    lock = {f"joint{k}": 0.0 for k in range(3, 8)}
    model = dyn.load_urdf(dyn.robots.path("arm7"), lock=lock)
    rules = Rules(good_samples=1, state_timeout=timeout)
    controller = Controller(model, engine="graph", rules=rules)
    sent = []

    def look(t):
        controller.guard(t, lambda tau: sent.append((time.monotonic(), tau)))

    watchdog = Watchdog(period_of(timeout), look, pytest.fail)
    watchdog.start()
    seen = time.monotonic()
    assert controller.update(seen, Q, 0 * Q).any()
    _until(lambda: len(sent) > 3)
    assert watchdog.native_id is not None
    watchdog.stop()
    assert not watchdog.alive
    count = len(sent)
    assert not any(tau.any() for _, tau in sent)
    assert sent[0][0] - seen >= timeout
    assert count == len(sent)


def test_a_watchdog_that_fails_says_so_once_and_goes_on():
    """Whatever the look raises."""
    said, looks = [], []

    def look(t):
        looks.append(t)
        raise ZeroDivisionError("no time")

    watchdog = Watchdog(1e-3, look, said.append)
    watchdog.start()
    _until(lambda: len(looks) > 3)
    watchdog.stop()
    assert said == ["the watchdog fails: ZeroDivisionError: no time"]


def test_a_watchdog_goes_on_where_its_report_fails():
    """Silence must be answered, whether the log works or not."""
    looks = []

    def look(t):
        looks.append(t)
        raise ZeroDivisionError("no time")

    def report(text):
        raise OSError(28, "no space left on device")

    watchdog = Watchdog(1e-3, look, report)
    watchdog.start()
    _until(lambda: len(looks) > 3)
    assert watchdog.alive
    watchdog.stop()


@pytest.mark.parametrize("silent", [False, True])
def test_a_service_without_an_answer_says_its_own_failure(silent):
    """Not that of an earlier call."""
    callbacks = Callbacks(MagicMock)
    calls = []

    def serve(request, response):
        calls.append(request)
        if len(calls) == 1 or not silent:
            raise KeyError(request)

    served, response = callbacks.service(serve), SimpleNamespace()
    response.success, response.message = True, ""
    assert "KeyError: 'a'" in served("a", response).message
    answer = served("b", response)
    assert not answer.success
    assert ("no answer" if silent else "KeyError: 'b'") in answer.message


def test_a_worker_hands_over_whole_in_the_thread_that_asks():
    """Results and errors; what is unexpected is one of ours."""
    worker, taken = Worker(), []

    def fail(error):
        raise error

    here = threading.get_ident()
    threads = []

    def take(made):
        threads.append(threading.get_ident())
        taken.append(made)

    worker.submit("a", threading.get_ident, take)
    worker.submit("b", lambda: fail(dyn.SettingError("no")), take)
    worker.submit("c", lambda: fail(KeyError("x")), take)
    _until(lambda: len(worker.ready) == 3)
    assert taken == []
    worker.deliver()
    assert taken[0] != here
    assert set(threads) == {here}
    assert isinstance(taken[1], dyn.SettingError)
    assert str(taken[2]) == "KeyError: 'x'"
    assert isinstance(taken[2], dyn.DynError)
    worker.stop()


def test_a_newer_job_supersedes_one_that_is_being_prepared():
    """Neither what is at work nor what waits is handed over; other kinds are."""
    worker, taken = Worker(), []
    go_on, inside = threading.Event(), threading.Event()

    def slow():
        inside.set()
        assert go_on.wait(PATIENCE)
        return "first"

    made = []
    for name, make in (("first", slow), ("second", lambda: made.append("second")),
                       ("third", lambda: "third")):  # fmt: skip
        worker.submit("path", make, taken.append, lambda name=name: taken.append(-1))
        assert name != "first" or inside.wait(PATIENCE)
    worker.submit("robot", lambda: "robot", taken.append)
    go_on.set()
    _until(lambda: len(worker.ready) == 4)
    worker.deliver()
    assert taken == [-1, -1, "third", "robot"]
    assert made == []
    worker.stop()
    worker.deliver()


def test_nothing_is_handed_over_after_the_end():
    """A worker that never worked can be stopped, too."""
    Worker().stop()
    worker, taken = Worker(), []
    worker.submit("a", lambda: 1, taken.append)
    _until(lambda: worker.ready)
    worker.stop()
    worker.deliver()
    assert taken == []


def test_a_job_that_ends_after_stop_is_discarded(monkeypatch):
    """Its robot or path is not delivered to a node that was cleaned up."""
    monkeypatch.setattr(worker_module, "JOIN", 0.0)
    worker, called = Worker(), []
    go_on, inside = threading.Event(), threading.Event()

    def late():
        inside.set()
        assert go_on.wait(PATIENCE)

    worker.submit("path", late, called.append, lambda: called.append("superseded"))
    assert inside.wait(PATIENCE)
    worker.stop()
    go_on.set()
    worker._thread.join(PATIENCE)
    worker.deliver()
    assert not worker._thread.is_alive()
    assert called == []


def test_what_the_system_refuses_is_a_sentence(monkeypatch):
    """Memory, CPUs and priority: what was asked, why not, and what would help."""

    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(realtime.os, "sched_setaffinity", refuse)
    monkeypatch.setattr(realtime.os, "sched_setscheduler", refuse)
    monkeypatch.setattr(realtime.os, "geteuid", lambda: 1000)
    limit = realtime.resource.RLIMIT_MEMLOCK, (65536, 65536)
    monkeypatch.setattr(
        realtime.resource, "getrlimit", lambda which: dict([limit])[which]
    )
    assert "cpu_affinity [9]: Operation not permitted; allowed now: 0" in (
        realtime.use_cpus([9])
    )
    assert "priority 20: Operation not permitted; it needs CAP_SYS_NICE" in (
        realtime.raise_priority(20, [1])
    )
    assert "memory_lock: the limit of locked memory is 65536 bytes" in (
        realtime.lock_memory()
    )


def test_what_the_system_allows_is_done(monkeypatch):
    """Each thread gets the CPUs; each its priority, the later ones a higher one."""
    done = []
    monkeypatch.setattr(
        realtime.os, "sched_setaffinity", lambda t, cpus: done.append(cpus)
    )
    assert realtime.use_cpus([0]) is None
    assert done
    assert set(map(tuple, done)) == {(0,)}
    ranks = []
    monkeypatch.setattr(
        realtime.os,
        "sched_setscheduler",
        lambda t, kind, how: ranks.append((t, kind, how.sched_priority)),
    )
    assert realtime.raise_priority(98, [7, 8, 9]) is None
    # Threads that they start later have none: the worker is not to hold them up.
    alone = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
    assert ranks == [(7, alone, 98), (8, alone, 99), (9, alone, 99)]
