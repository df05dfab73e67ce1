"""What a Model consists of besides bodies: frames of links, and who leads whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from dyn_core.spatial import Matrix, RigidInertia, Transform, Vector


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
