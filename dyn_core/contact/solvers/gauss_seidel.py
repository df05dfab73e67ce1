"""Contacts by projected Gauss-Seidel, block by block on the coordinates.

In the subset of machine code. Statuses: CONVERGED is 0, MAX_ITERATIONS 1.
"""

from __future__ import annotations

import math

from dyn_core.contact.problem.projections import near_disc
from dyn_core.contact.problem.rows import Rows
from dyn_core.contact.solvers.laws.law_residuals import row_residuals
from dyn_core.contact.solvers.laws.natural_residuals import natural_step, respond_to
from dyn_core.contact.solvers.laws.scaling import (
    CONE,
    INTERVALS,
    Scaled,
    from_scaled,
    project,
    scale,
    tangent_length,
    to_scaled,
)
from dyn_core.contact.solvers.matrices.row_products import add_block, multiply_block
from dyn_core.contact.solvers.solver_memory import (
    FACTORISATIONS,
    ITERATIONS,
    MAX_ITERATIONS,
    PENALTY,
    REACHED,
    SolverWork,
    final_status,
)
from dyn_core.engines.machine_code import FloatArray, machine_code

LOCAL = 25  # largest number of iterations within a block
PATIENCE = 200  # sweeps within which the largest change must shrink
PIVOT = 1e-9  # smallest pivot of a block's matrix, relative to its response


@machine_code
def sweep(
    rows: Rows,
    blocks: int,
    m: int,
    nv: int,
    work: SolverWork,
    report: FloatArray,
    max_iterations: int,
    tolerance: float,
    relaxation: float,
) -> int:
    """Solve a problem by sweeps over the blocks; return the status.

        u = Y z + R x + b of a block,   x <- its law alone,   z <- z + Y.T dx

    A cone first gets the impulses with which it sticks. If they lie outside of the
    cone, normal and tangents are updated in turn until they converge: lambda_n <-
    max(0, lambda_n - u_n / G_nn), lambda_T <- disc of mu lambda_n. Rows of other blocks
    are updated one after the other. Sweeps end when the estimated error (last change
    over one minus its ratio to the previous change) is below the tolerance and the law
    holds to it or to 1e-8, when changes stop shrinking, or when one is not finite. If
    the law does not hold at that error, the error must become ten times smaller.

    CONVERGED needs a residual law of at most 10 tolerance or 1e-8, whatever ended the
    sweeps. `relaxation`, a factor of each block's change, is between 0 and 2.

    Source: LCP-9.
    """
    scaled, x, z = work.scaled, work.iterates.y, work.system.w
    scale(rows, blocks, scaled)
    to_scaled(rows, blocks, scaled, x)
    respond_to(
        rows, blocks, m, nv, scaled, x, z, work.iterates.p, work.iterates.z,
        work.iterates.s, True,
    )  # fmt: skip
    count = 0
    if not natural_step(rows, blocks, scaled, x, work.iterates.z, True) <= tolerance:
        _prepare_blocks(rows, blocks, work)
        before, shortest, patience, aim = math.inf, math.inf, PATIENCE, tolerance
        while count < max_iterations and patience > 0:
            count += 1
            moved, largest = 0.0, 0.0
            for k in range(blocks):
                change, size = _update(rows, k, work, relaxation)
                moved = moved + change if not change < math.inf else max(moved, change)
                largest = max(largest, size)
            if not moved < math.inf:
                break
            # A rate below one keeps the estimate of the error finite.
            rate = min(moved / before, 1.0 - 1e-6) if before > 0.0 else 0.0
            if moved / (1.0 - rate) <= aim * max(largest, scaled.least[0]):
                respond_to(
                    rows, blocks, m, nv, scaled, x, z, work.iterates.p,
                    work.iterates.z, work.iterates.s, True,
                )  # fmt: skip
                law = natural_step(rows, blocks, scaled, x, work.iterates.z, True)
                if law <= max(REACHED, tolerance) or moved == 0.0:
                    break
                aim *= 0.1
            patience -= 1
            if moved < 0.99 * shortest:
                shortest, patience = moved, PATIENCE
            before = moved
    from_scaled(rows, blocks, scaled, x)
    row_residuals(rows, blocks, nv, z, work.iterates.r, report)
    report[ITERATIONS] = float(count)
    report[PENALTY] = relaxation
    report[FACTORISATIONS] = 0.0
    return final_status(MAX_ITERATIONS, report, tolerance)


