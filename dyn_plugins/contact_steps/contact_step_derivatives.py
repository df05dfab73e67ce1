"""Derivatives of steps with contacts on half-spaces, by implicit differentiation.

At the solution each contact separates, sticks or slips. In these modes the step is a
system of equations. With u the velocity after the step in the initial axes, qdd its
acceleration (u - qd) / dt, and impulses lambda as forces lambda / dt on the bodies,

    dt (ID(q, qd, qdd; f_ext + lambda / dt) - tau) = H gyroscopic change

    separate   lambda = 0
    stick      f_n . V + bias = 0,   f_t . V = 0
    slip       f_n . V + bias = 0,   lambda_t = -mu lambda_n s,   s = V_t / |V_t|

H, D_q and D_v are the derivatives of inverse dynamics; _active_rows.py has the
derivatives of the impulses' wrenches. Slip becomes a drag K = sum mu lambda_n / |V_t|
f_e f_e.T across it, which counts as inertia of the body, and a coupling of normal and
friction:

    (H + J.T K J) du = R_q dq + R_v dqd + R_f dtau + C.T dlambda,   A du = c
    R_q = -dt D_q - J.T (D + K_g) J - J.T K Psi + H g_q
    R_v = H (1 + dt turning + g_v) - dt D_v,   R_f = dt + H g_f
    E = H^-1 - L A H^-1,   L = H^-1 C.T (A H^-1 C.T)^+,   du = E (...) + L c

(H including the drag); g_q, g_v and g_f are the derivatives of the gyroscopic change,
turning is that of w x v of floating bodies by qd.
If rows depend on each other (a box on four corners), lambda is not unique; du is, as
long as they stick.

Inputs of all steps: q, nq [rad | m]; qd, nv [rad/s | m/s]; tau, nv, constant over the
step [N·m | N]; dt [s]; warm, impulses of the previous step, m = 3 c [N·s]; f_ext, force
on each body in its coordinates, nb + 1, entry 0 not read [N·m; N]. The status of the
contact solver is 0 if it has converged. dq is a displacement in the tangent space
before the step, q (+) dq, and after it, q_next (+) dq_next.
"""

from dyn_core.authoring import (
    Matrix,
    Vector,
    advance,
    gyroscopic_change,
    hookimpl,
    joint_factors,
    logical_and,
    logical_or,
    rate_in_initial_axes,
    sparse_products,
    where,
    with_slopes,
)
from dyn_core.contact.rows import contact_biases
from dyn_core.errors import UnsupportedError
from dyn_core.problems import (
    CONTACT_STEP_DERIVATIVES,
    ID_DERIVATIVES,
    PARAMETER_JACOBIAN,
)
from dyn_plugins.contact_steps._gyroscopic_slopes import GyroscopicSlopes
from dyn_plugins.contact_steps._moving_contacts import MovingContacts, constrained
from dyn_plugins.contact_steps.contact_step import (
    FILLS,
    SLOTS,
    VALID,
    ContactStep,
    StepInputs,
    StepParts,
    sizes,
    solved_contacts,
    step_options,
)
from dyn_plugins.derivatives._seeds import checked_paths
from dyn_plugins.steps._joint_blocks import displacement, moved, slopes_by_joint
from dyn_plugins.steps.step_derivatives import StepDerivativesSolver, columns, stacked
from dyn_plugins.steps.step_derivatives import sizes as step_sizes

# Last names of parameter paths that move bodies, and so contacts.
GEOMETRY = ("time", "origin", "plug", "axis", "axes", "pitch", "ratio", "offset")


