"""Watchdog thread of a node; it uses the steady clock."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress

LONGEST = 5e-3  # longest period [s]
JOIN = 1.0  # longest wait for the end of the thread [s]


def period_of(timeout: float) -> float:
    """Return the period of checks for a timeout: a quarter of it, at most 5 ms [s].

    Silence is then detected within timeout + 2 periods + 5 ms.
    """
    return min(timeout / 4, LONGEST)


class Watchdog:
    """Thread that calls a function every `period` [s], independent of the executor.

    It waits in steady time, so that neither /clock nor the system time affects it. The
    first exception of the function is reported; none ends the thread.
    """

    def __init__(
        self,
        period: float,
        look: Callable[[float], object],
        report: Callable[[str], object],
    ) -> None:
        """Create the thread without starting it.

        Args:
            period: Time between two calls [s].
            look: Called with time.monotonic() [s].
            report: Called with a sentence at the first exception of `look`.
        """
        self.period, self._look, self._report = period, look, report
        self._ended = threading.Event()
        self._failed = False
        self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)

    @property
    def native_id(self) -> int | None:
        """Native id of the thread; None before the start."""
        return self._thread.native_id

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Start the thread; a second call raises a RuntimeError."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread; wait up to JOIN (1 s) for it, unless it is the caller."""
        self._ended.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(JOIN)

    def _run(self) -> None:
        """Call the function each period until `stop`; report its first exception."""
        while not self._ended.wait(self.period):
            try:
                self._look(time.monotonic())
            except Exception as error:
                if not self._failed:
                    self._failed = True
                    what = f"the watchdog fails: {type(error).__name__}: {error}"
                    with suppress(Exception):  # silence must still be answered
                        self._report(what)
