"""Positions and velocities that close the loops of a robot, by projection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dyn_core.errors import InfeasibleError
from dyn_core.model import Model
from dyn_core.solving.registry import solver
from dyn_core.validation import state_array

RANK = 1e-9  # singular values below this part of the largest are zero


def close_loops(
    model: Model,
    q: Any,
    fixed: Sequence[str] = (),
    tolerance: float = 1e-12,
    rounds: int = 50,
    tries: int = 0,
) -> np.ndarray:
    """Return the position near q that closes the loops.

        q <- q (+) -A_free^+ f,   until |f| is at most the tolerance

    Args:
        model: Robot with loops.
        q: Where to start, (nq,).
        fixed: Joints that must not move.
        tolerance: Largest residual [m | rad].
        rounds: Most steps.
        tries: How many seeded random starts may follow where q leads nowhere.

    Returns:
        q, (nq,).

    Raises:
        InfeasibleError: The loops cannot be closed from here; names the worst one and
            keeps its residual.

    Source: KIM-3.0 (consistent states), by Gauss-Newton steps of least norm.
    """
    program = solver("loop_constraints").build(model, engine="graph")
    start, free = state_array("q", q, model.nq), _free(model, fixed)
    rng, best = np.random.default_rng(0), start
    for attempt in range(tries + 1):
        best, f = _descend(model, program, start, free, tolerance, rounds)
        if np.abs(f).max(initial=0.0) <= tolerance:
            return best
        if attempt == 0:
            worst = int(np.abs(f).argmax())
            left = float(f[worst])
        start = np.asarray(q, float).copy()
        drawn = model.random(rng)
        for i in model.independent:
            if model.v_slices[i].start in free:
                start[model.q_slices[i]] = drawn[model.q_slices[i]]
    raise InfeasibleError(
        f"{_name(model, worst)} stays open by {left:.3g}; start nearer, or fix fewer"
        " joints",
        residual=abs(left),
    )


def _descend(
    model: Model,
    program: Any,
    q: np.ndarray,
    free: np.ndarray,
    tolerance: float,
    rounds: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Take Gauss-Newton steps of at most 0.5 in a coordinate; give q and residuals."""
    still = np.zeros(model.nv)
    f, A, _ = program(q, still)
    for _ in range(rounds):
        if np.abs(f).max(initial=0.0) <= tolerance:
            break
        step = still.copy()
        step[free] = -np.linalg.pinv(A[:, free], rcond=RANK) @ f
        most = float(np.abs(step).max(initial=0.0))
        scale = min(1.0, 0.5 / max(most, 1e-300))
        q = model.normalize(model.integrate(q, step * scale))
        f, A, _ = program(q, still)
    return np.asarray(q), f


def close_rates(
    model: Model, q: Any, qd: Any, fixed: Sequence[str] = (), tolerance: float = 1e-9
) -> np.ndarray:
    """Return the velocity nearest to qd that keeps the loops closed: A qd = 0.

    Args:
        model: Robot with loops.
        q: Position, (nq,).
        qd: Velocity, (nv,).
        fixed: Joints that keep their velocity.
        tolerance: Largest rate of a residual [m/s | rad/s].

    Raises:
        InfeasibleError: The fixed joints' velocities contradict the loops.

    Source: KIM-3.0.
    """
    program = solver("loop_constraints").build(model, engine="graph")
    free = _free(model, fixed)
    qd = state_array("qd", qd, model.nv).copy()
    _, A, _ = program(q, qd)
    qd[free] -= np.linalg.pinv(A[:, free], rcond=RANK) @ (A @ qd)
    rate = A @ qd
    worst = int(np.abs(rate).argmax()) if len(rate) else 0
    if len(rate) and abs(rate[worst]) > tolerance:
        raise InfeasibleError(
            f"{_name(model, worst)} opens at {rate[worst]:.3g}; fix fewer joints",
            residual=float(abs(rate[worst])),
        )
    return np.asarray(qd)


def _free(model: Model, fixed: Sequence[str]) -> np.ndarray:
    """Return the numbers of coordinates that may change."""
    free = np.ones(model.nv, bool)
    for name in fixed:
        free[model.v_slice(name)] = False
    return np.flatnonzero(free)


def _name(model: Model, row: int) -> str:
    """Name the loop of a row."""
    for loop in model.loops:
        if row < loop.rows:
            return f"loop {loop.name}, row {row},"
        row -= loop.rows
    return "a loop"
