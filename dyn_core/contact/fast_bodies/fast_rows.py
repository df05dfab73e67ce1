"""Motion of bodies until they meet within a step, and the rows of contacts then.

The origin of a body moves straight relative to its parent, and the body rotates about
it at a constant rate. `moved_state` moves all joints like this, except those composed
of several rotations.

In the subset of machine_code.
"""

from __future__ import annotations

import math

from dyn_core.contact.fast_bodies.fast_tables import FastMemory, FastTables
from dyn_core.contact.rows.block_rows import add_bias
from dyn_core.contact.rows.contact_rows import cross, tangent
from dyn_core.contact.rows.step_tables import Scene, StepArrays
from dyn_core.engines.machine_code import FloatArray, FloatArray2, machine_code

MOMENT = 1e-3  # shortest time in which a gap may close, relative to the step


@machine_code
def set_motion(scene: Scene, step: StepArrays, state: int, turn: int) -> None:
    """Compute motion, shift and spatial of FastMemory for step.fast.velocity[turn].

    `turned` of the world becomes the identity.
    """
    fast, memory = scene.fast, step.fast
    columns, poses = step.terms.columns[state], step.terms.poses[state]
    velocity = memory.velocity[turn]
    for i in range(6):
        memory.spatial[0, i], memory.motion[0, i] = 0.0, 0.0
    for i in range(12):
        memory.turned[0, i] = 1.0 if i == 0 or i == 4 or i == 8 else 0.0
    for body in range(1, len(fast.parent)):
        motion, parent = memory.motion[body], fast.parent[body]
        shift, met = memory.shift[body], memory.met[fast.root[body]]
        for i in range(6):
            motion[i], shift[i] = 0.0, 0.0
        for c in range(fast.column_start[body], fast.column_start[body + 1]):
            place = scene.tables.column_place[c]
            for i in range(6):
                motion[i] += columns[c, i] * velocity[place]
            if 0 < met <= turn:
                more = memory.velocity[met - 1, place] - velocity[place]
                more *= memory.met_time[fast.root[body]]
                for i in range(6):
                    shift[i] += columns[c, i] * more
        for i in range(6):
            memory.spatial[body, i] = memory.spatial[parent, i] + motion[i]
        move_to_origin(motion, poses[body])
        move_to_origin(shift, poses[body])


@machine_code
def move_to_origin(motion: FloatArray, pose: FloatArray) -> None:
    """Refer a motion at the world's origin to the origin of a pose (12,), in place."""
    x, y, z = cross(motion[0], motion[1], motion[2], pose[9], pose[10], pose[11])
    motion[3], motion[4], motion[5] = motion[3] + x, motion[4] + y, motion[5] + z


@machine_code
def turn_terms(angle: float) -> tuple[float, float]:
    """Return sine and versine, 1 - cos, of an angle >= 0 [rad]; inf for infinity."""
    # Halve the angle until the series are exact to rounding, then double it again.
    x, halves = angle, 0
    while x > 0.25 and halves < 1100:  # infinity stays; 1026 suffice for others
        x, halves = x / 2.0, halves + 1
    u = x * x
    s = x * (1.0 - u / 6.0 * (1.0 - u / 20.0 * (1.0 - u / 42.0 * (1.0 - u / 72.0))))
    v = u / 2.0 * (1.0 - u / 12.0 * (1.0 - u / 30.0 * (1.0 - u / 56.0)))
    for _ in range(halves):
        s, v = 2.0 * s * (1.0 - v), 2.0 * s * s
    return s, v


