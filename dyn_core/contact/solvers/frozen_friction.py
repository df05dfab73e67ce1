"""Friction with fixed bounds: a convex substitute for an unsolved Coulomb problem.

In the subset of machine code. Statuses:
CONVERGED is 0, MAX_ITERATIONS 1, INFEASIBLE 2, NO_BUFFER 5, FROZEN_FRICTION 7.
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
    rescale_normal,
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

RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py

STEPS = 1000  # Newton steps of a try; all but one problem in a million need < 100
TRIES = 4  # from the given impulses; from zero; a tenth of the bounds; no friction
TOLERANCE = 1e-9  # of velocities, relative to the largest free one, scaled
ENOUGH = 1e-7  # largest `natural_step` of a solved problem


@machine_code
def freeze_friction(
    rows: Rows, blocks: int, m: int, nv: int, work: SolverWork, report: FloatArray
) -> int:
    """Solve a problem with fixed bounds of friction; return the status.

        0 <= lambda_n  orthogonal to  u_n >= 0,
        |lambda_T| <= r,  lambda_T . u_T = -r |u_T|,   r = mu lambda_n of the start

    Other rows keep their laws. The problem is convex: it has a solution if the problem
    without friction has one. Since zero friction obeys the bounds, the impulses add no
    energy to the motion of the problem with its free rows alone. Coulomb's law is
    violated by mu times the change of lambda_n. If the problem is not solved, it is
    tried again from zero, with a tenth of the bounds, and without friction.

    Impulses at the start that are not finite count as zero. The status is
    FROZEN_FRICTION; CONVERGED if the result obeys Coulomb's law; another one if no try
    succeeds: the impulses are then scaled by `take_no_energy`. Iterations are added to
    those in `report`.

    Source: P. D. Panagiotopoulos 1975 (friction with given bounds).
    """
    scaled, newton_work, iterates = work.scaled, work.newton, work.iterates
    gamma, count, status = newton_work.gamma, report[ITERATIONS], MAX_ITERATIONS
    scale(rows, blocks, scaled)
    for i in range(m):
        if not abs(rows.impulse[i]) < math.inf:
            rows.impulse[i] = 0.0
    to_scaled(rows, blocks, scaled, gamma)
    heaviest = _bound_friction(rows, blocks, work)
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
def _bound_friction(rows: Rows, blocks: int, work: SolverWork) -> float:
    """Change each CONE to FROZEN, with the bound c max(0, gamma_n) of its friction.

    The law of the normal is then apart from that of its friction, and its row gets
    another unit, see `rescale_normal`: y, b, R, T, weight and newton.gamma change.
    Returns the largest entry of scaled.weight.
    """
    scaled, gamma, heaviest = work.scaled, work.newton.gamma, 0.0
    for k in range(blocks):
        first = rows.start[k]
        if scaled.law[k] == CONE:
            scaled.law[k] = FROZEN
            scaled.c[k] *= max(0.0, gamma[first])
            gamma[first] /= rescale_normal(rows, scaled, k)
        for i in range(first, first + rows.count[k]):
            heaviest = max(heaviest, scaled.weight[i])
    return heaviest


@machine_code
def take_no_energy(rows: Rows, blocks: int, nv: int, work: SolverWork) -> None:
    """Scale the impulses of an unsolved problem by the s in [0, 1] of least energy.

        q(s) = s b . lambda + s² (|Y.T lambda|² + lambda . R lambda) / 2

    is the energy that s lambda adds to the free motion; its minimum is not positive.

    Args:
        rows: Problem; rows.impulse is changed. All impulses become zero if one is not
            finite.
        blocks, nv: Numbers of blocks and coordinates in use.
        work: Work arrays; system.w is overwritten.
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
    # Impulses that are not finite are removed.
    part = best_part(power, square) if square < math.inf else 0.0
    for k in range(blocks):
        for i in range(rows.start[k], rows.start[k] + rows.count[k]):
            x = rows.impulse[i]
            rows.impulse[i] = part * x if part > 0.0 else 0.0
