"""Joints with three rotations: by quaternions, or by a rotation vector (ball_exp)."""

from __future__ import annotations

import numpy as np

from dyn_core.model.joints.base import GroupJoint, Joint
from dyn_core.numbers.scalar import Scalar
from dyn_core.spatial import (
    Matrix,
    Motion,
    MotionSubspace,
    Transform,
    Vector,
    cross3,
    skew,
)
from dyn_core.spatial.lie import (
    dexp3,
    dexp3_inverse,
    dexp3_rate,
    exp3,
    normalized,
    quat_conjugate,
    quat_exp,
    quat_log,
    quat_matrix,
    quat_product,
    sinc_terms,
)
from dyn_core.spatial.variations import has_slope, slope_of, value_of, with_slopes

_LARGEST_TURN = 2.5  # largest angle of random coordinates; singular at 2 pi [rad]


class BallExp(Joint):
    """Ball joint with a rotation vector q [rad]: R = exp[q], qd = dq/dt.

        S = (dexp_(-q); 0),   cJ = (d/dt dexp_(-q) qd; 0)

    Singular where |q| = 2 pi; shorter vectors reach every rotation.

    Source: KIM-2.4, KIM-S1 (exponential coordinates).
    """

    kind = "ball_exp"
    nq = nv = 3

    @property
    def series(self) -> None:
        """None: the coordinates act together, in no order."""
        return None

    def X(self, q: Vector) -> Transform:
        """Return the rotation E = exp[-q]."""
        return Transform(exp3(-q), _ZERO)

    def S(self, q: Vector) -> MotionSubspace:
        """Return the motion subspace; its columns form the body Jacobian dexp_(-q)."""
        columns = zip(*dexp3(-q).rows, strict=True)
        return MotionSubspace(Motion(Vector(c), _ZERO) for c in columns)

    def cJ(self, q: Vector, qd: Vector) -> Motion:
        """Return the bias: time derivative of the body Jacobian, times qd."""
        return Motion(dexp3_rate(-q, -qd) @ qd, _ZERO)

    def neutral(self) -> tuple[float, ...]:
        """Return zeros, at which X is the identity."""
        return (0.0, 0.0, 0.0)

    def random(self, rng: np.random.Generator) -> tuple[float, ...]:
        """Return a rotation vector about a random axis, at most 2.5 rad long."""
        axis = rng.normal(size=3)
        axis *= rng.uniform(0, _LARGEST_TURN) / np.linalg.norm(axis)
        return tuple(float(x) for x in axis)


NEWTON_STEPS = 2  # then the error of the mean velocity is of order dt¹²
_ZERO = Vector((0.0, 0.0, 0.0))
_UNIT = tuple(Vector(float(i == j) for j in range(3)) for i in range(3))


def _random_quaternion(rng: np.random.Generator) -> tuple[float, ...]:
    """Return a unit quaternion (x, y, z, w), uniformly distributed."""
    q = rng.normal(size=4)
    return tuple(float(x) for x in q / np.linalg.norm(q))


def _after_turn(u: Vector, w: Vector, dt: Scalar) -> Vector:
    """Return the components of a vector u in axes rotated by exp(w dt), w constant.

        exp(w dt).T u = u - dt sin t/t w x u + dt² (1 - cos t)/t² w x (w x u)

    with t = |w dt|; exactly w if u is w.
    """
    a, b, _ = sinc_terms(w @ w * (dt * dt))
    across = cross3(w, u)
    return u - across * (a * dt) + cross3(w, across) * (b * (dt * dt))


def _solve(A: Matrix, b: Vector) -> Vector:
    """Return x (3) of A x = b by Cramer's rule, without a check that A is regular."""
    p, q, r = (Vector(column) for column in A.T.rows)
    minors = cross3(q, r), cross3(r, p), cross3(p, q)
    return Vector([b @ minor for minor in minors]) / (p @ minors[0])


def _gyroscopic_moment(I: Matrix, w: Vector) -> Vector:
    """Return w x I w, exactly zero for equal moments of inertia."""
    x, y, z = w
    return Vector(
        (
            y * z * (I[2, 2] - I[1, 1]) + I[1, 2] * (y * y - z * z)
            + x * y * I[0, 2] - x * z * I[0, 1],
            z * x * (I[0, 0] - I[2, 2]) + I[0, 2] * (z * z - x * x)
            + y * z * I[0, 1] - y * x * I[1, 2],
            x * y * (I[1, 1] - I[0, 0]) + I[0, 1] * (x * x - y * y)
            + z * x * I[1, 2] - z * y * I[0, 2],
        )
    )  # fmt: skip


