"""Derivatives along a direction: of inverse, forward and hybrid dynamics, O(n) each.

A direction is a displacement dq, changes dqd, dqdd or dtau, a change of external forces
(inputs=["df_ext"]), and a change dp of a parameter of the Model (parameter=PATH).
Joints and Models give their part of it by running on Duals (_seeds.py); the recursions
are those of the book.
"""

from dataclasses import replace

from dyn_core import (
    FD_DIRECTIONAL,
    HD_DIRECTIONAL,
    ID_DIRECTIONAL,
    Force,
    Motion,
    TextSolver,
    Vector,
    cross,
    cross3,
    duals,
    hookimpl,
    join_force,
    join_v,
    rotation_rates,
    slope_of,
    split_q,
    split_v,
    value_of,
)
from dyn_core.model import parameters
from dyn_core.model.passive import without_springs
from dyn_plugins._seeds import Direction, check_choices, seeds, sizes
from dyn_plugins.aba import articulated, respond
from dyn_plugins.hybrid import add_rotors, mixed, prescribed_coordinates
from dyn_plugins.rnea import body_forces


def inverse_along(model, at, qdd, dqdd):
    """Give the joint forces of a motion and their derivative along the seeds.

        dV_i = X dV_p - dh x X V_p + dvJ,   dvJ = dS qd + S dqd
        da_i = X da_p - dh x X a_p + dS qdd + S dqdd + dcJ + dV x vJ + V x dvJ
        (V x vJ = X V_p x vJ: that is what stands below)
        dF_i = dI a + I da + dV x* I V + V x* (dI V + I dV) - df_ext
               + sum_children X.T (dF_k + dh_k x* F_k)
        dtau_i = dS.T F + S.T dF

    Args:
        model: Robot.
        at: Seeds of its joints, bodies and external forces.
        qdd, dqdd: Joint accelerations, nv, and how they change.

    Returns:
        tau and dtau, nv each, without what friction and springs take.

    Source: KIM-4.2 (Table 5); ad_V is V x, and -ad_V^* is V x*.
    """
    qdd, dqdd = split_v(model, qdd), split_v(model, dqdd)
    V, dV, a, da = [Motion.zero()], [Motion.zero()], [at.a_0], [at.da_0]
    F, dF = [Force.zero()], [Force.zero()]
    for i in model.bodies:
        p, X, dh, S, dS = model.parent[i], at.X[i], at.dh[i], at.S[i], at.dS[i]
        vJ, dvJ, I, dI = at.vJ[i], at.dvJ[i], at.I[i], at.dI[i]
        V_p, a_p = X @ V[p], X @ a[p]
        dV_p, da_p = X @ dV[p] - cross(dh, V_p), X @ da[p] - cross(dh, a_p)
        V.append(V_p + vJ)
        dV.append(dV_p + dvJ)
        a.append(a_p + S @ qdd[i] + at.cJ[i] + cross(V_p, vJ))
        along = dS @ qdd[i] + S @ dqdd[i] + at.dcJ[i]
        da.append(da_p + along + cross(dV_p, vJ) + cross(V_p, dvJ))
        force, change = body_force(I, dI, V[i], dV[i], a[i], da[i])
        F.append(force - at.f_ext[i])
        dF.append(change - at.df_ext[i])
    tau, dtau = [None] * len(F), [None] * len(F)
    for i in reversed(model.bodies):
        p, X, S, dS = model.parent[i], at.X[i], at.S[i], at.dS[i]
        rotor, drotor = at.armature[i], at.darmature[i]
        tau[i] = S.T @ F[i] + rotor * qdd[i]
        dtau[i] = dS.T @ F[i] + S.T @ dF[i] + drotor * qdd[i] + rotor * dqdd[i]
        F[p] = F[p] + X.T @ F[i]
        dF[p] = dF[p] + X.T @ (dF[i] + cross(at.dh[i], F[i]))
    return join_force(model, tau), join_force(model, dtau)


