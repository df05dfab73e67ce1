"""Checks of a Description; each error names the element and valid alternatives."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dyn_core.errors import ModelError, unknown_name
from dyn_core.model.description import Description, JointSpec
from dyn_core.model.joints import KINDS, Joint, make_joint
from dyn_core.validation import shown

_SHOWN = 12  # maximum number of names listed in an error


def check_tree(description: Description) -> tuple[str, dict[str, Joint]]:
    """Check a Description; return its root link and its moving joints' Joint objects.

    The objects are a dict by joint name in the description's order, with followers and
    without fixed joints. Rules of followers, inertias and loops are not checked here.
    """
    links = [link.name for link in description.links]
    check_unique("link", links)
    check_unique("joint", [joint.name for joint in description.joints])
    if not links:
        raise ModelError("the robot has no <link>; at least one is needed")
    above: dict[str, str] = {}
    made: dict[str, Joint | None] = {}
    known = set(links)
    for joint in description.joints:
        for role, link in (("parent", joint.parent), ("child", joint.child)):
            if link not in known:
                raise ModelError(
                    f"joint '{joint.name}': {role} link '{link}' does not exist;"
                    f" links are: {_listed(links)}",
                    joint.name,
                )
        if joint.child in above:
            raise ModelError(
                f"link '{joint.child}' is the child of two joints,"
                f" '{above[joint.child]}' and '{joint.name}'; a tree allows one",
                joint.child,
            )
        above[joint.child] = joint.name
        made[joint.name] = _check_joint(joint)
    roots = [link for link in links if link not in above]
    if len(roots) > 1:
        raise ModelError(
            f"the robot has {len(roots)} roots: {_listed(roots)}; every link but one"
            " must be the child of a joint",
            roots[1],
        )
    _no_cycle(description, roots)
    return roots[0], {name: joint for name, joint in made.items() if joint}


def _listed(names: Sequence[str]) -> str:
    """Return the first 12 names, joined by ", ", and the total number if more."""
    more = f", ... ({len(names)} in all)" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def check_unique(what: str, names: Sequence[str]) -> None:
    """Raise ModelError if a name (of `what`) is empty or occurs twice."""
    for name, count in Counter(names).items():
        if not name:
            raise ModelError(f"a <{what}> has no name")
        if count > 1:
            raise ModelError(
                f"two <{what}>s are called '{name}'; names must differ", name
            )


def _no_cycle(description: Description, roots: Sequence[str]) -> None:
    """Raise ModelError if a link is not below one of `roots`: it is in a cycle."""
    below: dict[str, list[str]] = {}
    for joint in description.joints:
        below.setdefault(joint.parent, []).append(joint.child)
    reached, front = set(roots), list(roots)
    while front:
        new = [link for link in below.get(front.pop(), ()) if link not in reached]
        reached.update(new)
        front += new
    rest = [link.name for link in description.links if link.name not in reached]
    if rest:
        raise ModelError(
            f"the links {_listed(rest)} form a cycle that no root reaches; a closed"
            " loop is cut at one joint",
            rest[0],
        )


def _check_joint(joint: JointSpec) -> Joint | None:
    """Check one joint and its factors; return its Joint object, None if it is fixed.

    The spring of a fixed joint is not checked, its numbers and limits are.
    """
    name, kind = joint.name, joint.kind
    if kind != "fixed" and kind not in KINDS:
        valid = ", ".join(["fixed", *KINDS])
        raise ModelError(f"joint '{name}': unknown type '{kind}'; valid: {valid}", name)
    numbers = _numbers(joint)
    if not math.isfinite(sum(map(sum, numbers))):  # an overflow is looked at, too
        _refuse_infinite(joint, numbers)
    _check_limits(joint)
    _check_axes(joint)
    if kind == "product":
        if not joint.factors:
            raise ModelError(
                f"joint '{name}': a product needs a list of one or more factors", name
            )
        for factor in joint.factors:
            if _check_joint(factor) is None:
                raise ModelError(
                    f"joint '{name}': a fixed joint cannot be a factor of a product;"
                    f" valid: {', '.join(KINDS)}",
                    name,
                )
    return None if kind == "fixed" else _check_numbers(joint)


_NUMBERS = (
    "origin xyz", "origin rpy", "plug xyz", "plug rpy", "axis", "pitch", "axes",
    "damping", "friction", "armature", "effort limit", "stribeck",
)  # fmt: skip


def _numbers(joint: JointSpec) -> tuple[tuple[float, ...], ...]:
    """Return the numbers of a joint that must be finite, in the order of _NUMBERS."""
    return (
        joint.xyz,
        joint.rpy,
        joint.plug_xyz,
        joint.plug_rpy,
        joint.axis,
        (joint.pitch,),
        tuple(x for axis in joint.axes for x in axis),
        (joint.damping,),
        (joint.friction, joint.friction_asymmetry, joint.friction_speed),
        (joint.armature,),
        (joint.effort,),
        (joint.stribeck, joint.stribeck_speed),
    )


def _refuse_infinite(joint: JointSpec, numbers: Sequence[tuple[float, ...]]) -> None:
    """Raise ModelError for the first of `_numbers` that is not finite, if any."""
    for what, values in zip(_NUMBERS, numbers, strict=True):
        if not all(math.isfinite(x) for x in values):
            name = joint.name
            raise ModelError(f"joint '{name}': {what} is not finite: {values}", name)


def _check_limits(joint: JointSpec) -> None:
    name, kind = joint.name, joint.kind
    for what in (
        "damping", "friction", "armature", "effort", "velocity", "acceleration",
        "deceleration", "jerk", "stribeck",
    ):  # fmt: skip
        value = getattr(joint, what)
        if not value >= 0:
            raise ModelError(f"joint '{name}': {what} {value} must be >= 0", name)
    for what in ("friction_speed", "stribeck_speed"):
        speed = getattr(joint, what)
        if not speed > 0:
            raise ModelError(f"joint '{name}': {what} {speed} must be > 0", name)
    check_friction(name, joint.friction, joint.friction_asymmetry)
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


def check_friction(name: str, mean: float, half: float) -> None:
    """Refuse friction (mean, half the difference) negative or NaN in one direction."""
    if not abs(half) <= mean:
        both = [mean + half, mean - half]
        raise ModelError(
            f"joint '{name}': friction {both} must be >= 0 in both directions", name
        )


_WITH_AXIS = (
    "revolute", "continuous", "prismatic", "helical", "cylindrical", "planar",
)  # fmt: skip


def _check_axes(joint: JointSpec) -> None:
    """Raise ModelError for an axis shorter than 1e-9, or parallel universal axes."""
    axes = {"universal": joint.axes}.get(joint.kind, (joint.axis,))
    if joint.kind not in (*_WITH_AXIS, "universal"):
        return
    for axis in axes:
        if math.hypot(*axis) < 1e-9:
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


def _check_numbers(joint: JointSpec) -> Joint:
    """Return the Joint object of a specification, after checks of its spring."""
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
    return made


def check_joint_names(
    what: str, names: Iterable[str], description: Description
) -> None:
    """Raise ModelError if a name, from `what`, is of no joint of the description."""
    known = [joint.name for joint in description.joints]
    for name in names:
        if name not in known:
            raise ModelError(f"{what}: {unknown_name('joint', name, known)}", name)


def check_choices(check: Any, lock: Any) -> None:
    """Raise ModelError unless `check` is error or warn and `lock` a mapping or None."""
    if not isinstance(check, str) or check not in ("error", "warn"):
        raise ModelError(f"check '{check}': valid are error, warn")
    if lock is not None and not isinstance(lock, Mapping):
        valid = "a mapping from joint to position"
        raise ModelError(f"lock is {shown(lock)}; valid: {valid}")


def check_gravity(gravity: Any) -> tuple[float, ...]:
    """Return a gravity acceleration, three finite numbers [m/s²], as a tuple."""
    try:
        g = () if isinstance(gravity, str) else tuple(float(x) for x in gravity)
    except (TypeError, ValueError, OverflowError):
        g = ()
    if len(g) != 3 or not all(math.isfinite(x) for x in g):
        raise ModelError(f"gravity needs three finite numbers, got {gravity!r}")
    return g
