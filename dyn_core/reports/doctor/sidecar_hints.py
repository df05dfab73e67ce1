"""Properties that URDF lacks and the sidecar has: hints with the lines to paste."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dyn_core.model.frames import origin
from dyn_core.reports.doctor.facts import LIMITED, ONE_AXIS, JointFacts, RobotFacts
from dyn_core.reports.doctor.report import Met
from dyn_core.validation.quoting import yaml_text

ACROSS = 0.05  # maximum cosine of axes that count as perpendicular
SAME_PLACE = 1e-4  # maximum distance of the axes of a ball joint [m]
_RESISTANCE = ("N·m·s/rad, N·m", "N·s/m, N")  # units of damping and friction


def check_sidecar(robot: RobotFacts) -> Iterator[Met]:
    """Yield hints about properties that a sidecar could add to a robot."""
    free = [x for x in robot.joints if x.mimic is None and not x.passive]
    driven = [x for x in free if x.kind in ONE_AXIS]
    weak = [x for x in driven if x.kind != "helical" and not x.limits.get("effort")]
    if weak:
        lines = _entries("joints", weak, "{effort: 10.0}", "N·m", "N")
        yield Met("no-effort-limit", *_first_effort(weak[0]), lines)
    turning = [x for x in driven if x.limits.get("effort")]
    geared = [joint for joint in turning if joint.kind != "prismatic"]
    if geared and not any(joint.drive[2] for joint in robot.joints):
        lines = _entries("rotors", geared, "{inertia: 1.0e-5, ratio: 100}", "kg·m²")
        what = f"armature is 0 at {len(geared)} joints"
        yield Met("sidecar-rotors", "", what, lines)
    if turning and not any(any(joint.drive[:2]) for joint in robot.joints):
        what = f"damping and friction are 0 at {len(turning)} joints"
        lines = _entries(
            "joints", turning, "{damping: 0.1, friction: 0.1}", *_RESISTANCE
        )
        yield Met("sidecar-friction", "", what, lines)
    yield from _balls(robot)
    yield from _fingers(robot)


def _first_effort(joint: JointFacts) -> tuple[str, str]:
    """Return owner and fact of a joint without effort limit, equal to check_joints.

    The report then merges both findings.
    """
    absent = "0" if "effort" in joint.limits else "not given"
    return f"joint '{joint.name}'", f"effort is {absent}"


def _entries(
    section: str, joints: Sequence[JointFacts], entry: str, *units: str
) -> str:
    """Return a section of YAML with the same entry for each joint.

    Args:
        section: Name of the section.
        joints: Joints.
        entry: Entry of each joint, in YAML.
        units: Units of rotating joints, then of sliding joints, for comments.
    """
    lines = [f"{section}:"]
    for joint in joints:
        unit = units[joint.kind == "prismatic"]
        lines.append(f"  {yaml_text(joint.name)}: {entry}  # {unit}")
    return "\n".join(lines)


def _balls(robot: RobotFacts) -> Iterator[Met]:
    """Yield three revolute joints whose axes cross, without mass between them."""
    masses = {link.name: link.mass for link in robot.links}
    below: dict[str, list[JointFacts]] = {}
    for joint in robot.joints:
        below.setdefault(joint.parent, []).append(joint)
    for first in robot.joints:
        chain = [first]
        while len(chain) < 3 and len(below.get(chain[-1].child, ())) == 1:
            chain.append(below[chain[-1].child][0])
        between = [masses.get(joint.child, 1.0) for joint in chain[:-1]]
        plain = all(x.kind in ("revolute", "continuous") for x in chain)
        if len(chain) < 3 or any(between) or not plain or any(x.mimic for x in chain):
            continue
        apart = max(float(np.linalg.norm(joint.xyz)) for joint in chain[1:])
        if apart > SAME_PLACE or not _all_cross(chain):
            continue
        a, b, c = (yaml_text(joint.name) for joint in chain)
        names = ", ".join(f"'{joint.name}'" for joint in chain)
        lines = f"joints:\n  {a}: {{type: fixed}}\n  {b}: {{type: fixed}}\n"
        lines += f"  {c}: {{type: spherical}}"
        yield Met("sidecar-ball", f"joints {names}", "axes cross in one point", lines)


def _all_cross(chain: Sequence[JointFacts]) -> bool:
    """Return whether each axis is perpendicular to the previous one, at zero.

    False if a joint has no axis.
    """
    for one, other in zip(chain, chain[1:], strict=False):
        if one.axis is None or other.axis is None:
            return False
        R = np.array(origin((0.0, 0.0, 0.0), other.rpy).pose[0].rows, float)
        a, b = np.array(one.axis), R @ np.array(other.axis)
        if abs(a @ b) > ACROSS * np.linalg.norm(a) * np.linalg.norm(b):
            return False
    return True


def _fingers(robot: RobotFacts) -> Iterator[Met]:
    """Yield pairs of sliding joints on one link with equal ranges and no mimic rule."""
    parents = {joint.parent for joint in robot.joints}
    sliding: dict[tuple, list[JointFacts]] = {}
    for joint in robot.joints:
        if joint.kind == LIMITED[1] and joint.child not in parents:
            low, high = joint.range
            span = round(abs(high - low), 9)
            sliding.setdefault((joint.parent, span), []).append(joint)
    for (parent, span), pair in sliding.items():
        free = all(joint.mimic is None for joint in pair)
        if len(pair) == 2 and free and 0 < span < 0.3:
            ratio = 1.0 if pair[0].range == pair[1].range else -1.0
            a, b = (yaml_text(joint.name) for joint in pair)
            lines = f"gears:\n  - {{joints: [{a}, {b}], ratio: {ratio}}}"
            names = " and ".join(f"'{joint.name}'" for joint in pair)
            what = f"both slide {span:g} m on link '{parent}'"
            yield Met("sidecar-gear", f"joints {names}", what, lines)
