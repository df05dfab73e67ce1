"""To and from the conventions of other books and libraries: the only place for it.

    who          6-vectors            acceleration             quaternion  free joint
    dyn_ros      [angular; linear]    spatial                  x y z w     v body
    Kim          [angular; linear]    dV/dt of components      -           v body
                                      (equals the spatial one)
    tazz         [linear; angular]    classical                -           -
    Pinocchio    [linear; angular]    spatial; classical by    x y z w     v body
                                      its own functions
    MuJoCo       [angular; linear],   spatial, minus gravity   w x y z     linear world,
                 world axes, at the                                        angular body
                 subtree's com
    ROS          linear, angular as   linear and angular       x y z w     -
                 fields; force first

All arrays are (..., 6), (..., n); functions work on batches unless said otherwise.
Source: the conventions sections of KIM and RBDA; each identity is a test.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def swap_blocks(x: Any) -> np.ndarray:
    """Exchange angular and linear halves of the last axis; its own inverse."""
    x = np.asarray(x)
    return np.concatenate([x[..., 3:], x[..., :3]], axis=-1)


def swap_matrix(M: Any) -> np.ndarray:
    """Exchange the halves of rows and columns of 6x6 matrices; its own inverse."""
    return swap_blocks(np.swapaxes(swap_blocks(np.swapaxes(M, -1, -2)), -1, -2))


def classical_from_spatial(a: Any, v: Any) -> np.ndarray:
    """Give [angular; origin's own acceleration] of a spatial acceleration.

        r'' = a_lin + w x v

    Source: GUIDE (21), (22).
    """
    a, v = np.asarray(a), np.asarray(v)
    lin = a[..., 3:] + np.cross(v[..., :3], v[..., 3:])
    return np.concatenate([a[..., :3], lin], axis=-1)


def spatial_from_classical(a: Any, v: Any) -> np.ndarray:
    """Undo classical_from_spatial."""
    a, v = np.asarray(a), np.asarray(v)
    lin = a[..., 3:] - np.cross(v[..., :3], v[..., 3:])
    return np.concatenate([a[..., :3], lin], axis=-1)


def tazz_acceleration(a: Any, v: Any) -> np.ndarray:
    """Give tazz's [linear; angular] classical acceleration of ours.

    Args:
        a, v: Our spatial acceleration and velocity, (..., 6).
    """
    return swap_blocks(classical_from_spatial(a, v))


def from_tazz_acceleration(A: Any, V: Any) -> np.ndarray:
    """Give our spatial acceleration of tazz's A, with tazz's velocity V."""
    return spatial_from_classical(swap_blocks(A), swap_blocks(V))


def quaternion_to_wxyz(q: Any) -> np.ndarray:
    """Put the scalar first, as MuJoCo has it."""
    q = np.asarray(q)
    return np.concatenate([q[..., 3:], q[..., :3]], axis=-1)


def quaternion_from_wxyz(q: Any) -> np.ndarray:
    """Put the scalar last, as we and ROS have it."""
    q = np.asarray(q)
    return np.concatenate([q[..., 1:], q[..., :1]], axis=-1)


def rotation(q: Any) -> np.ndarray:
    """Rotation matrices (..., 3, 3) of quaternions (x, y, z, w)."""
    x, y, z, w = np.moveaxis(np.asarray(q, float), -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


def adjoint(R: Any, p: Any) -> np.ndarray:
    """Kim's Ad_T of the pose T = (R, p), 6x6: takes twists out of the moved frame.

        Ad_T = X^-1 for the Transform X of that pose

    Source: KIM (6)-(8).
    """
    R, (x, y, z) = np.asarray(R, float), p
    P = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.block([[R, np.zeros((3, 3))], [P @ R, R]])


def mujoco_free_position(q: Any) -> np.ndarray:
    """Give MuJoCo's qpos (x, y, z, qw, qx, qy, qz) of our free joint, (..., 7)."""
    q = np.asarray(q)
    return np.concatenate([q[..., :3], quaternion_to_wxyz(q[..., 3:])], axis=-1)


def mujoco_free_velocity(q: Any, v: Any) -> np.ndarray:
    """Give MuJoCo's qvel of our free joint: linear in world axes, angular in body's."""
    v = np.asarray(v)
    world = np.einsum("...ij,...j->...i", rotation(np.asarray(q)[..., 3:]), v[..., 3:])
    return np.concatenate([world, v[..., :3]], axis=-1)


def mujoco_free_acceleration(q: Any, v: Any, a: Any) -> np.ndarray:
    """Give MuJoCo's qacc, the rate of its qvel, of our qd and qdd.

    d/dt (R v_lin) = R (a_lin + w x v_lin)
    """
    return mujoco_free_velocity(q, classical_from_spatial(a, v))


def from_mujoco_free_acceleration(q: Any, v: Any, qacc: Any) -> np.ndarray:
    """Undo mujoco_free_acceleration; q and v are ours."""
    qacc = np.asarray(qacc)
    R = rotation(np.asarray(q)[..., 3:])
    body = np.einsum("...ji,...j->...i", R, qacc[..., :3])
    return spatial_from_classical(np.concatenate([qacc[..., 3:], body], axis=-1), v)


def mujoco_free_force(q: Any, tau: Any) -> np.ndarray:
    """Give MuJoCo's qfrc of our joint force [moment; force]: equal power."""
    return mujoco_free_velocity(q, tau)
