"""Reading URDF: the XML is cleaned in urdf_xml/, urdf-parser-py reads the rest."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any

from numpy.typing import ArrayLike
from urdf_parser_py import urdf as parser
from urdf_parser_py.xml_reflection import core as reflection

from dyn_core.errors import ModelError, ModelWarning
from dyn_core.model import shape_reader
from dyn_core.model import sidecar as sidecar_file
from dyn_core.model.build import Build
from dyn_core.model.checks.findings import Findings
from dyn_core.model.checks.mimics import without_lost_rules
from dyn_core.model.description import Description, JointSpec, LinkSpec, Mimic
from dyn_core.model.frames import origin
from dyn_core.model.joints.one_axis import unit
from dyn_core.model.model import Model, assemble
from dyn_core.model.urdf_xml.attributes import XACRO
from dyn_core.model.urdf_xml.cleaning import CleanRobot, clean_robot
from dyn_core.model.urdf_xml.geometry import read_shapes
from dyn_core.model.urdf_xml.source import Source, parse_xml, read_source
from dyn_core.spatial import RigidInertia, Symmetric, Vector

Parsed = Any  # an object of urdf_parser_py, which has no types
_SHOWN = 3  # warnings in the one that Python's warnings get
reflection.get_type(parser.URDF)  # registered once, before threads could race for it


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
    if check not in ("error", "warn"):
        raise ModelError(f"check '{check}': valid are error, warn")
    g = _gravity(gravity)
    strict = check == "error"
    text, path = read_source(source)
    if path is not None and path.suffix == ".xacro" and "<xacro:" in text:
        raise ModelError(XACRO)
    description = describe(text, strict)
    if extras is None and sidecar and path is not None:
        beside = path.with_name(path.stem + ".dyn.yaml")
        extras = beside if beside.exists() else None
    if path is not None:
        description = sidecar_file.from_file(description, path)
    if extras is not None:
        description = sidecar_file.apply(description, extras)
    model = assemble(
        Build(description, root, tip, root_joint, dict(lock or {}), g, strict)
    )
    if model.warnings:
        warnings.warn(_summary(model), ModelWarning, stacklevel=2)
    return model


def _gravity(gravity: Any) -> tuple[float, ...]:
    """Return the gravity acceleration, checked."""
    try:
        g = () if isinstance(gravity, str) else tuple(float(x) for x in gravity)
    except (TypeError, ValueError):
        g = ()
    if len(g) != 3 or not all(math.isfinite(x) for x in g):
        raise ModelError(f"gravity needs three finite numbers, got {gravity!r}")
    return g


def _summary(model: Model) -> str:
    """Return the first warnings about a robot, and how many more there are."""
    more = len(model.warnings) - _SHOWN
    shown = "; ".join(model.warnings[:_SHOWN])
    rest = f"; and {more} more in model.warnings" if more > 0 else ""
    return f"robot '{model.name}': {shown}{rest}"


def describe(text: str, strict: bool = False) -> Description:
    """Return the Description of URDF text.

    Args:
        text: XML.
        strict: Whether what is doubtful is an error.
    """
    findings = Findings(strict)
    clean = clean_robot(parse_xml(text), findings)
    try:
        path = reflection.Path("robot")
        robot = parser.URDF.from_xml(clean.element, path)
    except Exception as error:  # the parser raises bare Exceptions and AssertionErrors
        raise ModelError(f"the URDF cannot be read: {error}") from error
    links = tuple(_link(link, clean, findings) for link in robot.links)
    joints = [_joint(joint, clean, findings) for joint in robot.joints]
    followers = without_lost_rules(joints, findings)
    return Description(robot.name, links, followers, findings.warnings)


def _triple(values: Parsed) -> tuple[float, float, float]:
    numbers = (0.0, 0.0, 0.0) if values is None else tuple(float(x) for x in values)
    return numbers  # type: ignore[return-value]


def _pose(element: Parsed) -> tuple[tuple, tuple]:
    """Return xyz and rpy of an <origin>, which may be absent."""
    if element is None:
        return (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    return _triple(element.xyz), _triple(element.rpy)


def _link(link: Parsed, clean: CleanRobot, findings: Findings) -> LinkSpec:
    """Return a link; what is omitted gets its default."""
    inertia = RigidInertia.zero()
    if link.inertial is not None:
        part = link.inertial
        I, six = part.inertia, (0.0,) * 6
        if I is not None:
            six = (I.ixx, I.ixy, I.ixz, I.iyy, I.iyz, I.izz)
        inertia = _inertia(part.mass, *_pose(part.origin), six)
    geometry = read_shapes(link.name, clean.shapes.get(link.name, ()), findings)
    collisions = shape_reader.from_geometry(link.name, geometry, findings)
    return LinkSpec(link.name, inertia, geometry, collisions)


def _inertia(m: float, xyz: tuple, rpy: tuple, six: tuple) -> RigidInertia:
    """Return an inertia about a link's frame, given about and along another."""
    if any(rpy):
        six = Symmetric(six).rotated(origin(xyz, rpy).E.T).entries
    return (
        RigidInertia.of(m, xyz, six)
        if any(xyz)
        else RigidInertia(m, Vector.zeros(3), Symmetric(six))
    )


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
