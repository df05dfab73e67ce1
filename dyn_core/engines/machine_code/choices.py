"""Functions of traced numbers that the subset has, too: where, minimum, maximum.

So a formula can be an algorithm's, and part of machine code.
"""

from __future__ import annotations

import ast

from dyn_core.engines.machine_code.expressions import Expressions, TypedValue
from dyn_core.engines.machine_code.types import BOOL, FLOAT, INT
from dyn_core.numbers.scalar import maximum, minimum, where


def write_where(writer: Expressions, node: ast.Call) -> TypedValue:
    """Write `where(condition, a, b)`; both are evaluated."""
    condition = writer.number(node.args[0], BOOL).name
    a, b = (writer.number(x) for x in node.args[1:])
    if a.type != b.type:
        what = f"'{ast.unparse(node)}' is {a.type} or {b.type}"
        writer.fail(node, what, "one type, such as 0.0 for 0 among floats")
    llvm = a.type.llvm  # type: ignore[union-attr]
    code = f"select i1 {condition}, {llvm} {a.name}, {llvm} {b.name}"
    return TypedValue(a.type, (writer.new(code),))


def write_minimum(writer: Expressions, node: ast.Call) -> TypedValue:
    """Write `minimum(a, b)` of floats: b where neither is smaller."""
    a, b, smaller = _compared(writer, node)
    code = f"select i1 {smaller}, double {a}, double {b}"
    return TypedValue(FLOAT, (writer.new(code),))


def write_maximum(writer: Expressions, node: ast.Call) -> TypedValue:
    """Write `maximum(a, b)` of floats: a where neither is larger."""
    a, b, smaller = _compared(writer, node)
    code = f"select i1 {smaller}, double {b}, double {a}"
    return TypedValue(FLOAT, (writer.new(code),))


def _compared(writer: Expressions, node: ast.Call) -> tuple[str, str, str]:
    """Return two floats, and whether the first is smaller."""
    a, b = (writer.convert(writer.number(x, INT, FLOAT)).name for x in node.args)
    return a, b, writer.new(f"fcmp olt double {a}, {b}")


CHOICES = {
    where: (3, 3, write_where),
    minimum: (2, 2, write_minimum),
    maximum: (2, 2, write_maximum),
}
