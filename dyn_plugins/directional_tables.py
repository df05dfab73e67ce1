"""Derivatives of forward and hybrid dynamics as the tables give them, in 6x6 matrices.

Articulated inertias are differentiated with the sweeps that make them. These texts are
written to be compared with the source and with `fd_directional`, not to be quick.
"""

from dataclasses import dataclass, field

from dyn_core import (
    FD_DIRECTIONAL,
    HD_DIRECTIONAL,
    Factored,
    Matrix,
    Motion,
    Vector,
    cross,
    hookimpl,
)
from dyn_plugins._seeds import Direction, seeds
from dyn_plugins.directional import directional, spread
from dyn_plugins.hybrid import prescribed_coordinates


@dataclass
class _Felt:
    """What stands between the sweeps, by body: values, and derivatives after a d."""

    V: list = field(default_factory=lambda: [Vector.zeros(6)])
    dV: list = field(default_factory=lambda: [Vector.zeros(6)])
    eta: list = field(default_factory=lambda: [None])
    deta: list = field(default_factory=lambda: [None])
    I: list = field(default_factory=list)
    dI: list = field(default_factory=list)
    B: list = field(default_factory=list)
    dB: list = field(default_factory=list)
    psi: dict = field(default_factory=dict)
    dpsi: dict = field(default_factory=dict)


@dataclass
class _Side:
    """The columns of a joint whose forces are given (v) and those held (u)."""

    S: Matrix
    dS: Matrix
    held: Matrix
    dheld: Matrix
    at: tuple  # numbers of its coordinates: those of v, those of u


def _ad(V):
    """Give the 6x6 matrix of V x; its transpose is ad_V^*."""
    units = [Motion.of(row) for row in Matrix.identity(6).rows]
    V = V if isinstance(V, Motion) else Motion.of(V)
    return Matrix(cross(V, e) for e in units).T


def _six(I):
    """Give an inertia as a 6x6 matrix."""
    units = [Motion.of(row) for row in Matrix.identity(6).rows]
    return Matrix(I @ e for e in units)


def _sides(model, at, held):
    """Part the columns of each joint."""
    found = [None]
    for i in model.bodies:
        spots = range(model.v_slices[i].start, model.v_slices[i].stop)
        parts = []
        for wanted in (False, True):
            own = [k for k, spot in enumerate(spots) if held[spot] == wanted]
            for S in (at.S[i], at.dS[i]):
                parts.append(Matrix([list(S[j])[k] for j in own] for k in range(6)))
            parts.append(tuple(spots[k] for k in own))
        S, dS, free, Su, dSu, fixed = parts
        found.append(_Side(S, dS, Su, dSu, (free, fixed)))
    return found


def _pick(values, spots):
    return Vector(values[k] for k in spots)


def outward(model, at, sides, qdd, dqdd):
    """Give velocities and biases, with accelerations that are given in the biases.

        V = Ad V_p + S qd,   eta = ad_V S qd + Sdot qd + S_u qdd_u
        dV = Ad dV_p - ad_dh Ad V_p + dS qd + S dqd

    Source: KIM-4.3, KIM-4.4 (S_u dqdd_u, dS_u qdd_u: E-12, E-13).
    """
    x = _Felt()
    for i in model.bodies:
        p, Ad, side = model.parent[i], at.X[i].matrix(), sides[i]
        vJ, dvJ, cJ, dcJ = (Vector(part[i]) for part in (at.vJ, at.dvJ, at.cJ, at.dcJ))
        V_p = Ad @ x.V[p]
        x.V.append(V_p + vJ)
        x.dV.append(Ad @ x.dV[p] - _ad(at.dh[i]) @ V_p + dvJ)
        eta = _ad(x.V[i]) @ vJ + cJ
        deta = _ad(x.dV[i]) @ vJ + _ad(x.V[i]) @ dvJ + dcJ
        given, dgiven = _pick(qdd, side.at[1]), _pick(dqdd, side.at[1])
        x.eta.append(eta + side.held @ given if side.at[1] else eta)
        moved = side.dheld @ given + side.held @ dgiven if side.at[1] else None
        x.deta.append(deta if moved is None else deta + moved)
    return x


