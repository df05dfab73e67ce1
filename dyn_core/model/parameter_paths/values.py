"""Values of parameter paths: read from a robot, and replaced in a robot.

Values that move joints or change rules of followers make new joints in the tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from numbers import Complex
from typing import Any, TypeVar

import numpy as np

from dyn_core.errors import ModelError, nearest, unknown_name
from dyn_core.model.assembly.tree import Tree
from dyn_core.model.checks.description import check_friction
from dyn_core.model.description import JointSpec, Mimic
from dyn_core.model.frames import Frame, Lead, gravity, origin, sum_inertias
from dyn_core.model.joints import Driven
from dyn_core.model.loops.loop_constraints import Loop
from dyn_core.model.parameter_paths.path_kinds import (
    KINDS,
    OWNERS,
    ROBOT,
    PathKind,
    named,
)
from dyn_core.model.point_springs import PointSprings
from dyn_core.numbers.scalar import Number, Scalar
from dyn_core.spatial import Matrix, RigidInertia, Symmetric, Transform, Vector
from dyn_core.validation import shown


def specs_of(tree: Tree) -> dict[str, JointSpec]:
    """Return the joints of a robot's description by name, fixed and locked included."""
    return {spec.name: spec for spec in tree.build.description.joints}


def replaced(row: Iterable[Any], i: int, entry: Any) -> tuple[Any, ...]:
    """Return a tuple with the entries of `row`, entry i (if there is one) replaced."""
    return tuple(entry if k == i else x for k, x in enumerate(row))


def _with_spec(tree: AnyTree, spec: JointSpec) -> AnyTree:
    """Return the robot with the joint called spec.name replaced in its description.

    Bodies, frames and inertias are not updated. An unknown name changes nothing.
    """
    description = tree.build.description
    joints = (spec if x.name == spec.name else x for x in description.joints)
    description = replace(description, joints=tuple(joints))
    return replace(tree, build=replace(tree.build, description=description))


def with_place(tree: AnyTree, name: str, what: str, values: Values) -> AnyTree:
    """Return the robot with another socket (`what`: origin) or plug of a joint.

    `values` are x y z roll pitch yaw in the parent (origin) or child (plug) link [m,
    rad]. The child link moves with it, and so do the links fixed to it and the joints
    on them. The inertias of the bodies (tree.I) are not updated.

    Source: TAZZ-2.1 (socket and plug); KIM-4.5 (geometric parameters).
    """
    key = "plug_" if what == "plug" else ""
    old, xyz, rpy = specs_of(tree)[name], tuple(values[:3]), tuple(values[3:])
    numbers: dict[str, Any] = {f"{key}xyz": xyz, f"{key}rpy": rpy}
    spec = replace(old, **numbers)
    tree = _with_spec(tree, spec)
    if name not in tree.names:
        X = _place_in_body(tree, old, spec)
        return _rehung(tree, spec.child, X)
    if what == "plug":
        return _rehung(tree, spec.child, _plug(spec).inverse)
    i = tree.body_of_joint(name)
    if tree.joint[tree.parent[i]].kind == "driven":
        i = tree.parent[i]
    X = origin(xyz, rpy) @ tree.joint_mounts[i]
    return replace(tree, Xtree=replaced(tree.Xtree, i, X))


def _plug(spec: JointSpec) -> Transform:
    """Return the transform from the child link's frame to the plug frame of a joint."""
    return origin(spec.plug_xyz, spec.plug_rpy)


def _place_in_body(tree: Tree, old: JointSpec, spec: JointSpec) -> Transform:
    """Return the new transform from the body to the child of a fixed or locked joint.

    The tree has the frames before the change; a locked joint keeps its position.
    """
    above, here = tree.frames[spec.parent].X, tree.frames[spec.child].X
    if spec.kind == "fixed":
        return _plug(spec).inverse @ origin(spec.xyz, spec.rpy) @ above
    across = _plug(old) @ here @ above.inverse @ origin(old.xyz, old.rpy).inverse
    return _plug(spec).inverse @ across @ origin(spec.xyz, spec.rpy) @ above


