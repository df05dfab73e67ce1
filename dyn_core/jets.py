"""Numbers that carry their first and second derivative by one variable.

A text or a user's function runs on Jets unchanged and gives its rates with its values:
the drive of a joint as a function of time needs no derivatives from its user.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dyn_core.errors import UnsupportedError
from dyn_core.operations import OPERATIONS
from dyn_core.scalar import (
    Number,
    atan2,
    cos,
    exp,
    log,
    sin,
    sqrt,
    tanh,
    where,
)


class Jet(Number):
    """A number x with its rates x' and x'', each number-like.

        (x y)'' = x'' y + 2 x' y' + x y''

    Source: RBD5-3.4 (rates of a driven joint), by truncated Taylor series.
    """

    __slots__ = ("d1", "d2", "x")
    rank = 2  # above Duals, which a Jet may be made of

    def __init__(self, x: Any, d1: Any = 0.0, d2: Any = 0.0) -> None:
        self.x, self.d1, self.d2 = x, d1, d2

    def apply(self, op: str, *operands: Any) -> Any:
        """Compute the operation and its rates."""
        if op not in _RULES:
            if op in OPERATIONS and OPERATIONS[op].boolean:
                return _compare(op, *(jet(o).x for o in operands))
            raise UnsupportedError(f"'{op}' has no rates; use another function")
        if op == "where":
            condition, a, b = operands
            return _where(condition, jet(a), jet(b))
        return _RULES[op](*(jet(o) for o in operands))


def jet(x: Any) -> Jet:
    """Give a number as a Jet; one that is none is constant."""
    return x if isinstance(x, Jet) else Jet(x)


def variable(t: Any) -> Jet:
    """Give the variable itself: t' = 1, t'' = 0."""
    return Jet(t, 1.0, 0.0)


def _compare(op: str, *values: Any) -> Any:
    numbers = [v for v in values if isinstance(v, Number)]
    if not numbers:
        return OPERATIONS[op].on_float(*values)
    return max(numbers, key=lambda x: x.rank).apply(op, *values)


def _where(condition: Any, a: Jet, b: Jet) -> Jet:
    parts = zip((a.x, a.d1, a.d2), (b.x, b.d1, b.d2), strict=True)
    return Jet(*(where(condition, x, y) for x, y in parts))


def _chain(u: Jet, f: Any, f1: Any, f2: Any) -> Jet:
    """Give f(u) for f, f', f'' at u.x."""
    return Jet(f, f1 * u.d1, f2 * (u.d1 * u.d1) + f1 * u.d2)


def _mul(a: Jet, b: Jet) -> Jet:
    second = a.d2 * b.x + (a.d1 * b.d1) * 2.0 + a.x * b.d2
    return Jet(a.x * b.x, a.d1 * b.x + a.x * b.d1, second)


def _div(a: Jet, b: Jet) -> Jet:
    over = 1.0 / b.x
    return _mul(a, _chain(b, over, -(over * over), over * over * over * 2.0))


def _sqrt(u: Jet) -> Jet:
    root = sqrt(u.x)
    return _chain(u, root, 0.5 / root, -0.25 / (root * u.x))


def _tanh(u: Jet) -> Jet:
    t = tanh(u.x)
    slope = 1.0 - t * t
    return _chain(u, t, slope, t * slope * -2.0)


def _atan2(y: Jet, x: Jet) -> Jet:
    """Give the angle; its rate is (x y' - y x') / (x² + y²)."""
    n, n1 = x.x * x.x + y.x * y.x, (x.x * x.d1 + y.x * y.d1) * 2.0
    w, w1 = x.x * y.d1 - y.x * x.d1, x.x * y.d2 - y.x * x.d2
    rate = w / n
    return Jet(atan2(y.x, x.x), rate, (w1 - rate * n1) / n)


def _sin(u: Jet) -> Jet:
    s, c = sin(u.x), cos(u.x)
    return _chain(u, s, c, -s)


def _cos(u: Jet) -> Jet:
    s, c = sin(u.x), cos(u.x)
    return _chain(u, c, -s, -c)


def _exp(u: Jet) -> Jet:
    e = exp(u.x)
    return _chain(u, e, e, e)


def _abs(u: Jet) -> Jet:
    return _where(u.x < 0.0, Jet(-u.x, -u.d1, -u.d2), u)


_RULES: dict[str, Callable[..., Jet]] = {
    "add": lambda a, b: Jet(a.x + b.x, a.d1 + b.d1, a.d2 + b.d2),
    "sub": lambda a, b: Jet(a.x - b.x, a.d1 - b.d1, a.d2 - b.d2),
    "neg": lambda a: Jet(-a.x, -a.d1, -a.d2),
    "mul": _mul,
    "div": _div,
    "sqrt": _sqrt,
    "sin": _sin,
    "cos": _cos,
    "exp": _exp,
    "log": lambda u: _chain(u, log(u.x), 1.0 / u.x, -1.0 / (u.x * u.x)),
    "tanh": _tanh,
    "atan2": _atan2,
    "abs": _abs,
    "where": _where,
}
