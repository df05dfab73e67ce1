"""Threads for batches and for the compiler, started when needed; forks start anew."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar

from dyn_core.errors import SettingError, warn

Result = TypeVar("Result")

VARIABLE = "DYN_THREADS"  # environment variable: maximum threads of a batch


def count(asked: int | None = None) -> int:
    """Return the number of threads of a batch.

    Args:
        asked: Number, returned unchecked; None: DYN_THREADS, or if that is not set or
            empty the number of cores that this process may use.

    Raises:
        SettingError: DYN_THREADS is read and is not a whole number >= 1.
    """
    if asked is not None:
        return asked
    setting = os.environ.get(VARIABLE, "")
    if setting:
        with suppress(ValueError):
            if (number := int(setting)) >= 1:
                return number
        message = f"{VARIABLE} must be a whole number >= 1, got '{setting}'"
        raise SettingError(message, VARIABLE)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Job:
    """One task and its outcome; `taken`: a thread has started it."""

    def __init__(self, task: Callable[[], Any]) -> None:
        self.task = task
        self.done = threading.Event()
        self.result: Any = None
        self.error: BaseException | None = None
        self.taken = False

    def run(self) -> None:
        """Run the task, store its result or exception, set `done`; raise nothing."""
        try:
            self.result = self.task()
        except BaseException as error:
            self.error = error
        finally:
            self.done.set()


class LongTasks:
    """Long tasks by name, on threads of their own.

    Ctrl-C ends the wait of the main thread, not the task: the next request of the same
    name waits for the task and gets its result. Background tasks run one after the
    other; a task that has not started when its result is requested is run at once.
    """

    def __init__(self) -> None:
        self._begin()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        """Remove all tasks: a child process has no thread that runs them."""
        self._jobs: dict[str, _Job] = {}
        self._queue: list[tuple[str, _Job, Callable[[_Job], None]]] = []
        self._working = False
        self._lock = threading.Lock()

    def result(self, name: str, task: Callable[[], Result]) -> Result:
        """Wait for a task and return its result; any exception of the task is raised.

        It is run now, on a new thread or here if none can be started, unless one of
        this name is in progress, whose result is returned, or queued, which is run now.
        """
        job = self._jobs.setdefault(name, _Job(task))
        if not job.taken:
            run = partial(self._run, job)
            thread = threading.Thread(target=run, daemon=True, name="dyn compiler")
            if not _started(thread):
                self._run(job)
        job.done.wait()
        self._jobs.pop(name, None)
        if job.error is not None:
            raise job.error
        return job.result

    def later(
        self, name: str, task: Callable[[], Any], then: Callable[[_Job], None]
    ) -> None:
        """Run a task in the background, after the tasks in the queue; return at once.

        Where no thread can be started, it is run here. If one of this name exists
        already, that one is run or awaited instead. `then` is called once after its
        end, on the thread that ran the queue, with the job (`result`, and `error` or
        None). If it raises an exception, there is a warning, and the other tasks run.
        """
        with self._lock:
            job = self._jobs.setdefault(name, _Job(task))
            self._queue.append((name, job, then))
            if self._working:
                return
            self._working = True
        thread = threading.Thread(target=self._work, daemon=True, name="dyn compiler")
        if not _started(thread):
            self._work()

    def _work(self) -> None:
        """Run the tasks in the queue in order until it is empty, here on this thread.

        A task that another thread has started is awaited. After each one, also if it
        failed, its `then` is called with the job; an exception of `then` becomes a
        warning.
        """
        while True:
            with self._lock:
                if not self._queue:
                    self._working = False
                    return
                name, job, then = self._queue.pop(0)
            self._run(job)
            job.done.wait()
            try:
                then(job)
            except Exception as error:  # the queue has no other thread
                warn(f"after {name}: {type(error).__name__}: {error}")
            self._jobs.pop(name, None)

    def _run(self, job: _Job) -> None:
        """Run a job, marked as `taken`; nothing happens if a thread has started it."""
        with self._lock:
            if job.taken:
                return
            job.taken = True
        job.run()


class Workers:
    """Threads that wait for tasks, at most as many as the largest `run` needed."""

    def __init__(self) -> None:
        self._begin()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        """Start without threads: a child process has none of its parent's."""
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0

    def run(
        self, tasks: Sequence[Callable[[], None]], stop: Callable[[], None]
    ) -> None:
        """Run tasks in parallel, the last one on this thread, and wait for all of them.

        After all tasks have ended, the exception of the first one, in their order, that
        raised one is raised; Ctrl-C in a task on this thread counts as its exception.
        Ctrl-C in the wait is raised instead, also after the end of all.

        Args:
            tasks: Functions, at least one, else IndexError; all run on this thread, one
                after the other, if no thread can be started.
            stop: Requests all tasks to end soon; called if the last task raised an
                exception, and after Ctrl-C in the wait.
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
    """Start a thread; return False if the process cannot have one more."""
    try:
        thread.start()
    except (RuntimeError, MemoryError):
        return False
    return True


def _work(jobs: SimpleQueue[_Job]) -> None:
    while True:
        jobs.get().run()


WORKERS, COMPILERS = Workers(), Workers()
LONG_TASKS = LongTasks()
