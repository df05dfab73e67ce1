"""Contacts at the solution of a step: modes, and derivatives of their rows.

Not a solver: the derivatives of steps share it. Coordinates are the base's axes about
the origin of a floating base, or of the base; h is the motion (w; v) of a body per
displacement, s of a column of its joints, V its motion after the step, F the impulse of
a contact.

A ball of radius r about the centre c touches at p, midway between the surfaces; c moves
with the body, the axes a (normal n, tangents) are constant:

    gap = n . c - n . p_0 - r,   p = c - n (r + gap / 2)
    dgap = n . dc,   dc = v + w x c + C w,   dp = P dc,   P = 1 - n n.T / 2

with C for the rim of a cylinder, along which its deepest point moves, else zero. A row
f = (p x a; a) has the velocity f . V, whose change at the same u is

    f . Psi + g . s,   g = V x* f + (c x y + C.T y; y),   y = P (a x V.ang)

for a column s with its rate Psi, seen from the moving body (see id_derivatives). The
impulse changes by (dp x F; 0); an impulse fixed to its body would change by
h x* (f lambda). The term J.T D J therefore corrects inverse dynamics with impulses
fixed to bodies:

    D h = h x* (f lambda) - (dp x F; 0)
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from dyn_core.authoring import (
    Force,
    Matrix,
    Motion,
    MotionSubspace,
    Transform,
    Vector,
    cross,
    cross3,
    has_slope,
    logical_and,
    logical_not,
    logical_or,
    slope_of,
    sqrt,
    total,
    where,
    with_slopes,
)
from dyn_core.contact.collision.halfspaces import candidate_points
from dyn_plugins.contact_steps.contact_step import pairs
from dyn_plugins.derivatives.first_derivatives import subspace_rates

BOUNDARY = 1e-6  # relative distance of impulses and velocities to a change of mode
IMMOVABLE = 1e-20  # responses up to this are rounding errors [(m/s)/(N·s)]
SEPARATE, STICK, SLIP = 0.0, 1.0, 2.0


class Placed(NamedTuple):
    """Bodies in the base's axes about one origin; entry 0 is unused.

    X transforms these axes to each body; S is its joint's motion subspace in them.
    """

    X: list[Any]
    S: list[Any]


def placed_bodies(model, X, S):
    """Return the Placed about the origin of a floating base, or else of the base.

    X are transforms from the parents, S subspaces in body coordinates.
    """
    placed, origin = [None], Vector.zeros(3)
    for i in model.bodies:
        p = model.parent[i]
        if p:
            placed.append(X[i] @ placed[p])
        elif i == 1 and model.joint[i].kind == "floating":
            origin = X[i].r
            placed.append(Transform(X[i].E, Vector.zeros(3)))
        else:
            placed.append(Transform(X[i].E, X[i].r - origin))
    moved = [_from_body(placed[i], S[i]) for i in model.bodies]
    return Placed(placed, [None, *moved])


def _from_body(X, subspace):
    """Return a body's motion subspace in the coordinates from which X leads to it."""
    up = X.inverse
    return MotionSubspace(up @ column for column in subspace)


def moving_rates(model, placed, X, S, q, v, u):
    """Return the rates Psi of all motion subspaces, by body, coordinates of `placed`.

    They are the changes of velocities with each joint's position, seen from the bodies
    that the joint moves. X, S, q and the rates u are by body; v is the motion of each
    body at u. S and v are in body coordinates.
    """
    rates, still = [None], Motion.zero()
    for i in model.bodies:
        joint, v_p = model.joint[i], X[i] @ v[model.parent[i]]
        dS = joint.S_slopes(q[i]) if joint.series is None else ()
        motion = q[i], u[i], Vector.zeros(joint.nv)
        Psi = subspace_rates(joint, S[i], dS, v_p, still, motion)[0]
        rates.append(_from_body(placed.X[i], Psi))
    return rates


@dataclass(frozen=True)
class ActiveContact:
    """A contact at the solution of a step.

    Attributes:
        f: Unit forces of the rows n, s, e: normal, direction of slip, and the tangent
            across the slip.
        g: Vector g of each row; see the module.
        load: D of the contact, a function from a Motion to a Force.
        by_gap: Derivatives by a change of the gap (a moved half-space): velocities of
            the rows, and the wrench.
        before: Motion of the body before the step, and g of n at this motion.
    """

    body: int
    f: list
    g: list
    load: Any
    by_gap: Any
    mode: Any
    mu: float
    impulse: list
    before: Any


