"""Tazz's T-convention: [linear; angular], classical accelerations, body axes.

With P the exchange of the halves and k = (w x v; 0) in his order:

    V = P v,   A = P a + k,   F = P f,   X_T = P X P,   I_T = P I P

Source: TAZZ, section 0.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dyn_core.spatial.conventions.common import (
    classical_from_spatial,
    pose_of_parts,
    pose_parts,
    spatial_from_classical,
    swap_blocks,
    swap_matrix,
    swap_rows,
    transposed,
)


def tazz_pose(q: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return his (r, R) of our pose (..., 7)."""
    R, r = pose_parts(q)
    return r, R


def from_tazz_pose(r: Any, R: Any) -> np.ndarray:
    """Undo tazz_pose."""
    return pose_of_parts(R, r)


def tazz_velocity(v: Any) -> np.ndarray:
    """Return his V = [v; w] of our velocity (..., 6)."""
    return swap_blocks(v)


def from_tazz_velocity(V: Any) -> np.ndarray:
    """Undo tazz_velocity."""
    return swap_blocks(V)


def tazz_acceleration(a: Any, v: Any) -> np.ndarray:
    """Return tazz's [linear; angular] classical acceleration of ours.

        A = P a + k

    Args:
        a, v: Our spatial acceleration and velocity, (..., 6).
    """
    return swap_blocks(classical_from_spatial(a, v))


def from_tazz_acceleration(A: Any, V: Any) -> np.ndarray:
    """Return our spatial acceleration of tazz's A, with tazz's velocity V."""
    return spatial_from_classical(swap_blocks(A), swap_blocks(V))


def tazz_force(f: Any) -> np.ndarray:
    """Return his F = [f; n] of our force (..., 6)."""
    return swap_blocks(f)


def from_tazz_force(F: Any) -> np.ndarray:
    """Undo tazz_force."""
    return swap_blocks(F)


def tazz_inertia(I: Any) -> np.ndarray:
    """Return his inertia, rigid or articulated, of our 6x6: P I P; its own inverse.

    His rigid ones have the frame at the com; this one is about any origin.
    """
    return swap_matrix(I)


def from_tazz_inertia(I: Any) -> np.ndarray:
    """Undo tazz_inertia."""
    return swap_matrix(I)


def tazz_transform(X: Any) -> np.ndarray:
    """Return his X(R, r), for motions, of our Transform or 6x6: P X P.

    X(R, r) = [[R.T, -R.T r x], [0, R.T]]
    """
    return swap_matrix(np.asarray(X, float))


def from_tazz_transform(X: Any) -> np.ndarray:
    """Return our 6x6 X of his."""
    return swap_matrix(X)


def tazz_force_transform(X: Any) -> np.ndarray:
    """Return X.T of his X, of ours: it takes his forces from child to parent."""
    return transposed(tazz_transform(X))


def tazz_jacobian(J: Any, free: tuple[int, ...] = ()) -> np.ndarray:
    """Return his Jacobian of ours, (..., 6, nv): rows, and columns of a free root.

    Args:
        J: Our Jacobian.
        free: First columns of free joints.
    """
    out = swap_rows(J)
    for k in free:
        out[..., k : k + 6] = swap_blocks(out[..., k : k + 6])
    return out


def from_tazz_jacobian(J: Any, free: tuple[int, ...] = ()) -> np.ndarray:
    """Undo tazz_jacobian."""
    return tazz_jacobian(J, free)


def classical_term(v: Any) -> np.ndarray:
    """Return k = (w x v; 0), in his order, of our velocity (..., 6)."""
    v = np.asarray(v)
    lin = np.cross(v[..., :3], v[..., 3:])
    return np.concatenate([lin, np.zeros_like(lin)], axis=-1)


def tazz_articulated_bias(pA: Any, IA: Any, v: Any) -> np.ndarray:
    """Return his bias Z, where F = I_T A + Z, of ours, where f = IA a + pA.

        Z = P pA - I_T k

    It serves single bodies too.

    Args:
        pA: Our bias, (..., 6).
        IA: Our articulated inertia, (..., 6, 6).
        v: Our velocity of the body, (..., 6).

    Source: TAZZ, section 0.2, derived identities.
    """
    moved = tazz_inertia(IA) @ classical_term(v)[..., None]
    return swap_blocks(pA) - moved[..., 0]


def from_tazz_articulated_bias(Z: Any, I: Any, V: Any) -> np.ndarray:
    """Return our pA of his Z, articulated inertia and velocity: P pA = Z + I_T k."""
    moved = np.asarray(I) @ classical_term(swap_blocks(V))[..., None]
    return swap_blocks(np.asarray(Z) + moved[..., 0])


def tazz_velocity_product(c: Any, v_c: Any, X: Any, v_p: Any) -> np.ndarray:
    """Return his C_pc, where A_c = X_T A_p + C_pc + J qdd, of our c = v x vJ + cJ.

        C_pc = P c + k_c - X_T k_p

    Args:
        c: Our velocity-product acceleration of the child, (..., 6).
        v_c, v_p: Our velocities of child and parent.
        X: Our transform from parent to child.

    Source: TAZZ, section 0.2, derived identities.
    """
    moved = tazz_transform(X) @ classical_term(v_p)[..., None]
    return swap_blocks(c) + classical_term(v_c) - moved[..., 0]


def from_tazz_velocity_product(C: Any, V_c: Any, X: Any, V_p: Any) -> np.ndarray:
    """Return our c of his C_pc; X, V_c and V_p are his."""
    k_c, k_p = (classical_term(swap_blocks(V)) for V in (V_c, V_p))
    moved = np.asarray(X, float) @ k_p[..., None]
    return swap_blocks(np.asarray(C) - k_c + moved[..., 0])