def _turn_at_mean(
    I: Matrix, w: Vector, moment: Vector, dt: Scalar
) -> tuple[Vector, Vector]:
    """Return the effect of mean gyroscopic moments on u, and the explicit acceleration.

        explicit   I (u - w) = dt moment,                   moment = n - w x I w
        mean       I (u - w) = dt (n - m x I m),            m = (w + u) / 2

    where w and u are the angular velocities before and after the step. The effect is u
    of `mean` minus u of `explicit` [rad/s]. The second conserves the energy u.T I u and
    the momentum |I u| of a free body; the first does not. Newton's method solves it in
    NEWTON_STEPS + 1 steps; its last equation, linear in m,

        I (m - w) = dt / 2 (n - m x I y),                   y the previous iterate

    conserves the energy exactly, however far the body turns in a step.
    """
    rate, change = _solve(I, moment), Vector.zeros(3)
    start = I, w, rate, dt * 0.5
    values = value_of(I), value_of(w), value_of(rate), value_of(dt * 0.5)
    for last in (False,) * NEWTON_STEPS + (True,):
        matrix, error = _mean_system(*values, change, last)
        change = change - _solve(matrix, error)
    _, error = _mean_system(*start, change)
    if has_slope(error):  # derivative by the implicit function theorem
        matrix, _ = _mean_system(*values, change)
        change = with_slopes(change, -_solve(matrix, slope_of(error)))
    return change * 2.0, rate


def _mean_system(
    I: Matrix, w: Vector, rate: Vector, half: Scalar, change: Vector, last: bool = False
) -> tuple[Matrix, Vector]:
    """Return matrix and residual of a Newton step: change -= matrix^-1 residual.

    `rate` is the explicit acceleration, `half` half a step [s], `change` the mean
    velocity minus that of the explicit step. `last` asks for the matrix of the last
    equation, which is linear in m.
    """
    y = w + rate * half + change
    slope = skew(I @ (y * half))
    if not last:
        slope = slope - skew(y * half) @ I
    more = _gyroscopic_moment(I, y) - _gyroscopic_moment(I, w)
    return I - slope, I @ change + more * half


class Spherical(GroupJoint):
    """Ball joint: q = quaternion (x, y, z, w), qd = body angular velocity [rad/s].

    Source: TAZZ-4.3 (the ball joint that is never singular); RBD5-3.4; KIM-2.4.
    """

    kind = "spherical"
    nq, nv = 4, 3

    def X(self, q: Vector) -> Transform:
        """Return the rotation E = R(q).T; q must have unit length (not checked)."""
        return Transform(quat_matrix(q).T, _ZERO)

    def S(self, q: Vector) -> MotionSubspace:
        """Return the motion subspace (1; 0)."""
        return MotionSubspace([Motion(e, _ZERO) for e in _UNIT])

    def motion(self, u: Vector) -> Motion:
        """Return the rotation vector u as a Motion."""
        return Motion(u, _ZERO)

    def neutral(self) -> tuple[float, ...]:
        """Return the identity quaternion."""
        return (0.0, 0.0, 0.0, 1.0)

    def random(self, rng: np.random.Generator) -> tuple[float, ...]:
        """Return a uniformly distributed unit quaternion."""
        return _random_quaternion(rng)

    def integrate(self, q: Vector, dv: Vector) -> Vector:
        """Return the quaternion of R(q) exp(dv), dv in body axes [rad].

        It has the length of q.
        """
        return quat_product(q, quat_exp(dv))

    def difference(self, q0: Vector, q1: Vector) -> Vector:
        """Return the rotation vector log(R0.T R1) from q0 to q1, in body axes [rad].

        It is at most pi long. Both are quaternions of unit length, which is not
        checked.
        """
        return quat_log(quat_product(quat_conjugate(q0), q1))

    def position_rate(self, q: Vector, qd: Vector) -> Vector:
        """Return the rate of the quaternion, q (w/2, 0).

        w = qd is the angular velocity in body axes.
        """
        return quat_product(q, Vector((*(qd * 0.5), 0.0)))

    def velocity_of(self, q: Vector, rate: Vector) -> Vector:
        """Return the angular velocity in body axes at which q changes at `rate`.

        w = 2 (q* rate), the vector part of the product; q must have unit length (not
        checked).
        """
        return quat_product(quat_conjugate(q), rate)[:3] * 2.0

    def gyroscopic_change(
        self, H: Matrix, qd: Vector, force: Vector, dt: Scalar, remaining: float
    ) -> Vector:
        """Return the correction of a body that rotates about a fixed point, 3 [rad/s].

        It is added to the angular velocity after an explicit step.

        Args:
            H: Inertia about the point, (3, 3) [kg·m²].
            qd: Angular velocity before the step, (3,) [rad/s].
            force: H times the angular acceleration without constraints, (3,) [N·m].
            dt: Step [s].
            remaining: Not used.
        """
        return _turn_at_mean(H, qd, force, dt)[0]

    def advance(
        self, q: Vector, u: Vector, dt: Scalar, way: Vector | None = None
    ) -> tuple[Vector, Vector]:
        """Return q rotated by exp(way dt), normalised, and u in the rotated axes.

        Args:
            q: Quaternion at the start.
            u: Angular velocity in the axes of the start [rad/s].
            dt: Step [s].
            way: Angular velocity that rotates the quaternion, in the axes of the start
                [rad/s]; None: u, and u is returned as it is.
        """
        q_next, _ = super().advance(q, u, dt, way)
        return q_next, u if way is None else _after_turn(u, way, dt)

    def normalize(self, q: Vector) -> Vector:
        """Return the quaternion scaled to unit length; zeros: ZeroDivisionError."""
        return normalized(q)

    def quaternions(self, q: Vector) -> tuple[Vector, ...]:
        """Return all four coordinates as the only quaternion."""
        return (q,)


