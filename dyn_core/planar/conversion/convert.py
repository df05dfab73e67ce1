"""Planar chains as robots, and robots as planar chains.

The plane (x, y) of a chain is (X, Z) of the robot's base frame; counter-clockwise turns
are about (0, -1, 0). A robot that is read may move in any plane.

Source: WAW-15.2.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np

from dyn_core.errors import ModelError
from dyn_core.model import Model, load_urdf
from dyn_core.model.description_builder import unused_name
from dyn_core.planar.chain.chain import (
    FREE,
    GUIDED,
    KINDS,
    LINE,
    ChainModel,
    make_chain,
)
from dyn_core.planar.conversion import serial
from dyn_core.validation.quoting import xml_text

TRACK = 1e3  # limits of prismatic joints, which URDF requires [m]
AXIS = "0 -1 0"
KIND_NAMES = {kind: name for name, kind in KINDS.items() if name != "fixed"}


class ChainURDF(NamedTuple):
    """A chain as a robot.

    `left_out` describes the chain's properties that URDF cannot express. `side` has
    them as arguments of from_model, for a side file: `from_model(load_urdf(urdf),
    **side)` returns the chain.
    """

    urdf: str
    left_out: tuple[str, ...]
    side: dict[str, Any]


def to_urdf(chain: ChainModel) -> ChainURDF:
    """Return a robot that moves like a chain: q = (base, theta_0, theta_1, ...).

        (x, y) -> (X, Z),   axis (0, -1, 0),   tau equal

    Joint 0 is fixed to the base, slides along its line, or along X and then Z, at most
    1000 m (TRACK) either way. Point masses are links named like their joints, without
    inertia; the mass of a link without inertia is a link, such as link0_mass; a body
    between two sliding joints is massless. A joint without two finite limits is
    continuous. Rolling resistance becomes damping. Limits of effort and speed are
    written as 0, which means none. Joints that turn have the chain's names, its links
    are link0, link1, ..., and the base is `ground`, with "_" appended if taken.

    Returns:
        The XML text `urdf`; `left_out`, descriptions of what URDF cannot express; and
        `side`, the same as keyword arguments of from_model.

    Raises:
        ModelError: A link has inertia and no mass, which no URDF may have.

    Source: WAW-15.2.
    """
    _check_links(chain)
    robot = ElementTree.Element("robot", name=chain.name)
    taken = set(chain.joint_names)
    parent = chain.joint_names[0]
    _base(robot, chain, taken)
    for i, length in enumerate(chain.lengths):
        body, after = unused_name(f"link{i}", taken), chain.joint_names[i + 1]
        mass, com, I = chain.link_masses[i], chain.link_coms[i], chain.link_inertias[i]
        _link(robot, body, mass if I else 0.0, com, I)
        if mass and not I:
            point = unused_name(f"{body}_mass", taken)
            _link(robot, point, mass)
            _fixed(robot, unused_name(f"{point}_at", taken), body, point, com)
        low, high = chain.lower[i], chain.upper[i]
        limited = math.isfinite(low) and math.isfinite(high)
        kind = "revolute" if limited else "continuous"
        joint = _joint(robot, chain.joint_names[i], kind, parent, body, AXIS)
        if limited:
            _limit(joint, low, high)
        if chain.k_omega[i]:
            ElementTree.SubElement(joint, "dynamics", damping=repr(chain.k_omega[i]))
        _link(robot, after, chain.masses[i + 1])
        _fixed(robot, unused_name(f"{after}_end", taken), body, after, length)
        parent = after
    ElementTree.indent(robot)
    left_out, side = _left_out(chain)
    text = xml_text(robot) + "\n"
    return ChainURDF(text, left_out, side)


def to_model(chain: ChainModel) -> Model:
    """Return the Model of to_urdf, with the chain's gravity.

    Other properties that URDF cannot express are lost.

    Source: WAW-15.2.
    """
    x, y = chain.gravity
    return load_urdf(to_urdf(chain).urdf, gravity=(x, 0.0, y))


def from_model(model: Model, tip: str | None = None, **parts: Any) -> ChainModel:
    """Return the chain that moves like a robot.

        alpha = qdd of joints that turn, sign by their axis

    The robot has revolute joints with parallel axes, one after the other. Its base is
    fixed, slides along one or two lines across the axes, or moves freely (planar,
    floating). A link whose centre of mass is off the line between its joints becomes
    two links; the joint between them, NAME_bend after the joint NAME at the start of
    the first, is active and keeps its angle. Offsets along the axes and products of
    inertia only load the bearings and are ignored, as are limits of effort, of speed,
    and of sliding joints. Gravity is in the plane of motion.

    `tip` is the link at whose origin the last chain link ends, None as in serial.read.
    `parts` are attributes that replace the robot's, see make_chain: the side file of
    to_urdf, ground, k_v, ...

    Source: WAW-15.2, WAW-13.4.
    """
    geometry = serial.read(model, tip)
    segments, n = geometry.segments, len(geometry.segments) + 1
    lower, upper = [-math.inf] * n, [math.inf] * n
    resistance = [0.0] * n
    for k, (segment, bend) in enumerate(zip(segments, geometry.bends, strict=True)):
        if not segment.turns or (k == 0 and geometry.free):
            continue
        dofs, sense = model.v_slices[segment.body], geometry.sense(model, segment.body)
        ends = [bend + sense * x for x in (model.lower[dofs][0], model.upper[dofs][0])]
        lower[k], upper[k] = min(ends), max(ends)
        resistance[k] = float(model.damping[segment.body][0])
    kinds = [FREE if geometry.free or len(geometry.slides) == 2 else GUIDED] + [
        FREE
    ] * (n - 1)
    normal = (0.0, 0.0)
    if len(geometry.slides) == 1:
        kinds[0] = LINE
        joint: Any = model.joint[1]
        along = geometry.flat(geometry.poses[1][0] @ np.array(joint.axis))
        normal = -float(along[1]) + 0.0, float(along[0]) + 0.0
    arguments = {
        "lengths": [math.hypot(*s.vector) for s in segments],
        "masses": [geometry.mass, *[s.tip for s in segments]],
        "gravity": geometry.flat(list(model.a_grav.lin)).tolist(),
        "k_omega": resistance,
        "lower": lower,
        "upper": upper,
        "link_masses": [s.mass for s in segments],
        "link_coms": [s.com for s in segments],
        "link_inertias": [s.inertia for s in segments],
        "joint_names": _distinct([*[s.name for s in segments], geometry.tip]),
        "name": model.name,
        "constraints": {
            "kind": kinds,
            "s": {0: normal},
            "active": [k for k, s in enumerate(segments) if not s.turns],
        },
    }
    return make_chain(**(arguments | parts))


def _check_links(chain: ChainModel) -> None:
    """Raise ModelError for a link with inertia and no mass."""
    pairs = zip(chain.link_masses, chain.link_inertias, strict=True)
    for i, (mass, inertia) in enumerate(pairs):
        if inertia and not mass:
            raise ModelError(
                f"link_inertias[{i}]: link {i} has inertia and no mass, which no URDF"
                " may have; valid: a mass > 0",
                f"link_inertias[{i}]",
            )


def _base(robot: ElementTree.Element, chain: ChainModel, taken: set[str]) -> None:
    """Add ground, base joints and the point mass of joint 0 to the XML, and to `taken`.

    The point mass is a link named like joint 0. A free joint slides along X and then Z
    with a massless link between.
    """
    kind, first = chain.constraints.kind[0], chain.joint_names[0]
    ground = unused_name("ground", taken)
    _link(robot, ground, 0.0)
    if kind == GUIDED:
        _joint(robot, unused_name(f"{first}_base", taken), "fixed", ground, first)
    if kind == LINE:
        x, y = chain.constraints.s[0]
        slide, axis = unused_name(f"{first}_slide", taken), f"{y!r} 0 {-x!r}"
        _limit(_joint(robot, slide, "prismatic", ground, first, axis), -TRACK, TRACK)
    if kind == FREE:
        one, two = unused_name(f"{first}_x", taken), unused_name(f"{first}_y", taken)
        _limit(_joint(robot, one, "prismatic", ground, one, "1 0 0"), -TRACK, TRACK)
        _link(robot, one, 0.0)
        _limit(_joint(robot, two, "prismatic", one, first, "0 0 1"), -TRACK, TRACK)
    _link(robot, first, chain.masses[0])


def _link(
    robot: ElementTree.Element, name: str, mass: float, com: float = 0.0, I: float = 0.0
) -> None:
    """Add a link of mass [kg] with its centre at (com, 0, 0) [m] to a robot's XML.

    I is the inertia about all three axes through the centre of mass; inertia about axes
    in the plane has no effect.
    """
    link = ElementTree.SubElement(robot, "link", name=name)
    if mass:
        inertial = ElementTree.SubElement(link, "inertial")
        ElementTree.SubElement(inertial, "origin", xyz=f"{com!r} 0 0")
        ElementTree.SubElement(inertial, "mass", value=repr(mass))
        six = {"ixx": I, "ixy": 0.0, "ixz": 0.0, "iyy": I, "iyz": 0.0, "izz": I}
        numbers = {key: repr(x) for key, x in six.items()}
        ElementTree.SubElement(inertial, "inertia", numbers)


def _joint(
    robot: ElementTree.Element,
    name: str,
    kind: str,
    parent: str,
    child: str,
    axis: str = "",
) -> ElementTree.Element:
    """Add a joint to the XML of a robot; `axis` is text, three numbers or ""."""
    joint = ElementTree.SubElement(robot, "joint", name=name, type=kind)
    ElementTree.SubElement(joint, "parent", link=parent)
    ElementTree.SubElement(joint, "child", link=child)
    if axis:
        ElementTree.SubElement(joint, "axis", xyz=axis)
    return joint


def _fixed(
    robot: ElementTree.Element, name: str, parent: str, child: str, x: float
) -> None:
    """Add a fixed joint to the XML of a robot: `child` at (x, 0, 0) of `parent` [m]."""
    joint = _joint(robot, name, "fixed", parent, child)
    ElementTree.SubElement(joint, "origin", xyz=f"{x!r} 0 0")


def _limit(joint: ElementTree.Element, low: float, high: float) -> None:
    """Add position limits to the XML of a joint; 0 means no effort or speed limit."""
    numbers = {"lower": repr(low), "upper": repr(high), "effort": "0", "velocity": "0"}
    ElementTree.SubElement(joint, "limit", numbers)


def _distinct(names: list[str]) -> list[str]:
    taken: set[str] = set()
    return [unused_name(name, taken) for name in names]


def _left_out(chain: ChainModel) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return what of the chain URDF cannot express: as texts, and as for from_model."""
    left_out: list[str] = []
    side: dict[str, Any] = {}
    if chain.gravity != (0.0, -9.81):
        side["gravity"] = list(chain.gravity)
        left_out.append(f"gravity {chain.gravity}: load_urdf takes it as an argument")
    if any(chain.k_v):
        side["k_v"] = list(chain.k_v)
        left_out.append("k_v: drag by the square of the speed")
    if chain.k_omega[-1]:
        side["k_omega"] = list(chain.k_omega)
        left_out.append("k_omega of the last joint, which has no angle")
    one = [
        name
        for name, *ends in zip(chain.joint_names, chain.lower, chain.upper, strict=True)
        if math.isfinite(ends[0]) != math.isfinite(ends[1])
    ]
    if one:
        side |= {"lower": list(chain.lower), "upper": list(chain.upper)}
        left_out.append(f"limits of {', '.join(one)}, which are on one side only")
    if chain.n > 1 and abs(chain.link_coms[-1]) >= chain.lengths[-1]:
        side["tip"] = chain.joint_names[-1]
        left_out.append(f"that {side['tip']} is the tip, and not the mass beyond it")
    if chain.ground:
        side["ground"] = [
            {
                "z0": list(plane.z0),
                "z": list(plane.z),
                "joints": None if plane.joints is None else list(plane.joints),
                "mode": plane.mode,
            }
            for plane in chain.ground
        ]
        left_out.append(f"ground: {len(chain.ground)} half-planes that stop joints")
    constraints = _constraints_left_out(chain)
    if constraints:
        side["constraints"] = constraint_arguments(chain)
        left_out += constraints
    return tuple(left_out), side


