"""Loops with non-unique multipliers or motor forces: solutions of least norm.

The rows are factored one after another, the largest remainder first. The rank is
reached when a remainder is below `tolerance` times the largest row; for motions, the
rows of A H^-1/2 count. If the rank drops in one position only (a dead point), no
solution there is near the solutions around it: this is a SingularError, or
dead_point="least" gives the least accelerations. Least norms mix N and N·m; `weight`
scales joint forces or multipliers before their squares are summed.
"""

from dyn_core.authoring import (
    TracedSolver,
    Vector,
    absolute,
    hookimpl,
    join_force,
    logical_not,
    maximum,
    require,
    resistance,
    split_q,
    split_v,
    sqrt,
    without_springs,
)
from dyn_core.errors import InfeasibleError, UnsupportedError
from dyn_core.problems import (
    FORWARD_DYNAMICS,
    HYBRID_DYNAMICS_MASKED,
    INVERSE_DYNAMICS,
    LOOP_FORWARD_DYNAMICS,
    LOOP_HYBRID_DYNAMICS,
    LOOP_INVERSE_DYNAMICS,
)
from dyn_core.validation import Either, Name, Nothing, numbers
from dyn_plugins._options import NUMBER
from dyn_plugins.dynamics.hybrid import (
    known_coordinates,
    part_where,
    prescribed_coordinates,
    spread,
)
from dyn_plugins.dynamics.rnea import rnea
from dyn_plugins.loops._least import DRIFTING, least_hybrid, wanted_of
from dyn_plugins.loops._loop_rows import jacobian_of, rows_of
from dyn_plugins.loops._ranked import TOLERANCE, RankedRows, maximum_of
from dyn_plugins.loops.loop_drop_in import DRIFT
from dyn_plugins.loops.loops import inverse_sizes, motor_coordinates, require_closed

VALID = {"objective": Name(("torque", "force")), "residual": NUMBER}
DEAD = {"dead_point": Name(("refuse", "least"))}
SLACK = 1e-6  # largest contradiction of rows, relative to accelerations or absolute


def loop_forward_least(model, q, qd, tau, f_ext, alpha, beta, tolerance, dead_point):
    """Return forward dynamics with loops whose rows may depend on each other.

        lambda = -(A H^-1 A.T)^+ (A qdd_r + dA/dt qd + 2 alpha A qd + beta² f)

    qdd is unique; lambda has the least norm. Rows that contradict each other are an
    InfeasibleError.

    Inputs and outputs: those of LOOP_FORWARD_DYNAMICS.

    Args:
        alpha, beta: Baumgarte's rates [1/s]; 0: none.
        tolerance: Relative tolerance of the rank of A H^-1/2.
        dead_point: Treatment of a position in which rows are dependent, but not next to
            it: refuse: a SingularError; least: these rows have no effect, and qdd is
            the smallest, in the norm of H, that the other rows allow.

    Source: KIM-3.0 (redundant rows), KIM-3.2.
    """
    mask, none = [False] * model.nv, Vector.zeros(model.nv)
    _, qdd, x, rows, left, _ = least_hybrid(
        model, q, qd, mask, none, tau, f_ext, (alpha, beta), tolerance, dead_point
    )
    sizes = [absolute(y) for y in wanted_of(rows, alpha, beta)]
    bound = SLACK * maximum(1.0, maximum_of(sizes))
    item = "the loops ask for accelerations that differ"
    _require_small(left, bound, [f"{row.name}: {item}" for row in rows])
    return qdd, x, Vector(r.f for r in rows), Vector(r.rate for r in rows)


