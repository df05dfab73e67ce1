"""Joint-space inertia by the composite-rigid-body algorithm."""

from dyn_core import MASS_MATRIX, Matrix, TextSolver, hookimpl


def crba(model, q):
    """Give the joint-space inertia matrix.

        kinetic = qd.T H(q) qd / 2

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].

    Returns:
        Blocks H[i, j] of bodies i and their ancestors j; together H, nv x nv,
        symmetric positive definite [kg·m² | kg].

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
    return [TextSolver("crba", MASS_MATRIX, crba, regrouped=True)]
