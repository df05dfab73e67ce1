"""Gap rules: which contacts take part in a step, and the bias of their velocity.

They serve floats, traced algorithms and machine code alike:

    0 <= lambda_n  orthogonal to  u_n + bias >= 0
"""

from __future__ import annotations

from dyn_core.engines.machine_code import machine_code
from dyn_core.numbers.scalar import maximum, minimum, where

TOUCH = 1e-9  # gaps up to this count as closed [m]
AT_ZERO = 1e-7  # gaps up to this lie between the two sides of a kink [m]
ROUNDING = 1e-12  # gaps up to this are zero but for rounding errors [m]
# 1 cm in 0.1 s; a body that leaves the ground at this speed rises by 0.5 mm [m/s].
PUSH_OUT_SPEED = 0.1


@machine_code
def bounce(
    gap: float, approach: float, restitution: float, restitution_threshold: float
) -> float:
    """Return the bias of Newton's restitution, 0 or less [m/s].

        bias = e u_n,  so that u_n after the step is at least -e times u_n before it

    It is 0 for a gap above TOUCH (1e-9 m), or if approach >= -restitution_threshold.

    Args:
        gap: Gap at which the contact meets [m].
        approach: Normal velocity before the step, negative on approach [m/s].
        restitution: e.
        restitution_threshold: Speed of approach up to which nothing bounces [m/s].

    Source: LCP-10.
    """
    fast = where(approach < -restitution_threshold, approach * restitution, 0.0)
    return where(gap <= TOUCH, fast, 0.0)


@machine_code
def push_out(gap: float, dt: float, erp: float, push_out_speed: float) -> float:
    """Return the bias that corrects a fraction of an overlap, limited in speed [m/s].

        bias = max(erp gap / dt, -push_out_speed)

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
    """Return the bias of a correction of positions, without a change of velocities.

        0 <= p_n  orthogonal to  (displacement of the gap) / dt + bias >= 0

    Overlap that the velocity already reduces needs no correction. A contact that was
    open before the step is corrected in a later step, once the velocity rule has
    stopped it: else it would be lifted while it falls.

    Args:
        before: Gap before the step [m].
        gap: Gap after the step without correction [m].
        opening: Normal velocity after the step [m/s].
        dt: Step [s].
        erp: Fraction of the overlap that is corrected in a step.
        push_out_speed: Maximum speed of the correction [m/s].

    Returns:
        Bias [m/s]: gap / dt for a gap above 0; 0 if the gap before was above 1e-9 m;
        else max(erp gap / dt, -push_out_speed) + max(opening, 0).

    Source: LCP-11 (split impulse).
    """
    inside = push_out(gap, dt, erp, push_out_speed) + maximum(opening, 0.0)
    return where(gap > 0.0, gap / dt, where(before > TOUCH, 0.0, inside))


@machine_code
def stewart_trinkle(
    gap: float,
    free: float,
    approach: float,
    dt: float,
    restitution: float,
    restitution_threshold: float,
    erp: float,
    push_out_speed: float,
) -> tuple[bool, float, float]:
    """Return the rule that the gap after the step is not negative.

        bias = gap / dt,  for an overlap or a bouncing contact  min(push_out, bounce)

    Args:
        gap: Gap before the step; negative: overlap [m].
        free: Normal velocity after the step without contacts [m/s]; a contact that it
            closes within the step may bounce.
        approach: Normal velocity before the step [m/s].
        dt: Step [s].
        restitution, restitution_threshold: e, and speed of approach up to which nothing
            bounces [m/s].
        erp, push_out_speed: Fraction of an overlap that is corrected in a step, and
            maximum speed of the correction [m/s].

    Returns:
        Whether the contact takes part (always True), its bias, and the bias of
        restitution alone, 0 or less [m/s].

    Source: LCP-4, LCP-10, LCP-11.
    """
    meets = gap + minimum(free, 0.0) * dt
    bounced = bounce(meets, approach, restitution, restitution_threshold)
    gap = where(bounced < 0.0, minimum(gap, 0.0), gap)
    overlap_bias = minimum(push_out(gap, dt, erp, push_out_speed), bounced)
    return True, where(gap > 0.0, gap / dt, overlap_bias), bounced


@machine_code
def anitescu_potra(
    gap: float,
    free: float,
    approach: float,
    dt: float,
    restitution: float,
    restitution_threshold: float,
    erp: float,
    push_out_speed: float,
) -> tuple[bool, float, float]:
    """Return the velocity rule for contacts that touch before the step.

        gap <= TOUCH (1e-9 m):  bias = min(push_out, bounce)

    moreau_jean is the same rule at the middle of the step: a scheme that corrects no
    overlap by itself, erp = 0.

    Args:
        gap: Gap at the time of the rule [m].
        free: Ignored.
        approach, dt: Normal velocity before the step [m/s], and step [s].
        restitution, restitution_threshold: e, and speed of approach up to which nothing
            bounces [m/s].
        erp, push_out_speed: Fraction of an overlap that is corrected in a step, and
            maximum speed of the correction [m/s].

    Returns:
        Whether the contact takes part; its bias, and the bias of restitution alone, 0
        or less [m/s], which have no meaning if it does not.

    Source: LCP-4, LCP-10, LCP-11.
    """
    bounced = bounce(gap, approach, restitution, restitution_threshold)
    overlap_bias = minimum(push_out(gap, dt, erp, push_out_speed), bounced)
    return gap <= TOUCH, overlap_bias, bounced


moreau_jean = anitescu_potra  # at the gaps in the middle of the step

RULES = {
    "stewart_trinkle": stewart_trinkle,
    "anitescu_potra": anitescu_potra,
    "moreau_jean": moreau_jean,
}
