"""Robots with changed joint placements and changed rules of followers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from dyn_core.model.assembly.tree import Tree
from dyn_core.model.description import JointSpec, Mimic
from dyn_core.model.frames import Frame, Lead, origin
from dyn_core.numbers.scalar import Scalar
from dyn_core.spatial import Matrix, Transform

AnyTree = TypeVar("AnyTree", bound=Tree)
Values = Sequence[Scalar]


def specs_of(tree: Tree) -> dict[str, JointSpec]:
    """Return the joint specifications of a robot's file by name, fixed ones too."""
    return {spec.name: spec for spec in tree.build.description.joints}


def replaced(row: Iterable[Any], i: int, entry: Any) -> tuple[Any, ...]:
    """Return a per-body tuple with the entry of body i replaced."""
    return tuple(entry if k == i else x for k, x in enumerate(row))


def _with_spec(tree: AnyTree, spec: JointSpec) -> AnyTree:
    """Return the robot with a joint of its description replaced by `spec`."""
    description = tree.build.description
    joints = (spec if x.name == spec.name else x for x in description.joints)
    description = replace(description, joints=tuple(joints))
    return replace(tree, build=replace(tree.build, description=description))


def with_place(tree: AnyTree, name: str, what: str, values: Values) -> AnyTree:
    """Return the robot with another socket (origin) or plug of a joint.

    Everything on the child link moves with it: links that are fixed to it, and the
    joints on them.

    Args:
        tree: Robot.
        name: Name of the joint, which may be fixed.
        what: origin or plug.
        values: x y z roll pitch yaw in the parent (origin) or child (plug) link [m,
            rad].

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
    """Return the transform from the child link's frame to the plug of a joint."""
    return origin(spec.plug_xyz, spec.plug_rpy)


def _place_in_body(tree: Tree, old: JointSpec, spec: JointSpec) -> Transform:
    """Return the transform from the body to the child link of a fixed or locked joint.

    Args:
        tree: Robot before the change.
        old, spec: Joint before and after the change.
    """
    above, here = tree.frames[spec.parent].X, tree.frames[spec.child].X
    if spec.kind == "fixed":
        return _plug(spec).inverse @ origin(spec.xyz, spec.rpy) @ above
    across = _plug(old) @ here @ above.inverse @ origin(old.xyz, old.rpy).inverse
    return _plug(spec).inverse @ across @ origin(spec.xyz, spec.rpy) @ above


def _rehung(tree: AnyTree, link: str, X: Transform) -> AnyTree:
    """Return the robot with a link, and all links fixed to it, moved in its body.

    `X` is the new transform from the body to the link.
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
    """Return by joint the body whose Xtree has its placement.

    It is the body of its drive if the joint is driven.
    """
    numbers = {tree.names[i]: i for i in tree.bodies}
    return {name: numbers.get(f"{name}.drive", i) for name, i in numbers.items()}


def with_rule(tree: AnyTree, name: str, what: str, values: Values) -> AnyTree:
    """Return the robot with another ratio or offset of a follower.

    Joints that follow it change with it.

    Args:
        tree: Robot.
        name: Name of a joint with a rule.
        what: ratio or offset.
        values: Entries of the ratio, row by row, or offsets [rad | m].
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
    """Return whether the rule of joint `name` is in the chain of rules of `joint`."""
    while joint in specs and specs[joint].mimic is not None:
        if joint == name:
            return True
        joint = specs[joint].mimic.joint  # type: ignore[union-attr]
    return False


def _lead(specs: Mapping[str, JointSpec], joint: str, lead: Lead) -> Lead:
    """Return the Lead of a follower, with total ratio and offset of its chain of rules.

    `lead` gives the number of the independent body.
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