def inward(model, at, sides, x, tau, dtau):
    """Give articulated inertias and biases, and their derivatives.

        dIhat = dI + sum Ad.T { dPi - Pi ad_dh - (Pi ad_dh).T } Ad
        dBhat = -ad_dV.T I V - ad_V.T (dI V + I dV) - dF_ext
                + sum Ad.T (dbeta - ad_dh.T beta)
        dPsi = -Psi { S.T dIhat S + dS.T Ihat S + (dS.T Ihat S).T } Psi

    Source: KIM-4.3, KIM-4.4 (E-10 to E-12, E-14); rotors stand with S.T Ihat S.
    """
    for i in range(model.nb + 1):
        I, dI = (_six(part[i]) if i else Matrix.zeros(6, 6) for part in (at.I, at.dI))
        adV, addV, V, dV = _ad(x.V[i]), _ad(x.dV[i]), x.V[i], x.dV[i]
        f, df = (Vector(part[i]) for part in (at.f_ext, at.df_ext))
        x.I.append(I)
        x.dI.append(dI)
        x.B.append(-(adV.T @ (I @ V)) - f)
        x.dB.append(-(addV.T @ (I @ V)) - adV.T @ (dI @ V + I @ dV) - df)
    for i in reversed(model.bodies):
        p, Ad, ad = model.parent[i], at.X[i].matrix(), _ad(at.dh[i])
        Pi, dPi = x.I[i], x.dI[i]
        beta = x.B[i] + x.I[i] @ x.eta[i]
        dbeta = x.dB[i] + x.dI[i] @ x.eta[i] + x.I[i] @ x.deta[i]
        if sides[i].at[0]:
            parts = _yielding(model, at, sides[i], x, i, tau, dtau)
            Pi, dPi = Pi - parts[0], dPi - parts[1]
            beta, dbeta = beta + parts[2], dbeta + parts[3]
        turn = Pi @ ad
        x.I[p] = x.I[p] + Ad.T @ Pi @ Ad
        x.dI[p] = x.dI[p] + Ad.T @ (dPi - turn - turn.T) @ Ad
        x.B[p] = x.B[p] + Ad.T @ beta
        x.dB[p] = x.dB[p] + Ad.T @ (dbeta - ad.T @ beta)


def _yielding(model, at, side, x, i, tau, dtau):
    """Give what a joint whose forces are given takes from Pi and adds to beta."""
    S, dS, I, dI, eta, deta = side.S, side.dS, x.I[i], x.dI[i], x.eta[i], x.deta[i]
    first = model.v_slices[i].start
    own = [k - first for k in side.at[0]]
    rotors = [Matrix.diagonal(_pick(a[i], own)) for a in (at.armature, at.darmature)]
    bent = dS.T @ I @ S
    floors = _pick(model.floors[i], own)
    items = [f"joint {model.names[i]}"] * len(own)
    psi = Factored(S.T @ I @ S + rotors[0], floors, items).inverse()
    dpsi = -(psi @ (S.T @ dI @ S + bent + bent.T + rotors[1]) @ psi)
    x.psi[i], x.dpsi[i] = psi, dpsi
    U, dIS, IdS = I @ S, dI @ S, I @ dS
    once = dIS @ psi @ U.T + IdS @ psi @ U.T
    taken = U @ dpsi @ U.T + once + once.T
    push = I @ eta + x.B[i]
    r = _pick(tau, side.at[0]) - S.T @ push
    dpush = dI @ eta + I @ deta + x.dB[i]
    dr = _pick(dtau, side.at[0]) - dS.T @ push - S.T @ dpush
    passed = S @ (psi @ r)
    dpassed = dS @ (psi @ r) + S @ (dpsi @ r) + S @ (psi @ dr)
    return U @ psi @ U.T, taken, I @ passed, dI @ passed + I @ dpassed


def outward_again(model, at, sides, x, tau, qdd, dtau, dqdd):
    """Give all joint forces and accelerations, and their derivatives.

        dqdd = dPsi {tau - S.T Ihat a - S.T Bhat}
               + Psi {dtau - (dS.T Ihat + S.T dIhat) a - S.T Ihat da - dS.T B - S.T dB}
        dVdot = Ad dVdot_p - ad_dh Ad Vdot_p + dS qdd + S dqdd + deta
        dF = dIhat Vdot + Ihat dVdot + dBhat,   dtau = dS.T F + S.T dF

    Source: KIM-4.3, KIM-4.4 (E-11, E-13).
    """
    tau, qdd, dtau, dqdd = list(tau), list(qdd), list(dtau), list(dqdd)
    a, da = [Vector(at.a_0)], [Vector(at.da_0)]
    for i in model.bodies:
        p, Ad, side = model.parent[i], at.X[i].matrix(), sides[i]
        I, dI, B, dB, S, dS = x.I[i], x.dI[i], x.B[i], x.dB[i], side.S, side.dS
        free, fixed = side.at
        a_p = Ad @ a[p]
        a.append(a_p + x.eta[i])
        da.append(Ad @ da[p] - _ad(at.dh[i]) @ a_p + x.deta[i])
        if free:
            left = _pick(tau, free) - S.T @ (I @ a[i] + B)
            dleft = _pick(dtau, free) - dS.T @ (I @ a[i] + B)
            dleft = dleft - S.T @ (dI @ a[i] + I @ da[i] + dB)
            own = x.psi[i] @ left
            down = x.dpsi[i] @ left + x.psi[i] @ dleft
            a[i], da[i] = a[i] + S @ own, da[i] + dS @ own + S @ down
            for k, value, change in zip(free, own, down, strict=True):
                qdd[k], dqdd[k] = value, change
        if fixed:
            F, dF = I @ a[i] + B, dI @ a[i] + I @ da[i] + dB
            Su, dSu, first = side.held, side.dheld, model.v_slices[i].start
            force, change = Su.T @ F, dSu.T @ F + Su.T @ dF
            for k, y, dy in zip(fixed, force, change, strict=True):
                rotor, drotor = at.armature[i][k - first], at.darmature[i][k - first]
                tau[k] = y + rotor * qdd[k] + at.taken[k]
                dtau[k] = dy + drotor * qdd[k] + rotor * dqdd[k] + at.dtaken[k]
    return tau, qdd, dtau, dqdd


