"""Coulomb's law by an interior-point method, for heaps of bodies; it needs no start.

In one cone a step has the products

    s n = e,   mu n eta + v . t = e,   mu n v + eta t = 0,
    s = u_n,   v = u_T,   n, t: impulses

e is their target, and goes to zero. The slacks of a block's rows are s, then v; eta is
the bound of |v|. Cones with a coefficient up to SMOOTH (1e-7) have no friction.

In the subset of machine code.
"""

from __future__ import annotations

import math

from dyn_core.contact.problem.projections import HUGE
from dyn_core.contact.problem.rows import Rows
from dyn_core.contact.solvers.laws.law_slopes import stick_slope
from dyn_core.contact.solvers.laws.scaling import CONE, INTERVALS, Scaled, project
from dyn_core.contact.solvers.matrices.row_products import add_transposed, multiply
from dyn_core.contact.solvers.matrices.skyline import order
from dyn_core.contact.solvers.newton_on_modes import FIRM as MODES
from dyn_core.contact.solvers.newton_on_modes import (
    newton_on_modes,
    solve_again,
    solve_step,
)
from dyn_core.contact.solvers.solver_memory import ConeSlacks, Slopes, SolverWork
from dyn_core.engines.machine_code import FloatArray, machine_code

SMOOTH = 1e-7  # cones with a coefficient up to this one are frictionless
FIRM = 1e-7  # compliance of a step in rows without a bound
SHARE = 0.95  # longest step, relative to the step that reaches a boundary
SHORT = 0.2  # steps shorter than this are repeated with more centering
PATIENCE = 3  # short steps in succession that end the method
ENOUGH = 1e-3  # mean product of slack and impulse at which `newton_on_modes` is tried
SMALLEST = 1e-12  # mean product at which the method ends
EACH = 8  # largest number of steps of `newton_on_modes`


@machine_code
def start_cone(
    first: int, count: int, scaled: Scaled, k: int, point: ConeSlacks, x: FloatArray
) -> int:
    """Set initial impulses and slacks of a cone; return how many products cone_gap has.

    Normal impulse and eta are 1, the normal slack is max(1, b), all others are zero.
    """
    x[first], point.slack[first] = 1.0, max(1.0, scaled.b[first])
    point.eta[k] = 1.0
    for i in range(first + 1, first + count):
        x[i], point.slack[i] = 0.0, 0.0
    return 2 if scaled.c[k] > SMOOTH else 1


@machine_code
def cone_gap(
    first: int, count: int, c: float, k: int, point: ConeSlacks, x: FloatArray,
    dx: FloatArray, step: float,
) -> float:  # fmt: skip
    """Return the sum of the complementarity products of a cone after a step.

        s n + mu n eta + v . t

    If the coefficient c, mu above, is SMOOTH or less, only s n counts.
    """
    n = x[first] + step * dx[first]
    total = n * (point.slack[first] + step * point.slack_step[first])
    if not c > SMOOTH:
        return total
    total += c * n * (point.eta[k] + step * point.eta_step[k])
    for i in range(first + 1, first + count):
        v = point.slack[i] + step * point.slack_step[i]
        total += v * (x[i] + step * dx[i])
    return total


@machine_code
def _products(
    first: int, count: int, c: float, k: int, point: ConeSlacks, x: FloatArray,
    dx: FloatArray, aim: float, second: bool, missing: FloatArray,
) -> tuple[float, float]:  # fmt: skip
    """Return the residuals of a cone's complementarity products.

    They are aim - s n and aim - (mu n eta + v . t); missing is -(mu n v + eta t) at the
    tangents. If `second`, products of the predictor's changes are subtracted.
    """
    n, eta = x[first], point.eta[k]
    lacks_n, lacks_eta = aim - n * point.slack[first], aim - c * n * eta
    for i in range(first + 1, first + count):
        lacks_eta -= point.slack[i] * x[i]
        missing[i] = -c * n * point.slack[i] - eta * x[i]
    if second:
        lacks_n -= dx[first] * point.slack_step[first]
        lacks_eta -= c * dx[first] * point.eta_step[k]
        for i in range(first + 1, first + count):
            lacks_eta -= point.slack_step[i] * dx[i]
            missing[i] -= c * dx[first] * point.slack_step[i]
            missing[i] -= point.eta_step[k] * dx[i]
    return lacks_n, lacks_eta


