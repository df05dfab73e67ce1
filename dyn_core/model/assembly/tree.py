"""Tree: a robot as used by algorithms, with numbered bodies, parents first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import FrozenInstanceError, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dyn_core.errors import ModelError, unknown_name
from dyn_core.model.assembly.build import Build, ForceFunction
from dyn_core.model.frames import Frame, Lead
from dyn_core.model.joints import Joint
from dyn_core.sharing import cached_property
from dyn_core.spatial import Motion, RigidInertia, Transform, Vector

# Attributes of a Tree in the order of qd.
LIMITS = ("lower", "upper", "velocity_limit", "effort_limit")
WHOLE_TURNS = 1e-9  # allowed difference of a follower's multiplier from an integer


class Immutable:
    """Base of Model: attributes are read only, in words."""

    def __new__(cls, *positional: object, **_: object) -> Any:
        """Return an object to be filled; refuse positional arguments, such as a name.

        Raises:
            ModelError: There are positional arguments.
        """
        if positional:
            raise ModelError("a Model comes from dyn.load(source); valid: dyn.load")
        return object.__new__(cls)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Fill a copy or an unpickled object; its arrays are read-only again."""
        self.__dict__.update(state)
        for x in state.values():
            if isinstance(x, np.ndarray):
                x.setflags(write=False)

    if not TYPE_CHECKING:

        def __setattr__(self, name: str, value: object) -> None:
            """Raise FrozenInstanceError: a new attribute would change nothing."""
            raise FrozenInstanceError(
                f"{name}: a Model is immutable; valid: a changed copy, such as"
                " model.with_values({'gravity': [0, 0, -1.6]}), model.lock, or"
                " dyn.load(source, extras=...)"
            )


