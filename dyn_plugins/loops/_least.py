"""Equations of motion with dependent rows: multipliers of least norm.

Not a solver: solvers of loops take it with dependent="least_norm". The rows are
factored one after another, the largest remainder first. The rank is reached when a
remainder is below `tolerance` times the largest row; for motions, the rows of A H^-1/2
count. If the rank drops in one position only (a dead point), no solution there is near
the solutions around it: this is a SingularError, or dead_point="least" gives the least
accelerations. Least norms mix N and N·m; `weight` scales joint forces or multipliers
before their squares are summed. m is the number of the rows of all loops.
"""

from dyn_core.authoring import (
    Factored,
    Matrix,
    TracedSolver,
    Vector,
    absolute,
    cos,
    join_matrix,
    logical_not,
    maximum,
    require,
    split_q,
    sqrt,
    total,
    where,
)
from dyn_core.errors import InfeasibleError, SingularError, UnsupportedError
from dyn_core.validation import Name, Quantity
from dyn_plugins.dynamics.crba import crba
from dyn_plugins.loops._dense import EasedInertia, needs_dense
from dyn_plugins.loops._loop_rows import jacobian_of, open_forces, rows_of, wanted_of
from dyn_plugins.loops._ranked import TOLERANCE, RankedRows, maximum_of

DRIFTING = 1e-6  # tolerance of the rank in a simulation, which leaves loops a bit open
SLACK = 1e-6  # largest contradiction of rows, relative to accelerations or absolute
# The same in a simulation: rows that differ by DRIFTING are dependent, and Baumgarte's
# terms (rates of 20 1/s) multiply this difference by 400.
DRIFTING_SLACK = 1e-3
DEPENDENT = {
    "dependent": Name(("refuse", "least_norm")),
    "dead_point": Name(("refuse", "least")),
    "objective": Name(("torque", "force")),
    **dict.fromkeys(("alpha", "beta", "tolerance", "slack"), Quantity(0.0)),
}  # rules of the options that solvers of loops share
LEAST_ONLY = "tolerance", "dead_point", "slack", "objective", "weight"
CURVED = 1e-4  # curvature of a dependent row at a dead point, relative to the largest
STILL = 1e-8  # allowed part of a unit velocity that counts as rounding


class LoopSolver(TracedSolver):
    """A solver of loops with the option `dependent`, and options that need least_norm.

    The latter are LEAST_ONLY; if one of them is given without least_norm, the solver
    raises UnsupportedError, even for the default value.
    """

    def _adapter(self, model, common, chosen):
        """Return the Adapter for a model; refuse options without an effect."""
        dependent = chosen.get("dependent", self.options["dependent"])
        refuse_idle(self, chosen, dependent)
        return super()._adapter(model, common, chosen)


def refuse_idle(solver, chosen, dependent):
    """Refuse options in LEAST_ONLY that are given with dependent="refuse"."""
    changed = {**solver.changed_options, **chosen}
    idle = [name for name in LEAST_ONLY if name in changed]
    if idle and dependent == "refuse":
        raise UnsupportedError(
            f"{solver.name}: {', '.join(idle)} without effect: dependent='refuse';"
            " valid: dependent='least_norm'"
        )


