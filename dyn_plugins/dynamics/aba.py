"""Forward dynamics by the articulated-body algorithm."""

from dyn_core.authoring import Motion, TracedSolver, Vector, hookimpl, join_v
from dyn_core.problems import FORWARD_DYNAMICS
from dyn_plugins.dynamics._articulated import (
    accelerations_from_forces,
    articulated_joints,
    joint_inertia,
)
from dyn_plugins.dynamics.rnea import body_forces


def aba(model, q, qd, tau, f_ext):
    """Return the accelerations that joint forces cause: articulated bodies, O(n).

        H(q) qdd + C(q, qd) = tau + sum_i J_i(q).T f_ext_i

    A pivot at or below model.pivot_tolerances raises SingularError when the Program
    runs.

    Inputs and outputs: those of FORWARD_DYNAMICS; q, qd, tau, f_ext and qdd by body,
    the base first; entry 0 of qdd is an empty Vector.

    Source: RBDA, Table 7.1; KIM-2.2 (Table 3), taken about the motion with qdd = 0: its
    body forces are the bias pA, so no velocity product c is carried along. Mimic joints
    and gears are eliminated by cluster: TAZZ-5.2.
    """
    still = [Vector.zeros(len(x)) for x in qd]
    X, S, pA = body_forces(model, q, qd, still, f_ext)
    if model.coupled:
        joints, _ = articulated_joints(model, X, S)
        return accelerations_from_forces(model, joints, join_v(model, tau), pA).qdd
    IA = [I.articulated() for I in model.I]
    U, D, u = {}, {}, {}
    for i in reversed(model.bodies):
        p = model.parent[i]
        U[i] = IA[i] @ S[i]
        D[i] = joint_inertia(model, i, S[i].T @ U[i])
        u[i] = tau[i] - S[i].T @ pA[i]
        if p:
            Ia = IA[i].reduced(U[i], D[i], S[i], model.armature[i])
            pa = pA[i] + U[i] @ D[i].solve(u[i])
            IA[p] = IA[p] + X[i].T @ Ia @ X[i]
            pA[p] = pA[p] + X[i].T @ pa
    a, qdd = [Motion.zero()], [Vector(())]
    for i in model.bodies:
        a_p = X[i] @ a[model.parent[i]]
        qdd.append(D[i].solve(u[i] - U[i].T @ a_p))
        a.append(a_p + S[i] @ qdd[i])
    return qdd


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    return [TracedSolver("aba", FORWARD_DYNAMICS, aba, regrouped=True, default=True)]
