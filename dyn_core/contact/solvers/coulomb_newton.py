"""Coulomb's law by Newton's method, and by other methods if it does not converge.

HEAP is 200 rows, STEPS 20 Newton steps; SOLVED (1e-6) and REACHED (1e-8) are residuals
of the law, report[4].

In the subset of machine code. Statuses:
CONVERGED is 0, MAX_ITERATIONS 1, INFEASIBLE 2, NO_BUFFER 5. CONVERGED: the residual is
at most the larger of 10 tolerance and REACHED, unless a function says otherwise.
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

NEAR = 1e-2  # first epsilon of `newton` from the warm start
HARD = 1e-4  # first epsilon of `newton` from zero
STEPS = 20  # largest number of steps of `newton_on_modes`
ROUNDS = 8  # largest number of rounds of a few sweeps and Newton steps, in a heap
BETWEEN = 40  # sweeps of such a round
AFTER = 4  # largest number of Newton steps of such a round
SWEEPS = 200  # sweeps of the first relaxation of a heap; then four times as many
MOST_SWEEPS = 3200
BEYOND = 1.6  # relaxation of these sweeps: modes settle earlier
HEAP = 200  # number of rows above which a problem is a heap
FAR = 1e-1  # first epsilon of `newton` after a splitting
SLOW = 500  # iterations of a splitting after which Newton steps are tried
SHORT = 30  # iterations of the first splitting; each later one has three times as many


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
    """Solve a problem by `newton_on_modes`; if it fails, by more robust methods.

    1. `newton_on_modes` from the impulses of `rows`: near a solution it takes one step
       or a few.
    2. Heaps (more than HEAP rows): a few Gauss-Seidel sweeps and a few Newton steps, in
       turn. Sweeps settle the modes of contacts one by one, which Newton steps change
       all at once.
    3. `interior`, from inside all cones.
    4. Heaps: Gauss-Seidel sweeps from the impulses of `rows`, longer in each round, and
       splitting. A heap is solved if its law holds to SOLVED.
    5. Rounds of `newton` and `split`.

    The impulses of `rows` are the start (zero if b is zero in all rows), and then the
    solution; with MAX_ITERATIONS they have the smallest residual of the law that any
    method reached, with NO_BUFFER they are unchanged. max_iterations are Newton steps
    from each start; 2. and 3. need more than STEPS. `splittings` are iterations of the
    last splitting; 0: without 4. and without splittings.

    Source: LCP-12, LCP-19.
    """
    if _at_rest(rows, blocks):
        _clear(rows, blocks)  # zero impulses obey all laws then
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
            missing, more = _alternate(rows, blocks, m, nv, work, report, tolerance)
            count += more
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
    """Solve by `split`; after 500 iterations, try `newton_on_modes` from its result.

    If the Newton steps do not converge, `split` continues from its own result up to
    max_iterations in all, with the penalty rho (relative to the response of a block)
    again.
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
    """Return whether b is zero; zero impulses solve it unless a box excludes them."""
    for k in range(blocks):
        for i in range(rows.start[k], rows.start[k] + rows.count[k]):
            if not rows.b[i] == 0.0:
                return False
    return True


@machine_code
def _alternate(
    rows: Rows, blocks: int, m: int, nv: int, work: SolverWork, report: FloatArray,
    tolerance: float,
) -> tuple[float, float]:  # fmt: skip
    """Solve a heap by rounds of a few sweeps and a few Newton steps.

    newton.gamma has the scaled impulses of the start, then of the result; rows.impulse
    becomes those of the last sweeps. work.best and best_law are updated. Returns
    `natural_step` of the result, above `tolerance` if it is not solved after eight
    rounds, and the number of sweeps and Newton steps together.
    """
    missing, count, rounds = math.inf, 0.0, 0
    while not missing <= tolerance and rounds < ROUNDS:
        rounds += 1
        for k in range(blocks):
            project(rows, work.scaled, k, work.newton.gamma)
        from_scaled(rows, blocks, work.scaled, work.newton.gamma)
        sweep(rows, blocks, m, nv, work, report, BETWEEN, tolerance, BEYOND)
        count += report[ITERATIONS]
        _keep(rows, blocks, work, report)
        to_scaled(rows, blocks, work.scaled, work.newton.gamma)
        missing, steps = newton_on_modes(
            rows, blocks, m, nv, work, tolerance, AFTER, FIRM
        )
        count += steps
        _keep_scaled(rows, blocks, work, missing, tolerance)
    return missing, count


