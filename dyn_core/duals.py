"""Numbers that carry one derivative: forward mode along a direction.

A text runs on Duals unchanged and gives its value and its derivative along a direction.
Joints use Jets inside, for rates by their own coordinates; those may be made of Duals,
so that a joint defined by Jets has a derivative, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from dyn_core.errors import UnsupportedError
from dyn_core.operations import OPERATIONS
from dyn_core.scalar import (
    Number,
    acos,
    asin,
    atan2,
    cos,
    exp,
    floor,
    log,
    sin,
    sqrt,
    tanh,
    where,
)
from dyn_core.spatial import (
    Force,
    Matrix,
    Motion,
    MotionSubspace,
    RigidInertia,
    Symmetric,
    Transform,
    Vector,
)


class Dual(Number):
    """A number x with its derivative d along a direction, each number-like.

        (x y)' = x' y + x y'

    Source: KIM-4.1 (basic derivatives).
    """

    __slots__ = ("d", "x")
    rank = 1  # above traced numbers, below Jets

    def __init__(self, x: Any, d: Any = 0.0) -> None:
        self.x, self.d = x, d

    def apply(self, op: str, *operands: Any) -> Any:
        """Compute the operation and its derivative."""
        if op in _RULES:
            return _RULES[op](*(_lift(o) for o in operands))
        if op == "where":
            condition, a, b = operands
            a, b = _lift(a), _lift(b)
            return Dual(where(condition, a.x, b.x), where(condition, a.d, b.d))
        if op == "floor":
            return floor(operands[0].x)
        if op in OPERATIONS and OPERATIONS[op].boolean:
            return _compare(op, *(value_of(o) for o in operands))
        raise UnsupportedError(f"'{op}' has no derivative; use another function")

    def __repr__(self) -> str:
        return f"Dual({self.x}, {self.d})"


def dual(x: Any, d: Any) -> Any:
    """Give the number with its derivative; a constant stays as it is."""
    return x if isinstance(d, (int, float)) and d == 0 else Dual(x, d)


def duals(x: Iterable[Any], d: Iterable[Any]) -> Vector:
    """Give numbers with their derivatives, entry by entry."""
    return Vector(dual(a, b) for a, b in zip(x, d, strict=True))


def value_of(thing: Any) -> Any:
    """Give a number or spatial value without its derivative."""
    return _each(lambda x: x.x if isinstance(x, Dual) else x, thing)


def slope_of(thing: Any) -> Any:
    """Give the derivative of a number or spatial value, as a value of its kind.

    That of an inertia has the ten numbers' derivatives. A Transform has none of its
    kind: see variation_of.
    """
    return _each(lambda x: x.d if isinstance(x, Dual) else 0.0, thing)


def variation_of(X: Transform) -> Motion:
    """Give vee(T^-1 dT) of the pose T that X belongs to, in the frame X goes to.

        dX = -(h x) X

    Source: KIM-4.1.
    """
    E, dE, dr = value_of(X.E), slope_of(X.E), slope_of(X.r)
    W = E @ dE.T
    pairs = ((2, 1), (0, 2), (1, 0))
    return Motion([(W[i, j] - W[j, i]) * 0.5 for i, j in pairs], E @ dr)


def moves(thing: Any) -> bool:
    """Say whether some entry of a spatial value carries a derivative."""
    found: list[Any] = []

    def note(x: Any) -> Any:
        found.append(isinstance(x, Dual))
        return x

    _each(note, thing)
    return any(found)


def _each(function: Callable[[Any], Any], thing: Any) -> Any:
    """Apply a function to each number of a spatial value."""
    if isinstance(thing, (Motion, Force)):
        return type(thing).of(map(function, thing))
    if isinstance(thing, Vector):
        return Vector(map(function, thing))
    if isinstance(thing, Matrix):
        return Matrix(map(function, row) for row in thing.rows)
    if isinstance(thing, MotionSubspace):
        return MotionSubspace(_each(function, column) for column in thing)
    if isinstance(thing, Symmetric):
        return Symmetric(map(function, thing.entries))
    if isinstance(thing, RigidInertia):
        parts = (_each(function, part) for part in (thing.m, thing.h, thing.I))
        return RigidInertia(*parts)
    if isinstance(thing, Transform):
        return Transform(_each(function, thing.E), _each(function, thing.r))
    return function(thing)


def _lift(x: Any) -> Dual:
    return x if isinstance(x, Dual) else Dual(x)


def _compare(op: str, *values: Any) -> Any:
    """Compare without derivatives; the number of the highest rank decides."""
    numbers = [x for x in values if isinstance(x, Number)]
    if not numbers:
        return OPERATIONS[op].on_float(*values)
    return max(numbers, key=lambda x: x.rank).apply(op, *values)


def _div(a: Dual, b: Dual) -> Any:
    ratio = a.x / b.x
    return dual(ratio, (a.d - ratio * b.d) / b.x)


def _atan2(y: Dual, x: Dual) -> Any:
    n = x.x * x.x + y.x * y.x
    return dual(atan2(y.x, x.x), (x.x * y.d - y.x * x.d) / n)


def _sqrt(u: Dual) -> Any:
    root = sqrt(u.x)
    return dual(root, u.d * 0.5 / root)


def _tanh(u: Dual) -> Any:
    t = tanh(u.x)
    return dual(t, (1.0 - t * t) * u.d)


def _exp(u: Dual) -> Any:
    e = exp(u.x)
    return dual(e, e * u.d)


def _abs(u: Dual) -> Any:
    under = u.x < 0.0
    return dual(where(under, -u.x, u.x), where(under, -u.d, u.d))


_RULES: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: dual(a.x + b.x, a.d + b.d),
    "sub": lambda a, b: dual(a.x - b.x, a.d - b.d),
    "neg": lambda a: dual(-a.x, -a.d),
    "mul": lambda a, b: dual(a.x * b.x, a.d * b.x + a.x * b.d),
    "div": _div,
    "sqrt": _sqrt,
    "sin": lambda u: dual(sin(u.x), cos(u.x) * u.d),
    "cos": lambda u: dual(cos(u.x), -(sin(u.x) * u.d)),
    "asin": lambda u: dual(asin(u.x), u.d / sqrt(1.0 - u.x * u.x)),
    "acos": lambda u: dual(acos(u.x), -(u.d / sqrt(1.0 - u.x * u.x))),
    "exp": _exp,
    "log": lambda u: dual(log(u.x), u.d / u.x),
    "tanh": _tanh,
    "atan2": _atan2,
    "abs": _abs,
}
