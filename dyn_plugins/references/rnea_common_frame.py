"""Inverse dynamics by the recursive Newton-Euler algorithm in base coordinates."""

from dyn_core.authoring import (
    Force,
    Motion,
    MotionSubspace,
    TracedSolver,
    Transform,
    cross,
    hookimpl,
)
from dyn_core.problems import INVERSE_DYNAMICS


def rnea_common_frame(model, q, qd, qdd, f_ext):
    """Return the joint forces of a motion: recursive Newton-Euler in base coordinates.

        v_i = v_p + S_i qd_i,   a_i = a_p + S_i qdd_i + S°_i qd_i + v_i x S_i qd_i
        f_i = I_i a_i + v_i x* I_i v_i - f_ext_i + sum_children f,   tau_i = S_i.T f_i

    S_i and I_i are transformed to the base, so that no vector is transformed from body
    to body. S°_i is the rate of S_i as seen from body i. Gravity is the acceleration
    a_0 = -g; armature_i qdd_i is added to tau_i.

    Inputs and outputs: those of INVERSE_DYNAMICS; q, qd, qdd, f_ext and tau by body,
    the base first; entry 0 of tau is None.

    Source: RBD5-3.2 (RBDA 5.7 to 5.11).
    """
    v, a, f = [Motion.zero()], [-model.a_grav], [Force.zero()]
    X, S, tau = [Transform.identity()], [None], [None]
    for i in model.bodies:
        p, joint = model.parent[i], model.joint[i]
        X.append(joint.X(q[i]) @ model.Xtree[i] @ X[p])
        up = X[i].inverse
        S.append(MotionSubspace(up @ s for s in joint.S(q[i])))
        vJ, cJ = up @ joint.vJ(q[i], qd[i]), up @ joint.cJ(q[i], qd[i])
        v.append(v[p] + vJ)
        a.append(a[p] + S[i] @ qdd[i] + cJ + cross(v[i], vJ))
        I = X[i].T @ model.I[i] @ X[i]
        f.append(I @ a[i] + cross(v[i], I @ v[i]) - X[i].T @ f_ext[i])
        tau.append(None)
    for i in reversed(model.bodies):
        p = model.parent[i]
        tau[i] = S[i].T @ f[i] + model.armature[i] * qdd[i]
        f[p] = f[p] + f[i]
    return tau


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    return [
        TracedSolver(
            "rnea_common_frame", INVERSE_DYNAMICS, rnea_common_frame, reference=True
        )
    ]
