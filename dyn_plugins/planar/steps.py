"""Steps in time of planar chains: the source's quantum, semi-implicit Euler, RK4."""

from dyn_core.authoring import TracedSolver, hookimpl
from dyn_core.planar.problems import CHAIN_STEP
from dyn_plugins._options import WINDOW
from dyn_plugins.planar._passes import (
    links,
    modes_of,
    pass_back,
    pass_forward,
    rows_of,
    stretch,
)
from dyn_plugins.planar._schemes import quantum, rk4, semi_implicit
from dyn_plugins.planar.forces import outer_forces


def chain_quantum(model, x, v, tau, dt, kind, s, a_w, active, alpha_w, window):
    """Return the state after one quantum of time with constant accelerations.

        x_next = x + dt v + dt² a / 2,   v_next = v + dt a

    Exact where accelerations are constant; else of order one, and links drift unless a
    window is given: the time in which errors of the link lengths decay [s].

    Inputs and outputs: those of CHAIN_STEP.

    Source: WAW-3.1.
    """
    modes = modes_of(model, kind, s, a_w, active, alpha_w)
    return _stepped(quantum, model, x, v, tau, dt, modes, window)


def chain_semi_implicit(model, x, v, tau, dt, kind, s, a_w, active, alpha_w, window):
    """Return the state one step later: velocity first, then place with it.

        v_next = v + dt a,   x_next = x + dt v_next

    Errors of the link lengths decay in the time window [s], or stay without one.

    Inputs and outputs: those of CHAIN_STEP.

    Source: WAW-3.1; E. Hairer et al., Geometric Numerical Integration.
    """
    modes = modes_of(model, kind, s, a_w, active, alpha_w)
    return _stepped(semi_implicit, model, x, v, tau, dt, modes, window)


def chain_rk4(model, x, v, tau, dt, kind, s, a_w, active, alpha_w, window):
    """Return the state one step later by the classical Runge-Kutta scheme.

        dx/dt = v,  dv/dt = a(x, v)

    Errors of the link lengths decay in the time window [s], or stay without one.

    Inputs and outputs: those of CHAIN_STEP.

    Source: WAW-3.1; E. Hairer et al., Solving Ordinary Differential Equations I.
    """
    modes = modes_of(model, kind, s, a_w, active, alpha_w)
    return _stepped(rk4, model, x, v, tau, dt, modes, window)


def accelerate(model, x, v, tau, modes, window):
    """Return accelerations of the joints, lists of Vectors, under all forces."""
    r, L, size = links(model, x)
    joints = pass_back(model, r, L, modes)
    e = stretch(model, x, v, r, size, window)
    F = outer_forces(model, x, v, tau)
    return pass_forward(model, r, L, modes, joints, F, e)[0]


def _stepped(scheme, model, x, v, tau, dt, modes, window):
    """Return the state one step of a scheme later."""
    tau = list(tau)
    return scheme(
        rows_of(x),
        rows_of(v),
        dt,
        lambda x, v: accelerate(model, x, v, tau, modes, window),
    )


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    return [
        TracedSolver(
            step.__name__,
            CHAIN_STEP,
            step,
            options={"window": None},
            valid=WINDOW,
            by_joint=False,
        )
        for step in (chain_quantum, chain_semi_implicit, chain_rk4)
    ]
