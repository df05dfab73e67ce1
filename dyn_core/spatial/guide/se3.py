"""Poses, twists and wrenches as checked arrays of floats, single or in batches.

Algorithms use the types of dyn_core.spatial; these functions are for arrays of data.
Public functions raise ShapeError for an array of another shape, NonFiniteError for
NaN or infinity, and ValueError for a matrix that is no rotation, not antisymmetric, not
in se(3) or no pose. Leading axes (...) are batches, which broadcast, else ValueError.
Motions and twists are [angular; linear], forces [moment; force]. E rotates coordinates
from A to B, r is B's origin in A [m]. No input is modified.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dyn_core.errors import NonFiniteError, ShapeError
from dyn_core.spatial.conventions.common import quaternion
from dyn_core.spatial.lie import dexp3, dexp3_inverse, exp3, quat_log
from dyn_core.spatial.vectors import Vector
from dyn_core.validation import float_array

ROTATION = 1e-8  # largest allowed entry of E.T E - 1


def finite(name: str, x: Any, *tail: int) -> np.ndarray:
    """Return x as an array (..., *tail) of finite floats; a float64 array itself.

    Args:
        name: Name of the input in error messages.
        x: Array-like of numbers, as for float_array.
        tail: Required sizes of the last axes; none: any shape.

    Raises:
        ShapeError: Not numeric or not real, or another shape.
        NonFiniteError: An entry is NaN or infinite; names the first one.
    """
    wanted = f"shape ({', '.join(('...', *map(str, tail)))})"
    array = float_array(name, x, wanted)
    if array.shape[array.ndim - len(tail) :] != tail or array.ndim < len(tail):
        raise ShapeError(name, wanted, f"shape {array.shape}")
    bad = ~np.isfinite(array)
    if bad.any():
        index = tuple(int(k) for k in np.argwhere(bad)[0])
        where = f"{name}{list(index) or ''}"
        raise NonFiniteError(f"{where} is {array[index]}; must be finite", name)
    return array


def single(name: str, x: Any, *shape: int) -> np.ndarray:
    """Return x as an array of finite floats of exactly this shape.

    A float64 array is returned itself. Without sizes x is a number, and the array has
    no axis. `name` is for error messages. Raises ShapeError if x is not numeric or has
    another shape, such as a batch; NonFiniteError for NaN or infinity.
    """
    array = finite(name, x)
    if array.shape != shape:
        wanted = f"shape {shape}" if shape else "a number"
        raise ShapeError(name, wanted, f"shape {array.shape}")
    return array


def rotation(name: str, E: Any) -> np.ndarray:
    """Return rotation matrices (..., 3, 3) as an array, after a check.

    `name` is used in error messages.

    Raises:
        ShapeError: E is not numeric, or its last axes are not 3 and 3.
        NonFiniteError: An entry is NaN or infinite.
        ValueError: An entry of E.T E differs from the identity by more than 1e-8, or a
            matrix is a reflection.
    """
    E = finite(name, E, 3, 3)
    off = np.abs(np.swapaxes(E, -1, -2) @ E - np.eye(3)).max(initial=0.0)
    turned = np.linalg.det(E).min(initial=1.0)
    if off > ROTATION or turned < 0:
        raise ValueError(
            f"{name} is not a rotation: E.T E is off by {off:.3g} (at most {ROTATION}"
            f" is let pass) and det E is {turned:.3g} (must be 1)"
        )
    return E


def skews(r: Any) -> np.ndarray:
    """Return the matrices r x, (..., 3, 3), of vectors r (..., 3).

    Source: GUIDE (13); SV-4.4.
    """
    r = finite("r", r, 3)
    out = np.zeros((*r.shape, 3))
    x, y, z = np.moveaxis(r, -1, 0)
    out[..., 0, 1], out[..., 0, 2], out[..., 1, 2] = -z, y, -x
    return out - np.swapaxes(out, -1, -2)


def unskew(M: Any) -> np.ndarray:
    """Return the vectors r (..., 3) of antisymmetric matrices r x (..., 3, 3).

    Source: GUIDE (13); SV-4.4; KIM-1.2.
    """
    M = finite("M", M, 3, 3)
    off = np.abs(M + np.swapaxes(M, -1, -2)).max(initial=0.0)
    if off > 1e-12 * max(1.0, float(np.abs(M).max(initial=0.0))):
        raise ValueError(f"M is not an antisymmetric matrix: M + M.T reaches {off:.3g}")
    return np.stack([M[..., 2, 1], M[..., 0, 2], M[..., 1, 0]], axis=-1)


def crm(v: Any) -> np.ndarray:
    """Return the matrices v x, (..., 6, 6), of motions v (..., 6); also ad_v of se(3).

    Raises ShapeError for another shape, NonFiniteError for NaN or infinity.

    Source: GUIDE (17); SV-5.3, SV-11.4; KIM-1.8.
    """
    v = finite("v", v, 6)
    out = np.zeros((*v.shape, 6))
    out[..., :3, :3] = out[..., 3:, 3:] = skews(v[..., :3])
    out[..., 3:, :3] = skews(v[..., 3:])
    return out


def crf(v: Any) -> np.ndarray:
    """Return the matrices v x* = -(v x).T, (..., 6, 6), of motions v (..., 6).

    Source: GUIDE (18); SV-5.3; KIM-1.8.
    """
    return -np.swapaxes(crm(v), -1, -2)


def cross_motions(v: Any, m: Any) -> np.ndarray:
    """Return v x m of arrays (..., 6): [w x m_w; w x m_v + v x m_w].

    Source: GUIDE (17); SV-5.3; KIM-1.8.
    """
    v, m = finite("v", v, 6), finite("m", m, 6)
    w, lin = v[..., :3], v[..., 3:]
    shifted = np.cross(w, m[..., 3:]) + np.cross(lin, m[..., :3])
    return _joined(np.cross(w, m[..., :3]), shifted)


def cross_forces(v: Any, f: Any) -> np.ndarray:
    """Return v x* f of arrays (..., 6): [w x n + v x f; w x f].

    Source: GUIDE (18); SV-5.3; KIM-1.8.
    """
    v, f = finite("v", v, 6), finite("f", f, 6)
    w, lin = v[..., :3], v[..., 3:]
    moment = np.cross(w, f[..., :3]) + np.cross(lin, f[..., 3:])
    return _joined(moment, np.cross(w, f[..., 3:]))


def motion_transform(E: Any, r: Any) -> np.ndarray:
    """Return the transform X = [[E, 0], [-E r x, E]] of motions, (..., 6, 6).

    E (..., 3, 3) rotates coordinates from A to B, r (..., 3) is B's origin in A [m].

    Source: GUIDE (11); SV-4.2; KIM-1.3.
    """
    E, rx = rotation("E", E), skews(r)
    shift = -E @ rx
    E = np.broadcast_to(E, shift.shape)
    return _blocks(E, np.zeros_like(E), shift, E)


def force_transform(E: Any, r: Any) -> np.ndarray:
    """Return the transform X* = [[E, -E r x], [0, E]] of forces, (..., 6, 6).

    Source: GUIDE (12); SV-4.3; KIM-1.3.
    """
    E, rx = rotation("E", E), skews(r)
    shift = -E @ rx
    E = np.broadcast_to(E, shift.shape)
    return _blocks(E, shift, np.zeros_like(E), E)


def _blocks(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Return the matrices [[a, b], [c, d]] of blocks (..., i, j) with equal batches."""
    top, bottom = np.concatenate([a, b], axis=-1), np.concatenate([c, d], axis=-1)
    return np.concatenate([top, bottom], axis=-2)


