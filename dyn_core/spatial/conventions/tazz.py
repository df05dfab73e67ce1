"""Tazz's T-convention: [linear; angular], classical accelerations, body axes.

With the permutation P that swaps the halves, and k = (w x v; 0) in tazz's order:

    V = P v,   A = P a + k,   F = P f,   X_T = P X P,   I_T = P I P

Arrays of another size are a ShapeError, if no function says otherwise, and so is a pose
whose quaternion's length is not 1 within 1e-3, or an R that is no rotation.

Source: TAZZ, section 0.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dyn_core.spatial.conventions.common import (
    classical_from_spatial,
    first_columns,
    pose_of_parts,
    pose_parts,
    sized,
    spatial_from_classical,
    swap_blocks,
    swap_matrix,
    swap_rows,
    transposed,
)


def tazz_pose(q: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return tazz's (r, R), (..., 3) and (..., 3, 3), of our pose.

    The pose is (x, y, z, qx, qy, qz, qw), (..., 7), of the body in the world. If it is
    a float64 array, r is a view of it.
    """
    R, r = pose_parts(q)
    return r, R


def from_tazz_pose(r: Any, R: Any) -> np.ndarray:
    """Return our pose of tazz's r (..., 3) and R (..., 3, 3).

    The pose is (x, y, z, qx, qy, qz, qw), (..., 7), of the body in the world; qw >= 0.
    """
    return pose_of_parts(R, r)


def tazz_velocity(v: Any) -> np.ndarray:
    """Return tazz's V = [v; w] of our velocity [w; v], (..., 6)."""
    return swap_blocks(v)


def from_tazz_velocity(V: Any) -> np.ndarray:
    """Return our velocity [w; v] of tazz's V = [v; w], (..., 6)."""
    return swap_blocks(V)


def tazz_acceleration(a: Any, v: Any) -> np.ndarray:
    """Return tazz's classical acceleration [linear; angular], (..., 6), of our spatial.

        A = P a + k

    Args:
        a, v: Our spatial acceleration and velocity [angular; linear], (..., 6).
    """
    return swap_blocks(classical_from_spatial(a, v))


def from_tazz_acceleration(A: Any, V: Any) -> np.ndarray:
    """Return our spatial acceleration [angular; linear], (..., 6), of tazz's A.

    Args:
        A, V: Tazz's classical acceleration and velocity [linear; angular], (..., 6).
    """
    return spatial_from_classical(swap_blocks(A), swap_blocks(V))


def tazz_force(f: Any) -> np.ndarray:
    """Return tazz's F = [f; n] of our force [n; f], (..., 6)."""
    return swap_blocks(f)


def from_tazz_force(F: Any) -> np.ndarray:
    """Return our force [n; f] of tazz's F = [f; n], (..., 6)."""
    return swap_blocks(F)


def tazz_inertia(I: Any) -> np.ndarray:
    """Return tazz's inertia P I P, rigid or articulated, of ours, both (..., 6, 6).

    It is its own inverse. Only the halves are swapped: the result is about the same
    origin as the argument, while tazz's rigid inertias are about the com.
    """
    return swap_matrix(I)


def from_tazz_inertia(I: Any) -> np.ndarray:
    """Return our 6x6 inertias of tazz's, rigid or articulated, (..., 6, 6).

    Only the halves are swapped: the result is about the same point as the argument.
    Tazz's rigid inertias are about the com, so move them to our origin as well.
    """
    return swap_matrix(I)


def tazz_transform(X: Any) -> np.ndarray:
    """Return tazz's X(R, r), for motions, of our Transform or 6x6 matrices: P X P.

    X(R, r) = [[R.T, -R.T r x], [0, R.T]], (..., 6, 6). Ours act on [angular; linear],
    tazz's on [linear; angular].
    """
    return swap_matrix(np.asarray(X, float))


def from_tazz_transform(X: Any) -> np.ndarray:
    """Return our transforms X [angular; linear] of tazz's for motions, (..., 6, 6)."""
    return swap_matrix(X)


def tazz_force_transform(X: Any) -> np.ndarray:
    """Return the transpose of tazz's X, (..., 6, 6), for forces from child to parent.

    It acts on tazz's [force; moment]. X is our Transform or 6x6 matrices (..., 6, 6)
    from parent to child.
    """
    return transposed(tazz_transform(X))


