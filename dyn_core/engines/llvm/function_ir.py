"""One LLVM function being written, and the memory of its inputs and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from dyn_core.engines.llvm.ir import Instructions, kind, lanes_like, real_size


class FunctionCode(Instructions):
    """Instructions of one function, with the values and pointers in registers.

    `pointers`: by (register of a table of pointers, port), the register of the port's
    address. `values`: by node, (register, kind), kind "real" or "truth".
    """

    def __init__(self, width: int, fused: bool) -> None:
        super().__init__(width, fused)
        self.pointers: dict[tuple[str, int], str] = {}
        self.values: dict[int, tuple[str, str]] = {}

    def shifted(self, base: str, count: int) -> str:
        """Return a pointer `count` values (of all lanes) behind the register `base`."""
        if count == 0:
            return base
        number, offset = kind("real", lanes_like(self.width, 1)), count * self.width
        return self.new(f"getelementptr {number}, ptr {base}, i64 {offset}")

    def load(self, place: Place, k: int) -> str:
        """Write the load of value k of a Place; return its register, of all lanes."""
        pointer, align = place.address(self, k)
        return self.new(f"load {self.real}, ptr {pointer}, align {align}")

    def store(self, place: Place, k: int, name: str) -> None:
        """Write the store of register `name`, of all lanes, to value k of a Place."""
        pointer, align = place.address(self, k)
        self.lines.append(f"  store {self.real} {name}, ptr {pointer}, align {align}")


class Place(Protocol):
    """Memory of numbered values: Ports, Slots, or memory behind a pointer."""

    def address(self, code: FunctionCode, k: int) -> tuple[str, int]:
        """Write the address of value k; return its pointer and alignment [bytes]."""

    def joined(self, a: int, b: int) -> bool:
        """Return whether value b = a + 1 is adjacent to value a in memory."""

    def part(self, k: int) -> int:
        """Return the index of the array (port) that contains value k, from 0 on."""


class Ports:
    """Memory of the flat inputs or outputs: arrays behind a table of pointers.

    Args:
        table: Register of the table's address.
        sizes: Number of values of each port.

    Attributes:
        places: By flat value, (port, index in the port).
    """

    def __init__(self, table: str, sizes: Sequence[int]) -> None:
        self.table = table
        self.places = [(p, k) for p, size in enumerate(sizes) for k in range(size)]

    def address(self, code: FunctionCode, k: int) -> tuple[str, int]:
        """Return pointer and alignment [bytes] of flat value k.

        The alignment is the size of one lane's number: arrays may begin anywhere. The
        port's address is loaded at its first use in `code`.
        """
        port, index = self.places[k]
        base = code.pointers.get((self.table, port))
        if base is None:
            entry = code.new(f"getelementptr ptr, ptr {self.table}, i64 {port}")
            base = code.new(f"load ptr, ptr {entry}")
            code.pointers[self.table, port] = base
        return code.shifted(base, index), real_size(code.width)

    def joined(self, a: int, b: int) -> bool:
        """Return whether both values are of one port."""
        return self.part(a) == self.part(b)

    def part(self, k: int) -> int:
        """Return the port of flat value k."""
        return self.places[k][0]


class Slots:
    """Values in the scratch memory; value k is in slot `base` + k."""

    def __init__(self, base: int) -> None:
        self.base = base

    def address(self, code: FunctionCode, k: int) -> tuple[str, int]:
        """Return pointer and alignment [bytes] of value k, in the slot base + k.

        The alignment is the size of a slot, all lanes of a number. The register %s has
        the address of slot 0.
        """
        return code.shifted("%s", self.base + k), real_size(code.width) * code.width

    def joined(self, a: int, b: int) -> bool:
        """Return True: slots are contiguous."""
        return True

    def part(self, k: int) -> int:
        """Return 0: slots are one array."""
        return 0