@machine_code
def carry(
    fast: FastTables, poses: FloatArray2, body: int, time: float, memory: FastMemory
) -> None:
    """Compute rotation and origin of a body and its ancestors at a time of the step.

        o(t) = o_p(t) + Q_p(t) (o - o_p + u t),   Q(t) = Q_p(t) exp(w t)

    o_p and Q_p are of the parent, [w; u] is memory.motion; memory.shift is added to
    [w; u] t.

    Args:
        fast: Tables of the robot.
        poses: Poses of all bodies at the start, (nb + 1, 12).
        body: Index of the body.
        time: Time since the start [s].
        memory: Work arrays, after set_motion. memory.turned of these bodies is written:
            rotation matrix Q since the start, and origin o.
    """
    for e in range(fast.line_start[body], fast.line_start[body + 1]):
        i = fast.line[e]
        p = fast.parent[i]
        P, Q, m, d = (
            memory.turned[p],
            memory.turned[i],
            memory.motion[i],
            memory.shift[i],
        )
        x = poses[i, 9] - poses[p, 9] + d[3] + m[3] * time
        y = poses[i, 10] - poses[p, 10] + d[4] + m[4] * time
        z = poses[i, 11] - poses[p, 11] + d[5] + m[5] * time
        a, b, c = d[0] + m[0] * time, d[1] + m[1] * time, d[2] + m[2] * time
        angle = math.sqrt(a * a + b * b + c * c)
        s, v = turn_terms(angle)
        scale = 1.0 / max(angle, 1e-300)  # without a rotation, s and v are zero
        a, b, c = a * scale, b * scale, c * scale
        for r in range(3):
            k = 3 * r
            Q[9 + r] = P[9 + r] + P[k] * x + P[k + 1] * y + P[k + 2] * z
            # A row P of the product with 1 + s [a] + v ([a][a]): P - s a x P + ...
            tx, ty, tz = cross(P[k], P[k + 1], P[k + 2], a, b, c)
            ux, uy, uz = cross(tx, ty, tz, a, b, c)
            Q[k] = P[k] + s * tx + v * ux
            Q[k + 1] = P[k + 1] + s * ty + v * uy
            Q[k + 2] = P[k + 2] + s * tz + v * uz


@machine_code
def is_late(scene: Scene, step: StepArrays, row: int) -> bool:
    """Return whether a chain of contact `row` met another before contacts.turn[row]."""
    root, memory, contacts = scene.fast.root, step.fast, step.contacts
    a, b = root[contacts.body_a[row]], root[contacts.body_b[row]]
    turn = contacts.turn[row]
    return 0 < memory.met[a] < turn or 0 < memory.met[b] < turn


@machine_code
def last_meeting(scene: Scene, step: StepArrays, a: int, b: int, turn: int) -> float:
    """Return the later of the first meetings of the chains of shapes a and b [s].

    Only velocities before index `turn`, and the first meeting of a chain, count. Time
    is since the poses of the state; -inf: neither has met another.
    """
    time = -math.inf
    for end in range(2):
        root = scene.fast.root[scene.shapes.body[a if end == 0 else b]]
        if 0 < step.fast.met[root] <= turn:
            time = max(time, step.fast.met_time[root])
    return time


@machine_code
def meeting_rows(
    scene: Scene, step: StepArrays, state: int, c: int, block: int, count: int
) -> float:
    """Write rows work.J of a contact at its meeting; return the rate of its gap [m/s].

    The axes of each joint are rotated with its parent, and act at the joint's origin at
    that time. A free body has the axes of the start, along which its velocity is
    expressed. Rows are along normal and tangents, then about them; columns are in the
    order of work.where. The rate is at the velocity along which the pair met; negative:
    it closes. Motions in step.fast are overwritten.
    """
    contacts, memory, work = step.contacts, step.fast, step.work
    velocity = memory.velocity[contacts.turn[c] - 1]
    set_motion(scene, step, state, contacts.turn[c] - 1)
    for r in range(count):
        for i in range(step.rows.support_count[block]):
            work.J[r, i] = 0.0
    nx, ny, nz = contacts.normal[c, 0], contacts.normal[c, 1], contacts.normal[c, 2]
    for end in range(2):
        body = contacts.body_a[c] if end == 0 else contacts.body_b[c]
        sign = 1.0 if end == 0 else -1.0
        carry(scene.fast, step.terms.poses[state], body, contacts.time[c], memory)
        for r in range(count):
            dx, dy, dz = nx, ny, nz
            if r == 1 or r == 2 or r > 3:
                dx, dy, dz = tangent(nx, ny, nz)
            if r == 2 or r == 5:
                dx, dy, dz = cross(nx, ny, nz, dx, dy, dz)
            add_row(scene, step, state, c, body, r, sign * dx, sign * dy, sign * dz)
    speed, first = 0.0, step.rows.support_start[block]
    for i in range(step.rows.support_count[block]):
        speed += work.J[0, i] * velocity[step.rows.support[first + i]]
    return speed


