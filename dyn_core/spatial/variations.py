"""Spatial values with their derivative along a direction.

A spatial value made of Taylor numbers has a value and a derivative of the same type. Of
the spatial types, only Vector, Matrix, Motion, Force, MotionSubspace, Symmetric,
RigidInertia and Transform are known here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from dyn_core.numbers.taylor import DIRECTION, Taylor, derivatives, taylor
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


def with_slopes(x: Iterable[Any], d: Iterable[Any]) -> Vector:
    """Return numbers x as Taylor numbers with the derivatives d along a direction.

    A number whose derivative is the constant 0 stays a plain number. Raises ValueError
    if the lengths of x and d differ.
    """
    return Vector(taylor(a, b) for a, b in zip(x, d, strict=True))


def value_of(thing: Any) -> Any:
    """Return a number or spatial value without its derivative, of the same type.

    A Motion or Force loses its frame label. Taylor numbers of other ranks than
    DIRECTION, and values of other types, such as lists, are returned unchanged.
    """
    return _each(lambda x: derivatives(x)[0], thing)


def slope_of(thing: Any) -> Any:
    """Return the derivative of a number or spatial value, as a value of the same type.

    The result has no frame label. The derivative of a constant number is 0.0, and so is
    the result for a Taylor number of another rank than DIRECTION and for values of
    other types, such as lists. For a RigidInertia it holds the derivatives of the ten
    parameters. Of a Transform it is a Transform made of the derivatives of E and r,
    which is no transform: use variation_of.
    """
    return _each(lambda x: derivatives(x)[1], thing)


def variation_of(X: Transform) -> Motion:
    """Return the variation vee(T^-1 dT) of a Transform's pose T, as a Motion h.

        dX = -(h x) X

    dT has the derivatives of the numbers of X along the direction, zero for constants.
    h is in the coordinates of the frame that X transforms to, without a frame label.

    Source: KIM-4.1.
    """
    E, dE, dr = value_of(X.E), slope_of(X.E), slope_of(X.r)
    W = E @ dE.T
    pairs = ((2, 1), (0, 2), (1, 0))
    return Motion([(W[i, j] - W[j, i]) * 0.5 for i, j in pairs], E @ dr)


def has_slope(thing: Any) -> bool:
    """Return whether any number of a number or spatial value is a Taylor number.

    Taylor numbers of other ranks than DIRECTION do not count, nor do those in a list or
    an ArticulatedInertia.
    """
    flags: list[bool] = []

    def note(x: Any) -> Any:
        """Append to `flags` whether x has a derivative along a direction; return x."""
        flags.append(isinstance(x, Taylor) and x.rank == DIRECTION)
        return x

    _each(note, thing)
    return any(flags)


def _each(function: Callable[[Any], Any], thing: Any) -> Any:
    """Return a number or spatial value with a function applied to each number.

    Motion and Force lose their frame labels; of a value of another type the function's
    result is returned.
    """
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