def loop_inverse_least(
    model, q, qd, qdd, tau_p, f_ext, active, objective, tolerance, slack, weight,
    residual,
):  # fmt: skip
    """Return inverse dynamics with loops and any number of motors.

        lambda = (A_p.T)^+ (tau_pr - tau_p) + N s,   tau_a = tau_ar - A_a.T lambda

    With more rows than passive coordinates, the objective selects the solution. With
    fewer rows, there is a solution for some motions only; for others, the passive
    coordinates are off balance, an InfeasibleError. The motion must satisfy the
    constraints: a row that it opens is an InfeasibleError.

    Inputs and outputs: those of LOOP_INVERSE_DYNAMICS.

    Args:
        active: Names of the joints with motors; None: model.active_joints.
        objective: torque: least joint forces; force: least multipliers.
        tolerance: Relative tolerance of ranks.
        slack: Largest imbalance of a passive coordinate [N·m | N].
        weight: Scales of the active joint forces (objective torque) or of the
            multipliers (objective force) in the norm; None for ones. Another number of
            them is an UnsupportedError.
        residual: Largest residual of a row and of its derivatives [m | rad, and per s,
            s²]; None: not checked.

    Source: KIM-3.1 (63)-(66).
    """
    motors = motor_coordinates(model, active)
    rows = rows_of(model, q, qd, qdd)
    require_closed(rows, residual)
    motion = split_q(model, q), split_v(model, qd), split_v(model, qdd)
    taken = join_force(model, rnea(model, *motion, f_ext)) + resistance(model, q, qd)
    A = jacobian_of(model, q, rows)
    columns = [Vector(row[k] for row in A.rows) for k in range(model.nv)]
    A_a, A_p = (list(part_where(motors, side, columns)) for side in (True, False))
    missing = part_where(motors, False, taken) - Vector(tau_p)
    scales = [1.0] * len(rows)
    if objective == "force" and weight is not None:
        scales = _checked(weight, len(rows))
    divided = [_divided(column, scales) for column in A_p]
    B = RankedRows(divided, len(rows), tolerance)
    x, _ = B.solve(missing)
    x = _divided(x, scales)
    balance = Vector(column @ x for column in A_p) - missing
    names = model.active_joints if active is None else active
    names = (names,) if isinstance(names, str) else map(str, names)
    item = (
        f"the active joints {', '.join(names)} leave the passive ones off balance by"
        f" more than slack={slack:g}; make more active, or use loop_hybrid_dynamics"
    )
    _require_small(balance, slack, [item] * len(missing))
    tau_a = part_where(motors, True, taken)
    if objective == "torque":
        scales = [1.0] * len(A_a) if weight is None else _checked(weight, len(A_a))
        left = tau_a - Vector(column @ x for column in A_a)
        x = x + _least_torque(B.without_rows, A_a, left, tolerance, scales, len(rows))
    return tau_a - Vector(column @ x for column in A_a), x


def loop_hybrid_least(
    model, q, qd, qdd_u, tau_v, f_ext, prescribed, objective, tolerance, slack,
    residual, dead_point,
):  # fmt: skip
    """Return hybrid dynamics with loops, with more rows than free coordinates, too.

        H_vv qdd_v - A_v.T lambda = tau_v - C_v - H_vu qdd_u
        A_v qdd_v = -A_u qdd_u - dA/dt qd

    The state and the given accelerations must satisfy the loops, else an
    InfeasibleError names a row. tau_u is then not unique; the objective selects it.

    Inputs and outputs: those of LOOP_HYBRID_DYNAMICS.

    Args:
        prescribed: Joints or coordinates with given accelerations, as in hybrid.
        objective: torque: least joint forces; force: least multipliers.
        tolerance: Relative tolerance of ranks.
        slack: Largest error of a row's acceleration [m/s² | rad/s²].
        residual: Largest residual of a row and of its rate [m | rad, and per s]; None:
            not checked.
        dead_point: refuse: a SingularError at a dead point; least: the least
            accelerations there; see loop_forward_least.

    Source: KIM-3.3 (m > n_v), by the formulas of KIM-3.1.
    """
    mask = prescribed_coordinates(model, prescribed)
    qdd, tau = spread(mask, qdd_u, tau_v)
    tau, qdd, x, rows, left, loops = least_hybrid(
        model, q, qd, mask, qdd, tau, f_ext, (0.0, 0.0), tolerance, dead_point
    )
    require_closed(rows, residual, ("q", "qd"))
    names = ", ".join(map(str, prescribed))
    item = (
        f"the accelerations of {names} do not fit the loops within slack={slack:g};"
        " prescribe fewer"
    )
    _require_small(left, slack, [f"{row.name}: {item}" for row in rows])
    tau_u = part_where(mask, True, tau)
    if objective == "torque":
        columns = [Vector(row[k] for row in loops.A.rows) for k in range(model.nv)]
        A_u = list(part_where(mask, True, columns))
        more = _least_torque(
            loops.B.without_columns, A_u, tau_u, tolerance, [1.0] * len(A_u), len(rows)
        )
        x = x + more
        tau_u = tau_u - Vector(column @ more for column in A_u)
    return tau_u, part_where(mask, False, qdd), x


