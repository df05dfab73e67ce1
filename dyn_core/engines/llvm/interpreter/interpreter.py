"""Graph to table; table, operations and control together, callable like a kernel.

The table is a list of 32-bit words, written in one pass over the nodes: opcode, count
and, as often as the count says, the slots of results and operands; -1 ends a list.
Every value of a Graph has a slot of its own, so independent operations of one kind can
be grouped: they are sorted by depth, then by kind. Multiply-adds are as in lower.py.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dyn_core.engines.graph.graph import Graph, Node, Region
from dyn_core.engines.llvm import compiler, host_machine, kernel
from dyn_core.engines.llvm.cached import kernel_cache
from dyn_core.engines.llvm.cached.fingerprint import of_code
from dyn_core.engines.llvm.call import python_to_llvm
from dyn_core.engines.llvm.interpreter import control, operations
from dyn_core.engines.llvm.interpreter.control import HIGH
from dyn_core.engines.llvm.interpreter.operations import OPCODES, OPERATIONS
from dyn_core.engines.llvm.lower import fusions
from dyn_core.engines.llvm.products.product_arrays import count_uses
from dyn_core.model.garbage import seldom_collected
from dyn_core.sharing import once

_END = -1
_GROUP = 8  # rows are padded to multiples of this, which one vector load may read
_KINDS = len(OPCODES) + 1
_LENGTHS = {OPCODES[name]: x.results + x.arity for name, x in OPERATIONS.items()}
_SINCOS, _MOVE, _WHERE = (OPCODES[name] for name in ("sincos", "move", "where"))
_LOOP, _PRODUCT, _REQUIRE = (OPCODES[name] for name in ("loop", "product", "require"))
_LENGTHS[_REQUIRE] = 2
_ENTRIES = {"scalar": ("scalar",), "batch": ("batch", "blocked")}
_SLOWER = 4  # approximate time of an operation, relative to a kernel
_MODULES = tuple(
    f"dyn_core.engines.llvm.interpreter.{name}" for name in ("control", "operations")
)


class OperationTable:
    """The table of a Graph without calls of Programs; KeyError without an opcode.

    Attributes:
        cells: The words of the table, int32.
        inputs, outputs: (size, first slot) of each port, whose slots fill whole groups.
        constants: By its bytes, the slot of each constant.
        steps: Number of operations; operations in a loop count once.
    """

    def __init__(
        self,
        graph: Graph,
        inputs: Sequence[int],
        outputs: Sequence[int],
        fused: bool,
        group: int,
    ) -> None:
        self.fused, self.size, self.steps = fused, 1, 0
        self.constants: dict[bytes, int] = {}
        self.inputs = [(size, self.room(size, group)) for size in inputs]
        self.outputs = [(size, self.room(size, group)) for size in outputs]
        self.cells = np.array(
            self._graph(graph, _slots(self.inputs), _slots(self.outputs)), np.int32
        )

    def values(self) -> tuple[np.ndarray, np.ndarray]:
        """Return slots (int64) and values (float64) of `constants`, in its order."""
        slots = np.array([*self.constants.values()], np.int64)
        return slots, np.frombuffer(b"".join(self.constants), float)

    def room(self, size: int, group: int = 1) -> int:
        """Allocate the next free slots, `size` in whole groups; return the first."""
        first = self.size
        self.size += -(-size // group) * group
        return first

    def constant(self, value: Any) -> int:
        """Return the slot of a constant, allocated at its first use; True is 1.0."""
        key = np.float64(value).tobytes()
        slot = self.constants.get(key)
        if slot is None:
            slot = self.constants[key] = self.room(1)
        return slot

    def _graph(
        self, graph: Graph, inputs: Sequence[int], outputs: Sequence[int]
    ) -> list[int]:
        """Return the words that compute the outputs of a Graph, with the end mark -1.

        `inputs` and `outputs` are slots; slots of values and constants are allocated.
        """
        lists = _Lists(self, graph, inputs, outputs).lists
        cells: list[int] = []
        for key in sorted(lists):
            opcode, of_one = key % _KINDS, lists[key]
            if opcode != _LOOP and opcode != _PRODUCT:  # their words include the opcode
                cells += opcode, len(of_one) // _LENGTHS[opcode]
            cells += of_one
        cells.append(_END)
        return cells

    def loop(self, region: Region, operands: Sequence[int]) -> LoopCells:
        """Return a loop over state and captured values in the slots `operands`.

        Its `copies` and the opcode are not in its words and must precede it. Words: the
        maximum number of rounds divided by 2^31, and the remainder; bytes from the
        first of these words to the slots for `still`, to the body, and behind the loop;
        the condition; those two slots; the body, which ends with the selection of the
        next state in active lanes, unless there is no state. `operands` do not change.
        """
        width = region.width
        state = [self.room(1) for _ in range(width)]
        following = [self.room(1) for _ in range(width)]
        going, go_on = self.room(1), self.room(1)
        places = [*state, *operands[width:]]
        cond = self._graph(region.cond, places, [go_on])
        body = self._graph(region.body, places, following)
        if width:
            keep = zip(state, [going] * width, following, state, strict=True)
            body[-1:] = [_WHERE, width, *(x for choice in keep for x in choice), _END]
        still = 5 + len(cond)
        ends = (still, still + 2, still + 2 + len(body))
        head = [*divmod(region.max, HIGH), *(4 * x for x in ends)]
        first = [*operands[:width], self.constant(1.0)]
        copies = list(zip([*state, going], first, strict=True))
        return LoopCells(copies, [*head, *cond, going, go_on, *body], state)


class LoopCells(NamedTuple):
    """A loop in a table: (to, from) to copy before, its words, slots of results."""

    copies: list[tuple[int, int]]
    cells: list[int]
    results: list[int]


class _Lists:
    """The words of one Graph by depth and kind; slots are allocated in `table`.

    `lists` has the words of all operations by depth * _KINDS + opcode; `slots` the slot
    of each node, for a loop or product the slots of its results.
    """

    def __init__(
        self,
        table: OperationTable,
        graph: Graph,
        inputs: Sequence[int],
        outputs: Sequence[int],
    ) -> None:
        self.table, self.lists = table, defaultdict[int, list[int]](list)
        self.slots: list[Any] = [0] * len(graph.nodes)
        self.depths = [0] * len(graph.nodes)
        self.angles: dict[int, tuple[int, int]] = {}
        self.ends = dict(zip(graph.outputs, outputs, strict=True))
        made, absorbed = fusions(graph, count_uses(graph)) if table.fused else ({}, ())
        for k, node in enumerate(graph.nodes):
            op, operands, data = node
            if op == "const":
                self.slots[k] = table.constant(data)
            elif op == "input":
                self.slots[k] = inputs[data]
            elif k in made:
                self._plain(k, *made[k])
            elif op == "item":
                self.slots[k] = self.slots[operands[0]][data]
                self.depths[k] = self.depths[operands[0]]
            elif op == "sin" or op == "cos":
                self._sincos(k, op, operands[0])
            elif op == "loop":
                self._loop(k, node)
            elif op == "product":
                self._product(k, node)
            elif k not in absorbed:
                self._plain(k, op, operands)
        for node_k, slot in zip(graph.outputs, outputs, strict=True):
            if self.slots[node_k] != slot:
                self._add(self.depths[node_k] + 1, _MOVE, slot, self.slots[node_k])
        for number, requirement in enumerate(graph.requirements, 1):
            k = requirement.condition
            self._add(self.depths[k] + 1, _REQUIRE, self.slots[k], number)

    def _add(self, depth: int, opcode: int, *cells: int) -> None:
        """Append an operation's words to the list of depth and opcode, and count it."""
        self.lists[depth * _KINDS + opcode] += cells
        self.table.steps += 1

    def _plain(self, k: int, op: str, operands: tuple[int, ...]) -> None:
        """Add an operation with one result, in a new slot or in the slot of an output.

        Sets the slot and depth of the node k. If it is several outputs, its slot is
        that of the last one.
        """
        slots, depths = self.slots, self.depths
        depth = depths[k] = max([depths[x] for x in operands]) + 1
        slot = self.ends.get(k)
        if slot is None:
            slot = self.table.size
            self.table.size += 1
        slots[k] = slot
        self.lists[depth * _KINDS + OPCODES[op]] += (
            slot,
            *[slots[x] for x in operands],
        )
        self.table.steps += 1

    def _sincos(self, k: int, op: str, angle: int) -> None:
        """Add sine and cosine of an angle if they are new; set slot and depth of k."""
        pair = self.angles.get(angle)
        depth = self.depths[k] = self.depths[angle] + 1
        if pair is None:
            first = self.table.room(2)
            pair = self.angles[angle] = first, first + 1
            self._add(depth, _SINCOS, *pair, self.slots[angle])
        self.slots[k] = pair[op == "cos"]

    def _loop(self, k: int, node: Node) -> None:
        """Add a loop and copies of its initial state; set slots and depth of node k."""
        depth = max([self.depths[x] for x in node.operands], default=0) + 1
        loop = self.table.loop(node.data, [self.slots[x] for x in node.operands])
        for to, source in loop.copies:
            self._add(depth, _MOVE, to, source)
        self._add(depth + 1, _LOOP, _LOOP, *loop.cells)
        self.slots[k], self.depths[k] = loop.results, depth + 1

    def _product(self, k: int, node: Node) -> None:
        """Add a product and copies of its operands; set slots and depth of node k.

        Rows of the matrices are padded to multiples of 8 slots.
        """
        rows, inner, columns, negative, onto = shape = node.data
        depth = max([self.depths[x] for x in node.operands]) + 1
        of_a, of_b, of_c = shape.split(node.operands)
        a = self._array(depth, of_a, inner)
        b = self._array(depth, of_b, columns)
        by_row = _in_groups(columns)
        first = self.table.room(rows * by_row)
        c = self._array(depth, of_c, columns) if onto else first
        head = (_PRODUCT, 2 * negative + onto, rows, inner, columns)
        strides = (_in_groups(inner), by_row)
        self._add(depth + 1, _PRODUCT, *head, a, b, c, first, *strides)
        self.table.steps += node.data.work // _GROUP
        self.depths[k] = depth + 1
        self.slots[k] = [
            first + i * by_row + j for i in range(rows) for j in range(columns)
        ]

    def _array(self, depth: int, nodes: Sequence[int], columns: int) -> int:
        """Add the copies of a matrix into padded rows; return the first slot.

        Rows are padded to a multiple of 8 slots, to which nothing is copied.
        """
        by_row = _in_groups(columns)
        first = self.table.room(len(nodes) // columns * by_row)
        cells = self.lists[depth * _KINDS + _MOVE]
        for n, x in enumerate(nodes):
            row, column = divmod(n, columns)
            cells += (first + row * by_row + column, self.slots[x])
        self.table.steps += len(nodes)
        return first


def _in_groups(count: int) -> int:
    """Return a number of columns rounded up to a multiple of _GROUP (8)."""
    return -(-count // _GROUP) * _GROUP


def _slots(ports: Sequence[tuple[int, int]]) -> list[int]:
    """Return the slot of each flat value of ports (size, first slot)."""
    return [k for size, first in ports for k in range(first, first + size)]


class MachineCode:
    """The machine code of the interpreter: the control, then the operations by lanes.

    `entries` has by name the address of each function with a kernel's interface,
    `operations` by number of lanes a table of the operations' addresses by opcode, 0
    for operations that one lane does not need.
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
    """Return the machine code from memory or disk, or compiled now and stored in both.

    Raises:
        CompileError: LLVM failed.
        SettingError: DYN_CACHE_LIMIT is invalid, if it was compiled.
    """
    return _machine_code(host_machine.machine())


@once
def _machine_code(host: host_machine.Machine) -> MachineCode:
    digest = hashlib.sha256((of_code(_MODULES) + host.key).encode()).hexdigest()
    widths, name = [1, host.width], f"interpreter-{digest}"
    entry = kernel_cache.load(name)
    if entry is None:
        irs = [operations.write(width, host.fused, host.width) for width in widths]
        ir = python_to_llvm.translate(control, "*").replace(" internal ", " ")
        codes = [compiler.compile_ir(ir, passes=2), *map(compiler.compile_ir, irs)]
        kernel_cache.store(
            name, {"sizes": [len(code) for code in codes]}, b"".join(codes)
        )
        return MachineCode(codes, widths)
    note, together = entry
    ends = np.cumsum(note["sizes"]).tolist()
    codes = [together[a:b] for a, b in zip([0, *ends], ends, strict=False)]
    return MachineCode(codes, widths)


class Interpreter:
    """A Graph that is interpreted, with numbers of float64.

    Args:
        graph: Graph without calls of Programs.
        sizes: Sizes of the input and output ports.

    Attributes:
        variants: Dict of "scalar" and "batch": a Variant with the interface of that
            kernel.

    Raises CompileError if the interpreter itself cannot be compiled, and KeyError if an
    operation has no opcode.
    """

    def __init__(self, graph: Graph, sizes: kernel.Sizes) -> None:
        host = host_machine.machine()
        with seldom_collected():
            table = OperationTable(graph, *sizes, host.fused, host.width)
        self.variants = {
            "scalar": Interpreted("scalar", 1, table, graph),
            "batch": Interpreted("batch", host.width, table, graph),
        }


class Interpreted(kernel.Variant):
    """Interface of a kernel, scalar or batch, for a table and a number of lanes.

    `steps` is the estimated number of operations of a kernel with the same run time.
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
            host_machine.machine().width if width == 1 else 1,
            operations.vectors(width),
            bool(graph.requirements),
        )  # fmt: skip
        self._record = (ctypes.c_int64 * len(control.FIELDS))(*fields)
        self._kept = code, ports

    def fill(self, memory: np.ndarray, address: int) -> None:
        """Write the record's address before new scratch memory, and constants into it.

        `address` is that of slot 0; `memory` has at least 8 bytes before it.
        """
        start = address - memory.ctypes.data
        memory[start - 8 : start].view(np.int64)[0] = ctypes.addressof(self._record)
        slots, values = self._table.values()
        lanes = memory[start : start + self.scratch].view(float)
        lanes.reshape(-1, self._width)[slots] = values[:, None]
