"""Restitution other than Newton's simultaneous law: Poisson's, and sequential.

Both act on a prepared step, at the velocity before it: an impact takes no time, so that
forces, friction of joints and pushes out of overlaps have no part in it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dyn_core.contact.problem.layout import ConstraintLayout
from dyn_core.contact.problem.problem import ConstraintProblem
from dyn_core.contact.problem.residuals import STATUSES
from dyn_core.contact.problem.solution import ContactSolution
from dyn_core.contact.problem.solving import solve
from dyn_core.contact.rows.block_rows import gap_rule
from dyn_core.contact.rows.contact_biases import TOUCH
from dyn_core.contact.rows.problem_assembly import apply_impulses
from dyn_core.contact.rows.step_tables import (
    CONTACT_ROLE,
    FRICTION,
    LIMIT,
    Scene,
    StepArrays,
)
from dyn_core.contact.solvers.solver_memory import CONVERGED
from dyn_core.contact.stepping.step_matrices import (
    inertia_factor,
    problem_of,
    sparse_rows,
)
from dyn_core.contact.world import World
from dyn_core.engines.machine_code import compiled

ROUNDS = 20  # largest number of updates of the friction discs in a release
TURNS = 10_000  # largest number of impacts in a sequence
SETTLED = 1e-9  # relative tolerance of the radii

Solve = Callable[[ConstraintProblem], ContactSolution]


class ImpactLaw:
    """Impacts of a world before its steps, by Poisson's or the sequential law."""

    def __init__(
        self, world: World, scene: Scene, step: StepArrays, impulse: np.ndarray
    ) -> None:
        """Bind the machine code to the memory.

        Args:
            world: Its law, and the solver of Poisson's problems.
            scene, step: Robot and rule, and the arrays of the problem.
            impulse: Memory that `act` writes, one number for each possible row; not
                copied.
        """
        self._world, self._scene, self._step = world, scene, step
        self._apply = compiled(apply_impulses).bind(scene, step)
        self.impulse, self._worst = impulse, CONVERGED

    def act(self, blocks: int, m: int) -> int:
        """Apply the impact of a prepared step before it; return a status.

        The impulses are the first m entries of `impulse`, zero without a bouncing
        block; they change the free velocity and b of the problem. A block that bounced
        has its velocity after the impact as the lower bound in the step: its b and bias
        are changed. The status is CONVERGED, or the last one of a problem that did not
        converge.
        """
        world, scene, step = self._world, self._scene, self._step
        self.impulse[:m], self._worst = 0.0, CONVERGED
        impact = impact_of(scene, step, blocks, m)
        if impact is None:
            return CONVERGED
        if world.impacts == "sequential":
            impulse = sequential_impacts(impact, world.restitution_threshold)
        else:
            impulse = poisson_impacts(impact, self._solve)
        if not impulse.any():
            return self._worst
        rows, facts = step.rows, step.blocks
        warm = rows.impulse[:m].copy()
        self.impulse[:m] = rows.impulse[:m] = impulse
        self._apply(0, blocks)
        rows.impulse[:m] = warm
        after = np.maximum(impact.after(impulse), 0.0)
        for block in np.flatnonzero(impact.fast):
            row, gap = rows.start[block], min(float(facts.gap[block]), 0.0)
            _, bias, _ = gap_rule(scene.rule, gap, 0.0, 0.0, 0.0)
            bias = min(float(bias), -float(after[block]))
            rows.b[row] += bias - facts.bias[row]
            facts.bias[row] = bias
        return self._worst

    def _solve(self, problem: ConstraintProblem) -> ContactSolution:
        """Return the solution of the world's solver; store its status on failure."""
        options = dict(self._world.solver_options)
        solution = solve(problem, self._world.solver, **options)
        if not solution.converged:
            self._worst = STATUSES.index(solution.status)
        return solution


