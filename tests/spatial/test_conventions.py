"""Converters: round trips, the identities behind them, and Pinocchio's own algebra."""

import inspect
import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from dyn_core.authoring import Force, Motion, RigidInertia, Transform, Vector, cross
from dyn_core.errors import ShapeError
from dyn_core.spatial import conventions as to
from dyn_core.spatial.lie import exp3

rng = np.random.default_rng(0)
V, A, W = rng.normal(size=(3, 5, 6))
Q = rng.normal(size=(5, 4))
Q /= np.linalg.norm(Q, axis=1, keepdims=True)
STILL = np.array([0.0, 0.0, 0.0, 1.0])
FREE = np.concatenate([rng.normal(size=(5, 3)), Q], axis=1)


@pytest.mark.parametrize(
    ("swap", "wrong"),
    [
        (to.swap_rows, np.ones((7, 6))),
        (to.swap_rows, np.ones(6)),
        (to.swap_matrix, np.ones((7, 6))),
        (to.swap_matrix, np.ones((6, 7))),
        (to.swap_matrix, np.ones(6)),
        (to.swap_blocks, np.ones(7)),
    ],
)
def test_arrays_without_two_halves_of_three_are_refused(swap, wrong):
    """Seven rows would change places with each other, and lose their sizes."""
    with pytest.raises(ShapeError, match="6"):
        swap(wrong)


def test_round_trips():
    """Each converter and its inverse."""
    np.testing.assert_array_equal(to.swap_blocks(to.swap_blocks(V)), V)
    M = rng.normal(size=(5, 6, 6))
    np.testing.assert_array_equal(to.swap_matrix(to.swap_matrix(M)), M)
    back = to.spatial_from_classical(to.classical_from_spatial(A, V), V)
    np.testing.assert_allclose(back, A, atol=1e-14)
    tazz = to.from_tazz_acceleration(to.tazz_acceleration(A, V), to.swap_blocks(V))
    np.testing.assert_allclose(tazz, A, atol=1e-14)
    np.testing.assert_array_equal(to.quaternion_from_wxyz(to.quaternion_to_wxyz(Q)), Q)
    qacc = to.mujoco_free_acceleration(FREE, V, A)
    np.testing.assert_allclose(
        to.from_mujoco_free_acceleration(FREE, V, qacc), A, atol=1e-13
    )


def test_batches_are_rows():
    """A row of a batch is the single case."""
    np.testing.assert_allclose(
        to.mujoco_free_acceleration(FREE, V, A)[2],
        to.mujoco_free_acceleration(FREE[2], V[2], A[2]),
    )


def test_mujoco_force_has_equal_power():
    """qfrc . qvel = tau . qd."""
    power = np.sum(to.mujoco_free_force(FREE, W) * to.mujoco_free_velocity(FREE, V), -1)
    np.testing.assert_allclose(power, np.sum(W * V, -1), atol=1e-13)


def test_mujoco_acceleration_is_the_rate_of_its_velocity():
    """d/dt (R v_lin, w) by differences along the motion."""
    from dyn_core.model.joints import Floating

    joint, h = Floating(), 1e-5
    q, v, a = (Vector(x[1].tolist()) for x in (FREE, V, A))

    def velocity(t):
        moved = joint.integrate(q, v * t + a * (t * t / 2))
        return to.mujoco_free_velocity(np.array(list(moved)), np.array(list(v + a * t)))

    rate = (velocity(h) - velocity(-h)) / (2 * h)
    wanted = to.mujoco_free_acceleration(FREE[1], V[1], A[1])
    np.testing.assert_allclose(rate, wanted, atol=1e-8)


def test_kim_adjoint_is_the_inverse_transform():
    """Ad_T X = 1; the dual Ad_T.T takes forces like X*."""
    R = np.asarray(exp3(Vector((0.3, -0.2, 0.9))), float)
    p = (0.3, -0.2, 0.5)
    X = Transform.of_pose(R, p)
    Ad = to.adjoint(R, p)
    np.testing.assert_allclose(Ad @ np.asarray(X, float), np.eye(6), atol=1e-14)
    f = Force.of(W[0].tolist())
    np.testing.assert_allclose(Ad.T @ W[0], list(X @ f), atol=1e-14)
    R_A = np.array([[2, -1, 2], [2, 2, -1], [-1, 2, 2]]) / 3
    Ad = to.adjoint(R_A, p)
    xi = np.array([0.4, -0.7, 1.1, 0.5, 0.3, -0.2])
    np.testing.assert_allclose(Ad @ xi, [
        1.23333333333333, -0.566666666666667, 0.133333333333333, 0.356666666666667,
        1.17666666666667, -0.0233333333333333], atol=1e-13)  # fmt: skip
    np.testing.assert_allclose(Ad.T @ xi, [
        -0.636666666666667, -0.236666666666667, 1.28333333333333, 0.6, -0.1, 0.1],
        atol=1e-13)  # fmt: skip


