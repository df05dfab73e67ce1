"""Products of matrices in machine code: loops over blocks of registers.

For one state a vector holds neighbours of a row of B and of the result; for lanes it
holds one entry of all lanes. Either way an entry of the result is a_i0 b_0j, then one
multiply-add after the other: the bits are those of the product written out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from dyn_core.engines.llvm.function_ir import FunctionCode
from dyn_core.engines.llvm.ir import kind, lanes_like, real_size, suffix
from dyn_core.engines.llvm.product_arrays import Array, ProductPlaces
from dyn_core.numbers.product import ProductShape

Pointer = Callable[[Array, int, int], str]
_INLINE = 24  # vectors that are copied without a loop
_STRAIGHT = 600  # vectors multiplied by a product of one state that is written out
_WIDE, _REGISTERS = 3, 24  # vectors of its tiles: in a row, of all sums
_ROWS, VECTORS = 4, {True: 4, False: 2}  # of a tile; vectors: of lanes, of one state
_SIGNATURE = (
    "ptr %a, ptr %b, ptr %c, ptr noalias %to, i64 %inner,"
    " i64 %a_row, i64 %a_column, i64 %b_row, i64 %c_row, i64 %to_row"
)


class Tile(NamedTuple):
    """What a function of machine code multiplies.

    Attributes:
        rows, vectors: Of the block of the result.
        negative, onto: As of a ProductShape.
        rest: Entries of the last vector of a row that do not exist: they are not read
            and not written.
    """

    rows: int
    vectors: int
    negative: bool
    onto: bool
    rest: int = 0


class Products:
    """Writes the products of one kernel.

    Args:
        width: Lanes of a value.
        vector: Entries of a row that one instruction works on where there is one lane.
        fused: Whether a multiply-add rounds once.
    """

    def __init__(self, width: int, vector: int, fused: bool) -> None:
        self.width, self.fused = width, fused
        self.step = vector if width == 1 else 1  # columns of a vector
        self.lanes = lanes_like(width, vector) if width == 1 else width
        self.one, self.size = kind("real", lanes_like(width, 1)), real_size(width)
        self.of = kind("real", self.lanes)
        self.suffix = suffix(self.lanes)
        self.tiles: set[Tile] = set()
        self.moves = self.written = False

    def write(
        self,
        code: FunctionCode,
        shape: ProductShape,
        places: ProductPlaces,
        pointer: Pointer,
    ) -> None:
        """Write one product, tile by tile.

        Args:
            code: Where.
            shape, places: Of the product.
            pointer: Returns the name of a pointer to an entry of an array.
        """
        self.written = True
        vectors = -(-shape.columns // self.step)
        if self.width == 1 and shape.rows * shape.inner * vectors <= _STRAIGHT:
            self._straight(code, shape, places, pointer)
            return
        to, onto = places.result, places.c or places.result
        for v in range(0, vectors, VECTORS[self.width > 1]):
            wide, j = min(VECTORS[self.width > 1], vectors - v), v * self.step
            rest = max(0, (v + wide) * self.step - shape.columns)
            for i in range(0, shape.rows, _ROWS):
                high = min(_ROWS, shape.rows - i)
                tile = Tile(high, wide, shape.negative, shape.onto, rest)
                self.tiles.add(tile)
                starts = (
                    (places.a, i, 0), (places.b, 0, j), (onto, i, j), (to, i, j),
                )  # fmt: skip
                names = [f"ptr {pointer(*start)}" for start in starts]
                steps = (
                    places.a.by_row, places.a.by_column,
                    places.b.by_row, onto.by_row, to.by_row,
                )  # fmt: skip
                strides = [f"i64 {x * self.width}" for x in steps]
                arguments = ", ".join([*names, f"i64 {shape.inner}", *strides])
                code.lines.append(f"  call void {self._name(tile)}({arguments})")

    def _straight(
        self,
        code: FunctionCode,
        shape: ProductShape,
        places: ProductPlaces,
        pointer: Pointer,
    ) -> None:
        """Write a product of one state without loops and calls.

        A vector of sums is a_i0 b_0 and then one multiply-add after the other, as in
        the tiles.
        """
        vectors = -(-shape.columns // self.step)
        wide = min(vectors, _WIDE)
        for v in range(0, vectors, wide):
            starts = [w * self.step for w in range(v, min(v + wide, vectors))]
            columns = [(j, max(0, j + self.step - shape.columns)) for j in starts]
            parts = -(-shape.rows * len(starts) // _REGISTERS)
            high = -(-shape.rows // parts)
            for i in range(0, shape.rows, high):
                rows = range(i, min(i + high, shape.rows))
                self._straight_tile(code, shape, places, pointer, rows, columns)

    def _straight_tile(
        self,
        code: FunctionCode,
        shape: ProductShape,
        places: ProductPlaces,
        pointer: Pointer,
        rows: range,
        columns: Sequence[tuple[int, int]],
    ) -> None:
        """Write a block of rows and vectors; columns: first and rest of each vector."""
        sums: dict[tuple[int, int], str] = {}
        if places.c is not None:
            for i in rows:
                for j, rest in columns:
                    there = pointer(places.c, i, j)
                    sums[i, j] = code.new(self._load(there, rest))
        for k in range(shape.inner):
            right = {
                j: code.new(self._load(pointer(places.b, k, j), rest))
                for j, rest in columns
            }
            for i in rows:
                left = self._broadcast(code, pointer(places.a, i, k))
                if shape.negative:
                    left = code.new(f"fneg {self.of} {left}")
                for j, factor in right.items():
                    sums[i, j] = self._added(code, left, factor, sums.get((i, j)))
        for i in rows:
            for j, rest in columns:
                there = pointer(places.result, i, j)
                code.lines.append(f"  {self._store(sums[i, j], there, rest)}")

    def _broadcast(self, code: FunctionCode, pointer: str) -> str:
        """Write a vector of one number in memory; return its name."""
        x = code.new(f"load {self.one}, ptr {pointer}, align {self.size}")
        y = code.new(f"insertelement {self.of} poison, {self.one} {x}, i32 0")
        mask = f"<{self.lanes} x i32> zeroinitializer"
        return code.new(f"shufflevector {self.of} {y}, {self.of} poison, {mask}")

    def _added(self, code: FunctionCode, a: str, b: str, c: str | None) -> str:
        """Write a b, or a b + c; return its name."""
        if c is not None and self.fused:
            operands = ", ".join(f"{self.of} {x}" for x in (a, b, c))
            return code.new(f"call {self.of} @llvm.fma.{self.suffix}({operands})")
        product = code.new(f"fmul {self.of} {a}, {b}")
        return product if c is None else code.new(f"fadd {self.of} {product}, {c}")

    def move(self, code: FunctionCode, start: str, end: str, count: int) -> None:
        """Write what copies `count` values from one place to another."""
        numbers = count * self.width
        if numbers > _INLINE * self.lanes:
            self.moves = True
            arguments = f"ptr {start}, ptr {end}, i64 {numbers}"
            code.lines.append(f"  call void @move({arguments})")
            return
        done = 0
        while done < numbers:
            size = min(self.lanes, 1 << (numbers - done).bit_length() - 1)
            source, target = (
                code.new(f"getelementptr {self.one}, ptr {pointer}, i64 {done}")
                for pointer in (start, end)
            )
            of = kind("real", lanes_like(self.width, size))
            value = code.new(f"load {of}, ptr {source}, align {self.size}")
            line = f"  store {of} {value}, ptr {target}, align {self.size}"
            code.lines.append(line)
            done += size

    def definitions(self) -> list[str]:
        """Return the functions that calls refer to."""
        tiles = [self._tile(tile) for tile in sorted(self.tiles)]
        return [*tiles, *([self._move()] if self.moves else [])]

    def _move(self) -> str:
        """Write the function that copies many values."""
        lines = _MOVE.replace("double", self.one)
        lines = lines.replace("LANES", f"{self.lanes}")
        lines = lines.replace("LESS", f"{self.lanes - 1}")
        return lines.replace("align 8", f"align {self.size}")

    def _name(self, tile: Tile) -> str:
        what = ("minus" if tile.negative else "plus") + ("_onto" if tile.onto else "")
        size = f"{tile.rows}_{tile.vectors}_{tile.rest}_{self.width}"
        return f"@tile_{what}_{size}"

    def _load(self, pointer: str, masked: int) -> str:
        """Return the instruction that loads a vector, its last entries left out."""
        if not masked:
            return f"load {self.of}, ptr {pointer}, align {self.size}"
        return (
            f"call {self.of} @llvm.masked.load.{self.suffix}.p0(ptr {pointer},"
            f" i32 {self.size}, {self._mask(masked)}, {self.of} zeroinitializer)"
        )

    def _store(self, name: str, pointer: str, masked: int) -> str:
        """Return the instruction that stores a vector, its last entries left out."""
        if not masked:
            return f"store {self.of} {name}, ptr {pointer}, align {self.size}"
        return (
            f"call void @llvm.masked.store.{self.suffix}.p0({self.of} {name},"
            f" ptr {pointer}, i32 {self.size}, {self._mask(masked)})"
        )

    def _mask(self, without: int) -> str:
        count = self.lanes
        bits = ", ".join(f"i1 {int(k < count - without)}" for k in range(count))
        return f"<{count} x i1> <{bits}>"

    def _tile(self, kind_of: Tile) -> str:
        """Write the function of a block of the result that stays in registers."""
        rows, vectors, negative, onto, rest = kind_of
        tile = [(r, v) for r in range(rows) for v in range(vectors)]
        masked = [rest if v == vectors - 1 else 0 for v in range(vectors)]
        head = f"define internal void {self._name(kind_of)}({_SIGNATURE}) nounwind {{"
        lines = [head]
        if onto:
            lines += self._entries("c", tile)
            lines += [
                f"  %s{r}_{v} = {self._load(f'%cw{r}_{v}', masked[v])}" for r, v in tile
            ]
            a, b, first, test = "%a", "%b", 0, "%inner, 0"
        else:
            lines += self._factors("first", "%a", "%b", rows, masked)
            for r, v in tile:
                name = f"%{'t' if negative else 's'}{r}_{v}"
                lines.append(f"  {name} = fmul {self.of} %first_a{r}, %first_b{v}")
                if negative:
                    lines.append(f"  %s{r}_{v} = fneg {self.of} %t{r}_{v}")
            lines += [
                f"  %a1 = getelementptr {self.one}, ptr %a, i64 %a_column",
                f"  %b1 = getelementptr {self.one}, ptr %b, i64 %b_row",
            ]
            a, b, first, test = "%a1", "%b1", 1, "%inner, 1"
        lines += [
            f"  %several = icmp sgt i64 {test}",
            "  br i1 %several, label %more, label %end",
            "more:",
            f"  %k = phi i64 [{first}, %0], [%next, %more]",
            f"  %pa = phi ptr [{a}, %0], [%na, %more]",
            f"  %pb = phi ptr [{b}, %0], [%nb, %more]",
            *(
                f"  %c{r}_{v} = phi {self.of} [%s{r}_{v}, %0], [%n{r}_{v}, %more]"
                for r, v in tile
            ),
            *self._factors("next", "%pa", "%pb", rows, masked),
            f"  %na = getelementptr {self.one}, ptr %pa, i64 %a_column",
            f"  %nb = getelementptr {self.one}, ptr %pb, i64 %b_row",
        ]
        if negative:
            lines += [f"  %m{r} = fneg {self.of} %next_a{r}" for r in range(rows)]
        for r, v in tile:
            x = f"{self.of} {f'%m{r}' if negative else f'%next_a{r}'}"
            y, z = f"{self.of} %next_b{v}", f"{self.of} %c{r}_{v}"
            if self.fused:
                call = f"call {self.of} @llvm.fma.{self.suffix}({x}, {y}, {z})"
                lines.append(f"  %n{r}_{v} = {call}")
                continue
            lines.append(f"  %x{r}_{v} = fmul {x}, %next_b{v}")
            lines.append(f"  %n{r}_{v} = fadd {self.of} %x{r}_{v}, %c{r}_{v}")
        lines += [
            "  %next = add i64 %k, 1",
            "  %again = icmp slt i64 %next, %inner",
            "  br i1 %again, label %more, label %end",
            "end:",
            *(
                f"  %e{r}_{v} = phi {self.of} [%s{r}_{v}, %0], [%n{r}_{v}, %more]"
                for r, v in tile
            ),
        ]
        lines += self._entries("to", tile)
        lines += [
            f"  {self._store(f'%e{r}_{v}', f'%tow{r}_{v}', masked[v])}" for r, v in tile
        ]
        return "\n".join([*lines, "  ret void", "}", ""])

    def _entries(self, name: str, tile: Sequence[tuple[int, int]]) -> Iterator[str]:
        """Write pointers %NAMEwR_V to the vectors of a tile."""
        for r, v in tile:
            offset = v * self.step * self.width
            yield f"  %{name}o{r}_{v} = mul i64 %{name}_row, {r}"
            yield f"  %{name}q{r}_{v} = add i64 %{name}o{r}_{v}, {offset}"
            yield (
                f"  %{name}w{r}_{v} = getelementptr {self.one}, ptr %{name},"
                f" i64 %{name}q{r}_{v}"
            )

    def _factors(
        self, tag: str, a: str, b: str, rows: int, masked: Sequence[int]
    ) -> Iterator[str]:
        """Write the loads of one column of A and one row of B, as vectors."""
        for v, without in enumerate(masked):
            offset = v * self.step * self.width
            yield f"  %{tag}_pb{v} = getelementptr {self.one}, ptr {b}, i64 {offset}"
            yield f"  %{tag}_b{v} = {self._load(f'%{tag}_pb{v}', without)}"
        for r in range(rows):
            yield f"  %{tag}_oa{r} = mul i64 %a_row, {r}"
            place = f"getelementptr {self.one}, ptr {a}, i64 %{tag}_oa{r}"
            yield f"  %{tag}_pa{r} = {place}"
            there = f"ptr %{tag}_pa{r}, align {self.size}"
            if self.width > 1:
                yield f"  %{tag}_a{r} = load {self.of}, {there}"
                continue
            zeros = "zeroinitializer"
            mask = f"<{self.lanes} x i32>"
            yield f"  %{tag}_x{r} = load {self.one}, {there}"
            yield (
                f"  %{tag}_y{r} = insertelement {self.of} poison,"
                f" {self.one} %{tag}_x{r}, i32 0"
            )
            yield (
                f"  %{tag}_a{r} = shufflevector {self.of} %{tag}_y{r},"
                f" {self.of} poison, {mask} {zeros}"
            )


_MOVE = """define internal void @move(ptr noalias %from, ptr noalias %to, i64 %n) {
  %rest = and i64 %n, LESS
  %whole = sub i64 %n, %rest
  %wide = icmp sgt i64 %whole, 0
  br i1 %wide, label %four, label %few
four:
  %k = phi i64 [0, %0], [%next, %four]
  %p = getelementptr double, ptr %from, i64 %k
  %q = getelementptr double, ptr %to, i64 %k
  %x = load <LANES x double>, ptr %p, align 8
  store <LANES x double> %x, ptr %q, align 8
  %next = add i64 %k, LANES
  %more = icmp slt i64 %next, %whole
  br i1 %more, label %four, label %few
few:
  %left = icmp sgt i64 %rest, 0
  br i1 %left, label %one, label %end
one:
  %j = phi i64 [%whole, %few], [%following, %one]
  %u = getelementptr double, ptr %from, i64 %j
  %w = getelementptr double, ptr %to, i64 %j
  %y = load double, ptr %u, align 8
  store double %y, ptr %w, align 8
  %following = add i64 %j, 1
  %again = icmp slt i64 %following, %n
  br i1 %again, label %one, label %end
end:
  ret void
}
"""
