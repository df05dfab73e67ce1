"""Progress of work on many rows."""

from __future__ import annotations

import sys
import time


class RowProgress:
    """A line on the terminal that says how many rows are done, if it takes long."""

    def __init__(self, count: int, wanted: bool, what: str = "rows") -> None:
        self.count, self.what = count, what
        self.wanted = wanted and sys.stderr.isatty()
        self.start = self.shown = time.monotonic()

    def show(self, done: int) -> None:
        """Show it twice a second, after two seconds."""
        now = time.monotonic()
        if self.wanted and now - self.start > 2 and now - self.shown > 0.5:
            self.shown = now
            line = f"\r{done} of {self.count} {self.what}"
            print(line, end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Close the line."""
        if self.shown > self.start:
            print(file=sys.stderr)