def test_kim_ad():
    """ad_V X of the reference vectors is V x X."""
    a = Motion.of((0.4, -0.7, 1.1, 0.5, 0.3, -0.2))
    b = Motion.of((0.2, 0.5, -0.3, 1, -0.4, 0.6))
    wanted = [-0.34, 0.34, 0.34, 0.03, 0.97, 0.73]
    np.testing.assert_allclose(list(cross(a, b)), wanted, atol=1e-14)


def test_pinocchio_algebra():
    """Motion, force, inertia and action matrices with the blocks swapped."""
    pin = pytest.importorskip("pinocchio", reason="pin is not installed")
    R = np.asarray(exp3(Vector((0.3, -0.2, 0.9))), float)
    p = np.array([0.3, -0.2, 0.5])
    X, M = Transform.of_pose(R, p), pin.SE3(R, p)
    np.testing.assert_allclose(
        to.swap_matrix(M.toActionMatrixInverse()), np.asarray(X, float), atol=1e-14
    )
    m, f = Motion.of(V[0].tolist()), Force.of(W[0].tolist())
    there = M.actInv(pin.Motion(to.swap_blocks(V[0])))
    np.testing.assert_allclose(to.swap_blocks(there.vector), list(X @ m), atol=1e-14)
    there = M.actInv(pin.Force(to.swap_blocks(W[0])))
    np.testing.assert_allclose(to.swap_blocks(there.vector), list(X @ f), atol=1e-14)
    I = RigidInertia.of(2.5, (0.1, -0.2, 0.3), np.diag((0.05, 0.06, 0.07)).tolist())
    peer = pin.Inertia(2.5, np.array((0.1, -0.2, 0.3)), np.diag((0.05, 0.06, 0.07)))
    np.testing.assert_allclose(
        to.swap_matrix(peer.matrix()), np.asarray(I, float), atol=1e-14
    )


# Poses and inertias of a batch, in our form.
POSE = np.concatenate([rng.normal(size=(5, 3)), np.where(Q[:, 3:] < 0, -Q, Q)], axis=1)


def _inertias():
    made = []
    for k in range(5):
        G = np.random.default_rng(k).normal(size=(3, 3))
        Ic = np.trace(G @ G.T) * np.eye(3) - G @ G.T
        made.append(RigidInertia.of(1.0 + k, G[0].tolist(), Ic.tolist()))
    return made


RIGID = _inertias()
I6 = np.array([np.asarray(I, float) for I in RIGID])
COM = rng.normal(size=(5, 3))
G = np.array([0.3, -0.2, -9.81])
J = rng.normal(size=(5, 6, 8))


def _same(got, wanted, tol=1e-12):
    np.testing.assert_allclose(
        np.asarray(got, float), np.asarray(wanted, float), atol=tol, rtol=tol
    )


ROUND = {
    "tazz_velocity": V, "tazz_force": W, "tazz_inertia": I6, "tazz_jacobian": J,
    "pinocchio_motion": V, "pinocchio_force": W, "pinocchio_inertia": I6,
    "pinocchio_parameters": I6, "pinocchio_action_inverse": I6, "pinocchio_jacobian": J,
    "pinocchio_free_velocity": V, "ros_twist": V, "ros_wrench": W, "ros_inertia": I6,
    "kim_pose": POSE, "mujoco_pose": POSE, "mujoco_free_position": POSE,
    "tazz_transform": I6,
}  # fmt: skip


@pytest.mark.parametrize("name", ROUND)
def test_there_and_back(name):
    """from_peer_what undoes peer_what, and a row of a batch is the single case."""
    x = ROUND[name]
    there = getattr(to, name)(x)
    _same(getattr(to, f"from_{name}")(there), x)
    _same(getattr(to, name)(x[2]), there[2])
    assert not np.allclose(np.ravel(there)[:6], np.ravel(x)[:6])


PLACED = {
    "mujoco_cvel": (V,), "mujoco_cacc": (A, G), "mujoco_cfrc": (W,),
    "mujoco_cinert": (I6,),
}  # fmt: skip


@pytest.mark.parametrize("name", PLACED)
def test_there_and_back_at_the_com(name):
    """The same for what MuJoCo sees from the tree's com."""
    x, *more = PLACED[name]
    there = getattr(to, name)(POSE, COM, x, *more)
    _same(getattr(to, f"from_{name}")(POSE, COM, there, *more), x)
    _same(getattr(to, name)(POSE[2], COM[2], x[2], *more), there[2])


