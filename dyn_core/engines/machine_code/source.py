"""The syntax tree of a function, from a file that is unchanged since its import."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable
from functools import lru_cache
from types import CodeType
from typing import Any

from dyn_core.engines.machine_code.types import place_of
from dyn_core.errors import TraceError


def source_of(function: Callable[..., Any]) -> ast.FunctionDef:
    """Return the syntax tree of a function.

    Raises:
        TraceError: The function is a lambda or a closure, its source is not available,
            or the file changed since it was imported.
    """
    where, code = place_of(function), function.__code__
    if code.co_freevars or code.co_name == "<lambda>":
        names = ", ".join(code.co_freevars) or "lambda"
        what = f"{names} of a function around it, not of the module"
        raise TraceError(f"{where}: {what}; valid: names of the module")
    lines = linecache.getlines(code.co_filename, function.__globals__)
    if not lines:
        message = f"{where}: its source is not there; valid: a function of a file"
        raise TraceError(message)
    nodes, codes = _of_file("".join(lines), code.co_filename)
    key = code.co_firstlineno, code.co_name
    if key not in nodes or _content(codes[key]) != _content(code):
        raise TraceError(
            f"{where}: the file is another than when it was imported; "
            "valid: a new start of Python"
        )
    return nodes[key]


_Key = tuple[int, str]  # first line of a function (with decorators), its name


@lru_cache(maxsize=8)
def _of_file(
    source: str, name: str
) -> tuple[dict[_Key, ast.FunctionDef], dict[_Key, CodeType]]:
    """Return syntax trees and code objects of a file's functions; empty if invalid.

    Args:
        source: Content of the file.
        name: Path of the file.
    """
    try:
        tree = ast.parse(source)
        waiting = [compile(source, name, "exec", dont_inherit=True)]
    except SyntaxError:
        return {}, {}
    nodes = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            lines = [node.lineno, *(x.lineno for x in node.decorator_list)]
            nodes[min(lines), node.name] = node
    codes = {}
    while waiting:
        code = waiting.pop()
        codes[code.co_firstlineno, code.co_name] = code
        waiting += [x for x in code.co_consts if isinstance(x, CodeType)]
    return nodes, codes


def _content(code: CodeType) -> tuple[Any, ...]:
    """Return the behaviour of a code object, without line numbers and docstring."""
    numbers = [x for x in code.co_consts if isinstance(x, int | float)]
    return code.co_code, code.co_names, code.co_varnames, repr(numbers)
