"""The constraint problem of one step, from shapes and joints to Rows.

In the subset of machine_code. The work is proportional to the number of contacts and
the length of their paths to the base. H is never formed: with H + dt B = L.T L and J of
a block, Y = J L^-1, row by row, at the coordinates of the block and their ancestors.
"""

from __future__ import annotations

from dyn_core.contact.collision.detection.all_pairs import find_contacts
from dyn_core.contact.fast_bodies.fast_pairs import find_fast_contacts, may_be_fast
from dyn_core.contact.fast_bodies.fast_rows import close_meeting, meeting_rows
from dyn_core.contact.problem.rows import CONTACT
from dyn_core.contact.rows.block_rows import (
    add_bias,
    add_place,
    along,
    begin,
    close,
    finish,
    locate,
    respond,
    takes_part,
    union,
    warm_start,
)
from dyn_core.contact.rows.contact_rows import contact_rows, fill_body
from dyn_core.contact.rows.step_tables import (
    CONTACT_ROLE,
    GEAR,
    LIMIT,
    MOREAU_JEAN,
    PRESCRIBED,
    Scene,
    StepArrays,
)
from dyn_core.engines.machine_code import machine_code

RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py


@machine_code
def prepare_step(scene: Scene, step: StepArrays, state: int) -> tuple[int, int, int]:
    """Find the contacts of a state and fill the problem of its step.

    Returns the numbers of contacts, blocks and rows; if the arrays of contacts are too
    small, minus the number of contacts, 0 and 0, with no problem. Impulses start from
    those of the previous step, else from zero.

    Source: LCP-1 to LCP-4.
    """
    read_velocities(scene, step, state)
    step.fast.used[0] = 0
    velocity, dt = step.work.free, scene.rule.dt
    if scene.rule.scheme == MOREAU_JEAN:
        velocity = step.work.qd
    if may_be_fast(scene.tables, scene.fast, velocity, dt, step.fast):
        touching = find_fast_contacts(scene, step, state)
    else:
        touching = find_slow_contacts(scene, step, state)
    if touching < 0:
        return touching, 0, 0
    blocks, rows = fill_problem(scene, step, state, touching)
    return touching, blocks, rows


@machine_code
def prepare_again(scene: Scene, step: StepArrays, state: int, touching: int) -> int:
    """Fill the problem of a step again; return the number of its blocks.

    `touching` contacts are known, with the velocities along which they were found; -1:
    no pair was fast, and contacts are searched, as many as prepare_step has found.
    """
    read_velocities(scene, step, state)
    if touching < 0:
        touching = find_slow_contacts(scene, step, state)
    blocks, _ = fill_problem(scene, step, state, touching)
    return blocks


@machine_code
def find_slow_contacts(scene: Scene, step: StepArrays, state: int) -> int:
    """Find contacts without fast pairs; return their number, < 0 above capacity."""
    return find_contacts(
        scene.shapes,
        scene.pairs,
        step.terms.poses[state],
        scene.rule.margin,
        step.contacts,
        step.collision,
    )


@machine_code
def read_velocities(scene: Scene, step: StepArrays, state: int) -> None:
    """Write the velocity of a state and of its free step to work.qd and work.free."""
    tables, work = scene.tables, step.work
    for k in range(len(tables.coordinate)):
        work.free[k] = step.terms.free[state, tables.coordinate[k]]
        work.qd[k] = step.terms.qd[state, tables.coordinate[k]]


@machine_code
def fill_problem(
    scene: Scene, step: StepArrays, state: int, touching: int
) -> tuple[int, int]:
    """Fill a problem from contacts, after `read_velocities`; return blocks and rows."""
    work, fastest = step.work, 0.0
    for k in range(len(scene.tables.coordinate)):
        fastest = max(fastest, abs(work.qd[k]))
    step.rows.rest[0] = scene.rule.rest
    within = scene.rule.margin + 2.0 * scene.rule.dt * fastest
    block, row, last = contact_blocks(scene, step, state, touching)
    block, row, last = joint_blocks(scene, step, state, within, block, row, last)
    return dense_blocks(scene, step, state, within, block, row, last)


