"""Laws: identities of all solvers of a Signature; each yields pairs that must agree.

They hold on every robot and engine. A law takes a case: a solver under test, its robot,
and a random state q, qd, qdd. It yields pairs (left, right) of arrays that must agree;
a pair (float(condition), 1.0) checks a condition. ID and FD are inverse and forward
dynamics, H the mass matrix, C the bias force, J a Jacobian; (+) and (-) are integrate
and difference of positions. In laws of FD the case's qdd serves as joint forces tau. g
is the gravity force, c the Coriolis force, Cm its matrix; Y a regressor, pi the vector
of its parameters; com the centre of mass; J_i the Jacobian of body i.

`LAWS` lists the laws of robots and contacts by Signature; the Registry has them and the
laws of other plugins (hook dyn_laws), `conformance.py` runs them for the tests and for
`dyn check-plugin`.

The laws of energy, momentum, terms of joint forces, regressors and joint springs are
here; larger families have files of their own.

Pairs are computed when they are read. Errors of the builds and calls of Programs, such
as UnsupportedError for a robot that a solver refuses, pass through.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dyn_core import problems as kinds
from dyn_core.model import Model
from dyn_core.model.coordinates import split_q
from dyn_core.model.parameter_vector import parameters_of
from dyn_core.model.passive_forces import friction_force, with_equal_directions
from dyn_core.problems import Signature
from dyn_core.solving.offers import Law
from dyn_core.spatial import RigidInertia, Vector
from dyn_core.testing.case import Case, Pairs, derivative
from dyn_core.testing.laws import (
    contact_laws,
    estimation_laws,
    loop_laws,
    motion_laws,
    response_laws,
    step_laws,
)
from dyn_core.testing.laws.derivatives import (
    derivative_laws,
    directional_laws,
    loop_derivative_laws,
)


def _stretch(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Return joint forces (nv,) and stiffness matrix (nv, nv) of the joint springs."""
    model = case.model
    force, slopes = np.zeros(model.nv), np.zeros((model.nv, model.nv))
    parts = split_q(model, Vector(case.q.tolist()))[1:]
    for i, q in zip(model.bodies, parts, strict=True):
        k = np.array(list(model.stiffness[i]))
        ratio = model.leader[i].ratio
        R = np.eye(len(k)) if ratio is None else np.asarray(ratio, float)
        columns = model.v_slices[i]
        if k.any():
            force[columns] += R.T @ (k * (np.array(list(q)) - list(model.rest[i])))
            slopes[columns, columns] += R.T @ np.diag(k) @ R
    return force, slopes


def joint_springs_add(case: Case) -> Pairs:
    """joint_springs=True adds stiffness (q - rest) to ID"""
    with_springs = case.program(joint_springs=True)(case.q, case.qd, case.qdd)
    without_springs = case.program()(case.q, case.qd, case.qdd)
    yield with_springs, without_springs + _stretch(case)[0]


def joint_springs_pull(case: Case) -> Pairs:
    """FD with joint_springs=True is FD of tau - stiffness (q - rest) without"""
    with_springs = case.program(joint_springs=True)(case.q, case.qd, case.qdd)
    without_springs = case.program()(case.q, case.qd, case.qdd - _stretch(case)[0])
    yield with_springs, without_springs


def joint_springs_are_held(case: Case) -> Pairs:
    """joint_springs=True adds stiffness (q - rest) to g"""
    with_springs = case.program(joint_springs=True)(case.q)
    yield with_springs, case.program()(case.q) + _stretch(case)[0]


def joint_springs_store_energy(case: Case) -> Pairs:
    """With springs d/dt potential = g . qd, g with springs; kinetic is unchanged"""
    program = case.program(joint_springs=True)
    rate = derivative(lambda t: program(case.moved(t), case.qd)[1])
    yield rate, case.other("gravity", joint_springs=True)(case.q) @ case.qd
    kinetic = program(case.q, case.qd)[0]
    yield kinetic, case.program()(case.q, case.qd)[0]


def joint_springs_stiffen(case: Case) -> Pairs:
    """joint_springs=True adds the stiffness to dtau_dq, nothing to dtau_dqd"""
    with_springs = case.program(joint_springs=True)(case.q, case.qd, case.qdd)
    without_springs = case.program()(case.q, case.qd, case.qdd)
    slopes = _stretch(case)[1].reshape(without_springs.dtau_dq.shape)
    yield with_springs.dtau_dq - without_springs.dtau_dq, slopes
    yield with_springs.dtau_dqd, without_springs.dtau_dqd


