"""Where the matrices of products lie in scratch memory.

An operand that is a block of an earlier result is read where it lies; any other has an
array of its own, into which values are stored when they are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dyn_core.engines.graph.graph import Graph

Array = tuple[int, int]  # slot of the first entry, slots from row to row
_GROUP = 8  # rows are as long as whole groups, which one instruction may take


class ProductPlaces(NamedTuple):
    """Arrays of a product's matrices A, B and of its result C."""

    a: Array
    b: Array
    c: Array


@dataclass
class ProductArrays:
    """Arrays of all products of a Schedule.

    Attributes:
        graph: Whose products.
        start: First slot that is free.
        places: By product's node, its arrays.
        stores: By value, the slots of arrays that it is stored in.
        leaves: By product's node, constants and inputs with their slots.
    """

    graph: Graph
    start: int
    places: dict[int, ProductPlaces] = field(default_factory=dict)
    stores: dict[int, list[int]] = field(default_factory=dict)
    leaves: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    _known: dict[tuple[int, tuple[int, ...]], Array] = field(default_factory=dict)

    def add(self, k: int) -> None:
        """Place the matrices of the product of node k; those before it are placed."""
        node = self.graph.nodes[k]
        shape = node.data
        end = shape.rows * shape.inner
        a = self._operand(k, node.operands[:end], shape.inner)
        b = self._operand(k, node.operands[end:], shape.columns)
        self.places[k] = ProductPlaces(a, b, self._new(shape.rows, shape.columns))

    def slot(self, item: int) -> int:
        """Return the slot of an item of a product."""
        node = self.graph.nodes[item]
        shape = self.graph.nodes[node.operands[0]].data
        first, by_row = self.places[node.operands[0]].c
        row, column = divmod(node.data, shape.columns)
        return first + row * by_row + column

    def end(self) -> int:
        """Return the first slot behind all arrays, and behind what is read of them."""
        return self.start + (_GROUP if self.places else 0)

    def _new(self, rows: int, columns: int) -> Array:
        by_row = -(-columns // _GROUP) * _GROUP
        array = self.start, by_row
        self.start += rows * by_row
        return array

    def _operand(self, k: int, nodes: Sequence[int], columns: int) -> Array:
        """Return where an operand lies: in a result, or in an array of its own."""
        key = columns, tuple(nodes)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._block(nodes, columns) or self._fill(
                k, nodes, columns
            )
        return known

    def _block(self, nodes: Sequence[int], columns: int) -> Array | None:
        """Return the array of a block of one earlier result, None if it is none."""
        first = self.graph.nodes[nodes[0]]
        if first.op != "item" or self.graph.nodes[first.operands[0]].op != "product":
            return None
        wide = self.graph.nodes[first.operands[0]].data.columns
        for n, x in enumerate(nodes):
            row, column = divmod(n, columns)
            node = self.graph.nodes[x]
            wanted = first.data + row * wide + column
            if node.op != "item" or (node.operands, node.data) != (
                first.operands,
                wanted,
            ):
                return None
        return self.slot(nodes[0]), self.places[first.operands[0]].c[1]

    def _fill(self, k: int, nodes: Sequence[int], columns: int) -> Array:
        """Return a new array, into which its entries will be stored."""
        array = self._new(len(nodes) // columns, columns)
        for n, x in enumerate(nodes):
            row, column = divmod(n, columns)
            slot = array[0] + row * array[1] + column
            if self.graph.nodes[x].op in ("const", "input"):
                self.leaves.setdefault(k, []).append((x, slot))
            else:
                self.stores.setdefault(x, []).append(slot)
        return array
