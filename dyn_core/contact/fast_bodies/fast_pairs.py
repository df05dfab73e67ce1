"""Contacts of fast pairs, which move more in a step than half the thinner shape.

Contacts at the start of a step miss collisions within it. A fast pair is followed along
its motion in the step to its first meeting, and has the contacts of that time; a pair
that does not meet has none. If the velocity after the step leads through another shape,
contacts are added and the step is solved again.

In the subset of machine_code.

Source: B. Mirtich, Impulse-based dynamic simulation, 1996, 2.3 (conservative
advancement); the depth by which an advance may exceed the gap is ours.
"""

from __future__ import annotations

import math

from dyn_core.contact.collision.detection.all_pairs import add_pair, place_shapes
from dyn_core.contact.collision.detection.detection_arrays import (
    HEIGHTS,
    PLANE,
    Contacts,
    Shapes,
    Work,
    compose,
)
from dyn_core.contact.collision.detection.near_pairs import near_pairs
from dyn_core.contact.fast_bodies.fast_rows import (
    carry,
    is_late,
    last_meeting,
    set_motion,
)
from dyn_core.contact.fast_bodies.fast_tables import TURNS, FastMemory, FastTables
from dyn_core.contact.rows.block_rows import takes_part
from dyn_core.contact.rows.contact_biases import TOUCH
from dyn_core.contact.rows.contact_rows import cross
from dyn_core.contact.rows.step_tables import MOREAU_JEAN, Scene, StepArrays
from dyn_core.contact.rows.structure import Structure
from dyn_core.engines.machine_code import FloatArray, machine_code

# "Half" is half the thickness of the thinner shape of a pair.
DEPTH = 1e-6  # depth by which the first advance may exceed the gap, per half
GROWS = 1.4  # growth of this depth from advance to advance, up to one half
FLUSH = 0.01  # gaps that count as closed together with the first, per half
PLACES = 200  # largest number of advances
ROOTS = 30  # largest number of iterations for the time of a meeting
SMALL = 1e-6  # gap at the time of a meeting, relative to the first overlap
BOUND = 1.05  # factor of speed bounds, since speeds in chains grow within a step
TOGETHER = 1e-9  # meetings with this difference in time are simultaneous, per step


@machine_code
def may_be_fast(
    tables: Structure,
    fast: FastTables,
    velocity: FloatArray,
    dt: float,
    memory: FastMemory,
) -> bool:
    """Return whether a body may move farther than fast.allowed in a step.

    `velocity` is by place (order of elimination); sets speed bounds memory.reach [m/s].
    """
    excess = -1.0
    memory.reach[0] = 0.0
    for i in range(1, len(fast.parent)):
        reach = memory.reach[fast.parent[i]]
        for c in range(fast.column_start[i], fast.column_start[i + 1]):
            reach += fast.lever[c] * abs(velocity[tables.column_place[c]])
        memory.reach[i] = reach
        excess = max(excess, reach * dt - fast.allowed[i])
    return excess > 0.0


@machine_code
def find_fast_contacts(scene: Scene, step: StepArrays, state: int) -> int:
    """Find the contacts of a state with pairs that may be fast, before its solution.

    Pairs that are not fast, and fast pairs that touch at the start of the step, have
    their contacts at the poses of the state. With Moreau-Jean these poses are in the
    middle: a fast pair that touches at the start and keeps closing has the contacts of
    the start, one that first meets before the middle, along the velocity before the
    step, those of that time. Other fast pairs have none; find_passed adds meetings.
    Writes step.contacts, step.collision and, in step.fast, velocity 0 (the free one;
    Moreau-Jean: before the step), motions, meetings and `used`, 1 if a pair is fast,
    else 0. Returns the number of contacts, minus the needed one if they do not fit.
    """
    memory, margin = step.fast, scene.rule.margin
    halfway = scene.rule.scheme == MOREAU_JEAN
    for k in range(len(scene.tables.coordinate)):
        memory.velocity[0, k] = step.work.qd[k] if halfway else step.work.free[k]
    for i in range(len(memory.met)):
        memory.met[i] = 0
    begin = scene.rule.remaining - scene.rule.dt
    count, near, any_fast = 0, follow(scene, step, state), False
    for m in range(near):
        pair = step.collision.near[m]
        if not is_fast(scene, step, pair):
            if any_fast:  # shapes of fast pairs have left their initial frames
                count, _ = pair_later(scene, step, state, pair, 0.0, margin, count)
            else:
                count = add_pair(
                    scene.shapes,
                    scene.pairs,
                    pair,
                    margin,
                    step.contacts,
                    count,
                    step.collision,
                )
            continue
        any_fast = True
        more, _ = pair_later(scene, step, state, pair, begin, TOUCH, count)
        closing = fastest_closing(step, count, more) * -begin
        if closing > FLUSH * thinner(scene, pair):  # it touches, and keeps closing
            count = add_meeting(scene, step, state, pair, count, begin)
        elif more > count:
            count, _ = pair_later(scene, step, state, pair, 0.0, margin, count)
        elif halfway:
            time = time_of_meeting(scene, step, state, pair, count, begin, 0.0)
            count = add_meeting(scene, step, state, pair, count, time)
    count = finish_contacts(scene, step, 0, count)
    memory.used[0] = 1 if any_fast else 0
    return count


