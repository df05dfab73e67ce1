"""Rolling without slip of a ball or a disc on a plane: rows of loops.

The plane is xy of frame A. A ball has its centre at B's origin; a thin disc has its
centre there and its axis along z of frame B. The lowest point of a disc is

    c = r (n_z n - z) / s,   s = sqrt(1 - n_z^2),   n: the disc's axis in A

relative to its centre; for a ball c = -r z. The height p_z + c_z is zero, a position
row. The body does not slip at the contact point: along a direction e of the plane its
velocity there is zero,

    e . (v + w x c) = (c x e) . w + e . v = 0

a velocity row, which no position violates.

Source: KIM-3.0 (non-holonomic rows: A(q) without f); the disc by elementary geometry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from dyn_core.errors import SingularError
from dyn_core.numbers.scalar import Scalar, logical_not, require, sqrt
from dyn_core.spatial import Matrix, Vector, cross3

Rows = tuple[Callable[..., list[Scalar]], Callable[..., list[list[Scalar]]], int]
_FLAT = 1e-12  # s^2 below which a disc lies flat and has no lowest point
_X, _Y, _Z = (Vector(float(i == j) for j in range(3)) for i in range(3))


def _ball(radius: Scalar, item: str, R: Matrix) -> tuple[Vector, Vector, Vector]:
    """Return a ball's contact point from its centre [m], and the axes x and y of A.

    `item` and R are ignored: the arguments are those of `_disc`.
    """
    return _Z * -radius, _X, _Y


def _disc(radius: Scalar, item: str, R: Matrix) -> tuple[Vector, Vector, Vector]:
    """Return the contact point of a disc from its centre, and two axes of the plane.

    The axes are the rolling direction and the direction across, in A. SingularError
    (`item`) if the disc lies flat.
    """
    n = Vector(R[k, 2] for k in range(3))
    square = n[0] * n[0] + n[1] * n[1]
    require(logical_not(square <= _FLAT), SingularError, item)
    s = sqrt(square)
    c = (n * n[2] - _Z) * (radius / s)
    along, across = Vector((n[1], -n[0], 0.0)), Vector((n[0], n[1], 0.0))
    return c, along * (1.0 / s), across * (1.0 / s)


ROLLING = {"rolling_ball": _ball, "rolling_disc": _disc}


def _height(
    radius: Scalar, kind: str, names: Sequence[str], name: str, R: Matrix, p: Vector
) -> list[Scalar]:
    """Return the height of the lowest point above the plane [m], as a list.

    The list is empty if `names` has no z. `kind` is a key of ROLLING, R and p the pose
    of B in A, and `name` the loop's name for errors.
    """
    if "z" not in names:
        return []
    c, _, _ = ROLLING[kind](radius, _item(name), R)
    return [p[2] + c[2]]


def _directions(
    radius: Scalar, kind: str, names: Sequence[str], name: str, R: Matrix, p: Vector
) -> list[list[Scalar]]:
    """Return the velocity rows along x and y, only those in `names`.

    A row has six numbers: three for the angular, three for the linear velocity of B
    relative to A, in the axes of A.
    """
    c, x, y = ROLLING[kind](radius, _item(name), R)
    ways = [e for key, e in (("x", x), ("y", y)) if key in names]
    return [[*cross3(c, e), *e] for e in ways]


def _item(name: str) -> str:
    """Return the text of a SingularError for a disc that lies flat."""
    return f"loop {name}: the disc lies flat, no point of it is the lowest"


def rolling_rows(kind: str, radius: Scalar, names: Sequence[str], name: str) -> Rows:
    """Return residual function, velocity row function, and number of velocity rows.

    Args:
        kind: rolling_ball or rolling_disc.
        radius: Radius [m].
        names: Rows to constrain: z is the height, x and y are the velocities.
        name: Name of the loop, for errors.
    """
    rest = radius, kind, tuple(names), name
    count = sum(key in names for key in ("x", "y"))
    return partial(_height, *rest), partial(_directions, *rest), count
