"""Derivatives of forward and hybrid dynamics as in the tables, in 6x6 matrices.

Articulated inertias are differentiated within the sweeps that compute them. These
algorithms are written for comparison with the source and with `fd_directional`, not for
speed.
"""

from dataclasses import dataclass, field

from dyn_core.authoring import Factored, Matrix, Motion, Vector, cross, hookimpl
from dyn_core.problems import FD_DIRECTIONAL, HD_DIRECTIONAL
from dyn_plugins.derivatives._seeds import Direction, seeds
from dyn_plugins.derivatives.directional_derivatives import directional
from dyn_plugins.dynamics.hybrid import part_where, prescribed_coordinates, spread


@dataclass
class _SweepValues:
    """Quantities of the sweeps, by body: values, and derivatives with the prefix d.

    Entry 0 is the base's. outward fills V and eta (bias acceleration), inward the
    others: I, 6x6, B and psi, a dict of inverses of S.T I S + armature, by body with
    given forces. Motions are [angular; linear], forces [moment; force].
    """

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
class _JointColumns:
    """Columns of a joint with given forces (v), and with prescribed accelerations (u).

    S, dS are of v, S_u, dS_u of u, 6 rows.
    """

    S: Matrix
    dS: Matrix
    S_u: Matrix
    dS_u: Matrix
    coordinates: tuple  # indices of v, indices of u


def _ad(V):
    """Return the 6x6 matrix of V x; its transpose is ad_V^*, the matrix of -(V x*)."""
    units = [Motion.of(row) for row in Matrix.identity(6).rows]
    V = V if isinstance(V, Motion) else Motion.of(V)
    return Matrix(cross(V, e) for e in units).T


def _six(I):
    """Return an inertia I, rigid or articulated, as a 6x6 Matrix, [angular; linear]."""
    units = [Motion.of(row) for row in Matrix.identity(6).rows]
    return Matrix(I @ e for e in units)


def _sides(model, seed, prescribed):
    """Return the _JointColumns of each joint; entry 0 is None."""
    sides = [None]
    for i in model.bodies:
        numbers = range(model.v_slices[i].start, model.v_slices[i].stop)
        parts = []
        for wanted in (False, True):
            columns = [k for k, n in enumerate(numbers) if prescribed[n] == wanted]
            for S in (seed.S[i], seed.dS[i]):
                parts.append(Matrix([list(S[j])[k] for j in columns] for k in range(6)))
            parts.append(tuple(numbers[k] for k in columns))
        S, dS, free, Su, dSu, fixed = parts
        sides.append(_JointColumns(S, dS, Su, dSu, (free, fixed)))
    return sides


def _pick(values, numbers):
    return Vector(values[k] for k in numbers)


def outward(model, seed, sides, qdd, dqdd):
    """Return the _SweepValues with V and eta; prescribed accelerations are part of eta.

        V = Ad V_p + S qd,   eta = ad_V S qd + Sdot qd + S_u qdd_u
        dV = Ad dV_p - ad_dh Ad V_p + dS qd + S dqd

    Gravity is no part of eta. `sides` is the result of _sides.

    Source: KIM-4.3, KIM-4.4 (S_u dqdd_u, dS_u qdd_u: E-12, E-13).
    """
    x = _SweepValues()
    for i in model.bodies:
        p, Ad, side = model.parent[i], seed.X[i].matrix(), sides[i]
        vJ, dvJ, cJ, dcJ = (
            Vector(part[i]) for part in (seed.vJ, seed.dvJ, seed.cJ, seed.dcJ)
        )
        V_p = Ad @ x.V[p]
        x.V.append(V_p + vJ)
        x.dV.append(Ad @ x.dV[p] - _ad(seed.dh[i]) @ V_p + dvJ)
        eta = _ad(x.V[i]) @ vJ + cJ
        deta = _ad(x.dV[i]) @ vJ + _ad(x.V[i]) @ dvJ + dcJ
        fixed = side.coordinates[1]
        if fixed:
            qdd_u, dqdd_u = _pick(qdd, fixed), _pick(dqdd, fixed)
            eta = eta + side.S_u @ qdd_u
            deta = deta + (side.dS_u @ qdd_u + side.S_u @ dqdd_u)
        x.eta.append(eta)
        x.deta.append(deta)
    return x


