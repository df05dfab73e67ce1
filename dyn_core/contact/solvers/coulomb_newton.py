"""Coulomb's law by Newton steps, and by other methods where these do not converge.

In the subset of machine code.
"""

from __future__ import annotations

import math

from dyn_core.contact.problem.rows import Rows
from dyn_core.contact.solvers.admm import split
from dyn_core.contact.solvers.gauss_seidel import sweep
from dyn_core.contact.solvers.interior_point import interior
from dyn_core.contact.solvers.laws.law_residuals import row_residuals
from dyn_core.contact.solvers.laws.scaling import from_scaled, project, scale, to_scaled
from dyn_core.contact.solvers.matrices.skyline import order
from dyn_core.contact.solvers.newton_on_modes import FIRM, SOFT, newton_on_modes
from dyn_core.contact.solvers.proximal_newton import newton
from dyn_core.contact.solvers.solver_memory import (
    CONVERGED,
    FACTORISATIONS,
    ITERATIONS,
    MAX_ITERATIONS,
    NO_BUFFER,
    PENALTY,
    SOLVED,
    SolverWork,
    final_status,
)
from dyn_core.engines.machine_code import FloatArray, machine_code

NEAR = 1e-2  # softness from the start, which may be near the solution
HARD = 1e-4  # of a second try, from zero
STEPS = 20  # of the first try
SWEEPS = 200  # of a heap at first, then four times as many
MOST_SWEEPS = 3200
BEYOND = 1.6  # relaxation of these sweeps: modes settle earlier
HEAP = 200  # rows of a problem that is left where sweeps solve it to SOLVED
FAR = 1e-1  # and after splitting
SLOW = 500  # iterations of a splitting after which Newton steps are tried
SHORT = 30  # iterations of the first splitting; each other takes three times as many


@machine_code
def solve_coulomb(
    rows: Rows,
    blocks: int,
    m: int,
    nv: int,
    work: SolverWork,
    report: FloatArray,
    max_iterations: int,
    tolerance: float,
    splittings: int,
) -> int:
    """Solve a problem by Newton steps on its modes; else by slower and surer methods.

    `newton_on_modes` starts from the impulses of `rows`: near a solution it takes one
    step or a few. If that fails, `interior` starts from inside all cones. A heap, a
    problem of more than HEAP rows, first tries softer steps; where nothing solves it,
    it is relaxed from the impulses of `rows`, longer and longer, and is solved where
    its law holds to SOLVED. Others, and heaps that are not solved, go through rounds
    of `newton` and `split`.

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
        CONVERGED, MAX_ITERATIONS, INFEASIBLE, or NO_BUFFER: then nothing is solved.

    Source: LCP-12, LCP-19.
    """
    if _at_rest(rows, blocks):
        _clear(rows, blocks)
    work.best_law[0] = math.inf
    scale(rows, blocks, work.scaled)
    to_scaled(rows, blocks, work.scaled, work.newton.gamma)
    missing, count = newton_on_modes(
        rows, blocks, m, nv, work, tolerance, min(max_iterations, STEPS), FIRM
    )
    _keep_scaled(rows, blocks, work, missing, tolerance)
    if not missing <= tolerance:
        _, entries = order(rows, blocks, nv, work.envelope)
        if entries > len(work.envelope.values):
            return NO_BUFFER
    if not missing <= tolerance and max_iterations > STEPS:
        missing, more = math.inf, 0.0
        if m > HEAP:
            to_scaled(rows, blocks, work.scaled, work.newton.gamma)
            missing, more = newton_on_modes(
                rows, blocks, m, nv, work, tolerance, STEPS, SOFT
            )
            count += more
            _keep_scaled(rows, blocks, work, missing, tolerance)
        if not missing <= tolerance:
            missing, inner = interior(
                rows, blocks, m, nv, work, tolerance, max_iterations
            )
            count += float(inner)
            _keep_scaled(rows, blocks, work, missing, tolerance)
    sweeps = SWEEPS if m > HEAP and splittings > 0 else MOST_SWEEPS + 1
    while not missing <= tolerance and sweeps <= MOST_SWEEPS:
        count += _relax(
            rows, blocks, m, nv, work, report, sweeps, tolerance, splittings
        )
        _keep(rows, blocks, work, report)
        to_scaled(rows, blocks, work.scaled, work.newton.gamma)
        missing, more = newton_on_modes(
            rows, blocks, m, nv, work, tolerance, STEPS, SOFT
        )
        count += more
        _keep_scaled(rows, blocks, work, missing, tolerance)
        if not missing <= tolerance and report[4] <= SOLVED:
            report[ITERATIONS] = count
            return CONVERGED
        sweeps *= 4
    if missing <= tolerance:
        return _finish(rows, blocks, nv, work, report, tolerance, count)
    status = _rounds(
        rows, blocks, m, nv, work, report, max_iterations, tolerance, splittings
    )
    report[ITERATIONS] += count
    if status == MAX_ITERATIONS:
        _take_best(rows, blocks, nv, work, report)
    return status


