"""Joints with several coordinates: planar, spherical, floating."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from dyn_core.model.joints.base import GroupJoint, Joint
from dyn_core.model.joints.single import Revolute, unit
from dyn_core.scalar import cos, sin
from dyn_core.spatial import Matrix, Motion, MotionSubspace, Transform, Vector, cross3
from dyn_core.spatial.lie import (
    dexp3,
    dexp3_inverse,
    normalized,
    quat_conjugate,
    quat_exp,
    quat_log,
    quat_matrix,
    quat_product,
)

_ZERO = Vector((0.0, 0.0, 0.0))
_UNIT = tuple(Vector(float(i == j) for j in range(3)) for i in range(3))


def plane_axes(normal: Iterable[float]) -> tuple[Vector, Vector]:
    """Give the in-plane axes: x and y turned by the least rotation that tilts z to n.

    For n = z they are x and y; for n = -z, x and -y.
    """
    n = np.array(tuple(normal))
    if n[2] < -1 + 1e-12:
        return Vector((1.0, 0.0, 0.0)), Vector((0.0, -1.0, 0.0))
    u = np.array([-n[1], n[0], 0.0])  # z x n
    W = np.array([[0, -u[2], u[1]], [u[2], 0, -u[0]], [-u[1], u[0], 0]])
    R = np.eye(3) + W + W @ W / (1 + n[2])
    ex, ey = (unit(R[:, k]) for k in range(2))
    return ex, ey


class Planar(Joint):
    """Motion in a plane: q = (x, y, angle), qd = dq/dt; x, y along fixed plane axes."""

    kind = "planar"
    nq = nv = 3

    def __init__(self, axis: Iterable[float] = (0.0, 0.0, 1.0)) -> None:
        self.axis = tuple(unit(axis))

    @classmethod
    def about(cls, axis: Iterable[float]) -> Joint:
        """Make one with this axis."""
        return cls(axis)

    def _E(self, q: Vector) -> Matrix:
        return Revolute(self.axis).X(q[2:]).E

    def X(self, q: Vector) -> Transform:
        """Shift in the plane, then turn about its normal."""
        ex, ey = plane_axes(self.axis)
        return Transform(self._E(q), ex * q[0] + ey * q[1])

    def S(self, q: Vector) -> MotionSubspace:
        """Motion subspace; the translations turn with the body."""
        ex, ey = plane_axes(self.axis)
        E = self._E(q)
        shifts = [Motion(_ZERO, E @ e) for e in (ex, ey)]
        return MotionSubspace([*shifts, Motion(self.axis, _ZERO)])

    def cJ(self, q: Vector, qd: Vector) -> Motion:
        """Bias: the plane axes turn backwards, seen from the body."""
        ex, ey = plane_axes(self.axis)
        v = self._E(q) @ (ex * qd[0] + ey * qd[1])
        return Motion(_ZERO, -cross3(Vector(self.axis), v) * qd[2])

    def neutral(self) -> tuple[float, ...]:
        """Coordinates at which X is the identity."""
        return (0.0, 0.0, 0.0)

    def random(self, rng: np.random.Generator) -> tuple[float, ...]:
        """Within 1 m, any angle."""
        x, y = rng.uniform(-1, 1, 2)
        return (float(x), float(y), float(rng.uniform(-math.pi, math.pi)))


class BallRPY(Joint):
    """Rotation by three angles: q = (x, y, z), R = Rz(z) Ry(y) Rx(x), qd = dq/dt.

    Joint forces belong to the rates of the angles, not to the angular velocity. At
    cos y = 0 two angles turn about one axis and the joint is singular; a spherical
    joint never is.

    Source: TAZZ-4.3.
    """

    kind = "ball_rpy"
    nq = nv = 3

    @property
    def series(self) -> tuple[int, ...]:
        """The turn about z comes first."""
        return (2, 1, 0)

    def X(self, q: Vector) -> Transform:
        """Turn about x, then y, then z of the frame before the joint."""
        turns = [Revolute(axis).X(q[k : k + 1]) for k, axis in enumerate(_UNIT)]
        return turns[0] @ turns[1] @ turns[2]

    def S(self, q: Vector) -> MotionSubspace:
        """Motion subspace: the axes of the three turns, seen from the body."""
        sx, cx, sy, cy = sin(q[0]), cos(q[0]), sin(q[1]), cos(q[1])
        axes = (_UNIT[0], (0.0, cx, -sx), (-sy, sx * cy, cx * cy))
        return MotionSubspace(Motion(Vector(axis), _ZERO) for axis in axes)

    def cJ(self, q: Vector, qd: Vector) -> Motion:
        """Bias: the axes turn with the angles behind them."""
        sx, cx, sy, cy = sin(q[0]), cos(q[0]), sin(q[1]), cos(q[1])
        x, y, z = qd
        pitch = Vector((0.0, -sx, -cx)) * (x * y)
        yaw = Vector((-cy * y, cx * cy * x - sx * sy * y, -sx * cy * x - cx * sy * y))
        return Motion(pitch + yaw * z, _ZERO)

    def neutral(self) -> tuple[float, ...]:
        """Coordinates at which X is the identity."""
        return (0.0, 0.0, 0.0)

    def random(self, rng: np.random.Generator) -> tuple[float, ...]:
        """Any angles, the second at least 0.2 rad from where the joint is singular."""
        x, z = rng.uniform(-math.pi, math.pi, 2)
        y = rng.uniform(0.2 - math.pi / 2, math.pi / 2 - 0.2)
        return (float(x), float(y), float(z))


def _random_quaternion(rng: np.random.Generator) -> tuple[float, ...]:
    q = rng.normal(size=4)
    return tuple(float(x) for x in q / np.linalg.norm(q))


class Spherical(GroupJoint):
    """Free rotation: q = quaternion (x, y, z, w), qd = body angular velocity.

    Source: TAZZ-4.3 (the ball joint that is never singular); RBD5-3.4.
    """

    kind = "spherical"
    nq, nv = 4, 3

    def X(self, q: Vector) -> Transform:
        """Rotate: E = R(q).T; q must have unit length."""
        return Transform(quat_matrix(q).T, _ZERO)

    def S(self, q: Vector) -> MotionSubspace:
        """Motion subspace (1; 0)."""
        return MotionSubspace([Motion(e, _ZERO) for e in _UNIT])

    def motion(self, u: Vector) -> Motion:
        """Give the displacement as a Motion."""
        return Motion(u, _ZERO)

    def neutral(self) -> tuple[float, ...]:
        """Coordinates at which X is the identity."""
        return (0.0, 0.0, 0.0, 1.0)

    def random(self, rng: np.random.Generator) -> tuple[float, ...]:
        """Rotation drawn uniformly."""
        return _random_quaternion(rng)

    def integrate(self, q: Vector, dv: Vector) -> Vector:
        """R exp(dv)."""
        return quat_product(q, quat_exp(dv))

    def difference(self, q0: Vector, q1: Vector) -> Vector:
        """log(R0.T R1)."""
        return quat_log(quat_product(quat_conjugate(q0), q1))

    def position_rate(self, q: Vector, qd: Vector) -> Vector:
        """Rate of the quaternion: q (w/2, 0)."""
        return quat_product(q, Vector((*(qd * 0.5), 0.0)))

    def normalize(self, q: Vector) -> Vector:
        """Quaternion of unit length."""
        return normalized(q)


class Floating(GroupJoint):
    """Free motion: q = (x, y, z, qx, qy, qz, qw), qd = body twist [angular; linear].

    Source: TAZZ-4.8; RBD5-3.4. A fixed joint is none: its links are merged.
    """

    kind = "floating"
    nq, nv = 7, 6

    def X(self, q: Vector) -> Transform:
        """Shift and rotate; the quaternion must have unit length."""
        return Transform(quat_matrix(q[3:]).T, q[:3])

    def S(self, q: Vector) -> MotionSubspace:
        """Motion subspace: the identity."""
        turns = [Motion(e, _ZERO) for e in _UNIT]
        return MotionSubspace([*turns, *[Motion(_ZERO, e) for e in _UNIT]])

    def motion(self, u: Vector) -> Motion:
        """Give the displacement as a Motion."""
        return Motion.of(u)

    def neutral(self) -> tuple[float, ...]:
        """Coordinates at which X is the identity."""
        return (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)

    def random(self, rng: np.random.Generator) -> tuple[float, ...]:
        """Within 1 m, any rotation."""
        shift = tuple(float(x) for x in rng.uniform(-1, 1, 3))
        return shift + _random_quaternion(rng)

    def integrate(self, q: Vector, dv: Vector) -> Vector:
        """T exp(dv)."""
        w, v = dv[:3], dv[3:]
        p = q[:3] + quat_matrix(q[3:]) @ (dexp3(w) @ v)
        return Vector((*p, *quat_product(q[3:], quat_exp(w))))

    def difference(self, q0: Vector, q1: Vector) -> Vector:
        """log(T0^-1 T1)."""
        w = quat_log(quat_product(quat_conjugate(q0[3:]), q1[3:]))
        shift = quat_matrix(q0[3:]).T @ (q1[:3] - q0[:3])
        return Vector((*w, *(dexp3_inverse(w) @ shift)))

    def position_rate(self, q: Vector, qd: Vector) -> Vector:
        """Rate of the position, R v, and of the quaternion, q (w/2, 0)."""
        turn = quat_product(q[3:], Vector((*(qd[:3] * 0.5), 0.0)))
        return Vector((*(quat_matrix(q[3:]) @ qd[3:]), *turn))

    def normalize(self, q: Vector) -> Vector:
        """Position kept, quaternion of unit length."""
        return Vector((*q[:3], *normalized(q[3:])))