def contact_euler_derivatives(model, q, qd, tau, dt, warm, f_ext, **parts):
    """Return a step of contact_euler and its derivatives.

        dx_next = A dx + B dtau + dx_dp dp + dx_dmu dmu + dx_dgap dgap,   dx = (dq, dqd)

    At the boundary of two modes the derivatives are finite and one-sided, and
    not_differentiable is 1. It is also 1 if the contact solver has not converged, if
    slipping contacts depend on each other, or if sticking contacts do so only at this
    position.

    The bias of a gap has a kink at gap 0: an overlap is corrected by erp, a gap closes
    in the step. A robot at rest approaches it. If a contact presses with a gap between
    -1e-7 and 1e-7 m, not_differentiable is 2, unless it is 1. Derivatives are then
    one-sided, on the same side for all such contacts of a body: of an open gap if the
    lowest of their gaps is above 1e-12 m, else of an overlap. They hold for changes
    that stay on that side.

    With the step's own impulses as warm start, the contact solver only confirms them.
    All points of a shape have rows, not only the deeper half as in contact_euler, so
    that the impulses of a box or cylinder can differ from those of contact_euler.
    A shape that contact_euler refuses raises UnsupportedError when the Program is
    built, and a joint inertia of zero SingularError when it runs.

    Args:
        model, q, qd, tau, dt, warm, f_ext: Robot, and inputs as in the module.
        parts: Slots forward_dynamics, contact_solver, bias, mass_matrix, and of inverse
            dynamics derivatives and by_parameters; options world, links, erp,
            push_out_speed, restitution_threshold, solver_options; and the option paths:
            parameter paths of dp, one after another, without paths of the robot's
            geometry.

    Returns:
        q_next, nq; qd_next, nv; A, 2 nv x 2 nv; B, 2 nv x nv; dx_dp, 2 nv x parameters;
            dx_dmu and dx_dgap, 2 nv x c, by friction coefficient and gap of each
            contact; impulses, 3 c [N·s], and gaps before the step, c [m]; modes of the
            contacts, c (0 separate, 1 stick, 2 slip); status of the contact solver; and
            not_differentiable: 0, 1 or 2.

    Source: LCP-22.
    """
    inputs = StepInputs(model, q, qd, tau, dt, warm, f_ext)
    return _of_step(contact_biases.stewart_trinkle, inputs, parts)


def contact_anitescu_potra_derivatives(model, q, qd, tau, dt, warm, f_ext, **parts):
    """Return a step of contact_anitescu_potra and its derivatives.

        dx_next = A dx + B dtau + dx_dp dp + dx_dmu dmu + dx_dgap dgap,   dx = (dq, dqd)

    The set of touching contacts is taken as constant. A shape that is no sphere,
    capsule, box or cylinder raises UnsupportedError when the Program is built, and a
    joint inertia of zero SingularError when it runs.

    Args:
        model, q, qd, tau, dt, warm, f_ext: Robot, and inputs as in the module.
        parts: Slots forward_dynamics, contact_solver, bias, mass_matrix, and of inverse
            dynamics derivatives and by_parameters; options world, links, erp,
            push_out_speed, restitution_threshold, solver_options and paths, the
            parameter paths of dp.

    Returns:
        q_next, nq; qd_next, nv; A, 2 nv x 2 nv; B, 2 nv x nv; dx_dp, 2 nv x parameters;
        dx_dmu and dx_dgap, 2 nv x c; impulses, m [N·s]; gaps before the step, c [m];
        modes, c (0 separate, 1 stick, 2 slip); status of the contact solver; and
        not_differentiable: 0, 1 or 2, as in contact_euler_derivatives.

    Source: LCP-22.
    """
    inputs = StepInputs(model, q, qd, tau, dt, warm, f_ext)
    return _of_step(contact_biases.anitescu_potra, inputs, parts)


