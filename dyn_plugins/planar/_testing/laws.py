"""Laws of planar chains, objects and tasks: each yields pairs that must agree.

A law takes a trial: a solver under test with its system and a random state. The pairs
are of arrays or numbers; errors of builds and calls of Programs pass through.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dyn_core.planar import FREE, GUIDED, LINE, problems
from dyn_core.planar.objects.objects import PlanarObject
from dyn_core.problems import Signature
from dyn_core.solving.offers import Law
from dyn_core.testing.case import Pairs, derivative
from dyn_plugins.planar._testing.cases import ChainTrial, ObjectTrial, TaskTrial
from dyn_plugins.planar._testing.chains import angle_rows, link_directions, mass_matrix

LONG = 1e9  # a window so long that errors of links are not corrected [s]


def torques_do_work_at_their_angles(case: ChainTrial) -> Pairs:
    """power of F - F(0) = sum of tau omega;  torques add no total force"""
    program = case.program()
    more = program(case.x, case.v, case.tau) - program(case.x, case.v, 0 * case.tau)
    omega = np.einsum("ijk,jk->i", angle_rows(case.model, case.x), case.v)
    yield (more * case.v).sum(), case.tau @ omega
    yield more.sum(axis=0), np.zeros(2)


def resistance_only_takes(case: ChainTrial) -> Pairs:
    """power of rolling resistance and drag <= 0;  gravity pulls at the weights"""
    program, still = case.program(), np.zeros_like(case.v)
    weight = np.outer(case.model.weights, case.model.gravity)
    yield program(case.x, still, 0 * case.tau), weight
    taken = program(case.x, case.v, 0 * case.tau) - weight
    yield float((taken * case.v).sum() <= 1e-12), 1.0


def chains_keep_their_constraints(case: ChainTrial) -> Pairs:
    """r . (a_i - a_{i+1}) = e, alpha = alpha_w if kept;  a = a_w, s . a = s . a_w"""
    chain, constraints = case.model, case.model.constraints
    result = case.program()(case.x, case.v, case.F)
    kept = 1.0 - result.dropped
    r, _ = link_directions(chain, case.x)
    e = (np.diff(case.v, axis=0) ** 2).sum(axis=1) / np.array(chain.lengths)
    stretch = -(r * np.diff(result.a, axis=0)).sum(axis=1)
    yield stretch * kept[:-1, 0], e * kept[:-1, 0]
    for i, kind in enumerate(constraints.kind):
        s, a_w = np.array(constraints.s[i]), np.array(constraints.a_w[i])
        if kind == GUIDED:
            yield result.a[i], a_w
        if kind == LINE:
            yield s @ result.a[i], s @ a_w
    alpha = np.einsum("ijk,jk->i", angle_rows(chain, case.x), result.a)
    yield result.alpha, alpha
    active = np.array(constraints.active, float) * kept[:, 1]
    yield active * result.alpha, active * np.array(constraints.alpha_w)


def supports_carry_what_is_missing(case: ChainTrial) -> Pairs:
    """sum of M a = F + supports;  free joints have no support, lines one along s"""
    chain = case.model
    result = case.program()(case.x, case.v, case.F)
    momentum = mass_matrix(chain) @ result.a
    yield momentum.sum(axis=0), (case.F + result.reaction).sum(axis=0)
    for i, kind in enumerate(chain.constraints.kind):
        s = np.array(chain.constraints.s[i])
        if kind == FREE:
            yield result.reaction[i], np.zeros(2)
        if kind == LINE:
            yield s[0] * result.reaction[i, 1] - s[1] * result.reaction[i, 0], 0.0


def _jumps(case: ChainTrial) -> tuple[np.ndarray, np.ndarray]:
    constraints = case.model.constraints
    jump = case.rng.normal(size=case.x.shape)
    return jump, case.rng.normal(size=case.model.n) * np.array(constraints.active)


def impacts_change_momentum(case: ChainTrial) -> Pairs:
    """M (v_next - v) = impulses, in sum;  loss = |v_next - v|² / 2 in M

    Guided joints change by their jumps, joints on a line by theirs along s.
    """
    jump, turn = _jumps(case)
    result = case.program()(case.x, case.v, jump, turn)
    change, M = result.v_next - case.v, mass_matrix(case.model)
    yield (M @ change).sum(axis=0), result.impulse.sum(axis=0)
    yield result.loss, 0.5 * (change * (M @ change)).sum()
    for i, kind in enumerate(case.model.constraints.kind):
        s = np.array(case.model.constraints.s[i])
        if kind == GUIDED:
            yield change[i], jump[i]
        if kind == LINE:
            yield s @ change[i], s @ jump[i]


def a_second_impact_changes_nothing(case: ChainTrial) -> Pairs:
    """without jumps links, guides and lines are kept already:  v_next = v"""
    jump, turn = 0 * case.v, np.zeros(case.model.n)
    program = case.program()
    once = program(case.x, case.v, jump, turn).v_next
    yield program(case.x, once, jump, turn).v_next, once


def jacobian_blocks_are_responses(case: ChainTrial) -> Pairs:
    """J_ij F_j adds up to the change of a_i;  J_ji = J_ij.T"""
    J = case.program()(case.x)
    a = case.other("chain_recursion")
    change = a(case.x, case.v, case.F).a - a(case.x, case.v, 0 * case.F).a
    yield np.einsum("ijkl,jl->ik", J, case.F), change
    yield J, J.transpose(1, 0, 3, 2)


def torques_turn_angles(case: ChainTrial) -> Pairs:
    """S tau = change of alpha;  S = S.T"""
    S = case.program()(case.x)
    forces, a = case.other("chain_forces"), case.other("chain_recursion")
    loads = [forces(case.x, case.v, tau) for tau in (case.tau, 0 * case.tau)]
    one, two = (a(case.x, case.v, F).alpha for F in loads)
    yield S @ case.tau, one - two
    yield S, S.T


def torques_reach_their_accelerations(case: ChainTrial) -> Pairs:
    """alpha(F + torques) of the chain without active joints = alpha_w"""
    chain = case.model
    constraints = chain.constraints
    result = case.other("chain_recursion")(case.x, case.v, case.F)
    active = np.array(constraints.active, float) * (1.0 - result.dropped[:, 1])
    tau = case.program()(case.x, case.v, case.F)
    forces = case.other("chain_forces")
    more = forces(case.x, case.v, tau) - forces(case.x, case.v, 0 * tau)
    free = case.other("chain_recursion", inputs=["active"])
    alpha = free(case.x, case.v, case.F + more, active=np.zeros(chain.n)).alpha
    yield active * alpha, active * np.array(constraints.alpha_w)


def chain_steps_start_as_they_accelerate(case: ChainTrial) -> Pairs:
    """d x_next / d dt = v,  d v_next / d dt = a  at dt = 0, errors left alone"""
    options = getattr(case.solver, "options", {})
    choices = {"window": LONG} if "window" in options else {}
    program, (x, v, tau) = case.program(**choices), (case.x, case.v, case.tau)
    modes = () if case.solver.signature == problems.CHAIN_STEP else (0 * tau, 0 * tau)
    F = case.other("chain_forces")(x, v, tau)
    a = case.other("chain_recursion")(x, v, F).a

    def moved(dt: float) -> np.ndarray:
        return np.array(program(x, v, *modes, tau, dt)[:2])

    if modes:
        start = np.array([x, v])
        yield 1e-2 * _slope_ahead(moved, start, 1e-4), 1e-2 * np.array([v, a])
    else:
        yield derivative(moved, 1e-4), np.array([v, a])


def _slope_ahead(
    function: Callable[[float], np.ndarray], start: np.ndarray, h: float
) -> np.ndarray:
    """Return the one-sided derivative at zero, by Richardson's extrapolation.

    start: Result of the function at zero; it is also evaluated at h, 2 h and 4 h.
    """
    one, two, four = ((function(k * h) - start) / (k * h) for k in (1, 2, 4))
    return (4 * (2 * one - two) - (2 * two - four)) / 3


def modes_are_modes(case: ChainTrial) -> Pairs:
    """contact is 0 or the number of a half-plane, limit one of -1, 0, 1; loss >= 0"""
    program = case.program()
    for _ in range(4):
        result = program(*case.arguments(program))
        yield float(result.loss >= -1e-12), 1.0
        yield result.limit * (result.limit**2 - 1), 0 * result.limit
        planes = len(case.model.ground)
        whole = (result.contact == np.round(result.contact)) & (
            result.contact <= planes
        )
        yield whole.astype(float), np.ones(case.model.n)


def _power(case: ObjectTrial, energy: Any, qdd: np.ndarray) -> Pairs:
    system: PlanarObject = case.model

    def moved(t: float) -> np.ndarray:
        q = case.q + case.qd * t + qdd * t * t / 2
        return np.array(sum(energy(q, case.qd + qdd * t)))

    yield (
        derivative(moved, 1e-3),
        np.dot(system.efforts(system.parameters, case.qd, case.u), case.qd),
    )


def power_is_rate_of_object_energy(case: ObjectTrial) -> Pairs:
    """d(T + V)/dt = efforts . qd, friction included"""
    qdd = case.program()(case.q, case.qd, case.u)
    yield from _power(case, case.other("object_energy"), np.asarray(qdd))


def object_energy_is_kept(case: ObjectTrial) -> Pairs:
    """d(T + V)/dt = efforts . qd, friction included;  T is quadratic in qd"""
    qdd = case.other("object_closed_form")(case.q, case.qd, case.u)
    program = case.program()
    yield from _power(case, program, np.asarray(qdd))
    yield program(case.q, 2 * case.qd)[0], 4 * program(case.q, case.qd)[0]


def object_steps_start_as_they_accelerate(case: ObjectTrial) -> Pairs:
    """d q_next / d dt = qd,  d qd_next / d dt = qdd  at dt = 0"""
    program = case.program()
    qdd = case.other("object_closed_form")(case.q, case.qd, case.u)

    def moved(t: float) -> np.ndarray:
        return np.array(program(case.q, case.qd, case.u, t))

    yield derivative(moved, 1e-5), np.array([case.qd, qdd])


def tasks_go_on_or_end(case: TaskTrial) -> Pairs:
    """terminated is 0 or 1;  state, observation and reward are finite"""
    program = case.program()
    for _ in range(4):
        result = program(*case.arguments(program))
        yield result.terminated * (result.terminated - 1.0), 0.0
        whole = np.concatenate([result.state, result.observation, [result.reward]])
        yield float(np.isfinite(whole).all()), 1.0


LAWS: dict[Signature, tuple[Law, ...]] = {
    problems.CHAIN_FORCES: (
        torques_do_work_at_their_angles,
        resistance_only_takes,
    ),
    problems.CHAIN_ACCELERATIONS: (
        chains_keep_their_constraints,
        supports_carry_what_is_missing,
    ),
    problems.CHAIN_IMPACT: (
        impacts_change_momentum,
        a_second_impact_changes_nothing,
    ),
    problems.CHAIN_FORCE_JACOBIAN: (jacobian_blocks_are_responses,),
    problems.CHAIN_TORQUE_RESPONSE: (torques_turn_angles,),
    problems.CHAIN_TORQUES: (torques_reach_their_accelerations,),
    problems.CHAIN_STEP: (chain_steps_start_as_they_accelerate,),
    problems.CHAIN_EVENT_STEP: (
        chain_steps_start_as_they_accelerate,
        modes_are_modes,
    ),
    problems.OBJECT_DYNAMICS: (power_is_rate_of_object_energy,),
    problems.OBJECT_ENERGY: (object_energy_is_kept,),
    problems.OBJECT_STEP: (object_steps_start_as_they_accelerate,),
    problems.TASK_STEP: (tasks_go_on_or_end,),
}