@dataclass(frozen=True, eq=False)
class Tree:
    """A kinematic tree: bodies 1..nb, parents first; body 0 is the base.

    Per-body tuples have an unused entry 0, so that the body's number is the index.
    Inputs and outputs have the independent coordinates; a mimic joint has none.

    Attributes:
        name: The robot's name.
        parent: Number of each body's parent, which is less than the body's number.
        joint: Joint that carries each body.
        Xtree: Transform from the parent's frame to the frame before the joint [m].
        I: Inertia of each body, with all links fixed to it, about the origin of its
            frame.
        armature, damping, friction: By body and coordinate [kg·m² | kg], [N·m·s |
            N·s/m], [N·m | N]. `friction` is dry friction, the mean of both directions.
        friction_asymmetry: By body and coordinate: half the difference of dry friction
            in positive and negative direction [N·m | N].
        friction_speed: By body and coordinate: speed v of the smooth sign change of dry
            friction at rest, tanh(qd / v) [rad/s | m/s].
        stribeck, stribeck_speed: By body and coordinate: additional dry friction near
            rest, and the speed at which it has decayed to e^-1 [N·m | N], [rad/s |
            m/s].
        stiffness, rest: By body and coordinate: stiffness of the joint's spring, and
            the coordinate at which it is slack [N·m/rad | N/m], [rad | m].
        a_grav: Gravity as a spatial acceleration of the base frame [m/s²].
        names: Name of the joint that carries each body.
        leader: By body: leader and rule of its joint; itself if independent.
        q_slices, v_slices: By body: slices of its (its leader's) coordinates in q and
            qd.
        inertia_scale: By body and coordinate: largest inertia along the joint in a few
            positions [kg·m² | kg].
        frames: Every link's frame, by name.
        lower, upper, velocity_limit: Position limits [rad | m] and velocity limits
            [rad/s | m/s] in the order of qd, (nv,); infinite where none.
        effort_limit: Effort limits, (nv,); 0.0 where the file gives none [N·m | N].
        joint_mounts: By body: transform from the parent to the link its joint is on.
        warnings: Warnings about the robot, each names a link or joint.
        build: The Build from which the tree was assembled.
        forces: Functions that return passive joint forces (model/passive_forces.py),
            including springs between points (model/point_springs.py).
        without_inertia: Names of joints along which no carried body has inertia.
        pivot: Pivots up to this fraction of inertia_scale mean a singular joint.

    """

    name: str
    parent: tuple[int, ...]
    joint: tuple[Joint, ...]
    Xtree: tuple[Transform, ...]
    I: tuple[RigidInertia, ...]
    armature: tuple[Vector, ...]
    damping: tuple[Vector, ...]
    friction: tuple[Vector, ...]
    friction_asymmetry: tuple[Vector, ...]
    friction_speed: tuple[Vector, ...]
    stribeck: tuple[Vector, ...]
    stribeck_speed: tuple[Vector, ...]
    stiffness: tuple[Vector, ...]
    rest: tuple[Vector, ...]
    a_grav: Motion
    names: tuple[str, ...]
    leader: tuple[Lead, ...]
    q_slices: tuple[slice, ...]
    v_slices: tuple[slice, ...]
    inertia_scale: tuple[tuple[float, ...], ...]
    frames: Mapping[str, Frame]
    lower: np.ndarray
    upper: np.ndarray
    velocity_limit: np.ndarray
    effort_limit: np.ndarray
    joint_mounts: tuple[Transform, ...]
    warnings: tuple[str, ...]
    build: Build
    forces: tuple[ForceFunction, ...] = ()
    without_inertia: tuple[str, ...] = ()
    pivot: float = 1e-13

    @property
    def nb(self) -> int:
        """Number of moving bodies, without the base."""
        return len(self.parent) - 1

    @cached_property
    def nq(self) -> int:
        """Number of independent position coordinates; followers have none."""
        return sum(self.joint[i].nq for i in self.independent)

    @cached_property
    def nv(self) -> int:
        """Number of independent velocity coordinates; followers have none."""
        return sum(self.joint[i].nv for i in self.independent)

    @property
    def bodies(self) -> range:
        """Numbers of the moving bodies, parents first."""
        return range(1, self.nb + 1)

    @cached_property
    def independent(self) -> tuple[int, ...]:
        """Bodies with independent coordinates, in the order of the coordinates.

        Bodies of joints without coordinates are left out. It is computed once.
        """
        bodies = [
            i for i in self.bodies if self.leader[i].body == i and self.joint[i].nv
        ]
        return tuple(sorted(bodies, key=lambda i: self.v_slices[i].start))

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of joints with independent coordinates, in the order of q and qd."""
        return tuple(self.names[i] for i in self.independent)

    @property
    def coupled(self) -> bool:
        """Whether some joint is a follower (mimic joint or gear)."""
        return any(self.leader[i].body != i for i in self.bodies)

    @property
    def frame_names(self) -> tuple[str, ...]:
        """Names of all links, including links merged into a body or the base.

        Each link comes after the link above it.
        """
        return tuple(self.frames)

    @property
    def mass(self) -> float:
        """Total mass of the moving bodies [kg]; a symbol if one of them is.

        Links fixed to the base are not counted.
        """
        return sum(self.I[i].m for i in self.bodies)

    def frame(self, link: str) -> Frame:
        """Return the Frame of a link: its body, placement in it, and inertia.

        Raises ModelError for an unknown name, and for a list or tuple of names.
        """
        if isinstance(link, list | tuple):
            valid = "valid: the name of one link; a Program for each"
            raise ModelError(f"a link is {link!r}; {valid}")
        if not isinstance(link, str) or link not in self.frames:
            raise ModelError(unknown_name("link", link, self.frames), str(link))
        return self.frames[link]

    def body_of(self, link: str) -> int:
        """Return the body number of a link; 0 is the base.

        Raises ModelError for an unknown name.
        """
        return self.frame(link).body

    def body_of_joint(self, name: str) -> int:
        """Return the number of the body that a moving joint carries.

        Raises ModelError for an unknown name and for a fixed or locked joint.
        """
        if not isinstance(name, str) or name not in self.names[1:]:
            message = unknown_name("moving joint", name, self.names[1:])
            raise ModelError(message, name)
        return self.names.index(name, 1)

    def joint_kind(self, name: str) -> str:
        """Return the kind of a moving joint: revolute, continuous, prismatic, ...

        Raises ModelError for an unknown name and for a fixed or locked joint.
        """
        return self.joint[self.body_of_joint(name)].kind

    @property
    def endless_joints(self) -> tuple[str, ...]:
        """Names of the joints of which a whole turn leads back to the same position.

        They turn about one axis without position limits or a spring, and are followed
        by none but such joints, by whole multiples of their turn. Followers are not
        named. The order is that of q.
        """
        pairs = zip(self.joint_names, self.independent, strict=True)
        return tuple(name for name, i in pairs if not self._turns_end(i))

    def require_endless(self, name: str, what: str) -> None:
        """Check that a joint is one of endless_joints; a follower is as its leader.

        Args:
            name: Name of the joint.
            what: Name of the setting that needs it, for the message.

        Raises:
            ModelError: The joint is not one of them, or no moving joint has the name.
        """
        lead = self.leader[self.body_of_joint(name)].body
        reason = self._turns_end(lead)
        if reason:
            follows = "" if name == self.names[lead] else f", which '{name}' follows,"
            valid = ", ".join(self.endless_joints) or "none of its joints"
            raise ModelError(
                f"{what}: joint '{self.names[lead]}'{follows} {reason}; valid: {valid}"
                " (joints that turn about one axis without limits or a spring)",
                name,
            )

    def _turns_end(self, lead: int) -> str:
        """Return why a whole turn of joint `lead` changes the position, or ""."""
        for i in self.bodies:
            if self.leader[i].body != lead:
                continue
            ratio = self.leader[i].ratio
            which = "" if i == lead else f"leads '{self.names[i]}', which "
            if self.joint[i].kind not in ("revolute", "continuous"):
                return f"{which}does not turn about one axis"
            times = 1.0 if ratio is None else float(ratio[0, 0])
            if abs(times - round(times)) > WHOLE_TURNS:
                return f"{which}turns {times:g} times as far"
            if any(float(k) for k in self.stiffness[i]):
                return f"{which}has a spring"
        k = self.v_slices[lead].start
        low, high = self.lower[k], self.upper[k]
        limited = np.isfinite(low) or np.isfinite(high)
        return f"has position limits, {low:g} to {high:g}" if limited else ""

    def q_slice(self, name: str) -> slice:
        """Return the slice of a joint's position in q; for a follower, its leader's.

        Raises ModelError for an unknown name and for a fixed or locked joint.
        """
        return self.q_slices[self.body_of_joint(name)]

    def v_slice(self, name: str) -> slice:
        """Return the slice of a joint in qd and tau; for a follower, its leader's.

        Raises ModelError for an unknown name and for a fixed or locked joint.
        """
        return self.v_slices[self.body_of_joint(name)]
