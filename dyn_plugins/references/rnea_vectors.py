"""Inverse dynamics by 3-D vectors as published, with a case for each kind of joint."""

from dyn_core.authoring import (
    TracedSolver,
    Vector,
    cross3,
    equal,
    hookimpl,
    skew,
    where,
)
from dyn_core.problems import INVERSE_DYNAMICS

TURNING = ("revolute", "continuous")
SLIDING = ("prismatic",)


class VectorMotion:
    """Motion of the bodies and the forces needed: lists by body, body coordinates.

    The lists start with the base's entry, None for E, r, z and c; vector_motion appends
    the bodies.

    Attributes:
        E, r: Rotation of coordinates from the parent; origin in parent coordinates [m].
        z: Axis of the joint.
        w, alpha: Angular velocity and acceleration [rad/s], [rad/s²].
        a: Classical acceleration of the origin, minus gravity [m/s²].
        c: Centre of mass [m].
        F, N: Force, and moment about the centre of mass [N], [N·m].

    Source: RBD5-4.1.
    """

    def __init__(self, model):
        rest = Vector.zeros(3)
        self.E, self.r, self.z, self.c = [None], [None], [None], [None]
        self.w, self.alpha, self.a = [rest], [rest], [-model.a_grav.lin]
        self.F, self.N = [rest], [rest]


def unsupported_joint(model):
    """Return why the 3-D equations do not support a robot, as text, or None.

    Source: RBD5-4.2 (the 3-D form depends on the kind of joint).
    """
    for i in model.bodies:
        kind = model.joint[i].kind
        if kind not in (*TURNING, *SLIDING):
            valid = ", ".join((*TURNING, *SLIDING))
            return (
                f"joint '{model.names[i]}' is {kind}, and the 3-D vector equations have"
                f" a case for each kind of joint; valid: {valid}"
            )
    return None


def about_centre(I):
    """Return mass, centre of mass c (3) and inertia about it (3x3) of a RigidInertia.

    c = h / m,  Icm = I + m c x c x;  a body without mass has c = h

    Source: RBD5-4.3.
    """
    c = I.h / where(equal(I.m, 0.0), 1.0, I.m)
    return I.m, c, I.I.full() + skew(c) @ skew(c) * I.m


def vector_motion(model, q, qd, qdd):
    """Return the motion of the bodies and the forces needed: the outward sweep.

        w_i = E w_p,  alpha_i = E alpha_p                                      sliding
        w_i = E w_p + z qd_i                                                   turning
        alpha_i = E alpha_p + z qdd_i + (E w_p) x z qd_i                       turning
        a_i = E (a_p + alpha_p x r + w_p x (w_p x r))                          turning
        a_i = E (a_p + ...) + 2 (E w_p) x z qd_i + z qdd_i                     sliding
        F_i = m (a_i + alpha_i x c + w_i x (w_i x c))
        N_i = Icm alpha_i + w_i x Icm w_i

    q, qd and qdd are one-entry Vectors by body. The acceleration of the base is minus
    gravity, a_0 = -g. That joints turn or slide is not checked.

    Source: RBD5-4.1, RBD5-4.2.
    """
    motion = VectorMotion(model)
    E, r, z = motion.E, motion.r, motion.z
    w, alpha, a = motion.w, motion.alpha, motion.a
    for i in model.bodies:
        p, joint = model.parent[i], model.joint[i]
        X = joint.X(q[i]) @ model.Xtree[i]
        E.append(X.E)
        r.append(X.r)
        z.append(Vector(joint.axis))
        w_p, rate = E[i] @ w[p], z[i] * qd[i][0]
        alpha_p = E[i] @ alpha[p]
        a_p = a[p] + cross3(alpha[p], r[i]) + cross3(w[p], cross3(w[p], r[i]))
        if joint.kind in TURNING:
            w.append(w_p + rate)
            alpha.append(alpha_p + z[i] * qdd[i][0] + cross3(w_p, rate))
            a.append(E[i] @ a_p)
        else:
            w.append(w_p)
            alpha.append(alpha_p)
            a.append(E[i] @ a_p + cross3(w_p, rate) * 2.0 + z[i] * qdd[i][0])
        m, c, Icm = about_centre(model.I[i])
        arm = cross3(alpha[i], c) + cross3(w[i], cross3(w[i], c))
        motion.c.append(c)
        motion.F.append((a[i] + arm) * m)
        motion.N.append(Icm @ alpha[i] + cross3(w[i], Icm @ w[i]))
    return motion


def linear_velocities(model, motion, qd):
    """Return the velocity of each body's origin; the other sweeps do not need it.

        v_i = E (v_p + w_p x r)             turning
        v_i = E (v_p + w_p x r) + z qd_i    sliding

    List by body, body coordinates.

    Source: RBD5-4.1, RBD5-4.2.
    """
    v = [Vector.zeros(3)]
    for i in model.bodies:
        p = model.parent[i]
        v.append(motion.E[i] @ (v[p] + cross3(motion.w[p], motion.r[i])))
        if model.joint[i].kind in SLIDING:
            v[i] = v[i] + motion.z[i] * qd[i][0]
    return v


def vector_forces(model, motion, f_ext):
    """Return the force and moment that each joint transmits: the inward sweep.

        f_i = F_i - f_ext_i + sum_j E_j.T f_j
        n_i = N_i + c x F_i - n_ext_i + sum_j (E_j.T n_j + r_j x E_j.T f_j)

    Lists by body, body coordinates, about its origin; f_ext likewise [N·m; N].

    Source: RBD5-4.1, RBD5-4.2.
    """
    f, n = [Vector.zeros(3)], [Vector.zeros(3)]
    for i in model.bodies:
        f.append(motion.F[i] - f_ext[i].lin)
        n.append(motion.N[i] + cross3(motion.c[i], motion.F[i]) - f_ext[i].ang)
    for i in reversed(model.bodies):
        p, up = model.parent[i], motion.E[i].T
        if p:
            push = up @ f[i]
            f[p] = f[p] + push
            n[p] = n[p] + up @ n[i] + cross3(motion.r[i], push)
    return f, n


def rnea_vectors(model, q, qd, qdd, f_ext):
    """Return the joint forces of a motion: recursive Newton-Euler in 3-D vectors.

        tau_i = z . n_i (turning) or z . f_i (sliding), + armature qdd_i

    Robots with joints other than revolute, continuous and prismatic raise
    UnsupportedError when the Program is built.

    Inputs and outputs: those of INVERSE_DYNAMICS; q, qd, qdd, f_ext and tau by body,
    the base first; entry 0 of tau is None.

    Source: Luh, Walker and Paul 1980; RBDA, Table 5.2; RBD5-4.1, RBD5-4.2, RBD5-4.3.
    Any axis instead of z, and trees. Counts are in tests/test_cost.py.
    """
    motion = vector_motion(model, q, qd, qdd)
    f, n = vector_forces(model, motion, f_ext)
    tau = [None]
    for i in model.bodies:
        turning = model.joint[i].kind in TURNING
        push = motion.z[i] @ (n[i] if turning else f[i])
        tau.append(Vector([push + model.armature[i][0] * qdd[i][0]]))
    return tau


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    return [
        TracedSolver(
            "rnea_vectors",
            INVERSE_DYNAMICS,
            rnea_vectors,
            supports=unsupported_joint,
            reference=True,
        )
    ]
