"""First derivatives of inverse and forward dynamics, in closed form."""

from dyn_core import (
    FD_DERIVATIVES,
    FORWARD_DYNAMICS,
    ID_DERIVATIVES,
    MASS_MATRIX,
    MASS_MATRIX_INVERSE,
    Force,
    Matrix,
    Motion,
    MotionSubspace,
    TextSolver,
    Vector,
    VelocityProduct,
    cross,
    cross3,
    hookimpl,
    joint_factors,
    rotation_rates,
)


def id_derivatives(model, q, qd, qdd, f_ext):
    """Give the derivatives of inverse dynamics, and H on the way.

        d tau = dtau_dq dq + dtau_dqd dqd + H dqdd

    dq is a displacement in the tangent space: q (+) dq, so dtau_dq is nv x nv for
    quaternion joints too. Forces from outside stay fixed to their bodies.

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].
        qd: Joint velocities, nv [rad/s | m/s].
        qdd: Joint accelerations, nv [rad/s² | m/s²].
        f_ext: Force on each body, body coordinates [N·m; N].

    Returns:
        Blocks of dtau_dq, dtau_dqd and H, for bodies i and their ancestors j.

    Source: S. Singh, R. Russell and P. Wensing, Efficient analytical derivatives of
    rigid-body dynamics using spatial vector algebra, 2022, Algorithm 1; here in body
    coordinates, where S and what is crossed with it are mostly zeros; for joints whose
    coordinates act together with the slopes of S of KIM-2.4.
    """
    X, columns, Ic, B, f = _outward(model, q, qd, qdd, f_ext)
    dq, dqd, H = {}, {}, {}
    for i in reversed(model.bodies):
        p = model.parent[i]
        hands = [_Hand(column, Ic[i], B[i], f[i]) for column in columns[i]]
        _own_block(model, i, columns[i], hands, f[i], dq, dqd, H)
        j = i
        while model.parent[j] > 0:
            hands = [hand.moved(X[j]) for hand in hands]
            j = model.parent[j]
            pairs = [[hand.with_ancestor(c) for c in columns[j]] for hand in hands]
            dq[i, j], dqd[i, j], H[i, j] = _blocks(pairs, (0, 1, 2))
            dq[j, i], dqd[j, i] = (b.T for b in _blocks(pairs, (3, 4)))
        if p > 0:
            Ic[p] = Ic[p] + X[i].T @ Ic[i] @ X[i]
            B[p] = B[p] + X[i].T @ B[i] @ X[i]
            f[p] = f[p] + X[i].T @ f[i]
    return dq, dqd, H


def _outward(model, q, qd, qdd, f_ext):
    """Give X, the columns of each joint, and inertia, velocity product, force."""
    v, a, X, columns = [Motion.zero()], [-model.a_grav], [None], [None]
    Ic, B, f = list(model.I), [None], [Force.zero()]
    for i in model.bodies:
        p, joint, I = model.parent[i], model.joint[i], model.I[i]
        X.append(joint.X(q[i]) @ model.Xtree[i])
        S, vJ, cJ = joint.S(q[i]), joint.vJ(q[i], qd[i]), joint.cJ(q[i], qd[i])
        v_p, a_p = X[i] @ v[p], X[i] @ a[p]
        v.append(v_p + vJ)
        a.append(a_p + S @ qdd[i] + cJ + cross(v_p, vJ))
        columns.append([None] * joint.nv)
        if joint.series is None:
            columns[i] = _together(joint, S, v_p, a_p, q[i], qd[i], qdd[i])
        for k in joint.series or ():
            columns[i][k] = column = _in_series(S[k], v_p, a_p)
            a_p = a_p + S[k] * qdd[i][k] + column.psi_dot * qd[i][k]
            v_p = v_p + S[k] * qd[i][k]
        w, classical = v[i].ang, a[i].lin + cross3(v[i].ang, v[i].lin)
        f.append(I.force_of(classical, rotation_rates(w, a[i].ang)) - f_ext[i])
        B.append(VelocityProduct.of(I, v[i]))
    return X, columns, Ic, B, f


class _Column:
    """One column s of a joint's S and its rates.

    Attributes:
        s: The column.
        psi_dot: How the body's velocity changes with its coordinate.
        psi_ddot: How its acceleration does, and v x psi_dot.
        both: psi_dot and the rate of s: how the acceleration changes with its rate.
        bends: How the column changes with each coordinate of its joint; None in series.
    """

    def __init__(self, s, psi_dot, psi_ddot, both, bends=None):
        self.s, self.psi_dot, self.psi_ddot = s, psi_dot, psi_ddot
        self.both, self.bends = both, bends


def _in_series(s, v_p, a_p):
    """Give the column of a joint of one coordinate whose S is constant.

    psi_dot = s_dot = v_p x s,   psi_ddot = a_p x s + v_p x psi_dot
    """
    psi_dot = cross(v_p, s)
    return _Column(s, psi_dot, cross(a_p, s) + cross(v_p, psi_dot), psi_dot + psi_dot)


