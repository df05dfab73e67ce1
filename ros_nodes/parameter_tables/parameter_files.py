"""Parameter files of the nodes, for the commands that read them without ROS.

Parameters by joint are gains.JOINT.p, .d, .i, .i_clamp and .angle_wraparound,
effort_limits.JOINT, lock.JOINT, collision.thresholds.JOINT, and
constraints.JOINT.trajectory and .goal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dyn_core.control.controller_fields import effort_fields, gain_fields, wrap_fields
from dyn_core.errors import (
    DynError,
    ModelError,
    SettingError,
    nearest,
    unknown_name,
    warn,
)
from dyn_core.model import Model
from dyn_core.validation import Field, read_yaml, refuse, with_present_names
from ros_nodes.parameter_tables.controller_parameters import (
    CONTROLLER,
    collision_fields,
    mode_fields,
)
from ros_nodes.parameter_tables.feed_forward_parameters import FEED_FORWARD
from ros_nodes.parameter_tables.goal_parameters import constraint_fields
from ros_nodes.parameter_tables.guard_parameters import GUARD_FIELDS
from ros_nodes.parameter_tables.simulator_parameters import SIMULATOR
from ros_nodes.parameters import (
    BY_JOINT,
    CLOSE,
    check_joint_names,
    check_solver,
    check_value,
    foreign_names,
    likeness,
    lock_fields,
)

NODES = {
    "simulator": {field.name: field for field in SIMULATOR},
    "computed_torque": {field.name: field for field in CONTROLLER},
    "feed_forward": {field.name: field for field in FEED_FORWARD},
    "guard": {field.name: field for field in GUARD_FIELDS},
}


def node_fields(node: str) -> dict[str, Field]:
    """Return the parameters of a node and its modes by name, without those by joint."""
    more = mode_fields() if node == "computed_torque" else ()
    return {**NODES[node], **{field.name: field for field in more}}


def read_parameters(
    path: Any, nodes: Sequence[str] = (), namespace: str = ""
) -> dict[str, dict[str, Any]]:
    """Return the checked parameters of each node of this package, by name with dots.

    The result has each node of NODES as key, with its parameters in the file, without
    defaults. Parameters that are not in its table are unchecked, but for the values of
    those by joint. The file must have a section for one of `nodes`, if there are any. A
    node that may be misspelt, beside the right one, causes a DynWarning. `namespace` is
    empty or begins with a slash.
    """
    try:
        data, where = read_yaml(path, "parameter file", "parameters")
        if not isinstance(data, Mapping):
            refuse(where, data, "a mapping from node to ros__parameters")
        by_name = _by_name(data, where)
        _check_sections(where, [*by_name], nodes, namespace)
        return {node: _of_node(by_name, where, node, namespace) for node in NODES}
    except ModelError as error:
        raise SettingError(str(error), "params") from error


def node_parameters(path: Any, node: str) -> dict[str, Any]:
    """Return the parameters of a file for any node, unchecked, by name with dots.

    `node` is its full name. SettingError: the file is invalid, or has none for it.
    """
    try:
        data, where = read_yaml(path, "parameter file", "parameters")
        by_name = _by_name(data if isinstance(data, Mapping) else {}, where)
        namespace, _, name = node.rpartition("/")
        values: dict[str, Any] = {}
        for key in sections(by_name, name, namespace):
            values |= _flat(f"{where}: {key}", by_name[key])
    except ModelError as error:
        raise SettingError(str(error), "file") from error
    if not values:
        shown = ", ".join(by_name) or "nothing"
        valid = f"{node}: {{ros__parameters: {{NAME: VALUE}}}}, or /**"
        raise SettingError(f"{where}: parameters of {shown}; valid: {valid}", "file")
    return values


def sections(keys: Iterable[str], node: str, namespace: str = "") -> list[str]:
    """Return the keys of a parameter file that match a node, in their order.

    Later ones override earlier ones. A key is a name with its namespace, with or
    without a leading slash; `*` matches one part of it, `**` any number, or none.
    `namespace` is empty or begins with a slash.
    """
    name = f"{namespace}/{node}"
    return [key for key in keys if re.fullmatch(_pattern(key), name)]


def _pattern(key: str) -> str:
    """Return the regular expression of the full node names that a key names."""
    forms = {"**": "(/[^/]+)*", "*": "/[^/]+"}
    parts = key.removeprefix("/").split("/")
    return "".join(forms.get(part, "/" + re.escape(part)) for part in parts)


def _by_name(data: Mapping[Any, Any], where: str, head: str = "") -> dict[str, Any]:
    """Return the parameters of each section by full key, in the order of the file.

    A full key is the keys of nested mappings joined by slashes, such as arm/simulator.
    """
    named: dict[str, Any] = {}
    for key, section in data.items():
        name = f"{head}{key}"
        wrong = not isinstance(section, Mapping) or not section
        if wrong or ("ros__parameters" in section and len(section) > 1):
            refuse(
                f"{where}: {name}", section,
                "a mapping with ros__parameters, as in"
                " /**/computed_torque: {ros__parameters: {mode: gravity}}",
            )  # fmt: skip
        if "ros__parameters" in section:
            named[name] = section["ros__parameters"] or {}
        else:
            named |= _by_name(section, where, f"{name}/")
    return named


def _check_sections(
    where: str, keys: Sequence[str], nodes: Sequence[str], namespace: str
) -> None:
    """Refuse misspelt nodes, and a file without a section for any of `nodes`.

    A name similar to a node that has a section, too, causes a DynWarning, unless it is
    that name with _MORE, MORE_ or a digit added, as for two controllers. Without
    `nodes`, only misspelt names are refused.
    """
    known = [key.rpartition("/")[2] for key in keys]
    for key in keys:
        name = key.rpartition("/")[2]
        near = nearest(name, NODES, 1)
        if name in NODES or not near or likeness(name, near[0]) <= CLOSE:
            continue
        message = f"{where}: {key}: {unknown_name('node', name, NODES)}"
        if near[0] not in known:
            raise SettingError(message, key)
        if not re.fullmatch(rf"{near[0]}[_\d]\w*|\w+_{near[0]}", name):
            warn(message)
    if nodes and not any(sections(keys, node, namespace) for node in nodes):
        shown = ", ".join(keys) or "nothing"
        head = f"{namespace}/" if namespace else ""
        valid = ", ".join(f"{head}{node}" for node in nodes)
        raise SettingError(
            f"{where}: parameters of {shown}; valid: sections for {valid}, or /**",
            "params",
        )


def _of_node(
    by_name: Mapping[str, Any], where: str, node: str, namespace: str
) -> dict[str, Any]:
    """Return the checked parameters of a node, by name with dots.

    Later sections override earlier ones; former names become the present ones. Unknown
    names that are not misspelt are returned unchecked.
    """
    values: dict[str, Any] = {}
    for key in sections(by_name, node, namespace):
        values |= _flat(f"{where}: {key}", by_name[key])
    fields = node_fields(node)
    values = dict(with_present_names(where, values, fields.values(), "parameter"))
    every = {name for each in NODES for name in node_fields(each)}
    unknown = [name for name in values if name not in fields]
    foreign_names(f"{where}: {node}", unknown, fields, every)
    matches = [BY_JOINT.fullmatch(name) for name in values]
    fields |= _joint_fields(
        [x for match in matches if match for x in match.groups() if x]
    )
    for name in [name for name in values if name in fields]:
        check_value(fields[name], f"{where}: {node}: {name}", values[name])
        try:
            check_solver(name, values[name])
        except DynError as error:
            raise SettingError(f"{where}: {node}: {name}: {error}", name) from error
    return values


def check_joints(where: str, names: Iterable[str], model: Model) -> None:
    """Refuse parameters for joints that a robot does not have; ignore other names."""
    try:
        check_joint_names(names, _joint_fields([*model.joint_names, *model.followers]))
    except SettingError as error:
        raise SettingError(f"{where}: {error}", error.setting) from error


def _joint_fields(joints: Sequence[str]) -> dict[str, Field]:
    """Return the Fields of all parameters by joint of some joints, by name."""
    tables = gain_fields, effort_fields, lock_fields, collision_fields
    fields = [x for table in tables for x in table(joints)]
    fields += [*wrap_fields(joints, ()), *constraint_fields(joints)]
    return {field.name: field for field in fields}


def _flat(where: str, tree: Any, head: str = "") -> dict[str, Any]:
    """Return nested parameters by name with dots, after `head`."""
    if not isinstance(tree, Mapping):
        refuse(where, tree, "a mapping of parameters")
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            flat |= _flat(where, value, f"{head}{key}.")
        else:
            flat[f"{head}{key}"] = value
    return flat
