"""Cones and bounds of a block, in the subset of machine code."""

from __future__ import annotations

import math

from dyn_core.contact.problem.rows import CONTACT, Rows
from dyn_core.engines.machine_code import machine_code
from dyn_core.numbers.scalar import where


@machine_code
def near_cone(c: float, n: float, size: float) -> tuple[float, float]:
    """Return the point of the cone |t| <= c n nearest to (n, t): n, and a factor of t.

    Args:
        c: Coefficient of friction.
        n, size: Normal entry, and length of the tangent ones.

    Source: LCP-12.
    """
    edge = max((n + c * size) / (1.0 + c * c), 0.0)
    factor = c * edge / (size if size > 0.0 else 1.0)
    near, part = where(size <= c * n, n, edge), where(size <= c * n, 1.0, factor)
    below = -n
    return where(c * size <= below, 0.0, near), where(c * size <= below, 0.0, part)


@machine_code
def near_bounded(bound: float, n: float, size: float) -> tuple[float, float]:
    """Return the point of n >= 0, |t| <= bound nearest to (n, t): n, a factor of t."""
    part = bound / (size if size > 0.0 else 1.0)
    return max(n, 0.0), where(size > bound, part, 1.0)


@machine_code
def row_coefficient(rows: Rows, k: int, row: int) -> float:
    """Return the coefficient of friction of a tangent row, 1 or more, of block k."""
    if row < 3:
        return rows.mu[k, 0]
    return rows.mu[k, 1] if row == 3 else rows.mu[k, 2]


@machine_code
def cone_coefficient(rows: Rows, k: int) -> float:
    """Return the largest coefficient of friction of a contact, with which T y = lambda
    lies in a circular cone.
    """
    c = rows.mu[k, 0] if rows.count[k] > 1 else 0.0
    if rows.count[k] > 3:
        c = max(c, rows.mu[k, 1])
    if rows.count[k] > 4:
        c = max(c, rows.mu[k, 2])
    return c


@machine_code
def row_weight(rows: Rows, k: int, row: int, c: float) -> float:
    """Return the weight T of a row of block k, a contact with largest coefficient c."""
    if row == 0 or rows.count[k] < 4:
        return 1.0
    return row_coefficient(rows, k, row) / (c if c > 0.0 else 1.0)


@machine_code
def is_cone(rows: Rows, k: int) -> bool:
    """Return whether a block has a normal row and tangents."""
    return rows.kind[k] == CONTACT and rows.count[k] > 1


@machine_code
def row_bounds(rows: Rows, k: int, row: int) -> tuple[float, float]:
    """Return the bounds of the impulse of a row of a block that is no cone."""
    kind = rows.kind[k]
    if kind < 2:
        return -math.inf, math.inf
    if kind < 4:
        return 0.0, math.inf
    return rows.lo[rows.start[k] + row], rows.hi[rows.start[k] + row]
