"""Laws of the parts of the joint forces: each is what it says, and they add up."""

from __future__ import annotations

from dyn_core.testing.case import Case, Pairs


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


def parts_make_the_whole(case: Case) -> Pairs:
    """ID = inertial + coriolis + gravity - external

    Gravity less external forces is what holding still takes.
    """
    name = case.solver.signature.name
    coriolis = case.program() if name == "coriolis_force" else case.other("coriolis")
    inertial = case.program() if name == "inertial_force" else case.other("inertial")
    whole = case.other("rnea_spatial", inputs=["f_ext"])
    still = 0 * case.qd
    parts = inertial(case.q, case.qdd) + coriolis(case.q, case.qd)
    parts = parts + whole(case.q, still, still, case.f_ext)
    yield parts, whole(case.q, case.qd, case.qdd, case.f_ext)
    at_rest = whole(case.q, still, still, 0 * case.f_ext)
    yield at_rest, case.other("gravity")(case.q)
