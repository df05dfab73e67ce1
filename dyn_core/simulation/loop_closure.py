"""Projection of positions and velocities onto the loop closures of a robot."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
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
from dyn_core.validation import ListOf, Name, Quantity, Whole, known_keywords, one_state

DIFFERENCES = (4 / 5, -1 / 5, 4 / 105, -1 / 280)  # central, of eighth order
INSTANT = 1e-3  # step of the finite differences in time [s]
RANK = 1e-9  # relative threshold below which singular values count as zero
MOVES = 8  # maximum number of random shifts away from a singular position


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
    """Return a position near q at which the loops are closed; q is not changed.

        q <- q (+) -A_free^+ f,   until |f| is at most the tolerance

    f are the residuals, A_free their Jacobian by the joints that are not fixed. A hinge
    with opposite axes does not count as closed. From a singular position, such as
    coinciding ends of a rod, the search first moves in a random direction. Limits of
    joints are ignored.

    Args:
        model: Robot with loops.
        q: Initial position, (nq,).
        fixed: Names of joints that must not move, or one name.
        tolerance: Largest absolute residual [m | rad].
        rounds: Maximum number of Gauss-Newton steps in each attempt.
        tries: Number of further attempts, if q does not converge: the joints that are
            not fixed then start at seeded random positions.
        time: Time for driven joints [s].

    Returns:
        Position, (nq,).

    Raises:
        InfeasibleError: The loops cannot be closed; names the worst row of the first
            attempt and has its residual.
        ModelError: tolerance, rounds or tries is out of range, or `fixed` names an
            unknown joint.
        ShapeError: q has the wrong shape.
        SingularError, NonFiniteError: The residuals cannot be evaluated near q.
        UnsupportedError: `model` is not a robot.

    Source: KIM-3.0 (consistent states), by Gauss-Newton steps of least norm.
    """
    for name, kind, value in (
        ("tolerance", Quantity(0.0, above=True), tolerance),
        ("rounds", Whole(1, 10_000), rounds),
        ("tries", Whole(0, 10_000), tries),
    ):
        kind.read(f"close_loops: {name}", value)
    check_robot(model, "close_loops")
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
    """Return the names of revolute loops whose axes are over 90 degrees apart.

    f are the residuals of all rows, in the order of model.loop_rows.
    """
    names, row = [], 0
    for loop in model.loops:
        tilt = f[row + 3 : row + 5] if getattr(loop, "kind", "") == "revolute" else ()
        names += [loop.name] * bool(np.linalg.norm(tilt) > 2.0)
        row += loop.rows
    return names


def _flips(model: Model, f: np.ndarray) -> str:
    """Return the end of an error message if hinges are flipped, else ""."""
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
    """Take Gauss-Newton steps until the loops are closed; return q and residuals.

    A step is scaled down so that no coordinate changes by more than 0.5. `tolerance` is
    the largest absolute residual at which to stop [m | rad]. If the rounds do not
    suffice, the last q is returned. `program` and `free` as in _regular.
    """
    still = np.zeros(model.nv)
    q, f, A = _regular(model, program, q, free)
    for _ in range(rounds):
        if np.abs(f).max(initial=0.0) <= tolerance:
            break
        step = still.copy()
        step[free] = -np.linalg.pinv(A[:, free], rcond=RANK) @ f
        most = float(np.abs(step).max(initial=0.0))
        # 1e-300 avoids a division by zero where the step vanishes.
        scale = min(1.0, 0.5 / max(most, 1e-300))
        q = model.normalize(model.integrate(q, step * scale))
        q, f, A = _regular(model, program, q, free)
    return np.asarray(q), f


def _regular(
    model: Model, program: Any, q: np.ndarray, free: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return q, residuals (rows,) and Jacobian (rows, nv), near q if q is singular.

    At coinciding ends of a rod, or opposite axes of a hinge, the direction of motion is
    undetermined: a copy of q is then returned, shifted at random in `free`, the indices
    of the velocity coordinates that may change; SingularError after 8 (MOVES).
    `program` returns residuals, Jacobian and bias of q and qd. In rows of velocity
    constraints (rolling) the Jacobian is zero.
    """
    still, rng = np.zeros(model.nv), np.random.default_rng(1)
    for _ in range(MOVES):
        try:
            f, A, _ = program(q, still)
        except SingularError as error:
            singular = error
        else:
            f, A = finite_rows(model, f, A)
            slides = np.flatnonzero(velocity_rows(model.loops))
            A[slides] = 0.0  # rows in velocities do not constrain the position
            return np.asarray(q), f, A
        shift = still.copy()
        shift[free] = 1e-3 * rng.normal(size=len(free))
        q = model.normalize(model.integrate(q, shift))
    raise singular