def inward(model, seed, sides, x, tau, dtau):
    """Add articulated inertias, bias forces, psi and their derivatives to x, in place.

        dIhat = dI + sum Ad.T { dPi - Pi ad_dh - (Pi ad_dh).T } Ad
        dBhat = -ad_dV.T I V - ad_V.T (dI V + I dV) - dF_ext
                + sum Ad.T (dbeta - ad_dh.T beta)
        dPsi = -Psi { S.T dIhat S + dS.T Ihat S + (dS.T Ihat S).T } Psi

    x is the result of outward; tau and dtau are used where given. A singular pivot
    raises SingularError when the Program runs.

    Source: KIM-4.3, KIM-4.4 (E-10 to E-12, E-14); rotors are added to S.T Ihat S.
    """
    for i in range(model.nb + 1):
        I, dI = (
            _six(part[i]) if i else Matrix.zeros(6, 6) for part in (seed.I, seed.dI)
        )
        adV, addV, V, dV = _ad(x.V[i]), _ad(x.dV[i]), x.V[i], x.dV[i]
        f, df = (Vector(part[i]) for part in (seed.f_ext, seed.df_ext))
        x.I.append(I)
        x.dI.append(dI)
        x.B.append(-(adV.T @ (I @ V)) - f)
        x.dB.append(-(addV.T @ (I @ V)) - adV.T @ (dI @ V + I @ dV) - df)
    for i in reversed(model.bodies):
        p, Ad, ad = model.parent[i], seed.X[i].matrix(), _ad(seed.dh[i])
        Pi, dPi = x.I[i], x.dI[i]
        beta = x.B[i] + x.I[i] @ x.eta[i]
        dbeta = x.dB[i] + x.dI[i] @ x.eta[i] + x.I[i] @ x.deta[i]
        if sides[i].coordinates[0]:
            parts = _free_part(model, seed, sides[i], x, i, tau, dtau)
            Pi, dPi = Pi - parts[0], dPi - parts[1]
            beta, dbeta = beta + parts[2], dbeta + parts[3]
        turn = Pi @ ad
        x.I[p] = x.I[p] + Ad.T @ Pi @ Ad
        x.dI[p] = x.dI[p] + Ad.T @ (dPi - turn - turn.T) @ Ad
        x.B[p] = x.B[p] + Ad.T @ beta
        x.dB[p] = x.dB[p] + Ad.T @ (dbeta - ad.T @ beta)


def _free_part(model, seed, side, x, i, tau, dtau):
    """Return the terms of Pi, dPi, beta and dbeta for columns with given forces.

    The terms of Pi and dPi are to be subtracted, the others added. Sets x.psi[i] and
    x.dpsi[i] in place. Entries of x of the body are sums over its children already.
    """
    S, dS, I, dI, eta, deta = side.S, side.dS, x.I[i], x.dI[i], x.eta[i], x.deta[i]
    first = model.v_slices[i].start
    free = [k - first for k in side.coordinates[0]]
    armature = Matrix.diagonal(_pick(seed.armature[i], free))
    darmature = Matrix.diagonal(_pick(seed.darmature[i], free))
    bent = dS.T @ I @ S
    pivot_tolerances = _pick(model.pivot_tolerances[i], free)
    names = [f"joint {model.names[i]}"] * len(free)
    psi = Factored(S.T @ I @ S + armature, pivot_tolerances, names).inverse()
    dpsi = -(psi @ (S.T @ dI @ S + bent + bent.T + darmature) @ psi)
    x.psi[i], x.dpsi[i] = psi, dpsi
    U, dIS, IdS = I @ S, dI @ S, I @ dS
    once = dIS @ psi @ U.T + IdS @ psi @ U.T
    taken = U @ dpsi @ U.T + once + once.T
    push = I @ eta + x.B[i]
    r = _pick(tau, side.coordinates[0]) - S.T @ push
    dpush = dI @ eta + I @ deta + x.dB[i]
    dr = _pick(dtau, side.coordinates[0]) - dS.T @ push - S.T @ dpush
    passed = S @ (psi @ r)
    dpassed = dS @ (psi @ r) + S @ (dpsi @ r) + S @ (psi @ dr)
    return U @ psi @ U.T, taken, I @ passed, dI @ passed + I @ dpassed


def outward_again(model, seed, sides, x, tau, qdd, dtau, dqdd):
    """Return lists of all joint forces and accelerations, and their derivatives.

        dqdd = dPsi {tau - S.T Ihat a - S.T Bhat}
               + Psi {dtau - (dS.T Ihat + S.T dIhat) a - S.T Ihat da - dS.T B - S.T dB}
        dVdot = Ad dVdot_p - ad_dh Ad Vdot_p + dS qdd + S dqdd + deta
        dF = dIhat Vdot + Ihat dVdot + dBhat,   dtau = dS.T F + S.T dF

    x is the result of outward and inward. Given values are without friction and springs
    and returned as they are; computed joint forces include both.

    Source: KIM-4.3, KIM-4.4 (E-11, E-13).
    """
    tau, qdd, dtau, dqdd = list(tau), list(qdd), list(dtau), list(dqdd)
    a, da = [Vector(seed.a_0)], [Vector(seed.da_0)]
    for i in model.bodies:
        p, Ad, side = model.parent[i], seed.X[i].matrix(), sides[i]
        I, dI, B, dB, S, dS = x.I[i], x.dI[i], x.B[i], x.dB[i], side.S, side.dS
        free, fixed = side.coordinates
        a_p = Ad @ a[p]
        a.append(a_p + x.eta[i])
        da.append(Ad @ da[p] - _ad(seed.dh[i]) @ a_p + x.deta[i])
        if free:
            left = _pick(tau, free) - S.T @ (I @ a[i] + B)
            dleft = _pick(dtau, free) - dS.T @ (I @ a[i] + B)
            dleft = dleft - S.T @ (dI @ a[i] + I @ da[i] + dB)
            rates = x.psi[i] @ left
            down = x.dpsi[i] @ left + x.psi[i] @ dleft
            a[i], da[i] = a[i] + S @ rates, da[i] + dS @ rates + S @ down
            for k, value, change in zip(free, rates, down, strict=True):
                qdd[k], dqdd[k] = value, change
        if fixed:
            F, dF = I @ a[i] + B, dI @ a[i] + I @ da[i] + dB
            Su, dSu, first = side.S_u, side.dS_u, model.v_slices[i].start
            force, change = Su.T @ F, dSu.T @ F + Su.T @ dF
            for k, y, dy in zip(fixed, force, change, strict=True):
                rotor = seed.armature[i][k - first]
                drotor = seed.darmature[i][k - first]
                tau[k] = y + rotor * qdd[k] + seed.taken[k]
                dtau[k] = dy + drotor * qdd[k] + rotor * dqdd[k] + seed.dtaken[k]
    return tau, qdd, dtau, dqdd


