"""The worker of a node: one thread that prepares what the control thread must not."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dyn_core.errors import DynError

JOIN = 1.0  # longest wait for the end of the thread [s]


@dataclass(frozen=True, eq=False)
class Preparation:
    """Something to prepare.

    Attributes:
        kind: A newer job of a kind supersedes the older one.
        make: Called in the worker; returns what is handed over.
        take: Called in the control thread with the result, or with the DynError.
        superseded: Called in the control thread instead, where a newer one came.
    """

    kind: str
    make: Callable[[], Any]
    take: Callable[[Any], object]
    superseded: Callable[[], object]


class Worker:
    """One thread that prepares; results are handed over whole by `deliver`.

    Attributes:
        ready: Results that wait for `deliver`; false if there are none.
    """

    def __init__(
        self, call: Callable[..., object] = lambda job, *results: job(*results)
    ) -> None:
        """Prepare nothing yet; no thread is started.

        Args:
            call: Calls what takes a result, with it.
        """
        self._call = call
        self.ready: deque[tuple[Preparation, Any]] = deque()
        self._changed = threading.Condition()
        self._jobs: deque[Preparation] = deque()
        self._newest: dict[str, Preparation] = {}
        self._ended = False
        self._thread: threading.Thread | None = None

    def submit(
        self,
        kind: str,
        make: Callable[[], Any],
        take: Callable[[Any], object],
        superseded: Callable[[], object] = lambda: None,
    ) -> None:
        """Prepare something; see Preparation. The thread starts with the first one."""
        job = Preparation(kind, make, take, superseded)
        with self._changed:
            self._newest[kind] = job
            self._jobs.append(job)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="worker", daemon=True
                )
                self._thread.start()
            self._changed.notify()

    def deliver(self) -> None:
        """Hand over what is ready; called in the control thread."""
        while self.ready:
            job, result = self.ready.popleft()
            if self._newest.get(job.kind) is job:
                self._call(job.take, result)
            else:
                self._call(job.superseded)

    def stop(self) -> None:
        """End the thread after what it is preparing; nothing more is delivered."""
        with self._changed:
            self._ended = True
            self._newest.clear()
            self._jobs.clear()
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(JOIN)
        self.ready.clear()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._jobs and not self._ended:
                    self._changed.wait()
                if self._ended:
                    return
                job = self._jobs.popleft()
                wanted = self._newest.get(job.kind) is job
            self.ready.append((job, _made(job) if wanted else None))


def _made(job: Preparation) -> Any:
    """Return the result of a job, or its error as one of ours."""
    try:
        return job.make()
    except DynError as error:
        return error
    except Exception as error:  # whatever a message brings: the thread goes on
        return DynError(f"{type(error).__name__}: {error}")
