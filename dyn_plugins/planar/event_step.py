"""A step of fixed cost for planar chains on the ground and with limits of angles."""

from typing import Any, NamedTuple

from dyn_core.authoring import TracedSolver, Vector, hookimpl, sqrt, where
from dyn_core.planar.problems import CHAIN_EVENT_STEP
from dyn_plugins.planar._passes import (
    ZERO,
    links,
    modes_of,
    pass_back,
    pass_forward,
    rows_of,
)
from dyn_plugins.planar._schemes import moved
from dyn_plugins.planar._touching import (
    is_any,
    joint_rates,
    jumps_to_rest,
    modes_while,
    touching_at_start,
    turns_beyond,
    turns_to_rest,
    ways_to_ground,
    with_hits,
    without_leaving,
    without_pulls,
)
from dyn_plugins.planar.impact import lost_energy
from dyn_plugins.planar.recursion import reactions
from dyn_plugins.planar.steps import accelerate

ROUNDING = 1e-9  # pull / weight below which it counts as round-off
CREEP = 1e-4  # v_back `window` dt / sum of lengths that is always allowed


def chain_fixed_step(model, x, v, contact, limit, tau, dt, rounds, window):
    """Return the state one step later, with impacts and limits, at fixed cost.

        v_free = v + dt a,  v_next = impact(v_free),  x_next = x + dt (v_next + v_back)

    Three stages. Accelerations: without contacts. Impacts: joints and angles that
    touch, or would be below the ground or beyond a limit after the step, are stopped by
    impulses, without the rewind of the event-driven step; contacts that would pull are
    released, `rounds` times, unless they would then penetrate. Motion: joints land on
    the ground, and 1 / `window` of the errors of links and angles is corrected by
    velocities v_back that are not part of the new state.

    All velocities after an impact are a projection of the previous ones: energy does
    not grow, however near to singular a chain is. The correction of positions is scaled
    so that no joint moves by much more than its own velocity moves it.

    All branches are selects, so that a batch needs no branching. An angle is detected
    within 90 degrees beyond a limit, if the other limit is not nearer.

    Inputs and outputs: those of CHAIN_EVENT_STEP.

    Source: WAW-7.4, WAW-7.5, WAW-12.5, WAW-12.10, WAW-15.4; instead of one release at a
    time (WAW-12.8), all contacts that pull are released at once.
    """
    x, v, tau = rows_of(x), rows_of(v), list(tau)
    start = touching_at_start(model, list(contact), list(limit))
    r, L, size = links(model, x)
    smallest = ROUNDING * sum(model.weights) * dt
    a = accelerate(model, x, v, tau, modes_of(model), dt * window)
    v_free = moved(v, a, dt)
    hit = with_hits(model, start, moved(x, v_free, dt), v_free)
    is_new = is_any(hit.landed, hit.stopped)
    touches = is_any(hit.contact, hit.limit)
    e = [
        where(touches, along @ (w - u), 0.0)
        for along, u, w in zip(r, v_free, v_free[1:], strict=False)
    ]
    before = BeforeImpact(model, r, L, v_free, e)
    v_next, impulse, couples = impact(before, hit)
    touching = hit
    for _ in range(rounds):
        touching = without_pulls(model, touching, impulse, couples, smallest)
        v_next, impulse, couples = impact(before, touching)
    touching = without_leaving(model, hit, touching, v_next, L)
    v_next, _, _ = impact(before, touching)
    share = 1.0 / (dt * window)
    shorten = [
        where(touches, d - l, 0.0) * share
        for d, l in zip(size, model.lengths, strict=True)
    ]
    v_back = correction(before, x, shorten, touching, v_next, dt, share)
    slow = least_share(v_free, v_back, CREEP * share * sum(model.lengths))
    x_next = moved(moved(x, v_next, dt), v_back, dt * slow)
    loss = where(is_new, lost_energy(model, v_free, v_next), 0.0)
    return x_next, v_next, Vector(touching.contact), Vector(touching.limit), loss


class BeforeImpact(NamedTuple):
    """A chain before an impact.

    Attributes:
        model: Planar chain.
        r, L: Directions of the links, and their normals over their lengths, as `links`
            returns them.
        v: Velocities of the joints.
        e: Rates of shortening of the links, removed by the impact, n-1 [m/s].
    """

    model: Any
    r: list[Vector]
    L: list[Vector]
    v: list[Vector]
    e: list[Any]


def impact(before, touching):
    """Return velocities after an impact, impulses of supports and of angles at limits.

    Args:
        before: Chain and velocities before, a BeforeImpact.
        touching: Contacts and limits that are stopped.
    """
    model, _, L, v, e = before
    rates = [*joint_rates(v, L), 0.0]
    modes = modes_while(model, touching)
    jump = jumps_to_rest(model, touching.contact, v)
    turn = turns_to_rest(model, touching.limit, rates)
    change, impulse, couples = _respond(before, modes, jump, turn, e)
    return moved(v, change, 1.0), impulse, couples


def correction(before, x, shorten, touching, v_next, dt, share):
    """Return velocities that correct position errors, added to an impact's.

    Args:
        before: The chain before the impact.
        x: Positions of the joints.
        shorten: Wanted rates of shortening of the links, n-1 [m/s].
        touching: Contacts and limits that were stopped.
        v_next: Velocities after the impact.
        dt: Step, in which joints reach the ground's edge [s].
        share: Fraction of the angles' errors that is corrected per second [1/s].
    """
    model, r, L, v, e = before
    ways = ways_to_ground(model, touching.contact, x)
    beyond = turns_beyond(model, touching.limit, r)
    rates = [*joint_rates(v, L), 0.0]
    jump = moved(jumps_to_rest(model, touching.contact, v), ways, 1.0 / dt)
    turn = turns_to_rest(model, touching.limit, rates)
    turn = [t - angle * share for t, angle in zip(turn, beyond, strict=True)]
    e = [a + b for a, b in zip(e, shorten, strict=True)]
    change, _, _ = _respond(before, modes_while(model, touching), jump, turn, e)
    return [u + j - w for u, j, w in zip(v, change, v_next, strict=True)]


def least_share(v, v_back, creep):
    """Return the largest factor up to 1 for which no |v_back| exceeds |v| + creep."""
    slow = 1.0
    for u, w in zip(v, v_back, strict=True):
        largest, size = sqrt(u @ u) + creep, sqrt(w @ w)
        part = largest / where(size > largest, size, 1.0)
        part = where(size > largest, part, 1.0)
        slow = where(part < slow, part, slow)
    return slow


def _respond(before, modes, jump, turn, e):
    """Return changes of velocity, impulses of supports and of angles at limits.

    Args:
        before: The chain before the impact.
        modes: JointModes with the active contacts.
        jump: Velocity changes of guided joints [m/s].
        turn: Changes of active angular rates [rad/s].
        e: Rates of shortening of the links [m/s].
    """
    model, r, L = before[:3]
    modes = modes._replace(a_w=jump, alpha_w=turn)
    joints = pass_back(model, r, L, modes)
    none = [ZERO] * model.n
    change, F_d, couples, _ = pass_forward(model, r, L, modes, joints, none, e)
    return change, reactions(model, change, none, F_d), couples


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    return [
        TracedSolver(
            "chain_fixed_step",
            CHAIN_EVENT_STEP,
            chain_fixed_step,
            options={"rounds": 1, "window": 5.0},
            by_joint=False,
        )
    ]
