"""Solvers for robots with loops with the signatures of solvers without loops.

They fit the slots of steps, control and nodes.
"""

from dyn_core.authoring import TracedSolver, Vector, hookimpl, without_springs
from dyn_core.errors import UnsupportedError
from dyn_core.problems import FORWARD_DYNAMICS, HYBRID_DYNAMICS_MASKED, INVERSE_DYNAMICS
from dyn_plugins._options import NUMBER
from dyn_plugins.dynamics.hybrid import known_coordinates
from dyn_plugins.loops.loops import (
    constrained_hybrid,
    loop_forward_dynamics,
    motor_coordinates,
    require_closed,
)

DRIFT = 20.0  # default of Baumgarte's rates in simulations [1/s]


def aba_loops(model, q, qd, tau, f_ext, alpha, beta):
    """Return the accelerations of a robot with loops.

        H(q) qdd + C(q, qd) = tau + sum_i J_i(q).T f_ext_i + A.T lambda

    Rows of loops that depend on each other are a SingularError.

    Inputs and outputs: those of FORWARD_DYNAMICS.

    Args:
        alpha, beta: Baumgarte's rates [1/s], against drift, as in
            loop_forward_dynamics; 0: the source's equation.

    Source: KIM-3.2 (67)-(69).
    """
    smooth = without_springs(model.without_friction())  # the adapter accounts for them
    return loop_forward_dynamics(smooth, q, qd, tau, f_ext, alpha, beta)[0]


def rnea_loops(model, q, qd, qdd, f_ext, active, residual):
    """Return the joint forces of a motion of a robot with loops: motors only.

        tau_u of loop_hybrid_dynamics for qdd_u of the active joints and tau_v = 0

    The accelerations of passive joints follow from the loops and, with fewer motors
    than freedoms, from zero forces; their qdd is not read. More motors than freedoms
    are an UnsupportedError when the solver is built. Rows of loops that depend on each
    other for the passive joints are a SingularError.

    Inputs and outputs: those of INVERSE_DYNAMICS.

    Args:
        active: Names of the joints with motors; None: model.active_joints.
        residual: Largest residual of a row and of its rate [m | rad, and per s], else
            InfeasibleError; None: not checked, for measured states.

    Returns:
        Joint forces tau, nv, zero for passive joints [N·m | N].

    Source: KIM-3.3 (70)-(80).
    """
    mask = motor_coordinates(model, active)
    smooth, none = without_springs(model.without_friction()), Vector.zeros(model.nv)
    tau, _, _, rows = constrained_hybrid(
        smooth, q, qd, mask, qdd, none, f_ext, (0.0, 0.0)
    )
    require_closed(rows, residual, ("q", "qd"))
    return tau


def motor_sizes(model, options, name="rnea_loops"):
    """Return no sizes, {}; raise UnsupportedError for more motors than freedoms.

    The motor forces would not be unique. Robots without loops are not checked.

    Args:
        model: Robot.
        options: Options of the solver; reads active.
        name: Name of the solver, for the error.
    """
    m = sum(loop.rows for loop in model.loops)
    motors = sum(motor_coordinates(model, options["active"]))
    if m and motors > model.nv - m:
        raise UnsupportedError(
            f"{name}: {motors} active coordinates for {model.nv - m} freedoms"
            f" ({model.nv} coordinates, {m} rows); valid: rnea_loops_least, whose"
            " forces are the least, or `passive: true` in the sidecar for joints"
            " without a motor"
        )
    return {}


def hybrid_mask_loops(model, q, qd, mask, qdd, tau, f_ext, alpha, beta):
    """Return hybrid dynamics of a robot with loops by a mask: see hybrid_mask.

        A qdd + dA/dt qd = -2 alpha A qd - beta² f,   H qdd + C = tau + A.T lambda

    Coordinates with mask above 0.5 have the given qdd. Rows of loops that depend on
    each other for the other coordinates are a SingularError.

    Inputs and outputs: those of HYBRID_DYNAMICS_MASKED.

    Args:
        alpha, beta: Baumgarte's rates [1/s], against drift; 0: the source's equation.

    Source: KIM-3.3 (70)-(80).
    """
    prescribed = [m > 0.5 for m in mask]
    rates = alpha, beta
    return constrained_hybrid(model, q, qd, prescribed, qdd, tau, f_ext, rates)[:2]


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    return [
        TracedSolver(
            "aba_loops",
            FORWARD_DYNAMICS,
            aba_loops,
            options={"alpha": DRIFT, "beta": DRIFT},
            by_joint=False,
            closes_loops=True,
        ),
        TracedSolver(
            "rnea_loops",
            INVERSE_DYNAMICS,
            rnea_loops,
            options={"active": None, "residual": None},
            valid={"active": known_coordinates, "residual": NUMBER},
            sizes=motor_sizes,
            by_joint=False,
            closes_loops=True,
        ),
        TracedSolver(
            "hybrid_mask_loops",
            HYBRID_DYNAMICS_MASKED,
            hybrid_mask_loops,
            options={"alpha": DRIFT, "beta": DRIFT},
            by_joint=False,
            closes_loops=True,
        ),
    ]
