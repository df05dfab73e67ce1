"""Semi-implicit time step, projected on closed loops."""

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
from dyn_plugins.loops._least import DRIFTING, LeastLoops
from dyn_plugins.loops._loop_rows import rows_of
from dyn_plugins.loops._rank import factored_delassus
from dyn_plugins.loops.loops import constraint_forces
from dyn_plugins.steps.integration import semi_implicit_euler, time_after


def projected_euler(
    model, q, qd, tau, dt, f_ext, forward_dynamics, limit_stops, implicit
):
    """Return the state one semi-implicit step later, brought back to closed loops.

        q <- q (+) -H^-1 A.T G^-1 f,   qd <- qd - H^-1 A.T G^-1 A qd,   G = A H^-1 A.T

    One Newton step for positions and one for velocities, each the smallest in the
    metric of H. The remaining residual is of second order in the residual before. Rows
    that depend on each other are a SingularError.

    Inputs and outputs: those of STEP.

    Args:
        forward_dynamics: Slot of FORWARD_DYNAMICS.
        limit_stops: Whether spring-dampers act at the position limits.
        implicit: Whether friction and stops are evaluated at the end of the step, as in
            semi_implicit_euler.

    Source: KIM-3.0 (projection to the manifold), KIM-2.5.
    """
    q, qd = semi_implicit_euler(
        model, q, qd, tau, dt, f_ext, forward_dynamics, limit_stops, implicit
    )
    return projected(model, q, qd, dt, projection(model, "refuse"))


def projected_euler_least(
    model, q, qd, tau, dt, f_ext, forward_dynamics, limit_stops, implicit, tolerance
):
    """Return the step of projected_euler for loops with linearly dependent rows, too.

        q <- q (+) -H^-1 A.T G^+ f,   qd <- qd - H^-1 A.T G^+ A qd,   G = A H^-1 A.T

    Rows that contradict each other are no error: their squared residual is the least.

    Inputs and outputs: those of STEP.

    Args:
        forward_dynamics: Slot of FORWARD_DYNAMICS.
        limit_stops: Whether spring-dampers act at the position limits.
        implicit: Whether friction and stops are evaluated at the end of the step, as in
            semi_implicit_euler.
        tolerance: Relative tolerance of the rank; see aba_loops_least.

    Source: KIM-3.0 (redundant rows, projection to the manifold), KIM-2.5.
    """
    q, qd = semi_implicit_euler(
        model, q, qd, tau, dt, f_ext, forward_dynamics, limit_stops, implicit
    )
    return projected(model, q, qd, dt, projection(model, "least_norm", tolerance))


def projected(model, q, qd, dt, correct):
    """Return q and qd after a Newton step of each towards closed loops.

    Args:
        model: Robot; without loops, the state is returned unchanged.
        q, qd: State at the end of a step, nq and nv.
        dt: Step; driven frames get their poses at its end [s].
        correct: Function from `projection`.
    """
    if not model.loops:
        return q, qd
    model = with_parameters(model, time_after(model, dt))  # driven frames at the end
    rows = rows_of(model, q, qd, Vector.zeros(model.nv))
    correction = correct(model, q, rows)
    shift = correction([-row.f for row in rows])
    rate = correction([-row.rate for row in rows])
    return model.normalize(model.integrate(q, shift)), qd + rate


def projection(model, dependent, tolerance=DRIFTING):
    """Return a function correct(model, q, rows), which projects on closed loops.

    `correct` returns a function of changes of the rows, m. Its result is the smallest
    change of coordinates in the metric of H, nv, that causes these changes; to close
    loops, pass minus the residuals.

    Args:
        model: Robot.
        dependent: Treatment of rows that depend on each other: refuse: SingularError in
            the Program; least_norm: smallest residual.
        tolerance: Relative tolerance of the rank with least_norm; see aba_loops_least.
    """
    if dependent == "refuse":
        return _dense if needs_dense(model) else _tree

    def least(model, q, rows):
        loops = LeastLoops(model, q, rows, [False] * model.nv, tolerance)
        return lambda x: loops.solve(Vector.zeros(model.nv), Vector(x))[0]

    return least


def _tree(model, q, rows):
    """Return the correction function of `projection` by articulated inertias.

    A dependent row is a SingularError.
    """
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
    """Return the correction function of `projection` by dense algebra.

    For robots in which loops determine the motion of a body without inertia. A
    dependent row is a SingularError.
    """
    loops = DenseLoops(model, q, rows, [False] * model.nv)
    none = Vector.zeros(model.nv)
    return lambda residuals: loops.solve(none, Vector(residuals))[0]


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    options = {"limit_stops": False, "implicit": True}
    table = {"slots": {"forward_dynamics": FORWARD_DYNAMICS}, "by_joint": False}
    return [
        TracedSolver(
            "projected_euler",
            STEP,
            projected_euler,
            fills={"forward_dynamics": "aba_loops"},
            options=options,
            **table,
        ),
        TracedSolver(
            "projected_euler_least",
            STEP,
            projected_euler_least,
            fills={"forward_dynamics": "aba_loops_least"},
            options={**options, "tolerance": DRIFTING},
            **table,
        ),
    ]