def _least_torque(within, columns, left, tolerance, scales, m):
    """Return the change of lambda, m, that minimises the joint forces.

    Args:
        within: Function: projects a vector, m, on the changes of lambda that have no
            effect on passive joints.
        columns: Column of A of each active coordinate.
        left: Joint forces of the active coordinates without the change.
        tolerance: Relative tolerance of the rank.
        scales: Scales of these joint forces in the norm.
        m: Number of rows of A.
    """
    pairs = list(zip(columns, scales, strict=True))
    whole = maximum_of([(column @ column) * (s * s) for column, s in pairs])
    rows = [within(column) * s for column, s in pairs]
    floor = sqrt(whole) * tolerance
    scaled = [x * s for x, s in zip(left, scales, strict=True)]
    return RankedRows(rows, m, tolerance, floor).solve(scaled)[0]


def _divided(values, scales):
    """Return the Vector of values, each divided by its entry of `scales`."""
    return Vector(x / s for x, s in zip(values, scales, strict=True))


def _checked(weight, size):
    """Return `weight` as floats; UnsupportedError unless there are `size` of them."""
    weight = [float(x) for x in weight]
    if len(weight) != size:
        raise UnsupportedError(f"weight has {len(weight)} numbers; valid: {size}")
    return weight


def _require_small(values, bound, items):
    """Check in the Program that |values| <= bound, else InfeasibleError with an item.

    items: Text of the error for each value.
    """
    for x, item in zip(values, items, strict=True):
        require(logical_not(absolute(x) > bound), InfeasibleError, item)


def aba_loops_least(model, q, qd, tau, f_ext, alpha, beta, tolerance, dead_point):
    """Return the accelerations of a robot with loops whose rows may be redundant.

        H(q) qdd + C(q, qd) = tau + sum_i J_i(q).T f_ext_i + A.T lambda

    Rows that contradict each other are no error: their accelerations have the least
    squared residual.

    Inputs and outputs: those of FORWARD_DYNAMICS.

    Args:
        alpha, beta: Baumgarte's rates [1/s], against drift; 0: the source's equation.
        tolerance: Relative tolerance of the rank of A H^-1/2. It must be above the
            drift of the loops, by which dependent rows become different.
        dead_point: refuse: a SingularError at a dead point; least: the least
            accelerations there; see loop_forward_least.

    Source: KIM-3.0 (redundant rows), KIM-3.2.
    """
    mask, none = [False] * model.nv, Vector.zeros(model.nv)
    rates, smooth = (alpha, beta), without_springs(model.without_friction())
    return least_hybrid(
        smooth, q, qd, mask, none, tau, f_ext, rates, tolerance, dead_point
    )[1]


def rnea_loops_least(model, q, qd, qdd, f_ext, active, residual, tolerance, dead_point):
    """Return the joint forces of a motion of a robot with loops, rows redundant or not.

        tau_u of loop_hybrid_least for qdd_u of the active joints and tau_v = 0

    The accelerations of passive joints follow from the loops; their qdd is not read.
    With more motors than degrees of freedom, the forces are the least; accelerations
    that do not satisfy the loops are followed as closely as the rows allow.

    Inputs and outputs: those of INVERSE_DYNAMICS.

    Args:
        active: Names of the joints with motors; None: model.active_joints.
        residual: Largest residual of a row and of its rate [m | rad, and per s], else
            InfeasibleError; None: not checked, for measured states.
        tolerance: Relative tolerance of the rank.
        dead_point: refuse: a SingularError at a dead point; least: the least
            accelerations there; see loop_forward_least.

    Returns:
        Joint forces tau, nv, zero for passive joints [N·m | N].

    Source: KIM-3.3 (m > n_v), by the formulas of KIM-3.1.
    """
    mask, none = motor_coordinates(model, active), Vector.zeros(model.nv)
    smooth = without_springs(model.without_friction())
    tau, _, _, rows, _, loops = least_hybrid(
        smooth, q, qd, mask, qdd, none, f_ext, (0.0, 0.0), tolerance, dead_point
    )
    require_closed(rows, residual, ("q", "qd"))
    columns = [Vector(row[k] for row in loops.A.rows) for k in range(model.nv)]
    kept = [
        column if motor else column * 0.0
        for motor, column in zip(mask, columns, strict=True)
    ]
    more = _least_torque(
        loops.B.without_columns, kept, tau, tolerance, [1.0] * model.nv, len(rows)
    )
    return tau - Vector(column @ more for column in kept)


