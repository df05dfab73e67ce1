"""Pinocchio: [linear; angular] in LOCAL axes, spatial accelerations, x y z w.

Its pose as seven numbers (XYZQUAT, also the free flyer's q) is equal to ours. Arrays of
another size are a ShapeError. Nothing else is checked.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dyn_core.spatial.conventions.common import (
    classical_from_spatial,
    inertia_parts,
    sized,
    skews,
    spatial_from_classical,
    swap_blocks,
    swap_matrix,
    symmetric_entries,
    symmetric_of,
)
from dyn_core.spatial.conventions.kim import from_adjoint
from dyn_core.spatial.conventions.tazz import tazz_jacobian

_ORDER = ("xx", "xy", "yy", "xz", "yz", "zz")


def pinocchio_motion(v: Any) -> np.ndarray:
    """Return Motion.vector, [linear; angular], of our motion [angular; linear].

    The motion is a velocity or a spatial acceleration; both are (..., 6).
    """
    return swap_blocks(v)


def from_pinocchio_motion(v: Any) -> np.ndarray:
    """Return our velocity or spatial acceleration of Motion.vector, (..., 6).

    Ours is [angular; linear].
    """
    return swap_blocks(v)


def pinocchio_classical_acceleration(a: Any, v: Any) -> np.ndarray:
    """Return the result of getFrameClassicalAcceleration, [linear; angular], (..., 6).

    Args:
        a, v: Our spatial acceleration and velocity [angular; linear], (..., 6).
    """
    return swap_blocks(classical_from_spatial(a, v))


def from_pinocchio_classical_acceleration(A: Any, V: Any) -> np.ndarray:
    """Return our spatial acceleration [angular; linear], (..., 6).

    Args:
        A, V: Pinocchio's classical acceleration and velocity [linear; angular], (...,
            6).
    """
    return spatial_from_classical(swap_blocks(A), swap_blocks(V))


def pinocchio_force(f: Any) -> np.ndarray:
    """Return Force.vector, [force; moment], of our force [moment; force], (..., 6)."""
    return swap_blocks(f)


def from_pinocchio_force(f: Any) -> np.ndarray:
    """Return our force [moment; force] of Force.vector, [force; moment], (..., 6)."""
    return swap_blocks(f)


def pinocchio_inertia(I: Any) -> np.ndarray:
    """Return Inertia.matrix() of our 6x6 inertias, both (..., 6, 6).

    The halves of rows and columns are swapped.
    """
    return swap_matrix(I)


def from_pinocchio_inertia(I: Any) -> np.ndarray:
    """Return our 6x6 inertias of Inertia.matrix(), both (..., 6, 6).

    The halves of rows and columns are swapped.
    """
    return swap_matrix(I)


def pinocchio_parameters(I: Any) -> np.ndarray:
    """Return Inertia.toDynamicParameters() of our 6x6 inertias, (..., 10).

    m, m c (3), Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the origin, as in
    RigidInertia.parameters; m c is zero if m is.
    """
    I = np.asarray(I, float)
    m, c, _ = inertia_parts(I)
    mass = m[..., None]
    rest = symmetric_entries(I[..., :3, :3], _ORDER)
    return np.concatenate([mass, mass * c, rest], axis=-1)


def from_pinocchio_parameters(ten: Any) -> np.ndarray:
    """Return our 6x6 inertias of Inertia.toDynamicParameters(), (..., 10).

    m, m c (3), Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the origin. Ours are [angular;
    linear] about the same origin.
    """
    ten = sized(ten, 10, "ten", dtype=float)
    h = skews(ten[..., 1:4])
    mass = ten[..., 0, None, None] * np.eye(3)
    top = np.concatenate([symmetric_of(ten[..., 4:], _ORDER), h], axis=-1)
    return np.concatenate([top, np.concatenate([-h, mass], axis=-1)], axis=-2)


def pinocchio_action_inverse(X: Any) -> np.ndarray:
    """Return SE3.toActionMatrixInverse() of our Transform or of 6x6 matrices X.

    The result is (..., 6, 6).
    """
    return swap_matrix(np.asarray(X, float))


def from_pinocchio_action_inverse(M: Any) -> np.ndarray:
    """Return our transforms X of SE3.toActionMatrixInverse(), both (..., 6, 6)."""
    return swap_matrix(M)


def from_pinocchio_action(M: Any) -> np.ndarray:
    """Return our transforms X of the matrices M = SE3.toActionMatrix(), (..., 6, 6).

    X transforms in the opposite direction, like toActionMatrixInverse().
    """
    return from_adjoint(swap_matrix(M))


def pinocchio_jacobian(J: Any, free: tuple[int, ...] = ()) -> np.ndarray:
    """Return Pinocchio's Jacobian of ours, (..., 6, nv), in the same axes.

    The halves of the rows are swapped.

    Args:
        J: Our Jacobian [angular; linear], (..., 6, nv).
        free: First column of each free joint; the halves of its six columns are
            swapped, too: (0,) of a floating root, () for none.

    Raises:
        ShapeError: J has not six rows, `free` is text or one number, or an entry of it
            is negative or has fewer than six columns from it on.
    """
    return tazz_jacobian(J, free)


def from_pinocchio_jacobian(J: Any, free: tuple[int, ...] = ()) -> np.ndarray:
    """Return our Jacobian [angular; linear] of Pinocchio's J, (..., 6, nv).

    The halves of the rows are swapped, and those of the six columns of each free joint,
    whose first columns `free` lists. Raises ShapeError if J has not six rows, `free` is
    text or one number, or an entry of it is negative or has fewer than six columns from
    it on.
    """
    return tazz_jacobian(J, free)


def pinocchio_free_velocity(v: Any) -> np.ndarray:
    """Return the free flyer's v (or a, or tau) of our free joint's qd (or qdd, or tau).

    [linear; angular] of our [angular; linear], both (..., 6).
    """
    return swap_blocks(v)


def from_pinocchio_free_velocity(v: Any) -> np.ndarray:
    """Return our free joint's qd (or qdd, or tau) of the free flyer's v (or a, or tau).

    [angular; linear] of [linear; angular], both (..., 6).
    """
    return swap_blocks(v)