def energy_matches_H_and_g(case: Case) -> Pairs:
    """kinetic = qd.T H qd / 2,  d/dt potential = g . qd"""
    program = case.program()
    H, g = case.other("crba")(case.q), case.other("gravity")(case.q)
    yield program(case.q, case.qd)[0], case.qd @ H @ case.qd / 2
    yield derivative(lambda t: program(case.moved(t), case.qd)[1]), g @ case.qd


def momentum_moves_the_centre_of_mass(case: Case) -> Pairs:
    """h[3:] = m d/dt com;  h is linear in qd"""
    program = case.program()
    h, _ = program(case.q, case.qd)
    rate = derivative(lambda t: program(case.moved(t), case.qd)[1])
    yield h[3:], case.model.mass * rate
    yield program(case.q, 2 * case.qd)[0], 2 * h


def matrix_makes_momentum(case: Case) -> Pairs:
    """A_G qd = momentum about the centre of mass; com equals that of `momentum`"""
    A, com = case.program()(case.q)
    h, wanted = case.other("momentum")(case.q, case.qd)
    yield com, wanted
    about = np.concatenate([h[:3] - np.cross(com, h[3:]), h[3:]])
    yield A @ case.qd, about


def centre_of_mass_moves(case: Case) -> Pairs:
    """m com' = h[3:];  com'' = com'(q, qdd) + d/dt com'(q, qd) at constant qd"""
    program = case.program()
    com, velocity, acceleration = program(case.q, case.qd, case.qdd)
    h, wanted = case.other("momentum")(case.q, case.qd)
    yield com, wanted
    yield velocity * case.model.mass, h[3:]

    def rate(t: float) -> np.ndarray:
        return program(case.moved(t), case.qd, case.qdd)[1]

    along = program(case.q, case.qdd, case.qdd)[1]
    yield acceleration, along + derivative(rate)


def ground_twists_at_the_point(case: Case) -> Pairs:
    """n x (N - p x F) = 0,   n . p = height,   (N; F) = dh/dt - weight

    n is a unit normal, p the zero moment point, h the momentum.
    """
    n, height = case.rng.normal(size=3), 0.3
    n = n / np.linalg.norm(n)
    program = case.program(normal=tuple(map(float, n)), height=height)
    p, push = program(case.q, case.qd, case.qdd)
    momentum = case.other("momentum")
    rate = derivative(lambda t: momentum(case.moved(t), case.qd)[0])
    rate = rate + momentum(case.q, case.qdd)[0]
    g = np.array(list(case.model.a_grav.lin), float) * case.model.mass
    com = momentum(case.q, case.qd)[1]
    N, F = rate[:3] - np.cross(com, g), rate[3:] - g
    yield push, n @ F
    yield n @ p, height
    scale = max(1.0, float(np.linalg.norm(p) * np.linalg.norm(F)))
    yield np.cross(n, N - np.cross(p, F)) / scale, np.zeros(3)


MOMENTUM_LAWS: dict[Signature, tuple[Law, ...]] = {
    kinds.ENERGY: (energy_matches_H_and_g, joint_springs_store_energy),
    kinds.MOMENTUM: (momentum_moves_the_centre_of_mass,),
    kinds.CENTROIDAL_MATRIX: (matrix_makes_momentum,),
    kinds.CENTRE_OF_MASS: (centre_of_mass_moves,),
    kinds.ZERO_MOMENT_POINT: (ground_twists_at_the_point,),
}


def regressor_gives_joint_forces(case: Case) -> Pairs:
    """Y pi = ID(q, qd, qdd), Y with rotors;  without: its first 10 nb columns"""
    tau = case.other("rnea")(case.q, case.qd, case.qdd)
    Y = case.program(rotors=True)(case.q, case.qd, case.qdd)
    yield Y @ parameters_of(case.model, rotors=True), tau
    yield case.program()(case.q, case.qd, case.qdd), Y[:, : 10 * case.model.nb]


