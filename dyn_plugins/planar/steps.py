"""Time steps of planar chains: the source's quantum, semi-implicit Euler, RK4."""

from math import inf

from dyn_core.authoring import Number, TracedSolver, hookimpl, where
from dyn_core.planar import GUIDED, TAUT
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

STEPS = 5.0  # default window, in steps


def chain_quantum(model, x, v, tau, dt, kind, s, a_w, active, alpha_w, window):
    """Return the state after one quantum of time with constant accelerations.

        x_next = x + dt v + dt² a / 2,   v_next = v + dt a

    Exact for constant accelerations; else of order one, and energy grows. Errors of the
    link lengths decay with the time constant `window` [s]: 5 dt by default; infinite:
    they are not corrected.

    Inputs and outputs: those of CHAIN_STEP.

    Source: WAW-3.1.
    """
    modes = modes_of(model, kind, s, a_w, active, alpha_w)
    return _stepped(quantum, model, x, v, tau, dt, modes, window)


def chain_semi_implicit(model, x, v, tau, dt, kind, s, a_w, active, alpha_w, window):
    """Return the state one step later: velocity first, then position with it.

        v_next = v + dt a,   x_next = x + dt v_next

    Of order one; energy drifts slowly. Errors of the link lengths decay with the time
    constant `window` [s]: 5 dt by default; infinite: they are not corrected.

    Inputs and outputs: those of CHAIN_STEP.

    Source: WAW-3.1; E. Hairer et al., Geometric Numerical Integration.
    """
    modes = modes_of(model, kind, s, a_w, active, alpha_w)
    return _stepped(semi_implicit, model, x, v, tau, dt, modes, window)


def chain_rk4(model, x, v, tau, dt, kind, s, a_w, active, alpha_w, window):
    """Return the state one step later by the classical Runge-Kutta scheme.

        dx/dt = v,  dv/dt = a(x, v)

    Of order four; energy is conserved. Errors of the link lengths decay with the time
    constant `window` [s]: 5 dt by default; infinite: they are not corrected and grow
    over many thousand steps.

    Inputs and outputs: those of CHAIN_STEP.

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
        tau: Torques [N·m].
        modes: JointModes.
        window: Time constant with which errors of the lengths decay [s], or None.
    """
    r, L, size = links(model, x)
    modes = while_taut(model, modes, x, v, window)
    joints = pass_back(model, r, L, modes)
    e = stretch(model, v, r, size, window)
    F = outer_forces(model, x, v, tau)
    return pass_forward(model, r, L, modes, joints, F, e)[0]


def _stepped(scheme, model, x, v, tau, dt, modes, window):
    """Return x and v after one step of a scheme.

    window: None is 5 dt; infinity leaves errors of the lengths uncorrected.

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
    (planar.chain.modes.Stretch).

    Args:
        model: Planar chain.
        modes: JointModes.
        x, v: Positions and velocities of the joints.
        window: Time constant of the lateral velocity [s]; None: it is not damped.
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


def _known_window(model, window):
    """Check `window`: a positive time, infinity or None; else raise ModelError."""
    if window is not None and window != inf:
        WINDOW["window"].read("window", window)


@hookimpl
def dyn_solvers():
    """Offer the solvers of this file."""
    return [
        TracedSolver(
            step.__name__,
            CHAIN_STEP,
            step,
            options={"window": None},
            valid={"window": _known_window},
            by_joint=False,
        )
        for step in (chain_quantum, chain_semi_implicit, chain_rk4)
    ]
