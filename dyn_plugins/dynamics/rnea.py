"""Inverse dynamics by the recursive Newton-Euler algorithm, in two forms."""

from dyn_core.authoring import (
    Force,
    Matrix,
    Motion,
    TracedSolver,
    Vector,
    cross,
    cross3,
    hookimpl,
    rotation_rates,
)
from dyn_core.problems import INVERSE_DYNAMICS


def body_forces(model, q, qd, qdd, f_ext, a_0=None):
    """Return the force needed for each body's motion: outward sweep, classical form.

        f = m a + U h,  n = h x a + vee(U P - (U P).T),  U = [alpha] + [w][w]

    h and P are the integrals of r and r r.T over the mass; w and alpha are angular
    velocity and acceleration. Accelerations are classical, of points: a_r = a + U r. No
    body needs its linear velocity, and U serves the body and all its children. Across a
    joint the classical acceleration changes by its spatial one, plus 2 w x v + w_J x
    v_J.

    Arguments are by body; f_ext is in body coordinates [N·m; N]; a_0 [m/s²] is of the
    base, None: minus gravity, which adds the weight. Returns three lists by body: X
    from the parent, S, and the force of the body alone, without its children, needed in
    addition to f_ext, body coordinates [N·m; N].

    Source: RBD5-4.1 (Luh, Walker and Paul 1980), for trees of any joints; RBD5-3.5.
    """
    a_0 = -model.a_grav.lin if a_0 is None else a_0
    w, alpha, a = [Vector.zeros(3)], [Vector.zeros(3)], [a_0]
    U, f, X, S = [Matrix.zeros(3, 3)], [Force.zero()], [None], [None]
    for i in model.bodies:
        p, joint = model.parent[i], model.joint[i]
        S.append(joint.S(q[i]))
        X.append(joint.X(q[i]) @ model.Xtree[i])
        vJ, aJ = joint.vJ(q[i], qd[i]), S[i] @ qdd[i] + joint.cJ(q[i], qd[i])
        E, r = X[i].E, X[i].r
        w_p = E @ w[p]
        w.append(w_p + vJ.ang)
        alpha.append(E @ alpha[p] + aJ.ang + cross3(w_p, vJ.ang))
        slide = cross3(w_p, vJ.lin) * 2.0 + cross3(vJ.ang, vJ.lin)
        a.append(E @ (a[p] + U[p] @ r) + aJ.lin + slide)
        U.append(rotation_rates(w[i], alpha[i]))
        f.append(model.I[i].force_of(a[i], U[i]) - f_ext[i])
    return X, S, f


def rnea(model, q, qd, qdd, f_ext):
    """Return the joint forces of a motion: recursive Newton-Euler, classical form.

        tau = H(q) qdd + C(q, qd) - sum_i J_i(q).T f_ext_i

    H has the armatures; C includes gravity, but neither friction nor springs. Forces of
    followers are not added to their leaders'.
    Inputs and outputs: those of INVERSE_DYNAMICS; q, qd, qdd, f_ext and tau by body,
    the base first; entry 0 of tau is None.

    Source: RBD5-3.1, RBD5-4.1 (Luh, Walker and Paul 1980); KIM-2.1, whose spatial
    accelerations are classical ones here; see body_forces.
    """
    X, S, f = body_forces(model, q, qd, qdd, f_ext)
    tau = [None] * len(f)
    for i in reversed(model.bodies):
        p = model.parent[i]
        tau[i] = S[i].T @ f[i] + model.armature[i] * qdd[i]
        f[p] = f[p] + X[i].T @ f[i]
    return tau


def rnea_spatial(model, q, qd, qdd, f_ext):
    """Return the joint forces of a motion: recursive Newton-Euler, spatial form.

        tau = H(q) qdd + C(q, qd) - sum_i J_i(q).T f_ext_i

    Inputs and outputs: those of INVERSE_DYNAMICS; q, qd, qdd, f_ext and tau by body,
    the base first; entry 0 of tau is None. f_ext: a Force for each body, body
    coordinates; entry 0 is not read. Forces of followers are not added to their
    leaders'; H has the armatures, C includes gravity, but neither friction nor springs.

    Source: RBDA, Table 5.1; RBD5-3.3, RBD5-3.5, RBD5-3.7; KIM-2.1 (35)-(42), Table 2.
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
    """Return a list of the solvers of this file, for the Registry."""
    return [
        TracedSolver("rnea", INVERSE_DYNAMICS, rnea, regrouped=True, default=True),
        TracedSolver("rnea_spatial", INVERSE_DYNAMICS, rnea_spatial),
    ]
