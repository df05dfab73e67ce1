"""Dynamics with loops: constraints close the tree, multipliers hold them.

    H qdd + C = tau + A.T lambda,   A qdd + dA/dt qd = 0

Nothing of size nv is factored: rows of A are forces on bodies, whose responses come
from the articulated inertias of the tree; only A H^-1 A.T (m x m) is.
"""

from dyn_core import (
    LOOP_CONSTRAINTS,
    LOOP_FORWARD_DYNAMICS,
    LOOP_HYBRID_DYNAMICS,
    LOOP_INVERSE_DYNAMICS,
    Factored,
    Force,
    Matrix,
    Motion,
    TextSolver,
    UnsupportedError,
    Vector,
    hookimpl,
    join_force,
    join_v,
    resistance,
    split_q,
    split_v,
)
from dyn_core.scalar import where
from dyn_plugins._loop_rows import jacobian_of, rows_of
from dyn_plugins.aba import articulated, respond
from dyn_plugins.hybrid import add_rotors, mixed, prescribed_coordinates
from dyn_plugins.motion import outward
from dyn_plugins.response import felt_above, joint_row, meet, merged
from dyn_plugins.rnea import rnea

RANK = 1e-10  # a pivot of A H^-1 A.T below this part of its diagonal is zero


def pushed(model, rows, multipliers):
    """Give the forces on bodies, and joint forces nv, that multipliers cause."""
    forces = [Force.zero()] * (model.nb + 1)
    pulls = [Vector.zeros(joint.nv) for joint in model.joint]
    for row, x in zip(rows, multipliers, strict=True):
        for i, f in row.pushes:
            forces[i] = forces[i] + f * x
        for i, y in row.joints:
            pulls[i] = pulls[i] + Vector((y * x,))
    return forces, join_force(model, pulls)


def felt_rows(model, felt, rows):
    """Give what each row is felt as, by cluster."""
    found = []
    for row in rows:
        parts = [felt_above(model, felt, i, f) for i, f in row.pushes]
        parts += [joint_row(model, felt, i, y) for i, y in row.joints]
        found.append(merged(parts))
    return found


def closed(model, q, qd, held, qdd, tau, f_ext, stabilise):
    """Give joint forces and accelerations of a robot whose loops are held.

        lambda = -(A_v H_vv^-1 A_v.T)^-1 (A qdd_r + dA/dt qd + 2 a A qd + b² f)

    with qdd_r of the open tree. Rows that depend on each other are a SingularError that
    names one of them.

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].
        qd: Joint velocities, nv [rad/s | m/s].
        held: By coordinate: whether qdd is given, else tau is.
        qdd: Joint accelerations, nv, used where held.
        tau: Joint forces, nv, used elsewhere.
        f_ext: Force on each body, body coordinates [N·m; N].
        stabilise: a and b of Baumgarte's terms [1/s]; zeros for the source's equation.

    Returns:
        tau, qdd (nv each), lambda, and the rows.

    Source: KIM-3.2 (67)-(69), KIM-3.3 (70)-(80).
    """
    open_tau, open_qdd = mixed(model, q, qd, held, qdd, tau, f_ext)
    rows = rows_of(model, q, qd, open_qdd)
    parts = split_q(model, q), split_v(model, qd), split_v(model, open_qdd)
    X, S, _, _ = outward(model, *parts, Motion.zero())
    free = all(h is False for h in held)
    felt, IA = articulated(model, X, S, None if free else held)
    G = meet(felt, felt_rows(model, felt, rows))
    a, b = stabilise
    wanted = [-(row.second + row.rate * (2.0 * a) + row.f * (b * b)) for row in rows]
    floors = [G[k, k] * RANK for k in range(len(rows))]
    x = Factored(G, floors, [row.name for row in rows]).solve(wanted)
    forces, pulls = pushed(model, rows, x)
    found, moved, p = respond(model, felt, pulls, [-f for f in forces])
    added = join_v(model, found)
    taken = [None, *(IA[i] @ moved[i] + p[i] for i in model.bodies)]
    extra = [0.0] * model.nv
    for here in felt:
        for k, y in zip(here.hinge.at, here.along(taken), strict=True):
            extra[k] = y
    rotors = add_rotors(model, split_v(model, added))
    force = Vector(
        where(h, y + z + r - w, y)
        for h, y, z, r, w in zip(held, open_tau, extra, rotors, pulls, strict=True)
    )
    return force, open_qdd + added, x, rows


