"""The examination of a robot: every check that its file, or its Model, allows."""

from __future__ import annotations

import inspect
import json
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from dyn_core.errors import (
    DynError,
    ModelError,
    ModelWarning,
    SettingError,
    unknown_name,
)
from dyn_core.model import Model, load
from dyn_core.model.checks.findings import Hint
from dyn_core.model.sources.loading import read_robot
from dyn_core.model.sources.locate import locate
from dyn_core.model.sources.origin import Origin
from dyn_core.model.urdf_xml.source import Source, parse_xml
from dyn_core.reports.doctor.facts import (
    RobotFacts,
    bodies,
    completed,
    of_description,
    of_xml,
)
from dyn_core.reports.doctor.joint_checks import check_joints
from dyn_core.reports.doctor.link_checks import check_links
from dyn_core.reports.doctor.motion_checks import check_motions, sampled
from dyn_core.reports.doctor.report import Met, RobotReport, ranked
from dyn_core.reports.doctor.sidecar_hints import check_sidecar
from dyn_core.reports.doctor.solids import Solids
from dyn_core.validation import Whole, shown

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
    """A robot as far as it could be read.

    Attributes:
        model: Model; None if loading fails.
        facts: Facts of the file; None if it cannot be parsed, or is an MJCF file that
            does not load.
        origin: Source of the robot.
        met: Reasons why reading or loading failed.
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

    A robot that does not load is examined as far as its file can be read.

    Args:
        robot: Model, or an argument of dyn.load.
        samples: Number of random positions, drawn within the limits.
        seed: Seed of the positions.
        meshes: Whether mesh files are read.
        options: Options of dyn.load, unless `robot` is a Model.

    Raises:
        ModelError: There is no such file or robot.
        SettingError: An option is unknown, samples < 1 or seed < 0.
    """
    for what, value, least in (("samples", samples, 1), ("seed", seed, 0)):
        if not Whole(least).takes(value):
            wanted = f"{least} or more, a whole number"
            raise SettingError(f"{what} {shown(value)}; valid: {wanted}", what)
    valid = () if isinstance(robot, Model) else _OPTIONS
    for option in options:
        if option not in valid:
            raise SettingError(unknown_name("option", option, valid, "dyn.doctor"))
    if isinstance(robot, Model):
        return _report(_of_model(robot), samples, seed, meshes)
    return _report(_of_source(robot, options), samples, seed, meshes)


def _report(examined: _Examined, samples: int, seed: int, meshes: bool) -> RobotReport:
    """Return the report of all checks that apply to a robot as far as it was read.

    `samples`, `seed`, `meshes`: as in `doctor`.
    """
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
    facts = of_description(model.build.description, model.source)
    return _Examined(model, facts, model.source)


def _of_source(source: Any, options: dict[str, Any]) -> _Examined:
    """Return a robot, loaded if possible, else only read.

    Raises ModelError if there is no such file or robot.
    """
    if hasattr(source, "read"):
        source = source.read()  # a stream can be read only once, but is needed twice
    located = locate(source, options.get("package_paths", ()))
    if located.file is not None and not located.file.is_file():
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
    except ModelError as error:
        return _Examined(None, raw, origin, (Met("refused", "", str(error)),))
    examined = _of_model(model)
    if raw is not None and examined.facts is not None:
        examined = examined._replace(facts=completed(raw, examined.facts))
    return examined


def _loading(model: Model) -> Iterator[Met]:
    """Yield findings for warnings of loading that no check repeats."""
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
    """Return numbers of links and joints, mass and reach of a robot: text by name."""
    total = sum(link.mass for link in facts.links)
    return {
        "links, joints": f"{len(facts.links)}, {len(facts.joints)}",
        "mass": f"{total:.6g} kg, with the base",
        "reach": f"{facts.reach:.4g} m along the origins of joints",
    }


def _name(origin: Origin) -> str:
    return origin.name or (Path(origin.file).name if origin.file else "robot")


def _sidecar(origin: Origin, name: str) -> str:
    """Return the file name of the robot's sidecar.

    Without a sidecar it is the name that one would have: STEM.dyn.yaml.
    """
    if origin.sidecar is not None and os.sep in origin.sidecar:
        return Path(origin.sidecar).name
    stem = Path(origin.file).name.split(".")[0] if origin.file else name
    return f"{stem}.dyn.yaml"


def as_json(report: RobotReport) -> str:
    """Return a report as JSON text."""
    return json.dumps(report.as_dict(), indent=2, ensure_ascii=False)
