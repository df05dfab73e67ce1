"""Laws of dynamics with loops: each yields pairs that must agree (dense algebra).

A law takes a case: a solver under test, its robot, and a random state q, qd, qdd. It
yields pairs (left, right) of arrays that must agree; a pair (float(condition), 1.0)
checks a condition. ID and FD are inverse and forward dynamics, H the mass matrix, C the
bias force, J a Jacobian; (+) and (-) are integrate and difference of positions. In laws
of FD the case's qdd serves as joint forces tau. f, A and bias are the outputs of
loop_constraints: error, Jacobian and bias of the loops' rows; lambda are the constraint
forces. y are the independent coordinates, qd = G yd; H_y, C_y and g_y are their
inertia, bias and gravity. Each law ties its loop itself, to a copy of the case: a rod
(with_rod), or a rolling ball (with_ball). If no joint moves it, only its closure f = 0,
or a trivial pair, is checked, except by constraints_have_their_rates and
rolling_rows_are_speeds. Laws of a rod take qd projected on A qd = 0, except for
constraints_have_their_rates and loops_obey_the_kkt_system.

Pairs are computed when they are read. Errors of the builds and calls of Programs, such
as UnsupportedError for a robot that a solver refuses, pass through.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dyn_core import problems as kinds
from dyn_core.model import Model
from dyn_core.model.coordinates import split_q
from dyn_core.model.loops.loop_constraints import make_loop
from dyn_core.problems import Signature
from dyn_core.spatial import Matrix, Transform, Vector
from dyn_core.testing.case import Case, Pairs, derivative

_RADIUS = 0.2  # of the ball that rolls [m]


def with_rod(case: Case) -> Case:
    """Return a copy of the case, its last link tied by a rod, closed at its position.

    The rod, 0.71 m long, leads from the link's origin to a fixed point, by (0.5, 0.4,
    0.3) in base axes. Its row is zero if no coordinate moves the link. The copy shares
    the case's arrays and rng.
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


def with_ball(case: Case) -> Case:
    """Return a copy of the case with a ball about its last link that rolls along x.

    The plane touches the ball at the case's position; the row is of velocities only.
    The copy shares the case's arrays and rng.
    """
    model, frame = case.model, case.model.frame(case.frame)
    pose = _pose(model, case.q, frame.body)
    _, p = (frame.X @ pose if frame.body else frame.X).pose
    plane = Transform(Matrix.identity(3), p - Vector((0.0, 0.0, _RADIUS)))
    ball = make_loop(
        "ball", "rolling_ball", case.frame, at_a=plane, radius=_RADIUS, axes=("x",)
    )
    result = object.__new__(Case)
    result.__dict__.update(case.__dict__)
    result.model = model.with_loops(ball)
    return result


def _pose(model: Model, q: np.ndarray, body: int) -> Transform:
    """Return the Transform from the base to a body, at position q (nq,)."""
    parts, X = split_q(model, Vector(q.tolist())), [Transform.identity()]
    for i in model.bodies:
        X.append(model.joint[i].X(parts[i]) @ model.Xtree[i] @ X[model.parent[i]])
    return X[body]


def _system(case: Case) -> tuple[np.ndarray, ...]:
    """Return H, C of the open tree, and f, A, bias of loop_constraints."""
    f, A, bias = case.other("loop_constraints")(case.q, case.qd)
    H = case.other("crba")(case.q)
    C = case.other("bias")(case.q, case.qd)
    return H, C, f, A, bias


def movable(A: np.ndarray) -> bool:
    """Return whether a coordinate moves the rod: an entry of A is beyond 1e-3."""
    return bool(np.abs(A).max(initial=0.0) > 1e-3)


def closed_rates(case: Case) -> Case:
    """Return the same case, its qd replaced by its projection on A qd = 0."""
    A = case.other("loop_constraints")(case.q, case.qd)[1]
    case.qd = case.qd - np.linalg.pinv(A) @ (A @ case.qd)
    return case


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
    """H qdd + C = tau + A.T lambda,   A qdd + bias = -2 a A qd - b² f

    a and b are alpha and beta. Where no joint moves the rod, only f = 0 is checked.
    """
    case = with_rod(case)
    H, C, f, A, bias = _system(case)
    yield f, np.zeros(len(f))
    if not movable(A):
        return
    result = case.program(alpha=2.0, beta=3.0)(case.q, case.qd, case.qdd)
    yield H @ result[0] + C, case.qdd + A.T @ result[1]
    yield A @ result[0] + bias, -4.0 * (A @ case.qd) - 9.0 * f
    yield result[2], f
    yield result[3], A @ case.qd


