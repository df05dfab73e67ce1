"""Second derivatives of weights . tau of inverse dynamics; not a solver.

The weights are joint rates, too: under them the bodies move with velocity W, and

    phi = weights . tau = sum_b W_b . (I_b a_b + v_b x* I_b v_b - f_ext_b)

In body coordinates, a change of coordinate j moves joint j and its descendants alike:

    dW = sigma_j,   dv = alpha_j,   da = beta_j - v x alpha_j

          by q                by qd         by qdd
    sigma W_p x s_j           0             0
    alpha Psi_dot_j           s_j           0
    beta  Psi_ddot_j          Psi_S_dot_j   s_j

With B twice the factor of the velocity product, so that v x* I v changes by B alpha for
beta = v x alpha, and with sums over j and its descendants

    f = sum I a + v x* I v - f_ext,   P = sum I W,   Q = sum B(I, v).T W
    dphi/dx_j = sigma_j . f + beta_j . P + alpha_j . Q

For k behind j the factors sigma, beta and alpha do not depend on k. The sums change as
the sums of k do: f as in first derivatives, P by s_k x* P + I sigma_k, Q by
s_k x* Q + B(I, v).T sigma_k - B(I, W).T alpha_k, for W . B(I, alpha) gamma =
-alpha . B(I, W) gamma. So a second derivative is three products of six numbers for each
pair of coordinates on a common path: products of matrices for all pairs of a chain.
"""

from dataclasses import dataclass

from dyn_core.authoring import (
    ForceSubspace,
    Matrix,
    Motion,
    MotionSubspace,
    Transform,
    Vector,
    VelocityProduct,
    cross,
    has_slope,
    join_slopes,
    product,
    slope_of,
    with_slopes,
)
from dyn_plugins.derivatives._chains import are_zero, chains_of, paths_of, stacked
from dyn_plugins.derivatives.first_derivatives import (
    _cross_force,
    _inertial_force,
    subspace_rates,
)

GROUP = 6  # minimum number of coordinates in one product of matrices


@dataclass(frozen=True)
class Motions:
    """Motion, inertia and force sums, by body, in the frame of the branch's first body.

    A branch begins at a body whose parent is the base. In its frame no digits are lost
    far from the base's origin. Entry 0 is unused.

    Attributes:
        up: Transform from the body to that frame.
        S, dS: Motion subspace, and a tuple of its derivatives by each coordinate; empty
            for coordinates in series.
        Psi_dot, Psi_ddot, Psi_S_dot: Results of subspace_rates: derivatives of velocity
            and of acceleration by the joint's coordinates, and of acceleration by their
            rates.
        v_p, a_p: Velocity and acceleration of the parent; a_p includes minus gravity.
        I, IC: Inertia of the body, and composite inertia with its descendants.
        B: VelocityProduct of the body.
        BC, fC: Sums of B and of the forces over the body and its descendants; external
            forces are subtracted.
        by_q, by_qd, by_qdd: Derivatives of fC by position, velocity and acceleration of
            the joint's coordinates.
    """

    up: list
    S: list
    dS: list
    Psi_dot: list
    Psi_ddot: list
    Psi_S_dot: list
    v_p: list
    a_p: list
    I: list
    IC: list
    B: list
    BC: list
    fC: list
    by_q: list
    by_qd: list
    by_qdd: list


