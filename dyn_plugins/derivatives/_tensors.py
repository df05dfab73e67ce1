"""Second derivatives of all joint forces, as products of matrices; not a solver.

With a unit weight for coordinate m the sums of _contraction.py belong to one body, and
the terms of each coordinate are factors of a product. Let d be a coordinate and m, j
coordinates at or above it; IC, BC and fC belong to d's body, s is its motion.

    by j, then d, of tau_m      qq    s_m . (M1 Psi_ddot_j + M2 Psi_dot_j)
                                q qd  s_m . B Psi_dot_j
                                qd qd s_m . B s_j
    by d, then j, of tau_m      q qd  s_m . (M2 s_j + M1 Psi_S_dot_j)
    by d, of H[m, j]                  s_m . M1 s_j
    by j, of H[m, d], and where m carries j more of tau_m by j, then d:
                                      (s_m x s_j) . p,  . by_q_d,  . by_qd_d
    of tau_d, where j carries k or is k
        by j, then k    qq            -s_k . N1 Psi_ddot_j - K_k . Psi_dot_j
                        q qd          -s_k . B Psi_dot_j
                        qd qd         -s_k . B s_j
        by k, then j    q qd          -s_k . N1 Psi_S_dot_j - K_k . s_j
        with K_k = N2.T s_k + B.T Psi_dot_k

    M1 = s x* IC - IC s x,   M2 = s x* BC - BC s x + B(IC, Psi_dot_d),   B = B(IC, s)
    p = IC s,   r = BC.T s,   N1 m = m x* p,   N2 m = m x* r

M2, B and N2 act on angular velocities only. The coordinates above d are stacked, once
for each chain of the tree. Arguments: m is the Motions of the state (_contraction.py),
not a coordinate; coordinates are Coordinates (_chains.py), a path a tuple of them.
"""

from typing import NamedTuple

from dyn_core.authoring import (
    Matrix,
    Motion,
    RigidInertia,
    Symmetric,
    Vector,
    VelocityProduct,
    cross,
    cross3,
    product,
    skew,
)
from dyn_plugins.derivatives._chains import chains_of, paths_of, stacked
from dyn_plugins.derivatives._contraction import own_changes


class Tensors(NamedTuple):
    """Second derivatives of tau_i, and of H, as nested lists [i][j][k].

    Attributes:
        qq, qv, vv: Of tau_i, by q_j then q_k, q_j then qd_k, qd_j then qd_k.
        dH: Of H[i, j] by q_k.
    """

    qq: list
    qv: list
    vv: list
    dH: list


def second_derivative_tensors(model, m, state):
    """Return the Tensors of a state, nested lists [i][j][k].

    qq, qv and vv are of tau_i by q_j, q_k; q_j, qd_k; and qd_j, qd_k; dH is of H[i, j]
    by q_k. Indices count the coordinates of all bodies, followers included. `m` are
    Motions; `state` is q, qd and qdd by body.
    """
    n = sum(joint.nv for joint in model.joint[1:])
    tensors = Tensors(
        *([[[0.0] * n for _ in range(n)] for _ in range(n)] for _ in range(4))
    )
    paths = paths_of(model)
    for chain in chains_of(model):
        path = paths[chain[-1]]
        if path:
            _fill(tensors, m, path, [c for c in path if c.body in chain])
    for i in model.bodies:
        if model.joint[i].series is None:
            behind = [c for j in model.bodies for c in paths[j] if c.body == j]
            behind = [c for c in behind if any(x.body == i for x in paths[c.body])]
            _fill_together(tensors, m, paths[i], i, behind)
            weights = [c for c in paths[i] if c.body != i] + behind
            _fill_own(tensors, model.joint[i], m, paths[i], i, weights, state)
    return tensors


def _block(M, columns, rows=None):
    """Return the Matrix of a slice of M's columns, first `rows` rows (None: all)."""
    return Matrix(row[columns] for row in M.rows[:rows])


