"""Ports and Signatures: inputs and outputs with name, size, unit and meaning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from dyn_core.errors import UnsupportedError
from dyn_core.validation import known_keywords

# Kinds of Ports; the adapter converts values by kind (solving/adapter.py).
KINDS = (
    "position",  # (nq,) expanded to followers
    "velocity",  # (nv,) velocities, accelerations: expanded to followers
    "joint_force",  # (nv,) outputs contracted to leaders; includes joint friction
    "joint_matrix",  # (nv, nv) symmetric, contracted on both sides
    "joint_slopes",  # (nv, nv) derivatives of joint forces, contracted on both sides
    "joint_stiffness",  # joint_slopes by position; includes joint springs
    "joint_damping",  # joint_slopes by velocity; includes joint friction
    "symmetric",  # (nv, nv) symmetric, not a sum over joints: not contracted
    "jacobian",  # (6, nv) columns contracted to leaders
    "wrenches",  # (nb, 6) a force on each body, in its coordinates
    "poses",  # (k, 4, 4) homogeneous transforms
    "motion",  # (6,)
    "motions",  # (nb, 6) a motion of each body, in its coordinates
    "forces",  # (nb, 6) a force at each body
    "force",  # (6,)
    "plain",  # not converted
)

PASSIVE = ("joint_friction", "joint_springs")  # options of build
# Last components of parameter paths, for Signature.ignores: inertial parameters, and
# all dynamic ones (gravity and inertia, not geometry).
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
REST = "rest"  # value of friction_at: friction and springs act at zero velocity


@known_keywords
@dataclass(frozen=True)
class Port:
    """One input or output of a Signature.

    Attributes:
        name: Name of the argument or result.
        shape: Sizes, as numbers or names (nq, nv, nb, or a size set by an option).
        unit: SI unit as text. "a; b" are the units of the angular and linear half of a
            spatial vector; "a | b" those for a revolute and for a prismatic joint.
        kind: How values are converted, such as for followers: one of KINDS, like
            position, velocity, joint_force or jacobian; plain: not at all.
        optional: Whether the input is zero in a Program built without it.
        places: Row and column indices of the matrix entries that a packed or sparse
            form contains; None for a dense array.
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
        """Return a copy whose shape is numbers; names are looked up in `sizes`.

        Numbers in the shape and `places` stay.

        Raises:
            UnsupportedError: A name in the shape is not in `sizes`.
        """
        shape = []
        for size in self.shape:
            if isinstance(size, str) and size not in sizes:
                raise UnsupportedError(f"port {self.name}: unknown size '{size}'")
            shape.append(sizes[size] if isinstance(size, str) else size)
        return replace(self, shape=tuple(shape))

    @property
    def size(self) -> int:
        """Number of entries, 1 for a scalar.

        The shape must be numbers, see `sized`; else ValueError.
        """
        count = 1
        for n in self.shape:
            count *= int(n)
        return count


def port_row(
    name: str,
    sizes: str,
    unit: str,
    meaning: str,
    kind: str = "plain",
    optional: bool = False,
) -> Port:
    """Return a Port, written as one row of a table.

    `sizes` are numbers or names with spaces between, such as "nb 6", empty for a
    scalar; `meaning` is a short noun phrase. `kind` is one of KINDS; plain: not
    converted. An `optional` input is zero in a Program built without it.
    """
    shape = tuple(int(x) if x.isdecimal() else x for x in sizes.split())
    return Port(name, shape, unit, kind, optional, meaning=meaning)


def slope_row(
    of: str, by: str, sizes: str, unit: str = "SI", kind: str = "plain"
) -> Port:
    """Return the Port "dOF_dBY" of derivatives, sizes of `of`, then `by`: "nv nv"."""
    return port_row(f"d{of}_d{by}", sizes, unit, f"derivative of {of} by {by}", kind)


@known_keywords
@dataclass(frozen=True)
class Signature:
    """A kind of problem; Programs of one Signature are interchangeable.

    Attributes:
        name: In plain words with underscores.
        inputs, outputs: Ports in the order of the call.
        friction_at: Input with the velocity at which the adapter adds joint friction,
            and springs at q, to the joint forces; "rest": at zero velocity. None: the
            adapter adds neither, and joint_friction and joint_springs are passed to the
            algorithm and its slots.
        passive: Which of joint_friction and joint_springs change an output; builds
            with the other ones are refused. None: both where friction_at is set, else
            neither.
        of_trees: Whether loops of a robot change the outputs, so that for a robot with
            loops only solvers that close them are allowed. H, bias, gravity and frames
            are defined on the open tree.
        divides_by_inertia: Whether no solution exists where a freely moving joint has
            no inertia; building refuses such robots.
        system: `kind` of the System that its solvers are built for.
        meaning: The computed quantity, as a short noun phrase.
        ignores: Last components of parameter paths on which no output depends; builds
            with such an input are refused.
        answers_all: Whether NaN and infinite inputs are valid too, as for a complete
            controller: inputs are then not checked, and finite=True is refused.
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
        """Whether the loops of a robot may change an output.

        They may if `of_trees` is set, or the name begins with an entry of _CLOSED:
        loop_, independent_, step, fd_derivatives, tracking_control or gravity_control.
        """
        return self.of_trees or self.name.startswith(_CLOSED)

    @property
    def acting(self) -> tuple[str, ...]:
        """Names among joint_friction and joint_springs that change an output.

        They are in this order if the Signature has no `passive`, else in its order.
        """
        if self.passive is not None:
            return self.passive
        return () if self.friction_at is None else PASSIVE

    def __repr__(self) -> str:
        inputs = ", ".join(p.name + ("?" if p.optional else "") for p in self.inputs)
        return f"{self.name}({inputs}) -> {', '.join(p.name for p in self.outputs)}"