def motions(model, q, qd, qdd, f_ext):
    """Return the Motions of a state: motion, inertia and force sums by body.

    They are in the frame of the first body of each branch; entry 0 is unused. Gravity
    counts as an acceleration of the base. q, qd, qdd and f_ext are by body; f_ext is in
    body coordinates [N·m; N].
    """
    m = Motions(*([None] * (model.nb + 1) for _ in range(16)))
    X, v, a = [None] * (model.nb + 1), [None] * (model.nb + 1), [None] * (model.nb + 1)
    for i in model.bodies:
        p, joint = model.parent[i], model.joint[i]
        XJ = joint.X(q[i]) @ model.Xtree[i]
        X[i] = XJ @ X[p] if p else Transform.identity()
        up = m.up[i] = X[i].inverse
        m.v_p[i] = v[p] if p else Motion.zero()
        m.a_p[i] = a[p] if p else XJ @ -model.a_grav
        S = m.S[i] = up @ joint.S(q[i])
        vJ = S @ qd[i] if joint.nv else up @ joint.vJ(q[i], qd[i])
        cJ = up @ joint.cJ(q[i], qd[i])
        v[i] = m.v_p[i] + vJ
        a[i] = m.a_p[i] + S @ qdd[i] + cJ + cross(m.v_p[i], vJ)
        m.dS[i] = _slopes(joint, up, q[i])
        motion, ground = (q[i], qd[i], qdd[i]), (m.v_p[i], m.a_p[i])
        rates = subspace_rates(joint, S, m.dS[i], *ground, motion, up)
        m.Psi_dot[i], m.Psi_ddot[i], m.Psi_S_dot[i] = rates
        I = m.I[i] = m.IC[i] = X[i].T @ model.I[i] @ X[i]
        m.B[i] = m.BC[i] = VelocityProduct.of(I, v[i])
        m.fC[i] = _inertial_force(I, v[i], a[i]) - up.inverse.T @ f_ext[i]
    for i in reversed(model.bodies):
        p, S, IC, BC = model.parent[i], m.S[i], m.IC[i], m.BC[i]
        change = _cross_force(S, m.fC[i])
        m.by_q[i] = change + IC @ m.Psi_ddot[i] + BC @ m.Psi_dot[i]
        m.by_qd[i] = BC @ S + IC @ m.Psi_S_dot[i]
        m.by_qdd[i] = IC @ S
        if p:
            for sums in (m.IC, m.BC, m.fC):
                sums[p] = sums[p] + sums[i]
    return m


def _slopes(joint, up, q):
    """Return the slopes of S by each coordinate, where `up` leads; () for a series."""
    if joint.series is not None:
        return ()
    return tuple(up @ dS_k for dS_k in joint.S_slopes(q))


@dataclass(frozen=True)
class Weighted:
    """Motion and sums under the weights as joint rates, by body; entry 0 is unused.

    W_p is the motion of the parent, sigma the derivatives of the motion W of the body
    and its descendants by its joint's coordinates. P, Q and BW are sums of I W, B(I,
    v).T W and B(I, W) over the body and its descendants.
    """

    W_p: list
    sigma: list
    P: list
    Q: list
    BW: list


def _weighted_motions(model, m, weights):
    """Return the Weighted under `weights` as joint rates, in the frames of `m`."""
    result = Weighted(*([None] * (model.nb + 1) for _ in range(5)))
    W = [Motion.zero()]
    for i in model.bodies:
        joint, I = model.joint[i], m.I[i]
        W_p = result.W_p[i] = W[model.parent[i]]
        result.sigma[i] = weighted_rates(joint, m.S[i], m.dS[i], W_p, weights[i])
        W.append(W_p + m.S[i] @ weights[i])
        result.P[i], result.Q[i] = I @ W[i], m.B[i].T @ W[i]
        result.BW[i] = VelocityProduct.of(I, W[i])
    for i in reversed(model.bodies):
        p = model.parent[i]
        for sums in (result.P, result.Q, result.BW) if p else ():
            sums[p] = sums[p] + sums[i]
    return result


def weighted_rates(joint, S, dS, W_p, w):
    """Return sigma of a joint: W_p x s_k plus the derivatives of S times weights w.

    In a series, W_p includes the coordinates before k, and dS is not read.
    """
    if joint.series is None:
        return cross(W_p, S) + MotionSubspace(dS_k @ w for dS_k in dS)
    sigma = [None] * joint.nv
    for k in joint.series:
        sigma[k] = cross(W_p, S[k])
        W_p = W_p + S[k] * w[k]
    return MotionSubspace(sigma)