def hd_directional_table(
    model, q, qd, qdd_u, tau_v, dq, dqd, dqdd_u, dtau_v, f_ext, df_ext, dp,
    prescribed, parameter, **fixed,
):  # fmt: skip
    """Give the results of hybrid dynamics and their derivative, by the table.

        dPi = dIhat
        dbeta = dBhat + dIhat (eta + S qdd) + Ihat (deta + dS qdd + S dqdd)

    for prescribed joints, dPi and dbeta of forward dynamics for the others; a joint
    with both has the first on its columns of u and the second on those of v.

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].
        qd: Joint velocities, nv [rad/s | m/s].
        qdd_u, tau_v: Given accelerations, and forces of the other coordinates.
        dq, dqd, dqdd_u, dtau_v: Their changes.
        f_ext: Force on each body, body coordinates [N·m; N].
        df_ext: Its change.
        dp: Change of the parameter's numbers, or None.
        prescribed: As in `hybrid`.
        parameter: Path of the parameter (model/parameters.py), or None.
        fixed: f_ext_fixed, f_ext_points: see id_directional.

    Returns:
        tau_u, qdd_v, dtau_u and dqdd_v.

    Source: KIM-4.4 (Table 7, corrected by E-10 to E-14), KIM-4.3.
    """
    held = prescribed_coordinates(model, prescribed)
    along = Direction(dq, dqd, f_ext, df_ext, dp, parameter, **fixed)
    at = seeds(model, q, qd, along)
    qdd, tau = spread(held, qdd_u, tau_v)
    dqdd, dtau = spread(held, dqdd_u, dtau_v)
    tau, dtau = tau - at.taken, dtau - at.dtaken
    sides = _sides(model, at, held)
    x = outward(model, at, sides, qdd, dqdd)
    inward(model, at, sides, x, tau, dtau)
    tau, qdd, dtau, dqdd = outward_again(model, at, sides, x, tau, qdd, dtau, dqdd)
    return tuple(
        Vector(y for h, y in zip(held, part, strict=True) if h == wanted)
        for part, wanted in ((tau, True), (qdd, False), (dtau, True), (dqdd, False))
    )


def fd_directional_table(
    model, q, qd, tau, dq, dqd, dtau, f_ext, df_ext, dp, **choices
):
    """Give accelerations and their derivative, by the table.

        dqdd = dPsi {tau - S.T Ihat a - S.T Bhat}
               + Psi {dtau - (dS.T Ihat + S.T dIhat) a - S.T Ihat da - dS.T B - S.T dB}

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].
        qd: Joint velocities, nv [rad/s | m/s].
        tau: Joint forces, nv [N·m | N].
        dq, dqd, dtau: Their changes, nv each.
        f_ext: Force on each body, body coordinates [N·m; N].
        df_ext: Its change.
        dp: Change of the parameter's numbers, or None.
        choices: parameter, f_ext_fixed, f_ext_points: see id_directional.

    Returns:
        qdd and dqdd, nv each [rad/s² | m/s²].

    Source: KIM-4.3 (Table 6, corrected by E-10, E-11, E-14): Table 7 with no joint
    prescribed.
    """
    none = Vector(())
    state, change = (q, qd, none, tau), (dq, dqd, none, dtau)
    _, qdd, _, dqdd = hd_directional_table(
        model, *state, *change, f_ext, df_ext, dp, prescribed=(), **choices
    )
    return qdd, dqdd


def alone(model):
    """Refuse robots with joints that follow others: the tables know none."""
    for i in model.bodies:
        if model.leader[i].body != i:
            return (
                f"joint '{model.names[i]}' follows another; valid: joints with"
                " coordinates of their own, or fd_directional and hd_directional"
            )
    return None


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    rows = (
        (FD_DIRECTIONAL, fd_directional_table),
        (HD_DIRECTIONAL, hd_directional_table),
    )
    return [
        directional(text.__name__, kind, text, supports=alone) for kind, text in rows
    ]
