"""Numbers with derivatives by one variable: forward-mode differentiation.

An algorithm or a user's function runs on Taylor numbers unchanged and returns
derivatives with its values: along a direction, by a joint coordinate, or by time. The
components of a Taylor number may be Taylor numbers of another variable; the one with
the lower rank is the component.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dyn_core.errors import UnsupportedError
from dyn_core.numbers.operations import OPERATIONS
from dyn_core.numbers.product import ProductShape
from dyn_core.numbers.scalar import (
    Number,
    acos,
    asin,
    atan2,
    cos,
    exp,
    flat_product,
    floor,
    log,
    loop,
    sin,
    sqrt,
    tanh,
    where,
)

# Ranks of variables: components of a Taylor number have lower ranks than the number.
DIRECTION = 1  # step size along a direction of states and Models
COORDINATE = 2  # one joint coordinate
TIME = 3  # time, with moving coordinates


class Taylor(Number):
    """A number x with its derivatives d1 and d2 by one variable, each number-like.

        (x y)' = x' y + x y',   (x y)'' = x'' y + 2 x' y' + x y''

    Attributes:
        x, d1, d2: Value, first and second derivative; d2 is None where only the first
            derivative is computed.
        rank: Rank of the variable, at least 1; traced numbers have rank 0.

    Source: KIM-4.1 (basic derivatives), RBD5-3.4 (rates of a driven joint).
    """

    __slots__ = ("d1", "d2", "rank", "x")

    def __init__(
        self, x: Any, d1: Any = 0.0, d2: Any = None, rank: int = DIRECTION
    ) -> None:
        self.x, self.d1, self.d2, self.rank = x, d1, d2, rank

    def apply(self, op: str, *operands: Any) -> Any:
        """Return the result of an operation with its derivatives.

        The result is a Taylor number, or its value if all derivatives are constants 0.
        Comparisons and floor return values without derivatives; "loop" returns the
        final state, a tuple.

        Args:
            op: Name in OPERATIONS, or "loop".
            operands: Operands in order, of which this number is one; constants have
                derivatives 0. Of "loop" four: the state, a sequence of numbers, its
                functions body and cond, and the maximum number of rounds.

        Raises:
            UnsupportedError: The operation has no derivative rule.
            ZeroDivisionError: Values are floats, and a divisor, also in a derivative
                rule (of sqrt at 0), is zero.
        """
        rank = self.rank
        if op == "loop":
            state, body, cond, rounds = operands
            return _loop(rank, state, body, cond, rounds, self.d2 is not None)
        if op in OPERATIONS and OPERATIONS[op].boolean:
            return computed(op, *(derivatives(o, rank)[0] for o in operands))
        if op == "floor":
            return floor(self.x)
        if op == "where":
            condition, a, b = operands
            parts = _where(condition, *_lifted((a, b), rank))
        elif op in _FUNCTIONS:
            parts = _chain(self, *_FUNCTIONS[op])
        elif op in _RULES:
            parts = _RULES[op](*_lifted(operands, rank))
        else:
            raise UnsupportedError(f"'{op}' has no derivative; use another function")
        return taylor(*parts, rank=rank)

    def product(
        self, a: Sequence[Any], b: Sequence[Any], c: Sequence[Any], shape: ProductShape
    ) -> list[Any]:
        """Return the entries of a matrix product with derivatives.

            (A B + C)' = A' B + A B' + C',   (A B)'' = A'' B + 2 A' B' + A B''

        Each term is a product of matrices, see flat_product; shape.negative changes the
        sign of all terms but C. An entry with derivatives that are constants 0 is its
        value. a, b and c are the entries, row by row; c is empty without a C.
        """
        rank, numbers = self.rank, [*a, *b, *c]
        second = any(
            isinstance(x, Taylor) and x.rank == rank and x.d2 is not None
            for x in numbers
        )
        A, B, C = ([derivatives(x, rank) for x in m] for m in (a, b, c))

        # onto + times * (i-th derivative of A) (j-th derivative of B); zero factors are
        # skipped.
        def added(onto: list[Any], i: int, j: int, times: float = 1.0) -> list[Any]:
            left, right = [times * x[i] for x in A], [x[j] for x in B]
            if all(map(_is_zero, left)) or all(map(_is_zero, right)):
                return onto
            if all(map(_is_zero, onto)):
                return flat_product(left, right, (), shape._replace(onto=False))
            return flat_product(left, right, onto, shape._replace(onto=True))

        C = C or [(0.0, 0.0, 0.0)] * (shape.rows * shape.columns)
        x, d1, d2 = map(list, zip(*C, strict=True))
        x, d1 = added(x, 0, 0), added(added(d1, 1, 0), 0, 1)
        if not second:
            d2 = [None] * len(x)
        else:
            d2 = added(added(added(d2, 2, 0), 1, 1, 2.0), 0, 2)
        return [taylor(*parts, rank=rank) for parts in zip(x, d1, d2, strict=True)]

    def __repr__(self) -> str:
        parts = (self.x, self.d1) if self.d2 is None else (self.x, self.d1, self.d2)
        return f"Taylor({', '.join(map(str, parts))})"


def taylor(x: Any, d1: Any, d2: Any = None, rank: int = DIRECTION) -> Any:
    """Return Taylor(x, d1, d2, rank); x if d1 and d2 (None is 0) are constants 0."""
    return (
        x if _is_zero(d1) and (d2 is None or _is_zero(d2)) else Taylor(x, d1, d2, rank)
    )


def variables(x: Iterable[Any], k: int, rank: int = COORDINATE) -> list[Any]:
    """Return the numbers x as a list, in which the k-th is the variable.

    It is a Taylor number with first derivative 1.0; second derivatives are not
    computed. The other numbers are unchanged.

    Args:
        x: Values.
        k: Index of the variable, from 0; out of range: no number is changed.
        rank: Rank of the variable.
    """
    return [Taylor(y, 1.0, None, rank) if j == k else y for j, y in enumerate(x)]


def derivatives(x: Any, rank: int = DIRECTION) -> tuple[Any, Any, Any]:
    """Return (value, first, second derivative) of x by the variable of a rank.

    The derivatives of a constant are 0.0; so is the second where it is not computed.
    Taylor numbers of other ranks count as constants.

    Args:
        x: Any number.
        rank: Rank of the variable.
    """
    if not isinstance(x, Taylor) or x.rank != rank:
        return x, 0.0, 0.0
    return x.x, x.d1, 0.0 if x.d2 is None else x.d2


def _is_zero(d: Any) -> bool:
    return isinstance(d, (int, float)) and d == 0


def _lifted(operands: tuple[Any, ...], rank: int) -> list[Taylor]:
    """Return all operands as Taylor numbers of the variable of this rank.

    Others become constants; their second derivative is 0.0 where one of this rank has
    one, else None.
    """
    mine = [isinstance(o, Taylor) and o.rank == rank for o in operands]
    pairs = list(zip(operands, mine, strict=True))
    order_two = any(is_mine and o.d2 is not None for o, is_mine in pairs)
    constant = 0.0 if order_two else None
    return [o if is_mine else Taylor(o, 0.0, constant, rank) for o, is_mine in pairs]


class _SecondOrder(Exception):
    """A loop's body returned second derivatives, which the state does not contain."""


