"""LLVM code of one function: its lines, and the representation of floats in lanes.

With lanes a float is a vector with one number for each of several states, and an int is
common to all. Where a condition differs between lanes, the branch of the majority is
taken and the other lanes are dropped: their bits in `alive` become zero, and their
later results are meaningless. Lanes that are alive at the end have the bits of the code
without lanes. A selection between two floats (where, min, max, or a simple conditional
expression) is made in each lane and drops none.
"""

from __future__ import annotations

import ast
import struct
from collections.abc import Callable
from dataclasses import dataclass

from dyn_core.engines.machine_code.types import (
    BOOL,
    FLOAT,
    INT,
    MASK,
    ArrayType,
    NumberType,
    TupleType,
    Type,
)

ALIVE = "!tbaa !7"  # alias metadata of the lane mask: no array overlaps it
_CHOOSES = (  # nodes evaluated for both branches of a selection: none reads memory
    ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop,
    ast.expr_context,
)  # fmt: skip


@dataclass(frozen=True)
class TypedValue:
    """A value in LLVM IR; `items` are the values of a tuple.

    `names` has for a number its register or constant; for an array its address and
    dimensions; for a record its address in the table of arguments.
    """

    type: Type
    names: tuple[str, ...] = ()
    items: tuple[TypedValue, ...] = ()

    @property
    def name(self) -> str:
        """Register or constant of a number; address of an array or record."""
        return self.names[0]