def regressor_has_joint_friction(case: Case) -> Pairs:
    """Y pi = ID with joint_friction, with the mean friction of both directions"""
    tau = case.other("rnea", joint_friction=True)(case.q, case.qd, case.qdd)
    qd, mean = Vector(case.qd.tolist()), with_equal_directions(case.model)
    more = friction_force(case.model, qd) - friction_force(mean, qd)
    tau = tau - np.array(list(more), float)
    program = case.program(friction=True, rotors=True)
    pi = parameters_of(case.model, friction=True, rotors=True)
    yield program(case.q, case.qd, case.qdd) @ pi, tau


def payloads_work_through_their_columns(case: Case) -> Pairs:
    """ID(payload) - ID = Y_i pi_payload, for ten random numbers"""
    frame = case.model.frame(case.frame)
    if frame.body == 0:
        return
    ten = case.rng.normal(size=10)
    inertia = frame.X.T @ RigidInertia.of_parameters(ten.tolist()) @ frame.X
    with_payload = case.other("rnea", inputs=[f"{case.frame}.payload"])
    change = with_payload(case.q, case.qd, case.qdd, ten)
    change = change - with_payload(case.q, case.qd, case.qdd, 0 * ten)
    first = 10 * (frame.body - 1)
    Y = case.program()(case.q, case.qd, case.qdd)[:, first : first + 10]
    yield Y @ np.array(inertia.parameters, float), change


def regressors_keep_the_balance_of_power(case: Case) -> Pairs:
    """(Y pi) . qd = d/dt (kinetic + potential) of the energy regressor, for any pi"""
    Y = case.program(rotors=True)(case.q, case.qd, case.qdd)
    energy = case.other("energy_regressor", rotors=True)
    pi = case.rng.normal(size=Y.shape[1])

    def total(t: float) -> float:
        rows = energy(case.moved(t), case.qd + case.qdd * t)
        return float((rows @ pi).sum())

    yield case.qd @ Y @ pi, derivative(total, 4e-3)


def energy_regressor_gives_energies(case: Case) -> Pairs:
    """[kinetic; potential] = Y pi, Y with rotors;  without: its first 10 nb columns"""
    energies = np.array(case.other("energy")(case.q, case.qd))
    Y = case.program(rotors=True)(case.q, case.qd)
    yield Y @ parameters_of(case.model, rotors=True), energies
    yield case.program()(case.q, case.qd), Y[:, : 10 * case.model.nb]


def coriolis_is_bias_without_gravity(case: Case) -> Pairs:
    """c(q, qd) = C(q, qd) - g(q)"""
    bias, g = case.other("bias")(case.q, case.qd), case.other("gravity")(case.q)
    yield case.program()(case.q, case.qd), bias - g


def coriolis_is_even(case: Case) -> Pairs:
    """c(q, -qd) = c(q, qd)"""
    program = case.program()
    yield program(case.q, -case.qd), program(case.q, case.qd)


def inertial_is_H_qdd(case: Case) -> Pairs:
    """tau = H qdd"""
    tau = case.program()(case.q, case.qdd)
    yield tau, case.other("crba")(case.q) @ case.qdd


def terms_add_up(case: Case) -> Pairs:
    """ID = inertial + coriolis + gravity - external

    The solver under test gives the first or the second term, shipped solvers the rest.
    """
    name = case.solver.signature.name
    coriolis = case.program() if name == "coriolis_force" else case.other("coriolis")
    inertial = case.program() if name == "inertial_force" else case.other("inertial")
    inverse_dynamics = case.other("rnea_spatial", inputs=["f_ext"])
    zero = 0 * case.qd
    total = inertial(case.q, case.qdd) + coriolis(case.q, case.qd)
    total = total + inverse_dynamics(case.q, zero, zero, case.f_ext)
    yield total, inverse_dynamics(case.q, case.qd, case.qdd, case.f_ext)
    at_rest = inverse_dynamics(case.q, zero, zero, 0 * case.f_ext)
    yield at_rest, case.other("gravity")(case.q)


def matrix_gives_coriolis_force(case: Case) -> Pairs:
    """Cm(q, qd) qd = c(q, qd)"""
    Cm = case.program()(case.q, case.qd)
    yield Cm @ case.qd, case.other("coriolis")(case.q, case.qd)


