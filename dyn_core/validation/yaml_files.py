"""Reader of YAML, bounded in file size, nesting depth and number of values; a dumper.

The bounds are SIZE (1,000,000 bytes), DEPTH (32) and VALUES (20,000).

It reads plain data only: mappings, lists, strings, numbers, booleans and null; keys are
no lists or mappings. Numbers follow YAML 1.2: `2e-5` is a number; `1_0`, `0x10`, `010`
and `1:30` are strings. Also yes, no, on and off are booleans. An alias counts each time
it is used. Every fault is a ModelError that names the file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from dyn_core.errors import ModelError, why_unread
from dyn_core.validation.tables import shown

SIZE = 1_000_000  # bytes of a file
VALUES = 20_000  # of a file, aliases expanded
DEPTH = 32  # of nested lists and mappings
_FAULTS = (
    yaml.YAMLError, ValueError, LookupError, TypeError, AttributeError,
    ArithmeticError,
)  # fmt: skip
_TAG = "tag:yaml.org,2002:"
_PLAIN = {
    "null": r"~|null|Null|NULL|",
    "bool": r"yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE"
    r"|on|On|ON|off|Off|OFF",
    "int": r"[-+]?(0|[1-9][0-9]*)",
    "float": r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?"
    r"[0-9]+|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
}


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader without tags, dates and merged mappings, and with bounds."""

    yaml_implicit_resolvers: dict[Any, Any] = {}
    yaml_constructors = {
        _TAG + kind: yaml.SafeLoader.yaml_constructors[_TAG + kind]
        for kind in (*_PLAIN, "str", "seq", "map")
    } | {None: yaml.SafeLoader.construct_undefined}

    values = depth = 0

    def fetch_flow_collection_start(self, token: Any) -> None:
        """Scan an opening bracket; raise _TooMuch if brackets nest too deeply."""
        # The scanner reads ahead: deep brackets must fail before the rest is scanned.
        _check_depth(self.flow_level)
        super().fetch_flow_collection_start(token)

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Return the next node; raise _TooMuch for too many or too deep nodes."""
        self.values, self.depth = self.values + 1, self.depth + 1
        _check_depth(self.depth)
        _check_count(self.values)
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        """Return the dict of a mapping; raise ConstructorError for a duplicate key."""
        read = yaml.constructor.BaseConstructor.construct_mapping(self, node, deep)
        if len(read) < len(node.value):
            keys = [self.construct_object(key, deep) for key, _ in node.value]
            twice = next(key for k, key in enumerate(keys) if key in keys[:k])
            raise yaml.constructor.ConstructorError(
                None, None, f"the key {shown(twice)} is there twice", node.start_mark
            )
        return read


for _kind, _pattern in _PLAIN.items():
    _Loader.add_implicit_resolver(_TAG + _kind, re.compile(f"^(?:{_pattern})$"), None)


def read_yaml(source: Any, what: str, inline: str) -> tuple[Any, str]:
    """Return (data, where): the data of a YAML source, and its name for messages.

    The data are None for an empty file; their structure is not checked. `where` is the
    path, or `inline` for text and mappings.

    Args:
        source: Path, YAML text of more than one line (a text of one line is a path), or
            a mapping, which is returned as it is after the check of VALUES and DEPTH.
        what: Kind of the file for error messages: sidecar, chain file, ...
        inline: Name for error messages of YAML text and mappings.

    Raises:
        ModelError: The source is of another type, cannot be read, is not YAML, has a
            key twice in a mapping, or exceeds SIZE, VALUES or DEPTH.
    """
    if isinstance(source, Mapping):
        data, where = source, inline
    else:
        if isinstance(source, str) and "\n" in source:
            content, where = source.encode("utf-8", "replace"), inline
        else:
            content, where = _content(source, what)
        if len(content) > SIZE:
            raise ModelError(f"{where}: larger than {SIZE} bytes; valid: less", where)
        try:
            data = yaml.load(content.decode("utf-8-sig"), Loader=_Loader)  # noqa: S506
        except _FAULTS as error:
            raise ModelError(f"{where}: not YAML: {_reason(error)}", where) from error
        except _TooMuch as error:
            raise ModelError(f"{where}: {error}", where) from error
    try:
        _check_extent(data)
    except _TooMuch as error:
        raise ModelError(f"{where}: {error}", where) from error
    return data, where


class PlainDumper(yaml.SafeDumper):
    """PyYAML's safe dumper without aliases, which the parser of ROS refuses."""

    def ignore_aliases(self, data: Any) -> bool:
        """Return True: a list that occurs twice is written twice."""
        return True


def dump_yaml(data: Any, **choices: Any) -> str:
    """Return plain data as YAML without aliases, in the order of their keys.

    Args:
        data: Mappings, lists, strings, numbers, booleans and None; nothing in itself.
        choices: Further arguments of yaml.dump, except Dumper and sort_keys.

    Raises:
        yaml.YAMLError: There is data of another type.
    """
    return str(yaml.dump(data, Dumper=PlainDumper, sort_keys=False, **choices))


def _reason(error: Exception) -> str:
    """Return the reason of an error of reading YAML, on one line, with its position.

    An error of neither YAML nor an encoding has one of two fixed reasons: too many
    digits, or a type unlike its tag.
    """
    if isinstance(error, yaml.MarkedYAMLError) and error.problem:
        mark = error.problem_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        return place + " ".join(_plain(error.problem).split())
    if isinstance(error, yaml.reader.ReaderError):
        return f"character {error.position + 1} is none that YAML may have"
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start + 1} is not UTF-8 ({error.reason})"
    if isinstance(error, (yaml.YAMLError, UnicodeError)):
        return " ".join(str(error).split())
    long = "a number has too many digits"
    return long if "digits" in str(error) else "a value is not of the type of its tag"


def _plain(problem: str) -> str:
    """Return a message of PyYAML with Python terms replaced by plain ones."""
    problem = problem.replace("found unhashable key", "a key is a list or a mapping")
    return re.sub(
        "could not determine a constructor for the tag", "unknown tag", problem
    )


def _content(path: Any, what: str) -> tuple[bytes, str]:
    """Return at most SIZE + 1 bytes of a file, and its path; `what` is for errors."""
    try:
        where = os.fspath(path)
        with Path(where).open("rb") as file:
            # One byte more than allowed shows the caller that the file is too large.
            return file.read(SIZE + 1), str(where)
    except TypeError as error:
        valid = "a path, YAML text or a mapping"
        raise ModelError(f"the {what} is {shown(path)}; valid: {valid}") from error
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL
        reason = why_unread(error)
        raise ModelError(f"cannot read the {what} {shown(path)}: {reason}") from error


class _TooMuch(Exception):
    """The data exceed VALUES or DEPTH; the message names the limit."""


def _check_depth(depth: int) -> None:
    if depth > DEPTH:
        raise _TooMuch(f"lists and mappings nested more than {DEPTH} deep; valid: less")


def _check_count(values: int) -> None:
    if values > VALUES:
        raise _TooMuch(f"more than {VALUES} values, aliases expanded; valid: fewer")


def _check_extent(data: Any) -> None:
    """Raise _TooMuch if data exceed VALUES or DEPTH, aliases and cycles expanded.

    Keys of mappings do not count; a value inside n lists has depth n + 1.
    """
    level, values, depth = [data], 1, 0
    while level:
        parts = [
            x.values() if isinstance(x, Mapping) else x
            for x in level
            if isinstance(x, (Mapping, list, tuple))
        ]
        values, depth = values + sum(len(part) for part in parts), depth + 1
        _check_count(values)
        _check_depth(depth)
        level = [x for part in parts for x in part]
