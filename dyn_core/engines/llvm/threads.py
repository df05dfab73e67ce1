"""Worker threads for batches, made when first needed; what a fork leaves is renewed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue

from dyn_core.errors import SettingError

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
    """One task and its end."""

    def __init__(self, task: Callable[[], None]) -> None:
        self.task = task
        self.done = threading.Lock()
        self.done.acquire()
        self.error: BaseException | None = None

    def run(self) -> None:
        """Run the task; keep what it raises for the caller."""
        try:
            self.task()
        except BaseException as error:
            self.error = error
        finally:
            self.done.release()


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

    def run(self, tasks: Sequence[Callable[[], None]]) -> None:
        """Run tasks side by side, the last of them here; raise what one raised."""
        jobs = [_Job(task) for task in tasks]
        with self._lock:
            while self._threads < len(jobs) - 1:
                self._threads += 1
                loop = threading.Thread(
                    target=_work, args=(self._jobs,), daemon=True, name="dyn worker"
                )
                loop.start()
        for job in jobs[:-1]:
            self._jobs.put(job)
        jobs[-1].run()
        for job in jobs:
            job.done.acquire()
        for job in jobs:
            if job.error is not None:
                raise job.error


def _work(jobs: SimpleQueue[_Job]) -> None:
    while True:
        jobs.get().run()


WORKERS = Workers()
