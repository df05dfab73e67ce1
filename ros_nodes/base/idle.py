"""Jobs that are deferred until the executor has answered a message."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

LATE = 0.05  # time after an answer in which jobs wait for the next one [s]

# Function without arguments; its result is ignored.
Job = Callable[[], None]


class IdleWork:
    """Queue of jobs that run right after an answer, when the executor is idle.

    An answer is a message that the node sends in reply to one it received. An executor
    runs one callback at a time: a job called by a timer would delay a message that
    arrives meanwhile. `waiting` has each job at most once, oldest first; `answered` is
    the time.monotonic() of the last answer [s].
    """

    def __init__(self, call: Callable[[Job], object] = lambda job: job()) -> None:
        """Create an empty queue.

        Args:
            call: Called with a job to run it, for example with a guard against
                exceptions. By default the job is called, and its exceptions are raised.
        """
        self._call = call
        self.waiting: deque[Job] = deque()
        self.answered = -LATE

    def due(self, job: Job) -> None:
        """Queue a job for the next answer, or run it now.

        It runs at once if the last answer is more than LATE seconds (50 ms) ago, since
        then no answer may follow; then it leaves the queue. No job is queued twice.
        """
        waits = job in self.waiting
        if time.monotonic() - self.answered <= LATE:
            if not waits:
                self.waiting.append(job)
            return
        if waits:
            self.waiting.remove(job)
        self._call(job)

    def after_answer(self) -> None:
        """Record the time of an answer and run the oldest queued job, if any."""
        self.answered = time.monotonic()
        if self.waiting:
            self._call(self.waiting.popleft())
