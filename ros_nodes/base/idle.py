"""Work that can wait until a message has been answered."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

LATE = 0.05  # time without an answer after which nothing waits for one [s]

Job = Callable[[], None]


class IdleWork:
    """Puts jobs right behind an answer, where the executor has nothing else to do.

    An executor does one thing after the other: a job of a timer would hold up the
    message that comes meanwhile.

    Attributes:
        waiting: Jobs that are due, each once.
        answered: Time of the last answer [s].
    """

    def __init__(self, call: Callable[[Job], object] = lambda job: job()) -> None:
        """Nothing waits yet.

        Args:
            call: Calls a job.
        """
        self._call = call
        self.waiting: deque[Job] = deque()
        self.answered = -LATE

    def due(self, job: Job) -> None:
        """Do a job behind the next answer; now, where there are no answers."""
        waits = job in self.waiting
        if time.monotonic() - self.answered <= LATE:
            if not waits:
                self.waiting.append(job)
            return
        if waits:
            self.waiting.remove(job)
        self._call(job)

    def after_answer(self) -> None:
        """Do the job that has waited longest, if any."""
        self.answered = time.monotonic()
        if self.waiting:
            self._call(self.waiting.popleft())
