"""MuJoCo: world axes, reference point at the subtree's com, quaternions w x y z.

cvel, cacc and cfrc are [angular; linear] about the com of the whole kinematic tree
(data.subtree_com of its root). Where no other meaning is stated, q is our pose of the
body in the world, (..., 7), and 6-vectors called ours are [angular; linear] in the
body's axes at its origin. Arrays of another size raise ShapeError, and so do a
quaternion of zeros and a pose whose quaternion's length is not 1 within 1e-3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from dyn_core.spatial.conventions.common import (
    classical_from_spatial,
    first_columns,
    inertia_of_parts,
    inertia_parts,
    joined,
    pose_parts,
    quaternion,
    quaternion_from_wxyz,
    quaternion_to_wxyz,
    rotation,
    sized,
    sized_matrix,
    skews,
    spatial_from_classical,
    swap_blocks,
    symmetric_entries,
    symmetric_of,
    transposed,
    turned,
)

_ORDER = ("xx", "yy", "zz", "xy", "xz", "yz")


def mujoco_pose(q: Any) -> np.ndarray:
    """Return xpos, xquat (x, y, z, qw, qx, qy, qz), (..., 7), of our pose.

    The pose is (x, y, z, qx, qy, qz, qw), (..., 7), of the body in the world.
    """
    q = sized(q, 7, "q")
    return np.concatenate([q[..., :3], quaternion_to_wxyz(q[..., 3:])], axis=-1)


def from_mujoco_pose(q: Any) -> np.ndarray:
    """Return our pose of xpos, xquat (x, y, z, qw, qx, qy, qz), (..., 7).

    The pose is (x, y, z, qx, qy, qz, qw), (..., 7), of the body in the world.
    """
    q = sized(q, 7, "q")
    return np.concatenate([q[..., :3], quaternion_from_wxyz(q[..., 3:])], axis=-1)


def mujoco_free_position(q: Any) -> np.ndarray:
    """Return MuJoCo's qpos (x, y, z, qw, qx, qy, qz) of our free joint, (..., 7).

    q: Our coordinates of the joint (x, y, z, qx, qy, qz, qw), (..., 7).
    """
    return mujoco_pose(q)


def from_mujoco_free_position(q: Any) -> np.ndarray:
    """Return our free joint's q of MuJoCo's qpos (x, y, z, qw, qx, qy, qz), (..., 7).

    Our q is (x, y, z, qx, qy, qz, qw), (..., 7).
    """
    return from_mujoco_pose(q)


def mujoco_free_velocity(q: Any, v: Any) -> np.ndarray:
    """Return MuJoCo's qvel of our free joint: linear in world, angular in body axes.

    Args:
        q: Our position of the joint (x, y, z, qx, qy, qz, qw), (..., 7).
        v: Our velocity of the joint [angular; linear], body axes, (..., 6).

    Returns:
        [linear; angular], (..., 6).
    """
    R, v = pose_parts(q)[0], sized(v, 6, "v")
    world = np.einsum("...ij,...j->...i", R, v[..., 3:])
    return joined(world, v[..., :3])


def from_mujoco_free_velocity(q: Any, qvel: Any) -> np.ndarray:
    """Return our free joint's velocity [angular; linear], (..., 6), of MuJoCo's qvel.

    Args:
        q: Our position of the joint (x, y, z, qx, qy, qz, qw), (..., 7).
        qvel: Linear in world axes, then angular in body axes, (..., 6).

    The result is in body axes.
    """
    R, qvel = pose_parts(q)[0], sized(qvel, 6, "qvel")
    body = np.einsum("...ji,...j->...i", R, qvel[..., :3])
    return joined(qvel[..., 3:], body)


def mujoco_free_columns(q: Any) -> np.ndarray:
    """Return the orthogonal matrix B with qvel = B v, (..., 6, 6), of our free joint.

    q is our position of the joint (x, y, z, qx, qy, qz, qw), (..., 7); qvel is [linear
    in world axes; angular in body axes], v our [angular; linear] in body axes.
    """
    return transposed(mujoco_free_velocity(np.asarray(q)[..., None, :], np.eye(6)))


def mujoco_free_acceleration(q: Any, v: Any, a: Any) -> np.ndarray:
    """Return MuJoCo's qacc, the rate of its qvel, of our free joint.

        d/dt (R v_lin) = R (a_lin + w x v_lin)

    Args:
        q: Our position of the joint (x, y, z, qx, qy, qz, qw), (..., 7).
        v, a: Our qd and qdd of the joint [angular; linear], body axes, (..., 6).

    Returns:
        [linear in world axes; angular in body axes], (..., 6).
    """
    return mujoco_free_velocity(q, classical_from_spatial(a, v))


def from_mujoco_free_acceleration(q: Any, v: Any, qacc: Any) -> np.ndarray:
    """Return our free joint's qdd [angular; linear], (..., 6), of MuJoCo's qacc.

    Args:
        q: Our position of the joint (x, y, z, qx, qy, qz, qw), (..., 7).
        v: Our qd of the joint [angular; linear], body axes, (..., 6).
        qacc: Rate of MuJoCo's qvel, [linear in world axes; angular in body axes], (...,
            6).
    """
    return spatial_from_classical(from_mujoco_free_velocity(q, qacc), v)


def mujoco_free_force(q: Any, tau: Any) -> np.ndarray:
    """Return MuJoCo's qfrc of our free joint's force, with equal power, (..., 6).

    Args:
        q: Our position of the joint (x, y, z, qx, qy, qz, qw), (..., 7).
        tau: Our force of the joint, [moment; force] in body axes, (..., 6).

    Returns:
        Force in world axes, then moment in body axes.
    """
    return mujoco_free_velocity(q, tau)


def from_mujoco_free_force(q: Any, qfrc: Any) -> np.ndarray:
    """Return our free joint's force [moment; force], (..., 6), of MuJoCo's qfrc.

    Args:
        q: Our position of the joint (x, y, z, qx, qy, qz, qw), (..., 7).
        qfrc: Force in world axes, then moment in body axes, (..., 6).
    """
    return from_mujoco_free_velocity(q, qfrc)


def mujoco_cvel(q: Any, com: Any, v: Any) -> np.ndarray:
    """Return data.cvel of our velocity: [angular; linear], world axes, (..., 6).

        rot = R w,   lin = R v + (R w) x (com - p)

    Args:
        q: Pose of the body in the world (x, y, z, qx, qy, qz, qw), (..., 7).
        com: data.subtree_com of its tree's root, (..., 3) [m].
        v: Velocity of the body [angular; linear], body axes, at its origin, (..., 6).
    """
    R, p = pose_parts(q)
    x, com = turned(R, sized(v, 6, "v")), sized(com, 3, "com")
    return joined(x[..., :3], x[..., 3:] + np.cross(x[..., :3], com - p))


def from_mujoco_cvel(q: Any, com: Any, cvel: Any) -> np.ndarray:
    """Return our velocity [angular; linear], (..., 6), of data.cvel.

    Inverse of mujoco_cvel, in body axes at the body's origin.

    Args:
        q: Pose of the body in the world (x, y, z, qx, qy, qz, qw), (..., 7).
        com: data.subtree_com of its tree's root, (..., 3) [m].
        cvel: data.cvel, (..., 6).
    """
    R, p = pose_parts(q)
    ang, lin = np.split(sized(cvel, 6, "cvel"), 2, axis=-1)
    com = sized(com, 3, "com")
    return turned(transposed(R), joined(ang, lin + np.cross(ang, p - com)))


def mujoco_cacc(q: Any, com: Any, a: Any, g: Any) -> np.ndarray:
    """Return data.cacc of our spatial acceleration; it includes -g.

    Args:
        q: Pose of the body in the world (x, y, z, qx, qy, qz, qw), (..., 7).
        com: data.subtree_com of its tree's root, (..., 3) [m].
        a: Spatial acceleration of the body without gravity [angular; linear], body
            axes, at its origin, (..., 6).
        g: Gravity, option.gravity, 3 [m/s²], world axes.

    Returns:
        [angular; linear] about com, world axes, (..., 6).
    """
    x = mujoco_cvel(q, com, sized(a, 6, "a"))
    return joined(x[..., :3], x[..., 3:] - sized(g, 3, "g"))


def from_mujoco_cacc(q: Any, com: Any, cacc: Any, g: Any) -> np.ndarray:
    """Return our spatial acceleration (..., 6), without gravity, of data.cacc.

    It is [angular; linear] in body axes at the body's origin.

    Args:
        q: Pose of the body in the world (x, y, z, qx, qy, qz, qw), (..., 7).
        com: data.subtree_com of its tree's root, (..., 3) [m].
        cacc: data.cacc, (..., 6), which includes -g.
        g: Gravity, option.gravity, 3 [m/s²], world axes.
    """
    x = sized(cacc, 6, "cacc")
    return from_mujoco_cvel(q, com, joined(x[..., :3], x[..., 3:] + sized(g, 3, "g")))


def mujoco_cfrc(q: Any, com: Any, f: Any) -> np.ndarray:
    """Return data.cfrc_int or cfrc_ext of our force.

        n = R n_body + (p - com) x R f

    Args:
        q: Pose of the body in the world (x, y, z, qx, qy, qz, qw), (..., 7).
        com: data.subtree_com of its tree's root, (..., 3) [m].
        f: Force on the body [moment; force], body axes, about its origin, (..., 6).

    Returns:
        [torque; force] about com, world axes, (..., 6).
    """
    R, p = pose_parts(q)
    x, com = turned(R, sized(f, 6, "f")), sized(com, 3, "com")
    return joined(x[..., :3] + np.cross(p - com, x[..., 3:]), x[..., 3:])


def from_mujoco_cfrc(q: Any, com: Any, cfrc: Any) -> np.ndarray:
    """Return our force [moment; force], (..., 6), of data.cfrc_int or cfrc_ext.

    Inverse of mujoco_cfrc, in body axes about the body's origin.

    Args:
        q: Pose of the body in the world (x, y, z, qx, qy, qz, qw), (..., 7).
        com: data.subtree_com of its tree's root, (..., 3) [m].
        cfrc: data.cfrc_int or cfrc_ext, (..., 6).
    """
    R, p = pose_parts(q)
    n, f = np.split(sized(cfrc, 6, "cfrc"), 2, axis=-1)
    return turned(transposed(R), joined(n + np.cross(sized(com, 3, "com") - p, f), f))


def mujoco_xfrc(q: Any, c: Any, f: Any) -> np.ndarray:
    """Return data.xfrc_applied: force, then torque about the body's com, world axes.

    The result is (..., 6).

    Args:
        q: Pose of the body in the world (x, y, z, qx, qy, qz, qw), (..., 7).
        c: Com in the body's frame (model.body_ipos), (..., 3) [m].
        f: Force on the body [moment; force], body axes, about its origin, (..., 6).
    """
    n, f = np.split(sized(f, 6, "f"), 2, axis=-1)
    n = n - np.cross(sized(c, 3, "c"), f)
    return swap_blocks(turned(pose_parts(q)[0], joined(n, f)))


def from_mujoco_xfrc(q: Any, c: Any, xfrc: Any) -> np.ndarray:
    """Return our force [moment; force], (..., 6), of data.xfrc_applied.

    Inverse of mujoco_xfrc, in body axes about the body's origin.

    Args:
        q: Pose of the body in the world (x, y, z, qx, qy, qz, qw), (..., 7).
        c: Com in the body's frame, (..., 3) [m].
        xfrc: data.xfrc_applied: force, then torque about the com, world axes, (..., 6).
    """
    x = turned(transposed(pose_parts(q)[0]), swap_blocks(xfrc))
    return joined(x[..., :3] + np.cross(sized(c, 3, "c"), x[..., 3:]), x[..., 3:])


class MujocoInertia(NamedTuple):
    """Inertia of a body in MuJoCo's fields.

    Attributes:
        mass: body_mass, (...) [kg].
        ipos: body_ipos: com in the body's frame, (..., 3) [m].
        iquat: body_iquat: rotation of the principal axes in the body's frame, (..., 4),
            (w, x, y, z).
        inertia: body_inertia: principal moments in the order of these axes, (..., 3)
            [kg·m²]; largest first from mujoco_inertia.
    """

    mass: np.ndarray
    ipos: np.ndarray
    iquat: np.ndarray
    inertia: np.ndarray


def mujoco_inertia(I: Any) -> MujocoInertia:
    """Return mass, com, principal axes and moments of our 6x6 inertias (..., 6, 6).

    The moments are sorted, largest first; the quaternions are (w, x, y, z), w >= 0, and
    rotate from the principal axes to the body's. The com of a body without mass is the
    origin. Ours are [angular; linear] about the body's origin in its axes. Of the
    rotational block the symmetric part counts. NaN or infinity gives NaN, or raises
    numpy's LinAlgError.
    """
    m, c, Ic = inertia_parts(I)
    moments, axes = np.linalg.eigh((Ic + transposed(Ic)) / 2)  # eigh reads one half
    moments, axes = moments[..., ::-1], axes[..., ::-1].copy()
    axes[..., 2] *= np.sign(np.linalg.det(axes))[..., None]
    return MujocoInertia(m, c, quaternion_to_wxyz(quaternion(axes)), moments)


def from_mujoco_inertia(mass: Any, ipos: Any, iquat: Any, inertia: Any) -> np.ndarray:
    """Return our 6x6 inertias about the body's origin, (..., 6, 6).

    The arguments are the fields of MujocoInertia: mass (...), com ipos (..., 3) in the
    body's frame, iquat (..., 4) from the principal axes to the body's, and the moments
    inertia (..., 3) about these axes. iquat is (w, x, y, z) and must have unit length,
    which is not checked: another length gives a wrong inertia.
    """
    R = rotation(quaternion_from_wxyz(iquat))
    Ic = (R * sized(inertia, 3, "inertia")[..., None, :]) @ transposed(R)
    return inertia_of_parts(mass, ipos, Ic)


def mujoco_full_inertia(I: Any) -> np.ndarray:
    """Return MJCF's fullinertia of our 6x6 inertias (..., 6, 6).

    The entries xx yy zz xy xz yz of the 3x3 matrix about the com along the body's axes,
    (..., 6) [kg·m²]; about the body's origin where the mass is zero.
    """
    return symmetric_entries(inertia_parts(I)[2], _ORDER)


def from_mujoco_full_inertia(mass: Any, pos: Any, fullinertia: Any) -> np.ndarray:
    """Return our 6x6 inertias (..., 6, 6) of MJCF's <inertial> without quat.

    They are about the body's origin; that they are physical is not checked.

    Args:
        mass: Masses, (...) [kg].
        pos: Centres of mass in the body's frame, (..., 3) [m].
        fullinertia: Entries xx yy zz xy xz yz of the 3x3 matrices about them along the
            body's axes, (..., 6) [kg·m²].
    """
    entries = sized(fullinertia, 6, "fullinertia")
    return inertia_of_parts(mass, pos, symmetric_of(entries, _ORDER))


def mujoco_cinert(q: Any, com: Any, I: Any) -> np.ndarray:
    """Return data.cinert: world axes, about the subtree's com, (..., 10).

    xx yy zz xy xz yz [kg·m²], then mass times (own com - subtree's com) (3), then mass.

    Args:
        q: Pose of the body in the world (x, y, z, qx, qy, qz, qw), (..., 7).
        com: data.subtree_com of its tree's root, (..., 3) [m].
        I: Our 6x6 inertias, (..., 6, 6).
    """
    R, p = pose_parts(q)
    m, c, Ic = inertia_parts(I)
    away = p + np.einsum("...ij,...j->...i", R, c) - sized(com, 3, "com")
    shifted = inertia_of_parts(m, away, R @ Ic @ transposed(R))
    six = symmetric_entries(shifted[..., :3, :3], _ORDER)
    return joined(six, m[..., None] * away, m[..., None])


def from_mujoco_cinert(q: Any, com: Any, cinert: Any) -> np.ndarray:
    """Return our 6x6 inertias, (..., 6, 6), of data.cinert.

    Without mass the result has NaN, except for the lower right block, and NumPy warns.

    Args:
        q: Pose of the body in the world (x, y, z, qx, qy, qz, qw), (..., 7).
        com: data.subtree_com of its tree's root, (..., 3) [m].
        cinert: data.cinert, world axes, about com, (..., 10): xx yy zz xy xz yz
            [kg·m²], mass times (own com - com) (3) [kg·m], mass [kg].
    """
    R, p = pose_parts(q)
    cinert = sized(cinert, 10, "cinert", dtype=float)
    m = cinert[..., 9]
    away = cinert[..., 6:9] / m[..., None]
    a, back = skews(away), transposed(R)
    Ic = symmetric_of(cinert[..., :6], _ORDER) + m[..., None, None] * (a @ a)
    c = np.einsum("...ij,...j->...i", back, away + sized(com, 3, "com") - p)
    return inertia_of_parts(m, c, back @ Ic @ R)


class PointJacobian(NamedTuple):
    """Jacobians of a point as in mj_jac: rows in world axes, (..., 3, nv) each.

    Attributes:
        jacp: Jacobian of the point's linear velocity.
        jacr: Jacobian of the body's angular velocity.
    """

    jacp: np.ndarray
    jacr: np.ndarray


def mujoco_jacobian(
    q: Any, J: Any, free: Mapping[int, Any] | None = None
) -> PointJacobian:
    """Return jacp and jacr of mj_jac at the origin of a frame, of our Jacobian.

    J is unchanged.

    Args:
        q: Pose of the frame in the world (x, y, z, qx, qy, qz, qw), (..., 7).
        J: Our Jacobian [angular; linear] in the frame's axes, (..., 6, nv).
        free: Maps the first column of each free joint to our q of that joint, (..., 7);
            None: no free joints. Their six columns are converted to MuJoCo's qvel.

    Raises:
        ShapeError: An array has another shape, or no six columns begin at a key of
            `free`.
    """
    R, J = pose_parts(q)[0], sized_matrix(J, 6, None, "J", dtype=float)
    jac = np.concatenate([R @ J[..., 3:, :], R @ J[..., :3, :]], axis=-2)
    free = free or {}
    for k in first_columns(free, jac.shape[-1]):
        moved = jac[..., k : k + 6] @ transposed(mujoco_free_columns(free[k]))
        jac = joined(jac[..., :k], moved, jac[..., k + 6 :])
    return PointJacobian(jac[..., :3, :], jac[..., 3:, :])


def from_mujoco_jacobian(
    q: Any, jacp: Any, jacr: Any, free: Mapping[int, Any] | None = None
) -> np.ndarray:
    """Return our Jacobian (..., 6, nv), in the frame's axes, of jacp and jacr.

    Its rows are [angular; linear].

    Args:
        q: Pose of the frame in the world (x, y, z, qx, qy, qz, qw), (..., 7).
        jacp, jacr: Linear and angular rows of mj_jac, world axes, (..., 3, nv) each.
        free: Maps the first column of each free joint to our q of that joint, (..., 7);
            None: no free joints. Their six columns are converted from MuJoCo's qvel.

    Raises:
        ShapeError: An array has another shape, or no six columns begin at a key of
            `free`.
    """
    back = transposed(pose_parts(q)[0])
    lin, ang = sized_matrix(jacp, 3, None, "jacp"), sized_matrix(jacr, 3, None, "jacr")
    J = np.concatenate([back @ ang, back @ lin], axis=-2)
    free = free or {}
    for k in first_columns(free, J.shape[-1]):
        moved = J[..., k : k + 6] @ mujoco_free_columns(free[k])
        J = joined(J[..., :k], moved, J[..., k + 6 :])
    return J
