"""Derivatives of a time step that is projected on closed loops."""

from dyn_core.authoring import Matrix, Vector, hookimpl, with_slopes
from dyn_core.problems import STEP_DERIVATIVES
from dyn_plugins.loops.loop_step import projected, projection
from dyn_plugins.steps._joint_blocks import displacement, moved, slope_columns
from dyn_plugins.steps.step_derivatives import (
    STEP_SLOTS,
    StepDerivativesSolver,
    multiplied,
    semi_implicit_euler_derivatives,
    sizes,
    slopes_by_parameters,
)


def projected_euler_derivatives(
    model, q, qd, tau, dt, f_ext, derivatives, by_parameters,
    limit_stops, implicit, paths,
):  # fmt: skip
    """Return a step of projected_euler and its derivatives.

        dx_next = A dx + B dtau + dx_dp dp,   dx = (dq, dqd)

    The derivatives of the semi-implicit step are multiplied by the derivatives of the
    projection, which are computed in forward mode; dq as in
    semi_implicit_euler_derivatives. Rows of loops that depend on each other are a
    SingularError. A robot without loops is not projected.

    Inputs and outputs: those of STEP_DERIVATIVES; f_ext by body, the base first.

    Args:
        derivatives: Solver of FD_DERIVATIVES.
        by_parameters: Solver of FD_PARAMETER_JACOBIAN; called only with paths.
        limit_stops: Whether spring-dampers act at the position limits.
        implicit: Whether friction and stops are evaluated at the end of the step, as in
            semi_implicit_euler.
        paths: Parameter paths of dp, one after another (model/parameter_paths.py).

    Source: chain rule over projected_euler.
    """
    q, qd, A, B, P = semi_implicit_euler_derivatives(
        model, q, qd, tau, dt, f_ext, derivatives, by_parameters,
        limit_stops, implicit, paths,
    )  # fmt: skip
    if not model.loops:
        return q, qd, A, B, P

    def end(robot, q, qd):
        q_next, qd_next = projected(robot, q, qd, dt, projection(robot, "refuse"))
        return Vector((*displacement(model, q_next), *qd_next))

    units = [Vector(row) for row in Matrix.identity(model.nv).rows]
    columns = [end(model, moved(model, q, u), qd) for u in units]
    columns += [end(model, q, with_slopes(qd, u)) for u in units]
    J = slope_columns(columns, 2 * model.nv)
    if paths:
        P = multiplied(J, P) + slopes_by_parameters(
            model, paths, lambda robot: end(robot, q, qd)
        )
    q_next, qd_next = projected(model, q, qd, dt, projection(model, "refuse"))
    return q_next, qd_next, multiplied(J, A), multiplied(J, B), P


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    return [
        StepDerivativesSolver(
            "projected_euler_derivatives",
            STEP_DERIVATIVES,
            projected_euler_derivatives,
            slots=STEP_SLOTS,
            fills={"derivatives": "auto", "by_parameters": "auto"},
            options={"limit_stops": False, "implicit": True, "paths": ()},
            sizes=sizes,
            by_joint=False,
            closes_loops=True,
        ),
    ]