def test_there_and_back_with_more_arguments():
    """Converters that take a pose, a velocity, or give several parts."""
    _same(to.from_tazz_pose(*to.tazz_pose(POSE)), POSE)
    _same(to.from_ros_pose(*to.ros_pose(POSE)), POSE)
    _same(to.pose_of_parts(*to.pose_parts(POSE)), POSE)
    _same(to.from_ros_accel(to.ros_accel(A, V), to.ros_twist(V)), A)
    there = to.pinocchio_classical_acceleration(A, V)
    back = to.from_pinocchio_classical_acceleration(there, to.pinocchio_motion(V))
    _same(back, A)
    _same(to.from_mujoco_xfrc(POSE, COM, to.mujoco_xfrc(POSE, COM, W)), W)
    for what, x in (("velocity", V), ("force", W)):
        there = getattr(to, f"mujoco_free_{what}")(POSE, x)
        _same(getattr(to, f"from_mujoco_free_{what}")(POSE, there), x)
    B = to.mujoco_free_columns(POSE)
    _same((B @ V[..., None])[..., 0], to.mujoco_free_velocity(POSE, V))
    _same(B[2], to.mujoco_free_columns(POSE[2]))
    free = {1: POSE}
    there = to.mujoco_jacobian(POSE, J, free)
    _same(to.from_mujoco_jacobian(POSE, *there, free), J)
    _same(to.tazz_jacobian(to.tazz_jacobian(J, (1,)), (1,)), J)
    _same(to.from_mujoco_inertia(*to.mujoco_inertia(I6)), I6)
    m, c, Ic = to.inertia_parts(I6)
    _same(to.inertia_of_parts(m, c, Ic), I6)
    full = to.mujoco_full_inertia(I6)
    _same(to.from_mujoco_full_inertia(m, c, full), I6)
    _same(to.from_adjoint(to.adjoint(*to.pose_parts(POSE))) @ to.adjoint(
        *to.pose_parts(POSE)), np.broadcast_to(np.eye(6), (5, 6, 6)))  # fmt: skip


SEVERAL = {
    "classical_from_spatial": (A, V), "spatial_from_classical": (A, V),
    "pose_of_parts": (to.rotation(Q), COM), "inertia_of_parts": to.inertia_parts(I6),
    "adjoint": (to.rotation(Q), COM), "from_ros_pose": (COM, Q),
    "from_tazz_articulated_bias": (W, I6, V),
    "tazz_velocity_product": (A, V, I6, W), "from_tazz_velocity_product": (A, V, I6, W),
    "tazz_articulated_bias": (W, I6, V), "mujoco_free_velocity": (POSE, V),
    "from_mujoco_free_velocity": (POSE, V), "mujoco_free_acceleration": (POSE, V, A),
    "from_mujoco_free_acceleration": (POSE, V, A), "mujoco_xfrc": (POSE, COM, W),
    "from_mujoco_inertia": (COM[:, 0], COM, Q, COM), "from_mujoco_xfrc": (POSE, COM, W),
    **{f"{way}mujoco_{what}": (POSE, COM, V) for way in ("", "from_")
       for what in ("cvel", "cfrc")},
    **{f"{way}mujoco_cacc": (POSE, COM, A, np.tile(G, (5, 1))) for way in ("", "from_")},
    "mujoco_cinert": (POSE, COM, I6),
    "from_mujoco_cinert": (POSE, COM, rng.normal(size=(5, 10))),
}  # fmt: skip


@pytest.mark.parametrize("name", SEVERAL)
def test_batches_broadcast(name):
    """A single argument beside batches of the others counts for each row."""
    values = SEVERAL[name]
    for choice in product((False, True), repeat=len(values)):
        pairs = list(zip(choice, values, strict=True))
        rows = [np.repeat(x[:1], 5, axis=0) if single else x for single, x in pairs]
        got = getattr(to, name)(*(x[0] if single else x for single, x in pairs))
        wanted = getattr(to, name)(*rows)
        _same(got, wanted[0] if all(choice) else wanted)


@pytest.mark.parametrize("choice", [*product((False, True), repeat=3)])
def test_batches_of_jacobians_broadcast(choice):
    """The same for Jacobians of poses and of positions of a free joint."""
    values = POSE, J, FREE
    pairs = list(zip(choice, values, strict=True))
    q, jac, free = (x[0] if single else x for single, x in pairs)
    q5, jac5, free5 = (np.repeat(x[:1], 5, axis=0) if s else x for s, x in pairs)
    count = 1 if all(choice) else 5
    there = to.mujoco_jacobian(q, jac, {1: free})
    _same(
        there, np.squeeze(np.array(to.mujoco_jacobian(q5, jac5, {1: free5}))[:, :count])
    )
    back = to.from_mujoco_jacobian(q, jac[..., :3, :], jac[..., 3:, :], {1: free})
    wanted = to.from_mujoco_jacobian(q5, jac5[:, :3], jac5[:, 3:], {1: free5})
    _same(back, np.squeeze(wanted[:count]))


