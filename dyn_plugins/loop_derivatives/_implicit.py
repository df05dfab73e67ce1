"""Implicit differentiation of dynamics with loops: derivatives of both equations.

    H qdd + C - A.T lambda = tau,   A qdd + dA/dt qd + 2 alpha A qd + beta² f = 0

Not a solver: the solvers of loop_derivatives.py share it.
"""

from dataclasses import replace
from typing import Any, NamedTuple

from dyn_core.authoring import (
    Force,
    Matrix,
    Vector,
    damping_matrix,
    join_force,
    join_matrix,
    join_slopes,
    resistance,
    slope_of,
    split_q,
    split_v,
    stiffness_matrix,
)
from dyn_core.model import parameter_paths
from dyn_core.model.loops import loop_constraints as loops
from dyn_plugins.derivatives._fixed_forces import with_fixed_forces
from dyn_plugins.derivatives._seeds import (
    Direction,
    moved_model,
    parameter_along,
    seeds,
)
from dyn_plugins.derivatives.directional_derivatives import inverse_along
from dyn_plugins.derivatives.first_derivatives import id_derivatives
from dyn_plugins.dynamics.crba import crba
from dyn_plugins.dynamics.rnea import rnea
from dyn_plugins.loop_derivatives._loop_slopes import slopes_of_loops
from dyn_plugins.loop_derivatives._saddle import LeastSaddle, Saddle
from dyn_plugins.loops._loop_rows import rows_of
from dyn_plugins.loops.loops import constraint_forces


class ClosedMotion(NamedTuple):
    """A motion of a robot with loops, and its constraint forces.

    Attributes:
        q, qd, qdd: Position, nq, velocity and acceleration, nv.
        multipliers: lambda of all rows, m.
        f_ext: External force on each body with the base, body coordinates.
        forces: Force of the loops on each body with the base, body coordinates.
        rates: Baumgarte's rates alpha and beta [1/s].
    """

    q: Vector
    qd: Vector
    qdd: Vector
    multipliers: Vector
    f_ext: list
    forces: list
    rates: tuple


class Change(NamedTuple):
    """Derivatives of both equations by some variables, at constant qdd and lambda.

    Attributes:
        Z: Derivative of the joint forces by each variable, a list of Vectors, nv.
        W: Derivative of the rows' accelerations by each variable, Vectors, m.
    """

    Z: list[Any]
    W: list[Any]


def moving(model, q, qd, qdd, x, f_ext, rates=(0.0, 0.0)):
    """Return the ClosedMotion of a state, with its constraint forces.

    Args:
        model: Robot.
        q, qd, qdd: Position, nq, velocity and acceleration, nv.
        x: Multipliers, m.
        f_ext: External force on each body with the base, body coordinates.
        rates: Baumgarte's rates [1/s].
    """
    rows = rows_of(model, q, qd, qdd)
    forces, _ = constraint_forces(model, rows, x)
    return ClosedMotion(q, qd, qdd, x, f_ext, forces, rates)


