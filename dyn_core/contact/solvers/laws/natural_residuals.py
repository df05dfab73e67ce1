"""Residuals of scaled impulses, and certificates that a problem is infeasible.

In the subset of machine code.
"""

from __future__ import annotations

import math

from dyn_core.contact.problem.projections import HUGE, near_bounded, near_cone
from dyn_core.contact.problem.rows import Rows
from dyn_core.contact.solvers.laws.scaling import (
    CONE,
    FROZEN,
    INTERVALS,
    Scaled,
    tangent_length,
)
from dyn_core.contact.solvers.matrices.row_products import add_transposed, multiply
from dyn_core.engines.machine_code import FloatArray, machine_code

LARGE = 1e3  # scaled impulses above which unbounded growth is tested
ZERO = 1e-6  # entries of a direction that count as zero, relative to its largest
BEYOND = 1e9  # scaled impulses that no solution reaches


@machine_code
def respond_to(
    rows: Rows, blocks: int, m: int, nv: int, scaled: Scaled, x: FloatArray,
    z: FloatArray, p: FloatArray, minus_u: FloatArray, s: FloatArray, exact: bool,
) -> None:  # fmt: skip
    """Compute the velocities and De Saxce's correction s of scaled impulses x.

    z becomes Y.T x, p Y z, and minus_u -(p + R x + b + s). s is zero except for normals
    of cones, and in all rows if not `exact` (Coulomb's law).
    """
    for v in range(nv):
        z[v] = 0.0
    add_transposed(rows, rows.support, scaled.y, blocks, x, z)
    multiply(rows, rows.support, scaled.y, blocks, z, p)
    for i in range(m):
        minus_u[i] = -(p[i] + scaled.R[i] * x[i] + scaled.b[i])
        s[i] = 0.0
    for k in range(blocks):
        if exact and scaled.law[k] == CONE:
            first = rows.start[k]
            s[first] = scaled.c[k] * tangent_length(first, rows.count[k], minus_u)
            minus_u[first] -= s[first]


@machine_code
def natural_step(
    rows: Rows, blocks: int, scaled: Scaled, y: FloatArray, z: FloatArray, exact: bool
) -> float:
    """Return the largest entry of |Pi(y + z) - y|, relative to the free velocities.

    The projection Pi is the law of each block. Coulomb's law adds the step of the
    normal entry alone, max(0, y_n - u_n) - y_n. The relaxation and bounded friction add
    the work that a block generates: where one coefficient of a block is much smaller
    than another, the projection hides the velocity of its entry.

    Args:
        rows, blocks, scaled: Problem, its number of blocks, scaled problem.
        y: Scaled impulses, (rows,).
        z: Minus the scaled velocities with De Saxce's correction, (rows,).
        exact: True: Coulomb's law; False: its convex relaxation.

    Returns:
        The largest entry times its scaled.weight [1].
    """
    worst = 0.0
    for k in range(blocks):
        first, count = rows.start[k], rows.count[k]
        if scaled.law[k] == CONE:
            squares = 0.0
            for i in range(first + 1, first + count):
                squares += (y[i] + z[i]) * (y[i] + z[i])
            n, factor = near_cone(scaled.c[k], y[first] + z[first], math.sqrt(squares))
            worst = max(worst, scaled.weight[first] * abs(n - y[first]))
            if exact:
                s = scaled.c[k] * tangent_length(first, count, z)
                alone = max(y[first] + z[first] + s, 0.0) - y[first]
                worst = max(worst, scaled.weight[first] * abs(alone))
            for i in range(first + 1, first + count):
                change = abs(factor * (y[i] + z[i]) - y[i])
                worst = max(worst, scaled.weight[i] * change)
            if not exact:
                worst = max(worst, _work(rows, scaled, k, y, z))
        elif scaled.law[k] == FROZEN:
            worst = max(worst, _bounded_step(rows, scaled, k, y, z))
        elif scaled.law[k] == INTERVALS:
            for i in range(first, first + count):
                near = max(scaled.lo[i], min(y[i] + z[i], scaled.hi[i]))
                worst = max(worst, scaled.weight[i] * abs(near - y[i]))
        else:
            for i in range(first, first + count):
                worst = max(worst, scaled.weight[i] * abs(z[i]))
    return worst


