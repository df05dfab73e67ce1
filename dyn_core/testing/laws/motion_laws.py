"""Laws of motion, reactions and inverse kinematics: each yields pairs that must agree.

A law takes a case: a solver under test, its robot, and a random state q, qd, qdd. It
yields pairs (left, right) of arrays that must agree; a pair (float(condition), 1.0)
checks a condition. ID and FD are inverse and forward dynamics, H the mass matrix, C the
bias force, J a Jacobian; (+) and (-) are integrate and difference of positions. In laws
of FD the case's qdd serves as joint forces tau. FK is forward kinematics.

Pairs are computed when they are read. Errors of the builds and calls of Programs, such
as UnsupportedError for a robot that a solver refuses, pass through.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dyn_core.model.coordinates import join_force, split_q, split_v
from dyn_core.problems import INVERSE_KINEMATICS
from dyn_core.spatial import Force, Matrix, Motion, Transform, Vector, conventions
from dyn_core.spatial.lie import exp_transform, log_transform, quat_matrix
from dyn_core.testing.case import Case, Pairs, derivative
from dyn_core.testing.laws.response_laws import body_jacobians

LENGTH = 0.1  # [m], option characteristic_length


def _pose(case: Case, q: Any) -> np.ndarray:
    """Return the pose of the case's frame at position q (nq,) in the world, (4, 4)."""
    kinematics = case.other("forward_kinematics", frames=[case.frame])
    return np.asarray(kinematics(q)[0])


def _errors(case: Case, q: Any, pose: np.ndarray) -> tuple[float, float]:
    """Return rotation error and distance [m] of the case's frame at q to a pose (4, 4).

    The rotation error is |R - R_pose| / sqrt(2), in the Frobenius norm.
    """
    here = _pose(case, q)
    chord = np.linalg.norm(here[:3, :3] - pose[:3, :3]) / np.sqrt(2)
    return float(chord), float(np.linalg.norm(here[:3, 3] - pose[:3, 3]))


def frames_are_where_they_are_wanted(case: Case) -> Pairs:
    """status = 0: FK(q_reached) is the pose, and the error is zero

    At the pose itself the status is 0 after 0 iterations, and q is only normalized.
    """
    program = case.program()
    for _ in range(3):
        q, pose = case.arguments(program)
        result = program(q, pose)
        if result.status == 0.0:
            yield _pose(case, result.q_reached), pose
            yield result.error, np.zeros(6)
    still = program(case.q, _pose(case, case.q))
    yield still.status, 0.0
    yield still.iterations, 0.0
    yield still.q_reached, case.model.normalize(case.q)


def the_error_leads_to_the_pose(case: Case) -> Pairs:
    """T(q_reached) exp(error) = pose, wherever the pose is"""
    program = case.program()
    for pose in (_pose(case, case.model.random(case.rng)), _far(case)):
        result = program(case.q, pose)
        here = _pose(case, result.q_reached)
        left = exp_transform(Motion.of(result.error.tolist()))
        there = left @ Transform.of_pose(here[:3, :3], here[:3, 3].tolist())
        R, p = there.pose
        yield np.asarray(R, float), pose[:3, :3]
        yield np.asarray(p, float), pose[:3, 3]


def limits_hold_and_nothing_gets_farther(case: Case) -> Pairs:
    """lower <= q_reached <= upper;  the error does not grow, nor in a second call

    Poses are within reach and far away; limits are checked of joints with nq = nv. The
    error is the root of the sum of the squares of |R - R_pose| / sqrt(2) and the
    distance [m].
    """
    program, model = case.program(), case.model
    for pose in (_pose(case, model.random(case.rng)), _far(case)):
        q = program(case.q, pose).q_reached
        for i in model.independent:
            if model.joint[i].nq == model.joint[i].nv:
                part = q[model.q_slices[i]]
                lower, upper = (
                    x[model.v_slices[i]] for x in (model.lower, model.upper)
                )
                yield part, np.clip(part, lower, upper)
        again = program(q, pose).q_reached
        squares = [np.hypot(*_errors(case, x, pose)) for x in (case.q, q, again)]
        yield max(*np.diff(squares), 0.0), 0.0
        yield model.normalize(q), q


