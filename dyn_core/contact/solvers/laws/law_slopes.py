"""Slopes S of contact laws, and the matrix K of a Newton step.

    dx = d - S w,   K = 1 + Y.T S Y

In the subset of machine code. S of a cone has a diagonal, and two outer products:

    S_nn = diagonal,   S_Tn = tilt S_nn,   S_nT = S_nn lean.T,
    S_TT = diag(diagonal) + left right.T + tilt S_nn lean.T

S of other blocks is diagonal. Entry (i, j) of K is at begin[i] + j of envelope.values
for j <= i, and at begin[j] + i of work.upper for j > i if K is not symmetric.
"""

from __future__ import annotations

import math

from dyn_core.contact.problem.rows import Rows
from dyn_core.contact.solvers.laws.block_responses import OPEN, SLIP, target
from dyn_core.contact.solvers.laws.scaling import CONE, FROZEN, Scaled, tangent_length
from dyn_core.contact.solvers.matrices.skyline import Skyline
from dyn_core.contact.solvers.solver_memory import NewtonWork, Slopes
from dyn_core.engines.machine_code import FloatArray, any_lane, machine_code


@machine_code
def assemble(
    rows: Rows,
    blocks: int,
    scaled: Scaled,
    envelope: Skyline,
    work: NewtonWork,
    unknowns: int,
    slips: bool,
) -> None:
    """Set the envelope to K = 1 + Y.T S Y.

    Args:
        rows, blocks, scaled: Problem, its number of blocks, scaled problem.
        envelope: Layout of the matrix; its values are set. Blocks with envelope.used =
            0 are skipped: their S must be 0.
        work: Work arrays; reads the slopes, overwrites slope_y and square.
        unknowns: Number of rows of the matrix.
        slips: Whether K is not symmetric; its upper part is then set in work.upper.
    """
    values, begin = envelope.values, envelope.begin
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
        if envelope.used[k] == 0:
            k += 1
            continue
        if k + 1 == blocks or not _alike(rows, k, k + 1):
            if _slope_times_Y(rows, scaled, work, k):
                _place_product(rows, scaled, work, envelope, k, slips)
            k += 1
            continue
        # Neighbours with the same support are summed up before they are scattered.
        width = rows.support_count[k]
        for e in range(width * width):
            work.square[e] = 0.0
        first, some = k, False
        while k < blocks and _alike(rows, first, k):
            if _slope_times_Y(rows, scaled, work, k):
                _add_product(rows, scaled, work, k, slips)
                some = True
            k += 1
        if some:
            _place(rows, envelope, work.square, work.upper, first, slips)


@machine_code
def _alike(rows: Rows, k: int, other: int) -> bool:
    """Return whether blocks k and `other` have the same support, in the same order."""
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
    """Add Y.T S Y of block k to work.square, on its support row by row, from slope_y.

    Unless `slips`, the product is symmetric and only its lower triangle is added.
    """
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
def _place_product(
    rows: Rows, scaled: Scaled, work: NewtonWork, envelope: Skyline, k: int, slips: bool
) -> None:
    """Add Y.T S Y of block k to the envelope, from S Y in work.slope_y.

    If `slips`, the product is not symmetric: its upper triangle is added to work.upper.
    """
    s, width, a = rows.support_start[k], rows.support_count[k], rows.y_start[k]
    local, begin, values = envelope.local, envelope.begin, envelope.values
    y, slope_y, count = scaled.y, work.slope_y, rows.count[k]
    for j in range(width):
        p, u, v, w = local[s + j], y[a + j], 0.0, 0.0
        if count == 3:
            v, w = y[a + width + j], y[a + 2 * width + j]
        for e in range(width if slips else j + 1):
            more = u * slope_y[a + e]
            if count == 3:
                b = a + width + e
                more = more + v * slope_y[b] + w * slope_y[b + width]
            else:
                for row in range(1, count):
                    b = a + row * width
                    more += y[b + j] * slope_y[b + e]
            q = local[s + e]
            if q <= p:
                values[begin[p] + q] += more
            elif slips:
                work.upper[begin[q] + p] += more
            else:
                values[begin[q] + p] += more


@machine_code
def _place(
    rows: Rows,
    envelope: Skyline,
    square: FloatArray,
    upper: FloatArray,
    k: int,
    slips: bool,
) -> None:
    """Add `square` on the support of block k, row by row, to the envelope.

    If `slips`, it is not symmetric and its upper triangle is added to `upper`; else its
    lower triangle is read.
    """
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
def _slope_times_Y(rows: Rows, scaled: Scaled, work: NewtonWork, k: int) -> bool:
    """Set work.slope_y to S Y of block k; return whether S is not zero (in any lane).

    A cone with S = 0 leaves slope_y unchanged.
    """
    first, count, slopes = rows.start[k], rows.count[k], work.slopes
    width, a = rows.support_count[k], rows.y_start[k]
    y, slope_y = scaled.y, work.slope_y
    if scaled.law[k] >= CONE:
        some = abs(slopes.diagonal[first]) + abs(slopes.diagonal[first + 1])
        if not any_lane(some != 0.0):
            return False
        for j in range(width):
            leaning, across = y[a + j], 0.0
            for row in range(1, count):
                value = y[a + row * width + j]
                leaning += slopes.lean[first + row] * value
                across += slopes.right[first + row] * value
            normal = slopes.diagonal[first] * leaning
            slope_y[a + j] = normal
            for row in range(1, count):
                i, place = first + row, a + row * width + j
                slope_y[place] = (
                    slopes.tilt[i] * normal
                    + slopes.diagonal[i] * y[place]
                    + slopes.left[i] * across
                )
        return True
    some = 0.0
    for row in range(count):
        weight, place = slopes.diagonal[first + row], a + row * width
        some += abs(weight)
        for j in range(width):
            slope_y[place + j] = weight * y[place + j]
    return any_lane(some != 0.0)


