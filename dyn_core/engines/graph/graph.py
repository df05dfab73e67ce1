"""The Graph: an algorithm for one robot as a list of operations.

A node is (op, operands, data). Operands are indices of earlier nodes. In addition to
the operations of operations.py there are

    const   data: a float or bool         input   data: index into the flat inputs
    loop    data: Region                  call    data: Call (of a Program)
    product data: ProductShape            item    data: index k of a result of a loop,
                                                  call or product

The operands of a product are the entries of its two or three matrices, row by row; its
items are the entries of the result.
"""

from __future__ import annotations

import hashlib
import marshal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from dyn_core.errors import RequireError
from dyn_core.numbers.operations import OPERATIONS
from dyn_core.numbers.product import ProductShape, unrolled_product
from dyn_core.problems import Port


class Node(NamedTuple):
    """One operation.

    Attributes:
        op: Name of the operation.
        operands: Indices of earlier nodes.
        data: Constant, index, Region, Call or ProductShape, by operation (listed in the
            module's docstring); None for operations of OPERATIONS.
    """

    op: str
    operands: tuple[int, ...] = ()
    data: Any = None


class Requirement(NamedTuple):
    """A condition (its node) that must hold, and the error, which names `item`."""

    condition: int
    error: type[RequireError]
    item: str


@dataclass(frozen=True)
class Region:
    """Body and condition of a loop of at most `max` rounds.

    Inputs of both Graphs are the `width` state values, then the values from outside of
    the loop that either of them uses.
    """

    width: int
    body: Graph
    cond: Graph
    max: int


class Callee(Protocol):
    """Interface of a Program as Graphs use it."""

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]

    def __call__(self, *arrays: np.ndarray) -> Any:
        """Return one output, or a tuple of several.

        Args:
            arrays: Inputs in order, (..., *port.shape) with common batch axes, which
                outputs have too.

        Raises:
            RowError: The state, or rows of the batch, have no result.
        """


@dataclass(frozen=True)
class Call:
    """A Program called inside a Graph: flat operands in, flat results out.

    Attributes:
        program: Program.
        width: Number of flat results.
    """

    program: Callee
    width: int

    def run(self, operands: Sequence[Any]) -> list[Any]:
        """Return the flat results for flat operands, in the order of the Ports.

        Args:
            operands: Floats for one state; or, for a batch, arrays (rows,) and shared
                floats.

        Returns:
            Floats for one state, else arrays (rows,).

        Raises:
            RowError: The Program has no result for the state, or for some rows.
        """
        arrays, start = [], 0
        batch = np.broadcast_shapes(*(np.shape(x) for x in operands))
        for port in self.program.inputs:
            part = operands[start : start + port.size]
            start += port.size
            columns = [np.broadcast_to(np.asarray(x, float), batch) for x in part]
            stacked = np.stack(columns, -1) if columns else np.zeros((*batch, 0))
            arrays.append(stacked.reshape((*batch, *port.shape)))
        results = self.program(*arrays)
        if len(self.program.outputs) == 1:
            results = (results,)
        flat: list[Any] = []
        for port, result in zip(self.program.outputs, results, strict=True):
            rows = np.asarray(result, float).reshape((*batch, port.size))
            flat += [rows[..., k] for k in range(port.size)]
        return [x if batch else float(x) for x in flat]


_OTHERS = ("const", "input", "loop", "call", "product", "item")


