"""One LLVM function being written, and the memory its values come from and go to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dyn_core.engines.ir import Block


class Chunk(Block):
    """One function being written; knows which values it holds."""

    def __init__(self, width: int, fused: bool) -> None:
        super().__init__(width, fused)
        self.pointers: dict[Any, str] = {}
        self.held: dict[int, tuple[str, str]] = {}

    def shifted(self, base: str, at: int) -> str:
        """Give a pointer `at` values of all lanes behind a base."""
        if at == 0:
            return base
        return self.new(f"getelementptr double, ptr {base}, i64 {at * self.width}")

    def load(self, place: Any, k: int) -> str:
        """Load a value."""
        pointer, align = place.address(self, k)
        return self.new(f"load {self.real}, ptr {pointer}, align {align}")

    def store(self, place: Any, k: int, name: str) -> None:
        """Store a real value."""
        pointer, align = place.address(self, k)
        self.lines.append(f"  store {self.real} {name}, ptr {pointer}, align {align}")


class Ports:
    """Where the flat inputs or outputs lie: behind a table of pointers.

    Args:
        table: Name of the table's parameter.
        sizes: Number of values of each port.
    """

    def __init__(self, table: str, sizes: Sequence[int]) -> None:
        self.table = table
        self.places = [(p, k) for p, size in enumerate(sizes) for k in range(size)]

    def address(self, chunk: Chunk, k: int) -> tuple[str, int]:
        """Give pointer and alignment of flat value k."""
        port, at = self.places[k]
        base = chunk.pointers.get((self.table, port))
        if base is None:
            entry = chunk.new(f"getelementptr ptr, ptr {self.table}, i64 {port}")
            base = chunk.new(f"load ptr, ptr {entry}")
            chunk.pointers[self.table, port] = base
        return chunk.shifted(base, at), 8


class Slots:
    """Values in the scratch memory, from a slot on."""

    def __init__(self, base: int) -> None:
        self.base = base

    def address(self, chunk: Chunk, k: int) -> tuple[str, int]:
        """Give pointer and alignment of value k."""
        return chunk.shifted("%s", self.base + k), 8 * chunk.width
