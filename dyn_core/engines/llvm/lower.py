"""Graph -> Schedule: what one kernel does, in which order, with which scratch memory.

A multiplication that only one addition uses becomes its multiply-add; sines and cosines
are packed into one vector call; the steps are cut into chunks, each an LLVM function
later, and values that live across chunks get a slot of the scratch memory. All of this
happens before the number of lanes matters: one state and a lane have equal bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dyn_core.engines.graph.graph import Graph
from dyn_core.engines.llvm.products.product_arrays import GROUP, ProductArrays
from dyn_core.engines.llvm.products.shared_memory import share_memory

CHUNK = 400  # steps in one function; compile time grows faster than linearly beyond
MEMORY = 250  # values that one function reads and delivers, of which the same holds
ROLLED = ("loop", "product")  # steps with items that run in loops of their own
_LEAVES = ("const", "input")


class ScheduledStep(NamedTuple):
    """One operation of a Schedule: a row of the operations table, or one of

    fma (x y + z), fms (x y - z), fnma (z - x y)
    sincos: of each operand; results are its sine and its cosine, or None
    loop, product: results are the items used; data is (Region or ProductShape, items,
        node)
    """

    op: str
    operands: tuple[int, ...]
    results: tuple[Any, ...]
    data: Any = None


@dataclass
class Schedule:
    """Steps of a Graph in order.

    Attributes:
        graph: What is computed; operands and results are its node numbers.
        chunks: Steps of each function; a loop or product is a chunk of its own.
        slots: Slot of each value that lives across chunks; those of a loop's items
            are known when the loop is written.
        outputs: By value, the output that it is read from: an item that lies there.
        copies: Further slots of a value: the arrays of products that it is part of.
        size: Number of slots.
        arrays: Where the matrices of products lie, behind the other slots.
        ends: By value, the outputs that it is.
        conditions: By value, the number of the first requirement that it is.
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
        """Return the loops and products."""
        return [step for chunk in self.chunks for step in chunk if step.op in ROLLED]


def lower(
    graph: Graph,
    fused: bool,
    pack: int,
    joined: Callable[[int, int], bool] | None = None,
) -> Schedule:
    """Return the Schedule of a Graph.

    Args:
        graph: Without calls of Programs.
        fused: Whether multiply-adds are formed.
        pack: How many sines and cosines are taken at once.
        joined: Returns whether two outputs lie in one array; None where outputs cannot
            be read again.
    """
    steps = _Ordering(graph, fused, pack).steps()
    schedule = Schedule(graph)
    schedule.chunks += _cut(schedule, steps)
    _assign_slots(schedule, joined)
    return schedule


class _Ordering:
    """Puts the nodes in an order in which sines and cosines stand together."""

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
        """Return the steps."""
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
        """Return the step that yields node k."""
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
        """Return for each sine and cosine the members of its pack.

        A member is (angle, node of the sine or None, node of the cosine or None). Those
        of one pack have as many sines and cosines behind them, so none needs another.
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
    """Return the multiply-adds of a Graph, and the multiplications that go into them.

    Args:
        graph: Its nodes are read.
        uses: How often each of them is used.
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


def count_uses(graph: Graph) -> list[int]:
    """Count how often each node is used."""
    uses = [0] * len(graph.nodes)
    for node in graph.nodes:
        for x in node.operands:
            uses[x] += 1
    for x in (*graph.outputs, *(r.condition for r in graph.requirements)):
        uses[x] += 1
    return uses


def _cut(schedule: Schedule, steps: list[ScheduledStep]) -> list[list[ScheduledStep]]:
    """Cut the steps into chunks; loops and products stand alone.

    A chunk ends with CHUNK steps, or where its steps have read MEMORY values of others
    and made so many outputs and entries of matrices: LLVM orders every two that touch
    memory, so that the time for a function grows with the square of their number.
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
    """Assign a slot to each value that a later chunk reads; slots are used again."""
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
    """Place the matrices of products behind the slots of single values."""
    steps = [step for step in schedule.rolled() if step.op == "product"]
    products = [step.data[2] for step in steps]
    # Results of loops become outputs at the end.
    late = joined is None or len(steps) < len(schedule.rolled())
    arrays = ProductArrays(
        schedule.graph,
        schedule.size,
        products,
        {} if late else schedule.ends,
        joined or (lambda a, b: False),
    )
    share_memory(arrays, schedule.chunks)
    arrays.end += GROUP if products else 0  # behind what is read of them
    for step in steps:
        for x in step.results:
            spot = arrays.spot(x)
            (schedule.outputs if spot.output else schedule.slots)[x] = spot.number
    schedule.copies.update(arrays.stores)
    schedule.size, schedule.arrays = arrays.end, arrays
