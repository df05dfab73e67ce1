"""Files of identified robots: tables, sidecars, copies of their URDF.

The type Wanted maps the path of an element in a link or joint, such as ("inertial",
"mass"), to its numbers by attribute, such as {"value": (2.0,)}.
"""

from __future__ import annotations

import csv
import html
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dyn_core.errors import ModelError, SettingError
from dyn_core.identification.fitting.sought_robot import with_described_values
from dyn_core.model import Model, load_urdf
from dyn_core.model.description import (
    FRICTION_SPEED,
    Description,
    JointSpec,
    Mimic,
)
from dyn_core.model.urdf_xml.xml_text import read_source
from dyn_core.spatial import RigidInertia, Symmetric
from dyn_core.validation import dump_yaml, read_yaml, writing
from dyn_core.validation.file_names import file_kind
from dyn_core.validation.quoting import html_text, mended_name, yaml_comment

HEADER = ["name", "value", "prior", "standard deviation"]
ROBOT_FILES, TABLE_FILES = (".urdf", ".yaml"), (".csv",)  # valid extensions
_OPTIONAL = ("friction_speed", "stribeck", "stribeck_speed")  # omitted if default
_MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
# Numbers by attribute, by the path of an element in a link or joint.
Wanted = dict[tuple[str, ...], dict[str, Sequence[Any]]]
_TOKEN = re.compile(
    r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|<(/?)([^\s/>]+)"
    r"((?:\s+[^\s=]+\s*=\s*(?:\"[^\"]*\"|'[^']*'))*\s*)(/?)>",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(r"([^\s=]+)\s*=\s*(\"[^\"]*\"|'[^']*')")
_ENCODING = re.compile(
    r"(\s*<\?xml[^>]*?encoding\s*=\s*[\"'])(?!utf-8[\"'])[\w.-]+", re.IGNORECASE
)
_COMMENT = "Identified: damping, friction, armature and springs of joints."
_BY_JOINT = ("armature", "rotors", "springs")  # sections beside `joints`


def check_file(path: Path, extensions: Sequence[str]) -> None:
    """Refuse a file without a folder, or without one of the extensions (with dots)."""
    if path.suffix not in extensions or file_kind(path.parent, "path") != "folder":
        raise SettingError(
            f"{path}: valid: a file in a folder that is there, ending with"
            f" {', '.join(extensions)}",
            "path",
        )


def write_columns(
    path: Path, names: Sequence[str], columns: Iterable[np.ndarray]
) -> Path:
    """Write a header, and names with values, priors and deviations (n,), as CSV."""
    check_file(path, TABLE_FILES)
    with writing(path), open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER)
        for name, *row in zip(names, *columns, strict=True):
            writer.writerow([name, *(repr(float(x)) for x in row)])
    return path


def joints_sidecar(model: Model) -> dict[str, Any]:
    """Return friction, rotors and springs of joints in the format of a sidecar.

    The keys are joints and, if a joint has a spring, springs. joints maps each name, of
    followers too, to damping, friction (a pair if they differ, of motion in positive
    direction first), armature, friction_speed unless it is the default, and stribeck
    with stribeck_speed unless stribeck is 0; springs maps names to stiffness and rest.
    A root joint that no file describes is left out.
    """
    model = with_described_values(model)
    specs = {joint.name: joint for joint in model.build.description.joints}
    joints: dict[str, Any] = {}
    springs: dict[str, Any] = {}
    for name in (model.names[i] for i in model.bodies):
        joint = specs.get(name)
        if joint is None:
            continue  # a root joint, which no file has
        mean, more = float(joint.friction), float(joint.friction_asymmetry)
        joints[name] = {
            "damping": float(joint.damping),
            "friction": [mean + more, mean - more] if more else mean,
            "armature": float(joint.armature),
        }
        if joint.friction_speed != FRICTION_SPEED:
            joints[name]["friction_speed"] = float(joint.friction_speed)
        if joint.stribeck:
            joints[name]["stribeck"] = float(joint.stribeck)
            joints[name]["stribeck_speed"] = float(joint.stribeck_speed)
        if joint.stiffness:
            springs[name] = {"stiffness": float(joint.stiffness), "rest": _rest(joint)}
    return {"joints": joints, **({"springs": springs} if springs else {})}


def _rest(joint: JointSpec) -> float | list[float]:
    """Return the rest position of a joint's spring for a sidecar [rad | m]."""
    rest = joint.rest
    return [float(x) for x in rest] if isinstance(rest, tuple) else float(rest)


