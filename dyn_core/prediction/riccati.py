"""One Riccati sweep with bounds on the joint forces of each knot, as machine code.

In the subset of machine code: no size and no index is checked, and arrays that are too
short are read and written beyond their end. What differs between problems is chosen,
not branched on: in lanes (`sweep_lanes`) each problem has the bits that it has alone,
and none is dropped. A state x has nx = 2 nv entries: position, then velocity. N is the
number of steps, nu that of the joint forces in du, see Sweep, and s = nx + 1.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dyn_core.contact.solvers.matrices.dense import TILE, product_of_columns
from dyn_core.engines.machine_code import (
    FloatArray,
    FloatArray2,
    FloatArray3,
    any_lane,
    machine_code,
)
from dyn_core.numbers.scalar import maximum, where

MOST_STEPS = 100  # of the projected Newton method; each frees or clamps coordinates
SHARE, SHRINK, SHORTEST = 0.1, 0.6, 1e-10  # of the line search of box_step
TINY = 1e-300
NEAR = 1e-12  # distance to a bound, relative to 1 + |tau|, that counts as none


class Expansion(NamedTuple):
    """Linear steps and quadratic costs along a trajectory of N steps.

    Attributes:
        A, B: Derivatives of the steps, (N, nx, nx) and (N, nx, nv).
        gap: Displacement from each state to the end of the step before, (N + 1, nx);
            row 0 is zero.
        l_x, l_u: Gradients of the costs, (N + 1, nx), (N, nv).
        l_xx, l_ux, l_uu: Hessians, (N + 1, nx, nx), (N, nv, nx), (N, nv, nv).
        tau: Joint forces, (N, nv).
    """

    A: FloatArray3
    B: FloatArray3
    gap: FloatArray2
    l_x: FloatArray2
    l_u: FloatArray2
    l_xx: FloatArray3
    l_ux: FloatArray3
    l_uu: FloatArray3
    tau: FloatArray2


class Sweep(NamedTuple):
    """Results and work arrays of a sweep; s = nx + 1, z = s + nu.

    Joint forces `fixed` to `fixed_end` - 1 have equal bounds, so that they do not
    change; du are the nu others, in order.

    F = [A gap B; 0 1 0] of a step has d rows that are stored. The others, of a run of
    positions whose step is q + dt qd, are a unit row plus dt times the row of the
    velocity.

    Attributes:
        k, K: Change of the joint forces, (N, nv), and feedback, (N, nv, nx); rows of
            those that are fixed stay zero.
        lower, upper: Bounds of the joint forces, not of their change, (nv,).
        V, Q: Cost to go by (dx, 1), (s, s), and by (dx, 1, du), (z, z); of Q the lower
            triangle.
        F: Stored rows of F, (d, z).
        VS: Rows of V for F, (d, s).
        VF, FVF: V F, (s, z), and its rows for F, (d, z).
        KA: Feedback and change side by side, (nu, w); w is s, and what fills the last
            tile with zeros.
        Qus: Q_us, (nu, w), and then Q_us less damping times KA.
        new: Change of V, (s, s).
        damped, L: Damped Q_uu and its factor, see `factor`, (nu, nu).
        low, high: Bounds of du at a knot: lower - tau, upper - tau, (nu,).
        slope, change, tried, u, w: Work, (nu,).
        left: Gap of each position, less dt times the gap of its velocity, (nv,).
        moved: The change of V F by `left`, (s,).
        e, before_e: Slope of the cost by dx along the feedback, (nx,).
        free, before: 1.0 where a joint force is between its bounds, else 0.0, (nu,).
        first, end: The rows of positions first to end - 1 are not stored.
        fixed, fixed_end: The joint forces that are not in du; a run, perhaps none.
        dt: Length of the step.
    """

    k: FloatArray2
    K: FloatArray3
    lower: FloatArray
    upper: FloatArray
    V: FloatArray2
    F: FloatArray2
    VS: FloatArray2
    VF: FloatArray2
    FVF: FloatArray2
    Q: FloatArray2
    KA: FloatArray2
    Qus: FloatArray2
    new: FloatArray2
    damped: FloatArray2
    L: FloatArray2
    slope: FloatArray
    change: FloatArray
    tried: FloatArray
    low: FloatArray
    high: FloatArray
    u: FloatArray
    w: FloatArray
    left: FloatArray
    moved: FloatArray
    e: FloatArray
    before_e: FloatArray
    free: FloatArray
    before: FloatArray
    first: int
    end: int
    fixed: int
    fixed_end: int
    dt: float


def allocate_sweep(
    N: int,
    lower: np.ndarray,
    upper: np.ndarray,
    flat: np.ndarray | None = None,
    dt: float = 0.0,
) -> Sweep:
    """Return zero arrays of sweeps over N steps of dt, with copies of the bounds.

    The longest run of equal bounds is left out of the sweep, if others remain: a plan
    is at these bounds. `flat` tells whether the step of a position is q + dt qd, with
    qd at its end, (nv,); None: of no position. Rows of A and B are not read for the
    longest run of such positions.
    """
    n, x = len(lower), 2 * len(lower)
    s = x + 1
    simple = np.zeros(n, bool) if flat is None else np.asarray(flat, bool)
    first, end = longest_run(simple)
    fixed, fixed_end = longest_run(np.asarray(lower) == upper)
    if fixed_end - fixed == n:
        fixed = fixed_end = 0
    m, d = n - (fixed_end - fixed), s - (end - first)
    z, wide = s + m, -(-s // TILE) * TILE
    pairs = (s, s), (d, z), (d, s), (s, z), (d, z), (z, z), (m, wide)
    square = (m, wide), (s, s), (m, m), (m, m)
    shapes = [*pairs, *square, *[(m,)] * 7, (n,), (s,), (x,), (x,), (m,), (m,)]
    bounds = np.array(lower, float), np.array(upper, float)
    work = [np.zeros(shape) for shape in shapes]
    results = np.zeros((N, n)), np.zeros((N, n, x))
    return Sweep._make([*results, *bounds, *work, first, end, fixed, fixed_end, dt])


def longest_run(flags: np.ndarray) -> tuple[int, int]:
    """Return begin and end of the first longest run of True in flags, or (0, 0).

    The run is begin to end - 1.
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(int), [0]])))
    runs = edges.reshape(-1, 2)
    if not len(runs):
        return 0, 0
    begin, end = runs[np.argmax(runs[:, 1] - runs[:, 0])]
    return int(begin), int(end)


