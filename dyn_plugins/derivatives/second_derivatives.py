"""Second derivatives of inverse and forward dynamics: tensors and contractions.

For weights that are mostly zeros, ancestors of all weighted joints do not move, and the
bodies behind the last weighted joint move as one body. For a small robot the tensors
are computed this way, weight by weight: each is less work than products of matrices.
"""

from dataclasses import dataclass

from dyn_core.authoring import (
    ForceSubspace,
    Matrix,
    Motion,
    TracedSolver,
    Vector,
    VelocityProduct,
    hookimpl,
    join_slopes,
    position_rate,
    product,
    slope_of,
    sparse_products,
    split_q,
    split_v,
    with_slopes,
)
from dyn_core.errors import UnsupportedError
from dyn_core.model import passive_forces
from dyn_core.problems import (
    FD_DERIVATIVES,
    FD_SECOND_CONTRACTED,
    FD_SECOND_DERIVATIVES,
    ID_SECOND_CONTRACTED,
    ID_SECOND_DERIVATIVES,
)
from dyn_plugins._options import NAME
from dyn_plugins.derivatives._chains import are_zero, paths_of
from dyn_plugins.derivatives._contraction import (
    motions,
    own_changes,
    second_derivatives,
    weighted_rates,
)
from dyn_plugins.derivatives._tensors import by_leaders, second_derivative_tensors
from dyn_plugins.derivatives.first_derivatives import _by_order, _cross_force

SHORT = 9  # longest path, in coordinates, for tensors weight by weight


@dataclass(frozen=True)
class UnitWeighted:
    """Motion and sums under the weights as joint rates, by body; entry 0 is unused.

    W_p, sigma, P, Q and BW are as in Weighted, and W is the motion of the body; BW is
    None if the body and its descendants all move as its parent does. moving: The body,
    one of its ancestors or of its descendants has a nonzero weight.
    """

    W_p: list
    sigma: list
    P: list
    Q: list
    BW: list
    W: list
    moving: list


def _weighted_motions(model, m, weights):
    """Return the UnitWeighted of Motions m and weights, most of them zeros.

    Only weights that are the constant 0.0 count as zeros and save operations.
    """
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
    """Return the results of second_derivatives, fast for weights of mostly zeros."""
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
    """Return the derivatives of w.P[i] by q, of w.Q[i] by q and of w.Q[i] by qd."""
    S, sigma = m.S[i], w.sigma[i]
    dP = _cross_force(S, w.P[i]) + m.IC[i] @ sigma
    dQ = _cross_force(S, w.Q[i]) + m.BC[i].T @ sigma
    return dP, dQ + _minus_BW(m, w, i, m.Psi_dot[i]), _minus_BW(m, w, i, S)


def _minus_BW(m, w, i, alpha):
    """Return -B(I, W).T alpha; B(I, alpha).T W if i and its descendants share W."""
    if w.BW[i] is None:
        return ForceSubspace(VelocityProduct.of(m.IC[i], x).T @ w.W[i] for x in alpha)
    return ForceSubspace(-f for f in w.BW[i].T @ alpha)


def _pair(m, w, j, i, change):
    """Return the blocks (j, i) and (i, j) for joint j and joint i at or behind it.

    Each is a tuple of Matrices by qq, q qd, qd qd and q qdd. For j = i the two differ,
    and `_within` makes one of them. change: Result of `_change` for i.
    """
    dP, dQ, dQ_v = change
    S, sigma, Psi_dot = m.S[j].T, w.sigma[j].T, m.Psi_dot[j].T
    qq = sigma @ m.by_q[i] + m.Psi_ddot[j].T @ dP + Psi_dot @ dQ
    qv = sigma @ m.by_qd[i] + Psi_dot @ dQ_v
    vv, qa = S @ dQ_v, sigma @ m.by_qdd[i]
    vq, aq = S @ dQ + m.Psi_S_dot[j].T @ dP, S @ dP
    return (qq, qv, vv, qa), (qq.T, vq.T, vv.T, aq.T)


