"""The collector of garbage, while much is made that stays: it is to look seldom."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SELDOM = 1_000_000  # new objects before the collector looks again
_ALONE = threading.Lock()


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Let the collector look seldom while many objects are made that stay.

    Else it goes through all objects of the process again and again, for a part of the
    time that grows with them. Its thresholds are those of all threads: one thread at a
    time raises them, and puts them back unless somebody else has set them meanwhile.
    """
    if not _ALONE.acquire(blocking=False):
        yield
        return
    before = gc.get_threshold()
    raised = (max(before[0], SELDOM), *before[1:]) if before[0] else before
    try:
        gc.set_threshold(*raised)
        yield
    finally:
        if gc.get_threshold() == raised:
            gc.set_threshold(*before)
        _ALONE.release()
