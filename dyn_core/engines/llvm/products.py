"""Products of matrices in machine code: loops over blocks of registers.

For one state a vector holds neighbours of a row of B and of the result; for lanes it
holds one entry of all lanes. Either way an entry of the result is a_i0 b_0j, then one
multiply-add after the other: the bits are those of the product written out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dyn_core.engines.llvm.function_ir import FunctionCode
from dyn_core.engines.llvm.ir import kind, lanes_like, real_size, suffix
from dyn_core.engines.llvm.product_arrays import ProductPlaces
from dyn_core.numbers.product import ProductShape

Tile = tuple[int, int, bool, bool]  # rows, vectors, negative, onto
_INLINE = 24  # vectors that are copied without a loop
_ROWS, VECTORS = 4, {True: 4, False: 2}  # of a tile; vectors: of lanes, of one state
_SIGNATURE = (
    "ptr %a, ptr %b, ptr %c, ptr noalias %to, i64 %inner,"
    " i64 %a_row, i64 %a_column, i64 %b_row, i64 %c_row, i64 %to_row"
)


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
        self.moves = False

    def calls(
        self, shape: ProductShape, places: ProductPlaces, base: int
    ) -> Iterator[str]:
        """Write the calls that make one product, arrays behind slot `base`."""
        rows, inner, columns, negative, onto = shape
        (a, a_row, a_column), (b, b_row, _) = places.a, places.b
        to, to_row, _ = places.result
        c, c_row, _ = places.c or places.result
        vectors = -(-columns // self.step)
        for j in range(0, vectors, VECTORS[self.width > 1]):
            wide = min(VECTORS[self.width > 1], vectors - j)
            for i in range(0, rows, _ROWS):
                high = min(_ROWS, rows - i)
                self.tiles.add((high, wide, negative, onto))
                starts = (
                    a + i * a_row,
                    b + j * self.step,
                    c + i * c_row + j * self.step,
                    to + i * to_row + j * self.step,
                )
                names: list[str] = []
                for start in starts:
                    name = f"%p{i}_{j}_{len(names)}"
                    offset = (base + start) * self.width
                    yield f"  {name} = getelementptr {self.one}, ptr %s, i64 {offset}"
                    names.append(f"ptr {name}")
                by = (a_row, a_column, b_row, c_row, to_row)
                strides = [f"i64 {x * self.width}" for x in by]
                arguments = ", ".join([*names, f"i64 {inner}", *strides])
                tile = self._name(high, wide, negative, onto)
                yield f"  call void {tile}({arguments})"

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
        tiles = [self._tile(*tile) for tile in sorted(self.tiles)]
        return [*tiles, *([self._move()] if self.moves else [])]

    def _move(self) -> str:
        """Write the function that copies many values."""
        lines = _MOVE.replace("double", self.one)
        lines = lines.replace("LANES", f"{self.lanes}")
        lines = lines.replace("LESS", f"{self.lanes - 1}")
        return lines.replace("align 8", f"align {self.size}")

    def _name(self, rows: int, vectors: int, negative: bool, onto: bool) -> str:
        what = ("minus" if negative else "plus") + ("_onto" if onto else "")
        return f"@tile_{what}_{rows}_{vectors}_{self.width}"

    def _tile(self, rows: int, vectors: int, negative: bool, onto: bool) -> str:
        """Write the function of a block of the result that stays in registers."""
        tile = [(r, v) for r in range(rows) for v in range(vectors)]
        name = self._name(rows, vectors, negative, onto)
        lines = [f"define internal void {name}({_SIGNATURE}) nounwind {{"]
        if onto:
            lines += self._entries("c", tile)
            lines += [
                f"  %s{r}_{v} = load {self.of}, ptr %cw{r}_{v}, align {self.size}"
                for r, v in tile
            ]
            a, b, first, test = "%a", "%b", 0, "%inner, 0"
        else:
            lines += self._factors("first", "%a", "%b", rows, vectors)
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
            *self._factors("next", "%pa", "%pb", rows, vectors),
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
            f"  store {self.of} %e{r}_{v}, ptr %tow{r}_{v}, align {self.size}"
            for r, v in tile
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
        self, tag: str, a: str, b: str, rows: int, vectors: int
    ) -> Iterator[str]:
        """Write the loads of one column of A and one row of B, as vectors."""
        for v in range(vectors):
            offset = v * self.step * self.width
            yield f"  %{tag}_pb{v} = getelementptr {self.one}, ptr {b}, i64 {offset}"
            yield f"  %{tag}_b{v} = load {self.of}, ptr %{tag}_pb{v}, align {self.size}"
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
