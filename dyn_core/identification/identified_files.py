"""Files of identified robots: tables, sidecars, copies of their URDF."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import yaml

from dyn_core.errors import ModelError, SettingError
from dyn_core.model import Model, load_urdf
from dyn_core.model.description import FRICTION_SPEED, JointSpec
from dyn_core.spatial import RigidInertia, Symmetric
from dyn_core.validation import writing
from dyn_core.validation.quoting import mended_name, xml_text, yaml_comment

HEADER = ["name", "value", "prior", "standard deviation"]
ROBOT_FILES, TABLE_FILES = (".urdf", ".yaml"), (".csv",)  # valid extensions
_OPTIONAL = ("friction_speed", "stribeck", "stribeck_speed")  # omitted if default
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
        path.write_text(urdf_of(model), encoding="utf-8")
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

    They are masses, inertias, damping, dry friction and origins of joints.

    Only elements that differ from the file are replaced; comments are preserved.

    Raises:
        ModelError: The robot was not read from a URDF file.
    """
    file = model.source.file
    if model.source.kind != "urdf" or file is None or not Path(file).is_file():
        raise ModelError(
            f"'{model.name}' was not read from a URDF file; valid: a sidecar .yaml or a"
            " table .csv of what was identified"
        )
    text = Path(file).read_text(encoding="utf-8")
    builder = ElementTree.TreeBuilder(insert_comments=True)
    root = ElementTree.fromstring(text, ElementTree.XMLParser(target=builder))
    old = load_urdf(text, sidecar=False).build.description
    links = {link.name: link.inertia for link in old.links}
    joints = {joint.name: joint for joint in old.joints}
    new = model.build.description
    new_links = {link.name: link.inertia for link in new.links}
    new_joints = {joint.name: joint for joint in new.joints}
    for element in root.iter("link"):
        name = mended_name(element.get("name", "").strip())
        if name in new_links and _differs(links[name], new_links[name]):
            _put_inertia(element, new_links[name])
    for element in root.iter("joint"):
        name = mended_name(element.get("name", "").strip())
        if name in new_joints and name in joints:
            _put_joint(element, joints[name], new_joints[name])
    head = text[: text.index("<robot")]
    return head + xml_text(root) + "\n"


def _differs(one: RigidInertia, other: RigidInertia) -> bool:
    """Return whether parameters of two inertias differ by more than rounding errors."""
    a, b = (np.array(x.parameters, float) for x in (one, other))
    return not np.allclose(a, b, rtol=1e-12, atol=1e-15)


def _put_inertia(link: ElementTree.Element, I: RigidInertia) -> None:
    """Replace the <inertial> of a <link>; remove it if the mass is zero.

    The new element has the inertia about the centre of mass, in the link's axes.
    """
    for old in link.findall("inertial"):
        link.remove(old)
    mass = float(I.m)  # type: ignore[arg-type]
    if mass == 0.0:
        return
    part = ElementTree.Element("inertial")
    ElementTree.SubElement(part, "origin", xyz=_shown(I.c), rpy="0 0 0")
    ElementTree.SubElement(part, "mass", value=repr(mass))
    entries = [repr(float(x)) for x in Symmetric.of(I.Ic).entries]  # type: ignore[arg-type]
    names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    ElementTree.SubElement(part, "inertia", dict(zip(names, entries, strict=True)))
    ElementTree.indent(part, level=2)
    part.tail = "\n    " if len(link) else "\n  "
    link.insert(0, part)


def _put_joint(joint: ElementTree.Element, old: JointSpec, new: JointSpec) -> None:
    """Set damping, friction and origin of a <joint> to those of `new` if they differ.

    Args:
        joint: Element that is modified.
        old: Joint in the file.
        new: Joint of the robot.
    """
    changed = {
        name: repr(float(getattr(new, name)))
        for name in ("damping", "friction")
        if not math.isclose(getattr(new, name), getattr(old, name), rel_tol=1e-12)
    }
    if changed:
        part = joint.find("dynamics")
        if part is None:
            part = ElementTree.SubElement(joint, "dynamics")
        for name, value in changed.items():
            part.set(name, value)
    if (old.xyz, old.rpy) != (new.xyz, new.rpy):
        part = joint.find("origin")
        if part is None:
            part = ElementTree.SubElement(joint, "origin")
        part.set("xyz", _shown(new.xyz))
        part.set("rpy", _shown(new.rpy))


def _shown(values: Iterable[Any]) -> str:
    """Return numbers as text, separated by spaces, with all digits."""
    return " ".join(repr(float(x)) for x in values)
