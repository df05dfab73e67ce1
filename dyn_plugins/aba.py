"""Forward dynamics by the articulated-body algorithm."""

from dyn_core import (
    FORWARD_DYNAMICS,
    Factored,
    Matrix,
    Motion,
    TextSolver,
    cross,
    hookimpl,
)
from dyn_plugins.dense import SOLVER as DENSE


def aba(model, q, qd, tau, f_ext):
    """Give the accelerations that joint forces cause: articulated bodies, O(n).

        H(q) qdd + C(q, qd) = tau + sum_i J_i(q).T f_ext_i

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].
        qd: Joint velocities, nv [rad/s | m/s].
        tau: Joint forces, nv [N·m | N].
        f_ext: Force on each body, body coordinates [N·m; N].

    Returns:
        Joint accelerations qdd, nv [rad/s² | m/s²].

    Source: RBDA, Table 7.1; KIM, Table 3. A pivot at or below model.floors is a
    SingularError. Robots with followers are served by `dense`.
    """
    X, S, v, c = [None], [None], [Motion.zero()], [None]
    IA, pA = [I.articulated() for I in model.I], [model.I[0] @ Motion.zero()]
    for i in model.bodies:
        p, joint, I = model.parent[i], model.joint[i], model.I[i]
        vJ = joint.vJ(q[i], qd[i])
        S.append(joint.S(q[i]))
        X.append(joint.X(q[i]) @ model.Xtree[i])
        v.append(X[i] @ v[p] + vJ)
        c.append(joint.cJ(q[i], qd[i]) + cross(v[i], vJ))
        pA.append(cross(v[i], I @ v[i]) - f_ext[i])
    U, D, u = [None] * len(S), [None] * len(S), [None] * len(S)
    for i in reversed(model.bodies):
        p, joint = model.parent[i], f"joint {model.names[i]}"
        U[i] = IA[i] @ S[i]
        A = S[i].T @ U[i] + Matrix.diagonal(model.armature[i])
        D[i] = Factored(A, model.floors[i], [joint] * len(S[i])).inverse()
        u[i] = tau[i] - S[i].T @ pA[i]
        Ia = IA[i] - (U[i] @ D[i]) @ U[i].T
        pa = pA[i] + Ia @ c[i] + U[i] @ (D[i] @ u[i])
        IA[p] = IA[p] + X[i].T @ Ia @ X[i]
        pA[p] = pA[p] + X[i].T @ pa
    a, qdd = [-model.a_grav], [None]
    for i in model.bodies:
        a_free = X[i] @ a[model.parent[i]] + c[i]
        qdd.append(D[i] @ (u[i] - U[i].T @ a_free))
        a.append(a_free + S[i] @ qdd[i])
    return qdd


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    return [TextSolver("aba", FORWARD_DYNAMICS, aba, coupled=DENSE)]
