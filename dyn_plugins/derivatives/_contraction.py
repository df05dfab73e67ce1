"""Second derivatives of weights . tau, tau those of inverse dynamics; not a solver.

The weights are rates of the joints, too: bodies move at W under them, and

    phi = weights . tau = sum_b W_b . (I_b a_b + v_b x* I_b v_b - f_ext_b)

Seen from the bodies, a change of coordinate j moves all that it carries alike:

    dW = sigma_j,   dv = alpha_j,   da = beta_j - v x alpha_j

          by q                by qd         by qdd
    sigma W_p x s_j           0             0
    alpha Psi_dot_j           s_j           0
    beta  Psi_ddot_j          Psi_S_dot_j   s_j

With B twice the factor of the velocity product, so that v x* I v changes by B alpha for
beta = v x alpha, and with sums over all that j carries

    f = sum I a + v x* I v - f_ext,   P = sum I W,   Q = sum B(I, v).T W
    dphi/dx_j = sigma_j . f + beta_j . P + alpha_j . Q

For k behind j what stands before the sums does not depend on k, and the sums change as
those of k do: f by what first derivatives are made of, P by s_k x* P + I sigma_k, Q by
s_k x* Q + B(I, v).T sigma_k - B(I, W).T alpha_k, for W . B(I, alpha) gamma =
-alpha . B(I, W) gamma. So a second derivative is three products of six numbers for each
pair of coordinates on a common path.
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
    slope_of,
    with_slopes,
)
from dyn_plugins.derivatives.derivatives import (
    _by_order,
    _cross_force,
    _inertial_force,
    _rates_in_series,
    _rates_together,
)


@dataclass(frozen=True)
class Motions:
    """What moves, by body, in the frame of the first body of its branch.

    Far from the base's origin nothing is lost by that. Entry 0 is unused.

    Attributes:
        up: Transform from the body to that frame.
        S, dS: Motion subspace, and its derivatives by each coordinate.
        Psi_dot, Psi_ddot, Psi_S_dot: As of id_derivatives.
        v_p, a_p: Velocity and acceleration of the parent.
        I, IC: Inertia of the body, and of all that it carries.
        B: VelocityProduct of the body.
        BC, fC: Sums of it, and of forces, over all that the body carries.
        by_q, by_qd, by_qdd: How fC changes with the coordinates of the body's joint.
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
    """Return the Motions of a state, coordinates split by joint."""
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
        rates = _rates(joint, up, S, m.dS[i], m.v_p[i], m.a_p[i], q[i], qd[i], qdd[i])
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
    """Return the derivatives of S by each coordinate, none of those in series."""
    if joint.series is not None:
        return ()
    return tuple(up @ dS_k for dS_k in joint.S_slopes(q))


def _rates(joint, up, S, dS, v_p, a_p, q, qd, qdd):
    """Return Psi_dot, Psi_ddot and Psi_dot + S_dot, see id_derivatives."""
    if joint.series is not None:
        return _rates_in_series(joint, S, v_p, a_p, qd, qdd)
    return _rates_together(S, dS, up @ joint.cJ_slopes(q, qd), v_p, a_p, qd, qdd)


@dataclass(frozen=True)
class Weighted:
    """What moves under the weights, by body; entry 0 is unused.

    Attributes:
        W_p: Motion of the parent.
        sigma: How the motion of what a joint carries changes with its coordinates.
        P, Q: Sums of I W and B(I, v).T W over all that a body carries.
        BW: Sum of B(I, W); None where all that the body carries moves as its parent.
        W: Motion of the body.
        moving: Whether something that a body carries moves.
    """

    W_p: list
    sigma: list
    P: list
    Q: list
    BW: list
    W: list
    moving: list


def weighted_motions(model, m, weights):
    """Return what moves under weights, by joint."""
    n = model.nb + 1
    result = Weighted(*([None] * n for _ in range(5)), [Motion.zero()] * n, [False] * n)
    behind, W = [False] * n, result.W
    weighted = [not _is_zero(w) for w in weights]
    for i in model.bodies:
        p, joint, w = model.parent[i], model.joint[i], weights[i]
        result.moving[i] = result.moving[p] or weighted[i]
        result.W_p[i] = W[p]
        result.sigma[i] = _weighted_rates(joint, m.S[i], m.dS[i], W[p], w)
        W[i] = W[p] + m.S[i] @ w if weighted[i] else W[p]
    for i in reversed(model.bodies):
        carries = behind[i] or weighted[i]
        behind[model.parent[i]] = behind[model.parent[i]] or carries
        result.moving[i] = result.moving[i] or carries
    for i in reversed(model.bodies):
        p, sums = model.parent[i], (result.P, result.Q, result.BW)
        # What moves alike is one body.
        alike = not (behind[i] or weighted[i] or (p and behind[p]))
        I, B = (m.I[i], m.B[i]) if behind[i] else (m.IC[i], m.BC[i])
        terms = I @ W[i], B.T @ W[i], None if alike else VelocityProduct.of(I, W[i])
        for total, x in zip(sums, terms, strict=True):
            total[i] = x if total[i] is None else total[i] + x
            if p and behind[p]:
                total[p] = total[i] if total[p] is None else total[p] + total[i]
    return result