def _within(joint, above, below):
    """Return the blocks of a joint with itself, without the terms of own_changes.

    above, below: Results of `_pair`. In a series an entry is from `above` where the
    row's coordinate acts before the column's, else from `below`; in other joints all
    are from `above`.
    """
    if joint.series is None:
        return above
    pairs = zip(above, below, strict=True)
    return tuple(_by_order(joint.series, x, y) for x, y in pairs)


def id_second_contracted(model, q, qd, qdd, weights, f_ext, f_ext_fixed):
    """Return the second derivatives of weights . tau, tau = ID(q, qd, qdd).

        d2tau_dxdy[j, k] = sum_i weights_i d2tau_i / (dx_j dy_k)

    d/dq is along a tangent displacement, q (+) dq, also where a derivative is
    differentiated again: see id_second_derivatives.

    Inputs and outputs: those of ID_SECOND_CONTRACTED, so the result is by qq, q qd, qd
    qd, q qdd; f_ext by body, the base first.

    Args:
        f_ext_fixed: Frame in which external forces are constant: body; others raise
            UnsupportedError when the Program is built.

    Source: S. Singh, R. Russell and P. Wensing, On second-order derivatives of
    rigid-body dynamics: theory and implementation, 2023, for its identities; the sum
    with weights before the derivative as S. Echeandia and P. Wensing, Numerical methods
    to compute the Coriolis matrix and Christoffel symbols for rigid-body systems, 2021,
    do with H; derived in _contraction.py.
    """
    state = split_q(model, q), split_v(model, qd), split_v(model, qdd)
    m = motions(model, *state, f_ext)
    blocks = second_derivatives(model, m, state, split_v(model, weights))
    passive = _passive_curvatures(model, q, qd)
    return (*_with_weighted(passive, weights, blocks), blocks[3])


def id_second_derivatives(model, q, qd, qdd, f_ext, f_ext_fixed):
    """Return the second derivatives of tau = ID(q, qd, qdd).

        d(dtau_dx[i, j]) = sum_k d2tau_dxdq[i, j, k] dq_k + d2tau_dxdqd[i, j, k] dqd_k

    The first derivative is differentiated along a tangent displacement q (+) dq. For
    quaternion joints displacements do not commute, and

        d2tau_dqdq[i, j, k] - d2tau_dqdq[i, k, j] = sum_l c_kjl dtau_dq[i, l]
        s_k x s_j = sum_l c_kjl s_l   for columns of S of one quaternion joint

    For other joints it is symmetric in j and k, and so is d2tau_dqddqd for every joint;
    dH_dq is exactly symmetric in i and j. Entries whose three joints are not on one
    path from the base are zeros and cost nothing, unless forces of the Model couple
    them.

    Inputs and outputs: those of ID_SECOND_DERIVATIVES, so the result is that of tau by
    qq, q qd, qd qd, and dH_dq; f_ext by body, the base first.

    Args:
        f_ext_fixed: Frame in which external forces are constant: body; others raise
            UnsupportedError when the Program is built.

    Source: S. Singh, R. Russell and P. Wensing, On second-order derivatives of
    rigid-body dynamics: theory and implementation, 2023; here as products of matrices,
    derived in _tensors.py, or as contractions with unit vectors that share all terms
    independent of them.
    """
    state = split_q(model, q), split_v(model, qd), split_v(model, qdd)
    m = motions(model, *state, f_ext)
    if max(map(len, paths_of(model))) > SHORT:
        tensors = second_derivative_tensors(model, m, state)
        if any(lead.ratio is not None for lead in model.leader[1:]):
            tensors = by_leaders(model, tensors)
    else:
        tensors = _weight_by_weight(model, m, state)
    passive = _passive_curvatures(model, q, qd)
    for tensor, slopes in zip(tensors, passive or (), strict=False):
        for k, slope in enumerate(slopes):
            for i, row in enumerate(slope.rows):
                for j, x in enumerate(row):
                    tensor[i][j][k] = tensor[i][j][k] + x
    return tuple([Matrix(slab) for slab in tensor] for tensor in tensors)


