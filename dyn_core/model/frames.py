"""Frames of links, placements, and rules of followers: what a tree has by body."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dyn_core.numbers.scalar import Scalar, cos, sin
from dyn_core.spatial import Matrix, Motion, RigidInertia, Transform, Vector
from dyn_core.validation import Field, numbers

ZERO = (0.0, 0.0, 0.0)
PLACE = (
    Field("xyz", numbers(3), "position in the link's frame", "m", ZERO),
    Field("rpy", numbers(3), "roll, pitch and yaw in the link's frame", "rad", ZERO),
)


@dataclass(frozen=True)
class Frame:
    """A link's frame: fixed to a body.

    Attributes:
        body: Number of the body; 0 is the base.
        X: Transform from the body's frame to this one.
        inertia: What the link adds to its body, about this frame.
    """

    body: int
    X: Transform
    inertia: RigidInertia


class Lead(NamedTuple):
    """Whose coordinates a body's joint has.

        q = ratio q_leader + offset,   qd = ratio qd_leader

    Attributes:
        body: The leading body; the body itself if its coordinates are independent.
        ratio: (nv, nv of the leader), or None if independent.
        offset: Of the position, nq.
    """

    body: int
    ratio: Matrix | None = None
    offset: Vector = Vector(())


@dataclass(frozen=True)
class Follower:
    """A mimic or geared joint: its position is multiplier * q_leader + offset.

    Between joints of several coordinates they are a matrix and an array.
    """

    leader: str
    multiplier: float | np.ndarray
    offset: float | np.ndarray


def gravity(g: Sequence[Scalar]) -> Motion:
    """Return gravity as a spatial acceleration of the base frame."""
    return Motion((0.0, 0.0, 0.0), tuple(g))


def sum_inertias(frames: Mapping[str, Frame], count: int) -> tuple[RigidInertia, ...]:
    """Return by body the sum of the inertias of all links fixed to it."""
    sums = [RigidInertia.zero()] * count
    for frame in frames.values():
        moved = frame.X.T @ frame.inertia @ frame.X
        sums[frame.body] = sums[frame.body] + moved
    return tuple(sums)


def origin(xyz: Sequence[Scalar], rpy: Sequence[Scalar]) -> Transform:
    """Return the transform from a frame to one placed in it by xyz, roll, pitch, yaw.

    R = Rz(yaw) Ry(pitch) Rx(roll); exact for quarter turns of floats.
    """
    r, p, y = (_sine_cosine(angle) for angle in rpy)
    (sr, cr), (sp, cp), (sy, cy) = r, p, y
    R = Matrix(
        (
            (cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr),
            (sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr),
            (-sp, cp * sr, cp * cr),
        )
    )
    return Transform(R.T, Vector(xyz))


def _sine_cosine(angle: Scalar) -> tuple[Scalar, Scalar]:
    """Return sine and cosine, exact where a float is a quarter turn to rounding."""
    if isinstance(angle, float):
        turns = angle / (math.pi / 2)
        nearest = round(turns) if math.isfinite(turns) else 0
        if abs(turns - nearest) < 1e-14:
            return ((0.0, 1.0), (1.0, 0.0), (0.0, -1.0), (-1.0, 0.0))[nearest % 4]
    return sin(angle), cos(angle)
