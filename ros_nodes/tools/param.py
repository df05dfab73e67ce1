"""`dyn param`: parameters of running nodes, with the output of `ros2 param`."""

from __future__ import annotations

import argparse
import json
from typing import Any

from rcl_interfaces.msg import Parameter, ParameterValue
from rcl_interfaces.srv import (
    DescribeParameters,
    GetParameters,
    ListParameters,
    SetParameters,
    SetParametersAtomically,
)

from dyn_core.errors import SettingError, unknown_name
from ros_nodes.parameter_tables.parameter_files import node_parameters
from ros_nodes.parameters import OPTION
from ros_nodes.tools.live import Live, connect
from ros_nodes.tools.parameter_values import (
    KINDS,
    NOT_SET,
    descriptor_lines,
    dumped,
    typed_value,
    value_line,
    value_of,
)


def run(arguments: argparse.Namespace) -> int:
    """Run a verb of `dyn param`; return the exit status 0.

    Args:
        arguments: Parsed arguments: verb, node, timeout [s], and those of the verb.
            Without a node (None) the parameters of all nodes are listed.

    Raises:
        SettingError: The node or a parameter does not exist, or a value is refused.
        DynError: There are no nodes, or there is no response in time.
    """
    with connect(arguments.timeout) as live:
        if arguments.node is None:
            return _list_all(live)
        node = live.require(arguments.node)
        return VERBS[arguments.verb](live, node, arguments)


def _list_all(live: Live) -> int:
    """Print the names of the parameters of all nodes that are not hidden; return 0."""
    nodes = live.all_nodes()
    if not nodes:
        raise live.none()
    for node in nodes:
        print(f"{node}:")
        for name in parameter_names(live, node):
            print(f"  {name}")
    return 0


def _list(live: Live, node: str, _: argparse.Namespace) -> int:
    """Print the names of a node's parameters, sorted; return 0."""
    for name in parameter_names(live, node):
        print(f"  {name}")
    return 0


def _get(live: Live, node: str, arguments: argparse.Namespace) -> int:
    """Print the value of the parameter `arguments.name`; return 0."""
    _require(live, node, [arguments.name])
    value = values(live, node, [arguments.name])[arguments.name]
    print(value_line(value, arguments.hide_type))
    return 0


def _set(live: Live, node: str, arguments: argparse.Namespace) -> int:
    """Set the parameter `arguments.name` to the string `arguments.value`; return 0.

    The string is read as a value of the parameter's type; if that is dynamic or not
    set, of the type of its value; without a value, and for an option of a solver that
    was not given before, of the type that the string has.
    """
    (parameter,) = _typed(live, node, {arguments.name: arguments.value})
    return _send(live, node, parameter, "Set")


def _load(live: Live, node: str, arguments: argparse.Namespace) -> int:
    """Give a node the parameters of `arguments.file`, all or none; print the changes.

    Those that the node has already are not sent: they may be fixed. SettingError: the
    file has none for the node, there is no such parameter, or the node refuses one.
    """
    wanted = node_parameters(arguments.file, node)
    texts = {name: _text(arguments.file, name, x) for name, x in wanted.items()}
    new = _typed(live, node, texts)
    now = values(live, node, [x.name for x in new])
    new = [x for x in new if value_of(x.value) != value_of(now[x.name])]
    request = SetParametersAtomically.Request(parameters=new)
    service = f"{node}/set_parameters_atomically"
    result = live.call(SetParametersAtomically, service, request).result
    if not result.successful:
        raise SettingError(f"no parameter of {arguments.file} is set: {result.reason}")
    for parameter in new:
        print(f"{parameter.name}: {value_of(parameter.value)}")
    print(
        f"{len(new)} of {len(wanted)} parameters of {arguments.file} were new to {node}"
    )
    return 0


def _text(file: str, name: str, value: Any) -> str:
    """Return a value of a file as it is typed for `dyn param set`; refuse None."""
    if value is None:
        raise SettingError(
            f"{name} has no value in {file}; valid: one, or no line", name
        )
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _typed(live: Live, node: str, texts: dict[str, str]) -> list[Parameter]:
    """Return Parameters by name and text, each of the type that the node's own has.

    See _set. SettingError: there is no such parameter, or the text is of another type.
    """
    known = parameter_names(live, node)
    there = [name for name in texts if name in known or not OPTION.fullmatch(name)]
    _check(node, there, known)
    described = descriptors(live, node, there) if there else []
    numbers = {each.name: each.type for each in described}
    loose = [x.name for x in described if x.dynamic_typing or x.type == NOT_SET]
    if loose:
        now = values(live, node, loose)
        numbers |= {name: value.type for name, value in now.items()}
    parameters = []
    for name, text in texts.items():
        number, value = typed_value(text, numbers.get(name, NOT_SET), name)
        message = ParameterValue(type=number)
        setattr(message, KINDS[number].field, value)
        parameters.append(Parameter(name=name, value=message))
    return parameters


