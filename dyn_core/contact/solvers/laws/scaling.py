"""Scaling of a problem to unit responses and circular cones.

    impulse = size T x,   Y <- T Y,   b <- T b / size,   R <- T² R
    bounds <- bounds / (size T)

size is the unit of velocities; Scaled.T is size T. Laws of a block are FREE (0),
INTERVALS (1), CONE (2) and FROZEN (3).
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
OPENING = 1e-6  # smallest unit of velocities, relative to the largest, opening or not


class Scaled(NamedTuple):
    """A scaled problem: the rows of a cone share one unit, other rows have their own.

    Attributes:
        law: FREE (no bound), INTERVALS (each row between its bounds), CONE, or FROZEN
            (normal impulse >= 0, friction below a fixed bound), (blocks,).
        c: Coefficient of the circular cone, or bound of FROZEN friction, (blocks,).
        b, R: Free velocity and compliance, (rows,) [1].
        T: Impulse per scaled impulse, (rows,) [N·s | N·m·s]; zero for a row without
            friction in a cone with friction in other rows.
        weight: Velocity per scaled velocity, relative to the largest free velocity; all
            rows of a cone have that of its normal, (rows,). Its product with T is the
            same in the first rows of all blocks.
        least: Floor of the largest scaled impulse in relative tolerances: 1 for a
            problem at rest, else 0, (1,).
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
    """Fill the scaled problem; return the largest entry of scaled.weight.

    The unit of velocities is the largest scaled free velocity; normals of contacts that
    open count a millionth (OPENING). If all free velocities are below `rows.rest`, the
    problem is at rest, and the unit is at least `rows.rest` times the largest scale of
    a row. A unit of zero becomes 1.

    Args:
        rows: Problem.
        blocks: Number of blocks.
        scaled: Scaled problem; overwritten.
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
            # A far contact opens at gap / step, which says nothing about near ones.
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
    """Return 1 / sqrt(response), the factor to a unit response; 1 if it is <= 0."""
    return 1.0 / math.sqrt(response if response > 0.0 else 1.0)


@machine_code
def rescale_normal(rows: Rows, scaled: Scaled, k: int) -> float:
    """Scale the normal of block k, no CONE any more, to a unit response.

    In the common unit of a cone a small response of the normal is lost beside large
    ones of the others, and Newton's method ends far from the solution. Returns T's
    factor.
    """
    first, start = rows.start[k], rows.y_start[k]
    response = scaled.R[first]
    for j in range(start, start + rows.support_count[k]):
        response += scaled.y[j] * scaled.y[j]
    unit = _unit(response)
    for j in range(start, start + rows.support_count[k]):
        scaled.y[j] *= unit
    scaled.b[first] *= unit
    scaled.R[first] *= unit * unit
    scaled.T[first] *= unit
    scaled.weight[first] /= unit
    return unit


@machine_code
def to_scaled(rows: Rows, blocks: int, scaled: Scaled, x: FloatArray) -> None:
    """Set x to the scaled rows.impulse, projected on bounds and cones; 0 where T is."""
    for k in range(blocks):
        for row in range(rows.count[k]):
            i = rows.start[k] + row
            T = scaled.T[i]
            x[i] = rows.impulse[i] / T if T > 0.0 else 0.0
        project(rows, scaled, k, x)


@machine_code
def from_scaled(rows: Rows, blocks: int, scaled: Scaled, x: FloatArray) -> None:
    """Set rows.impulse to T x."""
    for k in range(blocks):
        for row in range(rows.count[k]):
            i = rows.start[k] + row
            rows.impulse[i] = scaled.T[i] * x[i]


@machine_code
def project(rows: Rows, scaled: Scaled, k: int, x: FloatArray) -> None:
    """Project the scaled impulses of block k on its bounds or its cone, in place.

    Blocks with the law FREE or FROZEN stay unchanged.

    Args:
        rows, scaled: Problem, scaled problem.
        k: Index of the block.
        x: Scaled impulses of all rows, (rows,); changed in the rows of the block.
    """
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
    """Return the norm of a block's tangent entries x[first + 1 : first + count]."""
    squares = 0.0
    for i in range(first + 1, first + count):
        squares += x[i] * x[i]
    return math.sqrt(squares)