@machine_code
def is_passing(scene: Scene, step: StepArrays, state: int) -> bool:
    """Return whether pairs may be fast at the velocity after a step.

    The velocity, qd_next[state], is stored in the next row of step.fast.velocity, by
    place (order of elimination). Once five (TURNS) have been used, the result is False,
    and nothing is stored.
    """
    memory, tables = step.fast, scene.tables
    if memory.used[0] == TURNS:
        return False
    velocity = memory.velocity[max(memory.used[0], 1)]
    for k in range(len(tables.coordinate)):
        velocity[k] = step.qd_next[state, tables.coordinate[k]]
    return may_be_fast(tables, scene.fast, velocity, scene.rule.dt, memory)


@machine_code
def find_passed(scene: Scene, step: StepArrays, state: int, touching: int) -> int:
    """Add contacts of pairs that pass through each other at the velocity after a step.

    is_passing has stored it. Pairs that have an acting contact from the start of the
    step are not tested, except with height fields; contacts of fast pairs may be
    replaced. step.fast.changed becomes 1 if any contact is new or replaced, else 0; in
    the first case the velocity counts in step.fast.used. Returns the number of
    contacts; minus the needed number if the arrays are too small.
    """
    memory, contacts, next_turn = step.fast, step.contacts, max(step.fast.used[0], 1)
    if memory.used[0] == 0:  # no pair was fast before
        for i in range(len(memory.met)):
            memory.met[i] = 0
    before, memory.used[0] = memory.used[0], next_turn
    count, near, changed = touching, follow(scene, step, state), False
    for row in range(touching):
        if contacts.turn[row] == 0 and acts(scene, contacts, row):
            memory.guarded[contacts.pair[row]] = 1
    for m in range(near):
        pair = step.collision.near[m]
        uneven = scene.shapes.kind[scene.pairs.second[pair]] == HEIGHTS
        if memory.guarded[pair] != 0 and not uneven:
            continue
        if is_fast(scene, step, pair):
            end = scene.rule.remaining
            time = time_of_meeting(scene, step, state, pair, count, 0.0, end)
            more = add_meeting(scene, step, state, pair, count, time)
            if more > count and more <= len(contacts.id):
                more, new = replace_known(scene, step, count, more)
                changed = changed or new
            count = more
    count = finish_contacts(scene, step, touching, count)
    memory.used[0] = next_turn + 1 if changed else before
    memory.changed[0] = 1 if changed else 0
    return count