@machine_code
def _prepare_blocks(rows: Rows, blocks: int, work: SolverWork) -> None:
    """Compute Cholesky factors of the cones' matrices Y_k Y_k.T + R, and step rates.

    All are of the scaled problem. The six entries of row i of all rows are at 6 i in
    work.block_matrix and work.block_factor; the first pivot of a singular matrix is set
    to 0. The rate work.iterates.rho of a row is one over its response, its diagonal
    entry of Y Y.T + R; the rate of tangents of a cone is one over an upper bound of the
    largest eigenvalue of their matrix. Rates are 1 where the divisor is zero.
    """
    scaled, rate = work.scaled, work.iterates.rho
    for k in range(blocks):
        first, count, width = rows.start[k], rows.count[k], rows.support_count[k]
        a = rows.y_start[k]
        for row in range(count):
            for other in range(count):
                if scaled.law[k] == CONE or other == row:
                    total = scaled.R[first + row] if other == row else 0.0
                    for j in range(width):
                        left = scaled.y[a + row * width + j]
                        total += left * scaled.y[a + other * width + j]
                    if scaled.law[k] == CONE:
                        work.block_matrix[6 * (first + row) + other] = total
                    if other == row:
                        rate[first + row] = 1.0 / (total if total > 0.0 else 1.0)
        if scaled.law[k] == CONE:
            bound = 0.0
            for row in range(1, count):
                total = 0.0
                for other in range(1, count):
                    total += abs(work.block_matrix[6 * (first + row) + other])
                bound = max(bound, total)
            if count == 3:  # two tangents: the eigenvalue itself
                p, r = (
                    work.block_matrix[6 * (first + 1) + 1],
                    work.block_matrix[6 * (first + 2) + 2],
                )
                q = work.block_matrix[6 * (first + 1) + 2]
                bound = (p + r) / 2.0 + math.sqrt((p - r) * (p - r) / 4.0 + q * q)
            for row in range(1, count):
                rate[first + row] = 1.0 / (bound if bound > 0.0 else 1.0)
            _factor_block(first, count, work.block_matrix, work.block_factor)


@machine_code
def _factor_block(
    first: int, count: int, matrix: FloatArray, factor: FloatArray
) -> None:
    """Set `factor` to the Cholesky factor L of a block's matrix, six values a row.

    On the diagonal it has one over L's; the first is 0 if a pivot is not above 1e-9.
    """
    for row in range(count):
        for other in range(row + 1):
            total = matrix[6 * (first + row) + other]
            for e in range(other):
                total -= factor[6 * (first + row) + e] * factor[6 * (first + other) + e]
            if other < row:
                factor[6 * (first + row) + other] = (
                    total * factor[6 * (first + other) + other]
                )
            elif total > PIVOT:
                factor[6 * (first + row) + row] = 1.0 / math.sqrt(total)
            else:
                factor[6 * first] = 0.0
                return


@machine_code
def _update(
    rows: Rows, k: int, work: SolverWork, relaxation: float
) -> tuple[float, float]:
    """Update the scaled impulses of block k by its law, and z by their change.

    Impulses are iterates.y, z is system.w; iterates.x, p, dx and r are overwritten. For
    a relaxation other than 1 the result is projected. Returns the largest change of an
    impulse, inf if one is not finite (z is then unchanged), and the largest impulse.
    """
    scaled, x, z = work.scaled, work.iterates.y, work.system.w
    u, change, start = work.iterates.p, work.iterates.dx, work.iterates.x
    first, count = rows.start[k], rows.count[k]
    multiply_block(rows, rows.support, scaled.y, k, z, u)
    for i in range(first, first + count):
        u[i] += scaled.R[i] * x[i] + scaled.b[i]
        start[i] = x[i]
    if scaled.law[k] == CONE:
        if not _stick(scaled.c[k], first, count, work):
            _slide(scaled.c[k], first, count, work)
    else:
        _follow(rows, scaled, k, work)
    moved, largest = 0.0, 0.0
    if not relaxation == 1.0:
        for i in range(first, first + count):
            x[i] = start[i] + relaxation * (x[i] - start[i])
        project(rows, scaled, k, x)
    for i in range(first, first + count):
        change[i] = x[i] - start[i]
        moved = max(moved, abs(change[i]))
        if not change[i] - change[i] == 0.0:
            moved = math.inf
        largest = max(largest, abs(x[i]))
    if moved > 0.0 and moved < math.inf:
        add_block(rows, rows.support, scaled.y, k, change, z)
    return moved, largest


