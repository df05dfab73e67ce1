"""The sidecar NAME.dyn.yaml: what URDF cannot say, added to a Description.

joints:   {NAME: {type: spherical, damping: 0.1, friction: 0.0, armature: 0.0,
                  effort: 10.0, axis: [0, 0, 1], swing: 0.9, twist: [-1.0, 1.0],
                  plug: {xyz: [0, 0, 0.1], rpy: [0, 0, 0]}}}
                                                # swing, twist: limits of a ball [rad]
                                                # plug: the joint in the child link
          # other types: helical (pitch: 0.01 [m/rad]), cylindrical, free_rpy, ball_exp,
          # universal (axes: [[1, 0, 0], [0, 1, 0]]), and joints behind each other:
          {type: product, factors: [{type: revolute, axis: [0, 0, 1]}, ...]}
springs:  {NAME: {stiffness: 50.0, rest: 0.1}}  # [N·m/rad | N/m], [rad | m]
armature: {NAME: 0.02}                          # [kg·m² | kg]
rotors:   {NAME: {inertia: 2e-5, ratio: 100}}   # armature += inertia ratio²
gears:                                          # any two joints; no followers of URDF
  - {joints: [A, B], ratio: -3.0, offset: 0.0}  # q_B = ratio q_A + offset
  - {joints: [A, B, C], ratios: [1.0, 2.0]}     # one coordinate, shared by all
  - {joints: [P, Q], ratio: [[1, 0, 0], [0, 2, 0], [0, 0, 1]]}   # several coordinates
loops:                                          # no a: on the base
  - {name: D, kind: pin, b: bar3, at_b: {xyz: [1, 0, 0]}, at_a: {xyz: [2, 0, 0]}}
collisions, pairs, materials: what the robot touches with, see shape_reader.py

Source: TAZZ-5.1, TAZZ-5.3 (gears), TAZZ-2.1 (plugs), TAZZ-4.7 (swing and twist),
KIM-2.4 (types), KIM-S2 (springs).
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from dyn_core.errors import ModelError
from dyn_core.model import shape_reader
from dyn_core.model.description import Description, JointSpec, Mimic
from dyn_core.model.joints import KINDS
from dyn_core.model.loops import Loop, make_loop
from dyn_core.validation import (
    finite_number,
    finite_numbers,
    known_keys,
    known_name,
    number_or_numbers,
)

Entry = Mapping[str, Any]  # of a file: any value until it is checked
Extras = Entry | str | os.PathLike[str]  # a mapping, YAML, a path
_KEYS = (
    "joints", "armature", "rotors", "gears", "loops", "springs",
    *shape_reader.KEYS,
)  # fmt: skip
_JOINT_KEYS = (
    "type", "damping", "friction", "armature", "effort", "axis", "plug", "passive",
    "swing", "twist", "pitch", "axes", "factors",
)  # fmt: skip
_FACTOR_KEYS = ("type", "axis", "pitch", "axes", "factors")
_LOOP_KEYS = ("name", "kind", "a", "b", "at_a", "at_b", "axes", "length")
_GEAR_KEYS = ("joints", "ratio", "ratios", "offset", "offsets")


def from_file(description: Description, path: Path) -> Description:
    """Return the Description with the file it came from among its sources."""
    return replace(description, sources=(*description.sources, str(path)))


def apply(description: Description, extras: Extras) -> Description:
    """Return the Description with the extras of a file, YAML text or mapping."""
    data, source = _read(extras)
    known_keys("the sidecar", data, _KEYS)
    for key in (*_KEYS[:3], "springs"):
        if not isinstance(data.get(key) or {}, Mapping):
            raise ModelError(f"{source}: {key} needs a mapping by joint name")
    joints = _JointsByName(description, source)
    for name, entry in (data.get("joints") or {}).items():
        joints[name] = _joint(joints[name], entry)
    for name, value in (data.get("armature") or {}).items():
        armature = finite_number(f"armature of joint '{name}'", value)
        joints[name] = replace(joints[name], armature=armature)
    for name, entry in (data.get("rotors") or {}).items():
        joints[name] = _rotor(joints[name], entry)
    for name, entry in (data.get("springs") or {}).items():
        joints[name] = _spring(joints[name], entry)
    if not isinstance(data.get("gears") or [], list):
        raise ModelError(f"{source}: gears needs a list of joints with a ratio")
    for entry in data.get("gears") or []:
        for name, rule in gear(entry):
            joints.add_follower(name, rule)
    return replace(
        shape_reader.apply(description, data, source),
        joints=tuple(joints.values()),
        sources=(*description.sources, source),
        loops=(*description.loops, *_loops(source, data.get("loops"))),
    )


class _JointsByName(dict[str, JointSpec]):
    """Joints of a Description by name; an unknown name is a ModelError."""

    def __init__(self, description: Description, source: str) -> None:
        super().__init__((joint.name, joint) for joint in description.joints)
        self.source = source

    def __missing__(self, name: str) -> JointSpec:
        """Raise a ModelError that lists the known names."""
        known_name(self.source, "joint", name, self)
        raise KeyError(name)

    def add_follower(self, name: str, rule: Mimic) -> None:
        """Add a follower's rule to a joint."""
        leader, mimic = self[rule.joint], self[name].mimic
        if mimic is not None:
            raise ModelError(
                f"{self.source}: joint '{name}' follows '{mimic.joint}'"
                f" already and cannot follow '{leader.name}' too; leave one out",
                name,
            )
        self[name] = replace(self[name], mimic=rule)