def hybrid_loops_obey_the_kkt_system(case: Case) -> Pairs:
    """H qdd + C = tau + A.T lambda,  A qdd + bias = 0,  with results tau_u, qdd_v

    All joints but the last are prescribed; none, if the last does not move the rod.
    """
    case = closed_rates(with_rod(case))
    H, C, f, A, bias = _system(case)
    yield f, np.zeros(len(f))
    names = list(case.model.joint_names)[:-1]
    mask = np.zeros(case.model.nv, bool)
    for name in names:
        mask[case.model.v_slice(name)] = True
    if np.abs(A[:, ~mask]).max(initial=0.0) < 1e-3:
        names, mask = [], np.zeros(case.model.nv, bool)
    if not movable(A):
        return
    tau, qdd = case.qdd.copy(), case.qdd.copy()
    program = case.program(prescribed=names)
    tau[mask], qdd[~mask], x = program(case.q, case.qd, qdd[mask], tau[~mask])
    yield H @ qdd + C, tau + A.T @ x
    yield A @ qdd + bias, np.zeros(len(x))


def inverse_undoes_loops(case: Case) -> Pairs:
    """H qdd + C = tau + A.T lambda, for qdd of loop_forward_dynamics

    All joints are active but one, which has one coordinate and moves the rod.
    """
    case = closed_rates(with_rod(case))
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
    case = closed_rates(with_rod(case))
    H, C, _, A, _ = _system(case)
    if not movable(A):
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
        passive = [n for n in single if abs(A[0, case.model.v_slice(n)][0]) > 1e-3]
        if not passive:
            yield C, C
            return
        index = case.model.v_slice(passive[0]).start
        qdd = case.other("loop_forward_dynamics")(case.q, case.qd, case.qdd)[0]
        active = [n for n in names if n != passive[0]]
        program = case.program(joint_friction=True, active=active)
        tau_a, x = program(case.q, case.qd, qdd, case.qdd[index : index + 1])
        tau = np.insert(tau_a, index, case.qdd[index])
        yield H @ qdd + C + friction, tau + A.T @ x


def forces_of_loops_and_joints_balance(case: Case) -> Pairs:
    """qdd and lambda equal forward dynamics;  |force of f_loop| = |lambda|;  tau = ID

    ID is that of the open tree with the loop's force added to external ones; it is
    checked only if the rod's row is in the range of the link's Jacobian.
    """
    case = closed_rates(with_rod(case))
    _, _, f, A, _ = _system(case)
    yield f, np.zeros(len(f))
    if not movable(A):
        return
    state = case.q, case.qd, case.qdd
    result = case.program(inputs=["f_ext"])(*state, case.f_ext)
    forward = case.other("loop_forward_dynamics", inputs=["f_ext"])
    wanted = forward(*state, case.f_ext)
    yield result.qdd, wanted.qdd
    yield result.lambda_, wanted.lambda_
    yield np.linalg.norm(result.f_loop[0, 3:]), abs(result.lambda_[0])
    frame, pushed = case.model.frame(case.frame), case.f_ext.copy()
    J = case.other("jacobian", frame=case.frame)(case.q)
    link = np.linalg.lstsq(J.T, A[0] * result.lambda_[0], rcond=None)[0]
    if np.abs(J.T @ link - A[0] * result.lambda_[0]).max() > 1e-9:
        return
    yield link.shape, (6,)
    pushed[frame.body - 1] += np.asarray(frame.X).T @ link
    open_tree = Case(case.solver, case.model.without_loops(), case.engine, case.rng)
    tree = open_tree.other("rnea", inputs=["f_ext"])
    yield tree(case.q, case.qd, result.qdd, pushed), case.qdd


def _independent(case: Case) -> tuple[Case, dict[str, list[tuple[str, int]]], Any]:
    """Return a closed case with a rod, the options {"independent": ...}, and A (1, nv).

    All coordinates but one, with the largest entry of A, are independent.
    """
    case = closed_rates(with_rod(case))
    A = _system(case)[3]
    model, left_out = case.model, int(np.abs(A[0]).argmax())
    chosen = [
        (name, k)
        for name in model.joint_names
        for k in range(case.width(name))
        if model.v_slice(name).start + k != left_out
    ]
    return case, {"independent": chosen}, A


