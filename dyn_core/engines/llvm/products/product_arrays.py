"""Memory of the matrices of products: in scratch memory, or among the outputs.

A result whose entries are outputs is written directly there; a result that is part of a
later operand, directly into that. An operand that is a block of an existing array is
read there; any other has an array of its own, into which values are stored when they
are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from typing import NamedTuple

from dyn_core.engines.graph.graph import Graph

GROUP = 8  # rows are padded to multiples of this, which one vector load may read


class Spot(NamedTuple):
    """Location of a value: flat output `number` if `output`, else slot `number`."""

    output: bool
    number: int


class Array(NamedTuple):
    """Location of a matrix: flat output or slot of its first entry, and two distances.

    Entries are `by_row` apart from row to row, and `by_column` within a row.
    """

    output: bool
    first: int
    by_row: int
    by_column: int = 1

    def spot(self, row: int, column: int) -> Spot:
        """Return the location of the entry in a row and column, counted from 0."""
        place = self.first + row * self.by_row + column * self.by_column
        return Spot(self.output, place)


_Filled = tuple[Array, tuple[int, ...], int, int]  # array, values, row, columns


class ProductPlaces(NamedTuple):
    """Arrays of a product's matrices A, B, C (None without C) and of its result."""

    a: Array
    b: Array
    c: Array | None
    result: Array