def contact_moreau_jean_derivatives(model, q, qd, tau, dt, warm, f_ext, **parts):
    """Return a step of contact_moreau_jean and its derivatives.

        dx_next = A_m dx_m + B dtau + dx_dp dp + dx_dmu dmu + dx_dgap dgap
        A = A_m dx_m/dx,   x_m the state at the midpoint, seen from the start

    The set of touching contacts is taken as constant; gaps refer to the midpoint; erp
    is 0 unless given. A shape that is no sphere, capsule, box or cylinder raises
    UnsupportedError when the Program is built, and a joint inertia of zero
    SingularError when it runs.

    Args:
        model, q, qd, tau, dt, warm, f_ext: Robot, and inputs as in the module.
        parts: Slots forward_dynamics, contact_solver, bias, mass_matrix, and of inverse
            dynamics derivatives and by_parameters; options world, links, erp,
            push_out_speed, restitution_threshold, solver_options and paths, the
            parameter paths of dp.

    Returns:
        q_next, nq; qd_next, nv; A, 2 nv x 2 nv; B, 2 nv x nv; dx_dp, 2 nv x parameters;
        dx_dmu and dx_dgap, 2 nv x c; impulses, m [N·s]; gaps at the midpoint, c [m];
        modes, c (0 separate, 1 stick, 2 slip); status of the contact solver; and
        not_differentiable: 0, 1 or 2, as in contact_euler_derivatives.

    Source: LCP-22.
    """
    half = dt * 0.5
    (q_q, v_q), (q_v, v_v) = _advance_slopes(model, q, qd, half)
    middle = advance(model, q, qd, half)
    inputs = StepInputs(model, *middle, tau, dt, warm, f_ext, remaining=0.5)
    rule = contact_biases.moreau_jean
    q_next, qd_next, A, *others = _of_step(rule, inputs, parts)
    by_q, by_qd = columns(A, 0, model.nv), columns(A, model.nv, 2 * model.nv)
    A = stacked([[by_q @ q_q + by_qd @ v_q, by_q @ q_v + by_qd @ v_v]])
    return q_next, qd_next, A, *others


def _advance_slopes(model, q, u, dt):
    """Return slopes of position and velocity after dt at u, along the axes at q.

    Two pairs of JointBlocks: by q, and by u.
    """

    def along(q, u):
        q_next, qd_next = advance(model, q, u, dt)
        return displacement(model, q_next), qd_next

    by_q = slopes_by_joint(model, lambda e: along(moved(model, q, e), u))
    return by_q, slopes_by_joint(model, lambda e: along(q, with_slopes(u, e)))


def _of_step(rule, inputs, parts):
    """Return the outputs of CONTACT_STEP_DERIVATIVES of a step from q.

    q is moved by inputs.remaining of the step; A is by the state of `inputs`.
    """
    solved, modes, flag, slopes = _velocity_slopes(rule, inputs, **parts)
    model, q, duration = inputs.model, inputs.q, inputs.dt * inputs.remaining
    (q_q, v_q), (q_u, v_u) = _advance_slopes(model, q, solved.velocity, duration)
    by_q, by_qd, *others = slopes
    A = stacked(
        [[q_q.dense + q_u @ by_q, q_u @ by_qd], [v_q.dense + v_u @ by_q, v_u @ by_qd]]
    )
    impulse, gaps, _, _, status = solved.outputs
    return (
        *advance(model, q, solved.velocity, duration),
        A,
        *(stacked([[q_u @ M], [v_u @ M]]) for M in others),
        impulse,
        gaps,
        modes,
        status,
        flag,
    )


