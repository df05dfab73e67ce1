"""Forward dynamics by the articulated-body algorithm."""

from dyn_core import (
    FORWARD_DYNAMICS,
    Factored,
    Matrix,
    Motion,
    TextSolver,
    Vector,
    hookimpl,
)
from dyn_plugins.dense import SOLVER as DENSE
from dyn_plugins.rnea import body_forces


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

    Source: RBDA, Table 7.1; KIM, Table 3, taken about the motion with qdd = 0: its body
    forces are the bias, so no velocity product is carried along. A pivot at or below
    model.floors is a SingularError. Robots with followers are served by `dense`.
    """
    still = [Vector.zeros(len(x)) for x in qd]
    X, S, pA = body_forces(model, q, qd, still, f_ext)
    IA = [I.articulated() for I in model.I]
    U, D, u = [None] * len(S), [None] * len(S), [None] * len(S)
    for i in reversed(model.bodies):
        p, joint = model.parent[i], f"joint {model.names[i]}"
        U[i] = IA[i] @ S[i]
        A = S[i].T @ U[i] + Matrix.diagonal(model.armature[i])
        D[i] = Factored(A, model.floors[i], [joint] * len(S[i]))
        u[i] = tau[i] - S[i].T @ pA[i]
        if p:
            Ia = IA[i].reduced(U[i], D[i].inverse(), S[i], model.armature[i])
            IA[p] = IA[p] + X[i].T @ Ia @ X[i]
            pA[p] = pA[p] + X[i].T @ (pA[i] + U[i] @ D[i].solve(u[i]))
    a, qdd = [Motion.zero()], [None]
    for i in model.bodies:
        a_free = X[i] @ a[model.parent[i]]
        qdd.append(D[i].solve(u[i] - U[i].T @ a_free))
        a.append(a_free + S[i] @ qdd[i])
    return qdd


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    return [TextSolver("aba", FORWARD_DYNAMICS, aba, coupled=DENSE, regrouped=True)]
