"""Derivatives along a direction: of inverse, forward and hybrid dynamics, O(n) each.

A direction is a displacement dq, changes dqd, dqdd or dtau, a change of external forces
(inputs=["df_ext"]), and a change dp of a parameter of the Model (parameter=PATH).
Joints and Models are differentiated by Taylor numbers (_seeds.py); the recursions are
the book's.
"""

from dataclasses import replace

from dyn_core.authoring import (
    Force,
    Motion,
    Vector,
    cross,
    cross3,
    hookimpl,
    join_force,
    join_v,
    rotation_rates,
    slope_of,
    split_q,
    split_v,
    value_of,
    with_slopes,
    without_springs,
)
from dyn_core.model import parameter_paths
from dyn_core.problems import FD_DIRECTIONAL, HD_DIRECTIONAL, ID_DIRECTIONAL
from dyn_plugins._options import NAME
from dyn_plugins.derivatives._fixed_forces import OPTIONS, VALID, FixedForces
from dyn_plugins.derivatives._seeds import Direction, check_choices, seeds, sizes
from dyn_plugins.dynamics._articulated import (
    accelerations_from_forces,
    articulated_joints,
    transmitted_forces,
)
from dyn_plugins.dynamics.hybrid import (
    hybrid_from_mask,
    in_order,
    part_where,
    prescribed_coordinates,
    rotor_forces,
    spread,
)
from dyn_plugins.dynamics.rnea import body_forces


def inverse_along(model, seed, qdd, dqdd):
    """Return the joint forces of a motion and their derivative along the seeds.

        dV_i = X dV_p - dh x X V_p + dvJ,   dvJ = dS qd + S dqd
        da_i = X da_p - dh x X a_p + dS qdd + S dqdd + dcJ + dV x vJ + V x dvJ
        dF_i = dI a + I da + dV x* I V + V x* (dI V + I dV) - df_ext
               + sum_children X.T (dF_k + dh_k x* F_k)
        dtau_i = dS.T F + S.T dF

    With the forces of rotors, without friction and springs.

    Source: KIM-4.2 (Table 5); ad_V is V x, and -ad_V^* is V x*.
    """
    moving = split_v(seed.moved, with_slopes(qdd, dqdd))
    qdd, dqdd = ([side(x) for x in moving] for side in (value_of, slope_of))
    V, dV, a, da = [Motion.zero()], [Motion.zero()], [seed.a_0], [seed.da_0]
    F, dF = [Force.zero()], [Force.zero()]
    for i in model.bodies:
        p, X, dh, S, dS = model.parent[i], seed.X[i], seed.dh[i], seed.S[i], seed.dS[i]
        vJ, dvJ, I, dI = seed.vJ[i], seed.dvJ[i], seed.I[i], seed.dI[i]
        V_p, a_p = X @ V[p], X @ a[p]
        dV_p, da_p = X @ dV[p] - cross(dh, V_p), X @ da[p] - cross(dh, a_p)
        V.append(V_p + vJ)
        dV.append(dV_p + dvJ)
        # V x vJ = X V_p x vJ, because vJ x vJ = 0.
        a.append(a_p + S @ qdd[i] + seed.cJ[i] + cross(V_p, vJ))
        along = dS @ qdd[i] + S @ dqdd[i] + seed.dcJ[i]
        da.append(da_p + along + cross(dV_p, vJ) + cross(V_p, dvJ))
        force, change = body_force(I, dI, V[i], dV[i], a[i], da[i])
        F.append(force - seed.f_ext[i])
        dF.append(change - seed.df_ext[i])
    tau, dtau = [None] * len(F), [None] * len(F)
    for i in reversed(model.bodies):
        p, X, S, dS = model.parent[i], seed.X[i], seed.S[i], seed.dS[i]
        rotor, drotor = seed.armature[i], seed.darmature[i]
        tau[i] = S.T @ F[i] + rotor * qdd[i]
        dtau[i] = dS.T @ F[i] + S.T @ dF[i] + drotor * qdd[i] + rotor * dqdd[i]
        F[p] = F[p] + X.T @ F[i]
        dF[p] = dF[p] + X.T @ (dF[i] + cross(seed.dh[i], F[i]))
    forces = [None, *map(with_slopes, tau[1:], dtau[1:])]
    joined = join_force(seed.moved, forces)
    return value_of(joined), slope_of(joined)