def tazz_jacobian(J: Any, free: tuple[int, ...] = ()) -> np.ndarray:
    """Return tazz's Jacobian of ours, (..., 6, nv): the halves of the rows are swapped.

    Args:
        J: Our Jacobian [angular; linear], (..., 6, nv).
        free: First column of each free joint; the halves of its six columns are
            swapped, too: (0,) of a floating root, () for none.

    Raises:
        ShapeError: J has not six rows, `free` is text or one number, or an entry of it
            is negative or has fewer than six columns from it on.
    """
    out = swap_rows(J)
    for k in first_columns(free, out.shape[-1]):
        out[..., k : k + 6] = swap_blocks(out[..., k : k + 6])
    return out


def from_tazz_jacobian(J: Any, free: tuple[int, ...] = ()) -> np.ndarray:
    """Return our Jacobian [angular; linear] of tazz's J, (..., 6, nv).

    The halves of the rows are swapped, and those of the six columns of each free joint,
    whose first columns `free` lists. Raises ShapeError if J has not six rows, `free` is
    text or one number, or an entry of it is negative or has fewer than six columns from
    it on.
    """
    return tazz_jacobian(J, free)


def classical_term(v: Any) -> np.ndarray:
    """Return k = (w x v; 0) [m/s²; rad/s²], in tazz's order, (..., 6).

    v is our velocity [angular; linear], (..., 6).
    """
    v = sized(v, 6, "v")
    lin = np.cross(v[..., :3], v[..., 3:])
    return np.concatenate([lin, np.zeros_like(lin)], axis=-1)


def tazz_articulated_bias(pA: Any, IA: Any, v: Any) -> np.ndarray:
    """Return tazz's bias Z, in F = I_T A + Z, of our bias pA, in f = IA a + pA.

        Z = P pA - I_T k

    Z is [force; moment], (..., 6). Also valid for single bodies.

    Args:
        pA: Our bias [moment; force], (..., 6).
        IA: Our articulated inertia [angular; linear], (..., 6, 6).
        v: Our velocity of the body [angular; linear], (..., 6).

    Source: TAZZ, section 0.2, derived identities.
    """
    moved = tazz_inertia(IA) @ classical_term(v)[..., None]
    return swap_blocks(pA) - moved[..., 0]


def from_tazz_articulated_bias(Z: Any, I: Any, V: Any) -> np.ndarray:
    """Return our bias pA [moment; force] of tazz's Z, (..., 6): P pA = Z + I_T k.

    Args:
        Z: Tazz's bias [force; moment], (..., 6).
        I: Tazz's articulated inertia about our origin, (..., 6, 6), not checked.
        V: Tazz's velocity [linear; angular], (..., 6).
    """
    moved = np.asarray(I) @ classical_term(swap_blocks(V))[..., None]
    return swap_blocks(np.asarray(Z) + moved[..., 0])


def tazz_velocity_product(c: Any, v_c: Any, X: Any, v_p: Any) -> np.ndarray:
    """Return tazz's C_pc, in A_c = X_T A_p + C_pc + J qdd, of our c = v x vJ + cJ.

        C_pc = P c + k_c - X_T k_p

    C_pc is [linear; angular], (..., 6).

    Args:
        c: Our velocity-product acceleration of the child [angular; linear], (..., 6).
        v_c, v_p: Our velocities of child and parent [angular; linear], (..., 6).
        X: Our Transform or 6x6 matrices from parent to child.

    Source: TAZZ, section 0.2, derived identities.
    """
    moved = tazz_transform(X) @ classical_term(v_p)[..., None]
    return swap_blocks(c) + classical_term(v_c) - moved[..., 0]


def from_tazz_velocity_product(C: Any, V_c: Any, X: Any, V_p: Any) -> np.ndarray:
    """Return our velocity-product acceleration c [angular; linear], of tazz's C_pc.

    Args:
        C: Tazz's C_pc [linear; angular], (..., 6).
        V_c, V_p: Tazz's velocities of child and parent [linear; angular], (..., 6).
        X: Tazz's transform for motions, from parent to child, (..., 6, 6), not checked.
    """
    k_c, k_p = (classical_term(swap_blocks(V)) for V in (V_c, V_p))
    moved = np.asarray(X, float) @ k_p[..., None]
    return swap_blocks(np.asarray(C) - k_c + moved[..., 0])
