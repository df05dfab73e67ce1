"""One LLVM function being written, and the memory its values come from and go to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from dyn_core.engines.llvm.ir import Instructions, kind, lanes_like, real_size


class FunctionCode(Instructions):
    """One function being written; knows which values it holds."""

    def __init__(self, width: int, fused: bool) -> None:
        super().__init__(width, fused)
        self.pointers: dict[tuple[str, int], str] = {}
        self.values: dict[int, tuple[str, str]] = {}

    def shifted(self, base: str, count: int) -> str:
        """Return a pointer `count` values of all lanes behind a base."""
        if count == 0:
            return base
        number, offset = kind("real", lanes_like(self.width, 1)), count * self.width
        return self.new(f"getelementptr {number}, ptr {base}, i64 {offset}")

    def load(self, place: Place, k: int) -> str:
        """Load a value."""
        pointer, align = place.address(self, k)
        return self.new(f"load {self.real}, ptr {pointer}, align {align}")

    def store(self, place: Place, k: int, name: str) -> None:
        """Store a real value."""
        pointer, align = place.address(self, k)
        self.lines.append(f"  store {self.real} {name}, ptr {pointer}, align {align}")


class Place(Protocol):
    """Where values lie in memory: Ports or Slots."""

    def address(self, code: FunctionCode, k: int) -> tuple[str, int]:
        """Return pointer and alignment of value k."""

    def joined(self, a: int, b: int) -> bool:
        """Return whether value b = a + 1 lies right behind value a."""

    def part(self, k: int) -> int:
        """Return the number of the array that value k lies in."""


class Ports:
    """Where the flat inputs or outputs lie: behind a table of pointers.

    Args:
        table: Name of the table's parameter.
        sizes: Number of values of each port.
    """

    def __init__(self, table: str, sizes: Sequence[int]) -> None:
        self.table = table
        self.places = [(p, k) for p, size in enumerate(sizes) for k in range(size)]

    def address(self, code: FunctionCode, k: int) -> tuple[str, int]:
        """Return pointer and alignment of flat value k."""
        port, index = self.places[k]
        base = code.pointers.get((self.table, port))
        if base is None:
            entry = code.new(f"getelementptr ptr, ptr {self.table}, i64 {port}")
            base = code.new(f"load ptr, ptr {entry}")
            code.pointers[self.table, port] = base
        return code.shifted(base, index), real_size(code.width)

    def joined(self, a: int, b: int) -> bool:
        """Return whether both are of one port."""
        return self.part(a) == self.part(b)

    def part(self, k: int) -> int:
        """Return the port of flat value k."""
        return self.places[k][0]


class Slots:
    """Values in the scratch memory, from a slot on."""

    def __init__(self, base: int) -> None:
        self.base = base

    def address(self, code: FunctionCode, k: int) -> tuple[str, int]:
        """Return pointer and alignment of value k."""
        return code.shifted("%s", self.base + k), real_size(code.width) * code.width

    def joined(self, a: int, b: int) -> bool:
        """Slots lie one behind the other."""
        return True

    def part(self, k: int) -> int:
        """Slots are one array."""
        return 0
