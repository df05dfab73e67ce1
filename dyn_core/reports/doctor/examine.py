"""The examination of a robot: every check that its file, or its Model, allows.

Properties that URDF lacks and the sidecar has are hints with the lines to paste.
"""

from __future__ import annotations

import inspect
import json
import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dyn_core.errors import (
    DynError,
    ModelError,
    ModelWarning,
    SettingError,
    UnsupportedError,
    unknown_name,
)
from dyn_core.model import Model, load
from dyn_core.model.checks.findings import Hint
from dyn_core.model.frames import origin
from dyn_core.model.sources.loading import read_robot
from dyn_core.model.sources.locate import locate
from dyn_core.model.sources.origin import Origin
from dyn_core.model.urdf_xml.xml_text import Source, parse_xml
from dyn_core.reports.doctor.checks import (
    check_joints,
    check_links,
    check_motions,
    sampled,
)
from dyn_core.reports.doctor.facts import (
    LIMITED,
    ONE_AXIS,
    JointFacts,
    RobotFacts,
    bodies,
    completed,
    of_description,
    of_xml,
)
from dyn_core.reports.doctor.report import Met, RobotReport, ranked
from dyn_core.reports.doctor.solids import Solids
from dyn_core.validation import Whole, shown
from dyn_core.validation.quoting import yaml_text

ACROSS = 0.05  # maximum cosine of axes that count as perpendicular
SAME_PLACE = 1e-4  # maximum distance of the axes of a ball joint [m]
_RESISTANCE = ("N·m·s/rad, N·m", "N·s/m, N")  # units of damping and friction


def check_sidecar(robot: RobotFacts) -> Iterator[Met]:
    """Yield findings about properties that a sidecar could add to a robot.

    They have lines to paste. Effort limits, rotors and friction are for joints of one
    axis with a motor that follow no other: effort limits where there is none, except
    helical joints; the others where there is one, rotors not for prismatic joints.
    Rotors are proposed only if no joint of the robot has armature, friction only if
    none has damping or dry friction.
    """
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
    """Return owner and fact as check_joints does, so that the report merges both."""
    absent = "0" if "effort" in joint.limits else "not given"
    return f"joint '{joint.name}'", f"effort is {absent}"


def _entries(
    section: str, joints: Sequence[JointFacts], entry: str, *units: str
) -> str:
    """Return a section of YAML with the same entry for each joint.

    `units` are for the comments: of rotating joints, then of prismatic ones.
    """
    lines = [f"{section}:"]
    for joint in joints:
        unit = units[joint.kind == "prismatic"]
        lines.append(f"  {yaml_text(joint.name)}: {entry}  # {unit}")
    return "\n".join(lines)


