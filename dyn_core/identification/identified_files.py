"""Files of identified robots: tables, sidecars, copies of their URDF."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from dyn_core.errors import ModelError, SettingError
from dyn_core.identification.urdf_text import UrdfText, XmlSpan
from dyn_core.model import Model, load_urdf
from dyn_core.model.description import FRICTION_SPEED, JointSpec
from dyn_core.model.urdf_xml.xml_text import read_source
from dyn_core.spatial import RigidInertia, Symmetric
from dyn_core.validation import writing
from dyn_core.validation.quoting import mended_name, yaml_comment

HEADER = ["name", "value", "prior", "standard deviation"]
ROBOT_FILES, TABLE_FILES = (".urdf", ".yaml"), (".csv",)  # valid extensions
_OPTIONAL = ("friction_speed", "stribeck", "stribeck_speed")  # omitted if default
_ENTRIES = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
_IN_JOINTS = ("armature", "rotors")  # sections whose values are in `joints`, too


def check_file(path: Path, extensions: Sequence[str]) -> None:
    """Raise SettingError unless a file's extension is valid, and its folder exists."""
    if path.suffix not in extensions or not path.parent.is_dir():
        raise SettingError(
            f"{path}: valid: a file in a folder that is there, ending with"
            f" {', '.join(extensions)}",
            "path",
        )


def write_columns(
    path: Path, names: Sequence[str], columns: Iterable[np.ndarray]
) -> Path:
    """Write values, priors and standard deviations as CSV; return the path.

    Args:
        path: File that ends with .csv; an existing one is replaced.
        names: Name of each row.
        columns: Values, priors and standard deviations, (n,) each.

    Raises:
        SettingError: The extension is another one, or the file cannot be written.
    """
    check_file(path, TABLE_FILES)
    with writing(path), open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER)
        for name, *row in zip(names, *columns, strict=True):
            writer.writerow([name, *(repr(float(x)) for x in row)])
    return path


def joints_sidecar(model: Model) -> dict[str, Any]:
    """Return friction, rotors and springs of joints in the format of a sidecar.

    The keys are joints and, if a joint has a spring, springs; each maps joint names to
    numbers. A root joint that no file describes is left out.
    """
    specs = {joint.name: joint for joint in model.build.description.joints}
    joints: dict[str, Any] = {}
    springs: dict[str, Any] = {}
    for name in model.joint_names:
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
    """Return the rest position of a joint's spring for a sidecar [rad | m].

    It is a list if the joint has several numbers.
    """
    rest = joint.rest
    return [float(x) for x in rest] if isinstance(rest, tuple) else float(rest)


def write_sidecar(path: str | os.PathLike[str], model: Model, origin: str) -> None:
    """Write friction, rotors and springs of a robot's joints as a sidecar.

    Args:
        path: File that ends with .yaml; an existing one is replaced.
        model: Robot.
        origin: Source of the data, for a comment in the file.

    Raises:
        SettingError: The extension is another one, or the file cannot be written.
    """
    file = Path(path)
    check_file(file, (".yaml",))
    what = f"Identified from {origin}; masses and inertias are not in a sidecar."
    head = yaml_comment([what])
    content = yaml.safe_dump(joints_sidecar(model), sort_keys=False)
    with writing(file):
        file.write_text(head + content, encoding="utf-8")


def write_robot(path: Path, model: Model) -> tuple[Path, ...]:
    """Write a robot as a sidecar, or as a URDF with a sidecar; return the files.

    Args:
        path: NAME.urdf, with a sidecar NAME.dyn.yaml; or a sidecar NAME.yaml. Existing
            files are replaced.
        model: Robot.

    Raises:
        SettingError: The extension is unknown, or the file cannot be written.
        ModelError: The robot was not read from a URDF file.
    """
    check_file(path, ROBOT_FILES)
    with writing(path):
        if path.suffix != ".urdf":
            _write_whole_sidecar(path, model)
            return (path,)
        path.write_bytes(urdf_of(model).encode("utf-8"))
    sidecar = path.with_suffix(".dyn.yaml")
    with writing(sidecar):
        _write_whole_sidecar(sidecar, model)
    return path, sidecar


def _write_whole_sidecar(path: Path, model: Model) -> None:
    """Write the robot's sidecar, with identified joints and springs, to `path`.

    It is the sidecar that the robot was read with, in which friction, rotors and
    springs of joints are replaced; without such a file, it has only these.
    """
    content: dict[str, Any] = {}
    source = model.source.sidecar
    if source is not None and Path(source).is_file():
        content = yaml.safe_load(Path(source).read_text(encoding="utf-8")) or {}
    mine = joints_sidecar(model)
    before = content.get("joints", {})
    for name, numbers in mine["joints"].items():
        stays = {k: v for k, v in before.get(name, {}).items() if k not in _OPTIONAL}
        mine["joints"][name] = {**stays, **numbers}
    content = {k: v for k, v in content.items() if k not in _IN_JOINTS}
    content = {**content, **mine, "joints": {**before, **mine["joints"]}}
    head = "# Identified: damping, friction, armature and springs of joints.\n"
    path.write_text(head + yaml.safe_dump(content, sort_keys=False), encoding="utf-8")


