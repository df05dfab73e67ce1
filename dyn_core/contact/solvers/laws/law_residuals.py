"""Residuals of the exact contact laws, in the subset of machine code."""

from __future__ import annotations

import math

from dyn_core.contact.problem.projections import HUGE, near_cone, relative_step
from dyn_core.contact.problem.rows import BOX, UNILATERAL, Rows
from dyn_core.contact.solvers.laws.cones import (
    cone_coefficient,
    is_cone,
    row_bounds,
    row_weight,
)
from dyn_core.contact.solvers.matrices.row_products import (
    add_transposed,
    multiply,
    row_response,
)
from dyn_core.engines.machine_code import FloatArray, machine_code


@machine_code
def row_residuals(
    rows: Rows,
    blocks: int,
    nv: int,
    z: FloatArray,
    u: FloatArray,
    residuals: FloatArray,
) -> None:
    """Compute velocities and the residuals of problem/residuals.py, `law_residuals`.

        u = Y (Y.T impulse) + b + compliance impulse

    z becomes Y.T impulse; residuals are all NaN if a velocity is not finite. The scale
    of velocities for `law` is the largest |b|, rows.rest at least.

    Source: LCP-12, LCP-16 (rows and lengths), LCP-5 (boxes).
    """
    for i in range(nv):
        z[i] = 0.0
    add_transposed(rows, rows.support, rows.y, blocks, rows.impulse, z)
    multiply(rows, rows.support, rows.y, blocks, z, u)
    speed, sound = rows.rest[0], 0.0
    for k in range(blocks):
        for row in range(rows.count[k]):
            i = rows.start[k] + row
            u[i] += rows.b[i] + rows.compliance[i] * rows.impulse[i]
            speed = max(speed, abs(rows.b[i]))
            sound += u[i] - u[i]  # NaN if a velocity is not finite
    for j in range(5):
        residuals[j] = 0.0
    for k in range(blocks):
        if is_cone(rows, k):
            _cone(rows, k, u, speed, residuals)
        else:
            for row in range(rows.count[k]):
                _row(rows, k, row, u, speed, residuals)
    if not sound == 0.0:
        for j in range(5):
            residuals[j] = sound


@machine_code
def _raise(residuals: FloatArray, k: int, value: float) -> None:
    """Set residuals[k] to the maximum of itself and `value`."""
    residuals[k] = max(residuals[k], value)


@machine_code
def _row(
    rows: Rows, k: int, row: int, u: FloatArray, speed: float, residuals: FloatArray
) -> None:
    """Raise each residual to at least its value for a row of a block without a cone.

    u are the velocities of all rows with b and compliance; `speed`, the largest |b| or
    rows.rest, may be 0 [m/s]; `residuals` have the order of row_residuals.
    """
    i = rows.start[k] + row
    x, v = rows.impulse[i], u[i]
    response = row_response(rows, k, row)
    r = response if response > 0.0 else 1.0
    lo, hi = row_bounds(rows, k, row)
    room = x - lo if v > 0.0 else hi - x  # zero unless v is zero
    endless = room > HUGE
    _raise(residuals, 0, max(max(lo - x, x - hi), 0.0))
    _raise(residuals, 1, abs(v) if endless else 0.0)
    across = abs(v * (0.0 if endless else room))
    if rows.kind[k] < BOX:  # of the impulse, not of its distance to a bound
        across = abs(x * v)
        _raise(residuals, 1, max(-v, 0.0))
    _raise(residuals, 2, across)
    change = max(lo, min(x - v / r, hi)) - x
    if rows.kind[k] < UNILATERAL:
        change = v / r
    _raise(residuals, 4, relative_step(abs(change), abs(x), r, speed))


@machine_code
def _cone(
    rows: Rows, k: int, u: FloatArray, speed: float, residuals: FloatArray
) -> None:
    """Raise each residual to at least its value for one friction cone; see _row."""
    i, count = rows.start[k], rows.count[k]
    c = cone_coefficient(rows, k)
    n, v_n = rows.impulse[i], u[i]
    r = row_response(rows, k, 0)
    squares, speeds, stray, power = 0.0, 0.0, 0.0, 0.0
    for row in range(1, count):
        w, x, v = row_weight(rows, k, row, c), rows.impulse[i + row], u[i + row]
        r = max(r, row_response(rows, k, row))
        t = x / w if w > 0.0 else 0.0
        squares += t * t
        stray += 0.0 if w > 0.0 else x * x
        speeds += w * v * (w * v)
        power += x * v
    r = r if r > 0.0 else 1.0
    s, length = c * math.sqrt(speeds), math.sqrt(squares)
    slope = math.sqrt(1.0 + c * c)
    primal = max(length - c * n, 0.0) / slope
    if c * length <= -n and n < 0.0:
        primal = math.sqrt(n * n + squares)
    _raise(residuals, 0, math.sqrt(primal * primal + stray))
    steps = 0.0
    for row in range(1, count):
        w, x = row_weight(rows, k, row, c), rows.impulse[i + row]
        step = (x / w if w > 0.0 else 0.0) - w * u[i + row] / r
        steps += step * step
    near_n, factor = near_cone(c, n - (v_n + s) / r, math.sqrt(steps))
    change = max(abs(near_n - n), abs(max(n - v_n / r, 0.0) - n))
    for row in range(1, count):
        w, x = row_weight(rows, k, row, c), rows.impulse[i + row]
        t = x / w if w > 0.0 else 0.0
        change = max(change, abs(factor * (t - w * u[i + row] / r) - t))
        change = max(change, 0.0 if w > 0.0 else abs(x))
    size = math.sqrt(n * n + squares + stray)
    _raise(residuals, 4, relative_step(change, size, r, speed))
    _raise(residuals, 1, max(-v_n, 0.0))
    _raise(residuals, 2, abs(n * (v_n + s) + power))
    _raise(residuals, 3, abs(n * s + power))