def test_inertia_parts_are_those_of_the_type():
    """m, c, Ic and the ten parameters agree with RigidInertia's; no mass, no com."""
    m, c, Ic = to.inertia_parts(I6)
    for k, I in enumerate(RIGID):
        _same(m[k], I.m)
        _same(c[k], list(I.c))
        _same(Ic[k], np.asarray(I.Ic, float))
        _same(to.pinocchio_parameters(I6)[k], I.parameters)
        ros = to.ros_inertia(I6)[k]
        _same(ros[4:], np.asarray(I.Ic, float)[np.triu_indices(3)])
        _same(ros[:4], [I.m, *I.c])
    assert not np.any(to.inertia_parts(np.zeros((6, 6)))[1])


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1.0, np.pi - 1e-9, np.pi])
def test_quaternions_of_matrices(angle):
    """rotation undoes quaternion at every angle; w >= 0."""
    for axis in (
        *np.eye(3),
        -np.eye(3)[1],
        np.array((0.6, 0.0, -0.8)),
        np.ones(3) / 3**0.5,
    ):
        q = np.array([*(np.sin(angle / 2) * axis), np.cos(angle / 2)])
        got = to.quaternion(to.rotation(q))
        _same(abs(got @ q), 1)
        _same(to.rotation(got), to.rotation(q), 1e-14)
        assert got[3] >= 0
    _same(to.quaternion(to.rotation(POSE[:, 3:])), POSE[:, 3:])


def _transforms():
    return [
        Transform.of_pose(R, p.tolist())
        for R, p in zip(*to.pose_parts(POSE), strict=True)
    ]


def test_tazz_maps():
    """Section 0.2: V = P v, A = P a + k, F = P f, X_T = P X P, X* = P X_T^-T P."""
    P = np.block([[np.zeros((3, 3)), np.eye(3)], [np.eye(3), np.zeros((3, 3))]])
    k = np.concatenate([np.cross(V[:, :3], V[:, 3:]), np.zeros((5, 3))], axis=1)
    _same(to.classical_term(V), k)
    _same(to.tazz_velocity(V), V @ P)
    _same(to.tazz_acceleration(A, V), A @ P + k)
    _same(to.tazz_force(W), W @ P)
    _same(to.tazz_inertia(I6), P @ I6 @ P)
    for X, q in zip(_transforms(), POSE, strict=True):
        r, R = to.tazz_pose(q)
        rx = np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])
        X_T = np.block([[R.T, -R.T @ rx], [np.zeros((3, 3)), R.T]])
        _same(to.tazz_transform(X), X_T)
        _same(to.from_tazz_transform(X_T), np.asarray(X, float))
        _same(to.tazz_force_transform(X), X_T.T)
        _same(np.asarray(X.force_matrix(), float), P @ np.linalg.inv(X_T).T @ P)


def test_tazz_articulated():
    """I_T = P IA P; P pA = Z + I_T k: both give the same force."""
    for k in range(5):
        M = rng.normal(size=(6, 6))
        IA, pA, v, a = M @ M.T, W[k], V[k], A[k]
        f = IA @ a + pA
        Z = to.tazz_articulated_bias(pA, IA, v)
        I_T = to.tazz_inertia(IA)
        _same(I_T @ to.tazz_acceleration(a, v) + Z, to.tazz_force(f))
        _same(to.swap_blocks(pA), Z + I_T @ to.classical_term(v))
        _same(to.from_tazz_articulated_bias(Z, I_T, to.tazz_velocity(v)), pA)


def test_tazz_velocity_product():
    """C_pc = P c + k_c - X k_p: both give the same acceleration."""
    for k, X in enumerate(_transforms()):
        c, v_p, v_c, a_p, S_qdd = V[k], W[k], A[k - 1], A[k], W[k - 1]
        a_c = np.asarray(X, float) @ a_p + c + S_qdd
        C = to.tazz_velocity_product(c, v_c, X, v_p)
        A_c = (
            to.tazz_transform(X) @ to.tazz_acceleration(a_p, v_p)
            + C
            + to.swap_blocks(S_qdd)
        )
        _same(A_c, to.tazz_acceleration(a_c, v_c))
        Vs = (to.tazz_velocity(v_c), to.tazz_velocity(v_p))
        _same(to.from_tazz_velocity_product(C, Vs[0], to.tazz_transform(X), Vs[1]), c)


def test_pinocchio_poses_inertias_and_transforms():
    """XYZQUAT, toDynamicParameters and both action matrices."""
    pin = pytest.importorskip("pinocchio", reason="pin is not installed")
    for k, X in enumerate(_transforms()):
        R, p = to.pose_parts(POSE[k])
        M = pin.SE3(R, p)
        _same(abs(pin.SE3ToXYZQUAT(M)[3:] @ POSE[k, 3:]), 1)
        _same(pin.XYZQUATToSE3(POSE[k]).homogeneous, to.kim_pose(POSE[k]))
        _same(M.toActionMatrix(), to.swap_matrix(to.adjoint(R, p)))
        _same(M.toActionMatrixInverse(), to.pinocchio_action_inverse(X))
        _same(to.from_pinocchio_action(M.toActionMatrix()), np.asarray(X, float))
        m, c, Ic = to.inertia_parts(I6[k])
        peer = pin.Inertia(float(m), c, Ic)
        _same(peer.matrix(), to.pinocchio_inertia(I6[k]))
        _same(peer.toDynamicParameters(), to.pinocchio_parameters(I6[k]))
        _same(to.from_pinocchio_parameters(peer.toDynamicParameters()), I6[k])
        _same(peer.vxiv(pin.Motion(to.pinocchio_motion(V[k]))).vector,
              to.pinocchio_force(_cross_force(V[k], I6[k] @ V[k])))  # fmt: skip


