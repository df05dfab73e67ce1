"""A step of fixed cost for planar chains on the ground and with limits of angles."""

from math import pi

from dyn_core import CHAIN_EVENT_STEP, TextSolver, Vector, hookimpl
from dyn_core.planar import FREE, GUIDED, LINE
from dyn_core.scalar import cos, equal, logical_and, logical_not, sin, sqrt, where
from dyn_plugins.planar._passes import (
    ZERO,
    Modes,
    links,
    modes_of,
    pass_back,
    pass_forward,
    rows_of,
)
from dyn_plugins.planar.impact import lost_energy
from dyn_plugins.planar.recursion import reactions
from dyn_plugins.planar.steps import accelerate, moved

TURN = 2 * pi
ROUNDING = 1e-9  # share of the weight below which a pull does not count
CREEP = 1e-4  # share of the lengths that places may be put right in `window` steps


def chain_fixed_step(model, x, v, contact, limit, tau, dt, rounds, window):
    """Give the state one step later, with impacts, releases and limits, at one price.

        v_free = v + dt a,   v_next = struck(v_free),   x_next = x + dt v_land

    Three parts. Accelerations, as if nothing touched. Hits: joints and angles that are
    held, or would be below the ground or beyond a limit after the step, come to rest
    by impulses, without the rewind of the event-driven step; what would pull is let
    go, `rounds` times, unless it would go on into the ground or beyond its limit. Move:
    joints land on the ground, links and angles get `window`-th parts of their errors
    back, by velocities that do not stay.

    All velocities after a hit are a projection of those before: energy does not grow,
    however near to singular a chain lies. So the places are put right only as far as
    no joint moves by much more than it does itself.

    All choices are selects, so that a batch needs no branches. Angles are looked at
    within 90 degrees beyond a limit, and as far as the other one is not nearer.

    Args:
        model: Planar chain; its ground and limits act.
        x, v: Places and velocities of the joints, (n, 2) [m], [m/s].
        contact: By joint: 0 off, k where half-plane k-1 of the ground holds it, n.
        limit: By joint: 0 off, +1 at the upper, -1 at the lower limit, n.
        tau: Torques at the joints, n, the last unused [N·m].
        dt: Step [s].
        rounds: How often wrong signs are looked for.
        window: Time in which errors decay, in steps.

    Returns:
        x, v, contact, limit one step later, and the energy lost where something hit
        [J].

    Source: WAW-7.4, WAW-7.5, WAW-12.5, WAW-12.10, WAW-15.4; WAW-12.8's rule of one
    release at a time is left for all wrong ones at once.
    """
    x, v, tau = rows_of(x), rows_of(v), list(tau)
    ground, stops = _Ground(model, list(contact)), _Stops(model, list(limit))
    r, L, size = links(model, x)
    tiny = ROUNDING * sum(model.weights) * dt
    a = accelerate(model, x, v, tau, modes_of(model), dt * window)
    free = moved(v, a, dt)
    ground.hit(moved(x, free, dt), free)
    stops.hit(moved(x, free, dt), free)
    new = _any(ground.new, stops.new)
    ground.remember()
    stops.remember()
    touches = _any(ground.on, stops.on)
    pairs = zip(r, free, free[1:], strict=False)
    e = [where(touches, along @ (w - u), 0.0) for along, u, w in pairs]
    rates = [*joint_rates_of(free, L), 0.0]
    for turn in range(rounds + 2):
        modes = _modes(model, ground, stops)
        jump = ground.jumps(free)
        jumps, impulse, couples = _jump(model, r, L, modes, jump, stops.turns(rates), e)
        v_next = moved(free, jumps, 1.0)
        if turn < rounds:
            ground.release(impulse, tiny)
            stops.release(couples, tiny)
        elif turn == rounds:
            ground.keep(v_next)
            stops.keep(v_next, L)
    share = 1.0 / (dt * window)
    back = [
        where(touches, d - l, 0.0) * share
        for d, l in zip(size, model.lengths, strict=True)
    ]
    home, excess = ground.returns(x), stops.excesses(r)
    jump = moved(jump, home, 1.0 / dt)
    turns = [t - d * share for t, d in zip(stops.turns(rates), excess, strict=True)]
    e = [a + b for a, b in zip(e, back, strict=True)]
    jumps, _, _ = _jump(model, r, L, modes, jump, turns, e)
    more = [u + j - w for u, j, w in zip(free, jumps, v_next, strict=True)]
    least = CREEP * share * sum(model.lengths)
    less = 1.0
    for u, w in zip(free, more, strict=True):
        most, found = sqrt(u @ u) + least, sqrt(w @ w)
        part = where(found > most, most / where(found > most, found, 1.0), 1.0)
        less = where(part < less, part, less)
    x_next = moved(moved(x, v_next, dt), more, dt * less)
    loss = where(new, lost_energy(model, free, v_next), 0.0)
    return x_next, v_next, Vector(ground.on), Vector(stops.on), loss