@dataclass
class Graph:
    """Operations in order, the flat outputs, and the requirements.

    Attributes:
        width: Number of flat inputs.
        nodes: Operations; operands precede the nodes that use them.
        outputs: Indices of the nodes of the flat outputs.
        requirements: Requirements in the order of the algorithm.
    """

    width: int
    nodes: list[Node] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    requirements: list[Requirement] = field(default_factory=list)

    def run(self, inputs: Sequence[Any]) -> tuple[list[Any], Any]:
        """Return (outputs, status) for flat inputs: floats, or columns of a batch.

        The status is 0, or the number (from 1) of the first requirement that failed;
        for a batch, an array with one per row. Outputs and a status that depend on no
        column are single numbers in a batch too. Outputs of a failed row are not
        changed to NaN.

        Args:
            inputs: Floats, or arrays (rows,) and shared floats; as many as `width`.

        Raises:
            RowError: A Program that the Graph calls has no result for the state, or for
                rows.
        """
        columns = any(isinstance(x, np.ndarray) for x in inputs)
        values: list[Any] = []
        status: Any = 0
        with np.errstate(all="ignore"):
            for node in self.nodes:
                operands = [values[k] for k in node.operands]
                values.append(_evaluate(node, operands, inputs, columns))
            for number, requirement in enumerate(self.requirements, 1):
                holds = values[requirement.condition]
                status = first_failure(status, holds, number)
        return [values[k] for k in self.outputs], status

    def check(self) -> None:
        """Raise ValueError if the Graph is not well formed.

        Checked are the operations, for those of OPERATIONS the number of operands, the
        indices of operands, inputs, outputs and conditions, and that loops have no
        requirements; the Graphs of loops are checked, too. Indices of items are not.
        """
        for number, node in enumerate(self.nodes):
            if any(not 0 <= k < number for k in node.operands):
                raise ValueError(f"node {number} reads a node that is not before it")
            known = node.op in OPERATIONS
            if known and len(node.operands) != OPERATIONS[node.op].arity:
                raise ValueError(f"node {number}: {node.op} has a wrong operand count")
            if not known and node.op not in _OTHERS:
                raise ValueError(f"node {number}: unknown operation '{node.op}'")
            if node.op == "input" and not 0 <= node.data < self.width:
                raise ValueError(f"node {number}: no input {node.data}")
            if node.op == "loop":
                for inner in (node.data.body, node.data.cond):
                    inner.check()
                    if inner.requirements:
                        raise ValueError(f"node {number}: requires inside a loop")
        ends = [*self.outputs, *(r.condition for r in self.requirements)]
        if any(not 0 <= k < len(self.nodes) for k in ends):
            raise ValueError("an output or requirement names a node that is not there")

    def calls_programs(self) -> bool:
        """Return whether the Graph calls Programs, inside loops too."""
        regions = [node.data for node in self.nodes if node.op == "loop"]
        inside = any(
            x.body.calls_programs() or x.cond.calls_programs() for x in regions
        )
        return inside or any(node.op == "call" for node in self.nodes)

    def counts(self) -> dict[str, int]:
        """Return the number of nodes by operation, without the nodes inside loops."""
        counts: dict[str, int] = {}
        for node in self.nodes:
            counts[node.op] = counts.get(node.op, 0) + 1
        return counts

    def digest(self) -> bytes:
        """Return a SHA-256 digest (32 bytes), equal in every process.

        Classes and items of requirements do not enter; their conditions do.

        Raises:
            ValueError: The Graph calls Programs.
        """
        return hashlib.sha256(marshal.dumps(self._plain(), 2)).digest()

    def _plain(self) -> tuple[Any, ...]:
        """Return (width, nodes, outputs, conditions) as nested tuples and lists.

        `conditions` are the nodes of the requirements; their errors and items are left
        out. Valid for Graphs without calls of Programs.
        """
        nodes = [tuple(node) for node in self.nodes]
        for k, node in enumerate(self.nodes):
            if node.op == "product":
                nodes[k] = (node.op, node.operands, tuple(node.data))
            if node.op == "loop":
                region = node.data
                inside = (region.width, region.max)
                graphs = (region.body._plain(), region.cond._plain())
                nodes[k] = (node.op, node.operands, (*inside, *graphs))
        conditions = [requirement.condition for requirement in self.requirements]
        return self.width, nodes, self.outputs, conditions

    def __str__(self) -> str:
        lines = []
        for number, (op, operands, data) in enumerate(self.nodes):
            shown = [f"%{k}" for k in operands]
            if op == "loop":
                shown.append(f"max={data.max}")
            elif data is not None and op != "call":
                shown.append(repr(data))
            lines.append(f"%{number} = {op} {', '.join(shown)}".rstrip())
            if op == "loop":
                for what in ("cond", "body"):
                    inner = str(getattr(data, what)).replace("\n", "\n    ")
                    lines.append(f"  {what}:\n    {inner}")
        for condition, error, item in self.requirements:
            lines.append(f"require %{condition}, {error.__name__}({item!r})")
        lines.append("return " + ", ".join(f"%{k}" for k in self.outputs))
        return "\n".join(lines)


def first_failure(status: Any, holds: Any, number: int) -> Any:
    """Return the status, with `number` where it is 0 and `holds` is False."""
    if isinstance(holds, np.ndarray) or isinstance(status, np.ndarray):
        return np.where((np.asarray(status) == 0) & ~np.asarray(holds), number, status)
    return number if status == 0 and not holds else status


def _evaluate(
    node: Node, operands: list[Any], inputs: Sequence[Any], columns: bool
) -> Any:
    """Return the value of one node; for a loop, call or product the list of its items.

    `columns`: whether values may be columns of a batch. A called Program without a
    result raises RowError.
    """
    if node.op == "const":
        return node.data
    if node.op == "input":
        return inputs[node.data]
    if node.op == "item":
        return operands[0][node.data]
    if node.op == "loop":
        return run_loop(node.data, operands, lambda graph, x: graph.run(x)[0])
    if node.op == "call":
        return node.data.run(operands)
    if node.op == "product":
        return run_product(node.data, operands)
    operation = OPERATIONS[node.op]
    return (operation.on_column if columns else operation.on_float)(*operands)


def run_product(shape: ProductShape, operands: Sequence[Any]) -> list[Any]:
    """Return the entries of a product of matrices, row by row, as floats or columns.

    Operands are the entries of A, of B and, if shape.onto, of C, each row by row.
    """
    a, b, c = shape.split(operands)
    return unrolled_product(a, b, c, shape)


def run_loop(
    region: Region,
    operands: Sequence[Any],
    run: Callable[[Graph, Sequence[Any]], Sequence[Any]],
) -> list[Any]:
    """Return the final state of a loop on floats or columns.

    It ends when the condition fails, at the latest after region.max rounds. In a batch
    each row keeps its state from the round in which its own condition fails. Operands
    are the state, then values from outside; `run` returns the flat outputs of a Graph.
    """
    state, captured = list(operands[: region.width]), list(operands[region.width :])
    active: Any = True
    for _ in range(region.max):
        go_on = run(region.cond, [*state, *captured])[0]
        active = active & go_on if isinstance(go_on, np.ndarray) else active and go_on
        if not np.any(active):
            break
        following = run(region.body, [*state, *captured])
        if isinstance(active, np.ndarray):
            state = [
                np.where(active, a, b) for a, b in zip(following, state, strict=True)
            ]
        else:
            state = list(following)
    return state
