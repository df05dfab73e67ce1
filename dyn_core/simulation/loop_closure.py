"""Positions and velocities that close the loops of a robot, by projection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dyn_core.errors import (
    InfeasibleError,
    NonFiniteError,
    SingularError,
    UnsupportedError,
)
from dyn_core.model import Model
from dyn_core.model.checks.robots import check_robot
from dyn_core.model.loops.loop_constraints import velocity_rows
from dyn_core.solving.registry import solver
from dyn_core.validation import Quantity, Whole, known_keywords, one_state

DIFFERENCES = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
INSTANT = 1e-3  # between points of differences in time [s]
RANK = 1e-9  # singular values below this part of the largest are zero
MOVES = 8  # how often a position is moved that leaves a loop without a direction


@known_keywords
def close_loops(
    model: Model,
    q: Any,
    fixed: Sequence[str] = (),
    tolerance: float = 1e-12,
    rounds: int = 50,
    tries: int = 0,
    time: float = 0.0,
) -> np.ndarray:
    """Return the position near q that closes the loops.

        q <- q (+) -A_free^+ f,   until |f| is at most the tolerance

    A hinge with opposite axes is not closed; a rod whose ends coincide may part in any
    direction.

    Args:
        model: Robot with loops.
        q: Where to start, (nq,).
        fixed: Joints that must not move.
        tolerance: Largest residual [m | rad].
        rounds: Most steps.
        tries: How many seeded random starts may follow where q leads nowhere.
        time: Time at which driven places are where they are [s].

    Returns:
        q, (nq,).

    Raises:
        InfeasibleError: The loops cannot be closed from here; names the worst one and
            keeps its residual.
        ModelError: A number that bounds the search makes no sense.

    Source: KIM-3.0 (consistent states), by Gauss-Newton steps of least norm.
    """
    for name, kind, value in (
        ("tolerance", Quantity(0.0, above=True), tolerance),
        ("rounds", Whole(1), rounds),
        ("tries", Whole(), tries),
    ):
        kind.read(f"close_loops: {name}", value)
    program = constraint_rows(model, time)
    start, free = one_state("q", q, model.nq), _free(model, fixed)
    rng, best = np.random.default_rng(0), start
    for attempt in range(tries + 1):
        best, f = _descend(model, program, start, free, tolerance, rounds)
        if np.abs(f).max(initial=0.0) <= tolerance:
            return best
        if attempt == 0:
            first = f
        start = np.asarray(q, float).copy()
        drawn = model.random(rng)
        for i in model.independent:
            if model.v_slices[i].start in free:
                start[model.q_slices[i]] = drawn[model.q_slices[i]]
    worst = int(np.abs(first).argmax())
    raise InfeasibleError(
        f"{model.loop_rows[worst]}, stays open by {first[worst]:.3g}"
        f"{_flips(model, first)}; start nearer, or fix fewer joints",
        residual=abs(float(first[worst])),
    )


def flipped_hinges(model: Model, f: np.ndarray) -> list[str]:
    """Return the hinges whose axes point away from each other: beyond 90 degrees.

    Args:
        model: Robot with loops.
        f: Residuals of all rows.
    """
    names, row = [], 0
    for loop in model.loops:
        tilt = f[row + 3 : row + 5] if getattr(loop, "kind", "") == "revolute" else ()
        names += [loop.name] * bool(np.linalg.norm(tilt) > 2.0)
        row += loop.rows
    return names


def _flips(model: Model, f: np.ndarray) -> str:
    """Return what an error adds where hinges are flipped."""
    names = flipped_hinges(model, f)
    return f" (flipped: the axes of {', '.join(names)} are opposite)" if names else ""


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
    q, f, A = _regular(model, program, q, free)
    for _ in range(rounds):
        if np.abs(f).max(initial=0.0) <= tolerance:
            break
        step = still.copy()
        step[free] = -np.linalg.pinv(A[:, free], rcond=RANK) @ f
        most = float(np.abs(step).max(initial=0.0))
        scale = min(1.0, 0.5 / max(most, 1e-300))
        q = model.normalize(model.integrate(q, step * scale))
        q, f, A = _regular(model, program, q, free)
    return np.asarray(q), f


def _regular(
    model: Model, program: Any, q: np.ndarray, free: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return q, residuals and Jacobian; q moved a little where a loop has no direction.

    Ends of a rod that coincide, or opposite axes of a hinge, can part in any direction.
    """
    still, rng = np.zeros(model.nv), np.random.default_rng(1)
    for _ in range(MOVES):
        try:
            f, A, _ = program(q, still)
        except SingularError as error:
            singular = error
        else:
            f, A = _finite(model, f, A)
            slides = np.flatnonzero(velocity_rows(model.loops))
            A[slides] = 0.0  # no position breaks them: none is moved for them
            return np.asarray(q), f, A
        shift = still.copy()
        shift[free] = 1e-3 * rng.normal(size=len(free))
        q = model.normalize(model.integrate(q, shift))
    raise singular