class Mode(NamedTuple):
    """Mode of a contact at the solution.

    Attributes:
        kind: SEPARATE, STICK or SLIP.
        pressed, sticks, slips: 1.0 or 0.0; slips is 1.0 only if the slip has a
            direction, else it is 0.0 also for kind SLIP.
        s: Direction of slip in the two tangents; the first tangent if it sticks.
        mu: Friction coefficient if it slips, else 0.
        drag: Tangential impulse across the slip per velocity if it slips, else 0 [kg].
        at_border: Condition: it is at the boundary of two modes, or it presses although
            no joint can move it.
        at_cone: Condition: its impulse is on the cone and it does not slip. This is a
            boundary unless other impulses have the same effect.
    """

    kind: Any
    pressed: Any
    sticks: Any
    slips: Any
    s: tuple[Any, Any]
    mu: Any
    drag: Any
    at_border: Any
    at_cone: Any


def mode_of(mu, sigma, bias, impulse, response, tiny):
    """Return the Mode of a contact; its rows are the normal and two tangents.

    It separates unless an impulse presses it; a pressed contact slips if its friction
    is at the cone and, with friction, its tangents move; else it sticks. `mu` is a
    Python number; `sigma` are velocities after the step [m/s], `response` is the normal
    row's velocity per impulse; `tiny` [m/s] is the largest velocity that counts as
    zero, also for the normal impulse times the response.

    Source: LCP-22.
    """
    normal, slide = impulse[0], sqrt(sigma[1] * sigma[1] + sigma[2] * sigma[2])
    pressed = normal * response > tiny
    opening, moving = sigma[0] + bias > tiny, slide > tiny
    friction = sqrt(impulse[1] * impulse[1] + impulse[2] * impulse[2])
    at_cone = friction >= mu * (1.0 - BOUNDARY) * normal
    slips, waiting = logical_and(pressed, at_cone), False
    at_border = logical_and(logical_not(pressed), logical_not(opening))
    at_border = logical_or(at_border, logical_and(pressed, response <= IMMOVABLE))
    if mu > 0.0:
        slips = logical_and(slips, moving)
        waiting = logical_and(pressed, logical_and(at_cone, logical_not(moving)))
        creeping = logical_and(moving, logical_not(at_cone))
        at_border = logical_or(at_border, logical_and(pressed, creeping))
    directed = logical_and(slips, moving)
    over = where(moving, 1.0 / where(moving, slide, 1.0), 0.0)
    s = where(directed, sigma[1] * over, 1.0), where(directed, sigma[2] * over, 0.0)
    sticks = logical_and(pressed, logical_not(slips))
    return Mode(
        where(slips, SLIP, where(pressed, STICK, SEPARATE)),
        where(pressed, 1.0, 0.0),
        where(sticks, 1.0, 0.0),
        where(directed, 1.0, 0.0),
        s,
        where(slips, mu, 0.0),
        where(slips, normal * over * mu, 0.0),
        at_border,
        waiting,
    )