def _loops(source: str, entries: list[Entry] | None) -> list[Loop]:
    """Return the loops of a file."""
    if not isinstance(entries or [], list):
        raise ModelError(f"{source}: loops needs a list with kind, a and b")
    loops = []
    for k, entry in enumerate(entries or [], 1):
        known_keys(f"loop {k}", entry, _LOOP_KEYS)
        if "kind" not in entry or "b" not in entry:
            raise ModelError(f"{source}: loop {k} needs kind and b (the link it holds)")
        loops.append(make_loop(**{"name": f"loop{k}", **entry}))
    return loops


def gear(entry: Entry) -> list[tuple[str, Mimic]]:
    """Return the followers of a gear with their rules; the first joint leads."""
    known_keys("a gear", entry, _GEAR_KEYS)
    names = entry.get("joints")
    if not isinstance(names, list) or len(names) < 2 or len({*names}) < len(names):
        raise ModelError(f"a gear needs a list of two or more joints, got {names!r}")
    where = f"gear of {', '.join(map(str, names))}"
    count = len(names) - 1
    ratios = _one_each(where, entry, "ratio", "ratios", count, 1.0)
    offsets = _one_each(where, entry, "offset", "offsets", count, 0.0)
    return [
        (
            name,
            Mimic(names[0], _ratio(where, ratio), number_or_numbers(where, offset)),
        )
        for name, ratio, offset in zip(names[1:], ratios, offsets, strict=True)
    ]


def _ratio(where: str, value: object) -> float | tuple[tuple[float, ...], ...]:
    """Return a ratio: a number, or rows between joints of several coordinates."""
    if not isinstance(value, (list, tuple)):
        return finite_number(where, value)
    if not all(isinstance(row, (list, tuple)) for row in value):
        raise ModelError(f"{where}: a ratio is a number or rows of them, got {value!r}")
    return tuple(tuple(finite_number(where, x) for x in row) for row in value)


def _one_each(
    where: str, entry: Entry, one: str, many: str, count: int, default: float
) -> list[Any]:
    """Return a value for each follower: the one, those of a list, or the default."""
    if one in entry and many in entry:
        raise ModelError(f"{where}: give {one} or {many}, not both")
    if many in entry:
        values = entry[many]
        if not isinstance(values, list) or len(values) != count:
            raise ModelError(f"{where}: {many} needs {count} values, got {values!r}")
        return values
    return [entry.get(one, default)] * count


def _joint(spec: JointSpec, entry: Entry) -> JointSpec:
    """Return a joint changed as its entry says."""
    where = f"sidecar, joint '{spec.name}'"
    known_keys(where, entry, _JOINT_KEYS)
    changes: dict[str, Any] = {}
    if "type" in entry:
        changes |= _kind(where, spec, entry["type"])
    for key in ("damping", "friction", "armature", "effort"):
        if key in entry:
            changes[key] = finite_number(f"{where}: {key}", entry[key])
    changes |= _geometry(where, spec, entry)
    if "passive" in entry:
        if not isinstance(entry["passive"], bool):
            raise ModelError(f"{where}: passive needs true or false", spec.name)
        changes["passive"] = entry["passive"]
    if "swing" in entry:
        changes["swing"] = finite_number(f"{where}: swing", entry["swing"])
    if "twist" in entry:
        changes["twist"] = finite_numbers(f"{where}: twist", entry["twist"], 2)
    if "plug" in entry:
        known_keys(f"{where}: plug", entry["plug"], ("xyz", "rpy"))
        for key, value in entry["plug"].items():
            changes[f"plug_{key}"] = finite_numbers(f"{where}: plug {key}", value)
    return replace(spec, **changes)


