"""Parameter paths: numbers of a robot that can be inputs or be differentiated.

gravity                     3      root frame [m/s²]
time                        1      of driven joints [s]
armature                    nv     of all independent joints [kg·m² | kg]
LINK.mass                   1      [kg]
LINK.com                    3      in the link's frame [m]
LINK.inertia                6      xx xy xz yy yz zz about the com [kg·m²]
LINK.payload                10     m, m c, Ixx Ixy Iyy Ixz Iyz Izz, added, link frame
JOINT.damping .armature     1
JOINT.friction              1      dry friction, the mean of both directions
JOINT.friction_asymmetry    1      half of what it is more in positive direction
JOINT.origin                6      x y z roll pitch yaw in the parent link [m, rad]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Complex
from typing import Any, TypeVar

import numpy as np

from dyn_core.errors import ModelError, nearest
from dyn_core.model.frames import Frame, gravity, origin, sum_inertias
from dyn_core.model.joints import Driven
from dyn_core.model.tree import Tree
from dyn_core.numbers.scalar import Number, Scalar
from dyn_core.spatial import RigidInertia, Symmetric, Vector

AnyTree = TypeVar("AnyTree", bound=Tree)
Values = Sequence[Scalar]

LINK = {"mass": 1, "com": 3, "inertia": 6, "payload": 10}
FRICTION = ("damping", "friction", "friction_asymmetry")  # act with joint_friction
JOINT = {**dict.fromkeys(FRICTION, 1), "armature": 1, "origin": 6}
UNITS = {
    "gravity": "m/s²", "time": "s", "mass": "kg", "com": "m", "inertia": "kg·m²",
    "payload": "SI", "damping": "SI", "friction": "SI", "friction_asymmetry": "SI",
    "armature": "SI", "origin": "m; rad",
}  # fmt: skip


def size(tree: Tree, path: str) -> int:
    """Return the number of values of a path; an unknown path is a ModelError."""
    if path == "gravity":
        return 3
    if path == "armature":
        return tree.nv
    if path == "time":
        return 1
    name, _, what = path.rpartition(".")
    if what in LINK:
        tree.frame(name)
        return LINK[what]
    if what in JOINT:
        tree.body_of_joint(name)
        return JOINT[what]
    whole = ["gravity", "armature", "time"]
    parts = [f"{name}.{x}" for x in (*LINK, *JOINT)] if name else []
    near = nearest(path, whole + parts, 1)
    guess = f"; did you mean '{near[0]}'?" if near else ";"
    links, joints = (f"LINK.{x}" for x in LINK), (f"JOINT.{x}" for x in JOINT)
    valid = ", ".join([*whole, *links, *joints])
    raise ModelError(f"no parameter path '{path}'{guess} valid: {valid}", path)


def value(tree: Tree, path: str) -> np.ndarray:
    """Return the robot's value of a path, flat."""
    return np.array(numbers(tree, path), float)


def numbers(tree: Tree, path: str) -> list[Scalar]:
    """Return the numbers of a path as the robot has them, symbols too."""
    size(tree, path)
    if path == "gravity":
        return list(tree.a_grav.lin)
    if path == "armature":
        return [x for i in tree.independent for x in tree.armature[i]]
    if path == "time":
        return [next((j.t for j in tree.joint if isinstance(j, Driven)), 0.0)]
    name, _, what = path.rpartition(".")
    if what in LINK:
        return _link_numbers(tree.frame(name).inertia, what)
    if what == "origin":
        joints = tree.build.description.joints
        spec = next((j for j in joints if j.name == name), None)
        if spec is None:
            raise ModelError(f"joint '{name}' has no origin in the robot's file", name)
        return [*spec.xyz, *spec.rpy]
    row = list(getattr(tree, what)[tree.body_of_joint(name)])
    if not row:
        raise ModelError(f"joint '{name}' has no coordinate to have {what}", name)
    return row[:1]


def _link_numbers(I: RigidInertia, what: str) -> list[Scalar]:
    """Return mass, com, inertia or payload of a link."""
    if what == "mass":
        return [I.m]
    if what == "com":
        return list(I.c)
    return list(Symmetric.of(I.Ic).entries) if what == "inertia" else [0.0] * 10


def with_values(tree: AnyTree, values: Mapping[str, Values | Scalar]) -> AnyTree:
    """Return the robot with parameters replaced by numbers or symbols.

    How many there are is checked, not whether they make sense.
    """
    changes: dict[str, Any] = {}
    links: dict[str, dict[str, Values]] = {}
    for path, sequence in values.items():
        entries = _entries(path, sequence)
        if len(entries) != size(tree, path):
            wanted = size(tree, path)
            raise ModelError(f"{path} takes {wanted} numbers, got {len(entries)}", path)
        name, _, what = path.rpartition(".")
        if what in LINK:
            links.setdefault(name, {})[what] = entries
        elif name:
            _change_joint(tree, changes, name, what, entries)
        else:
            _change_robot(tree, changes, path, entries)
    if links:
        frames = dict(tree.frames)
        for name, groups in links.items():
            frames[name] = _changed_link(frames[name], groups)
        changes["frames"] = frames
        changes["I"] = sum_inertias(frames, tree.nb + 1)
    return replace(tree, **changes)


def _entries(path: str, value: Any) -> tuple[Scalar, ...]:
    """Return the numbers of a value for a path; a single one may stand alone."""
    try:
        entries = tuple(value)
    except TypeError:  # also of an array without axes
        entries = (value,)
    if not all(isinstance(x, (Complex, Number, np.ndarray)) for x in entries):
        raise ModelError(f"{path} takes numbers, got {value!r}", path)
    return entries


def _change_robot(
    tree: Tree, changes: dict[str, Any], path: str, values: Values
) -> None:
    """Add the change of a number of the whole robot: gravity, time, armature."""
    if path == "gravity":
        changes["a_grav"] = gravity(values)
    elif path == "time":
        changes["joint"] = tuple(
            j.at_time(values[0]) if isinstance(j, Driven) else j for j in tree.joint
        )
    else:
        rows = list(changes.get("armature", tree.armature))
        for i in tree.independent:
            rows[i] = Vector(values[tree.v_slices[i]])
        changes["armature"] = tuple(rows)


def _changed_link(frame: Frame, values: Mapping[str, Values]) -> Frame:
    """Return a link's frame with groups of its inertia's numbers changed."""
    I = frame.inertia
    if values.keys() - {"payload"}:
        mass = values.get("mass", (I.m,))[0]
        com, entries = values.get("com", I.c), Symmetric.of(I.Ic).entries
        I = RigidInertia.of(mass, com, values.get("inertia", entries))
    if "payload" in values:
        I = I + RigidInertia.of_parameters(values["payload"])
    return replace(frame, inertia=I)


def _change_joint(
    tree: Tree, changes: dict[str, Any], name: str, what: str, values: Values
) -> None:
    """Add the change of one joint: its origin, friction or armature."""
    i = tree.body_of_joint(name)
    if what == "origin":
        if tree.joint[tree.parent[i]].kind == "driven":
            i = tree.parent[i]
        rows = list(changes.get("Xtree", tree.Xtree))
        rows[i] = origin(values[:3], values[3:]) @ tree.joint_mounts[i]
        changes["Xtree"] = tuple(rows)
        return
    rows = list(changes.get(what, getattr(tree, what)))
    rows[i] = Vector([values[0]] * tree.joint[i].nv)
    changes[what] = tuple(rows)
