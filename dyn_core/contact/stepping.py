"""What contacts demand of velocities at the end of a step: rules for numbers and texts.

A rule says whether a contact takes part, and what its law adds to the normal velocity:

    0 <= lambda_n  orthogonal to  u_n + push >= 0
"""

from __future__ import annotations

from typing import Any

from dyn_core.scalar import minimum, where

TOUCH = 1e-9  # a gap that counts as none [m]


def bounce(approach: Any, restitution: Any, slow: Any) -> Any:
    """Give Newton's restitution, e times the speed of approach; 0 where it is slow.

        push = e u_n,  so that u_n at the end is at least -e times that before

    Args:
        approach: Normal velocity before the step, negative on approach [m/s].
        restitution: e.
        slow: Speed below which nothing bounces [m/s].

    Source: LCP-10.
    """
    return where(approach < -slow, approach * restitution, 0.0)


def stewart_trinkle(
    gap: Any, approach: Any, dt: Any, restitution: Any, slow: Any, erp: Any
) -> tuple[Any, Any]:
    """Give the rule that looks ahead: the gap after the step is not negative.

        push = gap / dt,  of an overlap  min(erp gap / dt, bounce)

    Args:
        gap: Before the step; negative: overlap [m].
        approach: Normal velocity before the step [m/s].
        dt: Step [s].
        restitution, slow: See bounce.
        erp: Part of an overlap that is taken away in a step.

    Returns:
        Whether it takes part (always), and push [m/s].

    Source: LCP-4, LCP-11.
    """
    back = minimum(gap * (erp / dt), bounce(approach, restitution, slow))
    return True, where(gap > 0.0, gap / dt, back)


def anitescu_potra(
    gap: Any, approach: Any, dt: Any, restitution: Any, slow: Any, erp: Any
) -> tuple[Any, Any]:
    """Give the rule of velocities alone, for contacts that touch before the step.

        gap <= 0:  push = min(erp gap / dt, bounce)

    Source: LCP-4, LCP-11.
    """
    back = minimum(gap * (erp / dt), bounce(approach, restitution, slow))
    return gap <= TOUCH, back


def moreau_jean(
    gap: Any, approach: Any, dt: Any, restitution: Any, slow: Any, erp: Any
) -> tuple[Any, Any]:
    """Give the rule of velocities for contacts that touch half a step ahead.

        gap(q + dt qd / 2) <= 0:  push = min(erp gap / dt, bounce)

    The midpoint rule takes no overlap away by itself: erp = 0 is Moreau's own scheme.

    Args:
        gap: Half a step ahead [m].
        approach, dt, restitution, slow, erp: As stewart_trinkle takes them.

    Source: LCP-4.
    """
    return anitescu_potra(gap, approach, dt, restitution, slow, erp)


RULES = {
    "stewart_trinkle": stewart_trinkle,
    "anitescu_potra": anitescu_potra,
    "moreau_jean": moreau_jean,
}
