"""Scalar functions of algorithms: for floats, complex, counting and traced numbers.

An algorithm uses the operators ``+ - * /``, comparisons, and the names of this file.
Python floats are computed directly. Any other number is a `Number`, whose class defines
the operations (record, count, or propagate a derivative).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from dyn_core.errors import RequireError, TraceError
from dyn_core.numbers.operations import OPERATIONS
from dyn_core.numbers.product import ProductShape, unrolled_product

Scalar = Any  # a float, a complex or a Number, in annotations of algorithms


class Number:
    """Base of number-like values: every operator becomes one call of `apply`.

    Class attributes:
        rank: Of several operand classes, the one with the highest rank computes the
            operation. A number whose components are Numbers has a higher rank than
            they.
    """

    __slots__ = ()
    rank = 0

    def apply(self, op: str, *operands: Any) -> Any:
        """Return the result of operation `op` on `operands` (numbers or floats).

        Subclasses implement it; this class raises NotImplementedError.

        Args:
            op: Name in OPERATIONS, or "require", "loop", "product", "call"; classes
                raise for operations that they do not support.
            operands: Operands in order.
        """
        raise NotImplementedError

    def truth(self) -> NoReturn | bool:
        """Return the truth of a condition, for `bool` and `if`.

        This class raises NotImplementedError; traced numbers raise TraceError.
        """
        raise NotImplementedError

    def product(
        self, a: Sequence[Any], b: Sequence[Any], c: Sequence[Any], shape: ProductShape
    ) -> list[Any]:
        """Return the entries of a matrix product, row by row.

        Args:
            a, b, c: Entries of A, B and C, row by row; c is empty unless shape.onto.
            shape: Sizes, inner >= 1; sign of A B, and whether it is added to C.
        """
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
    __hash__ = object.__hash__  # of the object: what a number is may be unknown
    # fmt: on

    def __eq__(self, other: Any) -> Any:
        """Condition self == other, for numbers; other objects are not equal."""
        return _apply("eq", self, other) if isinstance(other, _NUMBERS) else False

    def __ne__(self, other: Any) -> Any:
        """Condition self != other, for numbers; other objects are not equal."""
        return logical_not(self == other)

    def refuse(self, *_: Any) -> NoReturn:
        """Raise TraceError: a Number cannot become a Python or NumPy number.

        Conversions such as float(x) call it, and so do functions of math and NumPy.
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
        """Return the result of an operator with NumPy numbers or arrays as operands.

        It is computed entry by entry: an array of objects, or one number if no operand
        has an axis.

        Raises:
            TraceError: `ufunc` is not an operator (np.sin), is called as a method other
                than `__call__`, or has keyword options.
        """
        compute = _OPERATORS.get(ufunc.__name__)
        if method != "__call__" or options or compute is None:
            self.refuse()
        return np.frompyfunc(compute, len(inputs), 1)(*map(_objects, inputs))

    def __pow__(self, power: int) -> Any:
        """Return the power by repeated multiplication; x ** 0 is 1.0.

        Raises:
            TypeError: `power` is not an int from 0 to 8.
        """
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
    """Return an array of objects, without axes for anything but an array with axes."""
    if isinstance(x, np.ndarray) and x.ndim:
        return x.astype(object)
    entry = np.empty((), object)
    entry[()] = x.item() if isinstance(x, (np.generic, np.ndarray)) else x
    return entry


_NUMBERS = (Number, int, float, complex, np.number, np.bool_)


def _apply(op: str, a: Any, b: Any) -> Any:
    """Return `op` of a and b, computed by the one of higher rank, else by a."""
    if not isinstance(a, Number):
        return b.apply(op, a, b)
    if type(b) is not float and isinstance(b, Number) and b.rank > a.rank:
        return b.apply(op, a, b)
    return a.apply(op, a, b)


def _unary(name: str, doc: str) -> Callable[[Any], Any]:
    """Return a function of one real number or Number for an operation of OPERATIONS."""
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
    """Return the message for an argument of `name` that is not a number."""
    kind = type(x).__name__
    entries = (
        f"; of each entry: {kind}(map({name}, x))" if hasattr(x, "entries") else ""
    )
    return f"{name} takes one number, got {kind}{entries}"


sin = _unary("sin", "Sine of x [rad].")
cos = _unary("cos", "Cosine of x [rad].")
asin = _unary("asin", "Arc sine of x [rad]; NaN beyond [-1, 1].")
acos = _unary("acos", "Arc cosine of x [rad]; NaN beyond [-1, 1].")
exp = _unary("exp", "Exponential of x; infinity where it overflows.")
log = _unary("log", "Natural logarithm of x; -infinity at zero, NaN below.")
tanh = _unary("tanh", "Hyperbolic tangent of x.")
sqrt = _unary("sqrt", "Square root of x; NaN below zero.")
floor = _unary("floor", "Largest whole number not above x.")
absolute = _unary("abs", "Magnitude of x.")


def atan2(y: Any, x: Any) -> Any:
    """Angle of the point (x, y) from the x axis, in [-pi, pi] [rad].

    Numbers y and x are floats or Numbers; at (0, 0) of floats the angle is 0 or ±pi.
    Complex floats are a TypeError.
    """
    return _dispatch("atan2", y, x)