def _loop(
    rank: int,
    state: Sequence[Any],
    body: Callable[[tuple[Any, ...]], Sequence[Any]],
    cond: Callable[[tuple[Any, ...]], Any],
    rounds: int,
    second: bool = False,
) -> tuple[Any, ...]:
    """Return the final state of a loop, run on values and derivatives.

    An entry whose derivatives are constants 0 is its value, not a Taylor number.
    Columns raise TypeError. If the state has no `second` derivatives, and the body
    returns some, the loop is run again with them.
    """
    order = 2 + second

    def flat(numbers: Sequence[Any]) -> tuple[Any, ...]:
        lifted = _lifted(tuple(numbers), rank)
        if any(x.d2 is not None for x in lifted) and not second:
            raise _SecondOrder
        return tuple(
            0.0 if part is None else part
            for x in lifted
            for part in (x.x, x.d1, x.d2)[:order]
        )

    def whole(parts: Sequence[Any]) -> tuple[Any, ...]:
        starts = range(0, len(parts), order)
        each = [[*parts[k : k + order], None][:3] for k in starts]
        return tuple(taylor(x, d1, d2, rank) for x, d1, d2 in each)

    try:
        ended = loop(
            flat(state),
            lambda x: flat(body(whole(x))),
            lambda x: cond(whole(x)),
            rounds,
        )
    except _SecondOrder:
        return _loop(rank, state, body, cond, rounds, True)
    return whole(ended)


def computed(op: str, *values: Any) -> Any:
    """Return an operation's result; the operand of the highest rank computes it.

    Without a Number among the operands it is computed on floats: 1/0 is inf.
    """
    numbers = [x for x in values if isinstance(x, Number)]
    if not numbers:
        return OPERATIONS[op].on_float(*values)
    return max(numbers, key=lambda x: x.rank).apply(op, *values)


