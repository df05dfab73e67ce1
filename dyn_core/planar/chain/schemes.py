"""Integration schemes of a chain between events, over a function of accelerations.

Arrays (n, 2) have a row for each of the chain's n joints.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dyn_core.errors import SettingError, warn

ROOT = 1e-15  # tolerance of a root's gap [m, rad]
Path = tuple[np.ndarray, np.ndarray]
Accelerate = Callable[[np.ndarray, np.ndarray, float], np.ndarray]


class Scheme(NamedTuple):
    """An integration scheme.

    Attributes:
        step: Function (x, v, dt, a, accelerate) -> x, v one step of dt [s] later; a are
            the accelerations at the start, accelerate(x, v, since) returns them
            `since` [s] after the start. x, v and a are (n, 2) [m], [m/s], [m/s²].
        least_window: The window must be longer than so many steps, else drift grows.
        rings: Whether errors oscillate if the window is shorter than 5 steps.
    """

    step: Callable[[np.ndarray, np.ndarray, float, np.ndarray, Accelerate], Path]
    least_window: float
    rings: bool


def quantum(
    x: np.ndarray, v: np.ndarray, dt: float, a: np.ndarray, accelerate: Accelerate
) -> Path:
    """Return the pair (x, v) after one step of constant accelerations a.

        x_next = x + dt v + dt² a / 2,   v_next = v + dt a

    Args:
        x, v: State at the start, (n, 2) [m], [m/s]; it is not changed.
        dt: Length of the step [s].
        a: Accelerations at the start, (n, 2) [m/s²].
        accelerate: Not used.

    Source: WAW-3.1.
    """
    return x + dt * v + 0.5 * dt * dt * a, v + dt * a


def semi_implicit(
    x: np.ndarray, v: np.ndarray, dt: float, a: np.ndarray, accelerate: Accelerate
) -> Path:
    """Return the pair (x, v) one step later: v is computed first, then x with it.

        v_next = v + dt a,   x_next = x + dt v_next

    Args:
        x, v: State at the start, (n, 2) [m], [m/s]; it is not changed.
        dt: Length of the step [s].
        a: Accelerations at the start, (n, 2) [m/s²].
        accelerate: Not used.

    Source: WAW-3.1; E. Hairer et al., Geometric Numerical Integration.
    """
    v_next = v + dt * a
    return x + dt * v_next, v_next


def rk4(
    x: np.ndarray, v: np.ndarray, dt: float, a: np.ndarray, accelerate: Accelerate
) -> Path:
    """Return the pair (x, v) one step later by the classical Runge-Kutta scheme.

        dx/dt = v,  dv/dt = a(x, v)

    Args:
        x, v: State at the start, (n, 2) [m], [m/s]; it is not changed.
        dt: Length of the step [s].
        a: Accelerations at the start, (n, 2) [m/s²].
        accelerate: Function (x, v, since) that returns the accelerations of a state at
            the time `since` after the start [s]; called three times. Its errors pass
            through.

    Source: WAW-3.1; E. Hairer et al., Solving Ordinary Differential Equations I.
    """
    half = 0.5 * dt
    v2 = v + half * a
    a2 = accelerate(x + half * v, v2, half)
    v3 = v + half * a2
    a3 = accelerate(x + half * v2, v3, half)
    v4 = v + dt * a3
    a4 = accelerate(x + dt * v3, v4, dt)
    sixth = dt / 6
    return (
        x + sixth * (v + 2 * (v2 + v3) + v4),
        v + sixth * (a + 2 * (a2 + a3) + a4),
    )


# Errors with a double pole at -1/window decay in quantum if dt < window, in
# semi_implicit if (dt/window)² + 4 dt/window < 4; WAW-12.10.
SCHEMES = {
    "quantum": Scheme(quantum, 1.0, True),
    "semi_implicit": Scheme(semi_implicit, (1 + math.sqrt(2)) / 2, True),
    "rk4": Scheme(rk4, 1.0, False),
}


def checked_window(window: float | None, dt: float, scheme: str) -> float:
    """Return the time constant with which errors of constraints decay [s].

    `window` None is 5 dt, infinite: errors are not corrected. A window so short that
    errors would grow is refused; one below 5 dt gives a DynWarning where errors
    oscillate.

    Source: WAW-12.10.
    """
    if window is None:
        return 5 * dt
    least, rings = SCHEMES[scheme].least_window, SCHEMES[scheme].rings
    if not window > least * dt:
        steps = "dt" if least == 1.0 else f"{least:.4g} dt"
        raise SettingError(
            f"window must be > {steps} = {least * dt:.6g} (5 dt is good), got {window}:"
            " errors grow",
            "window",
        )
    if rings and window < 5 * dt:
        warn(f"window = {window} is below 5 dt = {5 * dt}: errors will ring")
    return float(window)


def first_root(gap: Callable[[float], float], end: float) -> float:
    """Return a root of a function that is >= 0 at 0 and < 0 at `end` > 0.

    Regula falsi (Illinois). The function is <= 0 at the result, and not below -1e-15
    (ROOT) unless floats are too coarse.

    Source: M. Dowell and P. Jarratt, A modified regula falsi method, BIT 1971.
    """
    low, high, above, below = 0.0, end, gap(0.0), gap(end)
    beyond, side = below, 0
    while beyond < -ROOT:
        middle = low + (high - low) * above / (above - below)
        if not low < middle < high:
            middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        value = gap(middle)
        if value > 0:
            low, above, below = middle, value, below * (0.5 if side > 0 else 1.0)
        else:
            high, below, above = middle, value, above * (0.5 if side < 0 else 1.0)
            beyond = value
        side = 1 if value > 0 else -1
    return high
