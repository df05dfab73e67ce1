"""Correction of position errors without a change of velocity, on arrays.

In the subset of machine_code.
"""

from __future__ import annotations

import math

from dyn_core.contact.collision.detection.all_pairs import place_shapes
from dyn_core.contact.collision.detection.detection_arrays import PLANE, Shapes
from dyn_core.contact.fast_bodies.fast_pairs import may_be_fast
from dyn_core.contact.fast_bodies.fast_tables import FAR
from dyn_core.contact.problem.rows import BILATERAL, UNILATERAL
from dyn_core.contact.rows.block_rows import along, respond
from dyn_core.contact.rows.contact_biases import TOUCH, correction
from dyn_core.contact.rows.contact_rows import cross
from dyn_core.contact.rows.step_tables import (
    CONTACT_ROLE,
    GEAR,
    LIMIT,
    LOOP,
    Scene,
    StepArrays,
)
from dyn_core.contact.solvers.coulomb_newton import NEAR
from dyn_core.contact.solvers.matrices.row_products import row_response
from dyn_core.contact.solvers.proximal_newton import newton
from dyn_core.contact.solvers.solver_calls import ChosenSolver
from dyn_core.engines.machine_code import FloatArray, machine_code

SOFT = 1e-9  # compliance, relative to the response
SHORT = 1e-2  # fraction of the largest correction that may be missing
TOLERANCE = 1e-6  # relative to the largest correction; more precision is expensive
ITERATIONS = 100  # maximum number of Newton steps
# A body that is pushed beside its centre has points faster than the pushed one: at most
# 1.5 times in a free rod. Contradictory rows ask for more, without a bound.
LEVERAGE = 3.0  # fastest point of bodies that touch, relative to push_out_speed
TURN = 0.25  # what counts of a point that a joint turns: linkages have leverage
SOFTER, GROWTH = 1e-3, 16.0  # first larger compliance, relative, and its growth
LEVELS = 12  # compliances that are tried
CLOSED = 5  # of these, loops and gears keep theirs
POWERS = 60  # most steps to a power of four: 1e-36 to 1e36
NOTHING, CORRECTED, INCOMPLETE = range(3)  # results of correct_positions


@machine_code
def correct_positions(
    scene: Scene, step: StepArrays, solver: ChosenSolver, state: int, used: int
) -> int:
    """Compute the velocity that corrects the positions after a step.

    Returns NOTHING: no correction is needed; CORRECTED: it is in
    step.correction[state]; INCOMPLETE: overlaps remain above the fraction 0.01 of the
    largest correction, or the solver has not converged; or the correction was too fast
    (`soften`) 12 times, and is zero. step.normals, work, fast, collision may change.
    """
    blocks, m = prepare_correction(scene, step, state, used)
    if m == 0:
        return NOTHING
    nv, report = len(step.work.free), solver.reports[1]
    for level in range(LEVELS):
        status = newton(
            step.normals, blocks, m, nv, solver.work, report, ITERATIONS, TOLERANCE,
            NEAR, False,
        )  # fmt: skip
        complete = end_correction(scene, step, state, blocks) and status == 0
        if not soften(scene, step, state, used, blocks, level >= CLOSED):
            return CORRECTED if complete else INCOMPLETE
    for k in range(nv):
        step.correction[state, k] = 0.0
    return INCOMPLETE


@machine_code
def prepare_correction(
    scene: Scene, step: StepArrays, state: int, used: int
) -> tuple[int, int]:
    """Fill step.normals with the problem that corrects positions after a step.

        0 <= p  orthogonal to  G p + R p + bias >= 0   of contacts and limits,
        G p + R p + erp gap' / remaining = 0   of loops and gears

    with the Delassus matrix G of the normal rows of contacts and all rows of the
    others, their impulses p, bias from `correction`, erp = rule.apart and remaining =
    rule.remaining, gap' the gap after the step at the known velocity, and R 1e-9 of G's
    diagonal, which distributes corrections that exclude each other. Returns the numbers
    of blocks and rows; 0, 0 if no correction is needed.

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
            normals.b[row + r], normals.impulse[row + r] = bias, 0.0
            normals.lo[row + r], normals.hi[row + r] = -math.inf, math.inf
            normals.compliance[row + r] = SOFT * row_response(rows, k, r)
        block, row = block + 1, row + count
    if wrong > TOUCH * rule.apart:
        return block, row
    return 0, 0


@machine_code
def end_correction(scene: Scene, step: StepArrays, state: int, blocks: int) -> bool:
    """Compute the velocity step.correction[state] from the impulses of step.normals.

    Returns whether contacts and limits are corrected up to the fraction 0.01 of the
    largest correction.
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


