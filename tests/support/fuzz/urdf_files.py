"""Random URDFs from a grammar, and changes of the elements of one."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from xml.etree.ElementTree import Element, SubElement

from dyn_core.model.urdf_xml.attributes import ATTRIBUTES
from fuzz.draws import Draws

_KINDS = ("fixed", "revolute", "continuous", "prismatic", "planar", "floating")
_FOLLOWING = ("revolute", "continuous", "prismatic")
_TAGS = (
    "robot", "link", "joint", "inertial", "visual", "collision", "geometry", "gazebo",
    "transmission", "material", "xacro:macro", "calibration", "safety_controller",
    "texture", "drake:joint", "mujoco", "loop", "x", *ATTRIBUTES,
)  # fmt: skip
_NUMERIC = [
    (tag, key, n) for tag, keys in ATTRIBUTES.items() for key, n in keys.items() if n
]


def draw_robot(draws: Draws, odd: float) -> Element:
    """Return a random robot.

    Args:
        draws: Random generator.
        odd: Part of the values that are odd; 0: it is valid and must load.
    """
    return _GrownRobot(draws, odd).robot


class _GrownRobot:
    """A robot as it grows, link by link."""

    def __init__(self, draws: Draws, odd: float) -> None:
        self.draws, self.odd = draws, odd
        self.robot = Element("robot", name=self.name("robot"))
        self.links, self.leaders = [self.name("base")], list[str]()
        self.link(self.links[0])
        sizes = (0, 1, 2, 3, 5, 8, 13) if draws.chance(0.97) else (60,)
        for k in range(draws.choice(sizes)):
            self.branch(k)
        if draws.chance(0.3):
            children = list(self.robot)
            draws.shuffle(children)
            self.robot[:] = children

    def strange(self) -> bool:
        return self.draws.chance(self.odd)

    def name(self, name: str) -> str:
        return self.draws.odd_name() if self.strange() else name

    def values(self, count: int, low: float = -1.0, high: float = 1.0) -> str:
        """Return numbers of an attribute."""
        if self.strange():
            count = self.draws.randrange(6)
        return self.draws.choice((" ", " ", "  ", "\n ")).join(
            self.draws.odd_number()
            if self.strange()
            else repr(self.draws.number(low, high))
            for _ in range(count)
        )

    def often(self, probability: float = 0.8) -> bool:
        return self.draws.chance(probability)

    def origin(self, parent: Element) -> None:
        """Add a placement, in one of its forms."""
        if not self.often(0.7):
            return
        element = SubElement(parent, "origin")
        if self.often():
            element.set("xyz", self.values(3))
        if self.often(0.6):
            element.set("rpy", self.values(3, -3.2, 3.2))
        elif self.often(0.2):
            element.set("quat_xyzw", self.values(3) + " 1.0")

    def link(self, name: str) -> None:
        """Add a link with its inertia and shapes."""
        link = SubElement(self.robot, "link", name=name)
        if self.often():
            inertial = SubElement(link, "inertial")
            self.origin(inertial)
            if self.often(0.95):
                SubElement(inertial, "mass", value=self.values(1, 0.0, 9.0))
            if self.often(0.9):
                inertia = SubElement(inertial, "inertia")
                for key in ATTRIBUTES["inertia"]:
                    diagonal = key[1] == key[2]
                    low, high = (0.3, 0.5) if diagonal else (-0.1, 0.1)
                    if self.often(0.97):
                        inertia.set(key, self.values(1, low, high))
        for role in ("visual", "collision"):
            while self.often(0.25):
                self.shape(SubElement(link, role))

    def shape(self, owner: Element) -> None:
        """Add a shape to a visual or a collision."""
        self.origin(owner)
        kind = self.draws.choice(("box", "sphere", "cylinder", "capsule", "mesh"))
        shape = SubElement(SubElement(owner, "geometry"), kind)
        for key, count in ATTRIBUTES[kind].items():
            shape.set(key, self.values(count, 0.0, 1.0) if count else "package://a/b")

    def branch(self, k: int) -> None:
        """Add a link and the joint that carries it."""
        child, name = self.name(f"link{k}"), self.name(f"joint{k}")
        kind = self.draws.choice((*_KINDS, "revolute", "revolute"))
        kind = self.draws.choice(_TAGS) if self.strange() else kind
        joint = SubElement(self.robot, "joint", name=name, type=kind)
        parent = self.name(self.draws.choice(self.links))
        SubElement(joint, "parent", link=parent)
        SubElement(joint, "child", link=child)
        self.origin(joint)
        if self.often():
            axis = self.draws.choice(("1 0 0", "0 1 0", "0 0 -1", "1 1 0", "0 0.6 0.8"))
            SubElement(joint, "axis", xyz=self.values(3) if self.strange() else axis)
        if self.often(0.5):
            values = {key: self.values(1, 0.0, 2.0) for key in ("damping", "friction")}
            SubElement(joint, "dynamics", values)
        self.limit(joint)
        if kind in _FOLLOWING and self.leaders and self.often(0.2):
            rule = {"joint": self.name(self.draws.choice(self.leaders))}
            rule |= {key: self.values(1) for key in ("multiplier", "offset")}
            SubElement(joint, "mimic", rule)
        self.link(child)
        self.links.append(child)
        self.leaders += [name] if kind in _FOLLOWING else []

    def limit(self, joint: Element) -> None:
        """Add limits."""
        if not self.often(0.7):
            return
        limits = {
            "lower": self.values(1, -3.0, -0.5), "upper": self.values(1, 0.5, 3.0),
            "effort": self.values(1, 0.0, 100.0), "velocity": self.values(1, 0.0, 9.0),
        }  # fmt: skip
        for key in ("acceleration", "deceleration", "jerk"):
            if self.often(0.1):
                limits[key] = self.values(1, 0.0, 9.0)
        SubElement(joint, "limit", limits)


def change_elements(draws: Draws, robot: Element) -> Element:
    """Return the robot with up to four of its elements changed."""
    robot = copy.deepcopy(robot)
    for _ in range(draws.randrange(1, 5)):
        draws.choice(_CHANGES)(draws, robot)
    return robot


def _any(draws: Draws, robot: Element) -> Element:
    return draws.choice(list(robot.iter()))


def _parent(draws: Draws, robot: Element) -> Element | None:
    parents = [x for x in robot.iter() if len(x)]
    return draws.choice(parents) if parents else None


def _names(robot: Element) -> Sequence[str]:
    return [x.get("name", "") for x in robot]


def _put_value(draws: Draws, robot: Element) -> None:
    """Replace a value of an attribute, or one number of several."""
    elements = [x for x in robot.iter() if x.attrib]
    if not elements:
        return
    element = draws.choice(elements)
    key = draws.choice(sorted(element.attrib))
    parts = element.attrib[key].split()
    if len(parts) > 1 and draws.chance(0.6):
        parts[draws.randrange(len(parts))] = draws.odd_number()
        element.set(key, " ".join(parts))
    elif draws.chance(0.5):
        element.set(key, draws.odd_number())
    else:
        element.set(key, draws.odd_name(_names(robot)))


def _large_value(draws: Draws, robot: Element) -> None:
    """Replace a number by one that is valid and far from common."""
    tag, key, count = draws.choice(_NUMERIC)
    elements = list(robot.iter(tag))
    if elements:
        power = draws.choice((-320, -160, -30, -12, 8, 12, 30, 50, 77, 99))
        value = draws.choice((1.0, -1.0, 2.5)) * 10.0**power
        draws.choice(elements).set(key, " ".join([repr(value)] * count))


def _add_attribute(draws: Draws, robot: Element) -> None:
    tag = draws.choice(sorted(ATTRIBUTES))
    key = draws.choice((*ATTRIBUTES[tag], "name", "type", "x", "xmlns", "version"))
    _any(draws, robot).set(key, draws.odd_name() if draws.chance(0.5) else "1")


def _drop_attribute(draws: Draws, robot: Element) -> None:
    element = _any(draws, robot)
    if element.attrib:
        del element.attrib[draws.choice(sorted(element.attrib))]


def _drop(draws: Draws, robot: Element) -> None:
    parent = _parent(draws, robot)
    if parent is not None:
        parent.remove(draws.choice(list(parent)))


def _double(draws: Draws, robot: Element) -> None:
    """Put an element there twice, or many times."""
    parent = _parent(draws, robot)
    if parent is not None:
        child = draws.choice(list(parent))
        count = 300 if draws.chance(0.05) and len(child) < 3 else 1
        parent.extend([copy.deepcopy(child) for _ in range(count)])


def _move(draws: Draws, robot: Element) -> None:
    """Put an element, or a copy of it, somewhere else."""
    parent, other = _parent(draws, robot), copy.deepcopy(_any(draws, robot))
    if parent is not None:
        parent.insert(draws.randrange(len(parent) + 1), other)
        if draws.chance(0.5):
            _drop(draws, robot)


def _rename(draws: Draws, robot: Element) -> None:
    _any(draws, robot).tag = draws.choice(_TAGS)


def _write_text(draws: Draws, robot: Element) -> None:
    element = _any(draws, robot)
    element.text, element.tail = draws.odd_name(), draws.odd_number()


def _swap(draws: Draws, robot: Element) -> None:
    """Exchange one attribute of two elements of one kind."""
    one = _any(draws, robot)
    other = draws.choice(list(robot.iter(one.tag)))
    for key in sorted(one.attrib.keys() & other.attrib.keys()):
        if draws.chance(0.5):
            values = one.attrib[key], other.attrib[key]
            other.attrib[key], one.attrib[key] = values


def _connect(draws: Draws, robot: Element) -> None:
    """Hang a joint elsewhere: circles, two parents, several roots."""
    links = [x.get("name", "") for x in robot.iter("link")]
    ends = [x for tag in ("parent", "child") for x in robot.iter(tag)]
    if links and ends:
        draws.choice(ends).set("link", draws.choice(links))


def _follow(draws: Draws, robot: Element) -> None:
    """Let a joint follow any other, by any rule."""
    joints = list(robot.iter("joint"))
    if joints:
        names = [x.get("name", "") for x in joints]
        rule = {"joint": draws.choice(names), "offset": draws.odd_number()}
        rule["multiplier"] = repr(draws.number())
        if draws.chance(0.5):
            rule["offset"], rule["multiplier"] = rule["multiplier"], rule["offset"]
        SubElement(draws.choice(joints), "mimic", rule)


def _turn_kind(draws: Draws, robot: Element) -> None:
    joints = list(robot.iter("joint"))
    if joints:
        draws.choice(joints).set("type", draws.choice(_KINDS))


def _unnatural(draws: Draws, robot: Element) -> None:
    """Set an inertia or limits to numbers that no body has."""
    for inertia in robot.iter("inertia"):
        if draws.chance(0.3):
            for key in ("ixx", "iyy", "izz"):
                inertia.set(key, repr(draws.number(-1, 1) * math.pi ** draws.number()))


_CHANGES: tuple[Callable[[Draws, Element], None], ...] = (
    _put_value, _put_value, _put_value, _large_value, _add_attribute, _drop_attribute,
    _drop, _double, _move, _rename, _write_text, _swap, _connect, _follow, _turn_kind,
    _unnatural,
)  # fmt: skip
