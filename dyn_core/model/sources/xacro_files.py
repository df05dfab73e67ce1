"""Expansion of xacro by pip's package xacro, the extra `xacro`.

That package finds packages by ament alone, and its state is global. A copy of it that
nobody else sees is used here, under a lock, and $(find PKG) asks packages.py.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from typing import Any

from dyn_core.errors import ModelError, unknown_name
from dyn_core.model.sources.packages import Packages
from dyn_core.model.urdf_xml.attributes import EXTRA
from dyn_core.sharing import Lock, once
from dyn_core.validation import shown

_COPY = "_xacro_of_dyn_ros"
_LOCK = Lock()
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
    spec = importlib.util.find_spec("xacro")
    if spec is None or spec.origin is None:
        raise ModelError(f"{where} needs the package xacro, which is missing: {EXTRA}")
    values = _Arguments(arguments)
    values.asked.update(optional)
    with _LOCK:
        xacro, substitution = _copy(spec.origin)
        _search_in(packages, substitution)
        xacro.filestack = []
        try:
            if file is None:
                document = xacro.parse(text)
                xacro.process_doc(document, mappings=values, verbosity=0)
            else:
                document = xacro.process_file(where, mappings=values, verbosity=0)
            result = str(document.toxml())
        except Exception as error:  # xacro raises what its expressions raise
            inside = [x for x in xacro.filestack or () if x not in (None, where)]
            place = f"{where}, in {inside[-1]}" if inside else where
            reasons = [_reason(error), *values.unknown()]
            raise ModelError(f"{place}: {'; '.join(reasons)}") from error
    for fault in values.unknown():
        raise ModelError(f"{where}: {fault}")
    return result


class _Arguments(dict[str, str]):
    """Arguments that note which of them the file asks for.

    Attributes:
        asked: Names that the file looks up, or need not.
        declared: Names that it has an <xacro:arg> of.
    """

    def __init__(self, values: Mapping[str, str]) -> None:
        super().__init__(values)
        self.asked: set[str] = set()
        self.declared: set[str] = set()

    def unknown(self) -> list[str]:
        """Return what is wrong with arguments that the file never asked for."""
        known = sorted(self.declared)
        names = [name for name in self if name not in self.asked]
        return [unknown_name("xacro argument", name, known) for name in names]

    def __contains__(self, name: object) -> bool:
        self.asked.add(str(name))
        self.declared.add(str(name))
        return super().__contains__(name)

    def __getitem__(self, name: str) -> str:
        self.asked.add(name)
        return super().__getitem__(name)


@once
def _copy(origin: str) -> tuple[Any, Any]:
    """Return a copy of the package xacro, and its module of substitutions."""
    loader = SourceFileLoader(_COPY, origin)
    spec = ModuleSpec(_COPY, loader, origin=origin, is_package=True)
    spec.submodule_search_locations = [str(Path(origin).parent)]
    spec.has_location = True
    module = importlib.util.module_from_spec(spec)
    sys.modules[_COPY] = module
    loader.exec_module(module)
    return module, importlib.import_module(f"{_COPY}.substitution_args")


def _search_in(packages: Packages, substitution: Any) -> None:
    """Let $(find PKG) and find('PKG') of the copy search these packages."""

    def find(name: str) -> str:
        return str(packages.folder(name))

    substitution._eval_find = substitution._eval_dict["find"] = find


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and the errors that xacro has wrapped in it, outermost first."""
    inner: Any = error
    while isinstance(inner, BaseException):
        yield inner
        inner = getattr(inner, "exc", None)


def _reason(error: Exception) -> str:
    """Return what is wrong, in one line."""
    causes = list(_causes(error))
    last = causes[-1]
    if isinstance(last, ModelError):
        return str(last)
    if type(last).__name__ == "ArgException":
        return f"argument '{last}' has no value; give xacro_arguments={{'{last}': ...}}"
    said = " ".join(str(causes[0]).split()) or type(last).__name__
    return f"xacro cannot expand it: {said}"
