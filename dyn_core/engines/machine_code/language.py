"""The subset of Python that is compiled: its types, and how a function is marked.

Arguments
    int, float, bool; arrays Reals (n,), Reals2 (n, m), Reals3 (n, m, k) of float64 and
    Wholes (n,), Wholes2 (n, m) of int64, contiguous; and records: classes derived from
    typing.NamedTuple whose fields are of these types. Each argument has its annotation,
    and so has what is returned: nothing, a number, or a tuple of numbers.

Statements
    name = value; a, b = values; array[i] = x; array[i, j] = x; +=, -=, *= of each;
    if, while, for name in range(...), break, continue, return. A variable has one type.

Values
    + - * / of floats, + - * // % of whole numbers (// and % as in Python), comparisons
    (a < b < c, too), and, or, not, x if c else y, abs, min and max of two, int(x) of a
    float (towards zero), float(n), len(array), array.shape[k], array[i] of one row of
    several, array[i, j], record.field; math.sqrt, math.floor, math.copysign, math.inf;
    constants of the module, and calls of other such functions.

What is not there
    New arrays: what is needed for work is an argument. Exceptions: a status is
    returned. sin, cos and others, whose bits differ from library to library.
    Indices are not checked in machine code: they are by NumPy, in tests, as Python.
    No negative index.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, TypeVar

import numpy as np

Reals = Annotated[np.ndarray, float, 1]
Reals2 = Annotated[np.ndarray, float, 2]
Reals3 = Annotated[np.ndarray, float, 3]
Wholes = Annotated[np.ndarray, int, 1]
Wholes2 = Annotated[np.ndarray, int, 2]

F = TypeVar("F", bound=Callable[..., object])


def machine_code(function: F) -> F:
    """Mark a function of the subset; it runs as Python until it is compiled."""
    return function