def _cross_force(v, f):
    return np.array(list(cross(Motion.of(v.tolist()), Force.of(f.tolist()))), float)


AXIS = np.array((0.6, 0.0, 0.8))
PLACE = np.array((0.2, -0.3, 0.4, *POSE[0, 3:]))  # of the second body in the first


def _two_bodies(q, qd, qdd):
    """Return pose, v, a and J of a floating body and of one on a hinge, by hand."""
    at_hinge = Transform.of_pose(*to.pose_parts(PLACE))
    turn = np.asarray(exp3(Vector((AXIS * q[7]).tolist())), float)
    X = Transform.of_pose(turn, (0.0, 0.0, 0.0)) @ at_hinge
    M, S = np.asarray(X, float), np.array([*AXIS, 0, 0, 0])
    v0, a0 = qd[:6], qdd[:6]
    v1 = M @ v0 + S * qd[6]
    bias = cross(Motion.of(v1.tolist()), Motion.of((S * qd[6]).tolist()))
    a1 = M @ a0 + S * qdd[6] + np.array(list(bias), float)
    R, p = to.pose_parts(q[:7])
    R1, p1 = X.pose
    place = to.pose_of_parts(R @ np.asarray(R1, float), p + R @ np.array(list(p1)))
    first = (q[:7], v0, a0, np.hstack([np.eye(6), np.zeros((6, 1))]))
    return first, (place, v1, a1, np.column_stack([M, S]))


STATE = (np.array([*POSE[1], 0.7]), rng.normal(size=7), rng.normal(size=7))


def test_pinocchio_tree():
    """A free flyer with a hinge: v, a, classical a, Jacobians, LOCAL."""
    pin = pytest.importorskip("pinocchio", reason="pin is not installed")
    model = pin.Model()
    one = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "free")
    place = pin.XYZQUATToSE3(PLACE)
    two = model.addJoint(one, pin.JointModelRevoluteUnaligned(AXIS), place, "hinge")
    data = model.createData()
    q, qd, qdd = STATE
    rates = [np.array([*to.pinocchio_free_velocity(x[:6]), x[6]]) for x in (qd, qdd)]
    pin.forwardKinematics(model, data, q, *rates)
    pin.computeJointJacobians(model, data, q)
    for i, (pose, v, a, J) in zip((one, two), _two_bodies(*STATE), strict=True):
        _same(data.oMi[i].homogeneous, to.kim_pose(pose))
        _same(data.v[i].vector, to.pinocchio_motion(v))
        _same(data.a[i].vector, to.pinocchio_motion(a))
        classical = pin.getClassicalAcceleration(model, data, i, pin.LOCAL)
        _same(classical.vector, to.pinocchio_classical_acceleration(a, v))
        theirs = pin.getJointJacobian(model, data, i, pin.LOCAL)
        _same(theirs, to.pinocchio_jacobian(J, (0,)))
        _same(to.from_pinocchio_jacobian(theirs, (0,)), J)


def _mujoco(inertias):
    mujoco = pytest.importorskip("mujoco", reason="mujoco is not installed")

    def numbers(x):
        return " ".join(repr(float(value)) for value in x)

    def inertial(I):
        m, c, _ = to.inertia_parts(I)
        full = numbers(to.mujoco_full_inertia(I))
        return (
            f'<inertial pos="{numbers(c)}" mass="{float(m)!r}" fullinertia="{full}"/>'
        )

    place = to.mujoco_pose(PLACE)
    xml = f"""<mujoco><option gravity="{numbers(G)}"/><worldbody>
        <body name="one"><freejoint/>{inertial(inertias[0])}
        <body name="two" pos="{numbers(place[:3])}" quat="{numbers(place[3:])}">
        <joint type="hinge" axis="{numbers(AXIS)}"/>{inertial(inertias[1])}
        </body></body></worldbody></mujoco>"""
    model = mujoco.MjModel.from_xml_string(xml)
    return mujoco, model, mujoco.MjData(model)


def _moving(mujoco, model, data):
    """Set the state, with forces from outside; give both bodies by hand."""
    q, qd, _ = STATE
    data.qpos[:] = [*to.mujoco_free_position(q[:7]), q[7]]
    data.qvel[:] = [*to.mujoco_free_velocity(q[:7], qd[:6]), qd[6]]
    data.xfrc_applied[1:] = rng.normal(size=(2, 6))
    mujoco.mj_forward(model, data)
    mujoco.mj_rnePostConstraint(model, data)
    a0 = to.from_mujoco_free_acceleration(q[:7], qd[:6], data.qacc[:6])
    return _two_bodies(q, qd, np.array([*a0, data.qacc[6]]))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("place", [(0, 1), (1, 0), (0, 2), (1, 1)])