def body_force(I, dI, V, dV, a, da):
    """Return I a + V x* I V and its derivative, from the motion of points.

        F = I(a', U),   dF = dI(a', U) + I(da', dU)
        a' = a_lin + w x v,   U = [alpha] + [w][w]

    The force is linear in the classical acceleration a' of the origin and in U, and
    linear in the ten numbers of I, so no term multiplies two derivatives. dI is the
    change of these numbers, as a RigidInertia.

    Source: KIM-4.2, its line of dF_i, in the form of RBD5-4.1.
    """
    velocity = Motion(with_slopes(V.ang, dV.ang), with_slopes(V.lin, dV.lin))
    turning = rotation_rates(velocity.ang, with_slopes(a.ang, da.ang))
    point = with_slopes(a.lin, da.lin) + cross3(velocity.ang, velocity.lin)
    here, along = value_of(point), value_of(turning)
    change = I.force_of(slope_of(point), slope_of(turning))
    return I.force_of(here, along), dI.force_of(here, along) + change


def id_directional(
    model, q, qd, qdd, dq, dqd, dqdd, f_ext, df_ext, dp, parameter, **fixed
):
    """Return the joint forces of a motion, and their derivative along a direction.

        dtau = dtau_dq dq + dtau_dqd dqd + H dqdd + dtau_dp dp - sum_i J_i.T df_ext_i

    dq is a displacement in the tangent space: T -> T exp(eps S dq) for every joint.

    An invalid parameter or point raises UnsupportedError or ModelError when the
    Program is built.

    Inputs and outputs: those of ID_DIRECTIONAL; f_ext and df_ext by body, the base
    first.

    Args:
        parameter: Path of the parameter (model/parameter_paths), or None.
        fixed: f_ext_fixed: frame in which f_ext is constant as bodies move: body, base
            (as a wrench about the base's origin) or point (in the base's axes, at a
            point of the body), None: as f_ext_frame says; f_ext_points: these points by
            link, in its frame [m].

    Source: KIM-4.2 (Table 5), KIM-4.5; joints by Taylor numbers, KIM-4.1.
    """
    along = Direction(dq, dqd, f_ext, df_ext, dp, parameter, **fixed)
    seed = seeds(model, q, qd, along)
    tau, dtau = inverse_along(model, seed, qdd, dqdd)
    return tau + seed.taken, dtau + seed.dtaken


def fd_directional(
    model, q, qd, tau, dq, dqd, dtau, f_ext, df_ext, dp, parameter, **fixed
):
    """Return the accelerations that joint forces cause, and their derivative.

        H dqdd = dtau - dID(dq, dqd, dqdd = 0),   dID at qdd = FD(q, qd, tau)

    A singular joint inertia raises SingularError when the Program runs; an invalid
    parameter or point raises UnsupportedError or ModelError when it is built.

    Inputs and outputs: those of FD_DIRECTIONAL; f_ext and df_ext by body, the base
    first.

    Args:
        parameter: Path of the parameter (model/parameter_paths), or None.
        fixed: f_ext_fixed, f_ext_points: frame in which f_ext is constant as bodies
            move, and points of action; see id_directional.

    Source: KIM-4.6 (dqdd/dx = -H^-1 dID/dx) with KIM-4.2; H^-1 by articulated bodies at
    the state itself, so that couplings are supported. fd_directional_table is KIM-4.3.
    """
    along = Direction(dq, dqd, f_ext, df_ext, dp, parameter, **fixed)
    seed = seeds(model, q, qd, along)
    still = Vector.zeros(model.nv)
    motion = split_q(model, q), split_v(model, qd), split_v(model, still)
    _, _, p = body_forces(model, *motion, f_ext)
    joints, _ = articulated_joints(model, seed.X, seed.S)
    push = tau - seed.taken
    qdd = join_v(model, accelerations_from_forces(model, joints, push, p).qdd)
    _, taken = inverse_along(model, seed, qdd, still)
    free = [Force.zero()] * len(f_ext)
    push = dtau - taken - seed.dtaken
    dqdd = accelerations_from_forces(model, joints, push, free).qdd
    return qdd, join_v(model, dqdd)


