"""A step in maximal coordinates: independent bodies, then projection on the joints."""

from dyn_core.authoring import (
    Factored,
    Matrix,
    Motion,
    TracedSolver,
    Transform,
    Vector,
    hookimpl,
    split_q,
    split_v,
    total,
)
from dyn_core.problems import FORWARD_DYNAMICS, STEP
from dyn_core.spatial.lie import exp_transform, log_transform
from dyn_plugins.kinematics.body_motion import outward


def maximal_euler(model, q, qd, tau, dt, f_ext, forward_dynamics):
    """Return the state one step later, each body moved by its own acceleration.

        v_i' = v_i + dt a_i,   T_i' = T_i exp(dt v_i'),   then S u = log(T_J(q)^-1 T_J')

    T_J is the transform of a joint, S its motion subspace. The error of the scheme
    violates the joint constraints; a least-squares projection on S removes it from
    positions and velocities. Joints that share a coordinate are fitted together.
    Linearly dependent columns of S raise SingularError when the Program runs; errors of
    forward_dynamics pass through.

    Inputs and outputs: those of STEP; f_ext by body, the base first.

    Args:
        forward_dynamics: Solver of FORWARD_DYNAMICS.

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
        # Change of the joint's transform: its new X times the inverse of the old one.
        X_new = T[i] @ X[i] @ T[p].inverse
        shifts.append(log_transform(X_new @ X[i].inverse))
        rates.append(moved[i] - X_new @ moved[p])
    q_next = model.normalize(model.integrate(q, _fitted(model, S, shifts)))
    there = split_q(model, q_next)
    S_next = [None, *(model.joint[i].S(there[i]) for i in model.bodies)]
    return q_next, _fitted(model, S_next, rates)


def _fitted(model, S, motions):
    """Return the coordinates u, nv, with S u nearest to `motions`, in least squares."""
    u = [0.0] * model.nv
    for lead in model.independent:
        A, b = [], []
        for i in model.bodies:
            if model.leader[i].body == lead:
                ratio = model.leader[i].ratio
                J = S[i] if ratio is None else S[i] @ ratio
                A.append(Matrix([_dot(x, y) for y in J] for x in J))
                b.append(Vector(_dot(x, motions[i]) for x in J))
        names = [f"joint {model.names[lead]}"] * model.joint[lead].nv
        fit = Factored(total(A), [1e-12] * len(names), names).solve(total(b))
        u[model.v_slices[lead]] = fit
    return Vector(u)


def _dot(x, y):
    """Return the sum of products of the components of two Motions."""
    return x.ang @ y.ang + x.lin @ y.lin


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    return [
        TracedSolver(
            "maximal_euler",
            STEP,
            maximal_euler,
            slots={"forward_dynamics": FORWARD_DYNAMICS},
            fills={"forward_dynamics": "aba"},
            by_joint=False,
            reference=True,
        )
    ]
