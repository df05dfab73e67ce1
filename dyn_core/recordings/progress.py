"""Progress of a long computation on many rows."""

from __future__ import annotations

import sys
import time
from datetime import timedelta


class RowProgress:
    """Progress line on standard error: rows done, rows per second, remaining time.

    It appears after two seconds, and only if standard error is a terminal. The time
    counts from the construction. `what` is a plural noun for the rows.
    """

    def __init__(self, count: int, wanted: bool, what: str = "rows") -> None:
        self.count, self.what = count, what
        self.wanted = wanted and sys.stderr.isatty()
        self.start = self.shown = time.monotonic()
        self._width = 0

    def show(self, done: int, before: int = 0) -> None:
        """Update the line to `done` rows in all, at most twice a second.

        `before` of them were done before the start; they do not count in the rate.
        """
        now = time.monotonic()
        if self.wanted and now - self.start > 2 and now - self.shown > 0.5:
            self.shown = now
            rate = (done - before) / (now - self.start)
            line = f"\r{done} of {self.count} {self.what}, {rate:.3g} {self.what}/s"
            if rate > 0:
                left = timedelta(seconds=round((self.count - done) / rate))
                line += f", {left} left"
            print(line.ljust(self._width), end="", file=sys.stderr, flush=True)
            self._width = len(line)

    def end(self) -> None:
        """Print a line break on standard error, if a progress line was shown."""
        if self.shown > self.start:
            print(file=sys.stderr)
