"""Derivatives of a time step that is projected on closed loops.

m is the number of the rows of all loops.
"""

from dyn_core.authoring import (
    Force,
    Matrix,
    Vector,
    hookimpl,
    join_matrix,
    join_slopes,
    product,
    split_q,
    split_v,
    with_parameters,
)
from dyn_core.model.loops import loop_constraints
from dyn_core.problems import STEP_DERIVATIVES
from dyn_plugins.derivatives.first_derivatives import id_derivatives
from dyn_plugins.dynamics.crba import crba
from dyn_plugins.loop_derivatives._implicit import Saddle
from dyn_plugins.loop_derivatives._loop_slopes import slopes_of_loops
from dyn_plugins.loops._loop_rows import rows_of
from dyn_plugins.loops.loop_step import projected, projection
from dyn_plugins.loops.loops import constraint_forces
from dyn_plugins.steps._joint_blocks import displacement
from dyn_plugins.steps.integration import time_after
from dyn_plugins.steps.step_derivatives import (
    STEP_SLOTS,
    StepDerivativesSolver,
    columns,
    euler_slopes,
    multiplied,
    semi_implicit_euler_derivatives,
    sizes,
    slopes_by_parameters,
    slopes_of_integrate,
    stacked,
)


def projected_euler_derivatives(
    model, q, qd, tau, dt, f_ext, derivatives, by_parameters,
    limit_stops, implicit, paths,
):  # fmt: skip
    """Return a step of projected_euler and its derivatives.

        dx_next = A dx + B dtau + dx_dp dp,   dx = (dq, dqd)

    The results are q_next, qd_next, A, B and dx_dp. The derivatives of the
    semi-implicit step are multiplied by the derivatives of the projection, which are
    found implicitly; dq as in semi_implicit_euler_derivatives. Rows of loops that
    depend on each other, and a singular inertia, are a SingularError; an invalid path
    raises UnsupportedError or ModelError when built. A robot without loops is not
    projected.

    Inputs and outputs: those of STEP_DERIVATIVES; f_ext by body, the base first.

    Args:
        derivatives: Solver of FD_DERIVATIVES.
        by_parameters: Solver of FD_PARAMETER_JACOBIAN; called only with paths.
        limit_stops: Whether spring-dampers act at the position limits.
        implicit: Whether friction and stops are evaluated at the end of the step, as in
            semi_implicit_euler.
        paths: Parameter paths of dp, one after another (model/parameter_paths.py).

    Source: chain rule over projected_euler; see _projected_slopes.
    """
    step = (
        model, q, qd, tau, dt, f_ext, derivatives, by_parameters,
        limit_stops, implicit, paths,
    )  # fmt: skip
    if not model.loops:
        return semi_implicit_euler_derivatives(*step)
    q, qd, slopes = euler_slopes(*step)
    (q_q, q_v, q_a), (v_q, v_v, v_a), (Q, V, Hinv, P) = slopes
    q_next, qd_next, (J_qq, J_vq, J_vv) = _projected_slopes(model, q, qd, dt)
    lead = stacked([[J_qq @ q_a], [J_vq @ q_a + J_vv @ v_a]])
    of_tau = Matrix.zeros(model.nv, model.nv)  # tau acts through qdd alone
    direct = [
        [J_qq @ q_q, J_qq @ q_v, of_tau],
        [J_vq @ q_q + J_vv @ v_q, J_vq @ q_v + J_vv @ v_v, of_tau],
    ]
    whole = product(lead, stacked([[Q, V, Hinv]]), stacked(direct))
    A, B = columns(whole, 0, 2 * model.nv), columns(whole, 2 * model.nv, None)
    dx_dp = multiplied(lead, P)
    if paths:

        def end(robot):
            ends = projected(robot, q, qd, dt, projection(robot, "refuse"))
            return Vector((*displacement(model, ends[0]), *ends[1]))

        dx_dp = dx_dp + slopes_by_parameters(model, paths, end)
    return q_next, qd_next, A, B, dx_dp