def _rehung(tree: AnyTree, link: str, X: Transform) -> AnyTree:
    """Return the robot with a link at X in its body.

    The links fixed to it and the joints on these links move along; the inertia of the
    body (tree.I) is not updated.
    """
    body, before = tree.frames[link].body, dict(tree.frames)
    frames: dict[str, Frame] = dict(before)
    Xtree, mounts = list(tree.Xtree), list(tree.joint_mounts)
    below: dict[str, list[JointSpec]] = {}
    for spec in tree.build.description.joints:
        below.setdefault(spec.parent, []).append(spec)
    carriers = _carriers(tree)
    waiting = [(link, X)]
    while waiting:
        link, X = waiting.pop()
        old = frames[link].X
        frames[link] = replace(frames[link], X=X)
        for spec in below.get(link, ()):
            i = carriers.get(spec.name)
            if i is not None:
                mounts[i], Xtree[i] = X, origin(spec.xyz, spec.rpy) @ X
            elif spec.child in before and before[spec.child].body == body:
                across = before[spec.child].X @ old.inverse
                if spec.kind == "fixed":
                    across = _plug(spec).inverse @ origin(spec.xyz, spec.rpy)
                waiting.append((spec.child, across @ X))
    return replace(tree, frames=frames, Xtree=tuple(Xtree), joint_mounts=tuple(mounts))


def _carriers(tree: Tree) -> dict[str, int]:
    """Return by moving joint the body (or drive's body) whose Xtree places it."""
    numbers = {tree.names[i]: i for i in tree.bodies}
    return {name: numbers.get(f"{name}.drive", i) for name, i in numbers.items()}


def with_rule(tree: AnyTree, name: str, what: str, values: Values) -> AnyTree:
    """Return the robot with another `what` (ratio or offset) of a follower.

    `values` are the entries of the ratio, row by row, or offsets [rad | m]; as many as
    before, unchecked. The leads of joints that follow it, also in a chain, are updated.
    """
    spec = specs_of(tree)[name]
    assert spec.mimic is not None
    rule, plain = spec.mimic, not isinstance(spec.mimic.multiplier, tuple)
    if what == "offset":
        shift = tuple(values) if isinstance(rule.offset, tuple) else values[0]
        rule = Mimic(rule.joint, rule.multiplier, shift)
    else:
        width = rule.ratio.shape[1]
        rows = tuple(tuple(values[k : k + width]) for k in range(0, len(values), width))
        rule = Mimic(rule.joint, values[0] if plain else rows, rule.offset)
    tree = _with_spec(tree, replace(spec, mimic=rule))
    specs = specs_of(tree)
    leaders = [
        _lead(specs, tree.names[i], lead)
        if _follows(specs, tree.names[i], name)
        else lead
        for i, lead in enumerate(tree.leader)
    ]
    return replace(tree, leader=tuple(leaders))


def _follows(specs: Mapping[str, JointSpec], joint: str, name: str) -> bool:
    """Return whether a joint follows by the rule of `name`: its own or a leader's."""
    while joint in specs and specs[joint].mimic is not None:
        if joint == name:
            return True
        joint = specs[joint].mimic.joint  # type: ignore[union-attr]
    return False


def _lead(specs: Mapping[str, JointSpec], joint: str, lead: Lead) -> Lead:
    """Return the Lead of a follower, with total ratio and offset of its chain of rules.

    The body of the previous `lead` is kept.
    """
    rule = specs[joint].mimic
    assert rule is not None
    ratio: Matrix = rule.ratio
    offset = rule.shift
    rule = specs[rule.joint].mimic
    while rule is not None:
        offset = ratio @ rule.shift + offset
        ratio = ratio @ rule.ratio
        rule = specs[rule.joint].mimic
    return Lead(lead.body, ratio, offset)


