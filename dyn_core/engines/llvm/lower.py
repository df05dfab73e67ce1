"""Graph to Schedule: steps of a kernel, their order, and their scratch memory.

A multiplication used by a single addition becomes its multiply-add; sines and cosines
are packed into vector calls; the steps are cut into chunks, each of which becomes an
LLVM function, and values used by other chunks get a slot of the scratch memory. None of
this depends on the number of lanes: one state and a lane have equal bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dyn_core.engines.graph.graph import Graph
from dyn_core.engines.llvm.products.product_arrays import (
    GROUP,
    ProductArrays,
    count_uses,
)
from dyn_core.engines.llvm.products.shared_memory import share_memory

CHUNK = 400  # steps in one function; compile time grows faster than linearly beyond
MEMORY = 250  # values that one function reads and writes, for the same reason
ROLLED = ("loop", "product")  # steps that run in loops of machine code and have items
_LEAVES = ("const", "input")


class ScheduledStep(NamedTuple):
    """One step of a Schedule, with the nodes of operands and results.

    Attributes:
        op: Operation of operations.py; or fma (x y + z), fms (x y - z) or fnma
            (z - x y) with operands (x, y, z); or sincos, for any number of angles.
        results: For sincos the sine and cosine of each angle in turn, None where
            unused; for a loop or product the items that are used.
        data: For a loop or product (Region or ProductShape, index of each result among
            all items, node); else None.
    """

    op: str
    operands: tuple[int, ...]
    results: tuple[Any, ...]
    data: Any = None


@dataclass
class Schedule:
    """Steps of a Graph in order; operands and results are indices of its nodes.

    Attributes:
        chunks: Steps of each function; a loop or product is a chunk of its own. Only
            the first chunk may be empty.
        slots: Slot of each value used by other chunks, counted from the Schedule's
            first one; slots of a loop's items are set when the loop is written.
        outputs: By item of a product that is stored only among the outputs, the output
            to read it from.
        copies: By value, further slots: entries of matrices that it is part of.
        arrays: Memory of the matrices of products, behind the other slots.
        ends: By value, the flat outputs that it is.
        conditions: By value, the first requirement that it is, counted from 1.
    """

    graph: Graph
    chunks: list[list[ScheduledStep]] = field(default_factory=list)
    slots: dict[int, int] = field(default_factory=dict)
    outputs: dict[int, int] = field(default_factory=dict)
    copies: dict[int, list[int]] = field(default_factory=dict)
    size: int = 0
    arrays: ProductArrays = field(init=False)
    ends: dict[int, list[int]] = field(default_factory=dict)
    conditions: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for k, node in enumerate(self.graph.outputs):
            self.ends.setdefault(node, []).append(k)
        for number, requirement in enumerate(self.graph.requirements, 1):
            self.conditions.setdefault(requirement.condition, number)

    def rolled(self) -> list[ScheduledStep]:
        """Return the loops and products, in order."""
        return [step for chunk in self.chunks for step in chunk if step.op in ROLLED]


def lower(
    graph: Graph,
    fused: bool,
    pack: int,
    joined: Callable[[int, int], bool] | None = None,
) -> Schedule:
    """Return the Schedule of a Graph.

    Args:
        graph: Graph without calls of Programs.
        fused: Whether multiply-adds are formed.
        pack: Maximum number of angles whose sine and cosine are computed at once.
        joined: Returns whether two flat outputs are in one array; None where outputs
            cannot be read again.
    """
    steps = _Ordering(graph, fused, pack).steps()
    schedule = Schedule(graph)
    schedule.chunks += _cut(schedule, steps)
    _assign_slots(schedule, joined)
    return schedule


class _Ordering:
    """Orders the nodes so that sines and cosines are next to each other.

    `pack` is the maximum number of angles in one step `sincos`.
    """

    def __init__(self, graph: Graph, fused: bool, pack: int) -> None:
        self.graph, self.pack = graph, pack
        self.uses = count_uses(graph)
        self.fusions, self.absorbed = (
            fusions(graph, self.uses) if fused else ({}, set())
        )
        self.packs = self._packs()
        self.items: dict[int, list[int]] = {}
        for k, node in enumerate(graph.nodes):
            if node.op == "item":
                self.items.setdefault(node.operands[0], []).append(k)

    def steps(self) -> list[ScheduledStep]:
        """Return the steps of all nodes: operands come before the steps that use them.

        All items of a loop or product, and all sines and cosines of a pack, have one
        step. Constants, inputs and multiplications that became part of a multiply-add
        have none.
        """
        nodes, steps = self.graph.nodes, []
        done = [node.op in _LEAVES for node in nodes]
        for root in range(len(nodes)):
            if root in self.absorbed:
                continue
            stack = [root]
            while stack:
                k = stack[-1]
                if done[k]:
                    stack.pop()
                    continue
                step = self._step(k)
                waiting = [x for x in step.operands if not done[x]]
                if waiting:
                    stack += reversed(waiting)
                    continue
                steps.append(step)
                for x in step.results:
                    if x is not None:
                        done[x] = True
                done[k] = True
                stack.pop()
        return steps

    def _step(self, k: int) -> ScheduledStep:
        """Return the step that computes node k, maybe with other nodes.

        For an item it is its loop or product, for a sine or cosine the `sincos` of its
        pack, for an addition or subtraction that absorbs a multiplication the
        multiply-add.
        """
        node = self.graph.nodes[k]
        if k in self.fusions:
            op, operands = self.fusions[k]
            return ScheduledStep(op, operands, (k,))
        if k in self.packs:
            members = self.packs[k]
            results = tuple(x for _, *pair in members for x in pair)
            return ScheduledStep("sincos", tuple(m[0] for m in members), results)
        if node.op == "item":
            return self._step(node.operands[0])
        if node.op in ROLLED:
            items = self.items.get(k, [])
            which = tuple(self.graph.nodes[x].data for x in items)
            return ScheduledStep(
                node.op, node.operands, tuple(items), (node.data, which, k)
            )
        return ScheduledStep(node.op, node.operands, (k,))

    def _packs(self) -> dict[int, tuple[Any, ...]]:
        """Return the members of the pack of each sine and cosine, by its node.

        A member is (angle, node of the sine or None, node of the cosine or None).
        Members of a pack have equal depth, counted in sines, cosines and loops, so none
        depends on another.
        """
        nodes, depth = self.graph.nodes, [0] * len(self.graph.nodes)
        levels: dict[int, dict[int, list[Any]]] = {}
        for k, node in enumerate(nodes):
            depth[k] = max((depth[x] for x in node.operands), default=0)
            if node.op in ("sin", "cos"):
                angle = node.operands[0]
                level = levels.setdefault(depth[k], {})
                pair = level.setdefault(angle, [None, None])
                pair[node.op == "cos"] = k
                depth[k] += 1
            elif node.op == "loop":
                depth[k] += 1
        packs = {}
        for level in levels.values():
            members = [(angle, *pair) for angle, pair in level.items()]
            for start in range(0, len(members), self.pack):
                group = tuple(members[start : start + self.pack])
                for _, *pair in group:
                    packs.update({x: group for x in pair if x is not None})
        return packs


def fusions(
    graph: Graph, uses: list[int]
) -> tuple[dict[int, tuple[str, tuple[int, ...]]], set[int]]:
    """Return the multiply-adds of a Graph, and the multiplications that they absorb.

    A multiplication is absorbed by an addition or subtraction if that is its only use;
    of two operands that are such multiplications, the second is. The dict has by node
    (operation, operands): fma (x y + z), fms (x y - z) or fnma (z - x y) and (x, y, z).
    """
    nodes, absorbed = graph.nodes, set()
    made: dict[int, tuple[str, tuple[int, ...]]] = {}

    def free(k: int) -> bool:
        return nodes[k].op == "mul" and uses[k] == 1 and k not in absorbed

    for k, node in enumerate(nodes):
        if node.op not in ("add", "sub"):
            continue
        a, b = node.operands
        if free(b):
            op = "fma" if node.op == "add" else "fnma"
            made[k] = (op, (*nodes[b].operands, a))
            absorbed.add(b)
        elif free(a):
            op = "fma" if node.op == "add" else "fms"
            made[k] = (op, (*nodes[a].operands, b))
            absorbed.add(a)
    return made, absorbed


def _cut(schedule: Schedule, steps: list[ScheduledStep]) -> list[list[ScheduledStep]]:
    """Return the steps in chunks; loops and products are chunks of their own.

    A chunk ends with 400 steps, or when its steps have accessed 250 values: read
    operands from elsewhere (also inputs and constants), or written outputs and operands
    of loops and products. LLVM orders every pair of memory accesses, so the compile
    time of a function grows with the square of their number. The first chunk is empty
    if the first step is a loop or product, or there is no step.
    """
    writes = {x: len(places) for x, places in schedule.ends.items()}
    for step in steps:
        if step.op in ROLLED:
            for x in step.operands:
                writes[x] = writes.get(x, 0) + 1
    chunks: list[list[ScheduledStep]] = [[]]
    known: set[int] = set()  # values that the chunk has
    memory = 0
    for step in steps:
        alone = step.op in ROLLED
        full = len(chunks[-1]) >= CHUNK or memory >= MEMORY
        if alone or full or _is_rolled(chunks[-1]):
            chunks.append([])
            known, memory = set(), 0
        chunks[-1].append(step)
        if not alone:
            memory += len(set(step.operands) - known)
            memory += sum(writes.get(x, 0) for x in step.results)
            known.update(step.operands, step.results)
    return chunks


def _is_rolled(chunk: list[ScheduledStep]) -> bool:
    return bool(chunk) and chunk[0].op in ROLLED


def _assign_slots(
    schedule: Schedule, joined: Callable[[int, int], bool] | None
) -> None:
    """Assign a slot to each value that a later chunk reads; free slots are reused.

    Items of loops get none, items of products an entry of a matrix. The Schedule is
    changed in place: slots and size, and all that _place_arrays sets. `joined` returns
    whether two flat outputs are in one array; None where they cannot be read again.
    """
    last: dict[int, int] = {}
    for number, chunk in enumerate(schedule.chunks):
        for step in chunk:
            for x in step.operands:
                last[x] = number
    ending: dict[int, list[int]] = {}
    free: list[int] = []
    for number, chunk in enumerate(schedule.chunks):
        for step in chunk:
            for x in step.results:
                if x is None or step.op in ROLLED:
                    continue  # items lie in arrays, or in the state of the loop
                until = last.get(x, -1)
                if until > number:
                    if not free:
                        free.append(schedule.size)
                        schedule.size += 1
                    slot = schedule.slots[x] = free.pop()
                    ending.setdefault(until, []).append(slot)
        free += ending.pop(number, [])
    _place_arrays(schedule, joined)


def _place_arrays(
    schedule: Schedule, joined: Callable[[int, int], bool] | None
) -> None:
    """Assign memory to the matrices of products, behind the slots of single values.

    Matrices that are not used at the same time may share it; outputs serve as matrices
    if there is no loop. Sets copies, arrays and size of the Schedule, and of each item
    of a product its slot, or its output in `outputs`. `joined` is as in _assign_slots.
    """
    steps = [step for step in schedule.rolled() if step.op == "product"]
    products = [step.data[2] for step in steps]
    # With loops, outputs cannot be used as matrices: loops write theirs at the end.
    late = joined is None or len(steps) < len(schedule.rolled())
    arrays = ProductArrays(
        schedule.graph,
        schedule.size,
        products,
        {} if late else schedule.ends,
        joined or (lambda a, b: False),
    )
    share_memory(arrays, schedule.chunks)
    arrays.end += GROUP if products else 0  # spare slots: loads may read behind arrays
    for step in steps:
        for x in step.results:
            spot = arrays.spot(x)
            (schedule.outputs if spot.output else schedule.slots)[x] = spot.number
    schedule.copies.update(arrays.stores)
    schedule.size, schedule.arrays = arrays.end, arrays
