"""Coulomb's law by a Newton method that selects modes (open, stick, slip) by block.

In the subset of machine code.
"""

from __future__ import annotations

import math

from dyn_core.contact.problem.rows import Rows
from dyn_core.contact.solvers.laws.law_slopes import (
    assemble,
    follow_slopes,
    stick_slope,
)
from dyn_core.contact.solvers.laws.natural_residuals import natural_step, respond_to
from dyn_core.contact.solvers.laws.scaling import CONE, INTERVALS, Scaled
from dyn_core.contact.solvers.matrices.row_products import add_transposed, multiply
from dyn_core.contact.solvers.matrices.skyline import (
    factorise,
    factorise_both,
    order_used,
    solve_both,
    solve_factorised,
)
from dyn_core.contact.solvers.solver_memory import NewtonWork, SolverWork
from dyn_core.engines.machine_code import FloatArray, any_lane, decided_by, machine_code
from dyn_core.numbers.scalar import where

FIRM = 1e-6  # compliance of a step, which makes impulses unique
SOFT = 1e-4  # a larger one, for contacts that alternate between stick and slip
TRIALS = 6  # trial steps; each has half the length of the previous one
PATIENCE = 4  # steps within which |F| must fall by the factor SHRINK
SHRINK = 0.5


@machine_code
def newton_on_modes(
    rows: Rows, blocks: int, m: int, nv: int, work: SolverWork, tolerance: float,
    steps: int, firm: float,
) -> tuple[float, float]:  # fmt: skip
    """Improve the scaled impulses work.newton.gamma by Newton steps.

        F(x) = x - Pi(x - u),   u = Y Y.T x + R x + b,
        lambda_n >= 0, then lambda_T in the disc of mu max(0, lambda_n - u_n)

    Modes follow from x - u, in units of the response of a block: near the solution they
    are its modes, and one step solves the problem. A small compliance `firm`, whose
    force is zero at x, selects one of several impulses with the same effect. Steps are
    halved until |F| falls, at most five times; the last one then stays.

    Returns `natural_step` of the result, inf if a value is not finite, and the number
    of steps. The iteration also ends if the envelope does not fit its array, the matrix
    is singular, or |F| stops falling. The order of work.envelope is that of the last
    step.

    Source: P. Alart and A. Curnier 1991; M. Hintermüller, K. Ito and K. Kunisch 2002.
    """
    scaled, newton = work.scaled, work.newton
    x, u, dx = newton.gamma, newton.u, newton.center
    missing = _velocities(rows, blocks, m, nv, work)
    count, patience, taken = 0, PATIENCE, 0.0
    size = math.sqrt(_squares(rows, blocks, scaled, x, u))
    goal = SHRINK * size
    more = where(missing <= tolerance, 0.0, 1.0)  # in lanes, those that are solved wait
    while any_lane(more > 0.0) and count < steps and patience > 0:
        count += 1
        taken += more
        slips = linearise(rows, blocks, scaled, newton, firm)
        find_used(rows, blocks, work)
        unknowns, entries = order_used(rows, blocks, nv, work.envelope)
        if entries > len(work.envelope.values):
            break
        if not solve_step(rows, blocks, work, unknowns, slips):
            break
        step, now = 1.0, math.inf
        for trial in range(TRIALS):
            part = step if trial == 0 else -step  # back by as much as is left
            for i in range(m):
                change = newton.du[i] + scaled.R[i] * dx[i]
                x[i] = where(more > 0.0, x[i] + part * dx[i], x[i])
                u[i] = where(more > 0.0, u[i] + part * change, u[i])
            now = math.sqrt(_squares(rows, blocks, scaled, x, u))
            if decided_by(now < (1.0 - 0.1 * step) * size, more > 0.0):
                break
            step *= 0.5
        if not now < math.inf:
            return math.inf, taken
        size = now
        missing = _velocities(rows, blocks, m, nv, work)
        patience -= 1
        if decided_by(size < goal, more > 0.0):
            goal, patience = SHRINK * size, PATIENCE
        more = where(missing <= tolerance, 0.0, more)
    return missing, taken


