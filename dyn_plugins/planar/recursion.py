"""Accelerations of planar chains in linear time: free, guided, line, active joints.

A chain has n joints and n-1 links. Angle i is that of link i from link i-1, angle 0
that of link 0. If neighbouring joints are at one place, results are not finite; with
Python floats this is a ZeroDivisionError.
"""

from dyn_core.authoring import TracedSolver, Vector, hookimpl
from dyn_core.planar.problems import CHAIN_ACCELERATIONS
from dyn_plugins._options import WINDOW
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
    """Return accelerations, link and support forces and joint torques of a chain.

        r . (a_i - a_{i+1}) = e,  alpha_i = alpha_w of active joints,  W, w by kind

    One algorithm for all kinds of joints, and for links with mass. An equation that
    cannot be met (a link between two guided joints, a rigid substructure) is dropped
    and reported. If two constraints contradict each other, the link gives way to the
    guided joint.

    Inputs and outputs: those of CHAIN_ACCELERATIONS, the outputs in its order:
    accelerations of joints, link forces (n x 2: that of the link before each joint on
    the joint, the first zero), torques of joints, angular accelerations of joints,
    support forces and dropped equations (n x 2: 1 where that of the link after the
    joint, of its angle, is dropped). Constraints of None are the chain's own.

    Args:
        window: Time constant with which errors of the link lengths decay [s], above 0
            (else UnsupportedError from `build`); None: they are not corrected.

    Source: WAW-11.7, WAW-2.2, WAW-5.2, WAW-6.1, WAW-6.4, WAW-10.1, WAW-11.1, WAW-11.3,
    WAW-11.5, WAW-11.6.
    """
    x, v, F = rows_of(x), rows_of(v), rows_of(F)
    modes = modes_of(model, kind, s, a_w, active, alpha_w)
    r, L, size = links(model, x)
    joints = pass_back(model, r, L, modes)
    e = stretch(model, v, r, size, window)
    a, F_d, tau, turns = pass_forward(model, r, L, modes, joints, F, e)
    reaction = reactions(model, a, F, F_d)
    links_lost = [*(J.dropped[0] for J in joints[:-1]), 0.0]
    angles_lost = [base_is_stuck(model, joints, modes)]
    angles_lost += [J.dropped[1] for J in joints[:-1]]
    dropped = list(zip(links_lost, angles_lost, strict=True))
    return a, F_d, tau, joint_turns(turns), reaction, dropped


def joint_turns(turns):
    """Return accelerations of the joint angles, n, from the links'; the last is 0.

    Source: WAW-2.1.
    """
    before = [0.0, *turns][: len(turns)]
    return Vector([*(b - a for a, b in zip(before, turns, strict=True)), 0.0])


def reactions(model, a, F, F_d):
    """Return the support force on each joint: inertia minus external and link forces.

    A list of n Vectors [N].

    Args:
        model: Planar chain.
        a: Accelerations of the joints [m/s²].
        F: External forces on the joints [N].
        F_d: Forces transmitted by links, from pass_forward [N].

    Source: WAW-5.4.
    """
    forces, shares = [], model.shares
    for i in range(model.n):
        force = a[i] * model.masses[i] - F[i] - F_d[i]
        if i:
            force = force + a[i] * shares[i - 1][1]
        if i + 1 < model.n:
            start, _, between = shares[i]
            force = force + a[i] * (start + between) + a[i + 1] * between + F_d[i + 1]
        forces.append(force)
    return forces


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    return [
        TracedSolver(
            "chain_recursion",
            CHAIN_ACCELERATIONS,
            chain_recursion,
            options={"window": None},
            valid=WINDOW,
            by_joint=False,
        )
    ]
