"""Derivative of velocity-product forces: of v x* I v with respect to v."""

from __future__ import annotations

from typing import Any

from dyn_core.spatial.inertia import ForceSubspace, MotionSubspace, RigidInertia
from dyn_core.spatial.vectors import Force, Matrix, Motion, Vector, cross3


class VelocityProduct:
    """Matrix B in the derivative of the velocity-product forces of bodies.

        d(v x* I v) = B dv + I (v x dv)
        B m = -2 [G w; p x w],   m = [w; .]
        G = [w_i] P + [h] [v_i],   p = m v_i + w_i x h

    Here w_i, v_i are the parts of v, and m, h, P mass, first and second moments of I. B
    has only twelve different numbers, as a rigid body's B acts on angular velocities
    only. B of bodies in one frame can be added. B @ m is a Force for a Motion m, and a
    ForceSubspace for a MotionSubspace.

    Attributes:
        G: 3x3 block [kg·m²/s].
        p: Linear momentum, 3 [kg·m/s].

    Source: S. Singh, R. Russell and P. Wensing 2022, (29), for I with second moments P;
    B is twice the factor of the source.
    """

    __slots__ = ("G", "p")

    def __init__(self, G: Matrix, p: Vector) -> None:
        self.G, self.p = G, p

    @classmethod
    def of(cls, I: RigidInertia, v: Motion) -> VelocityProduct:
        """Return B of one body, with inertia I and velocity v in the same frame.

        The frame label of v is ignored.
        """
        w, o = v.ang, v.lin
        columns = [cross3(w, Vector(row)) for row in I.second_moments.full().rows]
        inner = I.h @ o
        G = [[columns[j][i] + o[i] * I.h[j] for j in range(3)] for i in range(3)]
        for i in range(3):
            G[i][i] = G[i][i] - inner
        return cls(Matrix(G), o * I.m + cross3(w, I.h))

    def __add__(self, other: VelocityProduct) -> VelocityProduct:
        return VelocityProduct(self.G + other.G, self.p + other.p)

    def __matmul__(self, m: Motion | MotionSubspace) -> Any:
        if isinstance(m, MotionSubspace):
            return ForceSubspace(self @ column for column in m)
        return Force((self.G @ m.ang) * -2.0, cross3(self.p, m.ang) * -2.0)

    @property
    def T(self) -> _ProductTransposed:
        """Transpose; for a Motion m, B.T @ m is a Force with zero linear part.

        For a MotionSubspace, the product is a ForceSubspace.
        """
        return _ProductTransposed(self)

    def seen_from(self, E: Matrix, r: Vector) -> VelocityProduct:
        """Return X.T B X: this matrix B in another frame A.

        X is the Transform from A to this frame.

        Args:
            E: Rotation of coordinates of X, from A to this frame, 3x3.
            r: Origin of this frame in A coordinates, 3 [m].
        """
        p = E.T @ self.p
        turned = E.T @ self.G @ E
        inner = r @ p
        G = [[turned[i, j] + p[i] * r[j] for j in range(3)] for i in range(3)]
        for i in range(3):
            G[i][i] = G[i][i] - inner
        return VelocityProduct(Matrix(G), p)


class _ProductTransposed:
    """Transpose B.T of a VelocityProduct B.

    B.T @ m is a Force with zero linear part for a Motion m, and a ForceSubspace for a
    MotionSubspace.
    """

    __slots__ = ("B",)

    def __init__(self, B: VelocityProduct) -> None:
        self.B = B

    def __matmul__(self, m: Motion | MotionSubspace) -> Any:
        if isinstance(m, MotionSubspace):
            return ForceSubspace(self @ column for column in m)
        moment = self.B.G.T @ m.ang - cross3(self.B.p, m.lin)
        return Force(moment * -2.0, Vector.zeros(3))
