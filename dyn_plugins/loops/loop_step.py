"""A step in time that ends on closed loops."""

from dyn_core.authoring import (
    Motion,
    TracedSolver,
    Vector,
    hookimpl,
    join_v,
    split_q,
    split_v,
    with_parameters,
)
from dyn_core.problems import FORWARD_DYNAMICS, STEP
from dyn_plugins.dynamics._articulated import (
    accelerations_from_forces,
    articulated_joints,
)
from dyn_plugins.kinematics.motion import outward
from dyn_plugins.loops._dense import DenseLoops, needs_dense
from dyn_plugins.loops._loop_rows import rows_of
from dyn_plugins.loops._rank import factored_delassus
from dyn_plugins.loops.loops import constraint_forces
from dyn_plugins.steps.integration import semi_implicit_euler, time_after


def projected_euler(
    model, q, qd, tau, dt, f_ext, forward_dynamics, limit_stops, implicit
):
    """Return the state one semi-implicit step later, brought back to closed loops.

        q <- q (+) -H^-1 A.T G^-1 f,   qd <- qd - H^-1 A.T G^-1 A qd,   G = A H^-1 A.T

    One Newton step for positions and one for velocities, nearest in the metric of H:
    what is left of a residual is of second order in it.

    Inputs and outputs: those of STEP.

    Args:
        forward_dynamics: Slot.
        limit_stops, implicit: As semi_implicit_euler takes them.

    Source: KIM-3.0 (projection to the manifold), KIM-2.5.
    """
    q, qd = semi_implicit_euler(
        model, q, qd, tau, dt, f_ext, forward_dynamics, limit_stops, implicit
    )
    if not model.loops:
        return q, qd
    model = with_parameters(model, time_after(model, dt))  # the end's driven places
    rows = rows_of(model, q, qd, Vector.zeros(model.nv))
    correction = _dense(model, q, rows) if needs_dense(model) else _tree(model, q, rows)
    shift = correction([-row.f for row in rows])
    rate = correction([-row.rate for row in rows])
    return model.normalize(model.integrate(q, shift)), qd + rate


def _tree(model, q, rows):
    """Return the function of residuals that gives the change which makes them."""
    still = split_v(model, Vector.zeros(model.nv))
    X, S, _, _ = outward(model, split_q(model, q), still, still, Motion.zero())
    joints, _ = articulated_joints(model, X, S)
    factors = factored_delassus(model, joints, rows)

    def correction(residuals):
        forces, pulls = constraint_forces(model, rows, factors.solve(residuals))
        push = [-f for f in forces]
        return join_v(model, accelerations_from_forces(model, joints, pulls, push).qdd)

    return correction


def _dense(model, q, rows):
    """Return the same for a robot in which loops move a body without inertia."""
    loops = DenseLoops(model, q, rows, [False] * model.nv)
    none = Vector.zeros(model.nv)
    return lambda residuals: loops.solve(none, Vector(residuals))[0]


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    return [
        TracedSolver(
            "projected_euler",
            STEP,
            projected_euler,
            slots={"forward_dynamics": FORWARD_DYNAMICS},
            fills={"forward_dynamics": "aba_loops"},
            options={"limit_stops": False, "implicit": True},
            by_joint=False,
        )
    ]
