"""Reading URDF: the XML is checked and cleaned here, urdf-parser-py reads the rest."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any
from xml.etree import ElementTree

from numpy.typing import ArrayLike
from urdf_parser_py import urdf as parser
from urdf_parser_py.xml_reflection import core as reflection

from dyn_core.errors import ModelError
from dyn_core.model import shape_reader
from dyn_core.model import sidecar as sidecar_file
from dyn_core.model.build import Build
from dyn_core.model.description import (
    Description,
    Geometry,
    JointSpec,
    LinkSpec,
    Mimic,
)
from dyn_core.model.frames import origin
from dyn_core.model.joints.one_axis import unit
from dyn_core.model.model import Model, assemble
from dyn_core.spatial import RigidInertia

Source = str | bytes | os.PathLike[str] | IO[str] | IO[bytes]
Parsed = Any  # an object of urdf_parser_py, which has no types
_LINK_PARTS = ("inertial", "visual", "collision")
_JOINT_PARTS = (
    "origin", "parent", "child", "axis", "calibration", "dynamics", "limit",
    "safety_controller", "mimic",
)  # fmt: skip
_TYPES = ("fixed", "revolute", "continuous", "prismatic", "planar", "floating")
_SHAPES = ("box", "sphere", "cylinder", "mesh")
_XACRO = (
    "the file holds xacro tags; expand them first: xacro robot.urdf.xacro > robot.urdf"
)
_SILENT = ("transmission", "gazebo", "ros2_control", "material", "version")


def load_urdf(
    source: Source,
    *,
    root_joint: str = "fixed",
    lock: Mapping[str, ArrayLike] | None = None,
    root: str | None = None,
    tip: str | None = None,
    extras: sidecar_file.Extras | None = None,
    sidecar: bool = True,
    check: str = "error",
    gravity: tuple[float, ...] = (0.0, 0.0, -9.81),
) -> Model:
    """Return the Model of a URDF.

    Args:
        source: Path, XML text, or open file.
        root_joint: How the root link is held: fixed or floating.
        lock: Joint positions at which joints are fixed, by name [rad | m].
        root, tip: Links between which a sub-chain is kept.
        extras: Path or mapping with what URDF cannot say (the sidecar).
        sidecar: Whether NAME.dyn.yaml beside a path is read by itself.
        check: error, or warn to let implausible inertias of real files through.
        gravity: Gravity acceleration in the root frame, 3 [m/s²].

    Raises:
        ModelError: The file is unusable; names the element and what would be valid.
    """
    if check not in ("error", "warn"):
        raise ModelError(f"check '{check}': valid are error, warn")
    g = tuple(float(x) for x in gravity)
    if len(g) != 3 or not all(math.isfinite(x) for x in g):
        raise ModelError(f"gravity needs three finite numbers, got {gravity!r}")
    text, path = _read(source)
    description = describe(text)
    if extras is None and sidecar and path is not None:
        beside = path.with_name(path.stem + ".dyn.yaml")
        extras = beside if beside.exists() else None
    if path is not None:
        description = sidecar_file.from_file(description, path)
    if extras is not None:
        description = sidecar_file.apply(description, extras)
    strict = check == "error"
    return assemble(
        Build(description, root, tip, root_joint, dict(lock or {}), g, strict)
    )


def describe(text: str | bytes) -> Description:
    """Return the Description of URDF text."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    element, warnings = _clean(text)
    reported: list[str] = []
    before, reflection.on_error = reflection.on_error, reported.append
    try:
        robot = parser.URDF.from_xml_string(ElementTree.tostring(element))
    except Exception as error:  # the parser raises bare Exceptions and AssertionErrors
        raise ModelError(f"the URDF cannot be read: {error}") from error
    finally:
        reflection.on_error = before
    links = tuple(_link(link) for link in robot.links)
    joints = tuple(_joint(joint, warnings) for joint in robot.joints)
    return Description(
        robot.name or "robot", links, joints, (*warnings, *_grouped(reported))
    )


