"""Products of matrices in machine code: loops over blocks of registers.

For one state a vector holds neighbours of a row of B and of the result; for lanes it
holds one entry of all lanes. Either way an entry of the result is a_i0 b_0j, then one
multiply-add after the other: the bits are those of the product written out.
"""

from __future__ import annotations

from collections.abc import Iterator

from dyn_core.engines.llvm.ir import kind
from dyn_core.engines.llvm.product_arrays import ProductPlaces
from dyn_core.numbers.product import ProductShape

Tile = tuple[int, int, bool]  # rows, vectors, whether the sign is changed
_ROWS, _VECTORS = 4, {True: 4, False: 2}  # of a tile; vectors: of lanes, of one state
_SIGNATURE = (
    "ptr noalias %a, ptr noalias %b, ptr noalias %c, i64 %inner,"
    " i64 %a_row, i64 %b_row, i64 %c_row"
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
        self.lanes = vector if width == 1 else width
        self.of = kind("real", self.lanes)
        self.suffix = f"v{self.lanes}f64"
        self.tiles: set[Tile] = set()
        self.moves = False

    def calls(
        self, shape: ProductShape, places: ProductPlaces, base: int
    ) -> Iterator[str]:
        """Write the calls that make one product, arrays behind slot `base`."""
        rows, inner, columns, negative = shape
        (a, a_row), (b, b_row), (c, c_row) = places.a, places.b, places.c
        vectors = -(-columns // self.step)
        for j in range(0, vectors, _VECTORS[self.width > 1]):
            wide = min(_VECTORS[self.width > 1], vectors - j)
            for i in range(0, rows, _ROWS):
                high = min(_ROWS, rows - i)
                self.tiles.add((high, wide, negative))
                starts = (
                    a + i * a_row,
                    b + j * self.step,
                    c + i * c_row + j * self.step,
                )
                names = []
                for start in starts:
                    name = f"%p{i}_{j}_{len(names)}"
                    offset = (base + start) * self.width
                    yield f"  {name} = getelementptr double, ptr %s, i64 {offset}"
                    names.append(f"ptr {name}")
                strides = [f"i64 {x * self.width}" for x in (a_row, b_row, c_row)]
                arguments = ", ".join([*names, f"i64 {inner}", *strides])
                yield f"  call void {self._name(high, wide, negative)}({arguments})"

    def move(self, start: str, end: str, count: int) -> str:
        """Return the call that copies `count` values from one place to another."""
        self.moves = True
        return f"  call void @move(ptr {start}, ptr {end}, i64 {count * self.width})"

    def definitions(self) -> list[str]:
        """Return the functions that calls refer to."""
        tiles = [self._tile(*tile) for tile in sorted(self.tiles)]
        return [*tiles, *([_MOVE] if self.moves else [])]

    def _name(self, rows: int, vectors: int, negative: bool) -> str:
        sign = "minus" if negative else "plus"
        return f"@tile_{sign}_{rows}_{vectors}_{self.width}"

    def _tile(self, rows: int, vectors: int, negative: bool) -> str:
        """Write the function of a block of the result that stays in registers."""
        tile = [(r, v) for r in range(rows) for v in range(vectors)]
        name = self._name(rows, vectors, negative)
        lines = [
            f"define internal void {name}({_SIGNATURE}) nounwind {{",
            *self._factors("first", "%a", "%b", rows, vectors),
        ]
        for r, v in tile:
            lines.append(f"  %t{r}_{v} = fmul {self.of} %first_a{r}, %first_b{v}")
            sign = f"fneg {self.of} %t{r}_{v}"
            same = f"bitcast {self.of} %t{r}_{v} to {self.of}"
            lines.append(f"  %s{r}_{v} = {sign if negative else same}")
        lines += [
            "  %several = icmp sgt i64 %inner, 1",
            "  br i1 %several, label %more, label %end",
            "more:",
            "  %k = phi i64 [1, %0], [%next, %more]",
            "  %pa = phi ptr [%a, %0], [%na, %more]",
            "  %pb = phi ptr [%b, %0], [%nb, %more]",
            *(
                f"  %c{r}_{v} = phi {self.of} [%s{r}_{v}, %0], [%n{r}_{v}, %more]"
                for r, v in tile
            ),
            f"  %na = getelementptr double, ptr %pa, i64 {self.width}",
            "  %nb = getelementptr double, ptr %pb, i64 %b_row",
            *self._factors("next", "%na", "%nb", rows, vectors),
        ]
        if negative:
            lines += [
                f"  %m{r} = fneg {self.of} %next_a{r}" for r in range(rows)
            ]
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
        for r, v in tile:
            lines += [
                f"  %o{r}_{v} = mul i64 %c_row, {r}",
                f"  %q{r}_{v} = add i64 %o{r}_{v}, {v * self.step * self.width}",
                f"  %w{r}_{v} = getelementptr double, ptr %c, i64 %q{r}_{v}",
                f"  store {self.of} %e{r}_{v}, ptr %w{r}_{v}, align 8",
            ]
        return "\n".join([*lines, "  ret void", "}", ""])

    def _factors(
        self, tag: str, a: str, b: str, rows: int, vectors: int
    ) -> Iterator[str]:
        """Write the loads of one column of A and one row of B, as vectors."""
        for v in range(vectors):
            offset = v * self.step * self.width
            yield f"  %{tag}_pb{v} = getelementptr double, ptr {b}, i64 {offset}"
            yield f"  %{tag}_b{v} = load {self.of}, ptr %{tag}_pb{v}, align 8"
        for r in range(rows):
            yield f"  %{tag}_oa{r} = mul i64 %a_row, {r}"
            yield f"  %{tag}_pa{r} = getelementptr double, ptr {a}, i64 %{tag}_oa{r}"
            if self.width > 1:
                yield f"  %{tag}_a{r} = load {self.of}, ptr %{tag}_pa{r}, align 8"
                continue
            zeros = "zeroinitializer"
            mask = self.of.replace("double", "i32")
            yield f"  %{tag}_x{r} = load double, ptr %{tag}_pa{r}, align 8"
            yield (
                f"  %{tag}_y{r} = insertelement {self.of} poison,"
                f" double %{tag}_x{r}, i32 0"
            )
            yield (
                f"  %{tag}_a{r} = shufflevector {self.of} %{tag}_y{r},"
                f" {self.of} poison, {mask} {zeros}"
            )


_MOVE = """define internal void @move(ptr noalias %from, ptr noalias %to, i64 %n) {
  %rest = and i64 %n, 3
  %whole = sub i64 %n, %rest
  %wide = icmp sgt i64 %whole, 0
  br i1 %wide, label %four, label %few
four:
  %k = phi i64 [0, %0], [%next, %four]
  %p = getelementptr double, ptr %from, i64 %k
  %q = getelementptr double, ptr %to, i64 %k
  %x = load <4 x double>, ptr %p, align 8
  store <4 x double> %x, ptr %q, align 8
  %next = add i64 %k, 4
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
