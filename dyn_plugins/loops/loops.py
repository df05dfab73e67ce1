"""Dynamics with loops: a spanning tree, and constraints that close it by multipliers.

    H qdd + C = tau + A.T lambda,   A qdd + dA/dt qd = 0

The m rows of A are forces on bodies, whose responses come from the articulated inertias
of the tree. Only A H^-1 A.T (m x m) is factored, no matrix of size nv. Robots in which
loops alone determine the motion of a body without inertia need dense algebra
(_dense.py). In forward and hybrid dynamics, an inertia that is singular, also with the
loops, raises SingularError when the Program runs.
"""

from dyn_core.authoring import (
    Factored,
    Force,
    Matrix,
    Motion,
    TracedSolver,
    Vector,
    absolute,
    hookimpl,
    join_force,
    join_v,
    logical_not,
    require,
    split_q,
    split_v,
    where,
)
from dyn_core.errors import InfeasibleError, UnsupportedError
from dyn_core.problems import (
    LOOP_CONSTRAINTS,
    LOOP_FORWARD_DYNAMICS,
    LOOP_HYBRID_DYNAMICS,
    LOOP_INVERSE_DYNAMICS,
)
from dyn_core.validation import Either, Nothing, numbers
from dyn_plugins._options import NUMBER
from dyn_plugins.dynamics._articulated import (
    accelerations_from_forces,
    articulated_joints,
    transmitted_forces,
)
from dyn_plugins.dynamics.hybrid import (
    hybrid_from_mask,
    in_order,
    known_in_order,
    part_where,
    prescribed_coordinates,
    rotor_forces,
    spread,
)
from dyn_plugins.kinematics.body_motion import outward
from dyn_plugins.loops._dense import dense_hybrid, needs_dense
from dyn_plugins.loops._least import (
    DEPENDENT,
    SLACK,
    LoopSolver,
    agreeing_hybrid,
    least_hybrid,
    least_multipliers,
    least_torque,
    require_small,
    scales_of,
)
from dyn_plugins.loops._loop_rows import jacobian_of, open_forces, rows_of, wanted_of
from dyn_plugins.loops._rank import (
    RANK,
    dependence_items,
    factored_delassus,
    gradient_slopes,
)
from dyn_plugins.loops._ranked import TOLERANCE

LEAST_INVERSE = "loop_inverse_dynamics with dependent='least_norm'"


def constraint_forces(model, rows, multipliers):
    """Return forces in body axes (base: zero) and joint forces of multipliers."""
    forces = [Force.zero()] * (model.nb + 1)
    pulls = [Vector.zeros(joint.nv) for joint in model.joint]
    for row, x in zip(rows, multipliers, strict=True):
        for i, f in row.body_forces:
            forces[i] = forces[i] + f * x
        for i, y in row.joint_forces:
            pulls[i] = pulls[i] + Vector((y * x,))
    return forces, join_force(model, pulls)


def constrained_hybrid(model, q, qd, prescribed, qdd, tau, f_ext, rates):
    """Return tau, qdd, lambda and LoopRows of a robot whose loops stay closed.

        lambda = -(A_v H_vv^-1 A_v.T)^-1 (A qdd_r + dA/dt qd + 2 a A qd + b² f)

    with qdd_r of the open tree, and v the coordinates that are not prescribed. If rows
    depend on each other, the Program raises SingularError, which names one of them; a
    singular joint inertia raises it, too. Friction and springs of the model act. By
    coordinate, qdd is given where `prescribed`, else tau. f_ext is by body with the
    base, body coordinates [N·m; N]; rates are Baumgarte's a and b [1/s]; zeros for the
    source's equation. `acceleration` of the LoopRows is not that of the resulting qdd.

    Source: KIM-3.2 (67)-(69), KIM-3.3 (70)-(80).
    """
    if needs_dense(model):
        return dense_hybrid(model, q, qd, prescribed, qdd, tau, f_ext, rates)
    tau, qdd = hybrid_from_mask(model, q, qd, prescribed, qdd, tau, f_ext)
    rows = rows_of(model, q, qd, qdd)
    motion = split_q(model, q), split_v(model, qd), split_v(model, qdd)
    X, S, _, _ = outward(model, *motion, Motion.zero())
    no_joint = all(rigid is False for rigid in prescribed)
    joints, IA = articulated_joints(model, X, S, None if no_joint else prescribed)
    factors = factored_delassus(model, joints, rows)
    x = factors.solve(wanted_of(rows, *rates))
    forces, pulls = constraint_forces(model, rows, x)
    change = accelerations_from_forces(model, joints, pulls, [-f for f in forces])
    dqdd = join_v(model, change.qdd)
    extra = transmitted_forces(model, joints, IA, change.a, change.pA)
    rotors = rotor_forces(model, split_v(model, dqdd))
    force = Vector(
        where(rigid, y + z + r - w, y)
        for rigid, y, z, r, w in zip(prescribed, tau, extra, rotors, pulls, strict=True)
    )
    return force, qdd + dqdd, x, rows


