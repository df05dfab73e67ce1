"""Time steps of planar chains: the source's quantum, semi-implicit Euler, RK4.

Also plastic impacts, in which joints stick and angles meet their limits, and a step of
fixed cost with impacts on the ground and at limits. A chain has n joints and n-1 links.
Angle i is that of link i from link i-1, angle 0 that of link 0. Constraints kind, s,
a_w, active and alpha_w of None are the chain's own. If neighbouring joints are at one
place, results are not finite; with Python floats this is a ZeroDivisionError.
"""

from math import inf
from typing import Any, NamedTuple

from dyn_core.authoring import Number, TracedSolver, Vector, hookimpl, sqrt, where
from dyn_core.planar import GUIDED, TAUT
from dyn_core.planar.problems import CHAIN_EVENT_STEP, CHAIN_IMPACT, CHAIN_STEP
from dyn_core.validation import Either, Nothing, Quantity, Whole
from dyn_plugins.planar._passes import (
    ZERO,
    links,
    modes_of,
    pass_back,
    pass_forward,
    rows_of,
    stretch,
)
from dyn_plugins.planar._schemes import moved, quantum, rk4, semi_implicit
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
from dyn_plugins.planar.forces import outer_forces
from dyn_plugins.planar.recursion import reactions

ROUNDING = 1e-9  # pull / weight below which it counts as round-off
CREEP = 1e-4  # v_back `window` dt / sum of lengths that is always allowed
STEPS = 5.0  # default window, in steps


def chain_impact(model, x, v, jump, turn, kind, s, active):
    """Return velocities after an impact, from one solve with impulses for forces.

        v_next = v + a,  F = 0, e = 0,  alpha = turn of active angles,
        a = jump of guided joints,  s . a = s . jump of joints on a line

    Other prescribed motion is zero in an instant: guided joints keep their velocity
    without a jump, joints on a line stay on it, active angles keep their rate without a
    turn. The jump of a joint that hits and sticks is -v; the turn of an angle that
    meets its limit is minus its rate. The results are v_next, the impulses of supports
    and of active angles, and the energy lost.

    Inputs and outputs: those of CHAIN_IMPACT; jump n x 2 [m/s], turn n [rad/s];
    constraints of None are the chain's own.

    Source: WAW-7.1, WAW-12.3.
    """
    x, v = rows_of(x), rows_of(v)
    modes = modes_of(model, kind, s, None, active, None)
    modes = modes._replace(a_w=rows_of(jump), alpha_w=list(turn))
    r, L, _ = links(model, x)
    joints = pass_back(model, r, L, modes)
    none = [ZERO] * model.n
    e = [0.0] * (model.n - 1)
    a, F_d, couples, _ = pass_forward(model, r, L, modes, joints, none, e)
    v_next = [u + change for u, change in zip(v, a, strict=True)]
    impulse = reactions(model, a, none, F_d)
    return v_next, impulse, Vector(couples), lost_energy(model, v, v_next)


def lost_energy(model, v, v_next):
    """Return the energy lost in a plastic impact, that of v_next - v (Carnot) [J].

    Source: WAW-7.1.
    """
    u = [a - b for a, b in zip(v, v_next, strict=True)]
    loss = 0.0
    for change, m in zip(u, model.masses, strict=True):
        loss = loss + change @ change * (0.5 * m)
    for i, (start, end, between) in enumerate(model.shares):
        pair = u[i] @ u[i] * start + u[i + 1] @ u[i + 1] * end
        loss = loss + (pair + u[i] @ u[i + 1] * (2.0 * between)) * 0.5
    return loss


