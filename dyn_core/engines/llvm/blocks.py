"""Blocks of rows: a batch is a few calls of its kernel, so that Ctrl-C can end it."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter

from dyn_core.engines.llvm.kernel import Variant

STEP = {"scalar": 0.15e-9, "batch": 0.07e-9}  # rough time of an operation, per row [s]
DEAF = 2e-3  # work that Ctrl-C waits for where nobody has looked at the clock [s]
_BLOCK = 10e-3  # time of a block of rows [s]


class Blocks:
    """Blocks of rows between which a batch can be interrupted.

    Ctrl-C reaches Python between two calls of a kernel, so a call lasts a hundredth of
    a second; the first ones are short where a loop hides how long a row takes.

    Attributes:
        made: Machine code that is called.
        step: Rows of a block are a multiple of this.
        stopped: Whether no more blocks are to be done.
    """

    def __init__(self, made: Variant, step: int) -> None:
        self.made, self.step, self.stopped = made, step, False

    def stop(self) -> None:
        """Let all loops over blocks end."""
        self.stopped = True

    def __call__(self, first: int, last: int) -> Iterator[tuple[int, int, int]]:
        """Return first and last row of each block, and scratch memory."""
        made, step = self.made, self.step
        seconds = max(made.steps, 1) * made.rounds * STEP["batch"]
        size = max(int(DEAF / seconds) // step, 1) * step
        memory = made.memory()
        try:
            while first < last and not self.stopped:
                end = last if last - first < 2 * size else first + size
                start = perf_counter()
                yield first, end, memory[1]
                first, spent = end, perf_counter() - start
                if spent < _BLOCK / 2:
                    size *= 2
                elif spent > 2 * _BLOCK:
                    size = max(size // (2 * step), 1) * step
        finally:
            made.give_back(memory)
