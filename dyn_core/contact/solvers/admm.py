"""Exact Coulomb contacts by the alternating direction method of multipliers.

In the subset of machine code. Statuses:
CONVERGED is 0, MAX_ITERATIONS 1, INFEASIBLE 2, NO_BUFFER 5. CONVERGED: the residual of
the law, report[4], is at most the larger of 10 tolerance and 1e-8.
"""

from __future__ import annotations

import math

from dyn_core.contact.problem.projections import near_cone
from dyn_core.contact.problem.rows import Rows
from dyn_core.contact.solvers.laws.law_residuals import row_residuals
from dyn_core.contact.solvers.laws.natural_residuals import (
    LARGE,
    natural_step,
    proves_infeasible,
    respond_to,
)
from dyn_core.contact.solvers.laws.scaling import (
    CONE,
    FREE,
    Scaled,
    from_scaled,
    scale,
    to_scaled,
)
from dyn_core.contact.solvers.matrices.linear_systems import (
    LinearSystem,
    prepare,
    refactor,
    solve_system,
)
from dyn_core.contact.solvers.solver_memory import (
    FACTORISATIONS,
    INFEASIBLE,
    ITERATIONS,
    MAX_ITERATIONS,
    NO_BUFFER,
    PENALTY,
    Iterates,
    SolverWork,
    final_status,
)
from dyn_core.engines.machine_code import FloatArray, machine_code
from dyn_core.numbers.scalar import maximum, minimum

EVERY = 5  # iterations between changes of rho
CHANGE = 1.5  # smallest factor by which rho is changed
RELAXATION = 1.6
SOFT = 1e-7  # penalty of free rows, which makes dependent rows solvable
CHECKED = 25  # iterations between tests for growth without bound


@machine_code
def next_penalty(rho: float, ratio: float) -> float:
    """Return the penalty that balances primal and dual residual.

    rho times the ratio; the ratio is limited to [0.1, 10], the result to [1e-9, 1e9].
    Traced algorithms may call it, too.

    Args:
        rho: Current penalty.
        ratio: sqrt(primal / dual), of the primal residual relative to the largest
            impulse, and the dual residual.
    """
    factor = maximum(minimum(ratio, 10.0), 0.1)
    return maximum(minimum(rho * factor, 1e9), 1e-9)


@machine_code
def split(
    rows: Rows,
    blocks: int,
    m: int,
    nv: int,
    work: SolverWork,
    report: FloatArray,
    max_iterations: int,
    tolerance: float,
    rho: float,
) -> int:
    """Solve a problem by operator splitting; return the status.

        (Y Y.T + R + rho) dx = rho (y - x) - z - s - (Y Y.T + R) x - b,   x <- x + dx
        y <- Pi_K(a x + (1 - a) y + z / rho),   z <- z + rho (a x + (1 - a) y_old - y)
        s <- mu |z_T| e_n

    Pi_K projects on cones and bounds. The relaxation a is 1.6. rho changes if the
    residuals are not balanced, and the system is then factorised again. Free rows have
    a small rho of their own. With friction there is no proof of convergence.

    Args:
        rows: Problem; its impulses are the start, and then the solution.
        blocks, m, nv: Numbers of blocks, rows and coordinates in use.
        work: Work arrays.
        report: Set to the five residuals, iterations, rho and factorisations, (8,).
        max_iterations: Largest number of iterations.
        tolerance: Relative tolerance of the residuals.
        rho: Initial penalty, relative to the response of a block.

    Returns:
        CONVERGED; MAX_ITERATIONS, also if impulses became NaN or infinite; INFEASIBLE;
        or NO_BUFFER: the work arrays are too small, impulses and report are unchanged.

    Source: LCP-12, LCP-19.
    """
    scaled, envelope = work.scaled, work.envelope
    system, iterates = work.system, work.iterates
    scale(rows, blocks, scaled)
    to_scaled(rows, blocks, scaled, iterates.y)
    respond_to(
        rows, blocks, m, nv, scaled, iterates.y, system.w, iterates.p, iterates.z,
        iterates.s, True,
    )  # fmt: skip
    count, factorisations, status = 0, 0, MAX_ITERATIONS
    if (
        not natural_step(rows, blocks, scaled, iterates.y, iterates.z, True)
        <= tolerance
    ):
        unknowns, in_rows = prepare(rows, blocks, m, nv, scaled, envelope, system)
        if unknowns < 0:
            return NO_BUFFER
        _penalties(rows, blocks, scaled, iterates, system, rho)
        refactor(rows, blocks, scaled, envelope, system, unknowns, in_rows)
        factorisations = 1
        for i in range(m):
            iterates.x[i] = iterates.y[i]
        while count < max_iterations:
            count += 1
            _right_side(m, scaled, iterates)
            solve_system(
                rows, blocks, m, scaled, envelope, system, unknowns, in_rows,
                iterates.r, iterates.dx,
            )  # fmt: skip
            primal, dual, largest = _project(rows, blocks, scaled, iterates)
            if not primal + dual < math.inf:
                break
            # Impulses up to 1e4 have an absolute tolerance, larger ones a relative one.
            if primal <= tolerance * max(1.0, 1e-4 * largest) and dual <= tolerance:
                break
            if count % CHECKED == 0 and largest > LARGE:
                if proves_infeasible(
                    rows, blocks, m, nv, scaled, iterates.dx, system.w, iterates.r, True
                ):
                    status = INFEASIBLE
                    break
            if count % EVERY == 0:
                ratio = math.sqrt(primal / max(largest, 1e-300) / max(dual, 1e-300))
                after = next_penalty(rho, ratio)
                if after > CHANGE * rho or after * CHANGE < rho:
                    rho = after
                    _penalties(rows, blocks, scaled, iterates, system, rho)
                    refactor(rows, blocks, scaled, envelope, system, unknowns, in_rows)
                    factorisations += 1
    from_scaled(rows, blocks, scaled, iterates.y)
    row_residuals(rows, blocks, nv, system.w, iterates.r, report)
    report[ITERATIONS] = float(count)
    report[PENALTY] = rho
    report[FACTORISATIONS] = float(factorisations)
    return final_status(status, report, tolerance)