def test_mujoco_inertias_of_numbers_that_are_not_finite(place, bad):
    """They are no finite moments, in whichever triangle; the other bodies stay."""
    both = np.tile(I6[0], (2, 1, 1))
    both[(0, *place)] = bad
    try:
        moments = to.mujoco_inertia(both).inertia
    except np.linalg.LinAlgError:
        return
    assert np.isnan(moments[0]).all()
    _same(moments[1], to.mujoco_inertia(I6[0]).inertia)


def test_mujoco_inertias():
    """body_mass, ipos, iquat, inertia of the loaded model, and cinert."""
    mujoco, model, data = _mujoco(I6)
    bodies = _moving(mujoco, model, data)
    com = data.subtree_com[1]
    for k, (pose, *_) in enumerate(bodies):
        i = k + 1
        fields = (model.body_mass[i], model.body_ipos[i], model.body_iquat[i],
                  model.body_inertia[i])  # fmt: skip
        _same(to.from_mujoco_inertia(*fields), I6[k])
        got = to.mujoco_inertia(I6[k])
        _same(got.mass, fields[0])
        _same(got.ipos, fields[1])
        _same(got.inertia, fields[3])
        _same(data.cinert[i], to.mujoco_cinert(pose, com, I6[k]))
        _same(to.from_mujoco_cinert(pose, com, data.cinert[i]), I6[k])


def test_mujoco_motions():
    """xpos, xquat, cvel, cacc and mj_jac."""
    mujoco, model, data = _mujoco(I6)
    com = None
    for k, (pose, v, a, J) in enumerate(_moving(mujoco, model, data)):
        i, com = k + 1, data.subtree_com[1]
        _same(data.xpos[i], pose[:3])
        _same(abs(data.xquat[i] @ to.mujoco_pose(pose)[3:]), 1)
        _same(data.cvel[i], to.mujoco_cvel(pose, com, v))
        _same(data.cacc[i], to.mujoco_cacc(pose, com, a, G))
        jacp, jacr = np.zeros((2, 3, model.nv))
        mujoco.mj_jac(model, data, jacp, jacr, data.xpos[i], i)
        ours = to.mujoco_jacobian(pose, J, {0: STATE[0][:7]})
        _same(ours.jacp, jacp)
        _same(ours.jacr, jacr)
        _same(to.from_mujoco_jacobian(pose, jacp, jacr, {0: STATE[0][:7]}), J)
    assert com is not None


def test_mujoco_forces():
    """xfrc_applied, cfrc_ext, cfrc_int, and what they are at the free joint."""
    mujoco, model, data = _mujoco(I6)
    first, second = _moving(mujoco, model, data)
    com, total = data.subtree_com[1], np.zeros(model.nv)
    f_ext = []
    for k, (pose, _, _, J) in enumerate((first, second)):
        c = model.body_ipos[k + 1]
        f = to.from_mujoco_xfrc(pose, c, data.xfrc_applied[k + 1])
        _same(data.cfrc_ext[k + 1], to.mujoco_cfrc(pose, com, f))
        f_ext.append(f)
        total += np.concatenate([J[:, :6].T @ f, [J[:, 6] @ f]])
    theirs = np.zeros(model.nv)
    for i in (1, 2):
        force, torque = data.xfrc_applied[i, :3], data.xfrc_applied[i, 3:]
        mujoco.mj_applyFT(model, data, force, torque, data.xipos[i], i, theirs)
    _same(to.from_mujoco_free_force(STATE[0][:7], theirs[:6]), total[:6])
    _same(theirs[6], total[6])
    pose, v, a, _ = second
    g = np.concatenate([np.zeros(3), to.rotation(pose[3:]).T @ G])
    f_int = I6[1] @ (a - g) + _cross_force(v, I6[1] @ v) - f_ext[1]
    _same(data.cfrc_int[2], to.mujoco_cfrc(pose, com, f_int))


def test_the_table_names_what_is_there():
    """docs/conventions.md names every public function, and none that is not there."""
    page = Path(__file__).parents[2] / "docs" / "conventions.md"
    named = set(re.findall(r"`(\w+)\(\)`", page.read_text(encoding="utf-8")))
    named -= {"peer_what", "from_peer_what"}
    functions = {n for n in to.__all__ if inspect.isfunction(getattr(to, n))}
    assert named == functions
    for name in functions:
        assert getattr(to, name).__doc__


@pytest.mark.parametrize("n", [3, 7, 18])
def test_velocities_of_a_whole_robot_are_refused(n):
    with pytest.raises(ShapeError, match=r"shape \(\.\.\., 6\), of one body"):
        to.pinocchio_free_velocity(np.zeros(n))


_WHOLE_Q, _WHOLE_V = np.ones(39), np.ones(38)