@machine_code
def follow_slopes(
    rows: Rows, k: int, cone: bool, slopes: Slopes, w: FloatArray, dx: FloatArray
) -> None:
    """Subtract S w of block k from dx; only a `cone` has couplings in S."""
    first, count = rows.start[k], rows.count[k]
    if not cone:
        for i in range(first, first + count):
            dx[i] -= slopes.diagonal[i] * w[i]
        return
    leaning, across = w[first], 0.0
    for i in range(first + 1, first + count):
        leaning += slopes.lean[i] * w[i]
        across += slopes.right[i] * w[i]
    normal = slopes.diagonal[first] * leaning
    dx[first] -= normal
    for i in range(first + 1, first + count):
        dx[i] -= (
            slopes.tilt[i] * normal
            + slopes.diagonal[i] * w[i]
            + slopes.left[i] * across
        )


@machine_code
def stick_slope(
    rows: Rows, scaled: Scaled, slopes: Slopes, k: int, epsilon: float
) -> None:
    """Set S of block k to 1 / (R + epsilon) on the diagonal, without couplings."""
    for i in range(rows.start[k], rows.start[k] + rows.count[k]):
        slopes.diagonal[i] = 1.0 / (scaled.R[i] + epsilon)
        slopes.tilt[i], slopes.lean[i] = 0.0, 0.0
        slopes.left[i], slopes.right[i] = 0.0, 0.0


@machine_code
def law_slopes(
    rows: Rows, blocks: int, scaled: Scaled, work: NewtonWork, epsilon: float,
    exact: bool,
) -> bool:  # fmt: skip
    """Set work.slopes of all blocks in their modes; return if S is not symmetric.

    work.u, center and du must be finite.
    """
    slopes, slips = work.slopes, False
    for k in range(blocks):
        first, count = rows.start[k], rows.count[k]
        stick_slope(rows, scaled, slopes, k, epsilon)
        if scaled.law[k] == CONE:
            if work.mode[first] == OPEN:
                for i in range(first, first + count):
                    slopes.diagonal[i] = 0.0
            if work.mode[first] == SLIP:
                _slip_slope(rows, scaled, work, k, epsilon, exact)
                slips = slips or exact
            continue
        if scaled.law[k] == FROZEN:
            if work.mode[first] == OPEN:
                slopes.diagonal[first] = 0.0
            if work.mode[first + 1] == SLIP:
                _across_slope(rows, scaled, work, k, epsilon)
            continue
        for i in range(first, first + count):
            if work.mode[i] == OPEN:
                slopes.diagonal[i] = 0.0
    return slips


@machine_code
def _slip_slope(
    rows: Rows, scaled: Scaled, work: NewtonWork, k: int, epsilon: float, exact: bool
) -> None:
    """Set S of block k, a sliding cone, with t the direction of friction.

    Coulomb's law:   S_nn = 1 / R_n,   S_Tn = c t / R_n,   S_nT = 0,
    the relaxation:  S_nn = 1 / (R_n + c² R_t),   S_Tn = c t S_nn = S_nT.T,
    S_TT = c lambda_n / |y_T| (1 - t t.T) / R_t, and in the relaxation c² t t.T S_nn

    y are the impulses before the law is applied (`target`), lambda those after it. The
    first term of S_TT is zero if y_T = 0. R_n and R_t have `epsilon` added. How S is
    stored is told in the module.
    """
    first, count, slopes = rows.start[k], rows.count[k], work.slopes
    c = scaled.c[k]
    Rn, Rt = scaled.R[first] + epsilon, scaled.R[first + 1] + epsilon
    _across_slope(rows, scaled, work, k, epsilon)
    slopes.diagonal[first] = 1.0 / (Rn if exact else Rn + c * c * Rt)
    for i in range(first + 1, first + count):
        t = slopes.right[i]
        slopes.tilt[i], slopes.lean[i] = c * t, 0.0 if exact else c * t


@machine_code
def _across_slope(
    rows: Rows, scaled: Scaled, work: NewtonWork, k: int, epsilon: float
) -> None:
    """Set S_TT of the sliding tangents of block k; slopes.right becomes t.

        S_TT = eta (1 - t t.T),  eta = |gamma_T| / (|y_T| R_t),  t = gamma_T / |gamma_T|

    y are the impulses before the law is applied (`target`). eta = 0 if y_T = 0, t = 0
    if gamma_T = 0. R_t has `epsilon` added.
    """
    first, count, slopes = rows.start[k], rows.count[k], work.slopes
    length = tangent_length(first, count, work.gamma)
    inverse = 1.0 / length if length > 0.0 else 0.0
    squares = 0.0
    for i in range(first + 1, first + count):
        t = target(scaled, work, i, epsilon, 0.0)
        squares += t * t
    Rt = scaled.R[first + 1] + epsilon
    eta = length / (math.sqrt(squares) * Rt) if squares > 0.0 else 0.0
    for i in range(first + 1, first + count):
        t = inverse * work.gamma[i]
        slopes.diagonal[i] = eta
        slopes.left[i], slopes.right[i] = -eta * t, t