@machine_code
def sweep_back(
    model: Expansion, work: Sweep, damping: float
) -> tuple[float, float, float]:
    """Compute the feedback that minimises the quadratic model within the bounds.

        Q = l + F.T V F,   dx_next = F (dx, 1, du) = A dx + gap + B du
        k = argmin of k.T Q_uu k / 2 + Q_u.T k,   lower <= tau + k <= upper
        K = -Q_ff^-1 Q_fx
        V = Q_ss + K.T (Q_uu K + Q_us) + Q_us.T K,   s = (dx, 1)
        V_xx = Q_xx + (Q_ux - damping K).T K

    The bounds are of tau + k with model.tau, not of the change k. Rows of K are zero
    where a bound holds a force; f are the others. With the constant 1 as a state,
    gradients are a row of the matrices. V_xx follows from V for the K above. `damping`
    is the share of the mean diagonal entry of Q_uu, by du, that is added to it. All of
    `work` but the bounds is overwritten; after a failure, k and K of earlier steps are
    not computed.

    Returns 1.0, or 0.0 if a Q_uu is not positive definite, then first and second
    derivative of the model of the cost along the full step, arbitrary after a failure.
    """
    V, Q, KA, e = work.V, work.Q, work.KA, work.e
    N, nu, nx = len(work.k), len(work.u), len(e)
    s, first, success = nx + 1, 0.0, 1.0
    V[nx, nx] = 0.0
    for i in range(nx):
        e[i] = model.l_x[N, i]
        V[i, nx], V[nx, i] = e[i], e[i]
        for j in range(nx):
            V[i, j] = model.l_xx[N, i, j]
    for step in range(N):
        k = N - 1 - step
        multiply(model, work, k)
        add_costs(model, work, k)
        trace = 0.0
        for j in range(nu):
            force = force_of(work, j)
            trace += Q[s + j, s + j]
            work.low[j] = work.lower[force] - model.tau[k, force]
            work.high[j] = work.upper[force] - model.tau[k, force]
        added = damping * max(trace / float(nu), TINY)
        for j in range(nu):
            for i in range(j + 1):
                x = Q[s + j, s + i]
                work.damped[j, i], work.damped[i, j] = x, x
            work.damped[j, j] += added
        success = box_step(work, nx, success)
        if not any_lane(success > 0.0):
            break
        first += slope_of_step(model, work, k)
        for j in range(nu):
            force = force_of(work, j)
            work.k[k, force] = KA[j, nx]
            copy_row(work.K[k, force], KA[j])
            add_row(work.Qus[j], -added, KA[j])
        product_of_columns(work.Qus, KA, work.new, s, nu, s, 1)
        change_gradient(work, nx)
        for i in range(s):
            mine, of_x, new = V[i], Q[i], work.new[i]
            for j in range(i + 1):
                x = of_x[j] + new[j]
                mine[j], V[j, i] = x, x
    return success, first, V[nx, nx] - 2.0 * first


