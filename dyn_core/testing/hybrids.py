"""Laws of hybrid dynamics, against dense algebra and at its extremes."""

from __future__ import annotations

from typing import Any

import numpy as np

from dyn_core.testing.case import Case, Pairs


def _dense(case: Case, held: np.ndarray, f_ext: Any) -> tuple[np.ndarray, np.ndarray]:
    """Solve the partitioned equation of motion with H and C of other solvers."""
    nv, qdd, tau = case.model.nv, np.zeros(case.model.nv), np.zeros(case.model.nv)
    qdd[held], tau[~held] = case.qdd[held], 0.7 * case.qdd[~held] + 0.3
    H = case.other("crba")(case.q)
    C = case.other("bias", inputs=["f_ext"])(case.q, case.qd, f_ext)
    free = np.flatnonzero(~held)
    left = tau[free] - C[free] - H[np.ix_(free, np.flatnonzero(held))] @ qdd[held]
    if len(free):
        qdd[free] = np.linalg.solve(H[np.ix_(free, free)], left)
    tau = np.where(held, H @ qdd + C, tau).reshape(nv)
    return tau, qdd


def _partitions(case: Case) -> list[np.ndarray]:
    """Give nothing, everything, and two drawn sets of coordinates."""
    nv = case.model.nv
    drawn = [case.rng.uniform(size=nv) < 0.5 for _ in range(2)]
    return [np.zeros(nv, bool), np.ones(nv, bool), *drawn]


def _names(case: Case, held: np.ndarray) -> list[Any]:
    """Give the coordinates of a partition as build takes them."""
    model, found = case.model, []
    for name in model.joint_names:
        at = model.v_slice(name)
        found += [(name, k) for k in range(at.stop - at.start) if held[at.start + k]]
    return found


def hybrid_is_dense_algebra(case: Case) -> Pairs:
    """H_vv qdd_v = tau_v - C_v - H_vu qdd_u,  tau_u = H_uu qdd_u + H_uv qdd_v + C_u"""
    for held in _partitions(case):
        tau, qdd = _dense(case, held, case.f_ext)
        program = case.program(inputs=["f_ext"], prescribed=_names(case, held))
        got = program(case.q, case.qd, qdd[held], tau[~held], case.f_ext)
        yield _work(case, got.qdd_v, qdd[~held], held), np.zeros((~held).sum())
        yield got.tau_u, tau[held]


def _work(case: Case, got: Any, wanted: Any, held: np.ndarray) -> np.ndarray:
    """Give the backward error of accelerations: H_vv times what they are off."""
    free = np.flatnonzero(~held)
    H = case.other("crba")(case.q)[np.ix_(free, free)]
    return H @ (np.asarray(got) - wanted)


def joint_friction_enters_hybrid(case: Case) -> Pairs:
    """With joint_friction, tau_u grows and tau_v shrinks by it"""
    held = _partitions(case)[2]
    names = _names(case, held)
    smooth = case.program(prescribed=names)
    rough = case.program(prescribed=names, joint_friction=True)
    friction = case.other("bias", joint_friction=True)(case.q, case.qd)
    friction = friction - case.other("bias")(case.q, case.qd)
    tau = case.qdd
    one = rough(case.q, case.qd, case.qdd[held], tau[~held] + friction[~held])
    two = smooth(case.q, case.qd, case.qdd[held], tau[~held])
    yield one.tau_u, two.tau_u + friction[held]
    yield _work(case, one.qdd_v, two.qdd_v, held), np.zeros((~held).sum())


def hybrid_steps_start_as_hybrid_dynamics(case: Case) -> Pairs:
    """(qd_next - qd)/dt -> (qdd_u, qdd_v) and taken -> tau_u as dt -> 0"""
    held = _partitions(case)[2]
    tau, qdd = _dense(case, held, case.f_ext)
    program = case.program(inputs=["f_ext"], prescribed=_names(case, held))
    H = case.other("crba")(case.q)
    scale = 1 / max(1.0, float(np.abs(qdd).max(initial=0.0)))
    rates = []
    for n in (1, 2, 4, 8):
        dt = 1e-3 * scale / n
        state = case.q, case.qd, qdd[held], tau, dt, case.f_ext
        _, after, taken = program(*state)
        rates.append(np.concatenate([H @ (after - case.qd) / dt, taken]))
    for order in (1, 2, 3):
        p = 2**order
        rates = [(p * b - a) / (p - 1) for a, b in zip(rates, rates[1:], strict=False)]
    yield rates[0] * scale, np.concatenate([H @ qdd, tau]) * scale


def the_mask_chooses(case: Case) -> Pairs:
    """Each mask gives what hybrid dynamics of that partition gives"""
    program = case.program(inputs=["f_ext"])
    for held in _partitions(case):
        tau, qdd = _dense(case, held, case.f_ext)
        given = np.where(held, qdd, 7.0), np.where(held, -7.0, tau)
        mask = held.astype(float)
        got = program(case.q, case.qd, mask, *given, case.f_ext)
        yield got[0], tau
        H = case.other("crba")(case.q)
        yield H @ (got[1] - qdd), np.zeros(len(qdd))
