"""The robot as algorithms see it: frozen numbers, numbered bodies, parents first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dyn_core.errors import ModelError, ShapeError
from dyn_core.model import check, collisions, coordinates, parameters, passive
from dyn_core.model.clusters import Cluster, find_clusters
from dyn_core.model.configurations import Configurations
from dyn_core.model.joints import Joint
from dyn_core.model.parts import Follower, Frame, Lead
from dyn_core.model.shapes import Material, PlacedShape
from dyn_core.spatial import Motion, RigidInertia, Transform, Vector

if TYPE_CHECKING:
    from dyn_core.model.assemble import Build


@dataclass(frozen=True, eq=False)
class Model(Configurations):
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
        stiffness, rest: Of the springs, alike [N·m/rad | N/m], [rad | m].
        a_grav: Gravity as a spatial acceleration of the base frame [m/s²].
        names: Name of the joint that carries each body.
        leader: By body, whose coordinates its joint has.
        q_slices, v_slices: By body: its (its leader's) independent coordinates.
        inertia_scale: By body and coordinate: largest inertia along the joint in a few
            positions [kg·m² | kg].
        frames: Every link's frame, by name.
        lower, upper, velocity_limit: (nv,) limits; infinite where none.
        effort_limit: (nv,) effort limits; 0.0 where the file gives none.
        mounts: By body: where the link that its joint hangs on is in the parent.
        warnings: What loading found worth saying.
        build: What it was assembled from, for lock, sub-chains and parameters.
        forces: Functions that give passive joint forces (model/passive.py).
    """

    name: str
    parent: tuple[int, ...]
    joint: tuple[Joint, ...]
    Xtree: tuple[Transform, ...]
    I: tuple[RigidInertia, ...]
    armature: tuple[Vector, ...]
    damping: tuple[Vector, ...]
    friction: tuple[Vector, ...]
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
    mounts: tuple[Transform, ...]
    warnings: tuple[str, ...]
    build: Build
    forces: tuple[Callable[..., Any], ...] = ()

    kind = "robot"

    @property
    def sizes(self) -> dict[str, int]:
        """Named sizes of Ports."""
        return {"nq": self.nq, "nv": self.nv, "nb": self.nb}

    def parameter(self, path: str) -> list[Any]:
        """Give the numbers of a parameter path (model/parameters.py)."""
        return parameters.numbers(self, path)

    def unit(self, path: str) -> str:
        """Give the unit of a parameter path."""
        return parameters.UNITS[path.rpartition(".")[2]]

    def with_values(self, values: Mapping[str, Sequence[Any]]) -> Model:
        """Give the robot with some parameters replaced, unchecked."""
        return parameters.with_values(self, values)

    def resisting(self, friction: bool, springs: bool) -> Model:
        """Give the robot with joint friction and springs only where asked for."""
        robot = self if springs else passive.without_springs(self)
        return robot if friction else robot.without_friction()

    def missing(self, inputs: Sequence[str]) -> str | None:
        """Say that a robot with driven places needs the time, or give None."""
        if not self.driven or "time" in inputs:
            return None
        return (
            f"the place of {', '.join(self.driven)} is driven; give the time:"
            " build(model, inputs=['time'])"
        )

    @property
    def floors(self) -> tuple[tuple[float, ...], ...]:
        """By body: pivots at or below these mean a singular joint."""
        return coordinates.pivot_floors(self)

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
        own = [i for i in self.bodies if self.leader[i].body == i and self.joint[i].nv]
        return tuple(sorted(own, key=lambda i: self.v_slices[i].start))

    @property
    def driven(self) -> tuple[str, ...]:
        """Joints whose place is driven as a function of time (model.drive)."""
        ends = len(".drive")
        names = [self.names[i] for i in self.bodies if self.joint[i].kind == "driven"]
        return tuple(name[:-ends] for name in names)

    @property
    def ball_limits(self) -> dict[int, tuple[float, tuple[float, float]]]:
        """Ball joints with limits, by body: largest swing, range of the twist [rad].

        Source: TAZZ-4.7.
        """
        specs = {j.name: j for j in self.build.description.joints}
        found = {}
        for i in self.bodies:
            spec = specs.get(self.names[i])
            if spec and (np.isfinite(spec.swing) or np.isfinite(spec.twist).any()):
                found[i] = spec.swing, spec.twist
        return found

    @property
    def loops(self) -> tuple[Any, ...]:
        """Constraints that close the tree: Loops and Couplings (model/loops.py)."""
        return (*self.build.description.loops, *self.build.loops)

    @property
    def active_joints(self) -> tuple[str, ...]:
        """Joints with coordinates of their own that have a motor."""
        without = {j.name for j in self.build.description.joints if j.passive}
        return tuple(name for name in self.joint_names if name not in without)

    def without_loops(self) -> Model:
        """Give the open tree."""
        description = replace(self.build.description, loops=())
        return replace(
            self, build=replace(self.build, description=description, loops=())
        )

    def with_loops(self, *loops: Any) -> Model:
        """Give the robot with more loops (make_loop, user_loop, coupling).

        Source: KIM-3.0.
        """
        build = replace(self.build, loops=(*self.build.loops, *loops))
        closed = replace(self, build=build)
        check.loops(closed)
        return closed

    @property
    def carried(self) -> tuple[str, ...]:
        """By body: the link that its joint carries; no name for the base."""
        child = {j.name: j.child for j in self.build.description.joints}
        if self.nb and self.names[1] not in child:
            child[self.names[1]] = next(iter(self.frames))
        return tuple(child.get(name, "") for name in self.names)

    @property
    def clusters(self) -> tuple[Cluster, ...]:
        """Bodies whose joints share coordinates, parents first; most are alone."""
        return find_clusters(self.parent, [lead.body for lead in self.leader])

    @property
    def coupled(self) -> bool:
        """Whether some joint follows another."""
        return any(self.leader[i].body != i for i in self.bodies)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Joints with coordinates of their own, in the order of q."""
        return tuple(self.names[i] for i in self.independent)

    @property
    def followers(self) -> dict[str, Follower]:
        """Mimic and geared joints, by name."""
        found = {}
        for i in self.bodies:
            lead, ratio, offset = self.leader[i]
            if ratio is not None:
                one = self.joint[i].nv == self.joint[lead].nv == 1
                rule = (
                    (ratio[0, 0], offset[0])
                    if one
                    else (np.asarray(ratio, float), np.asarray(offset, float))
                )
                found[self.names[i]] = Follower(self.names[lead], *rule)
        return found

    @property
    def frame_names(self) -> tuple[str, ...]:
        """Links, each with a frame, merged ones included."""
        return tuple(self.frames)

    @property
    def shapes(self) -> tuple[PlacedShape, ...]:
        """Collision shapes, merged links' included, in the order of frame_names."""
        return collisions.placed(self.frames, self.build.description)

    def material(self, link: str) -> Material:
        """Give the material of a link's surface: its own, or the default."""
        materials = self.build.description.materials
        return materials.get(link, materials.get("default", Material()))

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

    def reorder(self, names: Sequence[str]) -> Model:
        """Give the same robot with its coordinates in the order of `names`."""
        if sorted(names) != sorted(self.joint_names):
            wanted = ", ".join(self.joint_names)
            got = ", ".join(names)
            raise ModelError(f"reorder needs each of {wanted} once, got {got}")
        q_at, v_at, old = 0, 0, {}
        nothing = slice(0, 0), slice(0, 0)
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
        leads = [0, *[self.leader[i].body for i in self.bodies]]
        return replace(
            self,
            q_slices=(slice(0, 0), *[old.get(k, nothing)[0] for k in leads[1:]]),
            v_slices=(slice(0, 0), *[old.get(k, nothing)[1] for k in leads[1:]]),
            **{
                key: getattr(self, key)[order]
                for key in ("lower", "upper", "velocity_limit", "effort_limit")
            },
        )

    def lock(self, joints: Mapping[str, Any]) -> Model:
        """Give the robot with some joints fixed at given positions, merged exactly."""
        return self.build.again(lock={**self.build.lock, **joints})

    def drive(self, joint: str, pose: Any) -> Model:
        """Give the robot with the place of a joint driven as a function of time.

        A body without mass comes between the joint and its parent. Programs then need
        `inputs=["time"]`.

        Args:
            joint: Name of the joint.
            pose: Function of t [s] that gives (R, p): where the driven place is in the
                place the file gives, R three rows or None, p three numbers [m], made of
                the functions of dyn_core.scalar.

        Source: RBD5-3.4 (time-dependent joints).
        """
        self.body_of_joint(joint)
        return self.build.again(drives={**self.build.drives, joint: pose})

    def with_joint(self, name: str, joint: Joint) -> Model:
        """Give the robot with a joint of one's own, such as a Custom or Product.

        It stands for the joint of that name in the file, whatever its type there. Lock,
        sub-chains and reorder keep it.

        Source: KIM-2.4 (user-defined joints).
        """
        return self.build.again(joints={**self.build.joints, name: joint})

    def with_forces(self, function: Callable[..., Any]) -> Model:
        """Give the robot with more passive forces, see model/passive.py (KIM-S2)."""
        return self.build.again(forces=(*self.build.forces, function))

    def flat(self, what: str) -> np.ndarray:
        """Give armature, damping, ... of the independent joints, (nv,)."""
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
