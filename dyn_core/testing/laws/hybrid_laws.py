"""Laws of hybrid dynamics, against dense algebra and in its limits."""

from __future__ import annotations

from typing import Any

import numpy as np

from dyn_core.testing.case import Case, Pairs


def _dense(case: Case, mask: np.ndarray, f_ext: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return tau and qdd, nv, of the partitioned equation of motion, by dense algebra.

    Given are case.qdd where prescribed, and 0.7 case.qdd + 0.3 as joint forces
    elsewhere.

    Args:
        case: Robot and state.
        mask: Whether the acceleration of each coordinate is prescribed, nv booleans.
        f_ext: External forces, (nb, 6).
    """
    nv, qdd, tau = case.model.nv, np.zeros(case.model.nv), np.zeros(case.model.nv)
    qdd[mask], tau[~mask] = (
        case.qdd[mask],
        0.7 * case.qdd[~mask] + 0.3,
    )
    H = case.other("crba")(case.q)
    C = case.other("bias", inputs=["f_ext"])(case.q, case.qd, f_ext)
    free = np.flatnonzero(~mask)
    right_side = tau[free] - C[free] - H[np.ix_(free, np.flatnonzero(mask))] @ qdd[mask]
    if len(free):
        qdd[free] = np.linalg.solve(H[np.ix_(free, free)], right_side)
    tau = np.where(mask, H @ qdd + C, tau).reshape(nv)
    return tau, qdd


def _partitions(case: Case) -> list[np.ndarray]:
    """Return masks: nothing, everything, and two random sets of coordinates."""
    nv = case.model.nv
    drawn = [case.rng.uniform(size=nv) < 0.5 for _ in range(2)]
    return [np.zeros(nv, bool), np.ones(nv, bool), *drawn]


def _names(case: Case, mask: np.ndarray) -> list[Any]:
    """Return the coordinates of a partition as the option `prescribed`."""
    model, names = case.model, []
    for name in model.joint_names:
        columns = model.v_slice(name)
        names += [
            (name, k)
            for k in range(columns.stop - columns.start)
            if mask[columns.start + k]
        ]
    return names


def hybrid_is_dense_algebra(case: Case) -> Pairs:
    """H_vv qdd_v = tau_v - C_v - H_vu qdd_u,  tau_u = H_uu qdd_u + H_uv qdd_v + C_u"""
    for mask in _partitions(case):
        tau, qdd = _dense(case, mask, case.f_ext)
        program = case.program(inputs=["f_ext"], prescribed=_names(case, mask))
        result = program(case.q, case.qd, qdd[mask], tau[~mask], case.f_ext)
        yield (
            _work(case, result.qdd_v, qdd[~mask], mask),
            np.zeros((~mask).sum()),
        )
        yield result.tau_u, tau[mask]


def _work(case: Case, result: Any, expected: Any, mask: np.ndarray) -> np.ndarray:
    """Return H_vv times the error of the accelerations `result` against `expected`."""
    free = np.flatnonzero(~mask)
    H = case.other("crba")(case.q)[np.ix_(free, free)]
    return H @ (np.asarray(result) - expected)


def joint_friction_enters_hybrid(case: Case) -> Pairs:
    """With joint_friction, tau_u grows and tau_v shrinks by it"""
    mask = _partitions(case)[2]
    names = _names(case, mask)
    without_friction = case.program(prescribed=names)
    with_friction = case.program(prescribed=names, joint_friction=True)
    friction = case.other("bias", joint_friction=True)(case.q, case.qd)
    friction = friction - case.other("bias")(case.q, case.qd)
    tau = case.qdd
    one = with_friction(case.q, case.qd, case.qdd[mask], tau[~mask] + friction[~mask])
    two = without_friction(case.q, case.qd, case.qdd[mask], tau[~mask])
    yield one.tau_u, two.tau_u + friction[mask]
    yield _work(case, one.qdd_v, two.qdd_v, mask), np.zeros((~mask).sum())


def hybrid_steps_start_as_hybrid_dynamics(case: Case) -> Pairs:
    """(qd_next - qd)/dt -> (qdd_u, qdd_v) and the joint forces -> tau_u as dt -> 0"""
    mask = _partitions(case)[2]
    tau, qdd = _dense(case, mask, case.f_ext)
    program = case.program(inputs=["f_ext"], prescribed=_names(case, mask))
    H = case.other("crba")(case.q)
    scale = 1 / max(1.0, float(np.abs(qdd).max(initial=0.0)))
    rates = []
    for n in (1, 2, 4, 8):
        dt = 1e-3 * scale / n
        state = case.q, case.qd, qdd[mask], tau, dt, case.f_ext
        _, after, tau_next = program(*state)
        rates.append(np.concatenate([H @ (after - case.qd) / dt, tau_next]))
    for order in (1, 2, 3):
        p = 2**order
        rates = [(p * b - a) / (p - 1) for a, b in zip(rates, rates[1:], strict=False)]
    yield rates[0] * scale, np.concatenate([H @ qdd, tau]) * scale


def the_mask_chooses(case: Case) -> Pairs:
    """The result for each mask is hybrid dynamics of that partition"""
    program = case.program(inputs=["f_ext"])
    for mask in _partitions(case):
        tau, qdd = _dense(case, mask, case.f_ext)
        inputs = np.where(mask, qdd, 7.0), np.where(mask, -7.0, tau)
        chosen = mask.astype(float)
        result = program(case.q, case.qd, chosen, *inputs, case.f_ext)
        yield result[0], tau
        H = case.other("crba")(case.q)
        yield H @ (result[1] - qdd), np.zeros(len(qdd))
