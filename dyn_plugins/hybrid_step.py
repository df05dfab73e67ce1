"""A step in time with given accelerations of some joints."""

from dyn_core import (
    HYBRID_STEP,
    TextSolver,
    Vector,
    advance,
    friction_slope,
    hookimpl,
    start_axes,
)
from dyn_core.scalar import where
from dyn_plugins.hybrid import mixed, prescribed_coordinates
from dyn_plugins.integration import stop_force


def hybrid_euler(model, q, qd, qdd_u, tau, dt, f_ext, prescribed, limit_stops):
    """Give the state one step later where some joints follow given accelerations.

        (tau_u, qdd_v) = HD(q, qd, qdd_u, tau_v),   qd_next = qd + dt qdd
        q_next = q (+) dt qd_next

    The slopes of friction and stops are left to the size of the step for joints that
    are given; the others' friction counts at the end of the step, to first order.

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].
        qd: Joint velocities, nv [rad/s | m/s].
        qdd_u: Given accelerations, in the order of the coordinates [rad/s² | m/s²].
        tau: Joint forces, nv, read for the other coordinates [N·m | N].
        dt: Step [s].
        f_ext: Force on each body, body coordinates [N·m; N].
        prescribed: As hybrid takes them.
        limit_stops: Whether spring-dampers act at the limits of the other joints.

    Returns:
        Next q, quaternions of unit length; next qd; and the joint forces, nv, that the
        given accelerations take.

    Source: KIM-2.3, KIM-2.5.
    """
    held = prescribed_coordinates(model, prescribed)
    u = iter(qdd_u)
    given = Vector(next(u) if h else 0.0 for h in held)
    K, B = Vector.zeros(model.nv), friction_slope(model, qd)
    push = tau
    if limit_stops:
        force, K, damping = stop_force(model, q, qd)
        push, B = tau + force, B + damping
    push = push - K * qd * dt
    more = (B + K * dt) * dt
    more = Vector(where(h, 0.0, x) for h, x in zip(held, more, strict=True))
    taken, qdd = mixed(model, q, qd, held, given, push, f_ext, more)
    u = qd + start_axes(model, qd, qdd) * dt
    q_next, qd_next = advance(model, q, u, dt)
    pairs = zip(held, taken, tau, strict=True)
    return q_next, qd_next, Vector(where(h, x, y) for h, x, y in pairs)


def _sizes(model, options):
    return {"nu": sum(prescribed_coordinates(model, options["prescribed"]))}


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    return [
        TextSolver(
            "hybrid_euler",
            HYBRID_STEP,
            hybrid_euler,
            options={"prescribed": (), "limit_stops": False},
            sizes=_sizes,
            by_joint=False,
        )
    ]
