"""Loops of a Graph as loops of the machine: lanes go on until all have stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dyn_core.engines.chunk import Chunk, Slots
from dyn_core.engines.graph import Region
from dyn_core.engines.ir import Value, constant

if TYPE_CHECKING:
    from dyn_core.engines.emit import Emitter


def emit_loop(emitter: Emitter, region: Region, state: Slots) -> str:
    """Write a loop over state (and captured values) in the scratch; give its call.

    A lane that has stopped keeps its state; what the body computes for it is dropped.
    """
    go_on, following = Slots(emitter.top), Slots(emitter.top + 1)
    emitter.top += 1 + region.width
    cond = emitter.graph(region.cond, state, go_on)
    body = emitter.graph(region.body, state, following)
    test, move = (
        Chunk(emitter.width, emitter.fused),
        Chunk(emitter.width, emitter.fused),
    )
    yes = constant(True, "truth", emitter.width)
    zero = constant(0.0, "real", emitter.width)
    more = test.load(go_on, 0)
    holds = test.new(f"fcmp une {test.real} {more}, {zero}")
    active = test.new(f"and {test.truth} %active, {holds}")
    some = test.any(Value(test, "truth", active))
    move.named = test.named
    for k in range(region.width):
        new, old = move.load(following, k), move.load(state, k)
        kept = move.new(
            f"select {move.truth} {active}, {move.real} {new}, {move.real} {old}"
        )
        move.store(state, k, kept)
    whole = Chunk(emitter.width, emitter.fused)
    whole.lines = [
        "  br label %test",
        "test:",
        "  %round = phi i64 [0, %0], [%next, %body]",
        f"  %active = phi {test.truth} [{yes}, %0], [{active}, %body]",
        f"  %left = icmp slt i64 %round, {region.max}",
        "  br i1 %left, label %look, label %end",
        "look:",
        *cond,
        *test.lines,
        f"  br i1 {some}, label %body, label %end",
        "body:",
        *body,
        *move.lines,
        "  %next = add i64 %round, 1",
        "  br label %test",
        "end:",
    ]
    return emitter.function("loop", whole)
