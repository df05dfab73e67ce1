"""Plastic impacts of planar chains: joints stick, angles meet their limits."""

from dyn_core import CHAIN_IMPACT, TextSolver, Vector, hookimpl
from dyn_plugins.planar._passes import (
    ZERO,
    Modes,
    links,
    modes_of,
    pass_back,
    pass_forward,
    rows_of,
)
from dyn_plugins.planar.recursion import reactions


def chain_impact(model, x, v, jump, turn, kind, s, active):
    """Give velocities after an impact, from one solve with impulses for forces.

        v_next = v + a,  F = 0, e = 0,  a = jump of guided joints,  alpha = turn

    Whatever else is prescribed grows with the square of the time and is zero: guided
    joints keep their velocity unless a jump is given, joints on a line their line,
    active angles their rate unless a turn is given.

    Args:
        model: Planar chain.
        x, v: Places and velocities of the joints, (n, 2) [m], [m/s].
        jump: Change of velocity of guided joints, along s of those on a line; of a
            joint that hits and sticks it is -v. (n, 2) [m/s].
        turn: Change of the rate of active angles; of one that meets its limit it is
            minus the rate. n [rad/s].
        kind: 0 free, 1 line, 2 guided, n.
        s: Unit normals of the lines, (n, 2).
        active: Whether the angle's rate is given, n.

    Returns:
        v_next, (n, 2) [m/s]; impulses of supports (n, 2) [N·s] and of active joints, n
        [N·m·s]; lost energy, sum of m |v - v_next|² / 2 [J].

    Source: WAW-7.1, WAW-12.3.
    """
    x, v = rows_of(x), rows_of(v)
    modes = modes_of(model, kind, s, None, active, None)
    given = (rows_of(jump), list(turn))
    v_next, impulse, couples = struck(model, x, v, modes, *given)
    return v_next, impulse, Vector(couples), lost_energy(model, v, v_next)


def struck(model, x, v, modes, jump, turn, r=None, L=None):
    """Give v_next, impulses of supports, and of active joints."""
    if r is None:
        r, L, _ = links(model, x)
    modes = Modes(modes.kind, modes.s, jump, modes.active, turn)
    joints = pass_back(model, r, L, modes)
    none = [ZERO] * model.n
    a, F_d, tau, _ = pass_forward(
        model, r, L, modes, joints, none, [0.0] * (model.n - 1)
    )
    v_next = [u + change for u, change in zip(v, a, strict=True)]
    return v_next, reactions(model, a, none, F_d), tau


def lost_energy(model, v, v_next):
    """Give the energy that a plastic impact takes, by Carnot's theorem [J].

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
    return [TextSolver("chain_impact", CHAIN_IMPACT, chain_impact, by_joint=False)]
