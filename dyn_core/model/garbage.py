"""The collector of garbage, while much is made that stays: it is to look seldom."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from dyn_core.sharing import CommonSetting

SELDOM = 1_000_000  # new objects before the collector looks again


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Let the collector look seldom while many objects are made that stay.

    Else it goes through all objects of the process again and again, for a part of the
    time that grows with them. Its thresholds are those of all threads: they are put
    back at the end unless somebody else has set them meanwhile.
    """
    with _SELDOM:
        yield


def _raise_thresholds() -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Return the thresholds of before and those that are set now."""
    before = gc.get_threshold()
    raised = (max(before[0], SELDOM), *before[1:]) if before[0] else before
    gc.set_threshold(*raised)
    return before, raised


def _put_back(
    thresholds: tuple[tuple[int, int, int], tuple[int, int, int]],
) -> None:
    before, raised = thresholds
    if gc.get_threshold() == raised:
        gc.set_threshold(*before)


_SELDOM = CommonSetting(_raise_thresholds, _put_back)
