"""Loops of a Schedule: the state is stored before, the rounds go over it in its place.

What a loop carries may be thousands of numbers, such as a Jacobian. So they are filled
and moved by loops of their own, and what follows reads them where they lie.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from dyn_core.engines.graph.graph import Graph, Region
from dyn_core.engines.llvm.function_ir import FunctionCode, Place, Slots
from dyn_core.engines.llvm.ir import Value, constant, kind, lanes_like, real_size
from dyn_core.engines.llvm.lower import CHUNK, Schedule, ScheduledStep
from dyn_core.engines.llvm.products.product_calls import FunctionWriter

_FILLED = 32  # equal constants from which on a loop stores them


class BehindPointer:
    """Values behind a pointer that a function gets."""

    def __init__(self, pointer: str) -> None:
        self.pointer = pointer

    def address(self, code: FunctionCode, k: int) -> tuple[str, int]:
        """Return pointer and alignment of value k."""
        return code.shifted(self.pointer, k), real_size(code.width) * code.width

    def joined(self, a: int, b: int) -> bool:
        """They lie one behind the other."""
        return True


class _State:
    """State behind the pointer %in; captured values stay in their slots."""

    def __init__(self, width: int, state: Slots) -> None:
        self.width, self.now, self.captured = width, BehindPointer("%in"), state

    def address(self, code: FunctionCode, k: int) -> tuple[str, int]:
        """Return pointer and alignment of value k."""
        place = self.now if k < self.width else self.captured
        return place.address(code, k)

    def joined(self, a: int, b: int) -> bool:
        """Return whether both are state, or both captured."""
        return (a < self.width) == (b < self.width)


@dataclass(frozen=True)
class LoopCalls:
    """Writes functions for the loops of a Schedule, and returns their calls.

    Attributes:
        emitter: Writes the functions of the kernel.
        schedule: Whose loops.
        base: Where its slots are.
        writer: Makes a FunctionWriter whose outputs go to a Place.
        copies: Writes functions that copy values; see ProductCalls.
    """

    emitter: Any
    schedule: Schedule
    base: Slots
    writer: Callable[[Place], FunctionWriter]
    copies: Callable[[Sequence[tuple[int, int]], Place, Place], list[str]]

    def loop(self, step: ScheduledStep) -> list[str]:
        """Write a loop: store its operands, run it, copy items to arrays of products.

        Its items have their slots in the state from now on.
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
        """Write what stores results of loops that are outputs or conditions."""
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
        """Write what stores values as the state, many equal constants by a loop."""
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
        """Write what stores a constant as some neighbours of the state."""
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
        """Write the loop itself, over state and captured values; return its call.

        Lanes go on until all have stopped. A lane that has stopped keeps its state;
        what the body computes for it is dropped.
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
        """Write a loop whose condition always holds, of one round or more.

        State and next state change places instead of being moved.
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
        """Write which lanes go on; return whether one does."""
        zero = constant(0.0, "real", code.width)
        code.lines += cond
        holds = code.new(f"fcmp une {code.real} {code.load(go_on, 0)}, {zero}")
        code.lines.append(f"  %going = and {code.truth} %active, {holds}")
        return code.any(Value(code, "truth", "%going"))

    def _move(self, code: FunctionCode, source: Slots, to: Slots, count: int) -> None:
        """Write what moves the next state to its place."""
        if count:
            start, end = (place.address(code, 0)[0] for place in (source, to))
            self.emitter.products.move(code, start, end, count)

    def _move_active(
        self, code: FunctionCode, source: Slots, to: Slots, count: int
    ) -> None:
        """Write what moves the next state to its place in the lanes that go on."""
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
    node = cond.nodes[cond.outputs[0]]
    return node.op == "const" and bool(node.data)


def _chunks(values: Sequence[Any]) -> list[Sequence[Any]]:
    """Return values in lists that one function takes."""
    return [values[k : k + CHUNK] for k in range(0, len(values), CHUNK)]
