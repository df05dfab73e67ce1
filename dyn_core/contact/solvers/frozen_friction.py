"""Friction with given bounds: a convex problem in place of one that is not solved.

In the subset of machine code.
"""

from __future__ import annotations

import math

from dyn_core.contact.problem.projections import best_part
from dyn_core.contact.problem.rows import Rows
from dyn_core.contact.solvers.coulomb_newton import NEAR
from dyn_core.contact.solvers.laws.law_residuals import row_residuals
from dyn_core.contact.solvers.laws.natural_residuals import natural_step, respond_to
from dyn_core.contact.solvers.laws.scaling import (
    CONE,
    FROZEN,
    from_scaled,
    scale,
    to_scaled,
)
from dyn_core.contact.solvers.matrices.row_products import add_transposed
from dyn_core.contact.solvers.proximal_newton import proximal_rounds
from dyn_core.contact.solvers.solver_memory import (
    CONVERGED,
    FACTORISATIONS,
    FROZEN_FRICTION,
    ITERATIONS,
    MAX_ITERATIONS,
    REACHED,
    SolverWork,
)
from dyn_core.engines.machine_code import FloatArray, machine_code

STEPS = 1000  # most Newton steps of a try; a hundred do but once in a million times
TRIES = 4  # from the impulses of now, from zero, with a tenth of the bounds, with none
TOLERANCE = 1e-9  # of velocities, relative to the largest free one, scaled
ENOUGH = 1e-7  # likewise, of the law of the result


@machine_code
def freeze_friction(
    rows: Rows, blocks: int, m: int, nv: int, work: SolverWork, report: FloatArray
) -> int:
    """Solve a problem whose friction has bounds of its own; return the status.

        0 <= lambda_n  orthogonal to  u_n >= 0,
        |lambda_T| <= r,  lambda_T . u_T = -r |u_T|,   r = mu lambda_n of the start

    All other rows have their laws. The problem is convex: it has a solution wherever
    normals, limits and free rows alone have one, and since zero obeys its bounds, the
    impulses add no energy to the motion that free rows leave. The law of Coulomb is
    missed by mu times the change of lambda_n.

    Args:
        rows: Problem; its impulses are the start, and then the solution.
        blocks, m, nv: Numbers of blocks, rows and coordinates in use.
        work: Memory.
        report: Residuals of Coulomb's law, iterations added up, epsilon and
            factorisations, (8,).

    Returns:
        FROZEN_FRICTION; CONVERGED where Coulomb's law holds; MAX_ITERATIONS or
        INFEASIBLE where even a try without friction is not solved: then all impulses
        are as `take_no_energy` leaves them.

    Source: P. D. Panagiotopoulos 1975 (friction with given bounds).
    """
    scaled, newton_work, iterates = work.scaled, work.newton, work.iterates
    gamma, count, status = newton_work.gamma, report[ITERATIONS], MAX_ITERATIONS
    heaviest = scale(rows, blocks, scaled)
    for i in range(m):
        if not abs(rows.impulse[i]) < math.inf:
            rows.impulse[i] = 0.0
    to_scaled(rows, blocks, scaled, gamma)
    _bound_friction(rows, blocks, work)
    for attempt in range(TRIES):
        for i in range(m):
            if attempt > 0:
                gamma[i] = 0.0
        for k in range(blocks):
            if scaled.law[k] == FROZEN and attempt > 1:
                scaled.c[k] *= 0.1 if attempt == 2 else 0.0
        report[ITERATIONS] = 0.0
        report[FACTORISATIONS] = 0.0
        respond_to(
            rows, blocks, m, nv, scaled, gamma, work.system.w, newton_work.u,
            iterates.z, iterates.s, False,
        )  # fmt: skip
        status = proximal_rounds(
            rows, blocks, m, nv, work, report, STEPS, TOLERANCE, NEAR, heaviest, False
        )
        count += report[ITERATIONS]
        respond_to(
            rows, blocks, m, nv, scaled, gamma, work.system.w, newton_work.u,
            iterates.z, iterates.s, False,
        )  # fmt: skip
        if natural_step(rows, blocks, scaled, gamma, iterates.z, False) <= ENOUGH:
            status = FROZEN_FRICTION
            break
    from_scaled(rows, blocks, scaled, gamma)
    if not status == FROZEN_FRICTION:
        take_no_energy(rows, blocks, nv, work)
    row_residuals(rows, blocks, nv, work.system.w, iterates.r, report)
    report[ITERATIONS] = count
    if status == FROZEN_FRICTION and report[4] <= REACHED:
        return CONVERGED
    return status


@machine_code
def _bound_friction(rows: Rows, blocks: int, work: SolverWork) -> None:
    """Give the friction of each cone the bound that its normal impulse gives now."""
    scaled, gamma = work.scaled, work.newton.gamma
    for k in range(blocks):
        if scaled.law[k] == CONE:
            scaled.law[k] = FROZEN
            scaled.c[k] *= max(0.0, gamma[rows.start[k]])


@machine_code
def take_no_energy(rows: Rows, blocks: int, nv: int, work: SolverWork) -> None:
    """Scale the impulses of a problem without solution by the best part from 0 to 1.

        q(s) = s b . lambda + s² (|Y.T lambda|² + lambda . R lambda) / 2

    is the energy that they add to the free motion; its least value is not positive.
    """
    z, power, square = work.system.w, 0.0, 0.0
    for v in range(nv):
        z[v] = 0.0
    add_transposed(rows, rows.support, rows.y, blocks, rows.impulse, z)
    for v in range(nv):
        square += z[v] * z[v]
    for k in range(blocks):
        for i in range(rows.start[k], rows.start[k] + rows.count[k]):
            power += rows.b[i] * rows.impulse[i]
            square += rows.compliance[i] * rows.impulse[i] * rows.impulse[i]
    # Where something is not finite, none acts.
    part = best_part(power, square) if square < math.inf else 0.0
    for k in range(blocks):
        for i in range(rows.start[k], rows.start[k] + rows.count[k]):
            x = rows.impulse[i]
            rows.impulse[i] = part * x if part > 0.0 else 0.0
