"""Scalar functions for algorithms: floats, complex, counting and traced numbers alike.

An algorithm uses the operators ``+ - * /``, comparisons, and the names of this file. A
Python float is computed on the spot; anything else is a `Number`, whose class decides
what an operation means (record it, count it, follow a complex step).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from dyn_core.errors import RequireError, TraceError
from dyn_core.numbers.operations import OPERATIONS
from dyn_core.numbers.product import ProductShape, unrolled_product

Scalar = Any  # a float, a complex or a Number: what an algorithm computes with


class Number:
    """A number-like value: every operator becomes one call of `apply`.

    Class attributes:
        rank: Among operands of several classes the highest rank applies: a number made
            of others stands above them.
    """

    __slots__ = ()
    rank = 0

    def apply(self, op: str, *operands: Any) -> Any:
        """Return the result of operation `op` on `operands` (numbers or floats)."""
        raise NotImplementedError

    def truth(self) -> NoReturn | bool:
        """Decide a condition; numbers that cannot raise TraceError."""
        raise NotImplementedError

    def product(
        self, a: Sequence[Any], b: Sequence[Any], c: Sequence[Any], shape: ProductShape
    ) -> list[Any]:
        """Return the entries of a product of matrices; see flat_product."""
        return unrolled_product(a, b, c, shape)

    # fmt: off
    def __add__(self, other: Any) -> Any: return _apply("add", self, other)
    def __radd__(self, other: Any) -> Any: return self.apply("add", other, self)
    def __sub__(self, other: Any) -> Any: return _apply("sub", self, other)
    def __rsub__(self, other: Any) -> Any: return self.apply("sub", other, self)
    def __mul__(self, other: Any) -> Any: return _apply("mul", self, other)
    def __rmul__(self, other: Any) -> Any: return self.apply("mul", other, self)
    def __truediv__(self, other: Any) -> Any: return _apply("div", self, other)
    def __rtruediv__(self, other: Any) -> Any: return self.apply("div", other, self)
    def __neg__(self) -> Any: return self.apply("neg", self)
    def __pos__(self) -> Any: return self
    def __abs__(self) -> Any: return self.apply("abs", self)
    def __lt__(self, other: Any) -> Any: return _apply("lt", self, other)
    def __le__(self, other: Any) -> Any: return _apply("le", self, other)
    def __gt__(self, other: Any) -> Any: return _apply("lt", other, self)
    def __ge__(self, other: Any) -> Any: return _apply("le", other, self)
    def __bool__(self) -> bool: return self.truth()
    # fmt: on

    def refuse(self, *_: Any) -> NoReturn:
        """Refuse to become a Python number, or an argument of math or NumPy.

        Raises:
            TraceError: Says what to use.
        """
        raise TraceError(
            "a number that is followed or recorded cannot become a Python number; use"
            " the functions of dyn_core.authoring (sin, cos, sqrt, ...), not math or"
            " numpy"
        )

    __float__ = __int__ = __index__ = __complex__ = __round__ = __floor__ = refuse

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: Any, **options: Any
    ) -> Any:
        """Compute the operators with NumPy's numbers and arrays; refuse functions."""
        compute = _OPERATORS.get(ufunc.__name__)
        if method != "__call__" or options or compute is None:
            self.refuse()
        return np.frompyfunc(compute, len(inputs), 1)(*map(_objects, inputs))

    def __pow__(self, power: int) -> Any:
        """Multiply out a small whole power; x ** 0 is 1."""
        if not isinstance(power, int) or not 0 <= power <= 8:
            raise TypeError(
                f"power {power!r}: valid: whole powers 0..8; others are"
                " exp(power * log(x)), sqrt(x), 1 / x ** n"
            )
        if power == 0:
            return 1.0
        result = self
        for _ in range(power - 1):
            result = result * self
        return result


_OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul,
    "divide": operator.truediv, "negative": operator.neg, "absolute": abs,
    "less": operator.lt, "less_equal": operator.le, "greater": operator.gt,
    "greater_equal": operator.ge, "equal": operator.eq, "not_equal": operator.ne,
}  # fmt: skip


def _objects(x: Any) -> np.ndarray:
    """Return an operand as an array of objects, NumPy's numbers as Python's."""
    if isinstance(x, np.ndarray) and x.ndim:
        return x.astype(object)
    entry = np.empty((), object)
    entry[()] = x.item() if isinstance(x, (np.generic, np.ndarray)) else x
    return entry


def _apply(op: str, a: Any, b: Any) -> Any:
    """Let the operand of the higher rank compute."""
    if not isinstance(a, Number):
        return b.apply(op, a, b)
    if type(b) is not float and isinstance(b, Number) and b.rank > a.rank:
        return b.apply(op, a, b)
    return a.apply(op, a, b)


def _unary(name: str, doc: str) -> Callable[[Any], Any]:
    """Make a function of one argument that dispatches on its kind."""
    meaning = OPERATIONS[name].on_float

    def function(x: Any) -> Any:
        if isinstance(x, Number):
            return x.apply(name, x)
        try:
            return meaning(x)
        except TypeError as error:
            raise TypeError(_one_number(name, x)) from error

    function.__name__, function.__qualname__, function.__doc__ = name, name, doc
    return function


def _one_number(name: str, x: Any) -> str:
    """Return why a function refuses what is no number."""
    kind = type(x).__name__
    entries = (
        f"; of each entry: {kind}(map({name}, x))" if hasattr(x, "entries") else ""
    )
    return f"{name} takes one number, got {kind}{entries}"