def closed_hybrid(model, q, qd, prescribed, qdd, tau, f_ext, rates, dependent, **least):
    """Return tau, qdd, lambda and LoopRows of a robot whose loops stay closed.

    With dependent="refuse" it is constrained_hybrid, where rows that depend on each
    other raise SingularError when the Program runs; else agreeing_hybrid with `least`,
    tolerance, dead_point and slack: rows that contradict each other by more than slack
    raise InfeasibleError, and a dead point SingularError unless dead_point is "least".
    """
    motion = model, q, qd, prescribed, qdd, tau, f_ext, rates
    if dependent == "refuse":
        return constrained_hybrid(*motion)
    return agreeing_hybrid(*motion, **least)


def loop_forward_dynamics(model, q, qd, tau, f_ext, alpha, beta, dependent, **least):
    """Return the accelerations of a robot with loops, and the multipliers.

        H qdd + C = tau + A.T lambda,   A qdd + dA/dt qd = -2 alpha A qd - beta² f

    The results are qdd, lambda, and of each row its residual f and its rate A qd. If
    rows depend on each other, qdd is unique and lambda is not: with
    dependent="least_norm" it has the least norm, -(A H^-1 A.T)^+ (A qdd_r + dA/dt qd +
    2 alpha A qd + beta² f) with qdd_r of the open tree. Rows that contradict each other
    are then an InfeasibleError. tolerance, dead_point and slack without least_norm
    raise UnsupportedError when the Program is built.

    Inputs and outputs: those of LOOP_FORWARD_DYNAMICS; f_ext by body, the base first.

    Args:
        alpha, beta: Baumgarte's rates [1/s]; 0: none.
        dependent: Treatment of rows that depend on each other: refuse: a SingularError;
            least_norm: lambda of least norm.
        tolerance: Relative tolerance of the rank of A H^-1/2, with least_norm.
        dead_point: Treatment, with least_norm, of a position in which rows are
            dependent, but not next to it: refuse: a SingularError; least: these rows
            have no effect, and qdd is the smallest, in the norm of H, that the other
            rows allow.
        slack: Largest contradiction of rows with least_norm, relative to the largest
            acceleration of a row, or absolute if that is below 1 [m/s² | rad/s²].

    Source: KIM-3.2 (67)-(69), KIM-3.0 (redundant rows).
    """
    no_joint, none = [False] * model.nv, Vector.zeros(model.nv)
    rates = alpha, beta
    _, qdd, x, rows = closed_hybrid(
        model, q, qd, no_joint, none, tau, f_ext, rates, dependent, **least
    )
    return qdd, x, Vector(r.f for r in rows), Vector(r.rate for r in rows)


