"""Restitution other than Newton's simultaneous law: Poisson's, and sequential."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dyn_core.contact.problem.layout import ConstraintLayout
from dyn_core.contact.problem.problem import ConstraintProblem
from dyn_core.contact.problem.solution import ContactSolution
from dyn_core.contact.stepping.constrained_state import ConstrainedState
from dyn_core.contact.stepping.world import World

ROUNDS = 20  # largest number of updates of the friction discs in a release
TURNS = 10_000  # largest number of impacts in a sequence
TOUCHING = 1e-9  # gap of neighbours that take part in an impact [m | rad]
INSTANT = 1e-12  # duration of an impact: friction of joints has no time to act [s]
SETTLED = 1e-9  # relative tolerance of the radii


def sequential_impacts(
    state: ConstrainedState, fast: np.ndarray, world: World
) -> np.ndarray:
    """Return the impulses of a sequence of impacts, (m,).

        lambda_k = -(1 + e) sigma_k / G_kk  at the fastest approach, until all are slow

    Only the normals of contacts and limits take part. Slow contacts, friction and other
    constraints are solved by the step that follows.

    Args:
        state: Constraints, and the velocity before the impacts.
        fast: Which blocks may bounce, (blocks,).
        world: Its restitution_threshold is used.

    Source: LCP-10 (sequential law), C13.
    """
    impulse = np.zeros(state.layout.m)
    rows = np.array(state.first, int)
    touching = fast | np.array(
        [c.closing and float(c.gap) <= TOUCHING for c in state.constraints], bool
    )
    rows = rows[touching] if len(rows) else rows
    if not fast.any():
        return impulse
    e = np.array([c.restitution for c in state.constraints])[touching]
    G, sigma = state.G[np.ix_(rows, rows)], state.J[rows] @ state.qd
    impacts = np.zeros(len(rows))
    for _ in range(TURNS):
        k = int(np.argmin(sigma))
        if sigma[k] >= -max(world.restitution_threshold, 1e-12):
            break
        impact = -(1 + e[k]) * sigma[k] / G[k, k]
        impacts[k] += impact
        sigma = sigma + G[:, k] * impact
    impulse[rows] = impacts
    return impulse


def poisson_impacts(
    state: ConstrainedState,
    fast: np.ndarray,
    solve: Callable[[ConstraintProblem], ContactSolution],
) -> np.ndarray:
    """Return the impulses of an instantaneous impact by Poisson's law, (m,).

        compression:  0 <= lambda_c  orthogonal to  sigma_n >= 0
        release:      lambda_n = e lambda_c + x,   0 <= x  orthogonal to  sigma_n >= 0

    It starts from the velocity before the step, with touching contacts and limits,
    loops and gears; forces have no time to act. Joints keep prescribed velocities.

    Args:
        state: Constraints, and the velocity before the impact.
        fast: Which blocks bounce, (blocks,).
        solve: Function that returns a problem's solution.

    Source: LCP-10 (Poisson); M. Anitescu and F. Potra 1997.
    """
    impulse = np.zeros(state.layout.m)
    met = [
        bool(bounces) or (c.role != "friction" and not c.closing)
        or (c.closing and float(c.gap) <= TOUCHING)
        for c, bounces in zip(state.constraints, fast, strict=True)
    ]  # fmt: skip
    part = state.only(met)
    prescribed = [
        c.role == "prescribed" for c in part.constraints for _ in range(c.rows)
    ]
    targets = [c.target_velocity for c in part.constraints for _ in range(c.rows)]
    before = part.J @ state.qd
    bias = np.where(prescribed, np.array(targets) - before, 0.0)
    compression = solve(part.problem(state.qd, INSTANT, bias))
    velocity = part.moved(state.qd, compression.impulses)
    release = _poisson_release(part, velocity, compression, fast[met], solve)
    rows = np.repeat(met, [c.rows for c in state.constraints])
    impulse[rows] = compression.impulses + release
    return impulse


def _poisson_release(
    state: ConstrainedState,
    velocity: np.ndarray,
    compression: ContactSolution,
    fast: np.ndarray,
    solve: Callable[[ConstraintProblem], ContactSolution],
) -> np.ndarray:
    """Return the impulses of the release after a compression, (m,).

    The known normal impulses act first. The rest is a problem in x and the tangents,
    |lambda_T| <= mu lambda_n, whose friction discs have the radius of the previous
    round.

    Args:
        state: Constraints that took part.
        velocity: After the compression, (nv,).
        compression: Its solution.
        fast: Which blocks bounce, (blocks,); the others have no release.
        solve: Function that returns a problem's solution.
    """
    impulse = np.zeros(state.layout.m)
    first = np.array(state.first, int)
    e = np.array([c.restitution for c in state.constraints]) * fast
    known = e * compression.impulses[first]
    impulse[first] = known
    kept = state.J @ velocity
    free = state.moved(velocity, impulse)
    radius = known
    x = np.zeros(len(impulse))
    for _ in range(ROUNDS):
        solution = solve(_release(state, state.J @ free, kept, radius))
        x = _unpacked(state, solution.impulses)
        new = known + x[first]
        if np.abs(new - radius).max() <= SETTLED * np.abs(new).max(initial=1e-300):
            break
        radius = new
    return impulse + x


def _release(
    state: ConstrainedState, b: np.ndarray, kept: np.ndarray, radius: np.ndarray
) -> ConstraintProblem:
    """Return the problem of a release: one normal row and one disc per contact.

    A disc is a contact whose normal row is decoupled from all others and fixed to the
    impulse `radius`. Rows of other constraints keep their velocities `kept`.
    """
    parts: list[tuple[str, int]] = []
    order: list[int] = []
    mu: list[float] = []
    bias: list[float] = []
    for k, (block, c) in enumerate(
        zip(state.layout.blocks, state.constraints, strict=True)
    ):
        if c.kind != "contact":
            parts.append((c.kind, c.rows))
            order += list(block.all)
            keeps = c.role == "prescribed"
            bias += [-x if keeps else 0.0 for x in kept[list(block.all)].tolist()]
            continue
        parts.append(("unilateral", 1))
        order.append(block.start)
        bias.append(0.0)
        if c.rows > 1:
            parts.append(("contact", c.rows))
            order += [-1, *block.tangent]
            bias += [-max(float(radius[k]), 0.0), *[0.0] * (c.rows - 1)]
            mu += c.mu
    rows = np.array(order)
    real = rows >= 0
    G = np.where(np.outer(real, real), state.G[np.ix_(rows, rows)], 0.0)
    G[~real, ~real] = 1.0
    free = np.where(real, b[rows], 0.0) + np.array(bias)
    none = np.zeros(len(rows))  # friction of joints has had its impulse already
    return ConstraintProblem(ConstraintLayout(tuple(parts)), G, free, mu, none, none)


def _unpacked(state: ConstrainedState, packed: np.ndarray) -> np.ndarray:
    """Return the impulses of a release in the rows of the state, (m,)."""
    impulse, index = np.zeros(state.layout.m), 0
    for block, c in zip(state.layout.blocks, state.constraints, strict=True):
        skip = 1 if c.kind == "contact" and c.rows > 1 else 0
        if c.kind == "contact":
            impulse[block.start] = packed[index]
            tangent = list(block.tangent)
            impulse[tangent] = packed[
                index + 1 + skip : index + 1 + skip + len(tangent)
            ]
        else:
            impulse[list(block.all)] = packed[index : index + c.rows]
        index += c.rows + skip
    return impulse
