"""Reader of URDF: urdf_xml/ cleans the XML, urdf-parser-py reads the result."""

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

    Doubtful elements are listed in `model.warnings`, each with the name of a link or
    joint, and in one ModelWarning of Python's `warnings`.

    Args:
        source: Path, XML as str or bytes, or open file.
        root_joint: Joint between world and root link: fixed or floating.
        lock: Joint positions at which joints are fixed, by name [rad | m].
        root, tip: First and last link of a sub-chain; without tip the tree below root.
        extras: Path or mapping of a sidecar, with data that URDF cannot express.
        sidecar: Whether NAME.dyn.yaml beside the path is read, if there are no extras.
        check: warn, or error to raise a ModelError for doubtful inertias, limits,
            followers and shapes.
        gravity: Gravity acceleration in the root frame, 3 [m/s²].

    Raises:
        ModelError: The file or an argument is not valid, or it is an unexpanded xacro
            file; names the element and valid alternatives.
        SettingError: Unknown keyword.
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
    """Return the Model of a <robot> element; other arguments are as in load_urdf.

    Args:
        robot: Element of the XML, which is emptied.
        origin: Record of the source.
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
    # The level of the user's line: its call passes known_keywords and the public
    # function.
    warn_of(model.name, model.warnings, stacklevel=4)
    return model


def _stem(path: Path) -> str:
    """Return the name of a file without .urdf, .xacro, .urdf.xacro or .xml.xacro."""
    inner = Path(path.stem)
    whole = path.suffix == ".xacro" and inner.suffix in (".urdf", ".xml")
    return inner.stem if whole else path.stem


def describe(element: Element, strict: bool = False) -> Description:
    """Return the Description of a <robot> element.

    Args:
        element: Element of the XML, which is emptied.
        strict: Whether doubtful elements raise a ModelError.

    Raises:
        ModelError: An element is not valid.
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
    """Return the robot object of urdf-parser-py.

    Raise ModelError if it refuses the XML.
    """
    try:
        robot = parser.URDF.from_xml(clean.element, reflection.Path("robot"))
    except Exception as error:  # the parser raises bare Exceptions and AssertionErrors
        raise ModelError(f"the URDF cannot be read: {error}") from error
    complete(robot, clean)
    return robot


def _triple(values: Parsed) -> tuple[float, float, float]:
    """Return three floats; zeros for None."""
    numbers = (0.0, 0.0, 0.0) if values is None else tuple(map(float, values))
    return numbers  # type: ignore[return-value]


def _pose(element: Parsed) -> tuple[tuple, tuple]:
    """Return xyz and rpy of an <origin>; zeros if it is absent."""
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
    """Return a link with its shapes.

    Invalid shapes are left out.

    Args:
        name: Name of the link.
        inertia: Its inertia.
        clean: The robot; has the <visual> and <collision> elements.
        findings: Collects a warning for each shape that is left out.
        colors: Colours by name of the material.

    Raises:
        ModelError: A shape is not valid and the check is strict.
    """
    geometry = read_shapes(name, clean.shapes.get(name, ()), findings, colors)
    collisions = shape_reader.from_geometry(name, geometry, findings)
    return LinkSpec(name, inertia, geometry, collisions)


def _inertias(parts: Sequence[Parsed]) -> list[RigidInertia]:
    """Return the inertia of each link; links with the same <inertial> share an object.

    Args:
        parts: <inertial> of each link; None: zero inertia.
    """
    distinct = {id(part): part for part in parts if part is not None}
    rows = [_inertia_row(part) for part in distinct.values()]
    about_links = _about_links(np.array(rows, float).reshape(-1, 13))
    made = dict(zip(distinct, about_links, strict=True))
    return [made.get(id(part), RigidInertia.zero()) for part in parts]


def _inertia_row(part: Parsed) -> tuple[float, ...]:
    """Return mass, xyz, rpy and six moments (zeros if absent) of an <inertial>."""
    xyz, rpy = _pose(part.origin)
    I, six = part.inertia, (0.0,) * 6
    if I is not None:
        six = (I.ixx, I.ixy, I.ixz, I.iyy, I.iyz, I.izz)
    return (part.mass, *xyz, *rpy, *six)


def _about_links(rows: np.ndarray) -> list[RigidInertia]:
    """Return inertias about the links' frames, from <inertial> elements.

    Args:
        rows: Mass, xyz, rpy, and six moments about and along that frame, (n, 13).
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
    """Return a joint, with defaults for omitted elements.

    Velocity and added limits of 0 mean none. Position limits that are missing or
    contradict each other become infinite, with a finding.

    Args:
        joint: The <joint>, as read by urdf-parser-py.
        clean: The robot; has the added limits.
        findings: Collects a warning for each replaced limit.

    Raises:
        ModelError: Limits contradict each other and the check is strict.
    """
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
    """Return an axis scaled to unit length; one shorter than 1e-9 stays as it is."""
    # _check_axes refuses it later, with the name of the joint.
    if math.hypot(*axis) < 1e-9:
        return axis
    return tuple(unit(axis))  # type: ignore[return-value]