@machine_code
def follow(scene: Scene, step: StepArrays, state: int) -> int:
    """Compute the motions of all bodies along a velocity, and find the near pairs.

    Args:
        scene: Robot, world and rule.
        step: Arrays. The velocity is row step.fast.used[0] of step.fast.velocity. The
            frames of all shapes at the start, their swept boxes, and the pairs whose
            boxes are within the margin are written to step.collision; motions and
            speeds are written to step.fast, and its fields first, guarded (of these
            pairs) and needed are reset.
        state: Index of the state.

    Returns:
        The number of these pairs.
    """
    memory, shapes, work = step.fast, scene.shapes, step.collision
    poses = step.terms.poses[state]
    set_motion(scene, step, state, memory.used[0])
    place_shapes(shapes, poses, work)
    for k in range(len(shapes.kind)):
        memory.speed[k] = 0.0
        if shapes.kind[k] >= PLANE:
            continue
        body, size = shapes.body[k], core_radius(shapes, k)
        more = 0.0
        for e in range(scene.fast.line_start[body], scene.fast.line_start[body + 1]):
            i = scene.fast.line[e]
            arm = distance(work.middle[k], poses[i]) + size
            memory.speed[k] += BOUND * bound_of(memory.motion[i], arm)
            more += BOUND * bound_of(memory.shift[i], arm)
        for i in range(3):
            work.half[k, i] += memory.speed[k] * scene.rule.dt + more
    for i in range(len(memory.first)):
        memory.first[i] = math.inf
    near = near_pairs(shapes, scene.pairs, scene.rule.margin, work)
    for m in range(near):
        memory.guarded[work.near[m]] = 0
    memory.needed[0] = 0
    return near


@machine_code
def bound_of(m: FloatArray, arm: float) -> float:
    """Return a bound of the speed up to `arm` [m] from an origin with velocity m."""
    turn = math.sqrt(m[0] * m[0] + m[1] * m[1] + m[2] * m[2])
    return math.sqrt(m[3] * m[3] + m[4] * m[4] + m[5] * m[5]) + turn * arm


@machine_code
def core_radius(shapes: Shapes, k: int) -> float:
    """Return the radius of a ball about the centre of shape k around its core [m].

    The core is the shape without its rounding; the centre is the middle of its bounds.
    """
    x, y, z = shapes.bounds[k, 3], shapes.bounds[k, 4], shapes.bounds[k, 5]
    return math.sqrt(x * x + y * y + z * z)


@machine_code
def distance(x: FloatArray, pose: FloatArray) -> float:
    """Return the distance of x, (3,), from a pose's origin, its entries 9 to 11 [m]."""
    a, b, c = x[0] - pose[9], x[1] - pose[10], x[2] - pose[11]
    return math.sqrt(a * a + b * b + c * c)


@machine_code
def is_fast(scene: Scene, step: StepArrays, pair: int) -> bool:
    """Return whether a pair may move in a step by more than half of the thinner shape.

    A bound of the motion of the core of one shape (core_radius) in the frame of the
    other is compared, after `follow`; pairs with a half-space are never fast.
    """
    a, b = scene.pairs.first[pair], scene.pairs.second[pair]
    if scene.shapes.kind[b] == PLANE:  # it has no other side
        return False
    way = relative_speed(scene.shapes, a, b, step.collision, step.fast)
    if scene.shapes.kind[b] < PLANE:
        other = relative_speed(scene.shapes, b, a, step.collision, step.fast)
        way = min(way, other)
    return way * scene.rule.dt > thinner(scene, pair)


@machine_code
def thinner(scene: Scene, pair: int) -> float:
    """Return half the thickness of the thinner shape of a pair [m]."""
    thin = scene.fast.thin
    return min(thin[scene.pairs.first[pair]], thin[scene.pairs.second[pair]])


@machine_code
def fastest_closing(step: StepArrays, count: int, more: int) -> float:
    """Return the largest closing speed of contacts `count` to `more` - 1 [m/s], or 0.

    Reads the velocities of set_motion; contacts beyond the capacity are ignored.
    """
    contacts, spatial, fastest = step.contacts, step.fast.spatial, 0.0
    for row in range(count, min(more, len(contacts.id))):
        V, W = spatial[contacts.body_a[row]], spatial[contacts.body_b[row]]
        n = contacts.normal[row]
        x, y, z = relative_velocity(V, W, contacts.point[row])
        fastest = max(fastest, -(x * n[0] + y * n[1] + z * n[2]))
    return fastest


@machine_code
def relative_velocity(
    V: FloatArray, W: FloatArray, p: FloatArray
) -> tuple[float, float, float]:
    """Return the velocity of a body's point relative to another body.

    V and W are [angular; linear] of the point at the world's origin; p is in the world.
    """
    x, y, z = cross(V[0] - W[0], V[1] - W[1], V[2] - W[2], p[0], p[1], p[2])
    return x + V[3] - W[3], y + V[4] - W[4], z + V[5] - W[5]


