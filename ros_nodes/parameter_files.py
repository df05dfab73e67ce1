"""Parameter files of the nodes, for the commands that read them without ROS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dyn_core.errors import ModelError, SettingError
from dyn_core.validation import read_yaml, refuse
from ros_nodes.controller_parameters import CONTROLLER
from ros_nodes.parameters import foreign_names
from ros_nodes.simulator_parameters import SIMULATOR

NODES = {
    "simulator": {field.name: field for field in SIMULATOR},
    "computed_torque": {field.name: field for field in CONTROLLER},
}


def read_parameters(path: Any) -> dict[str, dict[str, Any]]:
    """Return the parameters of each node of ours, by name with dots, checked.

    Args:
        path: Of a file of ROS: NODE: {ros__parameters: {...}}; `/**` is any node.

    Raises:
        SettingError: It cannot be read, a parameter is misspelt or a value not valid.
    """
    try:
        data, where = read_yaml(path, "parameter file", "parameters")
        if not isinstance(data, Mapping):
            refuse(where, data, "a mapping from node to ros__parameters")
        return {node: _of_node(data, where, node) for node in NODES}
    except ModelError as error:
        raise SettingError(str(error), "params") from error


def _of_node(data: Mapping[Any, Any], where: str, node: str) -> dict[str, Any]:
    """Return the checked parameters of a node; its own section goes before `/**`."""
    values: dict[str, Any] = {}
    for key in ("/**", f"/**/{node}", f"/{node}", node):
        section = data.get(key, {"ros__parameters": {}})
        if not isinstance(section, Mapping) or [*section] != ["ros__parameters"]:
            refuse(f"{where}: {key}", section, "a mapping with ros__parameters")
        values |= _flat(f"{where}: {key}", section["ros__parameters"] or {})
    fields = NODES[node]
    every = {name for names in NODES.values() for name in names}
    foreign_names((name for name in values if name not in fields), fields, every)
    for name in values.keys() & fields.keys():
        fields[name].read(f"{where}: {node}: {name}", values[name])
    return values


def _flat(where: str, tree: Any, head: str = "") -> dict[str, Any]:
    """Return nested parameters by names with dots."""
    if not isinstance(tree, Mapping):
        refuse(where, tree, "a mapping of parameters")
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            flat |= _flat(where, value, f"{head}{key}.")
        else:
            flat[f"{head}{key}"] = value
    return flat
