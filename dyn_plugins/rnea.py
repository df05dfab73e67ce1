"""Inverse dynamics by the recursive Newton-Euler algorithm."""

from dyn_core import INVERSE_DYNAMICS, Force, Motion, TextSolver, cross, hookimpl


def rnea(model, q, qd, qdd, f_ext):
    """Give the joint forces of a motion: recursive Newton-Euler.

        tau = H(q) qdd + C(q, qd) - sum_i J_i(q).T f_ext_i

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].
        qd: Joint velocities, nv [rad/s | m/s].
        qdd: Joint accelerations, nv [rad/s² | m/s²].
        f_ext: Force on each body, body coordinates [N·m; N].

    Returns:
        Joint forces tau, nv [N·m | N].

    Source: RBDA, Table 5.1.
    """
    v, a, f = [Motion.zero()], [-model.a_grav], [Force.zero()]
    X, S, tau = [None], [None], [None]
    for i in model.bodies:
        p, joint, I = model.parent[i], model.joint[i], model.I[i]
        vJ, cJ = joint.vJ(q[i], qd[i]), joint.cJ(q[i], qd[i])
        S.append(joint.S(q[i]))
        X.append(joint.X(q[i]) @ model.Xtree[i])
        v.append(X[i] @ v[p] + vJ)
        a.append(X[i] @ a[p] + S[i] @ qdd[i] + cJ + cross(v[i], vJ))
        f.append(I @ a[i] + cross(v[i], I @ v[i]) - f_ext[i])
        tau.append(None)
    for i in reversed(model.bodies):
        p = model.parent[i]
        tau[i] = S[i].T @ f[i] + model.armature[i] * qdd[i]
        f[p] = f[p] + X[i].T @ f[i]
    return tau


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    return [TextSolver("rnea", INVERSE_DYNAMICS, rnea)]
