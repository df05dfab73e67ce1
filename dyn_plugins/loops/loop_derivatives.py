"""Derivatives of the dynamics of robots with loops, by implicit differentiation.

    H qdd + C - A.T lambda = tau,   A qdd + dA/dt qd + 2 alpha A qd + beta² f = 0

Z and W are the derivatives of both by what a state or a Model changes, at constant qdd
and lambda; the matrix in front of dqdd and dlambda is that of the dynamics themselves.
"""

from dataclasses import replace
from typing import Any, NamedTuple

from dyn_core.authoring import (
    Factored,
    Force,
    Matrix,
    Vector,
    damping_matrix,
    hookimpl,
    join_force,
    join_matrix,
    join_slopes,
    resistance,
    slope_of,
    split_q,
    split_v,
    stiffness_matrix,
)
from dyn_core.errors import UnsupportedError
from dyn_core.model import parameter_paths
from dyn_core.problems import (
    LOOP_FD_DERIVATIVES,
    LOOP_HD_DERIVATIVES,
    LOOP_ID_DERIVATIVES,
)
from dyn_plugins._options import NUMBER
from dyn_plugins.derivatives._fixed_forces import OPTIONS, VALID, with_fixed_forces
from dyn_plugins.derivatives._seeds import (
    Direction,
    moved_model,
    parameter_along,
    seeds,
)
from dyn_plugins.derivatives.derivatives import id_derivatives
from dyn_plugins.derivatives.directional import inverse_along
from dyn_plugins.derivatives.jacobians import ByParameters
from dyn_plugins.dynamics.crba import crba
from dyn_plugins.dynamics.hybrid import part_where, prescribed_coordinates, spread
from dyn_plugins.dynamics.rnea import rnea
from dyn_plugins.loops._loop_rows import jacobian_of, rows_of
from dyn_plugins.loops._loop_slopes import slopes_of_loops
from dyn_plugins.loops._rank import RANK, dependence_items, gradient_slopes
from dyn_plugins.loops._saddle import Saddle
from dyn_plugins.loops.loops import (
    constraint_forces,
    inverse_sizes,
    reason_not_square,
    require_closed,
)


class _Motion(NamedTuple):
    """A motion of a robot with loops, and the forces of its loops.

    Attributes:
        q, qd, qdd: State and accelerations.
        multipliers: Of all rows.
        f_ext: Forces from outside on bodies.
        forces: Those of the loops on bodies.
        rates: Baumgarte's.
    """

    q: Vector
    qd: Vector
    qdd: Vector
    multipliers: Vector
    f_ext: list
    forces: list
    rates: tuple


class _Change(NamedTuple):
    """How both equations change by some variables: a column for each.

    Attributes:
        Z: Joint forces, nv.
        W: Accelerations of the rows, m.
    """

    Z: list[Any]
    W: list[Any]


def _moving(model, q, qd, qdd, x, f_ext, rates=(0.0, 0.0)):
    """Return the _Motion of accelerations and multipliers."""
    rows = rows_of(model, q, qd, qdd)
    forces, _ = constraint_forces(model, rows, x)
    return _Motion(q, qd, qdd, x, f_ext, forces, rates)


def _state_changes(model, motion, fixed):
    """Return the _Changes by q, qd and qdd.

        Z_q = dID/dq - d(A.T lambda)/dq,   W_q = d(A qdd + dA/dt qd + ...)/dq

    ID carries the loops' forces as if fixed to their bodies; what they change besides
    is the loops' stiffness.
    """
    q, qd, qdd = motion.q, motion.qd, motion.qdd
    parts = split_q(model, q), split_v(model, qd), split_v(model, qdd)
    pushed = [f + g for f, g in zip(motion.f_ext, motion.forces, strict=True)]
    blocks = id_derivatives(model, *parts, pushed, "body", None)
    by_q, by_qd = join_slopes(model, blocks[0]), join_slopes(model, blocks[1])
    H = join_matrix(model, blocks[2])
    by_q = with_fixed_forces(model, by_q, q, motion.f_ext, **fixed)
    by_q = by_q + stiffness_matrix(model, q, qd)
    by_qd = by_qd + damping_matrix(model, q, qd, True, True)
    a, b = motion.rates
    lines, first = [], 0
    for loop in slopes_of_loops(model, q, qd, qdd):
        last = first + len(loop.rows)
        by_q = by_q - loop.stiffness(model, motion.multipliers[first:last])
        lines, first = lines + loop.rows, last
    A = [Vector(row.gradient) for row in lines]
    W_q = [
        Vector(row.acceleration_by_q) + Vector(row.rate_by_q) * (2.0 * a) + y * (b * b)
        for row, y in zip(lines, A, strict=True)
    ]
    W_qd = [
        Vector(row.acceleration_by_qd) + y * (2.0 * a)
        for row, y in zip(lines, A, strict=True)
    ]
    n = range(model.nv)
    return [
        _Change(_columns(Z.rows, n), _columns(W, n))
        for Z, W in ((by_q, W_q), (by_qd, W_qd), (H, A))
    ]