@machine_code
def change_gradient(work: Sweep, nx: int) -> None:
    """Set row nx of work.new: the change of gradient and constant of the cost to go.

        K.T (Q_uu k + Q_u) + Q_us.T k,   damping taken out of both sides

    work.KA, Qus, Q and damped must be those of the step, with damping taken from Qus.
    """
    row, KA, s = work.new[nx], work.KA, nx + 1
    for i in range(s):
        row[i] = 0.0
    for j in range(len(work.u)):
        slope = work.Q[s + j, nx]
        for i in range(len(work.u)):
            slope += work.damped[j, i] * KA[i, nx]
        mine, beside, k = KA[j], work.Qus[j], KA[j, nx]
        for i in range(s):
            row[i] += slope * mine[i] + k * beside[i]


@machine_code
def sweep_lanes(
    model: Expansion, work: Sweep, damping: FloatArray, to: FloatArray
) -> int:
    """Compute the sweeps of the problems in lanes, see sweep_back; return 0.

    `damping` is (1,); the three results are written to `to`, (3,).
    """
    success, first, second = sweep_back(model, work, damping[0])
    to[0], to[1], to[2] = success, first, second
    return 0


@machine_code
def multiply(model: Expansion, work: Sweep, k: int) -> None:
    """Set the lower triangle of work.Q to F.T V F of step k.

        F = S.T F_d + P,   F.T V F = F_d.T (S V F) + P.T V F

    F_d are the stored rows of F. S adds dt times the row of a position to the row of
    its velocity; P has the unit rows, and beside them what of a gap dt does not close.
    F, VS, VF, FVF, left and moved of `work` are overwritten.
    """
    nu, nv, nx = len(work.u), model.l_ux.shape[1], model.l_ux.shape[2]
    V, F, VF, Q, s, d = work.V, work.F, work.VF, work.Q, nx + 1, len(work.F)
    first, end, dt, gap = work.first, work.end, work.dt, model.gap[k + 1]
    z, open_gaps = s + nu, 0
    for a in range(d):
        row, stored, left = row_of(work, a), F[a], work.VS[a]
        if row < nx:
            of_x = model.A[k, row]
            for i in range(nx):
                stored[i] = of_x[i]
            of_u = model.B[k, row]
            for j in range(nu):
                stored[s + j] = of_u[force_of(work, j)]
            stored[nx] = gap[row]
        else:
            stored[nx] = 1.0
        copy_row(left, V[row])
        if moves(work, row):
            add_row(left, dt, V[row - nv])
    for j in range(first, end):
        work.left[j] = gap[j] - dt * gap[nv + j]
        if any_lane(work.left[j] != 0.0):
            open_gaps = 1
    product_of_columns(work.VS, F, VF, s, d, z, 0)
    for i in range(s):
        moved, of_x = VF[i], V[i]
        for j in range(first, end):
            moved[j] += of_x[j]
    if open_gaps == 1:
        for i in range(s):
            work.moved[i] = 0.0
        for j in range(first, end):
            add_row(work.moved, work.left[j], V[j])
        for i in range(s):
            VF[i, nx] += work.moved[i]
    for a in range(d):
        row = row_of(work, a)
        copy_row(work.FVF[a], VF[row])
        if moves(work, row):
            add_row(work.FVF[a], dt, VF[row - nv])
    product_of_columns(F, work.FVF, Q, z, d, z, 1)
    for j in range(first, end):
        mine, of_x = Q[j], VF[j]
        for i in range(s):
            mine[i] += of_x[i]
    if open_gaps == 1:
        mine = Q[nx]
        for j in range(first, end):
            x, of_x = work.left[j], VF[j]
            for i in range(s):
                mine[i] += x * of_x[i]