def _is_zero(weights):
    """Return whether weights are zeros, whatever the state."""
    return all(isinstance(w, float) and w == 0.0 for w in weights)


def _weighted_rates(joint, S, dS, W_p, w):
    """Return sigma: W_p x s, with what stands before it in a series; or dS_k w."""
    if joint.series is None:
        return cross(W_p, S) + MotionSubspace(dS_k @ w for dS_k in dS)
    sigma = [None] * joint.nv
    for k in joint.series:
        sigma[k] = cross(W_p, S[k])
        W_p = W_p + S[k] * w[k]
    return MotionSubspace(sigma)


def second_derivatives(model, m, state, weights):
    """Return the second derivatives of weights . tau by qq, q qd, qd qd, q qdd.

    Args:
        model: Robot.
        m: Motions of the state.
        state: q, qd and qdd, by joint.
        weights: By joint; those of followers as their leaders move them.

    Returns:
        Matrices nv x nv, [j, k] first by j, then by k.
    """
    w = weighted_motions(model, m, weights)
    blocks = {}, {}, {}, {}
    for i in model.bodies:
        if not w.moving[i]:
            continue
        change = _change(m, w, i)
        j = i
        while j:
            above, below = _pair(m, w, j, i, change)
            if j == i:
                above = below = _within(model.joint[i], above, below)
            for block, x, y in zip(blocks, above, below, strict=True):
                block[i, j] = y
                block[j, i] = x
            j = model.parent[j]
        if model.joint[i].series is None:
            ground = w.W_p[i], w.P[i], w.Q[i]
            own = [x[i] for x in state]
            more = own_changes(model.joint[i], i, m, ground, own, weights[i])
            for block, x in zip(blocks, more, strict=True):
                block[i, i] = block[i, i] + x
    return tuple(join_slopes(model, block) for block in blocks)


def _change(m, w, i):
    """Return how P and Q change with the coordinates of joint i, and Q with rates."""
    S, sigma = m.S[i], w.sigma[i]
    dP = _cross_force(S, w.P[i]) + m.IC[i] @ sigma
    dQ = _cross_force(S, w.Q[i]) + m.BC[i].T @ sigma
    return dP, dQ + _minus_BW(m, w, i, m.Psi_dot[i]), _minus_BW(m, w, i, S)


def _minus_BW(m, w, i, alpha):
    """Return -B(I, W).T alpha, which is B(I, alpha).T W for one W."""
    if w.BW[i] is None:
        return ForceSubspace(VelocityProduct.of(m.IC[i], x).T @ w.W[i] for x in alpha)
    return ForceSubspace(-f for f in w.BW[i].T @ alpha)


def _pair(m, w, j, i, change):
    """Return the blocks (j, i) and (i, j) of a joint j and of i behind it."""
    dP, dQ, dQ_v = change
    S, sigma, Psi_dot = m.S[j].T, w.sigma[j].T, m.Psi_dot[j].T
    qq = sigma @ m.by_q[i] + m.Psi_ddot[j].T @ dP + Psi_dot @ dQ
    qv = sigma @ m.by_qd[i] + Psi_dot @ dQ_v
    vv, qa = S @ dQ_v, sigma @ m.by_qdd[i]
    vq, aq = S @ dQ + m.Psi_S_dot[j].T @ dP, S @ dP
    return (qq, qv, vv, qa), (qq.T, vq.T, vv.T, aq.T)


def _within(joint, above, below):
    """Return the blocks of a joint with itself, but for what changes with its S."""
    if joint.series is None:
        return above
    pairs = zip(above, below, strict=True)
    return tuple(_by_order(joint.series, x, y) for x, y in pairs)


def own_changes(joint, i, m, under_weights, state, weight):
    """Return what blocks of coordinates that act together have more.

    There sigma, alpha and beta of a coordinate change with another one. Where S is
    constant that is sigma, alpha and beta of the bracket s_k x s_j.

    Args:
        joint: That carries body i.
        i: Number of the body.
        m: Motions of the state.
        under_weights: W_p, P and Q of the body, see Weighted.
        state: q, qd and qdd of the joint.
        weight: Weights of its coordinates.

    Returns:
        Matrices by qq, q qd, qd qd and q qdd.
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
        """Return the derivatives of dphi/dq and dphi/dqd along a direction."""
        up, (q, qd, qdd), (v_p, a_p, W_p, f, P, Q) = m.up[i], state, ground
        S, dS = up @ joint.S(q), _slopes(joint, up, q)
        Psi_dot, Psi_ddot, Psi_S_dot = _rates(joint, up, S, dS, v_p, a_p, q, qd, qdd)
        sigma = _weighted_rates(joint, S, dS, W_p, weight)
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
    """Return K with sigma . f + beta . P + alpha . Q = s . K for constant s."""
    centripetal = cross(v_p, cross(v_p, P) - Q)
    return centripetal - cross(W_p, f) - cross(a_p, P)


def _with_change(x, d):
    """Return a motion or force with its change along a direction."""
    return type(x)(with_slopes(x.ang, d.ang), with_slopes(x.lin, d.lin))
