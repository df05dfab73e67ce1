"""Cones and bounds of a block, in the subset of machine code."""

from __future__ import annotations

import math

from dyn_core.contact.problem.projections import ROLLING, TORSION, share
from dyn_core.contact.problem.rows import BOX, CONTACT, UNILATERAL, Rows
from dyn_core.engines.machine_code import machine_code


@machine_code
def row_coefficient(rows: Rows, k: int, row: int) -> float:
    """Return the coefficient of friction of a tangent row, 1 or more, of block k."""
    if row < TORSION:
        return rows.mu[k, 0]
    return rows.mu[k, 1] if row < ROLLING else rows.mu[k, 2]


@machine_code
def cone_coefficient(rows: Rows, k: int) -> float:
    """Return the largest coefficient of friction of a contact, with which T y = lambda
    lies in a circular cone.
    """
    c = rows.mu[k, 0] if rows.count[k] > 1 else 0.0
    if rows.count[k] > TORSION:
        c = max(c, rows.mu[k, 1])
    if rows.count[k] > ROLLING:
        c = max(c, rows.mu[k, 2])
    return c


@machine_code
def row_weight(rows: Rows, k: int, row: int, c: float) -> float:
    """Return the weight T of a row of block k, a contact with largest coefficient c."""
    if row == 0 or rows.count[k] <= TORSION:
        return 1.0
    return share(row_coefficient(rows, k, row), c)


@machine_code
def is_cone(rows: Rows, k: int) -> bool:
    """Return whether a block has a normal row and tangents."""
    return rows.kind[k] == CONTACT and rows.count[k] > 1


@machine_code
def row_bounds(rows: Rows, k: int, row: int) -> tuple[float, float]:
    """Return the bounds of the impulse of a row of a block that is no cone."""
    kind = rows.kind[k]
    if kind < UNILATERAL:
        return -math.inf, math.inf
    if kind < BOX:
        return 0.0, math.inf
    return rows.lo[rows.start[k] + row], rows.hi[rows.start[k] + row]
