"""Laws of observers of forces and payloads: each yields pairs that must agree.

A momentum observer follows with its lag; exact data give exact payloads, noise a
covariance.

A law takes a case: a solver under test, its robot, and a random state q, qd, qdd. It
yields pairs (left, right) of arrays that must agree; a pair (float(condition), 1.0)
checks a condition. ID and FD are inverse and forward dynamics, H the mass matrix, C the
bias force, J a Jacobian; (+) and (-) are integrate and difference of positions. In laws
of FD the case's qdd serves as joint forces tau. p is the momentum, beta its rate
without joint forces: dp/dt = tau + beta.

Pairs are computed when they are read. Errors of the builds and calls of Programs, such
as UnsupportedError for a robot that a solver refuses, pass through.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dyn_core.testing.case import Case, Pairs, derivative

DT = 1e-3


def _sample(case: Case, q: np.ndarray, qd: np.ndarray, **choices: Any) -> Any:
    """Return p_next and beta_next of the observer's first call: dp/dt = tau + beta."""
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


CYCLES = 14  # random states from which a payload is estimated
EXACT = 1e-6  # noise inputs for exact data


class _RandomMotion:
    """Random states of a robot with a random payload, and efforts that lead to them.

    `payload` is m, m c (3), Ixx Ixy Iyy Ixz Iyz Izz at the case's frame; `last` is the
    latest (q, qd).
    """

    def __init__(self, case: Case, **choices: Any) -> None:
        paths = {"inputs": [f"{case.frame}.payload"], **choices}
        self.case, self.observer = case, case.other("momentum_observer", **paths)
        self.payload = case.rng.normal(size=10)
        self.last = self.state()

    def state(self) -> tuple[np.ndarray, np.ndarray]:
        """Draw a random position (nq,) and velocity (nv,); `last` is unchanged."""
        case = self.case
        return case.model.random(case.rng), case.rng.normal(size=case.model.nv)

    def momentum(self, q: np.ndarray, qd: np.ndarray, payload: np.ndarray) -> Any:
        """Return momentum p and its rate beta without joint forces, (nv,) each."""
        none = np.zeros(self.case.model.nv)
        return self.observer(q, qd, none, 1e-3, none, none, none, none, payload)[1:]

    def move(self, dt: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Move to a random state; return q (nq,), qd (nv,) and the joint forces (nv,).

        They lead from `last`, which is replaced, to this state by the observer's rule.
        """
        p, beta = self.momentum(*self.last, self.payload)
        self.last = self.state()
        p_next, beta_next = self.momentum(*self.last, self.payload)
        return *self.last, (p_next - p) / dt - (beta + beta_next) / 2


def _estimate(case: Case, motion: _RandomMotion, noise: float, **choices: Any) -> Any:
    """Return (Program, its constant inputs, its outputs after CYCLES cycles).

    The constant inputs are two noises, (nv,), the prior 3 and the drift 0, (10,).
    """
    program, nv = case.program(**choices), case.model.nv
    (memory,) = (port.shape for port in program.inputs if port.name == "memory")
    noises = np.full(nv, noise), np.full(nv, noise)
    more = *noises, np.full(10, 3.0), np.zeros(10)
    result = program(*motion.last, np.zeros(nv), 0.0, *more, np.zeros(memory))
    for _ in range(CYCLES):
        dt = case.rng.uniform(0.5, 1.0)
        q, qd, tau = motion.move(dt)
        result = program(q, qd, tau, dt, *more, result.memory_next)
    return program, more, result


def exact_efforts_show_the_payload(case: Case) -> Pairs:
    """p(pi) = p(estimate), beta(pi) = beta(estimate) in any state, after exact data"""
    choices = {"joint_friction": True, "joint_springs": True}
    motion = _RandomMotion(case, **choices)
    payload = _estimate(case, motion, EXACT, **choices)[2].payload
    state = motion.state()
    expected = motion.momentum(*state, motion.payload)
    yield from zip(motion.momentum(*state, payload), expected, strict=True)


def the_first_cycle_shows_nothing(case: Case) -> Pairs:
    """payload = 0, covariance = diag(prior² + drift² dt), after the first call"""
    program, nv = case.program(), case.model.nv
    (memory,) = (port.shape for port in program.inputs if port.name == "memory")
    prior, noise = case.rng.uniform(1, 2, 10), np.ones(nv)
    state = case.q, case.qd, case.rng.normal(size=nv), 0.1
    first = program(*state, noise, noise, prior, np.ones(10), np.zeros(memory))
    yield first.payload, np.zeros(10)
    yield first.covariance, np.diag(prior**2 + 0.1)
    yield [first.used, first.changed, first.mismatch], np.zeros(3)


def covariances_shrink_with_data(case: Case) -> Pairs:
    """covariance = covariance.T, 0 <= covariance <= diag(prior²), for drift 0"""
    covariance = _estimate(case, _RandomMotion(case), 0.1)[2].covariance
    least = np.linalg.eigvalsh(covariance)[0]
    most = np.linalg.eigvalsh(covariance - 9.0 * np.eye(10))[-1]
    yield covariance, covariance.T
    yield [min(least, 0.0), max(most, 0.0)], np.zeros(2)


def a_cycle_without_time_leaves_the_payload(case: Case) -> Pairs:
    """dt = 0: payload and covariance stay, used = changed = 0"""
    motion = _RandomMotion(case)
    program, more, last = _estimate(case, motion, 0.1)
    strange = 1e3 * case.rng.normal(size=case.model.nv)
    state = *motion.state(), strange, 0.0
    result = program(*state, *more, last.memory_next)
    yield result.payload, last.payload
    yield result.covariance, last.covariance
    yield [result.used, result.changed], np.zeros(2)


def drift_widens_what_data_do_not_show(case: Case) -> Pairs:
    """covariance = diag(prior² + drift² t), after a time t of noise alone"""
    program, nv = case.program(), case.model.nv
    (memory,) = (port.shape for port in program.inputs if port.name == "memory")
    prior, drift = case.rng.uniform(1, 2, (2, 10))
    more = np.full(nv, 1e9), np.full(nv, 1e9), prior, drift
    motion = _RandomMotion(case)
    result = program(*motion.last, np.zeros(nv), 0.0, *more, np.zeros(memory))
    for dt in (0.5, 0.25):
        q, qd, tau = motion.move(dt)
        result = program(q, qd, tau, dt, *more, result.memory_next)
    yield result.covariance, np.diag(prior**2 + 0.75 * drift**2)


PAYLOAD_LAWS = (
    exact_efforts_show_the_payload,
    the_first_cycle_shows_nothing,
    covariances_shrink_with_data,
    a_cycle_without_time_leaves_the_payload,
    drift_widens_what_data_do_not_show,
)
