"""A step in maximal coordinates: every body by itself, then back onto the joints."""

from dyn_core import (
    FORWARD_DYNAMICS,
    STEP,
    Factored,
    Matrix,
    Motion,
    TextSolver,
    Transform,
    Vector,
    hookimpl,
    split_q,
    split_v,
    total,
)
from dyn_core.spatial.lie import exp_transform, log_transform
from dyn_plugins.motion import outward


def maximal_euler(model, q, qd, tau, dt, f_ext, forward_dynamics):
    """Give the state one step later, each body moved by its own acceleration.

        v_i' = v_i + dt a_i,   T_i' = T_i exp(dt v_i'),   then S u = log(T_J(q)^-1 T_J')

    The bodies drift apart at the joints by what the scheme errs; the drift is taken out
    by the nearest motion of each joint, least squares over its S, and so is that of the
    velocities. Joints that share a coordinate are fitted together.

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].
        qd: Joint velocities, nv [rad/s | m/s].
        tau: Joint forces, nv [N·m | N], constant over the step.
        dt: Step [s].
        f_ext: Force on each body, body coordinates [N·m; N].
        forward_dynamics: Slot.

    Returns:
        Next q, quaternions of unit length, and next qd.

    Source: TAZZ-3.6, its fourth step (section 2.4).
    """
    qdd = forward_dynamics(q, qd, tau, f_ext[1:])
    parts = split_q(model, q), split_v(model, qd), split_v(model, qdd)
    X, S, v, a = outward(model, *parts, Motion.zero())
    moved, T = [Motion.zero()], [Transform.identity()]
    for i in model.bodies:
        moved.append(v[i] + a[i] * dt)
        T.append(exp_transform(moved[i] * dt))
    shifts, rates = [None], [None]
    for i in model.bodies:
        p = model.parent[i]
        # How the joint's transform has changed: new X of the joint after the old one.
        X_new = T[i] @ X[i] @ T[p].inverse
        shifts.append(log_transform(X_new @ X[i].inverse))
        rates.append(moved[i] - X_new @ moved[p])
    q_next = model.normalize(model.integrate(q, _fitted(model, S, shifts)))
    there = split_q(model, q_next)
    S_next = [None, *(model.joint[i].S(there[i]) for i in model.bodies)]
    return q_next, _fitted(model, S_next, rates)


def _fitted(model, S, motions):
    """Give the coordinates whose motions S u are nearest to given ones."""
    found = [0.0] * model.nv
    for lead in model.independent:
        A, b = [], []
        for i in model.bodies:
            if model.leader[i].body == lead:
                ratio = model.leader[i].ratio
                J = S[i] if ratio is None else S[i] @ ratio
                A.append(Matrix([_dot(x, y) for y in J] for x in J))
                b.append(Vector(_dot(x, motions[i]) for x in J))
        items = [f"joint {model.names[lead]}"] * model.joint[lead].nv
        fit = Factored(total(A), [1e-12] * len(items), items).solve(total(b))
        found[model.v_slices[lead]] = fit
    return Vector(found)


def _dot(x, y):
    """Give the sum of the products of components."""
    return x.ang @ y.ang + x.lin @ y.lin


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    return [
        TextSolver(
            "maximal_euler",
            STEP,
            maximal_euler,
            slots={"forward_dynamics": FORWARD_DYNAMICS},
            fills={"forward_dynamics": "aba"},
            by_joint=False,
        )
    ]