def apply_motion(E: Any, r: Any, m: Any) -> np.ndarray:
    """Return X m = [E w; E (v - r x w)] of motions m, A to B, without the 6x6 matrix.

    Source: GUIDE (11); SV-4.2, SV-11.3; KIM-1.3, KIM-1.4.
    """
    E, r, m = rotation("E", E), finite("r", r, 3), finite("m", m, 6)
    w = m[..., :3]
    return _turn(E, w, m[..., 3:] - np.cross(r, w))


def apply_force(E: Any, r: Any, f: Any) -> np.ndarray:
    """Return X* f = [E (n - r x f); E f] of forces f, A to B, without the 6x6 matrix.

    Source: GUIDE (12); SV-4.3; KIM-1.3, KIM-1.5.
    """
    E, r, f = rotation("E", E), finite("r", r, 3), finite("f", f, 6)
    lin = f[..., 3:]
    return _turn(E, f[..., :3] - np.cross(r, lin), lin)


def unapply_motion(E: Any, r: Any, m: Any) -> np.ndarray:
    """Return X^-1 m = [E.T w; E.T v + r x E.T w] of motions m (..., 6), B to A.

    Source: GUIDE (11); SV-4.2; KIM-1.3.
    """
    m = finite("m", m, 6)
    back = _turn(np.swapaxes(rotation("E", E), -1, -2), m[..., :3], m[..., 3:])
    shift = np.cross(finite("r", r, 3), back[..., :3])
    return _joined(back[..., :3], back[..., 3:] + shift)


