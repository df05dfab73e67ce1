"""Addresses of the inputs and outputs of a state on a GPU, and copies to them.

Entry k of a port of state i has index k n + i in the layout by entries, and i size + k
in the layout by states. Functions get a table: the addresses of the ports at this
state, and n.
"""

from __future__ import annotations

from collections.abc import Sequence

from dyn_core.engines.llvm.function_ir import FunctionCode, Place
from dyn_core.engines.llvm.ir import kind, real_size
from dyn_core.engines.llvm.value_tables import MANY, ValueTables

GLOBAL = "ptr addrspace(1)"  # a pointer to the memory that all threads share


class StatePorts:
    """Flat inputs or outputs of one state; entries are not contiguous in general.

    Methods that return an address or a distance append the code that computes it.

    Args:
        table: Name of the pointer to the table in LLVM IR.
        sizes: Number of values of each port.
        by_entries: Whether equal entries of all states are adjacent.

    Attributes:
        count: Number of ports.
        places: (port, index in the port) of each flat value.
    """

    def __init__(self, table: str, sizes: Sequence[int], by_entries: bool) -> None:
        self.table, self.by_entries = table, by_entries
        self.count = len(sizes)
        self.places = [(p, k) for p, size in enumerate(sizes) for k in range(size)]

    def base(self, code: FunctionCode, port: int) -> str:
        """Return the address of a port's first entry at this state, a name in LLVM IR.

        Args:
            code: Function that is written.
            port: Index of the port.
        """
        return self._entry(code, port, GLOBAL)

    def step(self, code: FunctionCode) -> str:
        """Return the distance between adjacent entries of a state, counted in numbers.

        It is "1" in the layout by states, else a name in LLVM IR.
        """
        return self._entry(code, self.count, "i64") if self.by_entries else "1"

    def _entry(self, code: FunctionCode, number: int, of: str) -> str:
        """Return entry `number` of the table, loaded once in each function.

        Args:
            code: Function that is written.
            number: Index of the entry.
            of: LLVM type of the entry.
        """
        name = code.pointers.get((self.table, number))
        if name is None:
            place = code.new(f"getelementptr i64, ptr {self.table}, i64 {number}")
            name = code.pointers[self.table, number] = code.new(
                f"load {of}, ptr {place}"
            )
        return name

    def address(self, code: FunctionCode, k: int) -> tuple[str, int]:
        """Return pointer (a name in LLVM IR) and alignment [bytes] of flat value k."""
        port, index = self.places[k]
        pointer = self.base(code, port)
        if index:
            offset = str(index)
            if self.by_entries:
                offset = code.new(f"mul nsw i64 {self.step(code)}, {index}")
            pointer = code.new(
                f"getelementptr inbounds {code.real}, {GLOBAL} {pointer}, i64 {offset}"
            )
        generic = code.new(f"addrspacecast {GLOBAL} {pointer} to ptr")
        return generic, real_size(code.width)

    def joined(self, a: int, b: int) -> bool:
        """Return False: values a and b are never treated as contiguous."""
        return False

    def part(self, k: int) -> int:
        """Return the index of the port of flat value k."""
        return self.places[k][0]


class StateTables(ValueTables):
    """A writer of a kernel's tables; copies to StatePorts have a stride."""

    def copy(
        self,
        code: FunctionCode,
        start: Place,
        pairs: Sequence[tuple[int, int]],
        to: Place,
    ) -> None:
        """Append code that copies values.

        To StatePorts it is one call for each port; for other memory see ValueTables.

        Args:
            code: Function that is written.
            start: Memory of the sources.
            pairs: Index in `start` and index in `to` of each value.
            to: Memory of the copies.
        """
        if not isinstance(to, StatePorts):
            super().copy(code, start, pairs, to)
            return
        for port in sorted({to.part(y) for _, y in pairs}):
            some = [(x, to.places[y][1]) for x, y in pairs if to.part(y) == port]
            first = min(x for x, _ in some)
            source = start.address(code, first)[0]
            numbers = [(x - first, y) for x, y in some]
            self._spread(code, source, numbers, to, port)

    def zeros(
        self, code: FunctionCode, to: Place, numbers: Sequence[int], count: int
    ) -> bool:
        """Append code that sets values to zero; return whether it did.

        Nothing is appended for few values (below MANY), and for memory other than
        StatePorts.

        Args:
            code: Function that is written.
            to: Memory of the values.
            numbers: Indices of the values in it.
            count: Not used; see ValueTables.
        """
        if len(numbers) < MANY or not isinstance(to, StatePorts):
            return False
        zero = code.new(f"alloca {code.real}")
        code.lines.append(f"  store {code.real} 0.0, ptr {zero}")
        for port in sorted({to.part(k) for k in numbers}):
            some = [(0, to.places[k][1]) for k in numbers if to.part(k) == port]
            self._spread(code, zero, some, to, port)
        return True

    def _spread(
        self,
        code: FunctionCode,
        source: str,
        pairs: Sequence[tuple[int, int]],
        to: StatePorts,
        port: int,
    ) -> None:
        """Append the call that copies values to one port by a table of indices.

        Args:
            code: Function that is written.
            source: Pointer to the sources.
            pairs: Index of the source and index in the port, for each value.
            to: Ports of the copies.
            port: Index of the port.
        """
        name = f"@spread{len(self.head)}_{self.width}"
        numbers = ", ".join(f"i32 {x}, i32 {y}" for x, y in pairs)
        self.head.append(
            f"{name} = private constant [{2 * len(pairs)} x i32] [{numbers}]"
        )
        arguments = (
            f"ptr {source}, {GLOBAL} {to.base(code, port)}, i64 {to.step(code)},"
            f" ptr {name}, i64 {len(pairs)}"
        )
        code.lines.append(f"  call void @spread({arguments})")

    def definitions(self) -> list[str]:
        """Return the lines of the tables and of the copy functions that are needed."""
        lines = super().definitions()
        if not any(line.startswith("@spread") for line in self.head):
            return lines
        of = kind("real", self.width)
        return [*lines, _SPREAD.replace("REAL", of)]


_SPREAD = f"""define internal void @spread(ptr %from, {GLOBAL} %to, i64 %step,
 ptr %table, i64 %n) nounwind {{
  br label %more
more:
  %k = phi i64 [0, %0], [%next, %more]
  %entry = shl i64 %k, 1
  %px = getelementptr i32, ptr %table, i64 %entry
  %py = getelementptr i32, ptr %px, i64 1
  %x = load i32, ptr %px
  %y = load i32, ptr %py
  %i = zext i32 %x to i64
  %j = zext i32 %y to i64
  %far = mul i64 %j, %step
  %source = getelementptr REAL, ptr %from, i64 %i
  %target = getelementptr REAL, {GLOBAL} %to, i64 %far
  %value = load REAL, ptr %source
  store REAL %value, {GLOBAL} %target
  %next = add i64 %k, 1
  %again = icmp slt i64 %next, %n
  br i1 %again, label %more, label %end
end:
  ret void
}}
"""
