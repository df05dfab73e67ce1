"""First derivatives of inverse and forward dynamics, in closed form."""

from dyn_core.authoring import (
    Force,
    ForceSubspace,
    Matrix,
    Motion,
    MotionSubspace,
    TracedSolver,
    VelocityProduct,
    cross,
    cross3,
    hookimpl,
    joint_factors,
    rotation_rates,
)
from dyn_core.problems import (
    FD_DERIVATIVES,
    FORWARD_DYNAMICS,
    ID_DERIVATIVES,
    MASS_MATRIX,
    MASS_MATRIX_INVERSE,
)
from dyn_plugins.derivatives._fixed_forces import (
    OPTIONS,
    VALID,
    FixedForces,
    fixed_force_slopes,
    with_fixed_forces,
)
from dyn_plugins.dynamics import dense
from dyn_plugins.dynamics._ancestor_blocks import ancestor_blocks


def id_derivatives(model, q, qd, qdd, f_ext, f_ext_fixed, f_ext_points):
    """Return the derivatives of inverse dynamics, and H as a by-product.

        d tau = dtau_dq dq + dtau_dqd dqd + H dqdd

    dq is a displacement in the tangent space: q (+) dq, so dtau_dq is nv x nv for
    quaternion joints too. An invalid point raises UnsupportedError or ModelError when
    the Program is built.

    Inputs and outputs: those of ID_DERIVATIVES; q, qd, qdd and f_ext by body, the base
    first.

    Args:
        f_ext_fixed, f_ext_points: Frame in which external forces are constant as bodies
            move (body, base or point), and their points of action: see id_directional.

    Returns:
        dtau_dq, dtau_dqd and H, each a dict of blocks by pair (i, j) of bodies of which
        one is an ancestor of the other, or i = j: rows of joint i, columns of joint j.
        H has only those in which j is i or an ancestor of i; it is symmetric.

    Source: S. Singh, R. Russell and P. Wensing, Efficient analytical derivatives of
    rigid-body dynamics using spatial vector algebra, 2022, Algorithm 1; here in body
    coordinates, where S and its cross products are mostly zeros; for joints whose
    coordinates act together with the derivatives of S of KIM-2.4.
    """
    X, S, dS, Psi_dot, Psi_ddot, Psi_S_dot = ([None] * (model.nb + 1) for _ in range(6))
    v, a = [Motion.zero()], [-model.a_grav]
    IC, BC, fC = list(model.I), [None], [Force.zero()]
    for i in model.bodies:
        p, joint, I = model.parent[i], model.joint[i], model.I[i]
        S[i], vJ, cJ = joint.S(q[i]), joint.vJ(q[i], qd[i]), joint.cJ(q[i], qd[i])
        X[i] = joint.X(q[i]) @ model.Xtree[i]
        v_p, a_p = X[i] @ v[p], X[i] @ a[p]
        v.append(v_p + vJ)
        a.append(a_p + S[i] @ qdd[i] + cJ + cross(v_p, vJ))
        dS[i] = joint.S_slopes(q[i]) if joint.series is None else ()
        motion = q[i], qd[i], qdd[i]
        rates = subspace_rates(joint, S[i], dS[i], v_p, a_p, motion)
        Psi_dot[i], Psi_ddot[i], Psi_S_dot[i] = rates
        BC.append(VelocityProduct.of(I, v[i]))
        fC.append(_inertial_force(I, v[i], a[i]) - f_ext[i])
    t1, t2, t3, t4 = ([None] * (model.nb + 1) for _ in range(4))
    for i in reversed(model.bodies):
        t1[i] = BC[i] @ S[i] + IC[i] @ Psi_S_dot[i]
        t2[i] = BC[i] @ Psi_dot[i] + IC[i] @ Psi_ddot[i] + _cross_force(S[i], fC[i])
        t3[i] = BC[i].T @ S[i]
        t4[i] = IC[i] @ S[i]
        p = model.parent[i]
        if p > 0:
            IC[p] = IC[p] + X[i].T @ IC[i] @ X[i]
            BC[p] = BC[p] + X[i].T @ BC[i] @ X[i]
            fC[p] = fC[p] + X[i].T @ fC[i]
    dtau_dq, dtau_dqd, H, above_q, above_qd = ancestor_blocks(
        model,
        X,
        [(t3, Psi_dot), (t4, Psi_ddot)],
        [(t3, S), (t4, Psi_S_dot)],
        [(t4, S)],
        [(t2, S)],
        [(t1, S)],
    )
    for i, j in H:
        if i != j:
            dtau_dq[j, i], dtau_dqd[j, i] = above_q[i, j].T, above_qd[i, j].T
    for i in (i for i in model.bodies if model.joint[i].nv):
        above = above_q[i, i].T, above_qd[i, i].T
        _complete_own_blocks(model, i, dS[i], fC[i], above, (dtau_dq, dtau_dqd, H))
    turned = fixed_force_slopes(model, q, f_ext, f_ext_fixed, f_ext_points)
    for place, block in turned.items():
        dtau_dq[place] = dtau_dq[place] + block
    return dtau_dq, dtau_dqd, H


