"""Joint-space inertia by the composite-rigid-body algorithm."""

from dyn_core.authoring import Matrix, TracedSolver, hookimpl
from dyn_core.problems import MASS_MATRIX
from dyn_plugins.dynamics._ancestor_blocks import ancestor_blocks


def crba(model, q):
    """Return the joint-space inertia matrix, with the armatures of the joints.

        kinetic = qd.T H(q) qd / 2   without joints driven by time

    Inputs and outputs: those of MASS_MATRIX; q by body, the base first.

    Returns:
        Dict of the blocks H[i, j], by body i and body j: i itself or an ancestor.

    Source: RBDA, Table 6.2.
    """
    X, S, Icomp = [None], [None], list(model.I)
    for i in model.bodies:
        X.append(model.joint[i].X(q[i]) @ model.Xtree[i])
        S.append(model.joint[i].S(q[i]))
    F = [None] * (model.nb + 1)
    for i in reversed(model.bodies):
        p = model.parent[i]
        F[i] = Icomp[i] @ S[i]
        Icomp[p] = Icomp[p] + X[i].T @ Icomp[i] @ X[i]
    (H,) = ancestor_blocks(model, X, [(F, S)])
    for i in model.bodies:
        if model.joint[i].nv:
            H[i, i] = H[i, i] + Matrix.diagonal(model.armature[i])
    return H


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    return [TracedSolver("crba", MASS_MATRIX, crba, regrouped=True, default=True)]