def _jump(model, r, L, modes, jump, turn, e):
    """Give changes of velocity, impulses of supports and of angles that are held."""
    modes = Modes(modes.kind, modes.s, jump, modes.active, turn)
    joints = pass_back(model, r, L, modes)
    none = [ZERO] * model.n
    jumps, F_d, couples, _ = pass_forward(model, r, L, modes, joints, none, e)
    return jumps, reactions(model, jumps, none, F_d), couples


class _Ground:
    """Which half-plane holds each joint, as numbers; joints that none stops are known.

    Attributes:
        on: By joint: 0 off, k held by half-plane k-1.
        new: By joint: 1 where it hit in this step.
    """

    def __init__(self, model, contact):
        self.model, self.new = model, [0.0] * model.n
        guided = [kind == GUIDED for kind in model.constraints.kind]
        self.planes = [
            [
                (k + 1.0, g)
                for k, g in enumerate(model.ground)
                if g.stops(i) and not fixed
            ]
            for i, fixed in enumerate(guided)
        ]
        self.on = [
            x if planes else 0.0 for x, planes in zip(contact, self.planes, strict=True)
        ]

    def normal(self, i):
        """Give the normal of what holds joint i."""
        z = ZERO
        for k, plane in self.planes[i]:
            z = where(equal(self.on[i], k), Vector(plane.z), z)
        return z

    def depth(self, i, x):
        """Give how far joint i is above what holds it; 0 where nothing does."""
        d = 0.0
        for k, plane in self.planes[i]:
            d = where(equal(self.on[i], k), _height(plane, x[i]), d)
        return d

    def kind(self, i, own):
        """Give the kind of joint i: its own, or what the ground makes of it."""
        kind = own
        for k, plane in self.planes[i]:
            slides = plane.mode == "slide" and own == FREE
            kind = where(equal(self.on[i], k), LINE if slides else GUIDED, kind)
        return kind

    def remember(self):
        """Note what is held now."""
        self.was = list(self.on), list(self.new)

    def keep(self, v):
        """Hold again what was let go but goes into the ground."""
        on = self.on
        self.on, self.new = (list(part) for part in self.was)
        for i, planes in enumerate(self.planes):
            if planes:
                gone = logical_and(equal(on[i], 0.0), self.normal(i) @ v[i] >= 0.0)
                self.on[i] = where(gone, 0.0, self.on[i])
                self.new[i] = where(gone, 0.0, self.new[i])

    def release(self, force, tiny):
        """Let go what would have to pull by more than round-off."""
        for i, planes in enumerate(self.planes):
            if planes:
                pulls = self.normal(i) @ force[i] < -tiny
                self.on[i] = where(pulls, 0.0, self.on[i])
                self.new[i] = where(pulls, 0.0, self.new[i])

    def hit(self, x, v):
        """Hold joints that are below the ground and go down, by the deepest plane."""
        for i, planes in enumerate(self.planes):
            low = where(self.depth(i, x) < 0.0, self.depth(i, x), 0.0)
            for k, plane in planes:
                height = _height(plane, x[i])
                down = logical_and(height < low, Vector(plane.z) @ v[i] < 0.0)
                down = logical_and(down, logical_not(equal(self.on[i], k)))
                self.on[i] = where(down, k, self.on[i])
                self.new[i] = where(down, 1.0, self.new[i])
                low = where(down, height, low)

    def jumps(self, v):
        """Give the changes of velocity that bring what is held to rest."""
        found = []
        for i, planes in enumerate(self.planes):
            held = logical_not(equal(self.on[i], 0.0)) if planes else False
            found.append(where(held, v[i] * -1.0, ZERO) if planes else ZERO)
        return found

    def returns(self, x):
        """Give the ways of what is held back to the edge."""
        return [
            self.normal(i) * -self.depth(i, x) if planes else ZERO
            for i, planes in enumerate(self.planes)
        ]