def state_changes(model, motion, fixed):
    """Return the Changes by q, qd and qdd, three.

        Z_q = dID/dq - d(A.T lambda)/dq,   W_q = d(A qdd + dA/dt qd + ...)/dq

    ID includes the loops' forces as forces fixed to their bodies; the change of these
    forces relative to the bodies is the loops' stiffness.

    Args:
        model: Robot.
        motion: ClosedMotion.
        fixed: Options f_ext_fixed, frame in which f_ext is constant as bodies move, and
            f_ext_points, points of action; see id_directional.
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
        Vector(row.acceleration_by_q)
        + Vector(row.rate_by_q) * (2.0 * a)
        + y * (0.0 if slides else b * b)  # a row in velocities has no residual
        for row, y, slides in zip(
            lines, A, loops.velocity_rows(model.loops), strict=True
        )
    ]
    W_qd = [
        Vector(row.acceleration_by_qd) + y * (2.0 * a)
        for row, y in zip(lines, A, strict=True)
    ]
    n = range(model.nv)
    return [
        Change(_columns(Z.rows, n), _columns(W, n))
        for Z, W in ((by_q, W_q), (by_qd, W_qd), (H, A))
    ]


def _columns(rows, n):
    """Return the columns with indices n of a matrix, as Vectors; rows may be empty."""
    return [Vector(row[k] for row in rows) for k in n]


def unit_forces(model, m, kept):
    """Return the Change by the joint forces of some coordinates.

    Args:
        model: Robot.
        m: Number of rows of loops.
        kept: Indices of the coordinates.
    """
    n = range(model.nv)
    units = [Vector(-float(i == k) for i in n) for k in kept]
    return Change(units, [Vector.zeros(m)] * len(units))


def parameter_changes(model, motion, paths, fixed):
    """Return the Change by the numbers of parameter paths.

    Args:
        model: Robot.
        motion: ClosedMotion.
        paths: Parameter paths (model/parameter_paths.py).
        fixed: Options f_ext_fixed, frame in which f_ext is constant as bodies move, and
            f_ext_points, points of action; see id_directional.

    Source: KIM-4.6, each column by KIM-4.2; the loops by Taylor numbers.
    """
    change, nv = Change([], []), model.nv
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


def gradient_changes(model, motion, w, paths):
    """Return the derivatives of A w by q and by parameters, at constant w.

    Args:
        model: Robot.
        motion: ClosedMotion; its q is used.
        w: Velocity, nv.
        paths: Parameter paths.

    Returns:
        Two lists of Vectors, m: by each displacement of q, and by each parameter.
    """
    still = Vector.zeros(model.nv)
    driven = [-1.0] if model.driven else []  # subtracts the rates of driven frames
    columns = [[], []]
    for sign, velocity in zip((1.0, *driven), (w, still), strict=False):
        loops = slopes_of_loops(model, motion.q, velocity, still)
        lines = [Vector(row.rate_by_q) for loop in loops for row in loop.rows]
        by_q = _columns(lines, range(model.nv))
        by_p = []
        for path in paths:
            for unit in Matrix.identity(parameter_paths.size(model, path)).rows:
                change = parameter_along(model, path, Vector(unit))
                rows = rows_of(moved_model(model, change), motion.q, velocity, still)
                by_p.append(Vector(slope_of(row.rate) for row in rows))
        columns = [
            [x + y * sign for x, y in zip(old, new, strict=True)] if old else new
            for old, new in zip(columns, (by_q, by_p), strict=True)
        ]
    return columns


class HybridInputs(NamedTuple):
    """Inputs of hybrid dynamics with loops.

    Attributes:
        q, qd: State.
        mask: For each coordinate, whether its acceleration is prescribed.
        qdd: Accelerations, nv; read where prescribed, and zero elsewhere.
        tau: Joint forces, nv; read elsewhere.
        f_ext: External force on each body with the base, body coordinates.
        rates: Baumgarte's rates [1/s].
    """

    q: Any
    qd: Any
    mask: Any
    qdd: Any
    tau: Any
    f_ext: Any
    rates: Any


def solved_motion(model, inputs, tolerance=None):
    """Return the ClosedMotion of hybrid dynamics with loops, and its Saddle.

    Args:
        model: Robot.
        inputs: HybridInputs.
        tolerance: Relative tolerance of the rank of rows that may depend on each other;
            the Saddle is then a LeastSaddle. None: a dependent row is a SingularError.
    """
    q, qd, mask, qdd, tau, f_ext, rates = inputs
    rows, (a, b) = rows_of(model, q, qd, qdd), rates
    parts = split_q(model, q), split_v(model, qd), split_v(model, qdd)
    taken = join_force(model, rnea(model, *parts, f_ext)) + resistance(model, q, qd)
    if tolerance is None:
        first = [row for x in slopes_of_loops(model, q, qd, qdd) for row in x.rows]
        H = join_matrix(model, crba(model, parts[0]))
        A, full_squares = (
            [row.gradient for row in first],
            [row.full_squares for row in first],
        )
        saddle = Saddle(model, q, H, A, full_squares, rows, mask)
    else:
        saddle = LeastSaddle(model, q, rows, mask, tolerance)
    wanted = [-(r.acceleration + r.rate * (2.0 * a) + r.f * (b * b)) for r in rows]
    push = Vector(
        0.0 if rigid else x for rigid, x in zip(mask, tau - taken, strict=True)
    )
    change, x = saddle.solve(push, wanted)
    return moving(model, q, qd, qdd + change, x, f_ext, rates), saddle