def _projected_slopes(model, q, qd, dt):
    """Return a state projected on the loops, and its derivatives; see `projected`.

        H s = A.T x,   A s = -f,   q_next = q (+) s
        H r = A.T y,   A r = -A qd,   qd_next = qd + r

    Both pairs of equations are differentiated at constant s, x, r and y. The
    derivatives are nv x nv, of q_next by q (it does not depend on qd), of qd_next by q,
    and by qd.

    Source: KIM-3.0, differentiated implicitly as in _implicit.py.
    """
    model = with_parameters(model, time_after(model, dt))  # driven frames at the end
    still, n = Vector.zeros(model.nv), range(model.nv)
    rows, loops = rows_of(model, q, qd, still), slopes_of_loops(model, q, qd, still)
    lines = [row for loop in loops for row in loop.rows]
    A, squares = [x.gradient for x in lines], [x.full_squares for x in lines]
    H = join_matrix(model, crba(model, split_q(model, q)))
    saddle = Saddle(model, q, H, A, squares, rows, [False] * model.nv)
    shift, x = saddle.solve(still, [-row.f for row in rows])
    change, y = saddle.solve(still, [-row.rate for row in rows])
    W_s, W_r = _rates_by_q(model, q, shift), _rates_by_q(model, q, qd + change)
    if model.driven:
        W_s = W_s - _rates_by_q(model, q, still)
    slides = loop_constraints.velocity_rows(model.loops)  # they have no residual
    W_s = W_s + Matrix(
        [0.0] * model.nv if flag else a for flag, a in zip(slides, A, strict=True)
    )
    Z_s, Z_r = (
        _forces_by_q(model, q, w, (rows, loops), multipliers)
        for w, multipliers in ((shift, x), (change, y))
    )
    by_rows = Matrix([-b[i] for b in saddle.B] for i in n)
    whole = stacked([[Matrix(-Vector(row) for row in saddle.P.rows), by_rows]])
    slopes = product(whole, stacked([[Z_s, Z_r], [W_s, W_r]]))
    by_q, by_u = slopes_of_integrate(model, q, shift)
    J_qq = by_u.times(columns(slopes, 0, model.nv), by_q.dense)
    J_vq = columns(slopes, model.nv, None)
    J_vv = product(by_rows, Matrix(A), Matrix.identity(model.nv))
    q_next = model.normalize(model.integrate(q, shift))
    return q_next, qd + change, (J_qq, J_vq, J_vv)


def _rates_by_q(model, q, qd):
    """Return the derivatives of the rates of all m rows by q at constant qd, m x nv."""
    loops = slopes_of_loops(model, q, qd, Vector.zeros(model.nv))
    return Matrix(row.rate_by_q for loop in loops for row in loop.rows)


def _forces_by_q(model, q, w, loops, multipliers):
    """Return the derivative of H w - A.T x by q at constant w and x, nv x nv.

    loops: LoopRows of all rows, and the slopes_of_loops, in any motion; multipliers: x.
    """
    (rows, slopes), still, first = loops, Vector.zeros(model.nv), 0
    weightless = with_parameters(model, {"gravity": Vector.zeros(3)})
    forces, _ = constraint_forces(model, rows, multipliers)

    def by_q(w, forces):
        parts = split_q(model, q), split_v(model, still), split_v(model, w)
        blocks = id_derivatives(weightless, *parts, forces, "body", None)
        return join_slopes(model, blocks[0])

    Z = by_q(w, forces)
    if model.driven:  # what they do without w does not belong to H w
        Z = Z - by_q(still, [Force.zero()] * len(forces))
    for loop in slopes:
        last = first + len(loop.rows)
        Z, first = Z - loop.stiffness(model, multipliers[first:last]), last
    return Z


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
