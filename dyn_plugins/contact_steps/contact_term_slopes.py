"""Derivatives of a robot's dynamics in a step with contacts by its state, traced."""

from dyn_core.authoring import (
    Motion,
    MotionSubspace,
    TracedSolver,
    Vector,
    advance,
    columns_of,
    friction_slope_matrix,
    gyroscopic_change,
    hookimpl,
    rate_in_initial_axes,
    split_q,
    split_v,
    structure,
    with_slopes,
)
from dyn_core.problems import (
    BIAS_FORCE,
    CONTACT_TERM_SLOPES,
    ID_DERIVATIVES,
    MOVED_STATE_SLOPES,
)
from dyn_plugins._options import REMAINING
from dyn_plugins.contact_steps._active_rows import Placed, moving_rates
from dyn_plugins.contact_steps._gyroscopic_slopes import GyroscopicSlopes
from dyn_plugins.kinematics.body_motion import outward
from dyn_plugins.kinematics.kinematics import transforms
from dyn_plugins.steps._joint_blocks import displacement, moved, slopes_by_joint
from dyn_plugins.steps.step_derivatives import stacked


def contact_term_slopes(
    model, q, qd, tau, u, dt, pushes, f_ext, remaining, derivatives, bias
):
    """Return the equation of motion of a step, differentiated, and rates of columns.

        inertia (u - qd - dt turning - change) = dt (tau + J.T pushes - C)
        inertia (du - dchange) = by_q dq + by_qd dqd + dt dtau + dt J.T dpushes
        dchange = change_q dq + change_qd dqd + change_tau dtau
        dv_i = (s_k x v_i + rates_k) dq_k,   v_i = sum_k s_k u_k,   k on the path of i

    with inertia = H + dt B, B the slope of joint friction; turning, w x v of floating
    bodies, C, the gyroscopic change and the columns s_k of contact_terms; f_ext and
    pushes fixed to the bodies.

    Args:
        model: Robot.
        q, qd, tau: Positions, nq, and velocities, nv, before the step; joint forces,
            nv.
        u: Velocity after the step along the axes of q, nv [rad/s | m/s].
        dt: Step [s].
        pushes, f_ext: Forces of contacts, and other forces, on each body, body
            coordinates, nb + 1; entry 0, the base's, is not read [N·m; N].
        remaining: Fraction of the step that follows q, 0 to 1.
        derivatives: Slot of ID_DERIVATIVES.
        bias: Slot of BIAS_FORCE, for C.

    Returns:
        inertia, by_q, by_qd, change_q, change_qd, change_tau, nv x nv each; and the
        rates of all nc motion columns (of the joints, followers included) at the
        velocity u and at qd, nc x 6 each, [angular; linear].

    Source: chain rule over contact_terms; KIM-4.1 for the rates.
    """
    still, mean = Vector.zeros(model.nv), (tau - bias(q, qd, f_ext[1:]), dt, remaining)
    C_q, C_qd, H = derivatives(q, qd, still, f_ext[1:])
    gyroscopic = GyroscopicSlopes(model, q, qd, H, C_q, C_qd, mean)

    def turning(qd):
        return rate_in_initial_axes(model, qd, still)

    change = u - qd - turning(qd) * dt
    change = change - gyroscopic_change(model, H, qd, *mean)
    forces = [f + push for f, push in zip(f_ext[1:], pushes[1:], strict=True)]
    D_q, D_v, _ = derivatives(q, qd, change * (1.0 / dt), forces)
    inertia = H + friction_slope_matrix(model, qd) * dt

    def of_speed(e):
        speed = with_slopes(qd, e)
        return [turning(speed), friction_slope_matrix(model, speed) @ change]

    by_turning, by_friction = slopes_by_joint(model, of_speed)
    by_qd = inertia + (inertia @ by_turning - D_v - by_friction.dense) * dt
    more = gyroscopic.by_q, gyroscopic.by_qd, gyroscopic.by_tau.dense
    return inertia, D_q * -dt, by_qd, *more, _rates(model, q, u), _rates(model, q, qd)


def _rates(model, q, u):
    """Return Psi of all nc motion columns at the velocity u, nc lists of 6.

    They are derivatives of the bodies' velocities by the positions of their joints, not
    by time; Psi as in moving_rates, in the order of contact_terms, [angular; linear] of
    the point at the world's origin.
    """
    q, u, X_0 = (
        split_q(model, q),
        split_v(model, u),
        transforms(model, split_q(model, q)),
    )
    X, S, v, _ = outward(model, q, u, u, Motion.zero())
    rates = moving_rates(model, Placed(X_0, S), X, S, q, v, u)
    columns = {}
    for i in model.bodies:
        ratio, Psi = model.leader[i].ratio, MotionSubspace(rates[i])
        for k, column in enumerate(Psi if ratio is None else Psi @ ratio):
            columns[i, k] = [*column.ang, *column.lin]
    return [columns[key] for key in columns_of(model)]


def moved_state_slopes(model, q, u, dt, correction):
    """Return the derivatives of moved_state, of dx_next = (dq_next, dqd_next).

        dx_next = by_q dq + by_u du + by_correction dcorrection

    Args:
        model: Robot.
        q: Joint positions, nq.
        u: Velocity along the axes of the start, nv [rad/s | m/s].
        dt: Time [s].
        correction: Velocity that is added for the position alone, nv; not None.

    Returns:
        by_q, by_u and by_correction, 2 nv x nv each.

    Source: LCP-4, by the chain rule.
    """

    def along(q, u, correction):
        q_next, qd_next = advance(model, q, u, dt, u + correction)
        return displacement(model, q_next), qd_next

    functions = (
        lambda e: along(moved(model, q, e), u, correction),
        lambda e: along(q, with_slopes(u, e), correction),
        lambda e: along(q, u, with_slopes(correction, e)),
    )
    return [
        stacked([[block.dense] for block in slopes_by_joint(model, function)])
        for function in functions
    ]


def _sizes(model, _):
    """Return the sizes of the Ports: nx = 2 nv, and nc, with followers' columns."""
    return {"nc": len(structure(model).column_place), "nx": 2 * model.nv}


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    return [
        TracedSolver(
            "contact_term_slopes",
            CONTACT_TERM_SLOPES,
            contact_term_slopes,
            options={"remaining": 1.0},
            valid=REMAINING,
            slots={"derivatives": ID_DERIVATIVES, "bias": BIAS_FORCE},
            fills={"derivatives": "id_derivatives", "bias": "bias"},
            sizes=_sizes,
            by_joint=False,
        ),
        TracedSolver(
            "moved_state_slopes",
            MOVED_STATE_SLOPES,
            moved_state_slopes,
            sizes=_sizes,
            by_joint=False,
        ),
    ]
