"""Conversions shared by several peers: order of halves, quaternions, accelerations.

All functions return new arrays or views and change no argument; "our" arrays are as in
the package's docstring. Batches of several arguments broadcast. Arrays of another size
raise ShapeError, except in `turned` and `symmetric_entries`. Quaternions alone may have
any length but 0, those of poses 1 within 1e-3.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from dyn_core.errors import ShapeError
from dyn_core.validation import shown

ROUNDED = 0.02  # largest error of R.T R - 1: of entries with two digits


def _numbers(x: Any, shape: str, name: str, dtype: type | None) -> np.ndarray:
    """Return x as an array; ShapeError for text, None and what has no float.

    Symbols stay what they are where the dtype is None.
    """
    try:
        array = np.asarray(x)
        objects = array.flat if array.dtype.kind == "O" else ()
        if array.dtype.kind in "fiubcO" and not any(entry is None for entry in objects):
            return array if dtype is None else np.asarray(array, dtype)
    except (TypeError, ValueError):  # a row of another length, a Model
        pass
    raise ShapeError(name, f"numbers of shape {shape}", shown(x))


def sized(
    x: Any, size: int, name: str = "x", *, dtype: type | None = None
) -> np.ndarray:
    """Return x as an array whose last axis has `size` numbers, else ShapeError.

    So all coordinates of a robot are refused where those of its free joint are wanted.
    """
    x = _numbers(x, f"(..., {size})", name, dtype)
    if x.shape[-1:] != (size,):
        wanted = f"shape (..., {size}), of one body or free joint, as {name}[:{size}]"
        matrix = size == 7 and x.shape[-2:] == (4, 4)
        wanted += f"; a matrix by from_kim_pose({name})" * matrix
        raise ShapeError(name, wanted, f"{x.shape or shown(x[()])}")
    return x


def sized_matrix(
    M: Any,
    rows: int,
    columns: int | None,
    name: str = "M",
    *,
    dtype: type | None = None,
) -> np.ndarray:
    """Return M as an array (..., rows, columns), else ShapeError; None: any columns."""
    shape = f"(..., {rows}, {columns or 'n'})"
    M = _numbers(M, shape, name, dtype)
    if M.shape[-2:-1] != (rows,) or columns not in (None, M.shape[-1]):
        raise ShapeError(
            name, f"shape {shape}, of one body", f"{M.shape or shown(M[()])}"
        )
    return M


def swap_blocks(x: Any) -> np.ndarray:
    """Return x (..., 6) with the two halves of its last axis swapped; self-inverse.

    Raises:
        ShapeError: The last axis has not six numbers.
    """
    x = sized(x, 6)
    return np.concatenate([x[..., 3:], x[..., :3]], axis=-1)


def first_columns(free: Any, n: int) -> list[int]:
    """Return the first columns of free joints in a Jacobian of n columns, as a list.

    `free` has these columns, such as a mapping's keys; six must begin at each.
    """
    if not isinstance(free, Iterable) or isinstance(free, str):
        raise ShapeError("free", "first columns, (0,) of a floating root", repr(free))
    columns = list(free)
    for k in columns:
        if not isinstance(k, (int, np.integer)) or not 0 <= k <= n - 6:
            raise ShapeError("free", f"first of six columns, 0 to {n - 6}", shown(k))
    return columns


def swap_rows(J: Any) -> np.ndarray:
    """Return J (..., 6, n) with the halves of its six rows swapped; self-inverse.

    Raises:
        ShapeError: There are not six rows.
    """
    J = sized_matrix(J, 6, None, "J")
    return np.concatenate([J[..., 3:, :], J[..., :3, :]], axis=-2)


def swap_matrix(M: Any) -> np.ndarray:
    """Return matrices M (..., 6, 6) with the halves of rows and columns swapped.

    It is its own inverse.

    Raises:
        ShapeError: M has not six rows and six columns.
    """
    return swap_rows(swap_blocks(M))


def joined(*parts: np.ndarray) -> np.ndarray:
    """Return arrays (..., k) joined along the last axis; batches broadcast."""
    batch = np.broadcast_shapes(*(x.shape[:-1] for x in parts))
    wide = [np.broadcast_to(x, (*batch, x.shape[-1])) for x in parts]
    return np.concatenate(wide, axis=-1)


def classical_from_spatial(a: Any, v: Any) -> np.ndarray:
    """Return the classical acceleration, [angular; r'' of the origin], (..., 6).

        r'' = a_lin + w x v

    Args:
        a: Spatial acceleration [angular; linear], (..., 6) [rad/s²; m/s²].
        v: Velocity [angular; linear], (..., 6), in the same axes.

    Source: GUIDE (21), (22); SV-6.1, SV-6.2.
    """
    a, v = sized(a, 6, "a"), sized(v, 6, "v")
    return joined(a[..., :3], a[..., 3:] + np.cross(v[..., :3], v[..., 3:]))


def spatial_from_classical(a: Any, v: Any) -> np.ndarray:
    """Return the spatial acceleration of a classical one, both [angular; linear].

    Inverse of classical_from_spatial.

    Args:
        a: Classical acceleration, (..., 6) [rad/s²; m/s²], like the result.
        v: Velocity [angular; linear], (..., 6) [rad/s; m/s], in the same axes.
    """
    a, v = sized(a, 6, "a"), sized(v, 6, "v")
    return joined(a[..., :3], a[..., 3:] - np.cross(v[..., :3], v[..., 3:]))


def quaternion_to_wxyz(q: Any) -> np.ndarray:
    """Return quaternions (x, y, z, w) as (w, x, y, z), as in MuJoCo and RBDA.

    Both are (..., 4), else ShapeError.
    """
    q = sized(q, 4, "quaternion")
    return np.concatenate([q[..., 3:], q[..., :3]], axis=-1)


def quaternion_from_wxyz(q: Any) -> np.ndarray:
    """Return quaternions (w, x, y, z) as (x, y, z, w), as in Pinocchio and ROS.

    Both are (..., 4), else ShapeError.
    """
    q = sized(q, 4, "quaternion")
    return np.concatenate([q[..., 1:], q[..., :1]], axis=-1)


def rotation(q: Any) -> np.ndarray:
    """Return rotation matrices (..., 3, 3) of unit quaternions (x, y, z, w), (..., 4).

    A matrix takes components in the turned axes to the fixed ones. Other lengths of the
    quaternions than 0 are not checked. NaN gives NaN.

    Raises:
        ShapeError: The last axis has not four numbers, or a quaternion is zero.
    """
    q = sized(q, 4, "quaternion", dtype=float)
    if not q.any(axis=-1).all():
        raise ShapeError("quaternion", "unit quaternions (x, y, z, w)", "zeros")
    x, y, z, w = np.moveaxis(q, -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


def quaternion(R: Any) -> np.ndarray:
    """Return quaternions (x, y, z, w), w >= 0, of rotation matrices (..., 3, 3).

    The row of 4 q q.T with the largest diagonal entry is used, so no angle is singular.
    The quaternions have unit length. At w = 0, a half turn, that of x, y, z with the
    largest absolute value is positive. A matrix with NaN or infinity gives NaN.

    Raises:
        ShapeError: The last two axes are not 3 and 3, or a matrix is no rotation: it is
            a reflection, or an entry of R.T R is off by more than 0.02.
    """
    R = sized_matrix(R, 3, 3, "R", dtype=float)
    with np.errstate(invalid="ignore", over="ignore"):
        off = np.abs(np.swapaxes(R, -1, -2) @ R - np.eye(3)).max(axis=(-2, -1))
        wrong = (off > ROUNDED) | (np.linalg.det(R) < 0)
    wrong &= np.isfinite(R).all(axis=(-2, -1))
    if wrong.any():
        valid = f"rotation matrices (R.T R = 1 within {ROUNDED}, det R = 1)"
        raise ShapeError("R", valid, shown(R[wrong][0].tolist()))
    a, b, c = (R[..., k, k] for k in range(3))
    x, y, z = R[..., 2, 1], R[..., 0, 2], R[..., 1, 0]
    u, v, w = R[..., 1, 2], R[..., 2, 0], R[..., 0, 1]
    rows = [
        [1 + a - b - c, z + w, y + v, x - u],
        [z + w, 1 - a + b - c, x + u, y - v],
        [y + v, x + u, 1 - a - b + c, z - w],
        [x - u, y - v, z - w, 1 + a + b + c],
    ]
    outer = np.moveaxis(np.array(rows), (0, 1), (-2, -1))
    best = np.argmax(np.diagonal(outer, axis1=-2, axis2=-1), axis=-1)
    q = np.take_along_axis(outer, best[..., None, None], axis=-2)[..., 0, :]
    q = q / np.linalg.norm(q, axis=-1, keepdims=True)
    return np.where(q[..., 3:] < 0, -q, q)


def pose_parts(q: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return R (..., 3, 3) and p (..., 3) of our pose (x, y, z, qx, qy, qz, qw).

    The pose, of the body in the world, is (..., 7); R takes components in the body's
    axes to the world's. p is a view of the pose if that is a float64 array. ShapeError
    if a quaternion's length differs from 1 by more than 1e-3, as in positions of seven
    joints; NaN passes.
    """
    q = sized(q, 7, "q", dtype=float)
    length = np.sqrt(np.einsum("...i,...i->...", q[..., 3:], q[..., 3:]))
    if np.any(np.abs(length - 1.0) > 1e-3):
        worst = np.ravel(length)[np.nanargmax(np.abs(length - 1.0))]
        wanted = "poses (x, y, z, qx, qy, qz, qw), the quaternion of length 1"
        raise ShapeError("q", wanted, f"a quaternion of length {worst:.4g}")
    return rotation(q[..., 3:]), q[..., :3]