def body_force(I, dI, V, dV, a, da):
    """Give I a + V x* I V and its derivative, from the motion of points.

        F = I(a', U),   dF = dI(a', U) + I(da', dU)
        a' = a_lin + w x v,   U = [alpha] + [w][w]

    The force is linear in the classical acceleration a' of the origin and in U, and
    linear in the ten numbers of I: nothing is a product of both sides' derivatives.

    Args:
        I, dI: Inertia, and how its ten numbers change.
        V, dV, a, da: Spatial velocity and acceleration, and how they change.

    Source: KIM-4.2, its line of dF_i, in the form of RBD5-4.1.
    """
    at = Motion(duals(V.ang, dV.ang), duals(V.lin, dV.lin))
    turning = rotation_rates(at.ang, duals(a.ang, da.ang))
    point = duals(a.lin, da.lin) + cross3(at.ang, at.lin)
    here, along = value_of(point), value_of(turning)
    change = I.force_of(slope_of(point), slope_of(turning))
    return I.force_of(here, along), dI.force_of(here, along) + change


def id_directional(
    model, q, qd, qdd, dq, dqd, dqdd, f_ext, df_ext, dp, parameter, **fixed
):
    """Give the joint forces of a motion, and their derivative along a direction.

        dtau = dtau_dq dq + dtau_dqd dqd + H dqdd + dtau_dp dp - sum_i J_i.T df_ext_i

    dq is a displacement in the tangent space: T -> T exp(eps S dq) for every joint.

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].
        qd: Joint velocities, nv [rad/s | m/s].
        qdd: Joint accelerations, nv [rad/s² | m/s²].
        dq, dqd, dqdd: Their changes, nv each.
        f_ext: Force on each body, body coordinates [N·m; N].
        df_ext: Its change.
        dp: Change of the parameter's numbers, or None.
        parameter: Path of the parameter (model/parameters.py), or None.
        fixed: f_ext_fixed: what f_ext stays fixed to as bodies move: body, base (as a
            wrench about the base's origin) or point (in the base's axes, at a point of
            the body); f_ext_points: these points by link, in its frame [m].

    Returns:
        tau and dtau, nv each [N·m | N].

    Source: KIM-4.2 (Table 5), KIM-4.5; joints by Duals, KIM-4.1.
    """
    along = Direction(dq, dqd, f_ext, df_ext, dp, parameter, **fixed)
    at = seeds(model, q, qd, along)
    tau, dtau = inverse_along(model, at, qdd, dqdd)
    return tau + at.taken, dtau + at.dtaken


def fd_directional(
    model, q, qd, tau, dq, dqd, dtau, f_ext, df_ext, dp, parameter, **fixed
):
    """Give the accelerations that joint forces cause, and their derivative.

        H dqdd = dtau - dID(dq, dqd, dqdd = 0),   dID at qdd = FD(q, qd, tau)

    Args:
        model: Robot.
        q: Joint positions, nq [rad | m].
        qd: Joint velocities, nv [rad/s | m/s].
        tau: Joint forces, nv [N·m | N].
        dq, dqd, dtau: Their changes, nv each.
        f_ext: Force on each body, body coordinates [N·m; N].
        df_ext: Its change.
        dp: Change of the parameter's numbers, or None.
        parameter: Path of the parameter (model/parameters.py), or None.
        fixed: f_ext_fixed, f_ext_points: see id_directional.

    Returns:
        qdd and dqdd, nv each [rad/s² | m/s²].

    Source: KIM-4.6 (dqdd/dx = -H^-1 dID/dx) with KIM-4.2; H^-1 by the articulated
    bodies of the state itself, so that couplings are served. KIM-4.3 is the other way,
    fd_directional_table.
    """
    along = Direction(dq, dqd, f_ext, df_ext, dp, parameter, **fixed)
    at = seeds(model, q, qd, along)
    still = Vector.zeros(model.nv)
    motion = split_q(model, q), split_v(model, qd), split_v(model, still)
    _, _, p = body_forces(model, *motion, f_ext)
    felt, _ = articulated(model, at.X, at.S)
    qdd = join_v(model, respond(model, felt, tau - at.taken, p)[0])
    _, taken = inverse_along(model, at, qdd, still)
    free = [Force.zero()] * len(f_ext)
    found, _, _ = respond(model, felt, dtau - taken - at.dtaken, free)
    return qdd, join_v(model, found)


