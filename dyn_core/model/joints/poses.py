"""Velocity and acceleration of a pose that is made of Jets: for drives and user joints.

A pose is (R, p): R three rows or None for no rotation, p three numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from dyn_core.errors import ModelError
from dyn_core.jets import Jet, jet
from dyn_core.spatial import Matrix, Motion, Transform, Vector

Pose = tuple[Any, Any]
_ONE = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


class Place(NamedTuple):
    """Rotation and position with their first and second rates."""

    R: tuple[Matrix, Matrix, Matrix]
    p: tuple[Vector, Vector, Vector]

    @property
    def X(self) -> Transform:
        """Transform to the place."""
        return Transform(self.R[0].T, self.p[0])

    @property
    def velocity(self) -> Motion:
        """Give vee(T^-1 dT/dt). Source: KIM-1.4."""
        E = self.R[0].T
        return Motion(_vee(E @ self.R[1]), E @ self.p[1])

    @property
    def acceleration(self) -> Motion:
        """Give the rate of the velocity's components."""
        E, Ed = self.R[0].T, self.R[1].T
        return Motion(_vee(E @ self.R[2]), Ed @ self.p[1] + E @ self.p[2])


def place(given: Pose, whose: str) -> Place:
    """Read what a pose function gave for Jets; anything else is a ModelError."""
    try:
        R, p = given
        rows = [[jet(x) for x in row] for row in (_ONE if R is None else _rows(R))]
        position = [jet(x) for x in p]
        good = len(position) == 3 and [len(row) for row in rows] == [3, 3, 3]
    except TypeError:
        good = False
    if not good:
        raise ModelError(
            f"{whose} gave {given!r}; it must give (R, p): three rows of three"
            " numbers or None, and three numbers"
        )
    return Place(
        (
            Matrix([x.x for x in row] for row in rows),
            Matrix([x.d1 for x in row] for row in rows),
            Matrix([x.d2 for x in row] for row in rows),
        ),
        _parts(position),
    )


def _parts(numbers: Sequence[Jet]) -> tuple[Vector, Vector, Vector]:
    return (
        Vector(x.x for x in numbers),
        Vector(x.d1 for x in numbers),
        Vector(x.d2 for x in numbers),
    )


def _rows(R: Any) -> Any:
    """Give the rows of a Matrix, or of what is rows already."""
    return R.rows if isinstance(R, Matrix) else R


def _vee(W: Matrix) -> Vector:
    """Give the vector of the antisymmetric part of a 3x3 matrix."""
    pairs = ((2, 1), (0, 2), (1, 0))
    return Vector((W[i, j] - W[j, i]) * 0.5 for i, j in pairs)
