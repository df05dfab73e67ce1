"""Products of a number and a row: a loop over vectors, for one state and for lanes.

to_j = a b_j,   or   c_j + a b_j,   -a b_j,   c_j - a b_j
"""

from __future__ import annotations

from typing import NamedTuple

from dyn_core.engines.llvm.ir import kind, lanes_like, real_size, suffix
from dyn_core.engines.llvm.products.straight_products import load_part, store_part

_AT_ONCE = 4  # vectors per round of the loop


class Scaling(NamedTuple):
    """Parameters of a function that scales a row.

    Attributes:
        negative: Whether the product's sign is changed.
        onto: Whether the product is added to the row c.
        rest: Number of entries of the last vector beyond the row.
    """

    negative: bool
    onto: bool
    rest: int


def is_scaling(rows: int, inner: int) -> bool:
    """Return whether a product of these sizes is a number times a row."""
    return rows == inner == 1


class ScaledRows:
    """Writes functions NAME(ptr a, ptr b, ptr c, ptr to, i64 vectors) of one kernel.

    Args:
        width: Lanes of a value.
        lanes: Entries of a vector.
        fused: Whether a multiply-add rounds once.
    """

    def __init__(self, width: int, lanes: int, fused: bool) -> None:
        self.width, self.lanes, self.fused = width, lanes, fused
        self.one, self.of = kind("real", lanes_like(lanes, 1)), kind("real", lanes)
        self.suffix = suffix(lanes)
        self.wanted: set[Scaling] = set()

    def name(self, scaling: Scaling) -> str:
        """Return the name of a function; `definitions` will contain it."""
        self.wanted.add(scaling)
        what = ("minus" if scaling.negative else "plus") + "_onto" * scaling.onto
        return f"@scaled_{what}_{scaling.rest}_{self.width}"

    def definitions(self) -> list[str]:
        """Return the LLVM IR of each function whose name was returned so far."""
        return [self._function(scaling) for scaling in sorted(self.wanted)]

    def _function(self, scaling: Scaling) -> str:
        """Return the LLVM IR of a function.

        It processes groups of vectors, then single ones, then a partial one.
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
        """Return the instructions that load the number a as a vector."""
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
        """Return the instructions for one vector, the k-th behind the first.

        Args:
            scaling: Signs.
            tag: Prefix of registers.
            first: Register of the first vector's index.
            k: Offset of the vector.
            factor: Register of a or -a.
            rest: Number of last entries that are neither read nor written.
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