def _cross_force(S, f):
    """Return the ForceSubspace of s x* f for each column s of S."""
    return ForceSubspace(cross(s, f) for s in S)


def _inertial_force(I, v, a):
    """Return I a + v x* I v, from the motion of points: fewer operations."""
    U = rotation_rates(v.ang, a.ang)
    return I.force_of(a.lin + cross3(v.ang, v.lin), U)


def subspace_rates(joint, S, dS, v_p, a_p, motion, up=None):
    """Return three MotionSubspaces of a joint: Psi_dot, Psi_ddot and Psi_dot + S_dot.

    Psi_dot and Psi_ddot are the derivatives of the body's velocity and acceleration by
    the joint's coordinates, Psi_dot + S_dot those of the acceleration by their rates.
    `motion` is q, qd and qdd of the joint. S, v_p and a_p have the same coordinates;
    `up` transforms to these from the body's, None: they are the body's. dS is not read
    for coordinates in series.
    """
    q, qd, qdd = motion
    if joint.series is not None:
        return _rates_in_series(joint, S, v_p, a_p, qd, qdd)
    dcJ = joint.cJ_slopes(q, qd)
    dcJ = dcJ if up is None else up @ dcJ
    return _rates_together(S, dS, dcJ, v_p, a_p, qd, qdd)


def _rates_in_series(joint, S, v_p, a_p, qd, qdd):
    """Return Psi_dot, Psi_ddot and Psi_dot + S_dot for coordinates that act in series.

        Psi_dot = S_dot = v_p x s,   Psi_ddot = a_p x s + v_p x Psi_dot

    Each s is constant; v_p and a_p include the earlier coordinates.
    """
    Psi_dot, Psi_ddot = [None] * joint.nv, [None] * joint.nv
    for k in joint.series:
        Psi_dot[k] = cross(v_p, S[k])
        Psi_ddot[k] = cross(a_p, S[k]) + cross(v_p, Psi_dot[k])
        a_p = a_p + S[k] * qdd[k] + Psi_dot[k] * qd[k]
        v_p = v_p + S[k] * qd[k]
    Psi_dot = MotionSubspace(Psi_dot)
    return Psi_dot, MotionSubspace(Psi_ddot), Psi_dot + Psi_dot


def _rates_together(S, dS, dcJ, v_p, a_p, qd, qdd):
    """Return Psi_dot, Psi_ddot and Psi_dot + S_dot for coordinates that act together.

        Psi_dot_k = v_p x s_k + dS_k qd,   S_dot = v x S + sum_k dS_k qd_k
        Psi_ddot_k = a_p x s_k + v_p x Psi_dot_k + v x dS_k qd + dS_k qdd + dcJ/dq_k

    v = v_p + S qd, dS_k = dS/dq_k; v_p, a_p: of the parent, coordinates of S.
    """
    v = v_p + S @ qd
    moved = MotionSubspace(dS_k @ qd for dS_k in dS)
    turned = cross(v_p, S)
    Psi_dot = turned + moved
    Psi_ddot = cross(a_p, S) + cross(v_p, turned) + cross(v_p, moved) + cross(v, moved)
    Psi_ddot = Psi_ddot + MotionSubspace(dS_k @ qdd for dS_k in dS) + dcJ
    by_column = zip(*dS, strict=True)
    S_dot = cross(v, S) + MotionSubspace(MotionSubspace(s) @ qd for s in by_column)
    return Psi_dot, Psi_ddot, Psi_dot + S_dot


