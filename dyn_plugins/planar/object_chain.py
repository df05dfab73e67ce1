"""Accelerations of planar objects through the recursion of their chains."""

from dyn_core.authoring import TracedSolver, Vector, cos, hookimpl, sin
from dyn_core.planar.problems import OBJECT_DYNAMICS
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
    """Return the accelerations of a planar object by its planar chain.

        qdd = from_chain(alpha, a_0),  alpha and a_0 of chain_recursion

    Inputs and outputs: those of OBJECT_DYNAMICS.

    Args:
        split: Whether each rod with mass is two massless links with three point masses
            and a locked joint; else it is a link with mass.

    Raises:
        ModelError: The object has no chain, such as one without rods; see
            PlanarObject.to_chain. By the engine native when the Program is built, by
            plain and graph when it is called.

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
    e = stretch(chain, v, r, size, None)
    a, _, _, turns = pass_forward(chain, r, L, modes, joints, F, e)
    return Vector(model.from_chain(joint_turns(turns), a[0], split))


def points(chain, x0, v0, theta, theta_dot):
    """Return positions and velocities of the joints of a chain, lists of Vectors.

    x0, v0 are those of joint 0; theta and theta_dot, n-1, are each from the link
    before, the first from the x axis.

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
    """Return a list of the solvers of this file, for the Registry."""
    return [
        TracedSolver(
            "object_chain",
            OBJECT_DYNAMICS,
            object_chain,
            options={"split": False},
            by_joint=False,
        )
    ]