@machine_code
def soften(
    scene: Scene, step: StepArrays, state: int, used: int, blocks: int, loops: bool
) -> bool:
    """Increase compliances of a correction that is too fast; return whether it was.

    With rows that exclude one another, the correction of least errors may be far: two
    normals that are nearly opposite ask for any speed across them. A larger compliance
    accepts errors instead, as springs in parallel do. It grows in the rows that act on
    a chain of bodies that `find_reach` finds faster than 3 push_out_speed dt /
    remaining, so that other chains keep their correction; in `loops` and gears last, so
    that they stay closed. It is a power of four, which does not move with q:
    derivatives of a step take it as a constant. True also if only rows of loops and
    gears act on such chains and `loops` is False: then nothing has changed.
    """
    rule, normals, fast = scene.rule, step.normals, scene.fast
    limit, reach = LEVERAGE * rule.push * rule.dt / rule.remaining, step.fast.reach
    may_be_fast(scene.tables, fast, step.work.change, rule.dt, step.fast)
    quick = True
    for body in range(len(reach)):
        quick = quick and 2.0 * reach[body] <= limit
    if quick:
        return False
    find_reach(scene, step, state, used)
    changed = False
    for block in range(blocks):
        first, slow = normals.support_start[block], True
        for i in range(first, first + normals.support_count[block]):
            slow = slow and reach[fast.place_root[normals.support[i]]] <= limit
        changed = changed or not slow
        if slow or (normals.kind[block] == BILATERAL and not loops):
            continue
        for r in range(normals.count[block]):
            row = normals.start[block] + r
            least = power_of_four(SOFTER * row_response(normals, block, r))
            softer = GROWTH * normals.compliance[row]
            normals.compliance[row] = softer if softer > least else least
    return changed


@machine_code
def power_of_four(x: float) -> float:
    """Return the largest power of four up to x > 0, within 4^-60 and 4^60."""
    power = 1.0
    for _ in range(POWERS):
        if power > x:
            power *= 0.25
        elif 4.0 * power <= x:
            power *= 4.0
    return power


@machine_code
def find_reach(scene: Scene, step: StepArrays, state: int, used: int) -> None:
    """Set fast.reach of each root to the largest speed in its chain of bodies [m/s].

    The velocity is work.change, by place. A speed is that of a point of two shapes that
    touch, relative to the other body: a tower may rise as a whole; or 0.25 times that
    of the farthest point that a joint turns, relative to the joint.
    """
    fast, shapes, pairs = scene.fast, scene.shapes, scene.pairs
    blocks, contacts, frames = step.blocks, step.contacts, step.collision.frames
    spatial, columns = step.fast.spatial, step.terms.columns[state]
    for i in range(6):
        spatial[0, i] = 0.0
    for body in range(len(fast.parent)):
        step.fast.reach[body] = 0.0
    for body in range(1, len(fast.parent)):
        for i in range(6):
            spatial[body, i] = spatial[fast.parent[body], i]
        for c in range(fast.column_start[body], fast.column_start[body + 1]):
            x = step.work.change[scene.tables.column_place[c]]
            turn, C = 0.0, columns[c]
            for i in range(6):
                spatial[body, i] += C[i] * x
            if fast.lever[c] < FAR:
                turn = math.sqrt(C[0] * C[0] + C[1] * C[1] + C[2] * C[2]) * abs(x)
            _faster(fast.root[body], TURN * turn * fast.lever[c], step.fast.reach)
    place_shapes(shapes, step.terms.poses[state], step.collision)
    last = -1
    for block in range(used):
        c = blocks.source[block]
        if blocks.role[block] != CONTACT_ROLE or contacts.pair[c] == last:
            continue
        last, a, b = contacts.pair[c], contacts.body_a[c], contacts.body_b[c]
        speed, V, W = 0.0, spatial[a], spatial[b]
        first, second = pairs.first[last], pairs.second[last]
        if shapes.kind[first] < PLANE:
            speed = fastest_corner(shapes, first, frames[first], V, W)
        if shapes.kind[second] < PLANE:
            speed = max(speed, fastest_corner(shapes, second, frames[second], V, W))
        _faster(fast.root[a], speed, step.fast.reach)
        _faster(fast.root[b], speed, step.fast.reach)


@machine_code
def _faster(root: int, speed: float, reach: FloatArray) -> None:
    """Set reach[root] to a speed that is larger, or NaN, unless it is NaN."""
    if speed > reach[root] or math.isnan(speed):
        reach[root] = speed


@machine_code
def fastest_corner(
    shapes: Shapes, k: int, F: FloatArray, V: FloatArray, W: FloatArray
) -> float:
    """Return a bound of the speed of the points of shape k, exact for a box [m/s].

    F is its frame in the world, (12,). The speed is that of V relative to W, [angular;
    linear] of the point at the world's origin.
    """
    fastest, box = 0.0, shapes.bounds[k]
    p, q, r = V[0] - W[0], V[1] - W[1], V[2] - W[2]
    for corner in range(8):
        x = box[0] - box[3] if corner % 2 == 0 else box[0] + box[3]
        y = box[1] - box[4] if corner // 2 % 2 == 0 else box[1] + box[4]
        z = box[2] - box[5] if corner // 4 == 0 else box[2] + box[5]
        px = F[0] * x + F[1] * y + F[2] * z + F[9]
        py = F[3] * x + F[4] * y + F[5] * z + F[10]
        pz = F[6] * x + F[7] * y + F[8] * z + F[11]
        u, v, w = cross(p, q, r, px, py, pz)
        u, v, w = u + V[3] - W[3], v + V[4] - W[4], w + V[5] - W[5]
        speed = math.sqrt(u * u + v * v + w * w)
        if not speed <= fastest:
            fastest = speed
    return fastest + math.sqrt(p * p + q * q + r * r) * shapes.size[k, 3]
