"""Gravity force: what holding still takes."""

from dyn_core import GRAVITY_FORCE, Force, TextSolver, hookimpl


def gravity(model, q):
    """Give the joint forces that hold the robot still against gravity.

        g(q) = C(q, 0)

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].

    Returns:
        Gravity force g, nv [N·m | N].

    Source: RBDA, (5.12), (5.13); RBD5-3.6.
    """
    a, f, X = [-model.a_grav], [Force.zero()], [None]
    for i in model.bodies:
        X.append(model.joint[i].X(q[i]) @ model.Xtree[i])
        a.append(X[i] @ a[model.parent[i]])
        f.append(model.I[i] @ a[i])
    g = [None] * len(f)
    for i in reversed(model.bodies):
        p = model.parent[i]
        g[i] = model.joint[i].S(q[i]).T @ f[i]
        f[p] = f[p] + X[i].T @ f[i]
    return g


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    return [TextSolver("gravity", GRAVITY_FORCE, gravity, regrouped=True)]