@machine_code
def _velocities(rows: Rows, blocks: int, m: int, nv: int, work: SolverWork) -> float:
    """Set newton.u to the velocities for the impulses gamma; return their natural_step.

    u = Y Y.T x + R x + b, without De Saxce's correction. inf if one is not finite.
    x is gamma. system.w and iterates.p, z and s are overwritten.
    """
    scaled, newton, iterates = work.scaled, work.newton, work.iterates
    sound = 0.0
    respond_to(
        rows, blocks, m, nv, scaled, newton.gamma, work.system.w, iterates.p,
        iterates.z, iterates.s, True,
    )  # fmt: skip
    for i in range(m):
        newton.u[i] = -iterates.z[i] - iterates.s[i]
        sound += newton.u[i] - newton.u[i]  # NaN if a velocity is not finite
    if not sound == 0.0:
        return math.inf
    return natural_step(rows, blocks, scaled, newton.gamma, iterates.z, True)


@machine_code
def _squares(
    rows: Rows, blocks: int, scaled: Scaled, x: FloatArray, u: FloatArray
) -> float:
    """Return |F|² = |x - Pi(x - u)|² for scaled impulses x and velocities u.

    u = Y Y.T x + R x + b, with the free velocities b.
    """
    total = 0.0
    for k in range(blocks):
        first, count = rows.start[k], rows.count[k]
        if scaled.law[k] == CONE:
            normal = max(0.0, x[first] - u[first])
            total += (x[first] - normal) * (x[first] - normal)
            squares = 0.0
            for i in range(first + 1, first + count):
                squares += (x[i] - u[i]) * (x[i] - u[i])
            length, radius = math.sqrt(squares), scaled.c[k] * normal
            factor = radius / length if length > radius else 1.0
            for i in range(first + 1, first + count):
                change = x[i] - factor * (x[i] - u[i])
                total += change * change
            continue
        for i in range(first, first + count):
            near = x[i] - u[i]
            if scaled.law[k] == INTERVALS:
                near = max(scaled.lo[i], min(near, scaled.hi[i]))
            total += (x[i] - near) * (x[i] - near)
    return total


@machine_code
def linearise(
    rows: Rows, blocks: int, scaled: Scaled, work: NewtonWork, firm: float
) -> bool:
    """Set S and d of dx = d - S Y dz, work.slopes and work.center, from gamma and u.

    S is 0 in open contacts and in rows at a bound; `firm` is added to R in it. Returns
    whether S is to be treated as not symmetric: a contact slides, or is pressed and has
    no friction.
    """
    slopes, x, u, d = work.slopes, work.gamma, work.u, work.center
    slips = False
    for k in range(blocks):
        first, count = rows.start[k], rows.count[k]
        stick_slope(rows, scaled, slopes, k, firm)
        for i in range(first, first + count):
            d[i] = -u[i] * slopes.diagonal[i]
        if scaled.law[k] == CONE:
            slips = _linearise_cone(rows, scaled, work, k, firm) or slips
        if scaled.law[k] == INTERVALS:
            for i in range(first, first + count):
                near = x[i] - u[i]
                bound = max(scaled.lo[i], min(near, scaled.hi[i]))
                if scaled.lo[i] == scaled.hi[i]:
                    near = math.nan  # unequal to any bound: the row is fixed
                slopes.diagonal[i] = where(near == bound, slopes.diagonal[i], 0.0)
                d[i] = where(near == bound, d[i], bound - x[i])
    return slips


