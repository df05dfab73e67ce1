"""Threads for batches and for the compiler, made when needed; a fork starts anew."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar

from dyn_core.errors import SettingError

Result = TypeVar("Result")

VARIABLE = "DYN_THREADS"  # environment: threads a batch may use


def count(asked: int | None = None) -> int:
    """Return how many threads a batch may use: as asked, environment, or all cores."""
    if asked is not None:
        return asked
    setting = os.environ.get(VARIABLE, "")
    if setting:
        if not setting.isdigit() or int(setting) < 1:
            message = f"{VARIABLE} must be a whole number >= 1, got '{setting}'"
            raise SettingError(message, VARIABLE)
        return int(setting)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Lock:
    """A lock one thread may take twice; a forked process gets it anew, free."""

    def __init__(self) -> None:
        self._begin()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class _Job:
    """One task and its end.

    Attributes:
        done: Set when the task has ended.
        result: What the task returned.
        error: What it raised instead, or None.
    """

    def __init__(self, task: Callable[[], Any]) -> None:
        self.task = task
        self.done = threading.Event()
        self.result: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        """Run the task; keep what it raises for the caller."""
        try:
            self.result = self.task()
        except BaseException as error:
            self.error = error
        finally:
            self.done.set()


class LongTasks:
    """Long tasks by name, on threads of their own.

    Ctrl-C ends the wait of the main thread, not the task: who asks for the same name
    next waits for it and gets its result.
    """

    def __init__(self) -> None:
        self._begin()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        """Forget all tasks: a child process has no thread that ends them."""
        self._jobs: dict[str, tuple[Any, Any]] = {}  # a _Job and its thread

    def result(self, name: str, task: Callable[[], Result]) -> Result:
        """Return what a task returns; raise what it raises."""
        if threading.current_thread() is not threading.main_thread():
            return task()  # no signal comes here
        job, thread = self._jobs.get(name, (None, None))
        if job is None or not (job.done.is_set() or thread.is_alive()):
            job = _Job(task)
            thread = threading.Thread(target=job.run, daemon=True, name="dyn compiler")
            self._jobs[name] = job, thread  # before Ctrl-C can end the start
            if not _started(thread):
                del self._jobs[name]
                return task()
        job.done.wait()
        self._jobs.pop(name, None)
        if job.error is not None:
            raise job.error
        return job.result


class Workers:
    """Threads that wait for tasks."""

    def __init__(self) -> None:
        self._begin()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        """Forget all threads: a child process has none of them."""
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0

    def run(
        self, tasks: Sequence[Callable[[], None]], stop: Callable[[], None]
    ) -> None:
        """Run tasks side by side, the last of them here; raise what one raised.

        Args:
            tasks: What to run; where no thread can be had, all of it runs here.
            stop: Asks all tasks to end soon; called after Ctrl-C, and where one failed.
        """
        jobs = [_Job(task) for task in tasks]
        with self._lock:
            while self._threads < len(jobs) - 1:
                work = partial(_work, self._jobs)
                if not _started(
                    threading.Thread(target=work, daemon=True, name="dyn worker")
                ):
                    break
                self._threads += 1
        for job in jobs[:-1]:
            if self._threads:
                self._jobs.put(job)
            else:
                job.run()
        try:
            jobs[-1].run()
            if jobs[-1].error is not None:
                stop()
            for job in jobs:
                job.done.wait()
        except BaseException:  # the memory of the tasks is in use until all have ended
            stop()
            for job in jobs[:-1]:
                job.done.wait()
            raise
        for job in jobs:
            if job.error is not None:
                raise job.error


def _started(thread: threading.Thread) -> bool:
    """Start a thread; return whether the process may have one more."""
    try:
        thread.start()
    except (RuntimeError, MemoryError):
        return False
    return True


def _work(jobs: SimpleQueue[_Job]) -> None:
    while True:
        jobs.get().run()


WORKERS = Workers()
LONG_TASKS = LongTasks()