AnyTree = TypeVar("AnyTree", bound=Tree)
Values = Sequence[Scalar]


def kind_of(tree: Tree, path: str) -> PathKind:
    """Return the kind of a robot's parameter path.

    The path is NAME.PARAMETER, of a link, joint, spring or loop (the first of these
    with this name and such a parameter), or a name in ROBOT, such as gravity. Whether
    the element itself has the parameter is not checked.

    Raises:
        ModelError: `path` is not a string, its kind is unknown, or the robot has no
            element of this name; suggests similar names.
    """
    if not isinstance(path, str):
        raise ModelError(f"{shown(path)} is no parameter path; valid: a name")
    if path in ROBOT:
        return ROBOT[path]
    name, _, what = str(path).rpartition(".")
    kinds = {owner: x for owner in OWNERS if (x := named(owner).get(what)) is not None}
    if not name or not kinds:
        raise ModelError(_unknown(tree, path), path)
    for owner, kind in kinds.items():
        if name in _names(tree, owner):
            return kind
    owner = next(iter(kinds))
    called = "moving joint" if owner == "joint" and what not in PLACES else owner
    known = [x for owner in kinds for x in _names(tree, owner)]
    known = list(tree.names[1:]) if called == "moving joint" else known
    raise ModelError(unknown_name(called, name, known), name)


PLACES = ("origin", "plug")


def _unknown(tree: Tree, path: str) -> str:
    """Return the error message for a path of an unknown kind, with the nearest path."""
    near = nearest(path, paths(tree), 1)
    guess = f"; did you mean '{near[0]}'?" if near else ";"
    valid = ", ".join(kind.path for kind in KINDS)
    return f"no parameter path '{path}'{guess} valid: {valid}"


def _names(tree: Tree, owner: str) -> list[str]:
    """Return the names of a robot's elements of one owner: link, joint, loop or spring.

    Moving joints come first, then fixed and locked ones; couplings are not listed.
    """
    if owner == "link":
        return list(tree.frames)
    if owner == "joint":
        fixed = [
            spec.name
            for spec in tree.build.description.joints
            if spec.child in tree.frames and spec.parent in tree.frames
        ]
        return list(dict.fromkeys([*tree.names[1:], *fixed]))
    if owner == "loop":
        return [x.name for x in tree.build.constraints if isinstance(x, Loop)]
    return [x.name for part in _springs(tree) for x in part.springs]


def _springs(tree: Tree) -> list[PointSprings]:
    return [part for part in tree.forces if isinstance(part, PointSprings)]


def paths(tree: Tree) -> tuple[str, ...]:
    """Return every parameter path with values in a robot, in the order of KINDS.

    Paths of one kind are in the order of the robot's elements, fixed joints last.
    `time` is there only if a joint is driven. Raises TraceError if the mass of a link
    is a symbol.
    """
    known = {owner: _names(tree, owner) for owner in OWNERS}
    every = [
        k.name if k.owner == "robot" else f"{name}.{k.name}"
        for k in KINDS
        for name in ([""] if k.owner == "robot" else known[k.owner])
    ]
    return tuple(dict.fromkeys(path for path in every if _exists(tree, path)))


def _exists(tree: Tree, path: str) -> bool:
    """Return whether a path has values, and for `time` whether a joint is driven.

    TraceError for `com` or `inertia` of a link whose mass is a symbol.
    """
    try:
        return bool(numbers(tree, path)) and (path != "time" or any(_driven(tree)))
    except ModelError:
        return False


def _driven(tree: Tree) -> list[Driven]:
    return [joint for joint in tree.joint if isinstance(joint, Driven)]


def acting(tree: Tree, path: str) -> str:
    """Return the build option that a parameter needs to have an effect; "" if none.

    It is joint_friction for damping and dry friction of joints, joint_springs for joint
    springs and for all numbers of point springs. Raises ModelError for an unknown path.
    """
    return kind_of(tree, path).option