def finite_rows(model: Model, f: np.ndarray, A: np.ndarray) -> tuple[Any, Any]:
    """Return f and A unchanged; a row that is not finite is a NonFiniteError."""
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
    """Return the velocity nearest to qd that satisfies the loop constraints.

        A qd + df/dt = 0,   df/dt of driven joints alone, zero where there are none

    f are the residuals of the loops, A their Jacobian. Nearest: the sum of the squared
    changes is least, of joints that are not fixed.

    Args:
        model: Robot with loops.
        q: Position, (nq,); its residuals need not be zero.
        qd: Velocity, (nv,); not changed.
        fixed: Names of joints whose velocity must not change, or one name.
        tolerance: Largest absolute rate of a residual [m/s | rad/s].
        time: Time for driven joints [s].

    Returns:
        Velocity, (nv,).

    Raises:
        InfeasibleError: The fixed joints' velocities contradict the loops; names the
            worst row and has its residual.
        ModelError: tolerance is not above 0, or `fixed` names an unknown joint.
        ShapeError: q or qd has the wrong shape.
        SingularError: The residuals cannot be evaluated at q, such as at coinciding
            ends of a rod.
        NonFiniteError: A residual is not finite at q.
        UnsupportedError: The robot has driven joints and rolling constraints, or
            `model` is not a robot.

    Source: KIM-3.0.
    """
    Quantity(0.0, above=True).read("close_rates: tolerance", tolerance)
    check_robot(model, "close_rates")
    program = constraint_rows(model, time)
    free = _free(model, fixed)
    q = one_state("q", q, model.nq)
    qd = one_state("qd", qd, model.nv).copy()
    f, A, _ = program(q, qd)
    finite_rows(model, f, A)
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
    """Return a function of q and qd: residuals, Jacobian and bias of the loops.

    q is (nq,), qd (nv,); the result is a tuple of (rows,), (rows, nv) and (rows,). The
    second derivative of the residuals is Jacobian times qdd plus bias; velocity rows
    (rolling) have the residual 0, and the sum is the rate of A qd. The function
    raises SingularError where a constraint has no direction.

    Args:
        model: Robot.
        time: Time for driven joints [s].
    """
    program, now = _rows(model), (time,) if model.driven else ()
    return lambda q, qd: program(q, qd, *now)


@lru_cache(maxsize=8)  # a search closes the loops of one robot hundreds of times
def _rows(model: Model) -> Any:
    """Return the Program of a robot's loop_constraints; driven joints add an input."""
    inputs = ["time"] if model.driven else []
    return solver("loop_constraints").build(model, engine="graph", inputs=inputs)


def driven_rate(model: Model, q: Any, time: float) -> Any:
    """Return df/dt of the loop residuals at constant q, (rows,) [m/s | rad/s].

    It is an eighth-order central difference in time; 0.0 without driven joints.
    """
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
    """Return the indices of velocity coordinates that are not fixed, ascending.

    A follower in `fixed` stands for its leader.
    """
    free = np.ones(model.nv, bool)
    fixed = (fixed,) if isinstance(fixed, str) else fixed
    for name in ListOf(Name()).read("fixed", fixed):
        free[model.v_slice(name)] = False
    return np.flatnonzero(free)