@machine_code
def split_and_polish(
    rows: Rows, blocks: int, m: int, nv: int, work: SolverWork, report: FloatArray,
    max_iterations: int, tolerance: float, rho: float,
) -> int:  # fmt: skip
    """Solve by `split`; where that is slow, by Newton steps from where it has come.

    Arguments and result as of `split`, which goes on where these do not solve it.
    """
    first = min(max_iterations, SLOW)
    status = split(rows, blocks, m, nv, work, report, first, tolerance, rho)
    if status == MAX_ITERATIONS and max_iterations > SLOW:
        count = report[ITERATIONS]
        to_scaled(rows, blocks, work.scaled, work.newton.gamma)
        missing, steps = newton_on_modes(
            rows, blocks, m, nv, work, tolerance, STEPS, SOFT
        )
        count += steps
        if missing <= tolerance:
            return _finish(rows, blocks, nv, work, report, tolerance, count)
        status = split(
            rows, blocks, m, nv, work, report, max_iterations - SLOW, tolerance, rho
        )
        report[ITERATIONS] += count
    return status


@machine_code
def _at_rest(rows: Rows, blocks: int) -> bool:
    """Return whether all free velocities are zero: then no impulse is needed."""
    for k in range(blocks):
        for i in range(rows.start[k], rows.start[k] + rows.count[k]):
            if not rows.b[i] == 0.0:
                return False
    return True


