"""Laws of regressors, linear in the parameters of bodies and joints."""

from __future__ import annotations

import numpy as np

from dyn_core.model.parameter_vector import parameters_of
from dyn_core.model.passive_forces import friction_force, with_equal_directions
from dyn_core.spatial import RigidInertia, Vector
from dyn_core.testing.case import Case, Pairs, derivative


def regressor_gives_joint_forces(case: Case) -> Pairs:
    """Y pi = ID(q, qd, qdd);  columns of joints come after those of bodies"""
    tau = case.other("rnea")(case.q, case.qd, case.qdd)
    Y = case.program(rotors=True)(case.q, case.qd, case.qdd)
    yield Y @ parameters_of(case.model, rotors=True), tau
    yield case.program()(case.q, case.qd, case.qdd), Y[:, : 10 * case.model.nb]


def regressor_has_joint_friction(case: Case) -> Pairs:
    """Y pi = ID with joint_friction, but for how much directions of it differ"""
    tau = case.other("rnea", joint_friction=True)(case.q, case.qd, case.qdd)
    qd, mean = Vector(case.qd.tolist()), with_equal_directions(case.model)
    more = friction_force(case.model, qd) - friction_force(mean, qd)
    tau = tau - np.array(list(more), float)
    program = case.program(friction=True, rotors=True)
    pi = parameters_of(case.model, friction=True, rotors=True)
    yield program(case.q, case.qd, case.qdd) @ pi, tau


def payloads_work_through_their_columns(case: Case) -> Pairs:
    """ID(payload) - ID = Y_i pi_payload, for any ten numbers"""
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
    """[kinetic; potential] = Y pi"""
    energies = np.array(case.other("energy")(case.q, case.qd))
    Y = case.program(rotors=True)(case.q, case.qd)
    yield Y @ parameters_of(case.model, rotors=True), energies
    yield case.program()(case.q, case.qd), Y[:, : 10 * case.model.nb]
