"""Equations of motion with loops where the tree's inertia is singular: dense algebra.

Not a solver: the solvers of loops share it, for robots in which loops alone determine
the motion of a body without inertia. H of the tree is then singular, but the equations
with the loops are regular: adding A.T k (A qdd - wanted) = 0 to the equation of motion
gives the regular matrix H + A.T k A. m is the number of the rows of all loops.
"""

from dyn_core.authoring import (
    Factored,
    Matrix,
    Vector,
    join_matrix,
    split_q,
    where,
)
from dyn_plugins.dynamics.crba import crba
from dyn_plugins.loops._loop_rows import jacobian_of, open_forces, rows_of, wanted_of
from dyn_plugins.loops._rank import dependence_items, gradient_slopes, pivot_tolerances

PIVOT = 1e-13  # pivots of H + A.T k A up to this are zero, relative to the diagonal


def needs_dense(model):
    """Return whether a robot has loops and a joint without inertia along it."""
    return bool(model.loops) and bool(model.without_inertia)


class EasedInertia:
    """H + A.T k A, factored: regular if loops determine joints without inertia.

    Rows and columns of coordinates with a prescribed acceleration are replaced by the
    identity. A joint without inertia that no loop moves raises SingularError when the
    Program runs.

    Args:
        model: Robot.
        q: Joint positions, nq.
        rows: LoopRows of the position.
        prescribed: For each coordinate, the condition that its acceleration is given.

    Attributes:
        H, A: Joint-space inertia, nv x nv, and Jacobian, m x nv, of the whole robot.
        free: A with zeros for prescribed coordinates.
        slopes: Scale of each row's squared norm, from gradient_slopes.
        k: Weight of each row.
        K: Factors of H + A.T k A.

    Source: KIM-3.2 (67)-(69), with the constraints added to the inertia.
    """

    def __init__(self, model, q, rows, prescribed):
        self.H = join_matrix(model, crba(model, split_q(model, q)))
        self.A, self.prescribed = jacobian_of(model, q, rows), prescribed
        n, m = range(model.nv), range(len(rows))
        self.free = Matrix(
            [where(prescribed[j], 0.0, self.A[k, j]) for j in n] for k in m
        )
        self.slopes = gradient_slopes(model, q, rows, self.free)
        size = sum((self.H[j, j] for j in n), 0.0)
        self.k = Vector(_stiffness(size, slope) for slope in self.slopes)
        K = Matrix([self._entry(i, j, m) for j in n] for i in n)
        tolerances = [PIVOT * K[j, j] for j in n]
        names = [""] * model.nv
        for i in model.independent:
            what = "nothing has inertia along it, and no loop moves it here"
            for j in range(*model.v_slices[i].indices(model.nv)):
                names[j] = f"joint {model.names[i]}: {what}"
                if model.names[i] in model.without_inertia:
                    tolerances[j] = tolerances[j] + PIVOT * size
        self.K = Factored(K, tolerances, names)

    def _entry(self, i, j, rows):
        """Return an entry of H + A.T k A; of the identity if i or j is prescribed."""
        x = self.H[i, j]
        for k in rows:
            x = x + self.free[k, i] * self.k[k] * self.free[k, j]
        same = 1.0 if i == j else 0.0
        return where(self.prescribed[i], same, where(self.prescribed[j], same, x))


class DenseLoops(EasedInertia):
    """Solver of H qdd - A.T lambda = push, A qdd = wanted, by dense factors.

        K = H + A.T k A,   p = push + A.T k wanted
        lambda = (A K^-1 A.T)^-1 (wanted - A K^-1 p),   qdd = K^-1 (p + A.T lambda)

    Prescribed coordinates have qdd = 0 here. Both a row that depends on others and a
    joint without inertia that no loop moves raise SingularError when the Program runs.

    Args:
        model, q: Robot and joint positions, nq.
        rows: LoopRows of the position.
        prescribed: For each coordinate, the condition that its acceleration is given.

    Attributes:
        G: Factors of A K^-1 A.T. Others as in EasedInertia.

    Source: KIM-3.2 (67)-(69), with the constraints added to the inertia.
    """

    def __init__(self, model, q, rows, prescribed):
        super().__init__(model, q, rows, prescribed)
        m = range(len(rows))
        answers = [self.K.solve(row) for row in self.free.rows]
        G = Matrix(
            [Vector(self.free.rows[a]) @ answers[max(a, b)] for b in m] for a in m
        )
        squares = [Vector(row) @ Vector(row) for row in self.free.rows]
        tolerances = pivot_tolerances([G[a, a] for a in m], squares, self.slopes)
        self.G = Factored(G, tolerances, dependence_items(rows))

    def solve(self, push, wanted):
        """Return qdd, nv, zero where prescribed, and the multipliers lambda, m.

        Dependent rows, or a joint without inertia that no loop moves, raise
        SingularError when the Program runs.

        Args:
            push: Joint forces, nv; entries of prescribed coordinates are ignored.
            wanted: A qdd, m.
        """
        eased = push + self.free.T @ (self.k * wanted)
        pairs = zip(self.prescribed, eased, strict=True)
        start = self.K.solve([where(rigid, 0.0, x) for rigid, x in pairs])
        x = self.G.solve(wanted - self.free @ start)
        return start + self.K.solve(self.free.T @ x), x


def _stiffness(size, slope):
    """Return the weight k of a row in K, size / slope; 0 if the slope is 0.

    With it, A.T k A has the magnitude of H. size: trace of H; slope: scale of the row's
    squared norm.
    """
    if isinstance(slope, float):
        return size / slope if slope else 0.0
    return where(slope > 0.0, size / where(slope > 0.0, slope, 1.0), 0.0)


def dense_hybrid(model, q, qd, prescribed, qdd, tau, f_ext, rates):
    """Return tau, qdd, lambda and LoopRows of constrained_hybrid by dense algebra.

    The LoopRows have the accelerations of the prescribed qdd with zeros elsewhere.
    Dependent rows, and a joint without inertia that no loop moves, raise SingularError
    when the Program runs.

    Source: KIM-3.3 (70)-(80).
    """
    pairs = zip(prescribed, qdd, strict=True)
    qdd_u = Vector(where(rigid, x, 0.0) for rigid, x in pairs)
    rows = rows_of(model, q, qd, qdd_u)
    taken = open_forces(model, q, qd, qdd_u, f_ext)
    loops = DenseLoops(model, q, rows, prescribed)
    change, x = loops.solve(tau - taken, wanted_of(rows, *rates))
    force = taken + loops.H @ change - loops.A.T @ x
    triples = zip(prescribed, force, tau, strict=True)
    tau = Vector(where(rigid, y, z) for rigid, y, z in triples)
    return tau, qdd_u + change, x, rows
