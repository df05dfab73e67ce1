"""Whole steps in one call of machine code: of a single state, or of several rows.

    contact_terms -> find contacts -> assemble rows -> impact -> solve -> velocity
    -> correct -> moved_state

`take_step` does all of that for one state: it also calls the machine code of the
Programs, the first and the last stage. `step_rows` does the stages between them, for
several states one after the other. Solvers of matrices, and impacts by other laws than
Newton's, are called in Python.

A status is an index in residuals.STATUSES: CONVERGED (0), MAX_ITERATIONS (1),
INFEASIBLE (2), RAY (3), NOT_UNIQUE (4), NO_BUFFER (5), WEDGED (6) or frozen friction
(7); or RAISED (-1). In the subset of machine_code.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dyn_core.contact.fast_bodies.fast_pairs import find_passed, is_passing
from dyn_core.contact.fast_bodies.fast_rows import move_before_meetings
from dyn_core.contact.problem.rows import Rows
from dyn_core.contact.rows.block_rows import remember
from dyn_core.contact.rows.contact_rows import cross, tangent
from dyn_core.contact.rows.problem_assembly import (
    fill_problem,
    prepare_step,
    write_velocity,
)
from dyn_core.contact.rows.step_tables import (
    CONTACT_ROLE,
    LIMIT,
    PRESCRIBED,
    BlockFacts,
    Scene,
    StepArrays,
)
from dyn_core.contact.solvers.frozen_friction import freeze_friction, take_no_energy
from dyn_core.contact.solvers.matrices.row_products import add_transposed, row_response
from dyn_core.contact.solvers.solver_calls import (
    IMPACT,
    RAISED,
    ChosenSolver,
    solve_rows,
)
from dyn_core.contact.solvers.solver_memory import (
    CONVERGED,
    INFEASIBLE,
    ITERATIONS,
    LAW,
    MAX_ITERATIONS,
    NO_BUFFER,
    NOT_UNIQUE,
    RAY,
    WEDGED,
)
from dyn_core.contact.stepping.position_correction import (
    INCOMPLETE,
    NOTHING,
    correct_positions,
)
from dyn_core.contact.stepping.step_records import COUNTS
from dyn_core.engines.machine_code import (
    FloatArray,
    FloatArray3,
    IntArray,
    KernelAddress,
    call_python,
    machine_code,
    run_kernel,
)

DONE, FAILED, REFUSED = range(3)  # results of take_step
NO_RESULT = -1  # status of a state that failed
# Ratio of impulses, as velocities, to the velocities of the problem. Above it the
# tolerance of the law, which grows with the impulses, proves nothing.
ENDLESS = 1e7
ROUNDING = 1e-9  # work below this fraction of the power of impulses is rounding error


class StepKernels(NamedTuple):
    """Machine code of the Programs of a single state, tied to its memory.

    `middle` moves the state to the middle of the step, where constraints are evaluated;
    its address is 0 if they are evaluated at the start. `end` moves it by qd_next and
    `correction` to the end of the step, which is in StepLog.
    """

    middle: KernelAddress
    terms: KernelAddress
    end: KernelAddress


class StepLog(NamedTuple):
    """Results of the step of a single state, which ends at q_end and qd_end.

    `integers`: status, iterations, whether corrections were incomplete, numbers of
    contacts, rows and blocks; then the number of each block's constraint; then its
    first row. `floats`: q, qd and velocity of the problem, residuals, (5,), impulses of
    all rows.
    """

    integers: IntArray
    floats: FloatArray
    q_end: FloatArray
    qd_end: FloatArray


class RowOutcomes(NamedTuple):
    """Results of the last step of each of n states.

    Attributes:
        status: Index in residuals.STATUSES, (n,); NO_RESULT for a state that failed.
        residual: Residual of the law that the solver solves, (n,).
        failed: Whether a number was not finite, (n,).
        corrected, short: Whether positions are corrected, and whether that was
            incomplete, (n,).
        chosen: Index in `force` of each body, world first, (nb + 1,); -1: none.
        force: Sum of the contact forces on each chosen body, world axes, mean of the
            step, (n, chosen, 3) [N].
        world_force: Contribution of contacts with the world, likewise.
    """

    status: IntArray
    iterations: FloatArray
    contacts: IntArray
    rows: IntArray
    residual: FloatArray
    failed: IntArray
    corrected: IntArray
    short: IntArray
    chosen: IntArray
    force: FloatArray3
    world_force: FloatArray3


def allocate_outcomes(n: int, chosen: np.ndarray) -> RowOutcomes:
    """Return RowOutcomes of zeros for n states; `chosen` is its field, not copied."""
    forces = n, int(chosen.max(initial=-1)) + 1, 3
    return RowOutcomes(
        status=np.zeros(n, np.int64),
        iterations=np.zeros(n),
        contacts=np.zeros(n, np.int64),
        rows=np.zeros(n, np.int64),
        residual=np.zeros(n),
        failed=np.zeros(n, np.int64),
        corrected=np.zeros(n, np.int64),
        short=np.zeros(n, np.int64),
        chosen=chosen,
        force=np.zeros(forces),
        world_force=np.zeros(forces),
    )


@machine_code
def take_step(
    scene: Scene,
    step: StepArrays,
    kernels: StepKernels,
    solver: ChosenSolver,
    outcomes: RowOutcomes,
    log: StepLog,
) -> int:
    """Compute the step of a single state, from its dynamics to its end.

    Returns DONE (0), and only then is `log` valid. FAILED (1): a number is not finite,
    or Python raised an exception; the impulses of earlier steps are deleted. REFUSED
    (2): a Program failed; if it is kernels.end, earlier impulses are those of this
    step. A negative number: minus the number of contacts, for which the arrays are too
    small; the step can be repeated with larger ones.

    Source: LCP-4.
    """
    if kernels.middle.address != 0 and run_kernel(kernels.middle) != 0:
        return REFUSED
    if run_kernel(kernels.terms) != 0:
        return REFUSED
    done, needed = step_rows(scene, step, solver, outcomes, 0, 1, 0)
    if done == 0:
        return -needed
    if outcomes.failed[0] != 0:
        return FAILED
    if run_kernel(kernels.end) != 0:
        return REFUSED
    return keep_step(step, solver, outcomes, log)


@machine_code
def keep_step(
    step: StepArrays, solver: ChosenSolver, outcomes: RowOutcomes, log: StepLog
) -> int:
    """Fill the log from the step and the log's end state; return DONE or FAILED.

    FAILED: the end state is not finite; the impulses of earlier steps are deleted.
    """
    report, impact = solver.reports[0], solver.impact
    integers, floats, terms, earlier = (
        log.integers,
        log.floats,
        step.terms,
        step.earlier,
    )
    nq, nv, m = terms.q.shape[1], terms.qd.shape[1], outcomes.rows[0]
    total = 0.0
    for k in range(nq):
        floats[k] = terms.q[0, k]
        total += 0.0 * log.q_end[k]  # NaN if it is infinite or NaN
    for k in range(nv):
        floats[nq + k], floats[nq + nv + k] = terms.qd[0, k], step.qd_next[0, k]
        total += 0.0 * log.qd_end[k]
    if math.isnan(total):
        earlier.known[0] = 0
        return FAILED
    after = nq + 2 * nv
    for k in range(5):
        floats[after + k] = report[k]
    for r in range(m):
        floats[after + 5 + r] = earlier.impulse[0, r]
    if solver.choice.impacts > 0:
        for r in range(m):
            floats[after + 5 + r] += impact[r]
    blocks = earlier.known[0]
    integers[0], integers[1], integers[2] = (
        outcomes.status[0],
        int(outcomes.iterations[0]),
        outcomes.short[0],
    )
    integers[3], integers[4], integers[5] = outcomes.contacts[0], m, blocks
    for k in range(blocks):
        integers[COUNTS + k] = earlier.id[0, k]
        integers[COUNTS + blocks + k] = earlier.start[0, k]
    return DONE


@machine_code
def step_rows(
    scene: Scene,
    step: StepArrays,
    solver: ChosenSolver,
    outcomes: RowOutcomes,
    first: int,
    last: int,
    offset: int,
) -> tuple[int, int]:
    """Compute the step of states `first` to before `last`, except for their positions.

    A state that is not finite, or becomes so, or whose solver or impact law in Python
    raises, has failed: its velocity and correction are set to zero, its impulses of
    earlier steps are deleted, outcomes.failed is 1 and outcomes.status -1 (NO_RESULT).
    `offset` is the index in `outcomes` of state 0.

    Returns `last` and 0; if the arrays are too small for the contacts of a state, its
    index and its number of contacts: only the states before it are advanced.

    Source: LCP-1 to LCP-4, LCP-11.
    """
    for state in range(first, last):
        n = offset + state
        clear_outcome(outcomes, n)
        if not finite_terms(step, state):
            fail(step, outcomes, state, n)
            continue
        touching, blocks, m = prepare_step(scene, step, state)
        if touching < 0:
            return state, -touching
        before = CONVERGED
        if solver.choice.impacts > 0:
            before = call_python(solver.python, IMPACT, blocks, m)
        status = RAISED
        if not before == RAISED:
            status = solve_state(scene, step, solver, blocks, m)
        finite = not status == RAISED and write_velocity(scene, step, state, blocks)
        while finite and is_passing(scene, step, state):
            touching = find_passed(scene, step, state, touching)
            if touching < 0:
                return state, -touching
            if step.fast.changed[0] == 0:
                break
            blocks, m = fill_problem(scene, step, state, touching)
            status = solve_state(scene, step, solver, blocks, m)
            finite = not status == RAISED and write_velocity(scene, step, state, blocks)
        if not before == CONVERGED:
            status = before
        if finite:
            remember(step.rows, step.blocks, blocks, step.earlier, state)
        outcomes.contacts[n], outcomes.rows[n] = touching, m
        finish_state(scene, step, solver, outcomes, state, n, blocks, status, finite)
    return last, 0


@machine_code
def solve_state(
    scene: Scene, step: StepArrays, solver: ChosenSolver, blocks: int, m: int
) -> int:
    """Solve a prepared problem; return the index of its status in STATUSES, or RAISED.

    Where rebounds or push-outs admit no solution (see leave_out_pushes), the problem is
    solved again without them, with changed b and bias; if that succeeds, WEDGED is
    returned. A problem that is still not solved gets impulses that add no energy. Where
    the solver ends with MAX_ITERATIONS or RAY, friction is frozen, with the status of
    freeze_friction. Where it ends with INFEASIBLE or NO_BUFFER, the impulses are scaled
    by the factor in [0, 1] of least energy, and the status stays.
    """
    nv, report = len(step.work.free), solver.reports[0]
    status = solve_rows(step.rows, blocks, m, nv, solver)
    if status == RAISED:
        return RAISED
    if leave_out_pushes(scene, step, blocks, status, solver.work.system.w):
        status = solve_rows(step.rows, blocks, m, nv, solver)
        if status == CONVERGED or status == NOT_UNIQUE:
            return WEDGED
    if status == MAX_ITERATIONS or status == RAY:  # a ray proves nothing with friction
        return freeze_friction(step.rows, blocks, m, nv, solver.work, report)
    if status == INFEASIBLE or status == NO_BUFFER:  # the latter: of the warm start
        take_no_energy(step.rows, blocks, nv, solver.work)
    return status


@machine_code
def leave_out_pushes(
    scene: Scene, step: StepArrays, used: int, status: int, z: FloatArray
) -> bool:
    """Remove rebounds and push-outs without a solution; return whether to solve again.

    A rebound, or the push out of an overlap, asks a gap to open: bias < 0. Where the
    friction cones contain impulses d that move nothing, Y.T d = 0, and bias . d < 0, no
    impulses fulfil that: they grow without bound. With bias >= 0 the robot at rest
    fulfils every row. Such d are not sought: `status` decides whether contacts and
    limits with bias < 0 get the bias 0, also in b. All impulses then become zero. If
    the result is False, nothing but the memory z is changed.

    At status INFEASIBLE all rebounds are removed, at another one all rebounds and
    push-outs; but at CONVERGED or NOT_UNIQUE only if impulses are endless (as
    velocities above 1e7 times the free ones) or, in a step with meetings of fast
    bodies, add energy.

    Source: ours; the cones of LCP-12.
    """
    rows, facts = step.rows, step.blocks
    any_push, solved = False, status == CONVERGED or status == NOT_UNIQUE
    for block in range(used):
        if _pushes(facts, block, rows.start[block], status):
            any_push = True
    if not any_push:
        return False
    if solved and not _endless(rows, used):
        if step.fast.used[0] < 2:
            return False
        if not _adds_energy(rows, facts, used, scene.rule.rest, z):
            return False
    for block in range(used):
        row = rows.start[block]
        if _pushes(facts, block, row, status):
            rows.b[row] -= facts.bias[row]
            facts.bias[row] = 0.0
        for r in range(row, row + rows.count[block]):
            rows.impulse[r] = 0.0
    return True


@machine_code
def _pushes(facts: BlockFacts, block: int, row: int, status: int) -> bool:
    """Return whether a block has a rebound or push-out that may be removed.

    True for a contact or limit with bias < 0; with the status INFEASIBLE only if it has
    restitution.
    """
    if not (facts.role[block] == CONTACT_ROLE or facts.role[block] == LIMIT):
        return False
    rebounds = facts.restitution[block] > 0.0
    return facts.bias[row] < 0.0 and (rebounds or status != INFEASIBLE)


@machine_code
def _endless(rows: Rows, used: int) -> bool:
    """Return whether impulses, as velocities, exceed 1e7 times the largest |b|.

    The velocity of an impulse is its size times the response of its row; b are the free
    velocities plus bias.
    """
    speed, most = 0.0, 0.0
    for block in range(used):
        for row in range(rows.count[block]):
            i = rows.start[block] + row
            speed = max(speed, abs(rows.b[i]))
            most = max(most, abs(rows.impulse[i]) * row_response(rows, block, row))
    return most > ENDLESS * speed


@machine_code
def _adds_energy(
    rows: Rows, facts: BlockFacts, used: int, rest: float, z: FloatArray
) -> bool:
    """Return whether impulses of a step with meetings add energy to its free motion.

        lambda . (b - bias) + |Y.T lambda|² / 2 + sum of lambda min(bias, 0) > least

    lambda are the impulses, b the free velocities plus bias. The last sum is over
    blocks without restitution, which are pushed out of an overlap. `least` is the sum
    of |first impulse| times `rest`, the velocity that gravity adds in a step [m/s],
    since a rebound does not see gravity's work in the rest of the step, plus a bound of
    rounding errors.

    A body that is hit, and then meets another, rebounds in relation to its velocity
    after the first meeting; if other contacts hold it, both impulses may do work.
    Motors of prescribed joints may do work: with any the result is False. z is
    overwritten.
    """
    work, least = 0.0, 0.0
    for v in range(len(z)):
        z[v] = 0.0
    add_transposed(rows, rows.support, rows.y, used, rows.impulse, z)
    for v in range(len(z)):
        work += 0.5 * z[v] * z[v]
    for block in range(used):
        if facts.role[block] == PRESCRIBED:
            return False
        first = rows.start[block]
        for row in range(first, first + rows.count[block]):
            power = rows.impulse[row] * (rows.b[row] - facts.bias[row])
            work, least = work + power, least + ROUNDING * abs(power)
        least += rest * abs(rows.impulse[first])
        if not facts.restitution[block] > 0.0:
            work += rows.impulse[first] * min(facts.bias[first], 0.0)
    return work > least


@machine_code
def finish_state(
    scene: Scene,
    step: StepArrays,
    solver: ChosenSolver,
    outcomes: RowOutcomes,
    state: int,
    n: int,
    blocks: int,
    status: int,
    finite: bool,
) -> None:
    """Write outcome, contact forces and correction after a step's velocity.

    step.correction is written if positions are corrected or bodies met within the step;
    whether it is finite is not tested. If the velocity is not `finite`, the state
    fails. `n` is its index in `outcomes`, whose forces there must be zero before.
    """
    report = solver.reports[0]
    outcomes.status[n], outcomes.iterations[n] = status, report[ITERATIONS]
    outcomes.residual[n] = report[LAW]
    if not finite:
        fail(step, outcomes, state, n)
        return
    if outcomes.force.shape[1] > 0:
        add_forces(step, blocks, outcomes, n, scene.rule.dt)
    if scene.rule.apart > 0.0:
        result = correct_positions(scene, step, solver, state, blocks)
        outcomes.corrected[n] = 0 if result == NOTHING else 1
        outcomes.short[n] = 1 if result == INCOMPLETE else 0
    if step.fast.used[0] > 0 and move_before_meetings(scene, step, state):
        outcomes.corrected[n] = 1


@machine_code
def clear_outcome(outcomes: RowOutcomes, n: int) -> None:
    """Set all results of state n in `outcomes` to zero."""
    outcomes.status[n], outcomes.iterations[n] = 0, 0.0
    outcomes.contacts[n], outcomes.rows[n], outcomes.residual[n] = 0, 0, 0.0
    outcomes.failed[n], outcomes.corrected[n], outcomes.short[n] = 0, 0, 0
    for k in range(outcomes.force.shape[1]):
        for i in range(3):
            outcomes.force[n, k, i], outcomes.world_force[n, k, i] = 0.0, 0.0


@machine_code
def finite_terms(step: StepArrays, state: int) -> bool:
    """Return whether a state, its free velocity, factor and poses are finite."""
    terms, total = step.terms, 0.0
    for k in range(terms.q.shape[1]):
        total += 0.0 * terms.q[state, k]
    for k in range(terms.qd.shape[1]):
        total += 0.0 * terms.qd[state, k] + 0.0 * terms.free[state, k]
    for k in range(terms.factor.shape[1]):
        total += 0.0 * terms.factor[state, k]
    poses = terms.poses[state]
    for body in range(poses.shape[0]):
        for k in range(poses.shape[1]):
            total += 0.0 * poses[body, k]
    return not math.isnan(total)


@machine_code
def fail(step: StepArrays, outcomes: RowOutcomes, state: int, n: int) -> None:
    """Mark a state as failed; set its velocities to zero and delete its impulses."""
    outcomes.failed[n], outcomes.status[n] = 1, NO_RESULT
    step.earlier.known[state] = 0
    for k in range(step.qd_next.shape[1]):
        step.qd_next[state, k], step.correction[state, k] = 0.0, 0.0


@machine_code
def add_forces(
    step: StepArrays, used: int, outcomes: RowOutcomes, n: int, dt: float
) -> None:
    """Add the mean contact forces of a step, impulses over dt, to the chosen bodies.

    Torsional and rolling moments do not count. Forces at n are in world axes [N].

    Source: LCP-2, LCP-15.
    """
    rows, blocks, contacts = step.rows, step.blocks, step.contacts
    chosen = outcomes.chosen
    for block in range(used):
        if blocks.role[block] != CONTACT_ROLE:
            continue
        c, row = blocks.source[block], rows.start[block]
        a, b = contacts.body_a[c], contacts.body_b[c]
        if chosen[a] < 0 and chosen[b] < 0:
            continue
        x, y, z = contacts.normal[c, 0], contacts.normal[c, 1], contacts.normal[c, 2]
        size = rows.impulse[row] / dt
        fx, fy, fz = size * x, size * y, size * z
        if rows.count[block] > 1:
            sx, sy, sz = tangent(x, y, z)
            tx, ty, tz = cross(x, y, z, sx, sy, sz)
            s, t = rows.impulse[row + 1] / dt, rows.impulse[row + 2] / dt
            fx, fy, fz = (
                fx + s * sx + t * tx,
                fy + s * sy + t * ty,
                fz + s * sz + t * tz,
            )
        add_force(outcomes, n, chosen[a], b == 0, fx, fy, fz)
        add_force(outcomes, n, chosen[b], a == 0, -fx, -fy, -fz)


@machine_code
def add_force(
    outcomes: RowOutcomes,
    n: int,
    k: int,
    of_world: bool,
    x: float,
    y: float,
    z: float,
) -> None:
    """Add a force in world axes [N] to those on chosen body k; none for k = -1."""
    if k < 0:
        return
    outcomes.force[n, k, 0] += x
    outcomes.force[n, k, 1] += y
    outcomes.force[n, k, 2] += z
    if of_world:
        outcomes.world_force[n, k, 0] += x
        outcomes.world_force[n, k, 1] += y
        outcomes.world_force[n, k, 2] += z
