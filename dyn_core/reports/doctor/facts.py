"""Links and joints for the checks, from a Description or from XML that does not load.

Numbers of of_xml are those in the file, before loading scales axes or replaces limits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from xml.etree.ElementTree import Element

import numpy as np

from dyn_core.errors import ModelError
from dyn_core.model import Model
from dyn_core.model.checks.findings import Findings
from dyn_core.model.description import Description, Geometry, JointSpec, LinkSpec
from dyn_core.model.frames import origin as placement
from dyn_core.model.frames import rpy_of
from dyn_core.model.sources.origin import Origin
from dyn_core.model.urdf_xml.link_shapes import read_shapes
from dyn_core.validation import mended_name

ONE_AXIS = ("revolute", "continuous", "prismatic", "helical")
LIMITED = ("revolute", "prismatic")
Triple = tuple[float, float, float]
ZERO: Triple = (0.0, 0.0, 0.0)


@dataclass(frozen=True, eq=False)
class LinkFacts:
    """A link.

    Attributes:
        centre: Centre of mass in the link's frame, 3 [m].
        Ic: Inertia about the centre of mass, along the link's axes, 3x3 [kg·m²].
        geometry: Visual and collision shapes.
        angles: Roll, pitch and yaw of the origins in the file, of inertial, visual and
            collision, each behind this word, as far as they are not 0 [rad].
    """

    name: str
    mass: float = 0.0
    centre: np.ndarray = field(default_factory=lambda: np.zeros(3))
    Ic: np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))
    geometry: tuple[Geometry, ...] = ()
    angles: tuple[tuple[str, Triple], ...] = ()

    @property
    def moments(self) -> np.ndarray:
        """Principal moments about the centre of mass, ascending, 3 [kg·m²]."""
        return np.linalg.eigvalsh(self.Ic)


@dataclass(frozen=True)
class JointFacts:
    """A joint.

    Attributes:
        xyz, rpy: Origin in the parent link [m], [rad].
        axis: Axis as in the file, of any length; None if it has none.
        limits: lower, upper, velocity, effort as in <limit> [SI]; missing ones are left
            out.
        limited: Whether there is a <limit>, or a finite position limit.
        mimic: Name of the leader and multiplier, or None.
        drive: Damping, dry friction, armature [SI].
        passive: Whether it has no motor.
    """

    name: str
    kind: str
    parent: str
    child: str
    xyz: Triple = ZERO
    rpy: Triple = ZERO
    axis: Triple | None = None
    limits: Mapping[str, float] = field(default_factory=dict)
    limited: bool = False
    mimic: tuple[str, float] | None = None
    drive: Triple = ZERO
    passive: bool = False

    @property
    def range(self) -> tuple[float, float]:
        """Lower and upper limit [rad | m]; a missing one of a limited joint is 0.

        Both are infinite without limits and for kinds not in LIMITED.
        """
        if not self.limited or self.kind not in LIMITED:
            return -math.inf, math.inf
        return self.limits.get("lower", 0.0), self.limits.get("upper", 0.0)


@dataclass(frozen=True)
class RobotFacts:
    """A robot, with the data for all checks of its file, in the order of the file.

    `origin` is where its meshes are searched.
    """

    name: str
    links: tuple[LinkFacts, ...]
    joints: tuple[JointFacts, ...]
    origin: Origin = Origin()

    @property
    def reach(self) -> float:
        """Maximum length from a root along joint origins to a centre of mass [m]."""
        above = {joint.child: joint for joint in self.joints}
        lengths: dict[str, float] = {}

        def length(link: str) -> float:
            path = []
            while link in above and link not in lengths and link not in path:
                path.append(link)
                link = above[link].parent
            for name in reversed(path):
                joint = above[name]
                before = lengths.get(joint.parent, 0.0)
                lengths[name] = before + math.hypot(*joint.xyz)
            return lengths.get(path[0] if path else link, 0.0)

        ends = [length(x.name) + float(np.linalg.norm(x.centre)) for x in self.links]
        return max(ends, default=0.0)

    @property
    def massless(self) -> list[LinkFacts]:
        """Moving links of mass 0 without moments, in the order of the file.

        These are the child links of joints that move, and links fixed to such a child
        if all these together have mass 0. The child of a floating joint, a base that is
        often a frame, counts like the links fixed to it.
        """
        above = {joint.child: joint for joint in self.joints}
        carrier: dict[str, str] = {}  # by link: the child of the joint that moves it
        masses: dict[str, float] = {}
        for link in self.links:
            path = [link.name]
            while path[-1] in above and above[path[-1]].kind == "fixed":
                path.append(above[path[-1]].parent)
                if path[-1] in path[:-1]:
                    break  # a circle is no tree
            carrier[link.name] = path[-1]
            masses[path[-1]] = masses.get(path[-1], 0.0) + link.mass
        bare = []
        for link in self.links:
            joint = above.get(carrier[link.name])
            if joint is not None and not link.mass and not link.Ic.any():
                moved = joint.child == link.name and joint.kind != "floating"
                bare += [link] if moved or not masses[joint.child] else []
        return bare


def of_description(description: Description, origin: Origin) -> RobotFacts:
    """Return the facts of a robot that loads, with `origin` as its source."""
    links = tuple(_link_of_spec(link) for link in description.links)
    joints = tuple(_joint_of_spec(joint) for joint in description.joints)
    return RobotFacts(description.name, links, joints, origin)


def _link_of_spec(link: LinkSpec) -> LinkFacts:
    I = link.inertia
    geometry = link.geometry or tuple(
        Geometry(
            "collision",
            shape.kind,
            tuple(_sizes(shape)),
            getattr(shape, "file", None),
            shape.X.pose,
        )
        for shape in link.collisions
    )
    c, Ic = np.array(I.c.entries, float), np.array(I.Ic.rows, float)
    return LinkFacts(link.name, float(I.m), c, Ic, geometry)


def bodies(model: Model) -> dict[str, LinkFacts]:
    """Return, by name of each frame, the rigid body that it is fixed to.

    Mass, centre and inertia are of the whole body, in the frame of the body, not of the
    link. The results have no geometry.
    """
    return {
        name: _link_of_spec(LinkSpec(name, model.I[frame.body]))
        for name, frame in model.frames.items()
    }


def _sizes(shape: object) -> Sequence[float]:
    """Return the sizes of a Shape in the order of a Geometry; empty if unknown."""
    for names in (("size",), ("radius", "length"), ("radius",), ("scale",)):
        if all(hasattr(shape, name) for name in names):
            values = [getattr(shape, name) for name in names]
            return values[0] if isinstance(values[0], tuple) else values
    return ()


def _joint_of_spec(spec: JointSpec) -> JointFacts:
    """Return the facts of a joint that loads.

    Infinite limits are left out (position limits only if both are infinite), and so is
    a velocity or effort limit of 0. A multiplier that is no float becomes 1.
    """
    limits = {"lower": spec.lower, "upper": spec.upper}
    limits |= {"velocity": spec.velocity, "effort": spec.effort}
    known = {k: x for k, x in limits.items() if math.isfinite(x) and x != 0.0}
    bounded = math.isfinite(spec.lower) or math.isfinite(spec.upper)
    if bounded:  # the filter above dropped limits of 0
        known |= {"lower": spec.lower, "upper": spec.upper}
    rule = spec.mimic
    ratio = None if rule is None else rule.multiplier
    mimic = None
    if rule is not None:
        mimic = rule.joint, ratio if isinstance(ratio, float) else 1.0
    drive = spec.damping, spec.friction, spec.armature
    return JointFacts(
        spec.name, spec.kind, spec.parent, spec.child, spec.xyz, spec.rpy, spec.axis,
        known, bounded, mimic, drive, bool(spec.passive),
    )  # fmt: skip


def of_xml(robot: Element, origin: Origin) -> RobotFacts:
    """Return the facts of a <robot> element, even if it does not load.

    Missing and invalid values are replaced by defaults; but an invalid axis is None,
    and invalid limits and shapes are left out. Invisible characters of names become
    underscores. A single scale of a mesh is repeated for x, y and z in `robot`.
    """
    links = tuple(_link_of_xml(x) for x in robot.iterfind("link"))
    joints = tuple(_joint_of_xml(x) for x in robot.iterfind("joint"))
    return RobotFacts(_name(robot, default="robot"), links, joints, origin)


def _name(element: Element | None, key: str = "name", default: str = "") -> str:
    """Return an attribute of an element as a name, as a Model has it."""
    return mended_name("" if element is None else element.get(key, default))


def _floats(element: Element | None, key: str, count: int) -> tuple[float, ...] | None:
    """Return `count` finite numbers of an XML attribute, or None if it has others."""
    try:
        text = "" if element is None else element.get(key, "")
        values = tuple(float(x) for x in text.split())
    except ValueError:
        return None
    good = len(values) == count and all(map(math.isfinite, values))
    return values if good else None


def _triple(element: Element | None, key: str) -> Triple:
    return _floats(element, key, 3) or ZERO  # type: ignore[return-value]


def _angles(place: Element | None) -> Triple:
    """Return roll, pitch and yaw of an <origin>: of its quat_xyzw, else its rpy."""
    four = _floats(place, "quat_xyzw", 4)
    if four is None or math.hypot(*four) < 1e-9:
        return _triple(place, "rpy")
    return rpy_of(four, "", "")


def _link_of_xml(link: Element) -> LinkFacts:
    """Return the facts of a <link>; missing numbers are 0.

    A single scale of a mesh is repeated for x, y and z in the element itself.
    """
    name, inertial = _name(link), link.find("inertial")
    turned = [
        (part.tag, _triple(part.find("origin"), "rpy"))
        for part in link
        if part.tag in ("inertial", "visual", "collision")
    ]
    angles = tuple(pair for pair in turned if any(pair[1]))
    shapes = [x for x in link if x.tag in ("visual", "collision")]
    try:
        geometry = read_shapes(name, shapes, Findings())
    except ModelError:
        geometry = ()
    if inertial is None:
        return LinkFacts(name, geometry=geometry, angles=angles)
    mass = _floats(inertial.find("mass"), "value", 1) or (0.0,)
    place, moments = inertial.find("origin"), inertial.find("inertia")
    six = [
        (_floats(moments, key, 1) or (0.0,))[0]
        for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    ]
    R = np.array(placement(ZERO, _angles(place)).pose[0].rows, float)
    I = np.array(six)[[0, 1, 2, 1, 3, 4, 2, 4, 5]].reshape(3, 3)
    return LinkFacts(
        name, mass[0], np.array(_triple(place, "xyz")), R @ I @ R.T, geometry, angles
    )


def _joint_of_xml(joint: Element) -> JointFacts:
    """Return the facts of a <joint>; `drive` and `passive` are not read.

    The axis is None if <axis> has not three finite numbers. Invalid limits are left
    out; other missing or invalid numbers are 0, a multiplier 1.
    """
    place, limit, rule = (joint.find(x) for x in ("origin", "limit", "mimic"))
    parent, child = (_name(joint.find(tag), "link") for tag in ("parent", "child"))
    keys = ("lower", "upper", "velocity", "effort")
    limits = {key: _floats(limit, key, 1) for key in keys}
    mimic = None
    if rule is not None:
        mimic = _name(rule, "joint"), (_floats(rule, "multiplier", 1) or (1.0,))[0]
    axis = joint.find("axis")
    return JointFacts(
        _name(joint),
        joint.get("type", ""),
        parent,
        child,
        _triple(place, "xyz"),
        _angles(place),
        (1.0, 0.0, 0.0) if axis is None else _floats(axis, "xyz", 3),  # type: ignore[arg-type]
        {key: values[0] for key, values in limits.items() if values},
        limit is not None,
        mimic,
    )


def completed(raw: RobotFacts, loaded: RobotFacts) -> RobotFacts:
    """Return the facts of a loaded robot with axes, origins and limits of its file.

    Angles of links are the file's, too. A nonzero effort limit of the loaded robot is
    retained, and a mimic rule of the file is added where loading has none. Joints that
    the file lacks or whose kind the sidecar changed stay as loaded.
    """
    written = {joint.name: joint for joint in raw.joints}
    joints = []
    for joint in loaded.joints:
        other = written.get(joint.name)
        if other is not None and other.kind == joint.kind:
            limits = {**other.limits}
            if joint.limits.get("effort"):
                limits["effort"] = joint.limits["effort"]
            joint = replace(
                joint,
                axis=other.axis,
                limits=limits,
                limited=other.limited,
                xyz=other.xyz,
                rpy=other.rpy,
                mimic=joint.mimic or other.mimic,  # also a rule that loading dropped
            )
        joints.append(joint)
    turned = {link.name: link.angles for link in raw.links}
    links = tuple(replace(x, angles=turned.get(x.name, ())) for x in loaded.links)
    return replace(loaded, links=links, joints=tuple(joints))