class _Factors(NamedTuple):
    """Factors of the products for the coordinates d of one chain.

    left: s . [M1 M2 F_q F_qd B], for each d side by side, multiplied by the motion s of
    each coordinate of the path, one row each; F_q m = m x* by_q_d, F_qd m = m x*
    by_qd_d. inner: s . [N1 N2] + Psi_dot . [0 B], likewise. S: motion subspaces of the
    path, 6 x n. rates: [Psi_ddot Psi_S_dot] above the angular [Psi_dot S], 9 x 2n.
    """

    left: Matrix
    inner: Matrix
    S: Matrix
    rates: Matrix


_LEFT, _INNER = 24, 9  # columns of them for each d
_M, _F_Q, _F_QD, _B = slice(0, 9), slice(9, 15), slice(15, 21), slice(21, 24)


def _factors(m, path, members):
    """Return the _Factors of the coordinates `members`, the last ones of `path`."""
    S, Psi_dot, Psi_ddot, Psi_S_dot = (
        [part[c.body][c.k] for c in path]
        for part in (m.S, m.Psi_dot, m.Psi_ddot, m.Psi_S_dot)
    )
    lefts, inners = zip(*(_coefficients(m, d) for d in members), strict=True)
    left = product(stacked(S), stacked(*lefts))
    inner = product(stacked(S, Psi_dot), stacked(*inners))
    above = stacked([*Psi_ddot, *Psi_S_dot]).T
    below = stacked([x.ang for x in (*Psi_dot, *S)]).T
    rates = Matrix((*above.rows, *below.rows))
    return _Factors(left, inner, stacked(S).T, rates)


def _coefficients(m, d):
    """Return the six rows of [M1 M2 F_q F_qd B], and the twelve of [[N1 N2], [0 B]].

    They are of one coordinate d, not yet multiplied by motions, see _Factors. Columns
    that act on linear velocity are left out of M2, B and N2.
    """
    i, k = d.body, d.k
    s, IC, BC = m.S[i][k], m.IC[i], m.BC[i]
    M2 = _moved_product(BC, s) + VelocityProduct.of(IC, m.Psi_dot[i][k])
    B = _product_rows(VelocityProduct.of(IC, s))
    p, r = m.by_qdd[i][k], BC.T @ s
    left = stacked(
        _inertia_rows(_moved_inertia(IC, s)),
        _product_rows(M2),
        _cross_rows(m.by_q[i][k]),
        _cross_rows(m.by_qd[i][k]),
        B,
    )
    above = stacked(_cross_rows(p), [row[:3] for row in _cross_rows(r)])
    below = stacked([[0.0] * 6] * 6, B)
    return left.rows, (*above.rows, *below.rows)


def _moved_inertia(I, s):
    """Return s x* I - I s x, of mass 0: the change of inertia of bodies along s."""
    w, o = s.ang, s.lin
    X = skew(w) @ I.I.full() - skew(o) @ skew(I.h)
    return RigidInertia(0.0, cross3(w, I.h) + o * I.m, Symmetric.of(X + X.T))


def _moved_product(B, s):
    """Return s x* B - B s x: the change of a VelocityProduct B along a Motion s."""
    W, o, p = skew(s.ang), s.lin, B.p
    outer = Matrix([x * y for y in o] for x in p)
    G = W @ B.G - B.G @ W + outer - Matrix.identity(3) * (o @ p)
    return VelocityProduct(G, cross3(s.ang, p))


def _inertia_rows(I):
    """Return the six rows of a RigidInertia I as a matrix, its mass taken as zero."""
    H = skew(I.h)
    below = ((*row, 0.0, 0.0, 0.0) for row in H.T.rows)
    return (*stacked(I.I.full().rows, H.rows).rows, *below)


def _product_rows(B):
    """Return the six rows of the three angular columns of a VelocityProduct B."""
    return (*(B.G * -2.0).rows, *(skew(B.p) * -2.0).rows)


def _cross_rows(f):
    """Return the six rows of the matrix F with F m = m x* f, f a Force."""
    N, F = -skew(f.ang), -skew(f.lin)
    below = ((*row, 0.0, 0.0, 0.0) for row in F.rows)
    return (*stacked(N.rows, F.rows).rows, *below)


