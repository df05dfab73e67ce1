"""Products of a Schedule: stores of operands, multiplication, copies of results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from dyn_core.engines.llvm.function_ir import FunctionCode, Place, Slots
from dyn_core.engines.llvm.lower import CHUNK, Schedule, ScheduledStep
from dyn_core.engines.llvm.products.matrix_products import Products
from dyn_core.engines.llvm.products.product_arrays import Array
from dyn_core.engines.llvm.value_tables import MANY, ValueTables
from dyn_core.sharing import cached_property

COPIES = 100  # maximum number of runs of values that one function copies


class FunctionWriter(Protocol):
    """Interface of the writer of one function of a Schedule; see emit.py."""

    code: FunctionCode

    def real(self, k: int) -> str:
        """Return the register of node k as a real, loaded at its first use."""

    def require(self, k: int) -> None:
        """Write the status update for node k, if it is a requirement."""


@dataclass(frozen=True)
class ProductCalls:
    """Writes functions for the products of a Schedule, and returns their calls.

    `inputs` are its flat inputs, `base` the scratch memory of its slots. `function`
    writes a function from name prefix and code, and returns its call.
    """

    products: Products
    schedule: Schedule
    inputs: Place
    base: Slots
    function: Callable[[str, FunctionCode], str]
    writer: Callable[[Place], FunctionWriter]
    tables: ValueTables

    def leaves(self) -> list[str]:
        """Return calls that store constants (not +0.0) and inputs in matrices."""
        nodes, leaves = self.schedule.graph.nodes, self.schedule.arrays.leaves
        constants = [pair for pair in leaves if nodes[pair[0]].op == "const"]
        calls = []
        for start in range(0, len(constants), CHUNK):
            before = self.writer(self.base)
            for x, slot in constants[start : start + CHUNK]:
                before.code.store(self.base, slot, before.real(x))
            calls.append(self.function("place", before.code))
        read = [(nodes[x].data, slot) for x, slot in leaves if nodes[x].op == "input"]
        return [*calls, *self.copies(read, self.inputs, self.base)]

    def multiply(self, steps: Sequence[ScheduledStep], outputs: Place) -> list[str]:
        """Write functions that compute consecutive products; return their calls.

        The functions also copy results to further matrices and to outputs. Requirements
        on results are checked by functions called directly after their product.
        Operands must have been stored before, see `leaves`.
        """
        calls: list[str] = []
        code = self._code()
        for step in steps:
            self._product(code, step, outputs)
            required = [x for x in step.results if x in self.schedule.conditions]
            if len(code.lines) > CHUNK or required or step is steps[-1]:
                calls.append(self.function("product", code))
                code = self._code()
            if required:
                after = self.writer(outputs)
                for x in required:
                    after.require(x)
                calls.append(self.function("conditions", after.code))
        return calls

    def _product(self, code: FunctionCode, step: ScheduledStep, outputs: Place) -> None:
        """Write one product, and copies of its entries to further slots and outputs."""
        schedule, (shape, _, k) = self.schedule, step.data
        places = schedule.arrays.places[k]

        def pointer(array: Array, row: int, column: int) -> str:
            spot = array.spot(row, column)
            place = outputs if spot.output else self.base
            return place.address(code, spot.number)[0]

        self.products.write(code, shape, places, pointer)
        source = outputs if places.result.output else self.base
        for further, place in (
            (schedule.copies, self.base), (schedule.ends, outputs),
        ):  # fmt: skip
            pairs = self._pairs(step, further)
            if self._by_table:
                in_order = sorted(pairs, key=lambda pair: pair[1])
                self.tables.copy(code, source, in_order, place)
            else:
                self._copy(code, _runs(pairs, source, place), source, place)

    def _pairs(
        self, step: ScheduledStep, further: Mapping[int, Sequence[int]]
    ) -> list[tuple[int, int]]:
        """Return the copies of a product's results, as pairs (source, target).

        Source: the flat output of the Program, or the slot, to which the product writes
        the result (Spot.number). Target: a flat output, or a slot, as `further` says.
        An output that the product writes directly is not copied to itself.
        """
        spots = {x: self.schedule.arrays.spot(x) for x in step.results if x is not None}
        outputs = further is self.schedule.ends
        return [
            (spot.number, y)
            for x, spot in spots.items()
            for y in further.get(x, ())
            if not (spot.output and outputs and y == spot.number)
        ]

    def copies(
        self, pairs: Sequence[tuple[int, int]], source: Place, to: Place
    ) -> list[str]:
        """Write functions that copy values, each up to 100 runs; return their calls."""
        runs, calls = _runs(pairs, source, to), []
        for first in range(0, len(runs), COPIES):
            code = self._code()
            self._copy(code, runs[first : first + COPIES], source, to)
            calls.append(self.function("copies", code))
        return calls

    def _copy(
        self,
        code: FunctionCode,
        runs: Sequence[tuple[int, int, int]],
        source: Place,
        to: Place,
    ) -> None:
        """Write copies of runs (from, to, count) of values."""
        for a, b, count in runs:
            if count == 1:
                code.store(to, b, code.load(source, a))
                continue
            start, target = source.address(code, a)[0], to.address(code, b)[0]
            self.products.move(code, start, target, count)

    @cached_property
    def _by_table(self) -> bool:
        """Whether tables copy results: over 2000 runs in all products, see `_runs`."""
        schedule = self.schedule
        steps = [step for step in schedule.rolled() if step.op == "product"]
        runs = 0
        for step in steps:
            for further in (schedule.ends, schedule.copies):
                pairs, place = self._pairs(step, further), Slots(0)
                runs += len(_runs(pairs, place, place))
        return runs > MANY

    def _code(self) -> FunctionCode:
        return FunctionCode(self.products.width, self.products.fused)


def _runs(
    pairs: Sequence[tuple[int, int]], source: Place, to: Place
) -> list[tuple[int, int, int]]:
    """Return runs (from, to, count) of values that are contiguous in both places.

    Pairs are (index in source, index in target); runs are in the order of the target.
    """
    runs: list[tuple[int, int, int]] = []
    for x, y in sorted(pairs, key=lambda pair: (pair[1], pair[0])):
        if runs:
            a, b, count = runs[-1]
            neighbours = (a + count, b + count) == (x, y)
            if neighbours and source.joined(x - 1, x) and to.joined(y - 1, y):
                runs[-1] = a, b, count + 1
                continue
        runs.append((x, y, 1))
    return runs