def loop_hybrid_dynamics(
    model, q, qd, qdd_u, tau_v, f_ext, prescribed, alpha, beta, dependent, **least
):
    """Return hybrid dynamics of a robot with loops.

        A_v qdd_v = -A_u qdd_u - dA/dt qd;   (tau_u, qdd_v) with A.T lambda added to tau

    The results are tau_u, qdd_v and lambda, unique if A_v has full row rank; else a
    SingularError names a row. u are the prescribed coordinates, v the others, both in
    the order of qd. With dependent="least_norm" there may be more rows than free
    coordinates: tau_u is then not unique, and the objective selects it. Only then the
    state and the given accelerations are checked: they must satisfy the loops within
    residual and slack, else an InfeasibleError names a row. Options that need
    least_norm raise UnsupportedError without it when the Program is built, except
    residual.

    Inputs and outputs: those of LOOP_HYBRID_DYNAMICS; f_ext by body, the base first.

    Args:
        prescribed: Joints or coordinates with given accelerations, as in hybrid.
        alpha, beta: Baumgarte's rates [1/s]; -2 alpha A qd - beta² f is added to the
            right side; 0: none.
        dependent: Treatment of rows that depend on each other for the free coordinates:
            refuse: a SingularError; least_norm: least joint forces or multipliers.
        objective: Selected solution with least_norm: torque: least joint forces; force:
            least multipliers.
        tolerance: Relative tolerance of ranks with least_norm.
        slack: Largest error of a row's acceleration with least_norm [m/s² | rad/s²].
        residual: Largest residual of a row and of its rate with least_norm [m | rad,
            and per s]; None: not checked.
        dead_point: Treatment of a dead point with least_norm: refuse: a SingularError;
            least: the least accelerations; see loop_forward_dynamics.

    Source: KIM-3.3 (70)-(80); (m > n_v) by the formulas of KIM-3.1.
    """
    mask, rates = prescribed_coordinates(model, prescribed), (alpha, beta)
    motion = model, q, qd, mask, *spread(mask, qdd_u, tau_v), f_ext, rates
    if dependent == "refuse":
        tau, qdd, x, _ = constrained_hybrid(*motion)
    else:
        tau, qdd, x = _least_hybrid_dynamics(*motion, prescribed, **least)
    return part_where(mask, True, tau), part_where(mask, False, qdd), x


def _least_hybrid_dynamics(
    model, q, qd, mask, qdd, tau, f_ext, rates, prescribed, objective, tolerance, slack,
    residual, dead_point,
):  # fmt: skip
    """Return tau, qdd and lambda of loop_hybrid_dynamics with least_norm.

    mask: whether qdd is given, else tau, Python booleans; rates: Baumgarte's a, b
    [1/s]; slack: largest error of a row's acceleration [m/s² | rad/s²]; residual:
    largest residual of a row and of its rate; None: not checked.
    """
    tau, qdd, x, rows, left, loops = least_hybrid(
        model, q, qd, mask, qdd, tau, f_ext, rates, tolerance, dead_point
    )
    require_closed(rows, residual, ("q", "qd"))
    names = ", ".join(map(str, prescribed))
    item = (
        f"the accelerations of {names} do not fit the loops within slack={slack:g};"
        " prescribe fewer"
    )
    require_small(left, slack, [f"{row.name}: {item}" for row in rows])
    if objective == "torque":
        columns = [Vector(row[k] for row in loops.A.rows) for k in range(model.nv)]
        A_u = list(part_where(mask, True, columns))
        tau_u = part_where(mask, True, tau)
        free, ones = loops.B.without_columns, [1.0] * len(A_u)
        more = least_torque(free, A_u, tau_u, tolerance, ones, len(rows))
        x = x + more
        tau = Vector(
            y - column @ more if rigid else y
            for rigid, y, column in zip(mask, tau, columns, strict=True)
        )
    return tau, qdd, x


def loop_constraints(model, q, qd):
    """Return residuals, Jacobian and bias of the loops.

        f(q) = 0,   A = df/dq,   A qdd + bias = 0

    f (m), A (m x nv) and bias (m), in this order; bias is dA/dt qd with the motion of
    driven frames. f of a row in velocities (rolling) is zero.

    Inputs and outputs: those of LOOP_CONSTRAINTS.

    Source: KIM-3.0 (54), (55).
    """
    rows = rows_of(model, q, qd, Vector.zeros(model.nv))
    f, bias = (Vector(x) for x in ([r.f for r in rows], [r.acceleration for r in rows]))
    return f, jacobian_of(model, q, rows), bias


def require_closed(rows, residual, what=("q", "qd", "qdd")):
    """Raise InfeasibleError in the Program if a motion does not keep all loops closed.

    It names a row with a value above `residual` [m | rad, and per s, s²] (None: no
    check); what: "q" (residual), "qd" (rate), "qdd" (acceleration). NaN passes.
    """
    for row in rows if residual is not None else ():
        sizes = {"q": row.f, "qd": row.rate, "qdd": row.acceleration}
        for name in what:
            item = (
                f"{row.name}: {name} opens it by more than residual={residual:g};"
                " dyn_core.simulation.loop_report says by how much; valid: close_loops"
                " and close_rates make states that fit, residual=None skips the check"
            )
            require(
                logical_not(absolute(sizes[name]) > residual), InfeasibleError, item
            )


