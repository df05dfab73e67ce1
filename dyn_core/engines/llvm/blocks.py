"""Blocks of rows: a batch is a few calls of its kernel, so that Ctrl-C can end it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from time import perf_counter

from dyn_core.engines.llvm.kernel import Variant

STEP = {"scalar": 0.15e-9, "batch": 0.07e-9}  # rough time of an operation, per row [s]
DEAF = 2e-3  # work that Ctrl-C waits for where nobody has looked at the clock [s]
_BLOCK = 10e-3  # time of a block of rows [s]
_SHARE = 50e-6  # least time of a block where several threads take them [s]
_TURNS = 8  # blocks that each thread takes, about


class Blocks:
    """Blocks of rows that one thread or several take, one after the other.

    Ctrl-C reaches Python between two calls of a kernel, so a call lasts a hundredth of
    a second; the first ones are short where a loop hides how long a row takes. Several
    threads take smaller ones: a thread that starts late, or loses its core for a while,
    does fewer of them, and nobody waits for its half.

    Attributes:
        made: Machine code that is called.
        step: Rows of a block are a multiple of this, but for the last one.
        first, last: Rows that no thread has taken.
        size: Rows of the next block.
    """

    def __init__(self, made: Variant, step: int, rows: int, threads: int = 1) -> None:
        self.made, self.step, self.first, self.last = made, step, 0, rows
        seconds = max(made.steps, 1) * STEP["batch"]
        self._most = rows
        if threads > 1:
            self._most = max(rows // (threads * _TURNS), int(_SHARE / seconds))
        self.size = self._whole(int(DEAF / seconds / made.rounds))
        self._lock = threading.Lock()

    def _whole(self, rows: int) -> int:
        """Return a size of blocks: a multiple of the step, and not too much."""
        return max(min(rows, self._most) // self.step, 1) * self.step

    def stop(self) -> None:
        """Let all loops over blocks end."""
        self.last = 0

    def _take(self) -> tuple[int, int]:
        """Return first and last row of the next block; none are left where equal."""
        with self._lock:
            first, last = self.first, self.last
            if first >= last:
                return 0, 0
            end = last if last - first < 2 * self.size else first + self.size
            self.first = end
            return first, end

    def __call__(self) -> Iterator[tuple[int, int, int]]:
        """Return first and last row of each block, and scratch memory."""
        memory = self.made.memory()
        try:
            first, end = self._take()
            while end:
                start = perf_counter()
                yield first, end, memory[1]
                spent = perf_counter() - start
                if spent < _BLOCK / 2:
                    self.size = self._whole(2 * self.size)
                elif spent > 2 * _BLOCK:
                    self.size = self._whole(self.size // 2)
                first, end = self._take()
        finally:
            self.made.give_back(memory)
