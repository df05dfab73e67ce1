"""Terms of the active contacts in the linear system of a step's derivatives.

A body has at most six independent rows; their inverse may have any rank.

Not a solver: the derivatives of steps share it.
"""

import math
from typing import Any, NamedTuple

from dyn_core.authoring import (
    Force,
    Matrix,
    Motion,
    Vector,
    absolute,
    join_matrix,
    join_slopes,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    product,
    slope_of,
    sparse_products,
    split_q,
    split_v,
    sqrt,
    total,
    where,
    with_slopes,
)
from dyn_core.contact.rows import contact_biases
from dyn_plugins.contact_steps._active_rows import (
    active_contacts,
    moving_rates,
    placed_bodies,
    units,
)
from dyn_plugins.contact_steps.contact_step import normal_bias
from dyn_plugins.kinematics.body_motion import outward

RANK = 1e-9  # pivot of a dependent row at most, relative to its response
FLAT = 1e-7  # remainder of a dependent column at most, relative to the column
AGREE = 1e-7  # largest contradiction of dependent rows, relative to their right sides
NOTHING = 1e-12  # response that counts as zero, relative to the largest


class Row(NamedTuple):
    """A row of active contacts on a body, as Forces paired with columns s of joints.

        along . du + by_q dq + by_qd dqd + by_gap dgap = 0

    Attributes:
        along: Velocity of the row per motion.
        push: Wrench of the row per impulse.
        turned: Coefficient of a column s in by_q.
        before: Coefficient of s in by_qd, and of the rate of s before the step in by_q.
        by_gap: Coefficients of the gaps of the body's contacts.
    """

    along: Force
    push: Force
    turned: Force
    before: Force
    by_gap: Vector


class BodyRows(NamedTuple):
    """At most six rows of one body, and the number of rows that the others imply.

    T maps the rows of the contacts to `rows`, a list of six Vectors; None: identity.
    disagree: Dependent rows contradict each other, as if the gaps of a box's corners
    had different derivatives.
    """

    rows: list
    dependent: Any
    T: Any
    disagree: Any


def rows_of_body(contacts, slopes):
    """Return the BodyRows of the ActiveContacts of one body.

    Each contact gives three rows: normal, along and across the slip. Tangent rows of a
    contact that does not stick, and all rows of one that does not press, are zero. In a
    slipping contact, `push` of the normal row includes the friction. `slopes` are, by
    contact, derivatives of its bias by gap and velocity of approach.

    More than six rows A (m x 6) are reduced to T A, with T (6 x m) the transposed
    orthonormal columns of A: Gram-Schmidt on six columns, with zeros for dependent
    columns. The impulses T.T y have the least norm.
    """
    rows, n = [], range(len(contacts))
    for k, (x, (by_gap, by_approach)) in enumerate(zip(contacts, slopes, strict=True)):
        mode, (shift, _), (_, g_before) = x.mode, x.by_gap, x.before
        parts = (
            (mode.pressed, x.f[0] - x.f[1] * mode.mu),
            (mode.sticks, x.f[1]),
            (mode.sticks, x.f[2]),
        )
        for a, (weight, push) in enumerate(parts):
            turned, before, moved = x.g[a], Force.zero(), shift[a]
            if a == 0:
                turned = turned + x.f[0] * by_gap + g_before * by_approach
                before, moved = x.f[0] * by_approach, moved + by_gap
            gaps = Vector(moved * weight if l == k else 0.0 for l in n)
            spatial = (part * weight for part in (x.f[a], push, turned, before))
            rows.append(Row(*spatial, gaps))
    if len(rows) <= 6:
        return BodyRows(rows, 0.0, None, False)
    count = total(x.mode.pressed + x.mode.sticks * 2.0 for x in contacts)
    six = list(zip(*(tuple(row.along) for row in rows), strict=True))
    T, rank = _orthonormal([Vector(column) for column in (*six[3:], *six[:3])])
    reduced = [_combined(rows, t) for t in T]
    left, size = 0.0, 0.0
    for k, row in enumerate(rows):
        implied = total(x.turned * t[k] for x, t in zip(reduced, T, strict=True))
        for x, y in zip(row.turned, implied, strict=True):
            left, size = maximum(left, absolute(x - y)), maximum(size, absolute(x))
    return BodyRows(reduced, count - rank, T, left > size * AGREE)


