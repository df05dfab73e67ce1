"""Velocity and acceleration of a pose that moves in time, for drives and user joints.

A user's function returns (R, p): R three rows or None for no rotation, p three numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from dyn_core.errors import ModelError
from dyn_core.numbers.scalar import Scalar
from dyn_core.numbers.taylor import TIME, derivatives
from dyn_core.spatial import Matrix, Motion, Transform, Vector

Rows = Sequence[Sequence[Scalar]]
RotationPosition = tuple[Matrix | Rows | None, Sequence[Scalar] | Vector]
Drive = Callable[[Scalar], RotationPosition]  # of the time [s]
_IDENTITY = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


class MovingPose(NamedTuple):
    """Rotation and position, each with its first and second time derivative.

    Attributes:
        R: Rotation (3, 3) of the pose, dR/dt and d²R/dt².
        p: Position (3,) of the pose [m], dp/dt and d²p/dt².
    """

    R: tuple[Matrix, Matrix, Matrix]
    p: tuple[Vector, Vector, Vector]

    @property
    def X(self) -> Transform:
        """The transform from the frame in which R and p are given to the pose."""
        return Transform(self.R[0].T, self.p[0])

    @property
    def velocity(self) -> Motion:
        """The body velocity vee(T^-1 dT/dt), in the axes of the pose.

        Source: KIM-1.4.
        """
        E = self.R[0].T
        return Motion(_vee(E @ self.R[1]), E @ self.p[1])

    @property
    def acceleration(self) -> Motion:
        """The time derivative of the components of `velocity`."""
        E, Ed = self.R[0].T, self.R[1].T
        return Motion(_vee(E @ self.R[2]), Ed @ self.p[1] + E @ self.p[2])


def moving_pose(pose: RotationPosition, source: str) -> MovingPose:
    """Return a pose of Taylor numbers with its first and second time derivatives.

    `pose` is the result (R, p) of a user's function, R None for no rotation; other
    sizes are refused. Plain numbers have zero derivatives. Whether R is a rotation is
    not checked.
    """
    try:
        R, p = pose
        rows = [list(row) for row in _rows(R)]
        position = list(p)
        good = len(position) == 3 and [len(row) for row in rows] == [3, 3, 3]
    except (TypeError, ValueError):
        good = False
    if not good:
        raise ModelError(
            f"{source} gave {pose!r}; it must give (R, p): three rows of three"
            " numbers or None, and three numbers"
        )
    turned = [[derivatives(x, TIME) for x in row] for row in rows]
    moved = [derivatives(x, TIME) for x in position]
    R0, R1, R2 = (Matrix([x[k] for x in row] for row in turned) for k in range(3))
    p0, p1, p2 = (Vector(x[k] for x in moved) for k in range(3))
    return MovingPose((R0, R1, R2), (p0, p1, p2))


def _rows(R: Matrix | Rows | None) -> Rows:
    """Return the rows of a rotation; None is the identity."""
    if R is None:
        return _IDENTITY
    return R.rows if isinstance(R, Matrix) else R


def _vee(W: Matrix) -> Vector:
    """Return the vector w of the antisymmetric part [w] = (W - W.T) / 2 of a matrix."""
    pairs = ((2, 1), (0, 2), (1, 0))
    return Vector((W[i, j] - W[j, i]) * 0.5 for i, j in pairs)
