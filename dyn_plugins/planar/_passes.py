"""The two passes along a planar chain: one algorithm for every kind of joint.

Joint i responds to the force F and the couple tau from link i-1 by

    a_i = A F + bw tau + b,        alpha_i = bw . F + qw tau + q

where alpha_i is the angular acceleration of link i. A chain has n joints and n-1 links,
counted from 0; link i is between joints i and i+1. A and (bw, qw) are inverse inertias
of the rest of the chain, computed from its end to its start. Link i transmits

    G = r phi + L (tau - tau'),    a_i = W (F_e + F - K G - ...) + w

phi along the link r, and the couple tau' of an active joint i+1 by the pair of forces
L. These two unknowns y solve Q y = U.T F + c tau + h, a symmetric system: "the link
keeps its length" and "the angle has its prescribed acceleration". Eliminating them,

    A = W - U Q^-1 U.T,  bw = -U3 - U Q^-1 c,  qw = L.S L - c.Q^-1 c

The kind of a joint enters by its mobility W and its own acceleration w alone. Angle i
is that of link i from link i-1, angle 0 that of link 0.

Vanishing pivots are distinguished from small ones by their round-off, which is
propagated: an error dQ of Q changes A by Y dQ Y.T, Y = U Q^-1, so a small pivot
increases it.

Source: WAW-6.6, WAW-9.1, WAW-9.3, WAW-11.7, WAW-13.4, WAW-15.1; the symmetric form is
derived here: p_i = b_i^w makes the source's four functions a Schur complement.
"""

from dataclasses import dataclass
from typing import Any

from dyn_core.authoring import (
    Matrix,
    Number,
    Vector,
    absolute,
    equal,
    logical_and,
    logical_not,
    logical_or,
    sqrt,
    where,
)
from dyn_core.planar import FREE, GUIDED, LINE, JointModes

TOLERANCE = 1e-10  # below it a dimensionless pivot counts as zero
ROUNDING = 1e-14  # round-off of a dimensionless pivot, with some reserve
ZERO = Vector((0.0, 0.0))


def modes_of(model, kind=None, s=None, a_w=None, active=None, alpha_w=None):
    """Return the JointModes, new lists, of a call; None takes the chain's constraints.

    kind: FREE (0), LINE (1) or GUIDED (2); s, a_w: unit normals of lines, accelerations
    of supports [m/s²], n x 2; active: nonzero where alpha_w [rad/s²] is prescribed.
    """
    constraints = model.constraints
    return JointModes(
        list(constraints.kind if kind is None else kind),
        [Vector(row) for row in (constraints.s if s is None else s.rows)],
        [Vector(row) for row in (constraints.a_w if a_w is None else a_w.rows)],
        list(constraints.active)
        if active is None
        else [_not(equal(k, 0.0)) for k in active],
        list(constraints.alpha_w if alpha_w is None else alpha_w),
    )


def rows_of(matrix):
    """Return the list of the rows of a Matrix, as Vectors."""
    return [Vector(row) for row in matrix.rows]


def turned(r):
    """Return the Vector r, two numbers, rotated by +90 degrees."""
    return Vector((-r[1], r[0]))


def links(model, x):
    """Return directions r of the links, L = turned r / l, and joint distances [m].

    Three lists of n-1; r has length 1 and leads from joint i to joint i+1; l is the
    nominal length of a link, from model.lengths. The results of a link whose joints
    coincide are not finite; on Python floats this is a ZeroDivisionError.

    Args:
        model: Planar chain.
        x: Positions of the joints, list of Vectors [m].

    Source: WAW-2.1.
    """
    r, L, size = [], [], []
    for i, length in enumerate(model.lengths):
        c = x[i + 1] - x[i]
        size.append(sqrt(c @ c))
        r.append(c / size[i])
        L.append(turned(r[i]) / length)
    return r, L, size


def stretch(model, v, r, size, window):
    """Return a list of e of the link equations r . (a_i - a_{i+1}) = e, n-1 [m/s²].

        e = |v_{i+1} - v_i|² / l + eps / window² + 2 eps' / window

    eps is the distance of the joints minus l, eps' its rate; errors of the lengths
    decay with the time constant `window` [s], for None not at all.

    Source: WAW-5.1, WAW-12.10.
    """
    e = []
    for i, length in enumerate(model.lengths):
        u = v[i + 1] - v[i]
        e.append(u @ u / length)
        if window is not None:
            e[i] = e[i] + (size[i] - length) / (window * window)
            e[i] = e[i] + r[i] @ u * (2.0 / window)
    return e


