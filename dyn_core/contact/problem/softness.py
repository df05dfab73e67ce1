"""Compliance and bias of soft rows: ERP and CFM, MuJoCo's and Drake's models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dyn_core.errors import ModelError


def erp_and_cfm(h: float, k: float, d: float) -> tuple[float, float]:
    """Return ERP and the compliance of the implicit Euler step of spring and damper.

        ERP = h k / (h k + d),   R = 1 / (h (h k + d)),   bias = ERP gap / h

    Args:
        h: Step [s].
        k, d: Stiffness [N/m] and damping [N·s/m].

    Returns:
        ERP [1] and R [(m/s)/(N·s)].

    Raises:
        ModelError: h is not above zero, k or d is negative, or both are zero.

    Source: LCP-11.
    """
    if not (h > 0 and k >= 0 and d >= 0 and h * k + d > 0):
        raise ModelError(
            f"h={h}, k={k}, d={d}; valid: h > 0, k and d not negative, not both zero"
        )
    return h * k / (h * k + d), 1 / (h * (h * k + d))


def sap_rows(h: float, k: Any, tau: Any, gap: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return compliance and bias of normal rows that are springs with dissipation.

        R = 1 / (h k (h + tau)),   bias = gap / (h + tau)

    At rest a weight W sinks in by W / k, independent of h and tau.

    Args:
        h: Step [s].
        k: Stiffness [N/m], a number or an array; so are tau and gap.
        tau: Dissipation time [s].
        gap: Signed distance, negative for an overlap [m].

    Returns:
        R [(m/s)/(N·s)] and bias [m/s], in the shape that k, tau and gap broadcast to.

    Raises:
        ModelError: h or k is not above zero, or tau is negative.
        ValueError: k, tau and gap do not broadcast.

    Source: LCP-13 (b).
    """
    if not (h > 0 and np.all(np.asarray(k) > 0) and np.all(np.asarray(tau) >= 0)):
        raise ModelError(f"h={h}, k={k}, tau={tau}; valid: h > 0, k > 0, tau >= 0")
    k, tau, gap = np.broadcast_arrays(*(np.asarray(x, float) for x in (k, tau, gap)))
    return 1 / (h * k * (h + tau)), gap / (h + tau)


def impedance(solimp: Sequence[float], r: Any) -> Any:
    """Return MuJoCo's impedance d at a violation r, elementwise [1].

        x = min(1, |r| / width),   d = d0 + y(x) (d1 - d0)
        y = x^p / mid^(p-1)  up to mid,  1 - (1-x)^p / (1-mid)^(p-1)  above

    Args:
        solimp: d0, d1, width [m], mid, power.
        r: Violation [m].

    Raises:
        ModelError: d0, d1 or mid is not within (0, 1), width is not above zero, or
            power is below 1.
        ValueError: `solimp` has not five entries.

    Source: LCP-14.
    """
    d0, d1, width, mid, power = solimp
    if not (0 < d0 < 1 and 0 < d1 < 1 and width > 0 and 0 < mid < 1 and power >= 1):
        raise ModelError(
            f"solimp {tuple(solimp)}; valid: d0 and d1 and mid in (0, 1), width > 0,"
            " power >= 1",
            "solimp",
        )
    x = np.minimum(1.0, np.abs(r) / width)
    below = x**power / mid ** (power - 1)
    above = 1 - (1 - x) ** power / (1 - mid) ** (power - 1)
    return d0 + np.where(x <= mid, below, above) * (d1 - d0)


def soft_rows(
    solref: Sequence[float],
    solimp: Sequence[float],
    gap: Any,
    velocity: Any,
    response: Any,
    h: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Return compliance and bias of rows by MuJoCo's solref and solimp.

        a_ref = -b velocity - k gap,   b = 2 / (d1 t),   k = d / (d1² t² z²),
        R = (1 - d) / d response,   bias = -velocity - h a_ref

    gap, velocity and response are numbers or arrays that broadcast.

    Args:
        solref: Time constant t [s] and damping ratio z, both above zero.
        solimp: Parameters of `impedance`, which returns d at the gap.
        gap: Distance to the limit of the row, negative if it is violated [m].
        velocity: Velocity of the row before the step [m/s].
        response: Diagonal of G [(m/s)/(N·s)].
        h: Step [s].

    Returns:
        R [(m/s)/(N·s)], in the shape of gap and response, and bias [m/s], in that of
        gap and velocity, for a ConstraintProblem whose b is velocity + h a_0, with the
        acceleration a_0 of the rows without impulses.

    Raises:
        ModelError: t, z or h is not above zero, or solimp is out of range.
        ValueError: `solref` has not two entries, or `solimp` not five.

    Source: LCP-14.
    """
    t, z = solref
    if not (t > 0 and z > 0 and h > 0):
        raise ModelError(f"solref {tuple(solref)}, h={h}; valid: all above zero")
    d = np.asarray(impedance(solimp, gap))
    d_max = solimp[1]
    k = d / (d_max * t * z) ** 2
    a_ref = -2 / (d_max * t) * np.asarray(velocity) - k * np.asarray(gap)
    return compliance(d, response), -np.asarray(velocity) - h * a_ref


def compliance(impedance: Any, response: Any) -> np.ndarray:
    """Return R = (1 - d) / d response of an impedance d, elementwise [(m/s)/(N·s)].

    Args:
        impedance: d, within (0, 1).
        response: Diagonal of G.

    Source: LCP-14.
    """
    return (1 - np.asarray(impedance)) / impedance * np.asarray(response)