def second_derivatives(model, m, state, weights):
    """Return the second derivatives of weights . tau by qq, q qd, qd qd, q qdd.

    Four Matrices nv x nv; [j, k] is first by j, then by k. `m` are Motions, `state` and
    weights are by body; followers have their leader's weight times the ratio.
    """
    w, paths = _weighted_motions(model, m, weights), paths_of(model)
    n = sum(joint.nv for joint in model.joint[1:])
    entries = tuple([[0.0] * n for _ in range(n)] for _ in range(4))
    for chain in chains_of(model):
        for group in _groups(chain, paths):
            path = paths[group[-1].body]
            _fill(entries, path, group, _products(m, w, path, group))
    members = {
        i: sorted(c.number for c in paths[i] if c.body == i) for i in model.bodies
    }
    blocks = {}, {}, {}, {}
    for i in model.bodies:
        for j in {c.body for c in paths[i]}:
            for places in {(i, j), (j, i)}:
                rows, columns = (members[k] for k in places)
                for block, M in zip(blocks, entries, strict=True):
                    block[places] = Matrix([M[x][y] for y in columns] for x in rows)
        if model.joint[i].series is None:
            ground = w.W_p[i], w.P[i], w.Q[i]
            at_joint = [x[i] for x in state]
            more = own_changes(model.joint[i], i, m, ground, at_joint, weights[i])
            for block, x in zip(blocks, more, strict=True):
                block[i, i] = block[i, i] + x
    return tuple(join_slopes(model, block) for block in blocks)


def _groups(chain, paths):
    """Return a chain's coordinates, entries of `paths`, in groups of whole joints.

    A group has at least six coordinates; the last one may have fewer.
    """
    groups = [[]]
    for i in chain:
        if len(groups[-1]) >= GROUP:
            groups.append([])
        groups[-1] += [c for c in paths[i] if c.body == i]
    return [group for group in groups if group]


def _products(m, w, path, members):
    """Return the products for coordinates j of a path (rows) and k of its end, members.

    Six Matrices: by j, then k, for qq, q qd, qd qd, q qdd; by k, then j, for q qd and q
    qdd. They are valid where j is at or above k.
    """

    def columns(part, coordinates):
        return [part[c.body][c.k] for c in coordinates]

    S, Psi_dot, Psi_ddot, Psi_S_dot, sigma = (
        columns(part, path)
        for part in (m.S, m.Psi_dot, m.Psi_ddot, m.Psi_S_dot, w.sigma)
    )
    by_q, by_qd, by_qdd = (
        columns(part, members) for part in (m.by_q, m.by_qd, m.by_qdd)
    )
    changes = {c.body: _change(m, w, c.body) for c in members}
    dP, dQ, dQ_v = (
        columns({i: x[n] for i, x in changes.items()}, members) for n in range(3)
    )
    moments, moments_v = ([f.ang for f in forces] for forces in (dQ, dQ_v))
    turning, turning_rate = ([x.ang for x in motions] for motions in (S, Psi_dot))
    factors = (
        ((sigma, by_q), (Psi_ddot, dP), (turning_rate, moments)),
        ((sigma, by_qd),),
        (),
        ((sigma, by_qdd),),
        ((Psi_S_dot, dP), (turning, moments)),
        ((S, dP),),
    )
    less = (), ((turning_rate, moments_v),), ((turning, moments_v),), (), (), ()
    results = []
    for pairs, others in zip(factors, less, strict=True):
        total = _added(Matrix.zeros(len(path), len(members)), pairs)
        results.append(_added(total, others, negative=True))
    return results


def _added(total, pairs, negative=False):
    """Return the Matrix total + sum of left.T right; minus that sum if `negative`.

    Pairs of lists whose left vectors are zeros are skipped; without others it is
    `total` itself.
    """
    pairs = [(left, right) for left, right in pairs if not all(map(are_zero, left))]
    if not pairs:
        return total
    left, right = zip(*pairs, strict=True)
    onto = None if all(map(are_zero, total.rows)) else total
    return product(stacked(*left), stacked(*right).T, onto, negative)


def _change(m, w, i):
    """Return the derivatives of P by q, of Q by q and of -Q by qd, for joint i.

    Callers use only the moments of the derivatives of Q.
    """
    S, sigma, BW = m.S[i], w.sigma[i], w.BW[i].T
    dP = _cross_force(S, w.P[i]) + m.IC[i] @ sigma
    dQ = _cross_force(S, w.Q[i]) + m.BC[i].T @ sigma
    return dP, dQ + ForceSubspace(-f for f in BW @ m.Psi_dot[i]), BW @ S


