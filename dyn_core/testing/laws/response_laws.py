"""Laws of responses and hybrid dynamics: each yields pairs that must agree.

All compare with dense algebra, hybrid dynamics with its limits as well.

A law takes a case: a solver under test, its robot, and a random state q, qd, qdd. It
yields pairs (left, right) of arrays that must agree; a pair (float(condition), 1.0)
checks a condition. ID and FD are inverse and forward dynamics, H the mass matrix, C the
bias force, J a Jacobian; (+) and (-) are integrate and difference of positions. In laws
of FD the case's qdd serves as joint forces tau. In hybrid dynamics u are the
coordinates with prescribed accelerations, v the others, with given joint forces. Omega
is the response of a body's acceleration to a force, G the Delassus matrix, J_i the
Jacobian of body i; Omega_ii of all bodies are one result, (nb, 6, 6).

Pairs are computed when they are read. Errors of the builds and calls of Programs, such
as UnsupportedError for a robot that a solver refuses, pass through.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dyn_core import problems as kinds
from dyn_core.model.coordinates import split_q, split_v
from dyn_core.spatial import Motion, Vector
from dyn_core.testing.case import Case, Pairs


def _dense(case: Case, mask: np.ndarray, f_ext: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return (tau, qdd), (nv,) each, of the partitioned equation of motion.

    By dense algebra, from case.qdd where `mask` is True, and joint forces elsewhere.
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
    """Return four masks, (nv,): all False, all True, two drawn anew from case.rng."""
    nv = case.model.nv
    drawn = [case.rng.uniform(size=nv) < 0.5 for _ in range(2)]
    return [np.zeros(nv, bool), np.ones(nv, bool), *drawn]


def _names(case: Case, mask: np.ndarray) -> list[Any]:
    """Return a partition as the option `prescribed`: pairs (joint name, index)."""
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
    """Return H_vv (result - expected) of the coordinates that are not prescribed."""
    free = np.flatnonzero(~mask)
    H = case.other("crba")(case.q)[np.ix_(free, free)]
    return H @ (np.asarray(result) - expected)


def joint_friction_enters_hybrid(case: Case) -> Pairs:
    """With joint_friction=True friction is added to tau_u and taken from tau_v"""
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
    """The result for each mask is hybrid dynamics, whatever the unchosen inputs are"""
    program = case.program(inputs=["f_ext"])
    for mask in _partitions(case):
        tau, qdd = _dense(case, mask, case.f_ext)
        inputs = np.where(mask, qdd, 7.0), np.where(mask, -7.0, tau)
        chosen = mask.astype(float)
        result = program(case.q, case.qd, chosen, *inputs, case.f_ext)
        yield result[0], tau
        H = case.other("crba")(case.q)
        yield H @ (result[1] - qdd), np.zeros(len(qdd))


def response_is_dense_algebra(case: Case) -> Pairs:
    """dqdd = H^-1 (tau + sum_i J_i.T f_ext_i),  da_i = J_i dqdd"""
    tau, f = case.qdd, case.f_ext
    qdd, a = case.program()(case.q, tau, f)
    J = body_jacobians(case)
    H = case.other("crba")(case.q)
    pull = sum((J[i].T @ f[i] for i in range(case.model.nb)), np.zeros(case.model.nv))
    yield H @ qdd, tau + pull
    yield a, np.array([M @ qdd for M in J]).reshape(a.shape)


def body_jacobians(case: Case) -> list[np.ndarray]:
    """Return J_i, (6, nv), of each body in its own frame, at the case's q.

    Computed from unit velocities; the list has nb entries.
    """
    model, columns = case.model, []
    q = split_q(model, Vector(case.q.tolist()))
    X: list[Any] = [None]
    for i in model.bodies:
        X.append(model.joint[i].X(q[i]) @ model.Xtree[i])
    for unit in np.eye(model.nv):
        rates, v = split_v(model, Vector(unit.tolist())), [Motion.zero()]
        for i in model.bodies:
            S = model.joint[i].S(q[i])
            v.append(X[i] @ v[model.parent[i]] + S @ rates[i])
        columns.append([list(m) for m in v[1:]])
    stack = np.array(columns, float).reshape(model.nv, model.nb, 6)
    return [stack[:, i, :].T for i in range(model.nb)]


def self_responses_are_dense_algebra(case: Case) -> Pairs:
    """Omega_ii = J_i H^-1 J_i.T, for each body i"""
    omega = case.program()(case.q)
    H = case.other("crba")(case.q)
    for i, J in enumerate(body_jacobians(case)):
        yield omega[i], J @ np.linalg.solve(H, J.T)


def cross_response_is_dense_algebra(case: Case) -> Pairs:
    """Omega = J_moved H^-1 J_pushed.T;  with the links exchanged, it is transposed"""
    options = case.options(case.solver)
    names = options["moved"], options["pushed"]
    J = [case.other("jacobian", frame=name)(case.q) for name in names]
    H = case.other("crba")(case.q)
    omega = case.program()(case.q)
    yield omega, J[0] @ np.linalg.solve(H, J[1].T)
    yield case.program(moved=names[1], pushed=names[0])(case.q), omega.T


def a_virtual_force_moves_what_omega_says(case: Case) -> Pairs:
    """J (FD(df) - FD(0)) = Omega df, for a force df on the pushed link"""
    to, pushed_link = (case.options(case.solver)[key] for key in ("moved", "pushed"))
    frame = case.model.frame(pushed_link)
    if frame.body == 0:
        return
    fd = case.other("aba", inputs=["f_ext"])
    df, f = case.rng.normal(size=6), np.zeros((case.model.nb, 6))
    f[frame.body - 1] = np.asarray(frame.X, float).T @ df
    pushed = fd(case.q, case.qd, case.qdd, f) - fd(case.q, case.qd, case.qdd, 0 * f)
    J = case.other("jacobian", frame=to)(case.q)
    yield case.program()(case.q) @ df, J @ pushed


def delassus_is_dense_algebra(case: Case) -> Pairs:
    """G = J H^-1 J.T, symmetric and positive semidefinite"""
    W = case.rng.normal(size=(4, 6))
    G = case.program()(case.q, W)
    J = case.other("constraint_jacobian")(case.q, W)
    H = case.other("crba")(case.q)
    yield G, J @ np.linalg.solve(H, J.T)
    yield G, G.T
    yield min(0.0, float(np.linalg.eigvalsh(G).min())), 0.0


def _points_jacobian(case: Case) -> np.ndarray:
    """Return the Jacobian of the velocities of points in base axes, (3 points, nv)."""
    poses = case.other("forward_kinematics")(case.q)
    rows = []
    for link, point in case.options(case.solver)["points"]:
        R = poses[case.model.frame_names.index(link)][:3, :3]
        J = case.other("jacobian", frame=link, reference="aligned")(case.q)
        arm = R @ np.asarray(point)
        rows.append(J[3:] - np.cross(arm, J[:3], axisb=0, axisc=0))
    return np.concatenate(rows)


def points_respond_as_dense_algebra_says(case: Case) -> Pairs:
    """G = J H^-1 J.T for the velocities of points, positive semidefinite"""
    J = _points_jacobian(case)
    G, H = case.program()(case.q), case.other("crba")(case.q)
    yield G, J @ np.linalg.solve(H, J.T)
    yield min(0.0, float(np.linalg.eigvalsh(G).min())), 0.0


def impulses_give_points_their_velocity(case: Case) -> Pairs:
    """H (qd+ - qd) = J.T Lambda,   J qd+ + damping Lambda = velocity"""
    J, velocity = _points_jacobian(case), case.rng.normal(size=6)
    after, impulse = case.program()(case.q, case.qd, velocity)
    H, damping = case.other("crba")(case.q), case.options(case.solver)["damping"]
    yield H @ (after - case.qd), J.T @ impulse
    yield J @ after + damping * impulse, velocity


def rows_move_as_their_jacobian_says(case: Case) -> Pairs:
    """sigma_k = W_k . (v_link - v_other) = (J qd)_k

    Velocities are in reference "world". The last rows are rates of joints' coordinates.
    """
    W = case.rng.normal(size=(4, 6))
    options = case.options(case.solver)
    sigma = case.program()(case.q, W) @ case.qd
    for k, (link, other) in enumerate(options["rows"]):
        v = _world_velocity(case, link)
        if other is not None:
            v = v - _world_velocity(case, other)
        yield sigma[k], W[k] @ v
    for k, name in enumerate(options["joint_rows"], len(W)):
        rate = case.qd[case.model.v_slice(name)][0]
        rule = case.model.followers.get(name)
        yield sigma[k], rate if rule is None else rate * rule.multiplier


def _world_velocity(case: Case, link: str) -> np.ndarray:
    program = case.other("frame_velocity", frame=link, reference="world")
    return np.asarray(program(case.q, case.qd))


def lambda_inverts_the_response(case: Case) -> Pairs:
    """Lambda (J H^-1 J.T + damping) = 1, in every reference and part"""
    H = case.other("crba")(case.q)
    for reference in ("local", "world", "aligned"):
        J = case.other("jacobian", reference=reference)(case.q)
        for part, rows in (("full", J), ("angular", J[:3]), ("linear", J[3:])):
            inertia = case.program(reference=reference, part=part)(case.q)
            response = rows @ np.linalg.solve(H, rows.T) + 0.1 * np.eye(len(rows))
            yield inertia @ response, np.eye(len(rows))


LAWS = {
    kinds.RESPONSE: (response_is_dense_algebra,),
    kinds.SELF_RESPONSES: (self_responses_are_dense_algebra,),
    kinds.CROSS_RESPONSE: (
        cross_response_is_dense_algebra,
        a_virtual_force_moves_what_omega_says,
    ),
    kinds.DELASSUS: (delassus_is_dense_algebra,),
    kinds.POINT_DELASSUS: (points_respond_as_dense_algebra_says,),
    kinds.POINT_IMPULSE: (impulses_give_points_their_velocity,),
    kinds.CONSTRAINT_JACOBIAN: (rows_move_as_their_jacobian_says,),
    kinds.OPERATIONAL_INERTIA: (lambda_inverts_the_response,),
}
