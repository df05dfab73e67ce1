"""Laws of time steps and their derivatives: each yields pairs that must agree.

A law takes a case: a solver under test, its robot, and a random state q, qd, qdd. It
yields pairs (left, right) of arrays that must agree; a pair (float(condition), 1.0)
checks a condition. ID and FD are inverse and forward dynamics, H the mass matrix, C the
bias force, J a Jacobian; (+) and (-) are integrate and difference of positions. In laws
of FD the case's qdd serves as joint forces tau. A state x is (q, qd); p are parameters.

Pairs are computed when they are read. Errors of the builds and calls of Programs, such
as UnsupportedError for a robot that a solver refuses, pass through.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dyn_core import problems as kinds
from dyn_core.model import Model, parameter_paths
from dyn_core.model.coordinates import velocity_of
from dyn_core.problems import Signature
from dyn_core.solving.registry import default_registry
from dyn_core.solving.registry import solver as find
from dyn_core.spatial import Vector
from dyn_core.testing.case import Case, Pairs, derivative
from dyn_core.testing.laws.loop_laws import with_rod

_TINY = 1e-30  # complex step; it has no cancellation
_SUFFIX = "_derivatives"
_STEP = 1e-2  # length of the step in time [s]


def steps_start_as_the_equation_of_motion(case: Case) -> Pairs:
    """(q_next (-) q)/dt -> qd and (qd_next - qd)/dt -> FD(q, qd, tau) as dt -> 0"""
    program = case.program()
    scale = 1 / max(
        1.0, float(np.abs(case.other("aba")(case.q, case.qd, case.qdd)).max())
    )
    rates = []
    for n in (1, 2, 4, 8):
        dt = 1e-3 * scale / n
        q, qd = program(case.q, case.qd, case.qdd, dt)
        moved = case.model.difference(case.q, q) / dt
        rates.append(np.concatenate([moved, (qd - case.qd) / dt]))
    for order in (1, 2, 3):
        p = 2**order
        rates = [(p * b - a) / (p - 1) for a, b in zip(rates, rates[1:], strict=False)]
    qdd = case.other("aba")(case.q, case.qd, case.qdd)
    yield rates[0] * scale, np.concatenate([case.qd, qdd]) * scale


def steps_keep_quaternions(case: Case) -> Pairs:
    """q_next has unit quaternions"""
    q, _ = case.program()(case.q, case.qd, case.qdd, 1e-2)
    yield q, case.model.normalize(q)


def steps_move_as_complex_steps_say(case: Case) -> Pairs:
    """step(x + i eps dx) = x_next + i eps (A dx + B dtau + dx_dp dp)

    External forces, joint friction, springs and, if the solver has them, limit stops
    act; a solver that closes loops gets a rod. p are gravity, the com of the case's
    frame, and the path of `_joint_path`. If the step is no solver of STEP, differences
    are compared instead.
    """
    step = _step_of(case)
    if step is None:
        yield from derivatives_of_steps_are_differences(case)
        return
    if case.solver.closes_loops:
        case = _closed(case)
    paths = ["gravity", f"{case.frame}.com", *_joint_path(case)]
    choices: dict[str, Any] = {"inputs": ["f_ext"], "joint_friction": True}
    choices["joint_springs"] = True
    if "limit_stops" in getattr(case.solver, "options", {}):
        choices["limit_stops"] = True
    result = case.program(paths=paths, **choices)(*_state(case))
    expected = complex_slopes(case, step, paths, choices)
    names = "q_next", "qd_next", "A", "B", "dx_dp"
    for name, part in zip(names, expected, strict=True):
        scale = max(1.0, float(np.abs(part).max(initial=0.0)))
        yield getattr(result, name) / scale, part / scale


def derivatives_of_steps_are_differences(case: Case) -> Pairs:
    """x_next(x (+) eps dx, tau + eps dtau) = x_next (+) eps (A dx + B dtau)"""
    model, program = case.model, case.program()
    q, qd, tau, dt = case.q, case.qd, case.qdd, np.array(0.1)
    changes = case.rng.normal(size=(3, model.nv))
    start = program(q, qd, tau, dt)

    def end(eps: float) -> np.ndarray:
        dq, dqd, dtau = eps * changes
        moved = program(model.integrate(q, dq), qd + dqd, tau + dtau, dt)
        shift = model.difference(start.q_next, moved.q_next)
        return np.concatenate([shift, moved.qd_next])

    along = start.A @ changes[:2].ravel() + start.B @ changes[2]
    expected = derivative(end, 2e-3)
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    yield along / scale, expected / scale


def _closed(case: Case) -> Case:
    """Return the case with its last link tied by a rod, if a joint moves the rod."""
    tied = with_rod(case)
    A = tied.other("loop_constraints")(tied.q, tied.qd)[1]
    return tied if np.abs(A).max(initial=0.0) > 1e-3 else case


def _step_of(case: Case) -> Any:
    """Return the solver of the step that the case's solver differentiates, or None."""
    name = getattr(case.solver, "fills", {}).get("step")
    name = case.solver.name.removesuffix(_SUFFIX) if name is None else name
    return find(name) if name in default_registry().names(kinds.STEP) else None