def loop_inverse_dynamics(
    model, q, qd, qdd, tau_p, f_ext, active, residual, dependent, **least
):
    """Return the forces of active joints that cause a motion of a robot with loops.

        A_p.T lambda = tau_pr - tau_p,   tau_a = tau_ar - A_a.T lambda

    with tau_r of the open tree. The results are tau_a and lambda; tau_a and tau_p are
    in the order of qd. There must be as many rows as passive coordinates, else building
    raises UnsupportedError. q, qd and qdd must satisfy the constraints: a row that they
    open is an InfeasibleError. A_p without full rank is a SingularError. objective,
    tolerance, slack and weight without dependent="least_norm", and an invalid entry of
    `active`, raise UnsupportedError when the Program is built, an unknown joint
    ModelError.

    With dependent="least_norm" any number of motors is valid. With more rows than
    passive coordinates, the objective selects the solution. With fewer rows, there is a
    solution for some motions only; for others, the passive coordinates are off balance,
    an InfeasibleError.

    Inputs and outputs: those of LOOP_INVERSE_DYNAMICS; f_ext by body, the base first.

    Args:
        active: Names of the joints with motors, or pairs (joint, index of one of its
            coordinates), as in prescribed_coordinates; None: model.active_joints,
            without loops all joints.
        residual: Largest residual of a row and of its derivatives [m | rad, and per s,
            s²]; None: not checked.
        dependent: Treatment of rows that depend on each other for the passive
            coordinates: refuse: a SingularError; least_norm: least joint forces or
            multipliers.
        objective: Selected solution with least_norm: torque: least joint forces; force:
            least multipliers.
        tolerance: Relative tolerance of ranks with least_norm.
        slack: Largest imbalance of a passive coordinate with least_norm [N·m | N].
        weight: Scales of the active joint forces (objective torque) or of the
            multipliers (objective force) in the norm; None for ones. Another number of
            them is an UnsupportedError, by the engine native when the Program is built,
            by plain and graph when it is called.

    Source: KIM-3.1 (56)-(66).
    """
    motors = motor_coordinates(model, active)
    rows = rows_of(model, q, qd, qdd)
    require_closed(rows, residual)
    A = jacobian_of(model, q, rows)
    open_tau = open_forces(model, q, qd, qdd, f_ext)
    passive = [k for k, motor in enumerate(motors) if not motor]
    missing = Vector(open_tau[k] for k in passive) - Vector(tau_p)
    if dependent == "least_norm":
        idle = [i for i in model.independent if not all(motors[model.v_slices[i]])]
        names = ", ".join(model.names[i] for i in idle)
        return _least_inverse_dynamics(A, motors, open_tau, missing, names, **least)
    A_p = Matrix([row[k] for k in passive] for row in A.rows)
    square = A_p @ A_p.T
    tolerances = [RANK * slope for slope in gradient_slopes(model, q, rows, A)]
    factors = Factored(square, tolerances, dependence_items(rows, LEAST_INVERSE))
    x = factors.solve(A_p @ missing)
    from_loops = A.T @ x if rows else Vector.zeros(model.nv)
    return Vector(open_tau[k] - from_loops[k] for k, h in enumerate(motors) if h), x


def _least_inverse_dynamics(
    A, motors, open_tau, missing, names, objective, tolerance, slack, weight
):
    """Return tau_a, by motor, and lambda of loop_inverse_dynamics with least_norm.

    open_tau: of the open tree; missing: joint forces that the passive coordinates lack,
    one each; objective: "force": least multipliers, else "torque"; slack: largest
    imbalance of a passive coordinate [N·m | N]; weight: scales in the norm, by row
    ("force") or motor ("torque"); None: ones.
    """
    m = len(A.rows)
    columns = [Vector(row[k] for row in A.rows) for k in range(len(motors))]
    A_a, A_p = (list(part_where(motors, side, columns)) for side in (True, False))
    of_rows, of_motors = [1.0] * m, [1.0] * len(A_a)
    if objective == "force":
        of_rows = scales_of(weight, m)
    else:
        of_motors = scales_of(weight, len(A_a))
    x, B = least_multipliers(A_p, missing, m, tolerance, of_rows)
    balance = Vector(column @ x for column in A_p) - missing
    item = (
        f"no forces of loops balance the joints without motors, {names}, to"
        f" slack={slack:g}; valid: loops with more rows, such as kind weld, more active"
        " joints, or loop_hybrid_dynamics"
    )
    require_small(balance, slack, [item] * len(missing))
    tau_a = part_where(motors, True, open_tau)
    if objective == "torque":
        left = tau_a - Vector(column @ x for column in A_a)
        x = x + least_torque(B.without_rows, A_a, left, tolerance, of_motors, m)
    return tau_a - Vector(column @ x for column in A_a), x


