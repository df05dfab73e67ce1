"""Build: the data from which a Model is assembled."""

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
    """A user's forces [N·m | N] with their potential [J]; force = -d potential / dq."""

    force: ForceFunction
    potential: Callable[..., Scalar]

    @property
    def __name__(self) -> str:
        return getattr(self.force, "__name__", repr(self.force))

    def __call__(self, *state: object) -> list[Scalar]:
        """Return the joint forces, nv; `state` is (model, q, qd)."""
        return self.force(*state)


@dataclass(frozen=True)
class Build:
    """The data from which a Model is assembled (model/assembly/assemble.py).

    Attributes:
        description: Links and joints.
        root: First link of a chain or sub-tree; None: the root of the tree.
        tip: Last link of a chain; None: the whole tree below the root.
        root_joint: Joint between world and root link: fixed or floating.
        lock: Positions at which joints are fixed, by name [rad | m].
        gravity: Gravity acceleration in the root frame, 3 [m/s²].
        strict: Whether doubtful elements raise a ModelError; else they are warnings.
        drives: By joint: function of time that moves its placement (joints/custom.py).
        joints: By name: Joint objects that replace joints of the description.
        forces: Functions that return passive joint forces (model/passive_forces.py).
        loops: Loop constraints in addition to the description's (loop_constraints.py).
        origin: Source of the description.
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
        """All loop constraints: the description's, then the additional ones."""
        return (*self.description.loops, *self.loops)
