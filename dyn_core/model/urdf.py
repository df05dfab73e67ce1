"""Reading URDF: the XML is cleaned in urdf_xml/, urdf-parser-py reads the rest."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import ArrayLike
from urdf_parser_py import urdf as parser
from urdf_parser_py.xml_reflection import core as reflection

from dyn_core.errors import ModelError
from dyn_core.model import shape_reader
from dyn_core.model import sidecar as sidecar_file
from dyn_core.model.assembly.build import Build
from dyn_core.model.checks.description import check_choices, check_gravity
from dyn_core.model.checks.findings import Findings, warn_of
from dyn_core.model.checks.mimics import without_lost_rules
from dyn_core.model.description import Description, JointSpec, LinkSpec, Mimic
from dyn_core.model.frames import rotations
from dyn_core.model.garbage import seldom_collected
from dyn_core.model.joints.one_axis import unit
from dyn_core.model.model import Model, assemble
from dyn_core.model.sources.origin import Origin
from dyn_core.model.urdf_xml.attributes import XACRO
from dyn_core.model.urdf_xml.clean import CleanRobot, complete
from dyn_core.model.urdf_xml.cleaning import clean_robot
from dyn_core.model.urdf_xml.geometry import Color, colors_by_name, read_shapes
from dyn_core.model.urdf_xml.source import Source, parse_xml, read_source
from dyn_core.spatial import RigidInertia, Symmetric, Vector
from dyn_core.validation import known_keywords

Parsed = Any  # an object of urdf_parser_py, which has no types
reflection.get_type(parser.URDF)  # registered once, before threads could race for it


@known_keywords
def load_urdf(
    source: Source,
    *,
    root_joint: str = "fixed",
    lock: Mapping[str, ArrayLike] | None = None,
    root: str | None = None,
    tip: str | None = None,
    extras: sidecar_file.Extras | None = None,
    sidecar: bool = True,
    check: str = "warn",
    gravity: tuple[float, ...] = (0.0, 0.0, -9.81),
) -> Model:
    """Return the Model of a URDF.

    What is doubtful about the robot is a warning that names link or joint: in
    `model.warnings`, and, all in one, a ModelWarning of Python's `warnings`.

    Args:
        source: Path, XML as str or bytes, or open file.
        root_joint: How the root link is held: fixed or floating.
        lock: Joint positions at which joints are fixed, by name [rad | m].
        root, tip: Links between which a sub-chain is kept.
        extras: Path or mapping with what URDF cannot say (the sidecar).
        sidecar: Whether NAME.dyn.yaml beside a path is read by itself.
        check: warn, or error to refuse doubtful inertias, limits, followers and shapes.
        gravity: Gravity acceleration in the root frame, 3 [m/s²].

    Raises:
        ModelError: The file is unusable; names the element and what would be valid.
    """
    text, path = read_source(source)
    if path is not None and path.suffix == ".xacro" and "<xacro:" in text:
        raise ModelError(XACRO)
    return read_urdf(
        parse_xml(text),
        Origin("urdf", None if path is None else os.path.abspath(path)),
        root_joint=root_joint,
        lock=lock,
        root=root,
        tip=tip,
        extras=extras,
        sidecar=sidecar,
        check=check,
        gravity=gravity,
    )


def read_urdf(
    robot: Element,
    origin: Origin,
    *,
    root_joint: str,
    lock: Mapping[str, ArrayLike] | None,
    root: str | None,
    tip: str | None,
    extras: sidecar_file.Extras | None,
    sidecar: bool,
    check: str,
    gravity: tuple[float, ...],
) -> Model:
    """Return the Model of a <robot>; the arguments are those of load_urdf.

    The ModelWarning points to the line of the user, who calls the caller of this
    through `known_keywords`.

    Args:
        robot: Element of the XML, which is emptied.
        origin: Where it was read from.
    """
    check_choices(check, lock)
    g = check_gravity(gravity)
    strict = check == "error"
    with seldom_collected():
        description = describe(robot, strict)
    path = None if origin.file is None else Path(origin.file)
    beside = None if path is None else path.with_name(_stem(path) + ".dyn.yaml")
    completed = description, origin, path, beside, extras, sidecar
    description, origin = sidecar_file.complete(*completed)
    build = Build(description, root, tip, root_joint, dict(lock or {}), g, strict)
    with seldom_collected():
        model = assemble(replace(build, origin=origin))
    warn_of(model.name, model.warnings, stacklevel=4)
    return model


def _stem(path: Path) -> str:
    """Return the name of a robot's file without .urdf, .xacro or .urdf.xacro."""
    inner = Path(path.stem)
    whole = path.suffix == ".xacro" and inner.suffix in (".urdf", ".xml")
    return inner.stem if whole else path.stem


def describe(element: Element, strict: bool = False) -> Description:
    """Return the Description of a <robot>.

    Args:
        element: Of the XML, which is emptied.
        strict: Whether what is doubtful is an error.
    """
    findings = Findings(strict)
    clean = clean_robot(element, findings)
    element.clear()  # it is large, and nothing needs it from here on
    robot = parsed(clean)
    clean.element.clear()
    inertias = _inertias([link.inertial for link in robot.links])
    materials = [x.find("material") for y in clean.shapes.values() for x in y]
    inside = [x for x in materials if x is not None]
    colors = colors_by_name([*inside, *clean.materials])
    links = tuple(
        _link(link.name, inertia, clean, findings, colors)
        for link, inertia in zip(robot.links, inertias, strict=True)
    )
    joints = [_joint(joint, clean, findings) for joint in robot.joints]
    followers = without_lost_rules(joints, findings)
    return Description(robot.name, links, followers, findings.warnings)


