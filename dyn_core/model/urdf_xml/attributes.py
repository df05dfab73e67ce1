"""Attributes of URDF elements: known names, and the syntax of their numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from xml.etree.ElementTree import Element

from dyn_core.errors import ModelError, nearest
from dyn_core.model.checks.findings import Findings
from dyn_core.model.frames import rpy_of

LARGEST = 1e100  # a larger number overflows in products
EXTRA = 'pip install "dyn_ros[xacro]"'
XACRO = (
    "the file holds xacro tags, which dyn.load expands in a *.xacro file, with"
    f" {EXTRA}; or expand them first: xacro robot.urdf.xacro > robot.urdf"
)
# By element: number of numbers of each attribute; 0: it is a name.
ATTRIBUTES: Mapping[str, Mapping[str, int]] = {
    "origin": {"xyz": 3, "rpy": 3, "quat_xyzw": 4},
    "mass": {"value": 1},
    "inertia": dict.fromkeys(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), 1),
    "axis": {"xyz": 3},
    "parent": {"link": 0},
    "child": {"link": 0},
    "dynamics": {"damping": 1, "friction": 1},
    "limit": {
        "lower": 1, "upper": 1, "effort": 1, "velocity": 1, "acceleration": 1,
        "deceleration": 1, "jerk": 1,
    },
    "mimic": {"joint": 0, "multiplier": 1, "offset": 1},
    "box": {"size": 3},
    "sphere": {"radius": 1},
    "cylinder": {"radius": 1, "length": 1},
    "capsule": {"radius": 1, "length": 1},
    "mesh": {"filename": 0, "scale": 3},
}  # fmt: skip
Values = dict[str, Any]  # tuples of numbers, and names
_SPACES = r"[ \t\r\n]*"
_USUAL = r"[-+]?(?:[0-9]{1,9}(?:\.[0-9]*)?|\.[0-9]+)(?:[eE](?:-[0-9]{1,3}|\+?[0-9]))?"
_PLAIN = re.compile(r"[-+.0-9eE \t\r\n]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_INFINITE = re.compile(r"[+-]?inf(?:inity)?", re.IGNORECASE)
_SPACE = re.compile(r"[ \t\r\n]+")


def attributes(findings: Findings, owner: tuple[str, str], element: Element) -> Values:
    """Return the known attributes of an element by key: names, and tuples of floats.

    A key has as many numbers as ATTRIBUTES says for the tag; `owner` is link or joint,
    and its name. Only numbers of <limit> may be infinite; those beyond 1e100 become
    infinite. `findings` gets notes on these and on unknown attributes, which are left
    out.
    """
    known, tag = ATTRIBUTES[element.tag], element.tag
    values: Values = {}
    for key, value in element.attrib.items():
        if key not in known:
            what = f"unknown attribute '{key}' of <{tag}> is left out"
            # Misspelt is what is near a name that is absent: D beside damping is not.
            missing = [x for x in known if x not in element.attrib]
            foreign = tag == "dynamics" and not nearest(key, missing, 1)
            findings.note(*owner, what, hint=foreign)
        elif known[key]:
            values[key] = _plain_numbers(value, known[key]) or _all_numbers(
                findings, owner, (tag, key, value)
            )
        else:
            values[key] = plain_name(value, owner[1])
    return values


def replace_quaternion(values: Values, owner: tuple[str, str]) -> None:
    """Replace quat_xyzw by rpy in the attributes of an <origin>, if it is there.

    rpy and quat_xyzw together, and a zero quaternion, are refused.
    """
    if "quat_xyzw" in values:
        where = f"{owner[0]} '{owner[1]}': <origin> quat_xyzw"
        if "rpy" in values:
            raise ModelError(f"{where}: rpy is there, too; give one of them", owner[1])
        values["rpy"] = rpy_of(values.pop("quat_xyzw"), where, owner[1])


def texts(
    findings: Findings, owner: tuple[str, str], element: Element
) -> dict[str, str]:
    """Return the known attributes of an element, as checked text for the parser.

    They are by name. Checks and notes are those of `attributes`. The text is unchanged,
    except that limits beyond 1e100 are "inf" or "-inf".
    """
    usual = _usual(element.tag, tuple(element.attrib))
    if usual is not None and usual.fullmatch("|".join(element.attrib.values())):
        return dict(element.attrib)
    return {
        key: value
        if isinstance(value, str)
        else repr(value[0])
        if math.isinf(value[0])
        else element.attrib[key]
        for key, value in attributes(findings, owner, element).items()
    }


@lru_cache(maxsize=256)
def _usual(tag: str, keys: tuple[str, ...]) -> re.Pattern[str] | None:
    """Return the pattern of usual attribute values, joined by |.

    Others need the slower check of `attributes`. None if an attribute is unknown.
    """
    counts = [ATTRIBUTES[tag].get(key) for key in keys]
    if None in counts:
        return None
    shapes = (
        _SPACES + r"[ \t\r\n]+".join([_USUAL] * n) + _SPACES if n else r"[^|$]*"
        for n in counts
    )
    return re.compile(r"\|".join(shapes))


def _plain_numbers(value: str, count: int) -> tuple[float, ...] | None:
    """Return `count` numbers of an attribute; None if it needs the full check.

    `_all_numbers` is needed for numbers beyond 1e100, infinities, invalid text, and
    another number of numbers.
    """
    if not _PLAIN.fullmatch(value):
        return None
    try:
        values = tuple(map(float, value.split() if count > 1 else (value,)))
    except ValueError:
        return None
    if len(values) == count and -LARGEST <= min(values) <= max(values) <= LARGEST:
        return values
    return None


def _all_numbers(
    findings: Findings, owner: tuple[str, str], attribute: tuple[str, str, str]
) -> tuple[float, ...]:
    """Return the numbers of an attribute (tag, key, value), after the full check.

    Attributes of <limit> may be infinite: numbers beyond 1e100 become infinite there,
    with a note.
    """
    tag, key, value = attribute
    where, limit = f"{owner[0]} '{owner[1]}': <{tag}> {key}=\"{value}\"", tag == "limit"
    values = numbers(where, value, ATTRIBUTES[tag][key], limit, owner[1])
    if limit and math.isinf(values[0]) and "inf" not in value.lower():
        findings.note(*owner, f"{key} limit {value} is read as none")
    return values


def plain_name(value: str, element: str | None = None) -> str:
    """Return `value` as it is; refuse "${", which starts an xacro expression."""
    if "${" in value:
        raise ModelError(XACRO, element)
    return value


def numbers(
    where: str, value: str, count: int, infinite: bool, element: str
) -> tuple[float, ...]:
    """Return the numbers of an attribute.

    Args:
        where: Element and attribute, for errors.
        value: Text in the file, numbers with white space between them.
        count: Required number of numbers.
        infinite: Whether they may be infinite; numbers beyond 1e100 then become
            infinite, with their sign.
        element: Name of the link or joint, for errors.

    Raises:
        ModelError: The text is an xacro expression, or not `count` decimal numbers; a
            number is NaN; or, unless `infinite`, one is infinite or beyond 1e100.
    """
    plain_name(value, element)
    parts = value.split() if value.isascii() else _SPACE.split(value.strip(" \t\r\n"))
    if len(parts) != count:
        wanted = "one number is" if count == 1 else f"{count} numbers are"
        raise ModelError(f"{where}: {wanted} needed", element)
    return tuple(_number(where, part, infinite, element) for part in parts)


def _number(where: str, part: str, infinite: bool, element: str) -> float:
    """Return one decimal number, which may be infinite or beyond 1e100 if `infinite`.

    A number beyond 1e100 then becomes infinite, with its sign.
    """
    if _NUMBER.fullmatch(part):
        number = float(part)
        if abs(number) <= LARGEST:
            return number
        if infinite:
            return math.copysign(math.inf, number)
        raise ModelError(f"{where}: {part} is too large; valid: up to 1e100", element)
    if infinite and _INFINITE.fullmatch(part):
        return float(part)
    if part.lower().lstrip("+-") in ("nan", "inf", "infinity"):
        raise ModelError(f"{where}: '{part}' is not finite", element)
    raise ModelError(
        f"{where}: '{part}' is not a number; valid: such as 1, -0.5, 2e-3", element
    )
