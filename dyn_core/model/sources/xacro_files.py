"""Expansion of xacro by the Python package xacro, the extra `xacro`.

A xacro file is a program that may never end, and the package has global state: it runs
in a separate process, where packages.py resolves $(find PKG).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dyn_core.errors import ModelError, unknown_name
from dyn_core.model.sources.bounded_process import JobError, run_job
from dyn_core.model.sources.packages import Packages
from dyn_core.model.urdf_xml.attributes import EXTRA
from dyn_core.validation import shown

_JOB = Path(__file__).with_name("xacro_job.py")
_MARKS = ("<xacro:", "${", "$(")


def uses_xacro(text: str) -> bool:
    """Return whether a text has xacro tags or expressions."""
    return any(mark in text for mark in _MARKS)


def argument_values(arguments: Mapping[str, Any] | None) -> dict[str, str]:
    """Return arguments as strings for xacro; booleans become true and false.

    None is an empty mapping.

    Raises:
        ModelError: `arguments` is no mapping, a name is no string, or a value is
            neither string, number nor boolean.
    """
    values = {}
    if not isinstance(arguments, (Mapping, type(None))):
        raise ModelError(
            f"xacro_arguments is {shown(arguments)}; valid: a mapping from names"
        )
    for name, value in (arguments or {}).items():
        if not isinstance(name, str) or not isinstance(value, (str, bool, int, float)):
            raise ModelError(
                f"xacro_arguments: {name!r} is {value!r}; valid: names with strings,"
                " numbers, True or False"
            )
        values[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return values


def expand(
    text: str,
    file: Path | None,
    packages: Packages,
    arguments: Mapping[str, str],
    optional: Iterable[str] = (),
) -> str:
    """Return the XML text of an expanded xacro file.

    Args:
        text: Content of the file.
        file: Its absolute path; None for text, whose relative paths start at the
            working directory.
        packages: Search for the packages of $(find PKG).
        arguments: Values of <xacro:arg>, by name.
        optional: Names of arguments that the file need not declare.

    Raises:
        ModelError: xacro is not installed or cannot expand the file, a package is
            missing, or the file has no such argument.
    """
    where = "the xacro text" if file is None else str(file)
    if importlib.util.find_spec("xacro") is None:
        raise ModelError(f"{where} needs the package xacro, which is missing: {EXTRA}")

    def folder_of(name: str) -> dict[str, str]:
        """Return the `folder` of a package, or the `fault` why it is not found."""
        try:
            return {"folder": str(packages.folder(name))}
        except ModelError as error:
            return {"fault": str(error)}

    request = {
        "file": None if file is None else str(file),
        "arguments": dict(arguments),
        "optional": list(optional),
    }
    content = text.encode("utf-8", "surrogatepass")
    try:
        facts, xml = run_job(_JOB, request, content, folder_of)
    except JobError as error:
        raise ModelError(f"{where} cannot be expanded by xacro, which {error}") from (
            error
        )
    unknown = [
        unknown_name("xacro argument", name, facts["declared"])
        for name in facts["unknown"]
    ]
    if "refused" in facts:
        inside = f", in {facts['inside']}" if facts["inside"] else ""
        unknown.insert(0, facts["refused"])
        raise ModelError(f"{where}{inside}: {'; '.join(unknown)}")
    for fault in unknown:
        raise ModelError(f"{where}: {fault}")
    return xml.decode("utf-8", "surrogatepass")