def _velocity_slopes(rule, inputs, derivatives, by_parameters, paths, **parts):
    """Return SolvedContacts, modes, not_differentiable, and derivatives of u.

    modes: 0 separate, 1 stick, 2 slip; not_differentiable: 0.0, 1.0 or 2.0 as in
    contact_euler_derivatives. The derivatives are by q, qd, tau, parameters (no columns
    without paths), friction coefficients and gaps, nv rows each.
    """
    parts = StepParts.of(**parts)
    solved = solved_contacts(rule, inputs, parts)
    model, q, qd, _, dt, _, f_ext, _ = inputs
    still, change = Vector.zeros(model.nv), solved.velocity - qd
    C_q, C_v, H = derivatives(q, qd, still, f_ext[1:])
    gyroscopic = GyroscopicSlopes(model, q, qd, H, C_q, C_v, solved.mean)
    change = change - gyroscopic_change(model, H, qd, *solved.mean)
    qdd = change * (1.0 / dt) - rate_in_initial_axes(model, qd, still)
    forces = list(f_ext)
    for k, contact in enumerate(solved.touching):
        for f, x in zip(contact.forces, solved.outputs[0][3 * k :], strict=False):
            forces[contact.body] = forces[contact.body] + f * (x / dt)
    D_q, D_v, _ = derivatives(q, qd, qdd, forces[1:])
    (turning,) = slopes_by_joint(
        model, lambda e: [rate_in_initial_axes(model, with_slopes(qd, e), still)]
    )
    of_q, of_v = sparse_products(H, (gyroscopic.by_q, gyroscopic.by_qd))
    R_v = H + (H @ turning - D_v) * dt + of_v
    P = Matrix.zeros(model.nv, 0)
    if paths:
        P = by_parameters(q, qd, qdd, forces[1:])[1] * -dt
        P = P + H @ _changes_by_parameters(
            model, gyroscopic, lambda qdd: by_parameters(q, qd, qdd, f_ext[1:])[1]
        )
    moving = MovingContacts(model, rule, solved, (q, qd, dt), parts)
    factors = joint_factors(model, H + moving.drag)
    momentum = of_q - D_q * dt - moving.by_q, R_v, P, moving.by_mu, moving.by_gap
    slopes, E, lost, disagree = constrained(factors.inverse(), momentum, moving)
    bad = logical_or(moving.at_border, logical_and(moving.slips, lost > 0.0))
    bad = logical_or(logical_or(bad, disagree), solved.outputs[-1] > 0.0)
    flag = where(bad, 1.0, where(moving.at_gap_zero, 2.0, 0.0))
    by_q, by_qd, *others = slopes
    (of_tau,) = sparse_products(E, (H @ gyroscopic.by_tau,))
    return solved, moving.modes, flag, (by_q, by_qd, E * dt + of_tau, *others)


def _changes_by_parameters(model, gyroscopic, slopes):
    """Return the derivative of the gyroscopic change by np parameters, nv x np.

    slopes: Derivative of inverse dynamics by the parameters, of the acceleration.
    """
    C_p, columns = slopes(Vector.zeros(model.nv)), []
    for k in range(6):
        unit = [0.0] * model.nv
        for i in model.independent:
            v = model.v_slices[i]
            if model.parent[i] == 0 and k < v.stop - v.start:
                unit[v.start + k] = 1.0
        columns.append(slopes(Vector(unit)) - C_p)
    return gyroscopic.by_parameters(columns, C_p)


class ContactStepDerivatives(StepDerivativesSolver, ContactStep):
    """Solver for the derivatives of a step with contacts.

    Parameters of the option paths must not move bodies.
    """

    def build(self, model, **choices):
        """Return a Program of a model, with the choices of TracedSolver.build.

        Raises:
            UnsupportedError: A path of the option paths moves bodies, and so contacts,
                or has no derivative; or an option or the System is invalid.
            ModelError: A path is unknown.

        Other errors of TracedSolver.build pass through.
        """
        for path in checked_paths(self.name, model, choices, False):
            if path.rpartition(".")[2] in GEOMETRY:
                raise UnsupportedError(
                    f"{self.name}: {path} moves contacts; valid: paths of gravity,"
                    " inertia, friction and springs"
                )
        return super().build(model, **choices)


def _sizes(model, options):
    """Return the sizes of the Ports: m and c of a contact step, nx = 2 nv, and np."""
    return {**sizes(model, options), **step_sizes(model, options)}


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    steps = {
        contact_euler_derivatives: 0.2,
        contact_anitescu_potra_derivatives: 0.2,
        contact_moreau_jean_derivatives: 0.0,
    }
    return [
        ContactStepDerivatives(
            algorithm.__name__,
            CONTACT_STEP_DERIVATIVES,
            algorithm,
            slots={
                **SLOTS,
                "derivatives": ID_DERIVATIVES,
                "by_parameters": PARAMETER_JACOBIAN,
            },
            fills={
                **FILLS,
                "derivatives": "id_derivatives",
                "by_parameters": "parameter_jacobian",
            },
            options={**step_options(erp), "paths": ()},
            valid=VALID,
            sizes=_sizes,
            by_joint=False,
        )
        for algorithm, erp in steps.items()
    ]
