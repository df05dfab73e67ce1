"""Ports and Signatures: inputs and outputs with name, size, unit and meaning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dyn_core.errors import UnsupportedError
from dyn_core.validation import known_keywords

# What a Port's numbers are; decides how the adapter converts them.
KINDS = (
    "position",  # (nq,) expanded to followers
    "velocity",  # (nv,) velocities, accelerations: expanded to followers
    "joint_force",  # (nv,) outputs contracted to leaders; carries joint friction
    "joint_matrix",  # (nv, nv) symmetric, contracted on both sides
    "joint_slopes",  # (nv, nv) of joint forces, contracted on both sides
    "joint_stiffness",  # the same by position; carries the slope of joint springs
    "joint_damping",  # the same by velocity; carries the slope of joint friction
    "symmetric",  # (nv, nv), a matrix that is no sum over joints
    "jacobian",  # (6, nv) columns contracted to leaders
    "wrenches",  # (nb, 6) a force on each body, in its coordinates
    "poses",  # (k, 4, 4) homogeneous transforms
    "motion",  # (6,)
    "motions",  # (nb, 6) a motion of each body, in its coordinates
    "forces",  # (nb, 6) a force at each body
    "force",  # (6,)
    "plain",  # as it is
)

PASSIVE = ("joint_friction", "joint_springs")  # options of build
# Last parts of parameter paths: inertia, and all but geometry.
OF_INERTIA = ("mass", "com", "inertia", "payload", "armature")
DYNAMICS = ("gravity", *OF_INERTIA)
_CLOSED = (  # kinds of problem of closed robots, or with solvers that close loops
    "loop_",
    "independent_",
    "step",
    "fd_derivatives",
    "tracking_control",
    "gravity_control",
)
REST = "rest"  # friction_at of what does not move


@known_keywords
@dataclass(frozen=True)
class Port:
    """One input or output.

    Attributes:
        name: As in the call.
        shape: Sizes, as numbers or names (nq, nv, nb, or an option's length).
        unit: SI unit as text; [angular; linear] parts are separated by a semicolon.
        kind: One of KINDS.
        optional: Zero when a Program is built without it.
        places: Rows and columns of a matrix whose entries these are; None if all.
        meaning: A short noun phrase, which help pages print.
    """

    name: str
    shape: tuple[Any, ...]
    unit: str = ""
    kind: str = "plain"
    optional: bool = False
    places: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    meaning: str = ""

    def sized(self, sizes: Mapping[str, int]) -> Port:
        """Return the Port with its sizes as numbers."""
        shape = []
        for size in self.shape:
            if isinstance(size, str) and size not in sizes:
                raise UnsupportedError(f"port {self.name}: unknown size '{size}'")
            shape.append(sizes[size] if isinstance(size, str) else size)
        return replace(self, shape=tuple(shape))

    @property
    def size(self) -> int:
        """Number of entries of a sized Port."""
        count = 1
        for n in self.shape:
            count *= int(n)
        return count


@known_keywords
@dataclass(frozen=True)
class Signature:
    """A kind of problem; Programs of one Signature are interchangeable.

    Attributes:
        name: In plain words with underscores.
        inputs, outputs: Ports in the order of the call.
        friction_at: Velocity input at which joint friction and springs are added to
            joint forces (springs at q), "rest" for none; or None: joint_friction and
            joint_springs go to the algorithm and its slots.
        passive: Which of joint_friction and joint_springs change an answer; builds
            with others are refused. None: both where friction_at is set, else none.
        of_trees: Whether loops of a robot change the answer, so that only solvers that
            close them may give it. H, bias, gravity, frames are those of the open tree.
        divides_by_inertia: Whether there is no answer where nothing has inertia along a
            joint that moves freely, so that building refuses such robots.
        system: Kind of System that its solvers are built for.
        meaning: What is computed, a short noun phrase.
        ignores: Last parts of parameter paths on which no answer depends, so that
            builds with such an input are refused.
        answers_all: Whether NaN and infinity have an answer, too, as those of a whole
            controller have: then nothing checks for them, and finite=True is refused.
    """

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    friction_at: str | None = None
    passive: tuple[str, ...] | None = None
    of_trees: bool = False
    divides_by_inertia: bool = False
    system: str = "robot"
    meaning: str = ""
    ignores: tuple[str, ...] = ()
    answers_all: bool = False

    @property
    def depends_on_loops(self) -> bool:
        """Whether the loops of a robot may change the answer."""
        return self.of_trees or self.name.startswith(_CLOSED)

    @property
    def acting(self) -> tuple[str, ...]:
        """Options of build about passive joint forces that change an answer."""
        if self.passive is not None:
            return self.passive
        return () if self.friction_at is None else PASSIVE

    def __repr__(self) -> str:
        inputs = ", ".join(p.name + ("?" if p.optional else "") for p in self.inputs)
        return f"{self.name}({inputs}) -> {', '.join(p.name for p in self.outputs)}"