def pose_of_parts(R: Any, p: Any) -> np.ndarray:
    """Return our pose of R (..., 3, 3) and p (..., 3) [m].

    The pose, of the body in the world, is (x, y, z, qx, qy, qz, qw), (..., 7), with
    qw >= 0; R takes components in the body's axes to the world's. Batches broadcast,
    else ValueError. Raises ShapeError for other shapes, and if R is no rotation.
    """
    return joined(sized(p, 3, "p"), quaternion(R))


def turned(R: Any, x: Any) -> np.ndarray:
    """Return [R x_1; R x_2], (..., 6), of the halves of x (..., 6), R (..., 3, 3)."""
    x = np.asarray(x)
    halves = [np.einsum("...ij,...j->...i", R, h) for h in (x[..., :3], x[..., 3:])]
    return np.concatenate(halves, axis=-1)


def transposed(M: Any) -> np.ndarray:
    """Return arrays (..., m, n) with these two axes transposed, (..., n, m); a view."""
    return np.swapaxes(np.asarray(M), -1, -2)


def skews(r: Any) -> np.ndarray:
    """Return the matrices (..., 3, 3) of cross products r x v by vectors r (..., 3)."""
    x, y, z = np.moveaxis(sized(r, 3, "r", dtype=float), -1, 0)
    o = np.zeros_like(x)
    rows = [[o, -z, y], [z, o, -x], [-y, x, o]]
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


