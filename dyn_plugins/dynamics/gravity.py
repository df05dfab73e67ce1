"""Gravity force: the joint forces that hold a robot still."""

from dyn_core.authoring import Force, TracedSolver, hookimpl
from dyn_core.problems import GRAVITY_FORCE


def gravity(model, q):
    """Return the joint forces that hold the robot still against gravity.

        g(q) = C(q, 0)   without joints driven by time

    The motion of driven joints is no part of g. With joint_springs=True g also balances
    the springs.

    Inputs and outputs: those of GRAVITY_FORCE; q and g by body, the base first; entry 0
    of g is None.

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
    """Return a list of the solvers of this file, for the Registry."""
    return [
        TracedSolver("gravity", GRAVITY_FORCE, gravity, regrouped=True, default=True)
    ]