def _weight_by_weight(model, m, state):
    """Return the tensors by qq, q qd, qd qd and of H by q as lists [i][j][k]."""
    units = [split_v(model, Vector(x)) for x in Matrix.identity(model.nv).rows]
    slabs = [with_few_weights(model, m, state, unit) for unit in units]
    n = range(model.nv)
    of_tau = ([[list(row) for row in x[k].rows] for x in slabs] for k in range(3))
    dH = [slab[3].T.rows for slab in slabs]
    return *of_tau, [[list(dH[min(i, j)][max(i, j)]) for j in n] for i in n]


def _passive_curvatures(model, q, qd):
    """Return second derivatives of `resistance`, to be added to those of tau, or None.

    It is the force that overcomes friction and the user's forces: the latter count with
    a minus. Three lists of Matrices nv x nv by k: of the stiffness by q_k, of the
    stiffness by qd_k, of the damping by qd_k.
    """
    dry = [x for i in model.bodies for x in model.friction[i]]
    dry += [x for i in model.bodies for x in model.friction_asymmetry[i]]
    dry += [x for i in model.bodies for x in model.stribeck[i]]
    rough = any(not isinstance(x, float) or x != 0.0 for x in dry)
    if not (rough or model.forces):
        return None
    slopes_by_q = passive_forces.stiffness_matrix
    slopes_by_qd = passive_forces.damping_matrix
    none = Matrix.zeros(model.nv, model.nv)
    by_q, by_qd, damping = [], [], []
    for unit in map(Vector, Matrix.identity(model.nv).rows):
        faster = with_slopes(qd, unit)
        damping.append(slope_of(slopes_by_qd(model, q, faster, rough, True)))
        if not model.forces:
            by_q.append(none)
            by_qd.append(none)
            continue
        moved = with_slopes(q, position_rate(model, q, unit))
        by_q.append(slope_of(slopes_by_q(model, moved, qd)))
        by_qd.append(slope_of(slopes_by_q(model, q, faster)))
    return by_q, by_qd, damping


def _with_weighted(passive, weights, blocks):
    """Return the blocks by qq, q qd and qd qd plus weighted passive terms, if any."""
    if passive is None:
        return blocks[:3]
    return tuple(
        block + Matrix(slope.T @ weights for slope in slopes).T
        for block, slopes in zip(blocks[:3], passive, strict=True)
    )


def fd_second_contracted(
    model, q, qd, tau, weights, f_ext, derivatives, second, f_ext_fixed
):
    """Return the second derivatives of weights . qdd, qdd = FD(q, qd, tau).

        weights . d2qdd = mu . d2ID,   mu = -Hinv weights

    where d2ID is the second derivative of ID(q, qd, FD(q, qd, tau)) with the first
    derivatives of FD inside. The derivative by qd and tau is zero and not returned. A
    singular H raises SingularError when the Program runs.

    Inputs and outputs: those of FD_SECOND_CONTRACTED, so the result is by qq, q qd, qd
    qd, q tau; f_ext by body, the base first.

    Args:
        derivatives: Solver of FD_DERIVATIVES.
        second: Solver of ID_SECOND_CONTRACTED.
        f_ext_fixed: Frame in which external forces are constant: body; others raise
            UnsupportedError when the Program is built.

    Source: S. Singh, R. Russell and P. Wensing, On second-order derivatives of
    rigid-body dynamics: theory and implementation, 2023, section V.
    """
    qdd, by_q, by_qd, Hinv = derivatives(q, qd, tau, f_ext[1:])
    mu = -(Hinv @ weights)
    qq, qv, vv, qa = second(q, qd, qdd, mu, f_ext[1:])
    if not model.nv:
        return qq, qv, vv, qa
    through, mixed, by_q_tau = _thin_products(qa, by_q, by_qd, Hinv)
    return qq + through + through.T, qv + mixed, vv, by_q_tau