def _complete_own_blocks(model, i, dS, fC, above, blocks):
    """Complete the blocks of joint i with itself, in place.

    In a series, earlier coordinates are ancestors: their entries come from `above`. For
    coordinates that act together, dS_k.T fC (fC with descendants) is added to dtau_dq.
    H gets its upper triangle from the lower one, and the armature.
    """
    dtau_dq, dtau_dqd, H = blocks
    joint = model.joint[i]
    dtau_dq[i, i] = _by_order(joint.series, above[0], dtau_dq[i, i])
    dtau_dqd[i, i] = _by_order(joint.series, above[1], dtau_dqd[i, i])
    if dS:
        dS_f = Matrix(dS_k.T @ fC for dS_k in dS).T
        dtau_dq[i, i] = dtau_dq[i, i] + dS_f
    H[i, i] = _by_order(range(joint.nv), H[i, i].T, H[i, i])
    H[i, i] = H[i, i] + Matrix.diagonal(model.armature[i])


def _by_order(order, above, below):
    """Return `above` where the row's coordinate precedes the column's, else `below`.

    order: The joint's coordinates in their sequence; None: all from `below`.
    """
    place = {k: n for n, k in enumerate(order or ())}
    n = range(len(below.rows))
    return Matrix(
        [(above if place.get(k, 0) < place.get(l, 0) else below)[k, l] for l in n]
        for k in n
    )


def mass_matrix_inverse(model, q, mass_matrix):
    """Return the inverse of the joint-space inertia.

        Hinv H = 1

    A singular H raises SingularError when the Program runs.

    Inputs and outputs: those of MASS_MATRIX_INVERSE.

    Args:
        mass_matrix: Solver of MASS_MATRIX.

    Source: RBDA, section 6.5: H = L.T D L has no fill-in on a tree.
    """
    return joint_factors(model, mass_matrix(q)).inverse()


def fd_derivatives(
    model, q, qd, tau, f_ext, forward_dynamics, derivatives, f_ext_fixed, f_ext_points
):
    """Return the derivatives of forward dynamics, by inverse dynamics.

        d qdd = dqdd_dq dq + dqdd_dqd dqd + Hinv dtau
        dqdd_dq = -Hinv dtau_dq,   dqdd_dqd = -Hinv dtau_dqd   at qdd = FD(q, qd, tau)

    A singular H raises SingularError when the Program runs; an invalid point raises
    UnsupportedError or ModelError when it is built.

    Inputs and outputs: those of FD_DERIVATIVES, so the result is qdd, dqdd_dq,
    dqdd_dqd, Hinv; f_ext by body, the base first.

    Args:
        forward_dynamics: Solver of FORWARD_DYNAMICS.
        derivatives: Solver of ID_DERIVATIVES.
        f_ext_fixed, f_ext_points: Frame in which external forces are constant, and
            their points of action; see id_directional.

    Source: J. Carpentier and N. Mansard, Analytical derivatives of rigid body dynamics
    algorithms, 2018, section V.
    """
    qdd = forward_dynamics(q, qd, tau, f_ext[1:])
    dq, dqd, H = derivatives(q, qd, qdd, f_ext[1:])
    dq = with_fixed_forces(model, dq, q, f_ext, f_ext_fixed, f_ext_points)
    factors = joint_factors(model, H)
    dqdd_dq, dqdd_dqd = (factors.solve_matrix(M, negative=True) for M in (dq, dqd))
    return qdd, dqdd_dq, dqdd_dqd, factors.inverse()


ID = FixedForces(
    "id_derivatives",
    ID_DERIVATIVES,
    id_derivatives,
    options=OPTIONS,
    valid=VALID,
    regrouped=True,
    default=True,
)


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    return [
        ID,
        TracedSolver(
            "mass_matrix_inverse",
            MASS_MATRIX_INVERSE,
            mass_matrix_inverse,
            slots={"mass_matrix": MASS_MATRIX},
            fills={"mass_matrix": "crba"},
            by_joint=False,
        ),
        FixedForces(
            "fd_derivatives",
            FD_DERIVATIVES,
            fd_derivatives,
            slots={"forward_dynamics": FORWARD_DYNAMICS, "derivatives": ID_DERIVATIVES},
            fills={"forward_dynamics": dense.SOLVER, "derivatives": ID},
            options=OPTIONS,
            valid=VALID,
            by_joint=False,
            default=True,
        ),
    ]