@pytest.mark.parametrize(
    ("convert", "arguments"),
    [
        (to.mujoco_pose, [_WHOLE_Q]),
        (to.mujoco_free_position, [_WHOLE_Q]),
        (to.from_mujoco_free_position, [_WHOLE_Q]),
        (to.mujoco_free_position, [_WHOLE_Q[:3]]),
        (to.mujoco_free_velocity, [_WHOLE_Q, _WHOLE_V[:6]]),
        (to.mujoco_free_velocity, [FREE[0], _WHOLE_V]),
        (to.from_mujoco_free_velocity, [FREE[0], _WHOLE_V]),
        (to.mujoco_free_velocity, [V[0], FREE[0]]),
        (to.mujoco_free_force, [FREE[0], _WHOLE_V]),
        (to.mujoco_jacobian, [_WHOLE_Q, np.ones((6, 38))]),
        *[
            (convert, [FREE[0], np.zeros(3), x, *more])
            for x in (V[0][:4], np.ones(8))
            for convert, more in (
                (to.mujoco_cvel, ()),
                (to.from_mujoco_cvel, ()),
                (to.mujoco_cacc, (np.zeros(3),)),
                (to.from_mujoco_cacc, (np.zeros(3),)),
                (to.mujoco_cfrc, ()),
                (to.from_mujoco_cfrc, ()),
                (to.mujoco_xfrc, ()),
                (to.from_mujoco_xfrc, ()),
            )
        ],
        (to.quaternion_to_wxyz, [FREE[0]]),
        (to.quaternion_from_wxyz, [FREE[0]]),
        (to.rotation, [FREE[0]]),
        (to.pose_parts, [_WHOLE_Q]),
        (to.kim_pose, [_WHOLE_Q]),
        (to.ros_pose, [_WHOLE_Q]),
        (to.from_ros_pose, [FREE[0], FREE[0]]),
        (to.classical_from_spatial, [_WHOLE_V, _WHOLE_V]),
        (to.spatial_from_classical, [A[0], _WHOLE_V]),
    ],
)
def test_coordinates_of_a_whole_robot_are_refused(convert, arguments):
    """Positions of joints would be taken for a part of the quaternion, and mixed."""
    with pytest.raises(ShapeError, match=r"of one body or free joint, as \w+\[:\d\]"):
        convert(*arguments)


@pytest.mark.parametrize("free", [0, True, None, "0"])
def test_columns_of_free_joints_are_a_sequence(free):
    """`free=0` may mean the first column or none; it was Python's TypeError."""
    for convert in (to.pinocchio_jacobian, to.from_tazz_jacobian):
        with pytest.raises(ShapeError, match=r"free: wanted .* \(0,\) of a floating"):
            convert(np.zeros((6, 8)), free=free)


def test_columns_of_free_joints_do_not_count_from_the_end():
    """`free=(-7,)` swapped columns that belong to no free joint."""
    J = np.zeros((6, 8))
    for k in (-7, -1, 3):
        with pytest.raises(ShapeError, match=rf"free: wanted .* 0 to 2, got {k}"):
            to.tazz_jacobian(J, (k,))
        with pytest.raises(ShapeError, match=rf"free: wanted .* 0 to 2, got {k}"):
            to.mujoco_jacobian(POSE[0], J, {k: POSE[0]})
        with pytest.raises(ShapeError, match=rf"free: wanted .* 0 to 2, got {k}"):
            to.from_mujoco_jacobian(POSE[0], J[:3], J[3:], {k: POSE[0]})


def test_what_is_no_array_is_told_as_what_it_is(shipped):
    """A Model before the Jacobian, a row that is too short, a column that is none."""
    arm, J = shipped["arm7"], np.eye(6, 7)
    with pytest.raises(
        ShapeError, match=r"J: wanted shape .*6, n\), of one body, got .*arm7"
    ):
        to.pinocchio_jacobian(arm, J)
    with pytest.raises(ShapeError, match=r"q: wanted numbers of .*7\), got .*arm7"):
        to.mujoco_jacobian(arm, J)
    with pytest.raises(ShapeError, match="x: wanted numbers"):
        to.pinocchio_motion([[1, 2, 3], [1]])
    with pytest.raises(ShapeError, match="free: wanted first of six columns, 0 to 1"):
        to.pinocchio_jacobian(J, arm.neutral())


@pytest.mark.parametrize("text", [["a"] * 6, [None] * 6, ["1"] * 6])
def test_what_is_no_number_is_not_converted(text):
    """Text came back in another order."""
    with pytest.raises(ShapeError, match=r"x: wanted numbers of shape \(..., 6\)"):
        to.pinocchio_free_velocity(text)


def test_a_matrix_where_a_pose_is_wanted_leads_to_its_converter():
    """forward_kinematics returns matrices; mujoco_jacobian takes seven numbers."""
    with pytest.raises(ShapeError, match=r"q: .*; a matrix by from_kim_pose\(q\)"):
        to.mujoco_jacobian(np.eye(4), np.ones((6, 3)))
    q = to.from_kim_pose(np.eye(4))
    assert to.mujoco_jacobian(q, np.ones((6, 3))).jacp.shape == (3, 3)


