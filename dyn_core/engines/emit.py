"""Plan -> LLVM IR: the operations, for any number of lanes.

No fast-math flag is used: what rounds where is decided in lower.py, the same for one
state and for lanes. A condition in memory is 1.0 or 0.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dyn_core.engines.chunk import Chunk, Slots
from dyn_core.engines.functions import FUNCTIONS, definition
from dyn_core.engines.graph import Graph
from dyn_core.engines.ir import Block, constant, kind
from dyn_core.engines.loops import emit_loop
from dyn_core.engines.lower import Plan, Step, plan

VERSION = 1  # of what kernels take and do; part of the key of cached ones
HOLDS = 2**31  # status while no requirement has failed
ARGUMENTS = "ptr %in, ptr %out, ptr %s"
_PARAMETERS = "ptr noalias %in, ptr noalias %out, ptr noalias %s"
_INFIX = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_INTRINSIC = {"abs": "fabs", "sqrt": "sqrt", "floor": "floor"}
_COMPARE = {"lt": "olt", "le": "ole", "eq": "oeq"}


class Emitter:
    """Writes the functions of one kernel.

    Attributes:
        text: The LLVM IR so far.
        top: Number of scratch slots in use; slot 0 is the status.
        steps: Number of operations written.
        last: Instructions of the last function written.
    """

    def __init__(self, width: int, fused: bool, pack: int) -> None:
        self.width, self.fused, self.pack = width, fused, pack
        self.text: list[str] = []
        self.top = 1
        self.steps = 0
        self.last: list[str] = []
        self.functions: set[tuple[str, int]] = set()
        self._count = 0

    def name(self, what: str) -> str:
        """Give a new name of a function."""
        self._count += 1
        return f"@{what}{self._count}_{self.width}"

    def graph(self, graph: Graph, inputs: Any, outputs: Any) -> list[str]:
        """Write the functions of a Graph; give the calls that run them in order."""
        work = plan(graph, self.fused, self.pack)
        base = Slots(self.top)
        self.top += work.size
        calls = []
        for number, steps in enumerate(work.chunks):
            self.steps += len(steps)
            if steps and steps[0].op == "loop":
                calls += self._loop(work, steps[0], inputs, base)
                continue
            writer = _Writer(self, work, inputs, outputs, base)
            calls.append(writer.function(steps, first=number == 0))
        rest = [s for c in work.chunks for s in c if s.op == "loop"]
        if rest:  # what a loop gives may be an output or a condition itself
            writer = _Writer(self, work, inputs, outputs, base)
            calls.append(writer.function(rest, deliver_only=True))
        return calls

    def close(self) -> str:
        """Give the text of all functions, with those of functions.py they call."""
        own = [definition(name, w, self.fused) for name, w in sorted(self.functions)]
        widths = sorted({self.width, *(w for _, w in self.functions)})
        return "\n".join([*map(_declarations, widths), _LIBRARY, *own, *self.text])

    def _loop(self, work: Plan, step: Step, inputs: Any, base: Slots) -> list[str]:
        """Write a loop: store its operands, run it, put its items into slots."""
        region, which = step.data
        state = Slots(self.top)
        self.top += len(step.operands)
        before = _Writer(self, work, inputs, state, base)
        calls = [before.copy(step.operands)]
        calls.append(emit_loop(self, region, state))
        slots = [work.slots[x] for x in step.results]
        after = Chunk(self.width, self.fused)
        for k, slot in zip(which, slots, strict=True):
            after.store(base, slot, after.load(state, k))
        return [*calls, self.function("items", after)]

    def function(self, what: str, chunk: Block) -> str:
        """Write a function; give its call."""
        name = self.name(what)
        self.last = chunk.lines
        head = f"define internal void {name}({_PARAMETERS}) nounwind {{"
        self.text += [head, *chunk.lines, "  ret void", "}", ""]
        return f"  call void {name}({ARGUMENTS})"


class _Writer:
    """Writes chunks of one Plan."""

    def __init__(
        self, emitter: Emitter, work: Plan, inputs: Any, outputs: Any, base: Slots
    ) -> None:
        self.emitter, self.plan = emitter, work
        self.inputs, self.outputs, self.base = inputs, outputs, base
        self.chunk = Chunk(emitter.width, emitter.fused)
        graph = work.graph
        self.ends: dict[int, list[int]] = {}
        for k, node in enumerate(graph.outputs):
            self.ends.setdefault(node, []).append(k)
        self.conditions: dict[int, int] = {}
        for number, requirement in enumerate(graph.requirements, 1):
            self.conditions.setdefault(requirement.condition, number)

    def function(
        self, steps: list[Step], first: bool = False, deliver_only: bool = False
    ) -> str:
        """Write the function of some steps; give its call."""
        if first:
            for k in {*self.ends, *self.conditions}:
                if self.plan.graph.nodes[k].op in ("const", "input"):
                    self._deliver(k)
        for step in steps:
            if not deliver_only:
                self._step(step)
            for x in step.results:
                if x is not None:
                    self._keep(x, slot=not deliver_only)
        return self.emitter.function("part", self.chunk)

    def copy(self, nodes: Sequence[int]) -> str:
        """Write a function that stores values as the outputs; give its call."""
        for k, node in enumerate(nodes):
            self.chunk.store(self.outputs, k, self.real(node))
        return self.emitter.function("copy", self.chunk)

    def real(self, k: int) -> str:
        """Give the name of a value as a real."""
        chunk = self.chunk
        name, kind_name = self._value(k)
        if kind_name == "real":
            return name
        one, zero = (constant(x, "real", chunk.width) for x in (1.0, 0.0))
        real = chunk.new(
            f"select {chunk.truth} {name}, {chunk.real} {one}, {chunk.real} {zero}"
        )
        return real

    def truth(self, k: int) -> str:
        """Give the name of a value as a condition; NaN counts as true."""
        chunk = self.chunk
        name, kind_name = self._value(k)
        if kind_name == "truth":
            return name
        zero = constant(0.0, "real", chunk.width)
        return chunk.new(f"fcmp une {chunk.real} {name}, {zero}")

    def _value(self, k: int) -> tuple[str, str]:
        """Give name and kind of a value, loaded if it is not here yet."""
        held = self.chunk.held.get(k)
        if held is None:
            node = self.plan.graph.nodes[k]
            if node.op == "const":
                kind_name = "truth" if isinstance(node.data, bool) else "real"
                held = constant(node.data, kind_name, self.chunk.width), kind_name
            elif node.op == "input":
                held = self.chunk.load(self.inputs, node.data), "real"
            else:
                held = self.chunk.load(self.base, self.plan.slots[k]), "real"
            self.chunk.held[k] = held
        return held

    def _keep(self, k: int, slot: bool = True) -> None:
        """Store a value where it is wanted later, and deliver it."""
        if slot and k in self.plan.slots:
            self.chunk.store(self.base, self.plan.slots[k], self.real(k))
        self._deliver(k)

    def _deliver(self, k: int) -> None:
        """Store a value as output, note it as a requirement."""
        chunk = self.chunk
        for at in self.ends.get(k, ()):
            chunk.store(self.outputs, at, self.real(k))
        number = self.conditions.get(k)
        if number is not None:
            w = chunk.width
            whole, holds = self.truth(k), constant(HOLDS, "whole", w)
            old = chunk.new(f"load {chunk.whole}, ptr %s, align {8 * w}")
            this = constant(number, "whole", w)
            new = chunk.new(
                f"select {chunk.truth} {whole}, {chunk.whole} {holds},"
                f" {chunk.whole} {this}"
            )
            less = chunk.new(f"icmp slt {chunk.whole} {new}, {old}")
            least = chunk.new(
                f"select {chunk.truth} {less}, {chunk.whole} {new}, {chunk.whole} {old}"
            )
            chunk.lines.append(f"  store {chunk.whole} {least}, ptr %s, align {8 * w}")

    def _step(self, step: Step) -> None:
        """Write one operation."""
        if step.op == "sincos":
            self._sincos(step)
            return
        chunk, op, x = self.chunk, step.op, step.operands
        real = chunk.real
        result = "real"
        if op in _INFIX:
            text = f"{_INFIX[op]} {real} {self.real(x[0])}, {self.real(x[1])}"
        elif op in ("fma", "fms", "fnma"):
            text = self._fused(op, x)
        elif op == "neg":
            text = f"fneg {real} {self.real(x[0])}"
        elif op in _INTRINSIC:
            call = f"call {real} @llvm.{_INTRINSIC[op]}.{chunk.suffix}"
            text = f"{call}({real} {self.real(x[0])})"
        elif op in _COMPARE:
            text = f"fcmp {_COMPARE[op]} {real} {self.real(x[0])}, {self.real(x[1])}"
            result = "truth"
        elif op in ("and", "or"):
            text = f"{op} {chunk.truth} {self.truth(x[0])}, {self.truth(x[1])}"
            result = "truth"
        elif op == "not":
            yes = constant(True, "truth", chunk.width)
            text, result = f"xor {chunk.truth} {self.truth(x[0])}, {yes}", "truth"
        elif op == "where":
            text, result = self._where(x)
        elif op in FUNCTIONS:
            self.emitter.functions.add((op, chunk.width))
            arguments = ", ".join(f"{real} {self.real(k)}" for k in x)
            text = f"call {real} @{op}_{chunk.width}({arguments})"
        else:
            raise ValueError(f"operation '{op}' has no machine form")
        chunk.held[step.results[0]] = chunk.new(text), result

    def _fused(self, op: str, x: tuple[int, ...]) -> str:
        """Give a multiply-add: x0 x1 + x2 with signs."""
        chunk = self.chunk
        a, b, c = (self.real(k) for k in x)
        if op == "fnma":
            a = chunk.new(f"fneg {chunk.real} {a}")
        if op == "fms":
            c = chunk.new(f"fneg {chunk.real} {c}")
        arguments = ", ".join(f"{chunk.real} {name}" for name in (a, b, c))
        return f"call {chunk.real} @llvm.fma.{chunk.suffix}({arguments})"

    def _where(self, x: tuple[int, ...]) -> tuple[str, str]:
        """Give a choice; between two conditions it is a condition."""
        chunk, condition = self.chunk, self.truth(x[0])
        kinds = {self._value(k)[1] for k in x[1:]}
        result = "truth" if kinds == {"truth"} else "real"
        get = self.truth if result == "truth" else self.real
        of = kind(result, chunk.width)
        a, b = get(x[1]), get(x[2])
        return f"select {chunk.truth} {condition}, {of} {a}, {of} {b}", result

    def _sincos(self, step: Step) -> None:
        """Write sines and cosines: of all lanes, or for one state side by side."""
        chunk = self.chunk
        n = len(step.operands)
        lanes = chunk.width if chunk.width > 1 else _power_of_two(n)
        self.emitter.functions.add(("sincos", lanes))
        of = kind("real", lanes)
        pair = f"{{{of}, {of}}}"
        names = [self.real(k) for k in step.operands]
        if chunk.width > 1 or lanes == 1:
            for k, name in enumerate(names):
                both = chunk.new(f"call {pair} @sincos_{lanes}({of} {name})")
                for part in (0, 1):
                    node = step.results[2 * k + part]
                    if node is not None:
                        value = chunk.new(f"extractvalue {pair} {both}, {part}")
                        chunk.held[node] = value, "real"
            return
        packed = "zeroinitializer"
        for k, name in enumerate(names):
            packed = chunk.new(f"insertelement {of} {packed}, double {name}, i32 {k}")
        both = chunk.new(f"call {pair} @sincos_{lanes}({of} {packed})")
        for part in (0, 1):
            all_lanes = chunk.new(f"extractvalue {pair} {both}, {part}")
            for k in range(n):
                node = step.results[2 * k + part]
                if node is not None:
                    value = chunk.new(f"extractelement {of} {all_lanes}, i32 {k}")
                    chunk.held[node] = value, "real"


_LIBRARY = "declare double @sin(double)\ndeclare double @cos(double)\n"


def _declarations(width: int) -> str:
    """Declare the intrinsics on values of a width."""
    real = kind("real", width)
    suffix = "f64" if width == 1 else f"v{width}f64"
    lines = [
        f"declare {real} @llvm.{name}.{suffix}({real})"
        for name in ("fabs", "sqrt", "floor")
    ]
    lines.append(f"declare {real} @llvm.fma.{suffix}({real}, {real}, {real})")
    if width > 1:
        mask = f"<{width} x i1>"
        lines += [
            f"declare {real} @llvm.masked.load.{suffix}.p0(ptr, i32, {mask}, {real})",
            f"declare void @llvm.masked.store.{suffix}.p0({real}, ptr, i32, {mask})",
            f"declare i{width} @llvm.ctpop.i{width}(i{width})",
        ]
    return "\n".join(lines)


def _power_of_two(n: int) -> int:
    """Give the least power of two that is not below n."""
    return 1 << (n - 1).bit_length()
