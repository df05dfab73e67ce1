"""Worker thread of a node, for work that would delay the control thread."""

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
    """A job of the worker; `make` runs in its thread, the rest in the control thread.

    `take` gets the result, or a DynError if `make` raised; `superseded` is called
    instead if a newer job of the same `kind` exists.
    """

    kind: str
    make: Callable[[], Any]
    take: Callable[[Any], object]
    superseded: Callable[[], object]


class Worker:
    """One thread that prepares results; `deliver` hands them to the control thread.

    `ready` has pairs of job and result for `deliver`, oldest first; the result is a
    DynError if `make` raised, and None if the job was superseded before `make`.
    """

    def __init__(
        self, call: Callable[..., object] = lambda job, *results: job(*results)
    ) -> None:
        """Create a worker without a thread; the first `submit` starts the thread.

        Args:
            call: Calls a job's `take` with the result, or its `superseded` without
                arguments.
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
        """Queue a job, see Preparation; the first one starts the thread.

        An older job of the same kind that has not been delivered is superseded, even if
        its result is ready. After `stop` the job is never processed.
        """
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
        """Pass the result of each finished job on, in the order of submission.

        To be called in the control thread. An exception of the constructor's `call`, by
        default that of the job, is raised; later results then wait for the next call.
        """
        while self.ready:
            job, result = self.ready.popleft()
            if self._newest.get(job.kind) is job:
                self._call(job.take, result)
            else:
                self._call(job.superseded)

    def stop(self) -> None:
        """End the thread (wait: JOIN, 1 s); discard jobs and results without a call."""
        with self._changed:
            self._ended = True
            self._newest.clear()
            self._jobs.clear()
            self.ready.clear()
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(JOIN)

    def _run(self) -> None:
        """Make jobs in order until `stop`; a superseded one only gets None."""
        while True:
            with self._changed:
                while not self._jobs and not self._ended:
                    self._changed.wait()
                if self._ended:
                    return
                job = self._jobs.popleft()
                wanted = self._newest.get(job.kind) is job
            result = _made(job) if wanted else None
            with self._changed:
                if not self._ended:
                    self.ready.append((job, result))


def _made(job: Preparation) -> Any:
    """Return the result of a job's `make`; an exception is returned as a DynError."""
    try:
        return job.make()
    except DynError as error:
        return error
    except Exception as error:  # any error of a message: the thread goes on
        return DynError(f"{type(error).__name__}: {error}")