sin = _unary("sin", "Sine of x [rad].")
cos = _unary("cos", "Cosine of x [rad].")
asin = _unary("asin", "Arc sine of x [rad].")
acos = _unary("acos", "Arc cosine of x [rad].")
exp = _unary("exp", "Exponential of x.")
log = _unary("log", "Natural logarithm of x.")
tanh = _unary("tanh", "Hyperbolic tangent of x.")
sqrt = _unary("sqrt", "Square root of x; NaN below zero.")
floor = _unary("floor", "Largest whole number not above x.")
absolute = _unary("abs", "Magnitude of x.")


def atan2(y: Any, x: Any) -> Any:
    """Angle of the point (x, y) [rad]."""
    return _dispatch("atan2", y, x)


def minimum(a: Any, b: Any) -> Any:
    """Smaller of a and b."""
    return where(a < b, a, b)


def maximum(a: Any, b: Any) -> Any:
    """Larger of a and b."""
    return where(a < b, b, a)


def equal(a: Any, b: Any) -> Any:
    """Condition a == b (the operator itself compares identity of traced numbers)."""
    return _dispatch("eq", a, b)


def logical_and(a: Any, b: Any) -> Any:
    """Condition that holds where both do (Python's `and` cannot be traced)."""
    return _dispatch("and", a, b)


def logical_or(a: Any, b: Any) -> Any:
    """Condition that holds where either does."""
    return _dispatch("or", a, b)


def logical_not(a: Any) -> Any:
    """Condition that holds where a does not."""
    return _dispatch("not", a)


def where(condition: Any, a: Any, b: Any) -> Any:
    """Return a where the condition holds, else b; both are evaluated.

    `a` and `b` may be spatial values or vectors: the choice is made entry by entry.
    """
    if hasattr(a, "map_with"):
        return a.map_with(lambda x, y: where(condition, x, y), b)
    if isinstance(condition, Number):
        number = _number_of(condition, a, b)
        return number.apply("where", condition, a, b)  # type: ignore[union-attr]
    return a if condition else b


def require(
    condition: Any, error: type[RequireError], item: str, when: Any = True
) -> None:
    """Demand a condition: where it fails, the Program raises `error(item)`.

    Nothing is demanded where `when` does not hold. A comparison with NaN is false;
    write the condition so that NaN passes where NaN in shall mean NaN out.
    """
    if when is not True:
        condition = logical_or(condition, logical_not(when))
    if isinstance(condition, Number):
        condition.apply("require", condition, error, item)
    elif not condition:
        raise error(item)


def loop(
    state: Sequence[Any],
    body: Callable[[tuple[Any, ...]], Sequence[Any]],
    cond: Callable[[tuple[Any, ...]], Any],
    max: int,
) -> tuple[Any, ...]:
    """Repeat `state = body(state)` while `cond(state)`, at most `max` times.

    Args:
        state: Numbers carried from round to round.
        body: Gives the next state, of the same length.
        cond: Gives the condition to go on, looked at before each round.
        max: Bound on the number of rounds.

    Returns:
        The state at the end, a tuple. In a batch each row stops by itself.

    A condition that `body` requires fails as if the loop ran in Python. Turns from a
    state of floats alone are written out when an algorithm is traced.
    """
    state = tuple(state)
    for turn in range(max):
        number = _number_of(*state)
        if number is None:
            # A condition may still be traced, through numbers that it closes over.
            go_on = cond(state)
            number = _number_of(go_on)
        if number is not None:
            return number.apply("loop", state, body, cond, max - turn)
        if not go_on:
            break
        state = tuple(body(state))
    return state


def flat_product(
    a: Sequence[Any], b: Sequence[Any], c: Sequence[Any], shape: ProductShape
) -> list[Any]:
    """Return the entries of a product of matrices, row by row.

    Args:
        a, b, c: Entries of A, B and C, row by row, any numbers; c is empty where the
            product is not added to anything.
        shape: Sizes, of one or more each.
    """
    number = _number_of(*a, *b, *c)
    if number is None:
        return unrolled_product(a, b, c, shape)
    return number.product(a, b, c, shape)


def _number_of(*values: Any) -> Number | None:
    """Return the number of the highest rank, the first of several."""
    numbers = [x for x in values if isinstance(x, Number)]
    return max(numbers, key=lambda x: x.rank) if numbers else None


def _dispatch(op: str, *operands: Any) -> Any:
    number = _number_of(*operands)
    if number is None:
        return OPERATIONS[op].on_float(*operands)
    return number.apply(op, *operands)


class Column(Number):
    """One entry for each of many states: a NumPy array that computes at once.

    What is not a number follows IEEE arithmetic; np.errstate says whether NumPy warns.
    """

    __slots__ = ("values",)

    def __init__(self, values: Any) -> None:
        self.values = values

    def apply(self, op: str, *operands: Any) -> Column:
        """Compute the operation on whole columns."""
        if op not in OPERATIONS:
            raise TypeError(f"'{op}' is not offered on columns; trace the algorithm")
        arrays = (x.values if isinstance(x, Column) else x for x in operands)
        return Column(OPERATIONS[op].on_column(*arrays))

    def truth(self) -> NoReturn:
        """Refuse: the rows may differ."""
        raise TypeError("a condition on columns has no single truth; use where")
