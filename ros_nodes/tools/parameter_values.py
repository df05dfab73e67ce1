"""Parameter values: from messages, from typed text, as lines and as YAML.

The lines equal the output of `ros2 param`, so that scripts work with both; arrays are
shown as lists. Nothing here needs ROS.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import yaml

from dyn_core.errors import SettingError, one_line
from dyn_core.validation.quoting import yaml_comment
from dyn_core.validation.yaml_files import PlainDumper


class ParameterKind(NamedTuple):
    """A type of a parameter.

    `label` is what `describe` prints, `said` what `get` prints before a value; `field`
    is that of a ParameterValue, `python` the type of a value, or of an array's element.
    """

    label: str
    field: str
    said: str
    python: type


NOT_SET = 0
KINDS: dict[int, ParameterKind] = {
    1: ParameterKind("boolean", "bool_value", "Boolean value is:", bool),
    2: ParameterKind("integer", "integer_value", "Integer value is:", int),
    3: ParameterKind("double", "double_value", "Double value is:", float),
    4: ParameterKind("string", "string_value", "String value is:", str),
    5: ParameterKind("byte array", "byte_array_value", "Byte values are:", bytes),
    6: ParameterKind("boolean array", "bool_array_value", "Boolean values are:", bool),
    7: ParameterKind(
        "integer array", "integer_array_value", "Integer values are:", int
    ),
    8: ParameterKind("double array", "double_array_value", "Double values are:", float),
    9: ParameterKind("string array", "string_array_value", "String values are:", str),
}
ARRAYS = (5, 6, 7, 8, 9)
_EXAMPLES = {bytes: "1", bool: "true", int: "1", float: "1.0", str: "a"}
INTEGERS = range(-(2**63), 2**63)  # range of int64


def label_of(number: int) -> str:
    """Return the name of a type by its number; "not set" for an unknown number."""
    return KINDS[number].label if number in KINDS else "not set"


def value_of(message: Any) -> Any:
    """Return the value of a ParameterValue: a scalar or a list.

    Bytes are returned as integers. None: it is not set, or its type is unknown.
    """
    kind = KINDS.get(message.type)
    if kind is None:
        return None
    value = getattr(message, kind.field)
    if message.type == 5:
        return [int.from_bytes(x, "little") for x in value]
    return list(value) if message.type in ARRAYS else value


def value_line(message: Any, hide_type: bool = False) -> str:
    """Return the line that `get` prints for a ParameterValue, as ros2 param does."""
    kind, value = KINDS.get(message.type), value_of(message)
    if kind is None:
        return "None" if hide_type else "Parameter not set."
    return str(value) if hide_type else f"{kind.said} {value}"


def typed_value(typed: str, number: int, name: str) -> tuple[int, Any]:
    """Return the type and the value of a string that was typed for a parameter.

    `typed` is a number, a word, or a list in YAML; for number 4, a string, any text,
    which is returned unchanged. `number` is the type of the parameter; with 0, or an
    unknown one, that of the value is used. Each byte of a byte array is a `bytes`.
    """
    if number == 4:
        return number, typed
    value = _read(typed)
    if number not in KINDS:
        number = _likely(value)
    kind = KINDS[number]
    try:
        if number not in ARRAYS:
            return number, _converted(value, kind.python)
        if not isinstance(value, list):
            raise ValueError
        if number == 5:
            return number, [_converted(x, int).to_bytes(1, "little") for x in value]
        return number, [_converted(x, kind.python) for x in value]
    except (TypeError, ValueError, OverflowError) as error:
        array = f", such as '[{_EXAMPLES[kind.python]}]'" if number in ARRAYS else ""
        raise SettingError(
            f"{name}: '{one_line(typed)}'; valid: {_an(kind.label)}{array}", name
        ) from error


def _an(label: str) -> str:
    """Return a label with its indefinite article."""
    return f"{'an' if label[0] in 'aeiou' else 'a'} {label}"


def _read(typed: str) -> Any:
    """Return a string as YAML reads it (bool, int, float, str, list), else itself."""
    try:
        value = yaml.safe_load(typed)
    except (yaml.YAMLError, ValueError, LookupError, RecursionError):
        return typed  # PyYAML passes on errors of its conversions
    return value if isinstance(value, (bool, int, float, str, list)) else typed


def _likely(value: Any) -> int:
    """Return the type number for a value: bool 1, int 2, float 3, else string 4.

    For a list, 6 to 9: by the first element, or a float; an empty one has strings.
    """
    first = value[0] if isinstance(value, list) and value else value
    kinds = {bool: 1, int: 2, float: 3}
    if isinstance(value, list) and any(isinstance(x, float) for x in value):
        first = 0.0
    number = kinds.get(type(first), 4)
    return number + 5 if isinstance(value, list) else number


def _converted(value: Any, kind: type) -> Any:
    """Return a value as bool, int, float or str.

    An int or a string with a number becomes float; a bool or number becomes str, as
    "True" or "1.5"; else the value must be of the type. ValueError, TypeError or
    OverflowError: it cannot be converted.
    """
    if kind is float and not isinstance(value, bool):
        return float(value)  # YAML reads 1e-5 as a string
    if kind is str and isinstance(value, (bool, int, float)):
        return str(value)
    if type(value) is not kind or (kind is int and value not in INTEGERS):
        raise ValueError
    return value


def descriptor_lines(descriptor: Any) -> list[str]:
    """Return the lines that `describe` prints for a ParameterDescriptor."""
    lines = [f"Parameter name: {descriptor.name}"]
    lines.append(f"  Type: {label_of(descriptor.type)}")
    if descriptor.description:
        lines.append(f"  Description: {descriptor.description}")
    constraints = ["    Read only: true"] if descriptor.read_only else []
    ranges = [*descriptor.floating_point_range, *descriptor.integer_range]
    for each in ranges:
        constraints.append(f"    Min value: {each.from_value}")
        constraints.append(f"    Max value: {each.to_value}")
        constraints.append(f"    Step: {each.step}")
    if descriptor.additional_constraints:
        more = descriptor.additional_constraints
        constraints.append(f"    Additional constraints: {more}")
    return lines + (["  Constraints:", *constraints] if constraints else [])


class _Dumper(PlainDumper):
    """Writes YAML for the parser of ROS: text in quotes, else `on` is a boolean."""


class _Quoted(str):
    """Text that is written in quotes."""


_Dumper.add_representer(
    _Quoted,
    lambda dumper, x: dumper.represent_scalar("tag:yaml.org,2002:str", x, style='"'),
)


def dumped(
    node: str, values: Mapping[str, Any], unset: Mapping[str, int] | None = None
) -> str:
    """Return parameters, by name with dots, as YAML for --params-file.

    YAML of ROS cannot express a parameter without a value (`unset`: its type number) or
    an empty array: these are listed in comments at the end.
    """
    missing = [f"{k}: not set ({label_of(n)})" for k, n in (unset or {}).items()]
    missing += [f"{k}: [] is left out" for k, x in values.items() if x == []]
    values = {name: value for name, value in values.items() if value != []}
    tree: dict[str, Any] = {}
    for name in sorted(values):
        branch, (*path, leaf) = tree, _path(name, values)
        for key in path:
            branch = branch.setdefault(key, {})
        branch[leaf] = _quoted(values[name])
    content = {node: {"ros__parameters": tree}}
    text = yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
    return text + yaml_comment(sorted(missing), "    ")


def _path(name: str, names: Mapping[str, Any]) -> Sequence[str]:
    """Return the nested keys for a parameter name, the parts between its dots.

    A name with a prefix that is a parameter itself, or with an empty part, is one key.
    """
    heads = name.split(".")
    stems = [".".join(heads[:k]) for k in range(1, len(heads))]
    return [name] if any(stem in names for stem in stems) or "" in heads else heads


def _quoted(value: Any) -> Any:
    """Return a value with all its strings as _Quoted; lists are copied."""
    if isinstance(value, list):
        return [_quoted(x) for x in value]
    return _Quoted(value) if isinstance(value, str) else value