@machine_code
def contact_blocks(
    scene: Scene, step: StepArrays, state: int, touching: int
) -> tuple[int, int, int]:
    """Write the blocks of contacts, from block 0 on; return blocks, rows and `last`.

    A contact has no block if its gap takes no part by the rule of the scheme, unless it
    meets within the step (contacts.turn > 0). `read_velocities` comes before; `last` is
    where the search for the next earlier impulse begins.
    """
    tables, rows, blocks, contacts = scene.tables, step.rows, step.blocks, step.contacts
    materials, columns = scene.pairs.materials, step.terms.columns[state]
    factor, work = step.terms.factor[state], step.work
    for body in range(len(work.known)):
        work.known[body] = 0
    block, row, last = 0, 0, 0
    for c in range(touching):
        pair = contacts.pair[c]
        meets = contacts.turn[c] > 0  # within the step
        if not meets and not takes_part(scene.rule, contacts.gap[c]):
            continue
        count = 1
        if materials[pair, 2] > 0.0:
            count = 6
        elif materials[pair, 1] > 0.0:
            count = 4
        elif materials[pair, 0] > 0.0:
            count = 3
        begin(rows, blocks, block, row, count)
        a, b = contacts.body_a[c], contacts.body_b[c]
        n = union(
            tables.moved,
            tables.moved_start[a],
            tables.moved_start[a + 1],
            tables.moved,
            tables.moved_start[b],
            tables.moved_start[b + 1],
            rows.support,
            rows.support_start[block],
        )
        rows.support_count[block], rows.kind[block] = n, CONTACT
        for i in range(3):
            rows.mu[block, i] = materials[pair, i]
        blocks.role[block], blocks.source[block] = CONTACT_ROLE, c
        blocks.id[block], blocks.gap[block] = contacts.id[c], contacts.gap[c]
        blocks.restitution[block] = materials[pair, 3]
        if meets:
            locate(rows, block, n, work)
            speed = meeting_rows(scene, step, state, c, block, count)
            finish(tables, factor, rows, blocks, block, work)
            close_meeting(scene, step, c, block, speed)
        else:
            fill_body(tables, columns, factor, a, work)
            fill_body(tables, columns, factor, b, work)
            locate(rows, block, n, work)
            contact_rows(tables, contacts, c, rows, blocks, block, work)
            close(scene.rule, rows, blocks, block)
        last = warm_start(step.earlier, state, contacts.id[c], last, rows, block)
        block, row = block + 1, row + count
    return block, row, last


@machine_code
def joint_blocks(
    scene: Scene,
    step: StepArrays,
    state: int,
    within: float,
    block: int,
    row: int,
    last: int,
) -> tuple[int, int, int]:
    """Add near limits, dry friction, gears and prescribed motion, in blocks of one row.

    A limit has no block, either, if its gap takes no part by the rule of the scheme;
    `within` is the largest gap of the others [rad | m]. block, row and last, as
    returned, are the numbers of blocks and rows, and where the search for the next
    earlier impulse begins.
    """
    tables, joints, rule, work = scene.tables, scene.joints, scene.rule, step.work
    rows, blocks, dt = step.rows, step.blocks, rule.dt
    for k in range(len(joints.role)):
        gap = joints.constant[k]
        for i in range(joints.gap_start[k], joints.gap_start[k + 1]):
            gap += joints.gap_value[i] * step.terms.q[state, joints.gap_place[i]]
        closing = joints.role[k] == LIMIT
        if closing and (gap > within or not takes_part(rule, gap)):
            continue
        begin(rows, blocks, block, row, 1)
        n = 0
        for i in range(joints.term_start[k], joints.term_start[k + 1]):
            n = add_place(tables, joints.place[i], rows, block, n, work)
        rows.support_count[block], rows.kind[block] = n, joints.kind[k]
        locate(rows, block, n, work)
        for i in range(n):
            work.J[0, i] = 0.0
        for i in range(joints.term_start[k], joints.term_start[k + 1]):
            work.J[0, work.where[joints.place[i]]] += joints.value[i]
        rows.lo[row], rows.hi[row] = dt * joints.lo[k], dt * joints.hi[k]
        blocks.role[block], blocks.source[block] = joints.role[k], k
        blocks.id[block], blocks.gap[block] = joints.id[k], gap
        blocks.restitution[block] = joints.restitution[k]
        finish(tables, step.terms.factor[state], rows, blocks, block, work)
        if closing:
            close(rule, rows, blocks, block)
        elif joints.role[k] == GEAR:
            rows.compliance[row] = rule.compliance
            add_bias(rows, blocks, row, rule.erp * gap / dt)
        elif joints.role[k] == PRESCRIBED:
            change = dt * joints.acceleration[k]
            add_bias(rows, blocks, row, -(blocks.approach[block] + change))
        last = warm_start(step.earlier, state, joints.id[k], last, rows, block)
        block, row = block + 1, row + 1
    return block, row, last


