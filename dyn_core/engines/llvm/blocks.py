"""Blocks of rows: a batch is divided into calls of its kernel, so that Ctrl-C works."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from time import perf_counter

from dyn_core.engines.llvm.kernel import Variant

STEP = {"scalar": 0.15e-9, "batch": 0.07e-9}  # estimated time of an operation [s]
DEAF = 2e-3  # estimated time of a first call, during which Ctrl-C waits [s]
_BLOCK = 10e-3  # desired time of a block of rows [s]
_SHARE = 50e-6  # minimum estimated time of a block with several threads [s]
_TURNS = 8  # approximate number of blocks for each thread


class Blocks:
    """Blocks of rows, processed in order by one or several threads.

    Ctrl-C reaches Python between two calls of a kernel, so a call should last a
    hundredth of a second; the first blocks are short, because loops make the time of a
    row unknown. Several threads use smaller blocks: a thread that starts late, or loses
    its core, then processes fewer of them, and the others do not wait for it.

    Args:
        made: Machine code that is called.
        step: Block sizes are multiples of this, except for the last block.
        rows: Number of rows.
        threads: Number of threads that will iterate.

    Attributes:
        made, step: The arguments.
        first, last: Rows first to last - 1 have not been started by any thread.
        size: Number of rows of the next block.
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
        """Return `rows`, at most the maximum, in whole steps, at least one."""
        return max(min(rows, self._most) // self.step, 1) * self.step

    def stop(self) -> None:
        """Let no further block begin, in any thread; running blocks end normally."""
        self.last = 0

    def _take(self) -> tuple[int, int]:
        """Return the row range (first, end) of the next block; (0, 0) if none is left.

        The range belongs to the calling thread then. Fewer rows than two blocks are
        returned as one block, the last.
        """
        with self._lock:
            first, last = self.first, self.last
            if first >= last:
                return 0, 0
            end = last if last - first < 2 * self.size else first + self.size
            self.first = end
            return first, end

    def __call__(self) -> Iterator[tuple[int, int, int]]:
        """Yield (first row, end row, address of scratch memory) of each block.

        `end row` is exclusive. Several threads may iterate at once: each row is in one
        block. The scratch memory belongs to the iterating thread until the end of the
        iteration. The caller runs the block before it asks for the next one: the size
        adapts to the time between two yields.
        """
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
