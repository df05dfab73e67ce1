"""Frames of links, placements, rules of followers, and roll-pitch-yaw rotations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dyn_core.errors import ModelError
from dyn_core.numbers.scalar import Scalar, atan2, cos, sin, sqrt
from dyn_core.spatial import Matrix, Motion, RigidInertia, Transform, Vector
from dyn_core.validation import Field, numbers

ZERO = (0.0, 0.0, 0.0)
PLACE = (
    Field("xyz", numbers(3), "position in the link's frame", "m", ZERO),
    Field("rpy", numbers(3), "roll, pitch and yaw in the link's frame", "rad", ZERO),
)


_UPRIGHT = Matrix.identity(3)
SineCosine = tuple[Any, Any]  # of an angle: numbers, or columns of many


@dataclass(frozen=True)
class Frame:
    """A link's frame, fixed to a body.

    Attributes:
        body: Number of the body; 0 is the base.
        X: Transform from the body's frame to this one.
        inertia: Inertia of the link alone, about the origin of this frame.
    """

    body: int
    X: Transform
    inertia: RigidInertia

    def __repr__(self) -> str:
        place = ", ".join(_short(x) for x in self.X.r)
        return (
            f"<Frame on body {self.body} at ({place}) m, {_short(self.inertia.m)} kg>"
        )


def _short(x: Any) -> str:
    """Return a number with four significant digits; for symbols their type's name."""
    return f"{x:.4g}" if isinstance(x, (int, float)) else type(x).__name__


class Lead(NamedTuple):
    """The leader of a body's joint, and the rule by which it follows.

        q = ratio q_leader + offset,   qd = ratio qd_leader

    Attributes:
        body: The leading body; the body itself if its coordinates are independent.
        ratio: Matrix (nv, nv of the leader), or None if independent.
        offset: Offset of the position, nq.
    """

    body: int
    ratio: Matrix | None = None
    offset: Vector = Vector(())


@dataclass(frozen=True)
class Follower:
    """Rule of a mimic or geared joint: q = multiplier * q_leader + offset.

    Attributes:
        leader: Name of the independent joint that it finally follows.
        multiplier: Ratio; a matrix if one of the joints has several coordinates.
        offset: Offset [rad | m]; an array if one of the joints has several coordinates.
    """

    leader: str
    multiplier: float | np.ndarray
    offset: float | np.ndarray


def gravity(g: Sequence[Scalar]) -> Motion:
    """Return gravity g (3,) [m/s²] as a spatial acceleration, the Motion [0; g]."""
    return Motion((0.0, 0.0, 0.0), tuple(g))


def sum_inertias(frames: Mapping[str, Frame], count: int) -> tuple[RigidInertia, ...]:
    """Return the total inertia of the links fixed to each of `count` bodies, by body.

    Inertias are in the body's frame, about its origin; zero for a body without links.
    """
    sums: list[RigidInertia | None] = [None] * count
    fixed = [frame for frame in frames.values() if not _is_nothing(frame.inertia)]
    for frame, moved in zip(fixed, _moved_to_bodies(fixed), strict=True):
        other = sums[frame.body]
        sums[frame.body] = moved if other is None else other + moved
    return tuple(RigidInertia.zero() if x is None else x for x in sums)


