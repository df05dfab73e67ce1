"""Implicit derivatives of a step with contacts, on arrays, in machine code.

At the solution each block is in a mode. For given modes the step is a system of
equations for the velocity u after it, along the axes before it, and the impulses
lambda:

    M (u - qd - dt turning - gyroscopic change) = dt (tau - C) + J.T lambda
    separate   lambda = 0                     free    lambda = bound
    closed     J u + bias + R lambda = 0      stick   the same, and J_T u = 0
    slip       lambda_T = -lambda_n D s,   s = D v_T / |D v_T|,   v_T = J_T u

with D the coefficients of the rows. Differentiated, slip is a drag K across it, which
counts as inertia, and a coupling of normal and friction:

    (M + J_T.T K J_T) du = R_q dq + R_v dqd + (dt + R_f) dtau + R_mu dmu + C.T dlambda
    A du + R dlambda = c_q dq + c_v dqd,   K = lambda_n D (1 - s s.T) D / |D v_T|

If rows are linearly dependent (a box on four corners), lambda is not unique; du is, as
long as they stick. In the subset of machine_code.

Source: LCP-22.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dyn_core.contact.rows.contact_biases import AT_ZERO, ROUNDING
from dyn_core.contact.rows.contact_rows import cross, tangent
from dyn_core.contact.rows.step_tables import (
    CONTACT_ROLE,
    FRICTION,
    LIMIT,
    PRESCRIBED,
    BlockFacts,
    Rule,
    Scene,
    StepArrays,
)
from dyn_core.engines.machine_code import (
    FloatArray,
    FloatArray2,
    FloatArray3,
    IntArray,
    machine_code,
)

MODES = ("separate", "stick", "slip", "closed", "free")
SEPARATE, STICK, SLIP, CLOSED, FREE = range(len(MODES))
BOUNDARY = 1e-6  # relative distance of impulses and velocities to a change of mode
SMOOTH, AT_BOUNDARY, GAP_ZERO, MEETING = range(4)  # flags: not_differentiable


class SlopeArrays(NamedTuple):
    """Work arrays and results of the derivatives of a step.

    n is nv, m the number of rows. Columns and velocities of bodies are [angular;
    linear] along the world's axes, of the point at the world's origin.

    Attributes:
        mode: Mode of each block, an index in MODES, (blocks,).
        above: For each block at gap 0, 1: derivative of the open side, 0: of the
            overlapping side, (blocks,).
        pressed: 1 for each contact with an impulse, else 0, (contacts,).
        sigma: Velocity of each row after the step, (m,) [m/s | rad/s].
        known: 1 for each body whose columns and motions are filled, else 0, (nb + 1,).
        columns: Velocity of each body per velocity coordinate, (nb + 1, n, 6).
        rates, rates_before: Rates of these columns at u and at qd, (nb + 1, n, 6).
        motion, motion_before: Velocity of each body at u and at qd, (nb + 1, 6).
        J, turned, before: Rows of the Jacobian; J u and J qd by q, (m, n); of contacts,
            `before` has the normal row only.
        geometry: Derivatives of contact points and normals, (contacts, 6, 6).
        axes: Normal and tangents of the current contact, (3, 3).
        wrench: Its impulse on body a: force at its point, moment, (2, 3) [N·s; N·m·s].
        load_a, load_b: Change of `wrench` on both bodies by each coordinate, relative
            to a wrench fixed to the body, (n, 6).
        weight, along: D and s of the rows, (m,).
        inertia, by_q, by_qd, by_tau: M, R_q, R_v, R_f of the equation, (n, n).
        change_q, change_qd, change_tau: Derivatives of the gyroscopic change, (n, n).
        by_mu: R_mu, (n, 3 blocks).
        A, C, c_q, c_qd, soft: Equations of the active rows, (m, n), and R, (m,).
        response, left, right, product, pivots, applied: Work arrays of the solution.
        du_dq, du_dqd, du_dtau, du_dmu: Derivatives of the velocity u, (n, n), by mu (n,
            3 blocks).
    """

    mode: IntArray
    above: IntArray
    pressed: IntArray
    sigma: FloatArray
    known: IntArray
    columns: FloatArray3
    rates: FloatArray3
    rates_before: FloatArray3
    motion: FloatArray2
    motion_before: FloatArray2
    J: FloatArray2
    turned: FloatArray2
    before: FloatArray2
    geometry: FloatArray3
    axes: FloatArray2
    wrench: FloatArray2
    load_a: FloatArray2
    load_b: FloatArray2
    weight: FloatArray
    along: FloatArray
    inertia: FloatArray2
    by_q: FloatArray2
    by_qd: FloatArray2
    by_tau: FloatArray2
    change_q: FloatArray2
    change_qd: FloatArray2
    change_tau: FloatArray2
    by_mu: FloatArray2
    A: FloatArray2
    C: FloatArray2
    c_q: FloatArray2
    c_qd: FloatArray2
    soft: FloatArray
    response: FloatArray2
    left: FloatArray2
    right: FloatArray2
    product: FloatArray2
    pivots: FloatArray2
    applied: FloatArray2
    du_dq: FloatArray2
    du_dqd: FloatArray2
    du_dtau: FloatArray2
    du_dmu: FloatArray2


def allocate_step_slopes(
    bodies: int, n: int, contacts: int, blocks: int, m: int
) -> SlopeArrays:
    """Allocate SlopeArrays of zeros for m rows; `bodies` counts the world, too."""
    sizes = {
        "mode": (blocks,), "above": (blocks,), "pressed": (contacts,), "sigma": (m,),
        "known": (bodies,), "motion": (bodies, 6), "motion_before": (bodies, 6),
        "geometry": (contacts, 6, 6), "load_a": (n, 6), "load_b": (n, 6),
        "weight": (m,), "along": (m,), "by_mu": (n, 3 * blocks), "soft": (m,),
        "axes": (3, 3), "wrench": (2, 3),
        "response": (m, m), "left": (n, m), "right": (m, n), "product": (m, n),
        "du_dmu": (n, 3 * blocks), "pivots": (2, max(m, n)),
    }  # fmt: skip
    sizes |= dict.fromkeys(("columns", "rates", "rates_before"), (bodies, n, 6))
    sizes |= dict.fromkeys(("J", "turned", "before", "A", "C", "c_q", "c_qd"), (m, n))
    parts = [f"{of}_{by}" for of in ("by", "change") for by in ("q", "qd", "tau")]
    square = ("inertia", *parts, "du_dq", "du_dqd", "du_dtau", "applied")
    sizes |= dict.fromkeys(square, (n, n))
    whole = ("mode", "above", "pressed", "known")
    return SlopeArrays(
        **{
            name: np.zeros(sizes[name], np.int64 if name in whole else float)
            for name in SlopeArrays._fields
        }
    )


@machine_code
def find_modes(
    scene: Scene,
    step: StepArrays,
    blocks: int,
    pushes: FloatArray2,
    slopes: SlopeArrays,
) -> int:
    """Determine the rows and the mode of each block, and add up contact forces.

    qd_next of `step` is the velocity. `pushes`, the force of contacts on each body in
    body coordinates, (nb, 6) [N·m; N], is added to. Sets mode (0 separate, 1 stick, 2
    slip, 3 closed, 4 free), above, pressed, J, sigma, weight, along, and known, columns
    and motions of the bodies in contact; clears turned and before; axes and wrench are
    overwritten. Returns AT_BOUNDARY (1): a block is between two modes; else GAP_ZERO
    (2): a pressing contact or limit is at gap 0; else SMOOTH (0).
    """
    rows, facts, rule, speed = step.rows, step.blocks, scene.rule, scene.rule.dt * 9.81
    for body in range(len(slopes.known)):
        slopes.known[body] = 0
    for k in range(blocks):
        _fill_rows(scene, step, k, slopes)
        speed = max(speed, abs(facts.approach[k]))
        for r in range(rows.start[k], rows.start[k] + rows.count[k]):
            speed = max(speed, abs(slopes.sigma[r]))
    flag, tiny = SMOOTH, speed * BOUNDARY
    for c in range(len(slopes.pressed)):
        slopes.pressed[c] = 0
    for k in range(blocks):
        at_border, mode = _mode(step, rule, k, tiny, slopes)
        slopes.mode[k] = mode
        if at_border:
            flag = AT_BOUNDARY
        if facts.role[k] == CONTACT_ROLE and not mode == SEPARATE:
            slopes.pressed[facts.source[k]] = 1
            _add_force(step, k, 1.0 / rule.dt, pushes, slopes)
    for k in range(blocks):
        at_zero = _side(step, blocks, k, slopes)
        if at_zero and flag == SMOOTH:
            flag = GAP_ZERO
    return flag


@machine_code
def find_corrections(
    scene: Scene,
    step: StepArrays,
    blocks: int,
    pushes: FloatArray2,
    slopes: SlopeArrays,
) -> int:
    """Determine the modes of the position correction; call it after find_modes.

        M c = J.T p,   0 <= p  orthogonal to  J c + R p + bias >= 0

    It has the form of a step with the velocity c, which is in qd_next, and the impulses
    p, read from step.normals.impulse; they overwrite those of step.rows, zero in blocks
    and rows not corrected. Corrected are contacts and limits with p > 0, and all other
    blocks but friction and prescribed coordinates; a block that presses at gap 0 is
    corrected if `above` is 0, whatever p is. Adds p / dt to `pushes`. `mode`, so far
    that of the velocities, becomes CLOSED (3) for corrected blocks, else SEPARATE (0);
    sets pressed, known, columns and motions; axes and wrench are overwritten. Returns
    AT_BOUNDARY (1) if a block is corrected that separates in the step, else SMOOTH (0).
    """
    rows, facts, normals, flag, row = step.rows, step.blocks, step.normals, SMOOTH, 0
    for body in range(len(slopes.known)):
        slopes.known[body] = 0
    for c in range(len(slopes.pressed)):
        slopes.pressed[c] = 0
    for k in range(blocks):
        role, first, mode = facts.role[k], rows.start[k], slopes.mode[k]
        slopes.mode[k] = SEPARATE
        for r in range(first, first + rows.count[k]):
            rows.impulse[r] = 0.0
        if role == FRICTION or role == PRESCRIBED:
            continue
        closing = role == CONTACT_ROLE or role == LIMIT
        count = 1 if closing else rows.count[k]
        row += count
        corrected = not closing or normals.impulse[row - 1] > 0.0
        if _at_zero(facts, k, mode):
            corrected = slopes.above[k] == 0
        if not corrected:
            continue
        if mode == SEPARATE:
            flag = AT_BOUNDARY
        slopes.mode[k] = CLOSED
        for r in range(count):
            rows.impulse[first + r] = normals.impulse[row - count + r]
        if role == CONTACT_ROLE:
            c = facts.source[k]
            slopes.pressed[c] = 1
            fill_columns(scene, step, step.contacts.body_a[c], slopes)
            fill_columns(scene, step, step.contacts.body_b[c], slopes)
            _add_force(step, k, 1.0 / scene.rule.dt, pushes, slopes)
    return flag


@machine_code
def _fill_rows(scene: Scene, step: StepArrays, k: int, slopes: SlopeArrays) -> None:
    """Set J, sigma and weight of the rows of block k; clear turned, before, along.

    weight is the friction coefficient of all rows of a contact but the normal one, also
    of torsion and rolling, and zero in all other rows. sigma is for step.qd_next. Of a
    contact also columns and motions of its bodies, axes and wrench are written.
    """
    rows, facts, tables = step.rows, step.blocks, scene.tables
    first, count, joints = rows.start[k], rows.count[k], scene.joints
    n, velocity = len(tables.coordinate), step.qd_next[0]
    for r in range(first, first + count):
        slopes.weight[r], slopes.along[r] = 0.0, 0.0
        for j in range(n):
            slopes.J[r, j], slopes.turned[r, j], slopes.before[r, j] = 0.0, 0.0, 0.0
    number = -1 - facts.id[k]
    if facts.role[k] == CONTACT_ROLE:
        c = facts.source[k]
        fill_columns(scene, step, step.contacts.body_a[c], slopes)
        fill_columns(scene, step, step.contacts.body_b[c], slopes)
        for r in range(1, count):
            slopes.weight[first + r] = rows.mu[k, 0 if r < 3 else (1 if r == 3 else 2)]
        _contact_rows(tables.coordinate, step, k, slopes)
    elif number < len(joints.role):
        for i in range(joints.term_start[number], joints.term_start[number + 1]):
            slopes.J[first, tables.coordinate[joints.place[i]]] += joints.value[i]
    else:
        J = step.terms.rows[0]
        for r in range(count):
            for j in range(n):
                slopes.J[first + r, j] = J[facts.source[k] + r, j]
    for r in range(first, first + count):
        total = 0.0
        for j in range(n):
            total += slopes.J[r, j] * velocity[j]
        slopes.sigma[r] = total


@machine_code
def fill_columns(
    scene: Scene, step: StepArrays, body: int, slopes: SlopeArrays
) -> None:
    """Set columns, motion and motion_before of a body; nothing if it is known.

    All are velocities [angular; linear] of the point at the world's origin: columns by
    velocity coordinate, `motion` at step.qd_next, `motion_before` before the step.
    """
    if slopes.known[body] != 0:
        return
    slopes.known[body] = 1
    tables, S = scene.tables, step.terms.columns[0]
    u, qd = step.qd_next[0], step.terms.qd[0]
    columns, now, before = (
        slopes.columns[body],
        slopes.motion[body],
        slopes.motion_before[body],
    )
    for c in range(6):
        now[c], before[c] = 0.0, 0.0
    first, last = tables.path_start[body], tables.path_start[body + 1]
    for e in range(first, last):  # all other columns stay zero
        j = tables.coordinate[tables.column_place[tables.path[e]]]
        for c in range(6):
            columns[j, c] = 0.0
    for e in range(first, last):
        k = tables.path[e]
        j = tables.coordinate[tables.column_place[k]]
        for c in range(6):
            columns[j, c] += S[k, c]
            now[c] += S[k, c] * u[j]
            before[c] += S[k, c] * qd[j]


@machine_code
def fill_axes(step: StepArrays, k: int, slopes: SlopeArrays) -> None:
    """Set slopes.axes and wrench of the contact of block k, in world axes.

    axes become its normal and tangents, wrench the sums of its impulses along them: row
    0 of normal and tangents at its point [N·s], row 1 torsion and rolling [N·m·s].
    """
    rows, c = step.rows, step.blocks.source[k]
    N, axes = step.contacts.normal[c], slopes.axes
    x, y, z = tangent(N[0], N[1], N[2])
    axes[0, 0], axes[0, 1], axes[0, 2] = N[0], N[1], N[2]
    axes[1, 0], axes[1, 1], axes[1, 2] = x, y, z
    axes[2, 0], axes[2, 1], axes[2, 2] = cross(N[0], N[1], N[2], x, y, z)
    for i in range(3):
        slopes.wrench[0, i], slopes.wrench[1, i] = 0.0, 0.0
    for r in range(rows.count[k]):
        value, part = rows.impulse[rows.start[k] + r], slopes.wrench[r // 3]
        for i in range(3):
            part[i] += value * axes[r % 3, i]


@machine_code
def _contact_rows(
    coordinate: IntArray, step: StepArrays, k: int, slopes: SlopeArrays
) -> None:
    """Set axes, wrench and the rows of J of contact k: d . (C_a - C_b) at its point.

    d is the normal, the first or the second tangent, in turn. Rows 0 to 2 have the
    linear part of the columns C of both bodies, rows from 3 on the angular part.
    Entries outside of the block's support, a list of places, are not changed.
    """
    rows, c = step.rows, step.blocks.source[k]
    A, B = step.contacts.body_a[c], step.contacts.body_b[c]
    p, first, support = step.contacts.point[c], rows.start[k], rows.support_start[k]
    fill_axes(step, k, slopes)
    for r in range(rows.count[k]):
        d = slopes.axes[r % 3]
        for i in range(support, support + rows.support_count[k]):
            j = coordinate[rows.support[i]]
            a, b = slopes.columns[A, j], slopes.columns[B, j]
            x, y, z = a[0] - b[0], a[1] - b[1], a[2] - b[2]
            if r < 3:
                x, y, z = cross(x, y, z, p[0], p[1], p[2])
                x, y, z = x + a[3] - b[3], y + a[4] - b[4], z + a[5] - b[5]
            slopes.J[first + r, j] = d[0] * x + d[1] * y + d[2] * z


@machine_code
def _mode(
    step: StepArrays, rule: Rule, k: int, tiny: float, slopes: SlopeArrays
) -> tuple[bool, int]:
    """Return whether block k is at the boundary of two modes, and its index in MODES.

    At a boundary it is separate and does not open, or friction is at its largest
    without slip, or a contact slips with less friction. `tiny` is the velocity that
    counts as zero [m/s | rad/s]. `along` of a slipping contact is set.
    """
    rows, role, first = step.rows, step.blocks.role[k], step.rows.start[k]
    x, sigma, response = rows.impulse[first], slopes.sigma[first], 0.0
    for i in range(rows.support_count[k]):
        y = rows.y[rows.y_start[k] + i]
        response += y * y
    if role == FRICTION:
        near = min(x - rows.lo[first], rows.hi[first] - x) * response <= tiny
        return near and abs(sigma) <= tiny, FREE if near and abs(
            sigma
        ) > tiny else STICK
    if not (role == CONTACT_ROLE or role == LIMIT):
        return False, CLOSED
    if not x * response > tiny:
        bias = step.blocks.bias[first] + rows.compliance[first] * x
        return sigma + bias <= tiny, SEPARATE
    if rows.count[k] == 1:
        return False, CLOSED
    slide, friction, largest = 0.0, 0.0, 0.0
    for i in range(first + 1, first + rows.count[k]):
        mu, v = slopes.weight[i], slopes.weight[i] * slopes.sigma[i]
        slide, largest = slide + v * v, max(largest, mu)
        if mu > 0.0:
            friction += rows.impulse[i] * rows.impulse[i] / (mu * mu)
    size, at_cone = math.sqrt(slide), math.sqrt(friction) >= (1.0 - BOUNDARY) * x
    moving = size > tiny * largest
    if at_cone and moving:
        for i in range(first + 1, first + rows.count[k]):
            slopes.along[i] = slopes.weight[i] * slopes.sigma[i] / size
        return False, SLIP
    return at_cone or moving, STICK


@machine_code
def _side(step: StepArrays, blocks: int, k: int, slopes: SlopeArrays) -> bool:
    """Set slopes.above of block k; return whether it presses at gap 0.

    `above` is 1 for a gap above 0, else 0. If a contact or limit presses at gap 0 (up
    to 1e-7), it is 1 only if the gap is larger than 1e-12 [m | rad]. All such contacts
    of the same two bodies get the side of the lowest of them.
    """
    # Dependent rows, as of a box's four corners, cannot have different slopes.
    facts, contacts = step.blocks, step.contacts
    slopes.above[k] = 1 if facts.gap[k] > 0.0 else 0
    if not _at_zero(facts, k, slopes.mode[k]):
        return False
    lowest = facts.gap[k]
    if facts.role[k] == CONTACT_ROLE:
        c = facts.source[k]
        for i in range(blocks):
            if facts.role[i] == CONTACT_ROLE and _at_zero(facts, i, slopes.mode[i]):
                d = facts.source[i]
                same = contacts.body_a[c] == contacts.body_a[d]
                if same and contacts.body_b[c] == contacts.body_b[d]:
                    lowest = min(lowest, facts.gap[i])
    slopes.above[k] = 1 if lowest > ROUNDING else 0
    return True


@machine_code
def _at_zero(facts: BlockFacts, k: int, mode: int) -> bool:
    """Return whether contact or limit k presses at a gap of 0, up to 1e-7."""
    closing = facts.role[k] == CONTACT_ROLE or facts.role[k] == LIMIT
    return closing and not mode == SEPARATE and abs(facts.gap[k]) <= AT_ZERO


@machine_code
def _add_force(
    step: StepArrays, k: int, scale: float, pushes: FloatArray2, slopes: SlopeArrays
) -> None:
    """Add the mean force of a contact to pushes of body a, and subtract it from b's.

    `pushes` are body coordinates, (nb, 6) [N·m; N]; `scale` is one over the step [1/s].
    axes and wrench of `slopes` are overwritten.
    """
    c = step.blocks.source[k]
    fill_axes(step, k, slopes)
    f, t, p = slopes.wrench[0], slopes.wrench[1], step.contacts.point[c]
    for end in range(2):
        body = step.contacts.body_a[c] if end == 0 else step.contacts.body_b[c]
        if body == 0:
            continue
        sign, R = scale if end == 0 else -scale, step.terms.poses[0, body]
        x, y, z = p[0] - R[9], p[1] - R[10], p[2] - R[11]
        mx, my, mz = cross(x, y, z, f[0], f[1], f[2])
        mx, my, mz = mx + t[0], my + t[1], mz + t[2]
        to = pushes[body - 1]
        for i in range(3):
            to[i] += sign * (R[i] * mx + R[3 + i] * my + R[6 + i] * mz)
            to[3 + i] += sign * (R[i] * f[0] + R[3 + i] * f[1] + R[6 + i] * f[2])