@machine_code
def linearise_cone(
    first: int, count: int, scaled: Scaled, k: int, point: ConeSlacks,
    slopes: Slopes, x: FloatArray, dx: FloatArray, u: FloatArray, d: FloatArray,
    aim: float, second: bool,
) -> None:  # fmt: skip
    """Set S and d of the linearised cone, dx = d - S Y dz.

    With kappa = mu n - v . t / eta, primes for changes, and u the velocities minus
    their slacks,

        eta' = e0 + e_n n' + e_v . v',   t' = t0 + tilt n' - A v',   v' = Y_T dz + u_T
        e_v = (mu n / eta v - t) / kappa,   A = mu n / eta + t e_v.T / eta

    e0 and t0 are constant parts, e_n and tilt derivatives by n'. Without friction or
    with kappa <= 0, S of the tangents is zero, and d removes their impulses. `aim` is
    the target of the products; if `second`, those of the predictor's changes are
    subtracted. missing, constant and by_normal of `point` are set.
    """
    c, n, s, eta = scaled.c[k], x[first], point.slack[first], point.eta[k]
    lacks_n, lacks_eta = _products(
        first, count, c, k, point, x, dx, aim, second, point.missing
    )
    stiff = scaled.R[first] + s / n
    slopes.diagonal[first] = 1.0 / stiff
    d[first] = (lacks_n / n - u[first]) / stiff
    power, squares, e_zero = 0.0, 0.0, lacks_eta
    for i in range(first + 1, first + count):
        power += point.slack[i] * x[i]
        squares += point.slack[i] * point.slack[i]
        e_zero -= point.slack[i] * point.missing[i] / eta
    kappa = c * n - power / eta
    friction = c > SMOOTH and kappa > 0.0
    inverse = 1.0 / kappa if friction else 0.0
    e_zero *= inverse
    e_n = (c * squares / eta - c * eta) * inverse
    across = 0.0
    for i in range(first + 1, first + count):
        slopes.right[i] = (c * n / eta * point.slack[i] - x[i]) * inverse
        across += slopes.right[i] * u[i]
    for i in range(first + 1, first + count):
        slopes.lean[i] = 0.0
        if not friction:
            slopes.diagonal[i], slopes.tilt[i], slopes.left[i] = 0.0, 0.0, 0.0
            d[i] = -x[i]
            continue
        slopes.diagonal[i] = c * n / eta
        slopes.left[i] = x[i] / eta
        slopes.tilt[i] = -(c * point.slack[i] + x[i] * e_n) / eta
        d[i] = (point.missing[i] - x[i] * e_zero) / eta + slopes.tilt[i] * d[first]
        d[i] -= slopes.diagonal[i] * u[i] + slopes.left[i] * across
    point.constant[k] = e_zero
    point.by_normal[k] = e_n


@machine_code
def step_of_cone(
    first: int, count: int, scaled: Scaled, k: int, point: ConeSlacks,
    slopes: Slopes, dx: FloatArray, after: FloatArray, w: FloatArray, u: FloatArray,
) -> None:  # fmt: skip
    """Set the changes of impulses and slacks of a cone from w = Y dz.

    dx becomes `after`; linearise_cone has set slopes, constant and by_normal.
    """
    eta_step = point.constant[k] + point.by_normal[k] * after[first]
    for i in range(first, first + count):
        dx[i] = after[i]
        point.slack_step[i] = w[i] + u[i] + scaled.R[i] * dx[i]
        if i > first:
            eta_step += slopes.right[i] * point.slack_step[i]
    point.eta_step[k] = eta_step