def hd_directional(
    model, q, qd, qdd_u, tau_v, dq, dqd, dqdd_u, dtau_v, f_ext, df_ext, dp,
    prescribed, parameter, **fixed,
):  # fmt: skip
    """Return the results of hybrid dynamics, and their derivative along a direction.

        H_vv dqdd_v = dtau_v - dID_v,   dtau_u = dID_u + H_uv dqdd_v

    dID is along dq, dqd and dqdd_u, with dqdd_v = 0, at the hybrid motion. A singular
    inertia of the others raises SingularError when the Program runs; an invalid
    parameter, point or entry of `prescribed` raises UnsupportedError or ModelError when
    it is built.

    Inputs and outputs: those of HD_DIRECTIONAL, so the result is tau_u, qdd_v, dtau_u,
    dqdd_v; u are the prescribed coordinates, v the others, both in the order of qd;
    f_ext and df_ext by body, the base first.

    Args:
        prescribed: Names of joints whose acceleration is given, or pairs (joint, index
            of its coordinate); see hybrid.
        parameter: Path of the parameter (model/parameter_paths), or None.
        fixed: f_ext_fixed, f_ext_points: frame in which f_ext is constant as bodies
            move, and points of action; see id_directional.

    Source: KIM-4.6 (hybrid blocks from inverse dynamics) with KIM-4.2.
    hd_directional_table is KIM-4.4.
    """
    mask = prescribed_coordinates(model, prescribed)
    qdd, tau = spread(mask, qdd_u, tau_v)
    dqdd, dtau = spread(mask, dqdd_u, dtau_v)
    along = Direction(dq, dqd, f_ext, df_ext, dp, parameter, **fixed)
    seed = seeds(model, q, qd, along)
    smooth = without_springs(model.without_friction())
    tau, qdd = hybrid_from_mask(smooth, q, qd, mask, qdd, tau - seed.taken, f_ext)
    _, taken = inverse_along(model, seed, qdd, dqdd)
    taken = taken + seed.dtaken
    joints, IA = articulated_joints(model, seed.X, seed.S, mask)
    free, push = [Force.zero()] * len(f_ext), dtau - taken
    dqdd, a, p = accelerations_from_forces(model, joints, push, free)
    carried = transmitted_forces(model, joints, IA, a, p)
    dtau = taken + carried + rotor_forces(model, dqdd)
    return (
        part_where(mask, True, tau + seed.taken),
        part_where(mask, False, qdd),
        part_where(mask, True, dtau),
        part_where(mask, False, join_v(model, dqdd)),
    )


def hybrid_sizes(model, options):
    """Return {"np": size of dp, "nu": prescribed, "nf": other coordinates}."""
    mask = prescribed_coordinates(model, options["prescribed"])
    nu = sum(mask)
    return {**sizes(model, options), "nu": nu, "nf": len(mask) - nu}


def _of_a_number(signature):
    """Return a copy of the Signature with dp a scalar."""
    inputs = (replace(p, shape=()) if p.name == "dp" else p for p in signature.inputs)
    return replace(signature, inputs=tuple(inputs))


class Directional(FixedForces):
    """A derivative along a direction; the change dp of a parameter may be an input."""

    def build(self, model, **choices):
        """Return a Program; parameter=PATH adds the input dp, a number for each value.

        dp is a scalar for a parameter of one number. choices: Options of
        FixedForces.build, parameter and, for hybrid dynamics, prescribed. Raises
        UnsupportedError for an invalid parameter or an input dp without one, ModelError
        for an unknown path, and the errors of FixedForces.build.
        """
        choices = check_choices(self.name, model, choices)
        path = choices.get("parameter")
        if path is None or parameter_paths.size(model, path) > 1:
            return super().build(model, **choices)
        number = replace(self, signature=_of_a_number(self.signature))
        return FixedForces.build(number, model, **choices)

    def _adapter(self, model, common, rest):
        """Return the adapter; inertia is regrouped only without a parameter."""
        adapter = super()._adapter(model, common, rest)
        fixed = self.regrouped and adapter.options["parameter"] is None
        return replace(adapter, regrouped=fixed)


def directional(name, signature, algorithm, **more):
    """Return a solver of derivatives along a direction; `more` goes to Directional.

    Its options are parameter, f_ext_fixed, f_ext_points, and for HD_DIRECTIONAL
    prescribed; `algorithm` takes the model, the inputs and these.
    """
    hybrid = signature == HD_DIRECTIONAL
    options = {"prescribed": ()} if hybrid else {}
    order = {"prescribed": in_order} if hybrid else {}
    return Directional(
        name,
        signature,
        algorithm,
        options={**options, "parameter": None, **OPTIONS},
        valid={**order, "parameter": NAME, **VALID},
        sizes=hybrid_sizes if hybrid else sizes,
        by_joint=False,
        **more,
    )


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    return [
        directional("id_directional", ID_DIRECTIONAL, id_directional, regrouped=True),
        directional("fd_directional", FD_DIRECTIONAL, fd_directional, regrouped=True),
        directional("hd_directional", HD_DIRECTIONAL, hd_directional, regrouped=True),
    ]
