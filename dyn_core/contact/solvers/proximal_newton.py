"""Contacts by Newton's method on the velocity changes z, in proximal rounds.

In the subset of machine code. Statuses:
CONVERGED is 0, MAX_ITERATIONS 1, INFEASIBLE 2, NO_BUFFER 5.
"""

from __future__ import annotations

import math

from dyn_core.contact.problem.rows import Rows
from dyn_core.contact.solvers.laws.block_responses import line, respond
from dyn_core.contact.solvers.laws.law_residuals import row_residuals
from dyn_core.contact.solvers.laws.law_slopes import assemble, law_slopes
from dyn_core.contact.solvers.laws.natural_residuals import (
    LARGE,
    natural_step,
    proves_infeasible,
    respond_to,
)
from dyn_core.contact.solvers.laws.scaling import from_scaled, scale, to_scaled
from dyn_core.contact.solvers.matrices.row_products import add_transposed, multiply
from dyn_core.contact.solvers.matrices.skyline import (
    factorise,
    factorise_both,
    order,
    solve_both,
    solve_factorised,
)
from dyn_core.contact.solvers.solver_memory import (
    FACTORISATIONS,
    INFEASIBLE,
    ITERATIONS,
    MAX_ITERATIONS,
    NO_BUFFER,
    PENALTY,
    NewtonWork,
    SolverWork,
    final_status,
)
from dyn_core.engines.machine_code import FloatArray, machine_code

QUIET = 1e-5  # smallest epsilon after a round of one step without sliding contacts
SHIFT = 10.0  # epsilon after such a round, relative to the shift of velocities
LONG = 8  # steps of a round after which epsilon is reset to its first value
HARDEST = 1e-7  # an epsilon up to this one is not reduced any more
INNER = 0.1  # error that ends a round, relative to the shift of the last round
ROUNDING = 1e-14  # scaled |F| that counts as zero
STALLED = 0.99  # ratio of |F| after and before a step above which steps are useless
TRIALS = 8  # trial steps; each has 0.4 times the length of the previous one


@machine_code
def newton(
    rows: Rows,
    blocks: int,
    m: int,
    nv: int,
    work: SolverWork,
    report: FloatArray,
    max_iterations: int,
    tolerance: float,
    softness: float,
    exact: bool,
) -> int:
    """Solve a problem by Newton steps in proximal rounds; return the status.

        F(z) = z - Y.T gamma(Y z + b) = 0,   (1 + Y.T S Y) dz = -F,   S = -d gamma / du
        gamma(u): the law of each block with a compliance R + epsilon, at u - epsilon x,
        x <- gamma,   epsilon <- epsilon / 10 if this moves u by more than 0.3 times the
        shift of the last round

    In Coulomb's law, lambda_n = max(0, y_n), and lambda_T is the projection of y_T on
    the disc of mu lambda_n, y = (epsilon x - u) / (R + epsilon). Its slope is not
    symmetric if a contact slides; steps are shortened until |F| falls. The relaxation
    projects on the cone: its slope is symmetric, its cost convex, and a line search
    ends near the smallest cost. If no contact slides, the slope depends on the modes
    alone, and the factor is reused until a mode changes.

    Args:
        rows: Problem; its impulses are the start, and then the solution.
        blocks, m, nv: Numbers of blocks, rows and coordinates in use.
        work: Work arrays.
        report: Set to the five residuals, iterations, epsilon and factorisations, (8,);
            the residual `law` refers to the solved law.
        max_iterations: Largest number of Newton steps, and of rounds.
        tolerance: Tolerance of velocities, relative to the largest free one, scaled.
        softness: First epsilon, relative to the response of a block.
        exact: True: Coulomb's law; False: its convex relaxation.

    Returns:
        CONVERGED; MAX_ITERATIONS, also after a singular matrix or values that are not
        finite; INFEASIBLE; or NO_BUFFER: the work arrays are too small, and the
        impulses are unchanged.

    Source: LCP-12, LCP-13 (b); P. Alart and A. Curnier 1991.
    """
    scaled, newton_work = work.scaled, work.newton
    iterates, system = work.iterates, work.system
    heaviest = scale(rows, blocks, scaled)
    to_scaled(rows, blocks, scaled, newton_work.gamma)
    respond_to(
        rows, blocks, m, nv, scaled, newton_work.gamma, system.w, newton_work.u,
        iterates.z, iterates.s, exact,
    )  # fmt: skip
    report[ITERATIONS] = 0.0
    report[PENALTY] = softness
    report[FACTORISATIONS] = 0.0
    status = MAX_ITERATIONS
    if (
        not natural_step(rows, blocks, scaled, newton_work.gamma, iterates.z, exact)
        <= tolerance
    ):
        status = proximal_rounds(
            rows,
            blocks,
            m,
            nv,
            work,
            report,
            max_iterations,
            tolerance,
            softness,
            heaviest,
            exact,
        )
        if status == NO_BUFFER:
            return status
    from_scaled(rows, blocks, scaled, newton_work.gamma)
    row_residuals(rows, blocks, nv, system.w, iterates.r, report)
    if not exact and report[4] < math.inf:
        respond_to(
            rows, blocks, m, nv, scaled, newton_work.gamma, system.w, newton_work.u,
            iterates.z, iterates.s, exact,
        )  # fmt: skip
        report[4] = natural_step(
            rows, blocks, scaled, newton_work.gamma, iterates.z, False
        )
    return final_status(status, report, tolerance)


