"""The robot as algorithms see it: frozen numbers, numbered bodies, parents first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dyn_core.errors import ModelError, ShapeError
from dyn_core.model import coordinates
from dyn_core.model.joints import Joint
from dyn_core.spatial import Motion, RigidInertia, Transform, Vector

if TYPE_CHECKING:
    from dyn_core.model.assemble import Build


PIVOT = 1e-13  # a pivot below this part of the inertia along its joint is zero


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


@dataclass(frozen=True)
class Follower:
    """A mimic joint: its position is multiplier * q_leader + offset."""

    leader: str
    multiplier: float
    offset: float


@dataclass(frozen=True, eq=False)
class Model:
    """A robot: bodies 1..nb, parents first; body 0 is the base.

    Per-body tuples have an unused entry 0, so that the body's number is the index.
    Independent coordinates are what users and Ports see; a mimic joint has none.

    Attributes:
        name: The robot's name.
        parent: Number of each body's parent.
        joint: Joint that carries each body.
        Xtree: Transform from the parent's frame to the joint's place [m].
        I: Inertia of each body, with all links fixed to it.
        armature, damping, friction: By body and coordinate
            [kg·m² | kg], [N·m·s | N·s/m], [N·m | N].
        a_grav: Gravity as a spatial acceleration of the base frame [m/s²].
        names: Name of the joint that carries each body.
        leader: By body: (leading body, multiplier, offset); itself if independent.
        q_slices, v_slices: By body: its (its leader's) independent coordinates.
        inertia_scale: By body and coordinate: largest inertia along the joint in a few
            positions [kg·m² | kg].
        frames: Every link's frame, by name.
        lower, upper, velocity_limit: (nv,) limits; infinite where none.
        effort_limit: (nv,) effort limits; 0.0 where the file gives none.
        mounts: By body: where the link that its joint hangs on is in the parent.
        warnings: What loading found worth saying.
        build: What it was assembled from, for lock, sub-chains and parameters.
    """

    name: str
    parent: tuple[int, ...]
    joint: tuple[Joint, ...]
    Xtree: tuple[Transform, ...]
    I: tuple[RigidInertia, ...]
    armature: tuple[Vector, ...]
    damping: tuple[Vector, ...]
    friction: tuple[Vector, ...]
    a_grav: Motion
    names: tuple[str, ...]
    leader: tuple[tuple[int, float, float], ...]
    q_slices: tuple[slice, ...]
    v_slices: tuple[slice, ...]
    inertia_scale: tuple[tuple[float, ...], ...]
    frames: Mapping[str, Frame]
    lower: np.ndarray
    upper: np.ndarray
    velocity_limit: np.ndarray
    effort_limit: np.ndarray
    mounts: tuple[Transform, ...]
    warnings: tuple[str, ...]
    build: Build

    @property
    def floors(self) -> tuple[tuple[float, ...], ...]:
        """By body: pivots at or below these mean a singular joint."""
        return tuple(tuple(PIVOT * x for x in row) for row in self.inertia_scale)

    @property
    def nb(self) -> int:
        """Number of moving bodies."""
        return len(self.parent) - 1

    @property
    def nq(self) -> int:
        """Number of independent position coordinates."""
        return sum(self.joint[i].nq for i in self.independent)

    @property
    def nv(self) -> int:
        """Number of independent velocity coordinates."""
        return sum(self.joint[i].nv for i in self.independent)

    @property
    def bodies(self) -> range:
        """Numbers of the moving bodies, parents first."""
        return range(1, self.nb + 1)

    @property
    def independent(self) -> tuple[int, ...]:
        """Bodies whose joints have coordinates of their own, in coordinate order."""
        own = [i for i in self.bodies if self.leader[i][0] == i]
        return tuple(sorted(own, key=lambda i: self.v_slices[i].start))

    @property
    def coupled(self) -> bool:
        """Whether some joint follows another."""
        return any(self.leader[i][0] != i for i in self.bodies)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Joints with coordinates of their own, in the order of q."""
        return tuple(self.names[i] for i in self.independent)

    @property
    def followers(self) -> dict[str, Follower]:
        """Mimic joints, by name."""
        found = {}
        for i in self.bodies:
            lead, multiplier, offset = self.leader[i]
            if lead != i:
                found[self.names[i]] = Follower(self.names[lead], multiplier, offset)
        return found

    @property
    def frame_names(self) -> tuple[str, ...]:
        """Links, each with a frame, merged ones included."""
        return tuple(self.frames)

    @property
    def mass(self) -> float:
        """Mass of all moving bodies [kg]."""
        return sum(self.I[i].m for i in self.bodies)

    def body_of(self, link: str) -> int:
        """Give the number of the body a link belongs to; 0 is the base."""
        return self.frame(link).body

    def frame(self, link: str) -> Frame:
        """Give the frame of a link; an unknown name is refused with the known ones."""
        if link not in self.frames:
            known = ", ".join(self.frames)
            raise ModelError(f"no link is called '{link}'; known: {known}", link)
        return self.frames[link]

    def body_of_joint(self, name: str) -> int:
        """Give the number of the body that a moving joint carries."""
        if name not in self.names[1:]:
            known = ", ".join(self.names[1:])
            raise ModelError(
                f"no moving joint is called '{name}'; known: {known}", name
            )
        return self.names.index(name, 1)

    def joint_kind(self, name: str) -> str:
        """Give the kind of a moving joint: revolute, continuous, prismatic, ..."""
        return self.joint[self.body_of_joint(name)].kind

    def q_slice(self, name: str) -> slice:
        """Where a joint's (a follower's leader's) position stands in q."""
        return self.q_slices[self.body_of_joint(name)]

    def v_slice(self, name: str) -> slice:
        """Where a joint's (a follower's leader's) velocity stands in qd and tau."""
        return self.v_slices[self.body_of_joint(name)]

    def neutral(self) -> np.ndarray:
        """Position (nq,) with every joint at zero (unit quaternions)."""
        q = np.zeros(self.nq)
        for i in self.independent:
            q[self.q_slices[i]] = self.joint[i].neutral()
        return q

    def random(self, rng: np.random.Generator) -> np.ndarray:
        """Position (nq,) drawn within the limits, or a joint's whole range."""
        q = np.zeros(self.nq)
        for i in self.independent:
            drawn = self.joint[i].random(rng)
            low, high = self.lower[self.v_slices[i]], self.upper[self.v_slices[i]]
            if self.joint[i].nv == 1 and np.isfinite(low[0]) and np.isfinite(high[0]):
                drawn = (rng.uniform(low[0], high[0]),)
            q[self.q_slices[i]] = drawn
        return q

    def integrate(self, q: Any, dv: Any) -> Any:
        """Position after the displacement dv: (nq,), (nv,) -> (nq,); batches too.

        integrate(q0, difference(q0, q1)) = q1
        """
        return coordinates.call(self, coordinates.integrate, "q", q=q, dv=dv)

    def difference(self, q0: Any, q1: Any) -> Any:
        """Displacement (nv,) that takes q0 to q1, tangent at q0; batches too."""
        return coordinates.call(self, coordinates.difference, "v", q0=q0, q1=q1)

    def normalize(self, q: Any) -> Any:
        """Position with every quaternion scaled to unit length; batches too."""
        return coordinates.call(self, coordinates.normalize, "q", q=q)

    def tangent_rate(self, u: Any, qd: Any) -> Any:
        """Rate of the displacement u from a fixed start while moving at qd."""
        return coordinates.call(self, coordinates.tangent_rate, "v", u=u, v=qd)

    def reorder(self, names: Sequence[str]) -> Model:
        """Give the same robot with its coordinates in the order of `names`."""
        if sorted(names) != sorted(self.joint_names):
            wanted = ", ".join(self.joint_names)
            got = ", ".join(names)
            raise ModelError(f"reorder needs each of {wanted} once, got {got}")
        q_at, v_at, old = 0, 0, {}
        for name in names:
            i = self.body_of_joint(name)
            nq, nv = self.joint[i].nq, self.joint[i].nv
            old[i] = slice(q_at, q_at + nq), slice(v_at, v_at + nv)
            q_at, v_at = q_at + nq, v_at + nv
        order = (
            np.concatenate(
                [np.arange(self.nv)[self.v_slice(name)] for name in names]
            ).astype(int)
            if names
            else np.arange(0)
        )
        leads = [0, *[self.leader[i][0] for i in self.bodies]]
        return replace(
            self,
            q_slices=(slice(0, 0), *[old[k][0] for k in leads[1:]]),
            v_slices=(slice(0, 0), *[old[k][1] for k in leads[1:]]),
            **{
                key: getattr(self, key)[order]
                for key in ("lower", "upper", "velocity_limit", "effort_limit")
            },
        )

    def lock(self, joints: Mapping[str, Any]) -> Model:
        """Give the robot with some joints fixed at given positions, merged exactly."""
        return self.build.again(lock={**self.build.lock, **joints})

    def flat(self, what: str) -> np.ndarray:
        """Give armature, damping or friction of the independent joints, (nv,)."""
        result = np.zeros(self.nv)
        for i in self.independent:
            result[self.v_slices[i]] = list(getattr(self, what)[i])
        return result

    def without_friction(self) -> Model:
        """Give the same robot with damping and dry friction zero."""
        zeros = tuple(x * 0.0 for x in self.damping)
        return replace(self, damping=zeros, friction=zeros)

    def check_shape(self, name: str, array: Any, length: int) -> np.ndarray:
        """Give the array as floats; a last axis of another length is a ShapeError."""
        array = np.asarray(array)
        if array.ndim not in (1, 2) or array.shape[-1] != length:
            wanted = f"shape ({length},) or (batch, {length})"
            raise ShapeError(name, wanted, f"shape {array.shape}")
        return array if array.dtype.kind == "c" else array.astype(float)

    def __repr__(self) -> str:
        return f"Model({self.name!r}, nq={self.nq}, nv={self.nv}, bodies={self.nb})"