def write_sidecar(path: str | os.PathLike[str], model: Model, origin: str) -> None:
    """Write friction, rotors and springs of a robot's joints as a sidecar.

    It also has what stood in the sidecar that the robot was read with, such as loops
    and gears, because a robot has one sidecar.

    Args:
        path: File that ends with .yaml; an existing one is replaced.
        model: Robot.
        origin: Source of the data, for a comment in the file.

    Raises:
        SettingError: The extension is another one, or the file cannot be written.
        ModelError: No robot can have the model's parameters; a file that it was read
            from is not valid any more; the plug of a fixed joint changed; or gears,
            loops or the like were read from no file.
    """
    file = Path(path)
    check_file(file, (".yaml",))
    what = f"Identified from {origin}; masses and inertias are not in a sidecar."
    with writing(file):
        _write_whole_sidecar(file, model, what)


def write_robot(path: Path, model: Model) -> tuple[Path, ...]:
    """Write NAME.urdf with a sidecar NAME.dyn.yaml, or a sidecar NAME.yaml.

    Existing files are replaced; of two paths the URDF is first. Masses and inertias are
    in the URDF alone; a sidecar has friction, rotors and springs, and the rest of that
    of the robot. Refused: a changed plug of a fixed joint; gears, loops or the like of
    no file; for .urdf, a robot of no URDF file, or a lost one.
    """
    check_file(path, ROBOT_FILES)
    with writing(path):
        if path.suffix != ".urdf":
            _write_whole_sidecar(path, model)
            return (path,)
        content = urdf_of(model).encode("utf-8")
    sidecar = path.with_suffix(".dyn.yaml")
    with writing(sidecar):
        _write_whole_sidecar(sidecar, model)
    with writing(path):  # last: without its sidecar it would be another robot
        path.write_bytes(content)
    return path, sidecar


def _write_whole_sidecar(path: Path, model: Model, comment: str = _COMMENT) -> None:
    """Write the robot's sidecar, with identified joints and springs, to `path`.

    It is the one that the robot was read with, without its comments, and with the
    numbers of the model's joints, gears and springs replaced. Armatures, rotors
    included, are in the section joints; armature and rotors keep other joints, such as
    locked ones.
    """
    content: dict[str, Any] = {}
    source = model.source.sidecar
    if source is not None and file_kind(source) == "file":
        content = read_yaml(Path(source), "sidecar", source)[0] or {}
    model = with_described_values(model)
    mine, geometry = joints_sidecar(model), _changed_geometry(model, content)
    before = content.get("joints") or {}
    for name, numbers in mine["joints"].items():
        stays = {k: v for k, v in before.get(name, {}).items() if k not in _OPTIONAL}
        mine["joints"][name] = {**stays, **numbers, **geometry.pop(name, {})}
    for name, numbers in geometry.items():  # of joints that do not move
        mine["joints"][name] = {**before.get(name, {}), **numbers}
    content["joints"] = {**before, **mine["joints"]}
    # A spring that the robot has no more must not stay; one of another joint does.
    for section in _BY_JOINT:
        old = (content.pop(section, None) or {}).items()
        others = {k: v for k, v in old if k not in mine["joints"]}
        if entries := {**others, **mine.get(section, {})}:
            content[section] = entries
    described = model.build.description
    rules = {joint.name: joint.mimic for joint in described.joints}
    for gear in content.get("gears") or ():
        _replace_gear(gear, [rules[name] for name in gear["joints"][1:]])
    point_springs = {spring.name: spring for spring in described.point_springs}
    for k, entry in enumerate(content.get("point_springs") or (), 1):
        name = entry.setdefault("name", f"spring{k}")
        if name in point_springs:
            for key in ("stiffness", "rest_length", "damping"):
                entry[key] = float(getattr(point_springs[name], key))
    head = yaml_comment([comment])
    path.write_text(head + dump_yaml(content), encoding="utf-8")


def _replace_gear(gear: dict[str, Any], rules: Sequence[Mimic | None]) -> None:
    """Replace the numbers of a gear of a sidecar by those of `rules`, its followers'.

    In place, as lists, where they differ.
    """
    kinds = ("ratio", "multiplier", 1.0), ("offset", "offset", 0.0)
    for key, attribute, default in kinds:
        many, values = f"{key}s", [getattr(x, attribute) for x in rules]
        before = gear.get(many) or [gear.get(key, default)] * len(values)
        if any(np.any(np.array(x) != y) for x, y in zip(values, before, strict=True)):
            gear.pop(key, None)
            gear[many] = [np.array(x, float).tolist() for x in values]