def rate_of_H_is_twice_the_symmetric_part(case: Case) -> Pairs:
    """dH/dt - 2 Cm is skew-symmetric: dH/dt = Cm + Cm.T"""
    Cm, H = case.program()(case.q, case.qd), case.other("crba")
    yield derivative(lambda t: H(case.moved(t))), Cm + Cm.T


CORIOLIS_LAWS = (coriolis_is_bias_without_gravity, coriolis_is_even, terms_add_up)
INERTIAL_LAWS = (inertial_is_H_qdd, terms_add_up)
MATRIX_LAWS = (matrix_gives_coriolis_force, rate_of_H_is_twice_the_symmetric_part)


def tau_is_H_qdd_plus_C(case: Case) -> Pairs:
    """tau = H qdd + C"""
    tau = case.program()(case.q, case.qd, case.qdd)
    H, C = case.other("crba")(case.q), case.other("bias")(case.q, case.qd)
    yield tau, H @ case.qdd + C


def external_forces_work_through_jacobians(case: Case) -> Pairs:
    """ID(q, qd, qdd, f_ext) = ID(q, qd, qdd) - sum_i J_i.T f_ext_i"""
    plain = case.program()(case.q, case.qd, case.qdd)
    program = case.program(inputs=["f_ext"])
    tau = program(case.q, case.qd, case.qdd, case.f_ext)
    yield tau, plain - _pushed(case)


def _pushed(case: Case) -> np.ndarray:
    """Return sum_i J_i.T f_ext_i at the case's state, (nv,).

    J_i is of a link whose frame equals the frame of body i; a body without one adds
    nothing, and one with two counts twice: no error.
    """
    push = np.zeros(case.model.nv)
    for name, frame in case.model.frames.items():
        at_origin = np.allclose(np.asarray(frame.X), np.eye(6))
        if frame.body == 0 or not at_origin:
            continue
        J = case.other("jacobian", frame=name, engine="plain")(case.q)  # once each
        push += J.T @ case.f_ext[frame.body - 1]
    return push


def external_forces_in_base_coordinates_agree(case: Case) -> Pairs:
    """f_ext_frame="base" with forces in base coordinates gives the result of "body"."""
    if not hasattr(case.solver, "algorithm"):
        return
    X = _body_transforms(case)
    f_base = np.array([X[i].T @ case.f_ext[i] for i in range(case.model.nb)])
    third = case.qdd
    body = case.program(inputs=["f_ext"])(case.q, case.qd, third, case.f_ext)
    base = case.program(inputs=["f_ext"], f_ext_frame="base")
    yield base(case.q, case.qd, third, f_base.reshape(-1, 6)), body


def _body_transforms(case: Case) -> list[np.ndarray]:
    """Return X_i_0 of bodies 1 to nb at the case's q, base to body, 6x6 each."""
    coriolis_laws = split_q(case.model, Vector(case.q.tolist()))
    X = [np.eye(6)]
    for i in case.model.bodies:
        XJ = np.asarray(case.model.joint[i].X(coriolis_laws[i]), float)
        X.append(XJ @ np.asarray(case.model.Xtree[i], float) @ X[case.model.parent[i]])
    return X[1:]


def forward_undoes_inverse(case: Case) -> Pairs:
    """H FD(q, qd, ID(q, qd, qdd)) = H qdd, with FD by the solver dense"""
    tau = case.program()(case.q, case.qd, case.qdd)
    qdd = case.other("dense")(case.q, case.qd, tau)
    H = case.other("crba")(case.q)
    yield H @ qdd, H @ case.qdd


def power_is_rate_of_energy(case: Case) -> Pairs:
    """tau . qd = d/dt (kinetic + potential), for tau = ID(q, qd, qdd)"""
    tau = case.program()(case.q, case.qd, case.qdd)
    energy = case.other("energy")

    def total(t: float) -> float:
        u = case.qd * t + case.qdd * (t * t / 2)
        q = case.model.integrate(case.q, u)
        # The velocity that belongs to u(t): body velocity of a group joint.
        rate = case.qd + case.qdd * t
        return sum(energy(q, _body_velocity(case.model, u, rate)))

    yield tau @ case.qd, derivative(total, 2e-3)


