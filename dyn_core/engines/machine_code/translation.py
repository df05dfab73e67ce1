"""Functions of the subset as modules of LLVM IR.

Each large function is a module of its own, with the small ones that it calls: modules
are compiled side by side, and once for all functions that call them. A small one stands
in each module that calls it, where LLVM may inline it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, NamedTuple

from dyn_core.engines.machine_code.lanes import declarations
from dyn_core.engines.machine_code.language import is_marked, python_of
from dyn_core.engines.machine_code.operation_ir import Operations
from dyn_core.engines.machine_code.statements import Place, StatementWriter
from dyn_core.engines.machine_code.types import (
    BOOL,
    FunctionType,
    NumberType,
    RecordType,
    TupleType,
    of_function,
    place_of,
    size,
)
from dyn_core.errors import TraceError

_LARGE = 3000  # characters of LLVM IR above which a function is a module of its own
_named: dict[str, Callable[..., Any]] = {}  # functions by the LLVM names they have
_written: dict[tuple[Callable[..., Any], int], tuple[str, _Definition]] = {}


class Modules(NamedTuple):
    """LLVM IR of a function and of all functions that it calls.

    Attributes:
        irs: The IR of each module, callers first. The first one has the function
            `entry`, which takes a table of arguments, see _entry.
        places: Item k is (failure text, function, line) of status k + 1; empty unless
            checked.
    """

    irs: list[str]
    places: list[Place]


class _Definition(NamedTuple):
    """One function in LLVM IR, and the Python functions that it calls.

    `head` has its result, name and parameters, as in a declaration.
    """

    head: str
    code: str
    calls: tuple[Callable[..., Any], ...]


def translate(
    function: Callable[..., Any], checked: bool = False, lanes: int = 0
) -> Modules:
    """Return the LLVM IR of a function and of all functions that it calls.

    The first module has the function `entry`, which Python calls; the others follow,
    callers first. The checked form, of indices and divisors, has one module, and its
    failures in `places`. `lanes`: states computed at once; 0: one.

    TraceError: a construct or annotation is not in the subset, functions call each
    other recursively, or a source is not available (see source_of).
    """
    places: list[Place] | None = [] if checked else None
    defined: dict[Callable[..., Any], _Definition] = {}
    _collect(function, lanes, places, [], defined)
    entry = _entry(_name(function), of_function(function), checked, lanes)
    first = _Definition("", entry, (function,))
    large = {x for x, d in defined.items() if not checked and len(d.code) > _LARGE}
    apart = [defined[x] for x in reversed(defined) if x in large]  # callers first
    irs = [_module(x, large, defined, lanes) for x in (first, *apart)]
    return Modules(irs, places or [])


def _collect(
    function: Callable[..., Any],
    lanes: int,
    places: list[Place] | None,
    callers: list[Callable[..., Any]],
    defined: dict[Callable[..., Any], _Definition],
) -> None:
    """Translate a function and all that it calls, each once, and called ones first.

    `lanes` is 0 for scalars. Failures of the checked form are added to `places` (None:
    not checked), functions to `defined`. `callers` led to it, the outermost first.
    Recursion is refused.
    """
    if function in callers:
        names = " -> ".join(f.__name__ for f in [*callers, function])
        raise TraceError(
            f"{place_of(function)}: recursion ({names}) is not in the subset: "
            "nothing bounds its depth; valid: a loop, with an array as its stack"
        )
    if function not in defined:
        if places is None:
            made = _unchecked(function, lanes)
        else:
            made = _define(function, lanes, places)
        for inner in made.calls:
            _collect(inner, lanes, places, [*callers, function], defined)
        defined[function] = made


def _unchecked(function: Callable[..., Any], lanes: int) -> _Definition:
    """Return a function in LLVM IR, not checked, with `lanes` lanes (0: scalars).

    It is written once in a process, as long as its code and constants stay the same.
    """
    content = repr(_content(function, _name))
    kept = _written.get((function, lanes))
    if kept is None or kept[0] != content:
        kept = _written[function, lanes] = content, _define(function, lanes, None)
    return kept[1]


def _define(
    function: Callable[..., Any], lanes: int, places: list[Place] | None
) -> _Definition:
    """Return a function in LLVM IR; the functions that it calls are named only.

    `lanes` is 0 for scalars. Failures of the checked form are added to `places` (None:
    not checked).
    """
    calls: dict[Callable[..., Any], None] = {}

    def callee(inner: Callable[..., Any]) -> tuple[str, FunctionType]:
        calls[inner] = None
        return _name(inner), of_function(inner)

    kind = of_function(function)
    writer = StatementWriter(function, kind, callee, places, lanes)
    code = writer.define(_name(function))
    return _Definition(writer.head(_name(function)), code, tuple(calls))


def _name(function: Callable[..., Any]) -> str:
    """Return the LLVM name of a function, in quotes, its own in the whole process."""
    name = f"{function.__module__}.{function.__qualname__}"
    number = 1
    while _named.setdefault(f"{name}.{number}", function) is not function:
        number += 1  # another one of this name, as functions defined in a function have
    return f'"{name}.{number}"'


def _module(
    first: _Definition,
    large: set[Callable[..., Any]],
    defined: dict[Callable[..., Any], _Definition],
    lanes: int,
) -> str:
    """Return the LLVM IR of a module with one function that others can call, `first`.

    Functions of `large` have modules of their own, and are declared only. In `defined`
    called ones come before their callers.
    """
    inside, waiting = set(), [*first.calls]
    while waiting:
        function = waiting.pop()
        if function not in inside:
            inside.add(function)
            if function not in large:
                waiting += defined[function].calls
    code = [
        f"declare hidden {made.head}\n" if function in large else made.code
        for function, made in defined.items()
        if function in inside
    ]
    code.append(first.code.replace("define internal", "define hidden", 1))
    return "\n".join([declarations(lanes), *code])


def _entry(name: str, kind: FunctionType, checked: bool, lanes: int) -> str:
    """Return the LLVM definition of `entry`, the function that Python calls.

    Its parameters are, in order, the table of arrays and records; memory for a tuple of
    results; memory for the status if checked; with lanes the lane mask and an unused
    pointer; then the numbers. A tuple is written as 8-byte words and nothing is
    returned; another result is returned, a bool as one byte.
    """
    lines: list[str] = []
    several = isinstance(kind.result, TupleType) and bool(kind.result.items)
    reader = Operations(translate, checked, lanes)
    reader.lines = lines
    heads = ["ptr %results"] * several + reader.more_arguments()
    heads += ["ptr %nothing"] * bool(lanes)  # scratch of a kernel call, unused here
    arguments, place = reader.more_arguments(), 0
    for x, t in kind.parameters:
        if isinstance(t, NumberType):
            heads.append(f"{'i8' if t is BOOL else t.llvm} %n_{x}")
            value = f"%n_{x}"
            if t is BOOL:
                value = reader.new(f"icmp ne i8 {value}, 0")
            arguments.append(f"{t.llvm} {value}")
        else:
            names = reader.load_argument(t, "%table", place).names
            named = zip(reader.parts(t), names, strict=True)
            arguments += [f"{p} {n}" for p, n in named]
            place += size(t)
    llvm = reader.result_type(kind.result)
    call = f"call {llvm} @{name}({', '.join(arguments)})"
    returned = "void" if several else "i8" if llvm == "i1" else llvm
    if several:
        whole = reader.new(call)
        assert isinstance(kind.result, TupleType)
        for k, item in enumerate(kind.result.items):
            part = reader.new(f"extractvalue {llvm} {whole}, {k}")
            if item is BOOL:
                part = reader.new(f"zext i1 {part} to i64")
            to = reader.new(f"getelementptr i64, ptr %results, i64 {k}")
            reader.add(f"store {'i64' if item is BOOL else item.llvm} {part}, ptr {to}")
        reader.add("ret void")
    elif llvm == "void":
        reader.add(call)
        reader.add("ret void")
    else:
        register = reader.new(call)
        if llvm == "i1":
            register = reader.new(f"zext i1 {register} to i8")
        reader.add(f"ret {returned} {register}")
    table = ["ptr noalias nonnull readonly %table"]
    head = f"define {returned} @entry({', '.join([*table, *heads])})"
    return "\n".join([f"{head} #0 {{", *lines, "}", ""])


def contents(function: Callable[..., Any]) -> list[Any]:
    """Return all data on which the machine code depends, as loaded in this process.

    The data are the code of the function and of all marked functions that it calls,
    their types and line numbers, and the constants of their modules, as nested lists
    and tuples of plain values. Other functions and classes are named only.
    """
    order, numbers = [function], {function: 0}

    def number(called: Callable[..., Any]) -> int:
        if called not in numbers:
            numbers[called] = len(order)
            order.append(called)
        return numbers[called]

    return [_content(current, number) for current in order]


def _content(
    function: Callable[..., Any], mark: Callable[[Callable[..., Any]], Any]
) -> list[Any]:
    """Return the data on which the machine code of one function depends.

    `mark` returns plain data that stand for a marked function that it calls.
    """
    code, signature = function.__code__, of_function(function)
    constants = [x for x in code.co_consts if not hasattr(x, "co_code")]
    lines = code.co_firstlineno, code.co_linetable
    entries: list[Any] = [
        (code.co_name, code.co_code, constants, code.co_names, code.co_varnames, lines),
        _shape(signature),
    ]
    for name, value in _reached(function):
        value = python_of(value)
        if is_marked(value):
            entries.append((name, "function", mark(value)))
        elif isinstance(value, int | float):
            entries.append((name, repr(value)))
        elif callable(value):
            entries.append((name, getattr(value, "__qualname__", "")))
    return entries


def _reached(function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """Yield (name, value) of the globals that a function may use, without builtins.

    For modules and classes among them also their attributes, named "MODULE.NAME", whose
    names occur in the function, and likewise the attributes of these; each module or
    class is searched once.
    """
    names, code = function.__globals__, function.__code__
    waiting = [(name, names[name]) for name in code.co_names if name in names]
    seen = set()
    while waiting:
        name, value = waiting.pop()
        yield name, value
        if isinstance(value, ModuleType | type) and id(value) not in seen:
            seen.add(id(value))
            inside = [x for x in code.co_names if hasattr(value, x)]
            waiting += [(f"{name}.{x}", getattr(value, x)) for x in inside]


def _shape(kind: Any) -> Any:
    """Return a Type or FunctionType as text and lists, without Python's classes."""
    if isinstance(kind, RecordType):
        return [str(kind), [(name, _shape(inner)) for name, inner in kind.fields]]
    if hasattr(kind, "parameters"):
        inner = [(name, _shape(t)) for name, t in kind.parameters]
        return [inner, str(kind.result)]
    return str(kind)
