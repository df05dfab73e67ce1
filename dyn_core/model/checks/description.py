"""Checks of a Description: each error names the element and what would be valid."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from dyn_core.errors import ModelError, unknown_name
from dyn_core.model.description import Description, JointSpec, LinkSpec, Mimic
from dyn_core.model.joints import KINDS, Joint, make_joint
from dyn_core.spatial import RigidInertia

TRIANGLE = 1e-9  # relative slack of the triangle inequality


def check_tree(description: Description) -> str:
    """Check that links and joints form one tree; return its root."""
    links = [link.name for link in description.links]
    check_unique("link", links)
    check_unique("joint", [joint.name for joint in description.joints])
    if not links:
        raise ModelError("the robot has no <link>; at least one is needed")
    above: dict[str, str] = {}
    for joint in description.joints:
        for role, link in (("parent", joint.parent), ("child", joint.child)):
            if link not in links:
                known = ", ".join(links)
                raise ModelError(
                    f"joint '{joint.name}': {role} link '{link}' does not exist;"
                    f" links are: {known}",
                    joint.name,
                )
        if joint.child in above:
            raise ModelError(
                f"link '{joint.child}' is the child of two joints,"
                f" '{above[joint.child]}' and '{joint.name}'; a tree allows one",
                joint.child,
            )
        above[joint.child] = joint.name
        _check_joint(joint)
    roots = [link for link in links if link not in above]
    if len(roots) > 1:
        raise ModelError(
            f"the robot has {len(roots)} roots: {', '.join(roots)}; every link but one"
            " must be the child of a joint",
            roots[1],
        )
    _no_cycle(description, roots)
    return roots[0]


def check_unique(what: str, names: list[str]) -> None:
    """Check that each element has a name, and names differ."""
    for name in names:
        if not name:
            raise ModelError(f"a <{what}> has no name")
        if names.count(name) > 1:
            raise ModelError(
                f"two <{what}>s are called '{name}'; names must differ", name
            )


def _no_cycle(description: Description, roots: list[str]) -> None:
    """Check that a root reaches every link."""
    reached, front = set(roots), list(roots)
    while front:
        link = front.pop()
        for joint in description.joints:
            if joint.parent == link and joint.child not in reached:
                reached.add(joint.child)
                front.append(joint.child)
    rest = [link.name for link in description.links if link.name not in reached]
    if rest:
        raise ModelError(
            f"the links {', '.join(rest)} form a cycle that no root reaches; a closed"
            " loop is cut at one joint",
            rest[0],
        )


def _check_joint(joint: JointSpec) -> None:
    """Check the numbers of one joint."""
    name, kind = joint.name, joint.kind
    if kind != "fixed" and kind not in KINDS:
        valid = ", ".join(["fixed", *KINDS])
        raise ModelError(f"joint '{name}': unknown type '{kind}'; valid: {valid}", name)
    numbers = {
        "origin xyz": joint.xyz,
        "origin rpy": joint.rpy,
        "plug xyz": joint.plug_xyz,
        "plug rpy": joint.plug_rpy,
        "axis": joint.axis,
        "pitch": (joint.pitch,),
        "axes": tuple(x for axis in joint.axes for x in axis),
        "damping": (joint.damping,),
        "friction": (joint.friction,),
        "armature": (joint.armature,),
        "effort limit": (joint.effort,),
    }
    for what, values in numbers.items():
        if not all(math.isfinite(x) for x in values):
            raise ModelError(f"joint '{name}': {what} is not finite: {values}", name)
    _check_limits(joint)
    _check_axes(joint)
    if kind == "product":
        if not joint.factors:
            raise ModelError(
                f"joint '{name}': a product needs a list of one or more factors", name
            )
        for factor in joint.factors:
            _check_joint(factor)
    if kind != "fixed":
        _check_numbers(joint)


def _check_limits(joint: JointSpec) -> None:
    """Check signs, and that lower limits are below upper ones."""
    name, kind = joint.name, joint.kind
    for what in ("damping", "friction", "armature", "effort", "velocity"):
        value = getattr(joint, what)
        if not value >= 0:
            raise ModelError(f"joint '{name}': {what} {value} must be >= 0", name)
    if math.isnan(joint.lower) or math.isnan(joint.upper) or joint.lower > joint.upper:
        raise ModelError(
            f"joint '{name}': limits need lower <= upper, got {joint.lower} and"
            f" {joint.upper}",
            name,
        )
    low, high = joint.twist
    if not (0 < joint.swing and low <= high):
        raise ModelError(
            f"joint '{name}': a ball's limits need swing > 0 and twist lower <= upper,"
            f" got {joint.swing} and {joint.twist}",
            name,
        )
    if (math.isfinite(joint.swing) or math.isfinite(low) or math.isfinite(high)) and (
        kind not in ("spherical", "ball_rpy")
    ):
        raise ModelError(
            f"joint '{name}': swing and twist limits are for spherical and ball_rpy"
            f" joints; this one is {kind}",
            name,
        )


_WITH_AXIS = (
    "revolute", "continuous", "prismatic", "helical", "cylindrical", "planar",
)  # fmt: skip


def _check_axes(joint: JointSpec) -> None:
    """Check that each axis has a direction, and those of a universal joint cross."""
    axes = {"universal": joint.axes}.get(joint.kind, (joint.axis,))
    if joint.kind not in (*_WITH_AXIS, "universal"):
        return
    for axis in axes:
        if np.linalg.norm(axis) < 1e-9:
            raise ModelError(
                f"joint '{joint.name}': axis {axis} has no direction; give a vector"
                " that is not zero",
                joint.name,
            )
    if joint.kind == "universal" and (
        len(axes) != 2 or np.linalg.norm(np.cross(*axes)) < 1e-9
    ):
        raise ModelError(
            f"joint '{joint.name}': a universal joint needs two axes that are not"
            f" parallel, got {axes}",
            joint.name,
        )


def _check_numbers(joint: JointSpec) -> None:
    """Check that the joint can be made, and its spring fits it."""
    name = joint.name
    try:
        made = make_joint(joint)
    except ModelError as error:
        raise ModelError(f"joint '{name}': {error}", name) from error
    rest = joint.rest if isinstance(joint.rest, tuple) else (joint.rest,) * made.nv
    if not (math.isfinite(joint.stiffness) and joint.stiffness >= 0):
        raise ModelError(
            f"joint '{name}': stiffness {joint.stiffness} must be finite and >= 0", name
        )
    if len(rest) != made.nv or not all(math.isfinite(x) for x in rest):
        raise ModelError(
            f"joint '{name}': rest needs {made.nv} finite numbers, got {joint.rest}",
            name,
        )
    if joint.stiffness and made.nq != made.nv:
        raise ModelError(
            f"joint '{name}': a {joint.kind} joint has no coordinates for a spring;"
            " valid: joints whose positions are numbers, or model.with_forces",
            name,
        )


def check_joint_names(
    what: str, names: Iterable[str], description: Description
) -> None:
    """Check that joints of the description have these names."""
    known = [joint.name for joint in description.joints]
    for name in names:
        if name not in known:
            raise ModelError(f"{what}: {unknown_name('joint', name, known)}", name)


def check_mimics(description: Description, replaced: Mapping[str, Joint]) -> None:
    """Check that every follower leads to an independent joint that it can follow.

    Args:
        description: Robot.
        replaced: Joints given as objects, by name (Model.with_joint).
    """
    joints = {joint.name: joint for joint in description.joints}
    for joint in description.joints:
        follower, path = joint, [joint.name]
        while follower.mimic is not None:
            leader = _check_rule(follower, follower.mimic, joints)
            path.append(leader.name)
            if leader.name in path[:-1]:
                circle = " -> ".join(path)
                what = "itself" if leader.name == joint.name else "in a circle"
                raise ModelError(
                    f"joint '{joint.name}' mimics {what} ({circle}); a follower must"
                    " lead to an independent joint",
                    joint.name,
                )
            follower = leader
        if joint.mimic is not None:
            leader = joints[joint.mimic.joint]
            _check_ratio(joint, joint.mimic, leader, replaced)


def _check_rule(
    follower: JointSpec, rule: Mimic, joints: Mapping[str, JointSpec]
) -> JointSpec:
    """Check the numbers of a follower's rule; return its leader."""
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
    """Check that the ratio of a mimic joint or gear fits its two joints."""
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


