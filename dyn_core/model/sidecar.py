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
loops:                                          # no a: held by the base
  - {name: D, kind: pin, b: bar3, at_b: {xyz: [1, 0, 0]}, at_a: {xyz: [2, 0, 0]}}
collisions, pairs, materials: what the robot touches with, see collisions.py

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
from dyn_core.model import collisions
from dyn_core.model.description import Description, JointSpec, Mimic
from dyn_core.model.entries import finite, finites, only_keys
from dyn_core.model.joints import KINDS
from dyn_core.model.loops import Loop, make_loop

_KEYS = (
    "joints", "armature", "rotors", "gears", "loops", "springs",
    *collisions.KEYS,
)  # fmt: skip
_JOINT_KEYS = (
    "type", "damping", "friction", "armature", "effort", "axis", "plug", "passive",
    "swing", "twist", "pitch", "axes", "factors",
)  # fmt: skip
_FACTOR_KEYS = ("type", "axis", "pitch", "axes", "factors")
_LOOP_KEYS = ("name", "kind", "a", "b", "at_a", "at_b", "axes", "length")
_GEAR_KEYS = ("joints", "ratio", "ratios", "offset", "offsets")


def from_file(description: Description, path: Path) -> Description:
    """Note that a Description came from a file."""
    return replace(description, sources=(*description.sources, str(path)))


def apply(description: Description, extras: Any) -> Description:
    """Give the Description with the extras of a file, YAML text or mapping."""
    data, source = _read(extras)
    only_keys("the sidecar", data, _KEYS)
    for key in (*_KEYS[:3], "springs"):
        if not isinstance(data.get(key) or {}, Mapping):
            raise ModelError(f"{source}: {key} needs a mapping by joint name")
    joints = {joint.name: joint for joint in description.joints}

    def known(name: str) -> JointSpec:
        if name not in joints:
            names = ", ".join(joints)
            raise ModelError(
                f"{source}: no joint is called '{name}'; joints are: {names}", name
            )
        return joints[name]

    for name, entry in (data.get("joints") or {}).items():
        joints[name] = _joint(known(name), entry)
    for name, value in (data.get("armature") or {}).items():
        number = finite(f"armature of joint '{name}'", value)
        joints[name] = replace(known(name), armature=number)
    for name, entry in (data.get("rotors") or {}).items():
        only_keys(f"rotor of joint '{name}'", entry, ("inertia", "ratio"))
        J = finite(f"rotor inertia of joint '{name}'", entry.get("inertia"))
        n = finite(f"rotor ratio of joint '{name}'", entry.get("ratio", 1.0))
        spec = known(name)
        joints[name] = replace(spec, armature=spec.armature + J * n * n)
    for name, entry in (data.get("springs") or {}).items():
        joints[name] = _spring(known(name), entry)
    if not isinstance(data.get("gears") or [], list):
        raise ModelError(f"{source}: gears needs a list of joints with a ratio")
    for entry in data.get("gears") or []:
        for name, rule in gear(entry):
            known(rule.joint)
            before = known(name).mimic
            if before is not None:
                raise ModelError(
                    f"{source}: joint '{name}' follows '{before.joint}'"
                    f" already and cannot follow '{rule.joint}' too; leave one out",
                    name,
                )
            joints[name] = replace(known(name), mimic=rule)
    sources = (*description.sources, source)
    return replace(
        collisions.apply(description, data, source),
        joints=tuple(joints.values()),
        sources=sources,
        loops=(*description.loops, *_loops(source, data.get("loops"))),
    )


def _loops(source: str, entries: Any) -> list[Loop]:
    """Make the loops of a file."""
    if not isinstance(entries or [], list):
        raise ModelError(f"{source}: loops needs a list with kind, a and b")
    found = []
    for k, entry in enumerate(entries or [], 1):
        only_keys(f"loop {k}", entry, _LOOP_KEYS)
        if "kind" not in entry or "b" not in entry:
            raise ModelError(f"{source}: loop {k} needs kind and b (the link it holds)")
        found.append(make_loop(**{"name": f"loop{k}", **entry}))
    return found


def gear(entry: Any) -> list[tuple[str, Mimic]]:
    """Give the followers of a gear with their rules; the first joint leads."""
    only_keys("a gear", entry, _GEAR_KEYS)
    names = entry.get("joints")
    if not isinstance(names, list) or len(names) < 2 or len({*names}) < len(names):
        raise ModelError(f"a gear needs a list of two or more joints, got {names!r}")
    where = f"gear of {', '.join(map(str, names))}"
    count = len(names) - 1
    ratios = _one_each(where, entry, "ratio", "ratios", count, 1.0)
    offsets = _one_each(where, entry, "offset", "offsets", count, 0.0)
    return [
        (name, Mimic(names[0], _numbers(where, ratio), _numbers(where, offset)))
        for name, ratio, offset in zip(names[1:], ratios, offsets, strict=True)
    ]


