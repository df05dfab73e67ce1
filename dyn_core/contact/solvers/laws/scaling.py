"""A problem in the units of its blocks: responses of one, round cones.

impulse = T x,   Y <- T Y,   b <- T b / size,   R <- T² R,   bounds <- bounds / T
"""

from __future__ import annotations

import math
from typing import NamedTuple

from dyn_core.contact.problem.projections import HUGE, near_cone
from dyn_core.contact.problem.rows import CONTACT, Rows
from dyn_core.contact.solvers.laws.cones import (
    cone_coefficient,
    is_cone,
    row_bounds,
    row_weight,
)
from dyn_core.contact.solvers.matrices.row_products import row_response
from dyn_core.engines.machine_code import FloatArray, IntArray, machine_code
from dyn_core.numbers.scalar import where

FREE, INTERVALS, CONE, FROZEN = range(4)  # laws of a block; from CONE on with tangents
OPENING = 1e-6  # scale of a problem in which contacts only open, of their velocities


class Scaled(NamedTuple):
    """The scaled problem: rows of a cone share one unit, other rows have their own.

    Attributes:
        law: FREE, INTERVALS (each row between its bounds), CONE or FROZEN (the normal
            presses, friction has a bound of its own), (blocks,).
        c: Coefficient of the circular cone, or bound of friction, (blocks,).
        y: Values of Y in the order of Rows.y.
        b, R: Free velocity and compliance, (rows,) [1].
        lo, hi: Bounds of the rows of INTERVALS, (rows,) [1].
        T: Impulse of a scaled impulse of one, (rows,) [N·s | N·m·s]; zero where a row
            has no coefficient of friction while others of its block do.
        weight: Velocity of a scaled velocity of one, relative to the largest free
            velocity of the problem; of a cone that of its normal row, (rows,).
        least: Scaled impulse below which none counts: 1 at rest, else 0, (1,).
    """

    law: IntArray
    c: FloatArray
    y: FloatArray
    b: FloatArray
    R: FloatArray
    lo: FloatArray
    hi: FloatArray
    T: FloatArray
    weight: FloatArray
    least: FloatArray


@machine_code
def scale(rows: Rows, blocks: int, scaled: Scaled) -> float:
    """Fill the scaled problem; return the largest of its weights of velocities.

    Its unit is the largest velocity but of normals that open: far contacts, at a speed
    of their gap over the step, do not say how fast the near ones are. Where all are
    slower than `rows.rest`, the problem is at rest, and that is its unit.

    Args:
        rows: Problem.
        blocks: Number of blocks.
        scaled: Filled.
    """
    size, opening, speed, heaviest, longest = 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(blocks):
        cone = is_cone(rows, k)
        c = cone_coefficient(rows, k) if cone else 0.0
        scaled.c[k] = c
        largest, free = 0.0, not cone
        for row in range(rows.count[k]):
            i = rows.start[k] + row
            w = row_weight(rows, k, row, c) if cone else 1.0
            response = w * w * row_response(rows, k, row)
            largest = max(largest, response)
            scaled.T[i] = w
            if not cone:
                scaled.T[i] = _unit(response)
                lo, hi = row_bounds(rows, k, row)
                free = free and lo < -HUGE and hi > HUGE
        scaled.law[k] = CONE if cone else (FREE if free else INTERVALS)
        unit = _unit(largest)
        width = rows.support_count[k]
        for row in range(rows.count[k]):
            i = rows.start[k] + row
            if cone:
                scaled.T[i] *= unit
            T = scaled.T[i]
            longest = max(longest, T)
            a = rows.y_start[k] + row * width
            for j in range(width):
                scaled.y[a + j] = T * rows.y[a + j]
            scaled.b[i] = T * rows.b[i]
            scaled.R[i] = T * T * rows.compliance[i]
            speed = max(speed, abs(rows.b[i]))
            opening = max(opening, abs(scaled.b[i]))
            velocity = abs(scaled.b[i])
            if rows.kind[k] == CONTACT and row == 0:
                velocity = where(scaled.b[i] > 0.0, 0.0, velocity)
            size = max(size, velocity)
    size = max(size, OPENING * opening)
    rests = speed < rows.rest[0]
    size = where(rests, max(size, longest * rows.rest[0]), size)
    speed = where(rests, rows.rest[0], speed)
    scaled.least[0] = where(rests, 1.0, 0.0)
    speed = speed if speed > 0.0 else 1.0
    size = size if size > 0.0 else 1.0
    for k in range(blocks):
        for row in range(rows.count[k]):
            i = rows.start[k] + row
            unit = scaled.T[rows.start[k] if scaled.law[k] == CONE else i]
            scaled.weight[i] = size / (unit * speed)
            heaviest = max(heaviest, scaled.weight[i])
        for row in range(rows.count[k]):
            i = rows.start[k] + row
            scaled.b[i] /= size
            scaled.T[i] *= size
            if scaled.law[k] == INTERVALS:
                lo, hi = row_bounds(rows, k, row)
                scaled.lo[i] = lo / scaled.T[i]
                scaled.hi[i] = hi / scaled.T[i]
    return heaviest


@machine_code
def _unit(response: float) -> float:
    """Return the factor that makes a response one; of none, one."""
    return 1.0 / math.sqrt(response if response > 0.0 else 1.0)


@machine_code
def to_scaled(rows: Rows, blocks: int, scaled: Scaled, x: FloatArray) -> None:
    """Set x to the scaled impulses, within their bounds and cones."""
    for k in range(blocks):
        for row in range(rows.count[k]):
            i = rows.start[k] + row
            T = scaled.T[i]
            x[i] = rows.impulse[i] / T if T > 0.0 else 0.0
        project(rows, scaled, k, x)


@machine_code
def from_scaled(rows: Rows, blocks: int, scaled: Scaled, x: FloatArray) -> None:
    """Set the impulses to those of the scaled ones."""
    for k in range(blocks):
        for row in range(rows.count[k]):
            i = rows.start[k] + row
            rows.impulse[i] = scaled.T[i] * x[i]


@machine_code
def project(rows: Rows, scaled: Scaled, k: int, x: FloatArray) -> None:
    """Move the scaled impulses of block k to the nearest that its law allows."""
    first, count = rows.start[k], rows.count[k]
    if scaled.law[k] == INTERVALS:
        for i in range(first, first + count):
            x[i] = max(scaled.lo[i], min(x[i], scaled.hi[i]))
    if scaled.law[k] == CONE:
        size = tangent_length(first, count, x)
        normal, factor = near_cone(scaled.c[k], x[first], size)
        x[first] = normal
        for i in range(first + 1, first + count):
            x[i] *= factor


@machine_code
def tangent_length(first: int, count: int, x: FloatArray) -> float:
    """Return the length of the tangent entries of a block's rows of x."""
    squares = 0.0
    for i in range(first + 1, first + count):
        squares += x[i] * x[i]
    return math.sqrt(squares)