class _Stops:
    """Which limit holds each angle: 0, +1 upper, -1 lower."""

    def __init__(self, model, limit):
        self.model = model
        own = model.constraints.active
        self.limits = [
            [
                (sign, bound)
                for sign, bound in ((1.0, model.upper[i]), (-1.0, model.lower[i]))
                if abs(bound) != float("inf") and not own[i]
            ]
            for i in range(model.n)
        ]
        # An angle is beyond the limit that it is nearer to, by 90 degrees at most.
        bounds = zip(model.upper, model.lower, strict=True)
        self.reach = [_reach(upper - lower) for upper, lower in bounds]
        self.on = [
            x if limits else 0.0 for x, limits in zip(limit, self.limits, strict=True)
        ]
        self.new = [0.0] * model.n

    def beyond(self, i, sign, bound, r):
        """Give the sine of how far angle i is beyond a limit, and the cosine."""
        before = r[i - 1] if i else Vector((1.0, 0.0))
        co, si = cos(bound), sin(bound)
        edge = Vector(
            (co * before[0] - si * before[1], si * before[0] + co * before[1])
        )
        return (edge[0] * r[i][1] - edge[1] * r[i][0]) * sign, edge @ r[i]

    def excess(self, i, r):
        """Give how far angle i is beyond the limit that holds it, with its sign."""
        found = 0.0
        for sign, bound in self.limits[i]:
            here = self.beyond(i, sign, bound, r)[0] * sign
            found = where(equal(self.on[i], sign), here, found)
        return found

    def remember(self):
        """Note what is held now."""
        self.was = list(self.on), list(self.new)

    def keep(self, v, L):
        """Hold again what was let go but goes on beyond its limit."""
        on, rates = self.on, joint_rates_of(v, L)
        self.on, self.new = (list(part) for part in self.was)
        for i, limits in enumerate(self.limits):
            if limits:
                back = rates[i] * self.on[i] <= 0.0
                gone = logical_and(equal(on[i], 0.0), back)
                self.on[i] = where(gone, 0.0, self.on[i])
                self.new[i] = where(gone, 0.0, self.new[i])

    def release(self, couples, tiny):
        """Let go what would have to pull by more than round-off."""
        for i, limits in enumerate(self.limits):
            if limits:
                pulls = self.on[i] * couples[i] > tiny
                self.on[i] = where(pulls, 0.0, self.on[i])
                self.new[i] = where(pulls, 0.0, self.new[i])

    def hit(self, x, v):
        """Hold angles that are beyond a limit and go on."""
        r, L, _ = links(self.model, x)
        rates = joint_rates_of(v, L)
        for i, limits in enumerate(self.limits):
            off = equal(self.on[i], 0.0) if limits else False
            for sign, bound in limits:
                si, co = self.beyond(i, sign, bound, r)
                past = logical_and(logical_and(si > 0.0, co > self.reach[i]), off)
                past = logical_and(past, rates[i] * sign > 0.0)
                self.on[i] = where(past, sign, self.on[i])
                self.new[i] = where(past, 1.0, self.new[i])

    def turns(self, rates):
        """Give the jumps of the rates that bring angles that are held to rest."""
        found = []
        for i, limits in enumerate(self.limits):
            held = logical_not(equal(self.on[i], 0.0)) if limits else False
            found.append(where(held, -rates[i], 0.0) if limits else 0.0)
        return found

    def excesses(self, r):
        """Give how far angles are beyond the limits that hold them."""
        limits = enumerate(self.limits)
        return [self.excess(i, r) if some else 0.0 for i, some in limits]


def _reach(range_):
    """Give the cosine of how far beyond a limit an angle is looked at."""
    half = (TURN - range_) / 2
    return 0.0 if half >= TURN / 4 or range_ == float("inf") else cos(max(half, 0.0))


def joint_rates_of(v, L):
    """Give the rates of the joint angles, a list; L of the links.

    Source: WAW-2.1.
    """
    rates, before = [], 0.0
    for i, row in enumerate(L):
        rate = row @ (v[i + 1] - v[i])
        rates.append(rate - before)
        before = rate
    return rates


def _modes(model, ground, stops):
    """Give what joints may do by the ground and the limits that hold them."""
    own = modes_of(model)
    modes = Modes(
        [ground.kind(i, kind) for i, kind in enumerate(own.kind)],
        list(own.s), list(own.a_w), list(own.active), list(own.alpha_w),
    )  # fmt: skip
    for i, planes in enumerate(ground.planes):
        if planes:
            held = logical_not(equal(ground.on[i], 0.0))
            modes.s[i] = where(held, ground.normal(i), own.s[i])
        if stops.limits[i]:
            modes.active[i] = logical_not(equal(stops.on[i], 0.0))
    return modes


def _any(*parts):
    """Give whether there is something other than zero."""
    return sum(x * x for part in parts for x in part) > 0.0


def _height(plane, x):
    """Give how far a place is above a half-plane's edge."""
    return Vector(plane.z) @ (x - Vector(plane.z0))


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    return [
        TextSolver(
            "chain_fixed_step",
            CHAIN_EVENT_STEP,
            chain_fixed_step,
            options={"rounds": 1, "window": 5.0},
            by_joint=False,
        )
    ]