def hd_directional_table(
    model, q, qd, qdd_u, tau_v, dq, dqd, dqdd_u, dtau_v, f_ext, df_ext, dp,
    prescribed, parameter, **fixed,
):  # fmt: skip
    """Return the results of hybrid dynamics and their derivative, by the table.

        dPi = dIhat
        dbeta = dBhat + dIhat (eta + S qdd) + Ihat (deta + dS qdd + S dqdd)

    for prescribed joints, dPi and dbeta of forward dynamics for the others; a joint
    with both uses the first for its columns of u and the second for its columns of v. A
    singular inertia of the others raises SingularError when the Program runs. A robot
    with followers raises UnsupportedError when it is built; an invalid parameter, point
    or entry of `prescribed` raises UnsupportedError or ModelError.

    Inputs and outputs: those of HD_DIRECTIONAL, so the result is tau_u, qdd_v, dtau_u,
    dqdd_v; u are the prescribed coordinates, v the others, both in the order of qd;
    f_ext and df_ext by body, the base first.

    Args:
        prescribed: Names of joints whose acceleration is given, or pairs (joint, index
            of its coordinate); see hybrid.
        parameter: Path of the parameter (model/parameter_paths), or None.
        fixed: f_ext_fixed, f_ext_points: frame in which f_ext is constant as bodies
            move, and points of action; see id_directional.

    Source: KIM-4.4 (Table 7, corrected by E-10 to E-14), KIM-4.3.
    """
    mask = prescribed_coordinates(model, prescribed)
    along = Direction(dq, dqd, f_ext, df_ext, dp, parameter, **fixed)
    seed = seeds(model, q, qd, along)
    qdd, tau = spread(mask, qdd_u, tau_v)
    dqdd, dtau = spread(mask, dqdd_u, dtau_v)
    tau, dtau = tau - seed.taken, dtau - seed.dtaken
    sides = _sides(model, seed, mask)
    x = outward(model, seed, sides, qdd, dqdd)
    inward(model, seed, sides, x, tau, dtau)
    tau, qdd, dtau, dqdd = outward_again(model, seed, sides, x, tau, qdd, dtau, dqdd)
    return tuple(
        part_where(mask, wanted, part)
        for part, wanted in ((tau, True), (qdd, False), (dtau, True), (dqdd, False))
    )


def fd_directional_table(
    model, q, qd, tau, dq, dqd, dtau, f_ext, df_ext, dp, **choices
):
    """Return accelerations and their derivative, by the table.

        dqdd = dPsi {tau - S.T Ihat a - S.T Bhat}
               + Psi {dtau - (dS.T Ihat + S.T dIhat) a - S.T Ihat da - dS.T B - S.T dB}

    A singular joint inertia raises SingularError when the Program runs. A robot with
    followers raises UnsupportedError when it is built; an invalid parameter or point
    raises UnsupportedError or ModelError.

    Inputs and outputs: those of FD_DIRECTIONAL; f_ext and df_ext by body, the base
    first.

    Args:
        choices: parameter (path of the parameter, or None), f_ext_fixed, f_ext_points:
            see id_directional.

    Source: KIM-4.3 (Table 6, corrected by E-10, E-11, E-14): Table 7 with no joint
    prescribed.
    """
    none = Vector(())
    state, change = (q, qd, none, tau), (dq, dqd, none, dtau)
    _, qdd, _, dqdd = hd_directional_table(
        model, *state, *change, f_ext, df_ext, dp, prescribed=(), **choices
    )
    return qdd, dqdd


def refuse_followers(model):
    """Return why the tables do not support a robot with followers, as text, or None."""
    for i in model.bodies:
        if model.leader[i].body != i:
            return (
                f"joint '{model.names[i]}' follows another; valid: joints with"
                " coordinates of their own, or fd_directional and hd_directional"
            )
    return None


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    rows = (
        (FD_DIRECTIONAL, fd_directional_table),
        (HD_DIRECTIONAL, hd_directional_table),
    )
    return [
        directional(
            algorithm.__name__,
            kind,
            algorithm,
            supports=refuse_followers,
            reference=True,
        )
        for kind, algorithm in rows
    ]
