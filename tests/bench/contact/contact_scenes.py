"""Scenes with contacts that are measured: one URDF each, for this library and peers."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from dyn_core import robots
from dyn_core.contact.collision.halfspaces import HalfSpace
from dyn_core.contact.world import World
from dyn_core.model import Model, load_urdf
from dyn_core.model.sources import example_robots
from dyn_core.model.sources.locate import locate
from dyn_core.sharing import cached_property
from dyn_core.simulation import ContactSimulator
from dyn_core.simulation.loop_closure import close_loops
from dyn_core.solving.registry import solver

DT, MU = 1e-3, 0.8  # step [s]; friction coefficient of all surfaces
FALL = 5e-3  # step of a fall to rest before the start [s]
ROOT = "the_world"  # root link of every scene
FLOOR = (HalfSpace("floor"),)
Command = Callable[[float, np.ndarray, np.ndarray], np.ndarray]
HUMANOID = "g1_29dof_rev_1_0"
BESIDE = ((1.0, 0.0, "west"), (-1.0, 0.0, "east"), (0.0, 1.0, "south"),
          (0.0, -1.0, "north"))  # fmt: skip


@dataclass
class ContactScene:
    """A scene as every library gets it.

    Attributes:
        name: Of the row.
        urdf: All bodies; their root link is ROOT.
        places: Positions of joints at the start, by name.
        drive: Returns a function (t, q, qd) -> joint forces for the Model, or None.
        settle: Steps before it is measured.
        half_spaces: Floor and walls.
        fall: Steps of FALL by convex_newton from `places` to the start.
        pins: Points that coincide: two links with a point of each [m].
    """

    name: str
    urdf: str
    places: Mapping[str, Any]
    drive: Callable[[Model], Command] | None = None
    settle: int = 500
    half_spaces: tuple[HalfSpace, ...] = FLOOR
    fall: int = 0
    pins: tuple[tuple[str, tuple[float, ...], str, tuple[float, ...]], ...] = field(
        default=()
    )

    @cached_property
    def model(self) -> Model:
        """The bodies here."""
        loops = [
            {"name": f"pin{k}", "kind": "axes", "axes": ["x", "z"], "a": a, "b": b,
             "at_a": {"xyz": list(at_a)}, "at_b": {"xyz": list(at_b)}}
            for k, (a, at_a, b, at_b) in enumerate(self.pins)
        ]  # fmt: skip
        extras: dict[str, Any] = {"materials": {"default": {"mu": MU}}}
        if loops:
            extras["loops"] = loops
        return load_urdf(self.urdf, extras=extras, check="warn")

    @cached_property
    def start(self) -> np.ndarray:
        """Positions at the start, (nq,), loops closed."""
        q = self.model.neutral()
        for name, place in self.places.items():
            q[self.model.q_slice(name)] = place
        if self.pins:
            return close_loops(self.model, q)
        if self.fall:
            world = World(half_spaces=self.half_spaces, solver="convex_newton")
            falls = ContactSimulator(self.model, world, period=FALL, q0=q)
            for k in range(self.fall):
                falls.advance(k * FALL)
            q = falls.q
        return q

    @cached_property
    def command(self) -> Command:
        """Joint forces (t, q, qd) -> (nv,), within the effort limits."""
        if self.drive is None:
            none = np.zeros(self.model.nv)
            return lambda t, q, qd: none
        limit, wanted = self.model.effort_limit, self.drive(self.model)
        limit = np.where(limit > 0, limit, np.inf)
        return lambda t, q, qd: np.clip(wanted(t, q, qd), -limit, limit)

    def simulator(self) -> ContactSimulator:
        """Return a simulation at the start."""
        world = World(half_spaces=self.half_spaces)
        return ContactSimulator(self.model, world, period=DT, q0=self.start)


# ------------------------------------------------------------------ elements of a URDF


def _free(name: str, mass: float, shape: str, inertia: tuple[float, ...]) -> str:
    """Return a link with one shape at its centre of mass, and its floating joint."""
    ixx, iyy, izz = inertia
    return (
        f'<link name="{name}"><inertial><mass value="{mass!r}"/><inertia ixx="{ixx!r}"'
        f' iyy="{iyy!r}" izz="{izz!r}" ixy="0" ixz="0" iyz="0"/></inertial>'
        f"<collision><geometry>{shape}</geometry></collision></link>"
        f'<joint name="free_{name}" type="floating"><parent link="{ROOT}"/>'
        f'<child link="{name}"/></joint>'
    )


def _box(name: str, mass: float, size: tuple[float, float, float]) -> str:
    """Return a free box with sides of a size [m]."""
    x, y, z = (s * s for s in size)
    inertia = (mass / 12 * (y + z), mass / 12 * (x + z), mass / 12 * (x + y))
    sides = " ".join(map(repr, size))
    return _free(name, mass, f'<box size="{sides}"/>', inertia)


def _sphere(name: str, mass: float, radius: float) -> str:
    """Return a free sphere."""
    inertia = (0.4 * mass * radius**2,) * 3
    return _free(name, mass, f'<sphere radius="{radius!r}"/>', inertia)


def _scene(name: str, *parts: str) -> str:
    """Return a URDF of free bodies."""
    return f'<robot name="{name}"><link name="{ROOT}"/>{"".join(parts)}</robot>'


def _robot(path: Any, joint: str, *parts: str) -> ElementTree.Element:
    """Return the URDF of a robot on a joint `root`, and further parts.

    Meshes and other parts for the eye are left out: peers read the same shapes.
    """
    root = ElementTree.parse(path).getroot()
    below = {child.get("link") for child in root.iterfind("joint/child")}
    first = next(x for x in root.iterfind("link") if x.get("name") not in below)
    for link in root.iterfind("link"):
        for shape in [*link.findall("visual"), *link.findall("collision")]:
            if shape.tag == "visual" or shape.find("geometry/mesh") is not None:
                link.remove(shape)
    for known in root.iterfind("joint"):
        known.attrib.pop("dont_collapse", None)  # which no URDF has
    for other in [x for x in root if x.tag not in ("link", "joint")]:
        root.remove(other)
    holding = ElementTree.SubElement(root, "joint", name="root", type=joint)
    ElementTree.SubElement(holding, "parent", link=ROOT)
    ElementTree.SubElement(holding, "child", link=str(first.get("name")))
    root.insert(0, ElementTree.Element("link", name=ROOT))
    root.extend(ElementTree.fromstring(f"<robot>{''.join(parts)}</robot>"))
    return root


def _touching(root: ElementTree.Element, link: str, xyz: str, shape: str) -> None:
    """Replace the shapes of a link by one."""
    part = next(x for x in root.iterfind("link") if x.get("name") == link)
    for old in part.findall("collision"):
        part.remove(old)
    new = f'<collision><origin xyz="{xyz}"/><geometry>{shape}</geometry></collision>'
    part.append(ElementTree.fromstring(new))


def _written(root: ElementTree.Element) -> str:
    """Return the text of a URDF."""
    return ElementTree.tostring(root, encoding="unicode")


def _place(model: Model, link: str, q: np.ndarray) -> np.ndarray:
    """Return where a link is, (3,) [m]."""
    program = solver("forward_kinematics").build(model, frames=[link], engine="plain")
    return np.asarray(program(q)).reshape(4, 4)[:3, 3]


def _springs(
    wanted: Callable[[float], np.ndarray], stiff: Any, damp: Any
) -> Callable[[Model], Command]:
    """Return a drive by springs from the joints behind the root to moving places."""

    def drive(model: Model) -> Command:
        def command(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
            tau = np.zeros(model.nv)
            tau[6:] = stiff * (wanted(t) - q[7:]) - damp * qd[6:]
            return tau

        return command

    return drive


# ------------------------------------------------------------------------- the scenes


def quadruped(trots: bool, stiff: float = 80.0) -> ContactScene:
    """Return the shipped quadruped on its feet, held by springs.

    Args:
        trots: Whether the stance moves: pairs across lift in turn, 2 Hz.
        stiff: Stiffness of the springs [N·m/rad]; their damping is a fortieth of it
            [N·m·s/rad].
    """
    stance = np.tile([0.0, 0.7, -1.4], 4)
    lift, across = np.tile([0.0, 0.25, -0.5], 4), np.repeat([1.0, -1.0, -1.0, 1.0], 3)

    def wanted(t: float) -> np.ndarray:
        return stance + lift * np.maximum(0.0, across * math.sin(4 * math.pi * t))

    legs = [f"{a}_{b}" for a in ("front", "hind") for b in ("left", "right")]
    height = 0.42 * math.cos(0.7) + 0.025
    urdf = _written(_robot(robots.path("quadruped"), "floating"))
    places: dict[str, Any] = {"root": [0, 0, height, 0, 0, 0, 1]}
    places |= {f"{leg}_hip_joint": 0.7 for leg in legs}
    places |= {f"{leg}_knee": -1.4 for leg in legs}
    name = "quadruped, trots" if trots else "quadruped, stands"
    drive = _springs(wanted if trots else lambda t: stance, stiff, stiff / 40.0)
    return ContactScene(name, urdf, places, drive)


def humanoid() -> ContactScene | None:
    """Return G1 of example-robot-data on boxes as feet; None without the package."""
    if example_robots.home() is None:
        return None
    root = _robot(locate(HUMANOID).file, "floating")
    for link in root.iterfind("link"):
        for shape in link.findall("collision"):
            link.remove(shape)
    for side in ("left", "right"):
        _touching(
            root, f"{side}_ankle_roll_link", "0.035 0 -0.02",
            '<box size="0.2 0.07 0.03"/>',
        )  # fmt: skip
    for joint in root.iterfind("joint"):
        if joint.get("type") == "revolute":
            for old in joint.findall("dynamics"):
                joint.remove(old)
            strong = any(x in str(joint.get("name")) for x in ("hip", "knee", "ankle"))
            damping = "8" if strong else "2"
            ElementTree.SubElement(joint, "dynamics", damping=damping, friction="0")
            limit = joint.find("limit")
            if limit is not None:
                limit.set("effort", "1000")
    urdf = _written(root)
    bent = {"hip_pitch": -0.2, "knee": 0.4, "ankle_pitch": -0.2}
    places: dict[str, Any] = {
        f"{side}_{name}_joint": angle
        for side in ("left", "right")
        for name, angle in bent.items()
    }
    scene = ContactScene("humanoid on boxes (G1)", urdf, places)
    model, stance = scene.model, scene.start[7:].copy()
    height = 0.04 - _place(model, "left_ankle_roll_link", scene.start)[2]
    places["root"] = [0, 0, height, 0, 0, 0, 1]
    stiff = np.array(
        [
            600.0 if any(x in name for x in ("hip", "knee", "ankle", "waist")) else 60.0
            for name in model.names[2:]
        ]
    )
    drive = _springs(lambda t: stance, stiff, 0.0)
    return ContactScene(scene.name, urdf, places, drive, settle=1000)


def towers(towers: int, height: int, settle: int = 300) -> ContactScene:
    """Return boxes of 1 kg in towers a little apart.

    Args:
        towers: How many.
        height: Boxes in each.
        settle: Steps before it is measured.
    """
    wide, side = 0.1, math.ceil(math.sqrt(towers))
    parts, places = [], {}
    for k, n in product(range(towers), range(height)):
        name = f"box{k}_{n}"
        parts.append(_box(name, 1.0, (wide, wide, wide)))
        centre = [0.3 * (k % side), 0.3 * (k // side), wide * (n + 0.5)]
        places[f"free_{name}"] = [*centre, 0, 0, 0, 1]
    count = towers * height
    title = "1 box" if count == 1 else f"{count} boxes"
    title += f" in {towers} towers" if towers > 1 else ""
    return ContactScene(title, _scene("towers", *parts), places, None, settle)


def alone(kind: str) -> ContactScene:
    """Return one free body of 1 kg: `body`, high above the floor, `ball` or `box`."""
    part, height = {
        "body": (_free(kind, 1.0, '<sphere radius="0.1"/>', (0.02, 0.05, 0.06)), 5.0),
        "ball": (_sphere(kind, 1.0, 0.05), 0.05),
        "box": (_box(kind, 1.0, (0.2, 0.2, 0.1)), 0.05),
    }[kind]
    places = {f"free_{kind}": [0, 0, height, 0, 0, 0, 1]}
    return ContactScene(kind, _scene(kind, part), places)


def spheres(count: int, at_rest: bool) -> ContactScene:
    """Return spheres of 5 cm that fall into a box of five half-spaces.

    Args:
        count: How many.
        at_rest: Whether they are measured when they have come to rest.
    """
    rng, radius, half = np.random.default_rng(5), 0.05, 0.25
    walls = tuple(
        HalfSpace(name, (-half * x, -half * y, 0.0), (x, y, 0.0))
        for x, y, name in BESIDE
    )
    places, parts = {}, []
    for k in range(count):
        layer, row, column = k // 16, k // 4 % 4, k % 4
        flat = np.array([row - 1.5, column - 1.5]) * 0.12 + rng.uniform(
            -0.005, 0.005, 2
        )
        places[f"free_ball{k}"] = [*flat, 0.06 + 0.12 * layer, 0, 0, 0, 1]
        parts.append(_sphere(f"ball{k}", 0.5, radius))
    how, settle, fall = ("at rest", 50, 300) if at_rest else ("fall", 0, 0)
    name = f"{count} spheres in a box, {how}"
    return ContactScene(
        name, _scene("spheres", *parts), places, None, settle, (*FLOOR, *walls), fall
    )


def pushing_arm() -> ContactScene:
    """Return the shipped arm, whose tip, a ball, pushes a box over the floor."""
    size = (0.2, 0.2, 0.2)
    root = _robot(robots.path("arm7"), "fixed", _box("load", 2.0, size))
    links = [str(x.get("name")) for x in root.iterfind("link")]
    tip = links[links.index("load") - 1]
    _touching(root, tip, "0 0 0", '<sphere radius="0.03"/>')
    posture = np.array([0.0, 0.8, 0.0, -1.9, 0.0, 2.7, 0.0])
    urdf = _written(root)
    places: dict[str, Any] = {f"joint{k + 1}": x for k, x in enumerate(posture)}
    scene = ContactScene("arm pushes a box", urdf, places)
    x, y, _ = _place(scene.model, tip, scene.start)
    places["free_load"] = [x, y + 0.135, 0.1, 0, 0, 0, 1]

    def drive(model: Model) -> Command:
        weight = solver("gravity").build(model)
        stiff = np.array([400.0] * 4 + [100.0] * 3)

        def command(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
            tau = np.zeros(model.nv)
            wanted = posture.copy()
            wanted[0] += 0.3 * t
            tau[:7] = weight(q)[:7] + stiff * (wanted - q[:7]) - 0.1 * stiff * qd[:7]
            return tau

        return command

    return ContactScene(scene.name, urdf, places, drive)


BARS = """<link name="crank"><inertial><origin xyz="0.2 0 0.03"/><mass value="1.2"/>
<inertia ixx="0.02" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.02"/></inertial></link>
<link name="coupler"><inertial><origin xyz="0.6 0 -0.05"/><mass value="2.0"/>
<inertia ixx="0.2" ixy="0" ixz="0" iyy="0.3" iyz="0" izz="0.2"/></inertial>
</link><link name="foot"><collision><geometry><sphere radius="0.05"/></geometry>
</collision></link><joint name="ankle" type="fixed"><parent link="coupler"/>
<child link="foot"/><origin xyz="0.6 0 -0.4"/></joint>
<link name="rocker"><inertial><origin xyz="0.5 0 0.04"/><mass value="0.9"/>
<inertia ixx="0.05" ixy="0" ixz="0" iyy="0.08" iyz="0" izz="0.05"/></inertial></link>
<joint name="motor" type="continuous"><parent link="the_world"/><child link="crank"/>
<axis xyz="0 -1 0"/><dynamics damping="0.1" friction="0"/></joint>
<joint name="pin_b" type="continuous"><parent link="crank"/><child link="coupler"/>
<origin xyz="0.5 0 0"/><axis xyz="0 -1 0"/></joint>
<joint name="pin_c" type="continuous"><parent link="coupler"/><child link="rocker"/>
<origin xyz="1.3 0 0"/><axis xyz="0 -1 0"/></joint>"""


def four_bar() -> ContactScene:
    """Return a four-bar linkage whose coupler has a foot that falls on the floor."""
    places = {"motor": 1.0, "pin_b": -0.8, "pin_c": -1.5}
    pins = ((ROOT, (1.98, 0.0, 0.0), "rocker", (1.02, 0.0, 0.0)),)
    urdf = _scene("four_bar", BARS)
    scene = ContactScene("four-bar with a foot", urdf, places, pins=pins)
    foot = _place(scene.model, "foot", scene.start)[2]
    low = (HalfSpace("floor", (0.0, 0.0, float(foot) - 0.06)),)
    return ContactScene(scene.name, urdf, places, None, 500, low, 0, pins)


def scenes() -> list[ContactScene]:
    """Return the scenes; without example-robot-data, without a humanoid."""
    body = humanoid()
    return [
        quadruped(False),
        quadruped(True),
        *([body] if body else []),
        towers(1, 10),
        spheres(50, at_rest=False),
        spheres(50, at_rest=True),
        pushing_arm(),
        four_bar(),
    ]


def growing() -> list[ContactScene]:
    """Return towers of up to five boxes, with 4 to 200 contacts."""
    return [towers(*size) for size in ((1, 1), (1, 2), (1, 5), (2, 5), (5, 5), (10, 5))]