@dataclass
class ProductArrays:
    """Arrays of all products of a Schedule, assigned when the object is created.

    The first slot is `start`; `ends` has by value the outputs that it is, empty where
    they cannot be read again; `joined` returns whether two outputs are in one array.

    Attributes:
        places, results: By product's node, its arrays, and the array of its result.
        stores: By value, the slots of arrays that it must be stored in when computed.
        leaves: (constant or input, slot) that must be stored before the products.
        zeros: Slots of zeros: scratch memory starts as zeros, they are never written.
        allotted: (first slot, size) of each array that is not a part of another.
    """

    graph: Graph
    start: InitVar[int]
    products: InitVar[Sequence[int]]
    ends: Mapping[int, Sequence[int]]
    joined: Callable[[int, int], bool]
    places: dict[int, ProductPlaces] = field(default_factory=dict)
    stores: dict[int, list[int]] = field(default_factory=dict)
    leaves: list[tuple[int, int]] = field(default_factory=list)
    zeros: list[int] = field(default_factory=list)
    end: int = 0

    def __post_init__(self, start: int, products: Sequence[int]) -> None:
        self.end, nodes = start, self.graph.nodes
        self.results: dict[int, Array] = {}
        self.allotted: list[tuple[int, int]] = []
        self._filled: dict[int, list[_Filled]] = {}  # by first values of its rows
        self._unfilled: list[tuple[Array, tuple[int, ...], int]] = []  # to be filled
        self._items = self._entries(products)
        self._spots: dict[int, list[Spot]] = {
            x: [Spot(True, place) for place in places]
            for x, places in self.ends.items()
            if nodes[x].op not in ("const", "input")
        }
        uses = count_uses(self.graph) if products else []
        for k in reversed(products):
            if k not in self.results:
                array = self._block(self._items[k], nodes[k].data.columns, False)
                if array is not None:
                    self._place(k, array)
            if k in self.results:
                self._place_sums(k, uses)
        operands = {}
        for k in products:
            shape = nodes[k].data
            parts = shape.split(nodes[k].operands)
            widths = (shape.inner, shape.columns, shape.columns)
            for which, (entries, columns) in enumerate(zip(parts, widths, strict=True)):
                if entries:
                    operands[k, which] = tuple(entries), columns
        arrays: dict[tuple[int, int], Array] = {}
        # Largest operands first: others may be blocks of them.
        for place, (entries, columns) in sorted(
            operands.items(), key=lambda item: -len(item[1][0])
        ):
            arrays[place] = self._operand(entries, columns, place[1] == 0)
        for k in products:
            if k not in self.results:
                self._place_alone(k)
            c = arrays.get((k, 2))
            self.places[k] = ProductPlaces(
                arrays[k, 0], arrays[k, 1], c, self.results[k]
            )
        for array, entries, columns in self._unfilled:
            self._store(array, entries, columns)

    def holds(self, node: int) -> bool:
        """Return whether a node is an item of one of the products."""
        node_of = self.graph.nodes[node]
        return node_of.op == "item" and node_of.operands[0] in self.results

    def spot(self, item: int) -> Spot:
        """Return the location of a product's item in the array of its result."""
        node = self.graph.nodes[item]
        columns = self.graph.nodes[node.operands[0]].data.columns
        return self.results[node.operands[0]].spot(*divmod(node.data, columns))

    def _entries(self, products: Sequence[int]) -> dict[int, tuple[int, ...]]:
        """Return by product the nodes of its items, row by row; -1 where no node is."""
        items = {
            k: [-1] * (self.graph.nodes[k].data.rows * self.graph.nodes[k].data.columns)
            for k in products
        }
        for x, node in enumerate(self.graph.nodes):
            if node.op == "item" and node.operands[0] in items:
                items[node.operands[0]][node.data] = x
        return {k: tuple(row) for k, row in items.items()}

    def _new(self, rows: int, columns: int) -> Array:
        """Return a new array in slots, each row padded to a multiple of 8 entries."""
        by_row = -(-columns // GROUP) * GROUP
        array = Array(False, self.end, by_row)
        self.allotted.append((self.end, rows * by_row))
        self.end += rows * by_row
        return array

    def _place(self, k: int, array: Array) -> None:
        """Add the array of product k to `results`, its items' locations to `_spots`."""
        self.results[k] = array
        for x in self._items[k]:
            if x >= 0:
                self._spots.setdefault(x, []).append(self.spot(x))

    def _place_sums(self, k: int, uses: Sequence[int]) -> None:
        """Let products that are summed in C be written into the result of product k.

        This applies if every entry of C is an item of a product without an array, used
        only there, and these products fill blocks of C; else nothing changes.
        """
        shape = self.graph.nodes[k].data
        c = shape.split(self.graph.nodes[k].operands)[2]
        if not c or any(self.graph.nodes[x].op != "item" or uses[x] > 1 for x in c):
            return
        array, number = self.results[k], {x: n for n, x in enumerate(c)}
        for m in {self.graph.nodes[x].operands[0]: None for x in c}:
            items = self._items.get(m, ())
            if m in self.results or not items or not set(items) <= number.keys():
                return
            wide = self.graph.nodes[m].data.columns
            row, column = divmod(number[items[0]], shape.columns)
            if any(
                number[y] != (row + n // wide) * shape.columns + column + n % wide
                for n, y in enumerate(items)
            ):
                return
        for m in {self.graph.nodes[x].operands[0]: None for x in c}:
            row, column = divmod(number[self._items[m][0]], shape.columns)
            self._place(m, array._replace(first=array.spot(row, column).number))

    def _place_alone(self, k: int) -> None:
        """Give the result of product k an array of its own."""
        shape = self.graph.nodes[k].data
        self._place(k, self._new(shape.rows, shape.columns))

    def _operand(self, entries: tuple[int, ...], columns: int, any_step: bool) -> Array:
        """Return the array of an operand: an existing one, or a new one.

        A product all of whose entries are in the operand may get its own array first.
        `any_step`: neighbours in a row may have any distance, else 1.
        """
        self._place_whole_result(entries)
        return (
            self._block(entries, columns, any_step)
            or self._block_of_filled(entries, columns)
            or self._fill(entries, columns)
        )

    def _place_whole_result(self, entries: tuple[int, ...]) -> None:
        """Give a product that contains all entries of an operand an array of its own.

        The product is the one of the first entry.
        """
        first = self.graph.nodes[entries[0]]
        k = first.operands[0] if first.op == "item" else -1
        if k in self._items and k not in self.results:
            mine = set(self._items[k])
            if mine.issuperset(entries):
                self._place_alone(k)

    def _block(
        self, entries: tuple[int, ...], columns: int, any_step: bool
    ) -> Array | None:
        """Return the array of existing locations of all entries in order, or None.

        They are in products' results or among the outputs, where they must be within
        one output array. Distances are positive, in a row 1 without `any_step`.
        """
        spots, rows = self._spots, len(entries) // columns
        if any(x not in spots for x in entries):
            return None
        for first in spots[entries[0]]:
            steps = {1}
            if any_step and columns > 1:
                steps |= {x.number - first.number for x in spots[entries[1]]}
            strides = {GROUP}
            if rows > 1:
                strides = {x.number - first.number for x in spots[entries[columns]]}
            for by_column in sorted(steps):
                for by_row in sorted(strides):
                    array = Array(first.output, first.number, by_row, by_column)
                    if by_row > 0 < by_column and all(
                        array.spot(*divmod(n, columns)) in spots[x]
                        for n, x in enumerate(entries)
                    ):
                        last = array.spot(rows - 1, columns - 1).number
                        if not first.output or self.joined(first.number, last):
                            return array
        return None

    def _block_of_filled(self, entries: tuple[int, ...], columns: int) -> Array | None:
        """Return the block of an earlier operand's array with these entries, or None.

        The block starts in the first column of that array.
        """
        rows = len(entries) // columns
        for array, others, row, wide in self._filled.get(entries[0], ()):
            if (
                columns <= wide
                and len(others) >= (row + rows) * wide
                and all(
                    entries[r * columns : (r + 1) * columns]
                    == others[(row + r) * wide : (row + r) * wide + columns]
                    for r in range(rows)
                )
            ):
                return array._replace(first=array.first + row * array.by_row)
        return None

    def _fill(self, entries: tuple[int, ...], columns: int) -> Array:
        """Return a new array, noted in `_filled` and `_unfilled`; `_store` fills it.

        Results of products without an array that are blocks of it are written directly
        there.
        """
        rows, number = len(entries) // columns, {x: n for n, x in enumerate(entries)}
        array = self._new(rows, columns)
        for row in range(rows):
            filled = array, entries, row, columns
            self._filled.setdefault(entries[row * columns], []).append(filled)
        inside = {
            self.graph.nodes[x].operands[0]: None
            for x in entries
            if self.graph.nodes[x].op == "item"
        }
        for k in inside:
            if k not in self._items or k in self.results:
                continue
            items, wide = self._items[k], self.graph.nodes[k].data.columns
            row, column = divmod(number.get(items[0], -1), columns)
            if row >= 0 and all(
                number.get(y) == (row + n // wide) * columns + column + n % wide
                for n, y in enumerate(items)
            ):
                first = array.spot(row, column).number
                self._place(k, array._replace(first=first))
        self._unfilled.append((array, entries, columns))
        return array

    def _store(self, array: Array, entries: tuple[int, ...], columns: int) -> None:
        """Record which values must be stored in an operand's own array.

        They are added to `zeros`, `leaves` or `stores`; results of products that are
        already there are not stored again.
        """
        for n, x in enumerate(entries):
            spot, node = array.spot(*divmod(n, columns)), self.graph.nodes[x]
            if node.op == "const" and repr(node.data) == "0.0":
                self.zeros.append(spot.number)  # no other value is written to this slot
                continue
            if node.op in ("const", "input"):
                self.leaves.append((x, spot.number))
            elif spot not in self._spots.get(x, ()):
                self.stores.setdefault(x, []).append(spot.number)


def count_uses(graph: Graph) -> list[int]:
    """Return the number of uses of each node, as operand, output or requirement."""
    uses = [0] * len(graph.nodes)
    for node in graph.nodes:
        for x in node.operands:
            uses[x] += 1
    for x in (*graph.outputs, *(r.condition for r in graph.requirements)):
        uses[x] += 1
    return uses