def _fill(tensors, m, path, members):
    """Write the entries of each d of `members` and two coordinates at or above it."""
    factors, n = _factors(m, path, members), len(path)
    first, second = slice(0, n), slice(n, 2 * n)
    S, rates = factors.S, factors.rates
    angular = Matrix(rates.rows[6:])
    for place, d in enumerate(members):
        rows = sum(c.rank <= d.rank for c in path)

        def left(columns, place=place, rows=rows):
            start = place * _LEFT
            columns = slice(start + columns.start, start + columns.stop)
            return _block(factors.left, columns, rows)

        start = place * _INNER
        inner = _block(factors.inner, slice(start, start + _INNER), rows)
        M, B = left(_M), left(_B)
        moved = product(M, rates)
        through, qd = _block(moved, first), product(B, angular)
        of_d = _OfCoordinate(
            qq=through,
            qq_behind=product(left(_F_Q), S, through),
            qv=_block(qd, first),
            qv_behind=product(left(_F_QD), S, _block(qd, first)),
            vq=_block(moved, second),
            vv=_block(qd, second),
            H=product(_block(M, slice(0, 6)), S),
            H_behind=product(_block(inner, slice(0, 6)), S),
        )
        _fill_carrying(tensors, path[:rows], d, of_d)
        above = sum(c.rank < d.rank for c in path)
        if above:
            of_qd = product(Matrix(B.rows[:above]), angular, negative=True)
            of_q = product(Matrix(inner.rows[:above]), rates, negative=True)
            blocks = (_block(M, x) for M in (of_q, of_qd) for x in (first, second))
            _fill_carried(tensors, path[:above], d, *blocks)


class _OfCoordinate(NamedTuple):
    """Products for one coordinate d: Matrices [m, j] over the coordinates of its path.

    The attributes are derivatives of tau_m: qq and qv by q_j, then by q_d or qd_d; vq
    by q_d, then by qd_j; vv by qd_j, then by qd_d. H is the derivative of H[m, j] by
    q_d. qq_behind, qv_behind hold where j is behind m; H_behind is the derivative of
    H[m, d] by q_j there.
    """

    qq: Matrix
    qq_behind: Matrix
    qv: Matrix
    qv_behind: Matrix
    vq: Matrix
    vv: Matrix
    H: Matrix
    H_behind: Matrix


def _fill_carrying(tensors, path, d, of_d):
    """Write tau_m by j and d in either order, H_mj by d and H_md by j, in place.

    H_mj, with H_jm, is written for m and j above d; H_md, with H_dm, for m above j.
    """
    qq, qv, vv, dH = tensors
    z = d.number
    for a, m in enumerate(path):
        x = m.number
        for b, j in enumerate(path):
            y, behind = j.number, m.rank < j.rank
            qq[x][y][z] = (of_d.qq_behind if behind else of_d.qq)[a, b]
            qv[x][y][z] = (of_d.qv_behind if behind else of_d.qv)[a, b]
            vv[x][y][z] = of_d.vv[a, b]
            if j.rank < d.rank:
                qq[x][z][y], qv[x][z][y] = qq[x][y][z], of_d.vq[a, b]
                vv[x][z][y] = vv[x][y][z]
                if m.rank < d.rank and a <= b:
                    dH[x][y][z] = dH[y][x][z] = of_d.H[a, b]
            if behind:
                dH[x][z][y] = dH[z][x][y] = of_d.H_behind[a, b]


def _fill_carried(tensors, path, d, qq_kj, vq_kj, qv_kj, vv_kj):
    """Write tau_d by coordinates j and k above d, from blocks [k, j], in place.

    By q_j q_k, q_k qd_j, q_j qd_k, qd qd, in the order of `path`, from the base on;
    entries with j behind k are not read.
    """
    qq, qv, vv = (tensor[d.number] for tensor in tensors[:3])
    for a, k in enumerate(path):
        x = k.number
        for b, j in enumerate(path):
            y = j.number
            if j.rank <= k.rank:
                qq[y][x], qv[y][x], vv[y][x] = qq_kj[a, b], qv_kj[a, b], vv_kj[a, b]
            if j.rank < k.rank:
                qq[x][y], qv[x][y], vv[x][y] = qq_kj[a, b], vq_kj[a, b], vv_kj[a, b]