def _one_each(
    where: str, entry: Mapping[str, Any], one: str, many: str, count: int, none: float
) -> list[Any]:
    """Give a value for each follower: the one, those of a list, or the usual one."""
    if one in entry and many in entry:
        raise ModelError(f"{where}: give {one} or {many}, not both")
    if many in entry:
        values = entry[many]
        if not isinstance(values, list) or len(values) != count:
            raise ModelError(f"{where}: {many} needs {count} values, got {values!r}")
        return values
    return [entry.get(one, none)] * count


def _numbers(where: str, value: Any) -> Any:
    """Give a finite float, or tuples of them as deep as the lists are."""
    if isinstance(value, (list, tuple)):
        return tuple(_numbers(where, x) for x in value)
    return finite(where, value)


def _joint(spec: JointSpec, entry: Mapping[str, Any]) -> JointSpec:
    """Change one joint as its entry says."""
    where = f"sidecar, joint '{spec.name}'"
    only_keys(where, entry, _JOINT_KEYS)
    changes: dict[str, Any] = {}
    if "type" in entry:
        kind = entry["type"]
        if kind != "fixed" and kind not in KINDS:
            valid = ", ".join(["fixed", *KINDS])
            raise ModelError(
                f"{where}: unknown type '{kind}'; valid: {valid}", spec.name
            )
        changes["kind"] = kind
        if kind not in ("revolute", "prismatic", "helical"):
            changes["lower"], changes["upper"] = -math.inf, math.inf
    for key in ("damping", "friction", "armature", "effort"):
        if key in entry:
            changes[key] = finite(f"{where}: {key}", entry[key])
    changes |= _shape(where, spec, entry)
    if "passive" in entry:
        if not isinstance(entry["passive"], bool):
            raise ModelError(f"{where}: passive needs true or false", spec.name)
        changes["passive"] = entry["passive"]
    if "swing" in entry:
        changes["swing"] = finite(f"{where}: swing", entry["swing"])
    if "twist" in entry:
        changes["twist"] = finites(f"{where}: twist", entry["twist"], 2)
    if "plug" in entry:
        only_keys(f"{where}: plug", entry["plug"], ("xyz", "rpy"))
        for key, value in entry["plug"].items():
            changes[f"plug_{key}"] = finites(f"{where}: plug {key}", value)
    return replace(spec, **changes)


def _shape(where: str, spec: JointSpec, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Give what an entry says of axes, pitch and factors."""
    changes: dict[str, Any] = {}
    if "axis" in entry:
        changes["axis"] = finites(f"{where}: axis", entry["axis"])
    if "pitch" in entry:
        changes["pitch"] = finite(f"{where}: pitch", entry["pitch"])
    if "axes" in entry:
        axes = entry["axes"]
        if not isinstance(axes, (list, tuple)) or len(axes) != 2:
            raise ModelError(f"{where}: axes needs two axes, got {axes!r}", spec.name)
        changes["axes"] = tuple(finites(f"{where}: axes", axis) for axis in axes)
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


def _factor(where: str, spec: JointSpec, entry: Any) -> JointSpec:
    """Give the specification of one factor of a product."""
    only_keys(where, entry, _FACTOR_KEYS)
    kind = entry.get("type")
    if kind not in KINDS:
        valid = ", ".join(KINDS)
        raise ModelError(f"{where}: unknown type '{kind}'; valid: {valid}", spec.name)
    bare = JointSpec(spec.name, kind, spec.parent, spec.child)
    return replace(bare, **_shape(where, spec, entry))


def _spring(spec: JointSpec, entry: Any) -> JointSpec:
    """Give a joint its spring."""
    where = f"spring of joint '{spec.name}'"
    only_keys(where, entry, ("stiffness", "rest"))
    stiffness = finite(f"{where}: stiffness", entry.get("stiffness"))
    rest = _numbers(f"{where}: rest", entry.get("rest", 0.0))
    return replace(spec, stiffness=stiffness, rest=rest)


def _read(extras: Any) -> tuple[Mapping[str, Any], str]:
    """Give the mapping and what to call it."""
    if isinstance(extras, Mapping):
        return extras, "extras"
    if isinstance(extras, str) and (":" in extras and "\n" in extras):
        text, source = extras, "extras"
    else:
        source = os.fspath(extras)
        try:
            text = Path(source).read_text(encoding="utf-8")
        except OSError as error:
            raise ModelError(f"cannot read the sidecar {source}: {error}") from error
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ModelError(f"{source}: not YAML: {error}") from error
    if data is not None and not isinstance(data, Mapping):
        raise ModelError(f"{source}: needs a mapping with {', '.join(_KEYS)}")
    return data or {}, source
