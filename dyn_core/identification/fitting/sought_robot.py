"""Robots with identified parameters, of a layout and of parameter paths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dyn_core.errors import UnsupportedError
from dyn_core.identification.selection import Unknowns
from dyn_core.model import Model, assemble, parameter_paths
from dyn_core.model.description import Description
from dyn_core.model.parameter_vector import with_linear_parameters

# Joint parameters that have the same name in a description.
_JOINT = ("damping", "friction", "friction_asymmetry", "friction_speed", "stribeck",
          "stribeck_speed", "armature", "stiffness")  # fmt: skip


def with_numbers(unknowns: Unknowns, z: np.ndarray) -> Model:
    """Return the robot with values z (n,) of the unknowns; a delay is ignored.

    ModelError: No robot can have the values; SingularError: An axis has no direction.
    """
    model, layout = unknowns.model, unknowns.layout
    if unknowns.paths:
        model = with_paths(model, unknowns.path_values(z))
    if layout is None:
        return model
    groups = "damping" in layout.groups, "armature" in layout.groups
    return with_linear_parameters(model, z[: unknowns.linear], *groups)


def with_paths(model: Model, values: Mapping[str, np.ndarray]) -> Model:
    """Return the robot rebuilt with other values, all numbers of each path, by path.

    The order of its joints is kept, and so are values of paths that are not given. A
    robot whose other numbers are not those of its description is refused.
    """
    changed = model.with_values({k: tuple(map(float, x)) for k, x in values.items()})
    build = changed.build
    description = build.description
    links = [
        replace(link, inertia=changed.frames[link.name].inertia)
        if link.name in changed.frames
        and changed.frames[link.name] is not model.frames[link.name]
        else link
        for link in description.links
    ]
    description = replace(description, links=tuple(links))
    for path, numbers in values.items():
        kind = parameter_paths.kind_of(model, path)
        name = path.rpartition(".")[0]
        if kind.name == "gravity":
            build = replace(build, gravity=tuple(map(float, numbers)))
        elif kind.owner == "joint":
            description = _with_joint(description, name, kind.name, numbers)
        elif kind.owner == "spring":
            description = _with_spring(description, name, kind.name, float(numbers[0]))
        elif kind.owner == "robot":
            raise UnsupportedError(
                f"{path} cannot be kept in a robot; valid: paths of links and joints"
            )
    made = model.rebuilt(
        description=description, gravity=build.gravity, loops=build.loops
    )
    same = made.joint_names == model.joint_names
    return made if same else made.reorder(model.joint_names)


def with_described_values(model: Model) -> Model:
    """Return the robot rebuilt so that its description has its present parameters.

    Model.with_values and without_friction change numbers that the description, from
    which files are written, does not get. If nothing differs, it is the model itself.
    """
    described = assemble(model.build)
    values = {}
    for path in parameter_paths.paths(model):
        if path in ("time", "armature"):  # each joint has an armature of its own
            continue
        numbers = parameter_paths.value(model, path)
        if not np.array_equal(numbers, parameter_paths.value(described, path)):
            values[path] = numbers
    return with_paths(described, values) if values else model


def _with_joint(
    description: Description, name: str, what: str, numbers: np.ndarray
) -> Description:
    """Return the description with another value of a joint's parameter.

    An unknown joint changes nothing. `numbers` are 3 of an axis, 6 of axes, 1 or one
    for each coordinate of rest, else 1.
    """
    if what == "rest":
        shown = tuple(map(float, numbers))
        change: dict[str, Any] = {what: shown[0] if len(shown) == 1 else shown}
    elif what in _JOINT or what == "pitch":
        change = {what: float(numbers[0])}
    elif what == "axis":
        change = {what: tuple(map(float, numbers))}
    elif what == "axes":
        first, second = tuple(map(float, numbers[:3])), tuple(map(float, numbers[3:]))
        change = {what: (first, second)}
    else:
        return description  # origin, plug, ratio, offset: with_values changed them
    joints = [
        replace(joint, **change) if joint.name == name else joint
        for joint in description.joints
    ]
    return replace(description, joints=tuple(joints))


def _with_spring(
    description: Description, name: str, what: str, number: float
) -> Description:
    """Return the description with another `what` of a spring between points."""
    springs = [
        replace(spring, **{what: number}) if spring.name == name else spring  # type: ignore[arg-type]
        for spring in description.point_springs
    ]
    return replace(description, point_springs=tuple(springs))
