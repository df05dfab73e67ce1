"""A step in time that ends on closed loops."""

from dyn_core import (
    FORWARD_DYNAMICS,
    STEP,
    Factored,
    Motion,
    TextSolver,
    Vector,
    hookimpl,
    join_v,
    split_q,
    split_v,
)
from dyn_plugins._loop_rows import rows_of
from dyn_plugins.aba import articulated, respond
from dyn_plugins.integration import semi_implicit_euler
from dyn_plugins.loops import RANK, felt_rows, pushed
from dyn_plugins.motion import outward
from dyn_plugins.response import meet


def projected_euler(
    model, q, qd, tau, dt, f_ext, forward_dynamics, limit_stops, implicit
):
    """Give the state one semi-implicit step later, brought back to closed loops.

        q <- q (+) -H^-1 A.T G^-1 f,   qd <- qd - H^-1 A.T G^-1 A qd,   G = A H^-1 A.T

    One Newton step for positions and one for velocities, nearest in the metric of H:
    what is left of a residual is of second order in it.

    Args:
        model: Robot with loops.
        q: Joint positions, nq [rad | m].
        qd: Joint velocities, nv [rad/s | m/s].
        tau: Joint forces, nv [N·m | N], constant over the step.
        dt: Step [s].
        f_ext: Force on each body, body coordinates [N·m; N].
        forward_dynamics: Slot.
        limit_stops, implicit: As semi_implicit_euler takes them.

    Returns:
        Next q, quaternions of unit length, and next qd.

    Source: KIM-3.0 (projection to the manifold), KIM-2.5.
    """
    q, qd = semi_implicit_euler(
        model, q, qd, tau, dt, f_ext, forward_dynamics, limit_stops, implicit
    )
    if not model.loops:
        return q, qd
    still = Vector.zeros(model.nv)
    rows = rows_of(model, q, qd, still)
    parts = split_q(model, q), split_v(model, qd), split_v(model, still)
    X, S, _, _ = outward(model, *parts, Motion.zero())
    felt, _ = articulated(model, X, S)
    G = meet(felt, felt_rows(model, felt, rows))
    floors = [G[k, k] * RANK for k in range(len(rows))]
    factors = Factored(G, floors, [row.name for row in rows])

    def correction(residuals):
        forces, pulls = pushed(model, rows, factors.solve(residuals))
        moved, _, _ = respond(model, felt, pulls, [-f for f in forces])
        return join_v(model, moved)

    shift = correction([-row.f for row in rows])
    rate = correction([-row.rate for row in rows])
    return model.normalize(model.integrate(q, shift)), qd + rate


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    return [
        TextSolver(
            "projected_euler",
            STEP,
            projected_euler,
            slots={"forward_dynamics": FORWARD_DYNAMICS},
            fills={"forward_dynamics": "aba_loops"},
            options={"limit_stops": False, "implicit": True},
            by_joint=False,
        )
    ]
