"""Loops of a Schedule: the initial state is stored, and the rounds update it in place.

The state of a loop may be thousands of numbers, such as a Jacobian. It is filled and
moved by loops in machine code, and later steps read it where it is.
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

_FILLED = 32  # minimum number of equal constants stored by a loop


class BehindPointer:
    """Contiguous values behind a pointer parameter of a function."""

    def __init__(self, pointer: str) -> None:
        self.pointer = pointer

    def address(self, code: FunctionCode, k: int) -> tuple[str, int]:
        """Return pointer and alignment of value k."""
        return code.shifted(self.pointer, k), real_size(code.width) * code.width

    def joined(self, a: int, b: int) -> bool:
        """Return True: values are contiguous."""
        return True


class _State:
    """Inputs of a loop's body: state behind the pointer %in, captured values in slots.

    Args:
        width: Number of state values.
        state: Slots of the initial state and of the captured values behind it.
    """

    def __init__(self, width: int, state: Slots) -> None:
        self.width, self.now, self.captured = width, BehindPointer("%in"), state

    def address(self, code: FunctionCode, k: int) -> tuple[str, int]:
        """Return pointer and alignment of value k."""
        place = self.now if k < self.width else self.captured
        return place.address(code, k)

    def joined(self, a: int, b: int) -> bool:
        """Return whether both are state values, or both captured values."""
        return (a < self.width) == (b < self.width)


@dataclass(frozen=True)
class LoopCalls:
    """Writes functions for the loops of a Schedule, and returns their calls.

    Attributes:
        emitter: Writer of the kernel's functions.
        schedule: Schedule of the loops.
        base: Scratch memory of its slots.
        writer: Returns a FunctionWriter whose outputs go to a Place.
        copies: Writes functions that copy values; see ProductCalls.
    """

    emitter: Any
    schedule: Schedule
    base: Slots
    writer: Callable[[Place], FunctionWriter]
    copies: Callable[[Sequence[tuple[int, int]], Place, Place], list[str]]

    def loop(self, step: ScheduledStep) -> list[str]:
        """Write a loop and return its calls: store operands, run it, copy items.

        The scratch memory grows by the loop's state.

        Items that are entries of products are copied into those arrays. The slots of
        all items in the Schedule are set to the loop's state.
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
        """Return calls that store loop results as outputs and check requirements.

        The called functions are written here.
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
        """Yield calls that store values as the initial state.

        Many equal constants are stored by a loop.

        Args:
            nodes: Nodes of the values.
            state: Slots of the state.
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
        """Return a call that stores a constant in neighbouring slots of the state.

        Args:
            value: Constant.
            state: Slots of the state.
            first, count: First slot and number of slots.
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

        It runs until all lanes have stopped. A lane that has stopped keeps its state;
        results of the body for it are discarded.
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
        """Write the function of a loop with a constant number of rounds, at least one.

        Its condition always holds. State and next state swap their memory instead of
        being copied.
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
        """Write the condition and the update of the mask of active lanes.

        Args:
            code: Function being written.
            cond: Calls that compute the condition.
            go_on: Slot of the condition.

        Returns:
            Register of an i1: whether any lane is active.
        """
        zero = constant(0.0, "real", code.width)
        code.lines += cond
        holds = code.new(f"fcmp une {code.real} {code.load(go_on, 0)}, {zero}")
        code.lines.append(f"  %going = and {code.truth} %active, {holds}")
        return code.any(Value(code, "truth", "%going"))

    def _move(self, code: FunctionCode, source: Slots, to: Slots, count: int) -> None:
        """Write the copy of the next state (source) to the state (to)."""
        if count:
            start, end = (place.address(code, 0)[0] for place in (source, to))
            self.emitter.products.move(code, start, end, count)

    def _move_active(
        self, code: FunctionCode, source: Slots, to: Slots, count: int
    ) -> None:
        """Write the copy of the next state to the state, in active lanes only.

        Args:
            code: Function being written.
            source, to: Slots of the next state and of the state.
            count: Number of values.
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
    """Return whether the condition is a true constant."""
    node = cond.nodes[cond.outputs[0]]
    return node.op == "const" and bool(node.data)


def _chunks(values: Sequence[Any]) -> list[Sequence[Any]]:
    """Return values in lists of at most CHUNK, for one function each."""
    return [values[k : k + CHUNK] for k in range(0, len(values), CHUNK)]
