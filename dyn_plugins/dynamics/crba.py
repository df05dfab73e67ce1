"""Joint-space inertia by the composite-rigid-body algorithm."""

from dyn_core.authoring import Matrix, TracedSolver, hookimpl
from dyn_core.problems import MASS_MATRIX


def crba(model, q):
    """Return the joint-space inertia matrix.

        kinetic = qd.T H(q) qd / 2

    Inputs and outputs: those of MASS_MATRIX.

    Returns:
        Blocks H[i, j] of bodies i and their ancestors j.

    Source: RBDA, Table 6.2.
    """
    X, S, Icomp = [None], [None], list(model.I)
    for i in model.bodies:
        X.append(model.joint[i].X(q[i]) @ model.Xtree[i])
        S.append(model.joint[i].S(q[i]))
    H = {}
    for i in reversed(model.bodies):
        p = model.parent[i]
        F = Icomp[i] @ S[i]
        H[i, i] = S[i].T @ F + Matrix.diagonal(model.armature[i])
        Icomp[p] = Icomp[p] + X[i].T @ Icomp[i] @ X[i]
        j = i
        while model.parent[j] > 0:
            F = type(F)(X[j].T @ column for column in F)
            j = model.parent[j]
            H[i, j] = (S[j].T @ F).T
    return H


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    return [TracedSolver("crba", MASS_MATRIX, crba, regrouped=True)]
