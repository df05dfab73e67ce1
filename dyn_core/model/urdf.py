"""Reader of URDF: urdf_xml/ cleans the XML, urdf-parser-py reads the result."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import ArrayLike
from urdf_parser_py import urdf as parser
from urdf_parser_py.xml_reflection import core as reflection

from dyn_core.errors import ModelError
from dyn_core.model.checks.description import check_gravity
from dyn_core.model.checks.findings import Findings
from dyn_core.model.description import Description, Geometry, Mimic
from dyn_core.model.description_builder import DescriptionBuilder, Inertial
from dyn_core.model.frames import rotations
from dyn_core.model.garbage import seldom_collected
from dyn_core.model.joints.one_axis import unit
from dyn_core.model.model import Model
from dyn_core.model.reading import GRAVITY, Choices, complete_model
from dyn_core.model.sidecar import Extras
from dyn_core.model.sources.origin import Origin
from dyn_core.model.urdf_xml.attributes import XACRO
from dyn_core.model.urdf_xml.clean import CleanRobot, complete
from dyn_core.model.urdf_xml.cleaning import clean_robot
from dyn_core.model.urdf_xml.link_shapes import colors_by_name, read_shapes
from dyn_core.model.urdf_xml.xml_text import Source, parse_xml, read_source
from dyn_core.spatial import Symmetric, Transform
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
    extras: Extras | None = None,
    sidecar: bool = True,
    check: str = "warn",
    gravity: tuple[float, ...] = GRAVITY,
) -> Model:
    """Return the Model of a URDF.

    Doubtful and omitted elements are listed in `model.warnings`, each with the name of
    a link or joint; the first 3 that are no hints also in one ModelWarning of Python's
    `warnings`.

    Args:
        source: Path, XML as str or bytes, or open file.
        root_joint: Joint between world and root link: fixed or floating.
        lock: Joint positions at which joints are fixed, by name [rad | m].
        root, tip: First and last link of a sub-chain; without tip the tree below root.
        extras: Sidecar with data that URDF cannot express: path, YAML text or mapping,
            or "quadruped_stand".
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
    element = parse_xml(text)
    origin = Origin("urdf", None if path is None else os.path.abspath(path))
    g = check_gravity(gravity)
    choices = Choices(root_joint, lock, root, tip, extras, sidecar, check, g)
    return read_urdf(element, origin, choices)


def read_urdf(robot: Element, origin: Origin, choices: Choices) -> Model:
    """Return the Model of a <robot> element, which is emptied.

    Without a root_joint in `choices` it is fixed; without gravity it is (0, 0, -9.81)
    m/s². Issues one ModelWarning, as `complete_model` does.
    """
    with seldom_collected():
        description = describe(robot, choices.strict)
    path = None if origin.file is None else Path(origin.file)
    root_joint = "fixed" if choices.root_joint is None else choices.root_joint
    g = GRAVITY if choices.gravity is None else choices.gravity
    return complete_model(description, origin, path, choices, root_joint, g)


def describe(element: Element, strict: bool = False) -> Description:
    """Return the Description of a <robot> element, with warnings.

    Args:
        element: Element of the XML, which is emptied.
        strict: Whether doubtful elements raise a ModelError.

    Raises:
        ModelError: An element is not valid, or doubtful and `strict` is true.
    """
    findings = Findings(strict)
    clean = clean_robot(element, findings)
    element.clear()  # it is large, and nothing needs it from here on
    robot = parsed(clean)
    clean.element.clear()
    materials = [x.find("material") for y in clean.shapes.values() for x in y]
    inside = [x for x in materials if x is not None]
    colors = colors_by_name([*inside, *clean.materials])
    builder = DescriptionBuilder(robot.name, findings)
    inertials = _inertials([link.inertial for link in robot.links])
    for link, inertial in zip(robot.links, inertials, strict=True):
        shapes = clean.shapes.get(link.name, ())
        geometry = read_shapes(link.name, shapes, findings, colors)
        builder.link(link.name, inertial, geometry)
        _add_collisions(builder, link.name, geometry)
    for joint in robot.joints:
        _add_joint(builder, joint, clean.limits.get(joint.name, {}), findings)
    return builder.description()


def parsed(clean: CleanRobot) -> Parsed:
    """Return the robot object of urdf-parser-py for a cleaned <robot> element."""
    try:
        robot = parser.URDF.from_xml(clean.element, reflection.Path("robot"))
    except Exception as error:  # the parser raises bare Exceptions and AssertionErrors
        raise ModelError(f"the URDF cannot be read: {error}") from error
    complete(robot, clean)
    return robot