def _grouped(reported: list[str]) -> list[str]:
    """Return one message for those that the parser repeats, with their number."""
    kinds: dict[str, list[str]] = {}
    for message in reported:
        what, _, path = message.partition(" in ")
        kinds.setdefault(f"{what} of <{path.rpartition('/')[2]}>", []).append(message)
    return [
        messages[0]
        if len(messages) == 1
        else f"{kind} is left out, {len(messages)} times"
        for kind, messages in kinds.items()
    ]


def _read(source: Source) -> tuple[str, Path | None]:
    """Return the text and, where there is one, the path."""
    if not isinstance(source, (str, bytes, os.PathLike)):
        text = source.read()
        return text if isinstance(text, str) else text.decode("utf-8", "replace"), None
    if isinstance(source, bytes):
        source = source.decode("utf-8", "replace")
    if isinstance(source, str) and (not source.strip() or "<" in source):
        return source, None
    path = Path(os.fspath(source))
    try:
        return path.read_text(encoding="utf-8"), path
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"cannot read the URDF file {path}: {error}") from error


def _clean(text: str) -> tuple[ElementTree.Element, list[str]]:
    """Parse XML safely and keep only what the parser knows; warn of the rest."""
    if not text.strip():
        raise ModelError("the URDF is empty; a <robot> element is needed")
    upper = text.upper()
    if "<!DOCTYPE" in upper or "<!ENTITY" in upper:
        raise ModelError("the URDF declares XML entities (DOCTYPE); remove them")
    try:
        robot = ElementTree.fromstring(text.strip())
    except ElementTree.ParseError as error:
        if "unbound prefix" in str(error) and "<xacro:" in text:
            raise ModelError(_XACRO) from error
        raise ModelError(f"the URDF is malformed XML: {error}") from error
    for element in robot.iter():
        values = element.attrib.values()
        if "xacro" in element.tag or any("${" in value for value in values):
            raise ModelError(_XACRO)
    if robot.tag != "robot":
        raise ModelError(f"the root element is <{robot.tag}>; a URDF has <robot>")
    warnings: list[str] = []
    for child in list(robot):
        if child.tag in ("link", "joint"):
            _clean_part(child, warnings)
        else:
            robot.remove(child)
            if child.tag not in _SILENT:
                warnings.append(f"unknown element <{child.tag}> is left out")
    return robot, warnings


def _clean_part(element: ElementTree.Element, warnings: list[str]) -> None:
    """Remove all but the known children of a link or joint."""
    known = _LINK_PARTS if element.tag == "link" else _JOINT_PARTS
    name = element.get("name", "")
    for visual in element.findall("visual"):
        for material in visual.findall("material"):
            visual.remove(material)
    for child in list(element):
        where = f"{element.tag} '{name}'"
        if child.tag not in known:
            element.remove(child)
            warnings.append(f"{where}: unknown element <{child.tag}> is left out")
        elif child.tag in ("visual", "collision"):
            shape = child.find("geometry/*")
            if shape is None or shape.tag not in _SHAPES:
                element.remove(child)
                tag = "nothing" if shape is None else f"<{shape.tag}>"
                warnings.append(f"{where}: <{child.tag}> with {tag} is left out")
    if element.tag == "joint":
        _check_joint_element(element, name)


def _check_joint_element(element: ElementTree.Element, name: str) -> None:
    """Check what the parser would fail on without a reason."""
    kind, valid = element.get("type"), ", ".join(_TYPES)
    if kind not in _TYPES:
        raise ModelError(f"joint '{name}': unknown type '{kind}'; valid: {valid}", name)
    for tag in ("parent", "child"):
        part = element.find(tag)
        if part is None or not part.get("link"):
            raise ModelError(f"joint '{name}' lacks <{tag} link=\"...\"/>", name)
    mimic = element.find("mimic")
    if mimic is not None and not mimic.get("joint"):
        raise ModelError(f"joint '{name}': <mimic> names no joint", name)
    limit = element.find("limit")
    if limit is not None:
        for key in ("effort", "velocity"):  # required by the format, absent in files
            if limit.get(key) is None:
                limit.set(key, "0")


