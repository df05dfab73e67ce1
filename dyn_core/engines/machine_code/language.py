"""The subset of Python that is compiled: types, statements, and the decorator.

Arguments
    int, float, bool; arrays FloatArray (n,), FloatArray2 (n, m), FloatArray3 (n, m, k)
    of float64 and IntArray (n,), IntArray2 (n, m), IntArray3 (n, m, k) of int64,
    contiguous and writeable; and records: classes derived from typing.NamedTuple whose
    fields are of these types or records. Each argument is annotated, and so is the
    result: nothing, a number, or a tuple of numbers. No default values. An int is not
    passed or returned as a float: 0.0, not 0.

Statements
    name = value; a, b = values; array[i] = x; array[i, j] = x; +=, -=, *=, ... of each;
    if, while, for name in range(...), break, continue, return, pass, a call. A variable
    has one type, the type of its first value, and must have a value wherever it is
    read: a variable assigned only in a branch or a loop has none after it. A range has
    a constant step. A row of an array may have a name, row = array[i], which may be
    assigned another row later.

Values
    + - * / of floats, and of a float and an int, which is converted to a float;
    + - * // % of ints (// and % as in Python), comparisons (a < b < c, too), and, or,
    not, x if c else y of one type, abs, min and max of one type, int(x) of a float
    (towards zero) or bool, float(n), bool(x), len(array), array.shape, array[i] of one
    row of several, array[i, j], record.field; math.sqrt, fabs, floor, ceil, copysign,
    isnan, isfinite, inf, nan, pi; where, maximum, minimum of numbers.scalar; any_lane,
    decided_by and in_vectors of this module; numbers of the module, of other modules
    and of classes by module.NAME; calls of other such functions, and of Programs by
    run_kernel. A number is a valid condition in `if`, `while` and `not`: zero is false.

Not supported
    New arrays: work arrays are arguments. Slices, sums of rows, strings. Exceptions: a
    status is returned. Recursion. ** and functions whose bits differ from library to
    library: sin, cos, exp. Negative indices. Indices are not checked in machine code:
    NumPy checks them in tests, as Python, and so does
    `compiled(function, checked=True)`.

Differences between machine code and Python
    Python's ints have any size; ints of machine code and of NumPy have 64 bits. A
    division by zero and the root of a negative number give inf or nan, or 0 for // and
    %, as in NumPy, where Python's own numbers raise an error. int, floor and ceil of
    nan, inf and numbers beyond 64 bits give an arbitrary int. The sign of a nan is
    arbitrary. Arrays of floats and of ints may not share memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import numpy as np

FloatArray = Annotated[np.ndarray, float, 1]
FloatArray2 = Annotated[np.ndarray, float, 2]
FloatArray3 = Annotated[np.ndarray, float, 3]
IntArray = Annotated[np.ndarray, int, 1]
IntArray2 = Annotated[np.ndarray, int, 2]
IntArray3 = Annotated[np.ndarray, int, 3]

F = TypeVar("F", bound=Callable[..., Any])


def machine_code(function: F) -> F:
    """Mark a function as one that `compiled` can compile, and return the same function.

    A decorator: it sets the attribute `__machine_code__`. The function is not checked
    and runs as Python.
    """
    function.__machine_code__ = True  # type: ignore[attr-defined]
    return function


def any_lane(condition: bool) -> bool:
    """Return whether a condition holds in any lane that is alive; see lanes.py.

    In Python and without lanes it is the condition itself. No lane is dropped, and the
    result is the same in all of them. So use it only to skip work: computing without
    need in the other lanes must not change any later bit.
    """
    return condition


def decided_by(condition: bool, counts: bool) -> bool:
    """Return `condition`, decided only by the alive lanes in which `counts` holds.

    The result is the majority's value among these lanes (true in a tie); their minority
    is dropped. The lanes where `counts` is false follow that decision and are not
    dropped: their relevant results must not depend on the condition. In Python and
    without lanes, and where `counts` or `condition` is no comparison of floats, it is
    the condition, as without `decided_by`.
    """
    return condition


def in_vectors() -> bool:
    """Return whether floats are vectors, with lanes; see lanes.py. False in Python.

    It chooses among ways with the same bits, such as tiles of another size.
    """
    return False


def python_of(function: Any) -> Any:
    """Return the function of a CompiledFunction or marked wrapper; others unchanged."""
    return (
        getattr(function, "__wrapped__", function) if is_marked(function) else function
    )


def is_marked(function: object) -> bool:
    """Return whether an object is a function marked by `machine_code`, or compiled."""
    return getattr(function, "__machine_code__", False) is True
