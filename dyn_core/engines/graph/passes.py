"""Rewriting of Graphs: folding, common terms, dead code. All of it keeps `run()`.

The Builder applies the rules, and shares equal nodes, while an algorithm is traced;
`prune` drops what is not needed when it has ended. Departures from IEEE arithmetic are
marked: 0*x -> 0 hides a NaN or infinity in x, and x+0 -> x,
0-x -> -x give another sign of zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dyn_core.engines.graph.graph import Graph, Node, Region, Requirement
from dyn_core.numbers.operations import OPERATIONS

COMMUTES = frozenset(("add", "mul", "eq", "and", "or"))


class Builder:
    """Grows a Graph: equal nodes are shared, rules are applied as nodes arrive.

    Args:
        width: Number of flat inputs.
        folding: Whether rules apply and equal nodes are shared; if not, the Graph has
            every operation as it was asked for.
    """

    def __init__(self, width: int, folding: bool = True) -> None:
        self.graph = Graph(width)
        self.folding = folding
        self.known: dict[Any, int] = {}

    def const(self, value: Any) -> int:
        """Return the node of a constant."""
        value = value if isinstance(value, bool) else float(value)
        return self._append(Node("const", (), value), ("const", repr(value)))

    def node(self, op: str, operands: tuple[int, ...], data: Any = None) -> int:
        """Return the node of an operation, simplified where a rule applies."""
        if self.folding and op in OPERATIONS:
            simpler = self._simplify(op, operands)
            if simpler is not None:
                return simpler
        if op in COMMUTES and operands[0] > operands[1]:
            operands = (operands[1], operands[0])
        unique = op in ("loop", "call")
        key = None if unique else (op, operands, data)
        return self._append(Node(op, operands, data), key)

    def require(self, condition: int, error: Any, item: str) -> None:
        """Note a condition that must hold."""
        self.graph.requirements.append(Requirement(condition, error, item))

    def constant(self, k: int) -> Any:
        """Return the value of a constant node, or None."""
        node = self.graph.nodes[k]
        return node.data if node.op == "const" else None

    def _append(self, node: Node, key: Any) -> int:
        if self.folding and key is not None:
            equal = self.known.get(key)
            if equal is not None:
                return equal
            self.known[key] = len(self.graph.nodes)
        self.graph.nodes.append(node)
        return len(self.graph.nodes) - 1

    def _simplify(self, op: str, operands: tuple[int, ...]) -> int | None:
        constants = tuple(self.constant(k) for k in operands)
        if all(c is not None for c in constants):
            return self.const(OPERATIONS[op].on_float(*constants))
        rule = RULES.get(op)
        return None if rule is None else rule(self, operands, constants)


Rule = Callable[[Builder, tuple[int, ...], tuple[Any, ...]], "int | None"]


def _negated(b: Builder, k: int) -> int | None:
    """Return x where node k is -x."""
    node = b.graph.nodes[k]
    return node.operands[0] if node.op == "neg" else None


def _add(b: Builder, x: tuple[int, ...], c: tuple[Any, ...]) -> int | None:
    if c[0] == 0:
        return x[1]  # 0 + x -> x
    if c[1] == 0:
        return x[0]  # x + 0 -> x
    if (y := _negated(b, x[1])) is not None:
        return b.node("sub", (x[0], y))  # x + (-y) -> x - y
    if (y := _negated(b, x[0])) is not None:
        return b.node("sub", (x[1], y))  # (-y) + x -> x - y
    return None


def _sub(b: Builder, x: tuple[int, ...], c: tuple[Any, ...]) -> int | None:
    if c[1] == 0:
        return x[0]  # x - 0 -> x
    if c[0] == 0:
        return b.node("neg", (x[1],))  # 0 - x -> -x
    if x[0] == x[1]:
        return b.const(0.0)  # x - x -> 0 (hides NaN and infinity)
    if (y := _negated(b, x[1])) is not None:
        return b.node("add", (x[0], y))  # x - (-y) -> x + y
    return None


def _mul(b: Builder, x: tuple[int, ...], c: tuple[Any, ...]) -> int | None:
    for k in (0, 1):
        if c[k] is None:
            continue
        other = x[1 - k]
        if c[k] == 0:
            return b.const(0.0)  # 0 * x -> 0 (hides NaN and infinity)
        if c[k] == 1:
            return other  # 1 * x -> x
        if c[k] == -1:
            return b.node("neg", (other,))  # -1 * x -> -x
    left, right = _negated(b, x[0]), _negated(b, x[1])
    if left is not None and right is not None:
        return b.node("mul", (left, right))  # (-x) * (-y) -> x * y
    if left is not None and c[1] is None:
        return b.node("neg", (b.node("mul", (left, x[1])),))  # (-x) * y -> -(x * y)
    if right is not None and c[0] is None:
        return b.node("neg", (b.node("mul", (x[0], right)),))  # x * (-y) -> -(x * y)
    return None


def _div(b: Builder, x: tuple[int, ...], c: tuple[Any, ...]) -> int | None:
    if c[1] == 1:
        return x[0]  # x / 1 -> x
    if c[0] == 0:
        return b.const(0.0)  # 0 / x -> 0 (hides NaN and 0/0)
    return None


def _neg(b: Builder, x: tuple[int, ...], c: tuple[Any, ...]) -> int | None:
    return _negated(b, x[0])  # -(-x) -> x


def _where(b: Builder, x: tuple[int, ...], c: tuple[Any, ...]) -> int | None:
    return x[1] if x[1] == x[2] else None  # where(c, x, x) -> x


def _not(b: Builder, x: tuple[int, ...], c: tuple[Any, ...]) -> int | None:
    node = b.graph.nodes[x[0]]
    return node.operands[0] if node.op == "not" else None  # not not c -> c


def _and(b: Builder, x: tuple[int, ...], c: tuple[Any, ...]) -> int | None:
    for k in (0, 1):
        if c[k] is not None:
            return x[1 - k] if c[k] else b.const(False)  # true and c -> c
    return x[0] if x[0] == x[1] else None  # c and c -> c


def _or(b: Builder, x: tuple[int, ...], c: tuple[Any, ...]) -> int | None:
    for k in (0, 1):
        if c[k] is not None:
            return b.const(True) if c[k] else x[1 - k]  # false or c -> c
    return x[0] if x[0] == x[1] else None  # c or c -> c


RULES: dict[str, Rule] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "neg": _neg,
    "where": _where,
    "not": _not,
    "and": _and,
    "or": _or,
}


def prune(graph: Graph) -> Graph:
    """Drop what no output or requirement needs, inside loops too."""
    needed = {*graph.outputs, *(r.condition for r in graph.requirements)}
    for k in reversed(range(len(graph.nodes))):
        if k in needed:
            needed.update(graph.nodes[k].operands)
    builder = Builder(graph.width, folding=False)
    place: dict[int, int] = {}
    for k, (op, operands, data) in enumerate(graph.nodes):
        if k not in needed:
            continue
        if op == "const":
            place[k] = builder.const(data)
            continue
        if op == "loop":
            body, cond = prune(data.body), prune(data.cond)
            data = Region(data.width, body, cond, data.max)
        place[k] = builder.node(op, tuple(place[x] for x in operands), data)
    for condition, error, item in graph.requirements:
        builder.require(place[condition], error, item)
    builder.graph.outputs = [place[k] for k in graph.outputs]
    return builder.graph
