"""Steps in time of planar chains: the source's quantum, semi-implicit Euler, RK4."""

from dyn_core import CHAIN_STEP, TextSolver, hookimpl
from dyn_plugins.planar._passes import (
    links,
    modes_of,
    pass_back,
    pass_forward,
    rows_of,
    stretch,
)
from dyn_plugins.planar.forces import outer_forces


def accelerate(model, x, v, tau, modes, window):
    """Give accelerations of the joints, lists of Vectors, under all forces."""
    r, L, size = links(model, x)
    joints = pass_back(model, r, L, modes)
    e = stretch(model, x, v, r, size, window)
    F = outer_forces(model, x, v, tau)
    return pass_forward(model, r, L, modes, joints, F, e)[0]


def moved(x, v, dt):
    """Give x + dt v, lists of Vectors."""
    return [a + b * dt for a, b in zip(x, v, strict=True)]


def chain_quantum(model, x, v, tau, dt, kind, s, a_w, active, alpha_w, window):
    """Give the state after one quantum of time with constant accelerations.

        x_next = x + dt v + dt² a / 2,   v_next = v + dt a

    Exact where accelerations are constant; else of order one, and links drift unless a
    window is given.

    Args:
        model: Planar chain.
        x, v: Places and velocities of the joints, (n, 2) [m], [m/s].
        tau: Torques at the joints, n, the last unused [N·m].
        dt: Quantum [s].
        kind, s, a_w, active, alpha_w: What the joints do (CHAIN_ACCELERATIONS).
        window: Time in which errors of the link lengths decay [s], or None.

    Returns:
        x_next, v_next.

    Source: WAW-3.1.
    """
    x, v, tau = rows_of(x), rows_of(v), list(tau)
    modes = modes_of(model, kind, s, a_w, active, alpha_w)
    a = accelerate(model, x, v, tau, modes, window)
    return moved(moved(x, v, dt), a, dt * dt * 0.5), moved(v, a, dt)


def chain_semi_implicit(model, x, v, tau, dt, kind, s, a_w, active, alpha_w, window):
    """Give the state one step later: velocity first, then place with it.

        v_next = v + dt a,   x_next = x + dt v_next

    Args:
        model: Planar chain.
        x, v: Places and velocities of the joints, (n, 2) [m], [m/s].
        tau: Torques at the joints, n, the last unused [N·m].
        dt: Step [s].
        kind, s, a_w, active, alpha_w: What the joints do (CHAIN_ACCELERATIONS).
        window: Time in which errors of the link lengths decay [s], or None.

    Returns:
        x_next, v_next.

    Source: WAW-3.1; E. Hairer et al., Geometric Numerical Integration.
    """
    x, v, tau = rows_of(x), rows_of(v), list(tau)
    modes = modes_of(model, kind, s, a_w, active, alpha_w)
    v_next = moved(v, accelerate(model, x, v, tau, modes, window), dt)
    return moved(x, v_next, dt), v_next


def chain_rk4(model, x, v, tau, dt, kind, s, a_w, active, alpha_w, window):
    """Give the state one step later by the classical Runge-Kutta scheme.

        dx/dt = v,  dv/dt = a(x, v)

    Args:
        model: Planar chain.
        x, v: Places and velocities of the joints, (n, 2) [m], [m/s].
        tau: Torques at the joints, n, the last unused [N·m].
        dt: Step [s].
        kind, s, a_w, active, alpha_w: What the joints do (CHAIN_ACCELERATIONS).
        window: Time in which errors of the link lengths decay [s], or None.

    Returns:
        x_next, v_next.

    Source: WAW-3.1; E. Hairer et al., Solving Ordinary Differential Equations I.
    """
    x, v, tau = rows_of(x), rows_of(v), list(tau)
    modes = modes_of(model, kind, s, a_w, active, alpha_w)
    speeds, rates = [v], [accelerate(model, x, v, tau, modes, window)]
    for part in (0.5, 0.5, 1.0):
        at, speed = moved(x, speeds[-1], dt * part), moved(v, rates[-1], dt * part)
        speeds.append(speed)
        rates.append(accelerate(model, at, speed, tau, modes, window))
    for part, dx, dv in zip((1, 2, 2, 1), speeds, rates, strict=True):
        x, v = moved(x, dx, dt * (part / 6)), moved(v, dv, dt * (part / 6))
    return x, v


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    texts = (chain_quantum, chain_semi_implicit, chain_rk4)
    return [
        TextSolver(
            text.__name__, CHAIN_STEP, text, options={"window": None}, by_joint=False
        )
        for text in texts
    ]
