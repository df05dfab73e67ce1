"""Small products of matrices for one state, written out without loops over entries.

Products of equal size and equal distances from row to row share a function, which takes
the addresses of the matrices.
"""

from __future__ import annotations

from collections.abc import Sequence

from dyn_core.engines.llvm.function_ir import FunctionCode
from dyn_core.engines.llvm.ir import kind, lanes_like, real_size, suffix
from dyn_core.engines.llvm.products.product_arrays import Array, ProductPlaces
from dyn_core.numbers.product import ProductShape

_WIDE, _REGISTERS = 3, 24  # maximum vectors of a tile: in a row, in all
_NAMES = "%a", "%b", "%c", "%to"
_PARAMETERS = "ptr noalias %a, ptr noalias %b, ptr %c, ptr %to"  # C may be the result


class StraightProducts:
    """Writes the functions of one kernel's products: C + A B, C - A B, A B or -A B.

        NAME(ptr A, ptr B, ptr C, ptr result),   C may be the result

    A vector has `lanes` entries, neighbours in a row.
    """

    def __init__(self, lanes: int, fused: bool) -> None:
        self.lanes, self.fused = lanes, fused
        self.one, self.size = kind("real", lanes_like(lanes, 1)), real_size(lanes)
        self.of, self.suffix = kind("real", lanes), suffix(lanes)
        self.definitions: list[str] = []
        self._known: dict[tuple[object, ...], str] = {}

    def function(self, shape: ProductShape, places: ProductPlaces) -> str:
        """Return the function's name for the distances of `places`; write it once."""
        a, b, c, to = places.a, places.b, places.c or places.result, places.result
        key = (shape, a.by_row, a.by_column, b.by_row, c.by_row, to.by_row)
        name = self._known.get(key)
        if name is None:
            name = self._known[key] = f"@straight{len(self._known)}_1"
            code = FunctionCode(lanes_like(self.lanes, 1), self.fused)
            moved = [array._replace(first=0) for array in (a, b, c, to)]
            self._write(code, shape, moved)
            head = f"define internal void {name}({_PARAMETERS}) nounwind {{"
            lines = [head, *code.lines, "  ret void", "}", ""]
            self.definitions.append("\n".join(lines))
        return name

    def _write(
        self, code: FunctionCode, shape: ProductShape, arrays: Sequence[Array]
    ) -> None:
        """Write a product tile by tile; arrays are A, B, C, result, with first entry 0.

        A vector of sums is a_i0 b_0 (with C: C + a_i0 b_0), and then one multiply-add
        after the other, as in the tiles of larger products.
        """
        vectors = -(-shape.columns // self.lanes)
        wide = min(vectors, _WIDE)
        for v in range(0, vectors, wide):
            starts = [w * self.lanes for w in range(v, min(v + wide, vectors))]
            columns = [(j, max(0, j + self.lanes - shape.columns)) for j in starts]
            parts = -(-shape.rows * len(starts) // _REGISTERS)
            high = -(-shape.rows // parts)
            for i in range(0, shape.rows, high):
                rows = range(i, min(i + high, shape.rows))
                self._tile(code, shape, arrays, rows, columns)

    def _tile(
        self,
        code: FunctionCode,
        shape: ProductShape,
        arrays: Sequence[Array],
        rows: range,
        columns: Sequence[tuple[int, int]],
    ) -> None:
        """Write a tile of the result; columns are (first, entries beyond the row).

        It reads at the parameters %a, %b, and with C at %c, and stores at %to.
        """

        def pointer(which: int, i: int, j: int) -> str:
            return code.shifted(_NAMES[which], arrays[which].spot(i, j).number)

        sums: dict[tuple[int, int], str] = {}
        if shape.onto:
            for i in rows:
                for j, rest in columns:
                    there = load_part(self.lanes, pointer(2, i, j), rest)
                    sums[i, j] = code.new(there)
        for k in range(shape.inner):
            right = {
                j: code.new(load_part(self.lanes, pointer(1, k, j), rest))
                for j, rest in columns
            }
            for i in rows:
                left = self._broadcast(code, pointer(0, i, k))
                if shape.negative:
                    left = code.new(f"fneg {self.of} {left}")
                for j, factor in right.items():
                    sums[i, j] = self._added(code, left, factor, sums.get((i, j)))
        for i in rows:
            for j, rest in columns:
                there = store_part(self.lanes, sums[i, j], pointer(3, i, j), rest)
                code.lines.append(f"  {there}")

    def _broadcast(self, code: FunctionCode, pointer: str) -> str:
        """Write the load of a number, repeated in a vector; return its register."""
        x = code.new(f"load {self.one}, ptr {pointer}, align {self.size}")
        if self.lanes == 1:
            return x
        y = code.new(f"insertelement {self.of} poison, {self.one} {x}, i32 0")
        mask = f"<{self.lanes} x i32> zeroinitializer"
        return code.new(f"shufflevector {self.of} {y}, {self.of} poison, {mask}")

    def _added(self, code: FunctionCode, a: str, b: str, c: str | None) -> str:
        """Write a b, or a b + c where c is not None; return its register.

        The sum is rounded once if multiply-adds are fused.
        """
        if c is not None and self.fused:
            operands = ", ".join(f"{self.of} {x}" for x in (a, b, c))
            return code.new(f"call {self.of} @llvm.fma.{self.suffix}({operands})")
        product = code.new(f"fmul {self.of} {a}, {b}")
        return product if c is None else code.new(f"fadd {self.of} {product}, {c}")


def load_part(lanes: int, pointer: str, without: int) -> str:
    """Return LLVM text right of "=" that loads a vector; last entries unread, zeros."""
    of, size = kind("real", lanes), real_size(lanes)
    if not without:
        return f"load {of}, ptr {pointer}, align {size}"
    return (
        f"call {of} @llvm.masked.load.{suffix(lanes)}.p0(ptr {pointer},"
        f" i32 {size}, {_mask(lanes, without)}, {of} zeroinitializer)"
    )


def store_part(lanes: int, name: str, pointer: str, without: int) -> str:
    """Return the LLVM instruction that stores a vector without its last entries."""
    of, size = kind("real", lanes), real_size(lanes)
    if not without:
        return f"store {of} {name}, ptr {pointer}, align {size}"
    return (
        f"call void @llvm.masked.store.{suffix(lanes)}.p0({of} {name},"
        f" ptr {pointer}, i32 {size}, {_mask(lanes, without)})"
    )


def _mask(lanes: int, without: int) -> str:
    """Return the LLVM mask that excludes the last `without` lanes."""
    bits = ", ".join(f"i1 {int(k < lanes - without)}" for k in range(lanes))
    return f"<{lanes} x i1> <{bits}>"