@machine_code
def row_of(work: Sweep, a: int) -> int:
    """Return the row of [A gap B; 0 1 0] that is stored row a of F."""
    return a if a < work.first else a + work.end - work.first


@machine_code
def force_of(work: Sweep, j: int) -> int:
    """Return the index of the joint force that is entry j of du."""
    return j if j < work.fixed else j + work.fixed_end - work.fixed


@machine_code
def moves(work: Sweep, row: int) -> bool:
    """Return whether a row belongs to a velocity whose position is not stored."""
    coordinate = row - len(work.left)
    return coordinate >= work.first and coordinate < work.end


@machine_code
def copy_row(to: FloatArray, row: FloatArray) -> None:
    """Copy the first entries of `row`, as many as `to` has, to `to`."""
    for i in range(len(to)):
        to[i] = row[i]


@machine_code
def add_costs(model: Expansion, work: Sweep, k: int) -> None:
    """Add gradients and Hessians of the costs at knot k to work.Q, in place.

    Gradients by x are added to row nx, of the constant 1, gradients by u to column nx.
    """
    nu, nx = len(work.u), model.l_ux.shape[2]
    Q, s = work.Q, nx + 1
    for i in range(nx):
        add_row(Q[i], 1.0, model.l_xx[k, i])
    add_row(Q[nx], 1.0, model.l_x[k])
    for j in range(nu):
        of_u, force = Q[s + j], force_of(work, j)
        add_row(of_u, 1.0, model.l_ux[k, force])
        of_u[nx] += model.l_u[k, force]
        for i in range(nu):
            of_u[s + i] += model.l_uu[k, force, force_of(work, i)]


@machine_code
def slope_of_step(model: Expansion, work: Sweep, k: int) -> float:
    """Return the change of the cost by k and gap of knot k along the feedback.

    e = l_x + A.T e' + K.T w,   w = l_u + B.T e',   change k.T w + gap.T e'

    work.e, the slope e' behind the knot, is replaced by e. work.before_e, w and VF[0]
    are overwritten; F, left and KA must be those of step k.
    """
    nv, nx = len(work.left), len(work.e)
    e, before, w, change = work.e, work.before_e, work.w, 0.0
    y, dt = work.VF[0], work.dt  # VF is not needed any more
    copy_row(before, e)
    copy_row(e, model.l_x[k])
    for j in range(len(y)):
        y[j] = 0.0
    for j in range(work.first, work.end):
        e[j] += before[j]
        change += work.left[j] * before[j]
    for a in range(len(work.F)):
        row = row_of(work, a)
        if row < nx:
            x = before[row]
            if moves(work, row):
                x += dt * before[row - nv]
            add_row(y, x, work.F[a])
    change += y[nx]
    for i in range(nx):
        e[i] += y[i]
    for j in range(len(w)):
        w[j] = model.l_u[k, force_of(work, j)] + y[nx + 1 + j]
        change += work.KA[j, nx] * w[j]
        for i in range(nx):
            e[i] += work.KA[j, i] * w[j]
    return change


@machine_code
def slopes_back(model: Expansion, y: FloatArray2) -> None:
    """Compute y, (N + 1, nx): the slope of the costs to go by each state of the plan.

    y[N] = l_x[N],   y[k] = l_x[k] + A.T y[k+1];   y is written in place.
    """
    N, nx = len(model.A), y.shape[1]
    copy_row(y[N], model.l_x[N])
    for step in range(N):
        k = N - 1 - step
        copy_row(y[k], model.l_x[k])
        for i in range(nx):
            add_row(y[k], y[k + 1, i], model.A[k, i])