def unapply_force(E: Any, r: Any, f: Any) -> np.ndarray:
    """Return X*^-1 f = [E.T n + r x E.T f; E.T f] of forces f (..., 6), B to A.

    Source: GUIDE (12); SV-4.3; KIM-1.3.
    """
    f = finite("f", f, 6)
    back = _turn(np.swapaxes(rotation("E", E), -1, -2), f[..., :3], f[..., 3:])
    shift = np.cross(finite("r", r, 3), back[..., 3:])
    return _joined(back[..., :3] + shift, back[..., 3:])


def _joined(ang: np.ndarray, lin: np.ndarray) -> np.ndarray:
    """Return [ang; lin], (..., 6), with broadcast batches."""
    return np.concatenate(np.broadcast_arrays(ang, lin), axis=-1)


def _turn(E: np.ndarray, ang: np.ndarray, lin: np.ndarray) -> np.ndarray:
    """Return [E ang; E lin], (..., 6)."""
    return _joined((E @ ang[..., None])[..., 0], (E @ lin[..., None])[..., 0])


def hat(x: Any) -> np.ndarray:
    """Return the matrices [[w x, v], [0, 0]] in se(3), (..., 4, 4), of twists (..., 6).

    Raises ShapeError for another shape, NonFiniteError for NaN or infinity.

    Source: GUIDE, section 8; SV-11.4; KIM-1.2.
    """
    x = finite("x", x, 6)
    out = np.zeros((*x.shape[:-1], 4, 4))
    out[..., :3, :3], out[..., :3, 3] = skews(x[..., :3]), x[..., 3:]
    return out


def vee(M: Any) -> np.ndarray:
    """Return the twists (..., 6) of matrices (..., 4, 4) in se(3); inverse of hat.

    Source: GUIDE, section 8; SV-11.4; KIM-1.2.
    """
    M = finite("M", M, 4, 4)
    if np.any(M[..., 3, :] != 0):
        raise ValueError("M is not in se(3): its last row must be zero")
    return np.concatenate([unskew(M[..., :3, :3]), M[..., :3, 3]], axis=-1)


def exp(x: Any) -> np.ndarray:
    """Return the poses T = exp(hat x), (..., 4, 4), of displacements x (..., 6).

        T = [[exp3(w), dexp3(w) v], [0, 1]]

    x is a twist times a time, [rad; m].

    Raises ShapeError for another shape, NonFiniteError for NaN or infinity.

    Source: GUIDE, section 8; SV-11.4; KIM-S1.
    """
    x = finite("x", x, 6)
    out = np.zeros((x.size // 6, 4, 4))
    for T, row in zip(out, x.reshape(-1, 6).tolist(), strict=True):
        w = Vector(row[:3])
        T[:3, :3] = exp3(w)
        T[:3, 3] = dexp3(w) @ Vector(row[3:])
        T[3, 3] = 1.0
    return out.reshape(*x.shape[:-1], 4, 4)


def log(T: Any) -> np.ndarray:
    """Return the displacements (..., 6) of poses (..., 4, 4), with angles up to pi.

    Inverse of exp: [rotation vector; linear part], [rad; m]. At exactly pi the
    component of the rotation vector with the largest absolute value is positive. Raises
    ValueError if a rotation is not orthonormal within 1e-8 or is a reflection, or a
    last row is not exactly (0, 0, 0, 1); ShapeError for another shape, NonFiniteError
    for NaN or infinity.

    Source: GUIDE, section 8; SV-11.4; KIM-S1.
    """
    T = finite("T", T, 4, 4)
    rotation("T[:3, :3]", T[..., :3, :3])
    if np.any(T[..., 3, :] != (0, 0, 0, 1)):
        raise ValueError("T is not a pose: its last row must be 0 0 0 1")
    turns = quaternion(T[..., :3, :3]).reshape(-1, 4).tolist()
    shifts = T[..., :3, 3].reshape(-1, 3).tolist()
    out = np.zeros((len(turns), 6))
    for row, q, p in zip(out, turns, shifts, strict=True):
        w = quat_log(Vector(q))
        row[:3] = w
        row[3:] = dexp3_inverse(w) @ Vector(p)
    return out.reshape(*T.shape[:-2], 6)