@machine_code
def _penalties(
    rows: Rows, blocks: int, scaled: Scaled, iterates: Iterates, system: LinearSystem,
    rho: float,
) -> None:  # fmt: skip
    """Set iterates.rho to rho, or 1e-7 for free rows, and system.D to R + iterates.rho.

    The multipliers iterates.z of free rows are set to zero.
    """
    for k in range(blocks):
        penalty = SOFT if scaled.law[k] == FREE else rho
        for i in range(rows.start[k], rows.start[k] + rows.count[k]):
            if scaled.law[k] == FREE:
                iterates.z[i] = 0.0
            iterates.rho[i] = penalty
            system.D[i] = scaled.R[i] + penalty


@machine_code
def _right_side(m: int, scaled: Scaled, iterates: Iterates) -> None:
    """Set iterates.r to the right side, rho (y - x) - z - s - u, of the linear system.

    u = p + R x + b are the scaled velocities.
    """
    x, y, z, r = iterates.x, iterates.y, iterates.z, iterates.r
    for i in range(m):
        u = iterates.p[i] + scaled.R[i] * x[i] + scaled.b[i]
        r[i] = iterates.rho[i] * (y[i] - x[i]) - z[i] - iterates.s[i] - u


@machine_code
def _project(
    rows: Rows, blocks: int, scaled: Scaled, iterates: Iterates
) -> tuple[float, float, float]:
    """Update x, p, y, z and s after the linear system of an iteration is solved.

    dx is its solution and r = Y Y.T dx, which is overwritten. Returns the primal
    residual |x - y|, the dual one (velocities), and |y|; the largest entries, scaled.
    """
    x, y, z, s = iterates.x, iterates.y, iterates.z, iterates.s
    r, dx, over = iterates.r, iterates.dx, RELAXATION
    primal, dual, largest = 0.0, 0.0, 0.0
    for k in range(blocks):
        first, count = rows.start[k], rows.count[k]
        rho = iterates.rho[first]
        for i in range(first, first + count):
            x[i] += dx[i]
            iterates.p[i] += r[i]
        if scaled.law[k] == FREE:
            for i in range(first, first + count):
                dual = max(dual, rho * abs(dx[i]))
                y[i] = x[i]
                largest = max(largest, abs(x[i]))
            continue
        normal, factor, squares = 0.0, 1.0, 0.0
        if scaled.law[k] == CONE:
            for i in range(first, first + count):
                value = over * x[i] + (1.0 - over) * y[i] + z[i] / rho
                r[i] = value
                if i > first:
                    squares += value * value
            normal, factor = near_cone(scaled.c[k], r[first], math.sqrt(squares))
        squares = 0.0
        for i in range(first, first + count):
            before = y[i]
            relaxed = over * x[i] + (1.0 - over) * before
            if scaled.law[k] == CONE:
                y[i] = normal if i == first else factor * r[i]
            else:
                near = min(relaxed + z[i] / rho, scaled.hi[i])
                y[i] = max(scaled.lo[i], near)
            z[i] += rho * (relaxed - y[i])
            if i > first:
                squares += z[i] * z[i]
            missing = before - y[i] + (over - 1.0) * (x[i] - before)
            primal = max(primal, abs(x[i] - y[i]))
            dual = max(dual, rho * abs(missing))
            largest = max(largest, abs(y[i]))
        if scaled.law[k] == CONE:
            after = scaled.c[k] * math.sqrt(squares)
            dual = max(dual, abs(after - s[first]))
            s[first] = after
    return primal, dual, largest
