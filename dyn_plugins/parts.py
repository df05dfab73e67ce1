"""Parts of the joint forces: what velocities take, and what accelerations take.

ID = inertial + coriolis + gravity - sum_i J_i.T f_ext_i
"""

from dyn_core import (
    CORIOLIS_FORCE,
    INERTIAL_FORCE,
    Force,
    Motion,
    TextSolver,
    Vector,
    hookimpl,
)
from dyn_plugins.rnea import body_forces


def coriolis(model, q, qd):
    """Give the joint forces of a motion without acceleration and without gravity.

        c(q, qd) = C(q, qd) - g(q) = c(q, -qd)

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].
        qd: Joint velocities, nv [rad/s | m/s].

    Returns:
        Coriolis and centrifugal force c, nv [N·m | N]; no joint friction.

    Source: RBD5-3.6; the sweep of body_forces from a base at rest, RBD5-4.1.
    """
    still = [Vector.zeros(len(x)) for x in qd]
    free = [Force.zero()] * len(qd)
    X, S, f = body_forces(model, q, qd, still, free, Vector.zeros(3))
    c = [None] * len(f)
    for i in reversed(model.bodies):
        p = model.parent[i]
        c[i] = S[i].T @ f[i]
        f[p] = f[p] + X[i].T @ f[i]
    return c


def inertial(model, q, qdd):
    """Give the joint forces that accelerate the robot from rest, without gravity.

        tau = H(q) qdd

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].
        qdd: Joint accelerations, nv [rad/s² | m/s²].

    Returns:
        Inertial force tau, nv [N·m | N]; H is not formed.

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
    """Offer the solvers of this file."""
    return [
        TextSolver("coriolis", CORIOLIS_FORCE, coriolis, regrouped=True),
        TextSolver("inertial", INERTIAL_FORCE, inertial, regrouped=True),
    ]