def active_contacts(model, solved, placed, V, dt, world, links):
    """Return a list of the ActiveContacts of a step, in the order of solved.touching.

    Contacts that take no part in the step have zero rows. All points of `solved` have
    rows (deepest=False). V: By body, motion after the step, coordinates of `placed`.
    """
    impulses, turns = solved.outputs[0], _rolling(model, solved, world, links)
    speed = dt * 9.81
    for contact, (before, _) in zip(solved.touching, solved.motions, strict=True):
        for f in contact.forces:
            speed = _larger(speed, f @ before)
    result = []
    for k, contact in enumerate(solved.touching):
        i, taking_part = contact.body, solved.active[k]
        impulse = Vector(impulses[3 * k : 3 * k + 3])
        X, axes = placed.X[i], contact.axes
        c = X.r + X.E.T @ contact.centre
        p = c - axes[0] * (contact.radius + contact.gap * 0.5)
        C = None if turns[k] is None else X.E.T @ turns[k] @ X.E
        mask = 1.0 if taking_part is True else where(taking_part, 1.0, 0.0)
        f = [Force(cross3(p, a), a) * mask for a in axes]
        sigma, response = [x @ V[i] for x in f], solved.G[3 * k, 3 * k]
        mode = mode_of(
            contact.mu, sigma, solved.bias[k], impulse, response, speed * BOUNDARY
        )
        place = _ContactPlace(c, C, axes[0], mask)
        g = [place.turned(V[i], x, a) for x, a in zip(f, axes, strict=True)]
        before = X.inverse @ solved.motions[k][0]
        away = axes[0] * -0.5
        by_gap = [cross3(away, a) @ V[i].ang * mask for a in axes]
        push = total(a * x for a, x in zip(axes, impulse, strict=True))
        wrench = total(x * y for x, y in zip(f, impulse, strict=True))
        load = _ImpulseLoad(place, push, wrench)
        moved = Force(cross3(away, push), Vector.zeros(3)) * mask
        s = mode.s
        result.append(
            ActiveContact(
                i,
                _along_slip(f, s),
                _along_slip(g, s),
                load,
                (_along_slip(by_gap, s), moved),
                mode,
                contact.mu,
                _along_slip(impulse, s),
                (before, place.turned(before, f[0], axes[0])),
            )
        )
    return result


def _larger(a, x):
    """Return the maximum of a and |x|."""
    a = where(x > a, x, a)
    return where(-x > a, -x, a)


def _along_slip(rows, s):
    """Return rows n, t1, t2 turned to n, slip s1 t1 + s2 t2, across s1 t2 - s2 t1."""
    n, a, b = rows
    return [n, a * s[0] + b * s[1], b * s[0] - a * s[1]]


class _ContactPlace(NamedTuple):
    """A contact's centre c, C (None: zero), normal n; mask: 1.0 if it takes part."""

    c: Vector
    C: Any
    n: Vector
    mask: Any

    def shift(self, h):
        """Return the displacement of the contact's point as its body moves by h, small.

        The point lies midway between the surfaces; `mask` is not applied.
        """
        dc = h.lin + cross3(h.ang, self.c)
        if self.C is not None:
            dc = dc + self.C @ h.ang
        return dc - self.n * (self.n @ dc * 0.5)

    def turned(self, V, f, axis):
        """Return g, a Force: the row's velocity f . V changes by g . s.

            g = V x* f + (c x y + C.T y; y),   y = P (axis x V.ang)

        s displaces the body, see the module. A contact with mask 0 has y = 0; `mask` is
        not applied to f. V is in the base's axes.
        """
        y = cross3(axis, V.ang)
        y = (y - self.n * (self.n @ y * 0.5)) * self.mask
        moment = cross3(self.c, y)
        if self.C is not None:
            moment = moment + self.C.T @ y
        return cross(V, f) + Force(moment, y)


class _ImpulseLoad(NamedTuple):
    """Function D of a contact, called with a Motion.

    push: impulse, base axes [N·s]; wrench: its wrench about the origin [N·m·s; N·s].
    """

    place: _ContactPlace
    push: Vector
    wrench: Force

    def __call__(self, h):
        """Return D h of a Motion h, a Force."""
        moved = cross3(self.place.shift(h), self.push) * self.place.mask
        return cross(h, self.wrench) - Force(moved, Vector.zeros(3))


def _rolling(model, solved, world, links):
    """Return for each of solved.touching the slope of its point by a body rotation.

    It is a 3 x 3 Matrix in body coordinates for points that move along the rim of a
    cylinder; None for points fixed to the body. All points must have rows in `solved`.
    """
    turns, normals = [], iter(contact.forces[0].lin for contact in solved.touching)
    for half, placed in pairs(model, world, links):
        count = len(candidate_points(placed, Vector(half.normal)))
        n = [next(normals) for _ in range(count)][0]
        columns = []
        for e in Matrix.identity(3).rows:
            turned = with_slopes(n, cross3(n, Vector(e)))
            columns.append([x for x, _ in candidate_points(placed, turned)])
        for points in zip(*columns, strict=True):
            rolls = any(has_slope(x) for x in points)
            turns.append(Matrix(slope_of(x) for x in points).T if rolls else None)
    return turns


def units():
    """Return a list of the six unit Motions, three angular, then three linear."""
    return [Motion.of(row) for row in Matrix.identity(6).rows]