@dataclass
class ChainJoint:
    """Coefficients of a joint from the backward pass; letters as in the module.

    Attributes:
        W, w: Mobility and own acceleration.
        M: Inertia of the joint with its shares of the links.
        A, bw, qw: Inverse inertias of the chain from this joint on.
        K, U, c, KL, hL: Coefficients of its link; None at the last joint.
        P: Generalized inverse of Q: entries 11, 12, 22.
        dropped: 1 where the equation of the link, of the angle, is not solved; else 0.
        error: Round-off of A [1/kg] and of qw [1/(kg·m²)].
    """

    W: Any
    w: Any
    M: Any
    A: Any
    bw: Any
    qw: Any
    K: Any = None
    U: Any = None  # (U1, U2, U3)
    c: Any = None
    P: Any = None  # generalised inverse of Q: p11, p12, p22
    KL: Any = None
    hL: Any = None
    dropped: Any = (0.0, 0.0)
    error: Any = (0.0, 0.0)  # round-off of A [1/kg] and of qw [1/(kg·m²)]


def pass_back(model, r, L, modes):
    """Return the ChainJoints by joint: inverse inertias, from the end to the start.

    r, L: Unit directions of the links, and these turned by +90 degrees / length. An
    equation with a vanishing pivot is left out and marked in `dropped`.
    """
    joints = [None] * model.n
    for i in reversed(range(model.n)):
        after = joints[i + 1] if i + 1 < model.n else None
        joints[i] = _joint(model, i, r, L, modes, after)
    return joints


def _joint(model, i, r, L, modes, after):
    """Return the ChainJoint of joint i from the next one, `after` (None at the end).

    At the end it is the joint alone: A = W, bw and qw are zero.
    """
    shares = model.shares
    beta = shares[i][2] if after else 0.0
    mass = model.masses[i] + (shares[i][0] if after else 0.0)
    mass = mass + (shares[i - 1][1] if i else 0.0)
    M = Matrix([[mass, 0.0], [0.0, mass]])
    if after:
        M = M - after.A * (beta * beta)
    W, w = _mobility(i, M, modes)
    if after is None:
        return ChainJoint(W, w, M, W, ZERO, 0.0)
    r, L = r[i], L[i]
    K = Matrix.identity(2) + after.A * beta
    Kr, KL = K @ r, K @ L
    hL = KL - after.bw * beta
    U1, U2, U3 = W @ Kr, -(W @ hL), W @ KL
    Sr, AL = K @ U1 + after.A @ r, after.A @ L
    c1 = -(L @ Sr)
    Q11 = r @ Sr
    Q12 = r @ (after.bw + K @ (W @ after.bw) * beta) + c1
    Q22 = after.qw - after.bw @ L * 2.0 - hL @ U2 + L @ AL
    c2 = hL @ U3 - after.bw @ L + L @ AL
    errors = _pivot_errors(model, i, after.error)
    P, dropped = _inverse(model, i, (Q11, Q12, Q22), errors, modes)
    p11, p12, p22 = P
    y1, y2 = p11 * c1 + p12 * c2, p12 * c1 + p22 * c2
    Y1, Y2 = U1 * p11 + U2 * p12, U1 * p12 + U2 * p22
    return ChainJoint(
        W, w, M,
        A=W - _symmetric(U1, Y1) - _symmetric(U2, Y2),
        bw=-U3 - U1 * y1 - U2 * y2,
        qw=L @ (K @ U3 + AL) - c1 * y1 - c2 * y2,
        K=K, U=(U1, U2, U3), c=(c1, c2), P=P, KL=KL, hL=hL, dropped=dropped,
        error=_carried(model, i, errors, (Y1, Y2), (y1, y2), modes.kind[i]),
    )  # fmt: skip