@machine_code
def cone_room(
    first: int,
    count: int,
    c: float,
    k: int,
    point: ConeSlacks,
    x: FloatArray,
    dx: FloatArray,
) -> float:
    """Return the step length at which a cone reaches its boundary, at most 10.

    The first of: normal impulse and slack to zero, tangent impulses to |t| = c n and
    tangent slacks to |v| = eta. Tangents do not count if c is SMOOTH or less.
    """
    # Any bound above one will do: a step is never longer than one.
    least = 10.0
    if dx[first] < 0.0:
        least = min(least, -x[first] / dx[first])
    if point.slack_step[first] < 0.0:
        least = min(least, -point.slack[first] / point.slack_step[first])
    if not c > SMOOTH:
        return least
    a, b, size = 0.0, 0.0, 0.0
    p, q, length = 0.0, 0.0, 0.0
    for i in range(first + 1, first + count):
        a += dx[i] * dx[i]
        b += x[i] * dx[i]
        size += x[i] * x[i]
        p += point.slack_step[i] * point.slack_step[i]
        q += point.slack[i] * point.slack_step[i]
        length += point.slack[i] * point.slack[i]
    least = min(least, _leaves(c * x[first], c * dx[first], size, b, a))
    return min(least, _leaves(point.eta[k], point.eta_step[k], length, q, p))


@machine_code
def _leaves(top: float, rise: float, size: float, along: float, step: float) -> float:
    """Return the step length at which t leaves the cone |t| <= top, else 10.

    If the bound shrinks, `rise` of a full step, it may be more than 10. size, along and
    step are t . t, t . dt and dt . dt.
    """
    a, b, c = rise * rise - step, top * rise - along, top * top - size
    least = -top / rise if rise < 0.0 else 10.0
    inside = b * b - a * c
    if not inside > 0.0:
        return least
    root = math.sqrt(inside)
    q = -b - root if b > 0.0 else -b + root
    if not q == 0.0 and c / q > 0.0:
        least = min(least, c / q)
    if not a == 0.0 and q / a > 0.0:
        least = min(least, q / a)
    return least


@machine_code
def interior(
    rows: Rows, blocks: int, m: int, nv: int, work: SolverWork, tolerance: float,
    steps: int,
) -> tuple[float, int]:  # fmt: skip
    """Solve a scaled problem from inside all cones and bounds, then by its modes.

        lambda_n u_n = e,   (mu lambda_n, lambda_T) o (eta, u_T) = (e, 0),
        (lambda - lo) p = e,   (hi - lambda) q = e,   u = p - q,      e -> 0

    The disc of friction has the radius mu lambda_n of the same step, so that the law is
    Coulomb's, not its relaxation; S is not symmetric. Each step has a predictor, and a
    corrector of second order (Mehrotra). When e is small, `newton_on_modes` starts from
    these impulses and their modes; if it does not converge, e falls further. Coulomb's
    law is not monotone: if e cannot fall on this path, steps become short, and the
    method ends.

    Returns `natural_step` of work.newton.gamma and the number of steps of both methods.
    The first is infinite if the modes were never tried (no inequality, singular matrix,
    values that are not finite, or too few steps); gamma is then unchanged.

    Source: S. Mehrotra 1992; T. Howell, S. Le Cleac'h et al. 2022 (Dojo), section IV.
    """
    terms = _start(rows, blocks, work)
    unknowns, _ = order(rows, blocks, nv, work.envelope)
    count, missing, enough, patience = 0, math.inf, ENOUGH, PATIENCE
    while count < steps and terms > 0 and patience > 0:
        gap = _velocities(rows, blocks, m, work, unknowns) / float(terms)
        if not gap < math.inf:
            break
        if gap < enough:
            for i in range(m):
                work.newton.gamma[i] = work.iterates.x[i]
            for k in range(blocks):
                project(rows, work.scaled, k, work.newton.gamma)
            missing, more = newton_on_modes(
                rows, blocks, m, nv, work, tolerance, EACH, MODES
            )
            order(rows, blocks, nv, work.envelope)
            count += int(more)
            if missing <= tolerance or gap < SMALLEST:
                break
            enough = 0.03 * gap
            gap = _velocities(rows, blocks, m, work, unknowns) / float(terms)
        count += 1
        _linearise(rows, blocks, work, 0.0, False)
        if not solve_step(rows, blocks, work, unknowns, True):
            break
        _slack_steps(rows, blocks, work, 0.0, False)
        step = min(1.0, _room(rows, blocks, work))
        after = _gap(rows, blocks, work, step) / float(terms)
        # Mehrotra's rule: the cube of the reduction that the predictor promises.
        centering = max(1e-4, min(1.0, after / gap))
        centering = centering * centering * centering
        _linearise(rows, blocks, work, centering * gap, True)
        solve_again(rows, blocks, work, unknowns, True)
        _slack_steps(rows, blocks, work, centering * gap, True)
        step = _room(rows, blocks, work)
        if step < SHORT:
            centering = max(centering, 0.3)
            _linearise(rows, blocks, work, centering * gap, False)
            solve_again(rows, blocks, work, unknowns, True)
            _slack_steps(rows, blocks, work, centering * gap, False)
            step = _room(rows, blocks, work)
        patience = PATIENCE if step > SHORT else patience - 1
        _move(rows, blocks, m, work, min(1.0, SHARE * step))
    return missing, count