def _state(case: Case) -> tuple[Any, ...]:
    """Return q, qd, tau, dt and f_ext, with friction and some limit stops active.

    Velocities are small, as dry friction has a slope near rest.
    """
    q, model = case.q.copy(), case.model
    single = [i for i in model.independent if model.joint[i].nv == 1]
    for i in [] if model.loops else single[::2]:
        upper = model.upper[model.v_slices[i].start]
        if np.isfinite(upper):
            q[model.q_slices[i]] = upper + 0.01
    return q, 0.02 * case.qd, case.qdd, np.array(_STEP), case.f_ext


def _joint_path(case: Case) -> list[str]:
    """Return ["NAME.damping"] of the last moving joint of the file, or []."""
    joints = {joint.name for joint in case.model.build.description.joints}
    names = [n for n in case.model.names[1:] if n in joints and case.width(n)]
    return [f"{names[-1]}.damping"] if names else []


def complex_slopes(
    case: Case, step: Any, paths: list[str], choices: dict[str, Any]
) -> tuple[np.ndarray, ...]:
    """Return a step and its derivatives by state, joint forces and parameters.

    The state is case.q, with some joints beyond their limits, and 0.02 case.qd; tau is
    case.qdd, dt 0.01 s. Inputs of `choices` must be ["f_ext"]. Results are q_next,
    qd_next, A (2 nv, 2 nv), B (2 nv, nv) and dx_dp (2 nv, np); rows are the
    displacement of q_next, then the change of qd_next.
    """
    model, (q, qd, tau, dt, f_ext) = case.model, _state(case)
    plain = {**choices, "engine": "plain"}
    program = case.build(step, **plain)

    def along(program: Any, *changes: Any, last: Any = ()) -> np.ndarray:
        more = dt, f_ext, *last
        return complex_change(model, program, (q, qd, tau), changes, more)

    units, still = np.eye(model.nv), np.zeros(model.nv)
    A = [along(program, e, still, still) for e in units]
    A += [along(program, still, e, still) for e in units]
    B, P = [along(program, still, still, e) for e in units], []
    for path in paths:
        inputs = [*choices["inputs"], path]
        by_path = case.build(step, **{**plain, "inputs": inputs})
        value = parameter_paths.value(model, path)
        for k in range(len(value)):
            change = value.astype(complex)
            change[k] += 1j * _TINY
            last = (change if len(value) > 1 else change[0],)
            P.append(along(by_path, still, still, still, last=last))
    nx = 2 * model.nv
    slopes = (np.reshape(x, (-1, nx)).T for x in (A, B, P))
    return *program(q, qd, tau, dt, f_ext), *slopes


def complex_change(
    model: Model, program: Any, state: Any, changes: Any, more: Any
) -> np.ndarray:
    """Return the state's derivative after a step along a direction, by a complex step.

    It is the displacement of q_next, then the change of qd_next, (2 nv,); `changes` are
    a displacement of q, and changes of qd and tau. `program` returns (q_next, qd_next)
    for complex numbers, as on engine plain. To add the effect of a parameter's change,
    give its value in `more` plus 1e-30j times the change.
    """
    (q, qd, tau), (dq, dqd, dtau) = state, changes
    eps = 1j * _TINY
    moved = q + eps * model.position_rate(q, dq), qd + eps * dqd, tau + eps * dtau
    q_next, qd_next = program(*moved, *more)
    start, rate = np.real(q_next), np.imag(q_next) / _TINY
    shift = velocity_of(model, Vector(start.tolist()), Vector(rate.tolist()))
    return np.concatenate([np.array(list(shift), float), np.imag(qd_next) / _TINY])


LAWS: dict[Signature, tuple[Any, ...]] = {
    kinds.STEP: (steps_start_as_the_equation_of_motion, steps_keep_quaternions),
    kinds.STEP_DERIVATIVES: (
        steps_move_as_complex_steps_say,
        derivatives_of_steps_are_differences,
    ),
}