@machine_code
def largest_slope(model: Expansion, work: Sweep, y: FloatArray2) -> float:
    """Return the largest |gradient| by a joint force of the plan that no bound holds.

        l_u[k] + B.T y[k+1],   y of `slopes_back`

    0 if bounds hold all, NaN if one is not a number. A bound of `work` holds a force of
    model.tau that is at it, within 1e-12 (1 + |tau|), if the cost decreases beyond it.
    Forces without freedom do not count. y is (N + 1, nx). work.left is overwritten.
    """
    N, nv, nx = model.B.shape[0], model.B.shape[2], y.shape[1]
    g, largest = work.left, 0.0
    for k in range(N):
        copy_row(g, model.l_u[k])
        for i in range(nx):
            add_row(g, y[k + 1, i], model.B[k, i])
        for j in range(nv):
            tau, low, high = model.tau[k, j], work.lower[j], work.upper[j]
            # A step to a bound, tau + (bound - tau), may end beside it by rounding.
            near = NEAR * (1.0 + abs(tau))
            x = abs(g[j])
            x = where(g[j] > 0.0, where(tau - low <= near, 0.0, x), x)
            x = where(g[j] < 0.0, where(high - tau <= near, 0.0, x), x)
            x = where(low == high, 0.0, x)
            largest = maximum(where(x == x, largest, x), x)
    return largest