def _columns(rows, n):
    """Return the columns of a matrix as Vectors, also where it has no rows."""
    return [Vector(row[k] for row in rows) for k in n]


def _unit_forces(model, m, kept):
    """Return the _Change by joint forces of some coordinates."""
    n = range(model.nv)
    units = [Vector(-float(i == k) for i in n) for k in kept]
    return _Change(units, [Vector.zeros(m)] * len(units))


def _parameter_changes(model, motion, paths, fixed):
    """Return the _Change by the numbers of parameter paths.

    Source: KIM-4.6, each column by KIM-4.2; the loops by Taylor numbers.
    """
    change, nv = _Change([], []), model.nv
    state, still = (motion.q, motion.qd), Vector.zeros(nv)
    a, b = motion.rates
    for path in paths:
        for unit in Matrix.identity(parameter_paths.size(model, path)).rows:
            dp, same = Vector(unit), [Force.zero()] * len(motion.f_ext)
            along = Direction(still, still, motion.f_ext, same, dp, path, **fixed)
            moved = moved_model(model, parameter_along(model, path, dp))
            rows = rows_of(moved, *state, motion.qdd)
            forces, pulls = constraint_forces(moved, rows, motion.multipliers)
            seed = seeds(model, *state, along)
            pairs = zip(seed.f_ext, motion.forces, strict=True)
            slopes = zip(seed.df_ext, map(slope_of, forces), strict=True)
            seed = replace(
                seed,
                f_ext=[x + y for x, y in pairs],
                df_ext=[x + y for x, y in slopes],
            )
            _, taken = inverse_along(model, seed, motion.qdd, still)
            change.Z.append(taken + seed.dtaken - slope_of(pulls))
            change.W.append(
                Vector(
                    slope_of(row.acceleration + row.rate * (2.0 * a) + row.f * (b * b))
                    for row in rows
                )
            )
    return change


def _solved(model, q, qd, mask, qdd, tau, f_ext, rates):
    """Return the _Motion of hybrid dynamics with loops, and its Saddle.

    Args:
        mask: By coordinate: whether its acceleration is prescribed.
        qdd, tau: nv each, read where they are given.
        rates: Baumgarte's.
    """
    rows, (a, b) = rows_of(model, q, qd, qdd), rates
    first = [row for x in slopes_of_loops(model, q, qd, qdd) for row in x.rows]
    H = join_matrix(model, crba(model, split_q(model, q)))
    parts = split_q(model, q), split_v(model, qd), split_v(model, qdd)
    taken = join_force(model, rnea(model, *parts, f_ext)) + resistance(model, q, qd)
    A, wholes = [row.gradient for row in first], [row.wholes for row in first]
    saddle = Saddle(model, q, H, A, wholes, rows, mask)
    wanted = [-(r.acceleration + r.rate * (2.0 * a) + r.f * (b * b)) for r in rows]
    push = Vector(
        0.0 if rigid else x for rigid, x in zip(mask, tau - taken, strict=True)
    )
    change, x = saddle.solve(push, wanted)
    return _moving(model, q, qd, qdd + change, x, f_ext, rates), saddle


def _answers(saddle, change):
    """Return dqdd and dlambda by the variables of a _Change, by columns."""
    pairs = zip(change.Z, change.W, strict=True)
    answers = [saddle.solve(-Z, -W) for Z, W in pairs]
    return [x for x, _ in answers], [y for _, y in answers]


def _stacked(columns, height):
    """Return the matrix of columns, also where it has no entries."""
    return Matrix([column[i] for column in columns] for i in range(height))