class LeastLoops:
    """Solver of H qdd - A.T lambda = push, A qdd = wanted, with lambda of least norm.

        H = L.T D L,   B = A L^-1 D^-1/2,   missing = wanted - A H^-1 push
        qdd = H^-1 push + L^-1 D^-1/2 B^+ missing,   lambda = (B B.T)^+ missing

    If loops determine the motion of a body without inertia, H + A.T k A replaces H,
    which changes neither result. qdd of prescribed coordinates is zero. A joint without
    inertia that no loop moves raises SingularError when the Program runs.

    Args:
        model: Robot.
        q: Joint positions, nq.
        rows: LoopRows of the position.
        prescribed: For each coordinate, the condition that its acceleration is given.
        tolerance: Relative tolerance of the rank; see RankedRows.

    Attributes:
        H, A: Joint-space inertia, nv x nv, and Jacobian, m x nv, of the whole robot.
        free: Rows of A with zeros for prescribed coordinates, m Vectors.
        K, k: Factors of H, or of H + A.T k A, with rows and columns of the identity for
            prescribed coordinates; the weights k, or None.
        scale: D^-1/2, a list, nv.
        B: RankedRows; resolve_dead_points may change it.

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
        """Return entry (i, j) of H; of the identity for prescribed coordinates."""
        same = 1.0 if i == j else 0.0
        rigid = self.prescribed
        return where(rigid[i], same, where(rigid[j], same, self.H[i, j]))

    def _moving(self, values):
        """Return values, nv, with zeros for prescribed coordinates."""
        pairs = zip(self.prescribed, values, strict=True)
        return Vector(where(rigid, 0.0, x) for rigid, x in pairs)

    def _seen(self, row):
        """Return the row of B, row L^-1 D^-1/2, for a row of A."""
        z, _ = self.K.halves(row)
        return Vector(x * s for x, s in zip(z, self.scale, strict=True))

    def _back(self, share):
        """Return L^-1 D^-1/2 share, nv: from coordinates of unit inertia to joints."""
        x = [y * s for y, s in zip(share, self.scale, strict=True)]
        for i in range(len(x)):
            for k in range(i):
                x[i] = x[i] - self.K.L[i][k] * x[k]
        return Vector(x)

    def solve(self, push, wanted):
        """Return qdd, zero where prescribed, lambda, and the residual of the rows.

        Args:
            push: Joint forces, nv; those of prescribed coordinates are ignored.
            wanted: A qdd, m.

        Returns:
            qdd, nv; lambda, m; wanted - A qdd, m, non-zero if rows contradict each
            other.
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
        """Return a velocity w, nv, with A w = multipliers.

        multipliers: Vector, m, in the range of A, as multipliers of least norm are.
        """
        return self._back(self.B.solve(multipliers)[0])

    def resolve_dead_points(self, dead_point="refuse"):
        """Treat a dead point: change the rank of B near it, raise SingularError at it.

            y.T A = 0  and  y.T d²f(t, t) = 0  for y of dependent rows, tangents t

        f are the closure errors of the loops, A their derivatives by the coordinates.
        Rows that depend on each other everywhere satisfy both equations, and stay
        dependent; at a dead point of a linkage the second fails: another branch of
        motion begins there. Near a dead point, the gradients of the rows differ in
        proportion to the distance from it. There the tolerance of the rank is 1e-9
        (TOLERANCE), even if the tolerance for drift is larger: a dead point then begins
        at the same distance for all solvers, and self.B gets one combination of rows
        more.

        Only one such combination can be added: with refuse and a tolerance above
        TOLERANCE, several linkages near dead points at the same time also raise
        SingularError. Nothing happens without rows or coordinates. Errors are raised
        when the Program runs.

        Args:
            dead_point: refuse: a SingularError at a dead point; least: no error, and
                rows that are dependent there have no effect.
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
        """Return a velocity that the rows allow, nv, with the largest magnitude 1.

        It is zero if they allow none. seed: Number that selects one of several such
        velocities.
        """
        size = self.model.nv
        start = self._moving(Vector(cos(seed + seed * j) for j in range(size)))
        moving = self.B.without_rows(start)
        moves = moving @ moving > STILL * STILL
        t = self._back(where(moves, moving, Vector.zeros(size)))
        length = maximum_of([absolute(x) for x in t])
        return t * (1.0 / where(length > 0.0, length, 1.0))

    def _curvature(self, t):
        """Return d²f(t, t) of all rows, m, and one bound for all of them, a number.

        An entry, or the part of it that dependent rows have, counts as zero up to the
        bound. Driven frames are at rest.
        """
        # Rows of a linkage that only translates have no curvature at all, so the bound
        # also has a part of the rates at which single joints move the rows.
        rates = (
            [absolute(a * x) for a, x in zip(row, t, strict=True)]
            for row in self.A.rows
        )
        moved = maximum_of([total(rate) for rate in rates])
        curvature = self._second_rates(t)
        largest = maximum_of([absolute(x) for x in curvature])
        return curvature, maximum(largest * CURVED, moved * self.tolerance)

    def _second_rates(self, t):
        """Return d²f(t, t) of all rows, m, for a velocity t, nv; driven frames rest."""
        model, q, still = self.model, self.q, Vector.zeros(self.model.nv)

        def bias(velocity):
            rows = rows_of(model, q, velocity, still)
            return Vector(row.acceleration for row in rows)

        if not model.driven:
            return bias(t)
        return (bias(t) + bias(-t)) * 0.5 - bias(still)


def _factors(model, H):
    """Return the factors of a joint-space inertia; a singular pivot names its joint."""
    tolerances, names = [0.0] * model.nv, [""] * model.nv
    for i in model.independent:
        columns = model.v_slices[i]
        tolerances[columns] = model.pivot_tolerances[i]
        names[columns] = [f"joint {model.names[i]}"] * model.joint[i].nv
    return Factored(H, tolerances, names)


def least_hybrid(
    model, q, qd, prescribed, qdd, tau, f_ext, rates, tolerance, dead_point
):
    """Return hybrid dynamics with loops whose rows may depend on each other.

    Arguments are those of constrained_hybrid, RankedRows and, for dead_point,
    LeastLoops.resolve_dead_points. A joint without inertia that no loop moves, and a
    dead point with dead_point="refuse", raise SingularError when the Program runs.
    Returns tau and qdd; lambda of least norm; the LoopRows, with the accelerations for
    the prescribed qdd and zeros elsewhere; the residuals of the rows' desired
    accelerations, not zero if rows contradict each other; and the LeastLoops.

    Source: KIM-3.0 (redundant rows), KIM-3.3 (70)-(80).
    """
    pairs = zip(prescribed, qdd, strict=True)
    qdd_u = Vector(where(rigid, x, 0.0) for rigid, x in pairs)
    rows = rows_of(model, q, qd, qdd_u)
    taken = open_forces(model, q, qd, qdd_u, f_ext)
    loops = LeastLoops(model, q, rows, prescribed, tolerance)
    loops.resolve_dead_points(dead_point)
    change, x, left = loops.solve(tau - taken, wanted_of(rows, *rates))
    force = taken + loops.H @ change
    for row, y in zip(loops.A.rows, x, strict=True):
        force = force - Vector(row) * y
    triples = zip(prescribed, force, tau, strict=True)
    force = Vector(where(rigid, y, z) for rigid, y, z in triples)
    return force, qdd_u + change, x, rows, left, loops


def agreeing_hybrid(
    model, q, qd, prescribed, qdd, tau, f_ext, rates, tolerance, dead_point, slack
):
    """Return tau, qdd, lambda and LoopRows of least_hybrid if the rows agree.

    If a row's acceleration has a residual above slack, relative to the largest desired
    change of a row's acceleration, or absolute if that is below 1 [m/s² | rad/s²], the
    Program raises InfeasibleError, which names a row.
    """
    tau, qdd, x, rows, left, _ = least_hybrid(
        model, q, qd, prescribed, qdd, tau, f_ext, rates, tolerance, dead_point
    )
    sizes = [absolute(y) for y in wanted_of(rows, *rates)]
    item = "the loops ask for accelerations that differ"
    if any(rigid is not False for rigid in prescribed):
        item += ", or that prescribed ones do not allow"
    bound = maximum(1.0, maximum_of(sizes)) * slack
    require_small(left, bound, [f"{row.name}: {item}" for row in rows])
    return tau, qdd, x, rows


def least_torque(within, columns, left, tolerance, scales, m):
    """Return the change of lambda, m, that minimises the active joint forces.

    The joint force of an active coordinate becomes left - column . change; `scales` are
    its factors in the norm. `within` projects a vector on the changes without effect on
    passive joints.
    """
    pairs = list(zip(columns, scales, strict=True))
    whole = maximum_of([(column @ column) * (s * s) for column, s in pairs])
    rows = [within(column) * s for column, s in pairs]
    floor = sqrt(whole) * tolerance
    scaled = [x * s for x, s in zip(left, scales, strict=True)]
    return RankedRows(rows, m, tolerance, floor).solve(scaled)[0]


def least_multipliers(columns, missing, m, tolerance, scales):
    """Return lambda, m, with columns.T lambda = missing, and factors of the columns.

    lambda has the least norm of scales * lambda among the solutions of least squared
    residual; the factors, of the columns divided by `scales`, are a RankedRows.
    """
    B = RankedRows([_divided(column, scales) for column in columns], m, tolerance)
    return _divided(B.solve(missing)[0], scales), B


def _divided(values, scales):
    """Return the Vector of values, each divided by its entry of `scales`."""
    return Vector(x / s for x, s in zip(values, scales, strict=True))


def scales_of(weight, size):
    """Return `weight`, refused unless of `size` entries, as a list; ones for None.

    Zeros, by which later code divides, and negative numbers are not refused.
    """
    if weight is None:
        return [1.0] * size
    weight = [float(x) for x in weight]
    if len(weight) != size:
        raise UnsupportedError(f"weight has {len(weight)} numbers; valid: {size}")
    return weight


def require_small(values, bound, items):
    """Raise InfeasibleError in the Program unless all |values| are <= bound or NaN."""
    for x, item in zip(values, items, strict=True):
        require(logical_not(absolute(x) > bound), InfeasibleError, item)
