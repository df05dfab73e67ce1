"""Contacts in a step of a planar chain: joints on the ground, angles at limits.

Joint i is held by half-plane k-1 of the ground where `contact[i]` is k, and by nothing
where it is 0; angle i is at its upper limit where `limit[i]` is 1, at its lower one
where it is -1. Which half-planes and limits a joint has at all is known while tracing.
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
    """Contacts and limits that hold, lists by joint.

    Attributes:
        contact: 0 off, k where half-plane k-1 of the ground holds the joint.
        landed: 1 where that began in this step.
        limit: 0 off, +1 at the upper, -1 at the lower limit.
        stopped: 1 where that began in this step.
    """

    contact: list[Any]
    landed: list[Any]
    limit: list[Any]
    stopped: list[Any]


def touching_at_start(model, contact, limit):
    """Return what touches before a step; joints that nothing can stop are off."""
    contact = [x if planes_of(model, i) else 0.0 for i, x in enumerate(contact)]
    limit = [x if bounds_of(model, i) else 0.0 for i, x in enumerate(limit)]
    return Touching(contact, [0.0] * model.n, limit, [0.0] * model.n)


def is_any(*parts):
    """Return whether there is something other than zero."""
    return sum(x * x for part in parts for x in part) > 0.0


def with_hits(model, touching, x, v):
    """Return what touches in a state: below the ground and going down, beyond a limit.

    Of several half-planes the deepest holds; an angle is held by the limit that it is
    nearer to, within 90 degrees beyond it.
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
    """Return what touches without what has to pull by more than round-off.

    Args:
        model: Planar chain.
        touching: What touches.
        impulse, couples: Impulses of the supports, and of the angles that are held.
        smallest: Pull that counts [N·s].
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
    """Return what touches without what was released and does leave.

    Args:
        model: Planar chain.
        touching: What touched before anything was released.
        released: What touches after.
        v: Velocities after it was released.
        L: Of the links.
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
    """Return what joints may do by the ground and the limits that hold them."""
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
    """Return the changes of velocity that bring joints on the ground to rest."""
    return [
        where(_is_on(contact[i]), v[i] * -1.0, ZERO) if planes_of(model, i) else ZERO
        for i in range(model.n)
    ]


def turns_to_rest(model, limit, rates):
    """Return the changes of the rates that bring angles at limits to rest."""
    return [
        where(_is_on(limit[i]), -rates[i], 0.0) if bounds_of(model, i) else 0.0
        for i in range(model.n)
    ]


def ways_to_ground(model, contact, x):
    """Return the ways of joints on the ground back to its edge."""
    return [
        normal(model, i, contact[i]) * -depth(model, i, contact[i], x[i])
        if planes_of(model, i)
        else ZERO
        for i in range(model.n)
    ]


def turns_beyond(model, limit, r):
    """Return how far angles at limits are beyond them, with their signs [rad].

    For small angles, of which it is the sine.
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
    """Return number, from 1 on, and half-plane of the ground that stops joint i."""
    if model.constraints.kind[i] == GUIDED:
        return []
    return [(k + 1.0, plane) for k, plane in enumerate(model.ground) if plane.stops(i)]


def height(plane, x):
    """Return how far a place is above a half-plane's edge."""
    return Vector(plane.z) @ (x - Vector(plane.z0))


def normal(model, i, contact):
    """Return the normal of the half-plane that holds joint i, zero where none does."""
    z = ZERO
    for k, plane in planes_of(model, i):
        z = where(equal(contact, k), Vector(plane.z), z)
    return z


def depth(model, i, contact, x):
    """Return how far joint i is above what holds it; 0 where nothing does."""
    d = 0.0
    for k, plane in planes_of(model, i):
        d = where(equal(contact, k), height(plane, x), d)
    return d


def _kind(model, i, contact, chain_kind):
    """Return the kind of joint i: its own, or what the ground makes of it."""
    kind = chain_kind
    for k, plane in planes_of(model, i):
        slides = plane.mode == "slide" and chain_kind == FREE
        kind = where(equal(contact, k), LINE if slides else GUIDED, kind)
    return kind


def _is_on(flag):
    """Return whether a contact or limit holds."""
    return logical_not(equal(flag, 0.0))


# ---- limits of angles


def bounds_of(model, i):
    """Return sign and angle of the limits of joint i, the upper one first."""
    if model.constraints.active[i]:
        return []
    both = (1.0, model.upper[i]), (-1.0, model.lower[i])
    return [(sign, bound) for sign, bound in both if abs(bound) != float("inf")]


def joint_rates(v, L):
    """Return the rates of the joint angles, a list; L of the links.

    Source: WAW-2.1.
    """
    rates, before = [], 0.0
    for i, row in enumerate(L):
        rate = row @ (v[i + 1] - v[i])
        rates.append(rate - before)
        before = rate
    return rates


def _beyond(i, sign, bound, r):
    """Return the sine of how far angle i is beyond a limit, and the cosine."""
    before = r[i - 1] if i else Vector((1.0, 0.0))
    co, si = cos(bound), sin(bound)
    edge = Vector((co * before[0] - si * before[1], si * before[0] + co * before[1]))
    return (edge[0] * r[i][1] - edge[1] * r[i][0]) * sign, edge @ r[i]


def _reach(range_):
    """Return the cosine of how far beyond a limit an angle is looked at.

    An angle is beyond the limit that it is nearer to, by 90 degrees at most.
    """
    half = (TURN - range_) / 2
    return 0.0 if half >= TURN / 4 or range_ == float("inf") else cos(max(half, 0.0))
