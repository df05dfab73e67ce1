"""Forces on the joints of planar chains: gravity, torques, resistance.

A chain has n joints and n-1 links. Angle i is that of link i from link i-1, angle 0
that of link 0. If neighbouring joints are at one place, results are not finite; with
Python floats this is a ZeroDivisionError.
"""

from dyn_core.authoring import TracedSolver, Vector, equal, hookimpl, require, sqrt
from dyn_core.errors import InfeasibleError
from dyn_core.planar.problems import CHAIN_FORCES
from dyn_plugins.planar._passes import links, rows_of


def chain_forces(model, x, v, tau, gravity, resistance):
    """Return the external forces on the joints of a planar chain.

        F_i = g m_i - k_v |v_i| v_i + couples of (tau_j - k_omega omega_j), j = i-1..i+1

    m_i is the mass of the joint with its shares of the links (`weights`), omega_j the
    rate of joint j's angle. A torque at a joint is three forces: L_{i-1} on the
    previous joint, -(L_{i-1} + L_i) on itself, L_i on the next. At joint 0 it is an
    external couple on the first link: the motor in a base; it changes the angular
    momentum of a free chain. The last joint has no angle: a nonzero torque there raises
    InfeasibleError when the Program runs.

    Inputs and outputs: those of CHAIN_FORCES; x, v and the result n x 2, tau n.

    Args:
        gravity: Whether gravity acts.
        resistance: Whether the rolling resistance k_omega and the drag k_v act.

    Source: WAW-4.1, WAW-4.2, WAW-4.3, WAW-4.4, WAW-4.5.
    """
    x, v, tau = rows_of(x), rows_of(v), list(tau)
    item = f"tau[{model.n - 1}]: the last joint has no angle and takes no torque"
    require(equal(tau[-1], 0.0), InfeasibleError, item)
    return outer_forces(model, x, v, tau, gravity, resistance)


def outer_forces(model, x, v, tau, gravity=True, resistance=True):
    """Return chain_forces, a list of n Vectors [N], without its check of tau's end."""
    r, L, _ = links(model, x)
    F = [Vector(model.gravity) * m * float(gravity) for m in model.weights]
    rate = 0.0
    for i in range(model.n - 1):
        torque, before = tau[i], rate
        rate = L[i] @ (v[i + 1] - v[i])
        if resistance:
            torque = torque - (rate - before) * model.k_omega[i]
        F[i] = F[i] - L[i] * torque
        F[i + 1] = F[i + 1] + L[i] * torque
        if i:
            F[i - 1] = F[i - 1] + L[i - 1] * torque
            F[i] = F[i] - L[i - 1] * torque
    if not resistance:
        return F
    return [f - u * (sqrt(u @ u) * k) for f, u, k in zip(F, v, model.k_v, strict=True)]


@hookimpl
def dyn_solvers():
    """Return a list of the solvers of this file, for the Registry."""
    options = {"gravity": True, "resistance": True}
    return [
        TracedSolver(
            "chain_forces", CHAIN_FORCES, chain_forces, options=options, by_joint=False
        )
    ]
