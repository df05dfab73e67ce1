"""Coriolis matrix of a tree of bodies."""

from dyn_core.authoring import (
    Motion,
    TracedSolver,
    VelocityProduct,
    cross,
    hookimpl,
    slope_of,
    with_slopes,
)
from dyn_core.problems import CORIOLIS_MATRIX
from dyn_plugins.dynamics._ancestor_blocks import ancestor_blocks


def coriolis_matrix(model, q, qd):
    """Return the Coriolis matrix.

        Cm(q, qd) qd = c(q, qd),   dH/dt = Cm + Cm.T
        Cm = sum_i J_i.T (I_i dJ_i/dt + B_i J_i)
        B_i = (v_i x* I_i - I_i v_i x + (I_i v_i) x~*) / 2,   (f x~*) m = m x* f

    Many matrices have the first two properties. This one is made of Christoffel's
    symbols of H, so it is linear in qd and Cm(q, a) b = Cm(q, b) a for any velocities
    a, b of joints with qd = dq/dt. For joints with quaternions, whose qd is a body
    velocity, the difference is H, without armature, times the Lie bracket of a and b.
    With joints driven by time, dH/dt = Cm + Cm.T holds, and c is Cm qd plus the forces
    that the driven motion needs.

    Inputs and outputs: those of CORIOLIS_MATRIX; q and qd by body, the base first.

    Returns:
        Dict of the blocks of Cm by pair (i, j) of bodies of which one is an ancestor of
        the other, or i = j.

    Source: S. Echeandia and P. Wensing, Numerical methods to compute the Coriolis
    matrix and Christoffel symbols for rigid-body systems, 2021, Algorithm 1; here in
    body coordinates, and for joints whose S depends on q.
    """
    X, S, S_dot, v = [None], [None], [None], [Motion.zero()]
    IC, BC = list(model.I), [None]
    for i in model.bodies:
        joint = model.joint[i]
        S.append(joint.S(q[i]))
        X.append(joint.X(q[i]) @ model.Xtree[i])
        v.append(X[i] @ v[model.parent[i]] + joint.vJ(q[i], qd[i]))
        S_dot.append(cross(v[i], S[i]) + apparent_rate(joint, q[i], qd[i]))
        BC.append(VelocityProduct.of(model.I[i], v[i] * 0.5))
    carried, carried_v, above = ([None] * (model.nb + 1) for _ in range(3))
    for i in reversed(model.bodies):
        p = model.parent[i]
        carried[i], carried_v[i] = IC[i] @ S[i], BC[i].T @ S[i]
        above[i] = IC[i] @ S_dot[i] + BC[i] @ S[i]
        if p > 0:
            IC[p] = IC[p] + X[i].T @ IC[i] @ X[i]
            BC[p] = BC[p] + X[i].T @ BC[i] @ X[i]
    Cm, transposed = ancestor_blocks(
        model, X, [(carried, S_dot), (carried_v, S)], [(above, S)]
    )
    for i, j in transposed:
        if i != j:
            Cm[j, i] = transposed[i, j].T
    return Cm


def apparent_rate(joint, q, qd):
    """Return dS/dt of a joint as seen from the moving body, body coordinates."""
    return slope_of(joint.S(with_slopes(q, joint.position_rate(q, qd))))


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    return [
        TracedSolver(
            "coriolis_matrix", CORIOLIS_MATRIX, coriolis_matrix, regrouped=True
        )
    ]
