"""One Riccati sweep with bounds on the joint forces of each knot, in NumPy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dyn_core.prediction.riccati import Expansion

TINY = 1e-300
MOST_STEPS = 100  # of the projected Newton method; each frees or clamps coordinates


class Feedback(NamedTuple):
    """Change of the joint forces and feedback of all knots, and the predicted change.

    Attributes:
        k, K: Change, (N, nv), and feedback, (N, nv, nx); rows of K are zero where a
            bound holds the joint force.
        slope: Derivative of the cost along the full step.
        curvature: Second derivative of the cost model along the full step.
    """

    k: np.ndarray
    K: np.ndarray
    slope: float
    curvature: float


def riccati(
    model: Expansion, lower: np.ndarray, upper: np.ndarray, damping: float
) -> Feedback | None:
    """Return the feedback that minimises the quadratic model within the bounds.

        Q_xx = l_xx + A.T V A,   Q_ux = l_ux + B.T V A,   Q_uu = l_uu + B.T V B
        k = argmin of k.T Q_uu k / 2 + Q_u.T k within the bounds,  K = -Q_ff^-1 Q_fx

    Args:
        model: Quadratic model.
        lower, upper: Bounds of the change k of each knot, (N, nv).
        damping: Share of the mean diagonal entry of Q_uu that is added to it; forces
            with equal bounds do not count. Some must have others.

    Returns:
        The feedback, or None if a Q_uu is not positive definite.

    Source: Y. Tassa, N. Mansard, E. Todorov, Control-limited differential dynamic
    programming, ICRA 2014; gaps: C. Mastalli et al., A feasibility-driven approach to
    control-limited DDP, Autonomous Robots 46 (2022).
    """
    N, nv, nx = model.l_ux.shape
    k, K = np.zeros((N, nv)), np.zeros((N, nv, nx))
    V = model.l_xx[N]
    v = model.l_x[N] + V @ model.gap[N]
    for i in reversed(range(N)):
        A, B = model.A[i], model.B[i]
        VA, VB = V @ A, V @ B
        Q_x, Q_u = model.l_x[i] + A.T @ v, model.l_u[i] + B.T @ v
        Q_xx, Q_ux = model.l_xx[i] + A.T @ VA, model.l_ux[i] + B.T @ VA
        Q_uu = model.l_uu[i] + B.T @ VB
        mean = np.diag(Q_uu)[(lower < upper).any(0)].mean()
        added = damping * max(mean, TINY) * np.eye(nv)
        step = box_step(Q_uu + added, Q_u, Q_ux, lower[i], upper[i])
        if step is None:
            return None
        k[i], K[i] = step
        v = Q_x + K[i].T @ (Q_uu @ k[i] + Q_u) + Q_ux.T @ k[i]
        V = Q_xx + K[i].T @ Q_uu @ K[i] + K[i].T @ Q_ux + Q_ux.T @ K[i]
        V = (V + V.T) / 2
        v = v + V @ model.gap[i]
    return Feedback(k, K, *predicted(model, k, K))


def box_step(
    Q: np.ndarray, g: np.ndarray, G: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the least u.T Q u / 2 + g.T u within bounds, and its feedback by x.

    Args:
        Q: Positive definite matrix, (n, n).
        g: Vector, (n,).
        G: Derivative of g by x, (n, nx).
        lower, upper: Bounds, (n,), lower <= upper.

    Returns:
        u, (n,), and du/dx, (n, nx), whose rows are zero at bounds; None if Q is not
        positive definite.

    Source: D. Bertsekas, Projected Newton methods, SIAM J. Control 20 (1982).
    """
    u, K = np.clip(np.zeros(len(g)), lower, upper), np.zeros_like(G)
    full, before = False, np.zeros(len(g), bool)
    for _ in range(MOST_STEPS):
        slope = Q @ u + g
        stays = ((u <= lower) & (slope > 0)) | ((u >= upper) & (slope < 0))
        free = ~(stays | (lower == upper))
        if full and np.array_equal(free, before):
            break
        if not free.any():
            return u, K
        try:
            L = np.linalg.cholesky(Q[np.ix_(free, free)])
        except np.linalg.LinAlgError:
            return None
        change = np.zeros(len(g))
        change[free] = -_solved(L, slope[free])
        length, before = 1.0, free
        while True:
            tried = np.clip(u + length * change, lower, upper)
            moved = tried - u
            gain = moved @ (slope + Q @ moved / 2)
            if gain <= 0.1 * (slope @ moved) or length < 1e-10:
                break
            length *= 0.6
        full = length == 1.0 and np.array_equal(tried, u + change)
        u = tried
    K[free] = -_solved(L, G[free])
    return u, K


def _solved(L: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the solution x of L L.T x = y."""
    return np.linalg.solve(L.T, np.linalg.solve(L, y))


def predicted(model: Expansion, k: np.ndarray, K: np.ndarray) -> tuple[float, float]:
    """Return first and second derivative of the cost model along the full step.

    dx_next = A dx + B du + gap,   du = k + K dx,   dx_0 = gap_0
    """
    dx, slope, curvature = model.gap[0], 0.0, 0.0
    N = len(k)
    for i in range(N):
        du = k[i] + K[i] @ dx
        slope += model.l_x[i] @ dx + model.l_u[i] @ du
        curvature += dx @ model.l_xx[i] @ dx + du @ model.l_uu[i] @ du
        curvature += 2 * du @ model.l_ux[i] @ dx
        dx = model.A[i] @ dx + model.B[i] @ du + model.gap[i + 1]
    slope += model.l_x[N] @ dx
    curvature += dx @ model.l_xx[N] @ dx
    return float(slope), float(curvature)