@machine_code
def add_row(
    scene: Scene,
    step: StepArrays,
    state: int,
    c: int,
    body: int,
    r: int,
    dx: float,
    dy: float,
    dz: float,
) -> None:
    """Add a body's part to row r of step.work.J, the Jacobian of one contact.

    Rows 0 to 2 are velocities along dx, dy, dz, in the world and reversed for the
    second body; rows from 3 on are rotations about it. `locate` and `carry` come
    before.
    """
    fast, memory, poses = scene.fast, step.fast, step.terms.poses[state]
    columns, point = step.terms.columns[state], step.contacts.point[c]
    for e in range(fast.line_start[body], fast.line_start[body + 1]):
        i = fast.line[e]
        P, o = memory.turned[fast.parent[i]], memory.turned[i]
        fx = P[0] * dx + P[3] * dy + P[6] * dz
        fy = P[1] * dx + P[4] * dy + P[7] * dz
        fz = P[2] * dx + P[5] * dy + P[8] * dz
        mx, my, mz = fx, fy, fz
        if r < 3:
            x, y, z = point[0] - o[9], point[1] - o[10], point[2] - o[11]
            mx, my, mz = cross(
                P[0] * x + P[3] * y + P[6] * z,
                P[1] * x + P[4] * y + P[7] * z,
                P[2] * x + P[5] * y + P[8] * z,
                fx, fy, fz,
            )  # fmt: skip
        for k in range(fast.column_start[i], fast.column_start[i + 1]):
            w = columns[k]
            value = w[0] * mx + w[1] * my + w[2] * mz
            if r < 3:  # and the speed of the joint's origin
                x, y, z = cross(
                    w[0], w[1], w[2], poses[i, 9], poses[i, 10], poses[i, 11]
                )
                value += fx * (w[3] + x) + fy * (w[4] + y) + fz * (w[5] + z)
            place = scene.tables.column_place[k]
            step.work.J[r, step.work.where[place]] += value


@machine_code
def close_meeting(
    scene: Scene, step: StepArrays, c: int, block: int, speed: float
) -> None:
    """Add the bias of a contact that begins at a meeting; set its compliance to 0.

    A first meeting with restitution that is faster than rule.threshold is an impact:
    the velocity after it opens the gap by Newton's law. At slower or inelastic first
    meetings, and for bodies that have already met another in the step, the gap may
    close until the end of the step. Smooth forces are taken as constant in a step.

    At a first meeting blocks.approach becomes the rate of the gap just before it; at a
    later one blocks.gap becomes the remaining gap and blocks.restitution 0. `speed` is
    from meeting_rows [m/s]; the block's rows must be complete.

    Source: ours; Newton's law of LCP-10.
    """
    rows, blocks, rule, contacts = step.rows, step.blocks, scene.rule, step.contacts
    row, gap, time = rows.start[block], contacts.gap[c], contacts.time[c]
    least = MOMENT * rule.dt
    rows.compliance[row] = 0.0
    if is_late(scene, step, c):
        a, b = scene.pairs.first[contacts.pair[c]], scene.pairs.second[contacts.pair[c]]
        start = max(last_meeting(scene, step, a, b, contacts.turn[c] - 1), 0.0)
        gap = max(gap - (time - start) * speed, 0.0)
        blocks.gap[block], blocks.restitution[block] = gap, 0.0
        add_bias(rows, blocks, row, gap / max(rule.remaining - start, least))
        return
    # An Euler step moves by the velocity that is right in its middle.
    lag = rule.remaining / rule.dt - 0.5
    part = (time + rule.dt - rule.remaining) / rule.dt + lag
    smooth = rows.b[row] - blocks.approach[block]
    before = blocks.approach[block] + part * smooth
    if contacts.turn[c] > 1:  # other impulses of the step have changed the velocity
        before += speed - rows.b[row]
    blocks.approach[block] = before
    if blocks.restitution[block] > 0.0 and before < -rule.threshold:
        rebound = -blocks.restitution[block] * before + (1.0 - part) * smooth
        add_bias(rows, blocks, row, -max(rebound, 0.0))
    else:
        add_bias(rows, blocks, row, max(gap, 0.0) / max(rule.remaining - time, least))


@machine_code
def move_before_meetings(scene: Scene, step: StepArrays, state: int) -> bool:
    """Correct positions for the other velocity before a meeting; return if any met.

    For each coordinate of a chain that met another, met_time (velocity before the
    meeting - velocity after the step) / rule.remaining is added to
    step.correction[state].
    """
    memory, any_met = step.fast, False
    for k in range(len(scene.tables.coordinate)):
        root = scene.fast.place_root[k]
        if memory.met[root] > 0:
            any_met, to = True, scene.tables.coordinate[k]
            part = memory.met_time[root] / scene.rule.remaining
            more = memory.velocity[memory.met[root] - 1, k] - step.qd_next[state, to]
            step.correction[state, to] += part * more
    return any_met