def _changed_geometry(model: Model, extras: Mapping[str, Any]) -> dict[str, Any]:
    """Return the axes, pitches and plugs by joint that differ from the robot's files.

    It is in the format of the section joints of a sidecar. `extras` is the sidecar that
    the robot was read with. Refused are a changed plug of a fixed joint, and joints or
    the like of extras that are no file.
    """
    file = model.source.file
    if model.source.kind != "urdf" or file is None or file_kind(file) != "file":
        return {}
    old = load_urdf(file, extras=extras, sidecar=False).build.description
    sidecar = model.source.sidecar
    gone = sidecar is not None and file_kind(sidecar) != "file"
    if gone and _parts(old) != _parts(model.build.description):
        raise ModelError(
            f"'{model.name}' has joints, gears, springs or loops of {sidecar}, which is"
            " no file, so that they cannot be kept; valid: a robot loaded with a"
            " sidecar file, or a table .csv of what was identified"
        )
    before = {joint.name: joint for joint in old.joints}
    changed: dict[str, Any] = {}
    for joint in model.build.description.joints:
        was, entry = before.get(joint.name, joint), {}
        for key in ("axis", "axes", "pitch"):
            if getattr(joint, key) != getattr(was, key):
                entry[key] = np.array(getattr(joint, key), float).tolist()
        if (joint.plug_xyz, joint.plug_rpy) != (was.plug_xyz, was.plug_rpy):
            places = ("xyz", joint.plug_xyz), ("rpy", joint.plug_rpy)
            entry["plug"] = {k: np.array(x, float).tolist() for k, x in places}
        if entry and joint.kind == "fixed":
            raise ModelError(
                f"the plug of '{joint.name}', which is fixed, has no place in a file;"
                " valid: a changed origin of it",
                joint.name,
            )
        if entry:
            changed[joint.name] = entry
    return changed


def _parts(robot: Description) -> list[Any]:
    """Return a list of what a sidecar adds to a robot beside numbers, to compare it."""
    joints = [
        (x.name, x.kind, x.mimic and x.mimic.joint, x.passive, x.effort, x.swing)
        for x in robot.joints
    ]
    return [*joints, *robot.loops, *(x.name for x in robot.point_springs)]


def urdf_of(model: Model) -> str:
    """Return the text of the robot's URDF file with the robot's parameters.

    They are masses, inertias, damping, dry friction and origins of joints, and numbers
    of followers. Only numbers that differ from the file are written, with all digits, a
    changed inertia in the axes of its link; missing elements are added, invisible
    characters in attributes become underscores, and a declared encoding UTF-8.
    """
    file = model.source.file
    if model.source.kind != "urdf" or file is None or file_kind(file) != "file":
        raise ModelError(
            f"'{model.name}' was not read from a URDF file; valid: a sidecar .yaml or a"
            " table .csv of what was identified"
        )
    old = load_urdf(file, sidecar=False).build.description
    links = {link.name: link.inertia for link in old.links}
    joints = {joint.name: joint for joint in old.joints}
    model = with_described_values(model)
    wanted: dict[tuple[str, str], Wanted] = {}
    for link in model.build.description.links:
        if link.name in links and _differs(links[link.name], link.inertia):
            wanted["link", link.name] = _inertial(link.inertia)
    for joint in model.build.description.joints:
        if joint.name in joints:
            wanted["joint", joint.name] = _changed(joints[joint.name], joint)
    return _rewritten(read_source(Path(file))[0], wanted)


def _differs(one: RigidInertia, other: RigidInertia) -> bool:
    """Return whether a parameter of two inertias differs by more than rounding."""
    a, b = (np.array(x.parameters, float) for x in (one, other))
    return not np.allclose(a, b, rtol=1e-12, atol=1e-15)


def _inertial(I: RigidInertia) -> Wanted:
    """Return the numbers of an <inertial>, in its link's axes, for the inertia I."""
    moments = Symmetric.of(I.Ic).entries  # type: ignore[arg-type]
    return {
        ("inertial", "origin"): {"xyz": tuple(I.c), "rpy": (0.0, 0.0, 0.0)},
        ("inertial", "mass"): {"value": (I.m,)},
        ("inertial", "inertia"): {
            k: (x,) for k, x in zip(_MOMENTS, moments, strict=True)
        },
    }


def _changed(old: JointSpec, new: JointSpec) -> Wanted:
    """Return the numbers of joint `new` that differ from `old`, by child element.

    Of origin both xyz and rpy are there if one differs, of mimic multiplier and offset.
    """
    changed: dict[str, Any] = {
        name: (getattr(new, name),)
        for name in ("damping", "friction")
        if not math.isclose(getattr(new, name), getattr(old, name), rel_tol=1e-12)
    }
    moved = (old.xyz, old.rpy) != (new.xyz, new.rpy)
    place: dict[str, Any] = {"xyz": new.xyz, "rpy": new.rpy} if moved else {}
    rule: dict[str, Any] = {}
    if old.mimic and new.mimic and old.mimic != new.mimic:
        rule = {"multiplier": (new.mimic.multiplier,), "offset": (new.mimic.offset,)}
    return {("dynamics",): changed, ("origin",): place, ("mimic",): rule}


