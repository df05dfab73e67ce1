"""Description of a robot as read from its file: links and joints, not yet numbered."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from dyn_core.errors import ModelError, unknown_name
from dyn_core.model.loops.loop_constraints import LoopConstraint
from dyn_core.model.material import Material
from dyn_core.model.shapes import PairRules, Shape
from dyn_core.spatial import Matrix, RigidInertia, Vector

FRICTION_SPEED = 0.01  # of joints without a friction_speed [rad/s | m/s]


@dataclass(frozen=True)
class Mimic:
    """Rule of a follower (mimic joint or gear): q = multiplier q_leader + offset.

    Attributes:
        joint: Name of the leader, which may itself follow another joint.
        multiplier: Ratio, or rows of a matrix between joints of several coordinates.
        offset: Offset of the position, one number for each coordinate [rad | m].
    """

    joint: str
    multiplier: float | tuple[tuple[float, ...], ...] = 1.0
    offset: float | tuple[float, ...] = 0.0

    @property
    def ratio(self) -> Matrix:
        """The multiplier as a Matrix (nv of the follower, nv of the leader).

        A multiplier that is one number gives (1, 1).
        """
        m = self.multiplier
        return Matrix(m if isinstance(m, tuple) else ((m,),))

    @property
    def shift(self) -> Vector:
        """The offset as a Vector, one number for each coordinate of the follower.

        An offset that is one number gives one entry.
        """
        return Vector(self.offset if isinstance(self.offset, tuple) else (self.offset,))


@dataclass(frozen=True)
class Geometry:
    """A visual or collision shape, with the numbers of the file.

    Attributes:
        role: visual or collision.
        shape: box, sphere, cylinder, capsule or mesh.
        size: Three sides of a box [m], radius of a sphere [m], radius and length of a
            cylinder or capsule [m], or three scale factors of a mesh.
        mesh: Path or package:// address of a mesh, unresolved; None for other shapes.
        pose: Rotation (3, 3) and position (3,) [m] of the shape in the link's frame.
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
    """A link of a Description.

    Attributes:
        inertia: Inertia about the origin of the link's frame.
        geometry: Visual and collision shapes as in the file.
        collisions: Collision shapes, from the file and the sidecar.
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
        parent, child: Names of the links.
        xyz, rpy: Placement of the socket in the parent link [m], [rad].
        axis: Direction of the axis in the socket's frame; kinds without an axis ignore
            it.
        lower, upper: Position limits [rad | m]; infinite: none.
        velocity: Velocity limit [rad/s | m/s]; infinite: none.
        damping: Viscous friction [N·m·s | N·s/m].
        armature: Inertia of the drive, reflected to the joint [kg·m² | kg].
        plug_xyz, plug_rpy: Placement of the plug in the child link [m], [rad]; zero in
            a URDF, whose link frames are the plugs.
        effort: Effort limit; 0.0 where the file gives none [N·m | N].
        acceleration, deceleration, jerk: Limits of URDF 1.2 [rad/s² | m/s²], [rad/s³ |
            m/s³].
        friction: Dry friction, mean of both directions of motion [N·m | N].
        friction_asymmetry: Half the difference of dry friction in positive and negative
            direction [N·m | N].
        friction_speed: Speed v of the smooth sign change at rest, tanh(qd / v) [rad/s |
            m/s].
        stribeck: Additional dry friction near rest [N·m | N].
        stribeck_speed: Speed at which it has decayed to the fraction e^-1 [rad/s |
            m/s].
        passive: Whether the joint has no motor; None where the file does not say: free
            joints, such as a floating base, then have none, others have one.
        swing: Largest angle between the z axes of socket and plug of a ball joint
            [rad].
        twist: Range of the rotation of a ball joint about z [rad].
        pitch: Pitch of a helical joint [m/rad].
        axes: First and second axis of a universal joint.
        factors: Factors of a product joint, from the base to the body; only their kind,
            axis, pitch, axes and factors are used.
        stiffness: Stiffness of a spring in the joint [N·m/rad | N/m].
        rest: Coordinates at which the spring is slack; one number for all [rad | m].
        mimic: Rule of a follower (mimic joint or gear), or None.
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
    """A spring and a damper in parallel between points of two links.

    Attributes:
        b, a: Names of the links; a None is the base.
        at_b, at_a: Points in the frames of the links [m].
        stiffness: Stiffness of the spring [N/m].
        rest_length: Distance of the points at which the spring is slack [m].
        damping: Coefficient of the damper along the same line [N·s/m].
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
        warnings: Warnings about the file, each names a link or joint.
        sources: Files that were read.
        loops: Constraints that close the tree (model/loops/loop_constraints.py).
        point_springs: Springs between points of two links (model/point_springs.py).
        materials: Surface materials by link; `default` is used for all other links.
        pairs: Rules for the pairs of links that are tested for contact.
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
        """Return the link of this name, the last of several; ModelError if none."""
        links = {link.name: link for link in self.links}
        if name not in links:
            raise ModelError(unknown_name("link", name, links), name)
        return links[name]