def chain_fixed_step(model, x, v, contact, limit, tau, dt, rounds, window):
    """Return the state one step later, with impacts and limits, at fixed cost.

        v_free = v + dt a,  v_next = impact(v_free),  x_next = x + dt (v_next + v_back)

    The results are x_next, v_next, contact and limit of all joints, and the energy lost
    in impacts.

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
    within 90 degrees beyond a limit, if the other limit is not nearer. The energy lost
    in impacts is 0 in a step in which no contact and no limit begins. tau of the last
    joint has no effect.

    Inputs and outputs: those of CHAIN_EVENT_STEP; contact by joint: 0, or the number of
    its half-plane in the ground, from 1 on; limit by angle: 1 at the upper, -1 at the
    lower limit, else 0.

    Args:
        rounds: Number of releases of contacts that would pull.
        window: Time constant with which errors decay, in steps; above 0 (else
            UnsupportedError).

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
    """A chain before an impact: r, L as `links` returns them, and velocities v.

    e: Rates of shortening of the links, removed by the impact, n-1 [m/s].
    """

    model: Any
    r: list[Vector]
    L: list[Vector]
    v: list[Vector]
    e: list[Any]


def impact(before, touching):
    """Return velocities after an impact, impulses of supports and of angles at limits.

    n Vectors [m/s], n Vectors [N·s], and a list of n [N·m·s], zero for other angles.
    `touching` has the contacts and limits that are stopped.
    """
    model, _, L, v, e = before
    rates = [*joint_rates(v, L), 0.0]
    modes = modes_while(model, touching)
    jump = jumps_to_rest(model, touching.contact, v)
    turn = turns_to_rest(model, touching.limit, rates)
    change, impulse, couples = _respond(before, modes, jump, turn, e)
    return moved(v, change, 1.0), impulse, couples


def correction(before, x, shorten, touching, v_next, dt, share):
    """Return what to add to v_next to correct position errors, n Vectors [m/s].

    It is not yet scaled by least_share.

    Args:
        before: BeforeImpact of the impact.
        x: Positions of the joints, list of Vectors [m].
        shorten: Wanted rates of shortening of the links, n-1 [m/s].
        touching: Touching with the contacts and limits that were stopped.
        v_next: Velocities after the impact, list of Vectors [m/s].
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
    """Return the largest s up to 1 with |s v_back| <= |v| + creep for every joint."""
    slow = 1.0
    for u, w in zip(v, v_back, strict=True):
        largest, size = sqrt(u @ u) + creep, sqrt(w @ w)
        part = largest / where(size > largest, size, 1.0)
        part = where(size > largest, part, 1.0)
        slow = where(part < slow, part, slow)
    return slow


def _respond(before, modes, jump, turn, e):
    """Return changes of velocity [m/s], impulses of supports [N·s], at limits [N·m·s].

    jump: of guided joints [m/s]; turn: of active angular rates [rad/s]; e: rates of
    shortening of the links [m/s]. They replace a_w and alpha_w of modes, which has the
    active contacts.
    """
    model, r, L = before[:3]
    modes = modes._replace(a_w=jump, alpha_w=turn)
    joints = pass_back(model, r, L, modes)
    none = [ZERO] * model.n
    change, F_d, couples, _ = pass_forward(model, r, L, modes, joints, none, e)
    return change, reactions(model, change, none, F_d), couples


def chain_quantum(model, x, v, tau, dt, kind, s, a_w, active, alpha_w, window):
    """Return the state after one quantum of time with constant accelerations.

        x_next = x + dt v + dt² a / 2,   v_next = v + dt a

    Exact for constant accelerations; else of order one, and energy grows. tau of the
    last joint has no effect; chain_forces refuses it.

    Inputs and outputs: those of CHAIN_STEP.

    Args:
        window: Time constant with which errors of the link lengths decay [s], above 0
            (else UnsupportedError); None: 5 dt; infinite: they are not corrected.

    Source: WAW-3.1.
    """
    modes = modes_of(model, kind, s, a_w, active, alpha_w)
    return _stepped(quantum, model, x, v, tau, dt, modes, window)


def chain_semi_implicit(model, x, v, tau, dt, kind, s, a_w, active, alpha_w, window):
    """Return the state one step later: velocity first, then position with it.

        v_next = v + dt a,   x_next = x + dt v_next

    Of order one; energy drifts slowly. tau of the last joint has no effect.

    Inputs and outputs: those of CHAIN_STEP.

    Args:
        window: Time constant with which errors of the link lengths decay [s], above 0
            (else UnsupportedError); None: 5 dt; infinite: they are not corrected.

    Source: WAW-3.1; E. Hairer et al., Geometric Numerical Integration.
    """
    modes = modes_of(model, kind, s, a_w, active, alpha_w)
    return _stepped(semi_implicit, model, x, v, tau, dt, modes, window)


