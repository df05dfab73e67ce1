"""Two bodies and a hinge, solved in four ways: the worked example of the guide.

A force acts on body 1; a revolute joint connects it to body 2; there are no other
connections. The problem asks for the accelerations and the force through the joint.
Functions for bodies at rest assume no gravity and no torque of the hinge.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dyn_core.spatial import (
    Force,
    Motion,
    MotionSubspace,
    RigidInertia,
    Transform,
    Vector,
    conventions,
    cross,
    skew,
)
from dyn_core.spatial.guide import bodies, geometry


@dataclass(frozen=True)
class Body:
    """One body, in terms of 3-D mechanics.

    Attributes:
        m: Mass [kg].
        C: Centre of mass, 3 [m].
        I: Rotational inertia about it, 3x3 [kg·m²].
    """

    m: float
    C: np.ndarray
    I: np.ndarray

    def spatial(self) -> RigidInertia:
        """Return the spatial inertia about the origin.

        Raises ModelError if I is not symmetric or the inertia is not physical,
        ShapeError or NonFiniteError for other invalid values.
        """
        return bodies.rigid_body(self.m, self.C, self.I)


@dataclass(frozen=True)
class HingedPair:
    """Two bodies, the hinge between them and the load on body 1.

    P is a point of the hinge's axis [m], s its direction (a unit vector for
    two_body_3d). f [N] acts on body 1 through its centre of mass C1, with the couple n
    [N·m].
    """

    body1: Body
    body2: Body
    P: np.ndarray
    s: np.ndarray
    f: np.ndarray
    n: np.ndarray

    def axis(self) -> Motion:
        """Return the motion of the hinge at unit rate, at the origin; s is normalised.

        It is the motion of body 2 relative to body 1.
        """
        return geometry.screw_axis(self.s, self.P)

    def load(self) -> Force:
        """Return the load as one spatial force at the origin, [C1 x f + n; f]."""
        moment = np.cross(self.body1.C, self.f) + self.n
        return Force(moment.tolist(), self.f.tolist())


@dataclass(frozen=True)
class Answer3D:
    """Solution by 3-D vectors: [f; n] = matrix [a1; wd1], matrix = [[A, B], [B.T, D]].

    a1 is the acceleration of C1, the centre of mass of body 1, wd1 the angular one of
    body 1, alpha that of body 2 relative to body 1 about the hinge.
    """

    a1: np.ndarray
    wd1: np.ndarray
    alpha: float
    matrix: np.ndarray


@dataclass(frozen=True)
class Answer:
    """Solution by spatial vectors, all about the origin.

    qdd is the acceleration of body 2 relative to body 1 about the hinge, f_J the force
    that body 1 transmits to body 2, IA the articulated-body inertia of body 1, 6x6,
    or None if it was not computed.
    """

    a1: Motion
    a2: Motion
    qdd: float
    f_J: Force
    IA: np.ndarray | None = None


K7 = HingedPair(
    Body(2.0, np.array((0.3, -0.1, 0.2)), np.diag((0.10, 0.12, 0.08))),
    Body(
        1.5,
        np.array((0.9, 0.4, -0.3)),
        np.array(((0.05, 0.01, 0.0), (0.01, 0.06, -0.005), (0.0, -0.005, 0.04))),
    ),
    P=np.array((0.55, 0.15, 0.05)),
    s=np.array((1.0, 2.0, 2.0)) / 3,
    f=np.array((1.0, -2.0, 3.0)),
    n=np.array((0.4, 0.3, -0.2)),
)


def _tilde(r: np.ndarray) -> np.ndarray:
    """Return the matrix r x, (3, 3), of an array r (3,)."""
    return np.asarray(skew(r.tolist()), float)


def _inertia_along_joint(inertia: float) -> float:
    """Return the argument, s . I2 s [kg·m²]; ValueError unless it is positive."""
    if not inertia > 0:
        raise ValueError(
            f"the inertia of body 2 along the joint is {inertia}; it must be positive:"
            " give the axis a direction and body 2 a mass"
        )
    return inertia


def two_body_3d(case: HingedPair) -> Answer3D:
    """Return the accelerations of two bodies at rest, by 3-D vectors.

        alpha = -s.T (K.T wd1 - m2 r2~ a1) / (s.T J s)
        J = I2 - m2 r2~ r2~,  K = J + m2 r1~ r2~,  [f; n] = [[A, B], [B.T, D]] [a1; wd1]

    The result has the acceleration a1 of C1, the angular acceleration wd1 of body 1,
    alpha of body 2 relative to body 1, and this 6x6 matrix.

    Args:
        case: The problem; r1 and r2 point from the centres of mass to P, r~ is the
            matrix r x. Its s must have unit length (not checked), else alpha is
            divided by the length.

    Raises:
        ValueError: Body 2 has no inertia along the joint.
        numpy.linalg.LinAlgError: The matrix is singular, as for bodies without mass.

    Source: GUIDE appendix A (S1)-(S32); SV-10.1.
    """
    one, two, s = case.body1, case.body2, case.s
    r1, r2 = _tilde(case.P - one.C), _tilde(case.P - two.C)
    m1, m2 = one.m, two.m
    J = two.I - m2 * r2 @ r2
    K = J + m2 * r1 @ r2
    d = _inertia_along_joint(float(s @ J @ s))
    A = (m1 + m2) * np.eye(3) + m2**2 * r2 @ np.outer(s, s) @ r2 / d
    B = m2 * (r2 - r1) - m2 * r2 @ np.outer(s, s) @ K.T / d
    D = one.I + two.I - m2 * (r1 - r2) @ (r1 - r2) - K @ np.outer(s, s) @ K.T / d
    matrix = np.block([[A, B], [B.T, D]])
    solution = np.linalg.solve(matrix, np.concatenate([case.f, case.n]))
    a1, wd1 = solution[:3], solution[3:]
    alpha = -float(s @ (K.T @ wd1 - m2 * r2 @ a1)) / d
    return Answer3D(a1, wd1, alpha, matrix)


def two_body_spatial(I1: RigidInertia, I2: RigidInertia, s: Motion, f: Force) -> Answer:
    """Return the accelerations of two bodies at rest, by spatial vectors.

        IA = I1 + I2 - I2 s s.T I2 / (s.T I2 s),   a1 = IA^-1 f
        alpha = -s.T I2 a1 / (s.T I2 s),           f_J = I2 (a1 + s alpha)

    The Answer has a1 and a2 = a1 + s alpha of the bodies, qdd = alpha, the force f_J of
    body 1 on body 2, and IA, all about the origin.

    Args:
        I1, I2: Inertias of the bodies about the origin.
        s: Motion of the joint at unit rate, at the origin.
        f: Force on body 1, at the origin.

    Raises:
        ValueError: Body 2 has no inertia along the joint.
        numpy.linalg.LinAlgError: IA is singular.

    Source: GUIDE appendix B (S33)-(S39); SV-10.2, SV-10.3.
    """
    U = I2 @ s
    d = _inertia_along_joint(s @ U)
    IA = np.asarray(I1) + np.asarray(I2) - np.outer(list(U), list(U)) / d
    a1 = Motion.of(np.linalg.solve(IA, list(f)).tolist())
    alpha = -(U @ a1) / d
    a2 = a1 + s * alpha
    return Answer(a1, a2, alpha, I2 @ a2, IA)


@dataclass(frozen=True)
class Moving:
    """State of two moving bodies, hinge torque and gravity.

    Attributes:
        v1: Velocity of body 1 at the origin.
        qd: Velocity of body 2 relative to body 1 about the hinge [rad/s].
        tau: Torque of the hinge on body 2 [N·m].
        g: Gravity, 3 [m/s²].
    """

    v1: Motion
    qd: float
    tau: float
    g: tuple[float, float, float] = (0.0, 0.0, -9.81)


K8 = Moving(Motion.of((0.2, -0.3, 0.5, 0.4, 0.1, -0.2)), qd=0.8, tau=0.35)


def _biases(
    I1: RigidInertia, I2: RigidInertia, s: Motion, state: Moving
) -> tuple[Force, Force, Motion]:
    """Return the bias forces p1, p2 of the bodies and the acceleration c = v1 x v2.

        p = v x* I v - weight,   v2 = v1 + s qd

    All are at the origin; s is the motion of the joint at unit rate, and gravity
    state.g causes the weight.
    """
    v2 = state.v1 + s * state.qd
    p1 = bodies.bias_force(I1, state.v1, bodies.gravity_force(I1, state.g))
    p2 = bodies.bias_force(I2, v2, bodies.gravity_force(I2, state.g))
    return p1, p2, cross(state.v1, v2)


def two_body_moving(
    I1: RigidInertia, I2: RigidInertia, s: Motion, f: Force, state: Moving
) -> Answer:
    """Return the accelerations of two moving bodies, with the joint eliminated by s.

        pA = p1 + p2 + I2 c + I2 s (tau - s.T (I2 c + p2)) / (s.T I2 s)
        a1 = IA^-1 (f - pA),   qdd = (tau - s.T (I2 (a1 + c) + p2)) / (s.T I2 s)

    p1, p2 and c are those of _biases, IA that of two_body_spatial. The Answer has also
    a2 = a1 + c + s qdd and the force f_J = I2 a2 + p2 of body 1 on body 2.

    Args:
        I1, I2: Inertias of the bodies about the origin.
        s: Motion of the joint at unit rate, at the origin.
        f: Force on body 1 besides gravity, at the origin.
        state: Velocities, torque, gravity.

    Raises:
        ValueError: Body 2 has no inertia along the joint.
        numpy.linalg.LinAlgError: IA is singular.
        ShapeError, NonFiniteError: state.g is not valid.

    Source: GUIDE appendix B, carried on; SV-10.5, SV-6.4.
    """
    p1, p2, c = _biases(I1, I2, s, state)
    U = I2 @ s
    d = _inertia_along_joint(s @ U)
    IA = np.asarray(I1) + np.asarray(I2) - np.outer(list(U), list(U)) / d
    pA = p1 + p2 + I2 @ c + U * ((state.tau - s @ (I2 @ c + p2)) / d)
    a1 = Motion.of(np.linalg.solve(IA, list(f - pA)).tolist())
    qdd = (state.tau - s @ (I2 @ (a1 + c) + p2)) / d
    a2 = a1 + c + s * qdd
    return Answer(a1, a2, qdd, I2 @ a2 + p2, IA)


def two_body_kkt(
    I1: RigidInertia, I2: RigidInertia, s: Motion, f: Force, state: Moving
) -> Answer:
    """Return the result of two_body_moving, with the joint as a constraint, by its T.

        I1 a1 + T l = f - p1 - e,   I2 a2 - T l = e - p2,   T.T (a2 - a1) = T.T c

    T is geometry.complement of s. e is any force with s.T e = tau; f_J = e + T l. The
    equations of a1, a2 and of the multipliers l form one symmetric system. IA of the
    answer is None.

    Args:
        I1, I2: Inertias of the bodies about the origin.
        s: Motion of the joint at unit rate, at the origin.
        f: Force on body 1 besides gravity, at the origin.
        state: Velocities, torque, gravity.

    Raises:
        ValueError: s is zero.
        numpy.linalg.LinAlgError: The system is singular, as for bodies without mass.
        ShapeError, NonFiniteError: state.g is not valid, or s not finite.

    Source: GUIDE (31)-(34); SV-9.7.
    """
    p1, p2, c = _biases(I1, I2, s, state)
    axis = np.array(list(s))
    T = geometry.complement(np.asarray(MotionSubspace([s])))
    e = Force.of((axis * (state.tau / (axis @ axis))).tolist())
    O = np.zeros((6, 6))
    left = np.block(
        [
            [np.asarray(I1), O, T],
            [O, np.asarray(I2), -T],
            [T.T, -T.T, np.zeros((5, 5))],
        ]
    )
    right = [*(f - p1 - e), *(e - p2), *(-T.T @ list(c))]
    x = np.linalg.solve(left, right)
    a1, a2 = Motion.of(x[:6].tolist()), Motion.of(x[6:12].tolist())
    qdd = float(axis @ list(a2 - a1 - c)) / float(axis @ axis)
    return Answer(a1, a2, qdd, e + Force.of((T @ x[12:]).tolist()))


def same_inertia(case: HingedPair, IA: np.ndarray) -> np.ndarray:
    """Return Answer3D.matrix, 6x6, of the articulated-body inertia IA of body 1.

    IA, about the origin, is shifted to C1 and its blocks are swapped: a congruence,
    which keeps it symmetric positive definite.

    Source: GUIDE (S27); SV-10.3.
    """
    to_C1 = Transform.of_pose(np.eye(3), Vector(case.body1.C.tolist()))
    back = np.asarray(to_C1.inverse, float)
    return conventions.swap_matrix(back.T @ IA @ back)


def same_answer(case: HingedPair, answer: Answer) -> Answer3D:
    """Return a spatial answer for bodies at rest in terms of 3-D mechanics.

    The result has a1 and wd1 of body 1, alpha = qdd, and the matrix of same_inertia. At
    rest the classical acceleration of C1 is the linear part about C1. `case` gives only
    C1. Raises ValueError if answer.IA is None.

    Source: GUIDE appendix B; SV-10.4.
    """
    a1 = np.array(list(geometry.shifted(answer.a1, case.body1.C)))
    matrix = same_inertia(case, np.asarray(answer.IA))
    return Answer3D(a1[3:], a1[:3], answer.qdd, matrix)