def size(tree: Tree, path: str) -> int:
    """Return the number of values of a path; ModelError if the robot has no such.

    TraceError for `com` or `inertia` of a link whose mass is a symbol.
    """
    return len(numbers(tree, path))


def value(tree: Tree, path: str) -> np.ndarray:
    """Return the robot's values of a path as floats, (size,).

    Raises:
        ModelError: The path is unknown, or its owner has no such parameter.
        TypeError: A value is a symbol.
        TraceError: It is `com` or `inertia` of a link whose mass is a symbol.
    """
    return np.array(numbers(tree, path), float)


def numbers(tree: Tree, path: str) -> list[Scalar]:
    """Return the values of a path, floats or symbols, as a flat list.

    Numbers and units are described in KINDS. Of a parameter with one number for several
    coordinates, such as damping, the first coordinate's number is returned.

    Raises:
        ModelError: The path is unknown, or its owner has no such parameter.
        TraceError: It is `com` or `inertia` of a link whose mass is a symbol.
    """
    kind = kind_of(tree, path)
    name = path.rpartition(".")[0]
    if kind.owner == "robot":
        return _robot_numbers(tree, path)
    if kind.owner == "link":
        return _link_numbers(tree.frame(name).inertia, kind.name)
    if kind.owner == "joint":
        return _joint_numbers(tree, name, kind.name)
    if kind.owner == "loop":
        return _loop_numbers(_loop(tree, name), kind.name)
    springs = {x.name: x for part in _springs(tree) for x in part.springs}
    return [getattr(springs[name], kind.name)]


def _robot_numbers(tree: Tree, path: str) -> list[Scalar]:
    """Return gravity (3), time (1), or armature of all independent joints (nv)."""
    if path == "gravity":
        return list(tree.a_grav.lin)
    if path == "armature":
        return [x for i in tree.independent for x in tree.armature[i]]
    return [next((joint.t for joint in _driven(tree)), 0.0)]


def _link_numbers(I: RigidInertia, what: str) -> list[Scalar]:
    """Return mass (1), com (3), inertia (6) or payload (10) of a link's inertia I.

    The inertia is xx xy xz yy yz zz about the centre of mass. A payload is an addition,
    so its ten numbers are zero.
    """
    if what == "mass":
        return [I.m]
    if what == "com":
        return list(I.c)
    return list(Symmetric.of(I.Ic).entries) if what == "inertia" else [0.0] * 10


def _joint_numbers(tree: Tree, name: str, what: str) -> list[Scalar]:
    """Return the values of a joint's parameter, or refuse a joint without it.

    Of damping, armature and other parameters with one number for all coordinates, the
    first coordinate's number is returned.
    """
    spec = specs_of(tree).get(name)
    if what in PLACES:
        if spec is None:
            raise ModelError(f"joint '{name}' has no {what} in the robot's file", name)
        if what == "plug":
            return [*spec.plug_xyz, *spec.plug_rpy]
        return [*spec.xyz, *spec.rpy]
    i = tree.body_of_joint(name)
    if what in ("ratio", "offset"):
        return _rule_numbers(spec, name, what)
    if what in GEOMETRY:
        entries: list[Scalar] = tree.joint[i].geometry(what)
        if not entries:
            kind = tree.joint[i].kind
            raise ModelError(f"joint '{name}', of type {kind}, has no {what}", name)
        return entries
    row = list(getattr(tree, what)[i])
    if not row:
        raise ModelError(f"joint '{name}' has no coordinate to have {what}", name)
    return row if what == "rest" else row[:1]


GEOMETRY = ("axis", "axes", "pitch")


def _rule_numbers(spec: JointSpec | None, name: str, what: str) -> list[Scalar]:
    """Return ratio (row by row) or offset (by coordinate) of a follower's own rule."""
    if spec is None or spec.mimic is None:
        raise ModelError(f"joint '{name}' follows no joint and has no {what}", name)
    rule = spec.mimic
    if what == "offset":
        return list(rule.shift)
    return [x for row in rule.ratio.rows for x in row]


