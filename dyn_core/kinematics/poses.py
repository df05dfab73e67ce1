"""Poses given by users: homogeneous matrices, or positions and quaternions."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dyn_core.errors import NonFiniteError, RotationError, ShapeError, warn
from dyn_core.model.coordinates.configuration_space import UNIT_TOLERANCE
from dyn_core.spatial.conventions import rotation
from dyn_core.validation import float_array

ORTHONORMAL = 1e-6  # largest error of an entry of R.T R, or of the third row
_LAST_ROW = [0.0, 0.0, 0.0, 1.0]


def one_pose(pose: ArrayLike) -> np.ndarray:
    """Return one pose as a homogeneous matrix (4, 4); a float64 matrix is not copied.

    Of (x, y, z, qx, qy, qz, qw) the quaternion is scaled to unit length, with a
    DynWarning if it is off by more than 0.001. A rotation that is not orthonormal is
    refused only if the sum of the numbers overflows; otherwise the Program checks it.
    """
    array = float_array("pose", pose, "shape (4, 4) or (7,)")
    if array.shape not in ((4, 4), (7,)):
        raise ShapeError("pose", "shape (4, 4) or (7,)", f"shape {array.shape}")
    if array.ndim == 2 and isfinite(array.sum()) and array[3].tolist() == _LAST_ROW:
        return np.ascontiguousarray(array)  # quicker
    return pose_matrices(array[None])[0]


def pose_matrices(poses: ArrayLike) -> np.ndarray:
    """Return poses as homogeneous matrices (n, 4, 4); float64 matrices are not copied.

    Args:
        poses: Homogeneous matrices (n, 4, 4), or (x, y, z, qx, qy, qz, qw) in rows (n,
            7); quaternions of any length from 1e-154 to 1e154, which are scaled to unit
            length, with a DynWarning if one is off by more than 0.001.

    Raises:
        ShapeError: Another shape, not numeric, or a last row that is not (0, 0, 0, 1).
        NonFiniteError: NaN, infinity, or a quaternion that is zero, or beyond 1e154.
        RotationError: A rotation that is not orthonormal within 1e-6, or is a
            reflection. `rows` of both errors are the poses at fault; None if there is
            one pose.
    """
    wanted = "shape (n, 4, 4) or (n, 7)"
    array = float_array("pose", poses, wanted)
    if array.shape[1:] not in ((4, 4), (7,)):
        raise ShapeError("pose", wanted, f"shape {array.shape}")
    finite = np.isfinite(array)
    if not finite.all():
        good = finite.reshape(len(array), -1).all(1)
        raise _not_finite("it holds NaN or infinity", good)
    return _checked(array) if array.ndim == 3 else _of_quaternions(array)


def _checked(matrices: np.ndarray) -> np.ndarray:
    """Return homogeneous matrices (n, 4, 4) in C order, copied if in another, checked.

    A last row other than (0, 0, 0, 1), and what is no rotation, are refused.
    """
    if (matrices[:, 3] != _LAST_ROW).any():
        raise ShapeError("pose", "a last row (0, 0, 0, 1)", "another one")
    good = _are_rotations(*matrices[:, :3, :3].reshape(-1, 9).T)
    if not good.all():
        raise RotationError("pose", _rows(good))
    return np.ascontiguousarray(matrices)


def _are_rotations(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, *last: Any) -> Any:
    """Return whether matrices, by their nine entries row by row, are rotations, (n,).

    The first two rows must be orthonormal, and the third row their cross product,
    within 1e-6 (ORTHONORMAL). With NaN the result is false.
    """
    third = (b * f - c * e, c * d - a * f, a * e - b * d)
    wrong = [abs(x - y) for x, y in zip(third, last, strict=True)]
    wrong += [abs(a * a + b * b + c * c - 1.0), abs(d * d + e * e + f * f - 1.0)]
    wrong.append(abs(a * d + b * e + c * f))
    return np.stack(wrong).max(0) <= ORTHONORMAL


def _of_quaternions(poses: np.ndarray) -> np.ndarray:
    """Return homogeneous matrices (n, 4, 4) of rows (x, y, z, qx, qy, qz, qw).

    Quaternions are scaled to unit length, with a warning if one is off by more than
    0.001; a zero one is refused.
    """
    with np.errstate(over="ignore"):
        length = np.linalg.norm(poses[:, 3:], axis=1)
    good = (length > 1e-154) & (length < np.inf)
    if not good.all():
        reason = "its quaternion is zero or beyond 1e154 and has no direction"
        raise _not_finite(reason, good)
    worst = length[np.abs(length - 1.0).argmax()] if len(length) else 1.0
    if abs(worst - 1.0) > UNIT_TOLERANCE:
        warn(f"pose: a quaternion has the length {worst:.3g}; it is scaled to 1")
    matrices = np.zeros((len(poses), 4, 4))
    matrices[:, :3, :3] = rotation(poses[:, 3:] / length[:, None])
    matrices[:, :3, 3] = poses[:, :3]
    matrices[:, 3, 3] = 1.0
    return matrices


def _rows(good: np.ndarray) -> list[int] | None:
    """Return the indices of rows that are not good; None if there is only one row."""
    return None if len(good) == 1 else [int(k) for k in np.flatnonzero(~good)]


def _not_finite(what: str, good: np.ndarray) -> NonFiniteError:
    """Return (not raise) the NonFiniteError of poses, with `rows` of invalid ones."""
    rows = _rows(good)
    where = "" if rows is None else f" (rows {', '.join(map(str, rows[:8]))})"
    return NonFiniteError(f"pose: {what}{where}", "pose", rows)