@machine_code
def _relax(
    rows: Rows, blocks: int, m: int, nv: int, work: SolverWork, report: FloatArray,
    sweeps: int, tolerance: float, splittings: int,
) -> float:  # fmt: skip
    """Improve rows.impulse by `sweep`; return the iterations of all methods.

    If the law does not hold to SOLVED after the sweeps, `split` follows, with at most a
    third of `splittings` iterations. `report` is of the last method.
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
    """Solve by `newton`; if it does not converge, by rounds of `split` and `newton`.

    Newton steps start from the impulses of `rows`, then from zero with a smaller
    epsilon, then from the result of a splitting from zero, three times as long in each
    round, up to `splittings` iterations; 0: only the first start. A result that nearly
    fulfils the law is refined by `newton_on_modes`. `report` is of the last method, but
    has the iterations of all. Returns CONVERGED; MAX_ITERATIONS: work.best has the
    impulses with the smallest residual so far; INFEASIBLE; or NO_BUFFER.
    """
    status = newton(
        rows, blocks, m, nv, work, report, max_iterations, tolerance, NEAR, True
    )
    total, length = report[ITERATIONS], SHORT
    _keep(rows, blocks, work, report)
    status, steps = _polish(rows, blocks, m, nv, work, report, status, tolerance)
    total += steps
    if status == MAX_ITERATIONS and splittings > 0:
        _clear(rows, blocks)
        status = newton(
            rows, blocks, m, nv, work, report, max_iterations, tolerance, HARD, True
        )
        total += report[ITERATIONS]
        _keep(rows, blocks, work, report)
        status, steps = _polish(rows, blocks, m, nv, work, report, status, tolerance)
        total += steps
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
        status, steps = _polish(rows, blocks, m, nv, work, report, status, tolerance)
        total += steps
        length *= 3
    if status == MAX_ITERATIONS and splittings > 0:
        _clear(rows, blocks)
        status = split(rows, blocks, m, nv, work, report, splittings, tolerance, 1.0)
        total += report[ITERATIONS]
        _keep(rows, blocks, work, report)
        status, steps = _polish(rows, blocks, m, nv, work, report, status, tolerance)
        total += steps
    report[ITERATIONS] = total
    return status


@machine_code
def _polish(
    rows: Rows, blocks: int, m: int, nv: int, work: SolverWork, report: FloatArray,
    status: int, tolerance: float,
) -> tuple[int, float]:  # fmt: skip
    """Refine nearly converged impulses by `newton_on_modes`.

    Returns the status and the number of steps. There are none for a status other than
    MAX_ITERATIONS or a residual `law` above SOLVED. If they do not converge, status,
    impulses and report stay; else they are those of `_finish`.
    """
    if not (status == MAX_ITERATIONS and report[4] <= SOLVED):
        return status, 0.0
    to_scaled(rows, blocks, work.scaled, work.newton.gamma)
    missing, steps = newton_on_modes(rows, blocks, m, nv, work, tolerance, STEPS, FIRM)
    if not missing <= tolerance:
        return status, steps
    return _finish(rows, blocks, nv, work, report, tolerance, steps), steps


@machine_code
def _finish(
    rows: Rows, blocks: int, nv: int, work: SolverWork, report: FloatArray,
    tolerance: float, count: float,
) -> int:  # fmt: skip
    """Set rows.impulse and the report from work.newton.gamma; return the status.

    gamma, scaled, is projected on bounds and cones in place. CONVERGED means a residual
    `law` of at most the larger of 10 tolerance and REACHED, whatever the others; else,
    also for NaN, it is MAX_ITERATIONS.
    """
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
    """Copy rows.impulse to work.best if report[4], the residual `law`, is least."""
    if report[4] < work.best_law[0]:
        work.best_law[0] = report[4]
        for k in range(blocks):
            for i in range(rows.start[k], rows.start[k] + rows.count[k]):
                work.best[i] = rows.impulse[i]


@machine_code
def _keep_scaled(
    rows: Rows, blocks: int, work: SolverWork, missing: float, tolerance: float
) -> None:
    """Store newton.gamma in work.best, without scaling, if `missing` is the smallest.

    Only then is gamma changed: it is projected on bounds and cones first. Nothing is
    stored if `missing`, the `natural_step`, is within the tolerance.
    """
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
    """Set rows.impulse to work.best, and report[:5] to its residuals.

    work.system.w and iterates.r are overwritten. Nothing changes if no impulses with a
    finite residual were stored.
    """
    if work.best_law[0] < math.inf:
        for k in range(blocks):
            for i in range(rows.start[k], rows.start[k] + rows.count[k]):
                rows.impulse[i] = work.best[i]
        row_residuals(rows, blocks, nv, work.system.w, work.iterates.r, report)


@machine_code
def _clear(rows: Rows, blocks: int) -> None:
    """Set rows.impulse of the first `blocks` blocks to zero."""
    for k in range(blocks):
        for i in range(rows.start[k], rows.start[k] + rows.count[k]):
            rows.impulse[i] = 0.0