@machine_code
def _relax(
    rows: Rows, blocks: int, m: int, nv: int, work: SolverWork, report: FloatArray,
    sweeps: int, tolerance: float, splittings: int,
) -> float:  # fmt: skip
    """Bring the impulses of `rows` nearer to the law; return how many iterations.

    By sweeps; where these do not solve the problem to SOLVED, by `split` after them.
    """
    sweep(rows, blocks, m, nv, work, report, sweeps, tolerance, BEYOND)
    count = report[ITERATIONS]
    if not report[4] <= SOLVED:
        split(rows, blocks, m, nv, work, report, splittings // 3, tolerance, 1.0)
        count += report[ITERATIONS]
    return count


@machine_code
def _rounds(
    rows: Rows, blocks: int, m: int, nv: int, work: SolverWork, report: FloatArray,
    max_iterations: int, tolerance: float, splittings: int,
) -> int:  # fmt: skip
    """Solve by `newton`; where it does not converge, by `split` and `newton`.

    Newton steps start from the impulses of `rows`. If that fails, they start from zero
    with less softness; then longer and longer splittings from zero each give a new
    start. Arguments and result as of solve_coulomb.
    """
    status = newton(
        rows, blocks, m, nv, work, report, max_iterations, tolerance, NEAR, True
    )
    total, length = report[ITERATIONS], SHORT
    _keep(rows, blocks, work, report)
    status = _polish(rows, blocks, m, nv, work, report, status, tolerance)
    if status == MAX_ITERATIONS and splittings > 0:
        _clear(rows, blocks)
        status = newton(
            rows, blocks, m, nv, work, report, max_iterations, tolerance, HARD, True
        )
        total += report[ITERATIONS]
        _keep(rows, blocks, work, report)
        status = _polish(rows, blocks, m, nv, work, report, status, tolerance)
    while status == MAX_ITERATIONS and length < splittings:
        _clear(rows, blocks)
        status = split(rows, blocks, m, nv, work, report, length, tolerance, 1.0)
        total += report[ITERATIONS]
        _keep(rows, blocks, work, report)
        if status == MAX_ITERATIONS:
            status = newton(
                rows, blocks, m, nv, work, report, max_iterations, tolerance, FAR, True
            )
            total += report[ITERATIONS]
            _keep(rows, blocks, work, report)
        status = _polish(rows, blocks, m, nv, work, report, status, tolerance)
        length *= 3
    if status == MAX_ITERATIONS and splittings > 0:
        _clear(rows, blocks)
        status = split(rows, blocks, m, nv, work, report, splittings, tolerance, 1.0)
        total += report[ITERATIONS]
        _keep(rows, blocks, work, report)
        status = _polish(rows, blocks, m, nv, work, report, status, tolerance)
    report[ITERATIONS] = total
    return status


@machine_code
def _polish(
    rows: Rows, blocks: int, m: int, nv: int, work: SolverWork, report: FloatArray,
    status: int, tolerance: float,
) -> int:  # fmt: skip
    """Take Newton steps on the modes of impulses that are nearly right."""
    if not (status == MAX_ITERATIONS and report[4] <= SOLVED):
        return status
    to_scaled(rows, blocks, work.scaled, work.newton.gamma)
    missing, steps = newton_on_modes(rows, blocks, m, nv, work, tolerance, STEPS, FIRM)
    if not missing <= tolerance:
        return status
    return _finish(rows, blocks, nv, work, report, tolerance, steps)


@machine_code
def _finish(
    rows: Rows, blocks: int, nv: int, work: SolverWork, report: FloatArray,
    tolerance: float, count: float,
) -> int:  # fmt: skip
    """Take the scaled impulses as they are; return the status."""
    for k in range(blocks):
        project(rows, work.scaled, k, work.newton.gamma)
    from_scaled(rows, blocks, work.scaled, work.newton.gamma)
    row_residuals(rows, blocks, nv, work.system.w, work.iterates.r, report)
    report[ITERATIONS] = count
    report[PENALTY] = 0.0
    report[FACTORISATIONS] = count
    return final_status(MAX_ITERATIONS, report, tolerance)


@machine_code
def _keep(rows: Rows, blocks: int, work: SolverWork, report: FloatArray) -> None:
    """Keep the impulses if none came nearer to the law; report[4] is its residual."""
    if report[4] < work.best_law[0]:
        work.best_law[0] = report[4]
        for k in range(blocks):
            for i in range(rows.start[k], rows.start[k] + rows.count[k]):
                work.best[i] = rows.impulse[i]


@machine_code
def _keep_scaled(
    rows: Rows, blocks: int, work: SolverWork, missing: float, tolerance: float
) -> None:
    """Keep the scaled impulses likewise, if they miss the tolerance."""
    if missing < work.best_law[0] and not missing <= tolerance:
        work.best_law[0] = missing
        for k in range(blocks):
            project(rows, work.scaled, k, work.newton.gamma)
            for i in range(rows.start[k], rows.start[k] + rows.count[k]):
                work.best[i] = work.scaled.T[i] * work.newton.gamma[i]


@machine_code
def _take_best(
    rows: Rows, blocks: int, nv: int, work: SolverWork, report: FloatArray
) -> None:
    """Return to the impulses that came nearest to the law, and to their residuals."""
    if work.best_law[0] < math.inf:
        for k in range(blocks):
            for i in range(rows.start[k], rows.start[k] + rows.count[k]):
                rows.impulse[i] = work.best[i]
        row_residuals(rows, blocks, nv, work.system.w, work.iterates.r, report)


@machine_code
def _clear(rows: Rows, blocks: int) -> None:
    """Set all impulses to zero."""
    for k in range(blocks):
        for i in range(rows.start[k], rows.start[k] + rows.count[k]):
            rows.impulse[i] = 0.0
