"""Checks of joints as the file has them: axes, origins, limits, units, followers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator

from dyn_core.reports.doctor.facts import (
    LIMITED,
    ONE_AXIS,
    JointFacts,
    RobotFacts,
)
from dyn_core.reports.doctor.report import Met

TURNS = 20.0  # larger angles are no limits in radians [rad]
ENDLESS = 1e4  # larger limits mean that there is none [rad]
FAST = 90.0  # larger joint speeds are implausible for a gear [rad/s]
ALMOST = 2e-3  # maximum angle that counts as a rounding error [rad]
ROUNDING = 1e-5  # smaller angles are not worth a hint [rad]
LONG, ABSURD = 10.0, 100.0  # doubtful and impossible lengths between joints [m]
ROTATED = 2 * math.pi + 0.01  # maximum angle of an origin [rad]


def check_joints(robot: RobotFacts) -> Iterator[Met]:
    """Yield the findings about the joints of a file."""
    yield from _tree(robot)
    for joint in robot.joints:
        owner = f"joint '{joint.name}'"
        for check in _CHECKS:
            for code, what in check(joint):
                yield Met(code, owner, what)
    yield from _units(robot)
    yield from _chains(robot)


def _tree(robot: RobotFacts) -> Iterator[Met]:
    """Yield every reason why links and joints do not form a tree."""
    for what, parts in (("link", robot.links), ("joint", robot.joints)):
        for name, count in Counter(part.name for part in parts).items():
            if count > 1:
                yield Met("broken-tree", f"{what} '{name}'", f"is there {count} times")
    links = {link.name for link in robot.links}
    above: dict[str, str] = {}
    for joint in robot.joints:
        for role, link in (("parent", joint.parent), ("child", joint.child)):
            if link not in links and link != "world":
                fact = f"{role} link '{link}' does not exist"
                yield Met("broken-tree", f"joint '{joint.name}'", fact)
        if joint.child in above:
            pair = f"'{above[joint.child]}' and '{joint.name}'"
            fact = f"is the child of {pair}"
            yield Met("broken-tree", f"link '{joint.child}'", fact)
        above[joint.child] = joint.name
    roots = [link.name for link in robot.links if link.name not in above]
    if robot.links and len(roots) != 1:
        shown = ", ".join(f"'{name}'" for name in roots[:6]) or "none: it is a circle"
        yield Met("broken-tree", "", f"{len(roots)} roots: {shown}")


Problems = Iterator[tuple[str, str]]


def _axis(joint: JointFacts) -> Problems:
    """Yield code and fact of doubts about the direction of an axis."""
    if joint.kind not in (*ONE_AXIS, "cylindrical", "planar") or joint.axis is None:
        return
    shown = " ".join(f"{x:g}" for x in joint.axis)
    length = math.hypot(*joint.axis)
    if length < 1e-9:  # divisor below
        yield "zero-axis", f"axis {shown}"
        return
    if abs(length - 1) > 1e-3:
        yield "axis-not-unit", f"axis {shown} has length {length:.4g}"
    across = [abs(x) / length for x in joint.axis]
    across.remove(max(across))
    tilt = math.hypot(*across)
    if 0.0 < tilt < ALMOST:
        yield "axis-almost-straight", f"axis {shown} is tilted by {tilt:.1e} rad"


def _origin(joint: JointFacts) -> Problems:
    """Yield code and fact of doubts about the origin of a joint."""
    distance = math.hypot(*joint.xyz)
    if distance >= ABSURD:
        yield "far-origin", f"{distance:.6g} m from its parent link"
    if max(map(abs, joint.rpy)) > ROTATED:
        shown = " ".join(f"{x:g}" for x in joint.rpy)
        yield "angles-in-degrees", f'rpy="{shown}"'
        return
    for angle in joint.rpy:
        rest = abs(math.remainder(angle, math.pi / 2))
        if ROUNDING < rest < ALMOST and abs(angle) > 1.0:
            yield "rounded-angle", f"{angle!r} is {rest:.1e} rad off a quarter turn"


def _limits(joint: JointFacts) -> Problems:
    """Yield code and fact of doubts about the limits of a joint."""
    if joint.kind not in (*LIMITED, "continuous") or joint.mimic is not None:
        return
    low, high = joint.range
    if joint.kind in LIMITED:
        if not joint.limited:
            yield "missing-limits", f"{joint.kind} without limits"
        elif low > high:
            yield "reversed-limits", f"lower {low:g}, upper {high:g}"
        elif low == high:
            yield "zero-range", f"lower and upper {low:g}"
        elif low > 0 or high < 0:
            yield "neutral-outside", f"[{low:g}, {high:g}]"
    if joint.passive:
        return
    if not joint.limits.get("effort"):
        yield "no-effort-limit", _absent(joint, "effort")
    if not joint.limits.get("velocity"):
        yield "no-velocity-limit", _absent(joint, "velocity")


def _absent(joint: JointFacts, what: str) -> str:
    """Return why the limit `what` is missing: 0 or not given."""
    return f"{what} is {'0' if what in joint.limits else 'not given'}"


def _angles(joint: JointFacts) -> Problems:
    """Yield code and fact of limits of a revolute joint that look like degrees."""
    if joint.kind not in ("revolute", "continuous"):
        return
    low, high = joint.range
    wide = [x for x in (low, high) if TURNS < abs(x) < ENDLESS]
    if wide and joint.kind == "revolute":
        yield "limits-in-degrees", f"[{low:g}, {high:g}] rad"
    speed = joint.limits.get("velocity", 0.0)
    if wide and FAST < speed < ENDLESS:
        yield "limits-in-degrees", f"velocity {speed:g} rad/s"


def _rule(joint: JointFacts) -> Problems:
    """Yield code and fact of a mimic rule with multiplier 0."""
    if joint.mimic is not None and joint.mimic[1] == 0.0 and joint.kind != "fixed":
        yield "zero-mimic", f"follows '{joint.mimic[0]}' with multiplier 0"


_CHECKS: tuple[Callable[[JointFacts], Problems], ...] = (
    _axis, _origin, _limits, _angles, _rule,
)  # fmt: skip


def _units(robot: RobotFacts) -> Iterator[Met]:
    """Yield lengths of a robot that look like millimetres."""
    lengths = [math.hypot(*joint.xyz) for joint in robot.joints]
    apart = sorted(x for x in lengths if x > 0)
    if apart and apart[len(apart) // 2] > LONG:
        what = f"half of the joints are more than {apart[len(apart) // 2]:g} m from"
        yield Met("lengths-in-millimetres", "", f"{what} their parents")
    for joint in robot.joints:
        low, high = joint.range
        longest = max(abs(low), abs(high))
        if joint.kind == "prismatic" and LONG < longest < ENDLESS:
            what = f"slides from {low:g} to {high:g} m"
            yield Met("lengths-in-millimetres", f"joint '{joint.name}'", what)


def _chains(robot: RobotFacts) -> Iterator[Met]:
    """Yield followers whose leader is missing, fixed or a follower, and circles."""
    joints = {joint.name: joint for joint in robot.joints}
    for joint in robot.joints:
        if joint.mimic is None or joint.kind == "fixed":
            continue
        path, name = [joint.name], joint.mimic[0]
        while name in joints and name not in path:
            path.append(name)
            rule = joints[name].mimic
            if rule is None:
                break
            name = rule[0]
        owner, way = f"joint '{joint.name}'", " -> ".join([*path, name])
        if name not in joints:
            yield Met("lost-mimic", owner, f"'{name}' does not exist")
        elif joints[name].kind == "fixed":
            yield Met("lost-mimic", owner, f"'{name}' is fixed")
        elif joints[name].mimic is not None:
            yield Met("lost-mimic", owner, f"goes in a circle: {way}")
        elif len(path) > 2:
            yield Met("mimic-chain", owner, " -> ".join(path))