def _finite(model: Model, f: np.ndarray, A: np.ndarray) -> tuple[Any, Any]:
    """Return residuals and Jacobian; a row that is no number is named."""
    good = np.isfinite(f) & np.isfinite(A).all(1)
    if not good.all():
        name = model.loop_rows[int(np.argmin(good))]
        raise NonFiniteError(f"{name}: its residual is not a finite number here", "f")
    return f, A


@known_keywords
def close_rates(
    model: Model,
    q: Any,
    qd: Any,
    fixed: Sequence[str] = (),
    tolerance: float = 1e-9,
    time: float = 0.0,
) -> np.ndarray:
    """Return the velocity nearest to qd that keeps the loops closed.

        A qd + df/dt = 0,   df/dt of driven places alone, zero where there are none

    Args:
        model: Robot with loops.
        q: Position, (nq,).
        qd: Velocity, (nv,).
        fixed: Joints that keep their velocity.
        tolerance: Largest rate of a residual [m/s | rad/s].
        time: Time at which driven places move as they do [s].

    Raises:
        InfeasibleError: The fixed joints' velocities contradict the loops.

    Source: KIM-3.0.
    """
    program = constraint_rows(model, time)
    free = _free(model, fixed)
    q = one_state("q", q, model.nq)
    qd = one_state("qd", qd, model.nv).copy()
    f, A, _ = program(q, qd)
    _finite(model, f, A)
    driven = driven_rate(model, q, time)
    qd[free] -= np.linalg.pinv(A[:, free], rcond=RANK) @ (A @ qd + driven)
    rate = A @ qd + driven
    worst = int(np.abs(rate).argmax()) if len(rate) else 0
    if len(rate) and abs(rate[worst]) > tolerance:
        raise InfeasibleError(
            f"{model.loop_rows[worst]}, opens at {rate[worst]:.3g}; fix fewer joints",
            residual=float(abs(rate[worst])),
        )
    return np.asarray(qd)


def constraint_rows(model: Model, time: float) -> Any:
    """Return residuals, Jacobian and bias of the loops as a function of q and qd."""
    check_robot(model, "this function")
    inputs, now = (["time"], (time,)) if model.driven else ([], ())
    program = solver("loop_constraints").build(model, engine="graph", inputs=inputs)
    return lambda q, qd: program(q, qd, *now)


def driven_rate(model: Model, q: Any, time: float) -> Any:
    """Return df/dt at constant q, by eighth-order central differences in time."""
    if not model.driven:
        return 0.0
    if any(velocity_rows(model.loops)):
        raise UnsupportedError(
            "close_rates: driven places and rows in velocities (rolling) together;"
            " valid: one of them"
        )
    still = np.zeros(model.nv)
    rate = np.zeros(sum(loop.rows for loop in model.loops))
    for k, weight in enumerate(DIFFERENCES, 1):
        after, before = (
            constraint_rows(model, time + sign * k * INSTANT)(q, still)[0]
            for sign in (1, -1)
        )
        rate += weight / INSTANT * (after - before)
    return rate


def _free(model: Model, fixed: Sequence[str]) -> np.ndarray:
    """Return the numbers of coordinates that may change."""
    free = np.ones(model.nv, bool)
    for name in fixed:
        free[model.v_slice(name)] = False
    return np.flatnonzero(free)