@machine_code
def proximal_rounds(
    rows: Rows,
    blocks: int,
    m: int,
    nv: int,
    work: SolverWork,
    report: FloatArray,
    max_iterations: int,
    tolerance: float,
    softness: float,
    heaviest: float,
    exact: bool,
) -> int:
    """Iterate Newton steps and rounds of `newton` on the scaled problem.

    The caller must have set work.scaled, the start newton.gamma, its velocities
    newton.u = Y Y.T gamma, and system.w = Y.T gamma. gamma becomes the result;
    rows.impulse is neither read nor changed; report[5:8] are iterations, epsilon and
    factorisations. `softness` is the first epsilon, relative to the response of a
    block, `heaviest` the largest weight of a scaled velocity.

    Returns MAX_ITERATIONS for every end of the steps, converged or not; INFEASIBLE; or
    NO_BUFFER, with gamma and report unchanged, if the work arrays are too small.
    """
    scaled, envelope, newton_work = work.scaled, work.envelope, work.newton
    unknowns, entries = order(rows, blocks, nv, envelope)
    if entries > len(envelope.values):
        return NO_BUFFER
    z, dz = newton_work.z, newton_work.dz
    for v in range(nv):
        if envelope.number[v] >= 0:
            z[envelope.number[v]] = work.system.w[v]
    for i in range(m):
        newton_work.center[i] = newton_work.gamma[i]
        newton_work.du[i] = 0.0
        newton_work.mode[i] = -1
    epsilon, count, rounds, factorisations = softness, 0, 0, 0
    outer, stale, slips, status = 1.0, True, False, MAX_ITERATIONS
    stalled, fresh, quiet, inner, steps = False, False, True, math.inf, 0
    while rounds <= max_iterations:
        if not fresh:
            if respond(rows, blocks, scaled, newton_work, epsilon, exact):
                stale = True
            inner = missing(rows, blocks, work, unknowns)
        fresh = False
        if not inner < math.inf:
            break
        error = heaviest * inner if inner > ROUNDING else 0.0
        if error <= max(0.5 * tolerance, INNER * outer) or stalled:
            before = outer
            outer, largest = _recenter(rows, blocks, work, epsilon)
            rounds += 1
            if outer <= tolerance and (error <= tolerance or stalled):
                break
            if largest > LARGE and outer > 0.5 * before:
                if proves_infeasible(
                    rows, blocks, m, nv, scaled, newton_work.du, work.system.w,
                    work.iterates.r, exact,
                ):  # fmt: skip
                    status = INFEASIBLE
                    break
            slow = outer > 0.3 * before
            if stalled and not (slow and epsilon > HARDEST):
                break
            harder = max(QUIET, SHIFT * outer)
            if quiet and steps <= 1 and not slips and harder < 0.3 * epsilon:
                epsilon = harder
                stale = True
            elif slow and epsilon > HARDEST:
                epsilon *= 0.1
                stale = True
            stalled, steps = False, 0
            continue
        if count >= max_iterations:
            break
        if steps == LONG and epsilon < softness:  # start again with the first one
            epsilon, steps, stale, quiet = softness, 0, True, False
            fresh = False
            continue
        count += 1
        steps += 1
        if stale:
            slips = law_slopes(rows, blocks, scaled, newton_work, epsilon, exact)
            assemble(rows, blocks, scaled, envelope, newton_work, unknowns, slips)
            factorisations += 1
            stale = False
            if slips:
                if not factorise_both(unknowns, envelope, newton_work.upper):
                    break
            elif not factorise(unknowns, envelope):
                break
        for j in range(unknowns):
            dz[j] = newton_work.right[j]
        if slips:
            solve_both(unknowns, envelope, newton_work.upper, dz)
        else:
            solve_factorised(unknowns, envelope, dz)
        multiply(rows, envelope.local, scaled.y, blocks, dz, newton_work.du)
        if exact:
            now, changed = _shorten(rows, blocks, m, work, unknowns, epsilon, inner)
            stalled = now > STALLED * inner and inner < 1e-3
            stale, fresh, inner = slips or changed, True, now
        else:
            step = line(rows, blocks, scaled, newton_work, unknowns, epsilon)
            _move(m, newton_work, unknowns, step)
            stalled = step < 1e-8
    report[ITERATIONS] = float(count)
    report[PENALTY] = epsilon
    report[FACTORISATIONS] = float(factorisations)
    return status