def hybrid_mask_loops_least(
    model, q, qd, mask, qdd, tau, f_ext, alpha, beta, tolerance, dead_point
):
    """Return hybrid dynamics of a robot with loops, rows redundant or not, by a mask.

        A qdd + dA/dt qd = -2 alpha A qd - beta² f,   H qdd + C = tau + A.T lambda

    Coordinates with mask above 0.5 have the given qdd. The multipliers, and so the
    forces of prescribed joints, have the least norm. Rows that contradict each other
    are no error, as in aba_loops_least.

    Inputs and outputs: those of HYBRID_DYNAMICS_MASKED.

    Args:
        alpha, beta: Baumgarte's rates [1/s], against drift.
        tolerance, dead_point: Relative tolerance of the rank, and treatment of dead
            points (refuse or least); see aba_loops_least.

    Source: KIM-3.0 (redundant rows), KIM-3.3 (70)-(80).
    """
    prescribed, rates = [m > 0.5 for m in mask], (alpha, beta)
    return least_hybrid(
        model, q, qd, prescribed, qdd, tau, f_ext, rates, tolerance, dead_point
    )[:2]


def _rows(model, options):
    """Return the sizes of the Ports: {"m": rows of the loops}."""
    return {"m": sum(loop.rows for loop in model.loops)}


def _hybrid_sizes(model, options):
    """Return {"nu": prescribed, "nf": other coordinates, "m": rows of the loops}."""
    nu = sum(prescribed_coordinates(model, options["prescribed"]))
    return {"nu": nu, "nf": model.nv - nu, **_rows(model, options)}


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    rates = {"alpha": 0.0, "beta": 0.0}
    dead = {"dead_point": "refuse"}
    steady = {"alpha": DRIFT, "beta": DRIFT, "tolerance": DRIFTING, **dead}
    closing = {"by_joint": False, "closes_loops": True}
    least = {
        "objective": "torque", "tolerance": TOLERANCE, "slack": SLACK, "residual": 1e-6,
    }  # fmt: skip
    return [
        TracedSolver(
            "loop_forward_least",
            LOOP_FORWARD_DYNAMICS,
            loop_forward_least,
            options={**rates, "tolerance": TOLERANCE, **dead},
            valid=DEAD,
            sizes=_rows,
            by_joint=False,
        ),
        TracedSolver(
            "loop_inverse_least",
            LOOP_INVERSE_DYNAMICS,
            loop_inverse_least,
            options={"active": None, "weight": None, **least},
            valid={
                **VALID,
                "active": known_coordinates,
                "weight": Either((Nothing(), numbers())),
            },
            sizes=inverse_sizes,
            by_joint=False,
        ),
        TracedSolver(
            "loop_hybrid_least",
            LOOP_HYBRID_DYNAMICS,
            loop_hybrid_least,
            options={"prescribed": (), **least, **dead},
            valid={**VALID, **DEAD},
            sizes=_hybrid_sizes,
            by_joint=False,
        ),
        TracedSolver(
            "aba_loops_least",
            FORWARD_DYNAMICS,
            aba_loops_least,
            options=steady,
            valid=DEAD,
            **closing,
        ),
        TracedSolver(
            "rnea_loops_least",
            INVERSE_DYNAMICS,
            rnea_loops_least,
            options={"active": None, "residual": None, "tolerance": DRIFTING, **dead},
            valid={"active": known_coordinates, "residual": NUMBER, **DEAD},
            **closing,
        ),
        TracedSolver(
            "hybrid_mask_loops_least",
            HYBRID_DYNAMICS_MASKED,
            hybrid_mask_loops_least,
            options=steady,
            valid=DEAD,
            **closing,
        ),
    ]
