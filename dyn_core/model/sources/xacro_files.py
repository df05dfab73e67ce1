"""Expansion of xacro by pip's package xacro, the extra `xacro`.

A xacro is a program that may never end, and that package has global state: it runs in a
process of its own, where $(find PKG) asks packages.py.
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
    """Check whether there is something in a file for xacro to replace."""
    return any(mark in text for mark in _MARKS)


def argument_values(arguments: Mapping[str, Any] | None) -> dict[str, str]:
    """Return arguments as xacro takes them: strings, true and false in small letters.

    Raises:
        ModelError: A name or value is of a type that xacro has not.
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
    """Return the XML that xacro makes of a file.

    Args:
        text: The file's content.
        file: Its path, absolute; None for text, whose relative paths start at the
            working directory.
        packages: Where $(find PKG) searches.
        arguments: Values of <xacro:arg>, by name.
        optional: Those of them that the file need not have.

    Raises:
        ModelError: xacro is not installed, cannot expand the file, or has no such
            argument.
    """
    where = "the xacro text" if file is None else str(file)
    if importlib.util.find_spec("xacro") is None:
        raise ModelError(f"{where} needs the package xacro, which is missing: {EXTRA}")

    def folder_of(name: str) -> dict[str, str]:
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
