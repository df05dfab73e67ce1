"""The matrix of a Newton step, 1 + Y.T S Y, in the subset of machine code."""

from __future__ import annotations

import math

from dyn_core.contact.problem.rows import Rows
from dyn_core.contact.solvers.responses import OPEN, SLIP, target
from dyn_core.contact.solvers.scaling import CONE, Scaled, tangent_length
from dyn_core.contact.solvers.skyline import Skyline
from dyn_core.contact.solvers.work import NewtonWork
from dyn_core.engines.machine_code import Reals, machine_code


@machine_code
def assemble(
    rows: Rows,
    blocks: int,
    scaled: Scaled,
    envelope: Skyline,
    work: NewtonWork,
    unknowns: int,
    epsilon: float,
    exact: bool,
) -> bool:
    """Set the envelope to 1 + Y.T S Y; return whether it has an upper part of its own.

    Blocks next to each other with one support are added up before they are placed.
    """
    values, begin = envelope.values, envelope.begin
    slips = False
    for k in range(blocks):
        if exact and scaled.law[k] == CONE and work.mode[rows.start[k]] == SLIP:
            slips = True
    for i in range(unknowns):
        for j in range(begin[i] + envelope.first[i], begin[i] + i):
            values[j] = 0.0
        values[begin[i] + i] = 1.0
    if slips:
        for i in range(unknowns):
            for j in range(begin[i] + envelope.first[i], begin[i] + i):
                work.upper[j] = 0.0
    k = 0
    while k < blocks:
        width = rows.support_count[k]
        for e in range(width * width):
            work.square[e] = 0.0
        first = k
        while k < blocks and _alike(rows, first, k):
            if _slope_times_Y(rows, scaled, work, k, epsilon, exact):
                _add_product(rows, scaled, work, k, slips)
            k += 1
        _place(rows, envelope, work.square, work.upper, first, slips)
    return slips


@machine_code
def _alike(rows: Rows, k: int, other: int) -> bool:
    """Return whether two blocks have the same support."""
    a, b, width = (
        rows.support_start[k],
        rows.support_start[other],
        rows.support_count[k],
    )
    if not width == rows.support_count[other]:
        return False
    if a == b:
        return True
    for j in range(width):
        if not rows.support[a + j] == rows.support[b + j]:
            return False
    return True


@machine_code
def _add_product(
    rows: Rows, scaled: Scaled, work: NewtonWork, k: int, slips: bool
) -> None:
    """Add Y.T S Y of block k to `square`, up to the diagonal if it is symmetric."""
    width, a = rows.support_count[k], rows.y_start[k]
    square, slope_y = work.square, work.slope_y
    if rows.count[k] == 3:
        b, c = a + width, a + 2 * width
        for j in range(width):
            u, v, w = scaled.y[a + j], scaled.y[b + j], scaled.y[c + j]
            for e in range(width if slips else j + 1):
                more = u * slope_y[a + e] + v * slope_y[b + e] + w * slope_y[c + e]
                square[j * width + e] += more
        return
    for row in range(rows.count[k]):
        place = a + row * width
        for j in range(width):
            value = scaled.y[place + j]
            for e in range(width if slips else j + 1):
                square[j * width + e] += value * slope_y[place + e]


@machine_code
def _place(
    rows: Rows, envelope: Skyline, square: Reals, upper: Reals, k: int, slips: bool
) -> None:
    """Add `square` of the support of block k to the envelope."""
    s, width = rows.support_start[k], rows.support_count[k]
    local, begin, values = envelope.local, envelope.begin, envelope.values
    for j in range(width):
        p = local[s + j]
        for e in range(width if slips else j + 1):
            q = local[s + e]
            if q <= p:
                values[begin[p] + q] += square[j * width + e]
            elif slips:
                upper[begin[q] + p] += square[j * width + e]
            else:
                values[begin[q] + p] += square[j * width + e]


@machine_code
def _slope_times_Y(
    rows: Rows,
    scaled: Scaled,
    work: NewtonWork,
    k: int,
    epsilon: float,
    exact: bool,
) -> bool:
    """Set slope_y to S Y of block k; return whether it is not zero."""
    first, count = rows.start[k], rows.count[k]
    width, a = rows.support_count[k], rows.y_start[k]
    if scaled.law[k] == CONE and work.mode[first] == OPEN:
        return False
    if scaled.law[k] == CONE and work.mode[first] == SLIP:
        _slip_slope(rows, scaled, work, k, epsilon, exact)
        return True
    for row in range(count):
        i, place = first + row, a + row * width
        weight = 1.0 / (scaled.R[i] + epsilon)
        if not scaled.law[k] == CONE and work.mode[i] == OPEN:
            weight = 0.0
        for j in range(width):
            work.slope_y[place + j] = weight * scaled.y[place + j]
    return True


@machine_code
def _slip_slope(
    rows: Rows, scaled: Scaled, work: NewtonWork, k: int, epsilon: float, exact: bool
) -> None:
    """Set slope_y to S Y of a sliding cone, with t the direction of friction.

    Coulomb's law:   S_nn = 1 / R_n,   S_Tn = c t / R_n,   S_nT = 0,
    the relaxation:  S_nn = 1 / (R_n + c² R_t),   S_Tn = c t S_nn = S_nT.T,
    S_TT = c lambda_n / |y_T| (1 - t t.T) / R_t, and in the relaxation c² t t.T S_nn
    """
    first, count = rows.start[k], rows.count[k]
    width, a, c = rows.support_count[k], rows.y_start[k], scaled.c[k]
    Rn, Rt = scaled.R[first] + epsilon, scaled.R[first + 1] + epsilon
    length = tangent_length(first, count, work.gamma)
    inverse = 1.0 / length if length > 0.0 else 0.0
    squares = 0.0
    for i in range(first + 1, first + count):
        t = target(scaled, work, i, epsilon, 0.0)
        squares += t * t
    eta = length / (math.sqrt(squares) * Rt) if squares > 0.0 else 0.0
    for j in range(width):
        along = 0.0
        for row in range(1, count):
            along += inverse * work.gamma[first + row] * scaled.y[a + row * width + j]
        normal = scaled.y[a + j] / Rn
        if not exact:
            normal = (scaled.y[a + j] + c * along) / (Rn + c * c * Rt)
        work.slope_y[a + j] = normal
        for row in range(1, count):
            t = inverse * work.gamma[first + row]
            rest = scaled.y[a + row * width + j] - t * along
            work.slope_y[a + row * width + j] = c * t * normal + eta * rest