def inside_by_others(contacts, T):
    """Return the condition that a body's contacts can all stick with the same wrench.

    For dependent rows, the impulses that a solver finds may lie on a cone without need.
    If the impulses of least norm with the same wrench lie inside all cones, and all
    pressed contacts stick, no contact is about to slip. T is BodyRows.T; without it the
    impulses are unique, and the result is False.
    """
    if T is None:
        return False
    impulses = Vector(x for contact in contacts for x in contact.impulse)
    least = total(t * (t @ impulses) for t in T)
    inside = True
    for k, contact in enumerate(contacts):
        n, s, e = least[3 * k : 3 * k + 3]
        mode, limit = contact.mode, n * contact.mu
        sticks = logical_and(n > 0.0, sqrt(s * s + e * e) < limit * 0.999)
        good = logical_or(mode.pressed < 0.5, logical_and(mode.sticks > 0.5, sticks))
        inside = logical_and(inside, good)
    return inside


def _combined(rows, weights):
    """Return the weighted sum of one or more Rows, as a Row."""
    parts = zip(*rows, strict=True)
    return Row(
        *(total(x * w for x, w in zip(part, weights, strict=True)) for part in parts)
    )


def _orthonormal(columns):
    """Return orthonormal vectors that span the columns, by Gram-Schmidt, and the rank.

    A column whose part orthogonal to the ones before is at most 1e-7 of its length is
    dependent: its vector is zero.
    """
    basis, rank = [], 0.0
    for column in columns:
        left = column
        for other in basis:
            left = left - other * (other @ left)
        square, whole = left @ left, column @ column
        new = square > whole * (FLAT * FLAT)
        over = where(new, 1.0 / sqrt(where(new, square, 1.0)), 0.0)
        basis.append(left * over)
        rank = rank + where(new, 1.0, 0.0)
    return basis, rank


def inverse_of_any_rank(M):
    """Return an inverse of M on its independent rows, zero elsewhere, and a number.

    Gauss-Jordan elimination in the order of the rows. A row whose pivot is at most 1e-9
    of its diagonal entry depends on previous rows: for symmetric semidefinite M and
    consistent right sides, the solution satisfies it, too. The number is that of such
    rows, without rows of no response (diagonal entry at most 1e-12 of the largest).

    Source: G. Golub and C. Van Loan, Matrix Computations, 5.5, for the rank.
    """
    n, a = len(M.rows), [list(row) for row in M.rows]
    start = [absolute(a[k][k]) for k in range(n)]
    largest, dropped = 0.0, 0.0
    for x in start:
        largest = where(x > largest, x, largest)
    for k in range(n):
        responds = start[k] > largest * NOTHING
        good = logical_and(responds, absolute(a[k][k]) > start[k] * RANK)
        lost = logical_and(responds, logical_not(good))
        dropped = dropped + where(lost, 1.0, 0.0)
        over = where(good, 1.0 / where(good, a[k][k], 1.0), 0.0)
        pivots = [x * over for x in a[k]]
        for i in range(n):
            if i == k:
                continue
            x = a[i][k]
            for j in range(n):
                if j != k:
                    a[i][j] = a[i][j] - x * pivots[j]
            a[i][k] = -x * over
        a[k] = pivots
        a[k][k] = over
    return Matrix(a), dropped