class Impact(NamedTuple):
    """A prepared step at the velocity before it.

    `problem` has the free velocity of the step in b; `before` are the velocities of the
    rows before it, (m,) [m/s | rad/s]. Masks of blocks: `fast` bounce, `touching`
    bounce or touch, `joined` are loops, gears and prescribed joints.
    """

    problem: ConstraintProblem
    before: np.ndarray
    fast: np.ndarray
    touching: np.ndarray
    joined: np.ndarray
    restitution: np.ndarray

    @property
    def first(self) -> np.ndarray:
        """First row of each block, (blocks,)."""
        return np.array([block.start for block in self.problem.layout.blocks], int)

    def after(self, impulse: np.ndarray) -> np.ndarray:
        """Return the velocities of the blocks' first rows after all rows' impulses."""
        velocity: np.ndarray = self.before + self.problem.apply(impulse)
        return velocity[self.first]


def impact_of(scene: Scene, step: StepArrays, blocks: int, m: int) -> Impact | None:
    """Return the impact of a prepared step, copied; None if nothing bounces."""
    facts, tables = step.blocks, scene.tables
    fast = facts.rebound[:blocks] > 0.0
    if not fast.any():
        return None
    problem, role = problem_of(step, blocks, m), facts.role[:blocks]
    closing = (role == CONTACT_ROLE) | (role == LIMIT)
    by_place = inertia_factor(step, tables) @ step.terms.qd[0]
    return Impact(
        problem,
        sparse_rows(step, blocks, m) @ by_place,
        fast,
        fast | (closing & (facts.gap[:blocks] <= TOUCH)),
        ~closing & (role != FRICTION),
        facts.restitution[:blocks].copy(),
    )


def sequential_impacts(impact: Impact, threshold: float) -> np.ndarray:
    """Return the impulses of a sequence of impacts, (m,) [N·s | N·m·s].

        lambda_k = -(1 + e) sigma_k / G_kk  at the fastest approach, until all are slow

    sigma are the velocities of the rows, G is their Delassus matrix. Only the normals
    of contacts and limits take part. Slow contacts (below threshold), friction and
    other constraints are solved by the step that follows. The sequence ends after
    10,000 impacts, even if some approaches are still fast.

    Source: LCP-10 (sequential law), C13.
    """
    impulse = np.zeros(impact.problem.m)
    rows, e = impact.first[impact.touching], impact.restitution[impact.touching]
    G, sigma = impact.problem.matrix[np.ix_(rows, rows)], impact.before[rows]
    impacts = np.zeros(len(rows))
    for _ in range(TURNS):
        k = int(np.argmin(sigma))
        if sigma[k] >= -max(threshold, 1e-12):  # rounding errors are no approach
            break
        change = -(1 + e[k]) * sigma[k] / G[k, k]
        impacts[k] += change
        sigma = sigma + G[:, k] * change
    impulse[rows] = impacts
    return impulse


def poisson_impacts(impact: Impact, solve: Solve) -> np.ndarray:
    """Return the impulses of an instantaneous impact by Poisson's law, (m,).

        compression:  0 <= lambda_c  orthogonal to  sigma_n >= 0
        release:      lambda_n = e lambda_c + x,   0 <= x  orthogonal to  sigma_n >= 0

    lambda_n are normal impulses, sigma_n the velocities of their rows after them. It
    starts from the velocity before the step. Touching contacts and limits take part,
    loops and gears (their velocity becomes zero), and prescribed joints (they keep
    theirs). `solve` is called once for the compression, and up to 20 times for the
    release: the last result counts.

    Source: LCP-10 (Poisson); M. Anitescu and F. Potra 1997.
    """
    whole, met = impact.problem, impact.touching | impact.joined
    blocks = [b for b, take in zip(whole.layout.blocks, met, strict=True) if take]
    rows = np.array([row for block in blocks for row in block.all], int)
    before = impact.before[rows]
    keeps = np.array([b.kind == "prescribed" for b in blocks for _ in b.all], bool)
    part = ConstraintProblem(
        ConstraintLayout(tuple((block.kind, block.rows) for block in blocks)),
        whole.matrix[np.ix_(rows, rows)],
        before,
        np.concatenate([whole.mu[b.first : b.first + b.count] for b in blocks]),
        bias=np.where(keeps, -before, 0.0),
    )
    compression = solve(part)
    e = (impact.restitution * impact.fast)[met]
    impulse = np.zeros(whole.m)
    impulse[rows] = compression.impulses + _release(part, compression, e, solve)
    return impulse


