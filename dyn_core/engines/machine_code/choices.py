"""LLVM IR of where, minimum, maximum, any_lane and decided_by.

The first three are functions of traced numbers too, so one formula serves algorithms
and machine code.
"""

from __future__ import annotations

import ast

from dyn_core.engines.machine_code.expressions import Expressions, TypedValue
from dyn_core.engines.machine_code.language import any_lane, decided_by
from dyn_core.engines.machine_code.types import BOOL, FLOAT, INT, MASK
from dyn_core.numbers.scalar import maximum, minimum, where


def write_where(writer: Expressions, node: ast.Call) -> TypedValue:
    """Return the value of `where(condition, a, b)`; both are evaluated.

    TraceError if a and b have different types.
    """
    condition = writer.by_lane(node.args[0])
    if condition.type not in (BOOL, MASK):
        writer.number(node.args[0], BOOL)  # raises the error
    a, b = (writer.number(x) for x in node.args[1:])
    if a.type != b.type:
        what = f"'{ast.unparse(node)}' is {a.type} or {b.type}"
        writer.fail(node, what, "one type, such as 0.0 for 0 among floats")
    return writer.select(condition, a, b)


def write_minimum(writer: Expressions, node: ast.Call) -> TypedValue:
    """Return the value of `minimum(a, b)` of floats: b where neither is smaller."""
    a, b, smaller = _compared(writer, node)
    return writer.select(smaller, a, b)


def write_maximum(writer: Expressions, node: ast.Call) -> TypedValue:
    """Return the value of `maximum(a, b)` of floats: a where neither is larger."""
    a, b, smaller = _compared(writer, node)
    return writer.select(smaller, b, a)


def _compared(
    writer: Expressions, node: ast.Call
) -> tuple[TypedValue, TypedValue, TypedValue]:
    """Return the two arguments as floats, and the condition a < b."""
    a, b = (writer.convert(writer.number(x, INT, FLOAT)) for x in node.args)
    smaller = writer.condition(f"fcmp olt {writer.float} {a.name}, {b.name}")
    return a, b, smaller


def write_any(writer: Expressions, node: ast.Call) -> TypedValue:
    """Return the value of `any_lane(condition)`; TraceError if it is no condition."""
    condition = writer.by_lane(node.args[0])
    if condition.type is not MASK:
        return writer.number(node.args[0], BOOL)
    return writer.any_of(condition)


def write_decided(writer: Expressions, node: ast.Call) -> TypedValue:
    """Return the value of `decided_by(condition, counts)`.

    Lanes vote only if both are masks. TraceError if `condition` is no condition.
    """
    condition, counts = map(writer.by_lane, node.args)
    if condition.type is MASK and counts.type is MASK:
        return writer.vote(condition, counts)
    if condition.type is BOOL or condition.type is MASK:
        return condition
    return writer.number(node.args[0], BOOL)


# function: minimum and maximum number of arguments, writer.
CHOICES = {
    decided_by: (2, 2, write_decided),
    any_lane: (1, 1, write_any),
    where: (3, 3, write_where),
    minimum: (2, 2, write_minimum),
    maximum: (2, 2, write_maximum),
}