@machine_code
def dense_blocks(
    scene: Scene,
    step: StepArrays,
    state: int,
    within: float,
    block: int,
    row: int,
    last: int,
) -> tuple[int, int]:
    """Add near limits of balls, and loops, as joint_blocks; return blocks and rows."""
    tables, dense, rule, work = scene.tables, scene.dense, scene.rule, step.work
    rows, blocks = step.rows, step.blocks
    J, gaps = step.terms.rows[state], step.terms.gaps[state]
    for k in range(len(dense.role)):
        first, count = dense.start[k], dense.start[k + 1] - dense.start[k]
        closing, gap = dense.role[k] == LIMIT, gaps[first]
        if closing and (gap > within or not takes_part(rule, gap)):
            continue
        begin(rows, blocks, block, row, count)
        start, n = dense.support_start[k], 0
        for i in range(start, dense.support_start[k + 1]):
            rows.support[rows.support_start[block] + n] = dense.support[i]
            n += 1
        rows.support_count[block], rows.kind[block] = n, dense.kind[k]
        locate(rows, block, n, work)
        for r in range(count):
            for i in range(n):
                coordinate = tables.coordinate[dense.support[start + i]]
                work.J[r, i] = J[first + r, coordinate]
        blocks.role[block], blocks.source[block] = dense.role[k], first
        blocks.id[block], blocks.gap[block] = dense.id[k], gap
        blocks.restitution[block] = dense.restitution[k]
        finish(tables, step.terms.factor[state], rows, blocks, block, work)
        if closing:
            close(rule, rows, blocks, block)
        else:
            for r in range(count):
                rows.compliance[row + r] = rule.compliance
                add_bias(rows, blocks, row + r, rule.erp * gaps[first + r] / rule.dt)
        last = warm_start(step.earlier, state, dense.id[k], last, rows, block)
        block, row = block + 1, row + count
    return block, row


@machine_code
def apply_impulses(scene: Scene, step: StepArrays, state: int, used: int) -> None:
    """Add the effect of the impulses step.rows.impulse to work.free and rows.b.

    The impulses stay; work.z and work.change are overwritten.
    """
    rows, work = step.rows, step.work
    respond(scene.tables, step.terms.factor[state], rows, used, work)
    for k in range(len(work.free)):
        work.free[k] += work.change[k]
    for block in range(used):
        for r in range(rows.count[block]):
            rows.b[rows.start[block] + r] += along(rows, block, r, work.z)


@machine_code
def write_velocity(scene: Scene, step: StepArrays, state: int, used: int) -> bool:
    """Write the velocity after the impulses: work.free + L^-1 Y.T impulse.

    Returns whether it is finite. qd_next is written in any case, correction becomes 0.

    Source: LCP-1.
    """
    tables, work = scene.tables, step.work
    respond(tables, step.terms.factor[state], step.rows, used, work)
    total = 0.0
    for k in range(len(tables.coordinate)):
        velocity = work.free[k] + work.change[k]
        step.qd_next[state, tables.coordinate[k]] = velocity
        step.correction[state, tables.coordinate[k]] = 0.0
        total += 0.0 * velocity  # NaN if a velocity is infinite or NaN
    return total == 0.0