def urdf_of(model: Model) -> str:
    """Return the text of the robot's URDF file with the robot's parameters.

    They are masses, inertias, damping, dry friction and origins of joints. Only numbers
    that differ from the file are written, with all digits; everything else is as it
    was, to the last character.

    Raises:
        ModelError: The robot was not read from a URDF file.
    """
    file = model.source.file
    if model.source.kind != "urdf" or file is None or not Path(file).is_file():
        raise ModelError(
            f"'{model.name}' was not read from a URDF file; valid: a sidecar .yaml or a"
            " table .csv of what was identified"
        )
    text = UrdfText(read_source(Path(file))[0])
    old = load_urdf(file, sidecar=False).build.description
    links = {link.name: link.inertia for link in old.links}
    joints = {joint.name: joint for joint in old.joints}
    new = model.build.description
    new_links = {link.name: link.inertia for link in new.links}
    new_joints = {joint.name: joint for joint in new.joints}
    for span in text.root.parts:  # a <transmission> has elements <joint>, too
        name = mended_name(span.attributes.get("name", "").strip())
        if span.tag == "link" and name in new_links:
            if _differs(links[name], new_links[name]):
                _put_inertia(text, span, new_links[name])
        elif span.tag == "joint" and name in new_joints and name in joints:
            _put_joint(text, span, joints[name], new_joints[name])
    return str(text)


def _differs(one: RigidInertia, other: RigidInertia) -> bool:
    """Return whether parameters of two inertias differ by more than rounding errors."""
    a, b = (np.array(x.parameters, float) for x in (one, other))
    return not np.allclose(a, b, rtol=1e-12, atol=1e-15)


def _put_inertia(text: UrdfText, link: XmlSpan, I: RigidInertia) -> None:
    """Change the numbers in the <inertial> of a <link>; remove it if the mass is zero.

    An element that is missing, lacks a part or has turned axes is written in the axes
    of the link.

    Args:
        text: Text that is changed.
        link: Element of the link.
        I: Inertia of the link, about its origin and in its axes.
    """
    mass, old = float(I.m), link.all("inertial")  # type: ignore[arg-type]
    Ic = [float(x) for x in Symmetric.of(I.Ic).entries]  # type: ignore[arg-type]
    parts = [old[0].all(x) for x in ("origin", "mass", "inertia")] if old else []
    if mass == 0.0 or len(old) != 1 or any(len(x) != 1 for x in parts):
        for each in old:
            text.remove(each)
        entries = " ".join(f'{k}="{x!r}"' for k, x in zip(_ENTRIES, Ic, strict=True))
        lines = [
            "<inertial>",
            f'  <origin xyz="{_shown(I.c)}" rpy="0 0 0"/>',
            f'  <mass value="{mass!r}"/>',
            f"  <inertia {entries}/>",
            "</inertial>",
        ]
        if mass:
            text.insert(link, lines, True)
        return
    (origin,), (weight,), (moments,) = parts
    turned = any(_numbers(origin.attributes.get("rpy", "")))
    put = [(weight, "value", [mass]), (origin, "xyz", [float(x) for x in I.c])]
    if turned:  # of equal inertias the axes could be kept, which is seldom worth it
        put.append((origin, "rpy", [0.0, 0.0, 0.0]))
    put += [(moments, k, [x]) for k, x in zip(_ENTRIES, Ic, strict=True)]
    for span, name, values in put:
        _put(text, span, name, values)


def _put(text: UrdfText, span: XmlSpan, name: str, values: Sequence[float]) -> None:
    """Write numbers into an attribute; equal ones stay as they are written.

    Args:
        text: Text that is changed.
        span: Element with the attribute.
        name: Name of the attribute.
        values: Numbers; those within 1e-12 of the present ones, relative, are equal.
    """
    before = span.attributes.get(name, "").split()
    known = _numbers(" ".join(before))
    shown = [
        before[k] if len(known) == len(values)
        and math.isclose(known[k], x, rel_tol=1e-12, abs_tol=1e-15) else repr(x)
        for k, x in enumerate(values)
    ]  # fmt: skip
    if shown != before:
        text.set(span, name, " ".join(shown))


def _numbers(attribute: str) -> list[float]:
    """Return the numbers of an attribute, or [] if a part of it is not a number."""
    try:
        return [float(x) for x in attribute.split()]
    except ValueError:
        return []


def _put_joint(text: UrdfText, joint: XmlSpan, old: JointSpec, new: JointSpec) -> None:
    """Set damping, friction and origin of a <joint> to those of `new` if they differ.

    Args:
        text: Text that is changed.
        joint: Element of the joint.
        old: Joint in the file.
        new: Joint of the robot.
    """
    changed = {
        name: [float(getattr(new, name))]
        for name in ("damping", "friction")
        if not math.isclose(getattr(new, name), getattr(old, name), rel_tol=1e-12)
    }
    moved = (old.xyz, old.rpy) != (new.xyz, new.rpy)
    place = {"xyz": [*map(float, new.xyz)], "rpy": [*map(float, new.rpy)]}
    for tag, numbers in (("dynamics", changed), ("origin", place if moved else {})):
        there = joint.all(tag)
        for name, values in numbers.items() if there else ():
            _put(text, there[0], name, values)
        if numbers and not there:
            written = " ".join(f'{k}="{_shown(x)}"' for k, x in numbers.items())
            text.insert(joint, [f"<{tag} {written}/>"], False)


def _shown(values: Iterable[Any]) -> str:
    """Return numbers as text, separated by spaces, with all digits."""
    return " ".join(repr(float(x)) for x in values)
