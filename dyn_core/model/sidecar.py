"""The sidecar NAME.dyn.yaml: what URDF cannot say, added to a Description.

joints:   {NAME: {type: spherical, damping: 0.1, friction: 0.0, armature: 0.0,
                  effort: 10.0, axis: [0, 0, 1]}}
armature: {NAME: 0.02}                          # [kg·m² | kg]
rotors:   {NAME: {inertia: 2e-5, ratio: 100}}   # armature += inertia ratio²
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
from dyn_core.model.description import Description, JointSpec
from dyn_core.model.joints import KINDS

_KEYS = ("joints", "armature", "rotors")
_JOINT_KEYS = ("type", "damping", "friction", "armature", "effort", "axis")


def from_file(description: Description, path: Path) -> Description:
    """Note that a Description came from a file."""
    return replace(description, sources=(*description.sources, str(path)))


def apply(description: Description, extras: Any) -> Description:
    """Give the Description with the extras of a file, YAML text or mapping."""
    data, source = _read(extras)
    _known("the sidecar", data, _KEYS)
    for key in _KEYS:
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
        number = _number(f"armature of joint '{name}'", value)
        joints[name] = replace(known(name), armature=number)
    for name, entry in (data.get("rotors") or {}).items():
        _known(f"rotor of joint '{name}'", entry, ("inertia", "ratio"))
        J = _number(f"rotor inertia of joint '{name}'", entry.get("inertia"))
        n = _number(f"rotor ratio of joint '{name}'", entry.get("ratio", 1.0))
        spec = known(name)
        joints[name] = replace(spec, armature=spec.armature + J * n * n)
    sources = (*description.sources, source)
    return replace(description, joints=tuple(joints.values()), sources=sources)


def _joint(spec: JointSpec, entry: Mapping[str, Any]) -> JointSpec:
    """Change one joint as its entry says."""
    where = f"sidecar, joint '{spec.name}'"
    _known(where, entry, _JOINT_KEYS)
    changes: dict[str, Any] = {}
    if "type" in entry:
        kind = entry["type"]
        if kind != "fixed" and kind not in KINDS:
            valid = ", ".join(["fixed", *KINDS])
            raise ModelError(
                f"{where}: unknown type '{kind}'; valid: {valid}", spec.name
            )
        changes["kind"] = kind
        if kind not in ("revolute", "prismatic"):
            changes["lower"], changes["upper"] = -math.inf, math.inf
    for key in ("damping", "friction", "armature", "effort"):
        if key in entry:
            changes[key] = _number(f"{where}: {key}", entry[key])
    if "axis" in entry:
        axis = entry["axis"]
        if not isinstance(axis, (list, tuple)) or len(axis) != 3:
            raise ModelError(
                f"{where}: axis needs three numbers, got {axis!r}", spec.name
            )
        changes["axis"] = tuple(_number(f"{where}: axis", x) for x in axis)
    return replace(spec, **changes)


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


def _known(where: str, data: Any, keys: tuple[str, ...]) -> None:
    """Refuse keys that mean nothing."""
    if not isinstance(data, Mapping):
        raise ModelError(
            f"{where}: needs a mapping with {', '.join(keys)}, got {data!r}"
        )
    unknown = [str(key) for key in data if key not in keys]
    if unknown:
        raise ModelError(
            f"{where}: unknown key {', '.join(unknown)}; valid: {', '.join(keys)}"
        )


def _number(what: str, value: Any) -> float:
    """Give a finite float."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ModelError(f"{what}: needs a number, got {value!r}")
    if not math.isfinite(value):
        raise ModelError(f"{what}: {value} is not finite")
    return float(value)
