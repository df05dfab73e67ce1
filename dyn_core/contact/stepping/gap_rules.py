"""Gap rules: which contacts take part in a step, and the bias of their velocity.

They serve floats, traced algorithms and machine code alike:

    0 <= lambda_n  orthogonal to  u_n + bias >= 0
"""

from __future__ import annotations

from dyn_core.engines.machine_code import machine_code
from dyn_core.numbers.scalar import maximum, minimum, where

TOUCH = 1e-9  # gaps up to this count as closed [m]
AT_ZERO = 1e-7  # of a kink: gaps up to this lie between its two sides [m]
ROUNDING = 1e-12  # gaps up to this are none [m]
PUSH_OUT_SPEED = 0.1  # 1 cm in 0.1 s; a body that leaves so rises by 0.5 mm [m/s]


@machine_code
def bounce(approach: float, restitution: float, restitution_threshold: float) -> float:
    """Return the bias of Newton's restitution; 0 for a slow approach.

        bias = e u_n,  so that u_n after the step is at least -e times that before

    Args:
        approach: Normal velocity before the step, negative on approach [m/s].
        restitution: e.
        restitution_threshold: Speed below which nothing bounces [m/s].

    Source: LCP-10.
    """
    return where(approach < -restitution_threshold, approach * restitution, 0.0)


@machine_code
def push_out(gap: float, dt: float, erp: float, push_out_speed: float) -> float:
    """Return the bias that corrects an overlap: a part of it in a step, not too fast.

        bias = max(erp gap / dt, -push_out_speed)

    Args:
        gap: Gap, negative [m].
        dt: Step [s].
        erp: Part of an overlap that is corrected in a step.
        push_out_speed: Largest speed of the correction [m/s].

    Source: LCP-11.
    """
    return maximum(gap * (erp / dt), -push_out_speed)


@machine_code
def correction(
    before: float,
    gap: float,
    opening: float,
    dt: float,
    erp: float,
    push_out_speed: float,
) -> float:
    """Return the bias of a correction of positions that leaves velocities alone.

        0 <= p_n  orthogonal to  (displacement of the gap) / dt + bias >= 0

    What the velocity itself takes from an overlap needs no correction, and a contact
    that was open before the step waits until the velocity rule has stopped it: else it
    would be lifted while it falls.

    Args:
        before: Gap before the step [m].
        gap: Gap that the velocity after the step leads to [m].
        opening: Normal velocity after the step [m/s].
        dt: Step [s].
        erp, push_out_speed: See push_out.

    Source: LCP-11 (split impulse).
    """
    inside = push_out(gap, dt, erp, push_out_speed) + maximum(opening, 0.0)
    return where(gap > 0.0, gap / dt, where(before > TOUCH, 0.0, inside))


@machine_code
def stewart_trinkle(
    gap: float,
    approach: float,
    dt: float,
    restitution: float,
    restitution_threshold: float,
    erp: float,
    push_out_speed: float,
) -> tuple[bool, float]:
    """Return the rule that the gap after the step is not negative.

        bias = gap / dt,  for an overlap  min(push_out, bounce)

    Args:
        gap: Gap before the step; negative: overlap [m].
        approach: Normal velocity before the step [m/s].
        dt: Step [s].
        restitution, restitution_threshold: See bounce.
        erp, push_out_speed: See push_out.

    Returns:
        Whether the contact takes part (always), and its bias [m/s].

    Source: LCP-4, LCP-11.
    """
    overlap_bias = minimum(
        push_out(gap, dt, erp, push_out_speed),
        bounce(approach, restitution, restitution_threshold),
    )
    return True, where(gap > 0.0, gap / dt, overlap_bias)


@machine_code
def anitescu_potra(
    gap: float,
    approach: float,
    dt: float,
    restitution: float,
    restitution_threshold: float,
    erp: float,
    push_out_speed: float,
) -> tuple[bool, float]:
    """Return the velocity rule for contacts that touch before the step.

        gap <= 0:  bias = min(push_out, bounce)

    Source: LCP-4, LCP-11.
    """
    overlap_bias = minimum(
        push_out(gap, dt, erp, push_out_speed),
        bounce(approach, restitution, restitution_threshold),
    )
    return gap <= TOUCH, overlap_bias


@machine_code
def moreau_jean(
    gap: float,
    approach: float,
    dt: float,
    restitution: float,
    restitution_threshold: float,
    erp: float,
    push_out_speed: float,
) -> tuple[bool, float]:
    """Return the velocity rule for contacts that touch at the midpoint.

        gap(q + dt qd / 2) <= 0:  bias = min(push_out, bounce)

    The midpoint scheme corrects no overlap by itself: erp = 0 is Moreau's scheme.

    Args:
        gap: Gap at the midpoint of the step [m].
        approach, dt, restitution, restitution_threshold, erp, push_out_speed: As in
            stewart_trinkle.

    Source: LCP-4.
    """
    return anitescu_potra(
        gap, approach, dt, restitution, restitution_threshold, erp, push_out_speed
    )


RULES = {
    "stewart_trinkle": stewart_trinkle,
    "anitescu_potra": anitescu_potra,
    "moreau_jean": moreau_jean,
}