def loop_forward_dynamics(model, q, qd, tau, f_ext, alpha, beta):
    """Give the accelerations of a robot with loops, and what holds them.

        H qdd + C = tau + A.T lambda,   A qdd + dA/dt qd = -2 alpha A qd - beta² f

    Args:
        model: Robot with loops.
        q: Joint positions, nq [rad | m].
        qd: Joint velocities, nv [rad/s | m/s].
        tau: Joint forces, nv [N·m | N].
        f_ext: Force on each body, body coordinates [N·m; N].
        alpha, beta: Baumgarte's rates [1/s]; 0: none.

    Returns:
        qdd, nv; lambda, m, dual to the residuals; f and A qd, m each: how far the state
        is from fulfilling the constraints.

    Source: KIM-3.2 (67)-(69).
    """
    free = [False] * model.nv
    none = Vector.zeros(model.nv)
    _, qdd, x, rows = closed(model, q, qd, free, none, tau, f_ext, (alpha, beta))
    return qdd, x, Vector(r.f for r in rows), Vector(r.rate for r in rows)


def loop_hybrid_dynamics(model, q, qd, qdd_u, tau_v, f_ext, prescribed, alpha, beta):
    """Give hybrid dynamics of a robot with loops.

        A_v qdd_v = -A_u qdd_u - dA/dt qd;   (tau_u, qdd_v) with A.T lambda added to tau

    Unique where A_v has full row rank; else a SingularError names a row.

    Args:
        model: Robot with loops.
        q: Joint positions, nq [rad | m].
        qd: Joint velocities, nv [rad/s | m/s].
        qdd_u: Given accelerations, in the order of the coordinates [rad/s² | m/s²].
        tau_v: Given forces of the other coordinates [N·m | N].
        f_ext: Force on each body, body coordinates [N·m; N].
        prescribed: As hybrid takes them.
        alpha, beta: Baumgarte's rates [1/s]; 0: none.

    Returns:
        tau_u, qdd_v, lambda.

    Source: KIM-3.3 (70)-(80).
    """
    held = prescribed_coordinates(model, prescribed)
    u, v = iter(qdd_u), iter(tau_v)
    qdd = Vector(next(u) if h else 0.0 for h in held)
    tau = Vector(0.0 if h else next(v) for h in held)
    tau, qdd, x, _ = closed(model, q, qd, held, qdd, tau, f_ext, (alpha, beta))
    taken = Vector(y for h, y in zip(held, tau, strict=True) if h)
    return taken, Vector(y for h, y in zip(held, qdd, strict=True) if not h), x


def loop_constraints(model, q, qd):
    """Give residuals, Jacobian and bias of the loops.

        f(q) = 0,   A = df/dq,   A qdd + bias = 0

    Args:
        model: Robot with loops.
        q: Joint positions, nq [rad | m].
        qd: Joint velocities, nv [rad/s | m/s].

    Returns:
        f, m; A, m x nv; bias = (dA/dt) qd, m.

    Source: KIM-3.0 (54), (55).
    """
    rows = rows_of(model, q, qd, Vector.zeros(model.nv))
    f, bias = (Vector(x) for x in ([r.f for r in rows], [r.second for r in rows]))
    return f, jacobian_of(model, q, rows), bias


