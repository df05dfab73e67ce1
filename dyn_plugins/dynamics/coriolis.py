"""Velocity and acceleration terms of the joint forces.

ID = inertial + coriolis + gravity - sum_i J_i.T f_ext_i
"""

from dyn_core.authoring import Force, Motion, TracedSolver, Vector, hookimpl
from dyn_core.problems import CORIOLIS_FORCE, INERTIAL_FORCE
from dyn_plugins.dynamics.rnea import body_forces


def coriolis(model, q, qd):
    """Return the joint forces of a motion without acceleration and without gravity.

        c(q, qd) = C(q, qd) - g(q)

    C(q, qd) is the vector `bias`; the matrix of c = Cm qd is `coriolis_matrix`. Joint
    friction is no part of c. With joints driven by time, c has the forces that their
    motion needs; without, c(q, -qd) = c(q, qd).

    Inputs and outputs: those of CORIOLIS_FORCE; q, qd and c by body, the base first;
    entry 0 of c is None.

    Source: RBD5-3.6; the sweep of body_forces from a base at rest, RBD5-4.1.
    """
    still = [Vector.zeros(len(x)) for x in qd]
    no_forces = [Force.zero()] * len(qd)
    X, S, f = body_forces(model, q, qd, still, no_forces, Vector.zeros(3))
    c = [None] * len(f)
    for i in reversed(model.bodies):
        p = model.parent[i]
        c[i] = S[i].T @ f[i]
        f[p] = f[p] + X[i].T @ f[i]
    return c


def inertial(model, q, qdd):
    """Return the joint forces that accelerate the robot from rest, without gravity.

        tau = H(q) qdd

    H is not formed. The motion of joints driven by time is no part of tau.

    Inputs and outputs: those of INERTIAL_FORCE; q, qdd and tau by body, the base first;
    entry 0 of tau is None.

    Source: RBD5-3.6; RBDA, (5.14) to (5.20) with v = 0 and a_0 = 0.
    """
    a, f = [Motion.zero()], [Force.zero()]
    X, S, tau = [None], [None], [None] * len(qdd)
    for i in model.bodies:
        X.append(model.joint[i].X(q[i]) @ model.Xtree[i])
        S.append(model.joint[i].S(q[i]))
        a.append(X[i] @ a[model.parent[i]] + S[i] @ qdd[i])
        f.append(model.I[i] @ a[i])
    for i in reversed(model.bodies):
        p = model.parent[i]
        tau[i] = S[i].T @ f[i] + model.armature[i] * qdd[i]
        f[p] = f[p] + X[i].T @ f[i]
    return tau


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    return [
        TracedSolver(
            "coriolis", CORIOLIS_FORCE, coriolis, regrouped=True, default=True
        ),
        TracedSolver(
            "inertial", INERTIAL_FORCE, inertial, regrouped=True, default=True
        ),
    ]
