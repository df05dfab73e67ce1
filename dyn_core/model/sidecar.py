"""The sidecar NAME.dyn.yaml: data that URDF cannot express, added to a Description.

joints:   {NAME: {type: spherical, damping: 0.1, friction: [0.4, 0.3], armature: 0.0,
                  effort: 10.0, axis: [0, 0, 1], swing: 0.9, twist: [-1.0, 1.0],
                  plug: {xyz: [0, 0, 0.1], rpy: [0, 0, 0]}}}
                                                # friction: one number, or two, in
                                                # positive and negative direction;
                                                # friction_speed: 0.01: speed scale of
                                                # its smooth sign change at rest
                                                # stribeck: 0.2, stribeck_speed: 0.1:
                                                # additional friction near rest
                                                # swing, twist: limits of a ball [rad]
                                                # plug: the joint in the child link
          # other types: helical (pitch: 0.01 [m/rad]), cylindrical, free_rpy, ball_exp,
          # universal (axes: [[1, 0, 0], [0, 1, 0]]), and joints in series:
          {type: product, factors: [{type: revolute, axis: [0, 0, 1]}, ...]}
springs:  {NAME: {stiffness: 50.0, rest: 0.1}}  # [N·m/rad | N/m], [rad | m]
point_springs:                                  # between two links; no a: on the base
  - {a: bar1, b: bar3, at_a: [0, 0, 0.1], at_b: [1, 0, 0], stiffness: 4530.0,
     rest_length: 0.078, damping: 0.0}          # [m], [N/m], [m], [N·s/m]
armature: {NAME: 0.02}                          # [kg·m² | kg]
rotors:   {NAME: {inertia: 2e-5, ratio: 100}}   # armature += inertia ratio²
gears:                                          # any two joints; no followers of URDF
  - {joints: [A, B], ratio: -3.0, offset: 0.0}  # q_B = ratio q_A + offset
  - {joints: [A, B, C], ratios: [1.0, 2.0]}     # one coordinate, shared by all
  - {joints: [P, Q], ratio: [[1, 0, 0], [0, 2, 0], [0, 0, 1]]}   # several coordinates
loops:                                          # no a: on the base
  - {name: D, kind: pin, b: bar3, at_b: {xyz: [1, 0, 0]}, at_a: {xyz: [2, 0, 0]}}
collisions, pairs, materials: contact geometry and friction, see shape_reader.py

Source: TAZZ-5.1, TAZZ-5.3 (gears), TAZZ-2.1 (plugs), TAZZ-4.7 (swing and twist),
KIM-2.4 (types), KIM-S2 (springs).
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dyn_core import robots
from dyn_core.errors import ModelError
from dyn_core.model import shape_reader
from dyn_core.model.checks.robots import DEEP, HINGES, TURNED, excess, turns
from dyn_core.model.description import Description, JointSpec, Mimic, PointSpring
from dyn_core.model.description_builder import DescriptionBuilder
from dyn_core.model.frames import PLACE
from dyn_core.model.joints import KINDS
from dyn_core.model.loops.loop_constraints import LOOP, make_loop
from dyn_core.model.sources.origin import Origin
from dyn_core.validation import (
    REQUIRED,
    ByName,
    Either,
    Field,
    ListOf,
    Name,
    Quantity,
    Switch,
    Table,
    numbers,
    read_yaml,
)
from dyn_core.validation.file_names import file_kind

Entry = Mapping[str, Any]  # checked by a Table
Extras = Entry | str | os.PathLike[str]  # a mapping, YAML, a path
_GEOMETRY = (
    Field("axis", numbers(3), "direction of the axis in the joint's frame"),
    Field("pitch", Quantity(), "of a helical joint: travel by turn", "m/rad"),
    Field("axes", ListOf(numbers(3), 2), "of a universal joint: first, second axis"),
    Field("factors", lambda: ListOf(FACTOR, least=1),
        "of a product: the joints behind each other, from the base on"),
)  # fmt: skip
FACTOR: Table = Table(
    Field("type", Name(tuple(KINDS)), "kind of joint", default=REQUIRED), *_GEOMETRY
)
JOINT = Table(
    Field("type", Name(("fixed", *KINDS)), "kind of joint instead of the URDF's"),
    Field("damping", Quantity(0.0), "viscous friction", "N·m·s/rad, N·s/m"),
    Field("friction", Either((Quantity(0.0), ListOf(Quantity(0.0), 2))),
        "dry friction; two numbers: against motion in positive and in negative"
        " direction", "N·m, N"),
    Field("friction_speed", Quantity(0.0, above=True),
        "width v of dry friction's transition through rest, tanh(qd / v); 0.01 where"
        " none is given", "rad/s, m/s"),
    Field("stribeck", Quantity(0.0), "what dry friction is more near rest", "N·m, N"),
    Field("stribeck_speed", Quantity(0.0, above=True),
        "speed at which e^-1 of that is left; 0.1 where none is given", "rad/s, m/s"),
    Field("armature", Quantity(0.0), "inertia of the drive", "kg·m², kg"),
    Field("effort", Quantity(0.0), "effort limit; 0: none is given", "N·m, N"),
    *_GEOMETRY,
    Field("passive", Switch(),
        "whether it has no motor; a floating joint has none unless this is false"),
    Field("swing", Quantity(0.0, above=True), "of a ball: largest tilt of z", "rad"),
    Field("twist", numbers(2), "of a ball: lower and upper turn about z", "rad"),
    Field("plug", Table(*PLACE), "joint in the child link; URDF has the link's frame"),
)  # fmt: skip
_RATIO = Either((Quantity(), ListOf(numbers())))
_POSITION = Either((Quantity(), numbers()))
GEAR = Table(
    Field("joints", ListOf(Name(), least=2),
        "the leader and its followers", "", REQUIRED),
    Field("ratio", _RATIO,
        "of all followers; rows between joints of several coordinates"),
    Field("ratios", ListOf(_RATIO), "one for each follower, instead of ratio"),
    Field("offset", _POSITION,
        "of all followers: q = ratio q_leader + offset", "rad, m"),
    Field("offsets", ListOf(_POSITION),
        "one for each follower, instead of offset", "rad, m"),
)  # fmt: skip
ROTOR = Table(
    Field("inertia", Quantity(0.0), "of the rotor about its axis", "kg·m²", REQUIRED),
    Field("ratio", Quantity(),
        "of its gear: armature grows by inertia ratio²", "", 1.0),
)  # fmt: skip
SPRING = Table(
    Field("stiffness", Quantity(0.0), "of the spring", "N·m/rad, N/m", REQUIRED),
    Field("rest", _POSITION, "where it is slack, one number or all", "rad, m", 0.0),
)
POINT_SPRING = Table(
    Field("name", Name(), "what errors call it; spring1, spring2, ..."),
    Field("a", Name(), "link with the first point; the base where it is missing"),
    Field("b", Name(), "link with the second point", default=REQUIRED),
    Field("at_a", numbers(3), "first point, in its link's frame", "m"),
    Field("at_b", numbers(3), "second point, in its link's frame", "m"),
    Field("stiffness", Quantity(0.0), "of the spring", "N/m", 0.0),
    Field("rest_length", Quantity(0.0), "distance at which it is slack", "m", 0.0),
    Field("damping", Quantity(0.0), "of a damper along the same line", "N·s/m", 0.0),
)
SIDECAR = Table(
    Field("joints", ByName(JOINT, "joint"), "joints that differ from the URDF"),
    Field("armature", ByName(Quantity(0.0), "joint"), "drive inertias", "kg·m², kg"),
    Field("rotors", ByName(ROTOR, "joint"), "rotors behind gears, added to armatures"),
    Field("springs", ByName(SPRING, "joint"), "springs in joints"),
    Field("point_springs", ListOf(POINT_SPRING), "springs between points of two links"),
    Field("gears", ListOf(GEAR), "joints that follow others; no followers of the URDF"),
    Field("loops", ListOf(LOOP), "constraints that close the tree"),
    *shape_reader.FIELDS,
)


def choose(
    beside: Path | None, extras: Extras | None, sidecar: bool
) -> tuple[Extras | None, tuple[str, ...]]:
    """Return the sidecar to read, and a tuple of at most one warning.

        extras given                 extras
        no extras, sidecar is True   beside if that file exists, else None
        no extras, sidecar is False  None

    The warning, if `sidecar` is True, says that a file is not read: `beside`, as
    `extras` are another file; or, without both, a file NAME.dyn.yml or NAME_dyn.yaml.
    """
    if not isinstance(sidecar, bool):  # "no" would count as True
        raise ModelError(f"sidecar is {sidecar!r}; valid: True, False")
    if not sidecar or beside is None:
        return extras, ()
    if not file_kind(beside):
        name = beside.name.removesuffix(".dyn.yaml")
        near = () if extras is not None else (f"{name}.dyn.yml", f"{name}_dyn.yaml")
        unread = [x for x in near if file_kind(beside.with_name(x)) == "file"]
        return extras, tuple(
            f"{x} is not read; valid: {beside.name}" for x in unread[:1]
        )
    if extras is None:
        return beside, ()
    try:
        same = os.path.samefile(extras, beside)  # type: ignore[arg-type]
    except (TypeError, ValueError, OSError):
        same = False  # a mapping, or YAML text
    idle = f"{beside.name} beside the file is not read: extras are given"
    return extras, () if same else (idle,)


def complete(
    description: Description,
    origin: Origin,
    path: Path | None,
    beside: Path | None,
    extras: Extras | None,
    sidecar: bool,
) -> tuple[Description, Origin]:
    """Return a description with its sidecar applied, and the origin that names it.

    `beside` is the sidecar beside the robot's file `path`, which joins the
    description's sources. A sidecar that is not read (see `choose`) adds a warning to
    the description.
    """
    extras, unread = choose(beside, robots.sidecar(extras), sidecar)
    description = replace(description, warnings=(*description.warnings, *unread))
    if path is not None:
        description = replace(description, sources=(*description.sources, str(path)))
    if extras is not None:
        description = apply(description, extras)
        origin = replace(origin, sidecar=description.sources[-1])
    return description, origin


def apply(description: Description, extras: Extras) -> Description:
    """Return the Description with a sidecar applied.

    Its path, or "extras" for a mapping or YAML text, is appended to `sources`.

    Args:
        description: Robot; it is not changed.
        extras: Mapping, YAML text of several lines, or path of a file.

    Raises:
        ModelError: The sidecar cannot be read, has an unknown key or name, or an entry
            that is not valid or has no effect. Links of loops and point springs are
            checked later.
    """
    content, source = read_yaml(extras, "sidecar", "extras")
    data = SIDECAR.read(source, {} if content is None else content)
    builder = DescriptionBuilder.of(description)
    doubts: tuple[str, ...] = ()
    for section in ("joints", "armature", "rotors", "springs"):
        for name in data.get(section, ()):
            builder.joint_of(name, f"{source}: {section}")
    for name, entry in data.get("joints", {}).items():
        spec = builder.joint_of(name, source)
        builder.change(name, **_changes(f"{source}: joints: {name}", spec, entry))
    for section in ("armature", "rotors", "springs"):
        for name in data.get(section, ()):
            _refuse_fixed(f"{source}: {section}", builder.joint_of(name, source))
    for name, value in data.get("armature", {}).items():
        if "armature" in data.get("joints", {}).get(name, {}):
            raise ModelError(
                f"{source}: the armature of joint '{name}' is there twice, in joints:"
                f" {name} and in armature; valid: one of them",
                name,
            )
        builder.change(name, armature=value)
    for name, entry in data.get("rotors", {}).items():
        if entry["ratio"] == 0.0:
            reason = "ratio is 0; valid: that of its gear, such as 100"
            raise ModelError(f"{source}: rotors: {name}: {reason}")
        added = entry["inertia"] * entry["ratio"] * entry["ratio"]
        before = builder.joint_of(name, source).armature
        builder.change(name, armature=before + added)
    for name, entry in data.get("springs", {}).items():
        builder.change(name, **entry)
        doubts += _in_degrees(builder.joint_of(name, source))
    for k, entry in enumerate(data.get("gears", ())):
        for name, rule in _gear(f"{source}: gears[{k}]", entry):
            builder.follow(name, rule, source)
    for k, entry in enumerate(data.get("loops", ()), 1):
        builder.loops.append(make_loop(**{"name": f"loop{k}", **entry}))
    for k, entry in enumerate(data.get("point_springs", ())):
        where = f"{source}: point_springs[{k}]"
        builder.point_springs.append(_point_spring(where, f"spring{k + 1}", entry))
    shape_reader.add_to(builder, data, source)
    sources = (*description.sources, source)
    warnings = (*description.warnings, *(f"{source}: {x}" for x in doubts))
    return replace(builder.description(), sources=sources, warnings=warnings)


def _in_degrees(spec: JointSpec) -> tuple[str, ...]:
    """Return a tuple with a sentence if a spring's rest looks like degrees.

    Rest beyond the limits preloads a spring: of a hinge, more than a turn is asked for
    there, and without a limit more than two turns.
    """
    if spec.kind not in HINGES or not isinstance(x := spec.rest, float):
        return ()
    beyond = max(spec.lower - x, x - spec.upper)
    if beyond > DEEP and abs(x) > 2 * math.pi:
        return (excess("rest", "the rest", spec.name, x, beyond, False),)
    free = math.isinf(spec.upper if x > 0 else spec.lower)
    if free and abs(x) > TURNED:
        return (turns("rest", "the rest", spec.name, x),)
    return ()


def _point_spring(where: str, name: str, entry: Entry) -> PointSpring:
    """Return the point spring of an entry; its name is `name` if the entry has none."""
    spring = PointSpring(**{"name": name, **entry})
    if not spring.stiffness and not spring.damping:
        raise ModelError(
            f"{where}: stiffness and damping are 0; valid: one of them above 0",
            spring.name,
        )
    if spring.rest_length and not spring.stiffness:
        raise ModelError(
            f"{where}: rest_length changes nothing without stiffness; valid: a"
            " stiffness above 0 with it",
            spring.name,
        )
    return spring


def _gear(where: str, entry: Entry) -> list[tuple[str, Mimic]]:
    """Return name and rule of each follower of a gear; the first joint is the leader.

    Whether the joints exist is not checked.
    """
    leader, *names = entry["joints"]
    if len({leader, *names}) <= len(names):
        raise ModelError(f"{where}: joints: one is there twice; valid: different ones")
    ratios = _one_each(where, entry, "ratio", len(names), 1.0)
    offsets = _one_each(where, entry, "offset", len(names), 0.0)
    return [
        (name, Mimic(leader, ratio, offset))
        for name, ratio, offset in zip(names, ratios, offsets, strict=True)
    ]


def _one_each(
    where: str, entry: Entry, one: str, count: int, default: float
) -> list[Any]:
    """Return one ratio or offset for each follower of a gear, in order.

    They come from the key `one`, which is shared, from the list with the key `one` +
    "s", or are `default`.
    """
    many = f"{one}s"
    if one in entry and many in entry:
        raise ModelError(f"{where}: has {one} and {many}; valid: one of them")
    values = entry.get(many, [entry.get(one, default)] * count)
    if len(values) != count:
        raise ModelError(
            f"{where}: {many} has {len(values)} values; valid: one for each follower,"
            f" {count}"
        )
    return list(values)


def _refuse_fixed(where: str, spec: JointSpec) -> None:
    """Raise ModelError if a joint is fixed: the entry would have no effect."""
    if spec.kind == "fixed":
        raise ModelError(
            f"{where}: joint '{spec.name}' is fixed, which this does not change;"
            " valid: joints that move",
            spec.name,
        )


def _refuse_geometry(where: str, spec: JointSpec, entry: Entry) -> None:
    """Raise ModelError for keys that have no effect on a joint of its kind.

    `spec` is the joint before the change. If it is fixed after it, `type` must be the
    only key; else axis, pitch, axes and factors must belong to the new kind.
    """
    kind = entry.get("type", spec.kind)
    if kind == "fixed":
        if [*entry] != ["type"]:
            _refuse_fixed(where, replace(spec, kind=kind))
        return
    taken = KINDS[kind].entries
    for field in _GEOMETRY:
        if field.name in entry and field.name not in taken:
            raise ModelError(
                f"{where}: {field.name} changes nothing of a joint of type {kind};"
                f" valid: {', '.join(taken) or 'none'}",
                spec.name,
            )


def _changes(where: str, spec: JointSpec, entry: Entry) -> dict[str, Any]:
    """Return the attributes of JointSpec that an entry changes, with their new values.

    A `type` other than revolute, prismatic and helical removes the position limits.
    `friction`, one number or (positive, negative direction), sets friction, the mean,
    and friction_asymmetry, half the difference.
    """
    _refuse_geometry(where, spec, entry)
    changes = dict(entry)
    kind = changes.pop("type", None)
    if kind is not None:
        changes["kind"] = kind
        if kind not in ("revolute", "prismatic", "helical"):
            changes |= {"lower": -math.inf, "upper": math.inf}
    if "friction" in changes:
        pair = changes["friction"]
        ahead, back = pair if isinstance(pair, tuple) else (pair, pair)
        changes["friction"] = (ahead + back) / 2
        changes["friction_asymmetry"] = (ahead - back) / 2
    if "factors" in changes:
        bare = JointSpec(spec.name, "fixed", spec.parent, spec.child)
        changes["factors"] = tuple(
            replace(bare, **_changes(f"{where}: factors[{k}]", bare, row))
            for k, row in enumerate(changes["factors"])
        )
    for key, value in changes.pop("plug", {}).items():
        changes[f"plug_{key}"] = value
    return changes