@machine_code
def _start(rows: Rows, blocks: int, work: SolverWork) -> int:
    """Set impulses and slacks inside of all cones and bounds.

    Returns the number of complementarity products: 2 for a cone, 1 without friction,
    and 1 for each finite bound of a row of INTERVALS. Rows with equal bounds have none:
    their impulse is fixed. Rows of other laws have none and start at zero.
    """
    scaled, point, x = work.scaled, work.interior, work.iterates.x
    terms = 0
    for k in range(blocks):
        first, count = rows.start[k], rows.count[k]
        if scaled.law[k] == CONE:
            terms += start_cone(first, count, scaled, k, point, x)
            continue
        for i in range(first, first + count):
            x[i], point.slack[i], point.other[i] = 0.0, 0.0, 0.0
            if not scaled.law[k] == INTERVALS:
                continue
            lo, hi = scaled.lo[i], scaled.hi[i]
            below, above = lo > -HUGE, hi < HUGE
            if below and above:
                x[i] = 0.5 * (lo + hi)
            elif below:
                x[i] = lo + 1.0
            elif above:
                x[i] = hi - 1.0
            if below and not x[i] > lo:
                continue  # lo = hi: the impulse is fixed, without a slack
            if below:
                point.slack[i] = 1.0
                terms += 1
            if above:
                point.other[i] = 1.0
                terms += 1
    return terms


@machine_code
def _velocities(
    rows: Rows, blocks: int, m: int, work: SolverWork, unknowns: int
) -> float:
    """Set newton.u to the velocities minus their slacks, all changes to zero.

        u = Y z + R x + b - slack, in rows without a cone + other,   z = Y.T x

    newton.z is in the order of the envelope. Returns the sum of all complementarity
    products.
    """
    scaled, point, x, u = work.scaled, work.interior, work.iterates.x, work.newton.u
    z = work.newton.z
    for j in range(unknowns):
        z[j] = 0.0
    add_transposed(rows, work.envelope.local, scaled.y, blocks, x, z)
    multiply(rows, work.envelope.local, scaled.y, blocks, z, u)
    for k in range(blocks):
        for i in range(rows.start[k], rows.start[k] + rows.count[k]):
            u[i] += scaled.R[i] * x[i] + scaled.b[i]
            u[i] -= point.slack[i]
            if not scaled.law[k] == CONE:
                u[i] += point.other[i]
            work.iterates.dx[i], point.slack_step[i], point.other_step[i] = (
                0.0,
                0.0,
                0.0,
            )
        point.eta_step[k] = 0.0
    return _gap(rows, blocks, work, 0.0)


@machine_code
def _gap(rows: Rows, blocks: int, work: SolverWork, step: float) -> float:
    """Return the sum of all complementarity products after a step; change nothing."""
    scaled, point, total = work.scaled, work.interior, 0.0
    x, dx = work.iterates.x, work.iterates.dx
    for k in range(blocks):
        first, count = rows.start[k], rows.count[k]
        if scaled.law[k] == CONE:
            total += cone_gap(first, count, scaled.c[k], k, point, x, dx, step)
            continue
        for i in range(first, first + count):
            p = point.slack[i] + step * point.slack_step[i]
            q = point.other[i] + step * point.other_step[i]
            now = x[i] + step * dx[i]
            if point.slack[i] > 0.0:
                total += p * (now - scaled.lo[i])
            if point.other[i] > 0.0:
                total += q * (scaled.hi[i] - now)
    return total


