"""The closed set of operations, each defined on floats, columns and complex numbers.

Floats follow IEEE arithmetic: where the math module would raise, the result is NaN or
infinity. Columns are NumPy arrays with one entry for each state.
"""

from __future__ import annotations

import cmath
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


def divide(a: float, b: float) -> float:
    """Return a / b; for b = 0 infinity with the sign of the quotient, or NaN."""
    try:
        return a / b
    except ZeroDivisionError:
        if a == 0 or a != a:
            return math.nan
        return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _quiet(function: Callable[[float], float]) -> Callable[[float], float]:
    """Return `function` with NaN where it raises ValueError; other errors pass."""

    def quiet(x: float) -> float:
        try:
            return function(x)
        except ValueError:
            return math.nan

    return quiet


def _log(x: float) -> float:
    if x > 0:
        return math.log(x)
    return -math.inf if x == 0 else math.nan


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _floor(x: float) -> float:
    return math.copysign(math.floor(x), x) if math.isfinite(x) else x


def _where(c: bool, a: float, b: float) -> float:
    return a if c else b


def _not(c: bool) -> bool:
    return not c


def _and(a: bool, b: bool) -> bool:
    return bool(a) and bool(b)


def _or(a: bool, b: bool) -> bool:
    return bool(a) or bool(b)


def _complex_abs(z: complex) -> complex:
    return -z if z.real < 0 else z


def _complex_atan2(y: complex, x: complex) -> complex:
    """Return the analytic continuation of atan2 from the real parts of y and x."""
    y, x = complex(y), complex(x)
    base = math.atan2(y.real, x.real)
    s, c = math.sin(base), math.cos(base)
    return base + cmath.atan((y * c - x * s) / (x * c + y * s))


@dataclass(frozen=True)
class Operation:
    """The definition of one operation.

    `on_complex` is analytic near the real axis, None if there is none. `boolean`: the
    result is a condition. `counts` is the category in operation counts (add, mul, div,
    sqrt, trig), None if it is not counted.
    """

    arity: int
    on_float: Callable[..., Any]
    on_column: Callable[..., Any]
    on_complex: Callable[..., Any] | None = None
    boolean: bool = False
    counts: str | None = None


def _real(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` of two operands, which are replaced by their real parts."""
    return lambda a, b: function(complex(a).real, complex(b).real)


_o = Operation
OPERATIONS: dict[str, Operation] = {
    # fmt: off
    "add": _o(2, operator.add, np.add, operator.add, counts="add"),
    "sub": _o(2, operator.sub, np.subtract, operator.sub, counts="add"),
    "mul": _o(2, operator.mul, np.multiply, operator.mul, counts="mul"),
    "div": _o(2, divide, np.divide, operator.truediv, counts="div"),
    "neg": _o(1, operator.neg, np.negative, operator.neg),
    "abs": _o(1, abs, np.abs, _complex_abs),
    "sqrt": _o(1, _quiet(math.sqrt), np.sqrt, cmath.sqrt, counts="sqrt"),
    "sin": _o(1, _quiet(math.sin), np.sin, cmath.sin, counts="trig"),
    "cos": _o(1, _quiet(math.cos), np.cos, cmath.cos, counts="trig"),
    "asin": _o(1, _quiet(math.asin), np.arcsin, cmath.asin, counts="trig"),
    "acos": _o(1, _quiet(math.acos), np.arccos, cmath.acos, counts="trig"),
    "atan2": _o(2, math.atan2, np.arctan2, _complex_atan2, counts="trig"),
    "exp": _o(1, _exp, np.exp, cmath.exp, counts="trig"),
    "log": _o(1, _log, np.log, cmath.log, counts="trig"),
    "tanh": _o(1, math.tanh, np.tanh, cmath.tanh, counts="trig"),
    "floor": _o(1, _floor, np.floor, lambda z: complex(math.floor(z.real))),
    "lt": _o(2, operator.lt, np.less, _real(operator.lt), boolean=True),
    "le": _o(2, operator.le, np.less_equal, _real(operator.le), boolean=True),
    "eq": _o(2, operator.eq, np.equal, operator.eq, boolean=True),
    "and": _o(2, _and, np.logical_and, _and, boolean=True),
    "or": _o(2, _or, np.logical_or, _or, boolean=True),
    "not": _o(1, _not, np.logical_not, _not, boolean=True),
    "where": _o(3, _where, np.where, _where),
    # fmt: on
}