@machine_code
def relative_speed(
    shapes: Shapes, a: int, b: int, work: Work, memory: FastMemory
) -> float:
    """Return a bound of the speed of the core of shape a in the frame of b [m/s].

    Reads work.middle, and memory.spatial of set_motion.
    """
    V, W = memory.spatial[shapes.body[a]], memory.spatial[shapes.body[b]]
    wx, wy, wz = V[0] - W[0], V[1] - W[1], V[2] - W[2]
    x, y, z = relative_velocity(V, W, work.middle[a])
    turn = math.sqrt(wx * wx + wy * wy + wz * wz)
    return math.sqrt(x * x + y * y + z * z) + turn * core_radius(shapes, a)


@machine_code
def place_later(
    scene: Scene, step: StepArrays, state: int, k: int, time: float
) -> None:
    """Set step.collision.frames[k] to the frame of shape k at a time of its motion.

    `time` is since the poses of the state [s]; `follow` must have run. Nothing is done
    for a shape of the world; for others step.fast.turned and pose are overwritten.
    """
    memory, body, poses = step.fast, scene.shapes.body[k], step.terms.poses[state]
    if body == 0:
        return
    carry(scene.fast, poses, body, time, memory)
    Q, R, pose = memory.turned[body], poses[body], memory.pose
    for r in range(3):
        for c in range(3):
            pose[3 * r + c] = (
                Q[3 * r] * R[c] + Q[3 * r + 1] * R[3 + c] + Q[3 * r + 2] * R[6 + c]
            )
        pose[9 + r] = Q[9 + r]
    compose(pose, scene.shapes.place[k], step.collision.frames[k])


@machine_code
def pair_later(
    scene: Scene,
    step: StepArrays,
    state: int,
    pair: int,
    time: float,
    margin: float,
    count: int,
) -> tuple[int, float]:
    """Add the contacts of a pair at a time since the poses of the state [s].

    The frames of both shapes remain at this time. Returns the new number of contacts,
    which exceeds the length of the arrays if they are too small, and the smallest gap
    of the added ones, or `margin`. For a pair guarded by acting contacts from the start
    of the step, contacts with the same id as one of these do not count for the gap.
    """
    contacts, a, b = step.contacts, scene.pairs.first[pair], scene.pairs.second[pair]
    place_later(scene, step, state, a, time)
    place_later(scene, step, state, b, time)
    more = add_pair(
        scene.shapes, scene.pairs, pair, margin, contacts, count, step.collision
    )
    least = margin
    for row in range(count, min(more, len(contacts.id))):
        if step.fast.guarded[pair] == 0 or not known(contacts, count, row):
            least = min(least, contacts.gap[row])
    return more, least


@machine_code
def known(contacts: Contacts, count: int, row: int) -> bool:
    """Return whether a contact from the start of the step has the id of contact `row`.

    count: The contacts 0 to count - 1 are compared.
    """
    for other in range(count):
        if contacts.turn[other] == 0 and contacts.id[other] == contacts.id[row]:
            return True
    return False


@machine_code
def add_meeting(
    scene: Scene, step: StepArrays, state: int, pair: int, count: int, time: float
) -> int:
    """Add the contacts of a pair that meets; return the new number of contacts.

    The number exceeds the length of the arrays if they are too small. Gaps count up to
    0.01 `thinner`. Each contact gets the time since the poses of the state [s], and as
    `turn` one plus the index of the velocity; step.fast.first of both bodies' roots is
    lowered to the time. With a time of inf the pair does not meet: nothing is added.
    """
    if not time < math.inf:
        return count
    memory, contacts, shapes = step.fast, step.contacts, scene.shapes
    flush = FLUSH * thinner(scene, pair)
    more, _ = pair_later(scene, step, state, pair, time, flush, count)
    for row in range(count, min(more, len(contacts.id))):
        contacts.turn[row], contacts.time[row] = memory.used[0] + 1, time
    a = scene.fast.root[shapes.body[scene.pairs.first[pair]]]
    b = scene.fast.root[shapes.body[scene.pairs.second[pair]]]
    if a > 0:
        memory.first[a] = min(memory.first[a], time)
    if b > 0:
        memory.first[b] = min(memory.first[b], time)
    return more