def hd_directional(
    model, q, qd, qdd_u, tau_v, dq, dqd, dqdd_u, dtau_v, f_ext, df_ext, dp,
    prescribed, parameter, **fixed,
):  # fmt: skip
    """Give the results of hybrid dynamics, and their derivative along a direction.

        H_vv dqdd_v = dtau_v - dID_v,   dtau_u = dID_u + H_uv dqdd_v

    dID is along dq, dqd and dqdd_u, with dqdd_v = 0, at the hybrid motion.

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

    Source: KIM-4.6 (hybrid blocks from those of inverse dynamics) with KIM-4.2.
    KIM-4.4 is the other way, hd_directional_table.
    """
    held = prescribed_coordinates(model, prescribed)
    qdd, tau = spread(held, qdd_u, tau_v)
    dqdd, dtau = spread(held, dqdd_u, dtau_v)
    along = Direction(dq, dqd, f_ext, df_ext, dp, parameter, **fixed)
    at = seeds(model, q, qd, along)
    smooth = without_springs(model.without_friction())
    tau, qdd = mixed(smooth, q, qd, held, qdd, tau - at.taken, f_ext)
    _, taken = inverse_along(model, at, qdd, dqdd)
    taken = taken + at.dtaken
    felt, IA = articulated(model, at.X, at.S, held)
    free = [Force.zero()] * len(f_ext)
    found, a, p = respond(model, felt, dtau - taken, free)
    forces = [None, *(IA[i] @ a[i] + p[i] for i in model.bodies)]
    carried = [0.0] * model.nv
    for here in felt:
        for k, x in zip(here.hinge.at, here.along(forces), strict=True):
            carried[k] = x
    dtau = taken + Vector(carried) + add_rotors(model, found)
    moved, force = join_v(model, found), tau + at.taken
    return tuple(
        Vector(x for h, x in zip(held, part, strict=True) if h == wanted)
        for part, wanted in ((force, True), (qdd, False), (dtau, True), (moved, False))
    )


def spread(held, u, v):
    """Give what is prescribed and what is not as two Vectors of all coordinates."""
    u, v = iter(u), iter(v)
    first = Vector(next(u) if h else 0.0 for h in held)
    return first, Vector(0.0 if h else next(v) for h in held)


def hybrid_sizes(model, options):
    """Give the sizes of dp and of both sides of a partition."""
    held = prescribed_coordinates(model, options["prescribed"])
    nu = sum(held)
    return {**sizes(model, options), "nu": nu, "nf": len(held) - nu}


def _of_a_number(signature):
    """Give the Signature whose parameter is one number."""
    inputs = (replace(p, shape=()) if p.name == "dp" else p for p in signature.inputs)
    return replace(signature, inputs=tuple(inputs))


class Directional(TextSolver):
    """A text of a direction; the parameter's change becomes an input."""

    def build(self, model, **choices):
        """Give a Program; parameter=PATH adds the input dp, shaped like its value."""
        choices = check_choices(self.name, model, choices)
        path = choices.get("parameter")
        if path is None or parameters.size(model, path) > 1:
            return super().build(model, **choices)
        number = replace(self, signature=_of_a_number(self.signature))
        return TextSolver.build(number, model, **choices)

    def _border(self, model, common, rest):
        """Move inertia between bodies only where no parameter changes it."""
        border = super()._border(model, common, rest)
        fixed = self.regrouped and border.options["parameter"] is None
        return replace(border, regrouped=fixed)


OPTIONS = {"parameter": None, "f_ext_fixed": "body", "f_ext_points": None}


def directional(name, signature, text, **more):
    """Make a solver of derivatives along a direction."""
    hybrid = signature == HD_DIRECTIONAL
    return Directional(
        name,
        signature,
        text,
        options={**({"prescribed": ()} if hybrid else {}), **OPTIONS},
        sizes=hybrid_sizes if hybrid else sizes,
        by_joint=False,
        **more,
    )


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    return [
        directional("id_directional", ID_DIRECTIONAL, id_directional, regrouped=True),
        directional("fd_directional", FD_DIRECTIONAL, fd_directional, regrouped=True),
        directional("hd_directional", HD_DIRECTIONAL, hd_directional, regrouped=True),
    ]
