"""Products of matrices in machine code: loops over tiles in registers.

For one state a vector contains neighbours in a row of B and of the result; for lanes it
contains one entry of all lanes. In both an entry of the result is a_i0 b_0j, then one
multiply-add after the other: the bits are equal to the product written out.

One function multiplies a tile of the result, another calls it for all tiles of its
size. Small products of one state are written out (straight_products.py).
Products of a number and a row are a loop over vectors, for one state and for lanes:

    to_j = a b_j,   or   c_j + a b_j,   -a b_j,   c_j - a b_j
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from dyn_core.engines.llvm.function_ir import FunctionCode
from dyn_core.engines.llvm.ir import kind, lanes_like, real_size, suffix
from dyn_core.engines.llvm.products.product_arrays import Array, ProductPlaces
from dyn_core.engines.llvm.products.straight_products import (
    StraightProducts,
    load_part,
    store_part,
)
from dyn_core.numbers.product import ProductShape

_AT_ONCE = 4  # vectors per round of the loop
Pointer = Callable[[Array, int, int], str]
_INLINE = 24  # maximum number of vectors that are copied without a loop
_STRAIGHT = 200  # maximum vector multiplications of a product that is written out
_ROWS, VECTORS = 4, {True: 4, False: 2}  # size of a tile; vectors: lanes, one state
_SIGNATURE = (
    "ptr %a, ptr %b, ptr %c, ptr %to, i64 %inner,"
    " i64 %a_row, i64 %a_column, i64 %b_row, i64 %c_row, i64 %to_row"
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


class Scaling(NamedTuple):
    """Parameters of a function that scales a row; `negative` changes the sign.

    `onto`: it is added to the row c. `rest`: entries of the last vector beyond the row.
    """

    negative: bool
    onto: bool
    rest: int


def is_scaling(rows: int, inner: int) -> bool:
    """Return whether a product of these sizes is a number times a row (both are 1)."""
    return rows == inner == 1


class ScaledRows:
    """Writes functions NAME(ptr a, ptr b, ptr c, ptr to, i64 vectors) of one kernel.

    They multiply the row b by the number a, see the module; c is read only with `onto`.
    `wanted` are the parameters of the functions whose names were returned so far.
    """

    def __init__(self, width: int, lanes: int, fused: bool) -> None:
        self.width, self.lanes, self.fused = width, lanes, fused
        self.one, self.of = kind("real", lanes_like(lanes, 1)), kind("real", lanes)
        self.suffix = suffix(lanes)
        self.wanted: set[Scaling] = set()

    def name(self, scaling: Scaling) -> str:
        """Add `scaling` to `wanted`; return the name of its function, "@scaled_..."."""
        self.wanted.add(scaling)
        what = ("minus" if scaling.negative else "plus") + "_onto" * scaling.onto
        return f"@scaled_{what}_{scaling.rest}_{self.width}"

    def definitions(self) -> list[str]:
        """Return the LLVM IR of each function whose name was returned so far."""
        return [self._function(scaling) for scaling in sorted(self.wanted)]

    def _function(self, scaling: Scaling) -> str:
        """Return the LLVM IR of a function.

        It processes groups of vectors, then single ones, then a partial one if
        scaling.rest is not 0; its parameter `vectors` counts the partial one, too.
        """
        rest = int(scaling.rest > 0)
        factor = "%number" if not scaling.negative else "%minus"
        lines = [
            f"define internal void {self.name(scaling)}(ptr noalias %a, ptr noalias %b,"
            " ptr %c, ptr %to, i64 %vectors) nounwind {",
            *self._factor(),
            f"  %minus = fneg {self.of} %number",
            f"  %whole = sub i64 %vectors, {rest}",
            f"  %part = and i64 %whole, {_AT_ONCE - 1}",
            "  %most = sub i64 %whole, %part",
            "  %groups = icmp sgt i64 %most, 0",
            "  br i1 %groups, label %group, label %behind",
            "group:",
            "  %g = phi i64 [0, %0], [%g_next, %group]",
            *(
                line
                for k in range(_AT_ONCE)
                for line in self._vector(scaling, f"g{k}", "%g", k, factor, 0)
            ),
            f"  %g_next = add i64 %g, {_AT_ONCE}",
            "  %g_more = icmp slt i64 %g_next, %most",
            "  br i1 %g_more, label %group, label %behind",
            "behind:",
            "  %singles = icmp sgt i64 %part, 0",
            "  br i1 %singles, label %single, label %last",
            "single:",
            "  %s = phi i64 [%most, %behind], [%s_next, %single]",
            *self._vector(scaling, "s0", "%s", 0, factor, 0),
            "  %s_next = add i64 %s, 1",
            "  %s_more = icmp slt i64 %s_next, %whole",
            "  br i1 %s_more, label %single, label %last",
            "last:",
        ]
        if rest:
            lines += self._vector(scaling, "r0", "%whole", 0, factor, scaling.rest)
        return "\n".join([*lines, "  ret void", "}", ""])

    def _factor(self) -> list[str]:
        """Return the instructions that load the number at %a as the vector %number.

        For one state it is repeated; in lanes %a has one number of each.
        """
        size = real_size(self.width)
        if self.width > 1 or self.lanes == 1:
            return [f"  %number = load {self.of}, ptr %a, align {size}"]
        mask = f"<{self.lanes} x i32> zeroinitializer"
        return [
            f"  %x = load {self.one}, ptr %a, align {size}",
            f"  %y = insertelement {self.of} poison, {self.one} %x, i32 0",
            f"  %number = shufflevector {self.of} %y, {self.of} poison, {mask}",
        ]

    def _vector(
        self, scaling: Scaling, tag: str, first: str, k: int, factor: str, rest: int
    ) -> list[str]:
        """Return the instructions that load, multiply and store vector `first` + k.

        They read at %b, with `onto` also at %c, and store at %to. Without `onto` the
        factor is %number, else `factor`, of a or -a. The last `rest` entries are
        neither read nor written.
        """
        of, size = self.of, self.lanes
        lines = [
            f"  %{tag}n = add i64 {first}, {k}",
            f"  %{tag}o = mul i64 %{tag}n, {size}",
        ]
        names = ("b", "c", "to") if scaling.onto else ("b", "to")
        for x in names:
            place = f"getelementptr {self.one}, ptr %{x}, i64 %{tag}o"
            lines.append(f"  %{tag}p{x} = {place}")
        lines.append(f"  %{tag}b = {load_part(size, f'%{tag}pb', rest)}")
        if not scaling.onto:
            # The product is negated, not the factor, as in other products: same bits.
            lines.append(f"  %{tag}x = fmul {of} %number, %{tag}b")
            sign = f"fneg {of} %{tag}x" if scaling.negative else ""
            value = f"%{tag}y" if scaling.negative else f"%{tag}x"
            lines += [f"  %{tag}y = {sign}"] if sign else []
        else:
            lines.append(f"  %{tag}c = {load_part(size, f'%{tag}pc', rest)}")
            value = f"%{tag}y"
            if self.fused:
                operands = ", ".join(
                    f"{of} {x}" for x in (factor, f"%{tag}b", f"%{tag}c")
                )
                call = f"call {of} @llvm.fma.{self.suffix}({operands})"
                lines.append(f"  {value} = {call}")
            else:
                lines.append(f"  %{tag}x = fmul {of} {factor}, %{tag}b")
                lines.append(f"  {value} = fadd {of} %{tag}x, %{tag}c")
        lines.append(f"  {store_part(size, value, f'%{tag}pto', rest)}")
        return lines


class Tile(NamedTuple):
    """Parameters of a function that multiplies a tile of the result; see Scaling.

    `rest` entries beyond the matrix in a row's last vector are not read nor written.
    """

    rows: int
    vectors: int
    negative: bool
    onto: bool
    rest: int = 0


class Products:
    """Writes the products of one kernel.

    Args:
        width: Lanes of a value, of type Lanes for float32.
        vector: Entries of a row in one vector, where there is one lane.
        fused: Whether a multiply-add rounds once.

    Attributes:
        step: Columns of a vector: `vector` for one lane, else 1.
        lanes: Numbers in a vector: `vector` for one lane, else `width`.
        tiles: Parameters of the functions of tiles that calls refer to.
        written: Whether any product was written.
        written_out: Maximum vector multiplications of a product of one state that is
            written without loops.
    """

    def __init__(self, width: int, vector: int, fused: bool) -> None:
        self.width, self.fused = width, fused
        self.step = vector if width == 1 else 1  # columns of a vector
        self.lanes = lanes_like(width, vector) if width == 1 else width
        self.one, self.size = kind("real", lanes_like(width, 1)), real_size(width)
        self.of = kind("real", self.lanes)
        self.suffix = suffix(self.lanes)
        self.tiles: set[Tile] = set()
        self.several: set[Tile] = set()  # of these, more than one at once
        self.straight = StraightProducts(self.lanes, fused)
        self.rows = ScaledRows(width, self.lanes, fused)
        self.moves = self.written = False
        self.written_out = _STRAIGHT

    def write(
        self,
        code: FunctionCode,
        shape: ProductShape,
        places: ProductPlaces,
        pointer: Pointer,
    ) -> None:
        """Write the call of one product: written out, as a scaled row, or tile by tile.

        `definitions` will contain the called functions.

        Args:
            code: Function being written.
            shape: Sizes, sign of A B, and whether it is added to C.
            places: Arrays of the matrices.
            pointer: Returns the register of an entry's address: pointer(array, row,
                column).
        """
        self.written = True
        vectors = -(-shape.columns // self.step)
        arrays = places.a, places.b, places.c or places.result, places.result
        if self.width == 1 and shape.rows * shape.inner * vectors <= self.written_out:
            pointers = ", ".join(f"ptr {pointer(array, 0, 0)}" for array in arrays)
            name = self.straight.function(shape, places)
            code.lines.append(f"  call void {name}({pointers})")
            return
        if is_scaling(shape.rows, shape.inner):
            rest = vectors * self.step - shape.columns
            name = self.rows.name(Scaling(shape.negative, shape.onto, rest))
            pointers = ", ".join(f"ptr {pointer(array, 0, 0)}" for array in arrays)
            code.lines.append(f"  call void {name}({pointers}, i64 {vectors})")
            return
        a, b, onto, to = arrays
        steps = a.by_row, a.by_column, b.by_row, onto.by_row, to.by_row
        strides = [f"i64 {x * self.width}" for x in steps]
        for i, high, down in _alike(shape.rows, _ROWS):
            for j, wide, rest, across in self._column_blocks(shape.columns):
                tile = Tile(high, wide, shape.negative, shape.onto, rest)
                self.tiles.add(tile)
                starts = (a, i, 0), (b, 0, j), (onto, i, j), (to, i, j)
                names = [f"ptr {pointer(*start)}" for start in starts]
                arguments = [*names, f"i64 {shape.inner}", *strides]
                function = self._name(tile)
                if down * across > 1:
                    self.several.add(tile)
                    function = function.replace("@tile", "@tiles")
                    arguments += [f"i64 {down}", f"i64 {across}"]
                code.lines.append(f"  call void {function}({', '.join(arguments)})")

    def _column_blocks(self, columns: int) -> Iterator[tuple[int, int, int, int]]:
        """Yield equal blocks of columns as (first column, vectors, rest, count).

        `count` blocks of `vectors` vectors follow each other; `rest` is the number of
        entries of the last vector beyond the matrix: 0 but for the last block, which
        is yielded alone if it has any.
        """
        vectors = -(-columns // self.step)
        rest = vectors * self.step - columns
        for v, wide, count in _alike(vectors, VECTORS[self.width > 1]):
            last = rest > 0 and v + wide * count == vectors
            if count > last:
                yield v * self.step, wide, 0, count - last
            if last:
                yield (v + wide * (count - 1)) * self.step, wide, rest, 1

    def move(self, code: FunctionCode, start: str, end: str, count: int) -> None:
        """Write the copy of values between two addresses; many are copied by a loop.

        Args:
            code: Function being written.
            start, end: Registers of the source and target addresses; the memories must
                not overlap.
            count: Number of values, each of all lanes.
        """
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
        """Return the LLVM IR of each function that the code written so far calls."""
        tiles = [self._tile(tile) for tile in sorted(self.tiles)]
        tiles += [self._tiles(tile) for tile in sorted(self.several)]
        moves = [self._move()] if self.moves else []
        rows = self.rows.definitions()
        return [*tiles, *rows, *self.straight.definitions, *moves]

    def _move(self) -> str:
        """Return the LLVM IR of `@move(from, to, n)`; the memories must not overlap."""
        lines = _MOVE.replace("double", self.one)
        lines = lines.replace("LANES", f"{self.lanes}")
        lines = lines.replace("LESS", f"{self.lanes - 1}")
        return lines.replace("align 8", f"align {self.size}")

    def _name(self, tile: Tile) -> str:
        """Return the name of a tile's function, "@tile_..."."""
        what = ("minus" if tile.negative else "plus") + ("_onto" if tile.onto else "")
        size = f"{tile.rows}_{tile.vectors}_{tile.rest}_{self.width}"
        return f"@tile_{what}_{size}"

    def _load(self, pointer: str, masked: int) -> str:
        """Return LLVM text that loads a vector with its last `masked` entries zero."""
        return load_part(self.lanes, pointer, masked)

    def _tiles(self, tile: Tile) -> str:
        """Return the LLVM IR of the function that calls a tile's function many times.

        Its name has "@tiles" in place of "@tile", and it has two more parameters, at
        least 1: `down`, the number of rows of tiles, and `across`, that in a row.
        """
        name = self._name(tile)
        down, across = tile.rows, tile.vectors * self.step * self.width
        strides = "%inner, i64 %a_row, i64 %a_column, i64 %b_row, i64 %c_row"
        pointers = "ptr %pa, ptr %pb, ptr %pc, ptr %pt"
        lines = [
            f"define internal void {name.replace('@tile', '@tiles')}({_SIGNATURE},"
            " i64 %down, i64 %across) nounwind {",
            "  br label %column",
            "column:",
            "  %v = phi i64 [0, %0], [%right, %next]",
            f"  %j = mul i64 %v, {across}",
            f"  %pb = getelementptr {self.one}, ptr %b, i64 %j",
            "  br label %row",
            "row:",
            "  %r = phi i64 [0, %column], [%below, %row]",
            f"  %i = mul i64 %r, {down}",
            "  %ia = mul i64 %i, %a_row",
            f"  %pa = getelementptr {self.one}, ptr %a, i64 %ia",
        ]
        for short, array in (("c", "c"), ("t", "to")):
            lines += [
                f"  %i{short} = mul i64 %i, %{array}_row",
                f"  %o{short} = add i64 %i{short}, %j",
                f"  %p{short} = getelementptr {self.one}, ptr %{array}, i64 %o{short}",
            ]
        lines += [
            f"  call void {name}({pointers}, i64 {strides}, i64 %to_row)",
            "  %below = add i64 %r, 1",
            "  %lower = icmp slt i64 %below, %down",
            "  br i1 %lower, label %row, label %next",
            "next:",
            "  %right = add i64 %v, 1",
            "  %more = icmp slt i64 %right, %across",
            "  br i1 %more, label %column, label %end",
            "end:",
            "  ret void",
            "}",
            "",
        ]
        return "\n".join(lines)

    def _tile(self, kind_of: Tile) -> str:
        """Return the LLVM IR of the function of a tile; its sums are in registers.

        The last kind_of.rest entries of a row are neither read nor written, and C is
        read only with `onto`.
        """
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
            f"  {store_part(self.lanes, f'%e{r}_{v}', f'%tow{r}_{v}', masked[v])}"
            for r, v in tile
        ]
        return "\n".join([*lines, "  ret void", "}", ""])

    def _entries(self, name: str, tile: Sequence[tuple[int, int]]) -> Iterator[str]:
        """Yield instructions for pointers %NAMEwR_V to vectors (row R, vector V).

        They read the parameters %NAME and %NAME_row; NAME is "c" or "to".
        """
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
        """Yield the loads of one column of A and one row of B, as vectors.

        Their registers are %TAG_aR for row R of A (for one state the number is repeated
        in all entries), and %TAG_bV for vector V of B, with 0 in its last masked[V]
        entries. Rows of A are %a_row numbers apart, a register of the function around.
        """
        for v, without in enumerate(masked):
            offset = v * self.step * self.width
            yield f"  %{tag}_pb{v} = getelementptr {self.one}, ptr {b}, i64 {offset}"
            yield f"  %{tag}_b{v} = {self._load(f'%{tag}_pb{v}', without)}"
        for r in range(rows):
            yield f"  %{tag}_oa{r} = mul i64 %a_row, {r}"
            place = f"getelementptr {self.one}, ptr {a}, i64 %{tag}_oa{r}"
            yield f"  %{tag}_pa{r} = {place}"
            there = f"ptr %{tag}_pa{r}, align {self.size}"
            if self.width > 1 or self.lanes == 1:
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


def _alike(total: int, most: int) -> Iterator[tuple[int, int, int]]:
    """Yield (first, size, count) of each run of equal parts of `total`.

    The first run has parts of size `most`, the second is the remainder as one part.
    """
    whole, rest = divmod(total, most)
    if whole:
        yield 0, most, whole
    if rest:
        yield whole * most, rest, 1
