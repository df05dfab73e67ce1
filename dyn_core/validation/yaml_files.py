"""The one reader of YAML: bounded in size, depth and number of values.

Only plain data is read: mappings with string keys or numbers as keys, lists, strings,
numbers, booleans and null. Numbers are those of YAML 1.2: `2e-5` is one, `1_0`, `0x10`
and `1:30` are strings. An alias counts as often as it is used. Whatever is wrong is a
ModelError that names the file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from dyn_core.errors import ModelError, why_unread
from dyn_core.validation.kinds import shown

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
    """PyYAML's reader of plain data alone: no tags, dates or merged mappings."""

    yaml_implicit_resolvers: dict[Any, Any] = {}
    yaml_constructors = {
        _TAG + kind: yaml.SafeLoader.yaml_constructors[_TAG + kind]
        for kind in (*_PLAIN, "str", "seq", "map")
    } | {None: yaml.SafeLoader.construct_undefined}

    values = depth = 0

    def fetch_flow_collection_start(self, token: Any) -> None:
        """Refuse brackets in brackets before the rest of the file is scanned."""
        _check_depth(self.flow_level)
        super().fetch_flow_collection_start(token)

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Return the next value; too many and too deep ones end the reading."""
        self.values, self.depth = self.values + 1, self.depth + 1
        _check_depth(self.depth)
        _check_count(self.values)
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        """Return a dict; a key that is there twice is refused."""
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
    """Return the content of a YAML file, and what errors call it.

    Args:
        source: Path, YAML text of more than one line, or a mapping as it is.
        what: Which file it is, for errors: sidecar, chain file, ...
        inline: What errors call YAML text and mappings.

    Raises:
        ModelError: It cannot be read, is no YAML, or is too large or too deep.
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


def _reason(error: Exception) -> str:
    """Return what is wrong with YAML and where, in one line."""
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
    """Return a problem that PyYAML reports without words of programs."""
    problem = problem.replace("found unhashable key", "a key is a list or a mapping")
    return re.sub(
        "could not determine a constructor for the tag", "unknown tag", problem
    )


def _content(path: Any, what: str) -> tuple[bytes, str]:
    """Return the bytes of a file, no more than one over the limit, and its path."""
    try:
        where = os.fspath(path)
        with Path(where).open("rb") as file:
            return file.read(SIZE + 1), str(where)
    except TypeError as error:
        valid = "a path, YAML text or a mapping"
        raise ModelError(f"the {what} is {shown(path)}; valid: {valid}") from error
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL
        reason = why_unread(error)
        raise ModelError(f"cannot read the {what} {shown(path)}: {reason}") from error


class _TooMuch(Exception):
    """More values, or deeper ones, than a file may have."""


def _check_depth(depth: int) -> None:
    if depth > DEPTH:
        raise _TooMuch(f"lists and mappings nested more than {DEPTH} deep; valid: less")


def _check_count(values: int) -> None:
    if values > VALUES:
        raise _TooMuch(f"more than {VALUES} values, aliases expanded; valid: fewer")


def _check_extent(data: Any) -> None:
    """Refuse data of too many values or levels, aliases and cycles expanded."""
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
