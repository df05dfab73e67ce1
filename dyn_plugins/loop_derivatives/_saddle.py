"""Inverse of the equations of motion with multipliers, for many right-hand sides.

Not a solver: the derivatives of constrained dynamics share it.
"""

from dyn_core.authoring import Factored, Matrix, Vector, joint_factors, product
from dyn_plugins.loops._dense import DenseLoops, needs_dense
from dyn_plugins.loops._least import LeastLoops
from dyn_plugins.loops._rank import dependence_items, pivot_tolerances


class Saddle:
    """Solver of H x - A.T lambda = push, A x = wanted, by its inverse.

        P = H^-1 - (A H^-1).T G^-1 (A H^-1),   B = G^-1 A H^-1,   G = A H^-1 A.T
        x = P push + B.T wanted,   lambda = G^-1 wanted - B push

    x of prescribed coordinates is zero. A dependent row is a SingularError, and so is a
    joint without inertia.

    Args:
        model: Robot.
        q: Joint positions, nq.
        H, A: Joint-space inertia, nv x nv, and the gradients of the rows, m lists.
        full_squares: full_squares of the RowSlopes, m lists.
        rows: LoopRows.
        prescribed: For each coordinate, whether its acceleration is given.

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

        Args:
            inverse: Inverse of H.
            Y: Rows of A H^-1.
            columns: Columns of B.
            i, j: Indices of the entry.
            free: For each coordinate, whether it is not prescribed.
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
        """Return x, nv, and lambda, m.

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
        """Return pairs (x, lambda) for many right-hand sides, by one matrix product.

        Args:
            columns: Pairs (push, wanted), as in solve.
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
    dependent; `turned` returns it, `solve` and `answers` leave it out. A dead point is
    a SingularError.

    Args:
        model, q: Robot and joint positions, nq.
        rows: LoopRows.
        prescribed: For each coordinate, whether its acceleration is given.
        tolerance: Relative tolerance of the rank.

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
        """Return N N.T dA w for each change dA w, m, of a list."""
        return [self.loops.B.without_columns(change) for change in changes]


def _symmetric(n, entry):
    """Return a symmetric n x n Matrix; entry(i, j) is called for j <= i only."""
    lower = [[entry(i, j) for j in range(i + 1)] for i in range(n)]
    return Matrix([lower[max(i, j)][min(i, j)] for j in range(n)] for i in range(n))
