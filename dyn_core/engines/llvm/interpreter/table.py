"""Graph to table: the input of the interpreter, written in one pass over the nodes.

The table is a list of 32-bit words: opcode, count and, as often as the count says, the
slots of results and operands; -1 ends a list. Every value of a Graph has a slot of its
own, so independent operations of one kind can be grouped: they are sorted by depth,
then by kind. Multiply-adds are as in lower.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dyn_core.engines.graph.graph import Graph, Node, Region
from dyn_core.engines.llvm.interpreter.control import HIGH
from dyn_core.engines.llvm.interpreter.operations import OPCODES, OPERATIONS
from dyn_core.engines.llvm.lower import count_uses, fusions

_END = -1
_GROUP = 8  # rows are padded to multiples of this, which one vector load may read
_KINDS = len(OPCODES) + 1
_LENGTHS = {OPCODES[name]: x.results + x.arity for name, x in OPERATIONS.items()}
_SINCOS, _MOVE, _WHERE = (OPCODES[name] for name in ("sincos", "move", "where"))
_LOOP, _PRODUCT, _REQUIRE = (OPCODES[name] for name in ("loop", "product", "require"))
_LENGTHS[_REQUIRE] = 2


class OperationTable:
    """The table of a Graph.

    Args:
        graph: Graph without calls of Programs.
        inputs, outputs: Sizes of the ports.
        fused: Whether multiply-adds are formed.
        group: The number of slots of a port is a multiple of this.

    Attributes:
        cells: The words of the table.
        inputs, outputs: Size and first slot of each port.
        constants: By its bytes, the slot of each constant.
        size: Number of slots.
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
        """Return the slots of the constants and their values, as arrays."""
        slots = np.array([*self.constants.values()], np.int64)
        return slots, np.frombuffer(b"".join(self.constants), float)

    def room(self, size: int, group: int = 1) -> int:
        """Allocate slots, rounded up to a multiple of `group`; return the first."""
        first = self.size
        self.size += -(-size // group) * group
        return first

    def constant(self, value: Any) -> int:
        """Return the slot of a constant, allocated at its first use."""
        key = np.float64(value).tobytes()
        slot = self.constants.get(key)
        if slot is None:
            slot = self.constants[key] = self.room(1)
        return slot

    def _graph(
        self, graph: Graph, inputs: Sequence[int], outputs: Sequence[int]
    ) -> list[int]:
        """Return the words that compute the outputs of a Graph from its inputs.

        Args:
            graph: Graph.
            inputs, outputs: Slot of each flat input and output.
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

        Its words, after the opcode: two for the maximum number of rounds; bytes from
        here to the words of `still`, to the body, and behind the loop; the condition;
        `still`; the body, which ends with the selection of the next state in active
        lanes.
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
    """A loop in a table.

    Attributes:
        copies: Slots (to, from) to copy before the loop.
        cells: Words of the loop.
        results: Slots of its results.
    """

    copies: list[tuple[int, int]]
    cells: list[int]
    results: list[int]


class _Lists:
    """The words of one Graph by depth and kind.

    Args:
        table: Table, whose slots are allocated here.
        graph: Graph.
        inputs, outputs: Slot of each flat input and output.

    Attributes:
        lists: By depth * _KINDS + opcode, the words of all operations there.
        slots: Slot of each node; for a loop or product the slots of its results.
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
        """Add the words `cells` of one operation at a depth of the Graph."""
        self.lists[depth * _KINDS + opcode] += cells
        self.table.steps += 1

    def _plain(self, k: int, op: str, operands: tuple[int, ...]) -> None:
        """Add an operation with one result, in a new slot or in the slot of an output.

        Args:
            k: Node.
            op: Operation of operations.py.
            operands: Nodes of the operands.
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
        """Add sine and cosine of an angle unless they exist; set a node's slot.

        Args:
            k: Node.
            op: sin or cos.
            angle: Node of the angle.
        """
        pair = self.angles.get(angle)
        depth = self.depths[k] = self.depths[angle] + 1
        if pair is None:
            first = self.table.room(2)
            pair = self.angles[angle] = first, first + 1
            self._add(depth, _SINCOS, *pair, self.slots[angle])
        self.slots[k] = pair[op == "cos"]

    def _loop(self, k: int, node: Node) -> None:
        """Add the loop of node k and the copies of its initial state; set its slots."""
        depth = max([self.depths[x] for x in node.operands], default=0) + 1
        loop = self.table.loop(node.data, [self.slots[x] for x in node.operands])
        for to, source in loop.copies:
            self._add(depth, _MOVE, to, source)
        self._add(depth + 1, _LOOP, _LOOP, *loop.cells)
        self.slots[k], self.depths[k] = loop.results, depth + 1

    def _product(self, k: int, node: Node) -> None:
        """Add the product of node k and copies of its operands; set its slots.

        Rows of the matrices are padded to multiples of _GROUP slots.
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

        Args:
            depth: Depth of the copies.
            nodes: Nodes of the entries, row by row.
            columns: Number of columns.
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
    """Return a number of columns rounded up to a multiple of _GROUP."""
    return -(-count // _GROUP) * _GROUP


def _slots(ports: Sequence[tuple[int, int]]) -> list[int]:
    """Return the slot of each flat value, from size and first slot of each port."""
    return [k for size, first in ports for k in range(first, first + size)]