class MovingContacts:
    """The active contacts of a step, as matrices of its linear system.

        (H + drag) du = (R_q - by_q) dq + ... + by_mu dmu + by_gap dgap + C.T dlambda
        A du = c_q dq + c_v dqd + c_gap dgap

    All points of `solved` have rows; `state` is q, qd and dt before the step.

    Attributes:
        modes: SEPARATE, STICK or SLIP of each contact, a Vector.
        at_border: Condition: a contact is at the boundary of two modes, or dependent
            rows contradict each other.
        at_gap_zero: Condition: a contact presses at gap 0, the kink of the bias.
        dependent: Number of rows that other rows of the same body imply.
        Psi, Psi_before: moving_rates at the velocities after and before the step.
        A, C, c_q, c_v, c_gap: Lists of the m active rows, each nv numbers; of c_gap one
            for each contact.
    """

    def __init__(self, model, rule, solved, state, parts):
        q, qd, dt = state
        self.model, self.parts = model, split_q(model, q)
        u, rate = split_v(model, solved.velocity), split_v(model, qd)
        X, S, v, _ = outward(model, self.parts, u, u, Motion.zero())
        before = outward(model, self.parts, rate, rate, Motion.zero())[2]
        self.placed = placed_bodies(model, X, S)
        self.Psi = moving_rates(model, self.placed, X, S, self.parts, v, u)
        self.Psi_before = moving_rates(
            model, self.placed, X, S, self.parts, before, rate
        )
        V = [None, *(self.placed.X[i].inverse @ v[i] for i in model.bodies)]
        surroundings = dt, parts.world, parts.links
        contacts = active_contacts(model, solved, self.placed, V, *surroundings)
        self.contacts = contacts
        self.modes = Vector(x.mode.kind for x in contacts)
        self.at_border, self.slips = False, False
        for x in contacts:
            self.at_border = logical_or(self.at_border, x.mode.at_border)
            self.slips = logical_or(self.slips, x.mode.slips > 0.0)
        self._collect_momentum()
        gaps = [contact.gap for contact in solved.touching]
        sides = gap_sides(contacts, gaps)
        self.at_gap_zero = False
        for at_zero, _ in sides:
            self.at_gap_zero = logical_or(self.at_gap_zero, at_zero)
        self._collect_rows(_bias_slopes(rule, solved, dt, parts.rule_options, sides))

    def _collect_momentum(self):
        """Set the terms in the equation of motion: drag, by_q, by_mu and by_gap."""
        model, n = self.model, self.model.nb + 1
        M, K = [None] * n, [None] * n
        for x in self.contacts:
            d, (_, _, f), (_, _, g) = x.mode.drag, x.f, x.g
            load = [x.load(e) + f * ((g @ e) * d) for e in units()]
            _add(M, x.body, load)
            _add(K, x.body, [f * ((f @ e) * d) for e in units()])
        by_q, drag = self._blocks(M, K)
        self.by_q, self.drag = join_slopes(model, by_q), join_matrix(model, drag)
        by_mu, by_gap = [], []
        for x in self.contacts:
            (*_, across), pushed = x.by_gap
            by_mu.append(self._row(x.body, x.f[1] * (-x.impulse[0] * x.mode.slips)))
            shifted = pushed - x.f[2] * (across * x.mode.drag)
            by_gap.append(self._row(x.body, shifted))
        self.by_mu = _transposed(by_mu, model.nv)
        self.by_gap = _transposed(by_gap, model.nv)

    def _blocks(self, M, K):
        """Return dicts of the blocks of J.T (M J + K Psi), and lower ones of J.T K J.

        M, K: six Forces by body, or None; columns of children are added to their
        parents' entries, in place.
        """
        model, S, Psi = self.model, self.placed.S, self.Psi
        by_q, drag = {}, {}
        for i in reversed(model.bodies):
            if M[i] is None:
                continue
            if model.parent[i]:
                _add(M, model.parent[i], M[i])
                _add(K, model.parent[i], K[i])
            columns = {j: _loads(S[j], Psi[j], M[i], K[i]) for j in self._path(i)}
            for j, (load, resistance) in columns.items():
                if not len(S[i]):
                    continue
                by_q[i, j] = _dots(S[i], load)
                drag[i, j] = _dots(S[i], resistance)
                by_q[j, i] = _dots(S[j], columns[i][0])
        return by_q, drag

    def _path(self, i):
        """Return the bodies whose joints can move, from i, included, to the base."""
        path = []
        while i:
            if len(self.placed.S[i]):
                path.append(i)
            i = self.model.parent[i]
        return path

    def _row(self, i, force, *others):
        """Return J.T force, a list of nv; force: on body i, coordinates of `placed`.

        others: Further pairs of a Force and subspaces by body, which are added.
        """
        model, row = self.model, [0.0] * self.model.nv
        pairs = [(force, self.placed.S), *others]
        for j in self._path(i):
            n = range(len(self.placed.S[j]))
            part = Vector(total(f @ by_body[j][k] for f, by_body in pairs) for k in n)
            ratio = model.leader[j].ratio
            part = part if ratio is None else ratio.T @ part
            for k, x in enumerate(part, model.v_slices[j].start):
                row[k] = row[k] + x
        return row

    def _collect_rows(self, slopes):
        """Set A, C, c_q, c_v, c_gap, dependent by body; at_border can become true.

        slopes: For each contact, derivatives of its bias by gap and by approach.
        """
        self.A, self.C, self.c_q, self.c_v, self.c_gap = [], [], [], [], []
        self.dependent, count = 0.0, len(self.contacts)
        for i in dict.fromkeys(x.body for x in self.contacts):
            indices = [k for k in range(count) if self.contacts[k].body == i]
            contacts = [self.contacts[k] for k in indices]
            body_rows = rows_of_body(contacts, [slopes[k] for k in indices])
            self.dependent = self.dependent + body_rows.dependent
            self.at_border = logical_or(self.at_border, body_rows.disagree)
            safe = inside_by_others(contacts, body_rows.T)
            for x in contacts:
                waiting = logical_and(x.mode.at_cone, logical_not(safe))
                self.at_border = logical_or(self.at_border, waiting)
            for row in body_rows.rows:
                self.A.append(self._row(i, row.along))
                self.C.append(self._row(i, row.push))
                rates = (-row.along, self.Psi), (-row.before, self.Psi_before)
                self.c_q.append(self._row(i, -row.turned, *rates))
                self.c_v.append(self._row(i, -row.before))
                moved = dict(zip(indices, row.by_gap, strict=True))
                self.c_gap.append(
                    [-moved[k] if k in moved else 0.0 for k in range(count)]
                )