def inertia_warnings(description: Description, strict: bool) -> list[str]:
    """Check the inertia of every link; return warnings where not strict."""
    warnings = []
    for link in description.links:
        fault = _fault(link)
        if fault is None:
            continue
        message = f"link '{link.name}': {fault}"
        numbers = link.inertia.parameters
        if strict or not np.isfinite(numbers).all() or link.inertia.m < 0:
            raise ModelError(message, link.name)
        warnings.append(message)
    return warnings


def _fault(link: LinkSpec) -> str | None:
    """Return what is wrong with an inertia, or None."""
    I: RigidInertia = link.inertia
    if not np.isfinite(I.parameters).all():
        return f"inertia holds a number that is not finite: {I.parameters}"
    if I.m < 0:
        return f"mass {I.m} is negative; it must be >= 0"
    moments = np.linalg.eigvalsh(np.asarray(I.Ic, float))
    shown = ", ".join(f"{x:.6g}" for x in moments)
    far = I.m * sum(float(x) * float(x) for x in I.c)
    slack = TRIANGLE * max(abs(moments[2]), 1e-3 * far, 1e-300)
    if I.m == 0:
        if np.abs(moments).max() > 0:
            return f"mass is 0 but principal moments are {shown}; they must be 0 too"
        return None
    if moments[0] < -slack:
        return f"inertia is not positive definite: principal moments {shown} kg·m²"
    if moments[0] + moments[1] < moments[2] - slack:
        return (
            f"inertia breaks the triangle inequality: principal moments {shown} kg·m²"
            " (each must be at most the sum of the others); check='warn' lets it pass"
        )
    return None
