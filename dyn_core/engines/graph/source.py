"""Graph to straight-line Python: the operations of Graph.run without its loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dyn_core.engines.graph.graph import (
    Graph,
    Node,
    first_failure,
    run_loop,
    run_product,
)
from dyn_core.numbers.operations import OPERATIONS

_INFIX = {
    "add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "neg": "-{0}",
    "lt": "{0} < {1}", "le": "{0} <= {1}",
}  # fmt: skip
_ON_FLOATS = {**_INFIX, "where": "{1} if {0} else {2}", "not": "not {0}"}
_ON_COLUMNS = {**_INFIX, "div": "{0} / {1}"}

Runner = Callable[[Sequence[Any]], tuple[list[Any], Any]]


def compile_graph(graph: Graph, columns: bool) -> Runner:
    """Return a function equal to `graph.run`, on floats or on columns of a batch.

    With columns, NumPy's floating-point warnings are off during a call.
    """
    templates = _ON_COLUMNS if columns else _ON_FLOATS
    names: dict[str, Any] = {"inf": float("inf"), "nan": float("nan")}
    names["first_failure"] = first_failure
    lines = ["def kernel(x):"]
    for k, node in enumerate(graph.nodes):
        lines.append(f"    v{k} = {_expression(k, node, templates, names, columns)}")
    status = "0"
    for number, requirement in enumerate(graph.requirements, 1):
        lines.append(
            f"    s = first_failure({status}, v{requirement.condition}, {number})"
        )
        status = "s"
    returned = ", ".join(f"v{k}" for k in graph.outputs)
    lines.append(f"    return [{returned}], {status}")
    exec(compile("\n".join(lines), "<graph>", "exec"), names)  # our own source only
    kernel = names["kernel"]
    if not columns:
        return kernel

    def quiet(x: Sequence[Any]) -> tuple[list[Any], Any]:
        with np.errstate(all="ignore"):
            return kernel(x)

    return quiet


def _expression(
    k: int, node: Node, templates: dict[str, str], names: dict[str, Any], columns: bool
) -> str:
    """Return the source of the Python expression of one node.

    It names the value of node k "vk", and the list of flat inputs "x". Operations
    without a template, by operation, become function calls; called functions are added
    to `names`, the globals: "loopK", "callK", "productK", or the operation with "_"
    behind it.
    """
    operands = [f"v{x}" for x in node.operands]
    if node.op == "const":
        return repr(node.data)
    if node.op == "input":
        return f"x[{node.data}]"
    if node.op == "item":
        return f"{operands[0]}[{node.data}]"
    if node.op in templates:
        return templates[node.op].format(*operands)
    if node.op == "loop":
        region, compiled = node.data, {}
        for graph in (region.body, region.cond):
            compiled[id(graph)] = compile_graph(graph, columns)
        names[f"loop{k}"] = lambda *x: run_loop(
            region, x, lambda graph, y: compiled[id(graph)](y)[0]
        )
        return f"loop{k}({', '.join(operands)})"
    if node.op == "call":
        names[f"call{k}"] = node.data.run
        return f"call{k}([{', '.join(operands)}])"
    if node.op == "product":
        names[f"product{k}"] = lambda *x: run_product(node.data, x)
        return f"product{k}({', '.join(operands)})"
    operation = OPERATIONS[node.op]
    names[node.op + "_"] = operation.on_column if columns else operation.on_float
    return f"{node.op}_({', '.join(operands)})"