@machine_code
def _linearise(
    rows: Rows, blocks: int, work: SolverWork, aim: float, second: bool
) -> None:
    """Set S and d of dx = d - S Y dz: work.newton.slopes and work.newton.center.

    `aim` is the target e of the products; if `second`, those of the predictor's changes
    are subtracted. Of cones, missing, constant and by_normal of `interior` are set too.
    """
    scaled, point, slopes = work.scaled, work.interior, work.newton.slopes
    x, dx, u, d = work.iterates.x, work.iterates.dx, work.newton.u, work.newton.center
    for k in range(blocks):
        first, count = rows.start[k], rows.count[k]
        if scaled.law[k] == CONE:
            linearise_cone(
                first, count, scaled, k, point, slopes, x, dx, u, d, aim, second
            )
            continue
        stick_slope(rows, scaled, slopes, k, FIRM)
        for i in range(first, first + count):
            p, q = point.slack[i], point.other[i]
            stiff, missing = scaled.R[i], u[i]
            if p > 0.0:
                room = x[i] - scaled.lo[i]
                product = point.slack_step[i] * dx[i] if second else 0.0
                stiff += p / room
                missing -= (aim - p * room - product) / room
            if q > 0.0:
                room = scaled.hi[i] - x[i]
                product = -point.other_step[i] * dx[i] if second else 0.0
                stiff += q / room
                missing += (aim - q * room - product) / room
            if not p > 0.0 and not q > 0.0:
                stiff += FIRM
                if scaled.law[k] == INTERVALS and scaled.lo[i] == scaled.hi[i]:
                    slopes.diagonal[i], d[i] = 0.0, 0.0
                    continue
            slopes.diagonal[i] = 1.0 / stiff
            d[i] = -missing / stiff


@machine_code
def _slack_steps(
    rows: Rows, blocks: int, work: SolverWork, aim: float, second: bool
) -> None:
    """Set dx to work.newton.center, and the slacks' changes that follow from it."""
    scaled, point, newton = work.scaled, work.interior, work.newton
    x, dx = work.iterates.x, work.iterates.dx
    for k in range(blocks):
        first, count = rows.start[k], rows.count[k]
        if scaled.law[k] == CONE:
            step_of_cone(
                first, count, scaled, k, point, newton.slopes, dx, newton.center,
                newton.du, newton.u,
            )  # fmt: skip
            continue
        for i in range(first, first + count):
            before, p, q = dx[i], point.slack[i], point.other[i]
            dx[i] = newton.center[i]
            if p > 0.0:
                room = x[i] - scaled.lo[i]
                product = point.slack_step[i] * before if second else 0.0
                point.slack_step[i] = (aim - p * room - product - p * dx[i]) / room
            if q > 0.0:
                room = scaled.hi[i] - x[i]
                product = -point.other_step[i] * before if second else 0.0
                point.other_step[i] = (aim - q * room - product + q * dx[i]) / room


@machine_code
def _room(rows: Rows, blocks: int, work: SolverWork) -> float:
    """Return the step length to the boundary of an impulse or slack, at most 10."""
    scaled, point, least = work.scaled, work.interior, 10.0
    x, dx = work.iterates.x, work.iterates.dx
    for k in range(blocks):
        first, count = rows.start[k], rows.count[k]
        if scaled.law[k] == CONE:
            least = min(least, cone_room(first, count, scaled.c[k], k, point, x, dx))
            continue
        for i in range(first, first + count):
            if point.slack[i] > 0.0:
                least = _nearer(least, x[i] - scaled.lo[i], dx[i])
                least = _nearer(least, point.slack[i], point.slack_step[i])
            if point.other[i] > 0.0:
                least = _nearer(least, scaled.hi[i] - x[i], -dx[i])
                least = _nearer(least, point.other[i], point.other_step[i])
    return least


@machine_code
def _nearer(least: float, room: float, step: float) -> float:
    """Return the smaller of `least` and the length of steps that use up the room."""
    return min(least, -room / step) if step < 0.0 else least


@machine_code
def _move(rows: Rows, blocks: int, m: int, work: SolverWork, step: float) -> None:
    """Add `step` times their changes to impulses and slacks, in place."""
    point, x, dx = work.interior, work.iterates.x, work.iterates.dx
    for i in range(m):
        x[i] += step * dx[i]
        point.slack[i] += step * point.slack_step[i]
        point.other[i] += step * point.other_step[i]
    for k in range(blocks):
        point.eta[k] += step * point.eta_step[k]
