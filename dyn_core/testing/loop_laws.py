"""Laws of constrained dynamics with loops, against dense algebra."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dyn_core import problems as kinds
from dyn_core.model import Model
from dyn_core.model.coordinates import split_q
from dyn_core.model.loops import make_loop
from dyn_core.problems import Signature
from dyn_core.spatial import Matrix, Transform, Vector
from dyn_core.testing.case import Case, Pairs, derivative


def with_rod(case: Case) -> Case:
    """Return the case with its last link tied by a rod, closed at the case's position.

    The rod is one row, valid for every robot with a coordinate that moves the link.
    """
    model, frame = case.model, case.model.frame(case.frame)
    pose = _pose(model, case.q, frame.body)
    X_link = frame.X @ pose if frame.body else frame.X
    _, p = X_link.pose
    anchor = Transform(Matrix.identity(3), p + Vector((0.5, 0.4, 0.3)))
    rod = make_loop("rod", "distance", case.frame, None, at_a=anchor, length=0.5**0.5)
    result = object.__new__(Case)
    result.__dict__.update(case.__dict__)
    result.model = model.with_loops(rod)
    return result


def _pose(model: Model, q: np.ndarray, body: int) -> Transform:
    """Return the transform from the base to a body."""
    parts, X = split_q(model, Vector(q.tolist())), [Transform.identity()]
    for i in model.bodies:
        X.append(model.joint[i].X(parts[i]) @ model.Xtree[i] @ X[model.parent[i]])
    return X[body]


def _system(case: Case) -> tuple[np.ndarray, ...]:
    """Return H, C, f, A and bias of a case with loops."""
    f, A, bias = case.other("loop_constraints")(case.q, case.qd)
    H = case.other("crba")(case.q)
    C = case.other("bias")(case.q, case.qd)
    return H, C, f, A, bias


def _movable(A: np.ndarray) -> bool:
    """Return whether the rod resists any coordinate; the link may be fixed."""
    return bool(np.abs(A).max(initial=0.0) > 1e-3)


def constraints_have_their_rates(case: Case) -> Pairs:
    """A qd = df/dt,   bias = d(A qd)/dt at constant qd"""
    case = with_rod(case)
    program = case.program()
    _, A, bias = program(case.q, case.qd)

    def output(t: float, k: int) -> np.ndarray:
        return np.asarray(program(case.moved(t), case.qd)[k])

    yield A @ case.qd, derivative(lambda t: output(t, 0), 2e-3)
    yield bias, derivative(lambda t: output(t, 1) @ case.qd, 2e-3)


def loops_obey_the_kkt_system(case: Case) -> Pairs:
    """H qdd + C = tau + A.T lambda,   A qdd + bias = -2 a A qd - b² f"""
    case = with_rod(case)
    H, C, f, A, bias = _system(case)
    yield f, np.zeros(len(f))
    if not _movable(A):
        return
    result = case.program(alpha=2.0, beta=3.0)(case.q, case.qd, case.qdd)
    yield H @ result[0] + C, case.qdd + A.T @ result[1]
    yield A @ result[0] + bias, -4.0 * (A @ case.qd) - 9.0 * f
    yield result[2], f
    yield result[3], A @ case.qd


def hybrid_loops_obey_the_kkt_system(case: Case) -> Pairs:
    """tau_u and lambda cause qdd_u; all of it fulfils H qdd + C = tau + A.T lambda"""
    case = with_rod(case)
    H, C, f, A, bias = _system(case)
    yield f, np.zeros(len(f))
    names = list(case.model.joint_names)[:-1]
    mask = np.zeros(case.model.nv, bool)
    for name in names:
        mask[case.model.v_slice(name)] = True
    if np.abs(A[:, ~mask]).max(initial=0.0) < 1e-3:
        names, mask = [], np.zeros(case.model.nv, bool)
    if not _movable(A):
        return
    tau, qdd = case.qdd.copy(), case.qdd.copy()
    program = case.program(prescribed=names)
    tau[mask], qdd[~mask], x = program(case.q, case.qd, qdd[mask], tau[~mask])
    yield H @ qdd + C, tau + A.T @ x
    yield A @ qdd + bias, np.zeros(len(x))


def inverse_undoes_loops(case: Case) -> Pairs:
    """Forces of all joints but one reproduce the motion of forward dynamics"""
    case = with_rod(case)
    H, C, f, A, _ = _system(case)
    yield f, np.zeros(len(f))
    single = [n for n in case.model.joint_names if case.width(n) == 1]
    passive = [n for n in single if abs(A[0, case.model.v_slice(n)][0]) > 1e-3]
    if not passive:
        return
    active = [n for n in case.model.joint_names if n != passive[0]]
    index = case.model.v_slice(passive[0]).start
    qdd = case.other("loop_forward_dynamics")(case.q, case.qd, case.qdd)[0]
    program = case.program(active=active)
    tau_a, x = program(case.q, case.qd, qdd, case.qdd[index : index + 1])
    tau = np.insert(tau_a, index, case.qdd[index])
    yield H @ qdd + C, tau + A.T @ x


def friction_enters_loops(case: Case) -> Pairs:
    """joint_friction=True takes damping and dry friction from tau, in every solver"""
    case = with_rod(case)
    H, C, _, A, _ = _system(case)
    if not _movable(A):
        yield C, C
        return
    friction = case.other("bias", joint_friction=True)(case.q, case.qd) - C
    if case.solver.signature.name == "loop_forward_dynamics":
        result = case.program(joint_friction=True)(case.q, case.qd, case.qdd)
        yield H @ result[0] + C + friction, case.qdd + A.T @ result[1]
    elif case.solver.signature.name == "loop_hybrid_dynamics":
        program = case.program(joint_friction=True, prescribed=[])
        _, qdd, x = program(case.q, case.qd, [], case.qdd)
        yield H @ qdd + C + friction, case.qdd + A.T @ x
    else:
        names = list(case.model.joint_names)
        single = [n for n in names if case.width(n) == 1]
        movable = [n for n in single if abs(A[0, case.model.v_slice(n)][0]) > 1e-3]
        if not movable:
            yield C, C
            return
        index = case.model.v_slice(movable[0]).start
        qdd = case.other("loop_forward_dynamics")(case.q, case.qd, case.qdd)[0]
        active = [n for n in names if n != movable[0]]
        program = case.program(joint_friction=True, active=active)
        tau_a, x = program(case.q, case.qd, qdd, case.qdd[index : index + 1])
        tau = np.insert(tau_a, index, case.qdd[index])
        yield H @ qdd + C + friction, tau + A.T @ x


LAWS: dict[Signature, tuple[Callable[[Case], Pairs], ...]] = {
    kinds.LOOP_CONSTRAINTS: (constraints_have_their_rates,),
    kinds.LOOP_FORWARD_DYNAMICS: (
        loops_obey_the_kkt_system,
        friction_enters_loops,
    ),
    kinds.LOOP_HYBRID_DYNAMICS: (
        hybrid_loops_obey_the_kkt_system,
        friction_enters_loops,
    ),
    kinds.LOOP_INVERSE_DYNAMICS: (
        inverse_undoes_loops,
        friction_enters_loops,
    ),
}