def _fill(entries, path, members, products):
    """Copy products of `_products` to the four tables [j][k], in place.

    Only pairs of a member k and a coordinate j at or above it are written, both ways.
    """
    qq, qv, vv, qa = entries
    qq_jk, qv_jk, vv_jk, qa_jk, qv_kj, qa_kj = products
    for b, k in enumerate(members):
        y = k.number
        for a, j in enumerate(path):
            x = j.number
            if j.rank <= k.rank:
                qq[x][y], vv[x][y] = qq_jk[a, b], vv_jk[a, b]
                qv[x][y], qa[x][y] = qv_jk[a, b], qa_jk[a, b]
            if j.rank < k.rank or (j is k and k.in_series):
                qq[y][x], vv[y][x] = qq_jk[a, b], vv_jk[a, b]
                qv[y][x], qa[y][x] = qv_kj[a, b], qa_kj[a, b]


def own_changes(joint, i, m, under_weights, state, weight):
    """Return additional terms of a joint's block, Matrices by qq, q qd, qd qd, q qdd.

    Its coordinates act together: sigma, alpha and beta of one change with another.
    Where S is constant, the change is sigma, alpha and beta of the bracket s_k x s_j.
    under_weights: W_p, P and Q of the body, see Weighted.
    """
    S, n = m.S[i], joint.nv
    q, qd, qdd = state
    W_p, P, Q = under_weights
    ground = m.v_p[i], m.a_p[i], W_p, m.fC[i], P, Q
    along = [Vector(float(k == l) for l in range(n)) for k in range(n)]
    zero = Matrix.zeros(n, n)
    if not has_slope(joint.S(with_slopes(q, Vector([1.0] * joint.nq)))):
        K = _bracket_force(*ground)
        brackets = [[cross(S[b], S[a]) for b in range(n)] for a in range(n)]
        by_qq = Matrix([x @ K for x in row] for row in brackets)
        by_vv = Matrix([x @ P for x in row] for row in brackets)
        return by_qq, zero, by_vv, zero

    def slopes(state, ground):
        """Return the slopes of dphi/dq and dphi/dqd along the inputs' direction.

        state: q, qd and qdd of the joint; ground: see _bracket_force.
        """
        up, q, (v_p, a_p, W_p, f, P, Q) = m.up[i], state[0], ground
        S, dS = up @ joint.S(q), _slopes(joint, up, q)
        rates = subspace_rates(joint, S, dS, v_p, a_p, state, up)
        Psi_dot, Psi_ddot, Psi_S_dot = rates
        sigma = weighted_rates(joint, S, dS, W_p, weight)
        by_q = sigma.T @ f + Psi_ddot.T @ P + Psi_dot.T @ Q
        by_qd = S.T @ Q + Psi_S_dot.T @ P
        return slope_of(by_q), slope_of(by_qd)

    qq, qv, vv, qa = [], [], [], []
    for unit, s in zip(along, S, strict=True):
        seen = [_with_change(x, -cross(s, x)) for x in ground]
        qq.append(slopes((with_slopes(q, unit), qd, qdd), seen)[0])
        by_q, by_qd = slopes((q, with_slopes(qd, unit), qdd), ground)
        qv.append(by_q)
        vv.append(by_qd)
        qa.append(slopes((q, qd, with_slopes(qdd, unit)), ground)[0])
    return tuple(Matrix(columns).T for columns in (qq, qv, vv, qa))


def _bracket_force(v_p, a_p, W_p, f, P, Q):
    """Return the Force K with sigma . f + beta . P + alpha . Q = s . K for constant s.

    v_p, a_p, W_p: of the parent; f, P, Q: sums over the body and its descendants.
    """
    centripetal = cross(v_p, cross(v_p, P) - Q)
    return centripetal - cross(W_p, f) - cross(a_p, P)


def _with_change(x, d):
    """Return a Motion or Force x whose derivative is d."""
    return type(x)(with_slopes(x.ang, d.ang), with_slopes(x.lin, d.lin))
