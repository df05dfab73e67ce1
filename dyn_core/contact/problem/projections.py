"""Projections on the sets of contact laws, and scalar formulas of contact solvers.

They serve floats, traced algorithms and machine code alike, as contact_biases.py does.
A vector of tangents is passed as its length, and returned as a factor.
"""

from __future__ import annotations

from dyn_core.contact.problem.layout import GROUPS
from dyn_core.engines.machine_code import machine_code
from dyn_core.numbers.scalar import maximum, minimum, where

# First rows of a contact that belong to torsion, and to rolling; tangents before.
TORSION, ROLLING = 1 + GROUPS[6][0], 1 + GROUPS[6][0] + GROUPS[6][1]
HUGE = 1e300  # bounds beyond it are infinite
GROWTH = 1e-9  # relative rounding error allowed in an impulse


@machine_code
def near_disc(radius: float, size: float) -> float:
    """Return the factor that projects a vector of length `size` on a disc about 0."""
    part = radius / where(size > 0.0, size, 1.0)
    return where(size > radius, part, 1.0)


@machine_code
def near_bounded(bound: float, n: float, size: float) -> tuple[float, float]:
    """Project (n, t), |t| = size, on n >= 0, |t| <= bound; return n and t's factor."""
    return maximum(n, 0.0), near_disc(bound, size)


@machine_code
def near_cone(c: float, n: float, size: float) -> tuple[float, float]:
    """Project (n, t), |t| = size, on the cone |t| <= c n; return n and t's factor.

        alpha = (n + c |t|) / (1 + c²),   (alpha, c alpha t / |t|)

    n and 1 for a point of the cone, 0 and 0 in the polar cone, c |t| <= -n.

    Source: LCP-12.
    """
    # With c = 0 the cone is the half-line of the normal. There |t| <= c n alone would
    # hold for n < 0 and t = 0: the test for the polar cone comes last and wins.
    edge = maximum((n + c * size) / (1.0 + c * c), 0.0)
    factor = c * edge / where(size > 0.0, size, 1.0)
    near, part = where(size <= c * n, n, edge), where(size <= c * n, 1.0, factor)
    below = -n
    return where(c * size <= below, 0.0, near), where(c * size <= below, 0.0, part)


@machine_code
def share(coefficient: float, largest: float) -> float:
    """Return the weight of a row, coefficient / largest; 0 if both are 0."""
    return coefficient / where(largest > 0.0, largest, 1.0)


@machine_code
def relative_step(step: float, size: float, response: float, speed: float) -> float:
    """Return the length of a step of impulses relative to the scale of the problem [1].

        response step / (speed + 1e-9 response size)

    step, size: lengths of the step and of the block's impulses [N·s]; speed: scale of
    velocities [m/s]. A denominator of 0 counts as 1.
    """
    scale = speed + GROWTH * response * size
    return response * step / where(scale > 0.0, scale, 1.0)


@machine_code
def best_part(power: float, square: float) -> float:
    """Return the scale s of impulses, from 0 to 1, that minimises the energy they add.

        s power + s² square / 2,   s = min(1, max(0, -power / square))

    A `square` of 0 counts as 1.

    Args:
        power: b . lambda, with the free velocity b [J].
        square: lambda . (G + R) lambda [J].
    """
    part = maximum(-power, 0.0) / where(square > 0.0, square, 1.0)
    return minimum(part, 1.0)