@machine_code
def box_step(work: Sweep, nx: int, counts: float) -> float:
    """Compute the least u.T Q u / 2 + g.T u, low <= u <= high, and its feedback by x.

    Q is work.damped, g and dg/dx (nx) are columns of work.Q. The result is work.KA,
    feedback and u side by side, and work.u; feedback is zero where a bound holds u.
    Rows s and on of work.Q, without their last nu columns, go to work.Qus. L, free,
    before, slope, change and tried are overwritten. Returns 1.0, also after 100
    (MOST_STEPS) steps; 0.0 if Q is not positive definite, or if `counts` is: then the
    result does not matter.

    Source: D. Bertsekas, Projected Newton methods, SIAM J. Control 20 (1982).
    """
    u, s = work.u, nx + 1
    n, full, more, steps = len(u), 0.0, counts, 0
    for j in range(n):
        u[j] = min(max(0.0, work.low[j]), work.high[j])
        work.before[j], work.free[j] = -1.0, 0.0
    while any_lane(more > 0.0) and steps < MOST_STEPS:
        steps += 1
        same, some = 1.0, 0.0
        for j in range(n):
            slope = work.Q[s + j, nx]
            for i in range(n):
                slope += work.damped[j, i] * u[i]
            work.slope[j] = slope
            low, high = work.low[j], work.high[j]
            free = where(slope > 0.0, where(u[j] <= low, 0.0, 1.0), 1.0)
            free = where(low >= high, where(u[j] <= low, 0.0, free), free)
            free = where(slope < 0.0, where(u[j] >= high, 0.0, free), free)
            free = where(more > 0.0, free, work.free[j])
            same = where(free == work.before[j], same, 0.0)
            work.free[j] = free
            some += free
        more = where(same * full > 0.0, 0.0, where(some > 0.0, more, 0.0))
        if not any_lane(more > 0.0):
            break
        definite = factor(work.L, work.damped, work.free)
        counts = where(more > 0.0, definite, counts)
        more = where(more > 0.0, definite, more)
        for j in range(n):
            work.before[j] = work.free[j]
            work.change[j] = -work.slope[j] * work.free[j]
        solve_row(work.L, work.change)
        full = where(more > 0.0, line_search(work, u, more), full)
        # It is the least of all, not only of the free ones.
        more = where(full > 0.0, where(some >= float(n), 0.0, more), more)
    for j in range(n):
        mine, beside, of_u = work.KA[j], work.Qus[j], work.Q[s + j]
        sign = -work.free[j]
        for i in range(s):
            beside[i], mine[i] = of_u[i], sign * of_u[i]
    for tile in range(work.KA.shape[1] // TILE):
        solve_tile(work.L, work.KA, TILE * tile)
    for j in range(n):
        work.KA[j, nx] = u[j]
    return counts


@machine_code
def line_search(work: Sweep, u: FloatArray, more: float) -> float:
    """Move u (nu,) along work.change within work.low and work.high, in place.

    The step is shortened until the quadratic cost of work.damped and work.slope
    decreases enough, or to about 1e-10, where it is made anyway; a full step that no
    bound cuts is not tested. Returns 1.0 after the full step if no bound cut it, else
    0.0. Where `more` is 0.0, u stays, and the result means nothing. work.tried is
    overwritten.
    """
    n, length, full, going = len(u), 1.0, 0.0, more
    while any_lane(going > 0.0):
        whole, gain, predicted = 1.0, 0.0, 0.0
        for j in range(n):
            wanted = u[j] + length * work.change[j]
            tried = min(max(wanted, work.low[j]), work.high[j])
            whole = where(tried == wanted, whole, 0.0)
            work.tried[j] = where(going > 0.0, tried, work.tried[j])
        if length >= 1.0:  # a whole step ends where the slope is zero
            full = whole
            going = where(whole > 0.0, 0.0, going)
            if not any_lane(going > 0.0):
                break
        for j in range(n):
            moved, bent = work.tried[j] - u[j], 0.0
            for i in range(n):
                bent += work.damped[j, i] * (work.tried[i] - u[i])
            predicted += moved * work.slope[j]
            gain += moved * (work.slope[j] + 0.5 * bent)
        going = where(gain <= SHARE * predicted, 0.0, going)
        going = where(length < SHORTEST, 0.0, going)
        length *= SHRINK
    for j in range(n):
        u[j] = where(more > 0.0, work.tried[j], u[j])
    return full


@machine_code
def factor(L: FloatArray2, Q: FloatArray2, free: FloatArray) -> float:
    """Compute the Cholesky factor L of Q, with unit rows where free is 0.0; return 1.0.

    Only lower triangles are read and written. On the diagonal of L are the inverses.
    Returns 0.0 if Q is not positive definite; L is then the factor of another matrix.
    """
    definite = 1.0
    for j in range(len(free)):
        mine, of_q = L[j], Q[j]
        for i in range(j + 1):
            other = L[i]
            x = where(free[j] > 0.0, where(free[i] > 0.0, of_q[i], 0.0), 0.0)
            for n in range(i):
                x -= mine[n] * other[n]
            if i < j:
                mine[i] = x * other[i]
            else:
                x = where(free[j] > 0.0, x, 1.0)
                definite = where(x > 0.0, definite, 0.0)
                mine[j] = 1.0 / math.sqrt(where(x > 0.0, x, 1.0))
    return definite


@machine_code
def solve_row(L: FloatArray2, y: FloatArray) -> None:
    """Replace y (n,) by the solution x of L L.T x = y, L of `factor`."""
    n = len(y)
    for j in range(n):
        x = y[j]
        for i in range(j):
            x -= L[j, i] * y[i]
        y[j] = x * L[j, j]
    for back in range(n):
        j = n - 1 - back
        x = y[j]
        for i in range(j + 1, n):
            x -= L[i, j] * y[i]
        y[j] = x * L[j, j]


@machine_code
def solve_tile(L: FloatArray2, Y: FloatArray2, column: int) -> None:
    """Replace eight columns of Y, from `column` on, by X of L L.T X = Y (`factor`)."""
    n = len(L)
    for j in range(n):
        subtract_rows(L, Y, j, 0, j, 1, column)
    for back in range(n):
        j = n - 1 - back
        subtract_rows(L, Y, j, j + 1, n, 0, column)


@machine_code
def subtract_rows(
    L: FloatArray2, Y: FloatArray2, j: int, first: int, end: int, by_row: int,
    column: int,
) -> None:  # fmt: skip
    """Subtract multiples of other rows from row j of Y, and divide it by L_jj.

    They are rows first to end - 1, times row j of L (by_row 1) or column j (0). L has
    the inverses on its diagonal; eight columns of Y change, from `column` on.
    """
    row = Y[j]
    y0, y1 = row[column], row[column + 1]
    y2, y3 = row[column + 2], row[column + 3]
    y4, y5 = row[column + 4], row[column + 5]
    y6, y7 = row[column + 6], row[column + 7]
    for i in range(first, end):
        x, other = L[j, i] if by_row == 1 else L[i, j], Y[i]
        y0 -= x * other[column]
        y1 -= x * other[column + 1]
        y2 -= x * other[column + 2]
        y3 -= x * other[column + 3]
        y4 -= x * other[column + 4]
        y5 -= x * other[column + 5]
        y6 -= x * other[column + 6]
        y7 -= x * other[column + 7]
    x = L[j, j]
    row[column], row[column + 1] = y0 * x, y1 * x
    row[column + 2], row[column + 3] = y2 * x, y3 * x
    row[column + 4], row[column + 5] = y4 * x, y5 * x
    row[column + 6], row[column + 7] = y6 * x, y7 * x


@machine_code
def add_row(row: FloatArray, factor: float, other: FloatArray) -> None:
    """Add factor times `other` to the first len(other) entries of `row`, in place."""
    for i in range(len(other)):
        row[i] += factor * other[i]
