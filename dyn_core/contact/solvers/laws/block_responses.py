"""Law of each block with a compliance: impulses, modes, line search of the cost.

Modes are OPEN (0), STICK (1) and SLIP (2).

In the subset of machine code.
"""

from __future__ import annotations

import math

from dyn_core.contact.problem.projections import near_bounded
from dyn_core.contact.problem.rows import Rows
from dyn_core.contact.solvers.laws.scaling import CONE, FROZEN, INTERVALS, Scaled
from dyn_core.contact.solvers.solver_memory import NewtonWork
from dyn_core.engines.machine_code import machine_code

# Modes of a cone. A single row is OPEN at a bound, else STICK. A block with bounded
# friction has the mode of the normal in its first row, of the tangents in its second.
OPEN, STICK, SLIP = range(3)


@machine_code
def target(scaled: Scaled, work: NewtonWork, i: int, epsilon: float, a: float) -> float:
    """Return the impulse of row i before its law is applied.

        (epsilon center - (u + a du + b)) / (R + epsilon)

    Args:
        scaled: Scaled problem.
        work: Work arrays u, du and center.
        i: Index of the row.
        epsilon: Compliance added to R.
        a: Step length along du.
    """
    q = work.u[i] + a * work.du[i] + scaled.b[i]
    return (epsilon * work.center[i] - q) / (scaled.R[i] + epsilon)


@machine_code
def cone_response(
    c: float, n: float, size: float, Rn: float, Rt: float, exact: bool
) -> tuple[int, float, float]:
    """Apply the law of a cone to target impulses: normal n, tangents of length `size`.

    If `exact`, Coulomb's law cuts tangents to c n; else the point of the cone nearest
    to the target counts, weighted by the compliances Rn and Rt > 0. Returns OPEN (zero
    impulses), STICK or SLIP, the normal impulse, and the factor of the tangents.
    """
    if size <= c * n and c * n > 0.0:
        return STICK, n, 1.0
    if exact:
        if not n > 0.0:
            return OPEN, 0.0, 0.0
        return SLIP, n, c * n / (size if size > 0.0 else 1.0)
    slope = c * Rt / Rn
    normal = (n + slope * size) / (1.0 + c * slope)
    if not normal > 0.0:
        return OPEN, 0.0, 0.0
    return SLIP, normal, c * normal / (size if size > 0.0 else 1.0)


@machine_code
def respond(
    rows: Rows,
    blocks: int,
    scaled: Scaled,
    work: NewtonWork,
    epsilon: float,
    exact: bool,
) -> bool:
    """Set gamma and mode of all blocks by their laws; return if slopes may change.

    They may if a mode differs from the previous call, or a contact slides.
    """
    changed = False
    for k in range(blocks):
        first, count = rows.start[k], rows.count[k]
        if scaled.law[k] >= CONE:
            n = target(scaled, work, first, epsilon, 0.0)
            squares = 0.0
            for i in range(first + 1, first + count):
                t = target(scaled, work, i, epsilon, 0.0)
                work.gamma[i] = t
                squares += t * t
            size = math.sqrt(squares)
            if scaled.law[k] == FROZEN:
                mode = STICK if n > 0.0 else OPEN
                normal, factor = near_bounded(scaled.c[k], n, size)
                slides = SLIP if size > scaled.c[k] else STICK
                changed = changed or slides == SLIP
                changed = changed or not slides == work.mode[first + 1]
                work.mode[first + 1] = slides
            else:
                Rn, Rt = scaled.R[first] + epsilon, scaled.R[first + 1] + epsilon
                mode, normal, factor = cone_response(
                    scaled.c[k], n, size, Rn, Rt, exact
                )
                changed = changed or mode == SLIP
            changed = changed or not mode == work.mode[first]
            work.mode[first] = mode
            work.gamma[first] = normal
            for i in range(first + 1, first + count):
                work.gamma[i] *= factor
            continue
        for i in range(first, first + count):
            value = target(scaled, work, i, epsilon, 0.0)
            mode = STICK
            if scaled.law[k] == INTERVALS:
                near = max(scaled.lo[i], min(value, scaled.hi[i]))
                mode = STICK if near == value else OPEN
                value = near
            changed = changed or not mode == work.mode[i]
            work.mode[i] = mode
            work.gamma[i] = value
    return changed


@machine_code
def power_of_response(
    rows: Rows, blocks: int, scaled: Scaled, work: NewtonWork, epsilon: float, a: float
) -> float:
    """Return gamma(u + a du) . du of convex laws; FROZEN friction keeps its bound."""
    total = 0.0
    for k in range(blocks):
        first, count = rows.start[k], rows.count[k]
        if scaled.law[k] >= CONE:
            n = target(scaled, work, first, epsilon, a)
            squares, across = 0.0, 0.0
            for i in range(first + 1, first + count):
                t = target(scaled, work, i, epsilon, a)
                squares += t * t
                across += t * work.du[i]
            Rn, Rt = scaled.R[first] + epsilon, scaled.R[first + 1] + epsilon
            size = math.sqrt(squares)
            _, normal, factor = cone_response(scaled.c[k], n, size, Rn, Rt, False)
            if scaled.law[k] == FROZEN:
                normal, factor = near_bounded(scaled.c[k], n, size)
            total += normal * work.du[first] + factor * across
            continue
        for i in range(first, first + count):
            value = target(scaled, work, i, epsilon, a)
            if scaled.law[k] == INTERVALS:
                value = max(scaled.lo[i], min(value, scaled.hi[i]))
            total += value * work.du[i]
    return total


@machine_code
def line(
    rows: Rows,
    blocks: int,
    scaled: Scaled,
    work: NewtonWork,
    unknowns: int,
    epsilon: float,
) -> float:
    """Return the step length near the minimum of the cost along dz, in (0, 1].

        slope(a) = dz . (z + a dz) - gamma(u + a du) . du,   slope(0) = -dz . right

    The search (Illinois method) ends when |slope| <= 0.3 |slope(0)|, or after 30 steps
    with the lower end of the bracket, the upper one if that is 0. A full step of 1 is
    returned if its slope is not above this limit.
    """
    power, square, start = 0.0, 0.0, 0.0
    for j in range(unknowns):
        power += work.dz[j] * work.z[j]
        square += work.dz[j] * work.dz[j]
        start -= work.dz[j] * work.right[j]
    low, high, at_low = 0.0, 1.0, start
    at_high = (
        power + square - power_of_response(rows, blocks, scaled, work, epsilon, 1.0)
    )
    if at_high <= 0.3 * abs(start):
        return 1.0
    for _ in range(30):
        a = (low * at_high - high * at_low) / (at_high - at_low)
        # Away from both ends, so that the bracket shrinks in each step.
        a = max(low + 0.02 * (high - low), min(a, high - 0.02 * (high - low)))
        slope = power + a * square
        slope -= power_of_response(rows, blocks, scaled, work, epsilon, a)
        if abs(slope) <= 0.3 * abs(start):
            return a
        if slope < 0.0:
            low, at_low = a, slope
            at_high *= 0.5
        else:
            high, at_high = a, slope
            at_low *= 0.5
    return low if low > 0.0 else high