def _constraints_left_out(chain: ChainModel) -> list[str]:
    """Return descriptions of the constraints that URDF cannot express, one by kind."""
    constraints, names, left_out = chain.constraints, chain.joint_names, []
    inner = [
        n
        for n, kind in zip(names[1:], constraints.kind[1:], strict=True)
        if kind != FREE
    ]
    if inner:
        left_out.append(
            f"joints inside the chain that are guided or on a line: {inner}"
        )
    pushed = [
        name
        for name, kind, a in zip(names, constraints.kind, constraints.a_w, strict=True)
        if kind != FREE and any(a)
    ]
    if pushed:
        left_out.append(f"prescribed accelerations of {', '.join(pushed)}")
    active = [name for name, on in zip(names, constraints.active, strict=True) if on]
    if active:
        left_out.append(f"active joints, whose accelerations are prescribed: {active}")
    return left_out


def constraint_arguments(chain: ChainModel) -> dict[str, Any]:
    """Return a chain's constraints as keyword arguments of Constraints.of, but n."""
    constraints = chain.constraints
    return {
        "kind": [KIND_NAMES[kind] for kind in constraints.kind],
        "a_w": [list(row) for row in constraints.a_w],
        "s": [list(row) for row in constraints.s],
        "active": [k for k, on in enumerate(constraints.active) if on],
        "alpha_w": list(constraints.alpha_w),
    }