def _balls(robot: RobotFacts) -> Iterator[Met]:
    """Yield findings of three revolute joints in a row that act as a ball joint.

    Adjacent axes are perpendicular and cross in one point, and the links between have
    no mass and carry nothing else. The lines make the first two fixed, the third
    spherical.
    """
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
    """Return whether each axis is perpendicular to the previous one at zero angles.

    A zero axis counts as perpendicular to any. Each joint is the parent of the next.
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
    """Yield findings of two sliding joints on one link that could be coupled.

    Their child links have no joints, and their ranges are equally long. A third such
    joint on the link, even a follower, rules the pair out. The lines are a gear.
    """
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


_OPTIONS = tuple(inspect.signature(load).parameters)[1:]
# Parts of warnings of loading that checks in this folder report in more detail.
_SAID = (
    "is not positive definite", "breaks the triangle inequality",
    "mass is 0 but principal moments", "without <limit>; taken as free",
    "limits need lower <= upper", "limit 0 is read as none", "has inertia along",
    "its <mimic> is left out",
)  # fmt: skip
_UNUSED = ("is left out", "are left out", "no part of a Model", "is not kept")


class _Examined(NamedTuple):
    """A robot as far as it could be read; `met` says why reading or loading failed.

    `model` is None if loading fails; `facts`, of the file or Model, are None if the
    file cannot be parsed, or is an MJCF file that does not load.
    """

    model: Model | None
    facts: RobotFacts | None
    origin: Origin
    met: tuple[Met, ...] = ()


def doctor(
    robot: Model | Source,
    *,
    samples: int = 200,
    seed: int = 0,
    meshes: bool = True,
    **options: Any,
) -> RobotReport:
    """Return all doubts about a robot, errors first.

        report = dyn.doctor("robot.urdf")
        print(report)
        report.errors, report.warnings, report.hints

    A robot that does not load is examined as far as its file can be read; the reason is
    a finding, not an exception.

    Args:
        robot: Model, or an argument of dyn.load; a stream is read once.
        samples: Number of random positions within the limits, 1 to 100000.
        seed: Seed of the positions.
        meshes: Whether mesh files are read.
        options: Options of dyn.load; `check` is ignored. With a Model none is valid.

    Raises:
        ModelError: There is no such file or robot, it is of another type, or
            package_paths is not valid.
        SettingError: An option is unknown or out of range.
    """
    rules = ("samples", samples, Whole(1, 100_000)), ("seed", seed, Whole())
    for what, value, kind in rules:
        if not kind.takes(value):
            raise SettingError(f"{what} {shown(value)}; valid: {kind.valid}", what)
    valid = inspect.getfullargspec(doctor).kwonlyargs
    valid += () if isinstance(robot, Model) else _OPTIONS
    for option in options:
        if option not in valid:
            message = unknown_name("option", option, valid, "dyn.doctor", None)
            raise SettingError(message, option)
    if isinstance(robot, Model):
        return _report(_of_model(robot), samples, seed, meshes)
    return _report(_of_source(robot, options), samples, seed, meshes)


def _report(examined: _Examined, samples: int, seed: int, meshes: bool) -> RobotReport:
    """Return the report of all checks that apply to a robot as far as it was read."""
    model, facts, origin, met = examined
    messages, figures, notes = [*met], dict[str, str](), list[str]()
    if facts is not None:
        whole = {} if model is None else bodies(model)
        messages += check_joints(facts)
        messages += check_links(facts, Solids(origin, meshes), whole)
        figures |= _sizes(facts)
        notes += [] if meshes else ["meshes were not read, as asked for"]
    if facts is not None and model is not None:  # else its sidecar is not applied
        messages += check_sidecar(facts)
    if model is not None:
        messages += _loading(model)
        motions = sampled(model, samples, seed)
        messages += check_motions(motions)
        figures |= {
            "coordinates": f"nq {model.nq}, nv {model.nv}, {model.nb} moving bodies",
            "positions looked at": f"{samples}, seed {seed}",
            **motions.figures,
        }
        notes += motions.notes
    name = model.name if model is not None else facts.name if facts else _name(origin)
    return RobotReport(
        name,
        tuple(origin.describe()),
        _sidecar(origin, name),
        ranked(messages),
        tuple(figures.items()),
        tuple(notes),
    )


def _of_model(model: Model) -> _Examined:
    """Return a robot that is loaded, with the inertias that its links have now."""
    description, frames = model.build.description, model.frames
    links = tuple(
        replace(link, inertia=frames[link.name].inertia)
        if link.name in frames
        else link
        for link in description.links
    )
    facts = of_description(replace(description, links=links), model.source)
    return _Examined(model, facts, model.source)


def _of_source(source: Any, options: dict[str, Any]) -> _Examined:
    """Return a robot, loaded if possible, else only read; a stream is read to its end.

    A file that cannot be read, and a robot that does not load, are findings
    (unreadable, without facts; refused). ModelError: there is no such file, or another
    type.
    """
    if hasattr(source, "read"):
        source = source.read()  # a stream can be read only once, but is needed twice
    if not isinstance(source, (str, bytes, os.PathLike)):
        valid = "a Model, a path or name, XML, or an open file"
        raise ModelError(f"robot is {shown(source)}; valid: {valid}")
    located = locate(source, options.get("package_paths", ()))
    if located.file is not None and not os.path.isfile(located.file):
        raise ModelError(f"cannot read the URDF file {located.file}: no such file")
    file = None if located.file is None else str(located.file)
    try:
        text, root, origin = read_robot(located, options.get("xacro_arguments"))
        raw = of_xml(parse_xml(text), origin) if root.tag == "robot" else None
    except DynError as error:
        met = (Met("unreadable", "", str(error)),)
        return _Examined(None, None, Origin("urdf", file, located.name), met)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)
            model = load(source, **{**options, "check": "warn"})
    except (ModelError, UnsupportedError) as error:  # the latter: no mujoco
        return _Examined(None, raw, origin, (Met("refused", "", str(error)),))
    examined = _of_model(model)
    if raw is not None and examined.facts is not None:
        examined = examined._replace(facts=completed(raw, examined.facts))
    return examined


def _loading(model: Model) -> Iterator[Met]:
    """Yield findings for warnings of loading that no other check repeats."""
    for warning in model.warnings:
        if any(part in warning for part in _SAID):
            continue
        if "no range" in warning:
            yield Met("follower-range", "", warning)
        elif isinstance(warning, Hint) or any(part in warning for part in _UNUSED):
            yield Met("left-out", "", warning)
        else:
            yield Met("loading", "", warning)


def _sizes(facts: RobotFacts) -> dict[str, str]:
    """Return numbers of links and joints, mass and reach of a robot as text."""
    total = sum(link.mass for link in facts.links)
    return {
        "links, joints": f"{len(facts.links)}, {len(facts.joints)}",
        "mass": f"{total:.6g} kg, with the base",
        "reach": f"{facts.reach:.4g} m along the origins of joints",
    }


def _name(origin: Origin) -> str:
    return origin.name or (Path(origin.file).name if origin.file else "robot")


def _sidecar(origin: Origin, name: str) -> str:
    """Return the file name of the robot's sidecar, or the name that one would have.

    The latter, too, if it was given as text or by a path without a folder.
    """
    if origin.sidecar is not None and os.sep in origin.sidecar:
        return Path(origin.sidecar).name
    stem = Path(origin.file).name.split(".")[0] if origin.file else name
    return f"{stem}.dyn.yaml"


def as_json(report: RobotReport) -> str:
    """Return `report.as_dict()` as indented JSON text."""
    return json.dumps(report.as_dict(), indent=2, ensure_ascii=False)
