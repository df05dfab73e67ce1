"""Converters: round trips, the identities behind them, and Pinocchio's own algebra."""

import numpy as np
import pytest

from dyn_core import Force, Motion, RigidInertia, Transform, Vector, cross
from dyn_core.spatial import conventions as to
from dyn_core.spatial.lie import exp3

rng = np.random.default_rng(0)
V, A, W = rng.normal(size=(3, 5, 6))
Q = rng.normal(size=(5, 4))
Q /= np.linalg.norm(Q, axis=1, keepdims=True)
FREE = np.concatenate([rng.normal(size=(5, 3)), Q], axis=1)


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
