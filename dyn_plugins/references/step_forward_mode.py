"""Derivatives of any step by forward mode: the step on Taylor numbers.

The step runs unchanged, through the adapter, once for each direction.
"""

from dyn_core.authoring import Matrix, Vector, hookimpl, value_of, with_slopes
from dyn_core.model import parameter_paths
from dyn_core.problems import STEP, STEP_DERIVATIVES
from dyn_plugins.steps._joint_blocks import displacement, moved, slope_columns
from dyn_plugins.steps.step_derivatives import StepDerivativesSolver, sizes


def step_derivatives_forward_mode(model, q, qd, tau, dt, f_ext, step, paths):
    """Return a step and its derivatives: the step on Taylor numbers.

        step(x + eps dx, tau + eps dtau) = x_next + eps (A dx + B dtau)

    dx_dp, the derivative by parameters, is found in the same way. The results are
    q_next, qd_next, A, B and dx_dp; dx = (dq, dqd), dq in the tangent space.

    Inputs and outputs: those of STEP_DERIVATIVES; f_ext by body, the base first.

    Args:
        step: Solver of STEP; its errors pass through.
        paths: Parameter paths of dp, one after another (model/parameter_paths). When
            the Program is built, an unknown one raises ModelError, one without a
            derivative UnsupportedError.

    Source: KIM-4.1 number by number.
    """

    def along(q, qd, tau, **changed):
        q_next, qd_next = step(q, qd, tau, dt, f_ext[1:], **changed)
        return Vector((*displacement(model, q_next), *qd_next))

    units = [Vector(row) for row in Matrix.identity(model.nv).rows]
    columns = [along(moved(model, q, u), qd, tau) for u in units]
    columns += [along(q, with_slopes(qd, u), tau) for u in units]
    A = slope_columns(columns, 2 * model.nv)
    B = [along(q, qd, with_slopes(tau, u)) for u in units]
    P = []
    for path in paths:
        numbers = parameter_paths.numbers(model, path)
        for unit in Matrix.identity(len(numbers)).rows:
            P.append(along(q, qd, tau, **{path: with_slopes(numbers, unit)}))
    q_next, qd_next = step(q, qd, tau, dt, f_ext[1:])
    results = A, *(slope_columns(x, 2 * model.nv) for x in (B, P))
    return value_of(q_next), value_of(qd_next), *results


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    return [
        StepDerivativesSolver(
            "step_derivatives_forward_mode",
            STEP_DERIVATIVES,
            step_derivatives_forward_mode,
            slots={"step": STEP},
            fills={"step": "semi_implicit_euler"},
            options={"paths": ()},
            sizes=sizes,
            by_joint=False,
            reference=True,
        )
    ]