def minimum(a: Any, b: Any) -> Any:
    """Smaller of two real numbers; b if they are equal or one is NaN.

    Complex numbers and vectors, which have no order, are a TypeError.
    """
    return where(a < b, a, b)


def maximum(a: Any, b: Any) -> Any:
    """Larger of two real numbers; a if they are equal or one is NaN.

    Complex numbers and vectors, which have no order, are a TypeError.
    """
    return where(a < b, b, a)


def equal(a: Any, b: Any) -> Any:
    """Condition a == b of two numbers: a bool, or a Number if one of them is one."""
    return _dispatch("eq", a, b)


def logical_and(a: Any, b: Any) -> Any:
    """Condition a and b; Python's `and` cannot be traced.

    a and b are bools or Numbers; the result is a bool, or a Number if one of them is.
    """
    return _dispatch("and", a, b)


def logical_or(a: Any, b: Any) -> Any:
    """Condition a or b; Python's `or` cannot be traced.

    a and b are bools or Numbers; the result is a bool, or a Number if one of them is.
    """
    return _dispatch("or", a, b)


def logical_not(a: Any) -> Any:
    """Condition not a; Python's `not` cannot be traced.

    The result is a bool, or a Number if the condition a is one.
    """
    return _dispatch("not", a)


def where(condition: Any, a: Any, b: Any) -> Any:
    """Return a where the condition holds, else b; both are computed before the call.

    Args:
        condition: Condition, a bool or a Number.
        a, b: Numbers; or spatial values, vectors or matrices of one type, selected
            entry by entry. For a Vector `a`, b may be one number for all entries. Other
            objects, such as lists and inertias, are selected whole by a plain condition
            and are a TraceError with a traced one.

    Raises:
        TypeError: a or b is a vector, matrix or spatial value, and the other one is of
            another type or size.
        FrameMismatchError: They are spatial values in different frames.
    """
    if hasattr(a, "map_with"):
        return a.map_with(lambda x, y: where(condition, x, y), b)
    if hasattr(b, "map_with"):
        kind = type(b).__name__
        raise TypeError(f"where: a number and a {kind}; valid: two of one type")
    if isinstance(condition, Number):
        number = _number_of(condition, a, b)
        return number.apply("where", condition, a, b)  # type: ignore[union-attr]
    return a if condition else b


def require(
    condition: Any, error: type[RequireError], item: str, when: Any = True
) -> None:
    """Require a condition: where it is false, the Program raises `error(item)`.

    A comparison with NaN is false. Where NaN inputs shall give NaN outputs, write the
    condition so that it is true for NaN.

    Args:
        condition: Condition, a bool or a Number.
        error: Class of the error.
        item: Joint, row or quantity that the message names.
        when: Condition, a bool or a Number; where it is false, nothing is required.

    Raises:
        RequireError: `error`, at once, where `condition` is a plain value that is
            false.
        TypeError: `condition` or `when` is a Column.
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

    A condition that `body` requires fails as if the loop ran in Python. As long as
    neither the state nor the result of `cond` contains a Number, rounds run in Python
    at once, also while an algorithm is traced.

    Args:
        state: Numbers carried from round to round.
        body: Returns the next state, of the same length.
        cond: Returns the condition to continue, evaluated before each round.
        max: Maximum number of rounds.

    Returns:
        The final state, a tuple. In a batch of a Program each row stops by its own
            condition.

    Raises:
        TypeError: The state or the condition has Columns.
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
    """Return the entries of A B, -A B, C + A B or C - A B, row by row.

    a, b, c are the entries, row by row; c is empty unless shape.onto. Their count is
    not checked. Sizes are at least 1.
    """
    number = _number_of(*a, *b, *c)
    if number is None:
        return unrolled_product(a, b, c, shape)
    return number.product(a, b, c, shape)


def _number_of(*values: Any) -> Number | None:
    """Return the first Number of the highest rank, or None if there is no Number."""
    numbers = [x for x in values if isinstance(x, Number)]
    return max(numbers, key=lambda x: x.rank) if numbers else None


def _dispatch(op: str, *operands: Any) -> Any:
    number = _number_of(*operands)
    if number is None:
        return OPERATIONS[op].on_float(*operands)
    return number.apply(op, *operands)


class Column(Number):
    """Values of one quantity for many states, an entry each, in an array (no copy).

    Invalid operations follow IEEE arithmetic; np.errstate decides whether NumPy warns.
    """

    __slots__ = ("values",)

    def __init__(self, values: Any) -> None:
        self.values = values

    def apply(self, op: str, *operands: Any) -> Column:
        """Return the Column of results of an operation, from Columns and numbers.

        TypeError: `op` is not in OPERATIONS, or an operand is a vector, matrix or
        spatial value.
        """
        if op not in OPERATIONS:
            raise TypeError(f"'{op}' is not offered on columns; trace the algorithm")
        for x in operands:
            if hasattr(x, "map_with"):
                kind = type(x).__name__
                raise TypeError(f"{op}: a number and a {kind}; valid: {kind} * number")
        arrays = (x.values if isinstance(x, Column) else x for x in operands)
        return Column(OPERATIONS[op].on_column(*arrays))

    def truth(self) -> NoReturn:
        """Raise TypeError: a condition may differ from row to row."""
        raise TypeError("a condition on columns has no single truth; use where")
