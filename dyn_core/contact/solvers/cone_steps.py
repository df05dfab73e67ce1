"""Steps of the interior-point method in one cone, in the subset of machine code.

    s n = e,   mu n eta + v . t = e,   mu n v + eta t = 0,
    s = u_n,   v = u_T,   n, t: impulses

e is the target of the products, and goes to zero. The slacks of a block's rows are s,
then v; eta is the bound of |v|.
"""

from __future__ import annotations

import math

from dyn_core.contact.solvers.laws.scaling import Scaled
from dyn_core.contact.solvers.solver_memory import ConeSlacks, Slopes
from dyn_core.engines.machine_code import FloatArray, machine_code

SMOOTH = 1e-7  # cones with a coefficient up to this one are frictionless


@machine_code
def start_cone(
    first: int, count: int, scaled: Scaled, k: int, point: ConeSlacks, x: FloatArray
) -> int:
    """Set the initial impulses and slacks of a cone, inside of all bounds.

    Args:
        first, count: First row and number of rows of the block.
        scaled: Scaled problem.
        k: Index of the block.
        point: Slack variables; changed.
        x: Impulses, (rows,); changed.

    Returns:
        Number of complementarity products: 2, or 1 without friction.
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

    Args:
        first, count: First row and number of rows of the block.
        c: Coefficient of the circular cone.
        k: Index of the block.
        point: Slack variables and their changes.
        x, dx: Impulses and their changes, (rows,).
        step: Step length.
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
    """Return the residuals aim - product of s n, and of mu n eta + v . t.

    Args:
        first, count: First row and number of rows of the block.
        c: Coefficient of the circular cone.
        k: Index of the block.
        point: Slack variables, and their changes in the predictor step.
        x, dx: Impulses, and their changes in the predictor step, (rows,).
        aim: Target e of the products.
        second: Whether the products of the changes are subtracted (second order).
        missing: Set to the residuals of mu n v + eta t = 0 at the tangents, (rows,).
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

    Without friction, S of the tangents is zero, and d removes their impulses.

    Args:
        first, count: First row and number of rows of the block.
        scaled: Scaled problem.
        k: Index of the block.
        point: Slack variables and changes; missing, constant, by_normal are set.
        slopes: S; set.
        x, dx: Impulses, and their changes in the predictor step, (rows,).
        u: Velocities minus slacks, (rows,).
        d: Set, (rows,).
        aim: Target e of the products.
        second: Whether the products of the changes are subtracted (second order).
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
    """Set the changes of a cone's impulses and slacks from the solution of a step.

    Args:
        first, count: First row and number of rows of the block.
        scaled: Scaled problem.
        k: Index of the block.
        point: Slack variables; slack_step and eta_step are set.
        slopes: S from linearise_cone.
        dx: Set to `after`, (rows,).
        after: Changes of the impulses from the linear system, (rows,).
        w: Y dz, (rows,).
        u: Velocities minus slacks, (rows,).
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

    Args:
        first, count: First row and number of rows of the block.
        c: Coefficient of the circular cone.
        k: Index of the block.
        point: Slack variables and their changes.
        x, dx: Impulses and their changes, (rows,).
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
    """Return the step length at which t leaves the cone |t| <= top, at most 10.

    Args:
        top, rise: Bound of |t|, and its change in a full step.
        size, along, step: t . t, t . dt and dt . dt, with dt the change of t.
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