def loop_fd_derivatives(model, q, qd, tau, f_ext, alpha, beta, paths, **fixed):
    """Return forward dynamics of a robot with loops, and its derivatives.

        H dqdd - A.T dlambda = dtau - Z dx,   A dqdd = -W dx

    dq is a displacement in the tangent space, and need not keep the loops closed: they
    are the derivatives of loop_forward_dynamics in every state.

    Inputs and outputs: those of LOOP_FD_DERIVATIVES.

    Args:
        alpha, beta: Baumgarte's rates [1/s]; 0: none.
        paths: Parameter paths p (model/parameter_paths.py).
        fixed: f_ext_fixed, f_ext_points: see id_directional.

    Source: KIM-3.2 (67)-(69), KIM-4.6, differentiated implicitly as J. Carpentier, R.
    Budhiraja and N. Mansard, Proximal and sparse resolution of constrained dynamic
    equations, 2021, do for forward dynamics.
    """
    mask, none = [False] * model.nv, Vector.zeros(model.nv)
    rates = alpha, beta
    motion, saddle = _solved(model, q, qd, mask, none, tau, f_ext, rates)
    by_q, by_qd, _ = _state_changes(model, motion, fixed)
    by_p = _parameter_changes(model, motion, paths, fixed)
    m = len(saddle.B)
    moved, pulled = [], []
    for change in (by_q, by_qd, by_p):
        dqdd, dlambda = _answers(saddle, change)
        moved.append(_stacked(dqdd, model.nv))
        pulled.append(_stacked(dlambda, m))
    moved.insert(2, saddle.P)
    pulled.insert(2, Matrix(-row for row in saddle.B))
    return motion.qdd, motion.multipliers, *moved, *pulled


def loop_hd_derivatives(
    model, q, qd, qdd_u, tau_v, f_ext, prescribed, alpha, beta, paths, **fixed
):
    """Return hybrid dynamics of a robot with loops, and its derivatives.

        H_vv dqdd_v - A_v.T dlambda = dtau_v - Z_v dx,   A_v dqdd_v = -W dx
        dtau_u = Z_u dx + H_uv dqdd_v - A_u.T dlambda

    Inputs and outputs: those of LOOP_HD_DERIVATIVES.

    Args:
        prescribed: As hybrid takes them.
        alpha, beta, paths, fixed: As loop_fd_derivatives takes them.

    Source: KIM-3.3 (70)-(80), KIM-4.6, differentiated implicitly.
    """
    mask = prescribed_coordinates(model, prescribed)
    u, v = (
        [k for k, flag in enumerate(mask) if flag == side] for side in (True, False)
    )
    given, push = spread(mask, qdd_u, tau_v)
    rates = alpha, beta
    motion, saddle = _solved(model, q, qd, mask, given, push, f_ext, rates)
    by_q, by_qd, by_qdd = _state_changes(model, motion, fixed)
    by_p = _parameter_changes(model, motion, paths, fixed)
    m, n = len(saddle.B), range(model.nv)
    by_u = _Change([by_qdd.Z[k] for k in u], [by_qdd.W[k] for k in u])
    H, A = by_qdd.Z, by_qdd.W  # by columns
    tau = _joint_forces(model, motion)
    results = [[], [], []]
    for change in (by_q, by_qd, by_u, _unit_forces(model, m, v), by_p):
        dqdd, dlambda = _answers(saddle, change)
        forces = []
        for Z, x, y in zip(change.Z, dqdd, dlambda, strict=True):
            force = {k: Z[k] - A[k] @ y for k in u}
            forces.append([force[k] + Vector(H[j][k] for j in n) @ x for k in u])
        results[0].append(_stacked(forces, len(u)))
        results[1].append(_stacked([[x[k] for k in v] for x in dqdd], len(v)))
        results[2].append(_stacked(dlambda, m))
    return (
        part_where(mask, True, tau),
        part_where(mask, False, motion.qdd),
        motion.multipliers,
        *(matrix for kind in results for matrix in kind),
    )


def _joint_forces(model, motion):
    """Return the joint forces of a motion, those of loops taken off."""
    q, qd, qdd, f_ext = motion.q, motion.qd, motion.qdd, motion.f_ext
    parts = split_q(model, q), split_v(model, qd), split_v(model, qdd)
    rows = rows_of(model, q, qd, qdd)
    tau = join_force(model, rnea(model, *parts, f_ext)) + resistance(model, q, qd)
    for row, x in zip(
        jacobian_of(model, q, rows).rows, motion.multipliers, strict=True
    ):
        tau = tau - Vector(row) * x
    return tau