def _mobility(i, M, modes):
    """Return W, 2 x 2 [1/kg], and w [m/s²] of a joint: free, on a line, or guided.

        free: M^-1, 0;   line: t t.T / (t.M t), s (s.a_w);   guided: 0, a_w

    with the unit normal s of the line, t = s turned by +90 degrees, and the
    acceleration a_w of the support. A kind that is known while tracing selects a
    branch, else all three are computed and selected.

    Source: WAW-6.6.
    """
    kind, s, a_w = modes.kind[i], modes.s[i], modes.a_w[i]
    det = M[0, 0] * M[1, 1] - M[0, 1] * M[1, 0]
    known = not isinstance(kind, Number)
    zero = Matrix([[0.0, 0.0], [0.0, 0.0]])
    if known and kind == GUIDED:
        return zero, a_w
    t = turned(s)
    if known and kind == LINE:
        along = t @ (M @ t)
        return _symmetric(t / along, t), s * (s @ a_w)
    over = 1.0 / det if known else 1.0 / where(det > 0, det, 1.0)
    beside = -(M[0, 1] * over)
    free = Matrix([[M[1, 1] * over, beside], [beside, M[0, 0] * over]])
    if known:
        return free, ZERO
    along = t @ (M @ t)
    line = _symmetric(t / where(along > 0, along, 1.0), t)
    on_line, is_free = equal(kind, LINE), equal(kind, FREE)
    W = Matrix(
        [where(is_free, f, where(on_line, l, 0.0)) for f, l in zip(*rows, strict=True)]
        for rows in zip(free.rows, line.rows, strict=True)
    )
    w = where(is_free, ZERO, where(on_line, s * (s @ a_w), a_w))
    return W, w


def _pivot_errors(model, i, error):
    """Return the round-off of Q11 [1/kg] and of Q22 [1/(kg·m²)] of link i, a pair.

    error: Round-off of A [1/kg] and of qw [1/(kg·m²)] of the next joint.
    """
    of_A = error[0] + ROUNDING / _scale(model, i)
    return of_A, error[1] + of_A * _per_area(model, i)


def _per_area(model, i):
    """Return 1 / length² of link i [1/m²]."""
    return 1.0 / (model.lengths[i] * model.lengths[i])


def _carried(model, i, errors, Y, y, kind):
    """Return the round-off of A [1/kg] and of qw [1/(kg·m²)] of joint i, a pair.

    It is propagated from the next joint: errors of Q11 and Q22, Y the columns of (U1,
    U2) Q^-1, y = Q^-1 c. A joint that is known to be free adds none of its own to A.
    """
    e1, e2 = errors
    of_qw = (_per_area(model, i) + y[0] * y[0]) * e1 + y[1] * y[1] * e2
    if not isinstance(kind, Number) and kind == FREE:
        return e1, of_qw
    fresh = ROUNDING / _scale(model, i)
    return fresh + Y[0] @ Y[0] * e1 + Y[1] @ Y[1] * e2, of_qw


def _inverse(model, i, Q, errors, modes):
    """Return a generalized inverse of Q, and flags of equations that are dropped.

    Entries 11, 12, 22, zero for a dropped equation; flags 1 if the equation of the
    link, of the angle, is dropped. If angle i + 1 is not active, entries 12 and 22 and
    its flag are 0.

    Source: WAW-6.2, WAW-11.2, WAW-11.4, WAW-12.6, WAW-12.7.
    """
    q11, q12, q22 = Q
    kind, active = modes.kind[i], modes.active[i + 1]
    regular = not isinstance(kind, Number) and kind == FREE
    if active is False:
        if regular:
            return (1.0 / q11, 0.0, 0.0), (0.0, 0.0)
        m = _scale(model, i)
        void = q11 * m <= TOLERANCE + errors[0] * m
        p11 = where(void, 0.0, 1.0 / where(void, 1.0, q11))
        return (p11, 0.0, 0.0), (where(void, 1.0, 0.0), 0.0)
    det = q11 * q22 - q12 * q12
    if regular and active is True:
        return (q22 / det, -q12 / det, q11 / det), (0.0, 0.0)
    m, l = _scale(model, i), model.lengths[i]
    n11, n12, n22 = q11 * m, absolute(q12) * (m * l), q22 * (m * l * l)
    e11, e22 = errors[0] * m, errors[1] * (m * l * l)
    singular = det * (m * m * l * l) <= TOLERANCE + e11 * n22 + e22 * n11
    no_link = _or(n11 + n12 <= TOLERANCE + e11, n11 < n22)
    no_angle = _or(n12 + n22 <= TOLERANCE + e22, n11 >= n22)
    drop_link = logical_and(active, logical_and(singular, no_link))
    drop_link = _or(drop_link, logical_and(_not(active), n11 <= TOLERANCE + e11))
    drop_angle = logical_and(active, logical_and(singular, no_angle))
    keep_angle = logical_and(active, _not(drop_angle))
    over = 1.0 / where(
        drop_link, where(keep_angle, q22, 1.0), where(keep_angle, det, q11)
    )
    p11 = where(drop_link, 0.0, where(keep_angle, q22, 1.0)) * over
    p12 = where(drop_link, 0.0, where(keep_angle, -q12, 0.0)) * over
    p22 = where(keep_angle, where(drop_link, 1.0, q11), 0.0) * over
    return (p11, p12, p22), (where(drop_link, 1.0, 0.0), where(drop_angle, 1.0, 0.0))


