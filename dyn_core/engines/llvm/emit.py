"""Schedule to LLVM IR: the operations, for any number of lanes.

No fast-math flag is used: lower.py determines all rounding, equal for one state and for
lanes. A condition in memory is 1.0 or 0.0. `code` is a function being written.

The state of a loop may be thousands of numbers, such as a Jacobian: it is stored, and
the rounds update it in place, by loops in machine code; later steps read it there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from dyn_core.engines.graph.graph import Graph, Region
from dyn_core.engines.llvm.function_ir import FunctionCode, Place, Ports, Slots
from dyn_core.engines.llvm.functions.float64_functions import (
    FUNCTIONS,
    declarations,
    definitions,
    symbol,
)
from dyn_core.engines.llvm.ir import (
    Instructions,
    Value,
    constant,
    kind,
    lanes_like,
    real_size,
)
from dyn_core.engines.llvm.lower import CHUNK, ROLLED, Schedule, ScheduledStep, lower
from dyn_core.engines.llvm.products.matrix_products import Products
from dyn_core.engines.llvm.products.product_calls import FunctionWriter, ProductCalls
from dyn_core.engines.llvm.value_tables import ValueTables

_FILLED = 32  # minimum number of equal constants stored by a loop
HOLDS = 2**30  # status while no requirement has failed: above all their numbers
ARGUMENTS = "ptr %in, ptr %out, ptr %s"
_PARAMETERS = "ptr noalias %in, ptr noalias %out, ptr noalias %s"
_INFIX = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_INTRINSIC = {"abs": "fabs", "sqrt": "sqrt", "floor": "floor"}
_COMPARE = {"lt": "olt", "le": "ole", "eq": "oeq"}


class BehindPointer:
    """Contiguous values behind a pointer; `pointer` is the register of its address."""

    def __init__(self, pointer: str) -> None:
        self.pointer = pointer

    def address(self, code: FunctionCode, k: int) -> tuple[str, int]:
        """Return pointer and alignment [bytes] of value k; its address is written."""
        return code.shifted(self.pointer, k), real_size(code.width) * code.width

    def joined(self, a: int, b: int) -> bool:
        """Return True: values are contiguous."""
        return True


class _State:
    """Inputs of a loop's body: state behind the pointer %in, captured values in slots.

    `state` are the slots of the initial state and of the captured values behind it.
    """

    def __init__(self, width: int, state: Slots) -> None:
        self.width, self.now, self.captured = width, BehindPointer("%in"), state

    def address(self, code: FunctionCode, k: int) -> tuple[str, int]:
        """Return pointer and alignment [bytes] of value k, captured ones last."""
        place = self.now if k < self.width else self.captured
        return place.address(code, k)

    def joined(self, a: int, b: int) -> bool:
        """Return whether both are state values, or both captured values."""
        return (a < self.width) == (b < self.width)


@dataclass(frozen=True)
class LoopCalls:
    """Writes functions for the loops of a Schedule, and returns their calls.

    `base` is the scratch memory of its slots; outputs of `writer` go to a Place.
    """

    emitter: Any
    schedule: Schedule
    base: Slots
    writer: Callable[[Place], FunctionWriter]
    copies: Callable[[Sequence[tuple[int, int]], Place, Place], list[str]]

    def loop(self, step: ScheduledStep) -> list[str]:
        """Write a loop and return its calls: store operands, run it, copy items.

        The scratch memory grows. Items that are entries of products are copied into
        those arrays. Slots of all items in the Schedule become the loop's state.
        """
        region, which, _ = step.data
        emitter, schedule = self.emitter, self.schedule
        state = Slots(emitter.top)
        emitter.top += len(step.operands)
        counted = region.width and region.max > 0 and _holds_always(region.cond)
        rounds = self._counted if counted else self._rounds
        calls = [*self._stored(step.operands, state), rounds(region, state)]
        for k, x in zip(which, step.results, strict=True):
            schedule.slots[x] = state.base + k - self.base.base
        copied = [x for x in step.results if schedule.copies.get(x)]
        for some in _chunks(copied):
            after = self.writer(self.base)
            for x in some:
                for place in schedule.copies[x]:
                    after.code.store(self.base, place, after.real(x))
            calls.append(emitter.function("items", after.code))
        return calls

    def deliver(self, outputs: Place) -> list[str]:
        """Return calls that store loop results as outputs and check their requirements.

        The called functions are written here, after all loops were written by `loop`.
        """
        schedule = self.schedule
        steps = [step for step in schedule.rolled() if step.op == "loop"]
        results = [x for step in steps for x in step.results]
        pairs = [
            (schedule.slots[x], y) for x in results for y in schedule.ends.get(x, ())
        ]
        calls = self.copies(pairs, self.base, outputs)
        for some in _chunks([x for x in results if x in schedule.conditions]):
            after = self.writer(outputs)
            for x in some:
                after.require(x)
            calls.append(self.emitter.function("conditions", after.code))
        return calls

    def _stored(self, nodes: Sequence[int], state: Slots) -> Iterator[str]:
        """Write functions that store values of nodes as the initial state; yield calls.

        At least 32 slots in a row of one constant node are filled by a loop. The
        others are stored after that; without others one empty function is written.
        """
        single: list[tuple[int, int]] = []
        place = 0
        for x, run in groupby(nodes):
            count = len(list(run))
            node = self.schedule.graph.nodes[x]
            if node.op == "const" and count >= _FILLED:
                yield self._fill(node.data, state, place, count)
            else:
                single += [(place + k, x) for k in range(count)]
            place += count
        for some in _chunks(single) or [[]]:
            before = self.writer(state)
            for k, x in some:
                before.code.store(state, k, before.real(x))
            yield self.emitter.function("copy", before.code)

    def _fill(self, value: Any, state: Slots, first: int, count: int) -> str:
        """Write a function that stores a constant in slots; return its call.

        There are `count` slots from `first` on, at least a vector.
        """
        code = self._code()
        width = code.width
        numbers, lanes = count * width, self.emitter.products.lanes
        start = state.address(code, first)[0]
        one, many = (kind("real", lanes_like(width, n)) for n in (1, lanes))
        full = constant(value, "real", lanes_like(width, lanes))
        code.lines += [
            "  br label %each",
            "each:",
            "  %k = phi i64 [0, %0], [%next, %each]",
            f"  %place = getelementptr {one}, ptr {start}, i64 %k",
            f"  store {many} {full}, ptr %place, align {real_size(width)}",
            f"  %next = add i64 %k, {lanes}",
            f"  %more = icmp slt i64 %next, {numbers - lanes + 1}",
            "  br i1 %more, label %each, label %rest",
            "rest:",
        ]
        last = constant(value, "real", lanes_like(width, 1))
        for k in range(numbers - numbers % lanes, numbers):
            place = code.new(f"getelementptr {one}, ptr {start}, i64 {k}")
            code.lines.append(f"  store {one} {last}, ptr {place}")
        return self.emitter.function("fill", code)

    def _rounds(self, region: Region, state: Slots) -> str:
        """Write the function of a loop with a condition; return its call.

        It runs until all lanes have stopped, at most region.max rounds. A lane that has
        stopped keeps its state; results of the body for it are discarded. The result is
        in `state`, the slots of the initial state with the captured values behind it.
        """
        emitter, whole = self.emitter, self._code()
        truth, yes = whole.truth, constant(True, "truth", whole.width)
        go_on, following = Slots(emitter.top), Slots(emitter.top + 1)
        emitter.top += 1 + region.width
        cond = emitter.graph(region.cond, state, go_on)
        body = emitter.graph(region.body, state, following)
        whole.lines = [
            "  br label %test",
            "test:",
            "  %round = phi i64 [0, %0], [%next, %moved]",
            f"  %active = phi {truth} [{yes}, %0], [%going, %moved]",
            f"  %left = icmp slt i64 %round, {region.max}",
            "  br i1 %left, label %look, label %end",
            "look:",
        ]
        some = self._look(whole, cond, go_on)
        whole.lines += [f"  br i1 {some}, label %body, label %end", "body:", *body]
        if whole.width == 1:
            self._move(whole, following, state, region.width)
        else:
            self._move_active(whole, following, state, region.width)
        whole.lines += [
            "  br label %moved",
            "moved:",
            "  %next = add i64 %round, 1",
            "  br label %test",
            "end:",
        ]
        return emitter.function("loop", whole)

    def _counted(self, region: Region, state: Slots) -> str:
        """Write the function of a loop of exactly region.max rounds; return its call.

        There is at least one round. State and next state swap their memory instead of
        being copied. The rest is as in `_rounds`.
        """
        emitter, whole = self.emitter, self._code()
        following = Slots(emitter.top)
        emitter.top += region.width
        body = emitter.graph(
            region.body, _State(region.width, state), BehindPointer("%out")
        )
        start, end = (place.address(whole, 0)[0] for place in (state, following))
        swapped = "ptr %in, ptr %out", "ptr %now, ptr %then"
        whole.lines += [
            "  br label %body",
            "body:",
            "  %round = phi i64 [0, %0], [%next, %body]",
            f"  %now = phi ptr [{start}, %0], [%then, %body]",
            f"  %then = phi ptr [{end}, %0], [%now, %body]",
            *(call.replace(*swapped) for call in body),
            "  %next = add i64 %round, 1",
            f"  %more = icmp slt i64 %next, {region.max}",
            "  br i1 %more, label %body, label %end",
            "end:",
        ]
        if region.max % 2:
            self._move(whole, following, state, region.width)
        return emitter.function("loop", whole)

    def _look(self, code: FunctionCode, cond: Sequence[str], go_on: Slots) -> str:
        """Write the condition, value 0 of `go_on`; return whether any lane is active.

        The active lanes become %going = %active and condition.
        """
        zero = constant(0.0, "real", code.width)
        code.lines += cond
        holds = code.new(f"fcmp une {code.real} {code.load(go_on, 0)}, {zero}")
        code.lines.append(f"  %going = and {code.truth} %active, {holds}")
        return code.any(Value(code, "truth", "%going"))

    def _move(self, code: FunctionCode, source: Slots, to: Slots, count: int) -> None:
        """Write a copy of `count` values of `source`, the next state, to the state."""
        if count:
            start, end = (place.address(code, 0)[0] for place in (source, to))
            self.emitter.products.move(code, start, end, count)

    def _move_active(
        self, code: FunctionCode, source: Slots, to: Slots, count: int
    ) -> None:
        """Write the copy of the next state to the state, in active lanes (%going) only.

        The block is `body`, and `kept_all` after it if count > 0.
        """
        if not count:
            return
        start, end = (place.address(code, 0)[0] for place in (source, to))
        align = real_size(code.width) * code.width
        code.lines += [
            "  br label %each",
            "each:",
            "  %k = phi i64 [0, %body], [%behind, %each]",
            f"  %from = getelementptr {code.real}, ptr {start}, i64 %k",
            f"  %to = getelementptr {code.real}, ptr {end}, i64 %k",
            f"  %new = load {code.real}, ptr %from, align {align}",
            f"  %old = load {code.real}, ptr %to, align {align}",
            f"  %kept = select {code.truth} %going, {code.real} %new, {code.real} %old",
            f"  store {code.real} %kept, ptr %to, align {align}",
            "  %behind = add i64 %k, 1",
            f"  %more = icmp slt i64 %behind, {count}",
            "  br i1 %more, label %each, label %kept_all",
            "kept_all:",
        ]

    def _code(self) -> FunctionCode:
        return FunctionCode(self.emitter.width, self.emitter.fused)


def _holds_always(cond: Graph) -> bool:
    """Return whether the only output of a Graph is a constant other than zero."""
    node = cond.nodes[cond.outputs[0]]
    return node.op == "const" and bool(node.data)


def _chunks(values: Sequence[Any]) -> list[Sequence[Any]]:
    """Return values in lists of at most CHUNK (400), one a function; [] for none."""
    return [values[k : k + CHUNK] for k in range(0, len(values), CHUNK)]


class Emitter:
    """Writes functions of one kernel, of the pointers %in, %out and %s (scratch).

    Attributes:
        width: Lanes of a value, of type Lanes for float32.
        fused: Whether a multiply-add is one instruction.
        pack: Number of sines and cosines computed at once for a single state.
        vector: Entries of a row in one vector of a product of a single state.
        top: Number of scratch slots in use; slot 0 is the status.
        steps: Number of operations written; operations in a loop count once.
        zeros: Slots that are read as zeros and never written.
    """

    def __init__(self, width: int, fused: bool, pack: int, vector: int = 1) -> None:
        self.width, self.fused, self.pack = width, fused, pack
        self.products = Products(width, vector, fused)
        self.tables = ValueTables(width)
        self.ir: list[str] = []
        self.top = 1
        self.steps = 0
        self.zeros: list[int] = []
        self.last: list[str] = []
        self.functions: set[tuple[str, int]] = set()
        self._count = 0

    def name(self, what: str) -> str:
        """Return a new function name: "@", `what`, a number, "_" and the lanes."""
        self._count += 1
        return f"@{what}{self._count}_{self.width}"

    def graph(self, graph: Graph, inputs: Place, outputs: Place) -> list[str]:
        """Write the functions of a Graph; return the calls that run them in order.

        ValueError: an operation has no machine form.
        """
        readable = isinstance(outputs, (Ports, BehindPointer))
        joined = outputs.joined if readable else None
        schedule = lower(graph, self.fused, self.pack, joined)
        base = Slots(self.top)
        self.top += schedule.size
        self.zeros += [base.base + k for k in schedule.arrays.zeros]
        products = ProductCalls(
            self.products, schedule, inputs, base, self.function,
            lambda to: _Writer(self, schedule, inputs, to, base), self.tables,
        )  # fmt: skip
        loops = LoopCalls(
            self, schedule, base,
            lambda to: _Writer(self, schedule, inputs, to, base), products.copies,
        )  # fmt: skip
        calls = products.leaves()
        for op, group in groupby(enumerate(schedule.chunks), key=_rolled):
            for number, steps in group if op != "product" else ():
                self.steps += len(steps)
                if op == "loop":
                    calls += loops.loop(steps[0])
                    continue
                writer = _Writer(self, schedule, inputs, outputs, base)
                calls.append(writer.function(steps, first=number == 0))
            multiplied = [steps[0] for _, steps in group]
            self.steps += sum(self._steps_of(step) for step in multiplied)
            calls += products.multiply(multiplied, outputs)
        return [*calls, *loops.deliver(outputs)]

    def _steps_of(self, product: ScheduledStep) -> int:
        """Return what a product adds to `steps`: 1 + its work // products.step."""
        return 1 + int(product.data[0].work) // self.products.step

    def close(self, *more: int) -> str:
        """Return the IR of all functions, and what they and `more` lanes refer to."""
        called = definitions(sorted(self.functions), self.fused)
        widths = [self.width, *(w for _, w in self.functions), *more]
        products = self.products.definitions()
        if self.products.written:
            widths.append(self.products.lanes)
        sines = any(name == "sincos" for name, _ in self.functions)
        head = [*declarations(widths, sines), *self.tables.declarations()]
        products += self.tables.definitions()
        return "\n".join([*head, *called, *products, *self.ir])

    def function(self, what: str, code: Instructions) -> str:
        """Write function name(what): `code`, ret void; set `last`; return its call."""
        name = self.name(what)
        self.last = code.lines
        head = f"define internal void {name}({_PARAMETERS}) nounwind {{"
        self.ir += [head, *code.lines, "  ret void", "}", ""]
        return f"  call void {name}({ARGUMENTS})"


