"""Contacts in a step of a planar chain: joints on the ground, angles at limits.

Joint i touches half-plane k-1 of the ground if `contact[i]` is k, and none if it is 0;
angle i is at its upper limit if `limit[i]` is 1, at its lower one if it is -1. The
half-planes and limits that a joint can touch are known while tracing. Angle i is that
of link i from link i-1, angle 0 that of link 0 from the x axis; the chain has n joints.
"""

from math import pi
from typing import Any, NamedTuple

from dyn_core.authoring import (
    Vector,
    cos,
    equal,
    logical_and,
    logical_not,
    sin,
    where,
)
from dyn_core.planar import FREE, GUIDED, LINE, JointModes
from dyn_plugins.planar._passes import ZERO, links, modes_of

TURN = 2 * pi


class Touching(NamedTuple):
    """Active contacts and limits, lists by joint.

    contact: 0 off, k if the joint touches half-plane k-1 of the ground; limit: 0 off,
    +1 at the upper, -1 at the lower; landed, stopped: 1 if new in this step.
    """

    contact: list[Any]
    landed: list[Any]
    limit: list[Any]
    stopped: list[Any]


def touching_at_start(model, contact, limit):
    """Return the Touching before a step; zero where there is no half-plane or limit."""
    contact = [x if planes_of(model, i) else 0.0 for i, x in enumerate(contact)]
    limit = [x if bounds_of(model, i) else 0.0 for i, x in enumerate(limit)]
    return Touching(contact, [0.0] * model.n, limit, [0.0] * model.n)


def is_any(*parts):
    """Return a condition: one of `parts`, lists of numbers, has a nonzero entry."""
    return sum(x * x for part in parts for x in part) > 0.0


def with_hits(model, touching, x, v):
    """Return the Touching with joints that move into the ground or past a limit.

    The deepest of several half-planes counts, also in place of an active contact's. An
    angle counts within 90 degrees beyond a limit, and only if that limit is the nearer
    one; a limit that is active already stays. A joint or angle counts only while it
    moves further in; new ones are landed or stopped.
    """
    contact, landed, limit, stopped = map(list, touching)
    for i in range(model.n):
        low = depth(model, i, contact[i], x[i])
        low = where(low < 0.0, low, 0.0)
        for k, plane in planes_of(model, i):
            above = height(plane, x[i])
            down = logical_and(above < low, Vector(plane.z) @ v[i] < 0.0)
            down = logical_and(down, logical_not(equal(contact[i], k)))
            contact[i] = where(down, k, contact[i])
            landed[i] = where(down, 1.0, landed[i])
            low = where(down, above, low)
    r, L, _ = links(model, x)
    rates = joint_rates(v, L)
    for i in range(model.n):
        bounds = bounds_of(model, i)
        off = equal(limit[i], 0.0) if bounds else False
        reach = _reach(model.upper[i] - model.lower[i])
        for sign, bound in bounds:
            si, co = _beyond(i, sign, bound, r)
            past = logical_and(logical_and(si > 0.0, co > reach), off)
            past = logical_and(past, rates[i] * sign > 0.0)
            limit[i] = where(past, sign, limit[i])
            stopped[i] = where(past, 1.0, stopped[i])
    return Touching(contact, landed, limit, stopped)


def without_pulls(model, touching, impulse, couples, smallest):
    """Return the Touching without contacts and limits that would have to pull.

    They are no longer landed or stopped either. A pull above `smallest` is more than
    round-off, in impulses [N·s] and couples [N·m·s].
    """
    contact, landed, limit, stopped = map(list, touching)
    for i in range(model.n):
        if planes_of(model, i):
            pulls = normal(model, i, contact[i]) @ impulse[i] < -smallest
            contact[i] = where(pulls, 0.0, contact[i])
            landed[i] = where(pulls, 0.0, landed[i])
    for i in range(model.n):
        if bounds_of(model, i):
            pulls = limit[i] * couples[i] > smallest
            limit[i] = where(pulls, 0.0, limit[i])
            stopped[i] = where(pulls, 0.0, stopped[i])
    return Touching(contact, landed, limit, stopped)


def without_leaving(model, touching, released, v, L):
    """Return the Touching without contacts and limits that were released and separate.

    One that was released, but moves further in (v is after the releases), stays active;
    at rate zero it separates. Those that separate are not landed or stopped either.
    """
    contact, landed, limit, stopped = map(list, touching)
    for i in range(model.n):
        if planes_of(model, i):
            leaves = normal(model, i, contact[i]) @ v[i] >= 0.0
            gone = logical_and(equal(released.contact[i], 0.0), leaves)
            contact[i] = where(gone, 0.0, contact[i])
            landed[i] = where(gone, 0.0, landed[i])
    rates = joint_rates(v, L)
    for i in range(model.n):
        if bounds_of(model, i):
            leaves = rates[i] * limit[i] <= 0.0
            gone = logical_and(equal(released.limit[i], 0.0), leaves)
            limit[i] = where(gone, 0.0, limit[i])
            stopped[i] = where(gone, 0.0, stopped[i])
    return Touching(contact, landed, limit, stopped)


