"""Gap rules: which contacts take part in a step, and the bias of their velocity.

They serve floats and traced algorithms alike:

    0 <= lambda_n  orthogonal to  u_n + bias >= 0
"""

from __future__ import annotations

from typing import Any

from dyn_core.numbers.scalar import minimum, where

TOUCH = 1e-9  # gaps up to this count as closed [m]


def bounce(approach: Any, restitution: Any, restitution_threshold: Any) -> Any:
    """Return the bias of Newton's restitution; 0 for a slow approach.

        bias = e u_n,  so that u_n after the step is at least -e times that before

    Args:
        approach: Normal velocity before the step, negative on approach [m/s].
        restitution: e.
        restitution_threshold: Speed below which nothing bounces [m/s].

    Source: LCP-10.
    """
    return where(approach < -restitution_threshold, approach * restitution, 0.0)


def stewart_trinkle(
    gap: Any,
    approach: Any,
    dt: Any,
    restitution: Any,
    restitution_threshold: Any,
    erp: Any,
) -> tuple[Any, Any]:
    """Return the rule that the gap after the step is not negative.

        bias = gap / dt,  for an overlap  min(erp gap / dt, bounce)

    Args:
        gap: Gap before the step; negative: overlap [m].
        approach: Normal velocity before the step [m/s].
        dt: Step [s].
        restitution, restitution_threshold: See bounce.
        erp: Part of an overlap that is corrected in a step.

    Returns:
        Whether the contact takes part (always), and its bias [m/s].

    Source: LCP-4, LCP-11.
    """
    overlap_bias = minimum(
        gap * (erp / dt), bounce(approach, restitution, restitution_threshold)
    )
    return True, where(gap > 0.0, gap / dt, overlap_bias)


def anitescu_potra(
    gap: Any,
    approach: Any,
    dt: Any,
    restitution: Any,
    restitution_threshold: Any,
    erp: Any,
) -> tuple[Any, Any]:
    """Return the velocity rule for contacts that touch before the step.

        gap <= 0:  bias = min(erp gap / dt, bounce)

    Source: LCP-4, LCP-11.
    """
    overlap_bias = minimum(
        gap * (erp / dt), bounce(approach, restitution, restitution_threshold)
    )
    return gap <= TOUCH, overlap_bias


def moreau_jean(
    gap: Any,
    approach: Any,
    dt: Any,
    restitution: Any,
    restitution_threshold: Any,
    erp: Any,
) -> tuple[Any, Any]:
    """Return the velocity rule for contacts that touch at the midpoint.

        gap(q + dt qd / 2) <= 0:  bias = min(erp gap / dt, bounce)

    The midpoint scheme corrects no overlap by itself: erp = 0 is Moreau's scheme.

    Args:
        gap: Gap at the midpoint of the step [m].
        approach, dt, restitution, restitution_threshold, erp: As in
            stewart_trinkle.

    Source: LCP-4.
    """
    return anitescu_potra(gap, approach, dt, restitution, restitution_threshold, erp)


RULES = {
    "stewart_trinkle": stewart_trinkle,
    "anitescu_potra": anitescu_potra,
    "moreau_jean": moreau_jean,
}
