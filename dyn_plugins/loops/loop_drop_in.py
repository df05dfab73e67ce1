"""Solvers for robots with loops with the signatures of solvers without loops.

They fit the slots of steps, control and nodes. An inertia that is singular, also with
the loops, raises SingularError when the Program runs.
"""

from dyn_core.authoring import Vector, hookimpl, without_springs
from dyn_core.errors import UnsupportedError
from dyn_core.problems import FORWARD_DYNAMICS, HYBRID_DYNAMICS_MASKED, INVERSE_DYNAMICS
from dyn_plugins._options import NUMBER
from dyn_plugins.dynamics.hybrid import known_coordinates
from dyn_plugins.loops._least import (
    DEPENDENT,
    DRIFTING,
    DRIFTING_SLACK,
    LoopSolver,
    least_hybrid,
    least_torque,
    require_small,
)
from dyn_plugins.loops.loops import (
    closed_hybrid,
    constrained_hybrid,
    loop_forward_dynamics,
    motor_coordinates,
    require_closed,
)

DRIFT = 20.0  # default of Baumgarte's rates in simulations [1/s]


def aba_loops(model, q, qd, tau, f_ext, alpha, beta, **dependent):
    """Return the accelerations of a robot with loops.

        H(q) qdd + C(q, qd) = tau + sum_i J_i(q).T f_ext_i + A.T lambda

    Errors of rows are raised when the Program runs. With dependent="least_norm" rows of
    loops that contradict each other raise InfeasibleError. tolerance, dead_point and
    slack without least_norm raise UnsupportedError when the Program is built.

    Inputs and outputs: those of FORWARD_DYNAMICS; f_ext by body, the base first.

    Args:
        alpha, beta: Baumgarte's rates [1/s], against drift, as in
            loop_forward_dynamics; 0: the source's equation.
        dependent: Treatment of rows that depend on each other: refuse: a SingularError;
            least_norm: multipliers of least norm.
        tolerance: Relative tolerance of the rank of A H^-1/2 with least_norm. It must
            be above the drift of the loops, by which dependent rows become different.
        dead_point: Treatment of a dead point with least_norm: refuse: a SingularError;
            least: the least accelerations; see loop_forward_dynamics.
        slack: Largest contradiction of rows with least_norm, relative to the largest
            acceleration of a row, or absolute if that is below 1 [m/s² | rad/s²].

    Source: KIM-3.2 (67)-(69), KIM-3.0 (redundant rows).
    """
    smooth = without_springs(model.without_friction())  # the adapter accounts for them
    return loop_forward_dynamics(smooth, q, qd, tau, f_ext, alpha, beta, **dependent)[0]


def rnea_loops(
    model, q, qd, qdd, f_ext, active, residual, dependent, tolerance, dead_point
):
    """Return the joint forces of a motion of a robot with loops: motors only.

        tau_u of loop_hybrid_dynamics for qdd_u of the active joints and tau_v = 0

    The accelerations of passive joints follow from the loops and, with fewer motors
    than freedoms, from zero forces; their qdd is not read. More motors than freedoms
    are an UnsupportedError when the solver is built. With dependent="least_norm" they
    are valid: their forces are the least, and accelerations that contradict the loops
    are approximated, without an error if `residual` is None. tolerance and dead_point
    without least_norm raise UnsupportedError when the solver is built.

    Inputs and outputs: those of INVERSE_DYNAMICS; f_ext by body, the base first.

    Args:
        active: Names of the joints with motors, or pairs (joint, index of its
            coordinate); an unknown joint raises ModelError when built, another invalid
            entry UnsupportedError. None: model.active_joints, without loops all joints.
        residual: Largest residual of a row, of its rate and, with least_norm, of its
            acceleration [m | rad, and per s, s²], else InfeasibleError; None: not
            checked, for measured states.
        dependent: Treatment of rows that depend on each other for the passive joints:
            refuse: a SingularError; least_norm: least joint forces.
        tolerance: Relative tolerance of the rank with least_norm; see aba_loops.
        dead_point: Treatment of a dead point with least_norm: refuse: a SingularError;
            least: the least accelerations.

    Returns:
        Joint forces tau, nv, zero for passive joints [N·m | N].

    Source: KIM-3.3 (70)-(80); (m > n_v) by the formulas of KIM-3.1.
    """
    mask = motor_coordinates(model, active)
    smooth, none = without_springs(model.without_friction()), Vector.zeros(model.nv)
    motion = smooth, q, qd, mask, qdd, none, f_ext, (0.0, 0.0)
    if dependent == "refuse":
        (tau, _, _, rows), left = constrained_hybrid(*motion), Vector(())
    else:
        tau, rows, left = _least_motor_forces(motion, mask, tolerance, dead_point)
    require_closed(rows, residual, ("q", "qd"))
    if residual is not None and len(left):
        item = f"qdd opens it by more than residual={residual:g}; valid: less, or None"
        require_small(left, residual, [f"{row.name}: {item}" for row in rows])
    return tau