@machine_code
def _linearise_cone(
    rows: Rows, scaled: Scaled, work: NewtonWork, k: int, firm: float
) -> bool:
    """Set S and d of block k, a cone, if it opens or slides; return whether it slides.

    A pressed cone without friction counts as sliding.

    With y = x - u, t = y_T / |y_T| and eta = mu y_n / |y_T|:

        x_t = mu x_n,   (1 - eta) x + eta u = 0 across t

    A sticking cone is left unchanged, with the S and d of free rows. `firm` is the
    compliance of a step.
    """
    slopes, x, u, d = work.slopes, work.gamma, work.u, work.center
    first, count, c = rows.start[k], rows.count[k], scaled.c[k]
    normal, squares = x[first] - u[first], 0.0
    if not normal > 0.0:
        for i in range(first, first + count):
            slopes.diagonal[i] = 0.0
            d[i] = -x[i]
        return False
    for i in range(first + 1, first + count):
        squares += (x[i] - u[i]) * (x[i] - u[i])
    length, radius = math.sqrt(squares), c * normal
    if length <= radius and radius > 0.0:
        return False
    inverse = 1.0 / length if length > 0.0 else 0.0
    eta, x_t, u_t = radius * inverse, 0.0, 0.0
    for i in range(first + 1, first + count):
        t = inverse * (x[i] - u[i])
        x_t += t * x[i]
        u_t += t * u[i]
    along = c * (x[first] + d[first])
    for i in range(first + 1, first + count):
        t = inverse * (x[i] - u[i])
        across = 1.0 / (1.0 - eta + eta * (scaled.R[i] + firm))
        missing = (1.0 - eta) * (x[i] - x_t * t) + eta * (u[i] - u_t * t)
        d[i] = (along - x_t) * t - across * missing
        slopes.diagonal[i] = eta * across
        slopes.tilt[i] = c * t
        slopes.left[i], slopes.right[i] = -eta * across * t, t
    return True


@machine_code
def find_used(rows: Rows, blocks: int, work: SolverWork) -> None:
    """Mark blocks with non-zero S, d or impulses as used; a step needs no others."""
    # Blocks whose impulses stay the same count, too: rounding hides that they do.
    diagonal, d = work.newton.slopes.diagonal, work.newton.center
    for k in range(blocks):
        some = 0.0
        for i in range(rows.start[k], rows.start[k] + rows.count[k]):
            some += abs(diagonal[i]) + abs(d[i]) + abs(work.newton.gamma[i])
        work.envelope.used[k] = 0 if some == 0.0 else 1


@machine_code
def solve_step(
    rows: Rows, blocks: int, work: SolverWork, unknowns: int, slips: bool
) -> bool:
    """Assemble and factorise K = 1 + Y.T S Y, and solve for the step.

        K dz = Y.T d,   du = Y dz,   dx = d - S du

    newton.center is d, and becomes dx; order_used comes before; `slips`: S is not
    symmetric. Returns False if K is singular, or is not positive definite though
    symmetric; center and du are then unchanged.
    """
    scaled, envelope, newton = work.scaled, work.envelope, work.newton
    assemble(rows, blocks, scaled, envelope, newton, unknowns, slips)
    if slips:
        if not factorise_both(unknowns, envelope, newton.upper):
            return False
    elif not factorise(unknowns, envelope):
        return False
    solve_again(rows, blocks, work, unknowns, slips)
    return True


@machine_code
def solve_again(
    rows: Rows, blocks: int, work: SolverWork, unknowns: int, slips: bool
) -> None:
    """Solve for a step as solve_step, with its factor; du has also blocks not used."""
    scaled, envelope, newton = work.scaled, work.envelope, work.newton
    dz = newton.dz
    for j in range(min(unknowns + 1, len(dz))):
        dz[j] = 0.0  # and where coordinates have no number
    add_transposed(rows, envelope.local, scaled.y, blocks, newton.center, dz)
    if slips:
        solve_both(unknowns, envelope, newton.upper, dz)
    else:
        solve_factorised(unknowns, envelope, dz)
    multiply(rows, envelope.local, scaled.y, blocks, dz, newton.du)
    for k in range(blocks):
        cone = scaled.law[k] == CONE
        follow_slopes(rows, k, cone, newton.slopes, newton.du, newton.center)
