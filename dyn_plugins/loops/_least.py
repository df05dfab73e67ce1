"""Equations of motion with dependent rows: multipliers of least norm.

Not a solver: those of loop_min_norm.py and of steps share it.
"""

from dyn_core.authoring import (
    Factored,
    Matrix,
    Vector,
    absolute,
    cos,
    join_force,
    join_matrix,
    logical_not,
    maximum,
    require,
    resistance,
    split_q,
    split_v,
    sqrt,
    total,
    where,
)
from dyn_core.errors import SingularError
from dyn_plugins.dynamics.crba import crba
from dyn_plugins.dynamics.rnea import rnea
from dyn_plugins.loops._dense import EasedInertia, needs_dense
from dyn_plugins.loops._loop_rows import jacobian_of, rows_of
from dyn_plugins.loops._ranked import TOLERANCE, RankedRows, maximum_of

DRIFTING = 1e-6  # tolerance of the rank where a simulation leaves loops a bit open
CURVED = 1e-4  # share of the rows' curvature above which a rank drops here only
STILL = 1e-8  # part of a velocity below which it is rounding


class LeastLoops:
    """H qdd - A.T lambda = push, A qdd = wanted, with the lambda of least norm.

        H = L.T D L,   B = A L^-1 D^-1/2,   missing = wanted - A H^-1 push
        qdd = H^-1 push + L^-1 D^-1/2 B^+ missing,   lambda = (B B.T)^+ missing

    Where loops hold a body without inertia, H + A.T k A takes the place of H, which
    changes neither. Prescribed coordinates have no part in it.

    Args:
        model: Robot.
        q: Joint positions, nq.
        rows: LoopRows.
        prescribed: By coordinate: condition that its acceleration is prescribed.
        tolerance: Of the rank, relative: see RankedRows.

    Attributes:
        H, A: Joint-space inertia and Jacobian of the whole robot.
        B: RankedRows.

    Source: KIM-3.0 (redundant rows), KIM-3.2 (67)-(69).
    """

    def __init__(self, model, q, rows, prescribed, tolerance):
        self.model, self.q, self.rows, self.prescribed = model, q, rows, prescribed
        self.tolerance = tolerance
        n = range(model.nv)
        if needs_dense(model):
            eased = EasedInertia(model, q, rows, prescribed)
            self.H, self.A, self.K, self.k = eased.H, eased.A, eased.K, eased.k
        else:
            self.H = join_matrix(model, crba(model, split_q(model, q)))
            self.A, self.k = jacobian_of(model, q, rows), None
            kept = ([self._kept(i, j) for j in n] for i in n)
            self.K = _factors(model, Matrix(kept))
        self.free = [self._moving(Vector(row)) for row in self.A.rows]
        self.scale = [sqrt(x) for x in self.K.over_D]
        seen = [self._seen(row) for row in self.free]
        self.B = RankedRows(seen, model.nv, tolerance)

    def _kept(self, i, j):
        """Return an entry of H; 1 and 0 for prescribed coordinates."""
        same = 1.0 if i == j else 0.0
        rigid = self.prescribed
        return where(rigid[i], same, where(rigid[j], same, self.H[i, j]))

    def _moving(self, values):
        """Return what coordinates have that are not prescribed, zeros for others."""
        pairs = zip(self.prescribed, values, strict=True)
        return Vector(where(rigid, 0.0, x) for rigid, x in pairs)

    def _seen(self, row):
        """Return a row of B of one of A."""
        z, _ = self.K.halves(row)
        return Vector(x * s for x, s in zip(z, self.scale, strict=True))

    def _back(self, share):
        """Return L^-1 D^-1/2 share: the motion of coordinates of unit inertia."""
        x = [y * s for y, s in zip(share, self.scale, strict=True)]
        for i in range(len(x)):
            for k in range(i):
                x[i] = x[i] - self.K.L[i][k] * x[k]
        return Vector(x)

    def solve(self, push, wanted):
        """Return qdd, zero where prescribed, lambda, and how far A qdd is from wanted.

        Args:
            push: Joint forces, nv.
            wanted: A qdd, m.
        """
        push, wanted = self._moving(push), Vector(wanted)
        if self.k is not None:
            for row, k, x in zip(self.free, self.k, wanted, strict=True):
                push = push + row * (k * x)
        start = self.K.solve(push)
        missing = wanted - Vector(row @ start for row in self.free)
        share, left = self.B.solve(missing)
        return start + self._back(share), self.B.multipliers(missing), left

    def velocity_of(self, multipliers):
        """Return a velocity w, nv, with A w = lambda, for multipliers of least norm."""
        return self._back(self.B.solve(multipliers)[0])

    def resolve_dead_points(self, dead_point="refuse"):
        """Tell rows that depend on each other everywhere from those of a dead point.

            y.T A = 0  and  y.T d²f(t, t) = 0  for y of dependent rows, tangents t

        Rows that depend on each other everywhere keep the second; at a dead point of a
        linkage it fails: another branch of motion begins there. Beside it rows differ
        by their distance from it, so there they count down to TOLERANCE, however much
        larger the tolerance for drift is: a dead point begins at the same distance for
        all solvers. Only one combination of rows can be told apart so; where several
        linkages come so near to dead points at once, they are refused.

        Args:
            dead_point: refuse: a SingularError; least: rows that are dependent there
                ask for nothing.
        """
        size = self.model.nv
        if not self.rows or not size:
            return
        curvatures = [self._curvature(self._tangent(1.0))]
        if not self.tolerance <= TOLERANCE:
            curvature, bound = curvatures[0]
            bent = self.B.without_columns(curvature)
            bends = maximum_of([absolute(x) for x in bent]) > bound
            self.B.add_combination(bent, TOLERANCE, bends)
            if dead_point == "refuse":
                curvatures.append(self._curvature(self._tangent(2.0)))
        for curvature, bound in curvatures if dead_point == "refuse" else ():
            bent = self.B.without_columns(curvature)
            for row, x in zip(self.rows, bent, strict=True):
                item = (
                    f"{row.name}: dependent at this dead point, but not beside it, so"
                    " the motion has no unique acceleration; valid: a position beside"
                    " it, or dead_point='least' for the least accelerations"
                )
                require(logical_not(absolute(x) > bound), SingularError, item)

    def _tangent(self, seed):
        """Return a velocity that the rows allow, its largest entry 1; zero if none."""
        size = self.model.nv
        start = self._moving(Vector(cos(seed + seed * j) for j in range(size)))
        moving = self.B.without_rows(start)
        moves = moving @ moving > STILL * STILL
        t = self._back(where(moves, moving, Vector.zeros(size)))
        length = maximum_of([absolute(x) for x in t])
        return t * (1.0 / where(length > 0.0, length, 1.0))

    def _curvature(self, t):
        """Return d²f(t, t) of all rows, driven places at rest, and what it must exceed.

        Where a linkage only translates no row is curved. So what counts is also a share
        of how fast the joints, each alone, move the rows: that of drift.
        """
        rates = (
            [absolute(a * x) for a, x in zip(row, t, strict=True)]
            for row in self.A.rows
        )
        moved = maximum_of([total(rate) for rate in rates])
        curvature = self._second_rates(t)
        largest = maximum_of([absolute(x) for x in curvature])
        return curvature, maximum(largest * CURVED, moved * self.tolerance)

    def _second_rates(self, t):
        """Return d²f(t, t) of all rows along a velocity."""
        model, q, still = self.model, self.q, Vector.zeros(self.model.nv)

        def bias(velocity):
            rows = rows_of(model, q, velocity, still)
            return Vector(row.acceleration for row in rows)

        if not model.driven:
            return bias(t)
        return (bias(t) + bias(-t)) * 0.5 - bias(still)


