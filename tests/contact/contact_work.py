"""Work of contacts, limits and friction in a step, from its record."""

from functools import lru_cache

import numpy as np

from dyn_core.contact.problem.rows import Rows
from dyn_core.contact.rows.constraints import ROLES
from dyn_core.contact.rows.problem_assembly import write_velocity
from dyn_core.contact.rows.step_tables import BlockFacts
from dyn_core.contact.solvers.matrices.row_products import (
    add_block,
    add_transposed,
    multiply,
    row_response,
)
from dyn_core.contact.stepping.step_matrices import sparse_rows
from dyn_core.engines.machine_code import FloatArray, compiled, machine_code

FREE_ROLES = tuple(ROLES.index(name) for name in ("loop", "gear", "prescribed"))
PUSHING, FRICTION = ROLES.index("limit"), ROLES.index("friction")
TOLERANCE = 1e-9  # of work relative to its scale, and of solvers
FROZEN = 1e-8  # the same of steps with bounded friction
ROUNDING = 1e-12  # of the velocity that the impulses of a record give, relative
LEAST = 1e-18  # work that counts [J]


@machine_code
def _work(
    rows: Rows,
    facts: BlockFacts,
    z: FloatArray,
    u: FloatArray,
    blocks: int,
    nv: int,
    pushes: bool,
) -> tuple[float, float, float]:
    """Return the work lambda (u+ + push), its size, and what the solver's errors may do.

        size: |lambda| (|u-| + |u+|),   errors: fastest (|u-| / response + |lambda|)

    `fastest` is the largest free velocity of all rows: solvers find velocities up to a
    part of it, and impulses up to that, divided by the row's response. All leave out
    loops, gears and prescribed joints, as z does, which becomes Y.T lambda of the other
    rows. u: Work, (rows,).
    """
    for i in range(nv):
        z[i] = 0.0
    add_transposed(rows, rows.support, rows.y, blocks, rows.impulse, z)
    multiply(rows, rows.support, rows.y, blocks, z, u)
    for i in range(nv):
        z[i] = 0.0
    power, size, motion, fastest = 0.0, 0.0, 0.0, 0.0
    for k in range(blocks):
        for i in range(rows.start[k], rows.start[k] + rows.count[k]):
            fastest = max(fastest, abs(rows.b[i]))
    for k in range(blocks):
        if facts.role[k] > FRICTION:
            continue
        add_block(rows, rows.support, rows.y, k, rows.impulse, z)
        for row in range(rows.count[k]):
            i = rows.start[k] + row
            before = rows.b[i] - facts.bias[i]
            motion += fastest * abs(before) / max(row_response(rows, k, row), 1e-300)
            after, push = before + u[i], 0.0
            if pushes and facts.role[k] <= PUSHING:
                push = min(facts.bias[i], 0.0)
            power += rows.impulse[i] * (after + push)
            size += abs(rows.impulse[i]) * (abs(before) + abs(after))
            motion += abs(rows.impulse[i]) * fastest
    return power, size, motion


@lru_cache(maxsize=1)
def _functions(arrays, room):
    """Return write_velocity and _work, tied to memory for `room` rows, with z."""
    step, u = arrays.memory, np.zeros(room)
    z = np.zeros(len(step.work.free))
    velocity = compiled(write_velocity).bind(arrays.setup.scene, step)
    return velocity, compiled(_work).bind(step.rows, step.blocks, z, u), z


def work_of_contacts(arrays, record):
    """Return the work of impulses of contacts, limits and friction, and two scales.

        sum of lambda (u- + u+) / 2 + lambda min(bias, 0)

    u- is the velocity that loops, gears and prescribed joints alone would leave, u+
    that after the step. What a push or a rebound asks for (bias < 0) is the law's own.
    The scales are the sum of the terms' sizes, and the work of errors as large as the
    fastest row, of which a solver's tolerance is a part.
    """
    step, x, blocks = arrays.prepare_again(record), record.impulse, len(record.ids)
    if not len(x):
        return 0.0, 0.0, 0.0
    step.rows.impulse[: len(x)] = x
    write, work, z = _functions(arrays, len(step.rows.b))
    write(0, blocks)
    speed = np.abs(record.velocity).max() + np.abs(step.work.free).max()
    assert np.abs(step.qd_next[0] - record.velocity).max() <= ROUNDING * speed
    pushes = record.status != "wedged"  # without pushes, then
    power, size, motion = work(blocks, len(z), pushes)
    free = np.isin(step.blocks.role[:blocks], FREE_ROLES)
    if free.any():
        chosen = np.repeat(free, np.diff([*record.starts, len(x)]))
        Y = sparse_rows(step, blocks, len(x))[chosen]
        z -= np.linalg.pinv(Y) @ (Y @ z)
    return power - z @ z / 2, size + z @ z, motion


def check_work(arrays, record):
    """Check that the impulses of a step bring in no energy.

    Where friction has bounds of its own, its problem is solved to 1e-7 (frozen_friction.py).
    """
    work, scale, motion = work_of_contacts(arrays, record)
    part = FROZEN if record.status == "frozen_friction" else TOLERANCE
    bound = part * (2 * scale + motion) + LEAST
    assert work <= bound, (record.t, record.status, work, scale, motion)