class LaneCode:
    """Lines of one function's code, and the instructions that lanes change.

    Methods that return a value or a register append instructions to `lines`.

    Attributes:
        lanes: Number of lanes; 0: floats are scalars.
        float, suffix: LLVM type of a float, and suffix of its intrinsics.
        aligned: Alignment of float loads and stores, as LLVM text.
        count: Number of registers and labels so far.
    """

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.float = f"<{lanes} x double>" if lanes else "double"
        self.suffix = f"v{lanes}f64" if lanes else "f64"
        self.aligned = ", align 8" if lanes else ""
        self.lines: list[str] = []
        self.block, self.count = "start", 0

    def add(self, instruction: str) -> None:
        """Append an instruction without a result."""
        self.lines.append(f"  {instruction}")

    def new(self, instruction: str) -> str:
        """Append an instruction; return its register."""
        self.count += 1
        self.lines.append(f"  %t{self.count} = {instruction}")
        return f"%t{self.count}"

    def label(self) -> str:
        """Return a new label; nothing is appended."""
        self.count += 1
        return f"l{self.count}"

    def begin(self, label: str) -> None:
        """Append the label of a new block, which becomes `block`."""
        self.lines.append(f"{label}:")
        self.block = label

    # Types

    def llvm(self, kind: NumberType) -> str:
        """Return the LLVM type of a number; with lanes, a vector type for a float."""
        return self.float if kind is FLOAT else kind.llvm

    def parts(self, kind: Type) -> list[str]:
        """Return the LLVM types of `names`; of an array ptr and an i64 an axis."""
        if isinstance(kind, NumberType):
            return [self.llvm(kind)]
        return ["ptr"] + ["i64"] * (kind.axes if isinstance(kind, ArrayType) else 0)

    def result_type(self, kind: Type) -> str:
        """Return the LLVM type of a result: of a number, "void" for (), or a struct."""
        if isinstance(kind, TupleType):
            if not kind.items:
                return "void"
            return "{ " + ", ".join(self.llvm(item) for item in kind.items) + " }"
        assert isinstance(kind, NumberType)
        return self.llvm(kind)

    def real(self, x: float) -> str:
        """Return the float x as an LLVM constant with all bits, equal in every lane."""
        word = f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"
        return f"splat (double {word})" if self.lanes else word

    # Lanes

    def in_all_lanes(self, name: str) -> str:
        """Return a scalar float broadcast to all lanes; unchanged without lanes."""
        return self._in_all_lanes(name, "double") if self.lanes else name

    def _in_all_lanes(self, name: str, llvm: str) -> str:
        kind = f"<{self.lanes} x {llvm}>"
        first = self.new(f"insertelement {kind} poison, {llvm} {name}, i64 0")
        places = f"<{self.lanes} x i32> zeroinitializer"
        return self.new(f"shufflevector {kind} {first}, {kind} poison, {places}")

    def condition(self, code: str) -> TypedValue:
        """Append an icmp or fcmp; return it: MASK of floats in lanes, else BOOL."""
        by_lane = self.lanes and code.startswith("fcmp")
        return TypedValue(MASK if by_lane else BOOL, (self.new(code),))

    def agreed(self, condition: TypedValue) -> TypedValue:
        """Return one condition for all lanes; a MASK is voted, which drops lanes."""
        return self.vote(condition) if condition.type is MASK else condition

    def vote(self, value: TypedValue, counts: TypedValue | None = None) -> TypedValue:
        """Return the majority's condition, a BOOL; drop lanes with the other value.

        Only lanes that are alive vote. In a tie, also of no votes, the result is true.
        Only lanes of the MASK `counts` vote and may be dropped.
        """
        word = f"i{self.lanes}"
        mask = self.new(f"bitcast <{self.lanes} x i1> {value.name} to {word}")
        alive = self.new(f"load {word}, ptr %alive, {ALIVE}")
        those, other = alive, "0"
        if counts is not None:
            those = self.new(f"bitcast <{self.lanes} x i1> {counts.name} to {word}")
            those = self.new(f"and {word} {those}, {alive}")
            other = self.new(f"xor {word} {those}, {alive}")
        yes = self.new(f"and {word} {mask}, {those}")
        no = self.new(f"xor {word} {yes}, {those}")
        for_it, against = (
            self.new(f"call {word} @llvm.ctpop.{word}({word} {x})") for x in (yes, no)
        )
        holds = self.new(f"icmp uge {word} {for_it}, {against}")
        kept = self.new(f"select i1 {holds}, {word} {yes}, {word} {no}")
        kept = self.new(f"or {word} {kept}, {other}")
        self.add(f"store {word} {kept}, ptr %alive, {ALIVE}")
        return TypedValue(BOOL, (holds,))

    def any_of(self, value: TypedValue) -> TypedValue:
        """Return whether a MASK holds in at least one lane that is alive, a BOOL."""
        word = f"i{self.lanes}"
        mask = self.new(f"bitcast <{self.lanes} x i1> {value.name} to {word}")
        alive = self.new(f"load {word}, ptr %alive, {ALIVE}")
        yes = self.new(f"and {word} {mask}, {alive}")
        return TypedValue(BOOL, (self.new(f"icmp ne {word} {yes}, 0"),))

    def to_whole(self, x: TypedValue) -> TypedValue:
        """Return a float as an int, rounded towards zero.

        It is arbitrary for NaN and beyond 64 bits. In lanes it is the int of the first
        lane that is alive; lanes with another int are dropped.
        """
        whole = f"<{self.lanes} x i64>" if self.lanes else "i64"
        number = self.new(f"fptosi {self.float} {x.name} to {whole}")
        number = self.new(f"freeze {whole} {number}")
        if not self.lanes:
            return TypedValue(INT, (number,))
        word = f"i{self.lanes}"
        alive = self.new(f"load {word}, ptr %alive, {ALIVE}")
        first = self.new(f"call {word} @llvm.cttz.{word}({word} {alive}, i1 false)")
        single = self.new(f"extractelement {whole} {number}, {word} {first}")
        same = self.new(
            f"icmp eq {whole} {number}, {self._in_all_lanes(single, 'i64')}"
        )
        mask = self.new(f"bitcast <{self.lanes} x i1> {same} to {word}")
        kept = self.new(f"and {word} {mask}, {alive}")
        self.add(f"store {word} {kept}, ptr %alive, {ALIVE}")
        return TypedValue(INT, (single,))

    def select(self, condition: TypedValue, a: TypedValue, b: TypedValue) -> TypedValue:
        """Return a if the condition holds, else b; both are numbers of one type.

        For floats a MASK selects in each lane. For other numbers a MASK is first voted
        to one condition, which may drop lanes.
        """
        assert isinstance(a.type, NumberType)
        if condition.type is MASK and a.type is not FLOAT:
            condition = self.vote(condition)
        kind = f"<{self.lanes} x i1>" if condition.type is MASK else "i1"
        llvm = self.llvm(a.type)
        code = f"select {kind} {condition.name}, {llvm} {a.name}, {llvm} {b.name}"
        return TypedValue(a.type, (self.new(code),))

    def chooses(self, node: ast.IfExp, is_local: Callable[[str], bool]) -> bool:
        """Return whether `x if c else y` may be a selection in each lane.

        It may if c is one comparison, and x and y are arithmetic of float variables and
        constants (`is_local`), without // and %. False without lanes.
        """
        test = isinstance(node.test, ast.Compare) and len(node.test.ops) == 1
        return bool(self.lanes and test) and all(
            isinstance(inner, _CHOOSES)
            and (not isinstance(inner, ast.Name) or is_local(inner.id))
            and not isinstance(inner, ast.FloorDiv | ast.Mod)
            for way in (node.body, node.orelse)
            for inner in ast.walk(way)
        )


def declarations(lanes: int) -> str:
    """Return the IR of a module's intrinsics, attributes #0 and alias metadata."""
    code = LaneCode(lanes)
    x, end = code.float, code.suffix
    lines = [
        *(f"declare {x} @llvm.{f}.{end}({x})" for f in ("fabs", "sqrt", "floor")),
        f"declare {x} @llvm.ceil.{end}({x})",
        f"declare {x} @llvm.copysign.{end}({x}, {x})",
        "declare i64 @llvm.abs.i64(i64, i1)",
        "attributes #0 = { nounwind }",
        '!0 = !{!"arrays of machine code"}',
        '!1 = !{!"float64", !0, i64 0}',
        '!2 = !{!"int64", !0, i64 0}',
        "!3 = !{!1, !1, i64 0}",
        "!4 = !{!2, !2, i64 0}",
        "!5 = !{}",
    ]
    if lanes:
        word = f"i{lanes}"
        lines += [
            f"declare {word} @llvm.ctpop.{word}({word})",
            f"declare {word} @llvm.cttz.{word}({word}, i1)",
            '!6 = !{!"lanes", !0, i64 0}',
            "!7 = !{!6, !6, i64 0}",
        ]
    return "\n".join(lines) + "\n"