def motor_coordinates(model, active):
    """Return whether each coordinate has a motor, a list of nv bools.

    Entries as in prescribed_coordinates; None: model.active_joints, or all (no loops).
    """
    if active is None:
        active = model.active_joints if model.loops else model.joint_names
    return prescribed_coordinates(model, active)


def reason_not_square(model, active):
    """Return why forces of active joints are not unique, as text, or None if they are.

    They are unique if there are as many rows of loops as passive coordinates.
    """
    passive = model.nv - sum(motor_coordinates(model, active))
    m = sum(loop.rows for loop in model.loops)
    if m == passive:
        return None
    return (
        f"{m} constraint rows and {passive} passive coordinates: this solver needs as"
        " many of one as of the other; active= names the joints with motors (None:"
        f" model.active_joints); {LEAST_INVERSE} takes any number of them"
    )


def _loop_sizes(model, options):
    """Return the sizes of the Ports: {"m": rows of the loops}."""
    return {"m": sum(loop.rows for loop in model.loops)}


def _hybrid_sizes(model, options):
    """Return {"nu": prescribed, "nf": other coordinates, "m": rows of the loops}."""
    nu = sum(prescribed_coordinates(model, options["prescribed"]))
    return {"nu": nu, "nf": model.nv - nu, **_loop_sizes(model, options)}


def inverse_sizes(model, options):
    """Return {"na": active coordinates, "np": passive ones, "m": rows of the loops}."""
    na = sum(motor_coordinates(model, options["active"]))
    return {"na": na, "np": model.nv - na, **_loop_sizes(model, options)}


def _square_sizes(model, options):
    """Return inverse_sizes, if there are as many rows as passive coordinates.

    Otherwise UnsupportedError, but not with dependent="least_norm".
    """
    reason = reason_not_square(model, options["active"])
    if reason is not None and options["dependent"] == "refuse":
        raise UnsupportedError(f"loop_inverse_dynamics: {reason}")
    return inverse_sizes(model, options)


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    rates = {"alpha": 0.0, "beta": 0.0, "dependent": "refuse"}
    rank = {"tolerance": TOLERANCE, "slack": SLACK}
    force = {"objective": "torque", **rank}
    weight = Either((Nothing(), numbers()))
    table = {"by_joint": False, "sizes": _loop_sizes}
    return [
        LoopSolver(
            "loop_forward_dynamics",
            LOOP_FORWARD_DYNAMICS,
            loop_forward_dynamics,
            options={**rates, **rank, "dead_point": "refuse"},
            valid=DEPENDENT,
            **table,
        ),
        LoopSolver(
            "loop_hybrid_dynamics",
            LOOP_HYBRID_DYNAMICS,
            loop_hybrid_dynamics,
            options={
                "prescribed": (),
                **rates,
                **force,
                "residual": 1e-6,
                "dead_point": "refuse",
            },
            valid={**DEPENDENT, "prescribed": in_order, "residual": NUMBER},
            by_joint=False,
            sizes=_hybrid_sizes,
        ),
        LoopSolver(
            "loop_inverse_dynamics",
            LOOP_INVERSE_DYNAMICS,
            loop_inverse_dynamics,
            options={
                "active": None,
                "residual": 1e-6,
                "dependent": "refuse",
                **force,
                "weight": None,
            },
            valid={
                **DEPENDENT,
                "active": known_in_order,
                "residual": NUMBER,
                "weight": weight,
            },
            by_joint=False,
            sizes=_square_sizes,
        ),
        TracedSolver("loop_constraints", LOOP_CONSTRAINTS, loop_constraints, **table),
    ]
