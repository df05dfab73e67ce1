"""Laws of observers: the momentum, its rate, and the lag of the estimate."""

from __future__ import annotations

from typing import Any

import numpy as np

from dyn_core.testing.case import Case, Pairs, derivative

DT = 1e-3


def _sample(case: Case, q: np.ndarray, qd: np.ndarray, **choices: Any) -> Any:
    """Return the momentum and its rate, from a first call."""
    zero = np.zeros(case.model.nv)
    program = case.program(**choices)
    return program(q, qd, zero, DT, zero, zero, zero, zero)[1:]


def momentum_is_H_qd(case: Case) -> Pairs:
    """p = H qd"""
    p, _ = _sample(case, case.q, case.qd)
    yield p, case.other("crba")(case.q) @ case.qd


def momentum_obeys_newton(case: Case) -> Pairs:
    """dp/dt = tau + beta, tau = ID(q, qd, qdd)"""
    model = case.model

    def momentum(t: float) -> Any:
        u, rate = case.qd * t + case.qdd * (t * t / 2), case.qd + case.qdd * t
        columns = np.array([model.tangent_rate(u, e) for e in np.eye(model.nv)]).T
        v = np.linalg.solve(columns, rate) if model.nv else rate
        return _sample(case, model.integrate(case.q, u), v)[0]

    tau = case.other("rnea")(case.q, case.qd, case.qdd)
    yield derivative(momentum, 2e-3), tau + _sample(case, case.q, case.qd)[1]


def coriolis_force_is_half_of_the_rate_of_H(case: Case) -> Pairs:
    """qd . (beta + g) = qd.T (dH/dt) qd / 2 = qd . c,  as dH/dt - 2 C is skew"""
    _, beta = _sample(case, case.q, case.qd)
    transposed = beta + case.other("gravity")(case.q)
    c = case.other("coriolis")(case.q, case.qd)
    H = case.other("crba")
    rate = derivative(lambda t: H(case.moved(t)))
    yield case.qd @ transposed, case.qd @ rate @ case.qd / 2
    yield case.qd @ transposed, case.qd @ c
    yield _sample(case, case.q, -case.qd)[1], beta


def r_lags_by_its_gain(case: Case) -> Pairs:
    """(1 + K dt) r_next = r + K (p_next - p - dt (tau + (beta + beta_next) / 2))"""
    tau, r, p, beta = case.rng.normal(size=(4, case.model.nv))
    gain = case.rng.uniform(1, 100, case.model.nv)
    state = r, p, beta
    made = case.program()(case.q, case.qd, tau, DT, gain, *state)
    change = made.p_next - p - DT * (tau + (beta + made.beta_next) / 2)
    yield made.r_next * (1 + gain * DT), r + gain * change
    still = case.program()(case.q, case.qd, tau, DT, 0 * gain, *state).r_next
    yield still, r


def friction_and_springs_brake_the_momentum(case: Case) -> Pairs:
    """joint_friction=True and joint_springs=True take from beta what they add to C"""
    _, free = _sample(case, case.q, case.qd)
    for choice in ({"joint_friction": True}, {"joint_springs": True}):
        bare = case.other("bias")(case.q, case.qd)
        taken = case.other("bias", **choice)(case.q, case.qd) - bare
        _, beta = _sample(case, case.q, case.qd, **choice)
        yield beta, free - taken


OBSERVER_LAWS = (
    momentum_is_H_qd,
    momentum_obeys_newton,
    coriolis_force_is_half_of_the_rate_of_H,
    r_lags_by_its_gain,
    friction_and_springs_brake_the_momentum,
)
