"""Table, operations and control together, callable like a kernel."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from dyn_core.engines.graph.graph import Graph
from dyn_core.engines.llvm import compiler, kernel
from dyn_core.engines.llvm.cached import kernel_cache
from dyn_core.engines.llvm.cached.fingerprint import of_code
from dyn_core.engines.llvm.call import python_to_llvm
from dyn_core.engines.llvm.interpreter import control, operations
from dyn_core.engines.llvm.interpreter.table import OperationTable
from dyn_core.model.garbage import seldom_collected
from dyn_core.sharing import once

_ENTRIES = {"scalar": ("scalar",), "batch": ("batch", "blocked")}
_SLOWER = 4  # approximate time of an operation, relative to a kernel
_MODULES = tuple(
    f"dyn_core.engines.llvm.interpreter.{name}" for name in ("control", "operations")
)


class MachineCode:
    """The machine code of the interpreter.

    Args:
        codes: Object codes: the control, then the operations for each number of lanes.
        widths: Numbers of lanes.

    Attributes:
        entries: By name, the address of each function with a kernel's interface.
        operations: By number of lanes, a table of the operations' addresses.
    """

    def __init__(self, codes: Sequence[bytes], widths: Sequence[int]) -> None:
        self._loaded = [compiler.Loaded(code) for code in codes]
        first, *others = self._loaded
        names = (name for entries in _ENTRIES.values() for name in entries)
        self.entries = {name: first.address(name) for name in names}
        self.operations: dict[int, Any] = {}
        for width, loaded in zip(widths, others, strict=True):
            table = (ctypes.c_int64 * len(operations.OPCODES))()
            for name, opcode in operations.OPCODES.items():
                if name in operations.CONTROL:
                    table[opcode] = first.address(name)
                elif width > 1 or name not in operations.ROWS_ONLY:
                    table[opcode] = loaded.address(f"op_{name}")
            self.operations[width] = table


def machine_code() -> MachineCode:
    """Return the machine code from memory or disk, or compiled now.

    Raises:
        CompileError: LLVM failed.
    """
    return _machine_code(compiler.machine())


@once
def _machine_code(host: compiler.Machine) -> MachineCode:
    digest = hashlib.sha256((of_code(_MODULES) + host.key).encode()).hexdigest()
    widths, name = [1, host.width], f"interpreter-{digest}"
    entry = kernel_cache.load(name)
    if entry is None:
        irs = [operations.write(width, host.fused, host.width) for width in widths]
        ir = python_to_llvm.translate(control, "*").replace(" internal ", " ")
        codes = [compiler.compile_ir(ir, inline=True), *map(compiler.compile_ir, irs)]
        kernel_cache.store(
            name, {"sizes": [len(code) for code in codes]}, b"".join(codes)
        )
        return MachineCode(codes, widths)
    note, together = entry
    ends = np.cumsum(note["sizes"]).tolist()
    codes = [together[a:b] for a, b in zip([0, *ends], ends, strict=False)]
    return MachineCode(codes, widths)


class Interpreter:
    """A Graph that is interpreted.

    Args:
        graph: Graph without calls of Programs.
        sizes: Sizes of the input and output ports.

    Attributes:
        variants: For scalar and batch, a Variant with the interface of that kernel.

    Raises CompileError if the interpreter itself cannot be compiled.
    """

    def __init__(self, graph: Graph, sizes: kernel.Sizes) -> None:
        host = compiler.machine()
        with seldom_collected():
            table = OperationTable(graph, *sizes, host.fused, host.width)
        self.variants = {
            "scalar": Interpreted("scalar", 1, table, graph),
            "batch": Interpreted("batch", host.width, table, graph),
        }


class Interpreted(kernel.Variant):
    """Interface of a kernel for a table and a number of lanes.

    Args:
        variant: scalar or batch.
        width: Lanes.
        table: Table of the Graph.
        graph: The Graph.

    Attributes:
        steps: Number of operations of a kernel with the same run time.
    """

    def __init__(
        self, variant: str, width: int, table: OperationTable, graph: Graph
    ) -> None:
        code = machine_code()
        super().__init__(
            {name: code.entries[name] for name in _ENTRIES[variant]},
            8 * width * table.size,
            table.steps * _SLOWER,
            kernel.most_rounds(graph),
        )
        self._width, self._table = width, table
        ports = [
            (ctypes.c_int64 * (2 * len(of)))(*(x for port in of for x in port))
            for of in (table.inputs, table.outputs)
        ]
        fields = (
            ctypes.addressof(code.operations[width]), table.cells.ctypes.data,
            len(table.inputs), ctypes.addressof(ports[0]),
            len(table.outputs), ctypes.addressof(ports[1]), width, 8 * width,
            compiler.machine().width if width == 1 else 1, operations.vectors(width),
            bool(graph.requirements),
        )  # fmt: skip
        self._record = (ctypes.c_int64 * len(control.FIELDS))(*fields)
        self._kept = code, ports

    def fill(self, memory: np.ndarray, address: int) -> None:
        """Write the record's address before new scratch memory, and constants into it.

        Args:
            memory: Array that contains the scratch memory.
            address: Address of slot 0.
        """
        start = address - memory.ctypes.data
        memory[start - 8 : start].view(np.int64)[0] = ctypes.addressof(self._record)
        slots, values = self._table.values()
        lanes = memory[start : start + self.scratch].view(float)
        lanes.reshape(-1, self._width)[slots] = values[:, None]
