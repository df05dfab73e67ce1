"""Job that runs the package xacro: text or a file -> XML.

It runs in a separate process, by its path, and imports nothing of dyn_core.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any


class _NoPackage(Exception):
    """A package is missing; the message names the folders searched."""


def prepare() -> None:
    """Import xacro, before the server accepts jobs; ImportError if it is missing."""
    import xacro  # noqa: F401


def run(
    request: Mapping[str, Any], data: bytes, ask: Callable[[str], Any]
) -> tuple[dict[str, Any], bytes]:
    """Expand a file and return (facts, XML).

    The facts have `unknown` and `declared` arguments; if xacro fails, also `refused`,
    the reason, and `inside`, the included file or None, and the XML is empty. A
    MemoryError passes through.

    Args:
        request: `file`: path, or None for text; `arguments`: values by name;
            `optional`: names that the file need not declare.
        data: Text in UTF-8; used only if `file` is None.
        ask: Function of a package's name that returns {"folder": path} or
            {"fault": reason}.
    """
    import xacro
    from xacro import substitution_args

    def find(name: str) -> str:
        """Return the folder of a package for $(find PKG), or raise _NoPackage."""
        answer = ask(name)
        if "fault" in answer:
            raise _NoPackage(answer["fault"])
        return str(answer["folder"])

    values, file = _Arguments(request["arguments"]), request["file"]
    values.asked.update(request["optional"])
    table = substitution_args._eval_dict
    before = substitution_args._eval_find, table["find"]
    substitution_args._eval_find = table["find"] = find
    xacro.filestack = []
    try:
        if file is None:
            document = xacro.parse(data.decode("utf-8", "surrogatepass"))
            xacro.process_doc(document, mappings=values, verbosity=0)
        else:
            document = xacro.process_file(file, mappings=values, verbosity=0)
        return values.facts(), document.toxml().encode("utf-8", "surrogatepass")
    except MemoryError:
        raise
    except Exception as error:  # xacro raises what its expressions raise
        inside = [x for x in xacro.filestack or () if x not in (None, file)]
        fault = {"refused": _reason(error), "inside": inside[-1] if inside else None}
        return {**values.facts(), **fault}, b""
    finally:
        substitution_args._eval_find, table["find"] = before


class _Arguments(dict[str, str]):
    """Arguments that record which names the file looks up, or need not: `asked`.

    `declared` are names with an <xacro:arg> in the file.
    """

    def __init__(self, values: Mapping[str, str]) -> None:
        super().__init__(values)
        self.asked: set[str] = set()
        self.declared: set[str] = set()

    def facts(self) -> dict[str, list[str]]:
        """Return `unknown`, given arguments never looked up, and `declared`, sorted."""
        unknown = [name for name in self if name not in self.asked]
        return {"unknown": unknown, "declared": sorted(self.declared)}

    def __contains__(self, name: object) -> bool:
        self.asked.add(str(name))
        self.declared.add(str(name))
        return super().__contains__(name)

    def __getitem__(self, name: str) -> str:
        self.asked.add(name)
        return super().__getitem__(name)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and the errors that xacro has wrapped in it, outermost first."""
    inner: Any = error
    while isinstance(inner, BaseException):
        yield inner
        inner = getattr(inner, "exc", None)


def _reason(error: Exception) -> str:
    """Return the reason of a failure of xacro as a clause, on one line."""
    causes = list(_causes(error))
    last = causes[-1]
    if isinstance(last, _NoPackage):
        return str(last)
    if isinstance(last, RecursionError):
        return "xacro cannot expand it: macros or includes that contain themselves"
    if type(last).__name__ == "ArgException":
        return f"argument '{last}' has no value; give xacro_arguments={{'{last}': ...}}"
    said = " ".join(str(causes[0]).split()) or type(last).__name__
    return f"xacro cannot expand it: {said}"
