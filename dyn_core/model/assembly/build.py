"""Build: what a Model was made from, as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from numpy.typing import ArrayLike

from dyn_core.model.description import Description
from dyn_core.model.joints import Joint
from dyn_core.model.joints.moving_pose import Drive
from dyn_core.model.loops.loop_constraints import LoopConstraint
from dyn_core.model.sources.origin import Origin
from dyn_core.numbers.scalar import Scalar

ForceFunction = Callable[..., "list[Scalar]"]  # (model, q, qd) -> joint forces, nv


@dataclass(frozen=True)
class ForceOfPotential:
    """A user's passive forces with their potential, callable as the forces alone.

    Attributes:
        force: (model, q, qd) -> joint forces, nv.
        potential: (model, q) -> energy [J], with force = -d potential / dq.
    """

    force: ForceFunction
    potential: Callable[..., Scalar]

    @property
    def __name__(self) -> str:
        return getattr(self.force, "__name__", repr(self.force))

    def __call__(self, *state: object) -> list[Scalar]:
        """Return the joint forces."""
        return self.force(*state)


@dataclass(frozen=True)
class Build:
    """What a Model is assembled from (model/assembly/assemble.py).

    Attributes:
        description: Links and joints.
        root: Link the chain starts at, or None for the root of the tree.
        tip: Link the chain ends at, or None for the whole tree.
        root_joint: fixed or floating.
        lock: Joint positions at which joints are fixed.
        gravity: Gravity acceleration in the root frame, 3 [m/s²].
        strict: Whether what is doubtful is an error rather than a warning.
        drives: Functions of time that move where joints are placed (joints/driven.py).
        joints: Joints that stand for those of the description, by name.
        forces: Functions that give passive joint forces (model/passive_forces.py).
        loops: Constraints besides those of the description (loop_constraints.py).
        origin: What the description was read from.
    """

    description: Description
    root: str | None = None
    tip: str | None = None
    root_joint: str = "fixed"
    lock: Mapping[str, ArrayLike] = field(default_factory=dict)
    gravity: tuple[float, ...] = (0.0, 0.0, -9.81)
    strict: bool = True
    drives: Mapping[str, Drive] = field(default_factory=dict)
    joints: Mapping[str, Joint] = field(default_factory=dict)
    forces: tuple[ForceFunction, ...] = ()
    loops: tuple[LoopConstraint, ...] = ()
    origin: Origin = Origin()

    @property
    def constraints(self) -> tuple[LoopConstraint, ...]:
        """All constraints that close the tree: the description's and those added."""
        return (*self.description.loops, *self.loops)