def _triple(values: Parsed) -> tuple[float, float, float]:
    numbers = (0.0, 0.0, 0.0) if values is None else tuple(float(x) for x in values)
    return numbers  # type: ignore[return-value]


def _pose(element: Parsed) -> tuple[tuple, tuple]:
    """Return xyz and rpy of an <origin>, which may be absent."""
    if element is None:
        return (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    return _triple(element.xyz), _triple(element.rpy)


def _link(link: Parsed) -> LinkSpec:
    """Return a link; what is omitted gets its default."""
    inertia = RigidInertia.zero()
    six: tuple[float, ...]
    if link.inertial is not None:
        part = link.inertial
        m = 0.0 if part.mass is None else float(part.mass)
        I, six = part.inertia, (0.0,) * 6
        if I is not None:
            six = tuple(float(x) for x in (I.ixx, I.ixy, I.ixz, I.iyy, I.iyz, I.izz))
        X = origin(*_pose(part.origin))
        inertia = X.T @ RigidInertia.of(m, (0.0, 0.0, 0.0), six) @ X
    shapes = [("visual", x) for x in link.visuals]
    shapes += [("collision", x) for x in link.collisions]
    geometry = tuple(_geometry(*shape) for shape in shapes)
    collisions = shape_reader.from_geometry(link.name, geometry)
    return LinkSpec(link.name, inertia, geometry, collisions)


def _geometry(role: str, element: Parsed) -> Geometry:
    """Return a shape as the file has it."""
    shape = element.geometry
    kind = type(shape).__name__.lower()
    mesh = getattr(shape, "filename", None)
    if kind == "box":
        size = _triple(shape.size)
    elif kind == "mesh":
        size = (1.0, 1.0, 1.0) if shape.scale is None else _triple(shape.scale)
    else:
        length = getattr(shape, "length", None)
        size = (float(shape.radius), *(() if length is None else (float(length),)))
    return Geometry(role, kind, size, mesh, origin(*_pose(element.origin)).pose)


def _joint(joint: Parsed, warnings: list[str]) -> JointSpec:
    """Return a joint; what is omitted gets its default."""
    kind, limit, dynamics = joint.type, joint.limit, joint.dynamics
    axis = (1.0, 0.0, 0.0) if joint.axis is None else _triple(joint.axis)
    low, high, velocity, effort = -math.inf, math.inf, math.inf, 0.0
    if limit is not None:
        velocity = float(limit.velocity or 0.0) or math.inf
        effort = float(limit.effort or 0.0)
        if kind in ("revolute", "prismatic"):
            low, high = float(limit.lower or 0.0), float(limit.upper or 0.0)
    if kind in ("revolute", "prismatic") and limit is None:
        warnings.append(f"joint '{joint.name}': {kind} without <limit>; taken as free")
    mimic = None
    if joint.mimic is not None and kind == "fixed":
        warnings.append(f"joint '{joint.name}' is fixed; its <mimic> is left out")
    elif joint.mimic is not None:
        rule = joint.mimic
        factor = 1.0 if rule.multiplier is None else float(rule.multiplier)
        mimic = Mimic(rule.joint, factor, float(rule.offset or 0.0))
    xyz, rpy = _pose(joint.origin)
    return JointSpec(
        joint.name, kind, joint.parent, joint.child, xyz, rpy, _direction(axis),
        low, high, velocity, effort,
        damping=float(getattr(dynamics, "damping", None) or 0.0),
        friction=float(getattr(dynamics, "friction", None) or 0.0),
        mimic=mimic,
    )  # fmt: skip


def _direction(axis: tuple) -> tuple[float, float, float]:
    """Scale an axis to length one; one without direction is left for the check."""
    if not all(math.isfinite(x) for x in axis) or math.hypot(*axis) < 1e-9:
        return axis
    return tuple(unit(axis))  # type: ignore[return-value]
