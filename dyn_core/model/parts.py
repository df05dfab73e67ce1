"""What a Model consists of besides bodies: frames of links, and who leads whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from dyn_core.spatial import Matrix, Motion, RigidInertia, Transform, Vector


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
        body: The leading body; the body itself if its joint has its own coordinates.
        ratio: (nv, nv of the leader), or None for own coordinates.
        offset: Of the position, nq.
    """

    body: int
    ratio: Matrix | None = None
    offset: Vector = Vector(())


@dataclass(frozen=True)
class Follower:
    """A mimic or geared joint: its position is multiplier * q_leader + offset.

    Between joints of several coordinates both are matrices of numbers.
    """

    leader: str
    multiplier: Any
    offset: Any


def gravity(g: Sequence[Any]) -> Motion:
    """Give gravity as a spatial acceleration of the base frame."""
    return Motion((0.0, 0.0, 0.0), tuple(g))


def sum_inertias(frames: Mapping[str, Frame], count: int) -> tuple[RigidInertia, ...]:
    """Add up the inertias of all links fixed to each body."""
    sums = [RigidInertia.zero()] * count
    for frame in frames.values():
        moved = frame.X.T @ frame.inertia @ frame.X
        sums[frame.body] = sums[frame.body] + moved
    return tuple(sums)
