"""Smaller files that fail in the same way: by elements, entries, lines and tokens."""

from __future__ import annotations

import copy
import re
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar
from xml.etree import ElementTree

from fuzz.fuzz_file import FuzzFile
from fuzz.trial import LIMIT, Failure, try_file
from fuzz.yaml_files import copied, part_of, places

BUDGET = 20.0  # CPU time for one file [s]
_TOKENS = re.compile(rb"[\w.+-]+|\s+|.", re.DOTALL)
Content = TypeVar("Content")
Fails = Callable[[Any], bool]


def minimised(
    file: FuzzFile, failure: Failure, limit: float = LIMIT, budget: float = BUDGET
) -> FuzzFile:
    """Return a smaller file that fails like this one.

    Args:
        file: File that fails.
        failure: How it fails.
        limit: CPU time that a file may take [s].
        budget: CPU time for all that is tried [s].
    """
    if failure.what == "refused":
        return file
    end = time.process_time() + budget

    def fails(content: Any) -> bool:
        if time.process_time() > end:
            return False
        other = try_file(file.with_content(content), limit)[1]
        return other is not None and other.key == failure.key

    if isinstance(file.content, bytes):
        return file.with_content(_smaller_bytes(file.content, fails))
    return file.with_content(_smaller_data(file.content, fails))


def _smaller_bytes(content: bytes, fails: Fails) -> bytes:
    content = _smaller_xml(content, fails)
    for split in (_lines, _TOKENS.findall):
        parts = _fewer(split(content), lambda parts: fails(b"".join(parts)))
        content = b"".join(parts)
    return content


def _lines(content: bytes) -> list[bytes]:
    return re.sub(rb">\s*<", b">\n<", content).splitlines(keepends=True)


def _fewer(
    parts: list[Content], fails: Callable[[list[Content]], bool]
) -> list[Content]:
    """Return as few parts as still fail: halves are left out first, then quarters."""
    if not fails(parts):
        return parts
    size = max(1, len(parts) // 2)
    while True:
        start = 0
        while start < len(parts):
            fewer = parts[:start] + parts[start + size :]
            if fewer and fails(fewer):
                parts = fewer
            else:
                start += size
        if size == 1:
            return parts
        size //= 2


def _smaller_xml(content: bytes, fails: Fails) -> bytes:
    """Leave out elements and attributes, of what is XML."""
    try:
        robot = ElementTree.fromstring(content)
    except (ElementTree.ParseError, LookupError, ValueError):
        return content
    if not fails(ElementTree.tostring(robot)):
        return content
    changed = True
    while changed:
        changed = False
        for smaller in _fewer_elements(robot):
            if fails(ElementTree.tostring(smaller)):
                robot, changed = smaller, True
                break
    return ElementTree.tostring(robot)


def _fewer_elements(robot: ElementTree.Element) -> Iterator[ElementTree.Element]:
    """Return copies of a robot without one element, or one attribute."""
    elements = list(robot.iter())
    for k, element in enumerate(elements):
        for i in range(len(element)):
            smaller = copy.deepcopy(robot)
            owner = list(smaller.iter())[k]
            del owner[i]
            yield smaller
    for k, element in enumerate(elements):
        for key in element.attrib:
            smaller = copy.deepcopy(robot)
            del list(smaller.iter())[k].attrib[key]
            yield smaller


def _smaller_data(data: Any, fails: Fails) -> Any:
    """Leave out entries of mappings and lists, from the outside in."""
    changed = True
    while changed:
        changed = False
        for path in sorted(places(data), key=len):
            smaller = copied(data)
            *parents, last = path
            del part_of(smaller, tuple(parents))[last]
            if fails(smaller):
                data, changed = smaller, True
                break
    return data
