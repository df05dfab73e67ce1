"""Terms of the active contacts in the linear system of a step's derivatives.

Not a solver: the derivatives of steps share it.
"""

import math

from dyn_core.authoring import (
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
from dyn_plugins.contact_steps._reduced_rows import (
    AGREE,
    inside_by_others,
    inverse_of_any_rank,
    rows_of_body,
)
from dyn_plugins.contact_steps.contact_step import normal_bias
from dyn_plugins.kinematics.motion import outward


class MovingContacts:
    """The active contacts of a step, as matrices of its linear system.

        (H + drag) du = (R_q - by_q) dq + ... + by_mu dmu + by_gap dgap + C.T dlambda
        A du = c_q dq + c_v dqd + c_gap dgap

    Args:
        model: Robot.
        rule: Function of contact_biases.py.
        solved: SolvedContacts.
        state: q, qd and dt, before the step.
        parts: StepParts.

    Attributes:
        modes: SEPARATE, STICK or SLIP of each contact.
        at_border: Condition: a contact is at the boundary of two modes.
        slips: Condition: a contact slips.
        at_gap_zero: Condition: a contact presses at gap 0, the kink of the bias.
        dependent: Number of rows that other rows of the same body imply.
        drag, by_q: Matrices, nv x nv.
        by_mu, by_gap: Matrices, nv x number of contacts.
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
        """Set drag, by_q, by_mu and by_gap, the terms in the equation of motion."""
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
        """Return the blocks of J.T (M J + K Psi), and the lower blocks of J.T K J.

        Both are dicts (body, body) -> Matrix. M, K: six columns of each body, or None;
        the columns of children are added to their parents, in place.
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
        """Return the bodies on the path from i to the base whose joints can move."""
        path = []
        while i:
            if len(self.placed.S[i]):
                path.append(i)
            i = self.model.parent[i]
        return path

    def _row(self, i, force, *others):
        """Return the joint forces of a force on body i, nv: J.T force.

        Args:
            i: Index of the body.
            force: Force, multiplied with the motion subspaces.
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
        """Set A, C, c_q, c_v, c_gap and dependent, body by body; update at_border.

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

    Args:
        contacts: ActiveContacts.
        gaps: Gap of each contact [m].

    Returns:
        Pairs of conditions; the second: the derivative of an open gap applies. All
        contacts of a body at gap 0 get the side of the lowest of them.
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
    """Return the derivatives of each contact's bias by gap and by approach, pairs.

    Args:
        rule: Function of contact_biases.py.
        solved: SolvedContacts.
        dt: Step [s].
        options: Options of the rule, by name.
        sides: Result of gap_sides.
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
    """Add six columns to sums[i], in place; None counts as zero."""
    old = sums[i]
    sums[i] = (
        columns if old is None else [a + b for a, b in zip(old, columns, strict=True)]
    )


def _applied(columns, motion):
    """Return the product of a 6 x 6 matrix, given as six columns, with a Motion."""
    return total(c * x for c, x in zip(columns, motion, strict=True))


def _loads(S, Psi, M, K):
    """Return the columns of M S + K Psi and of K S."""
    pairs = list(zip(S, Psi, strict=True))
    load = [_applied(M, s) + _applied(K, psi) for s, psi in pairs]
    return load, [_applied(K, s) for s in S]


def _dots(S, forces):
    """Return the Matrix S.T F of a motion subspace S and the columns F, Forces."""
    return Matrix([s @ f for f in forces] for s in S)


def _transposed(rows, height):
    """Return the Matrix whose columns are `rows`; height: their length."""
    return Matrix(rows).T if rows else Matrix.zeros(height, 0)


def constrained(inverse, momentum, moving):
    """Return the solutions du of the linear system, E, and two flags.

    Args:
        inverse: Inverse of the inertia with the drag, nv x nv.
        momentum: Right sides of the equation of motion by q, qd, p, mu and gaps.
        moving: The MovingContacts.

    Returns:
        Derivatives of u by q, qd, p, mu and gaps; E, nv x nv; the number of dependent
        rows; and the condition that dependent rows contradict each other by q: next to
        this position they are independent.
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
    """Return the condition that a row is violated along one displacement of q."""
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
