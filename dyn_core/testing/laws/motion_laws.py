"""Laws of the motion of bodies and of joint reactions."""

from __future__ import annotations

from typing import Any

import numpy as np

from dyn_core.model.coordinates import join_force, split_q, split_v
from dyn_core.spatial import Force, Vector, conventions
from dyn_core.testing.case import Case, Pairs
from dyn_core.testing.laws.response_laws import body_jacobians


def bodies_move_as_jacobians_say(case: Case) -> Pairs:
    """v_i = J_i qd;  a_i is linear in qdd with J_i;  offset a_i = true a_i - X a_g"""
    v, a = case.program()(case.q, case.qd, case.qdd)
    J = body_jacobians(case)
    yield v, np.array([M @ case.qd for M in J]).reshape(v.shape)
    _, rest = case.program()(case.q, case.qd, 0 * case.qdd)
    yield a - rest, np.array([M @ case.qdd for M in J]).reshape(a.shape)
    _, offset = case.program(gravity="offset")(case.q, case.qd, case.qdd)
    yield a - offset, _fields(case)
    _, classical = case.program(acceleration="classical")(case.q, case.qd, case.qdd)
    yield classical, conventions.classical_from_spatial(a, v)


def bodies_are_where_frames_are(case: Case) -> Pairs:
    """Poses of bodies are those of forward_kinematics, for links at a body's frame."""
    poses, _ = case.program()(case.q)
    frames = case.other("forward_kinematics")(case.q)
    for name, pose in zip(case.model.frame_names, frames, strict=True):
        frame = case.model.frame(name)
        if frame.body and np.allclose(np.asarray(frame.X, float), np.eye(6)):
            yield poses[frame.body - 1], pose


def body_jacobians_give_velocities(case: Case) -> Pairs:
    """J_i qd = X_0_i v_i: velocities in world axes about the world's origin."""
    poses, J = case.program()(case.q)
    v, _ = case.other("body_motion")(case.q, case.qd, case.qdd)
    for pose, J_i, motion in zip(poses, J, v, strict=True):
        R, p = pose[:3, :3], pose[:3, 3]
        spin, speed = R @ motion[:3], R @ motion[3:]
        yield J_i @ case.qd, np.concatenate([spin, speed + np.cross(p, spin)])


def _fields(case: Case) -> np.ndarray:
    """Return gravity as an acceleration in each body's coordinates, (nb, 6)."""
    model, X = case.model, [np.eye(6)]
    parts = split_q(model, Vector(case.q.tolist()))
    for i in model.bodies:
        XJ = np.asarray(model.joint[i].X(parts[i]), float)
        X.append(XJ @ np.asarray(model.Xtree[i], float) @ X[model.parent[i]])
    g = np.array(list(model.a_grav), float)
    return np.array([x @ g for x in X[1:]]).reshape(-1, 6)


def frames_accelerate_with_their_bodies(case: Case) -> Pairs:
    """X_frame a_i = J qdd + (dJ/dt) qd of the frame"""
    frame = case.model.frame(case.frame)
    if frame.body == 0:
        return
    _, a = case.program()(case.q, case.qd, case.qdd)
    J = case.other("jacobian")(case.q)
    bias = case.other("frame_bias_acceleration")(case.q, case.qd)
    X = np.asarray(frame.X, float)
    yield X @ a[frame.body - 1], J @ case.qdd + bias


def reactions_work_like_joint_forces(case: Case) -> Pairs:
    """S_i.T f_i + armature qdd = tau_i, so that J-wise sums give ID"""
    f, _ = case.program(inputs=["f_ext"])(case.q, case.qd, case.qdd, case.f_ext)
    tau = case.other("rnea", inputs=["f_ext"])(case.q, case.qd, case.qdd, case.f_ext)
    yield _power_by_joint(case, f) + _rotor_forces(case), tau


def _power_by_joint(case: Case, f: np.ndarray) -> np.ndarray:
    """Return the sum of ratio.T S_i.T f_i by independent coordinate, (nv,)."""
    model, parts = case.model, [Vector(())]
    q = split_q(model, Vector(case.q.tolist()))
    for i in model.bodies:
        force = Force.of(f[i - 1].tolist())
        parts.append(model.joint[i].S(q[i]).T @ force)
    return np.asarray(join_force(model, parts), float)


