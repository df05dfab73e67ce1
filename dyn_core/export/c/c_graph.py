"""A Graph as C functions, in the order and with the multiply-adds of its kernel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple, Protocol

from dyn_core.engines.graph.graph import Graph, Region
from dyn_core.engines.llvm.functions.float64_functions import FUNCTIONS
from dyn_core.engines.llvm.lower import CHUNK, Schedule, ScheduledStep, lower
from dyn_core.export.c.c_operations import CInstructions, CNumbers, CValue

_COMPARE = {"lt": "lt", "le": "le", "eq": "eq"}
_INTRINSIC = {"abs": "fabs", "sqrt": "sqrt", "floor": "floor"}


class CPlace(Protocol):
    """A region of memory with flat values."""

    def entry(self, k: int) -> str:
        """Return the C expression of flat value k."""


class PortEntries:
    """Flat inputs or outputs, of `sizes` by port, behind a table of pointers in C."""

    def __init__(self, table: str, sizes: Sequence[int]) -> None:
        self.entries = [
            f"{table}[{p}][{k}]" for p, size in enumerate(sizes) for k in range(size)
        ]

    def entry(self, k: int) -> str:
        """Return the C expression of value k."""
        return self.entries[k]


class CSlots(NamedTuple):
    """Values in the scratch memory `s`, beginning with slot `base`."""

    base: int

    def entry(self, k: int) -> str:
        """Return the C expression of value k."""
        return f"s[{self.base + k}]"


class CGraphs:
    """A writer of all functions of one source; `fused`: multiply-adds round once.

    Attributes:
        functions: C code of the functions written so far.
        top: Number of slots of the scratch memory in use.
        zeros: Slots that must be set to zero at the start, see `begin`.
    """

    def __init__(self, prefix: str, fused: bool, numbers: CNumbers) -> None:
        self.prefix, self.fused, self.numbers = prefix, fused, numbers
        self.functions: list[str] = []
        self.top = 0
        self.zeros: set[int] = set()

    def code(self) -> CInstructions:
        """Return CInstructions without statements, for a new function."""
        return CInstructions(self.prefix, self.fused, self.numbers)

    def function(self, what: str, lines: Iterable[str]) -> str:
        """Add a function to `functions`; return the statement that calls it.

        The body `lines` may use in, out, s and status, which the caller must have.
        """
        name = f"{self.prefix}_{what}{len(self.functions) + 1}"
        real = self.numbers.real
        head = (
            f"static void {name}(const {real} *const *in, {real} *const *out,"
            f" {real} *s,\n    int64_t *status)"
        )
        unused = "    (void)in; (void)out; (void)s; (void)status;"
        text = "\n".join([head, "{", unused, *lines, "}", ""])
        self.functions.append(text)
        return f"    {name}(in, out, s, status);"

    def in_parts(self, what: str, statements: Sequence[str]) -> list[str]:
        """Add functions of at most 400 independent statements; return their calls."""
        parts = [statements[k : k + CHUNK] for k in range(0, len(statements), CHUNK)]
        return [self.function(what, part) for part in parts]

    def graph(self, graph: Graph, inputs: CPlace, outputs: CPlace) -> list[str]:
        """Add the functions of a Graph; return the statements that call them, in order.

        The Graph calls no Programs. Slots for its values are added to `top`, those of
        zeros in matrices to `zeros`. ValueError: An operation has no form in C.
        """
        return _CWriter(self, graph, inputs, outputs).calls()

    def begin(self) -> list[str]:
        """Add functions that set the slots `zeros` to 0; return their calls.

        All graphs must have been added before.
        """
        lines = []
        numbered = enumerate(sorted(self.zeros))
        for _, group in groupby(numbered, key=lambda pair: pair[1] - pair[0]):
            run = [slot for _, slot in group]
            lines.append(f"    for (int k = {run[0]}; k <= {run[-1]}; k++) s[k] = 0;")
        return self.in_parts("begin", lines)


class _CWriter:
    """A writer of the Schedule of one Graph; `inputs` and `outputs` are memory."""

    def __init__(
        self, graphs: CGraphs, graph: Graph, inputs: CPlace, outputs: CPlace
    ) -> None:
        self.graphs, self.inputs, self.outputs = graphs, inputs, outputs
        self.schedule: Schedule = lower(graph, graphs.fused, 1)
        self.base = CSlots(graphs.top)
        graphs.top += self.schedule.size
        self.nodes = graph.nodes
        self._new()

    def _new(self) -> None:
        """Start a new function, without statements and values."""
        self.code = self.graphs.code()
        self.values: dict[int, CValue] = {}

    def _end(self, what: str) -> list[str]:
        """Finish the current function and begin a new one; return its call, or []."""
        lines = self.code.lines
        self._new()
        return [self.graphs.function(what, lines)] if lines else []

    def calls(self) -> list[str]:
        """Write all functions; return the statements that call them in order."""
        schedule = self.schedule
        calls = self._matrices()
        for k in {*schedule.ends, *schedule.conditions}:
            if self.nodes[k].op in ("const", "input"):
                self._deliver(k)
                calls += self._end("leaf") if len(self.code.lines) >= CHUNK else []
        calls += self._end("leaf")
        for chunk in schedule.chunks:
            for step in chunk:
                if step.op == "loop":
                    calls += self._loop(step)
                elif step.op == "product":
                    calls += self._product(step)
                else:
                    self._step(step)
                    self._keep(step.results)
            calls += self._end("part")
        return calls

    def _value(self, k: int) -> CValue:
        """Return the value of node k here: made, constant, or loaded once as a real."""
        value = self.values.get(k)
        if value is None:
            node = self.nodes[k]
            if node.op == "const":
                kind = "truth" if isinstance(node.data, bool) else "real"
                value = self.code.lift(node.data, kind)
            elif node.op == "input":
                value = self.code.new(self.inputs.entry(node.data))
            else:
                value = self.code.new(self.base.entry(self.schedule.slots[k]))
            self.values[k] = value
        return value

    def _real(self, k: int) -> CValue:
        value = self._value(k)
        if value.kind == "real":
            return value
        return self.code.select(value, self.code.lift(1.0), self.code.lift(0.0))

    def _truth(self, k: int) -> CValue:
        """Return node k as a condition; numbers other than 0, NaN too, are true."""
        value = self._value(k)
        return value if value.kind == "truth" else value.compare("ne", 0.0)

    def _store(self, place: str, k: int) -> None:
        value = self._real(k)
        self.code.lines.append(f"    {place} = {value.name};")

    def _keep(self, results: Iterable[int | None]) -> None:
        """Write the stores of results that later functions need or that are outputs."""
        schedule = self.schedule
        for k in results:
            if k is None:
                continue
            slot = schedule.slots.get(k)
            places = [] if slot is None else [slot]
            for place in (*places, *schedule.copies.get(k, ())):
                self._store(self.base.entry(place), k)
            self._deliver(k)

    def _deliver(self, k: int) -> None:
        """Write the stores of node k to outputs, and its check if it is a condition.

        If a condition is 0, its number becomes the status, unless a smaller one is set.
        """
        for index in self.schedule.ends.get(k, ()):
            self._store(self.outputs.entry(index), k)
        number = self.schedule.conditions.get(k)
        if number is not None:
            holds = self._truth(k).name
            first = f"*status == 0 || *status > {number}"
            self.code.lines.append(
                f"    if (!{holds} && ({first})) *status = {number};"
            )

    def _step(self, step: ScheduledStep) -> None:
        """Write an operation, no loop or product; its results become values here."""
        op, x, b = step.op, step.operands, self.code
        if op == "sincos":
            self._sincos(step)
            return
        if op in ("and", "or"):
            p, q = self._truth(x[0]), self._truth(x[1])
            value = p & q if op == "and" else p | q
        elif op == "not":
            value = self._truth(x[0]) ^ True
        elif op == "where":
            c, kinds = self._truth(x[0]), {self._value(k).kind for k in x[1:]}
            get = self._truth if kinds == {"truth"} else self._real
            value = b.select(c, get(x[1]), get(x[2]))
        else:
            value = self._number(op, [self._real(k) for k in x])
        self.values[step.results[0]] = value

    def _number(self, op: str, x: list[CValue]) -> CValue:
        """Return the result of an operation on reals; a comparison's is a truth."""
        b = self.code
        if op in FUNCTIONS:
            return b.call(f"{op}{b.numbers.end}", "real", *x)
        if op in _INTRINSIC:
            return b.intrinsic(_INTRINSIC[op], x[0])
        if op in _COMPARE:
            return x[0].compare(_COMPARE[op], x[1])
        if op == "neg":
            return -x[0]
        if op in ("fma", "fms", "fnma"):
            first = -x[0] if op == "fnma" else x[0]
            return b.fma(first, x[1], -x[2] if op == "fms" else x[2])
        if op in ("add", "sub", "mul", "div"):
            sign = {"add": "+", "sub": "-", "mul": "*", "div": "/"}[op]
            return b.new(f"{x[0].name} {sign} {x[1].name}")
        raise ValueError(f"operation '{op}' has no form in C")

    def _sincos(self, step: ScheduledStep) -> None:
        """Write sines and cosines, one call for each angle; unused results are None."""
        b = self.code
        for k, angle in enumerate(step.operands):
            x = self._real(angle)
            b.named += 2
            names = f"n{b.named - 1}", f"n{b.named}"
            b.lines += [
                f"    {b.real} {names[0]}, {names[1]};",
                f"    {b.prefix}_sincos{b.numbers.end}"
                f"({x.name}, &{names[0]}, &{names[1]});",
            ]
            for name, node in zip(names, step.results[2 * k : 2 * k + 2], strict=True):
                if node is not None:
                    self.values[node] = CValue(b, "real", name)

    def _matrices(self) -> list[str]:
        """Store matrices' constants and inputs, +0.0 in `zeros`; return the calls."""
        arrays = self.schedule.arrays
        for k, places in arrays.places.items():
            shape = self.nodes[k].data
            parts = shape.split(self.nodes[k].operands)
            widths = shape.inner, shape.columns, shape.columns
            for array, part, columns in zip(places[:3], parts, widths, strict=True):
                if array is None:
                    continue
                for n, x in enumerate(part):
                    node = self.nodes[x]
                    if node.op == "const" and repr(node.data) == "0.0":
                        spot = array.spot(*divmod(n, columns))
                        self.graphs.zeros.add(self.base.base + spot.number)
        calls = []
        for start in range(0, len(arrays.leaves), CHUNK):
            for x, slot in arrays.leaves[start : start + CHUNK]:
                self._store(self.base.entry(slot), x)
            calls += self._end("place")
        return calls

    def _after(self, results: Iterable[int | None]) -> list[str]:
        """Write copies and outputs of results of a loop or product; return calls."""
        calls = []
        for x in results:
            if x is None:
                continue
            for place in self.schedule.copies.get(x, ()):
                self._store(self.base.entry(place), x)
            self._deliver(x)
            calls += self._end("items") if len(self.code.lines) >= CHUNK else []
        return calls + self._end("items")

    def _product(self, step: ScheduledStep) -> list[str]:
        """Return the call of a product of stored operands, then calls that use it."""
        shape, _, k = step.data
        a, b, c, to = self.schedule.arrays.places[k]
        first = self.base.base
        onto = f"s + {first + c.first}, {c.by_row}" if c else "0, 0"
        matrices = (
            f"s + {first + a.first}, {a.by_row}, {a.by_column},"
            f" s + {first + b.first}, {b.by_row}, {b.by_column},\n        {onto},"
            f" s + {first + to.first}, {to.by_row}, {to.by_column}"
        )
        size = f"{shape.rows}, {shape.inner}, {shape.columns}, {int(shape.negative)}"
        call = f"    {self.graphs.prefix}_product({matrices},\n        {size});"
        return [call, *self._after(step.results)]

    def _loop(self, step: ScheduledStep) -> list[str]:
        """Return the calls that store a loop's operands, run it and use its results.

        Operands get slots in `top` of the source; results stay there, by
        schedule.slots.
        """
        region, which, _ = step.data
        state = CSlots(self.graphs.top)
        self.graphs.top += len(step.operands)
        calls = []
        for k, x in enumerate(step.operands):
            self._store(state.entry(k), x)
            calls += self._end("state") if len(self.code.lines) >= CHUNK else []
        calls += self._end("state")
        calls.append(self.graphs.function("loop", self._rounds(region, state)))
        for k, x in zip(which, step.results, strict=True):
            self.schedule.slots[x] = state.base + k - self.base.base
        return [*calls, *self._after(step.results)]

    def _rounds(self, region: Region, state: CSlots) -> list[str]:
        """Return the statements of a loop; add the functions of its condition and body.

        Slots are added to `top` of the source. `state` has the slots of the initial
        state, which the result replaces, then of the values from outside.
        """
        graphs = self.graphs
        go_on, following = CSlots(graphs.top), CSlots(graphs.top + 1)
        graphs.top += 1 + region.width
        cond = graphs.graph(region.cond, state, go_on)
        body = graphs.graph(region.body, state, following)
        moved = f"s[{state.base} + k] = s[{following.base} + k]"
        return [
            f"    for (int64_t round = 0; round < {region.max}; round++) {{",
            *(f"    {call}" for call in cond),
            f"        if (!({go_on.entry(0)} != 0)) break;",
            *(f"    {call}" for call in body),
            f"        for (int k = 0; k < {region.width}; k++) {moved};",
            "    }",
        ]
