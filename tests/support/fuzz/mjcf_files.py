"""Random MJCF files from a grammar; MuJoCo's own rules for valid ones are kept."""

from __future__ import annotations

from collections.abc import Callable
from xml.etree.ElementTree import Element, SubElement

from fuzz.draws import Draws

_SHAPES = {"sphere": 1, "capsule": 2, "cylinder": 2, "ellipsoid": 3, "box": 3}
_SCALAR = ("hinge", "slide")


def draw_mjcf(draws: Draws, odd: float) -> Element:
    """Return a random <mujoco>.

    Args:
        draws: Random generator.
        odd: Part of the values that are odd; 0: it is valid and must load.
    """
    return _GrownMjcf(draws, odd).root


class _GrownMjcf:
    """An MJCF as it grows, body by body."""

    def __init__(self, draws: Draws, odd: float) -> None:
        self.draws, self.odd = draws, odd
        self.root = Element("mujoco", model=self.name("robot"))
        units = {"angle": draws.choice(("radian", "degree")), "autolimits": "true"}
        SubElement(self.root, "compiler", units)
        if draws.chance(0.3):
            SubElement(self.root, "option", gravity=self.values(3), timestep="0.002")
        if draws.chance(0.3):
            joint = {key: self.values(1, 0.0, 1.0) for key in ("damping", "armature")}
            SubElement(SubElement(self.root, "default"), "joint", joint)
        world = SubElement(self.root, "worldbody")
        self.bodies: list[Element] = []
        self.scalar: list[str] = []
        for k in range(draws.choice((1, 1, 2, 3, 5, 8))):
            near = [world, *self.bodies[-3:]]
            self.body(k, world if k == 0 else draws.choice(near), world)
        if draws.chance(0.3):
            self.shape(world)
        self.add_equalities()
        self.add_actuators()

    def strange(self) -> bool:
        return self.draws.chance(self.odd)

    def name(self, name: str) -> str:
        return self.draws.odd_name() if self.strange() else name

    def values(self, count: int, low: float = -1.0, high: float = 1.0) -> str:
        """Return numbers of an attribute, often round ones."""
        return self.listed(count, lambda: self.draws.number(low, high))

    def sizes(self, count: int, low: float, high: float) -> str:
        """Return numbers of an attribute, none of them below the lowest."""
        return self.listed(count, lambda: round(self.draws.uniform(low, high), 4))

    def listed(self, count: int, draw: Callable[[], float]) -> str:
        """Return numbers, some of which are odd."""
        count = self.draws.randrange(6) if self.strange() else count
        return " ".join(
            self.draws.odd_number() if self.strange() else repr(draw())
            for _ in range(count)
        )

    def place(self, element: Element) -> None:
        """Add a position, and an orientation in one of its forms."""
        if self.draws.chance(0.8):
            element.set("pos", self.values(3))
        form = self.draws.choice(("", "", "quat", "euler", "axisangle"))
        if form == "euler":
            element.set(form, self.values(3))
        elif form:
            element.set(form, f"1 {self.values(3)}")

    def body(self, k: int, parent: Element, world: Element) -> None:
        """Add a body with its joints, its inertia and its shapes."""
        body = SubElement(parent, "body", name=self.name(f"body{k}"))
        self.place(body)
        if parent is world and self.draws.chance(0.2):
            SubElement(body, "freejoint", name=self.name(f"free{k}"))
        elif self.draws.chance(0.15):
            SubElement(body, "joint", name=self.name(f"ball{k}"), type="ball")
        else:
            for j in range(self.draws.choice((0, 1, 1, 1, 2))):
                self.joint(body, f"joint{k}{'ab'[j]}")
        if self.draws.chance(0.6):
            inertial = SubElement(body, "inertial", mass=self.sizes(1, 0.1, 9.0))
            inertial.set("pos", self.values(3))
            inertial.set("diaginertia", self.sizes(3, 0.3, 0.5))
        else:
            self.shape(body)
        if self.draws.chance(0.3):
            self.shape(body)
        if self.draws.chance(0.3):
            self.place(SubElement(body, "site", name=self.name(f"site{k}")))
        self.bodies.append(body)

    def joint(self, body: Element, name: str) -> None:
        """Add a hinge or slide."""
        name, kind = self.name(name), self.draws.choice(_SCALAR)
        axis = self.draws.choice(("1 0 0", "0 1 0", "0 0 -1", "0 0.6 0.8"))
        axis = self.values(3) if self.strange() else axis
        joint = SubElement(body, "joint", name=name, type=kind, axis=axis)
        if self.draws.chance(0.3):
            joint.set("pos", self.values(3))
        if self.draws.chance(0.5):
            low, high = self.sizes(1, -3.0, -0.5), self.sizes(1, 0.5, 3.0)
            joint.set("range", f"{low} {high}")
        for key in ("damping", "armature", "frictionloss", "stiffness", "ref"):
            if self.draws.chance(0.2):
                joint.set(key, self.values(1, 0.0, 1.0))
        self.scalar.append(name)

    def shape(self, body: Element) -> None:
        """Add a geom."""
        kind = self.draws.choice(sorted(_SHAPES))
        size = self.sizes(_SHAPES[kind], 0.1, 0.5)
        self.place(SubElement(body, "geom", type=kind, size=size))

    def add_equalities(self) -> None:
        """Couple joints, and bodies."""
        if not self.draws.chance(0.4):
            return
        equality = SubElement(self.root, "equality")
        names = [body.get("name", "") for body in self.bodies]
        if len(self.scalar) > 1:
            one, other = self.draws.sample(self.scalar, 2)
            coefficients = self.draws.choice(
                ("0 1 0 0 0", "0.1 2 0 0 0", "0 1 0.5 0 0")
            )
            SubElement(
                equality, "joint", joint1=one, joint2=other, polycoef=coefficients
            )
        if len(names) > 1 and self.draws.chance(0.5):
            one, other = self.draws.sample(names, 2)
            kind = self.draws.choice(("connect", "weld"))
            element = SubElement(equality, kind, body1=one, body2=other)
            if kind == "connect":
                element.set("anchor", self.values(3))

    def add_actuators(self) -> None:
        """Drive some joints."""
        if self.scalar and self.draws.chance(0.4):
            actuator = SubElement(self.root, "actuator")
            for name in self.scalar[:3]:
                kind = self.draws.choice(("motor", "position"))
                SubElement(actuator, kind, joint=name, name=self.name(f"drive_{name}"))
