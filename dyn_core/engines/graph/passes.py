"""Rewriting of Graphs: constant folding, common subexpressions, dead code.

The Builder applies the rules, and shares equal nodes, while an algorithm is traced;
`prune` removes unused nodes at the end. The results of `run()` stay the same, except
for departures from IEEE arithmetic, which are marked: 0*x -> 0 hides a NaN or infinity
in x, and x+0 -> x, 0-x -> -x give another sign of zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dyn_core.engines.graph.graph import Graph, Node, Region, Requirement
from dyn_core.numbers.operations import OPERATIONS

COMMUTES = frozenset(("add", "mul", "eq", "and", "or"))


class Builder:
    """Grows a Graph: equal nodes are shared, rules are applied as nodes arrive.

    Without `folding` the Graph has every operation as requested. `values` has by node
    the value of a constant, or None; `has_zero`: rules apply and 0.0 has a node.
    """

    def __init__(self, width: int, folding: bool = True) -> None:
        self.graph = Graph(width)
        self.folding = folding
        self.values: list[Any] = []
        self.has_zero = False
        self._known: dict[Any, int] = {}

    def const(self, value: Any) -> int:
        """Return the index of the node of a constant, added if new or without folding.

        Numbers become floats; True, False, 1.0, 0.0 and -0.0 have nodes of their own.
        """
        value = value if isinstance(value, bool) else float(value)
        # True equals 1.0, zeros of either sign are equal, NaN does not equal itself.
        alike = value in (0.0, 1.0) or value != value
        key = repr(value) if alike else value
        known = self._known.get(key) if self.folding else None
        if known is not None:
            return known
        self.has_zero = self.has_zero or (self.folding and key == "0.0")
        return self._append(Node("const", (), value), key)

    def node(self, op: str, operands: tuple[int, ...], data: Any = None) -> int:
        """Return the index of an operation's node, with the data listed in graph.py.

        With folding, it is simplified where a rule applies, and an equal node is used
        again; loops and calls always get a new node. Operands of a commutative
        operation are put in ascending order, without folding too.
        """
        if not self.folding or op in ("loop", "call"):
            return self._append(Node(op, _ordered(op, operands), data), None)
        key = (op, operands, data)
        known = self._known
        result = known.get(key)
        if result is not None:
            return result
        result = self._simplify(op, operands) if op in OPERATIONS else None
        if result is None:
            ordered = _ordered(op, operands)
            if ordered is operands:
                return self._append(Node(op, operands, data), key)
            unique = (op, ordered, data)
            result = known.get(unique)
            if result is None:
                result = self._append(Node(op, ordered, data), unique)
        known[key] = result
        return result

    def require(self, condition: int, error: Any, item: str) -> None:
        """Add a requirement; with folding, one that is constantly True is omitted."""
        if self.folding and self.values[condition] is True:
            return
        self.graph.requirements.append(Requirement(condition, error, item))

    def _append(self, node: Node, key: Any) -> int:
        """Add a node and return its index.

        Later requests find it under `key`. Without a key or without folding it is never
        shared.
        """
        number = len(self.values)
        if self.folding and key is not None:
            self._known[key] = number
        self.graph.nodes.append(node)
        self.values.append(node.data if node.op == "const" else None)
        return number

    def _simplify(self, op: str, operands: tuple[int, ...]) -> int | None:
        """Return the index of a simpler node of the same value, maybe added, or None.

        The value may differ where an operand is NaN or infinite, for 0 / 0, and in the
        sign of zero.
        """
        values = self.values
        constants = tuple([values[k] for k in operands])
        if None not in constants:
            return self.const(OPERATIONS[op].on_float(*constants))
        rule = RULES.get(op)
        return None if rule is None else rule(self, operands, constants)


def _ordered(op: str, operands: tuple[int, ...]) -> tuple[int, ...]:
    """Return the operands; in ascending order if `op` is commutative, else as given."""
    if op in COMMUTES and operands[0] > operands[1]:
        return operands[::-1]
    return operands


Rule = Callable[[Builder, tuple[int, ...], tuple[Any, ...]], "int | None"]


def _negated(b: Builder, k: int) -> int | None:
    """Return the index of the operand x if node k is the operation -x, else None."""
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


# A rule takes the Builder, the operands and their constant values (None if not
# constant); it returns the index of the simplified node, or None if it does not apply.
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
    """Return a copy with the nodes that outputs and requirements need, in loops too."""
    needed = bytearray(len(graph.nodes))
    for k in (*graph.outputs, *(r.condition for r in graph.requirements)):
        needed[k] = True
    for k in reversed(range(len(graph.nodes))):
        if needed[k]:
            for x in graph.nodes[k].operands:
                needed[x] = True
    kept, place = Graph(graph.width), [-1] * len(graph.nodes)
    for k, (op, operands, data) in enumerate(graph.nodes):
        if not needed[k]:
            continue
        if op == "loop":
            body, cond = prune(data.body), prune(data.cond)
            data = Region(data.width, body, cond, data.max)
        place[k] = len(kept.nodes)
        kept.nodes.append(Node(op, tuple([place[x] for x in operands]), data))
    kept.outputs = [place[k] for k in graph.outputs]
    kept.requirements = [
        requirement._replace(condition=place[requirement.condition])
        for requirement in graph.requirements
    ]
    return kept