def _body_velocity(model: Model, u: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """Return v (nv,) with model.tangent_rate(u, v) = rate."""
    columns = [model.tangent_rate(u, e) for e in np.eye(model.nv)]
    return np.linalg.solve(np.array(columns).T, rate) if model.nv else rate


def joint_friction_adds(case: Case) -> Pairs:
    """joint_friction=True adds friction_force(qd): damping and dry friction"""
    rough = case.program(joint_friction=True)(case.q, case.qd, case.qdd)
    smooth = case.program()(case.q, case.qd, case.qdd)
    yield rough, smooth + _friction(case)


def _friction(case: Case) -> np.ndarray:
    force = friction_force(case.model, Vector(case.qd.tolist()))
    return np.array(list(force), float)


def inverse_undoes_forward(case: Case) -> Pairs:
    """ID(q, qd, FD(q, qd, tau)) = tau"""
    tau = case.qdd
    qdd = case.program()(case.q, case.qd, tau)
    yield case.other("rnea")(case.q, case.qd, qdd), tau


def forces_accelerate(case: Case) -> Pairs:
    """H FD(q, qd, tau, f_ext) + C = tau + sum_i J_i.T f_ext_i"""
    program = case.program(inputs=["f_ext"])
    qdd = program(case.q, case.qd, case.qdd, case.f_ext)
    H, C = case.other("crba")(case.q), case.other("bias")(case.q, case.qd)
    yield H @ qdd + C, case.qdd + _pushed(case)


def joint_friction_brakes(case: Case) -> Pairs:
    """FD with joint_friction=True is FD of tau - friction_force(qd) without"""
    rough = case.program(joint_friction=True)(case.q, case.qd, case.qdd)
    smooth = case.program()(case.q, case.qd, case.qdd - _friction(case))
    yield rough, smooth


def H_is_symmetric_positive_definite(case: Case) -> Pairs:
    """H = H.T, all eigenvalues > 0; true for a robot without coordinates"""
    H = case.program()(case.q)
    yield H, H.T
    yield float(np.linalg.eigvalsh(H).min() > 0 if len(H) else 1.0), 1.0


def H_gives_kinetic_energy(case: Case) -> Pairs:
    """kinetic = qd.T H qd / 2"""
    H = case.program()(case.q)
    yield case.qd @ H @ case.qd / 2, case.other("energy")(case.q, case.qd)[0]


def H_columns_are_unit_accelerations(case: Case) -> Pairs:
    """H e_k = ID(q, qd, e_k) - ID(q, qd, 0) for all unit vectors e_k, in one pair"""
    unit = np.eye(case.model.nv)
    rnea = case.other("rnea")
    base = rnea(case.q, case.qd, np.zeros(case.model.nv))
    if case.model.nv:
        yield case.program()(case.q), rnea(case.q, case.qd, unit) - base


def rate_of_H_is_coriolis_power(case: Case) -> Pairs:
    """qd.T (dH/dt) qd / 2 = qd . (C(q, qd) - C(q, 0))"""
    H, bias = case.program(), case.other("bias")
    rate = derivative(lambda t: H(case.moved(t)))
    coriolis = bias(case.q, case.qd) - bias(case.q, 0 * case.qd)
    yield case.qd @ rate @ case.qd / 2, case.qd @ coriolis


def bias_is_inverse_dynamics_at_rest(case: Case) -> Pairs:
    """C(q, qd) = ID(q, qd, 0)"""
    C = case.program()(case.q, case.qd)
    yield C, case.other("rnea")(case.q, case.qd, 0 * case.qd)


def gravity_is_bias_at_rest(case: Case) -> Pairs:
    """g(q) = C(q, 0)"""
    yield case.program()(case.q), case.other("bias")(case.q, 0 * case.qd)


def gravity_is_slope_of_potential(case: Case) -> Pairs:
    """g(q) . qd = d/dt potential(q)"""
    energy = case.other("energy")
    rate = derivative(lambda t: energy(case.moved(t), case.qd)[1])
    yield case.program()(case.q) @ case.qd, rate


def poses_are_rigid(case: Case) -> Pairs:
    """R.T R = 1, det R = 1, last row 0 0 0 1, for each frame"""
    for pose in case.program()(case.q):
        R = pose[:3, :3]
        yield R.T @ R, np.eye(3)
        yield np.linalg.det(R), 1.0
        yield pose[3], np.array([0.0, 0.0, 0.0, 1.0])


def poses_move_with_frame_velocity(case: Case) -> Pairs:
    """d/dt [R, p] = [R [w], R v] for the body velocity (w, v) of the last frame"""
    program = case.program()
    index = case.model.frame_names.index(case.frame)
    R = program(case.q)[index][:3, :3]
    rate = derivative(lambda t: program(case.moved(t))[index])
    v = case.other("frame_velocity")(case.q, case.qd)
    yield rate[:3, 3], R @ v[3:]
    W = R.T @ rate[:3, :3]
    yield np.array([W[2, 1], W[0, 2], W[1, 0]]), v[:3]


def jacobian_gives_velocity(case: Case) -> Pairs:
    """v = J qd, in every reference"""
    for reference in ("local", "world", "aligned"):
        J = case.program(reference=reference)(case.q)
        v = case.other("frame_velocity", reference=reference)(case.q, case.qd)
        yield J @ case.qd, v


def velocity_is_rate_of_pose(case: Case) -> Pairs:
    """aligned v = (w, dp/dt) of the last frame, with [w] = dR/dt R.T"""
    v = case.program(reference="aligned")(case.q, case.qd)
    poses = case.other("forward_kinematics", frames=[case.frame])
    R = poses(case.q)[0, :3, :3]
    rate = derivative(lambda t: poses(case.moved(t))[0])
    yield v[3:], rate[:3, 3]
    W = rate[:3, :3] @ R.T
    yield v[:3], np.array([W[2, 1], W[0, 2], W[1, 0]])


def bias_acceleration_is_rate_of_velocity(case: Case) -> Pairs:
    """(dJ/dt) qd = d/dt (J qd) at constant qd, in every reference"""
    for reference in ("local", "world", "aligned"):
        a = case.program(reference=reference)(case.q, case.qd)
        yield a, _rate_of_velocity(case, reference)


def _rate_of_velocity(case: Case, reference: str) -> Any:
    v = case.other("frame_velocity", reference=reference)
    return derivative(lambda t: v(case.moved(t), case.qd))


def error_obeys_the_gains(case: Case) -> Pairs:
    """tau = ID(q, qd, qdd_ref + kd (qd_ref - qd) + kp (q_ref (-) q))"""
    model, rng = case.model, case.rng
    kp, kd = rng.uniform(1, 50, (2, model.nv))
    q_ref = model.integrate(case.q, 0.1 * rng.normal(size=model.nv))
    qd_ref = rng.normal(size=model.nv)
    tau = case.program()(case.q, case.qd, q_ref, qd_ref, case.qdd, kp, kd)
    wanted = case.qdd + kd * (qd_ref - case.qd)
    wanted = wanted + kp * model.difference(case.q, q_ref)
    yield tau, case.other("rnea")(case.q, case.qd, wanted)


def displacement_meets_stiffness(case: Case) -> Pairs:
    """tau = ID(q, qd, qdd_ref) + stiffness (q_ref (-) q) + damping (qd_ref - qd)"""
    model, rng = case.model, case.rng
    stiffness, damping = rng.uniform(1, 50, (2, model.nv))
    q_ref = model.integrate(case.q, 0.1 * rng.normal(size=model.nv))
    qd_ref = rng.normal(size=model.nv)
    gains = stiffness, damping
    tau = case.program()(case.q, case.qd, q_ref, qd_ref, case.qdd, *gains)
    spring = stiffness * model.difference(case.q, q_ref)
    spring = spring + damping * (qd_ref - case.qd)
    yield tau, case.other("rnea")(case.q, case.qd, case.qdd) + spring


def weight_is_carried(case: Case) -> Pairs:
    """tau = g(q) - H kd qd, for random inputs kd (nv,);  tau = g(q) for kd = 0"""
    program, g = case.program(), case.other("gravity")(case.q)
    yield program(case.q, case.qd, 0 * case.qd), g
    kd = case.rng.uniform(1, 10, case.model.nv)
    H = case.other("crba")(case.q)
    yield program(case.q, case.qd, kd), g - H @ (kd * case.qd)


LAWS: dict[Signature, tuple[Law, ...]] = {
    **loop_laws.LAWS,
    **loop_derivative_laws.LAWS,
    kinds.REGRESSOR: (
        regressor_gives_joint_forces,
        regressor_has_joint_friction,
        payloads_work_through_their_columns,
        regressors_keep_the_balance_of_power,
    ),
    kinds.ENERGY_REGRESSOR: (energy_regressor_gives_energies,),
    kinds.HYBRID_DYNAMICS: (
        response_laws.hybrid_is_dense_algebra,
        response_laws.joint_friction_enters_hybrid,
    ),
    kinds.HYBRID_STEP: (response_laws.hybrid_steps_start_as_hybrid_dynamics,),
    kinds.HYBRID_DYNAMICS_MASKED: (response_laws.the_mask_chooses,),
    **directional_laws.LAWS,
    **contact_laws.LAWS,
    **MOMENTUM_LAWS,
    **motion_laws.LAWS,
    **step_laws.LAWS,
    kinds.BODY_MOTION: (
        motion_laws.bodies_move_as_jacobians_say,
        motion_laws.frames_accelerate_with_their_bodies,
    ),
    kinds.BODY_JACOBIANS: (
        motion_laws.bodies_are_where_frames_are,
        motion_laws.body_jacobians_give_velocities,
    ),
    kinds.JOINT_REACTIONS: (
        motion_laws.reactions_work_like_joint_forces,
        motion_laws.net_forces_accelerate,
        motion_laws.parts_of_reactions,
        motion_laws.reactions_are_one_force_everywhere,
    ),
    kinds.CARTESIAN_CONTROL: (
        motion_laws.spring_is_slope_of_its_energy,
        motion_laws.damper_opposes_the_velocity,
    ),
    kinds.FRAME_ACCELERATION: (motion_laws.acceleration_is_rate_of_velocity,),
    kinds.MANIPULABILITY: (motion_laws.singular_values_are_those_of_numpy,),
    kinds.ARTICULATED_BODIES: (motion_laws.articulated_bodies_feel,),
    **response_laws.LAWS,
    kinds.INVERSE_DYNAMICS: (
        tau_is_H_qdd_plus_C,
        external_forces_work_through_jacobians,
        external_forces_in_base_coordinates_agree,
        forward_undoes_inverse,
        power_is_rate_of_energy,
        joint_friction_adds,
        joint_springs_add,
    ),
    kinds.FORWARD_DYNAMICS: (
        inverse_undoes_forward,
        forces_accelerate,
        external_forces_in_base_coordinates_agree,
        joint_friction_brakes,
        joint_springs_pull,
    ),
    kinds.MASS_MATRIX: (
        H_is_symmetric_positive_definite,
        H_gives_kinetic_energy,
        H_columns_are_unit_accelerations,
        rate_of_H_is_coriolis_power,
    ),
    kinds.BIAS_FORCE: (bias_is_inverse_dynamics_at_rest,),
    kinds.GRAVITY_FORCE: (
        gravity_is_bias_at_rest,
        gravity_is_slope_of_potential,
        joint_springs_are_held,
    ),
    kinds.CORIOLIS_FORCE: CORIOLIS_LAWS,
    kinds.CORIOLIS_MATRIX: MATRIX_LAWS,
    kinds.INERTIAL_FORCE: INERTIAL_LAWS,
    kinds.MOMENTUM_OBSERVER: estimation_laws.OBSERVER_LAWS,
    kinds.PAYLOAD_ESTIMATION: estimation_laws.PAYLOAD_LAWS,
    kinds.FORWARD_KINEMATICS: (poses_are_rigid, poses_move_with_frame_velocity),
    kinds.JACOBIAN: (jacobian_gives_velocity,),
    kinds.FRAME_VELOCITY: (velocity_is_rate_of_pose,),
    kinds.FRAME_BIAS_ACCELERATION: (bias_acceleration_is_rate_of_velocity,),
    kinds.TRACKING_CONTROL: (error_obeys_the_gains,),
    kinds.IMPEDANCE_CONTROL: (displacement_meets_stiffness,),
    kinds.GRAVITY_CONTROL: (weight_is_carried,),
    kinds.ID_DERIVATIVES: (
        derivative_laws.slopes_of_inverse_dynamics,
        derivative_laws.friction_steepens_inverse_dynamics,
        joint_springs_stiffen,
    ),
    kinds.FD_DERIVATIVES: (derivative_laws.slopes_of_forward_dynamics,),
    kinds.MASS_MATRIX_INVERSE: (derivative_laws.inverse_times_H_is_one,),
}
