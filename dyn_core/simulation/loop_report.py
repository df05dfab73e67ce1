"""Report on the loops in a state: residuals, rank, mobility, dependent rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dyn_core.errors import DynError
from dyn_core.model import Model
from dyn_core.model.checks.robots import check_robot
from dyn_core.simulation.loop_closure import (
    close_loops,
    constraint_rows,
    driven_rate,
    finite_rows,
    flipped_hinges,
)
from dyn_core.validation import one_state

TRIES = 8  # number of random starts for closing the loops in an overview
DRIFT = 1e-6  # ratio of curvature to speed of the rows that may be drift
RANK = 1e-5  # relative threshold below which singular values of A count as zero
CURVED = 1e-4  # relative curvature above which the rank drops at this position only


@dataclass(frozen=True)
class LoopReport:
    """Residuals, rank and mobility of a robot's loops in a state.

    Attributes:
        rows: Names of the constraint rows.
        f: Residual of each row, (rows,) [m | rad].
        rate: Rate of each residual, A qd + df/dt of driven joints, (rows,)
            [m/s | rad/s].
        acceleration: Second derivative of each residual, A qdd + bias, (rows,)
            [m/s² | rad/s²].
        rank: Rank of the Jacobian A: number of singular values above 1e-5 (RANK) times
            the largest.
        mobility: Degrees of freedom, nv - rank.
        dependent: Groups of names of linearly dependent rows; a group of one row is a
            row that no joint moves. Independent rows are in no group.
        flipped: Names of hinges whose axes are opposite (over 90 degrees apart).
        dead_points: Groups of `dependent` that are dependent at this position but not
            beside it: a dead point of the linkage. The other groups are dependent
            everywhere.
    """

    rows: tuple[str, ...]
    f: np.ndarray
    rate: np.ndarray
    acceleration: np.ndarray
    rank: int
    mobility: int
    dependent: tuple[tuple[str, ...], ...]
    flipped: tuple[str, ...]
    dead_points: tuple[tuple[str, ...], ...] = ()

    @property
    def gap(self) -> float:
        """Largest absolute residual [m | rad]; 0 without rows."""
        return float(np.abs(self.f).max(initial=0.0))

    def __str__(self) -> str:
        lines = [f"{len(self.rows)} constraint rows, rank {self.rank}:"]
        lines[0] += f" mobility {self.mobility}, gap {self.gap:.3g}"
        columns = zip(self.rows, self.f, self.rate, self.acceleration, strict=True)
        for name, f, rate, second in columns:
            lines.append(f"  {name}: f {f:.3g}, rate {rate:.3g}, {second:.3g} per s²")
        for group in self.dependent:
            where = ", but not beside it: a dead point"
            what = "depend on each other" if len(group) > 1 else "no joint moves it"
            what += f" here{where}" if group in self.dead_points else ""
            lines.append(f"  {'; '.join(group)}: {what}")
        lines += [
            f"  loop {name}: flipped, its axes are opposite" for name in self.flipped
        ]
        return "\n".join(lines)


def loop_report(
    model: Model, q: Any, qd: Any = None, qdd: Any = None, time: float = 0.0
) -> LoopReport:
    """Return the report on a robot's loops in a state; arguments are not changed.

    Args:
        model: Robot; without loops the report has no rows.
        q: Position, (nq,); the loops need not be closed.
        qd: Velocity, (nv,); None: rest.
        qdd: Acceleration, (nv,); None: zeros.
        time: Time for driven joints [s].

    Raises:
        ShapeError: An array has the wrong size.
        SingularError: A loop has no direction at q.
        NonFiniteError: A residual or an entry of the Jacobian is not finite at q; names
            the row.
        UnsupportedError: `model` is no robot, or has driven joints and rolling
            constraints.

    Source: KIM-3.0 (checks of a state).
    """
    check_robot(model, "loop_report")
    still = np.zeros(model.nv)
    q = one_state("q", q, model.nq)
    qd = still if qd is None else one_state("qd", qd, model.nv)
    qdd = still if qdd is None else one_state("qdd", qdd, model.nv)
    rows = constraint_rows(model, time)
    f, A, bias = rows(q, qd)
    finite_rows(model, f, A)
    names = model.loop_rows
    U, sizes, V = np.linalg.svd(A)
    rank = int((sizes > RANK * sizes.max(initial=0.0)).sum())
    groups = _groups(names, U[:, rank:])
    bent = _bent_rows(lambda t: rows(q, t)[2], A, U[:, rank:], V[rank:])
    dead = {names[k] for k in np.flatnonzero(bent)}
    return LoopReport(
        tuple(names),
        f,
        A @ qd + driven_rate(model, q, time),
        A @ qdd + bias,
        rank,
        model.nv - rank,
        groups,
        tuple(flipped_hinges(model, f)),
        tuple(group for group in groups if dead & set(group)),
    )


def _bent_rows(
    bias: Any, A: np.ndarray, dependent: np.ndarray, tangents: np.ndarray
) -> np.ndarray:
    """Return for m rows whether each is dependent at this position only, bool, (m,).

        y.T d²f(t, t) = 0  for y of dependent rows and velocities t, A t = 0

    holds where rows are dependent everywhere; it is tested for two random t, up to a
    tolerance. Independent rows are False. `bias` is a function of qd that returns
    (dA/dt) qd, (m,). `dependent` is an orthonormal basis of the left null space of A,
    (m, k), with columns y; `tangents` one of the null space, a velocity in each row.
    """
    bent = np.zeros(len(dependent), bool)
    rest = bias(np.zeros(tangents.shape[1]))
    for weights in np.random.default_rng(0).normal(size=(2, len(tangents))):
        t = weights @ tangents
        t = t / max(np.abs(t).max(initial=0.0), 1e-300)
        # The even part in t: terms linear in the velocity and constant ones cancel.
        curvature = (bias(t) + bias(-t)) / 2 - rest
        left = np.abs(dependent @ (dependent.T @ curvature))
        largest = CURVED * np.abs(curvature).max(initial=0.0)
        bent |= left > max(largest, DRIFT * (np.abs(A) @ np.abs(t)).max(initial=0.0))
    return bent


def _groups(names: list[str], dependent: np.ndarray) -> tuple[tuple[str, ...], ...]:
    """Return groups of names of mutually dependent rows, in the order of first rows.

    Independent rows are left out; a row that is dependent alone is a group of its own.
    `dependent` is an orthonormal basis of the left null space of the Jacobian, (m, k).
    """
    tied = np.abs(dependent @ dependent.T) > 1e-6
    left, groups = [k for k in range(len(names)) if tied[k, k]], []
    while left:
        group = {left[0]}
        while True:
            wider = {j for k in group for j in left if tied[k, j]} | group
            if wider == group:
                break
            group = wider
        groups.append(tuple(names[k] for k in sorted(group)))
        left = [k for k in left if k not in group]
    return tuple(groups)


def describe_loops(model: Model) -> list[str]:
    """Return lines on a robot's loops; no line without loops.

    They list the loops and their rows, the gap at model.neutral(), and mobility, rank
    and dependent rows at a closed position, or an error in their place.
    """
    if not model.loops:
        return []
    kinds = [getattr(loop, "kind", "coupling") or "user" for loop in model.loops]
    pairs = zip(model.loops, kinds, strict=True)
    shown = ", ".join(f"{x.name} ({kind}, {x.rows} rows)" for x, kind in pairs)
    total = sum(loop.rows for loop in model.loops)
    lines = [f"loops: {shown}; {total} constraint rows for nv {model.nv}:"]
    q = model.neutral()
    try:
        gap = f"gap at zero {loop_report(model, q).gap:.3g}"
    except DynError as error:
        gap = f"at zero {error}"
    try:
        closed = loop_report(model, close_loops(model, q, tries=TRIES))
    except DynError as error:
        return [*lines, f"  {gap}; no position that closes them was met: {error}"]
    lines.append(f"  {gap}; closed: mobility {closed.mobility}, rank {closed.rank}")
    for group in closed.dependent:
        alone = "no joint moves it"
        what = "depend on each other" if len(group) > 1 else alone
        if group in closed.dead_points:
            lines.append(f"  {'; '.join(group)}: {what} here: a dead point")
            continue
        lines.append(f"  {'; '.join(group)}: {what}; see dependent='least_norm'")
    return lines