@machine_code
def _bounded_step(
    rows: Rows, scaled: Scaled, k: int, y: FloatArray, z: FloatArray
) -> float:
    """Return the `natural_step` of block k, whose friction has a fixed bound.

    It is the largest weighted entry of |Pi(y + z) - y| or, if larger, the relative work
    that the block generates [1]. z are minus the scaled velocities.
    """
    first, squares = rows.start[k], 0.0
    last = first + rows.count[k]
    for i in range(first + 1, last):
        squares += (y[i] + z[i]) * (y[i] + z[i])
    n, factor = near_bounded(scaled.c[k], y[first] + z[first], math.sqrt(squares))
    worst = scaled.weight[first] * abs(n - y[first])
    for i in range(first + 1, last):
        change = abs(factor * (y[i] + z[i]) - y[i])
        worst = max(worst, scaled.weight[i] * change)
    return max(worst, _work(rows, scaled, k, y, z))


@machine_code
def _work(rows: Rows, scaled: Scaled, k: int, y: FloatArray, z: FloatArray) -> float:
    """Return the relative work that block k generates [1]; 0 if it dissipates energy.

        max(0, lambda . u) / (|lambda| + speed / response)

    This is the length of a step of impulses, multiplied by `weight` like the other
    terms of `natural_step`. speed is the scale of velocities of the problem, response
    the one of the block; z are minus the scaled velocities.
    """
    first, work, squares = rows.start[k], 0.0, 0.0
    for i in range(first, first + rows.count[k]):
        impulse = scaled.T[i] * y[i]
        squares += impulse * impulse
        work -= y[i] * z[i]
    # The unit of a cone's rows is that of its tangents; weight T of all normals is one
    # number, also where FROZEN gave them units of their own.
    weight = scaled.weight[first + rows.count[k] - 1]
    size = weight * weight * math.sqrt(squares)
    size /= scaled.weight[first] * scaled.T[first]
    return weight * weight * max(work, 0.0) / (1.0 + size)


@machine_code
def proves_infeasible(
    rows: Rows, blocks: int, m: int, nv: int, scaled: Scaled, d: FloatArray,
    z: FloatArray, q: FloatArray, exact: bool,
) -> bool:  # fmt: skip
    """Return whether a direction d of growing impulses proves a problem infeasible.

        (Y Y.T + R) d = 0,   b . d < 0,   d in all cones, and towards no finite bound

    contradict d . u >= 0, which the law requires; Coulomb's law (`exact`) requires it
    only if d has no tangent entries. (Y Y.T + R) d is zero up to rounding: the proof is
    that no scaled impulses up to 1e9 are a solution.
    """
    largest, power = 0.0, 0.0
    for i in range(m):
        largest = max(largest, abs(d[i]))
        power += scaled.b[i] * d[i]
    limit = ZERO * largest
    # b . d must be negative beyond rounding; NaN or inf prove nothing.
    if not power < -1e-9 * largest or not largest < math.inf:
        return False
    for k in range(blocks):
        first, count = rows.start[k], rows.count[k]
        if scaled.law[k] >= CONE:
            size = tangent_length(first, count, d)
            flat = exact or scaled.law[k] == FROZEN
            if d[first] < -limit or size > limit + (
                0.0 if flat else scaled.c[k] * d[first]
            ):
                return False
        if scaled.law[k] == INTERVALS:
            for i in range(first, first + count):
                if scaled.lo[i] > -HUGE and d[i] < -limit:
                    return False
                if scaled.hi[i] < HUGE and d[i] > limit:
                    return False
    for v in range(nv):
        z[v] = 0.0
    add_transposed(rows, rows.support, scaled.y, blocks, d, z)
    multiply(rows, rows.support, scaled.y, blocks, z, q)
    moved = 0.0
    for i in range(m):
        moved += abs(q[i] + scaled.R[i] * d[i])
    return moved * BEYOND < -power