def _release(
    part: ConstraintProblem, compression: ContactSolution, e: np.ndarray, solve: Solve
) -> np.ndarray:
    """Return the impulses of the release after a compression, (m,).

    The normal impulses e lambda_c act first; e is 0 for blocks that do not bounce. Then
    problems are solved for additional normal impulses x >= 0, the tangential ones,
    |lambda_T| <= mu lambda_n, with lambda_n = e lambda_c + x of the previous round, and
    those of loops, gears and prescribed joints. The result, e lambda_c + x and the
    other impulses without those of the compression, is that of the round in which
    lambda_n settles, or of the last of 20 rounds.
    """
    first = np.array([block.start for block in part.layout.blocks], int)
    known, impulse = e * compression.impulses[first], np.zeros(part.m)
    impulse[first] = known
    free = compression.velocities + part.apply(impulse)
    radius, x = known, np.zeros(part.m)
    for _ in range(ROUNDS):
        solution = solve(_discs(part, free, compression.velocities, radius))
        x = _unpacked(part.layout, solution.impulses)
        new = known + x[first]
        if np.abs(new - radius).max() <= SETTLED * np.abs(new).max(initial=1e-300):
            break
        radius = new
    return impulse + x


def _discs(
    part: ConstraintProblem, b: np.ndarray, kept: np.ndarray, radius: np.ndarray
) -> ConstraintProblem:
    """Return the problem of a release: one normal row and one disc per contact.

    The disc of a contact with friction is a contact whose normal row is decoupled from
    all others and has the fixed impulse `radius`; negative counts as 0. Other blocks
    keep kind and rows. Rows of prescribed joints retain `kept`, the velocity after the
    compression; b is the free velocity.
    """
    parts: list[tuple[str, int]] = []
    order: list[int] = []
    mu: list[float] = []
    bias: list[float] = []
    for block, size in zip(part.layout.blocks, radius, strict=True):
        if block.kind != "contact":
            parts.append((block.kind, block.rows))
            order += list(block.all)
            keeps = block.kind == "prescribed"
            bias += [-x if keeps else 0.0 for x in kept[list(block.all)].tolist()]
            continue
        parts.append(("unilateral", 1))
        order.append(block.start)
        bias.append(0.0)
        if block.rows > 1:
            parts.append(("contact", block.rows))
            order += [-1, *block.tangent]
            bias += [-max(float(size), 0.0), *[0.0] * (block.rows - 1)]
            mu += part.mu[block.first : block.first + block.count].tolist()
    rows = np.array(order)
    real = rows >= 0
    G = np.where(np.outer(real, real), part.matrix[np.ix_(rows, rows)], 0.0)
    G[~real, ~real] = 1.0
    free = np.where(real, b[rows], 0.0) + np.array(bias)
    return ConstraintProblem(ConstraintLayout(tuple(parts)), G, free, mu, hi=0.0)


def _unpacked(layout: ConstraintLayout, packed: np.ndarray) -> np.ndarray:
    """Return the impulses of the problem of `_discs` in rows of the layout, (m,)."""
    impulse, index = np.zeros(layout.m), 0
    for block in layout.blocks:
        if block.kind == "contact":
            skip = 1 if block.rows > 1 else 0
            impulse[block.start] = packed[index]
            after = index + 1 + skip
            impulse[list(block.tangent)] = packed[after : after + block.rows - 1]
        else:
            skip = 0
            impulse[list(block.all)] = packed[index : index + block.rows]
        index += block.rows + skip
    return impulse
