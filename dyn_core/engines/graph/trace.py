"""Tracing: a function runs on symbols, and its operations become a Graph."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from math import copysign
from typing import Any, NoReturn

from dyn_core.engines.graph.graph import Call, Callee, Graph, Region, Requirement
from dyn_core.engines.graph.passes import Builder, prune
from dyn_core.errors import RequireError, TraceError
from dyn_core.model.garbage import seldom_collected
from dyn_core.numbers.operations import OPERATIONS
from dyn_core.numbers.product import ProductShape, unrolled_product
from dyn_core.numbers.scalar import Number

_FAILURE = -1  # input of a loop's body: number of its requirement that failed
ROLLED = 120  # multiplications above which a product is one operation
ROLLED_ROW = 64  # the same for a number times a row, where no sum stays in registers


class Symbol(Number):
    """An unknown number: a node of the Graph being traced."""

    __slots__ = ("node", "tracer")

    def __init__(self, tracer: Tracer, node: int) -> None:
        self.tracer, self.node = tracer, node

    # fmt: off
    def __add__(self, other: Any) -> Any: return _record("add", self, other)
    def __sub__(self, other: Any) -> Any: return _record("sub", self, other)
    def __mul__(self, other: Any) -> Any: return _record("mul", self, other)
    # fmt: on

    def apply(self, op: str, *operands: Any) -> Any:
        """Record an operation in the innermost traced Graph, see Tracer.record."""
        tracer = self.tracer
        while tracer.inner is not None:
            tracer = tracer.inner
        return tracer.record(op, operands)

    def product(
        self, a: Sequence[Any], b: Sequence[Any], c: Sequence[Any], shape: ProductShape
    ) -> list[Any]:
        """Return the entries of a product of traced numbers, row by row.

        From 120 multiplications on, or 64 where a number is multiplied with a row, it
        is recorded as one operation; a smaller one, and any in a trace without folding,
        as separate operations. Entries are row by row; c is empty without a C.
        """
        row = shape.rows == shape.inner == 1
        if shape.work < (ROLLED_ROW if row else ROLLED):
            return unrolled_product(a, b, c, shape)
        return self.apply("product", a, b, c, shape)

    def truth(self) -> NoReturn:
        """Raise TraceError: an algorithm may not branch on a traced value."""
        raise TraceError(
            f"{_place()}: the truth of a traced value is not known; use"
            " where(c, a, b), loop(...) or require(...)"
        )

    def refuse(self, *_: Any) -> NoReturn:
        """Raise TraceError: a traced value cannot become a number or an array."""
        raise TraceError(
            f"{_place()}: a traced value cannot become a Python number;"
            " algorithms use the functions of dyn_core.authoring, not math or numpy"
        )

    __float__ = __int__ = __index__ = __complex__ = __round__ = __floor__ = refuse
    __array__ = refuse

    def __repr__(self) -> str:
        return f"%{self.node}"


def _record(op: str, a: Symbol, b: Any) -> Any:
    """Return the result of `a op b`, recorded in the innermost Graph being traced.

    A Number b of a higher rank computes the result itself. It is Symbol.apply in short
    form: operators are most frequent.
    """
    if type(b) is not float and isinstance(b, Number) and b.rank > a.rank:
        return b.apply(op, a, b)
    tracer = a.tracer
    while tracer.inner is not None:
        tracer = tracer.inner
    return tracer.record(op, (a, b))


class Tracer:
    """Traces one Graph, and the Graphs of the loops in it.

    `outer` is the Tracer around a loop; `requires` is False in a loop's condition.
    """

    def __init__(
        self,
        width: int,
        outer: Tracer | None = None,
        folding: bool = True,
        requires: bool = True,
    ) -> None:
        self.builder = Builder(width, folding)
        self.outer, self.folding, self.requires = outer, folding, requires
        self.inner: Tracer | None = None
        self.captured: list[Symbol] = []
        self.inputs = [self._input(k) for k in range(width)]

    def record(self, op: str, operands: Sequence[Any]) -> Any:
        """Record an operation in this Tracer's Graph and return its result.

        It is a Symbol, or a float or bool where it is constant; for a loop, call or
        product the list or tuple of these; None for require. Operands of loop: state,
        body, condition, maximum of rounds; of call: Program, flat inputs; of product:
        entries of A, of B, of C, shape; of require: condition, class of the error,
        item. TraceError: an operand is no number or of another trace, require is in the
        condition of a loop, or a loop's body returns a wrong number of values.
        """
        if op in OPERATIONS:
            if (op == "mul" or op == "add") and self.builder.has_zero:
                result = self._with_zero(op, *operands)
                if result is not None:
                    return result
            nodes = tuple([self.lift(x) for x in operands])
            return self.symbol(self.builder.node(op, nodes))
        if op == "loop":
            return self._loop(*operands)
        if op == "call":
            return self.call(*operands)
        if op == "product":
            return self._product(*operands)
        return self._require(*operands)

    def _with_zero(self, op: str, a: Any, b: Any) -> Any:
        """Return x for x + 0.0, 0.0 for x * 0.0, without adding a node; else None.

        Such operations are frequent in spatial algebra; the Builder has the same rules.
        None also for -0.0, whose node then keeps its position, and for a Symbol of an
        outer Graph.
        """
        if type(b) is float:
            a, b = b, a
        if type(a) is not float or a or copysign(1.0, a) < 0 or b.tracer is not self:
            return None
        return 0.0 if op == "mul" else b

    def symbol(self, node: int) -> Any:
        """Return the Symbol of a node; with folding, a constant as a float or bool."""
        constant = self.builder.values[node] if self.folding else None
        return Symbol(self, node) if constant is None else constant

    def lift(self, x: Any) -> int:
        """Return the node index of a number, or of a Symbol of this or an outer Graph.

        Numbers are what float() accepts; a bool stays one. A Symbol of an outer Graph
        becomes an input of this one. TraceError for any other x.
        """
        if type(x) is float:
            return self.builder.const(x)
        if not isinstance(x, Symbol):
            if isinstance(x, Number) or not isinstance(x, (int, float)):
                try:
                    x = float(x)  # type: ignore[arg-type]
                except (TypeError, ValueError) as error:
                    raise TraceError(
                        f"{_place()}: {type(x).__name__} is not a number"
                    ) from error
            return self.builder.const(x)
        if x.tracer is self:
            return x.node
        return self._capture(x)

    def call(self, program: Callee, operands: Sequence[Any]) -> list[Any]:
        """Record the call of a Program that is not traced; return its flat results."""
        width = sum(port.size for port in program.outputs)
        nodes = tuple(self.lift(x) for x in operands)
        node = self.builder.node("call", nodes, Call(program, width))
        return self._items(node, width)

    def finish(self, outputs: Sequence[Any]) -> Graph:
        """Return the Graph with these outputs; if folding, it is pruned."""
        self.builder.graph.outputs = [self.lift(x) for x in outputs]
        graph = self.builder.graph
        return prune(graph) if self.folding else graph

    def _input(self, k: int) -> Symbol:
        return Symbol(self, self.builder.node("input", (), k))

    def _capture(self, x: Symbol) -> int:
        """Return the input node of this loop's Graph for a Symbol of an outer Graph.

        The input is added at the first use. A Symbol of another trace is refused.
        """
        above = self.outer
        while above is not None and above is not x.tracer:
            above = above.outer
        if above is None:
            raise TraceError(f"{_place()}: a value of another trace was used")
        for k, known in enumerate(self.captured):
            if known.tracer is x.tracer and known.node == x.node:
                return self.inputs[k - len(self.captured)].node
        self.captured.append(x)
        self.builder.graph.width += 1
        self.inputs.append(self._input(self.builder.graph.width - 1))
        return self.inputs[-1].node

    def _items(self, node: int, width: int) -> list[Any]:
        """Record the items of a loop, call or product; return their Symbols."""
        return [
            Symbol(self, self.builder.node("item", (node,), k)) for k in range(width)
        ]

    def _product(
        self, a: Sequence[Any], b: Sequence[Any], c: Sequence[Any], shape: ProductShape
    ) -> list[Any]:
        """Record a product as one operation; return the Symbols of its entries.

        Entries are row by row; c is empty without a C. Without folding the product is
        written out, since every operation is wanted.
        """
        if not self.folding:
            return unrolled_product(a, b, c, shape)
        nodes = tuple([self.lift(x) for x in (*a, *b, *c)])
        node = self.builder.node("product", nodes, shape)
        return self._items(node, shape.rows * shape.columns)

    def _require(self, condition: Any, error: type[RequireError], item: str) -> None:
        """Record a requirement; with folding, none that is constantly True."""
        if not self.requires:
            raise TraceError(
                f"{_place()}: require() stands in the condition of a loop; valid: in"
                " the body of the loop, before it or behind it"
            )
        self.builder.require(self.lift(condition), error, item)

    def _loop(
        self,
        state: Sequence[Any],
        body: Callable[[tuple[Any, ...]], Sequence[Any]],
        cond: Callable[[tuple[Any, ...]], Any],
        rounds: int,
    ) -> tuple[Any, ...]:
        """Record a loop and return its final state, Symbols.

        Requirements of the body are recorded behind the loop. For them the state of the
        Graph gets one more number: which requirement of the body failed first, by round
        and then by order, counted from 1; 0 if none did. If the body returns a Number
        of a higher rank than Symbol, that number runs the loop instead.
        """
        count = width = len(state)
        turn, following = self._traced(body, count, count)
        outermost: Any = max(following, key=_rank, default=0.0)
        if _rank(outermost) > Symbol.rank:  # numbers made of traced ones run the loop
            return outermost.apply("loop", state, body, cond, rounds)
        test, go_on = self._traced(lambda x: [cond(x)], count, 1, requires=False)
        requirements = turn.builder.graph.requirements
        if requirements:
            turn.builder.graph.requirements = []
            following.append(turn.first_failure(requirements))
            state, width = (*state, 0.0), count + 1
        captured = (*turn.captured, *test.captured)
        unique = list({(id(x.tracer), x.node): x for x in captured}.values())
        body_graph = _renumbered(turn, turn.finish(following), count, width, unique)
        cond_graph = _renumbered(test, test.finish(go_on), count, width, unique)
        operands = tuple(self.lift(x) for x in (*state, *unique))
        region = Region(width, body_graph, cond_graph, int(rounds))
        items = self._items(self.builder.node("loop", operands, region), width)
        for number, (_, error, item) in enumerate(requirements, 1):
            failed = self.record("eq", (items[-1], float(number)))
            self._require(self.record("not", (failed,)), error, item)
        return tuple(items[:count])

    def _traced(
        self,
        part: Callable[[tuple[Any, ...]], Sequence[Any]],
        width: int,
        length: int,
        requires: bool = True,
    ) -> tuple[Tracer, list[Any]]:
        """Trace the body or the condition of a loop; return (its Tracer, its results).

        `width` is the number of state values, `length` that of results.
        """
        inner = Tracer(width, self, self.folding, requires)
        self.inner = inner
        try:
            results = list(part(tuple(inner.inputs)))
        finally:
            self.inner = None
        if len(results) != length:
            raise TraceError(
                f"{_place()}: a loop's body returns {len(results)} values,"
                f" its state has {length}"
            )
        return inner, results

    def first_failure(self, requirements: Sequence[Requirement]) -> Symbol:
        """Record and return the number of the requirement of a loop that failed first.

        It counts from 1; 0.0 if none failed in this or an earlier round. The number
        before this round is an input of the body's Graph, provisionally index -1.
        """
        node, const = self.builder.node, self.builder.const
        none = this = const(0.0)
        for number in range(len(requirements), 0, -1):
            holds = requirements[number - 1].condition
            this = node("where", (holds, this, const(float(number))))
        before = node("input", (), _FAILURE)
        first = node("eq", (before, none))
        return Symbol(self, node("where", (first, this, before)))


def _rank(x: Any) -> int:
    """Return the rank of a Number, 0 for other values."""
    return x.rank if isinstance(x, Number) else 0


def _renumbered(
    tracer: Tracer, graph: Graph, count: int, width: int, captured: Sequence[Symbol]
) -> Graph:
    """Return the Graph, changed in place: inputs are state, failure number, captured.

    The failure number is an input only if width > count: `count` is the size of the
    state as traced, `width` includes the failure number.
    """
    place = {(id(x.tracer), x.node): width + k for k, x in enumerate(captured)}
    numbers = {_FAILURE: count}
    for k, x in enumerate(tracer.captured):
        numbers[count + k] = place[id(x.tracer), x.node]
    for k, node in enumerate(graph.nodes):
        if node.op == "input":
            graph.nodes[k] = node._replace(data=numbers.get(node.data, node.data))
    graph.width = width + len(captured)
    return graph


def trace(
    function: Callable[..., Sequence[Any]], width: int, folding: bool = True
) -> Graph:
    """Return the Graph of a function from a list of `width` Symbols to a flat list.

    With `folding`, rules simplify operations, equal nodes are shared, and unused ones
    removed.
    """
    with seldom_collected():
        tracer = Tracer(width, folding=folding)
        return tracer.finish(list(function(tracer.inputs)))


def _place() -> str:
    """Return "FILE:LINE" of the algorithm that is being traced.

    It is the innermost caller outside of the Tracer, the Builder, scalar.py and
    dyn_core.spatial.
    """
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        inside = name in (
            "dyn_core.numbers.scalar",
            __name__,
            "dyn_core.engines.graph.passes",
        )
        if not inside and not name.startswith("dyn_core.spatial"):
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return "the algorithm"
