"""Implicit differentiation of dynamics with loops: derivatives of both equations.

    H qdd + C - A.T lambda = tau,   A qdd + dA/dt qd + 2 alpha A qd + beta² f = 0

The matrix with multipliers is inverted for many right-hand sides.
Not a solver: the solvers of loop_derivatives.py share it.
"""

from dataclasses import replace
from typing import Any, NamedTuple

from dyn_core.authoring import (
    Factored,
    Force,
    Matrix,
    Vector,
    damping_matrix,
    join_matrix,
    join_slopes,
    joint_factors,
    product,
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
from dyn_plugins.loop_derivatives._loop_slopes import slopes_of_loops
from dyn_plugins.loops._dense import DenseLoops, needs_dense
from dyn_plugins.loops._least import LeastLoops
from dyn_plugins.loops._loop_rows import open_forces, rows_of, wanted_of
from dyn_plugins.loops._rank import dependence_items, pivot_tolerances
from dyn_plugins.loops.loops import constraint_forces


class Saddle:
    """Solver of H x - A.T lambda = push, A x = wanted, by its inverse.

        P = H^-1 - (A H^-1).T G^-1 (A H^-1),   B = G^-1 A H^-1,   G = A H^-1 A.T
        x = P push + B.T wanted,   lambda = G^-1 wanted - B push

    x of prescribed coordinates is zero. A row that depends on others, and a joint
    without inertia (in robots of needs_dense: one that no loop moves), raise
    SingularError when the Program runs.

    Args:
        model: Robot.
        q: Joint positions, nq.
        H, A: Joint-space inertia, nv x nv, and the gradients of the rows, m lists.
        full_squares: full_squares of the RowSlopes, m lists.
        rows: LoopRows.
        prescribed: For each coordinate, whether its acceleration is given; booleans.

    Attributes:
        P: Change of accelerations per joint force, nv x nv, symmetric.
        B: For each row, the change of accelerations per acceleration of the row, nv.
        G_inverse: Multipliers per acceleration of a row, m x m.

    Source: KIM-3.2 (67)-(69).
    """

    def __init__(self, model, q, H, A, full_squares, rows, prescribed):
        if needs_dense(model):
            self._invert_dense(model, q, rows, prescribed)
            return
        free = [not rigid for rigid in prescribed]
        n, m = range(model.nv), range(len(rows))
        kept = [
            [
                H[i, j] if free[i] and free[j] else float(i == j and not free[i])
                for j in n
            ]
            for i in n
        ]
        factors = joint_factors(model, Matrix(kept))
        A = [Vector(x if free[j] else 0.0 for j, x in enumerate(row)) for row in A]
        Y = [factors.solve(row) for row in A]
        G = Matrix([A[a] @ Y[b] if a <= b else 0.0 for b in m] for a in m)
        G = Matrix([G[min(a, b), max(a, b)] for b in m] for a in m)
        slopes = [
            sum((x for j, x in enumerate(row) if free[j]), 0.0) for row in full_squares
        ]
        diagonal, squares = [G[k, k] for k in m], [row @ row for row in A]
        floors = pivot_tolerances(diagonal, squares, slopes)
        delassus = Factored(G, floors, dependence_items(rows))
        self.G_inverse = delassus.inverse()
        columns = [delassus.solve([y[j] for y in Y]) for j in n]
        self.B = [Vector(column[k] for column in columns) for k in m]
        inverse = factors.inverse()
        self.P = _symmetric(
            model.nv,
            lambda i, j: self._entry(inverse, Y, columns, i, j, free),
        )

    @staticmethod
    def _entry(inverse, Y, columns, i, j, free):
        """Return entry (i, j) of P; 0 for prescribed coordinates.

        inverse: of H, with rows and columns of the identity for these; Y: rows of A
        H^-1 with it; columns: of B.
        """
        if not (free[i] and free[j]):
            return 0.0
        x = inverse[i, j]
        for k, y in enumerate(Y):
            x = x - y[i] * columns[j][k]
        return x

    def _invert_dense(self, model, q, rows, prescribed):
        """Set P, B and G_inverse by DenseLoops, for robots with a singular H."""
        loops = DenseLoops(model, q, rows, prescribed)
        none, rest = Vector.zeros(model.nv), Vector.zeros(len(rows))
        columns = []
        for j, rigid in enumerate(prescribed):
            unit = Vector(float(i == j and not rigid) for i in range(model.nv))
            columns.append(loops.solve(unit, rest)[0])
        self.P = _symmetric(model.nv, lambda i, j: columns[j][i])
        units = Matrix.identity(len(rows)).rows
        answers = [loops.solve(none, Vector(unit)) for unit in units]
        self.B = [x for x, _ in answers]
        self.G_inverse = Matrix(x for _, x in answers)

    def solve(self, push, wanted):
        """Return x, nv, and lambda, m, as Vectors.

        Args:
            push: Joint forces, nv.
            wanted: Accelerations of the rows, m.
        """
        x = self.P @ push
        for row, y in zip(self.B, wanted, strict=True):
            x = x + row * y
        pairs = zip(self.G_inverse.rows, self.B, strict=True)
        return x, Vector(Vector(g) @ Vector(wanted) - b @ push for g, b in pairs)

    def answers(self, columns):
        """Return a list of (x, lambda) for many right-hand sides: one matrix product.

        The order is that of `columns`; none give an empty list.

        Args:
            columns: Pairs (push, wanted): joint forces, nv, and accelerations of the
                rows, m.
        """
        columns, nv = list(columns), len(self.P.rows)
        if not columns or not nv:
            return [self.solve(*column) for column in columns]
        whole = [[*row, *(b[i] for b in self.B)] for i, row in enumerate(self.P.rows)]
        pairs = zip(self.B, self.G_inverse.rows, strict=True)
        whole += [[*(-b), *g] for b, g in pairs]
        right = Matrix([*push, *wanted] for push, wanted in columns).T
        answers = product(Matrix(whole), right).T.rows
        return [(Vector(x[:nv]), Vector(x[nv:])) for x in answers]


class LeastSaddle(Saddle):
    """Saddle for rows that may depend on each other, with lambda of least norm.

        d lambda = G^+ d(wanted) - B d(push) + N N.T dA w,   A w = lambda,   N.T A = 0

    The last term is the change of dependent rows, under the assumption that they remain
    dependent; `turned` returns it, `solve` and `answers` leave it out. A dead point
    raises SingularError when the Program runs.

    Args:
        model, q: Robot and joint positions, nq.
        rows: LoopRows.
        prescribed: For each coordinate, whether its acceleration is given.
        tolerance: Relative tolerance of the rank; see RankedRows.

    Attributes:
        loops: LeastLoops. Others as in Saddle, G^+ in place of G^-1.

    Source: KIM-3.0 (redundant rows); N.T A = 0, differentiated.
    """

    def __init__(self, model, q, rows, prescribed, tolerance):
        self.loops = LeastLoops(model, q, rows, prescribed, tolerance)
        self.loops.resolve_dead_points()
        none, rest = Vector.zeros(model.nv), Vector.zeros(len(rows))
        units = (Vector(unit) for unit in Matrix.identity(model.nv).rows)
        columns = [self.loops.solve(unit, rest)[0] for unit in units]
        self.P = _symmetric(model.nv, lambda i, j: columns[j][i])
        rates = [Vector(unit) for unit in Matrix.identity(len(rows)).rows]
        answers = [self.loops.solve(none, rate) for rate in rates]
        self.B = [x for x, _, _ in answers]
        self.G_inverse = _symmetric(len(rows), lambda i, j: answers[j][1][i])

    def turned(self, changes):
        """Return the list of N N.T dA w, Vectors m, for a list of changes dA w."""
        return [self.loops.B.without_columns(change) for change in changes]


def _symmetric(n, entry):
    """Return a symmetric n x n Matrix; entry(i, j) is called for j <= i only."""
    lower = [[entry(i, j) for j in range(i + 1)] for i in range(n)]
    return Matrix([lower[max(i, j)][min(i, j)] for j in range(n)] for i in range(n))


class ClosedMotion(NamedTuple):
    """A motion of a robot with loops, and its constraint forces.

    multipliers: lambda of all rows; f_ext, forces: external ones and those of the loops
    on each body with the base, body coordinates; rates: Baumgarte's alpha, beta [1/s].
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
        x: Multipliers, m, in the order of rows_of.
        f_ext: External forces by body, the base first, body coordinates; without the
            loops' forces.
        rates: Baumgarte's rates alpha and beta [1/s].
    """
    rows = rows_of(model, q, qd, qdd)
    forces, _ = constraint_forces(model, rows, x)
    return ClosedMotion(q, qd, qdd, x, f_ext, forces, rates)


def state_changes(model, motion, fixed):
    """Return a list of three Changes: by q, by qd and by qdd.

        Z_q = dID/dq - d(A.T lambda)/dq,   W_q = d(A qdd + dA/dt qd + ...)/dq

    ID includes the loops' forces as forces fixed to their bodies; the change of these
    forces relative to the bodies is the loops' stiffness. Friction and springs that
    act, and Baumgarte's terms, are included. `fixed` has f_ext_fixed (not None) and
    f_ext_points, the options of FixedForces.
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
    """Return the columns with indices n of a matrix, Vectors, empty without rows."""
    return [Vector(row[k] for row in rows) for k in n]


def unit_forces(model, m, kept):
    """Return the Change by the joint forces of the coordinates `kept`, in this order.

    Z is a Vector nv for each, -1 at the coordinate and zero elsewhere; W is m zeros.
    """
    n = range(model.nv)
    units = [Vector(-float(i == k) for i in n) for k in kept]
    return Change(units, [Vector.zeros(m)] * len(units))


def parameter_changes(model, motion, paths, fixed):
    """Return the Change by numbers of parameter paths; `fixed` as in state_changes.

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
    """Return the derivatives of A w by q and by parameters, at constant velocity w.

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

    qdd is read where `mask`, and zero elsewhere; tau is read elsewhere. f_ext is by
    body with the base, body coordinates; rates are Baumgarte's [1/s].
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

    With a relative tolerance of the rank, rows may depend on each other, the Saddle is
    a LeastSaddle, and rows that contradict each other are no error. A singular inertia,
    a dependent row without a tolerance, or a dead point with one raises SingularError
    when the Program runs.
    """
    q, qd, mask, qdd, tau, f_ext, rates = inputs
    rows = rows_of(model, q, qd, qdd)
    taken = open_forces(model, q, qd, qdd, f_ext)
    if tolerance is None:
        first = [row for x in slopes_of_loops(model, q, qd, qdd) for row in x.rows]
        H = join_matrix(model, crba(model, split_q(model, q)))
        A, full_squares = (
            [row.gradient for row in first],
            [row.full_squares for row in first],
        )
        saddle = Saddle(model, q, H, A, full_squares, rows, mask)
    else:
        saddle = LeastSaddle(model, q, rows, mask, tolerance)
    push = Vector(
        0.0 if rigid else x for rigid, x in zip(mask, tau - taken, strict=True)
    )
    change, x = saddle.solve(push, wanted_of(rows, *rates))
    return moving(model, q, qd, qdd + change, x, f_ext, rates), saddle