def _factors(model, H):
    """Factor a joint-space inertia in one piece; a singular pivot names its joint."""
    tolerances, names = [0.0] * model.nv, [""] * model.nv
    for i in model.independent:
        columns = model.v_slices[i]
        tolerances[columns] = model.pivot_tolerances[i]
        names[columns] = [f"joint {model.names[i]}"] * model.joint[i].nv
    return Factored(H, tolerances, names)


def least_hybrid(
    model, q, qd, prescribed, qdd, tau, f_ext, rates, tolerance, dead_point
):
    """Return what constrained_hybrid does, of rows that may depend on each other.

    Args:
        model, q, qd, prescribed, qdd, tau, f_ext, rates: As constrained_hybrid takes
            them.
        tolerance: Of the rank, relative: see RankedRows.
        dead_point: See LeastLoops.resolve_dead_points.

    Returns:
        tau, qdd (nv each), lambda, the rows, how far they are from what is wanted, and
        the LeastLoops.

    Source: KIM-3.0 (redundant rows), KIM-3.3 (70)-(80).
    """
    pairs = zip(prescribed, qdd, strict=True)
    qdd_u = Vector(where(rigid, x, 0.0) for rigid, x in pairs)
    rows = rows_of(model, q, qd, qdd_u)
    motion = split_q(model, q), split_v(model, qd), split_v(model, qdd_u)
    taken = join_force(model, rnea(model, *motion, f_ext)) + resistance(model, q, qd)
    loops, (a, b) = LeastLoops(model, q, rows, prescribed, tolerance), rates
    loops.resolve_dead_points(dead_point)
    wanted = wanted_of(rows, a, b)
    change, x, left = loops.solve(tau - taken, wanted)
    force = taken + loops.H @ change
    for row, y in zip(loops.A.rows, x, strict=True):
        force = force - Vector(row) * y
    triples = zip(prescribed, force, tau, strict=True)
    force = Vector(where(rigid, y, z) for rigid, y, z in triples)
    return force, qdd_u + change, x, rows, left, loops


def wanted_of(rows, a, b):
    """Return the changes of the rows' accelerations that Baumgarte's rates ask for."""
    return Vector(
        -(row.acceleration + row.rate * (2.0 * a) + row.f * (b * b)) for row in rows
    )
