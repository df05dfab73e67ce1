"""Cleaning of a URDF: known elements are checked and copied, all others are noted.

urdf-parser-py then has nothing to report, so that its global hook for reports, which
all threads share, is not needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.etree.ElementTree import Element, SubElement

from dyn_core.errors import ModelError
from dyn_core.model.checks.findings import Findings
from dyn_core.model.urdf_xml.attributes import (
    ATTRIBUTES,
    XACRO,
    attributes,
    plain_name,
    replace_quaternion,
    texts,
)
from dyn_core.model.urdf_xml.clean import CleanPart, CleanRobot, Inside, Texts

WORLD = "world"
TYPES = ("fixed", "revolute", "continuous", "prismatic", "planar", "floating")
_LIMITS = ("lower", "upper", "effort", "velocity")  # known to urdf-parser-py
_FOREIGN = ("gazebo", "transmission", "ros2_control")  # for other programs
_UNUSED = ("calibration", "safety_controller")
_JOINT_PARTS = ("origin", "parent", "child", "axis", "dynamics", "limit", "mimic")
_VERSIONS = ("1.0", "1.1", "1.2")
_ZEROS = re.compile(r"[0. \t\r\n]*")


def clean_robot(robot: Element, findings: Findings) -> CleanRobot:
    """Return a robot with its known elements only; `robot` is not changed.

    They are checked, except for shapes and materials. A link `world` that joints have
    as their parent is added if it is missing; a robot without a name is called `robot`.
    """
    if robot.tag != "robot":
        raise ModelError(f"the root element is <{robot.tag}>; a URDF has <robot>")
    name = plain_name(robot.get("name", ""))
    if not name:
        findings.note("", "", "<robot> has no name; it is called 'robot'")
    clean = CleanRobot(Element("robot", name=name or "robot"))
    _check_robot_attributes(robot, findings)
    for child in robot:
        if child.tag == "link":
            _link(child, clean, findings)
        elif child.tag == "joint":
            _joint(child, clean, findings)
        elif child.tag == "material":
            clean.materials.append(child)
        else:
            _note_left_out(findings, ("", ""), child.tag)
    if clean.element.find("link") is None and _has_xacro(robot):
        raise ModelError(XACRO)
    _add_world(clean.element, findings)
    return clean


def _check_robot_attributes(robot: Element, findings: Findings) -> None:
    """Add notes on a namespace and on an unknown version or attribute of <robot>."""
    for key, value in robot.attrib.items():
        if key == "xmlns":
            what = f'the namespace of <robot xmlns="{value}"> is left out'
        elif key == "version" and value not in _VERSIONS:
            what = f"version '{value}' of URDF is read as {_VERSIONS[-1]}"
        elif key in ("name", "version") or key.startswith("xmlns:"):
            continue
        else:
            what = f"unknown attribute '{key}' of <robot> is left out"
        findings.note("", "", what)


def _note_left_out(
    findings: Findings, owner: tuple[str, str], tag: str, inside: str = ""
) -> None:
    """Add a note on an omitted element; a hint if it is for other programs.

    `inside` is a clause with the parent element.
    """
    if tag in _FOREIGN or tag.startswith("drake:"):
        what = f"<{tag}> is for another program and is left out{inside}"
        findings.note(*owner, what, hint=True)
    elif tag.startswith("xacro:"):
        what = f"left-over <{tag}> is left out; xacro replaces such elements{inside}"
        findings.note(*owner, what)
    else:
        findings.note(*owner, f"unknown element <{tag}> is left out{inside}")


def _has_xacro(robot: Element) -> bool:
    """Return whether a direct child of <robot> is an unexpanded xacro element."""
    return any(child.tag.startswith("xacro:") for child in robot)


def _add_world(robot: Element, findings: Findings) -> None:
    """Add an empty link `world`, with a note, if a joint's parent is called so."""
    if any(link.get("name") == WORLD for link in robot.iter("link")):
        return
    if any(parent.get("link") == WORLD for parent in robot.iter("parent")):
        SubElement(robot, "link", name=WORLD)
        findings.note("link", WORLD, "the file has none; it is taken as the base")