def inertia_parts(I: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return mass, com and inertia about the com of our 6x6 inertias (..., 6, 6).

    Returns:
        Mass (...) [kg], com (..., 3) [m] and inertia about it along the body's axes
        (..., 3, 3) [kg·m²]. The com of a body without mass is the origin. Whether I has
        the structure of a rigid body's inertia is not checked.

    Raises:
        ShapeError: The last two axes are not 6 and 6.
    """
    I = sized_matrix(I, 6, 6, "I", dtype=float)
    m, H = I[..., 5, 5], I[..., :3, 3:]
    h = np.stack([H[..., 2, 1], H[..., 0, 2], H[..., 1, 0]], axis=-1)
    mass = m[..., None]
    c = np.where(mass == 0, 0.0, h / np.where(mass == 0, 1.0, mass))
    a = skews(c)
    return m, c, I[..., :3, :3] + mass[..., None] * (a @ a)


def inertia_of_parts(m: Any, c: Any, Ic: Any) -> np.ndarray:
    """Return our 6x6 inertias about the origin, (..., 6, 6); inverse of inertia_parts.

    Args:
        m: Masses, (...) [kg].
        c: Centres of mass, (..., 3) [m].
        Ic: Inertias about them along the body's axes, (..., 3, 3) [kg·m²].

    Raises:
        ShapeError: c or Ic has another shape; batches that do not broadcast are a
            ValueError.
    """
    mass = np.asarray(m, float)[..., None, None]
    Ic = sized_matrix(Ic, 3, 3, "Ic", dtype=float)
    mass, a, Ic = np.broadcast_arrays(mass, skews(sized(c, 3, "c")), Ic)
    top = np.concatenate([Ic - mass * (a @ a), mass * a], axis=-1)
    low = np.concatenate([-mass * a, mass * np.eye(3)], axis=-1)
    return np.concatenate([top, low], axis=-2)


def symmetric_entries(M: Any, order: tuple[str, ...]) -> np.ndarray:
    """Return entries (..., k) of M (..., 3, 3) named such as xy, row's axis first."""
    M = np.asarray(M, float)
    return np.stack([M[(..., *_place(name))] for name in order], axis=-1)


def symmetric_of(entries: Any, order: tuple[str, ...]) -> np.ndarray:
    """Return symmetric (..., 3, 3) of entries (..., k) named xy or yx; others are 0."""
    entries = sized(np.asarray(entries, float), len(order), "entries")
    out = np.zeros((*entries.shape[:-1], 3, 3))
    for k, name in enumerate(order):
        i, j = _place(name)
        out[..., i, j] = out[..., j, i] = entries[..., k]
    return out


def _place(name: str) -> tuple[int, int]:
    """Return (row, column) of an entry named by two axes, such as (0, 1) of xy."""
    return "xyz".index(name[0]), "xyz".index(name[1])
