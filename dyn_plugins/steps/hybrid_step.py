"""A time step with given accelerations of some joints."""

from dyn_core.authoring import (
    TracedSolver,
    Vector,
    advance,
    friction_slope,
    hookimpl,
    rate_in_initial_axes,
    where,
)
from dyn_core.problems import HYBRID_DYNAMICS_MASKED, HYBRID_STEP
from dyn_plugins.dynamics.hybrid import in_order, prescribed_coordinates, spread
from dyn_plugins.steps.integration import stop_force


def hybrid_euler(
    model, q, qd, qdd_u, tau, dt, f_ext, hybrid_dynamics, prescribed, limit_stops
):
    """Return the state one step later where some joints follow given accelerations.

        (tau_u, qdd_v) = HD(q, qd, qdd_u, tau_v),   qd_next = qd + dt qdd
        q_next = q (+) dt qd_next

    Friction and stops of the other joints are implicit: they are evaluated at the end
    of the step, to first order. Friction of the prescribed joints is explicit. The
    third result is the joint forces, nv: computed ones of prescribed joints, the input
    tau elsewhere. An invalid entry of `prescribed` raises UnsupportedError or
    ModelError when the Program is built; a singular inertia of the other joints, and
    with limit_stops a swing of pi of a limited ball joint, SingularError when it runs.

    Inputs and outputs: those of HYBRID_STEP; qdd_u has the prescribed coordinates
    alone, in the order of qd; f_ext by body, the base first.

    Args:
        hybrid_dynamics: Solver of HYBRID_DYNAMICS_MASKED; hybrid_mask_loops for robots
            with loops.
        prescribed: Names of joints whose acceleration is given, or pairs (joint, index
            of its coordinate); see hybrid.
        limit_stops: Whether spring-dampers act at the limits of the other joints.

    Source: KIM-2.3, KIM-2.5.
    """
    mask = prescribed_coordinates(model, prescribed)
    qdd, _ = spread(mask, qdd_u, [0.0] * (model.nv - sum(mask)))
    K, B = Vector.zeros(model.nv), friction_slope(model, qd)
    push = tau
    if limit_stops:
        force, K, damping = stop_force(model, q, qd)
        push, B = tau + force, B + damping
    push = push - K * qd * dt
    slopes = (B + K * dt) * dt
    rotors = Vector(where(rigid, 0.0, x) for rigid, x in zip(mask, slopes, strict=True))
    armature = Vector(x for i in model.independent for x in model.armature[i]) + rotors
    flags = Vector(float(rigid) for rigid in mask)
    forces, qdd = hybrid_dynamics(q, qd, flags, qdd, push, f_ext[1:], armature=armature)
    qd_end = qd + rate_in_initial_axes(model, qd, qdd) * dt
    q_next, qd_next = advance(model, q, qd_end, dt)
    triples = zip(mask, forces, tau, strict=True)
    return q_next, qd_next, Vector(where(rigid, x, y) for rigid, x, y in triples)


def _sizes(model, options):
    return {"nu": sum(prescribed_coordinates(model, options["prescribed"]))}


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    return [
        TracedSolver(
            "hybrid_euler",
            HYBRID_STEP,
            hybrid_euler,
            slots={"hybrid_dynamics": HYBRID_DYNAMICS_MASKED},
            fills={"hybrid_dynamics": "auto"},
            options={"prescribed": (), "limit_stops": False},
            valid={"prescribed": in_order},
            sizes=_sizes,
            by_joint=False,
            default=True,
        )
    ]