def loop_id_derivatives(
    model, q, qd, qdd, tau_p, f_ext, active, residual, paths, **fixed
):
    """Return inverse dynamics of a robot with loops, and its derivatives.

        A_p.T dlambda = Z_p dx - dtau_p,   dtau_a = Z_a dx - A_a.T dlambda

    q, qd and qdd are taken for independent of each other.

    Inputs and outputs: those of LOOP_ID_DERIVATIVES.

    Args:
        active, residual: As loop_inverse_dynamics takes them.
        paths, fixed: As loop_fd_derivatives takes them.

    Source: KIM-3.1 (56)-(62), KIM-4.6, differentiated implicitly.
    """
    motors = prescribed_coordinates(model, active)
    a, p = ([k for k, x in enumerate(motors) if x == side] for side in (True, False))
    rows, n = rows_of(model, q, qd, qdd), range(model.nv)
    require_closed(rows, residual)
    A = jacobian_of(model, q, rows)
    parts = split_q(model, q), split_v(model, qd), split_v(model, qdd)
    whole = join_force(model, rnea(model, *parts, f_ext)) + resistance(model, q, qd)
    A_p = Matrix([row[k] for k in p] for row in A.rows)
    floors = [RANK * slope for slope in gradient_slopes(model, q, rows, A)]
    names = dependence_items(rows, "loop_inverse_least")
    factors = Factored(A_p @ A_p.T, floors, names)

    def divided(force):
        """Return tau_a and lambda of joint forces of the open tree."""
        x = factors.solve(A_p @ Vector(force[k] for k in p)) if rows else Vector(())
        taken = [Vector(row[k] for row in A.rows) @ x for k in a]
        return [force[k] - y for k, y in zip(a, taken, strict=True)], x

    def balance(force):
        """Return joint forces less those of passive joints."""
        given = dict(zip(p, tau_p, strict=True))
        return Vector(force[k] - given.get(k, 0.0) for k in n)

    tau_a, x = divided(balance(whole))
    motion = _moving(model, q, qd, qdd, x, f_ext)
    changes = _state_changes(model, motion, fixed)
    changes.append(_unit_forces(model, len(rows), p))
    changes.append(_parameter_changes(model, motion, paths, fixed))
    forces, multipliers = [], []
    for change in changes:
        answers = [divided(Z) for Z in change.Z]
        forces.append(_stacked([x for x, _ in answers], len(a)))
        multipliers.append(_stacked([y for _, y in answers], len(rows)))
    return Vector(tau_a), x, *forces, *multipliers


def _path_sizes(model, options):
    rows = sum(loop.rows for loop in model.loops)
    paths = options["paths"]
    return {"m": rows, "k": sum(parameter_paths.size(model, path) for path in paths)}


def _hybrid_sizes(model, options):
    nu = sum(prescribed_coordinates(model, options["prescribed"]))
    return {"nu": nu, "nf": model.nv - nu, **_path_sizes(model, options)}


def _inverse_sizes(model, options):
    reason = reason_not_square(model, options["active"])
    if reason is not None:
        raise UnsupportedError(f"loop_id_derivatives: {reason}")
    return {**inverse_sizes(model, options), **_path_sizes(model, options)}


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    table = {"valid": VALID, "by_joint": False}
    rates = {"alpha": 0.0, "beta": 0.0}
    return [
        ByParameters(
            "loop_fd_derivatives",
            LOOP_FD_DERIVATIVES,
            loop_fd_derivatives,
            options={**rates, "paths": (), **OPTIONS},
            sizes=_path_sizes,
            **table,
        ),
        ByParameters(
            "loop_hd_derivatives",
            LOOP_HD_DERIVATIVES,
            loop_hd_derivatives,
            options={"prescribed": (), **rates, "paths": (), **OPTIONS},
            sizes=_hybrid_sizes,
            **table,
        ),
        ByParameters(
            "loop_id_derivatives",
            LOOP_ID_DERIVATIVES,
            loop_id_derivatives,
            options={"active": (), "residual": 1e-6, "paths": (), **OPTIONS},
            valid={"residual": NUMBER, **VALID},
            sizes=_inverse_sizes,
            by_joint=False,
        ),
    ]
