"""Progress of work on many rows."""

from __future__ import annotations

import sys
import time
from datetime import timedelta


class RowProgress:
    """A line on the terminal that says how many rows are done, if it takes long.

    It also says how many are done in a second, and the time that is left.
    """

    def __init__(self, count: int, wanted: bool, what: str = "rows") -> None:
        self.count, self.what = count, what
        self.wanted = wanted and sys.stderr.isatty()
        self.start = self.shown = time.monotonic()
        self._width = 0

    def show(self, done: int, before: int = 0) -> None:
        """Show it twice a second, after two seconds.

        Args:
            done: Rows that are done.
            before: Rows of these that were done before the start.
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
        """Close the line."""
        if self.shown > self.start:
            print(file=sys.stderr)
