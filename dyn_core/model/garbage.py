"""Fewer runs of the garbage collector while many long-lived objects are created."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from dyn_core.sharing import CommonSetting

SELDOM = 1_000_000  # new objects before the collector runs again


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Raise the garbage collector's first threshold inside a `with` block.

    It becomes at least 1000000 new objects. Otherwise the collector scans all objects
    repeatedly while many long-lived ones are created. The thresholds apply to all
    threads; the last of nested or concurrent blocks restores them, unless they have
    been changed meanwhile.
    """
    with _SELDOM:
        yield


def _raise_thresholds() -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Raise the collector's first threshold to 1000000; return old and new thresholds.

    A higher first threshold stays, and so does 0, a disabled collector.
    """
    before = gc.get_threshold()
    raised = (max(before[0], SELDOM), *before[1:]) if before[0] else before
    gc.set_threshold(*raised)
    return before, raised


def _put_back(
    thresholds: tuple[tuple[int, int, int], tuple[int, int, int]],
) -> None:
    """Restore the first of (previous, raised) thresholds, unless changed meanwhile."""
    before, raised = thresholds
    if gc.get_threshold() == raised:
        gc.set_threshold(*before)


_SELDOM = CommonSetting(_raise_thresholds, _put_back)
