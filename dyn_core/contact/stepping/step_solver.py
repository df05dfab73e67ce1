"""The contact problem of one step: gap rules, restitution, stabilisation, solver."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dyn_core.contact.problem.problem import ConstraintProblem
from dyn_core.contact.problem.softness import erp_and_cfm
from dyn_core.contact.problem.solution import ContactSolution
from dyn_core.contact.problem.solving import solve
from dyn_core.contact.stepping import gap_rules
from dyn_core.contact.stepping.constrained_state import ConstrainedState
from dyn_core.contact.stepping.constraints import ROLES, Constraint
from dyn_core.contact.stepping.gap_rules import RULES, TOUCH
from dyn_core.contact.stepping.impacts import poisson_impacts, sequential_impacts
from dyn_core.contact.stepping.world import World
from dyn_core.errors import InfeasibleError, NonFiniteError
from dyn_core.solving.registry import solver

SOFT = 1e-9  # compliance of a correction of positions, relative to the response
SHORT = 1e-2  # part of a correction that may be missing


@dataclass(frozen=True, eq=False)
class StepSolution:
    """Solution of the contact problem of one step.

    Attributes:
        state: State with the constraints that took part.
        solution: Solution of the last problem.
        velocity: qd after the step, (nv,).
        impulse: Sum of all impulses, (m,) [N·s].
    """

    state: ConstrainedState
    solution: ContactSolution
    velocity: np.ndarray
    impulse: np.ndarray

    @property
    def work_of(self) -> dict[str, float]:
        """Work of the impulses by role of their constraints [J]."""
        state, total = self.state, dict.fromkeys(ROLES, 0.0)
        work = self.impulse * (state.J @ (state.qd + self.velocity)) / 2
        for block, c in zip(state.layout.blocks, state.constraints, strict=True):
            total[c.role] += float(work[list(block.all)].sum())
        return total


@dataclass
class StepSolver:
    """Solver of the contact problems of successive steps, with warm starts.

    Attributes:
        world: Solver, restitution and stabilisation.
        counters: Number of solutions not converged or not unique.
        earlier: Impulses by id, for the next warm start.
    """

    world: World
    counters: Counter = field(default_factory=Counter)
    earlier: dict[Any, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._sweeps = hasattr(solver(self.world.solver), "sweep")

    def solve_step(
        self,
        state: ConstrainedState,
        free: np.ndarray,
        h: float,
        rule: str = "stewart_trinkle",
        bouncing: bool = True,
    ) -> StepSolution:
        """Return the velocity and the impulses of a step.

            sigma = G lambda + J free,   the law of each block between lambda and
            sigma + R lambda + bias,     0 <= lambda_n orthogonal to sigma_n + bias >= 0

        Args:
            state: Constraints before the step; its qd has the speeds of approach.
            free: Velocity without constraints, (nv,).
            h: Step [s].
            rule: One of gap_rules.RULES: which contacts take part, and their bias.
            bouncing: Whether restitution acts.
        """
        world, impulse = self.world, np.zeros(state.layout.m)
        fast = self._bouncing(state, free, h, rule) & bouncing
        if fast.any() and world.impacts == "sequential":
            impulse += sequential_impacts(state, fast, world)
        elif fast.any() and world.restitution == "poisson":
            kept, self.earlier = self.earlier, {}
            impulse += poisson_impacts(state, fast, self.solve)
            self.earlier = kept
        after = state.J[state.first] @ state.moved(state.qd, impulse)
        if impulse.any():
            free = state.moved(free, impulse)
        else:  # Newton's law
            after *= [-c.restitution for c in state.constraints]
        rebound = np.where(fast, np.maximum(after, 0.0), 0.0)
        chosen, bias, compliance = self._row_terms(state, h, rule, fast, rebound)
        rows = _rows(state, chosen)
        active_state = state.only(chosen)
        solution = self.solve(
            self._problem(active_state, free, h, bias[rows], compliance[rows])
        )
        impulse = impulse[rows] + solution.impulses
        velocity = active_state.moved(free, solution.impulses)
        if not np.isfinite(velocity).all():
            raise NonFiniteError(
                f"contacts: {world.solver} returned velocities that are not finite",
                "qd",
            )
        return StepSolution(active_state, solution, velocity, impulse)

    def solve(self, problem: ConstraintProblem) -> ContactSolution:
        """Solve one problem with a warm start, and count it if it has not converged.

        Raises:
            InfeasibleError: There is no solution; keeps the residual.
        """
        options = dict(self.world.solver_options)
        solution = solve(problem, self.world.solver, self.earlier, **options)
        if not np.isfinite(solution.impulses).all():
            raise NonFiniteError(
                f"contacts: {self.world.solver} returned impulses that are not finite",
                "impulse",
            )
        if solution.status in ("infeasible", "ray"):
            self.counters["contact infeasible"] += 1
            names = ", ".join((problem.names or ())[:3])
            raise InfeasibleError(
                f"contacts: {self.world.solver} found no impulses"
                f" ({solution.status}) for {names}, ...",
                residual=solution.residuals.law,
            )
        if solution.status == "max_iterations":
            self.counters["contact not converged"] += 1
        if solution.status == "not_unique":
            self.counters["contact not unique"] += 1
        self.earlier.update(solution.by_id)
        return solution

    def drop_stale(self, state: ConstrainedState) -> None:
        """Drop the impulses of constraints that no longer exist."""
        ids = {c.id for c in state.constraints}
        self.earlier = {k: x for k, x in self.earlier.items() if k in ids}

    def correction(
        self, state: ConstrainedState, velocity: np.ndarray, h: float, remaining: float
    ) -> np.ndarray:
        """Return the velocity that corrects position errors, without momentum, (nv,).

            0 <= p orthogonal to G p + R p + bias >= 0,   bias by gap_rules.correction
            of contacts and limits;   G p + R p + erp gap' / remaining = 0 of loops

        gap' is the gap that `velocity` leads to. R, a small part of G, makes it
        solvable where there is no room: then the overlaps share what there is, and
        the counter `contacts without room` says so.

        Args:
            state: Constraints, and the position from which `remaining` passes.
            velocity: Velocity after the step, (nv,).
            h: Step [s].
            remaining: Time for which velocity and correction act [s].

        Source: LCP-11 (split impulse).
        """
        still = np.zeros(len(velocity))
        normals = _normals_only(
            state.only(lambda c: c.closing or c.role in ("loop", "gear"))
        )
        world = self.world
        opening, before = normals.J @ velocity, _gaps(normals)
        gaps = before + remaining * opening
        parts = [np.full(c.rows, c.closing) for c in normals.constraints]
        closing = np.concatenate([np.zeros(0, bool), *parts])
        bounded = remaining, world.erp, world.push_out_speed * h / remaining
        bias = gaps * (world.erp / remaining)
        for k in np.flatnonzero(closing):
            row = float(before[k]), float(gaps[k]), float(opening[k])
            bias[k] = gap_rules.correction(*row, *bounded)
        wrong = np.where(closing, -bias, np.abs(bias)) * remaining
        if not (wrong > TOUCH * world.erp).any():
            return still
        problem = normals.problem(still, h, bias, SOFT * np.diag(normals.G))
        solution = solve(problem, "principal_pivoting")
        short = np.where(closing, solution.velocities + bias, 0.0).min(initial=0.0)
        if not solution.converged or short < -SHORT * np.abs(bias).max():
            self.counters["contacts without room"] += 1
        return normals.moved(still, solution.impulses)

    def _problem(
        self,
        state: ConstrainedState,
        free: np.ndarray,
        h: float,
        bias: Any,
        compliance: Any,
    ) -> ConstraintProblem:
        """Return the problem; with G as a function if the solver sweeps."""
        problem = state.problem(free, h, bias, compliance)
        if not self._sweeps:
            return problem
        G = problem.matrix
        return replace(problem, G=G.dot, diagonal=np.diag(G))

    def _row_terms(
        self,
        state: ConstrainedState,
        h: float,
        rule: str,
        fast: np.ndarray,
        rebound: np.ndarray,
    ) -> tuple[list[bool], np.ndarray, np.ndarray]:
        """Return which blocks take part, and bias and compliance of all rows.

        A block that bounces meets at the start of the step, is rigid, and opens at
        least at its speed of rebound.
        """
        world, m = self.world, state.layout.m
        bias, compliance, chosen = np.zeros(m), np.zeros(m), []
        erp, soft = error_terms(world, h)
        limit = np.inf if soft else world.push_out_speed
        approach, threshold = state.J @ state.qd, world.restitution_threshold
        for k, block, c in zip(
            range(len(fast)), state.layout.blocks, state.constraints, strict=True
        ):
            rows, first = slice(block.start, block.start + block.rows), block.start
            if c.closing:
                gap = min(float(c.gap), 0.0) if fast[k] else float(c.gap)
                takes_part, row_bias = RULES[rule](
                    gap, float(approach[first]), h, 0.0, threshold, erp, limit
                )
                chosen.append(bool(takes_part))
                if fast[k]:
                    bias[first] = min(float(row_bias), -rebound[k])
                else:
                    bias[first], compliance[first] = float(row_bias), soft
            else:
                chosen.append(True)
                if c.role in ("loop", "gear"):
                    bias[rows], compliance[rows] = erp * np.asarray(c.gap) / h, soft
        return chosen, bias, compliance

    def _bouncing(
        self, state: ConstrainedState, free: np.ndarray, h: float, rule: str
    ) -> np.ndarray:
        """Return which blocks close fast enough to bounce, (blocks,)."""
        approach, predicted = state.J @ state.qd, state.J @ free
        return np.array(
            [
                c.closing
                and c.restitution > 0
                and _closes_fast(c, approach[k], predicted[k], h, self.world, rule)
                for k, c in zip(state.first, state.constraints, strict=True)
            ],
            bool,
        )


def _closes_fast(
    c: Constraint, approach: float, predicted: float, h: float, world: World, rule: str
) -> bool:
    """Whether a contact closes faster than restitution_threshold.

    stewart_trinkle predicts the gap at the end of the step.
    """
    travel = h * predicted if rule == "stewart_trinkle" else 0.0
    return bool(
        approach < -world.restitution_threshold
        and float(c.gap) + min(travel, 0.0) <= TOUCH
    )


def error_terms(world: World, h: float) -> tuple[float, float]:
    """Return the part of position errors that a step corrects, and the compliance."""
    if world.stabilisation == "erp_cfm":
        return erp_and_cfm(h, world.stiffness, world.damping)
    return (world.erp if world.stabilisation == "baumgarte" else 0.0), 0.0


def _rows(state: ConstrainedState, chosen: list[bool]) -> np.ndarray:
    """Return a mask of the rows of chosen blocks, (m,)."""
    counts = [c.rows for c in state.constraints]
    return np.repeat(np.array(chosen, bool), counts)


def _normals_only(state: ConstrainedState) -> ConstrainedState:
    """Return a copy without the tangent rows of contacts."""
    kept = tuple(
        replace(c, kind="unilateral", J=c.J[:1], mu=()) if c.kind == "contact" else c
        for c in state.constraints
    )
    return replace(state, constraints=kept)


def _gaps(state: ConstrainedState) -> np.ndarray:
    """Return the gap or error of each row, (m,)."""
    parts = [np.broadcast_to(c.gap, c.rows) for c in state.constraints]
    return np.concatenate([np.zeros(0), *parts])