def _loop(tree: Tree, name: str) -> Loop:
    """Return the Loop of this name; StopIteration if there is none."""
    loops = (x for x in tree.build.constraints if isinstance(x, Loop))
    return next(loop for loop in loops if loop.name == name)


def _loop_numbers(loop: Loop, what: str) -> list[Scalar]:
    """Return at_a or at_b (x, y, z, roll, pitch, yaw), length or radius [m, rad].

    ModelError if the loop's kind has no such number.
    """
    if what in ("at_a", "at_b"):
        return loop.place(what)
    name, x = loop.measure
    if name != what or x is None:
        raise ModelError(
            f"loop '{loop.name}', of kind {loop.kind or 'user'}, has no {what}",
            loop.name,
        )
    return [x]


def with_values(tree: AnyTree, values: Mapping[str, Values | Scalar]) -> AnyTree:
    """Return the robot with parameters replaced by numbers or symbols.

    The inertias of bodies are updated. Numbers that files refuse, such as a negative
    damping, are refused; symbols, arrays, payloads and inertias are not checked.

    Args:
        tree: Robot.
        values: Values by path; a path of one number accepts a bare number.

    Raises:
        ModelError: `values` is not a mapping, a path is unknown, its values are not
            finite numbers or not as many as `size` returns, one is below the minimum
            in KINDS, or dry friction would be below 0 in one direction.
        SingularError: An axis has length 0, or is -z for a planar joint.
        TraceError: It is `com` or `inertia` of a link whose mass is a symbol.
    """
    if not isinstance(values, Mapping):
        valid = "a mapping of parameter paths to values"
        raise ModelError(f"values are {shown(values)}; valid: {valid}")
    links: dict[str, dict[str, Values]] = {}
    before = tree.frames
    for path, sequence in values.items():
        entries = entries_of(path, sequence, size(tree, path))
        name, _, what = path.rpartition(".")
        kind = kind_of(tree, path)
        if any(isinstance(x, (float, int)) and x < kind.minimum for x in entries):
            valid = f"at least {kind.minimum:g}"
            raise ModelError(f"{path} is {shown(sequence)}; valid: {valid}", path)
        if kind.owner == "link":
            links.setdefault(name, {})[what] = entries
        else:
            tree = _CHANGES[kind.owner](tree, name, what, entries)
    for path in values:
        name, _, what = path.rpartition(".")
        if what in ("friction", "friction_asymmetry"):
            _check_friction(tree, name)
    if links:
        frames = dict(tree.frames)
        for name, groups in links.items():
            frames[name] = _changed_link(frames[name], groups)
        tree = replace(tree, frames=frames)
    if tree.frames is not before:
        tree = replace(tree, I=sum_inertias(tree.frames, tree.nb + 1))
    return tree


def _check_friction(tree: Tree, name: str) -> None:
    """Raise ModelError if dry friction of a joint is below 0 in a direction.

    Symbols and arrays are not checked.
    """
    i = tree.body_of_joint(name)
    for mean, half in zip(tree.friction[i], tree.friction_asymmetry[i], strict=True):
        if isinstance(mean, (float, int)) and isinstance(half, (float, int)):
            check_friction(name, mean, half)


def entries_of(path: str, value: Any, wanted: int) -> tuple[Scalar, ...]:
    """Return the new values of a path of `wanted` numbers as a tuple.

    Entries are numbers, symbols or arrays; a bare number is accepted for one. Other
    types or counts, and floats that are not finite, are refused.
    """
    try:
        entries = tuple(value)
    except TypeError:  # also of an array without axes
        entries = (value,)
    if not all(isinstance(x, (Complex, Number, np.ndarray)) for x in entries):
        raise ModelError(f"{path} takes numbers, got {value!r}", path)
    if len(entries) != wanted:
        raise ModelError(f"{path} takes {wanted} numbers, got {len(entries)}", path)
    entries = tuple(
        x.item() if isinstance(x, (np.generic, np.ndarray)) and not x.ndim else x
        for x in entries
    )
    if not all(isfinite(x) for x in entries if isinstance(x, float)):
        raise ModelError(f"{path} is {shown(value)}; valid: finite numbers", path)
    return entries


