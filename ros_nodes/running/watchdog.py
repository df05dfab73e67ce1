"""The watchdog of a node: a thread of its own, in steady time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

LONGEST = 5e-3  # longest period [s]
JOIN = 1.0  # longest wait for the end of the thread [s]


def period_of(timeout: float) -> float:
    """Return the period at which silence of a timeout is looked for [s].

    The answer then comes within timeout + 2 periods + 5 ms.
    """
    return min(timeout / 4, LONGEST)


class Watchdog:
    """Calls a function at a period, whatever the executor does.

    It waits in steady time, so that it is deaf to /clock and to the system's time. What
    the function raises is reported once and does not end the thread.

    Attributes:
        period: Time between two calls [s].
        native_id: Number of the thread for the operating system; None before the start.
    """

    def __init__(
        self,
        period: float,
        look: Callable[[float], object],
        report: Callable[[str], object],
    ) -> None:
        """Prepare the thread.

        Args:
            period: Time between two calls [s].
            look: Called with the time.monotonic().
            report: Called with a sentence when `look` fails.
        """
        self.period, self._look, self._report = period, look, report
        self._ended = threading.Event()
        self._failed = False
        self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)

    @property
    def native_id(self) -> int | None:
        """Number of the thread for the operating system."""
        return self._thread.native_id

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; after it nothing is called any more."""
        self._ended.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(JOIN)

    def _run(self) -> None:
        while not self._ended.wait(self.period):
            try:
                self._look(time.monotonic())
            except Exception as error:
                if not self._failed:
                    self._failed = True
                    self._report(f"the watchdog fails: {type(error).__name__}: {error}")
