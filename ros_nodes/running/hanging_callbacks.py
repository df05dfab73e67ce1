"""Detection of callbacks that do not return; the watchdog runs it."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ros_nodes.running.callbacks import Callbacks, name_of, place_of


class Hang:
    """Detects that the executor is stuck in a callback, and that it has recovered.

    It counts calls of `look` instead of seconds: a suspended process does not hang.
    """

    def __init__(
        self,
        callbacks: Callbacks,
        timeout: float,
        period: float,
        begins: Callable[[str], object],
        ends: Callable[[str], object],
    ) -> None:
        """Watch the thread that calls this, which must be the executor's.

        Args:
            callbacks: Callbacks of the executor.
            timeout: Longest duration of a callback [s].
            period: Time between two calls of `look` [s].
            begins, ends: Called with a sentence when a hang is detected and when it
                ends, in the thread that calls `look`.
        """
        self._callbacks, self._timeout, self._period = callbacks, timeout, period
        self._begins, self._ends = begins, ends
        self._executor = threading.get_ident()
        self._count, self._looks, self._first = -1, 0, 0.0
        self.said = False

    def look(self, t: float) -> None:
        """Report a callback that all calls have seen for the timeout; report its end.

        Both are reported once. The timeout is counted in calls of `look`; t is that of
        time.monotonic() [s].
        """
        job, count = self._callbacks.running, self._callbacks.count
        if job is None or count != self._count:
            if self.said:
                self._ends(f"the executor answers again, after {t - self._first:.2f} s")
            self._count, self._looks, self._first = count, 0, t
            self.said = False
            return
        self._looks += 1
        if not self.said and self._looks * self._period >= self._timeout:
            self.said = True
            place = place_of(self._executor) or "unknown code"
            self._begins(
                f"the executor has not answered for {t - self._first:.2g} s:"
                f" {name_of(job)} is still in {place}"
            )
