"""Coulomb's law by Newton steps, and by splitting where these do not converge.

In the subset of machine code.
"""

from __future__ import annotations

from dyn_core.contact.problem.rows import Rows
from dyn_core.contact.solvers.active_sets import newton_on_modes
from dyn_core.contact.solvers.law import row_residuals
from dyn_core.contact.solvers.newton import newton
from dyn_core.contact.solvers.scaling import from_scaled, project, scale, to_scaled
from dyn_core.contact.solvers.skyline import order
from dyn_core.contact.solvers.splitting import split
from dyn_core.contact.solvers.work import (
    FACTORISATIONS,
    ITERATIONS,
    MAX_ITERATIONS,
    NO_ROOM,
    PENALTY,
    SolverWork,
    judged,
)
from dyn_core.engines.machine_code import Reals, machine_code

NEAR = 1e-2  # softness from the start, which may be near the solution
HARD = 1e-4  # of a second try, from zero
STEPS = 20  # of the first try
FAR = 1e-1  # and after splitting
SHORT = 30  # iterations of the first splitting; each other takes three times as many


@machine_code
def solve_coulomb(
    rows: Rows,
    blocks: int,
    m: int,
    nv: int,
    work: SolverWork,
    report: Reals,
    max_iterations: int,
    tolerance: float,
    splittings: int,
) -> int:
    """Solve a problem by `newton`; where it does not converge, by `split` and `newton`.

    Newton steps start from the impulses of `rows`. If that fails, they start from zero
    with less softness; then longer and longer splittings from zero each give a new
    start; the last is all there is.

    Args:
        rows: Problem; its impulses are the start, and then the solution.
        blocks, m, nv: Numbers of blocks, rows and coordinates in use.
        work: Room for work.
        report: Set to the five residuals, all iterations, and penalty and
            factorisations of the last part, (8,).
        max_iterations: Largest number of Newton steps from each start.
        tolerance: Tolerance of velocities, relative to the largest free one, scaled.
        splittings: Largest number of iterations of the last splitting.

    Returns:
        CONVERGED, MAX_ITERATIONS, INFEASIBLE, or NO_ROOM: then nothing is solved.

    Source: LCP-12, LCP-19.
    """
    unknowns, entries = order(rows, blocks, nv, work.envelope)
    if entries > len(work.envelope.values):
        return NO_ROOM
    scale(rows, blocks, work.scaled)
    to_scaled(rows, blocks, work.scaled, work.newton.gamma)
    missing, count = newton_on_modes(
        rows, blocks, m, nv, work, unknowns, tolerance, min(max_iterations, STEPS)
    )
    if missing <= tolerance:
        return _finish(rows, blocks, nv, work, report, tolerance, count)
    status = newton(
        rows, blocks, m, nv, work, report, max_iterations, tolerance, NEAR, True
    )
    total, length = report[ITERATIONS] + float(count), SHORT
    if status == MAX_ITERATIONS and splittings > 0:
        _clear(rows, blocks)
        status = newton(
            rows, blocks, m, nv, work, report, max_iterations, tolerance, HARD, True
        )
        total += report[ITERATIONS]
    while status == MAX_ITERATIONS and length < splittings:
        _clear(rows, blocks)
        status = split(rows, blocks, m, nv, work, report, length, tolerance, 1.0)
        total += report[ITERATIONS]
        if status == MAX_ITERATIONS:
            status = newton(
                rows, blocks, m, nv, work, report, max_iterations, tolerance, FAR, True
            )
            total += report[ITERATIONS]
        length *= 3
    if status == MAX_ITERATIONS and splittings > 0:
        _clear(rows, blocks)
        status = split(rows, blocks, m, nv, work, report, splittings, tolerance, 1.0)
        total += report[ITERATIONS]
    report[ITERATIONS] = total
    return status


@machine_code
def _finish(
    rows: Rows, blocks: int, nv: int, work: SolverWork, report: Reals,
    tolerance: float, count: int,
) -> int:  # fmt: skip
    """Take the scaled impulses as they are; return the status."""
    for k in range(blocks):
        project(rows, work.scaled, k, work.newton.gamma)
    from_scaled(rows, blocks, work.scaled, work.newton.gamma)
    row_residuals(rows, blocks, nv, work.system.w, work.iterates.r, report)
    report[ITERATIONS] = float(count)
    report[PENALTY] = 0.0
    report[FACTORISATIONS] = float(count)
    return judged(MAX_ITERATIONS, report, tolerance)


@machine_code
def _clear(rows: Rows, blocks: int) -> None:
    """Set all impulses to zero."""
    for k in range(blocks):
        for i in range(rows.start[k], rows.start[k] + rows.count[k]):
            rows.impulse[i] = 0.0
