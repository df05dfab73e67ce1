"""Where the matrices of products lie in scratch memory.

An operand that is a block of an earlier result is read where it lies; any other has an
array of its own, into which values are stored when they are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import InitVar, dataclass, field
from typing import NamedTuple

from dyn_core.engines.graph.graph import Graph

Array = tuple[int, int, int]  # slot of the first entry, from row to row, in a row
_Filled = tuple[Array, tuple[int, ...], int, int]  # array, values, row, columns
_GROUP = 8  # rows are as long as whole groups, which one instruction may take


class ProductPlaces(NamedTuple):
    """Arrays of a product's matrices A and B, of C if there is one, of the result."""

    a: Array
    b: Array
    c: Array | None
    result: Array


@dataclass
class ProductArrays:
    """Arrays of all products of a Schedule.

    Args:
        graph: Whose products.
        start: First slot that is free.
        products: Nodes of the products.

    Attributes:
        places: By product's node, its arrays.
        stores: By value, the slots of arrays that it is stored in.
        leaves: Constants and inputs with the slots that they are stored in.
        end: First slot behind all arrays, and behind what is read of them.
    """

    graph: Graph
    start: InitVar[int]
    products: InitVar[Sequence[int]]
    places: dict[int, ProductPlaces] = field(default_factory=dict)
    stores: dict[int, list[int]] = field(default_factory=dict)
    leaves: list[tuple[int, int]] = field(default_factory=list)
    end: int = 0

    def __post_init__(self, start: int, products: Sequence[int]) -> None:
        self.end = start
        self._results: dict[int, Array] = {}
        self._filled: dict[int, list[_Filled]] = {}  # by first values of its rows
        shapes = {k: self.graph.nodes[k].data for k in products}
        operands = {}
        for k, shape in shapes.items():
            self._results[k] = self._new(shape.rows, shape.columns)
            parts = shape.split(self.graph.nodes[k].operands)
            widths = (shape.inner, shape.columns, shape.columns)
            for which, (nodes, columns) in enumerate(zip(parts, widths, strict=True)):
                if nodes:
                    operands[k, which] = tuple(nodes), columns
        arrays: dict[tuple[int, int], Array] = {}
        # The largest first: others may be blocks of them.
        for place, (nodes, columns) in sorted(
            operands.items(), key=lambda item: -len(item[1][0])
        ):
            arrays[place] = self._operand(nodes, columns, place[1] == 0)
        for k in products:
            c = arrays.get((k, 2))
            self.places[k] = ProductPlaces(
                arrays[k, 0], arrays[k, 1], c, self._results[k]
            )
        self.end += _GROUP if products else 0

    def slot(self, item: int) -> int:
        """Return the slot of an item of a product."""
        node = self.graph.nodes[item]
        shape = self.graph.nodes[node.operands[0]].data
        first, by_row, _ = self._results[node.operands[0]]
        row, column = divmod(node.data, shape.columns)
        return first + row * by_row + column

    def _new(self, rows: int, columns: int) -> Array:
        by_row = -(-columns // _GROUP) * _GROUP
        array = self.end, by_row, 1
        self.end += rows * by_row
        return array

    def _operand(self, nodes: tuple[int, ...], columns: int, any_step: bool) -> Array:
        """Return where an operand lies: in a result, or in an array of its own.

        Args:
            nodes: Entries, row by row.
            columns: Their number.
            any_step: Whether neighbours in a row may lie apart.
        """
        return (
            self._block_of_result(nodes, columns, any_step)
            or self._block_of_filled(nodes, columns)
            or self._fill(nodes, columns)
        )

    def _block_of_result(
        self, nodes: tuple[int, ...], columns: int, transposed: bool
    ) -> Array | None:
        """Return the array of a block of one result, None if it is none."""
        first = self.graph.nodes[nodes[0]]
        if first.op != "item" or first.operands[0] not in self._results:
            return None
        wide = self.graph.nodes[first.operands[0]].data.columns
        by_row = self._results[first.operands[0]][1]
        entries = [self.graph.nodes[x] for x in nodes]
        if any(x.op != "item" or x.operands != first.operands for x in entries):
            return None
        items = [x.data - first.data for x in entries]
        places = [divmod(n, columns) for n in range(len(nodes))]
        start = self.slot(nodes[0])
        if items == [row * wide + column for row, column in places]:
            return start, by_row, 1
        if transposed and items == [column * wide + row for row, column in places]:
            return start, 1, by_row
        return None

    def _block_of_filled(self, nodes: tuple[int, ...], columns: int) -> Array | None:
        """Return the array of a block that begins a row of one filled before."""
        rows = len(nodes) // columns
        for array, others, row, wide in self._filled.get(nodes[0], ()):
            if (
                columns <= wide
                and len(others) >= (row + rows) * wide
                and all(
                    nodes[r * columns : (r + 1) * columns]
                    == others[(row + r) * wide : (row + r) * wide + columns]
                    for r in range(rows)
                )
            ):
                return array[0] + row * array[1], array[1], 1
        return None

    def _fill(self, nodes: tuple[int, ...], columns: int) -> Array:
        """Return a new array, into which its entries will be stored."""
        rows = len(nodes) // columns
        array = self._new(rows, columns)
        for row in range(rows):
            filled = array, nodes, row, columns
            self._filled.setdefault(nodes[row * columns], []).append(filled)
        for n, x in enumerate(nodes):
            row, column = divmod(n, columns)
            slot = array[0] + row * array[1] + column
            node = self.graph.nodes[x]
            if node.op == "const" and repr(node.data) == "0.0":
                continue  # scratch memory begins as zeros, and arrays are not reused
            if node.op in ("const", "input"):
                self.leaves.append((x, slot))
            else:
                self.stores.setdefault(x, []).append(slot)
        return array