def _scale(model, i):
    """Return the mass of the lighter end of link i, to make pivots dimensionless [kg].

    Ends without mass do not count; if both have none, it is the smallest positive mass
    of all joints, 1.0 without masses.
    """
    masses = [m for m in model.masses[i : i + 2] if isinstance(m, Number) or m > 0]
    masses = masses or [m for m in model.masses if isinstance(m, Number) or m > 0]
    if not masses:
        return 1.0
    lightest = masses[0]
    for m in masses[1:]:
        lightest = where(m < lightest, m, lightest)
    return lightest


def pass_forward(model, r, L, modes, joints, F, e):
    """Return the accelerations of a chain under forces: loads backward, forces forward.

    Lists: accelerations a of the joints, n; forces F_d by link i-1 on joint i, n (entry
    0 zero); couples tau_w of active joints, n, zero for others; angular accelerations
    of the links, n-1. F are external forces [N], e right sides of the link equations
    [m/s²].

    Source: WAW-5.4, WAW-9.2, WAW-9.4.
    """
    n = model.n
    f, h, b, q = [None] * n, [None] * n, [None] * n, [None] * n
    for i in reversed(range(n)):
        J = joints[i]
        load = F[i] - J.M @ J.w
        if i + 1 < n:
            load = load - b[i + 1] * model.shares[i][2]
        f[i] = J.W @ load + J.w
        b[i], q[i] = f[i], 0.0
        if i + 1 < n:
            h1 = J.K @ r[i] @ f[i] - r[i] @ b[i + 1] - e[i]
            h2 = modes.alpha_w[i + 1] - q[i + 1] + L[i] @ b[i + 1] - J.hL @ f[i]
            h[i] = (h1, h2)
            y1, y2 = _solve(J.P, h[i])
            b[i] = f[i] - J.U[0] * y1 - J.U[1] * y2
            q[i] = L[i] @ b[i + 1] - J.KL @ f[i] - J.c[0] * y1 - J.c[1] * y2
    F_d, tau, a, alpha = [ZERO], [_first_couple(model, joints, modes, q)], [], []
    for i in range(n):
        J = joints[i]
        a.append(J.A @ F_d[i] + J.bw * tau[i] + b[i])
        if i + 1 == n:
            break
        alpha.append(J.bw @ F_d[i] + J.qw * tau[i] + q[i])
        right = (
            J.U[0] @ F_d[i] + J.c[0] * tau[i] + h[i][0],
            J.U[1] @ F_d[i] + J.c[1] * tau[i] + h[i][1],
        )
        phi, couple = _solve(J.P, right)
        G = r[i] * phi + L[i] * (tau[i] - couple)
        F_d.append(G - a[i] * model.shares[i][2])
        tau.append(couple)
    return a, F_d, tau, alpha


def _first_couple(model, joints, modes, q):
    """Return the couple at joint 0 [N·m]; 0 unless its angle is active and can follow.

    q: Free angular accelerations, by joint [rad/s²].

    Source: WAW-9.4.
    """
    moves = _base_turns(model, joints, modes)
    if moves is False:
        return 0.0
    qw = joints[0].qw
    return where(moves, (modes.alpha_w[0] - q[0]) / where(moves, qw, 1.0), 0.0)


def _base_turns(model, joints, modes):
    """Return whether angle 0 is active and can be accelerated by a couple.

    Source: WAW-9.4.
    """
    active = modes.active[0]
    if active is False or model.n < 2:
        return False
    size = _scale(model, 0) * model.lengths[0] * model.lengths[0]
    least = TOLERANCE + joints[0].error[1] * size
    return logical_and(active, joints[0].qw * size > least)


def base_is_stuck(model, joints, modes):
    """Return 1 if angle 0 is active and no couple can accelerate it, else 0.

    Source: WAW-9.4, WAW-12.6.
    """
    active, moves = modes.active[0], _base_turns(model, joints, modes)
    return where(logical_and(active, _not(moves)), 1.0, 0.0)


def _solve(P, h):
    return P[0] * h[0] + P[1] * h[1], P[1] * h[0] + P[2] * h[1]


def _symmetric(u, v):
    """Return the Matrix u v.T, 2 x 2, made exactly symmetric: entry 21 is entry 12."""
    beside = u[0] * v[1]
    return Matrix([[u[0] * v[0], beside], [beside, u[1] * v[1]]])


def _not(condition):
    if isinstance(condition, Number):
        return logical_not(condition)
    return not condition


def _or(a, b):
    return logical_or(a, b)
