"""Timing: medians of repeats of about 4 ms each."""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

REPEATS, SPAN = 21, 4e-3  # repeats, and duration of each [s]
LOOP = "for {names}, in states: {statement}"


def per_call(
    statement: str,
    states: Sequence[tuple[Any, ...]],
    names: str,
    space: Mapping[str, Any],
    clock: Callable[[], float] = time.process_time,
) -> float:
    """Return the median wall or CPU time of one execution of a statement [s].

    It includes the loop over the states, divided by their number.

    Args:
        statement: Python statement in terms of `names` and `space`.
        states: Tuples of values of the names, at least one, used in turn, so that
            caching the last one is no advantage.
        names: Names, separated by commas.
        space: Other names of the statement, with their values.
        clock: Function that returns a time [s]: process_time for CPU time, which adds
            all threads; time.perf_counter for wall time.
    """
    code = LOOP.format(names=names, statement=statement)
    timer = timeit.Timer(code, globals={**space, "states": states}, timer=clock)
    once = max(timer.timeit(1), timer.timeit(1), 1e-7)  # a divisor
    number = max(1, int(SPAN / once))
    seconds = median(timer.repeat(REPEATS, number)) / number
    return seconds / len(states)


def once(function: Callable[[], Any]) -> float:
    """Call a function and return the wall time of the call [s], not its result."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start