def parsed(clean: CleanRobot) -> Parsed:
    """Return the robot that the parser reads."""
    try:
        robot = parser.URDF.from_xml(clean.element, reflection.Path("robot"))
    except Exception as error:  # the parser raises bare Exceptions and AssertionErrors
        raise ModelError(f"the URDF cannot be read: {error}") from error
    complete(robot, clean)
    return robot


def _triple(values: Parsed) -> tuple[float, float, float]:
    numbers = (0.0, 0.0, 0.0) if values is None else tuple(map(float, values))
    return numbers  # type: ignore[return-value]


def _pose(element: Parsed) -> tuple[tuple, tuple]:
    """Return xyz and rpy of an <origin>, which may be absent."""
    if element is None:
        return (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    return _triple(element.xyz), _triple(element.rpy)


def _link(
    name: str,
    inertia: RigidInertia,
    clean: CleanRobot,
    findings: Findings,
    colors: Mapping[str, Color],
) -> LinkSpec:
    """Return a link; what is omitted gets its default."""
    geometry = read_shapes(name, clean.shapes.get(name, ()), findings, colors)
    collisions = shape_reader.from_geometry(name, geometry, findings)
    return LinkSpec(name, inertia, geometry, collisions)


def _inertias(parts: Sequence[Parsed]) -> list[RigidInertia]:
    """Return the inertias of all links; equal ones, read once, are one object.

    Args:
        parts: Their <inertial>, which may be absent.
    """
    distinct = {id(part): part for part in parts if part is not None}
    rows = [_inertia_row(part) for part in distinct.values()]
    about_links = _about_links(np.array(rows, float).reshape(-1, 13))
    made = dict(zip(distinct, about_links, strict=True))
    return [made.get(id(part), RigidInertia.zero()) for part in parts]


def _inertia_row(part: Parsed) -> tuple[float, ...]:
    """Return mass, xyz, rpy, and the six moments of an <inertial>."""
    xyz, rpy = _pose(part.origin)
    I, six = part.inertia, (0.0,) * 6
    if I is not None:
        six = (I.ixx, I.ixy, I.ixz, I.iyy, I.iyz, I.izz)
    return (part.mass, *xyz, *rpy, *six)


def _about_links(rows: np.ndarray) -> list[RigidInertia]:
    """Return inertias about links' frames, given about and along others.

    Args:
        rows: Mass, xyz, rpy, and six moments of each.
    """
    m, xyz, rpy = rows[:, 0], rows[:, 1:4], rows[:, 4:7]
    six, h = rows[:, 7:].copy(), np.zeros_like(xyz)
    with np.errstate(all="ignore"):
        k = rpy.any(axis=1)
        turned = Symmetric(six[k].T).rotated(rotations(rpy[k]))
        six[k] = np.array(turned.entries).T
        k = xyz.any(axis=1)
        moved = RigidInertia.of(m[k], Vector(xyz[k].T), six[k].T)
        h[k], six[k] = np.array(moved.h.entries).T, np.array(moved.I.entries).T
    numbers = zip(m.tolist(), h.tolist(), six.tolist(), strict=True)
    return [RigidInertia(m, Vector(h), Symmetric(I)) for m, h, I in numbers]


def _joint(joint: Parsed, clean: CleanRobot, findings: Findings) -> JointSpec:
    """Return a joint; what is omitted gets its default."""
    name, kind, limit, dynamics = joint.name, joint.type, joint.limit, joint.dynamics
    axis = (1.0, 0.0, 0.0) if joint.axis is None else _triple(joint.axis)
    low, high, velocity, effort = -math.inf, math.inf, math.inf, 0.0
    if limit is not None:
        velocity, effort = limit.velocity or math.inf, limit.effort
        if kind in ("revolute", "prismatic"):
            low, high = limit.lower or 0.0, limit.upper or 0.0
    if kind in ("revolute", "prismatic") and limit is None:
        findings.note("joint", name, f"{kind} without <limit>; taken as free")
    if low > high or low == math.inf or high == -math.inf:
        what = f"limits need lower <= upper, got {low:g} and {high:g}"
        findings.doubt("joint", name, what, "taken as none")
        low, high = -math.inf, math.inf
    added_limits = clean.limits.get(name, {})
    added: dict[str, Any] = {key: x or math.inf for key, x in added_limits.items()}
    mimic = None
    if joint.mimic is not None:
        rule = joint.mimic
        factor = 1.0 if rule.multiplier is None else rule.multiplier
        mimic = Mimic(rule.joint, factor, rule.offset or 0.0)
    xyz, rpy = _pose(joint.origin)
    return JointSpec(
        name, kind, joint.parent, joint.child, xyz, rpy, _direction(axis),
        low, high, velocity, effort, **added,
        damping=getattr(dynamics, "damping", None) or 0.0,
        friction=getattr(dynamics, "friction", None) or 0.0,
        mimic=mimic,
    )  # fmt: skip


def _direction(axis: tuple) -> tuple[float, float, float]:
    """Scale an axis to length one; one without direction is left for the check."""
    if math.hypot(*axis) < 1e-9:
        return axis
    return tuple(unit(axis))  # type: ignore[return-value]
