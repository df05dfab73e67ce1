"""Checks of followers: each must lead to an independent joint of matching size."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from dyn_core.errors import ModelError
from dyn_core.model.checks.findings import Findings
from dyn_core.model.description import Description, JointSpec, Mimic
from dyn_core.model.joints import Joint, make_joint


def without_lost_rules(
    joints: Sequence[JointSpec], findings: Findings
) -> tuple[JointSpec, ...]:
    """Return the joints without <mimic> elements that lead nowhere or in a circle.

    Each such element, also of an unknown or fixed leader, is a finding. Of a circle,
    only the first joint in order loses its rule: the others then follow it.
    """
    specs = {joint.name: joint for joint in joints}
    lost = set()
    for joint in joints:
        reason = _lost(joint.name, specs)
        if reason is not None:
            instead = "its <mimic> is left out: the joint is free"
            findings.doubt("joint", joint.name, f"mimics {reason}", instead)
            specs[joint.name] = replace(joint, mimic=None)
            lost.add(joint.name)
    return tuple(replace(x, mimic=None) if x.name in lost else x for x in joints)


def _lost(name: str, specs: Mapping[str, JointSpec]) -> str | None:
    """Return why the rule of a joint leads nowhere, in words; None if it is fine.

    It leads nowhere if its leader does not exist or is fixed, or if the leaders form a
    circle through the joint itself. The result is None for a joint without a rule.
    """
    rule = specs[name].mimic
    if rule is None:
        return None
    if rule.joint not in specs:
        return f"'{rule.joint}', which does not exist"
    if specs[rule.joint].kind == "fixed":
        return f"'{rule.joint}', which is fixed"
    path = {name: None}
    while rule is not None and rule.joint in specs and rule.joint not in path:
        path[rule.joint] = None
        rule = specs[rule.joint].mimic
    if rule is None or rule.joint != name:
        return None
    circle = " -> ".join([*path, name])
    return f"{'itself' if len(path) == 1 else 'in a circle'} ({circle})"


def check_mimics(description: Description, replaced: Mapping[str, Joint]) -> None:
    """Check that every follower leads to an independent joint of matching size.

    `replaced` are joint objects of the user by name (Model.with_joint). A follower or
    leader that is fixed or has quaternions is refused.
    """
    joints = {joint.name: joint for joint in description.joints}
    good: set[str] = set()  # joints that lead to an independent one
    for joint in description.joints:
        follower, path = joint, {joint.name: None}
        while follower.mimic is not None and follower.name not in good:
            leader = _check_rule(follower, follower.mimic, joints)
            if leader.name in path:
                circle = " -> ".join([*path, leader.name])
                what = "itself" if leader.name == joint.name else "in a circle"
                raise ModelError(
                    f"joint '{joint.name}' mimics {what} ({circle}); a follower must"
                    " lead to an independent joint",
                    joint.name,
                )
            path[leader.name] = None
            follower = leader
        good.update(path)
        if joint.mimic is not None:
            leader = joints[joint.mimic.joint]
            _check_ratio(joint, joint.mimic, leader, replaced)


def _check_rule(
    follower: JointSpec, rule: Mimic, joints: Mapping[str, JointSpec]
) -> JointSpec:
    """Return the leader of a follower, if it exists and the rule is finite."""
    numbers = [x for row in rule.ratio.rows for x in row] + list(rule.shift)
    if not all(math.isfinite(x) for x in numbers):
        raise ModelError(f"joint '{follower.name}': mimic is not finite", follower.name)
    if rule.joint not in joints:
        known = ", ".join(joints)
        raise ModelError(
            f"joint '{follower.name}' mimics '{rule.joint}', which does not exist;"
            f" joints are: {known}",
            follower.name,
        )
    return joints[rule.joint]


def _check_ratio(
    follower: JointSpec, rule: Mimic, leader: JointSpec, replaced: Mapping[str, Joint]
) -> None:
    """Refuse a rule of fixed joints or quaternions, or one of another size than theirs.

    `replaced` are the joint objects of the user by name.
    """
    sizes = []
    for joint in (follower, leader):
        made = replaced.get(joint.name)
        if made is None and joint.kind != "fixed":
            made = make_joint(joint)
        if made is None or made.nq != made.nv:
            raise ModelError(
                f"joint '{follower.name}' follows '{leader.name}', but"
                f" '{joint.name}' is {joint.kind}; couplings need joints whose"
                " positions are numbers, such as revolute, prismatic, planar, ball_rpy",
                follower.name,
            )
        sizes.append(made.nv)
    got = (len(rule.ratio.rows), *{len(row) for row in rule.ratio.rows})
    if got != tuple(sizes) or len(rule.shift) != sizes[0]:
        raise ModelError(
            f"joint '{follower.name}' ({follower.kind}) follows '{leader.name}'"
            f" ({leader.kind}): the ratio needs {sizes[0]} rows of {sizes[1]} numbers"
            f" and the offset {sizes[0]}, got {got} and {len(rule.shift)}",
            follower.name,
        )
