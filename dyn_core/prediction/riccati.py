"""One Riccati sweep with bounds on the joint forces of each knot, as machine code.

In the subset of machine code.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dyn_core.contact.solvers.matrices.dense import product
from dyn_core.engines.machine_code import (
    FloatArray,
    FloatArray2,
    FloatArray3,
    IntArray,
    machine_code,
)

MOST_STEPS = 100  # of the projected Newton method; each frees or clamps coordinates
SHARE, SHRINK, SHORTEST = 0.1, 0.6, 1e-10  # of the line search of box_step
TINY = 1e-300


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
    """Results and work arrays of a sweep; s = nx + 1, z = s + nv.

    Attributes:
        k, K: Change of the joint forces, (N, nv), and feedback, (N, nv, nx).
        lower, upper: Bounds of the joint forces, (nv,).
        V, Q: Cost to go by (dx, 1), (s, s), and by (dx, 1, du), (z, z).
        F, FT, VF: Step, (s, z), and its transpose; V F.
        KA: Feedback and change side by side, (nv, s).
        R, LT, new: Factors and product in the change of V.
        damped, L: Damped Q_uu and its factor, (nv, nv).
        slope, change, tried, low, high, u, w: Work, (nv,).
        e, before_e: Slope of the cost by dx along the feedback, (nx,).
        free, before: Whether a joint force is between its bounds, (nv,).
    """

    k: FloatArray2
    K: FloatArray3
    lower: FloatArray
    upper: FloatArray
    V: FloatArray2
    F: FloatArray2
    FT: FloatArray2
    VF: FloatArray2
    Q: FloatArray2
    KA: FloatArray2
    R: FloatArray2
    LT: FloatArray2
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
    e: FloatArray
    before_e: FloatArray
    free: IntArray
    before: IntArray


def allocate_sweep(N: int, lower: np.ndarray, upper: np.ndarray) -> Sweep:
    """Return zero arrays of sweeps over N steps, with copies of the bounds, (nv,)."""
    n, x = len(lower), 2 * len(lower)
    s, z = x + 1, x + 1 + n
    pairs = (s, s), (s, z), (z, s), (s, z), (z, z), (n, s), (2 * n, s), (s, 2 * n)
    shapes = [*pairs, (s, s), (n, n), (n, n), *[(n,)] * 7, (x,), (x,)]
    flags = [np.zeros(n, np.int64) for _ in range(2)]
    bounds = np.array(lower, float), np.array(upper, float)
    work = [np.zeros(shape) for shape in shapes]
    return Sweep(np.zeros((N, n)), np.zeros((N, n, x)), *bounds, *work, *flags)


@machine_code
def sweep_back(
    model: Expansion, work: Sweep, damping: float
) -> tuple[int, float, float]:
    """Compute the feedback that minimises the quadratic model within the bounds.

        Q = l + F.T V F,   dx_next = F (dx, 1, du) = A dx + gap + B du
        k = argmin of k.T Q_uu k / 2 + Q_u.T k within the bounds,  K = -Q_ff^-1 Q_fx
        V = Q_ss + K.T (Q_uu K + Q_us) + Q_us.T K,   s = (dx, 1)

    With the constant 1 as a state, gradients are a row of the matrices. The result is
    in work.k and work.K.

    Args:
        model: Quadratic model.
        work: Results and work arrays.
        damping: Share of the mean diagonal entry of Q_uu that is added to it.

    Returns:
        1, or 0 if a Q_uu is not positive definite; first and second derivative of the
        model of the cost along the full step, both 0 after a failure.
    """
    V, Q, KA, e = work.V, work.Q, work.KA, work.e
    N, nv, nx = len(work.k), len(work.u), len(e)
    s = nx + 1
    z, first = s + nv, 0.0
    V[nx, nx] = 0.0
    for i in range(nx):
        e[i] = model.l_x[N, i]
        V[i, nx], V[nx, i] = e[i], e[i]
        for j in range(nx):
            V[i, j] = model.l_xx[N, i, j]
    for step in range(N):
        k = N - 1 - step
        lay_out(model, work, k)
        product(V, work.F, work.VF, s, s, z, 0)
        product(work.FT, work.VF, Q, z, s, z, 0)
        add_costs(model, work, k)
        trace = 0.0
        for j in range(nv):
            trace += Q[s + j, s + j]
            work.low[j] = work.lower[j] - model.tau[k, j]
            work.high[j] = work.upper[j] - model.tau[k, j]
        for j in range(nv):
            for i in range(nv):
                work.damped[j, i] = Q[s + j, s + i]
            work.damped[j, j] += damping * max(trace / float(nv), TINY)
        if box_step(work, nx) == 0:
            return 0, 0.0, 0.0
        first += slope_of_step(model, work, k)
        for j in range(nv):
            work.k[k, j] = KA[j, nx]
            for i in range(nx):
                work.K[k, j, i] = KA[j, i]
            for i in range(s):
                bent = Q[s + j, i]
                for n in range(nv):
                    bent += Q[s + j, s + n] * KA[n, i]
                work.R[j, i], work.R[nv + j, i] = bent, KA[j, i]
                work.LT[i, j], work.LT[i, nv + j] = KA[j, i], Q[s + j, i]
        product(work.LT, work.R, work.new, s, 2 * nv, s, 0)
        for i in range(s):
            for j in range(s):
                mean = Q[i, j] + Q[j, i] + work.new[i, j] + work.new[j, i]
                V[i, j] = 0.5 * mean
    return 1, first, V[nx, nx] - 2.0 * first


@machine_code
def lay_out(model: Expansion, work: Sweep, k: int) -> None:
    """Set work.F = [A gap B; 0 1 0] of step k, and its transpose work.FT."""
    nv, nx = model.l_ux.shape[1], model.l_ux.shape[2]
    F, FT, s = work.F, work.FT, nx + 1
    for i in range(nx):
        for j in range(nx):
            F[i, j], FT[j, i] = model.A[k, i, j], model.A[k, i, j]
        F[i, nx], FT[nx, i] = model.gap[k + 1, i], model.gap[k + 1, i]
        for j in range(nv):
            F[i, s + j], FT[s + j, i] = model.B[k, i, j], model.B[k, i, j]
    F[nx, nx], FT[nx, nx] = 1.0, 1.0


@machine_code
def add_costs(model: Expansion, work: Sweep, k: int) -> None:
    """Add gradients and Hessians of the costs at knot k to work.Q, in place."""
    nv, nx = model.l_ux.shape[1], model.l_ux.shape[2]
    Q, s = work.Q, nx + 1
    for i in range(nx):
        for j in range(nx):
            Q[i, j] += model.l_xx[k, i, j]
        Q[i, nx] += model.l_x[k, i]
        Q[nx, i] += model.l_x[k, i]
    for j in range(nv):
        for i in range(nx):
            Q[s + j, i] += model.l_ux[k, j, i]
        Q[s + j, nx] += model.l_u[k, j]
        for i in range(nv):
            Q[s + j, s + i] += model.l_uu[k, j, i]


@machine_code
def slope_of_step(model: Expansion, work: Sweep, k: int) -> float:
    """Return the change of the cost by k and gap of knot k along the feedback.

    work.e, the slope behind the knot, is replaced by the slope before it.

    e = l_x + A.T e' + K.T w,   w = l_u + B.T e',   change k.T w + gap.T e'
    """
    nv, nx = model.l_ux.shape[1], model.l_ux.shape[2]
    e, before, w, change = work.e, work.before_e, work.w, 0.0
    for i in range(nx):
        before[i] = e[i]
        change += model.gap[k + 1, i] * e[i]
        e[i] = model.l_x[k, i]
    for j in range(nv):
        w[j] = model.l_u[k, j]
    for i in range(nx):
        add_row(w, before[i], model.B[k, i])
        add_row(e, before[i], model.A[k, i])
    for j in range(nv):
        change += work.KA[j, nx] * w[j]
        for i in range(nx):
            e[i] += work.KA[j, i] * w[j]
    return change


@machine_code
def box_step(work: Sweep, nx: int) -> int:
    """Compute the least u.T Q u / 2 + g.T u within bounds, and its feedback by x.

    Q is work.damped, g and dg/dx are columns of work.Q. Rows of the feedback are zero
    where a bound holds u.

    Args:
        work: Problem; results are work.KA, feedback and u side by side, and work.u.
        nx: Number of columns of the feedback.

    Returns:
        1, or 0 if Q is not positive definite.

    Source: D. Bertsekas, Projected Newton methods, SIAM J. Control 20 (1982).
    """
    u, s = work.u, nx + 1
    n, full = len(u), 0
    for j in range(n):
        u[j] = min(max(0.0, work.low[j]), work.high[j])
        work.before[j] = -1
    for _ in range(MOST_STEPS):
        same, some = 1, 0
        for j in range(n):
            slope = work.Q[s + j, nx]
            for i in range(n):
                slope += work.damped[j, i] * u[i]
            work.slope[j] = slope
            free = 1
            if u[j] <= work.low[j] and (slope > 0.0 or work.low[j] >= work.high[j]):
                free = 0
            if u[j] >= work.high[j] and slope < 0.0:
                free = 0
            if free != work.before[j]:
                same = 0
            work.free[j] = free
            some += free
        if (same == 1 and full == 1) or some == 0:
            break
        if factor(work.L, work.damped, work.free) == 0:
            return 0
        for j in range(n):
            work.before[j] = work.free[j]
            work.change[j] = -work.slope[j] * float(work.free[j])
        solve_row(work.L, work.change)
        full = line_search(work, u)
    for j in range(n):
        for i in range(s):
            work.KA[j, i] = -work.Q[s + j, i] * float(work.free[j])
    solve_rows(work.L, work.KA, work.free)
    for j in range(n):
        work.KA[j, nx] = u[j]
    return 1


@machine_code
def line_search(work: Sweep, u: FloatArray) -> int:
    """Move u along work.change within the bounds, in place.

    The step is shortened until the cost decreases enough. Returns 1 after the full step
    if no bound cut it, else 0.
    """
    n, length = len(u), 1.0
    while True:
        whole, gain, predicted = 1, 0.0, 0.0
        for j in range(n):
            wanted = u[j] + length * work.change[j]
            work.tried[j] = min(max(wanted, work.low[j]), work.high[j])
            if work.tried[j] != wanted:
                whole = 0
        for j in range(n):
            moved, bent = work.tried[j] - u[j], 0.0
            for i in range(n):
                bent += work.damped[j, i] * (work.tried[i] - u[i])
            predicted += moved * work.slope[j]
            gain += moved * (work.slope[j] + 0.5 * bent)
        if gain <= SHARE * predicted or length < SHORTEST:
            break
        length *= SHRINK
    for j in range(n):
        u[j] = work.tried[j]
    return 1 if whole == 1 and length >= 1.0 else 0


@machine_code
def factor(L: FloatArray2, Q: FloatArray2, free: IntArray) -> int:
    """Compute the Cholesky factor L of Q, with unit rows where free is 0.

    Only the lower triangle of L is written. Returns 1, or 0 if Q is not positive
    definite.
    """
    for j in range(len(free)):
        for i in range(j + 1):
            x = Q[j, i] if free[j] == 1 and free[i] == 1 else 0.0
            for n in range(i):
                x -= L[j, n] * L[i, n]
            if i < j:
                L[j, i] = x / L[i, i]
            elif free[j] == 0:
                L[j, j] = 1.0
            elif x > 0.0:
                L[j, j] = math.sqrt(x)
            else:
                return 0
    return 1


@machine_code
def solve_row(L: FloatArray2, y: FloatArray) -> None:
    """Replace y by the solution x of L L.T x = y."""
    n = len(y)
    for j in range(n):
        x = y[j]
        for i in range(j):
            x -= L[j, i] * y[i]
        y[j] = x / L[j, j]
    for back in range(n):
        j = n - 1 - back
        x = y[j]
        for i in range(j + 1, n):
            x -= L[i, j] * y[i]
        y[j] = x / L[j, j]


@machine_code
def solve_rows(L: FloatArray2, Y: FloatArray2, free: IntArray) -> None:
    """Replace Y by the solution X of L L.T X = Y; rows with free 0 must be zero."""
    n = len(Y)
    for j in range(n):
        if free[j] == 1:
            for i in range(j):
                add_row(Y[j], -L[j, i], Y[i])
            scale_row(Y[j], 1.0 / L[j, j])
    for back in range(n):
        j = n - 1 - back
        if free[j] == 1:
            for i in range(j + 1, n):
                add_row(Y[j], -L[i, j], Y[i])
            scale_row(Y[j], 1.0 / L[j, j])


@machine_code
def add_row(row: FloatArray, factor: float, other: FloatArray) -> None:
    """Add factor times another row, in place."""
    for i in range(len(row)):
        row[i] += factor * other[i]


@machine_code
def scale_row(row: FloatArray, factor: float) -> None:
    """Multiply a row by a factor, in place."""
    for i in range(len(row)):
        row[i] *= factor


@machine_code
def copy(C: FloatArray2, A: FloatArray2) -> None:
    """Copy A to C, of the same shape."""
    for i in range(len(C)):
        for j in range(C.shape[1]):
            C[i, j] = A[i, j]
