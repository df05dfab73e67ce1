"""Residuals of the contact laws, for floats and traced algorithms alike.

A layout has m rows and k friction coefficients. Residuals are primal, the distance of
impulses to their set; dual, the speed at which contacts close, and that of free rows;
complementarity, |lambda . (u + s)|; dissipation, the deficit of the friction work; and
law, the relative step of the projection on the law. b contains the bias.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

from dyn_core.contact.problem.layout import ConstraintBlock, ConstraintLayout
from dyn_core.contact.problem.projections import HUGE, near_cone, relative_step, share
from dyn_core.numbers.scalar import absolute, logical_and, maximum, minimum, sqrt, where

# infeasible: no solution exists. ray: Lemke's method ended on a ray, which is no proof
# of that with friction. not_unique: the law holds, and other impulses satisfy it, too.
# no_room: the arrays of the solver are too small, nothing is solved. wedged: rebounds
# and push-outs were left out. frozen_friction: friction has fixed bounds.
STATUSES = ("converged", "max_iterations", "infeasible", "ray", "not_unique", "no_room",
            "wedged", "frozen_friction")  # fmt: skip
RESIDUALS = ("primal", "dual", "complementarity", "dissipation", "law")
CONVERGED, MAX_ITERATIONS, INFEASIBLE, RAY, NOT_UNIQUE = map(float, range(5))
LARGEST = sys.float_info.max
NEWTON = 10  # Newton steps of the projection on an ellipsoid


def law_residuals(
    layout: ConstraintLayout,
    impulse: Sequence[Any],
    velocity: Sequence[Any],
    mu: Sequence[Any],
    lo: Sequence[Any],
    hi: Sequence[Any],
    response: Sequence[Any],
    speed: Any,
    exact: bool = True,
) -> tuple[Any, ...]:
    """Return a tuple of residuals of the exact contact laws, the largest over blocks.

        K_mu = {|lambda_T / mu| <= lambda_n},   s = (|mu u_T|, 0),
        K_mu contains lambda, orthogonal to u + s in K_mu*        (De Saxce)

    Torsional, rolling and tangential rows share one ellipsoid; each is weighted by its
    coefficient over the largest of the block. A row whose coefficient is zero has no
    impulse.

    Args:
        layout: Blocks.
        impulse: lambda, m [N·s].
        velocity: u = (G + R) lambda + b, with R the compliance, m [m/s].
        mu: Friction coefficients, k [1 | m].
        lo, hi: Bounds of boxes, m [N·s].
        response: Diagonal of G + R, m [(m/s)/(N·s)].
        speed: Largest free velocity |b|, the scale of velocities [m/s].
        exact: Whether `law` is measured by Coulomb's law; False: by the convex
            relaxation, s = 0.

    Returns:
        primal: Distance of lambda to its set [N·s]. dual: Speed at which contacts
        close, and velocity of free rows [m/s]. complementarity: |lambda . (u + s)| [J].
        dissipation: Deficit of the friction work to its maximum [J]. law: Step of the
        projection lambda -> Pi(lambda - (u + s) / response), and of the normal alone,
        lambda_n -> max(0, lambda_n - u_n / response), over speed / response
        + 1e-9 lambda of the block [1]; zero where all laws hold. All are zero without
        blocks, and NaN if an impulse or velocity is not finite.

    Source: LCP-12, LCP-16 (rows and lengths), LCP-5 (boxes).
    """
    worst: list[Any] = [0.0] * len(RESIDUALS)
    rows = (impulse, velocity, lo, hi, response)
    for block in layout.blocks:
        if block.kind == "contact":
            numbers = impulse, velocity, mu, response, speed
            block_residuals = [_contact(block, *numbers, exact)]
        else:
            block_residuals = [
                _row(block.kind, [x[i] for x in rows], speed) for i in block.all
            ]
        for parts in block_residuals:
            worst = [maximum(a, b) for a, b in zip(worst, parts, strict=True)]
    nothing: Any = 0.0  # NaN if a number is not finite, which `maximum` may hide
    for x in (*impulse, *velocity):
        nothing = nothing + where(absolute(x) <= LARGEST, 0.0, math.nan)
    return tuple(x + nothing for x in worst)


def row_projection(kind: str, x: Any, lo: Any, hi: Any) -> Any:
    """Return the nearest impulse that the law of a row without a cone allows [N·s].

    Args:
        kind: One of layout.KINDS; "contact" is the normal row alone. "bilateral" and
            "prescribed" return x.
        x: Impulse [N·s].
        lo, hi: Bounds, used by "box" only, lo <= hi [N·s].
    """
    if kind == "box":
        return maximum(lo, minimum(x, hi))
    return maximum(x, 0.0) if kind in ("unilateral", "contact") else x


def _row(kind: str, row: Sequence[Any], speed: Any) -> tuple[Any, ...]:
    """Return (primal, dual, complementarity, dissipation, law) of a row without a cone.

    `row` is impulse, velocity (G + R) lambda + b, lo and hi (of "box" only), and
    response, its diagonal entry of G + R, 0 counts as 1; law_residuals has definitions
    and units. `speed` is the scale of velocities of `law`; may be 0. dissipation is 0.
    """
    x, u, lo, hi, response = row
    r = where(response > 0.0, response, 1.0)
    free = kind in ("bilateral", "prescribed")
    change = u / r if free else row_projection(kind, x - u / r, lo, hi) - x
    law = relative_step(absolute(change), absolute(x), r, speed)
    if kind != "box":
        outside = 0.0 if free else maximum(-x, 0.0)
        dual = absolute(u) if free else maximum(-u, 0.0)
        return outside, dual, absolute(x * u), 0.0, law
    outside = maximum(maximum(lo - x, x - hi), 0.0)
    room = where(u > 0.0, x - lo, hi - x)  # zero unless u is zero
    endless = room > HUGE
    across = absolute(u * where(endless, 0.0, room))
    return outside, where(endless, absolute(u), 0.0), across, 0.0, law


def weights(block: ConstraintBlock, mu: Sequence[Any]) -> tuple[Any, list[Any]]:
    """Return a contact's largest coefficient, and the weights of its tangent rows.

        weight = coefficient / largest coefficient

    Weights are in the order of block.tangent: 1 for tangents alone, also without
    friction; with torsion or rolling, 0 for a zero coefficient. Impulses divided by
    their weights lie in a circular cone. A contact of one row has the coefficient 0 and
    no weights.

    Args:
        block: A contact.
        mu: Friction coefficients of all blocks, (k,).
    """
    coefficients = [mu[c] for c in block.coefficients]
    if not coefficients:
        return 0.0, []
    if len(set(block.coefficients)) == 1:
        return coefficients[0], [1.0] * len(coefficients)
    largest = coefficients[0]
    for c in coefficients[1:]:
        largest = maximum(largest, c)
    return largest, [share(x, largest) for x in coefficients]


def cone_projection(c: Any, n: Any, t: Sequence[Any]) -> tuple[Any, list[Any]]:
    """Return the point of the cone |t| <= c n, n >= 0 nearest to (n, t).

    Args:
        c: Coefficient of friction.
        n, t: Normal entry, and tangent entries.

    Returns:
        Normal entry, and the list of the tangent entries; see near_cone.
    """
    normal, factor = near_cone(c, n, norm(t))
    return normal, [factor * x for x in t]


def disc_projection(radius: Any, y: Sequence[Any], d: Sequence[Any]) -> list[Any]:
    """Return the point z of the disc |z| <= radius nearest to y, a list.

        minimise sum (z_i - y_i)² / d_i:   z_i = y_i / (1 + nu d_i),   |z| = radius

    nu is the result of ten Newton steps on 1 / |z|, which converge from below; then
    z is scaled to |z| = radius. If all d are the same object, no steps are needed: z is
    the scaled y. Inside the disc z is y itself; outside a disc whose radius is 0 or
    less, z is zero.

    Args:
        radius: Radius of the disc.
        y: Point that is projected, a sequence of any length.
        d: Squared scale of each entry of y, above zero.
    """
    alike = all(x is d[0] for x in d)
    outside = norm(y) > radius
    divisor = where(radius > 0.0, radius, 1.0)
    nu: Any = 0.0
    z = list(y)
    for _ in range(0 if alike else NEWTON):
        size = norm(z)
        curvature: Any = 0.0
        for a, di in zip(z, d, strict=True):
            curvature = curvature + a * a * di / (1.0 + nu * di)
        step = (
            (size / divisor - 1.0)
            * size
            * size
            / where(curvature > 0.0, curvature, 1.0)
        )
        nu = maximum(nu + step, 0.0)
        z = [x / (1.0 + nu * di) for x, di in zip(y, d, strict=True)]
    size = norm(z)
    factor = where(radius > 0.0, radius / where(size > 0.0, size, 1.0), 0.0)
    return [where(outside, factor * a, x) for a, x in zip(z, y, strict=True)]


def norm(t: Sequence[Any]) -> Any:
    """Return the Euclidean norm of a list of numbers."""
    squares: Any = 0.0
    for x in t:
        squares = squares + x * x
    return sqrt(squares)


def _contact(
    block: ConstraintBlock,
    impulse: Sequence[Any],
    velocity: Sequence[Any],
    mu: Sequence[Any],
    response: Sequence[Any],
    speed: Any,
    exact: bool,
) -> tuple[Any, ...]:
    """Return (primal, dual, complementarity, dissipation, law) of one contact.

    law_residuals has definitions and units; all arguments are of all rows or blocks.
    `law` alone is scaled by `speed`, which may be 0, and measured by Coulomb's law if
    `exact`, else by its convex relaxation, s = 0.
    """
    n, u_n = impulse[block.start], velocity[block.start]
    c, w = weights(block, mu)
    raw = [impulse[i] for i in block.tangent]
    t = [
        where(wi > 0.0, x / where(wi > 0.0, wi, 1.0), 0.0)
        for x, wi in zip(raw, w, strict=True)
    ]
    stray: list[Any] = []  # impulses of rows without friction beside rows with it
    if len(set(block.coefficients)) > 1:
        stray = [where(wi > 0.0, 0.0, x) for x, wi in zip(raw, w, strict=True)]
    v = [wi * velocity[i] for wi, i in zip(w, block.tangent, strict=True)]
    s = c * norm(v)
    slope = sqrt(1.0 + c * c)
    length = norm(t)
    polar = logical_and(c * length <= -n, n < 0.0)
    primal = where(polar, norm([n, length]), maximum(length - c * n, 0.0) / slope)
    primal = norm([primal, *stray]) if stray else primal
    power: Any = 0.0
    for x, i in zip(raw, block.tangent, strict=True):
        power = power + x * velocity[i]
    largest: Any = response[block.start]
    for i in block.tangent:
        largest = maximum(largest, response[i])
    r = where(largest > 0.0, largest, 1.0)
    step = [x - y / r for x, y in zip(t, v, strict=True)]
    shift = (u_n + s) / r if exact else u_n / r
    near_n, near_t = cone_projection(c, n - shift, step)
    change = absolute(near_n - n)
    if exact:  # the normal alone: a flat cone hides its error
        change = maximum(change, absolute(maximum(n - u_n / r, 0.0) - n))
    for x, y in zip(near_t, t, strict=True):
        change = maximum(change, absolute(x - y))
    for x in stray:
        change = maximum(change, absolute(x))
    law = relative_step(change, norm([n, length, *stray]), r, speed)
    dual = maximum(-u_n, 0.0)
    work = n * (u_n + s) + power
    return primal, dual, absolute(work), absolute(n * s + power), law