def _changed_robot(tree: AnyTree, _: str, what: str, values: Values) -> AnyTree:
    """Return the robot with other gravity, time of all driven joints, or armature (nv).

    The second argument is not used: all functions in _CHANGES have the same arguments.
    """
    if what == "gravity":
        return replace(tree, a_grav=gravity(values))
    if what == "time":
        joints = (
            j.at_time(values[0]) if isinstance(j, Driven) else j for j in tree.joint
        )
        return replace(tree, joint=tuple(joints))
    rows = list(tree.armature)
    for i in tree.independent:
        rows[i] = Vector(values[tree.v_slices[i]])
    return replace(tree, armature=tuple(rows))


def _changed_link(frame: Frame, values: Mapping[str, Values]) -> Frame:
    """Return a link's frame with another mass, com, inertia or added payload.

    The inertia is xx xy xz yy yz zz about the com, and stays if it is missing. The
    payload m, m c (3), Ixx Ixy Iyy Ixz Iyz Izz, about the link's origin, is added last.
    """
    I = frame.inertia
    if values.keys() - {"payload"}:
        mass = values.get("mass", (I.m,))[0]
        com, entries = values.get("com", I.c), Symmetric.of(I.Ic).entries
        I = RigidInertia.of(mass, com, values.get("inertia", entries))
    if "payload" in values:
        I = I + RigidInertia.of_parameters(values["payload"])
    return replace(frame, inertia=I)


def _changed_joint(tree: AnyTree, name: str, what: str, values: Values) -> AnyTree:
    """Return the robot with another value of one parameter of a joint.

    One number, such as damping, is set for all coordinates of the joint. The inertias
    of the bodies (tree.I) are not updated.
    """
    if what in PLACES:
        return with_place(tree, name, what, values)
    if what in ("ratio", "offset"):
        return with_rule(tree, name, what, values)
    i = tree.body_of_joint(name)
    if what in GEOMETRY:
        joint = tree.joint[i].with_geometry(what, values)
        return replace(tree, joint=replaced(tree.joint, i, joint))
    row = Vector(values if what == "rest" else [values[0]] * tree.joint[i].nv)
    changes: dict[str, Any] = {what: replaced(getattr(tree, what), i, row)}
    return replace(tree, **changes)


def _changed_spring(tree: AnyTree, name: str, what: str, values: Values) -> AnyTree:
    """Return the robot with another stiffness, rest_length or damping of a spring.

    An unknown name changes nothing.
    """
    forces = [
        part.with_number(name, what, values[0])
        if isinstance(part, PointSprings)
        else part
        for part in tree.forces
    ]
    return replace(tree, forces=tuple(forces))


def _changed_loop(tree: AnyTree, name: str, what: str, values: Values) -> AnyTree:
    """Return the robot with another at_a, at_b, length or radius of a loop.

    Frames are x, y, z, roll, pitch, yaw [m, rad]. The loop must exist and its kind have
    this number.
    """
    old = _loop(tree, name)
    new = old.with_numbers(what, values)
    build, description = tree.build, tree.build.description
    loops, more = (
        tuple(new if x is old else x for x in part)
        for part in (description.loops, build.loops)
    )
    description = replace(description, loops=loops)
    return replace(tree, build=replace(build, description=description, loops=more))


_CHANGES = {
    "robot": _changed_robot,
    "joint": _changed_joint,
    "spring": _changed_spring,
    "loop": _changed_loop,
}