def fixed_joints_stay(case: Case) -> Pairs:
    """Joints that are fixed, and joints that do not carry the frame, stay"""
    model = case.model
    name = case.rng.choice(model.joint_names)
    q = case.program(fixed=[str(name)])(case.q, _far(case)).q_reached
    carries, i = set(), model.frame(case.frame).body
    while i > 0:
        carries.add(model.v_slices[i].start)
        i = model.parent[i]
    normal = model.normalize(case.q)
    for i in model.independent:
        if model.v_slices[i].start not in carries or model.names[i] == name:
            yield q[model.q_slices[i]], normal[model.q_slices[i]]
    yield 0.0, 0.0


def a_part_of_a_pose_is_less(case: Case) -> Pairs:
    """With `part` the error of this part does not grow, and is 0 for status 0."""
    q, pose = case.arguments(case.program())
    for part, which in (("orientation", 0), ("position", 1)):
        result = case.program(part=part)(q, pose)
        error = _errors(case, result.q_reached, pose)[which]
        before = _errors(case, q, pose)[which]
        yield max(error, before), before
        if result.status == 0.0:
            yield error, 0.0


def _far(case: Case) -> np.ndarray:
    """Draw from case.rng a pose (4, 4) with a random rotation, some 10 m away."""
    q = case.rng.normal(size=4)
    x, y, z, w = q / np.linalg.norm(q)
    axis, pose = np.array([x, y, z]), np.eye(4)
    cross = np.cross(np.eye(3), axis)
    pose[:3, :3] = np.eye(3) - 2 * w * cross + 2 * cross @ cross
    pose[:3, 3] = case.rng.normal(size=3) * 10
    return pose


LAWS = {
    INVERSE_KINEMATICS: (
        frames_are_where_they_are_wanted,
        the_error_leads_to_the_pose,
        limits_hold_and_nothing_gets_farther,
        fixed_joints_stay,
        a_part_of_a_pose_is_less,
    )
}


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
    """Poses of bodies equal forward_kinematics of the links at the bodies' frames."""
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
    """Return gravity, not its negative, in each body's coordinates, (nb, 6)."""
    model, X = case.model, [np.eye(6)]
    parts = split_q(model, Vector(case.q.tolist()))
    for i in model.bodies:
        XJ = np.asarray(model.joint[i].X(parts[i]), float)
        X.append(XJ @ np.asarray(model.Xtree[i], float) @ X[model.parent[i]])
    g = np.array(list(model.a_grav), float)
    return np.array([x @ g for x in X[1:]]).reshape(-1, 6)


def frames_accelerate_with_their_bodies(case: Case) -> Pairs:
    """X_frame a_i = J qdd + (dJ/dt) qd of the last frame"""
    frame = case.model.frame(case.frame)
    if frame.body == 0:
        return
    _, a = case.program()(case.q, case.qd, case.qdd)
    J = case.other("jacobian")(case.q)
    bias = case.other("frame_bias_acceleration")(case.q, case.qd)
    X = np.asarray(frame.X, float)
    yield X @ a[frame.body - 1], J @ case.qdd + bias


def reactions_work_like_joint_forces(case: Case) -> Pairs:
    """S_i.T f_i + armature qdd, added over the joints of a coordinate, is ID"""
    f, _ = case.program(inputs=["f_ext"])(case.q, case.qd, case.qdd, case.f_ext)
    tau = case.other("rnea", inputs=["f_ext"])(case.q, case.qd, case.qdd, case.f_ext)
    yield _power_by_joint(case, f) + _rotor_forces(case), tau