def _delete(live: Live, node: str, arguments: argparse.Namespace) -> int:
    """Delete the parameter `arguments.name`, such as a solver's option; return 0.

    Raises:
        SettingError: There is no such parameter, or the node needs it.
        DynError: The node does not answer.
    """
    _require(live, node, [arguments.name])
    return _send(live, node, Parameter(name=arguments.name), "Delete")


def _send(live: Live, node: str, parameter: Parameter, act: str) -> int:
    """Request a parameter's value, print the answer and return 0.

    `act` is Set or Delete. SettingError: the node refuses it.
    """
    request = SetParameters.Request(parameters=[parameter])
    (result,) = live.call(SetParameters, f"{node}/set_parameters", request).results
    reason = f": {result.reason}" if result.reason else ""
    if not result.successful:
        doing = {"Set": "Setting", "Delete": "Deleting"}[act]
        raise SettingError(f"{doing} parameter failed{reason}", parameter.name)
    print(f"{act} parameter successful{reason}")
    return 0


def _describe(live: Live, node: str, arguments: argparse.Namespace) -> int:
    """Print the descriptors of `arguments.names`, by default of all; return 0."""
    known = parameter_names(live, node)
    wanted = arguments.names or known
    _check(node, wanted, known)
    for descriptor in descriptors(live, node, wanted):
        print("\n".join(descriptor_lines(descriptor)))
    return 0


def _dump(live: Live, node: str, _: argparse.Namespace) -> int:
    """Print all values of a node as YAML for --params-file; return 0."""
    names = parameter_names(live, node)
    messages = values(live, node, names)
    set_ones = {k: value_of(x) for k, x in messages.items() if x.type != NOT_SET}
    unset = [k for k, x in messages.items() if x.type == NOT_SET]
    kinds = {x.name: x.type for x in descriptors(live, node, unset)} if unset else {}
    print(dumped(node, set_ones, kinds), end="")
    return 0


VERBS = {
    "list": _list,
    "get": _get,
    "set": _set,
    "delete": _delete,
    "describe": _describe,
    "dump": _dump,
    "load": _load,
}


def parameter_names(live: Live, node: str) -> list[str]:
    """Return the names of a node's parameters, sorted.

    Raises:
        DynError: There is no such service, or no response in time.
    """
    answer = live.call(
        ListParameters, f"{node}/list_parameters", ListParameters.Request()
    )
    return sorted(answer.result.names)


def values(live: Live, node: str, names: list[str]) -> dict[str, Any]:
    """Return the ParameterValue of each name, by name, in the order of `names`.

    The type is NOT_SET for a parameter without a value, and for one that the node
    lacks.

    Raises:
        DynError: There is no such service, or no response in time.
    """
    # A node of rclpy returns nothing at all if one of the names has no value, so that
    # halves are requested until the names without a value are alone.
    request = GetParameters.Request(names=names)
    answer = live.call(GetParameters, f"{node}/get_parameters", request).values
    if len(answer) == len(names):
        return dict(zip(names, answer, strict=True))
    if len(names) == 1:
        return {names[0]: ParameterValue()}
    half = len(names) // 2
    return {**values(live, node, names[:half]), **values(live, node, names[half:])}


def descriptors(live: Live, node: str, names: list[str]) -> list[Any]:
    """Return the ParameterDescriptor of each name, in the order of the names.

    A node of rclpy returns none at all if it lacks one of the parameters.
    """
    request = DescribeParameters.Request(names=names)
    answer = live.call(DescribeParameters, f"{node}/describe_parameters", request)
    return list(answer.descriptors)


def _require(live: Live, node: str, names: list[str]) -> None:
    """Raise a SettingError if the node lacks one of the parameters `names`."""
    _check(node, names, parameter_names(live, node))


def _check(node: str, names: list[str], known: list[str]) -> None:
    """Raise a SettingError for the first of `names` that is not in `known`."""
    for name in names:
        if name not in known:
            raise SettingError(unknown_name(f"parameter of {node}", name, known), name)
