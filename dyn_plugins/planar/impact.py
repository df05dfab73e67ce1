"""Plastic impacts of planar chains: joints stick, angles meet their limits."""

from dyn_core.authoring import TracedSolver, Vector, hookimpl
from dyn_core.planar.problems import CHAIN_IMPACT
from dyn_plugins.planar._passes import (
    ZERO,
    links,
    modes_of,
    pass_back,
    pass_forward,
    rows_of,
)
from dyn_plugins.planar.recursion import reactions


def chain_impact(model, x, v, jump, turn, kind, s, active):
    """Return velocities after an impact, from one solve with impulses for forces.

        v_next = v + a,  F = 0, e = 0,  a = jump of guided joints,  alpha = turn

    Other prescribed motion is zero in an instant: guided joints keep their velocity
    without a jump, joints on a line stay on it, active angles keep their rate without a
    turn.

    Inputs and outputs: those of CHAIN_IMPACT. The jump of a joint that hits and sticks
    is -v; the turn of an angle that meets its limit is minus its rate.

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
    """Return the energy lost in a plastic impact, by Carnot's theorem [J].

    v, v_next: Velocities of the joints before and after, lists of Vectors [m/s].

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


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    return [TracedSolver("chain_impact", CHAIN_IMPACT, chain_impact, by_joint=False)]