def _triple(values: Parsed) -> tuple[float, float, float]:
    """Return three values as floats; zeros for None."""
    numbers = (0.0, 0.0, 0.0) if values is None else tuple(map(float, values))
    return numbers  # type: ignore[return-value]


def _pose(element: Parsed) -> tuple[tuple, tuple]:
    """Return xyz [m] and rpy [rad] of an <origin>, zeros where it has none."""
    if element is None:
        return (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    return _triple(element.xyz), _triple(element.rpy)


def _add_collisions(
    builder: DescriptionBuilder, link: str, geometry: Sequence[Geometry]
) -> None:
    collisions = [item for item in geometry if item.role == "collision"]
    for k, item in enumerate(collisions, 1):
        where = f"link '{link}': <collision> {k}: <{item.shape}>"
        X = Transform.of_pose(*item.pose)
        builder.shape(where, link, item.shape, item.size, X, item.mesh)


def _inertials(parts: Sequence[Parsed]) -> list[Inertial | None]:
    """Return the Inertial of each link; None for a link without <inertial>.

    Moments are rotated into the axes of the link's frame. Links with the same
    <inertial> object share one result.
    """
    distinct = {id(part): part for part in parts if part is not None}
    rows = np.array([_inertia_row(part) for part in distinct.values()], float)
    m, com, rpy, six = np.split(rows.reshape(-1, 13), [1, 4, 7], axis=1)
    with np.errstate(all="ignore"):
        k = rpy.any(axis=1)
        turned = Symmetric(six[k].T).rotated(rotations(rpy[k]))
        six[k] = np.array(turned.entries).T
    numbers = zip(m[:, 0].tolist(), com.tolist(), six.tolist(), strict=True)
    made = dict(zip(distinct, map(Inertial._make, numbers), strict=True))
    return [made.get(id(part)) for part in parts]


def _inertia_row(part: Parsed) -> tuple[float, ...]:
    """Return mass, xyz, rpy, Ixx, Ixy, Ixz, Iyy, Iyz, Izz of an <inertial>.

    The moments are in the axes of its <origin>. Numbers of an absent <origin> or
    <inertia> are zeros; the mass must be present.
    """
    xyz, rpy = _pose(part.origin)
    I, six = part.inertia, (0.0,) * 6
    if I is not None:
        six = (I.ixx, I.ixy, I.ixz, I.iyy, I.iyz, I.izz)
    return (part.mass, *xyz, *rpy, *six)


def _add_joint(
    builder: DescriptionBuilder,
    joint: Parsed,
    added: Mapping[str, float],
    findings: Findings,
) -> None:
    """Add a joint to the builder, with defaults for omitted elements.

    A velocity or added limit (URDF 1.2, by name) of 0 means none. Only revolute and
    prismatic joints get limits of position; none, with a warning, without <limit> or if
    they contradict each other.
    """
    name, kind, limit, dynamics = joint.name, joint.type, joint.limit, joint.dynamics
    axis = (1.0, 0.0, 0.0) if joint.axis is None else _triple(joint.axis)
    rates = {key: x or math.inf for key, x in added.items()}
    limits = effort = mimic = None
    if limit is not None:
        rates["velocity"], effort = limit.velocity or math.inf, limit.effort
        if kind in ("revolute", "prismatic"):
            limits = limit.lower or 0.0, limit.upper or 0.0
    elif kind in ("revolute", "prismatic"):
        findings.note("joint", name, f"{kind} without <limit>; taken as free")
    if joint.mimic is not None:
        rule = joint.mimic
        factor = 1.0 if rule.multiplier is None else rule.multiplier
        mimic = Mimic(rule.joint, factor, rule.offset or 0.0)
    xyz, rpy = _pose(joint.origin)
    builder.joint(
        name, kind, joint.parent, joint.child, limits,
        xyz=xyz, rpy=rpy, axis=_direction(axis), effort=effort, **rates,
        damping=getattr(dynamics, "damping", None) or None,
        friction=getattr(dynamics, "friction", None) or None,
        mimic=mimic,
    )  # fmt: skip


def _direction(axis: tuple) -> tuple[float, float, float]:
    """Return an axis scaled to unit length; one shorter than 1e-9 stays as it is."""
    # _check_axes refuses it later, with the name of the joint.
    if math.hypot(*axis) < 1e-9:
        return axis
    return tuple(unit(axis))  # type: ignore[return-value]
