"""How far scaled impulses are from their laws, and proofs that there are none.

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

LARGE = 1e3  # scaled impulses that are suspected to grow without bound
ZERO = 1e-6  # relative to the largest entry of a direction
BEYOND = 1e9  # scaled impulses that no problem asks for


@machine_code
def respond_to(
    rows: Rows, blocks: int, m: int, nv: int, scaled: Scaled, x: FloatArray,
    z: FloatArray, p: FloatArray, minus_u: FloatArray, s: FloatArray, exact: bool,
) -> None:  # fmt: skip
    """Compute what scaled impulses x do.

    Args:
        rows, blocks, m, nv, scaled: Problem.
        x: Scaled impulses, (rows,).
        z: Set to Y.T x, (nv,).
        p: Set to Y z, (rows,).
        minus_u: Set to -(p + R x + b + s), (rows,).
        s: Set to De Saxce's correction, (rows,); zero if not `exact`.
        exact: Whether the law is Coulomb's, or its convex relaxation.
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
    """Return the largest entry of Pi(y + z) - y, weighted as `law` is.

    The multiplier z is minus the velocity with De Saxce's correction. Of Coulomb's law
    the step of the normal entry alone counts, too: max(0, y_n - u_n) - y_n. Of the
    relaxation, and of bounded friction, the work that a block makes does: a small
    coefficient beside a large one hides the velocity of its entry, but not in s.
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
    """Return the entry of block k, whose friction is bounded, in `natural_step`."""
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
    """Return the work that block k makes, as the step of an impulse, weighted likewise.

    max(0, lambda . u) / (|lambda| + speed / response)
    """
    first, work, squares = rows.start[k], 0.0, 0.0
    for i in range(first, first + rows.count[k]):
        impulse = scaled.T[i] * y[i]
        squares += impulse * impulse
        work -= y[i] * z[i]
    weight = scaled.weight[first]
    size = weight * math.sqrt(squares) / scaled.T[first]
    return weight * weight * max(work, 0.0) / (1.0 + size)


@machine_code
def proves_infeasible(
    rows: Rows, blocks: int, m: int, nv: int, scaled: Scaled, d: FloatArray,
    z: FloatArray, q: FloatArray, exact: bool,
) -> bool:  # fmt: skip
    """Return whether a direction of growing impulses proves that there is no solution.

        (Y Y.T + R) d = 0,   b . d < 0,   d in all cones and within no bound

    contradict d . u >= 0, which the law asks for; of Coulomb's law where d has no
    tangent entries. Since (Y Y.T + R) d is zero but for rounding, what is proved is
    that no impulses up to BEYOND are a solution.

    Args:
        rows, blocks, m, nv, scaled: Problem.
        d: Direction, scaled, (rows,).
        z, q: Work, (nv,), (rows,).
        exact: Whether the law is Coulomb's, or its convex relaxation.
    """
    largest, power = 0.0, 0.0
    for i in range(m):
        largest = max(largest, abs(d[i]))
        power += scaled.b[i] * d[i]
    limit = ZERO * largest
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