def _rewritten(text: str, wanted: Mapping[tuple[str, str], Wanted]) -> str:
    """Return a URDF with other numbers; the rest of the text is unchanged.

    Missing elements are added at the end of their parent, but not links and joints.
    Invisible characters in attributes become underscores, a declared encoding UTF-8.
    `wanted` are numbers by tag (link or joint) and name.
    """
    new, done = [], 0
    path: list[str] = []
    todo: Wanted = {}
    for token in _TOKEN.finditer(text):
        closes, tag, inner, empty = token.groups()
        if tag is None:
            continue  # a comment or the like
        if not closes:
            path.append(tag)
        place = tuple(path[2:])
        attributes = _ATTRIBUTE.sub(_mended, inner)
        if len(path) == 2 and not closes:  # a <transmission> has a <joint>, too
            named = {
                x[1]: html.unescape(x[2][1:-1]) for x in _ATTRIBUTE.finditer(attributes)
            }
            todo = dict(wanted.get((tag, named.get("name", "").strip()), {}))
        elif not closes and place in todo:
            attributes = _with_numbers(attributes, todo.pop(place))
        if attributes != inner:
            new += [text[done : token.start(3)], attributes]
            done = token.end(3)
        if not (closes or empty):
            continue
        lines = [] if len(path) < 2 else _added(todo, place)
        if lines:
            line = text.rfind("\n", 0, token.start()) + 1
            indent = text[line : token.start()]
            indent = "\n" + indent[: len(indent) - len(indent.lstrip())]
            end = token.start() if closes else token.end(3)
            new += [text[done:end].rstrip(), "" if closes else ">"]
            new += [f"{indent}  {x}" for x in lines]
            new.append(indent if closes else f"{indent}</{tag}>")
            done = token.start() if closes else token.end()
        path.pop()
    return _ENCODING.sub(r"\1utf-8", "".join(new) + text[done:], count=1)


def _mended(attribute: re.Match[str]) -> str:
    """Return an attribute with underscores for invisible characters in its value."""
    name, quoted = attribute.groups()
    value = html.unescape(re.sub(r"[\t\r\n]", " ", quoted[1:-1]))
    mended = mended_name(value)
    return attribute[0] if mended == value else f'{name}="{html_text(mended)}"'


def _added(todo: Wanted, place: tuple[str, ...]) -> list[str]:
    """Return XML lines of the child elements that the element at `place` lacks.

    Their numbers are removed from `todo`; zeros, as missing ones are, are not written.
    """
    lines: list[str] = []
    parent = ""
    for key in [k for k in todo if k[: len(place)] == place]:
        values = {k: x for k, x in todo.pop(key).items() if any(x)}
        if values:
            *above, tag = key[len(place) :]
            parent = above[0] if above else ""
            indent = "  " if parent else ""
            lines.append(f"{indent}<{tag}{_with_numbers('', values)}/>")
    return [f"<{parent}>", *lines, f"</{parent}>"] if parent else lines


def _with_numbers(attributes: str, values: Mapping[str, Sequence[Any]]) -> str:
    """Return the text of attributes with other numbers, written with all digits.

    Numbers that agree within 1e-12 keep their text; missing ones are added unless 0.
    """
    left = dict(values)

    def put(attribute: re.Match[str]) -> str:
        name, quoted = attribute.groups()
        if name == "quat_xyzw" and "rpy" in values:
            return ""  # an origin has one of the two
        before, after = html.unescape(quoted[1:-1]).split(), left.pop(name, ())
        shown = [
            before[k] if len(before) == len(after)
            and math.isclose(float(before[k]), x, rel_tol=1e-12, abs_tol=1e-15)
            else repr(float(x)) for k, x in enumerate(after)
        ]  # fmt: skip
        if shown in (before, []):
            return attribute[0]
        return attribute[0][: -len(quoted)] + f"{quoted[0]}{' '.join(shown)}{quoted[0]}"

    text = _ATTRIBUTE.sub(put, attributes)
    more = [f' {name}="{_shown(x)}"' for name, x in left.items() if any(x)]
    space = text[len(text.rstrip()) :]
    return text.rstrip() + "".join(more) + space


def _shown(values: Iterable[Any]) -> str:
    """Return numbers as text, separated by spaces, with all digits."""
    return " ".join(repr(float(x)) for x in values)