def _least_motor_forces(motion, mask, tolerance, dead_point):
    """Return the least joint forces, nv, LoopRows and residuals of their accelerations.

    The forces are zero for coordinates without a motor (mask false), if their given
    forces are. motion: First arguments of least_hybrid.
    """
    tau, _, _, rows, left, loops = least_hybrid(*motion, tolerance, dead_point)
    columns = [Vector(row[k] for row in loops.A.rows) for k in range(len(mask))]
    pairs = zip(mask, columns, strict=True)
    moved = [column if motor else column * 0.0 for motor, column in pairs]
    free, ones = loops.B.without_columns, [1.0] * len(mask)
    more = least_torque(free, moved, tau, tolerance, ones, len(rows))
    return tau - Vector(column @ more for column in moved), rows, left


def motor_sizes(model, options, name="rnea_loops"):
    """Return no sizes, {}; raise UnsupportedError for more motors than freedoms.

    Their forces would not be unique; not checked with dependent="least_norm".
    """
    m = sum(loop.rows for loop in model.loops)
    motors = sum(motor_coordinates(model, options["active"]))
    least = options.get("dependent") == "least_norm"
    if m and motors > model.nv - m and not least:
        raise UnsupportedError(
            f"{name}: {motors} active coordinates for {model.nv - m} freedoms"
            f" ({model.nv} coordinates, {m} rows); valid: rnea_loops with"
            " dependent='least_norm', whose forces are the least, or `passive: true`"
            " in the sidecar for joints without a motor"
        )
    return {}


def hybrid_mask_loops(
    model, q, qd, mask, qdd, tau, f_ext, alpha, beta, dependent, **least
):
    """Return hybrid dynamics of a robot with loops by a mask: see hybrid_mask.

        A qdd + dA/dt qd = -2 alpha A qd - beta² f,   H qdd + C = tau + A.T lambda

    Coordinates with mask above 0.5 have the given qdd. The results are tau and qdd, nv
    each. With dependent="least_norm",
    rows of loops that contradict each other or these qdd raise InfeasibleError when the
    Program runs. tolerance, dead_point and slack without least_norm raise
    UnsupportedError when it is built.

    Inputs and outputs: those of HYBRID_DYNAMICS_MASKED; f_ext by body, the base first.

    Args:
        alpha, beta: Baumgarte's rates [1/s], against drift; 0: the source's equation.
        dependent: Treatment of rows that depend on each other for the other
            coordinates: refuse: a SingularError; least_norm: multipliers, and so the
            forces of prescribed joints, of least norm.
        tolerance, dead_point, slack: Relative tolerance of the rank, treatment of dead
            points, and largest contradiction of rows, with least_norm; see aba_loops.

    Source: KIM-3.3 (70)-(80), KIM-3.0 (redundant rows).
    """
    prescribed, rates = [m > 0.5 for m in mask], (alpha, beta)
    return closed_hybrid(
        model, q, qd, prescribed, qdd, tau, f_ext, rates, dependent, **least
    )[:2]


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    rank = {"dependent": "refuse", "tolerance": DRIFTING, "dead_point": "refuse"}
    steady = {"alpha": DRIFT, "beta": DRIFT, **rank, "slack": DRIFTING_SLACK}
    common = {"by_joint": False, "closes_loops": True, "default": True}
    return [
        LoopSolver(
            "aba_loops",
            FORWARD_DYNAMICS,
            aba_loops,
            options=steady,
            valid=DEPENDENT,
            **common,
        ),
        LoopSolver(
            "rnea_loops",
            INVERSE_DYNAMICS,
            rnea_loops,
            options={"active": None, "residual": None, **rank},
            valid={**DEPENDENT, "active": known_coordinates, "residual": NUMBER},
            sizes=motor_sizes,
            **common,
        ),
        LoopSolver(
            "hybrid_mask_loops",
            HYBRID_DYNAMICS_MASKED,
            hybrid_mask_loops,
            options=steady,
            valid=DEPENDENT,
            **common,
        ),
    ]