def _kind(where: str, spec: JointSpec, kind: str) -> dict[str, Any]:
    """Return the changes that another type of joint brings."""
    if kind != "fixed" and kind not in KINDS:
        valid = ", ".join(["fixed", *KINDS])
        raise ModelError(f"{where}: unknown type '{kind}'; valid: {valid}", spec.name)
    if kind in ("revolute", "prismatic", "helical"):
        return {"kind": kind}
    return {"kind": kind, "lower": -math.inf, "upper": math.inf}


def _geometry(where: str, spec: JointSpec, entry: Entry) -> dict[str, Any]:
    """Return what an entry says of axes, pitch and factors."""
    changes: dict[str, Any] = {}
    if "axis" in entry:
        changes["axis"] = finite_numbers(f"{where}: axis", entry["axis"])
    if "pitch" in entry:
        changes["pitch"] = finite_number(f"{where}: pitch", entry["pitch"])
    if "axes" in entry:
        axes = entry["axes"]
        if not isinstance(axes, (list, tuple)) or len(axes) != 2:
            raise ModelError(f"{where}: axes needs two axes, got {axes!r}", spec.name)
        changes["axes"] = tuple(finite_numbers(f"{where}: axes", axis) for axis in axes)
    if "factors" in entry:
        rows = entry["factors"]
        if not isinstance(rows, (list, tuple)) or not rows:
            raise ModelError(
                f"{where}: factors needs a list of one or more joints, such as"
                f" [{{type: revolute, axis: [0, 0, 1]}}], got {rows!r}",
                spec.name,
            )
        changes["factors"] = tuple(
            _factor(f"{where}: factor {k}", spec, row) for k, row in enumerate(rows, 1)
        )
    return changes


def _factor(where: str, spec: JointSpec, entry: Entry) -> JointSpec:
    """Return the specification of one factor of a product."""
    known_keys(where, entry, _FACTOR_KEYS)
    kind = entry.get("type")
    if kind not in KINDS:
        valid = ", ".join(KINDS)
        raise ModelError(f"{where}: unknown type '{kind}'; valid: {valid}", spec.name)
    bare = JointSpec(spec.name, kind, spec.parent, spec.child)
    return replace(bare, **_geometry(where, spec, entry))


def _rotor(spec: JointSpec, entry: Entry) -> JointSpec:
    """Return a joint with the inertia of a rotor behind a gear added."""
    where = f"rotor of joint '{spec.name}'"
    known_keys(where, entry, ("inertia", "ratio"))
    J = finite_number(f"rotor inertia of joint '{spec.name}'", entry.get("inertia"))
    n = finite_number(f"rotor ratio of joint '{spec.name}'", entry.get("ratio", 1.0))
    return replace(spec, armature=spec.armature + J * n * n)


def _spring(spec: JointSpec, entry: Entry) -> JointSpec:
    """Return a joint with its spring."""
    where = f"spring of joint '{spec.name}'"
    known_keys(where, entry, ("stiffness", "rest"))
    stiffness = finite_number(f"{where}: stiffness", entry.get("stiffness"))
    rest = number_or_numbers(f"{where}: rest", entry.get("rest", 0.0))
    return replace(spec, stiffness=stiffness, rest=rest)


def _read(extras: Extras) -> tuple[Entry, str]:
    """Return the mapping and what errors call it."""
    if isinstance(extras, Mapping):
        return extras, "extras"
    if isinstance(extras, str) and (":" in extras and "\n" in extras):
        content, source = extras, "extras"
    else:
        source = os.fspath(extras)
        try:
            content = Path(source).read_text(encoding="utf-8")
        except OSError as error:
            raise ModelError(f"cannot read the sidecar {source}: {error}") from error
    try:
        data = yaml.safe_load(content)
    except yaml.YAMLError as error:
        raise ModelError(f"{source}: not YAML: {error}") from error
    if data is not None and not isinstance(data, Mapping):
        raise ModelError(f"{source}: needs a mapping with {', '.join(_KEYS)}")
    return data or {}, source
