"""Parameter paths: the numbers of a Model that can be inputs or be differentiated.

gravity                     3      root frame [m/s²]
time                        1      of driven joints [s]
armature                    nv     of all independent joints [kg·m² | kg]
LINK.mass                   1      [kg]
LINK.com                    3      in the link's frame [m]
LINK.inertia                6      xx xy xz yy yz zz about the com [kg·m²]
LINK.payload                10     m, m c, Ixx Ixy Iyy Ixz Iyz Izz, added, link frame
JOINT.damping .friction .armature  1
JOINT.origin                6      x y z roll pitch yaw in the parent link [m, rad]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dyn_core.errors import ModelError
from dyn_core.model.description import origin
from dyn_core.model.joints import Driven
from dyn_core.model.parts import Frame, gravity, sum_inertias
from dyn_core.spatial import RigidInertia, Symmetric, Vector

if TYPE_CHECKING:
    from dyn_core.model.model import Model

LINK = {"mass": 1, "com": 3, "inertia": 6, "payload": 10}
JOINT = {"damping": 1, "friction": 1, "armature": 1, "origin": 6}
UNITS = {
    "gravity": "m/s²", "time": "s", "mass": "kg", "com": "m", "inertia": "kg·m²",
    "payload": "SI", "damping": "SI", "friction": "SI", "armature": "SI",
    "origin": "m; rad",
}  # fmt: skip


def size(model: Model, path: str) -> int:
    """Give the number of values of a path; an unknown path is a ModelError."""
    if path == "gravity":
        return 3
    if path == "armature":
        return model.nv
    if path == "time":
        return 1
    name, _, what = path.rpartition(".")
    if what in LINK:
        model.frame(name)
        return LINK[what]
    if what in JOINT:
        model.body_of_joint(name)
        return JOINT[what]
    valid = ", ".join(
        [
            "gravity",
            "armature",
            "time",
            *(f"LINK.{x}" for x in LINK),
            *(f"JOINT.{x}" for x in JOINT),
        ]
    )
    raise ModelError(f"no parameter path '{path}'; valid: {valid}", path)


def value(model: Model, path: str) -> np.ndarray:
    """Give the Model's own value of a path, flat."""
    return np.array(numbers(model, path), float)


def numbers(model: Model, path: str) -> list[Any]:
    """Give the numbers of a path as they stand in the Model, symbols too."""
    size(model, path)
    if path == "gravity":
        return list(model.a_grav.lin)
    if path == "armature":
        return [x for i in model.independent for x in model.armature[i]]
    if path == "time":
        return [next((j.t for j in model.joint if isinstance(j, Driven)), 0.0)]
    name, _, what = path.rpartition(".")
    if what in LINK:
        I = model.frame(name).inertia
        found = {
            "mass": lambda: [I.m],
            "com": lambda: list(I.c),
            "inertia": lambda: Symmetric.of(I.Ic).entries,
            "payload": lambda: [0.0] * 10,
        }[what]()
    elif what == "origin":
        joints = model.build.description.joints
        spec = next((j for j in joints if j.name == name), None)
        if spec is None:
            raise ModelError(f"joint '{name}' has no origin in the robot's file", name)
        found = [*spec.xyz, *spec.rpy]
    else:
        row = list(getattr(model, what)[model.body_of_joint(name)])
        if not row:
            raise ModelError(f"joint '{name}' has no coordinate to have {what}", name)
        found = row[:1]
    return list(found)


def with_values(model: Model, values: Mapping[str, Sequence[Any]]) -> Model:
    """Give the Model with some parameters replaced by numbers or symbols, unchecked."""
    changes: dict[str, Any] = {}
    links: dict[str, dict[str, tuple]] = {}
    for path, numbers in values.items():
        numbers = tuple(numbers)
        if len(numbers) != size(model, path):
            wanted = size(model, path)
            raise ModelError(f"{path} takes {wanted} numbers, got {len(numbers)}", path)
        if path == "gravity":
            changes["a_grav"] = gravity(numbers)
            continue
        if path == "time":
            changes["joint"] = tuple(
                j.at(numbers[0]) if isinstance(j, Driven) else j for j in model.joint
            )
            continue
        if path == "armature":
            rows = list(changes.get("armature", model.armature))
            for i in model.independent:
                rows[i] = Vector(numbers[model.v_slices[i]])
            changes["armature"] = tuple(rows)
            continue
        name, _, what = path.rpartition(".")
        if what in LINK:
            links.setdefault(name, {})[what] = numbers
        else:
            _joint(model, changes, name, what, numbers)
    if links:
        frames = dict(model.frames)
        for name, groups in links.items():
            frames[name] = _link(frames[name], groups)
        changes["frames"] = frames
        changes["I"] = sum_inertias(frames, model.nb + 1)
    return replace(model, **changes)


def _link(frame: Frame, numbers: Mapping[str, tuple]) -> Frame:
    """Change number groups of a link's inertia."""
    I = frame.inertia
    if numbers.keys() - {"payload"}:
        mass = numbers.get("mass", (I.m,))[0]
        com, entries = numbers.get("com", I.c), Symmetric.of(I.Ic).entries
        I = RigidInertia.of(mass, com, numbers.get("inertia", entries))
    if "payload" in numbers:
        I = I + RigidInertia.of_parameters(numbers["payload"])
    return replace(frame, inertia=I)


def _joint(
    model: Model, changes: dict[str, Any], name: str, what: str, numbers: tuple
) -> None:
    """Note a change of one joint."""
    i = model.body_of_joint(name)
    if what == "origin":
        if model.joint[model.parent[i]].kind == "driven":
            i = model.parent[i]
        rows = list(changes.get("Xtree", model.Xtree))
        rows[i] = origin(numbers[:3], numbers[3:]) @ model.mounts[i]
        changes["Xtree"] = tuple(rows)
        return
    rows = list(changes.get(what, getattr(model, what)))
    rows[i] = Vector([numbers[0]] * model.joint[i].nv)
    changes[what] = tuple(rows)