def _fill_together(tensors, m, path, i, behind):
    """Add terms of tau_x and H[x, d] by y, for coordinates x and y that act together.

    For x's weight sigma_y is the derivative of s_x by y; `_fill` took s_x x s_y or 0.
    behind: Coordinates of descendants, and of the joint itself.
    """
    qq, qv, _, dH = tensors
    members = [c for c in path if c.body == i]
    for x in members:
        for y in members:
            column = m.dS[i][y.k][x.k]
            change = column - cross(m.S[i][x.k], m.S[i][y.k])
            force, moment = m.IC[i] @ change, m.BC[i].T @ change
            for j in path:
                Psi_dot, Psi_ddot = m.Psi_dot[j.body][j.k], m.Psi_ddot[j.body][j.k]
                _add(qq, (x, j, y), Psi_ddot @ force + Psi_dot @ moment)
                if j.rank < y.rank:
                    S, Psi_S_dot = m.S[j.body][j.k], m.Psi_S_dot[j.body][j.k]
                    _set_as(qq, (x, y, j), (x, j, y))
                    _add(qv, (x, y, j), S @ moment + Psi_S_dot @ force)
            for d in behind:
                _add(qq, (x, y, d), column @ m.by_q[d.body][d.k])
                _add(qv, (x, y, d), column @ m.by_qd[d.body][d.k])
                if y.rank < d.rank:
                    _set_as(qq, (x, d, y), (x, y, d))
                if x.rank < d.rank or x.k <= d.k:
                    _add(dH, (x, d, y), column @ m.by_qdd[d.body][d.k])
                    _set_as(dH, (d, x, y), (x, d, y))


def _fill_own(tensors, joint, m, path, i, weights, state):
    """Add the terms of own_changes for the joint of body i, for each unit weight.

    weights: Coordinates whose joint force depends on the joint.
    """
    members = [c for c in path if c.body == i]
    for c in weights:
        unit = Vector(float(c.body == i and k == c.k) for k in range(joint.nv))
        deeper = c.body if all(x.body != c.body for x in path) else i
        s = m.S[c.body][c.k]
        W_p = s if deeper == i != c.body else Motion.zero()
        ground = W_p, m.IC[deeper] @ s, m.BC[deeper].T @ s
        blocks = own_changes(joint, i, m, ground, [x[i] for x in state], unit)
        for a, x in enumerate(members):
            for b, y in enumerate(members):
                for tensor, block in zip(tensors, blocks[:3], strict=False):
                    _add(tensor, (c, x, y), block[a, b])
                if c.number <= y.number:
                    _add(tensors.dH, (c, y, x), blocks[3][a, b])
                    _set_as(tensors.dH, (y, c, x), (c, y, x))


def _add(tensor, places, x):
    i, j, k = (c.number for c in places)
    tensor[i][j][k] = tensor[i][j][k] + x


def _set_as(tensor, places, others):
    (i, j, k), (a, b, c) = ([x.number for x in y] for y in (places, others))
    tensor[i][j][k] = tensor[a][b][c]


def by_leaders(model, tensors):
    """Return Tensors by the nv independent coordinates; dH is exactly symmetric."""
    leads = []  # by coordinate of a body: independent ones with the factor of each
    for i in model.bodies:
        numbers = range(*model.v_slices[i].indices(model.nv))
        ratio = model.leader[i].ratio or Matrix.identity(len(numbers))
        leads += [list(zip(numbers, row, strict=True)) for row in ratio.rows]
    result = []
    for tensor in tensors:
        for _ in range(3):
            tensor = _last_by_leaders(tensor, leads, model.nv)
        result.append(tensor)
    dH, n = result[3], range(model.nv)
    result[3] = [[dH[min(i, j)][max(i, j)] for j in n] for i in n]
    return Tensors(*result)


def _last_by_leaders(tensor, leads, nv):
    """Return a tensor [i][j][k] as [k][i][j], k an independent coordinate.

    leads: By coordinate of all bodies: pairs (independent coordinate, factor).
    """
    width = len(tensor[0]) if tensor else 0
    result = [[[0.0] * width for _ in tensor] for _ in range(nv)]
    for i, slab in enumerate(tensor):
        for j, row in enumerate(slab):
            for x, of_leaders in zip(row, leads, strict=True):
                for k, factor in of_leaders:
                    result[k][i][j] = result[k][i][j] + x * factor
    return result
