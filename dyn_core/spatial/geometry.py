"""Geometry of motions and forces with arrays: screws, bases, rates, single bodies.

Functions of the 6-D vector guide that are not parts of texts; floats only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dyn_core.spatial.inertia import RigidInertia, cross_matrix
from dyn_core.spatial.vectors import Force, Motion, Spatial, cross_force, cross_motion


@dataclass(frozen=True, eq=False)
class Screw:
    """A motion or force as a line, a magnitude and a pitch.

    Attributes:
        kind: screw, pure (translation or couple: no line, infinite pitch) or zero.
        magnitude: Of the part along the line [rad/s | N], or of the pure part.
        direction: Unit vector, or None for zero.
        point: Point of the line nearest to the origin [m], or None.
        pitch: Linear per angular part [m/rad | m].
    """

    kind: str
    magnitude: float
    direction: np.ndarray | None
    point: np.ndarray | None
    pitch: float


def to_screw(s: Motion | Force) -> Screw:
    """Give the screw of a twist, or of a wrench.

        twist:  d = w/|w|,  P = w x v/|w|²,  pitch = w . v/|w|²
        wrench: d = f/|f|,  P = f x n/|f|²,  pitch = f . n/|f|²

    Source: GUIDE, section 4; SV-2.1, SV-2.2.
    """
    ang, lin = (np.array(list(part), float) for part in (s.ang, s.lin))
    along, across = (ang, lin) if isinstance(s, Motion) else (lin, ang)
    size, other = float(np.linalg.norm(along)), float(np.linalg.norm(across))
    if size <= 1e-14 * other or size == 0.0:
        if other == 0.0:
            return Screw("zero", 0.0, None, None, math.nan)
        return Screw("pure", other, across / other, None, math.inf)
    point = np.cross(along, across) / size**2
    pitch = float(along @ across) / size**2
    return Screw("screw", size, along / size, point, pitch)


def from_screw(screw: Screw, space: type[Spatial]) -> Any:
    """Give the Motion or Force of a screw; undoes to_screw."""
    zero = np.zeros(3)
    if screw.direction is None:
        return space(zero, zero)
    d = screw.magnitude * screw.direction
    if screw.point is None:
        return space(zero, d) if space is Motion else space(d, zero)
    across = np.cross(screw.point, d) + screw.pitch * d
    return space(d, across) if space is Motion else space(across, d)


def dual_basis(D: Any) -> np.ndarray:
    """Give the basis of F6 dual to a basis D of M6 (columns): D.T E = 1.

    A singular D raises numpy's LinAlgError.

    Source: GUIDE (1).
    """
    return np.linalg.inv(np.asarray(D, float)).T


def dual(X: Any) -> np.ndarray:
    """Give X* = X^-T, the transform of forces that belongs to one of motions.

    Source: GUIDE (2), (3).
    """
    return np.linalg.inv(np.asarray(X, float)).T


def crm(v: Any) -> np.ndarray:
    """Give v x as matrices (..., 6, 6) of arrays (..., 6).

    Source: GUIDE (17).
    """
    v = np.asarray(v, float)
    out = np.zeros((*v.shape, 6))
    w, o = _skews(v[..., :3]), _skews(v[..., 3:])
    out[..., :3, :3] = out[..., 3:, 3:] = w
    out[..., 3:, :3] = o
    return out


def crf(v: Any) -> np.ndarray:
    """Give v x* = -(v x).T as matrices (..., 6, 6).

    Source: GUIDE (18).
    """
    return -np.swapaxes(crm(v), -1, -2)


def _skews(r: np.ndarray) -> np.ndarray:
    out = np.zeros((*r.shape, 3))
    x, y, z = np.moveaxis(r, -1, 0)
    out[..., 0, 1], out[..., 0, 2], out[..., 1, 2] = -z, y, -x
    return out - np.swapaxes(out, -1, -2)


def unskew(M: Any) -> np.ndarray:
    """Give r of a matrix r x; one that is not antisymmetric is a ValueError."""
    M = np.asarray(M, float)
    if not np.allclose(M, -M.T, atol=1e-12 * max(1.0, float(np.abs(M).max()))):
        raise ValueError("not an antisymmetric matrix")
    return np.array([M[2, 1], M[0, 2], M[1, 0]])


def derivative_in_frame(rate: Any, v_frame: Motion, s: Motion | Force) -> Any:
    """Give a vector's own derivative, in the axes of a moving frame.

        A(dm/dt) = d(Am)/dt + v x m        A(df/dt) = d(Af)/dt + v x* f

    Args:
        rate: Derivative of the components in the moving frame, of the kind of s.
        v_frame: Velocity of the frame, in its own coordinates.
        s: The vector, in the same coordinates.

    Source: GUIDE (15), (16).
    """
    if isinstance(s, Motion):
        return rate + cross_motion(v_frame, s)
    return rate + cross_force(v_frame, s)


def bias_force(I: RigidInertia, v: Motion, f_known: Force | None = None) -> Force:
    """Give p = v x* I v - f_known, so that f = I a + p.

    Source: GUIDE (30).
    """
    p = cross_force(v, I @ v)
    return p if f_known is None else p - f_known


def gravity_force(I: RigidInertia, g: Any) -> Force:
    """Give the weight I a_g of a body in a uniform field g, 3 [m/s²].

    Source: GUIDE, section 6.6; SV-8.4.
    """
    return I @ Motion((0.0, 0.0, 0.0), tuple(float(x) for x in g))


def equation_of_motion(I: RigidInertia, v: Motion, a: Motion) -> Force:
    """Give the force that a motion takes: f = I a + v x* I v.

    Source: GUIDE (29).
    """
    return I @ a + cross_force(v, I @ v)


def acceleration(I: RigidInertia, v: Motion, f: Force) -> Motion:
    """Give the acceleration that a force causes; undoes equation_of_motion."""
    left = np.array(list(f - cross_force(v, I @ v)), float)
    return Motion.of(np.linalg.solve(np.asarray(I, float), left))


def complement(S: Any) -> np.ndarray:
    """Give T, 6x(6-r), of S, 6xr: S.T T = 0 (constraint forces of a joint).

    Columns of S that depend on each other are a ValueError.

    Source: GUIDE, section 7; SV-9.5.
    """
    S = np.asarray(S, float).reshape(6, -1)
    u, sizes, _ = np.linalg.svd(S)
    rank = int((sizes > 1e-12 * max(sizes, default=0.0)).sum()) if S.size else 0
    if rank < S.shape[1]:
        raise ValueError(f"the motion subspace has rank {rank}, not {S.shape[1]}")
    return u[:, rank:]


def inertia_rate(I: RigidInertia, v: Motion) -> np.ndarray:
    """Give dI/dt = v x* I - I v x of a body that moves with v, 6x6.

    Source: GUIDE (27).
    """
    M, V = np.asarray(I, float), cross_matrix(v)
    return -V.T @ M - M @ V
