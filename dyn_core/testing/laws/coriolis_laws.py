"""Laws of the terms of the joint forces: each is correct, and they add up."""

from __future__ import annotations

from dyn_core.testing.case import Case, Pairs, derivative


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

    Gravity minus external forces is the joint force at rest.
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
