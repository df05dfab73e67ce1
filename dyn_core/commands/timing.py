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

    It includes the loop over the states, tuples of values of `names` (separated by
    commas), used in turn, so that caching the last one is no advantage. `clock` may be
    time.process_time, CPU time of all threads, or time.perf_counter.
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