def _moved_to_bodies(frames: Sequence[Frame]) -> Sequence[RigidInertia]:
    """Return each link's inertia in the frame of its body, in the order of `frames`.

        h_body = R h + m r,   I_body = R I R.T - [r][Rh] - [Rh][r] - m [r][r]

    with rotation R and position r of the link's frame in the body's frame. Floats are
    computed as arrays, and links at Transform.identity() keep their inertia objects; if
    other links have symbols, all are computed one by one.
    """
    identity = Transform.identity()
    placed = [frame for frame in frames if frame.X is not identity]
    numbers = [(*x.X.r, *(y for row in x.X.E.rows for y in row)) for x in placed]
    inertias = [x.inertia.parameters for x in placed]
    if not all(type(y) is float for row in (*numbers, *inertias) for y in row):
        return [frame.X.T @ frame.inertia @ frame.X for frame in frames]
    places = np.array(numbers, float).reshape(-1, 12)
    ten = np.array(inertias, float).reshape(-1, 10)
    r, R = places[:, :3], places[:, 3:].reshape(-1, 3, 3).swapaxes(1, 2)
    I = ten[:, [4, 5, 7, 5, 6, 8, 7, 8, 9]].reshape(-1, 3, 3)
    h = np.einsum("nij,nj->ni", R, ten[:, 1:4])
    m, unit = ten[:, :1], np.eye(3)
    both = np.einsum("ni,nj->nij", r, h + 0.5 * m * r)
    both = both + both.swapaxes(1, 2)  # r h.T + h r.T + m r r.T
    moved = R @ I @ R.swapaxes(1, 2) - both
    moved += np.trace(both, axis1=1, axis2=2)[:, None, None] * unit
    upper = moved[:, [0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]
    rows = iter(np.hstack([m, h + m * r, upper]).tolist())
    return [
        frame.inertia if frame.X is identity else RigidInertia.of_parameters(next(rows))
        for frame in frames
    ]


def _is_nothing(inertia: RigidInertia) -> bool:
    """Return whether an inertia consists of floats that are all zero."""
    if isinstance(inertia.m, float) and inertia.m != 0.0:
        return False
    return all(isinstance(x, float) and x == 0.0 for x in inertia.parameters)


def origin(xyz: Sequence[Scalar], rpy: Sequence[Scalar]) -> Transform:
    """Return the transform from a frame to one placed in it by xyz, roll, pitch, yaw.

    Its E is R.T, R = Rz(yaw) Ry(pitch) Rx(roll); exact for floats that are multiples of
    a quarter turn.

    Args:
        xyz: Position of the second frame in the first [m]: three numbers, which is not
            checked.
        rpy: Roll, pitch and yaw [rad].
    """
    if all(isinstance(angle, float) and angle == 0.0 for angle in rpy):
        return Transform(_UPRIGHT, Vector(xyz))
    R = _rotation(*(_sine_cosine(angle) for angle in rpy))
    return Transform(R.T, Vector(xyz))


def roll_pitch_yaw(R: Matrix) -> tuple[Scalar, Scalar, Scalar]:
    """Return roll, pitch and yaw [rad] of a rotation R; inverse of `origin`.

        R = Rz(yaw) Ry(pitch) Rx(roll),   |pitch| <= pi / 2

    At pitch = ±pi / 2 roll is 0; only floats are checked for this.
    """
    level = sqrt(R[0, 0] * R[0, 0] + R[1, 0] * R[1, 0])
    pitch = atan2(-R[2, 0], level)
    # Gimbal lock: only roll and yaw together are determined.
    if isinstance(level, float) and level < 1e-12:
        return 0.0, pitch, atan2(-R[0, 1], R[1, 1])
    return atan2(R[2, 1], R[2, 2]), pitch, atan2(R[1, 0], R[0, 0])


def rpy_of(quaternion: tuple[float, ...], where: str, element: str) -> tuple:
    """Return roll, pitch and yaw [rad] of a quaternion (x, y, z, w) longer than 1e-9.

    R = Rz(yaw) Ry(pitch) Rx(roll). At a pitch of a quarter turn, where only roll and
    yaw together are determined, both may be nonzero; they still give R.
    """
    length = math.hypot(*quaternion)
    if length < 1e-9:
        raise ModelError(f"{where}: a quaternion of length 0 is no rotation", element)
    x, y, z, w = (value / length for value in quaternion)
    r11, r21 = 1 - 2 * (y * y + z * z), 2 * (x * y + z * w)
    r12, r22 = 2 * (x * y - z * w), 1 - 2 * (x * x + z * z)
    r13, r23, r31 = 2 * (x * z + y * w), 2 * (y * z - x * w), 2 * (x * z - y * w)
    yaw = math.atan2(r21, r11)
    s, c = math.sin(yaw), math.cos(yaw)
    roll = math.atan2(s * r13 - c * r23, c * r22 - s * r12)
    return roll, math.atan2(-r31, math.hypot(r11, r21)), yaw


def rotations(rpy: np.ndarray) -> Matrix:
    """Return the R of `origin` for rpy (n, 3) [rad]: a Matrix (3, 3) of arrays (n,)."""
    pairs = [_sine_cosine(angle) for angle in rpy.ravel().tolist()]
    columns = np.array(pairs, float).reshape(-1, 3, 2)
    return _rotation(*((columns[:, k, 0], columns[:, k, 1]) for k in range(3)))


def on_links(xyz: np.ndarray, rpy: np.ndarray) -> list[Transform]:
    """Return origin(xyz, rpy) @ Transform.identity() of each row, to the last bit."""
    turned = np.any(rpy, axis=1)
    X = Transform(rotations(rpy[turned]).T, Vector(xyz[turned].T))
    X = X @ Transform.identity()
    E = np.array(X.E.rows).transpose(2, 0, 1).tolist()
    rotated = iter([Matrix(rows) for rows in E])
    shift = Transform(_UPRIGHT, Vector(xyz.T)) @ Transform.identity()
    r = np.array(shift.r.entries).T.tolist()
    return [
        Transform(next(rotated) if turns else _UPRIGHT, Vector(place))
        for turns, place in zip(turned.tolist(), r, strict=True)
    ]


def _rotation(roll: SineCosine, pitch: SineCosine, yaw: SineCosine) -> Matrix:
    """Return R = Rz(yaw) Ry(pitch) Rx(roll); each angle is given as (sine, cosine)."""
    (sr, cr), (sp, cp), (sy, cy) = roll, pitch, yaw
    return Matrix(
        (
            (cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr),
            (sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr),
            (-sp, cp * sr, cp * cr),
        )
    )


def _sine_cosine(angle: Scalar) -> tuple[Scalar, Scalar]:
    """Return sine and cosine of an angle [rad], exact at quarter turns of floats."""
    if isinstance(angle, float):
        turns = angle / (math.pi / 2)
        nearest = round(turns) if math.isfinite(turns) else 0
        if abs(turns - nearest) < 1e-14:
            return ((0.0, 1.0), (1.0, 0.0), (0.0, -1.0), (-1.0, 0.0))[nearest % 4]
    return sin(angle), cos(angle)
