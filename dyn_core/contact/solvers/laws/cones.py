"""Cones and bounds of a block, in the subset of machine code."""

from __future__ import annotations

import math

from dyn_core.contact.problem.projections import ROLLING, TORSION, share
from dyn_core.contact.problem.rows import BOX, CONTACT, UNILATERAL, Rows
from dyn_core.engines.machine_code import machine_code


@machine_code
def row_coefficient(rows: Rows, k: int, row: int) -> float:
    """Return the friction coefficient of a tangent row of block k, a contact.

    It is of sliding in rows 1 and 2, of torsion in row 3, of rolling in rows 4 and 5.
    """
    if row < TORSION:
        return rows.mu[k, 0]
    return rows.mu[k, 1] if row < ROLLING else rows.mu[k, 2]


@machine_code
def cone_coefficient(rows: Rows, k: int) -> float:
    """Return the largest coefficient c of friction of block k, a contact.

    Impulses y over `row_weight` lie in the circular cone |y_T| <= c y_n. Without
    tangent rows c is 0.
    """
    c = rows.mu[k, 0] if rows.count[k] > 1 else 0.0
    if rows.count[k] > TORSION:
        c = max(c, rows.mu[k, 1])
    if rows.count[k] > ROLLING:
        c = max(c, rows.mu[k, 2])
    return c


@machine_code
def row_weight(rows: Rows, k: int, row: int, c: float) -> float:
    """Return the weight T of a row of block k: its coefficient over c, 0 if c is 0.

    T is 1 for the normal row, and in a contact with sliding friction alone.
    """
    if row == 0 or rows.count[k] <= TORSION:
        return 1.0
    return share(row_coefficient(rows, k, row), c)


@machine_code
def is_cone(rows: Rows, k: int) -> bool:
    """Return whether block k is a contact with tangent rows, besides the normal row."""
    return rows.kind[k] == CONTACT and rows.count[k] > 1


@machine_code
def row_bounds(rows: Rows, k: int, row: int) -> tuple[float, float]:
    """Return the bounds (lo, hi) of the impulse of row `row` within block k, no cone.

    They are infinite for bilateral and prescribed blocks, (0, inf) for unilateral
    blocks and frictionless contacts, and rows.lo, rows.hi for boxes [N·s | N·m·s].
    """
    kind = rows.kind[k]
    if kind < UNILATERAL:
        return -math.inf, math.inf
    if kind < BOX:
        return 0.0, math.inf
    return rows.lo[rows.start[k] + row], rows.hi[rows.start[k] + row]