class Floating(GroupJoint):
    """Free motion: q = (x, y, z, qx, qy, qz, qw), qd = body twist [angular; linear].

    Source: TAZZ-4.8; RBD5-3.4; KIM-2.4. There is no class for fixed joints: their links
    are merged.
    """

    kind = "floating"
    unactuated = True
    nq, nv = 7, 6

    def X(self, q: Vector) -> Transform:
        """Return the transform of rotation E = R(q).T and shift r = (x, y, z).

        The quaternion must have unit length (not checked).
        """
        return Transform(quat_matrix(q[3:]).T, q[:3])

    def S(self, q: Vector) -> MotionSubspace:
        """Return the motion subspace, the identity."""
        turns = [Motion(e, _ZERO) for e in _UNIT]
        return MotionSubspace([*turns, *[Motion(_ZERO, e) for e in _UNIT]])

    def motion(self, u: Vector) -> Motion:
        """Return the displacement u [angular; linear] as a Motion."""
        return Motion.of(u)

    def neutral(self) -> tuple[float, ...]:
        """Return zero position and the identity quaternion."""
        return (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)

    def random(self, rng: np.random.Generator) -> tuple[float, ...]:
        """Return a position within 1 m in x, y, z, and any rotation."""
        shift = tuple(float(x) for x in rng.uniform(-1, 1, 3))
        return shift + _random_quaternion(rng)

    def integrate(self, q: Vector, dv: Vector) -> Vector:
        """Return the coordinates of T(q) exp(dv), dv [angular; linear].

        dv is in the axes of q, whose quaternion must be of unit length (not checked);
        it keeps its length.
        """
        w, v = dv[:3], dv[3:]
        p = q[:3] + quat_matrix(q[3:]) @ (dexp3(w) @ v)
        return Vector((*p, *quat_product(q[3:], quat_exp(w))))

    def difference(self, q0: Vector, q1: Vector) -> Vector:
        """Return the displacement from pose q0 to pose q1, [angular; linear], 6.

            log(T0^-1 T1),   T0, T1 the transforms of q0, q1

        It is in the axes of q0, its turn at most pi. Both quaternions must be of unit
        length (not checked).
        """
        w = quat_log(quat_product(quat_conjugate(q0[3:]), q1[3:]))
        shift = quat_matrix(q0[3:]).T @ (q1[:3] - q0[:3])
        return Vector((*w, *(dexp3_inverse(w) @ shift)))

    def position_rate(self, q: Vector, qd: Vector) -> Vector:
        """Return the rates of position, R v, and of the quaternion, q (w/2, 0), (7,).

        w and v are the angular and linear part of qd.
        """
        turn = quat_product(q[3:], Vector((*(qd[:3] * 0.5), 0.0)))
        return Vector((*(quat_matrix(q[3:]) @ qd[3:]), *turn))

    def velocity_of(self, q: Vector, rate: Vector) -> Vector:
        """Return the body twist (6,) at which q changes at `rate` (7,).

        The angular part comes from the quaternion's rate, the linear part is R.T dp/dt.
        The quaternion of q must have unit length (not checked).
        """
        w = quat_product(quat_conjugate(q[3:]), rate[3:])[:3] * 2.0
        return Vector((*w, *(quat_matrix(q[3:]).T @ rate[:3])))

    def rate_in_initial_axes(self, qd: Vector, qdd: Vector) -> Vector:
        """Return the rate of the velocity in fixed axes: w', and v' + w x v.

        w, v are the parts of qd, w', v' of qdd, all in body axes at this instant.
        """
        return Vector((*qdd[:3], *(qdd[3:] + cross3(qd[:3], qd[3:]))))

    def gyroscopic_change(
        self, H: Matrix, qd: Vector, force: Vector, dt: Scalar, remaining: float
    ) -> Vector:
        """Return the correction of a body that rotates about its centre of mass, 6.

        It is added to the twist after the step, [angular; linear] in body axes [rad/s;
        m/s]. The centre of mass, at c, keeps its velocity over the step; the linear
        part is the velocity that the origin gains so, minus the explicit step's gain:

            R_start (w x c) - R_end (u x c) + dt (a x c + w x (w x c))

        w and u are the angular velocities before and after the step, a the explicit
        acceleration. R_start and R_end turn components in the body axes at the start
        and end of the step into those at the position that belongs to qd.

        Args:
            H: Inertia of the body, (6, 6).
            qd: Twist before the step, 6 [rad/s; m/s].
            force: H times the acceleration without constraints, 6 [N·m; N].
            dt: Step [s].
            remaining: Fraction of the step that the body moves on from the position
                that belongs to qd.
        """
        m, w = H[3, 3], qd[:3]
        c = Vector((H[2, 4], H[0, 5], H[1, 3])) / m
        about_origin = Matrix([H[i, j] for j in range(3)] for i in range(3))
        I = about_origin + (skew(c) @ skew(c)) * m
        moment = force[:3] - cross3(c, force[3:])
        turn, rate = _turn_at_mean(I, w, moment, dt)
        u, across = w + rate * dt + turn, cross3(w, c)
        start = _after_turn(across, w, dt * (1.0 - remaining))
        end = _after_turn(cross3(u, c), u, dt * -remaining)
        explicit = cross3(rate, c) + cross3(w, across)
        return Vector((*turn, *(start - end + explicit * dt)))

    def advance(
        self, q: Vector, u: Vector, dt: Scalar, way: Vector | None = None
    ) -> tuple[Vector, Vector]:
        """Return q moved straight and rotated by exp(w dt), and u in the rotated axes.

        w is the angular part of `way`, or of u if way is None. The quaternion is
        normalised.

        A free body keeps its velocity in the world: stepping in body axes without
        rotating them would speed up a spinning body by the factor (1 + (w dt)²)^(1/2) a
        step.

        Args:
            q: Coordinates at the start, 7.
            u: Twist in the axes of the start, [angular; linear] [rad/s; m/s].
            dt: Step [s].
            way: Twist that moves the coordinates, in the axes of the start; None: u.
        """
        angular = u[:3] if way is None else _after_turn(u[:3], way[:3], dt)
        way = u if way is None else way
        w, v = way[:3] * dt, way[3:]
        p = q[:3] + quat_matrix(q[3:]) @ v * dt
        turned = quat_product(q[3:], quat_exp(w))
        q_next = self.normalize(Vector((*p, *turned)))
        return q_next, Vector((*angular, *(exp3(w).T @ u[3:])))

    def normalize(self, q: Vector) -> Vector:
        """Return the coordinates with the quaternion scaled to unit length.

        A quaternion of zeros gives a ZeroDivisionError.
        """
        return Vector((*q[:3], *normalized(q[3:])))

    def quaternions(self, q: Vector) -> tuple[Vector, ...]:
        """Return the last four coordinates as the only quaternion."""
        return (q[3:],)
