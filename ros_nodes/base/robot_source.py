"""Robot of a node: read from parameters or a topic, its joints selected and ordered."""

from __future__ import annotations

import warnings
from io import StringIO
from typing import Any

import dyn_core as dyn
from dyn_core.errors import one_line
from dyn_core.model.checks.findings import Hint
from dyn_core.model.sources.arguments import READING, load_with
from ros_nodes.base.parameter_node import ParameterNode
from ros_nodes.parameters import lock_fields
from ros_nodes.params import FOLDER


def load(node: ParameterNode, urdf: str, **choices: Any) -> dyn.Model:
    """Return the robot of a node's parameters, with its joints in the listed order.

    Warnings of the robot and its source are logged. Relevant parameters:
    robot_description, robot_description_file, model_extras, model_check, root, tip,
    gravity, joints, unlisted_joints.

    Args:
        node: Node with the parameters of a robot.
        urdf: URDF of the topic robot_description, "" if there is none. It is used if
            the parameter robot_description is empty, and precedes
            robot_description_file.
        choices: Further arguments of dyn.load.

    Raises:
        SettingError: There is no robot, or parameter `joints` is not valid.
        DynError: The robot cannot be read.
    """
    extras = node.value("model_extras") or None
    shipped = FOLDER / f"{extras}.dyn.yaml"
    extras = str(shipped) if shipped.is_file() else extras
    described = node.value("robot_description") or urdf
    file = node.value("robot_description_file")
    source = StringIO(described) if described else file
    if not source:
        raise dyn.SettingError(
            "no robot: set robot_description or robot_description_file, or publish"
            " the topic robot_description"
        )
    model = read(
        node,
        source,
        extras=extras,
        check=node.value("model_check"),
        root=node.value("root") or None,
        tip=node.value("tip") or None,
        gravity=tuple(node.value("gravity")),
        **choices,
    )
    for warning in model.warnings:
        log = node.get_logger()
        (log.info if isinstance(warning, Hint) else log.warning)(one_line(warning))
    for line in model.source.describe():
        node.get_logger().info(one_line(f"robot: {line}"))
    return _select(node, model)


def read(node: ParameterNode, source: str | StringIO, **choices: Any) -> dyn.Model:
    """Return the robot of a description, or of a name or file that dyn.load looks up.

    Python's ModelWarning is suppressed: `load` logs each of `model.warnings`.

    Args:
        node: Node whose parameters READING are passed on.
        source: Name or path for dyn.load, or a buffer with a description.
        choices: Further arguments of dyn.load.

    Raises:
        DynError: The robot cannot be read.
    """
    settings = {name: node.value(name) for name in READING}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dyn.errors.ModelWarning)
        return load_with(settings, source, **choices)


def _select(node: ParameterNode, model: dyn.Model) -> dyn.Model:
    """Return the model with the joints of parameter `joints` last, in the listed order.

    Joints with several coordinates precede them. Joints with one coordinate that are
    not listed are locked at the parameters lock.JOINT, which are declared here. An
    empty list returns the model unchanged.

    Raises:
        SettingError: A listed joint does not exist, has several coordinates or is
            listed twice; or joints are not listed and unlisted_joints is "refuse".
    """
    listed = list(node.value("joints"))
    if not listed:
        return model
    single = [n for n in model.joint_names if len(_range(model.v_slice(n))) == 1]
    for name in listed:
        if name not in single or listed.count(name) > 1:
            known = ", ".join(single)
            raise dyn.SettingError(
                f"joints: '{name}' must be one of {known}, once", "joints"
            )
    unlisted = [name for name in single if name not in listed]
    if unlisted and node.value("unlisted_joints") == "refuse":
        raise dyn.SettingError(
            f"joints leaves out {', '.join(unlisted)}; list them, or set"
            " unlisted_joints to lock (at lock.<joint>)",
            "joints",
        )
    if unlisted:
        node.declare(lock_fields(unlisted))
        lock = {name: node.value(f"lock.{name}") for name in unlisted}
        described = ", ".join(f"{n} at {x:g}" for n, x in lock.items())
        node.get_logger().warning(one_line(f"locked: {described}"))
        model = model.lock(lock)
    others = [name for name in model.joint_names if name not in listed]
    return model.reorder([*others, *listed])


def _range(columns: slice) -> range:
    """Return the indices of a slice that has a start and a stop."""
    return range(columns.start, columns.stop)