def _power_by_joint(case: Case, f: np.ndarray) -> np.ndarray:
    """Return the sum of ratio.T S_i.T f_i, (nv,); f is in body coordinates."""
    model, parts = case.model, [Vector(())]
    q = split_q(model, Vector(case.q.tolist()))
    for i in model.bodies:
        force = Force.of(f[i - 1].tolist())
        parts.append(model.joint[i].S(q[i]).T @ force)
    return np.asarray(join_force(model, parts), float)


def _rotor_forces(case: Case) -> np.ndarray:
    """Return the joint forces armature qdd of all rotors; followers' are on leaders."""
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
    """Socket, link and world coordinates of f have the body's power with a motion"""
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
    """qdd = FD;  A = a of body_motion;  F = f of joint_reactions;  F = Ihat A + Zhat

    A is classical, without offset by gravity. Clusters are left out of the last
    equation.
    """
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


def _transform(T: np.ndarray) -> Transform:
    """Return the transform from the base to a frame, from its pose (4, 4)."""
    return Transform(Matrix(T[:3, :3].T.tolist()), Vector(T[:3, 3].tolist()))


def spring_is_slope_of_its_energy(case: Case) -> Pairs:
    """(tau - g) . qd = -dV/dt at rest,   V = e.T K e / 2,   e = log(T^-1 T_ref)"""
    poses = case.other("forward_kinematics", frames=[case.frame])
    pose_ref, A = case.pose_ref(), case.rng.normal(size=(6, 6))
    K, R_ref = A @ A.T, np.array(quat_matrix(Vector(pose_ref[3:])).rows)
    target = Transform(Matrix(R_ref.T.tolist()), Vector(pose_ref[:3].tolist()))
    turns = {"aligned": np.kron(np.eye(2), R_ref), "local": np.eye(6)}
    for reference, turn in turns.items():

        def energy(t: float, turn: np.ndarray = turn) -> Any:
            X = _transform(poses(case.moved(t))[0])
            e = turn @ np.array(log_transform(target @ X.inverse))
            return e @ K @ e / 2

        program = case.program(reference=reference)
        tau = program(case.q, 0 * case.qd, pose_ref, K)
        g = case.other("gravity")(case.q)
        yield (tau - g) @ case.qd, -derivative(energy)


def damper_opposes_the_velocity(case: Case) -> Pairs:
    """the damper's share of tau is J.T D (v_ref - v), base axes"""
    J = case.other("jacobian", reference="aligned")(case.q)
    A, v_ref = case.rng.normal(size=(6, 6)), case.rng.normal(size=6)
    pose_ref, K, D = case.pose_ref(), np.eye(6), A @ A.T
    program = case.program(inputs=("v_ref", "damping"))
    taus = [program(case.q, case.qd, pose_ref, K, v_ref, c * D) for c in (1.0, 3.0)]
    yield taus[1] - taus[0], 2 * J.T @ D @ (v_ref - J @ case.qd)


def acceleration_is_rate_of_velocity(case: Case) -> Pairs:
    """a = J qdd + (dJ/dt) qd, in every reference"""
    for reference in ("local", "world", "aligned"):
        J = case.other("jacobian", reference=reference)(case.q)
        bias = case.other("frame_bias_acceleration", reference=reference)
        a = case.program(reference=reference)(case.q, case.qd, case.qdd)
        yield a, J @ case.qdd + bias(case.q, case.qd)


def singular_values_are_those_of_numpy(case: Case) -> Pairs:
    """S J = U diag(s) V.T

    S multiplies the angular rows by LENGTH. Squares of s (6,), zeros beyond nv, and of
    the product of all six are compared.
    """
    J = case.other("jacobian", reference="aligned")(case.q)
    J = J * np.array([LENGTH] * 3 + [1.0] * 3)[:, None]
    values, product = case.program()(case.q)
    wanted = np.zeros(6)
    computed = np.linalg.svd(J, compute_uv=False)
    wanted[: len(computed)] = computed
    # Squares: small singular values have the error of the largest one's square.
    yield values**2, wanted**2
    yield product**2, np.prod(wanted**2)