@machine_code
def _move(m: int, work: NewtonWork, unknowns: int, step: float) -> None:
    """Add `step` times dz to z, and `step` times du to u, in place."""
    for j in range(unknowns):
        work.z[j] += step * work.dz[j]
    for i in range(m):
        work.u[i] += step * work.du[i]


@machine_code
def _shorten(
    rows: Rows,
    blocks: int,
    m: int,
    work: SolverWork,
    unknowns: int,
    epsilon: float,
    inner: float,
) -> tuple[float, bool]:
    """Apply a Newton step, shortened until |F| falls, by eight lengths at most.

    The lengths s are 1, 0.4, 0.16 and so on; |F| must fall below (1 - 0.1 s) `inner`.
    If it never does, the last and shortest one stays applied. Returns |F| after the
    step, and whether the slope of the law may have changed: a mode did in a trial, or a
    contact slides. gamma, mode and right are computed from the new z and u.
    """
    done, step, now, changed = 0.0, 1.0, inner, False
    for _ in range(TRIALS):
        _move(m, work.newton, unknowns, step - done)
        done = step
        if respond(rows, blocks, work.scaled, work.newton, epsilon, True):
            changed = True
        now = missing(rows, blocks, work, unknowns)
        if now < (1.0 - 0.1 * step) * inner:
            break
        step *= 0.4
    return now, changed


@machine_code
def missing(rows: Rows, blocks: int, work: SolverWork, unknowns: int) -> float:
    """Return |F|, and set work.newton.right to -F = Y.T gamma - z."""
    right, z = work.newton.right, work.newton.z
    for j in range(unknowns):
        right[j] = -z[j]
    add_transposed(
        rows, work.envelope.local, work.scaled.y, blocks, work.newton.gamma, right
    )
    squares = 0.0
    for j in range(unknowns):
        squares += right[j] * right[j]
    return math.sqrt(squares)


@machine_code
def _recenter(
    rows: Rows, blocks: int, work: SolverWork, epsilon: float
) -> tuple[float, float]:
    """Start a round: set work.newton.center to gamma, and du to the change of center.

    `epsilon` is of the round that has ended. Returns the largest change of the velocity
    offsets epsilon center, relative to the free velocities; and the largest impulse.
    """
    gamma, center = work.newton.gamma, work.newton.center
    worst, largest = 0.0, 0.0
    for k in range(blocks):
        for i in range(rows.start[k], rows.start[k] + rows.count[k]):
            change = gamma[i] - center[i]
            work.newton.du[i] = change
            worst = max(worst, work.scaled.weight[i] * abs(change))
            largest = max(largest, abs(gamma[i]))
            center[i] = gamma[i]
    return epsilon * worst, largest