def gap_sides(contacts, gaps):
    """Return for each contact whether it presses at gap 0, and its side of the kink.

    Pairs of conditions. The first: it presses and |gap| is at most 1e-7 m. The second,
    read only where the first holds: the derivative of an open gap applies, else the one
    of an overlap. All contacts of a body get the side of its lowest pressing contact at
    gap 0, open if this gap is above 1e-12 m; without one, the open side.
    """
    # Dependent rows, as of a box's four corners, cannot have different slopes.
    at_zero, lowest = [], {}
    for x, gap in zip(contacts, gaps, strict=True):
        near = logical_and(
            gap >= -contact_biases.AT_ZERO, gap <= contact_biases.AT_ZERO
        )
        at_zero.append(logical_and(x.mode.pressed > 0.0, near))
        low = lowest.get(x.body, contact_biases.AT_ZERO)
        lowest[x.body] = minimum(low, where(at_zero[-1], gap, contact_biases.AT_ZERO))
    above = [lowest[x.body] > contact_biases.ROUNDING for x in contacts]
    return list(zip(at_zero, above, strict=True))


def _bias_slopes(rule, solved, dt, options, sides):
    """Return pairs of the slopes of contacts' biases by gap [(m/s)/m] and by approach.

    Contacts that take no part have zeros; the slope by approach is 0 without
    restitution. sides: result of gap_sides.
    """
    slopes = []
    for contact, motions, active, (at_zero, above) in zip(
        solved.touching, solved.motions, solved.active, sides, strict=True
    ):
        beside = where(above, contact_biases.AT_ZERO, -contact_biases.AT_ZERO)
        (gap,) = with_slopes([where(at_zero, beside, contact.gap)], [1.0])
        approach, n = motions[0], contact.forces[0]
        terms = contact, gap, motions, dt, options
        by_gap = slope_of(normal_bias(rule, *terms)[1])
        by_approach = 0.0
        if contact.restitution > 0:
            speed = with_slopes([n @ approach], [1.0])[0]
            by_approach = slope_of(normal_bias(rule, *terms, approach=speed)[1])
        if active is not True:
            by_gap, by_approach = (where(active, x, 0.0) for x in (by_gap, by_approach))
        slopes.append((by_gap, by_approach))
    return slopes


