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
from dyn_core.contact.stepping.constraints import Constraint
from dyn_core.contact.stepping.contact_model import ConstrainedState
from dyn_core.contact.stepping.gap_rules import RULES
from dyn_core.contact.stepping.impacts import poisson_release, sequential_impacts
from dyn_core.contact.stepping.world import World
from dyn_core.errors import InfeasibleError, NonFiniteError
from dyn_core.solving.registry import solver


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
        chosen, bias, compliance = self._row_terms(state, free, h, rule, bouncing)
        if bouncing and world.impacts == "sequential":
            fast = self._active(state, free, h, rule)
            impact = sequential_impacts(state, fast, world)
            impulse += impact
            free = state.moved(free, impact)
        rows = _rows(state, chosen)
        active_state = state.only(chosen)
        solution = self.solve(
            self._problem(active_state, free, h, bias[rows], compliance[rows])
        )
        impulse = impulse[rows] + solution.impulses
        velocity = active_state.moved(free, solution.impulses)
        if (
            bouncing
            and world.restitution == "poisson"
            and world.impacts != "sequential"
        ):
            fast = self._active(active_state, free, h, rule)
            more = poisson_release(active_state, velocity, solution, fast, self.solve)
            impulse, velocity = impulse + more, active_state.moved(velocity, more)
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
        self, state: ConstrainedState, velocity: np.ndarray, h: float
    ) -> np.ndarray:
        """Return the velocity that corrects position errors, without momentum.

            0 <= p orthogonal to G p + gap' / h >= 0,   G p + erp gap' / h = 0 of loops

        gap' is the gap after the step; overlaps are corrected by the part erp.

        Source: LCP-11 (split impulse).
        """
        active_state = state.only(lambda c: c.closing or c.role in ("loop", "gear"))
        normals = _normals_only(active_state)
        sigma, erp = normals.J @ velocity, self.world.erp
        gap_after = _gaps(normals) + h * sigma
        closing = np.array(
            [c.closing for c in normals.constraints for _ in range(c.rows)]
        )
        bias = np.where(closing & (gap_after > 0), gap_after, erp * gap_after) / h
        if not bias.size or (
            bias[closing].min(initial=0.0) >= 0 and not (~closing).any()
        ):
            return np.zeros(len(velocity))
        kept, self.earlier = self.earlier, {}
        solution = self.solve(normals.problem(np.zeros(len(velocity)), h, bias))
        self.earlier = kept
        return normals.moved(np.zeros(len(velocity)), solution.impulses)

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
        free: np.ndarray,
        h: float,
        rule: str,
        bouncing: bool,
    ) -> tuple[list[bool], np.ndarray, np.ndarray]:
        """Return which blocks take part, and bias and compliance of all rows."""
        world, m = self.world, state.layout.m
        bias, compliance, chosen = np.zeros(m), np.zeros(m), []
        erp, soft = error_terms(world, h)
        newton = bouncing and world.restitution == "newton"
        newton = newton and world.impacts == "simultaneous"
        approach, predicted = state.J @ state.qd, state.J @ free
        for block, c in zip(state.layout.blocks, state.constraints, strict=True):
            rows, k = slice(block.start, block.start + block.rows), block.start
            if c.closing:
                e, gap = c.restitution if newton else 0.0, float(c.gap)
                if e and _closes_fast(c, approach[k], predicted[k], h, world, rule):
                    gap = min(gap, 0.0)
                speeds = float(approach[k]), h, e, world.restitution_threshold, erp
                takes_part, row_bias = RULES[rule](gap, *speeds)
                chosen.append(bool(takes_part))
                bias[k], compliance[k] = float(row_bias), soft
            else:
                chosen.append(True)
                if c.role in ("loop", "gear"):
                    bias[rows], compliance[rows] = erp * np.asarray(c.gap) / h, soft
        return chosen, bias, compliance

    def _active(
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
        approach < -world.restitution_threshold and float(c.gap) + min(travel, 0.0) <= 0
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