@machine_code
def _stick(c: float, first: int, count: int, work: SolverWork) -> bool:
    """Set the impulses of a cone to the solution of u = 0; return whether they fit it.

    iterates.y is set from the start iterates.x and the velocities iterates.p. False
    without a change if the block's matrix is singular or c, the coefficient, is 0.
    """
    x, start, u = work.iterates.y, work.iterates.x, work.iterates.p
    factor = work.block_factor
    if not (factor[6 * first] > 0.0 and c > 0.0):
        return False
    for row in range(count):
        total = u[first + row]
        for e in range(row):
            total -= factor[6 * (first + row) + e] * x[first + e]
        x[first + row] = total * factor[6 * (first + row) + row]
    for place in range(count):
        row = count - 1 - place
        total = x[first + row]
        for e in range(row + 1, count):
            total -= factor[6 * (first + e) + row] * x[first + e]
        x[first + row] = total * factor[6 * (first + row) + row]
    for i in range(first, first + count):
        x[i] = start[i] - x[i]
    return tangent_length(first, count, x) <= c * x[first]


@machine_code
def _slide(c: float, first: int, count: int, work: SolverWork) -> None:
    """Update normal and tangents of a sliding cone in turn, up to 25 times.

    The iteration ends when no impulse changes by more than 1e-3 of the largest. It sets
    iterates.y from the start iterates.x; iterates.r is overwritten.
    """
    x, start, u, rate = (
        work.iterates.y, work.iterates.x, work.iterates.p, work.iterates.rho,
    )  # fmt: skip
    for i in range(first, first + count):
        x[i] = start[i]
    for _ in range(LOCAL):
        moved, largest = 0.0, 0.0
        n = max(0.0, x[first] - rate[first] * _velocity(first, count, 0, work, u))
        moved = max(moved, abs(n - x[first]))
        x[first] = n
        squares = 0.0
        for row in range(1, count):
            i = first + row
            work.iterates.r[i] = x[i] - rate[i] * _velocity(first, count, row, work, u)
            squares += work.iterates.r[i] * work.iterates.r[i]
        factor = near_disc(c * n, math.sqrt(squares))
        for i in range(first + 1, first + count):
            t = factor * work.iterates.r[i]
            moved = max(moved, abs(t - x[i]))
            largest = max(largest, abs(t))
            x[i] = t
        if not moved > 1e-3 * max(largest, n):
            break


@machine_code
def _velocity(
    first: int, count: int, row: int, work: SolverWork, u: FloatArray
) -> float:
    """Return the velocity of a block's row, an index within it, for its impulses now.

    u are the velocities of all rows at the start iterates.x.
    """
    total = u[first + row]
    for e in range(count):
        change = work.iterates.y[first + e] - work.iterates.x[first + e]
        total += work.block_matrix[6 * (first + row) + e] * change
    return total


@machine_code
def _follow(rows: Rows, scaled: Scaled, k: int, work: SolverWork) -> None:
    """Update the rows of block k, not a cone, by their laws, one after the other.

    iterates.x and p are impulses and velocities before, iterates.y is the result.
    """
    x, u, start = work.iterates.y, work.iterates.p, work.iterates.x
    first, count, width = rows.start[k], rows.count[k], rows.support_count[k]
    a = rows.y_start[k]
    for row in range(count):
        i = first + row
        speed = u[i]
        for other in range(row):
            change = x[first + other] - start[first + other]
            if not change == 0.0:
                for j in range(width):
                    left = scaled.y[a + row * width + j]
                    speed += left * scaled.y[a + other * width + j] * change
        value = start[i] - work.iterates.rho[i] * speed
        if scaled.law[k] == INTERVALS:
            value = max(scaled.lo[i], min(value, scaled.hi[i]))
        x[i] = value
