"""A function of the subset, and all functions that it calls, as one LLVM module."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dyn_core.engines.machine_code.lanes import declarations
from dyn_core.engines.machine_code.operations import Operations
from dyn_core.engines.machine_code.statements import Place, StatementWriter
from dyn_core.engines.machine_code.types import (
    BOOL,
    FunctionType,
    NumberType,
    TupleType,
    of_function,
    place_of,
    size,
)
from dyn_core.errors import TraceError


@dataclass
class ModuleCode:
    """LLVM IR of a function and of all functions that it calls.

    Attributes:
        ir: The IR; its function `entry` takes a table of arguments.
        places: Failure text, function and line of status k + 1; empty unless checked.
    """

    ir: str
    places: list[Place]


def translate(
    function: Callable[..., Any], checked: bool = False, lanes: int = 0
) -> ModuleCode:
    """Return the LLVM IR of a function and of all functions that it calls.

    Args:
        function: Function marked by `machine_code`.
        checked: Whether indices and divisors are checked.
        lanes: Number of states computed at once; 0: one.

    Raises:
        TraceError: A construct is not in the subset.
    """
    work = _ModuleWriter(checked, lanes)
    name, kind = work.callee(function)
    entry = _entry(name, kind, checked, lanes)
    code = [declarations(lanes), *work.definitions, entry]
    return ModuleCode("\n".join(code), work.places or [])


class _ModuleWriter:
    """Writes the functions of one module, each once, called ones first."""

    def __init__(self, checked: bool, lanes: int) -> None:
        self.lanes = lanes
        self.definitions: list[str] = []
        self.places: list[Place] | None = [] if checked else None
        self.known: dict[Callable[..., Any], tuple[str, FunctionType]] = {}
        self.open: list[Callable[..., Any]] = []

    def callee(self, function: Callable[..., Any]) -> tuple[str, FunctionType]:
        """Return LLVM name and signature of a function, which is translated if new.

        Raises:
            TraceError: Recursion, or a construct that is not in the subset.
        """
        if function in self.open:
            names = " -> ".join(f.__name__ for f in [*self.open, function])
            raise TraceError(
                f"{place_of(function)}: recursion ({names}) is not in the subset: "
                "nothing bounds its depth; valid: a loop, with an array as its stack"
            )
        if function not in self.known:
            self.open.append(function)
            kind = of_function(function)
            name = f"f{len(self.known) + len(self.open)}_{function.__name__}"
            code = StatementWriter(
                function, kind, self.callee, self.places, self.lanes
            ).define(name)
            self.open.pop()
            self.definitions.append(code)
            self.known[function] = name, kind
        return self.known[function]


def _entry(name: str, kind: FunctionType, checked: bool, lanes: int) -> str:
    """Return the LLVM definition of `entry`, the function that Python calls.

    Its parameters are the table of arrays and records, memory for a tuple of results,
    memory for the status or the lane mask, then the numbers; unneeded ones are omitted.

    Args:
        name: LLVM name of the translated function.
        kind: Its signature.
        checked: Whether indices and divisors are checked.
        lanes: Number of states computed at once; 0: one.
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