def fd_second_derivatives(model, q, qd, tau, f_ext, derivatives, second, f_ext_fixed):
    """Return the second derivatives of qdd = FD(q, qd, tau).

        d2qdd = -Hinv d2ID

    d2ID is as in fd_second_contracted, [i, j, k] as in id_second_derivatives; the
    derivative by qd and tau is zero and not returned. A singular H raises SingularError
    when the Program runs.

    Inputs and outputs: those of FD_SECOND_DERIVATIVES, so the result is by qq, q qd, qd
    qd, q tau; f_ext by body, the base first.

    Args:
        derivatives: Solver of FD_DERIVATIVES.
        second: Solver of ID_SECOND_DERIVATIVES.
        f_ext_fixed: Frame in which external forces are constant: body; others raise
            UnsupportedError when the Program is built.

    Source: S. Singh, R. Russell and P. Wensing, On second-order derivatives of
    rigid-body dynamics: theory and implementation, 2023, section V.
    """
    qdd, by_q, by_qd, Hinv = derivatives(q, qd, tau, f_ext[1:])
    qq, qv, vv, dH = second(q, qd, qdd, f_ext[1:])
    if not model.nv:
        return qq, qv, vv, dH
    n, flat = model.nv, Matrix(row for dH_l in dH for row in dH_l.T.rows)
    through, mixed, by_q_tau = (
        [Matrix(M.rows[k : k + n]) for k in range(0, n * n, n)]
        for M in _thin_products(flat, by_q, by_qd, Hinv)
    )
    qq = [a + b + b.T for a, b in zip(qq, through, strict=True)]
    qv = [a + b for a, b in zip(qv, mixed, strict=True)]
    return tuple(_minus_times(Hinv, slabs) for slabs in (qq, qv, vv, by_q_tau))


def _minus_times(Hinv, slabs):
    """Return -Hinv times a tensor `slabs`, n Matrices n x n by its first index.

    The product sums over that index. Columns that are constant zeros are skipped.
    """
    n = len(slabs)
    flat = [[x for row in slab.rows for x in row] for slab in slabs]
    columns = [k for k, c in enumerate(zip(*flat, strict=True)) if not are_zero(c)]
    kept = Matrix([row[k] for k in columns] for row in flat)
    result = [[0.0] * (n * n) for _ in range(n)]
    if columns:
        for row, values in zip(
            result, product(Hinv, kept, negative=True).rows, strict=True
        ):
            for k, x in zip(columns, values, strict=True):
                row[k] = x
    return [Matrix(row[k : k + n] for k in range(0, n * n, n)) for row in result]


def _thin_products(A, *Bs):
    """Return A B for each B, of one width; zeros of A between branches are skipped."""
    columns = Matrix(column for B in Bs for column in B.T.rows)
    rows = sparse_products(columns, (A.T,))[0].rows
    n = len(rows) // len(Bs)
    return [Matrix(rows[k : k + n]).T for k in range(0, len(rows), n)]


class OfBodyForces(TracedSolver):
    """Solver of derivatives for external forces constant in body coordinates."""

    def _adapter(self, model, common, chosen):
        """Return the adapter; None as f_ext_fixed becomes common.f_ext_frame.

        Another f_ext_fixed than body is refused, also without the input f_ext.
        """
        fixed = chosen.get("f_ext_fixed")
        fixed = common.f_ext_frame if fixed is None else fixed
        if fixed != "body":
            raise UnsupportedError(
                f"{self.name}: there are none of forces fixed to the {fixed} (options"
                " f_ext_frame, f_ext_fixed); valid: f_ext_fixed='body'"
            )
        return super()._adapter(model, common, {**chosen, "f_ext_fixed": fixed})


def _solver(algorithm, signature, **more):
    return OfBodyForces(
        algorithm.__name__,
        signature,
        algorithm,
        options={"f_ext_fixed": None},
        valid={"f_ext_fixed": NAME},
        by_joint=False,
        **more,
    )


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    contracted = _solver(id_second_contracted, ID_SECOND_CONTRACTED, regrouped=True)
    tensors = _solver(id_second_derivatives, ID_SECOND_DERIVATIVES, regrouped=True)
    rows = (
        (fd_second_contracted, FD_SECOND_CONTRACTED, contracted),
        (fd_second_derivatives, FD_SECOND_DERIVATIVES, tensors),
    )
    forward = [
        _solver(
            algorithm,
            signature,
            slots={"derivatives": FD_DERIVATIVES, "second": second.signature},
            fills={"derivatives": "fd_derivatives", "second": second},
        )
        for algorithm, signature, second in rows
    ]
    return [contracted, tensors, *forward]