@machine_code
def time_of_meeting(
    scene: Scene,
    step: StepArrays,
    state: int,
    pair: int,
    count: int,
    begin: float,
    end: float,
) -> float:
    """Return the time since the poses of the state at which a pair first meets [s].

    Conservative advancement: each advance ends before any point can be deeper than a
    small part of the thinner shape, which grows from advance to advance, until the pair
    overlaps. It starts after `begin` if a body of the pair has met another at a
    previous velocity. Frames of shapes, and contacts from `count` on, are overwritten.
    The result is inf if the pair does not meet by `end` or in 200 advances, or if its
    contacts do not fit in the arrays: step.fast.needed is then raised to their number.
    """
    shapes, memory = scene.shapes, step.fast
    a, b = scene.pairs.first[pair], scene.pairs.second[pair]
    thin = thinner(scene, pair)
    depth, total, most = DEPTH * thin, memory.speed[a] + memory.speed[b], math.inf
    if shapes.kind[b] == HEIGHTS:  # a limited margin, for few cells at a time
        most = max(shapes.cells[b, 0], shapes.cells[b, 1])
        most += 2.0 * (core_radius(shapes, a) + shapes.size[a, 3])
    time = max(begin, last_meeting(scene, step, a, b, memory.used[0]))
    before, gap_before = time, math.inf
    for _ in range(PLACES):
        margin = min(total * (end - time), most)
        more, least = pair_later(scene, step, state, pair, time, margin, count)
        if more > len(step.contacts.id):
            memory.needed[0] = max(memory.needed[0], more)
            return math.inf
        if least < -0.5 * DEPTH * thin:
            return refine(
                scene, step, state, pair, count, before, gap_before, time, least
            )
        if not time < end:
            return math.inf
        wait, closest = margin / total, margin
        for row in range(count, more):
            closest = min(closest, step.contacts.gap[row])
            if memory.guarded[pair] != 0 and known(step.contacts, count, row):
                continue
            closing = closing_speed(scene, step, pair, row)
            if closing > 0.0:
                gap = max(step.contacts.gap[row], 0.0)
                wait = min(wait, (gap + depth) / closing)
        if shapes.kind[b] == HEIGHTS:  # of its edges only the closest is a contact
            wait = min(wait, (max(closest, 0.0) + depth) / total)
        before, gap_before = time, least
        time = min(time + wait, end)
        depth = min(GROWS * depth, thin)
    return math.inf


@machine_code
def closing_speed(scene: Scene, step: StepArrays, pair: int, row: int) -> float:
    """Return a bound of the speed at which a gap closes along its normal [m/s].

    A body whose joint connects it to the world counts by its velocity along the normal
    and its rotation, since its origin moves straight; any other by its speed bound. It
    is negative only if the gap opens. `follow` must have run.
    """
    n, total = step.contacts.normal[row], 0.0
    for end in range(2):
        k = scene.pairs.first[pair] if end == 0 else scene.pairs.second[pair]
        body = scene.shapes.body[k]
        bodies = scene.fast.line_start[body + 1] - scene.fast.line_start[body]
        if bodies == 1:
            m, arm = step.fast.motion[body], scene.fast.arm[k]
            turn = math.sqrt(m[0] * m[0] + m[1] * m[1] + m[2] * m[2])
            along = n[0] * m[3] + n[1] * m[4] + n[2] * m[5]
            total += turn * arm + (-along if end == 0 else along)
        else:
            total += step.fast.speed[k]
    return total