def _rotor_forces(case: Case) -> np.ndarray:
    """Return the joint forces of the rotors, (nv,)."""
    model = case.model
    qdd = split_v(model, Vector(case.qdd.tolist()))
    parts = [Vector(()), *(model.armature[i] * qdd[i] for i in model.bodies)]
    return np.asarray(join_force(model, parts), float)


def net_forces_accelerate(case: Case) -> Pairs:
    """f_i - sum_children X.T f_j + f_ext_i + weight_i = f_net_i = d/dt of momentum"""
    f, net = case.program(inputs=["f_ext"])(case.q, case.qd, case.qdd, case.f_ext)
    v, a = case.other("body_motion")(case.q, case.qd, case.qdd)
    model, g = case.model, _fields(case)
    left = f + case.f_ext
    q = split_q(model, Vector(case.q.tolist()))
    for i in model.bodies:
        I = np.asarray(model.I[i], float)
        left[i - 1] += I @ g[i - 1]
        p = model.parent[i]
        if p:
            X = np.asarray(model.joint[i].X(q[i]) @ model.Xtree[i], float)
            left[p - 1] -= X.T @ f[i - 1]
        h = I @ v[i - 1]
        momentum = I @ a[i - 1] + _cross_force(v[i - 1], h)
        yield net[i - 1], momentum
    yield left, net
    _, heavy = case.program(gravity="offset")(case.q, case.qd, case.qdd)
    weights = [np.asarray(model.I[i], float) @ g[i - 1] for i in model.bodies]
    yield net - heavy, np.array(weights).reshape(net.shape)


def _cross_force(v: np.ndarray, h: np.ndarray) -> np.ndarray:
    ang = np.cross(v[:3], h[:3]) + np.cross(v[3:], h[3:])
    return np.concatenate([ang, np.cross(v[:3], h[3:])])


def parts_of_reactions(case: Case) -> Pairs:
    """active + constraint = whole;  the constraint part does no work"""
    whole = case.program()(case.q, case.qd, case.qdd).f
    active = case.program(part="active")(case.q, case.qd, case.qdd).f
    bound = case.program(part="constraint")(case.q, case.qd, case.qdd).f
    yield active + bound, whole
    yield _power_by_joint(case, bound), np.zeros(case.model.nv)


def reactions_are_one_force_everywhere(case: Case) -> Pairs:
    """Socket, link and world coordinates of f have the body's power with its motion"""
    motion = case.rng.normal(size=6)
    q = split_q(case.model, Vector(case.q.tolist()))
    body = case.program()(case.q, case.qd, case.qdd).f
    seen = {
        axes: case.program(coordinates=axes)(case.q, case.qd, case.qdd).f
        for axes in ("socket", "link", "world")
    }
    X: list[Any] = [np.eye(6)]
    for i in case.model.bodies:
        XJ = np.asarray(case.model.joint[i].X(q[i]), float)
        Xtree = np.asarray(case.model.Xtree[i], float)
        X.append(XJ @ Xtree @ X[case.model.parent[i]])
        link = np.asarray(case.model.frames[case.model.child_links[i]].X, float)
        power = motion @ body[i - 1]
        yield np.linalg.solve(XJ, motion) @ seen["socket"][i - 1], power
        yield link @ motion @ seen["link"][i - 1], power
        yield np.linalg.solve(X[i], motion) @ seen["world"][i - 1], power


def articulated_bodies_feel(case: Case) -> Pairs:
    """F = reactions of the motion;  A classical;  qdd = FD;  F = Ihat A + Zhat"""
    result = case.program(inputs=["f_ext"])(case.q, case.qd, case.qdd, case.f_ext)
    fd = case.other("aba", inputs=["f_ext"])
    yield result.qdd, fd(case.q, case.qd, case.qdd, case.f_ext)
    motion = case.other("body_motion", acceleration="classical")
    yield result.A, motion(case.q, case.qd, result.qdd).a
    reactions = case.other("joint_reactions", inputs=["f_ext"])
    yield result.F, reactions(case.q, case.qd, result.qdd, case.f_ext).f
    yield result.Ihat, np.swapaxes(result.Ihat, 1, 2)
    single = [c.bodies[0] - 1 for c in case.model.clusters if len(c.bodies) == 1]
    expected = np.einsum("nij,nj->ni", result.Ihat, result.A) + result.Zhat
    yield expected[single], result.F[single]