def _parts(
    owner: tuple[str, str],
    element: Element,
    single: Iterable[str],
    many: Iterable[str],
    findings: Findings,
) -> tuple[dict[str, Element], list[Element]]:
    """Return two results: children in `single` by tag, and the list of those in `many`.

    Unknown children, and repeated children in `single`, of which the first counts, are
    left out with a note.
    """
    parts: dict[str, Element] = {}
    others = []
    inside = "" if element.tag in ("link", "joint") else f" in <{element.tag}>"
    for child in element:
        if child.tag in many:
            others.append(child)
        elif child.tag not in single:
            _note_left_out(findings, owner, child.tag, inside)
        elif child.tag in parts:
            what = f"another <{child.tag}>{inside} is left out; the first is taken"
            findings.note(*owner, what)
        else:
            parts[child.tag] = child
    return parts, others


def _note_unknown(
    owner: tuple[str, str], element: Element, known: Iterable[str], findings: Findings
) -> None:
    """Add a note on each attribute of an element that is not in `known`."""
    for key in element.attrib:
        if key not in known:
            what = f"unknown attribute '{key}' of <{element.tag}> is left out"
            findings.note(*owner, what)


def _link(element: Element, clean: CleanRobot, findings: Findings) -> None:
    """Add a <link> to `clean`: its inertia for the parser, its shapes to clean.shapes.

    Shapes are not checked; a missing name is "". A missing <inertia> is a note, a
    missing <mass>, or moment in <inertia>, is 0, a doubtful finding.
    """
    name = plain_name(element.get("name", ""))
    owner = ("link", name)
    _note_unknown(owner, element, ("name", "type"), findings)
    parts, shapes = _parts(
        owner, element, ("inertial",), ("visual", "collision"), findings
    )
    link = clean.new("link", name=name)
    if shapes:
        clean.shapes[name] = shapes
    if "inertial" not in parts:
        return
    inner, _ = _parts(
        owner, parts["inertial"], ("origin", "mass", "inertia"), (), findings
    )
    inside: list[Inside] = []
    if "origin" in inner:
        inside += _origin(owner, inner["origin"], findings)
    mass = {"value": "0"}
    if "mass" in inner:
        mass = texts(findings, owner, inner["mass"])
        _demand(owner, inner["mass"], mass, "value", '<mass value="1.0"/>')
    else:
        findings.doubt(*owner, "<inertial> has no <mass>", "the mass is taken as 0")
    inside.append(("mass", mass))
    if "inertia" in inner:
        inside.append(("inertia", _moments(owner, inner["inertia"], findings)))
    else:
        findings.note(*owner, "<inertial> has no <inertia>; it is taken as a point")
    link.add("inertial", {}, inside)


def _moments(owner: tuple[str, str], element: Element, findings: Findings) -> Texts:
    """Return the six moments of <inertia> by name (ixx, ...), as the file's text.

    Missing moments are "0", a doubtful finding.
    """
    moments = texts(findings, owner, element)
    lacking = [key for key in ATTRIBUTES["inertia"] if key not in moments]
    if lacking:
        what = f"<inertia> has no {', '.join(lacking)}"
        findings.doubt(*owner, what, "taken as 0")
        moments = {**dict.fromkeys(lacking, "0"), **moments}
    return moments


def _joint(element: Element, clean: CleanRobot, findings: Findings) -> None:
    """Add a <joint> with its parts to `clean`; a missing name is "".

    The <mimic> of a fixed joint is left out with a note; an invalid <axis>, <dynamics>
    or <limit> of a fixed joint is left out as a doubtful finding. <calibration> and
    <safety_controller> are left out, with a note on soft limits that are narrower.
    """
    name, kind = plain_name(element.get("name", "")), element.get("type")
    owner = ("joint", name)
    if kind not in TYPES:
        valid = ", ".join(TYPES)
        raise ModelError(f"joint '{name}': unknown type '{kind}'; valid: {valid}", name)
    _note_unknown(owner, element, ("name", "type"), findings)
    joint = clean.new("joint", name=name, type=kind)
    parts, _ = _parts(owner, element, _JOINT_PARTS, _UNUSED, findings)
    for tag in ("parent", "child"):
        if tag not in parts or not parts[tag].get("link"):
            raise ModelError(f"joint '{name}' lacks <{tag} link=\"...\"/>", name)
        SubElement(joint.element, tag, texts(findings, owner, parts[tag]))
    if "origin" in parts:
        for tag, values in _origin(owner, parts["origin"], findings):
            joint.add(tag, values)
    for tag in ("axis", "dynamics", "limit", "mimic"):
        if tag not in parts:
            continue
        if kind == "fixed" and tag == "mimic":
            findings.note(*owner, "the <mimic> of a fixed joint is left out")
            continue
        try:
            _add_part(joint, owner, parts[tag], findings)
        except ModelError as error:
            if kind != "fixed":
                raise
            findings.doubtful(error, f"the <{tag}> of a fixed joint is left out")
    if kind != "fixed":
        _note_soft_limits(owner, element, findings)