def independent_inertia_is_projected(case: Case) -> Pairs:
    """H_y = G.T H G,   A G = 0,   rows of G for independent coordinates are 1"""
    case, chosen, A = _independent(case)
    yield A @ case.qd, np.zeros(1)
    if not movable(A):
        return
    H_y, G = case.program(**chosen)(case.q)
    yield H_y, G.T @ case.other("crba")(case.q) @ G
    yield A @ G, np.zeros((1, G.shape[1]))
    yield np.delete(G, int(np.abs(A[0]).argmax()), axis=0), np.eye(G.shape[1])


def independent_bias_agrees_with_forward_dynamics(case: Case) -> Pairs:
    """H_y ydd + C_y = G.T tau, with external forces in C_y"""
    case, chosen, A = _independent(case)
    yield A @ case.qd, np.zeros(1)
    if not movable(A):
        return
    bias = case.program(inputs=["f_ext"], **chosen)(case.q, case.qd, case.f_ext)
    H_y, G = case.other("loop_independent_inertia", **chosen)(case.q)
    forward = case.other("loop_forward_dynamics", inputs=["f_ext"])
    qdd = forward(case.q, case.qd, case.qdd, case.f_ext)[0]
    y = np.delete(np.arange(case.model.nv), int(np.abs(A[0]).argmax()))
    yield H_y @ qdd[y] + bias, G.T @ case.qdd


def independent_gravity_is_projected(case: Case) -> Pairs:
    """g_y = G.T gravity = C_y at rest"""
    case, chosen, A = _independent(case)
    yield A @ case.qd, np.zeros(1)
    if not movable(A):
        return
    got = case.program(**chosen)(case.q)
    _, G = case.other("loop_independent_inertia", **chosen)(case.q)
    yield got, G.T @ case.other("gravity")(case.q)
    yield got, case.other("loop_independent_bias", **chosen)(case.q, 0 * case.qd)


def rolling_rows_are_speeds(case: Case) -> Pairs:
    """A is the row of J of the ball's point on the plane,  bias = d(A qd)/dt,  f = 0

    A gives the speed along x, J is of the open tree; f = 0 as A is of velocities only.
    """
    case = with_ball(case)
    program = case.program()
    f, A, bias = program(case.q, case.qd)
    tree = Case(case.solver, case.model.without_loops(), case.engine, case.rng)
    J = tree.other("jacobian", frame=case.frame, reference="aligned")(case.q)
    yield f, np.zeros(1)
    yield A[0], J[3] - _RADIUS * J[1]

    def speed(t: float) -> np.ndarray:
        return np.asarray(program(case.moved(t), case.qd)[1]) @ case.qd

    yield bias, derivative(speed, 2e-3)


def rolling_obeys_the_kkt_system(case: Case) -> Pairs:
    """H qdd + C = tau + A.T lambda,   A qdd + bias = -2 a A qd, for speeds"""
    case = with_ball(case)
    H, C, f, A, bias = _system(case)
    yield f, np.zeros(len(f))
    if not movable(A):
        return
    result = case.program(alpha=2.0, beta=3.0)(case.q, case.qd, case.qdd)
    yield H @ result[0] + C, case.qdd + A.T @ result[1]
    yield A @ result[0] + bias, -4.0 * (A @ case.qd)
    yield result[3], A @ case.qd


LAWS: dict[Signature, tuple[Callable[[Case], Pairs], ...]] = {
    kinds.LOOP_REACTIONS: (forces_of_loops_and_joints_balance,),
    kinds.INDEPENDENT_INERTIA: (independent_inertia_is_projected,),
    kinds.INDEPENDENT_BIAS: (independent_bias_agrees_with_forward_dynamics,),
    kinds.INDEPENDENT_GRAVITY: (independent_gravity_is_projected,),
    kinds.LOOP_CONSTRAINTS: (constraints_have_their_rates, rolling_rows_are_speeds),
    kinds.LOOP_FORWARD_DYNAMICS: (
        loops_obey_the_kkt_system,
        rolling_obeys_the_kkt_system,
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
