"""Accelerations of planar chains in linear time: free, guided, line, active joints."""

from dyn_core import CHAIN_ACCELERATIONS, TextSolver, Vector, hookimpl
from dyn_plugins.planar._passes import (
    base_is_stuck,
    links,
    modes_of,
    pass_back,
    pass_forward,
    rows_of,
    stretch,
)


def chain_recursion(model, x, v, F, kind, s, a_w, active, alpha_w, window):
    """Give the accelerations of a planar chain, and what they take.

        r . (a_i - a_{i+1}) = e,  alpha_i = alpha_w of active joints,  W, w by kind

    One text for all kinds of joints, and for links with mass. An equation that cannot
    be met (a link between two guided joints, a rigid part) is given up and reported.
    Where two constraints contradict each other, links give way to guided joints.

    Args:
        model: Planar chain.
        x, v: Places and velocities of the joints, (n, 2) [m], [m/s].
        F: Forces on the joints from outside, (n, 2) [N].
        kind: 0 free, 1 line, 2 guided, n.
        s: Unit normals of the lines, (n, 2).
        a_w: Acceleration of guided joints; along s of those on a line, (n, 2) [m/s²].
        active: Whether the angle's acceleration is given, n.
        alpha_w: These accelerations, n [rad/s²].
        window: Time in which errors of the link lengths decay [s], or None.

    Returns:
        Accelerations a (n, 2) [m/s²]; force F_d that link i-1 exerts on joint i (n, 2)
        [N]; torques of active joints tau_w, n [N·m]; joint accelerations alpha, n
        [rad/s²], the first absolute, the last 0; forces of supports (n, 2) [N]; and by
        joint whether the length of the link after it, and its angle, were given up
        (n, 2).

    Source: WAW-11.7, WAW-2.2, WAW-5.2, WAW-6.1, WAW-6.4, WAW-10.1, WAW-11.1, WAW-11.3,
    WAW-11.5, WAW-11.6.
    """
    x, v, F = rows_of(x), rows_of(v), rows_of(F)
    modes = modes_of(model, kind, s, a_w, active, alpha_w)
    r, L, size = links(model, x)
    joints = pass_back(model, r, L, modes)
    e = stretch(model, x, v, r, size, window)
    a, F_d, tau, turns = pass_forward(model, r, L, modes, joints, F, e)
    reaction = reactions(model, a, F, F_d)
    links_lost = [*(J.dropped[0] for J in joints[:-1]), 0.0]
    angles_lost = [base_is_stuck(model, joints, modes)]
    angles_lost += [J.dropped[1] for J in joints[:-1]]
    dropped = list(zip(links_lost, angles_lost, strict=True))
    return a, F_d, tau, joint_turns(turns), reaction, dropped


def joint_turns(turns):
    """Give accelerations of joint angles from those of links; the last is 0.

    Source: WAW-2.1.
    """
    before = [0.0, *turns][: len(turns)]
    return Vector([*(b - a for a, b in zip(before, turns, strict=True)), 0.0])


def reactions(model, a, F, F_d):
    """Give what supports exert on the joints: mass times acceleration less the rest.

    Source: WAW-5.4.
    """
    found, shares = [], model.shares
    for i in range(model.n):
        force = a[i] * model.masses[i] - F[i] - F_d[i]
        if i:
            force = force + a[i] * shares[i - 1][1]
        if i + 1 < model.n:
            start, _, between = shares[i]
            force = force + a[i] * (start + between) + a[i + 1] * between + F_d[i + 1]
        found.append(force)
    return found


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    return [
        TextSolver(
            "chain_recursion",
            CHAIN_ACCELERATIONS,
            chain_recursion,
            options={"window": None},
            by_joint=False,
        )
    ]