Parts = tuple[Any, Any, Any]


def _each(function: Callable[..., Any], *numbers: Taylor) -> Parts:
    """Return value, first and second derivative of a linear function of numbers.

    It is applied to the values, then to the derivatives of each order. All numbers have
    second derivatives, or none has; then the result has none.
    """
    d2 = None
    if numbers[0].d2 is not None:
        d2 = function(*(a.d2 for a in numbers))
    return function(*(a.x for a in numbers)), function(*(a.d1 for a in numbers)), d2


def _where(condition: Any, a: Taylor, b: Taylor) -> Parts:
    return _each(lambda x, y: where(condition, x, y), a, b)


def _abs(u: Taylor) -> Parts:
    below = u.x < 0.0
    return _each(lambda x: where(below, -x, x), u)


def _mul(a: Taylor, b: Taylor) -> Parts:
    d1, d2 = a.d1 * b.x + a.x * b.d1, None
    if a.d2 is not None:
        d2 = a.d2 * b.x + (a.d1 * b.d1) * 2.0 + a.x * b.d2
    return a.x * b.x, d1, d2


def _div(a: Taylor, b: Taylor) -> Parts:
    """Return the quotient y = a / b and its derivatives, which follow from y b = a."""
    y = a.x / b.x
    if a.d2 is None:
        return y, (a.d1 - y * b.d1) / b.x, None
    inverse = 1.0 / b.x
    minus_d1 = (y * b.d1 - a.d1) * inverse
    d2 = (a.d2 + (minus_d1 * b.d1) * 2.0 - y * b.d2) * inverse
    return y, -minus_d1, d2


def _atan2(y: Taylor, x: Taylor) -> Parts:
    """Return the angle atan2(y, x) and its derivatives.

    The first derivative is (x y' - y x') / (x² + y²).
    """
    n = x.x * x.x + y.x * y.x
    d1, d2 = (x.x * y.d1 - y.x * x.d1) / n, None
    if x.d2 is not None:
        n1 = (x.x * x.d1 + y.x * y.d1) * 2.0
        d2 = (x.x * y.d2 - y.x * x.d2 - d1 * n1) / n
    return atan2(y.x, x.x), d1, d2


def _chain(
    u: Taylor,
    function: Callable[[Any], Any],
    slope: Callable[[Any, Any, Any], Any],
    curvature: Callable[[Any, Any], Any],
) -> Parts:
    """Return y = f(u), y' = f' u', y'' = f'' u'² + f' u'', None without u''.

    slope(x, y, d) is f'(x) d, and curvature(x, y) is f''(x).
    """
    y = function(u.x)
    d1, d2 = slope(u.x, y, u.d1), None
    if u.d2 is not None:
        d2 = curvature(u.x, y) * (u.d1 * u.d1) + slope(u.x, y, u.d2)
    return y, d1, d2


_RULES: dict[str, Callable[..., Parts]] = {
    "add": lambda a, b: _each(lambda x, y: x + y, a, b),
    "sub": lambda a, b: _each(lambda x, y: x - y, a, b),
    "neg": lambda a: _each(lambda x: -x, a),
    "abs": _abs,
    "mul": _mul,
    "div": _div,
    "atan2": _atan2,
}
# By operation: f(x); slope(x, y, d) = f'(x) d; curvature(x, y) = f''(x); see _chain.
_FUNCTIONS: dict[str, tuple[Callable[..., Any], ...]] = {
    "sqrt": (
        sqrt,
        lambda x, y, d: (0.5 / y) * d,
        lambda x, y: -0.25 / (y * x),
    ),
    "sin": (sin, lambda x, y, d: cos(x) * d, lambda x, y: -y),
    "cos": (cos, lambda x, y, d: -sin(x) * d, lambda x, y: -y),
    "asin": (
        asin,
        lambda x, y, d: d / sqrt(1.0 - x * x),
        lambda x, y: x / (sqrt(1.0 - x * x) * (1.0 - x * x)),
    ),
    "acos": (
        acos,
        lambda x, y, d: -(d / sqrt(1.0 - x * x)),
        lambda x, y: -x / (sqrt(1.0 - x * x) * (1.0 - x * x)),
    ),
    "exp": (exp, lambda x, y, d: y * d, lambda x, y: y),
    "log": (log, lambda x, y, d: d / x, lambda x, y: -1.0 / (x * x)),
    "tanh": (
        tanh,
        lambda x, y, d: (1.0 - y * y) * d,
        lambda x, y: (1.0 - y * y) * y * -2.0,
    ),
}