def modes_while(model, touching):
    """Return the JointModes of the chain with the contacts and limits of `touching`.

    A joint in contact is GUIDED, or on a LINE along a half-plane on which it slides; an
    angle at a limit is active. a_w and alpha_w are the chain's own.
    """
    modes = modes_of(model)
    kind = [_kind(model, i, touching.contact[i], modes.kind[i]) for i in range(model.n)]
    s, active = list(modes.s), list(modes.active)
    for i in range(model.n):
        if planes_of(model, i):
            on = _is_on(touching.contact[i])
            s[i] = where(on, normal(model, i, touching.contact[i]), modes.s[i])
        if bounds_of(model, i):
            active[i] = _is_on(touching.limit[i])
    return JointModes(kind, s, list(modes.a_w), active, list(modes.alpha_w))


def jumps_to_rest(model, contact, v):
    """Return the changes -v of joints on the ground, also sliding ones; else zero."""
    return [
        where(_is_on(contact[i]), v[i] * -1.0, ZERO) if planes_of(model, i) else ZERO
        for i in range(model.n)
    ]


def turns_to_rest(model, limit, rates):
    """Return the changes of angular rates, n, that stop angles at limits; else zero."""
    return [
        where(_is_on(limit[i]), -rates[i], 0.0) if bounds_of(model, i) else 0.0
        for i in range(model.n)
    ]


def ways_to_ground(model, contact, x):
    """Return vectors along normals from joints in contact to the ground; else zero."""
    return [
        normal(model, i, contact[i]) * -depth(model, i, contact[i], x[i])
        if planes_of(model, i)
        else ZERO
        for i in range(model.n)
    ]


def turns_beyond(model, limit, r):
    """Return the sines of the excess of angles over their active limits; else 0.0.

    It approximates a small excess [rad], positive beyond upper, negative beyond lower.
    """
    beyond = []
    for i in range(model.n):
        beyond.append(0.0)
        for sign, bound in bounds_of(model, i):
            here = _beyond(i, sign, bound, r)[0] * sign
            beyond[i] = where(equal(limit[i], sign), here, beyond[i])
    return beyond


# ---- the ground


def planes_of(model, i):
    """Return a list of (k, HalfPlane), those that can stop joint i.

    k is the number of the half-plane in model.ground, from 1.0 on.
    """
    if model.constraints.kind[i] == GUIDED:
        return []
    return [(k + 1.0, plane) for k, plane in enumerate(model.ground) if plane.stops(i)]


def height(plane, x):
    """Return the height of x above a half-plane's edge, negative below it [m]."""
    return Vector(plane.z) @ (x - Vector(plane.z0))


def normal(model, i, contact):
    """Return the unit normal of the half-plane at joint i; zero without contact.

    contact: 0, or the number of the half-plane, from 1 on.
    """
    z = ZERO
    for k, plane in planes_of(model, i):
        z = where(equal(contact, k), Vector(plane.z), z)
    return z


def depth(model, i, contact, x):
    """Return the height of joint i above its half-plane [m]; 0 without contact.

    It is negative below the edge. contact: 0, or the number of the half-plane, from 1
    on; x: Position of the joint.
    """
    d = 0.0
    for k, plane in planes_of(model, i):
        d = where(equal(contact, k), height(plane, x), d)
    return d


def _kind(model, i, contact, chain_kind):
    """Return the kind of joint i: chain_kind, or LINE or GUIDED by its contact.

    LINE if the half-plane slides and the joint is free. contact: 0, or the number of
    the half-plane, from 1 on.
    """
    kind = chain_kind
    for k, plane in planes_of(model, i):
        slides = plane.mode == "slide" and chain_kind == FREE
        kind = where(equal(contact, k), LINE if slides else GUIDED, kind)
    return kind


def _is_on(flag):
    """Return whether a contact or limit flag is nonzero."""
    return logical_not(equal(flag, 0.0))


# ---- limits of angles


def bounds_of(model, i):
    """Return (1.0, upper), (-1.0, lower) angle [rad] of finite limits of joint i.

    An angle with a prescribed acceleration has none.
    """
    if model.constraints.active[i]:
        return []
    both = (1.0, model.upper[i]), (-1.0, model.lower[i])
    return [(sign, bound) for sign, bound in both if abs(bound) != float("inf")]


def joint_rates(v, L):
    """Return the rates of the joint angles, a list of n-1 [rad/s]; the first of link 0.

    v: Velocities of the joints; L: normals of the links over their lengths, as `links`
    returns them.

    Source: WAW-2.1.
    """
    rates, before = [], 0.0
    for i, row in enumerate(L):
        rate = row @ (v[i + 1] - v[i])
        rates.append(rate - before)
        before = rate
    return rates


def _beyond(i, sign, bound, r):
    """Return sine, positive beyond, and cosine of angle i's excess over a limit."""
    before = r[i - 1] if i else Vector((1.0, 0.0))
    co, si = cos(bound), sin(bound)
    edge = Vector((co * before[0] - si * before[1], si * before[0] + co * before[1]))
    return (edge[0] * r[i][1] - edge[1] * r[i][0]) * sign, edge @ r[i]


def _reach(range_):
    """Return the cosine of the largest excess over a limit that is detected.

    An angle counts as beyond its nearer limit: up to half of 2 pi - range_, but at most
    90 degrees. range_ [rad] is infinite for an angle with one limit.
    """
    half = (TURN - range_) / 2
    return 0.0 if half >= TURN / 4 or range_ == float("inf") else cos(max(half, 0.0))
