"""Kim's Lie-group conventions: 4x4 poses, [angular; linear], Ad, dV/dt of components.

His twists, wrenches, inertias and accelerations are equal to ours: the rate of the
components of a body's twist is the spatial acceleration. Arrays of another size are a
ShapeError, and so is a pose whose quaternion's length is not 1 within 1e-3. That R in
Ad is a rotation, and T and Ad have their form, is not checked.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dyn_core.spatial.conventions.common import (
    pose_of_parts,
    pose_parts,
    sized,
    sized_matrix,
    skews,
    transposed,
)


def kim_pose(q: Any) -> np.ndarray:
    """Return T = [[R, p], [0, 1]], (..., 4, 4), of our pose.

    The pose is (x, y, z, qx, qy, qz, qw), (..., 7), of the body in the world.

    Source: KIM (1)-(4); KIM-1.1.
    """
    R, p = pose_parts(q)
    T = np.zeros((*p.shape[:-1], 4, 4))
    T[..., :3, :3], T[..., :3, 3], T[..., 3, 3] = R, p, 1.0
    return T


def from_kim_pose(T: Any) -> np.ndarray:
    """Return our pose of T = [[R, p], [0, 1]], (..., 4, 4); inverse of kim_pose.

    The pose is (x, y, z, qx, qy, qz, qw), (..., 7), of the body in the world; qw >= 0.
    Raises ShapeError for another shape of T, and if R is no rotation.
    """
    T = sized_matrix(T, 4, 4, "T", dtype=float)
    return pose_of_parts(T[..., :3, :3], T[..., :3, 3])


def adjoint(R: Any, p: Any) -> np.ndarray:
    """Return Kim's Ad_T of the pose T = (R, p), (..., 6, 6).

        Ad_T = [[R, 0], [p x R, R]] = X^-1 for the Transform X of that pose

    It transforms twists from the frame of the pose to its parent frame, in which a
    point x of the frame is R x + p. R is (..., 3, 3), p (..., 3) [m].

    Source: KIM (6)-(8); SV-11.4; KIM-1.3.
    """
    R = sized_matrix(R, 3, 3, "R", dtype=float)
    R, p = np.broadcast_arrays(R, skews(sized(p, 3, "p")))
    top = np.concatenate([R, np.zeros_like(R)], axis=-1)
    return np.concatenate([top, np.concatenate([p @ R, R], axis=-1)], axis=-2)


def from_adjoint(Ad: Any) -> np.ndarray:
    """Return our transform X (..., 6, 6), the inverse of Kim's Ad = Ad_T, (..., 6, 6).

        X = Ad_{T^-1} = [[R.T, 0], [(p x R).T, R.T]]

    Only the left half of Ad is read. X transforms to the frame of the pose T.
    """
    Ad = sized_matrix(Ad, 6, 6, "Ad", dtype=float)
    back = transposed(Ad[..., :3, :3])
    top = np.concatenate([back, np.zeros_like(back)], axis=-1)
    low = np.concatenate([transposed(Ad[..., 3:, :3]), back], axis=-1)
    return np.concatenate([top, low], axis=-2)