def _together(joint, S, v_p, a_p, q, qd, qdd):
    """Give the columns of a joint whose coordinates act together.

    psi_dot_k = v_p x s_k + dS/dq_k qd,   s_dot_k = v x s_k + sum_l ds_k/dq_l qd_l
    psi_ddot_k = a_p x s_k + v_p x (v_p x s_k) + (v_p + v) x dS/dq_k qd
                 + dS/dq_k qdd + dcJ/dq_k
    """
    slopes, bias = joint.S_slopes(q), joint.cJ_slopes(q, qd)
    v = v_p + S @ qd
    columns = []
    for k, s in enumerate(S):
        bends = [slope[k] for slope in slopes]
        turned, moved = cross(v_p, s), slopes[k] @ qd
        psi_dot = turned + moved
        psi_ddot = cross(a_p, s) + cross(v_p, turned) + cross(v_p, moved)
        psi_ddot = psi_ddot + cross(v, moved) + slopes[k] @ qdd + bias[k]
        s_dot = cross(v, s) + MotionSubspace(bends) @ qd
        columns.append(_Column(s, psi_dot, psi_ddot, psi_dot + s_dot, bends))
    return columns


class _Hand:
    """What one column of body i hands up to its ancestors: forces, t3 a moment.

    t1 = B s + Ic both,  t2 = B psi_dot + Ic psi_ddot + s x* f,  t3 = B.T s,  t4 = Ic s
    """

    def __init__(self, column, Ic, B, f):
        self.t1 = B @ column.s + Ic @ column.both
        self.t2 = B @ column.psi_dot + Ic @ column.psi_ddot + cross(column.s, f)
        self.t3 = B.transposed_times(column.s)
        self.t4 = Ic @ column.s

    def moved(self, X):
        """Give the same in the coordinates of the parent of X."""
        up = object.__new__(_Hand)
        up.t1, up.t2, up.t4 = X.T @ self.t1, X.T @ self.t2, X.T @ self.t4
        up.t3 = X.E.T @ self.t3
        return up

    def with_ancestor(self, c):
        """Give dq, dqd, H of this row and column c; dq, dqd of row c, this column."""
        return (
            self.t3 @ c.psi_dot.ang + c.psi_ddot @ self.t4,
            self.t3 @ c.s.ang + c.both @ self.t4,
            c.s @ self.t4,
            c.s @ self.t2,
            c.s @ self.t1,
        )


def _blocks(pairs, parts):
    """Give some parts of pairs of columns as matrices."""
    return [Matrix([pair[k] for pair in row] for row in pairs) for k in parts]


def _own_block(model, i, columns, hands, f, dq, dqd, H):
    """Set the blocks of a joint with itself; columns in series are ancestors too.

    Where the coordinates act together, S bends under the body's force f.
    """
    pairs = [[hand.with_ancestor(c) for c in columns] for hand in hands]
    n = range(len(columns))
    series = model.joint[i].series

    def entry(k, l, below, above):
        before = series and series.index(k) < series.index(l)
        return pairs[l][k][above] if before else pairs[k][l][below]

    def bend(k, l):
        return 0.0 if series else columns[k].bends[l] @ f

    dq[i, i] = Matrix([entry(k, l, 0, 3) + bend(k, l) for l in n] for k in n)
    dqd[i, i] = Matrix([entry(k, l, 1, 4) for l in n] for k in n)
    own = Matrix([pairs[max(k, l)][min(k, l)][2] for l in n] for k in n)
    H[i, i] = own + Matrix.diagonal(model.armature[i])


def mass_matrix_inverse(model, q, mass_matrix):
    """Give the inverse of the joint-space inertia.

        Hinv H = 1

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].
        mass_matrix: Slot for H.

    Returns:
        Hinv, nv x nv, symmetric [1/(kg·m²) | 1/kg].

    Source: RBDA, section 6.5: H = L.T D L has no fill-in on a tree.
    """
    return joint_factors(model, mass_matrix(q)).inverse()


def fd_derivatives(model, q, qd, tau, f_ext, forward_dynamics, derivatives):
    """Give the derivatives of forward dynamics, from those of inverse dynamics.

        d qdd = dqdd_dq dq + dqdd_dqd dqd + Hinv dtau
        dqdd_dq = -Hinv dtau_dq,   dqdd_dqd = -Hinv dtau_dqd   at qdd = FD(q, qd, tau)

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].
        qd: Joint velocities, nv [rad/s | m/s].
        tau: Joint forces, nv [N·m | N].
        f_ext: Force on each body, body coordinates [N·m; N], fixed to its body.
        forward_dynamics: Slot for FD.
        derivatives: Slot for the derivatives of inverse dynamics.

    Returns:
        qdd, dqdd_dq, dqdd_dqd and Hinv.

    Source: J. Carpentier and N. Mansard, Analytical derivatives of rigid body dynamics
    algorithms, 2018, section V.
    """
    qdd = forward_dynamics(q, qd, tau, f_ext[1:])
    dq, dqd, H = derivatives(q, qd, qdd, f_ext[1:])
    factors = joint_factors(model, H)
    inverse = factors.inverse()
    slopes = []
    for M in (dq, dqd):
        columns = [factors.solve(Vector(c)) for c in zip(*M.rows, strict=True)]
        slopes.append(-Matrix(columns).T if columns else M)
    return qdd, slopes[0], slopes[1], inverse


ID = TextSolver("id_derivatives", ID_DERIVATIVES, id_derivatives, regrouped=True)


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    return [
        ID,
        TextSolver(
            "mass_matrix_inverse",
            MASS_MATRIX_INVERSE,
            mass_matrix_inverse,
            slots={"mass_matrix": MASS_MATRIX},
            fills={"mass_matrix": "crba"},
            by_joint=False,
        ),
        TextSolver(
            "fd_derivatives",
            FD_DERIVATIVES,
            fd_derivatives,
            slots={"forward_dynamics": FORWARD_DYNAMICS, "derivatives": ID_DERIVATIVES},
            fills={"forward_dynamics": "aba", "derivatives": ID},
            by_joint=False,
        ),
    ]
