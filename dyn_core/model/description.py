"""A robot as its file says it: links and joints, before they become a Model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from dyn_core.model.loops.loop_constraints import LoopConstraint
from dyn_core.model.shapes import Material, PairRules, Shape
from dyn_core.spatial import Matrix, RigidInertia, Vector

FRICTION_SPEED = 0.01  # of joints without a friction_speed [rad/s | m/s]


@dataclass(frozen=True)
class Mimic:
    """A follower's rule, of a mimic joint or a gear: q = multiplier q_leader + offset.

    Attributes:
        joint: The leader, which may follow another joint itself.
        multiplier: Ratio, or rows of a matrix between joints of several coordinates.
        offset: Of the position; one number for each coordinate.
    """

    joint: str
    multiplier: float | tuple[tuple[float, ...], ...] = 1.0
    offset: float | tuple[float, ...] = 0.0

    @property
    def ratio(self) -> Matrix:
        """The multiplier as a matrix, follower's by leader's coordinates."""
        m = self.multiplier
        return Matrix(m if isinstance(m, tuple) else ((m,),))

    @property
    def shift(self) -> Vector:
        """The offset as a Vector."""
        return Vector(self.offset if isinstance(self.offset, tuple) else (self.offset,))


@dataclass(frozen=True)
class Geometry:
    """A visual or collision shape, kept as the file has it.

    Attributes:
        role: visual or collision.
        shape: box, sphere, cylinder, capsule or mesh.
        size: Its numbers: box sides, radius, radius and length, or mesh scale [m].
        mesh: Path or package:// address of a mesh, unresolved.
        pose: Rotation and position in the link.
        color: Red, green, blue, alpha of a visual, 0..1; None: the file gives none.
    """

    role: str
    shape: str
    size: tuple[float, ...]
    mesh: str | None
    pose: tuple[Matrix, Vector]
    color: tuple[float, ...] | None = None


@dataclass(frozen=True)
class LinkSpec:
    """A link.

    Attributes:
        inertia: About the link's frame.
        geometry: Its shapes as the file has them.
        collisions: What it touches with; the sidecar's are among them.
    """

    name: str
    inertia: RigidInertia
    geometry: tuple[Geometry, ...] = ()
    collisions: tuple[Shape, ...] = ()


@dataclass(frozen=True)
class JointSpec:
    """A joint between two links, in SI units.

    Attributes:
        kind: fixed, or a key of joints.KINDS.
        xyz, rpy: Placement in the parent link, the socket [m], [rad].
        plug_xyz, plug_rpy: Placement in the child link, the plug; URDF knows none: its
            link frames are the plugs [m], [rad].
        effort: Effort limit; 0.0 where the file gives none [N·m | N].
        acceleration, deceleration, jerk: Limits that URDF 1.2 added [rad/s² | m/s²],
            [rad/s³ | m/s³].
        friction: Dry friction, the mean of both directions of motion [N·m | N].
        friction_asymmetry: Half of what it is more in the positive direction [N·m | N].
        friction_speed: Width v of its transition through rest, tanh(qd / v)
            [rad/s | m/s].
        stribeck: What dry friction is more near rest [N·m | N].
        stribeck_speed: At which e^-1 of that is left [rad/s | m/s].
        passive: Whether it has no motor; None where the file does not say: a joint of
            free motion, such as a floating base, has none, others have one.
        swing: Largest angle between a ball joint's z axes, socket and plug [rad].
        twist: Range of its turn about z [rad].
        pitch: Of a helical joint [m/rad].
        axes: Of a universal joint, first and second.
        factors: Of a product, from the base to the body; only kind, axis, pitch, axes
            and factors of each count.
        stiffness: Of a spring in the joint [N·m/rad | N/m].
        rest: Coordinates at which it is slack; one number serves all [rad | m].
        mimic: Rule of a follower, of a mimic joint or a gear.
    """

    name: str
    kind: str
    parent: str
    child: str
    xyz: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rpy: tuple[float, float, float] = (0.0, 0.0, 0.0)
    axis: tuple[float, float, float] = (1.0, 0.0, 0.0)
    lower: float = -math.inf
    upper: float = math.inf
    velocity: float = math.inf
    effort: float = 0.0
    damping: float = 0.0
    friction: float = 0.0
    friction_asymmetry: float = 0.0
    armature: float = 0.0
    mimic: Mimic | None = None
    plug_xyz: tuple[float, float, float] = (0.0, 0.0, 0.0)
    plug_rpy: tuple[float, float, float] = (0.0, 0.0, 0.0)
    passive: bool | None = None
    swing: float = math.inf
    twist: tuple[float, float] = (-math.inf, math.inf)
    pitch: float = 0.0
    axes: tuple[tuple[float, float, float], ...] = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0))
    factors: tuple[JointSpec, ...] = ()
    stiffness: float = 0.0
    rest: float | tuple[float, ...] = 0.0
    acceleration: float = math.inf
    deceleration: float = math.inf
    jerk: float = math.inf
    stribeck: float = 0.0
    stribeck_speed: float = 0.1
    friction_speed: float = FRICTION_SPEED


@dataclass(frozen=True)
class PointSpring:
    """A spring, with a damper, between points of two links.

    Attributes:
        name: Of the spring; errors have it.
        b, a: Links; a None is the base.
        at_b, at_a: Points on them, in the links' frames [m].
        stiffness: Of the spring [N/m].
        rest_length: Distance of the points at which it is slack [m].
        damping: Of the damper along the same line [N·s/m].
    """

    name: str
    b: str
    a: str | None = None
    at_b: tuple[float, float, float] = (0.0, 0.0, 0.0)
    at_a: tuple[float, float, float] = (0.0, 0.0, 0.0)
    stiffness: float = 0.0
    rest_length: float = 0.0
    damping: float = 0.0


@dataclass(frozen=True)
class Description:
    """All links and joints of a robot, in the order of the file.

    Attributes:
        warnings: What is doubtful about the file, by link or joint.
        sources: Files that it was read from.
        loops: Constraints that close the tree (model/loops/loop_constraints.py).
        point_springs: Springs between points of two links (model/point_springs.py).
        materials: Surfaces by link; `default` is that of all others.
        pairs: Which links are tested for contact.
    """

    name: str
    links: tuple[LinkSpec, ...]
    joints: tuple[JointSpec, ...]
    warnings: tuple[str, ...] = ()
    sources: tuple[str, ...] = field(default=())
    loops: tuple[LoopConstraint, ...] = ()
    point_springs: tuple[PointSpring, ...] = ()
    materials: Mapping[str, Material] = field(default_factory=dict)
    pairs: PairRules = PairRules()

    def link(self, name: str) -> LinkSpec:
        """Return the link of a name."""
        return next(link for link in self.links if link.name == name)
