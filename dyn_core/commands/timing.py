"""Timing: medians of repeats of about 4 ms each."""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

REPEATS, SPAN = 21, 4e-3
LOOP = "for {names}, in states: {statement}"


def per_call(
    statement: str,
    states: Sequence[tuple[Any, ...]],
    names: str,
    space: Mapping[str, Any],
    clock: Callable[[], float] = time.process_time,
) -> float:
    """Return the seconds of a statement, the loop over the states included.

    Args:
        statement: Python, in terms of names and space.
        states: What the names stand for, one after the other: nobody gains by
            remembering the last state.
        names: Names, separated by commas.
        space: Other names of the statement.
        clock: CPU time for one thread; time.perf_counter for several.
    """
    code = LOOP.format(names=names, statement=statement)
    timer = timeit.Timer(code, globals={**space, "states": states}, timer=clock)
    once = max(timer.timeit(1), timer.timeit(1), 1e-7)
    number = max(1, int(SPAN / once))
    seconds = median(timer.repeat(REPEATS, number)) / number
    return seconds / len(states)


def once(function: Callable[[], Any]) -> float:
    """Return the seconds that a function takes, by the clock on the wall."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start
