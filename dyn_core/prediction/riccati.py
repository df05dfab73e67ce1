"""One Riccati sweep with bounds on the joint forces of each knot, as machine code.

In the subset of machine code; matrices are small, so loops over rows are quickest.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

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
    """Results and work arrays of a sweep.

    Attributes:
        k, K: Change of the joint forces, (N, nv), and feedback, (N, nv, nx).
        lower, upper: CoordinateBounds of the joint forces, (nv,).
        V, VA, Q_xx: Work, (nx, nx). VB: (nx, nv). Q_ux, KT: (nv, nx).
        Q_uu, damped, L: (nv, nv).
        v, Q_x, dx, dx_next: (nx,).
        Q_u, slope, change, tried, low, high: (nv,).
        free, before: Whether a joint force is between its bounds, (nv,).
    """

    k: FloatArray2
    K: FloatArray3
    lower: FloatArray
    upper: FloatArray
    V: FloatArray2
    VA: FloatArray2
    Q_xx: FloatArray2
    VB: FloatArray2
    Q_ux: FloatArray2
    KT: FloatArray2
    Q_uu: FloatArray2
    damped: FloatArray2
    L: FloatArray2
    v: FloatArray
    Q_x: FloatArray
    dx: FloatArray
    dx_next: FloatArray
    Q_u: FloatArray
    slope: FloatArray
    change: FloatArray
    tried: FloatArray
    low: FloatArray
    high: FloatArray
    free: IntArray
    before: IntArray


def allocate_sweep(N: int, lower: np.ndarray, upper: np.ndarray) -> Sweep:
    """Return the arrays of sweeps over N steps, for bounds of joint forces, (nv,)."""
    n, x = len(lower), 2 * len(lower)
    shapes = [(x, x)] * 3 + [(x, n)] + [(n, x)] * 2 + [(n, n)] * 3 + [(x,)] * 4
    work = [np.zeros(shape) for shape in shapes + [(n,)] * 6]
    flags = [np.zeros(n, np.int64) for _ in range(2)]
    bounds = np.array(lower, float), np.array(upper, float)
    return Sweep(np.zeros((N, n)), np.zeros((N, n, x)), *bounds, *work, *flags)


@machine_code
def sweep_back(model: Expansion, work: Sweep, damping: float) -> int:
    """Compute the feedback that minimises the quadratic model within the bounds.

        Q_xx = l_xx + A.T V A,   Q_ux = l_ux + B.T V A,   Q_uu = l_uu + B.T V B
        k = argmin of k.T Q_uu k / 2 + Q_u.T k within the bounds,  K = -Q_ff^-1 Q_fx

    The result is in work.k and work.K.

    Args:
        model: Quadratic model.
        work: Results and work arrays.
        damping: Share of the mean diagonal entry of Q_uu that is added to it.

    Returns:
        1, or 0 if a Q_uu is not positive definite.
    """
    N, nv, nx = model.l_ux.shape
    V, v = work.V, work.v
    copy(V, model.l_xx[N])
    for i in range(nx):
        v[i] = model.l_x[N, i]
    add_times(v, V, model.gap[N])
    for step in range(N):
        i = N - 1 - step
        A, B, K, k = model.A[i], model.B[i], work.K[i], work.k[i]
        clear(work.VA)
        add_product(work.VA, V, A)
        clear(work.VB)
        add_product(work.VB, V, B)
        copy(work.Q_xx, model.l_xx[i])
        add_transposed_product(work.Q_xx, A, work.VA)
        copy(work.Q_ux, model.l_ux[i])
        add_transposed_product(work.Q_ux, B, work.VA)
        copy(work.Q_uu, model.l_uu[i])
        add_transposed_product(work.Q_uu, B, work.VB)
        for j in range(nx):
            work.Q_x[j] = model.l_x[i, j]
        add_transposed_times(work.Q_x, A, v)
        trace = 0.0
        for j in range(nv):
            work.Q_u[j] = model.l_u[i, j]
            trace += work.Q_uu[j, j]
            work.low[j] = work.lower[j] - model.tau[i, j]
            work.high[j] = work.upper[j] - model.tau[i, j]
        add_transposed_times(work.Q_u, B, v)
        copy(work.damped, work.Q_uu)
        for j in range(nv):
            work.damped[j, j] += damping * max(trace / float(nv), TINY)
        if box_step(work, k, K) == 0:
            return 0
        # v = Q_x + K.T (Q_uu k + Q_u) + Q_ux.T k,  V = Q_xx + K.T KT + Q_ux.T K
        copy(work.KT, work.Q_ux)
        add_product(work.KT, work.Q_uu, K)
        for j in range(nv):
            work.slope[j] = work.Q_u[j]
        add_times(work.slope, work.Q_uu, k)
        add_transposed_times(work.Q_x, K, work.slope)
        add_transposed_times(work.Q_x, work.Q_ux, k)
        add_transposed_product(work.Q_xx, K, work.KT)
        add_transposed_product(work.Q_xx, work.Q_ux, K)
        for j in range(nx):
            v[j] = work.Q_x[j]
            for n in range(nx):
                V[j, n] = 0.5 * (work.Q_xx[j, n] + work.Q_xx[n, j])
        add_times(v, V, model.gap[i])
    return 1


@machine_code
def box_step(work: Sweep, u: FloatArray, K: FloatArray2) -> int:
    """Compute the least u.T Q u / 2 + g.T u within bounds, and its feedback by x.

    Q, g, dg/dx and the bounds are work.damped, Q_u, Q_ux, low and high. Rows of K are
    zero where a bound holds u.

    Args:
        work: Problem and work arrays.
        u, K: Results, (nv,) and (nv, nx).

    Returns:
        1, or 0 if Q is not positive definite.

    Source: D. Bertsekas, Projected Newton methods, SIAM J. Control 20 (1982).
    """
    n, full = len(u), 0
    for j in range(n):
        u[j] = min(max(0.0, work.low[j]), work.high[j])
        work.before[j] = -1
    for _ in range(MOST_STEPS):
        same, some = 1, 0
        for j in range(n):
            slope = work.Q_u[j]
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
    clear(K)
    for j in range(n):
        if work.free[j] == 1:
            for i in range(K.shape[1]):
                K[j, i] = -work.Q_ux[j, i]
    solve_rows(work.L, K, work.free)
    return 1


@machine_code
def line_search(work: Sweep, u: FloatArray) -> int:
    """Move u along work.change within the bounds; return whether nothing held it."""
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
    """Compute the Cholesky factor of Q, unit rows where free is 0; return success."""
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
    """Replace the rows of Y by the solution X of L L.T X = Y; others stay zero."""
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
def predicted_change(model: Expansion, work: Sweep) -> tuple[float, float]:
    """Return first and second derivative of the cost model along the full step.

    dx_next = A dx + B du + gap,   du = k + K dx,   dx_0 = 0
    """
    N, nv, nx = model.l_ux.shape
    dx, after, du = work.dx, work.dx_next, work.change
    for i in range(nx):
        dx[i] = 0.0
    slope, curvature = 0.0, 0.0
    for i in range(N + 1):
        for j in range(nx):
            slope += model.l_x[i, j] * dx[j]
            row = model.l_xx[i, j]
            for n in range(nx):
                curvature += dx[j] * row[n] * dx[n]
        if i == N:
            break
        for j in range(nv):
            du[j] = work.k[i, j]
        add_times(du, work.K[i], dx)
        for j in range(nv):
            slope += model.l_u[i, j] * du[j]
            bent = 0.0
            for n in range(nx):
                bent += 2.0 * model.l_ux[i, j, n] * dx[n]
            for n in range(nv):
                bent += model.l_uu[i, j, n] * du[n]
            curvature += du[j] * bent
        for j in range(nx):
            after[j] = model.gap[i + 1, j]
        add_times(after, model.A[i], dx)
        add_times(after, model.B[i], du)
        for j in range(nx):
            dx[j] = after[j]
    return slope, curvature


@machine_code
def stationarity(model: Expansion, work: Sweep) -> float:
    """Return the largest gradient by a joint force that no bound holds back.

    y[N] = l_x[N],   y[k] = l_x[k] + A.T y[k+1],   gradient l_u[k] + B.T y[k+1]
    """
    N, nv, nx = model.l_ux.shape
    y, before, largest = work.dx, work.dx_next, 0.0
    for j in range(nx):
        y[j] = model.l_x[N, j]
    for step in range(N):
        i = N - 1 - step
        for j in range(nv):
            work.slope[j] = model.l_u[i, j]
        for j in range(nx):
            before[j] = model.l_x[i, j]
        add_transposed_times(work.slope, model.B[i], y)
        add_transposed_times(before, model.A[i], y)
        for j in range(nv):
            g, tau = work.slope[j], model.tau[i, j]
            held_low = tau <= work.lower[j] and g > 0.0
            held_high = tau >= work.upper[j] and g < 0.0
            if not (held_low or held_high or work.lower[j] >= work.upper[j]):
                largest = max(largest, abs(g))
        for j in range(nx):
            y[j] = before[j]
    return largest


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
    """Copy A to C."""
    for i in range(len(C)):
        for j in range(C.shape[1]):
            C[i, j] = A[i, j]


@machine_code
def clear(C: FloatArray2) -> None:
    """Set C to zero."""
    for i in range(len(C)):
        for j in range(C.shape[1]):
            C[i, j] = 0.0


@machine_code
def add_product(C: FloatArray2, A: FloatArray2, B: FloatArray2) -> None:
    """Add A B to C; zeros of A take no time, as those of a step's derivatives."""
    for i in range(len(C)):
        for n in range(len(B)):
            if A[i, n] != 0.0:
                add_row(C[i], A[i, n], B[n])


@machine_code
def add_transposed_product(C: FloatArray2, A: FloatArray2, B: FloatArray2) -> None:
    """Add A.T B to C; zeros of A take no time."""
    for n in range(len(B)):
        for i in range(len(C)):
            if A[n, i] != 0.0:
                add_row(C[i], A[n, i], B[n])


@machine_code
def add_times(y: FloatArray, A: FloatArray2, x: FloatArray) -> None:
    """Add A x to y."""
    for i in range(len(y)):
        total = 0.0
        for j in range(len(x)):
            total += A[i, j] * x[j]
        y[i] += total


@machine_code
def add_transposed_times(y: FloatArray, A: FloatArray2, x: FloatArray) -> None:
    """Add A.T x to y."""
    for n in range(len(x)):
        if x[n] != 0.0:
            add_row(y, x[n], A[n])