@pytest.mark.parametrize(
    ("convert", "arguments", "message"),
    [
        (to.quaternion, [STILL], r"R: wanted shape \(..., 3, 3\).*got \(4,\)"),
        (to.quaternion, [np.eye(4)], r"R: wanted shape \(..., 3, 3\)"),
        (to.pose_of_parts, [STILL, np.zeros(3)], r"R: wanted shape \(..., 3, 3\)"),
        (to.pose_of_parts, [np.eye(3), STILL], r"p: wanted shape \(..., 3\)"),
        (to.from_tazz_pose, [np.zeros(4), np.eye(3)], r"p: wanted shape"),
        (to.from_kim_pose, [np.eye(3)], r"T: wanted shape \(..., 4, 4\)"),
        (to.adjoint, [np.eye(4), np.zeros(3)], r"R: wanted shape \(..., 3, 3\)"),
        (to.adjoint, [np.eye(3), STILL], r"p: wanted shape \(..., 3\)"),
        (to.from_adjoint, [np.eye(4)], r"Ad: wanted shape \(..., 6, 6\)"),
        (to.inertia_parts, [np.eye(5)], r"I: wanted shape \(..., 6, 6\)"),
        (to.mujoco_inertia, [np.zeros(10)], r"I: wanted shape \(..., 6, 6\)"),
        (to.mujoco_full_inertia, [np.eye(3)], r"I: wanted shape \(..., 6, 6\)"),
        (to.pinocchio_parameters, [np.eye(7)], r"I: wanted shape \(..., 6, 6\)"),
        (to.inertia_of_parts, [1.0, STILL, np.eye(3)], r"c: wanted shape \(..., 3\)"),
        (to.inertia_of_parts, [1.0, np.zeros(3), 1.0], r"Ic: wanted shape"),
        (to.from_pinocchio_parameters, [np.zeros(9)], r"ten: wanted shape \(..., 10\)"),
        (to.from_pinocchio_parameters, [np.zeros(11)], r"ten: wanted shape"),
        (to.from_ros_inertia, [np.zeros(9)], r"ten: wanted shape \(..., 10\)"),
        (to.from_mujoco_full_inertia, [1, [0] * 3, [1] * 3], r"fullinertia: wanted"),
        (
            to.from_mujoco_inertia,
            [1, [0] * 3, STILL, [1] * 6],
            r"inertia: wanted shape",
        ),
        (to.from_mujoco_cinert, [FREE[0], [0] * 3, [1] * 9], r"cinert: wanted shape"),
        (to.mujoco_cvel, [FREE[0], [0] * 1, V[0]], r"com: wanted shape \(..., 3\)"),
        (to.mujoco_cacc, [FREE[0], [0] * 3, V[0], 9.81], r"g: wanted shape"),
        (to.mujoco_xfrc, [FREE[0], 0.1, V[0]], r"c: wanted shape \(..., 3\)"),
        (to.mujoco_jacobian, [J[0], FREE[0]], "q: wanted"),
        (to.mujoco_jacobian, [[0, 0.5, 0, -1.5, 0, 1, 0], J[0]], "of length 1.803"),
        (
            to.mujoco_free_velocity,
            [[[0] * 6 + [1], [0] * 7], V[0]],
            "a quaternion of length",
        ),
        (to.mujoco_jacobian, [FREE[0], FREE[0]], r"J: wanted shape \(..., 6, n\)"),
        (to.from_mujoco_jacobian, [FREE[0], J[0], J[0]], r"jacp: wanted shape"),
    ],
)
def test_arrays_of_another_shape_are_refused(convert, arguments, message):
    """They were an IndexError of NumPy, or gave wrong numbers."""
    with pytest.raises(ShapeError, match=message):
        convert(*arguments)


@pytest.mark.parametrize(
    "wrong", [np.ones((3, 3)), np.diag([1.0, 1, -1]), np.zeros((3, 3))]
)
def test_a_matrix_that_is_no_rotation_has_no_quaternion(wrong):
    """Also in a batch; rounded ones pass, NaN stays."""
    for R in (wrong, np.array([np.eye(3), wrong])):
        with pytest.raises(ShapeError, match="R: wanted rotation matrices"):
            to.quaternion(R)
    with pytest.raises(ShapeError, match="R: wanted rotation matrices"):
        to.pose_of_parts(wrong, np.zeros(3))
    rounded = np.round(to.rotation(POSE[:, 3:]), 3).astype(np.float32)
    _same(to.quaternion(rounded), POSE[:, 3:], 1e-3)
    unknown = np.array([np.eye(3), np.full((3, 3), np.nan)])
    assert np.isnan(to.quaternion(unknown)).any(axis=-1).tolist() == [False, True]


def test_a_quaternion_of_zeros_is_no_rotation():
    """It became the identity; NaN stays."""
    zeros = np.zeros(4)
    for q in (zeros, np.array([STILL, zeros])):
        with pytest.raises(ShapeError, match="quaternion: wanted .*, got zeros"):
            to.rotation(q)
    with pytest.raises(ShapeError, match="q: wanted .*, got a quaternion of length 0"):
        to.kim_pose(np.zeros(7))
    assert np.isnan(to.rotation(np.full(4, np.nan))).all()
    assert to.rotation(np.zeros((0, 4))).shape == (0, 3, 3)