class _Writer:
    """Writes one function of a Schedule: it has the code of that function only.

    `base` is the scratch memory of the Schedule's slots.
    """

    def __init__(
        self,
        emitter: Emitter,
        schedule: Schedule,
        inputs: Place,
        outputs: Place,
        base: Slots,
    ) -> None:
        self.emitter, self.schedule = emitter, schedule
        self.inputs, self.outputs, self.base = inputs, outputs, base
        self.code = FunctionCode(emitter.width, emitter.fused)
        self.ends, self.conditions = schedule.ends, schedule.conditions

    def function(self, steps: list[ScheduledStep], first: bool = False) -> str:
        """Write a function of a chunk's steps; return its call. To be called only once.

        `first`: whether constants and inputs are delivered too, see `_leaves`.
        """
        if first:
            self._leaves()
        for step in steps:
            self._step(step)
            for x in step.results:
                if x is not None:
                    self._keep(x)
        return self.emitter.function("part", self.code)

    def _leaves(self) -> None:
        """Write constants and inputs that are outputs or requirements.

        Many zeros are written first, by setting whole output arrays to zero.
        """
        nodes, tables = self.schedule.graph.nodes, self.emitter.tables
        wanted = {*self.ends, *self.conditions}
        leaves = [k for k in wanted if nodes[k].op in ("const", "input")]
        zeros = [k for k in leaves if repr(nodes[k].data) == "0.0"]
        size = len(self.schedule.graph.outputs)
        for k in zeros:
            if tables.zeros(self.code, self.outputs, self.ends.get(k, ()), size):
                leaves.remove(k)
                self.require(k)
        for k in leaves:
            self.deliver(k)

    def real(self, k: int) -> str:
        """Return register or constant of node k, a real; a condition is 1.0 or 0.0."""
        code = self.code
        name, kind_name = self._value(k)
        if kind_name == "real":
            return name
        one, zero = (constant(x, "real", code.width) for x in (1.0, 0.0))
        real = code.new(
            f"select {code.truth} {name}, {code.real} {one}, {code.real} {zero}"
        )
        return real

    def truth(self, k: int) -> str:
        """Return register or constant of node k as a condition; NaN counts as true."""
        code = self.code
        name, kind_name = self._value(k)
        if kind_name == "truth":
            return name
        zero = constant(0.0, "real", code.width)
        return code.new(f"fcmp une {code.real} {name}, {zero}")

    def _value(self, k: int) -> tuple[str, str]:
        """Return (register, "real" or "truth") of node k; the first use loads it.

        A constant replaces the register. Inputs, and outputs without a slot, are loaded
        from their memory, other nodes from their slots; loaded values are "real".
        """
        value = self.code.values.get(k)
        if value is None:
            node = self.schedule.graph.nodes[k]
            if node.op == "const":
                kind_name = "truth" if isinstance(node.data, bool) else "real"
                value = constant(node.data, kind_name, self.code.width), kind_name
            elif node.op == "input":
                value = self.code.load(self.inputs, node.data), "real"
            elif k in self.schedule.outputs:
                value = self.code.load(self.outputs, self.schedule.outputs[k]), "real"
            else:
                value = self.code.load(self.base, self.schedule.slots[k]), "real"
            self.code.values[k] = value
        return value

    def _keep(self, k: int) -> None:
        """Write the stores of node k into its slot and matrices, if any; deliver it."""
        first = self.schedule.slots.get(k)
        places = [] if first is None else [first]
        for place in (*places, *self.schedule.copies.get(k, ())):
            self.code.store(self.base, place, self.real(k))
        self.deliver(k)

    def deliver(self, k: int) -> None:
        """Write the stores of node k into its outputs, and its status update if any."""
        code = self.code
        for index in self.ends.get(k, ()):
            code.store(self.outputs, index, self.real(k))
        self.require(k)

    def require(self, k: int) -> None:
        """Write the status update for node k if it is a requirement; else nothing.

        The status, a whole number at %s, becomes the minimum of its value and the
        number of the failed requirement; HOLDS (2**30) means none.
        """
        code, number = self.code, self.conditions.get(k)
        if number is not None:
            w = code.width
            whole, holds = self.truth(k), constant(HOLDS, "whole", w)
            old = code.new(f"load {code.whole}, ptr %s, align {real_size(w) * w}")
            this = constant(number, "whole", w)
            new = code.new(
                f"select {code.truth} {whole}, {code.whole} {holds},"
                f" {code.whole} {this}"
            )
            less = code.new(f"icmp slt {code.whole} {new}, {old}")
            least = code.new(
                f"select {code.truth} {less}, {code.whole} {new}, {code.whole} {old}"
            )
            code.lines.append(
                f"  store {code.whole} {least}, ptr %s, align {real_size(w) * w}"
            )

    def _step(self, step: ScheduledStep) -> None:
        """Write one operation; its results, not stored, are values of the function."""
        if step.op == "sincos":
            self._sincos(step)
            return
        code, op, x = self.code, step.op, step.operands
        real = code.real
        result = "real"
        if op in _INFIX:
            instruction = f"{_INFIX[op]} {real} {self.real(x[0])}, {self.real(x[1])}"
        elif op in ("fma", "fms", "fnma"):
            instruction = self._fused(op, x)
        elif op == "neg":
            instruction = f"fneg {real} {self.real(x[0])}"
        elif op in _INTRINSIC:
            call = f"call {real} @llvm.{_INTRINSIC[op]}.{code.suffix}"
            instruction = f"{call}({real} {self.real(x[0])})"
        elif op in _COMPARE:
            instruction = (
                f"fcmp {_COMPARE[op]} {real} {self.real(x[0])}, {self.real(x[1])}"
            )
            result = "truth"
        elif op in ("and", "or"):
            instruction = f"{op} {code.truth} {self.truth(x[0])}, {self.truth(x[1])}"
            result = "truth"
        elif op == "not":
            yes = constant(True, "truth", code.width)
            instruction, result = f"xor {code.truth} {self.truth(x[0])}, {yes}", "truth"
        elif op == "where":
            instruction, result = self._where(x)
        elif op in FUNCTIONS:
            self.emitter.functions.add((op, code.width))
            arguments = ", ".join(f"{real} {self.real(k)}" for k in x)
            instruction = f"call {real} {symbol(op, code.width)}({arguments})"
        else:
            raise ValueError(f"operation '{op}' has no machine form")
        code.values[step.results[0]] = code.new(instruction), result

    def _fused(self, op: str, x: tuple[int, ...]) -> str:
        """Return the instruction of a multiply-add of nodes x; write its negations.

        fma is x0 x1 + x2, fms is x0 x1 - x2, fnma is x2 - x0 x1.
        """
        code = self.code
        a, b, c = (self.real(k) for k in x)
        if op == "fnma":
            a = code.new(f"fneg {code.real} {a}")
        if op == "fms":
            c = code.new(f"fneg {code.real} {c}")
        arguments = ", ".join(f"{code.real} {name}" for name in (a, b, c))
        return f"call {code.real} @llvm.fma.{code.suffix}({arguments})"

    def _where(self, x: tuple[int, ...]) -> tuple[str, str]:
        """Return (instruction, kind) of a selection: x[1] where x[0] holds, or x[2]."""
        code, condition = self.code, self.truth(x[0])
        kinds = {self._value(k)[1] for k in x[1:]}
        result = "truth" if kinds == {"truth"} else "real"
        get = self.truth if result == "truth" else self.real
        of = kind(result, code.width)
        a, b = get(x[1]), get(x[2])
        return f"select {code.truth} {condition}, {of} {a}, {of} {b}", result

    def _sincos(self, step: ScheduledStep) -> None:
        """Write sines and cosines of step.operands, for one state as one padded vector.

        step.results are sine and cosine of each angle, not stored here; None: no value.
        """
        code = self.code
        n = len(step.operands)
        alone = code.width == 1
        lanes = lanes_like(code.width, _power_of_two(n)) if alone else code.width
        function = symbol("sincos", lanes)
        self.emitter.functions.add(("sincos", lanes))
        of = kind("real", lanes)
        pair = f"{{{of}, {of}}}"
        names = [self.real(k) for k in step.operands]
        if code.width > 1 or lanes == 1:
            for k, name in enumerate(names):
                both = code.new(f"call {pair} {function}({of} {name})")
                for part in (0, 1):
                    node = step.results[2 * k + part]
                    if node is not None:
                        value = code.new(f"extractvalue {pair} {both}, {part}")
                        code.values[node] = value, "real"
            return
        packed = "zeroinitializer"
        for k, name in enumerate(names):
            packed = code.new(
                f"insertelement {of} {packed}, {code.real} {name}, i32 {k}"
            )
        both = code.new(f"call {pair} {function}({of} {packed})")
        for part in (0, 1):
            all_lanes = code.new(f"extractvalue {pair} {both}, {part}")
            for k in range(n):
                node = step.results[2 * k + part]
                if node is not None:
                    value = code.new(f"extractelement {of} {all_lanes}, i32 {k}")
                    code.values[node] = value, "real"


def _rolled(chunk: tuple[int, list[ScheduledStep]]) -> str:
    """Return "loop" or "product" if (number, steps) is one such step, else ""."""
    steps = chunk[1]
    return steps[0].op if steps and steps[0].op in ROLLED else ""


def _power_of_two(n: int) -> int:
    """Return the smallest power of two that is at least n, for n >= 1."""
    return 1 << (n - 1).bit_length()