def loop_inverse_dynamics(model, q, qd, qdd, tau_p, f_ext, active):
    """Give the forces of active joints that cause a motion of a robot with loops.

        A_p.T lambda = tau_pr - tau_p,   tau_a = tau_ar - A_a.T lambda

    with tau_r of the open tree: as many rows as passive coordinates, A_p regular. q, qd
    and qdd must fulfil the constraints. A_p without full rank is a SingularError.

    Args:
        model: Robot with loops.
        q: Joint positions, nq [rad | m].
        qd: Joint velocities, nv [rad/s | m/s].
        qdd: Joint accelerations, nv [rad/s² | m/s²].
        tau_p: Forces of the passive coordinates, in their order [N·m | N].
        f_ext: Force on each body, body coordinates [N·m; N].
        active: Names of the joints that have motors.

    Returns:
        tau_a of the active coordinates, lambda.

    Source: KIM-3.1 (56)-(62), case 1.
    """
    driven = prescribed_coordinates(model, active)
    rows = rows_of(model, q, qd, qdd)
    A = jacobian_of(model, q, rows)
    parts = split_q(model, q), split_v(model, qd), split_v(model, qdd)
    open_tau = join_force(model, rnea(model, *parts, f_ext))
    open_tau = open_tau + resistance(model, q, qd)
    p = [k for k, h in enumerate(driven) if not h]
    given = Vector(open_tau[k] for k in p) - Vector(tau_p)
    A_p = Matrix([row[k] for k in p] for row in A.rows)
    square = A_p @ A_p.T
    floors = [square[k, k] * RANK for k in range(len(rows))]
    x = Factored(square, floors, [row.name for row in rows]).solve(A_p @ given)
    held = A.T @ x if rows else Vector.zeros(model.nv)
    return Vector(open_tau[k] - held[k] for k, h in enumerate(driven) if h), x


def unsquare(model, active):
    """Say why the forces of active joints are not unique, or give None."""
    passive = model.nv - sum(prescribed_coordinates(model, active))
    m = sum(loop.rows for loop in model.loops)
    if m == passive:
        return None
    return (
        f"{m} constraint rows and {passive} passive coordinates: this solver needs as"
        " many of one as of the other; loop_inverse_least takes others"
    )


def _loop_sizes(model, options):
    return {"m": sum(loop.rows for loop in model.loops)}


def _hybrid_sizes(model, options):
    held = prescribed_coordinates(model, options["prescribed"])
    sizes = {"nu": sum(held), "nf": len(held) - sum(held)}
    return {**sizes, **_loop_sizes(model, options)}


def inverse_sizes(model, options):
    """Give the numbers of active and passive coordinates, and of rows."""
    held = prescribed_coordinates(model, options["active"])
    sizes = {"na": sum(held), "np": len(held) - sum(held)}
    return {**sizes, **_loop_sizes(model, options)}


def _square_sizes(model, options):
    reason = unsquare(model, options["active"])
    if reason is not None:
        raise UnsupportedError(f"loop_inverse_dynamics: {reason}")
    return inverse_sizes(model, options)


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    rates = {"alpha": 0.0, "beta": 0.0}
    whole = {"by_joint": False, "sizes": _loop_sizes}
    return [
        TextSolver(
            "loop_forward_dynamics",
            LOOP_FORWARD_DYNAMICS,
            loop_forward_dynamics,
            options=rates,
            **whole,
        ),
        TextSolver(
            "loop_hybrid_dynamics",
            LOOP_HYBRID_DYNAMICS,
            loop_hybrid_dynamics,
            options={"prescribed": (), **rates},
            by_joint=False,
            sizes=_hybrid_sizes,
        ),
        TextSolver(
            "loop_inverse_dynamics",
            LOOP_INVERSE_DYNAMICS,
            loop_inverse_dynamics,
            options={"active": ()},
            by_joint=False,
            sizes=_square_sizes,
        ),
        TextSolver("loop_constraints", LOOP_CONSTRAINTS, loop_constraints, **whole),
    ]
