"""Copies and zeros of many values, by a loop over a table instead of instructions.

A result of a hundred thousand numbers, mostly zeros, or entries of products in another
order, would otherwise be as many instructions to compile.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from dyn_core.engines.llvm.function_ir import FunctionCode, Place
from dyn_core.engines.llvm.ir import kind, real_size

MANY = 2000  # number of copies above which a table is used
_AT_ONCE = 4  # pairs per round of the loop
_SET = "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"


class ValueTables:
    """Writes the tables of one kernel, `head`; `sets`: memset must be declared."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.head: list[str] = []
        self.sets = False

    def copy(
        self,
        code: FunctionCode,
        start: Place,
        pairs: Sequence[tuple[int, int]],
        to: Place,
    ) -> None:
        """Write calls of @copy_pairs that copy values from one place to another.

        Successive pairs between the same two arrays are one call. Its table, in which
        the last pair is repeated up to a multiple of four, is added to `head`; the
        module needs `definitions`, too. No value is both read and written.
        """
        for _, group in groupby(
            pairs, key=lambda pair: (start.part(pair[0]), to.part(pair[1]))
        ):
            part = list(group)
            a, b = (min(numbers) for numbers in zip(*part, strict=True))
            part += [part[-1]] * (-len(part) % _AT_ONCE)
            numbers = ", ".join(f"i32 {x - a}, i32 {y - b}" for x, y in part)
            name = f"@pairs{len(self.head)}_{self.width}"
            table = f"[{2 * len(part)} x i32]"
            self.head.append(f"{name} = private constant {table} [{numbers}]")
            source, target = start.address(code, a)[0], to.address(code, b)[0]
            arguments = f"ptr {source}, ptr {target}, ptr {name}, i64 {len(part)}"
            code.lines.append(f"  call void @copy_pairs({arguments})")

    def zeros(
        self, code: FunctionCode, to: Place, numbers: Sequence[int], count: int
    ) -> bool:
        """Write memsets of whole arrays, for at least 2000 zeros; return whether any.

        All values of arrays with zeros become zero, so `code` must run before all
        other functions that store to `to`. A memset sets `sets`.
        """
        if len(numbers) < MANY:
            return False
        parts = [to.part(k) for k in range(count)]
        for part in sorted({parts[k] for k in numbers}):
            start, align = to.address(code, parts.index(part))
            size = parts.count(part) * self.width * real_size(self.width)
            arguments = f"ptr align {align} {start}, i8 0, i64 {size}, i1 false"
            code.lines.append(f"  call void @llvm.memset.p0.i64({arguments})")
        self.sets = True
        return True

    def declarations(self) -> list[str]:
        """Return the lines before all functions: memset and tables."""
        return [*([_SET] if self.sets else []), *self.head]

    def definitions(self) -> list[str]:
        """Return the lines of @copy_pairs(from, to, table, n); [] without tables.

        n is a multiple of four; the table has (index in from, index in to) of each.
        """
        if not self.head:
            return []
        of, align = kind("real", self.width), real_size(self.width)
        lines = []
        for k in range(_AT_ONCE):
            lines += [
                f"  %px{k} = getelementptr i32, ptr %row, i64 {2 * k}",
                f"  %py{k} = getelementptr i32, ptr %row, i64 {2 * k + 1}",
                f"  %x{k} = load i32, ptr %px{k}",
                f"  %y{k} = load i32, ptr %py{k}",
                f"  %i{k} = zext i32 %x{k} to i64",
                f"  %j{k} = zext i32 %y{k} to i64",
                f"  %from{k} = getelementptr {of}, ptr %from, i64 %i{k}",
                f"  %to{k} = getelementptr {of}, ptr %to, i64 %j{k}",
                f"  %v{k} = load {of}, ptr %from{k}, align {align}",
                f"  store {of} %v{k}, ptr %to{k}, align {align}",
            ]
        return [
            "define internal void @copy_pairs(ptr noalias %from, ptr noalias %to,"
            " ptr noalias %table, i64 %n) nounwind {",
            "  br label %more",
            "more:",
            "  %k = phi i64 [0, %0], [%next, %more]",
            "  %entry = shl i64 %k, 1",
            "  %row = getelementptr i32, ptr %table, i64 %entry",
            *lines,
            f"  %next = add i64 %k, {_AT_ONCE}",
            "  %again = icmp slt i64 %next, %n",
            "  br i1 %again, label %more, label %end",
            "end:",
            "  ret void",
            "}",
            "",
        ]