def chain_rk4(model, x, v, tau, dt, kind, s, a_w, active, alpha_w, window):
    """Return the state one step later by the classical Runge-Kutta scheme.

        dx/dt = v,  dv/dt = a(x, v)

    Of order four. tau of the last joint has no effect.

    Inputs and outputs: those of CHAIN_STEP.

    Args:
        window: Time constant with which errors of the link lengths decay [s], above 0
            (else UnsupportedError); None: 5 dt; infinite: they are not corrected and
            grow over many thousand steps.

    Source: WAW-3.1; E. Hairer et al., Solving Ordinary Differential Equations I.
    """
    modes = modes_of(model, kind, s, a_w, active, alpha_w)
    return _stepped(rk4, model, x, v, tau, dt, modes, window)


def accelerate(model, x, v, tau, modes, window):
    """Return the accelerations of the joints, a list of Vectors, under all forces.

    Joints of taut links between two guided joints are held; see while_taut.

    Args:
        model: Planar chain.
        x, v: Positions and velocities of the joints, lists of Vectors.
        tau: Torques at the n joints; the last is not read and may be missing [N·m].
        modes: JointModes.
        window: Time constant with which errors of the lengths decay [s]; None: they are
            not corrected.
    """
    r, L, size = links(model, x)
    modes = while_taut(model, modes, x, v, window)
    joints = pass_back(model, r, L, modes)
    e = stretch(model, v, r, size, window)
    F = outer_forces(model, x, v, tau)
    return pass_forward(model, r, L, modes, joints, F, e)[0]


def _stepped(scheme, model, x, v, tau, dt, modes, window):
    """Return x and v after one step of a scheme of _schemes.py, lists of Vectors.

    The last torque has no effect. window: Time constant with which errors of the
    lengths decay [s]; None: 5 dt; infinity: they are not corrected.

    Source: WAW-12.10, for the window.
    """
    tau = list(tau)
    if window is None:
        window = dt * STEPS
    elif not isinstance(window, Number) and window == inf:
        window = None
    return scheme(
        rows_of(x),
        rows_of(v),
        dt,
        lambda x, v: accelerate(model, x, v, tau, modes, window),
    )


def while_taut(model, modes, x, v, window):
    """Return the JointModes with the joints of taut links guided.

        a_k = a_first + share_k (a_last - a_first) - 2 (v_k - v_line,k) / window

    Links stretched straight between two guided joints cannot sag, but no equation of
    accelerations enforces that: without this rule they would oscillate strongly
    (planar.chain.modes.Stretch). They count as taut if the distance of the two joints
    is at least 1 - 1e-8 of the links' length. Only joints whose kind is known while
    tracing to be guided count as such ends. window: Time constant of the lateral
    velocity [s]; None: it is not damped.
    """
    kind, a_w = list(modes.kind), list(modes.a_w)
    guided = [
        i for i, k in enumerate(kind) if not isinstance(k, Number) and k == GUIDED
    ]
    for first, last in zip(guided, guided[1:], strict=False):
        way, reach = x[last] - x[first], sum(model.lengths[first:last])
        least = reach * (1.0 - TAUT)
        taut, share = way @ way >= least * least, 0.0
        for k in range(first + 1, last):
            share = share + model.lengths[k - 1] / reach
            a = a_w[first] + (a_w[last] - a_w[first]) * share
            if window is not None:
                line = v[first] + (v[last] - v[first]) * share
                a = a - (v[k] - line) * (2.0 / window)
            kind[k] = where(taut, GUIDED, kind[k])
            a_w[k] = where(taut, a, a_w[k])
    return modes._replace(kind=kind, a_w=a_w)


class _Window(Quantity):
    """A number above 0, or infinity."""

    valid = "a number above 0, or infinity"

    def convert(self, where, value):
        return inf if value == inf else super().convert(where, value)


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    return [
        TracedSolver("chain_impact", CHAIN_IMPACT, chain_impact, by_joint=False),
        TracedSolver(
            "chain_fixed_step",
            CHAIN_EVENT_STEP,
            chain_fixed_step,
            options={"rounds": 1, "window": 5.0},
            valid={"rounds": Whole(), "window": Quantity(0.0, above=True)},
            by_joint=False,
        ),
        *(
            TracedSolver(
                step.__name__,
                CHAIN_STEP,
                step,
                options={"window": None},
                valid={"window": Either((Nothing(), _Window(0.0, above=True)))},
                by_joint=False,
            )
            for step in (chain_quantum, chain_semi_implicit, chain_rk4)
        ),
    ]
