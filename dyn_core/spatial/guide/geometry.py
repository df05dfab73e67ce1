"""Geometry of motions and forces: screws, bases, rates, joint subspaces.

Functions of the 6-D vector guide that no algorithm uses; floats only. Vectors of three
numbers and matrices raise ShapeError for another shape and NonFiniteError for NaN or
infinity. Labels of frames are different only if both vectors have one. Functions of
arrays are in se3.py, single bodies in bodies.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dyn_core.errors import ShapeError
from dyn_core.spatial.guide.se3 import finite, single
from dyn_core.spatial.inertia import ForceSubspace, MotionSubspace, cross_matrix
from dyn_core.spatial.transforms import Transform
from dyn_core.spatial.vectors import (
    Force,
    Motion,
    Spatial,
    Vector,
    cross3,
    cross_force,
    cross_motion,
)

_ZERO = (0.0, 0.0, 0.0)
_AXES = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


@dataclass(frozen=True, eq=False)
class Screw:
    """A motion or force as a line, a magnitude and a pitch.

    Attributes:
        kind: "screw", "pure" (translation or couple: no line, infinite pitch) or
            "zero".
        magnitude: Size of the part along the line [rad/s | N]; of the translation or
            couple [m/s | N·m] for pure; 0 for zero.
        direction: Unit vector of the line, translation or couple, 3; None for zero.
        point: Point of the line nearest to the origin, 3 [m]; None for pure and zero.
        pitch: Ratio of the other part to the part along the line [m/rad | m]; infinite
            for pure, NaN for zero.
    """

    kind: str
    magnitude: float
    direction: np.ndarray | None
    point: np.ndarray | None
    pitch: float


def to_screw(s: Motion | Force) -> Screw:
    """Return the screw of a twist (Motion) or wrench (Force).

        twist:  d = w/|w|,  P = w x v/|w|²,  pitch = w . v/|w|²
        wrench: d = f/|f|,  P = f x n/|f|²,  pitch = f . n/|f|²

    d is the direction, P the point, |w| or |f| the magnitude. If |w| <= 1e-14 |v|, or
    |f| <= 1e-14 |n|, its kind is "pure": d and magnitude of v or n, no P (None), pitch
    infinite. If all components are 0, it is "zero": no d, no P, magnitude 0, pitch NaN.
    Otherwise it is "screw". A frame label is lost. Raises NonFiniteError for NaN or
    infinity.

    Source: GUIDE, section 4; SV-2.1, SV-2.2.
    """
    six = single("s", list(s), 6)
    ang, lin = six[:3], six[3:]
    along, across = (ang, lin) if isinstance(s, Motion) else (lin, ang)
    size, other = float(np.linalg.norm(along)), float(np.linalg.norm(across))
    # Below rounding of the other part, the line would be arbitrarily far away.
    if size <= 1e-14 * other or size == 0.0:
        if other == 0.0:
            return Screw("zero", 0.0, None, None, math.nan)
        return Screw("pure", other, across / other, None, math.inf)
    point = np.cross(along, across) / size**2
    pitch = float(along @ across) / size**2
    return Screw("screw", size, along / size, point, pitch)


def from_screw(screw: Screw, space: type[Spatial]) -> Any:
    """Return the Motion or Force (`space`) of a screw, without a frame label.

        twist:  w = |w| d,  v = P x w + pitch w
        wrench: f = |f| d,  n = P x f + pitch f

    It is the inverse of to_screw; a screw without point is a pure v or n, one without
    direction is zero. The screw is not checked.

    Source: GUIDE, section 4; SV-2.1, SV-2.2, SV-2.4.
    """
    zero = np.zeros(3)
    if screw.direction is None:
        return space(zero, zero)
    d = screw.magnitude * screw.direction
    if screw.point is None:
        return space(zero, d) if space is Motion else space(d, zero)
    across = np.cross(screw.point, d) + screw.pitch * d
    return space(d, across) if space is Motion else space(across, d)


def shifted(s: Any, r: Iterable[float]) -> Any:
    """Return a twist or wrench about another reference point, along the same axes.

        twist: v' = v + w x r            wrench: n' = n - r x f

    Line, pitch and magnitudes are unchanged: only the components depend on the point.
    The result has no frame label.

    Args:
        s: Motion or Force about the origin.
        r: The other point, 3 [m].

    Raises:
        ShapeError: `r` has not 3 numbers.
        NonFiniteError: A number of `r` is NaN or infinite.

    Source: GUIDE, section 4; SV-2.3.
    """
    r = Vector(single("r", r, 3).tolist())
    if isinstance(s, Motion):
        return Motion(s.ang, s.lin + cross3(s.ang, r))
    return Force(s.ang - cross3(r, s.lin), s.lin)


def dual_basis(D: Any) -> np.ndarray:
    """Return the basis E of F6 dual to a basis D of M6: D.T E = 1.

    Both are 6x6 with the basis vectors as columns. Raises numpy's LinAlgError if D is
    singular (numpy's matrix_rank is below 6), ShapeError or NonFiniteError if it is
    another array or not finite.

    Source: GUIDE (1); SV-1.2.
    """
    return _inverse("D", D).T


def dual(X: Any) -> np.ndarray:
    """Return X* = X^-T, the transform of forces for a transform of motions, 6x6.

    Raises numpy's LinAlgError if X is singular (numpy's matrix_rank is below 6),
    ShapeError or NonFiniteError if it is another array or not finite.

    Source: GUIDE (2), (3); SV-1.3.
    """
    return _inverse("X", X).T


def _inverse(name: str, M: Any) -> np.ndarray:
    """Return the inverse of a 6x6 matrix M; LinAlgError if matrix_rank is below 6."""
    M = single(name, M, 6, 6)
    rank = int(np.linalg.matrix_rank(M))
    if rank < 6:
        raise np.linalg.LinAlgError(f"{name} is singular: rank {rank} of 6")
    return np.linalg.inv(M)


def pluecker_bases(X: Transform) -> tuple[MotionSubspace, ForceSubspace]:
    """Return the Pluecker bases of a frame A, in coordinates of B, for X from A to B.

    d_Ox, d_Oy, d_Oz (rotations about the axes of A), d_x, d_y, d_z (translations)
    and the dual e_x, e_y, e_z (couples), e_Ox, e_Oy, e_Oz (forces along the axes): d_i
    . e_j = 1 for i = j, else 0. They are the columns of X and of X*, without labels.

    Source: GUIDE (4)-(10); SV-4.1.
    """
    numbers = np.eye(6).tolist()
    motions = MotionSubspace(X @ Motion.of(row) for row in numbers)
    return motions, ForceSubspace(X @ Force.of(row) for row in numbers)


def central_difference(path: Callable[[float], Any], t: float, h: float = 1e-5) -> Any:
    """Return the derivative of a path of motions or forces: (x(t+h) - x(t-h))/(2h).

    In a constant basis this is also the rate of each component.

    Args:
        path: Function of time that returns a motion or force; its errors pass through,
            and different labels of its results are a FrameMismatchError.
        t: Time [s].
        h: Step [s]; 0 is a ZeroDivisionError.

    Source: GUIDE (14); SV-5.1.
    """
    return (path(t + h) - path(t - h)) * (0.5 / h)


def derivative_in_frame(rate: Any, v_frame: Motion, s: Motion | Force) -> Any:
    """Return the derivative of a vector itself, in the axes of a moving frame.

        A(dm/dt) = d(Am)/dt + v x m        A(df/dt) = d(Af)/dt + v x* f

    Args:
        rate: Derivative of the components in the moving frame, of the type of s.
        v_frame: Velocity of the frame, in its own coordinates.
        s: The vector, in the same coordinates.

    Returns:
        The derivative, of the type of s.

    Raises:
        FrameMismatchError: The vectors have different frame labels.
        TypeError: `rate` is of another type than s.

    Source: GUIDE (15), (16); SV-5.2; KIM-1.8.
    """
    if isinstance(s, Motion):
        return rate + cross_motion(v_frame, s)
    return rate + cross_force(v_frame, s)


def transform_rate(X: Transform, v_rel: Motion) -> np.ndarray:
    """Return dX/dt = -(v_rel x) X of the transform from A to B, 6x6.

    Args:
        X: Transform from A to B.
        v_rel: Velocity of B relative to A, in B coordinates.

    Source: GUIDE (15), (17); SV-5.3; KIM-1.8.
    """
    return -cross_matrix(v_rel) @ np.asarray(X, float)


def complement(S: Any) -> np.ndarray:
    """Return an orthonormal basis T of the constraint forces of S: S.T T = 0.

    S is 6xr, a MotionSubspace or an array, T is 6x(6-r); an empty S counts as 6x0.

    Raises ValueError if the columns of S are linearly dependent (a singular value is at
    most 1e-12 of the largest), ShapeError or NonFiniteError if S has not 6 rows or is
    not finite.

    Source: GUIDE (33), section 7; SV-3.11, SV-9.3, SV-9.5.
    """
    S = finite("S", S)
    S = S if S.size else np.zeros((6, 0))
    if S.ndim != 2 or len(S) != 6:
        raise ShapeError("S", "shape (6, r)", f"shape {S.shape}")
    u, sizes, _ = np.linalg.svd(S)
    rank = int((sizes > 1e-12 * max(sizes, default=0.0)).sum())
    if rank < S.shape[1]:
        raise ValueError(f"the motion subspace has rank {rank}, not {S.shape[1]}")
    return u[:, rank:]


def constraint_rows(S: Any) -> np.ndarray:
    """Return the constraint rows T.T of a joint: T.T (v2 - v1) = 0, (6-r)x6.

    S is 6xr, a MotionSubspace or an array; the rows are orthonormal. They hold exactly
    when v2 - v1 = S qd for some qd. Raises ValueError if the columns of S are linearly
    dependent, ShapeError or NonFiniteError if S has not 6 rows or is not finite.

    Source: GUIDE (31); SV-3.1, SV-9.1, SV-9.5.
    """
    return complement(S).T


def screw_axis(
    u: Iterable[float], P: Iterable[float] = _ZERO, pitch: float = 0.0
) -> Motion:
    """Return the motion of a joint about a line: s = [u; P x u + pitch u].

    It has no frame label.

    Args:
        u: Direction of the line, 3; it is normalised.
        P: A point of the line, 3 [m].
        pitch: Translation per rotation [m/rad].

    Raises:
        ValueError: u is zero.
        ShapeError: u or P has not 3 numbers, or pitch is no number.
        NonFiniteError: A number is NaN or infinite.

    Source: GUIDE, section 4; SV-9.6.
    """
    u, P, h = single("u", u, 3), single("P", P, 3), single("pitch", pitch)
    length = float(np.linalg.norm(u))
    if length == 0:
        raise ValueError("u is zero; the axis of a joint needs a direction")
    u = u / length
    return Motion(u.tolist(), (np.cross(P, u) + h * u).tolist())


def _columns(*places: int) -> MotionSubspace:
    """Return the columns of the 6x6 identity at these indices, in this order."""
    return MotionSubspace(Motion.of(np.eye(6)[k].tolist()) for k in places)


def fixed() -> MotionSubspace:
    """Return S of a fixed joint, 6x0.

    Source: GUIDE, section 7; SV-9.6.
    """
    return _columns()


def revolute() -> MotionSubspace:
    """Return S of a rotation about z, 6x1.

    Source: GUIDE, section 7; SV-9.6.
    """
    return _columns(2)


def prismatic() -> MotionSubspace:
    """Return S of a translation along z, 6x1.

    Source: GUIDE, section 7; SV-9.6.
    """
    return _columns(5)


def helical(pitch: float) -> MotionSubspace:
    """Return S of a screw joint about z with this pitch [m/rad], 6x1.

    Raises ShapeError if it is no number, NonFiniteError for NaN or infinity.

    Source: GUIDE, section 7; SV-9.6.
    """
    return MotionSubspace([screw_axis(_AXES[2], _ZERO, pitch)])


def cylindrical() -> MotionSubspace:
    """Return S of a rotation about and a translation along z, 6x2.

    Source: GUIDE, section 7; SV-9.6.
    """
    return _columns(2, 5)


def spherical() -> MotionSubspace:
    """Return S of all rotations about the origin, 6x3.

    Source: GUIDE, section 7; SV-9.6.
    """
    return _columns(0, 1, 2)


def planar() -> MotionSubspace:
    """Return S of a rotation about z and translations along the body's x and y, 6x3.

    Source: GUIDE, section 7; SV-9.6.
    """
    return _columns(2, 3, 4)


def free() -> MotionSubspace:
    """Return S of a joint without constraints, 6x6.

    Source: GUIDE, section 7; SV-9.6.
    """
    return _columns(0, 1, 2, 3, 4, 5)


def universal(q: Iterable[float]) -> MotionSubspace:
    """Return S(q) of rotations about x and then the rotated y, in the last frame, 6x2.

        S = [[cos q2, 0], [0, 1], [sin q2, 0], 0, 0, 0]

    q has two angles [rad].

    Raises ShapeError for another number of entries, NonFiniteError for NaN or infinity.

    Source: GUIDE, section 7; SV-9.6.
    """
    _, second = single("q", q, 2).tolist()
    first = Motion((math.cos(second), 0.0, math.sin(second)), _ZERO)
    return MotionSubspace([first, Motion(_AXES[1], _ZERO)])


def universal_ring(q: Iterable[float], qd: Iterable[float]) -> Motion:
    """Return the apparent derivative of S of a universal joint, times qd.

        (dS/dt) qd = [-sin q2, 0, cos q2, 0, 0, 0] qd1 qd2

    q [rad] and qd [rad/s] have two numbers each; the result is an acceleration.

    Raises ShapeError for another number of entries, NonFiniteError for NaN or infinity.

    Source: GUIDE (32); SV-9.2, SV-9.6.
    """
    (_, second), (a, b) = single("q", q, 2), single("qd", qd, 2).tolist()
    turned = Vector((-math.sin(second), 0.0, math.cos(second)))
    return Motion(turned * (a * b), _ZERO)
