"""Second derivatives as in _contraction.py for weights that are mostly zeros.

Not a solver. Ancestors of all weighted joints do not move, and the bodies behind the
last weighted joint move as one body. For a small robot the tensors are computed this
way, weight by weight: what remains of each is less work than products of matrices.
"""

from dataclasses import dataclass

from dyn_core.authoring import (
    ForceSubspace,
    Motion,
    VelocityProduct,
    join_slopes,
)
from dyn_plugins.derivatives._chains import are_zero
from dyn_plugins.derivatives._contraction import own_changes, weighted_rates
from dyn_plugins.derivatives.first_derivatives import _by_order, _cross_force


@dataclass(frozen=True)
class UnitWeighted:
    """Motion and sums under the weights, by body; entry 0 is unused.

    Attributes:
        W_p: Motion of the parent.
        sigma: Derivatives of the motion W of joint and descendants by its coordinates.
        P, Q: Sums of I W and B(I, v).T W over the body and its descendants.
        BW: Sum of B(I, W); None if the body and its descendants move as its parent.
        W: Motion of the body.
        moving: Whether the body or one of its descendants moves.
    """

    W_p: list
    sigma: list
    P: list
    Q: list
    BW: list
    W: list
    moving: list


def _weighted_motions(model, m, weights):
    """Return the UnitWeighted of Motions m and weights by body, most of them zeros."""
    n = model.nb + 1
    result = UnitWeighted(
        *([None] * n for _ in range(5)), [Motion.zero()] * n, [False] * n
    )
    behind, W = [False] * n, result.W
    weighted = [not are_zero(w) for w in weights]
    for i in model.bodies:
        p, joint, w = model.parent[i], model.joint[i], weights[i]
        result.moving[i] = result.moving[p] or weighted[i]
        result.W_p[i] = W[p]
        result.sigma[i] = weighted_rates(joint, m.S[i], m.dS[i], W[p], w)
        W[i] = W[p] + m.S[i] @ w if weighted[i] else W[p]
    for i in reversed(model.bodies):
        carries = behind[i] or weighted[i]
        behind[model.parent[i]] = behind[model.parent[i]] or carries
        result.moving[i] = result.moving[i] or carries
    for i in reversed(model.bodies):
        p, sums = model.parent[i], (result.P, result.Q, result.BW)
        # Bodies that move alike are summed as one body.
        alike = not (behind[i] or weighted[i] or (p and behind[p]))
        I, B = (m.I[i], m.B[i]) if behind[i] else (m.IC[i], m.BC[i])
        terms = I @ W[i], B.T @ W[i], None if alike else VelocityProduct.of(I, W[i])
        for total, x in zip(sums, terms, strict=True):
            total[i] = x if total[i] is None else total[i] + x
            if p and behind[p]:
                total[p] = total[i] if total[p] is None else total[p] + total[i]
    return result


def with_few_weights(model, m, state, weights):
    """Return the results of second_derivatives for weights that are mostly zeros.

    Args:
        model: Robot.
        m: Motions of the state.
        state: q, qd and qdd, by joint.
        weights: By joint; followers have their leader's weight times the ratio.

    Returns:
        Four Matrices nv x nv, by qq, q qd, qd qd, q qdd; [j, k] first by j, then by k.
    """
    w = _weighted_motions(model, m, weights)
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
            at_joint = [x[i] for x in state]
            more = own_changes(model.joint[i], i, m, ground, at_joint, weights[i])
            for block, x in zip(blocks, more, strict=True):
                block[i, i] = block[i, i] + x
    return tuple(join_slopes(model, block) for block in blocks)


def _change(m, w, i):
    """Return the derivatives of P by q, of Q by q and of Q by qd, for joint i."""
    S, sigma = m.S[i], w.sigma[i]
    dP = _cross_force(S, w.P[i]) + m.IC[i] @ sigma
    dQ = _cross_force(S, w.Q[i]) + m.BC[i].T @ sigma
    return dP, dQ + _minus_BW(m, w, i, m.Psi_dot[i]), _minus_BW(m, w, i, S)


def _minus_BW(m, w, i, alpha):
    """Return -B(I, W).T alpha; B(I, alpha).T W if all bodies share one W."""
    if w.BW[i] is None:
        return ForceSubspace(VelocityProduct.of(m.IC[i], x).T @ w.W[i] for x in alpha)
    return ForceSubspace(-f for f in w.BW[i].T @ alpha)


def _pair(m, w, j, i, change):
    """Return the blocks (j, i) and (i, j) for joint j and joint i at or behind it.

    Each is a tuple by qq, q qd, qd qd and q qdd. change: Result of `_change` for i.
    """
    dP, dQ, dQ_v = change
    S, sigma, Psi_dot = m.S[j].T, w.sigma[j].T, m.Psi_dot[j].T
    qq = sigma @ m.by_q[i] + m.Psi_ddot[j].T @ dP + Psi_dot @ dQ
    qv = sigma @ m.by_qd[i] + Psi_dot @ dQ_v
    vv, qa = S @ dQ_v, sigma @ m.by_qdd[i]
    vq, aq = S @ dQ + m.Psi_S_dot[j].T @ dP, S @ dP
    return (qq, qv, vv, qa), (qq.T, vq.T, vv.T, aq.T)


def _within(joint, above, below):
    """Return the blocks of a joint with itself, without the terms of own_changes."""
    if joint.series is None:
        return above
    pairs = zip(above, below, strict=True)
    return tuple(_by_order(joint.series, x, y) for x, y in pairs)