@machine_code
def refine(
    scene: Scene,
    step: StepArrays,
    state: int,
    pair: int,
    count: int,
    low: float,
    gap_low: float,
    high: float,
    gap_high: float,
) -> float:
    """Return the time at which a gap is zero, by the Illinois method [s].

    Frames of the shapes, and contacts from `count` on, are overwritten. The gap at
    the result is between -s and s, s = 1e-6 |gap_high|; gap_high is negative, `high`
    later than `low`. The result is `high` if gap_low is 0 or inf, `low` if gap_low is
    negative, and after 30 iterations the last time with an overlap.
    """
    small, side = -SMALL * gap_high, 0
    for _ in range(ROOTS):
        if not 0.0 < gap_low < math.inf:
            return low if gap_low < 0.0 else high
        x = high - gap_high * (high - low) / (gap_high - gap_low)
        more, gap = pair_later(scene, step, state, pair, x, 2.0 * gap_low, count)
        if gap < 0.0:
            gap_low = gap_low / 2.0 if side < 0 else gap_low
            high, gap_high, side = x, gap, -1
        else:
            gap_high = gap_high / 2.0 if side > 0 else gap_high
            low, gap_low, side = x, gap, 1
        if abs(gap) <= small:
            return x
    return high


@machine_code
def acts(scene: Scene, contacts: Contacts, row: int) -> bool:
    """Return whether contact `row` gets rows: found within the step, or takes_part."""
    return contacts.turn[row] > 0 or takes_part(scene.rule, contacts.gap[row])


@machine_code
def replace_known(
    scene: Scene, step: StepArrays, count: int, more: int
) -> tuple[int, bool]:
    """Replace contacts by new contacts with the same id; append the others.

    A previous contact that acts and is not late (see acts and is_late) is not replaced:
    the new contact is dropped. New are contacts `count` to `more` - 1. Returns the
    number of contacts that remain, and whether any is new or replaced.
    """
    contacts, last, new = step.contacts, count, False
    for row in range(count, more):
        target = last
        for other in range(count):
            if contacts.id[other] == contacts.id[row]:
                target = other
        if target == last:
            copy_contact(contacts, row, target)
            last, new = last + 1, True
        elif is_late(scene, step, target) or not acts(scene, contacts, target):
            copy_contact(contacts, row, target)
            new = True
    return last, new


@machine_code
def finish_contacts(scene: Scene, step: StepArrays, start: int, count: int) -> int:
    """Remove meetings after a chain's first one; return the new number of contacts.

    Kept are meetings up to 1e-9 dt after the first, all of chains that met another at a
    previous velocity, and contacts of the start of the step; those before `start`, too.
    First meetings are stored in step.fast.met and met_time of the bodies' roots. The
    result is minus the needed number, and nothing is changed, if contacts did not fit
    in the arrays.
    """
    # A body's velocity changes at its first meeting. Later ones, if they still occur,
    # are found with the new velocity.
    contacts, first, last = step.contacts, step.fast.first, start
    if count > len(contacts.id) or step.fast.needed[0] > 0:
        return -max(count, step.fast.needed[0])
    for row in range(start, count):
        meets = contacts.turn[row] > 0 and not is_late(scene, step, row)
        if meets:
            a = scene.fast.root[contacts.body_a[row]]
            b = scene.fast.root[contacts.body_b[row]]
            least = min(first[a], first[b]) + TOGETHER * scene.rule.dt
            if contacts.time[row] > least:
                continue
        copy_contact(contacts, row, last)
        last += 1
    for row in range(start, last):
        if contacts.turn[row] > 0 and not is_late(scene, step, row):
            for end in range(2):
                body = contacts.body_a[row] if end == 0 else contacts.body_b[row]
                root = scene.fast.root[body]
                if root > 0:
                    step.fast.met[root] = contacts.turn[row]
                    step.fast.met_time[root] = contacts.time[row]
    return last


@machine_code
def copy_contact(contacts: Contacts, source: int, target: int) -> None:
    """Copy all fields of contact `source` to index `target` of the same arrays."""
    if source == target:
        return
    contacts.id[target] = contacts.id[source]
    contacts.pair[target] = contacts.pair[source]
    contacts.body_a[target] = contacts.body_a[source]
    contacts.body_b[target] = contacts.body_b[source]
    contacts.gap[target] = contacts.gap[source]
    contacts.time[target] = contacts.time[source]
    contacts.turn[target] = contacts.turn[source]
    for i in range(3):
        contacts.point[target, i] = contacts.point[source, i]
        contacts.normal[target, i] = contacts.normal[source, i]