def _note_soft_limits(
    owner: tuple[str, str], element: Element, findings: Findings
) -> None:
    """Add notes on soft limits of <safety_controller> that are within those of <limit>.

    Other programs plan within them. Text that is no number is ignored.
    """
    for side, sign in (("lower", 1.0), ("upper", -1.0)):
        soft = f"soft_{side}_limit"
        texts_of_both = (
            part.get(key, "")
            for tag, key in (("safety_controller", soft), ("limit", side))
            for part in element.findall(tag)[:1]
        )
        try:
            near, far = map(float, texts_of_both)
        except ValueError:  # one of them is missing, or no number
            continue
        if sign * (near - far) > 0.0:
            what = f"{soft} {near:g} of <safety_controller> is not used"
            findings.note(*owner, f"{what}; the limits of <limit> are")


def _add_part(
    joint: CleanPart, owner: tuple[str, str], element: Element, findings: Findings
) -> None:
    """Add an <axis>, <dynamics>, <limit> or <mimic> to a joint, checked.

    Limits that the parser does not know are stored in joint.robot.limits as floats, by
    joint and name. Limits of effort or velocity that are missing, and an effort of
    +infinity, become 0, which means no limit.
    """
    values = texts(findings, owner, element)
    if element.tag == "axis":
        _demand(owner, element, values, "xyz", '<axis xyz="0 0 1"/>')
    elif element.tag == "mimic":
        _demand(owner, element, values, "joint", '<mimic joint="leader"/>')
    elif element.tag == "limit":
        added = {key: values.pop(key) for key in [*values] if key not in _LIMITS}
        joint.robot.limits[owner[1]] = {key: float(x) for key, x in added.items()}
        if joint.element.get("type") != "fixed":
            _note_no_limits(owner, {**values, **added}, findings)
        if values.get("effort") == "inf":
            values["effort"] = "0"
        # urdf-parser-py requires both; 0 means that there is no limit.
        values = {"effort": "0", "velocity": "0", **values}
    joint.add(element.tag, values)


def _note_no_limits(owner: tuple[str, str], values: Texts, findings: Findings) -> None:
    """Add notes on limits that mean none: an effort of +infinity, others of zero."""
    for key in ("velocity", "acceleration", "deceleration", "jerk"):
        if key in values and float(values[key]) == 0.0:
            findings.note(*owner, f"{key} limit 0 is read as none")
    if values.get("effort") == "inf":
        findings.note(*owner, "effort limit inf is read as none given")


def _demand(
    owner: tuple[str, str],
    element: Element,
    values: Texts,
    key: str,
    valid: str,
) -> None:
    """Raise ModelError if an element lacks the attribute `key`, or it is empty.

    `valid` is an example of a valid element, for the error.
    """
    if not values.get(key):
        kind, name = owner
        raise ModelError(
            f"{kind} '{name}': <{element.tag}> has no {key}; valid: {valid}", name
        )


def _origin(
    owner: tuple[str, str], element: Element, findings: Findings
) -> list[Inside]:
    """Return [("origin", attributes)] with xyz and rpy as text.

    rpy is computed from quat_xyzw if the element has it. An attribute of zeros alone is
    omitted, as zeros are the parser's default; without attributes the list is empty.
    """
    if "quat_xyzw" in element.attrib:
        values = attributes(findings, owner, element)
        replace_quaternion(values, owner)
        read = {key: " ".join(map(repr, value)) for key, value in values.items()}
    else:
        read = texts(findings, owner, element)
    read = {key: value for key, value in read.items() if not _ZEROS.fullmatch(value)}
    return [("origin", read)] if read else []
