"""The operations of the interpreter as LLVM functions, for any number of lanes.

Each takes the address of its words, the scratch memory and the record of control.py.
Its words are a count and, as often as the count says, the slots of results and
operands. The instructions of an operation are the same as in emit.py, so the bits are
the same as in kernels. A condition is 1.0 or 0.0.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import NamedTuple

from dyn_core.engines.llvm.emit import HOLDS
from dyn_core.engines.llvm.functions.float64_functions import (
    FUNCTIONS,
    declarations,
    definitions,
)
from dyn_core.engines.llvm.interpreter.control import ROWS
from dyn_core.engines.llvm.ir import Instructions, Value, constant
from dyn_core.engines.llvm.products.matrix_products import VECTORS, Products, Tile
from dyn_core.engines.llvm.rows_ir import gather, scatter

Compute = Callable[[Instructions, list[Value]], list[Value]]
_ARGUMENTS = "i64 %code, i64 %s, i64 %p"


class MachineOperation(NamedTuple):
    """An operation on slots, of `arity` operands.

    compute(instructions, operands) appends to the first; it returns `results` results.
    """

    arity: int
    compute: Compute
    results: int = 1


def _real(b: Instructions, condition: Value) -> list[Value]:
    """Append a selection to `b`; return the condition as 1.0 or 0.0, in a list."""
    return [b.select(condition, 1.0, 0.0)]


def _truth(x: Value) -> Value:
    """Return a real as a condition; NaN counts as true."""
    return x.compare("ne", 0.0)


def _function(name: str) -> Compute:
    """Return a function (instructions, arguments) that writes the call of `name`."""

    def compute(b: Instructions, x: list[Value]) -> list[Value]:
        arguments = ", ".join(f"{b.real} {value.name}" for value in x)
        return [b.value("real", f"call {b.real} @{name}_{b.width}({arguments})")]

    return compute


def _sincos(b: Instructions, x: list[Value]) -> list[Value]:
    pair = f"{{{b.real}, {b.real}}}"
    both = b.new(f"call {pair} @sincos_{b.width}({b.real} {x[0].name})")
    return [b.value("real", f"extractvalue {pair} {both}, {k}") for k in (0, 1)]


OPERATIONS: dict[str, MachineOperation] = {
    "move": MachineOperation(1, lambda b, x: x),
    "add": MachineOperation(2, lambda b, x: [x[0] + x[1]]),
    "sub": MachineOperation(2, lambda b, x: [x[0] - x[1]]),
    "mul": MachineOperation(2, lambda b, x: [x[0] * x[1]]),
    "div": MachineOperation(2, lambda b, x: [x[0] / x[1]]),
    "fma": MachineOperation(3, lambda b, x: [b.fma(*x)]),
    "fms": MachineOperation(3, lambda b, x: [b.fma(x[0], x[1], -x[2])]),
    "fnma": MachineOperation(3, lambda b, x: [b.fma(-x[0], x[1], x[2])]),
    "neg": MachineOperation(1, lambda b, x: [-x[0]]),
    "abs": MachineOperation(1, lambda b, x: [b.intrinsic("fabs", x[0])]),
    "sqrt": MachineOperation(1, lambda b, x: [b.intrinsic("sqrt", x[0])]),
    "floor": MachineOperation(1, lambda b, x: [b.intrinsic("floor", x[0])]),
    "lt": MachineOperation(2, lambda b, x: _real(b, x[0].compare("lt", x[1]))),
    "le": MachineOperation(2, lambda b, x: _real(b, x[0].compare("le", x[1]))),
    "eq": MachineOperation(2, lambda b, x: _real(b, x[0].compare("eq", x[1]))),
    "and": MachineOperation(2, lambda b, x: _real(b, _truth(x[0]) & _truth(x[1]))),
    "or": MachineOperation(2, lambda b, x: _real(b, _truth(x[0]) | _truth(x[1]))),
    "not": MachineOperation(1, lambda b, x: _real(b, x[0].compare("eq", 0.0))),
    "where": MachineOperation(3, lambda b, x: [b.select(_truth(x[0]), x[1], x[2])]),
    "sincos": MachineOperation(1, _sincos, 2),
    **{
        name: MachineOperation(2 if name == "atan2" else 1, _function(name))
        for name in FUNCTIONS
    },
}
ROWS_ONLY = ("gather", "scatter")
CONTROL = ("loop", "product")  # functions of control.py
# Tiles of products: negative, onto, rows, wide. control.product indexes this order.
TILES = tuple(product((0, 1), (0, 1), (1, ROWS), (0, 1)))
_OTHERS = (
    "begin",
    "finish",
    "still",
    *(f"tile_{n}_{o}_{r}_{w}" for n, o, r, w in TILES),
)
_NAMES = (*ROWS_ONLY, *_OTHERS, *OPERATIONS, "require", *CONTROL)
OPCODES = {name: k for k, name in enumerate(_NAMES)}  # control.py has the first ones


def vectors(width: int) -> int:
    """Return the number of vectors in a row of a wide tile of a product, by lanes."""
    return VECTORS[width > 1]


def write(width: int, fused: bool, vector: int) -> str:
    """Return the LLVM IR of the operations, functions named `op_NAME`.

    `loop` and `product` of control.py are not included; gather and scatter only for
    more than one lane.

    Args:
        width: Lanes of float64.
        fused: Whether a multiply-add rounds once.
        vector: Entries of a row in one vector of a product, where there is one lane.
    """
    parts = declarations(sorted({width, vector}), True)
    parts += definitions([(name, width) for name in ("sincos", *FUNCTIONS)], fused)
    parts += [_each(name, op, width, fused) for name, op in OPERATIONS.items()]
    parts += [_begin(width), _finish(width), _still(width), _require(width)]
    parts += _tiles(Products(width, vector, fused))
    return "\n".join([*parts, *_rows(width)])


def _slot(b: Instructions, word: int) -> str:
    """Append the address in %m of the slot in a word of %words; return its register."""
    place = b.new(f"getelementptr i32, ptr %words, i64 {word}")
    index = b.new(f"load i32, ptr {place}")
    wide = b.new(f"zext i32 {index} to i64")
    return b.new(f"getelementptr {b.real}, ptr %m, i64 {wide}")


def _load(b: Instructions, pointer: str) -> Value:
    """Append to `b` the load of a real of all lanes at `pointer`; return its Value."""
    return b.value("real", f"load {b.real}, ptr {pointer}, align {8 * b.width}")


def _define(name: str, lines: list[str], arguments: str = _ARGUMENTS) -> str:
    """Return the LLVM definition of the function op_NAME, which returns an i64."""
    head = f"define i64 @op_{name}({arguments}) nounwind {{"
    return "\n".join([head, *lines, "}", ""])


_START = ["  %c = inttoptr i64 %code to ptr", "  %m = inttoptr i64 %s to ptr"]


def _counted(name: str, count: int, lines: list[str]) -> str:
    """Return the LLVM function op_NAME that repeats instructions without labels.

    They are executed for each group of `count` words, %words, of which there is at
    least one. The function returns the address behind the last group.
    """
    return _define(
        name,
        [
            *_START,
            "  %n = load i32, ptr %c",
            "  %first = getelementptr i32, ptr %c, i64 1",
            "  br label %each",
            "each:",
            "  %k = phi i32 [0, %0], [%next, %each]",
            "  %words = phi ptr [%first, %0], [%behind, %each]",
            *lines,
            f"  %behind = getelementptr i32, ptr %words, i64 {count}",
            "  %next = add i32 %k, 1",
            "  %more = icmp slt i32 %next, %n",
            "  br i1 %more, label %each, label %end",
            "end:",
            "  %after = ptrtoint ptr %behind to i64",
            "  ret i64 %after",
        ],
    )


def _each(name: str, op: MachineOperation, width: int, fused: bool) -> str:
    """Return the LLVM function of an operation on slots.

    The words of an operation are the slots of its results, then of its operands.
    """
    b = Instructions(width, fused)
    operands = [_load(b, _slot(b, op.results + k)) for k in range(op.arity)]
    for k, value in enumerate(op.compute(b, operands)):
        pointer = _slot(b, k)
        b.lines.append(
            f"  store {b.real} {value.name}, ptr {pointer}, align {8 * width}"
        )
    return _counted(name, op.results + op.arity, b.lines)


def _require(width: int) -> str:
    """Return the LLVM function of `require`, the check of requirements.

    In lanes where the condition does not hold, the status, in slot 0, becomes the
    minimum of its value (HOLDS, 2**30, if none has failed) and the requirement's
    number. Words: slot of the condition, and the requirement's number.
    """
    b = Instructions(width, False)
    holds = _truth(_load(b, _slot(b, 0)))
    place = b.new("getelementptr i32, ptr %words, i64 1")
    number = b.new(f"load i32, ptr {place}")
    wide = b.new(f"sext i32 {number} to i64")
    this = Value(b, "whole", wide)
    if width > 1:
        one = b.new(f"insertelement {b.whole} poison, i64 {wide}, i32 0")
        this = b.value(
            "whole",
            f"shufflevector {b.whole} {one}, {b.whole} poison,"
            f" <{width} x i32> zeroinitializer",
        )
    old = b.value("whole", f"load {b.whole}, ptr %m, align {8 * width}")
    new = b.select(holds, b.lift(HOLDS, "whole"), this)
    least = b.select(new.compare("lt", old), new, old)
    b.lines.append(f"  store {b.whole} {least.name}, ptr %m, align {8 * width}")
    return _counted("require", 2, b.lines)


def _still(width: int) -> str:
    """Return the LLVM function of `still`, which updates the active lanes of a loop.

    It returns 1 if a lane is active, else 0. A lane remains active if it was and its
    condition holds. Words: slot of the active lanes, and slot of the condition.
    """
    b = Instructions(width, False)
    b.lines += [*_START, "  %words = getelementptr i32, ptr %c, i64 0"]
    place = _slot(b, 0)
    going = _truth(_load(b, place)) & _truth(_load(b, _slot(b, 1)))
    real = b.select(going, 1.0, 0.0).name
    b.lines.append(f"  store {b.real} {real}, ptr {place}, align {8 * width}")
    some = b.new(f"zext i1 {b.any(going)} to i64")
    return _define("still", [*b.lines, f"  ret i64 {some}"])


def _begin(width: int) -> str:
    """Return the LLVM function of `begin`: the status of all lanes becomes HOLDS."""
    b = Instructions(width, False)
    holds = constant(HOLDS, "whole", width)
    lines = [
        "  %m = inttoptr i64 %s to ptr",
        f"  store {b.whole} {holds}, ptr %m, align {8 * width}",
        "  ret i64 0",
    ]
    return _define("begin", lines, "i64 %s")


def _finish(width: int) -> str:
    """Return the LLVM function of `finish`, which stores the status of each lane.

    A status is 0, or the number of the first requirement that failed: an int64, for the
    first lane at the address %status. The function returns how many lanes failed.
    """
    b = Instructions(width, False)
    b.lines += ["  %m = inttoptr i64 %s to ptr", "  %to = inttoptr i64 %status to ptr"]
    state = b.value("whole", f"load {b.whole}, ptr %m, align {8 * width}")
    failed = state.compare("ne", HOLDS)
    shown = b.select(failed, state, b.lift(0, "whole"))
    b.lines.append(f"  store {b.whole} {shown.name}, ptr %to, align 8")
    name = failed.name
    if width > 1:
        bits = b.new(f"bitcast {b.truth} {name} to i{width}")
        name = b.new(f"call i{width} @llvm.ctpop.i{width}(i{width} {bits})")
    count = b.new(f"zext i{width} {name} to i64")
    return _define("finish", [*b.lines, f"  ret i64 {count}"], "i64 %s, i64 %status")


def _rows(width: int) -> list[str]:
    """Return LLVM IR of gather and scatter, which transpose rows to slots and back.

    op_gather takes %from, %stride, %n and %to, op_scatter %from, %n and %to.
    """
    if width == 1:
        return []
    get = [
        "  %a = inttoptr i64 %from to ptr",
        "  %b = inttoptr i64 %to to ptr",
        "  call void @gather(ptr %a, i64 %stride, i64 %n, ptr %b)",
        "  ret i64 0",
    ]
    put = [
        "  %a = inttoptr i64 %from to ptr",
        "  %b = inttoptr i64 %to to ptr",
        "  call void @scatter(ptr %a, i64 %n, ptr %b)",
        "  ret i64 0",
    ]
    return [
        gather(width),
        scatter(width),
        _define("gather", get, "i64 %from, i64 %stride, i64 %n, i64 %to"),
        _define("scatter", put, "i64 %from, i64 %n, i64 %to"),
    ]


def _tiles(products: Products) -> list[str]:
    """Return the LLVM IR of each of TILES; products.tiles becomes the last alone."""
    tiles = []
    for negative, onto, rows, wide in TILES:
        count = vectors(products.width) if wide else 1
        products.tiles = {Tile(rows, count, bool(negative), bool(onto))}
        _, body = products.definitions()[0].split("(", 1)
        tiles.append(f"define void @op_tile_{negative}_{onto}_{rows}_{wide}({body}")
    return tiles
