"""Correction of position errors without a change of velocity, on arrays.

In the subset of machine_code.
"""

from __future__ import annotations

import math

from dyn_core.contact.problem.rows import BILATERAL, UNILATERAL
from dyn_core.contact.rows.block_rows import along, respond
from dyn_core.contact.rows.contact_biases import TOUCH, correction
from dyn_core.contact.rows.step_tables import (
    CONTACT_ROLE,
    GEAR,
    LIMIT,
    LOOP,
    Scene,
    StepArrays,
)
from dyn_core.contact.solvers.coulomb_newton import NEAR
from dyn_core.contact.solvers.proximal_newton import newton
from dyn_core.contact.solvers.solver_calls import ChosenSolver
from dyn_core.engines.machine_code import machine_code

SOFT = 1e-9  # compliance, relative to the response
SHORT = 1e-2  # fraction of the largest correction that may be missing
TOLERANCE = 1e-6  # relative to the largest correction; more precision is expensive
ITERATIONS = 100  # maximum number of Newton steps
NOTHING, CORRECTED, INCOMPLETE = range(3)  # results of correct_positions


@machine_code
def correct_positions(
    scene: Scene, step: StepArrays, solver: ChosenSolver, state: int, used: int
) -> int:
    """Compute the velocity that corrects the positions after a step.

    Args:
        scene: Robot, world and rule.
        step: Arrays after write_velocity. step.normals is overwritten;
            step.correction[state] is written if the result is not NOTHING.
        solver: Solver, of which the memory is used.
        state: Index of the state.
        used: Number of blocks of the step.

    Returns:
        NOTHING: no correction is needed. CORRECTED. INCOMPLETE: overlaps remain above
            the fraction 0.01 of the largest correction, or the solver has not
            converged.
    """
    blocks, m = prepare_correction(scene, step, state, used)
    if m == 0:
        return NOTHING
    nv, report = len(step.work.free), solver.reports[1]
    status = newton(
        step.normals, blocks, m, nv, solver.work, report, ITERATIONS, TOLERANCE, NEAR,
        False,
    )  # fmt: skip
    if end_correction(scene, step, state, blocks) and status == 0:
        return CORRECTED
    return INCOMPLETE


@machine_code
def prepare_correction(
    scene: Scene, step: StepArrays, state: int, used: int
) -> tuple[int, int]:
    """Fill step.normals with the problem that corrects positions after a step.

        0 <= p  orthogonal to  G p + R p + bias >= 0   of contacts and limits,
        G p + R p + erp gap' / remaining = 0   of loops and gears

    with the normal rows of contacts only, gap' the gap after the step at the known
    velocity, and R a small fraction of G, which distributes corrections that exclude
    each other.

    Args:
        scene: Robot, world and rule.
        step: Arrays after write_velocity; step.normals is written.
        state: Index of the state.
        used: Number of blocks of the step.

    Returns:
        Numbers of blocks and rows; 0, 0 if no correction is needed.

    Source: LCP-11 (split impulse).
    """
    rows, blocks, normals, rule = step.rows, step.blocks, step.normals, scene.rule
    remaining = rule.remaining
    push = rule.push * rule.dt / remaining
    block, row, wrong = 0, 0, 0.0
    for k in range(used):
        role = blocks.role[k]
        if not (role == CONTACT_ROLE or role == LIMIT or role == LOOP or role == GEAR):
            continue
        closing = role == CONTACT_ROLE or role == LIMIT
        count = 1 if closing else rows.count[k]
        normals.kind[block] = UNILATERAL if closing else BILATERAL
        normals.start[block], normals.count[block] = row, count
        normals.support_start[block] = rows.support_start[k]
        normals.support_count[block] = rows.support_count[k]
        normals.y_start[block] = rows.y_start[k]
        for r in range(count):
            first = rows.start[k] + r
            opening = (
                rows.b[first] - blocks.bias[first] + along(rows, k, r, step.work.z)
            )
            before = blocks.gap[k]
            if role == LOOP:
                before = step.terms.gaps[state, blocks.source[k] + r]
            gap = before + remaining * opening
            bias = gap * (rule.apart / remaining)
            if closing:
                bias = correction(before, gap, opening, remaining, rule.apart, push)
                wrong = max(wrong, -bias * remaining)
            else:
                wrong = max(wrong, abs(bias) * remaining)
            n, response = rows.support_count[k], 0.0
            start = rows.y_start[k] + r * n
            for i in range(n):
                response += rows.y[start + i] * rows.y[start + i]
            normals.b[row + r], normals.impulse[row + r] = bias, 0.0
            normals.lo[row + r], normals.hi[row + r] = -math.inf, math.inf
            normals.compliance[row + r] = SOFT * response
        block, row = block + 1, row + count
    if wrong > TOUCH * rule.apart:
        return block, row
    return 0, 0


@machine_code
def end_correction(scene: Scene, step: StepArrays, state: int, blocks: int) -> bool:
    """Compute the velocity that corrects positions from the impulses of step.normals.

    Args:
        scene: Robot, world and rule.
        step: Arrays after the solution of the problem in step.normals;
            step.correction[state] is written, step.work overwritten.
        state: Index of the state.
        blocks: Number of blocks of the correction.

    Returns:
        Whether contacts and limits are corrected up to the fraction 0.01 of the largest
        correction.
    """
    tables, normals = scene.tables, step.normals
    respond(tables, step.terms.factor[state], normals, blocks, step.work)
    for k in range(len(tables.coordinate)):
        step.correction[state, tables.coordinate[k]] = step.work.change[k]
    asked, short = 0.0, 0.0
    for block in range(blocks):
        for r in range(
            normals.start[block], normals.start[block] + normals.count[block]
        ):
            asked = max(asked, abs(normals.b[r]))
            if normals.kind[block] == UNILATERAL:
                velocity = along(normals, block, 0, step.work.z) + normals.b[r]
                short = min(short, velocity)
    return short >= -SHORT * asked
