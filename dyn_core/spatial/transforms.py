"""Pluecker transforms: coordinates of a motion or force in another frame."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from dyn_core.spatial.inertia import (
    ArticulatedInertia,
    ForceSubspace,
    MotionSubspace,
    RigidInertia,
)
from dyn_core.spatial.symmetric import Symmetric
from dyn_core.spatial.vectors import Force, Matrix, Motion, Vector, cross3, skew
from dyn_core.spatial.velocity_product import VelocityProduct


class Transform:
    """Coordinate transform from frame A to frame B.

        X m = [E w; E (v - r x w)]        X* f = [E (n - r x f); E f]

    `X @ m` and `X @ f` transform from A to B, also subspaces column by column; `X.T @
    f` and `X.T @ I @ X` transform from B to A. `Y @ X`, for Y from B to C, is the
    Transform from A to C. Frame labels are neither checked nor set: results have none,
    except those of the identity, which returns its operand.

    Attributes:
        E: Rotation of coordinates, A to B, 3x3.
        r: Origin of B in A coordinates, 3 [m].

    Source: GUIDE (11), (12); RBDA (2.24), (2.25); SV-4.2, SV-4.3, SV-7.3; KIM-1.1,
    KIM-1.3, KIM-1.5.
    """

    __slots__ = ("E", "r")

    def __init__(self, E: Matrix, r: Vector) -> None:
        self.E, self.r = E, r

    @classmethod
    def identity(cls) -> Transform:
        """Return the identity transform, one shared object.

        `X @ m`, `X @ f`, `X @ Y` and `X.T @ f` with the identity X return the operand
        itself, and `X.T @ I @ X` returns I, without arithmetic; `Y @ X` computes a new
        Transform equal to Y.
        """
        return _IDENTITY

    @classmethod
    def of_pose(cls, R: Any, p: Iterable[Any]) -> Transform:
        """Return the transform from A to B from the pose of B in A: x_A = R x_B + p.

        R (3, 3), a Matrix or rows of numbers that become floats, and p (3) [m] are not
        checked.
        """
        rows = (
            R.rows if isinstance(R, Matrix) else [[float(x) for x in row] for row in R]
        )
        return cls(Matrix(rows).T, Vector(p))

    @property
    def pose(self) -> tuple[Matrix, Vector]:
        """Pose of B in A: rotation R (3, 3) and position p (3) [m]."""
        return self.E.T, self.r

    @property
    def T(self) -> Transposed:
        """Transpose: transforms forces, and inertias by X.T @ I @ X, from B to A.

        VelocityProducts are transformed like inertias.
        """
        return Transposed(self)

    @property
    def inverse(self) -> Transform:
        """The transform from B to A; of the identity it is the identity itself."""
        return self if self is _IDENTITY else Transform(self.E.T, -(self.E @ self.r))

    def __matmul__(self, other: Any) -> Any:
        E, r = self.E, self.r
        if self is _IDENTITY and isinstance(other, _MOVABLE):
            return other
        if isinstance(other, (MotionSubspace, ForceSubspace)):
            return type(other)(self @ column for column in other)
        if isinstance(other, Motion):
            return Motion(E @ other.ang, E @ (other.lin - cross3(r, other.ang)))
        if isinstance(other, Force):
            return Force(E @ (other.ang - cross3(r, other.lin)), E @ other.lin)
        if isinstance(other, Transform):
            return Transform(E @ other.E, other.r + other.E.T @ r)
        return NotImplemented

    def matrix(self) -> Matrix:
        """Return the 6x6 matrix that acts on motions [angular; linear], from A to B."""
        lower = -(self.E @ skew(self.r))
        top = [(*row, 0.0, 0.0, 0.0) for row in self.E.rows]
        pairs = zip(lower.rows, self.E.rows, strict=True)
        return Matrix([*top, *[(*low, *row) for low, row in pairs]])

    def force_matrix(self) -> Matrix:
        """Return the 6x6 matrix X* that acts on forces [moment; force], from A to B."""
        upper = -(self.E @ skew(self.r))
        pairs = zip(self.E.rows, upper.rows, strict=True)
        bottom = [(0.0, 0.0, 0.0, *row) for row in self.E.rows]
        return Matrix([*[(*row, *up) for row, up in pairs], *bottom])

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(self.matrix().rows, dtype=dtype)

    def __repr__(self) -> str:
        return f"Transform(E={self.E!r}, r={self.r!r})"


_IDENTITY = Transform(Matrix.identity(3), Vector.zeros(3))
_MOVABLE = (Motion, Force, MotionSubspace, ForceSubspace, Transform)


class Transposed:
    """Transpose X.T of a Transform X from A to B: it transforms from B to A.

    `X.T @ f` transforms a Force or ForceSubspace; `X.T @ I @ X`, with the same object
    X, a rigid or articulated inertia or a VelocityProduct.
    """

    __slots__ = ("X",)

    def __init__(self, X: Transform) -> None:
        self.X = X

    def __matmul__(self, other: Any) -> Any:
        X = self.X
        if isinstance(other, ForceSubspace):
            return ForceSubspace(self @ column for column in other)
        if isinstance(other, Force) and X is not _IDENTITY:
            lin = X.E.T @ other.lin
            return Force(X.E.T @ other.ang + cross3(X.r, lin), lin)
        if isinstance(other, Force):
            return other
        if isinstance(other, (RigidInertia, ArticulatedInertia, VelocityProduct)):
            return _HalfMoved(X, other)
        return NotImplemented


class _HalfMoved:
    """The partial product X.T @ I, to be completed by @ X, the same object."""

    __slots__ = ("X", "inertia")

    def __init__(self, X: Transform, inertia: Any) -> None:
        self.X, self.inertia = X, inertia

    def __matmul__(self, X: Transform) -> Any:
        if X is not self.X:
            raise TypeError("an inertia moves by X.T @ I @ X with one and the same X")
        if X is _IDENTITY:
            return self.inertia
        if isinstance(self.inertia, VelocityProduct):
            return self.inertia.seen_from(X.E, X.r)
        if isinstance(self.inertia, RigidInertia):
            return _move_rigid(X, self.inertia)
        return _move_articulated(X, self.inertia)


def _move_rigid(X: Transform, I: RigidInertia) -> RigidInertia:
    """Return X.T @ I @ X of a rigid inertia, computed with its ten parameters."""
    h = X.E.T @ I.h
    rotated = I.I.rotated(X.E.T)
    a, b = skew(X.r), skew(h)
    shift = a @ b + b @ a + a @ a * I.m
    moved = Symmetric.of(Matrix(rotated.full().rows) - shift)
    return RigidInertia(I.m, h + X.r * I.m, moved)


def _move_articulated(X: Transform, A: ArticulatedInertia) -> ArticulatedInertia:
    """Return X.T @ A @ X of an articulated inertia, computed with its blocks."""
    I, M = A.I.rotated(X.E.T).full(), A.M.rotated(X.E.T)
    H = X.E.T @ A.H @ X.E
    a = skew(X.r)
    H_A = H + a @ M.full()
    I_A = I + a @ H.T - H_A @ a
    return ArticulatedInertia(Symmetric.of(I_A), H_A, M)
