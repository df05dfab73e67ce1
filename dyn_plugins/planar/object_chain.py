"""Accelerations of planar objects through the recursion of their chains."""

from dyn_core import OBJECT_DYNAMICS, TextSolver, Vector, hookimpl
from dyn_core.scalar import cos, sin
from dyn_plugins.planar._passes import (
    links,
    modes_of,
    pass_back,
    pass_forward,
    stretch,
    turned,
)
from dyn_plugins.planar.forces import outer_forces
from dyn_plugins.planar.recursion import joint_turns


def object_chain(model, q, qd, u, split):
    """Give the accelerations of a planar object by its planar chain.

        qdd = from_chain(alpha, a_0),  alpha and a_0 of chain_recursion

    Args:
        model: Planar object that has a chain.
        q: Coordinates, nq [rad | m].
        qd: Their rates, nq [rad/s | m/s].
        u: Efforts, nu [N·m | N | V].
        split: Whether rods with mass are two massless links with three point masses and
            a locked joint; else they are links with mass.

    Returns:
        qdd, nq [rad/s² | m/s²].

    Source: WAW-13.4.
    """
    chain = model.to_chain(split)
    x, v = points(chain, *model.chain_state(q, qd, split))
    tau, push = model.chain_efforts(u, qd, split)
    r, L, size = links(chain, x)
    modes = modes_of(chain)
    joints = pass_back(chain, r, L, modes)
    F = outer_forces(chain, x, v, tau)
    F[0] = F[0] + Vector(push)
    e = stretch(chain, x, v, r, size, None)
    a, _, _, turns = pass_forward(chain, r, L, modes, joints, F, e)
    return Vector(model.from_chain(joint_turns(turns), a[0], split))


def points(chain, x0, v0, theta, theta_dot):
    """Give places and velocities of the joints of a chain, lists of Vectors.

    Args:
        chain: Planar chain.
        x0, v0: Place and velocity of joint 0 [m], [m/s].
        theta, theta_dot: Of the joints but the last, n-1 [rad], [rad/s].

    Source: WAW-2.1.
    """
    x, v, angle, rate = [Vector(x0)], [Vector(v0)], 0.0, 0.0
    for length, turn, speed in zip(chain.lengths, theta, theta_dot, strict=False):
        angle, rate = angle + turn, rate + speed
        along = Vector((cos(angle), sin(angle))) * length
        x.append(x[-1] + along)
        v.append(v[-1] + turned(along) * rate)
    return x, v


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    return [
        TextSolver(
            "object_chain",
            OBJECT_DYNAMICS,
            object_chain,
            options={"split": False},
            by_joint=False,
        )
    ]