def _add(sums, i, columns):
    """Add six columns to sums[i], in place; None in sums[i] counts as zero."""
    old = sums[i]
    sums[i] = (
        columns if old is None else [a + b for a, b in zip(old, columns, strict=True)]
    )


def _applied(columns, motion):
    """Return a matrix, given as six columns, Forces, times a Motion: a Force."""
    return total(c * x for c, x in zip(columns, motion, strict=True))


def _loads(S, Psi, M, K):
    """Return the columns of M S + K Psi and of K S, two lists of Forces."""
    pairs = list(zip(S, Psi, strict=True))
    load = [_applied(M, s) + _applied(K, psi) for s, psi in pairs]
    return load, [_applied(K, s) for s in S]


def _dots(S, forces):
    """Return the Matrix S.T F; S: motion subspace; forces: the columns of F, Forces."""
    return Matrix([s @ f for f in forces] for s in S)


def _transposed(rows, height):
    """Return the Matrix whose columns are `rows`; without rows it is (height, 0)."""
    return Matrix(rows).T if rows else Matrix.zeros(height, 0)


def constrained(inverse, momentum, moving):
    """Return the solution of the linear system, with the active rows kept, and E.

    `inverse` is that of the inertia with the drag; `momentum` has right sides of the
    equation of motion by q, qd, p, mu and gaps. Returns four values: a tuple of the
    derivatives of u by these; E, nv x nv, the derivative of u by the right side of the
    equation of motion (`inverse` without contacts); the number of dependent rows; and
    the condition that dependent rows contradict each other by q: next to this position
    they are independent.
    """
    by_q, by_qd, by_p, by_mu, by_gap = momentum
    if not moving.A:
        by_q, by_qd = sparse_products(inverse, (by_q, by_qd))
        return (
            (by_q, by_qd, _product(inverse, by_p), by_mu, by_gap),
            inverse,
            0.0,
            False,
        )
    A_T, C_T = Matrix(moving.A).T, Matrix(moving.C).T
    A_inverse, pushed = sparse_products(inverse, (A_T, C_T))
    (responses,) = sparse_products(pushed.T, (A_T,))
    over, lost = inverse_of_any_rank(responses.T)
    L = product(pushed, over)
    E = product(L, A_inverse.T, inverse, negative=True)
    by_q, by_qd = sparse_products(E, (by_q, by_qd))
    more = sparse_products(L, (Matrix(moving.c_q), Matrix(moving.c_v)))
    (by_mu,) = sparse_products(E, (by_mu,))
    (by_gap,) = sparse_products(E, (by_gap,))
    (closed,) = sparse_products(L, (Matrix(moving.c_gap),))
    slopes = by_q + more[0], by_qd + more[1], _product(E, by_p), by_mu, by_gap + closed
    disagree = logical_and(lost > 0.0, _disagree(moving, slopes[0]))
    return slopes, E, lost + moving.dependent, disagree


def _disagree(moving, by_q):
    """Return whether the derivatives by q violate an active row, for one displacement.

    The error of a row may be 1e-7 of the largest right side.
    """
    # A fixed, irregular displacement stands for all of them.
    along = Vector(math.cos(1.0 + j) for j in range(moving.model.nv))
    change, left, size = by_q @ along, 0.0, 0.0
    for row, wanted in zip(moving.A, moving.c_q, strict=True):
        x = Vector(wanted) @ along
        left = maximum(left, absolute(Vector(row) @ change - x))
        size = maximum(size, absolute(x))
    return left > size * AGREE


def _product(A, B):
    """Return A B; B itself if it has no columns."""
    return product(A, B) if B.shape[1] else B
