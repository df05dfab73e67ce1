"""Hold the constraints of one step: rules, restitution, stabilisation, the solver."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dyn_core.contact.assembly import Scene
from dyn_core.contact.impacts import poisson_release, sequential_impacts
from dyn_core.contact.problem import ConstraintProblem
from dyn_core.contact.rows import Constraint
from dyn_core.contact.softness import erp_and_cfm
from dyn_core.contact.solution import ContactSolution
from dyn_core.contact.solving import solve
from dyn_core.contact.stepping import RULES
from dyn_core.contact.world import World
from dyn_core.errors import InfeasibleError, NonFiniteError
from dyn_core.registry import solver


@dataclass(frozen=True, eq=False)
class Held:
    """A step with its constraints held.

    Attributes:
        scene: Those that took part.
        solution: Of the last problem solved.
        velocity: After the step, (nv,).
        impulse: All impulses, (m,) [N·s].
    """

    scene: Scene
    solution: ContactSolution
    velocity: np.ndarray
    impulse: np.ndarray


@dataclass
class Holder:
    """Solves the problems of a world's steps, one after the other, warm.

    Attributes:
        world: Solver, restitution and stabilisation.
        counters: Of what was not converged or not unique.
        earlier: Impulses by id, to begin from.
    """

    world: World
    counters: Counter = field(default_factory=Counter)
    earlier: dict[Any, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._sweeps = hasattr(solver(self.world.solver), "sweep")

    def hold(
        self,
        scene: Scene,
        free: np.ndarray,
        h: float,
        rule: str = "stewart_trinkle",
        bouncing: bool = True,
    ) -> Held:
        """Give the velocity after a step.

            sigma = G lambda + J free,   the law of each block between lambda and
            sigma + R lambda + bias,     0 <= lambda_n orthogonal to sigma_n + push >= 0

        Args:
            scene: Constraints before the step; qd gives the speeds of approach.
            free: Velocity without constraints, (nv,).
            h: Step [s].
            rule: Of stepping.RULES: which contacts take part, and push.
            bouncing: Whether restitution acts.
        """
        world, impulse = self.world, np.zeros(scene.layout.m)
        chosen, bias, compliance = self._laws(scene, free, h, rule, bouncing)
        if bouncing and world.impacts == "sequential":
            fast = self._active(scene, free, h, rule)
            kick = sequential_impacts(scene, fast, world)
            impulse += kick
            free = scene.moved(free, kick)
        rows = _rows(scene, chosen)
        part = scene.only(chosen)
        solution = self.solve(
            self._problem(part, free, h, bias[rows], compliance[rows])
        )
        impulse = impulse[rows] + solution.impulses
        velocity = part.moved(free, solution.impulses)
        if (
            bouncing
            and world.restitution == "poisson"
            and world.impacts != "sequential"
        ):
            fast = self._active(part, free, h, rule)
            more = poisson_release(part, velocity, solution, fast, self.solve)
            impulse, velocity = impulse + more, part.moved(velocity, more)
        if not np.isfinite(velocity).all():
            raise NonFiniteError(
                f"contacts: {world.solver} gave velocities that are not finite", "qd"
            )
        return Held(part, solution, velocity, impulse)

    def solve(self, problem: ConstraintProblem) -> ContactSolution:
        """Solve one problem, warm; count what is not converged.

        Raises:
            InfeasibleError: There is no solution; keeps the residual.
        """
        options = dict(self.world.solver_options)
        solution = solve(problem, self.world.solver, self.earlier, **options)
        if not np.isfinite(solution.impulses).all():
            raise NonFiniteError(
                f"contacts: {self.world.solver} gave impulses that are not finite",
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

    def keep(self, scene: Scene) -> None:
        """Forget impulses of what is no longer there."""
        ids = {c.id for c in scene.constraints}
        self.earlier = {k: x for k, x in self.earlier.items() if k in ids}

    def correction(self, scene: Scene, velocity: np.ndarray, h: float) -> np.ndarray:
        """Give the velocity that takes errors of position away, without momentum.

            0 <= p orthogonal to G p + gap' / h >= 0,   G p + erp gap' / h = 0 of loops

        gap' after the step; of overlaps the part erp.

        Source: LCP-11 (split impulse).
        """
        part = scene.only(lambda c: c.closing or c.role in ("loop", "gear"))
        normals = _normals_only(part)
        sigma, erp = normals.J @ velocity, self.world.erp
        after = _gaps(normals) + h * sigma
        open_ = np.array(
            [c.closing for c in normals.constraints for _ in range(c.rows)]
        )
        bias = np.where(open_ & (after > 0), after, erp * after) / h
        if not bias.size or (bias[open_].min(initial=0.0) >= 0 and not (~open_).any()):
            return np.zeros(len(velocity))
        kept, self.earlier = self.earlier, {}
        solution = self.solve(normals.problem(np.zeros(len(velocity)), h, bias))
        self.earlier = kept
        return normals.moved(np.zeros(len(velocity)), solution.impulses)

    def _problem(
        self, scene: Scene, free: np.ndarray, h: float, bias: Any, compliance: Any
    ) -> ConstraintProblem:
        """Give the problem; by a function where the solver then needs no compiling."""
        problem = scene.problem(free, h, bias, compliance)
        if not self._sweeps:
            return problem
        G = problem.matrix
        return replace(problem, G=G.dot, diagonal=np.diag(G))

    def _laws(
        self, scene: Scene, free: np.ndarray, h: float, rule: str, bouncing: bool
    ) -> tuple[list[bool], np.ndarray, np.ndarray]:
        """Give which blocks take part, and bias and compliance of all rows."""
        world, m = self.world, scene.layout.m
        bias, compliance, chosen = np.zeros(m), np.zeros(m), []
        erp, soft = error_terms(world, h)
        newton = bouncing and world.restitution == "newton"
        newton = newton and world.impacts == "simultaneous"
        approach, ahead = scene.J @ scene.qd, scene.J @ free
        for block, c in zip(scene.layout.blocks, scene.constraints, strict=True):
            rows, k = slice(block.start, block.start + block.rows), block.start
            if c.closing:
                e, gap = c.restitution if newton else 0.0, float(c.gap)
                if e and _meets(c, approach[k], ahead[k], h, world, rule):
                    gap = min(gap, 0.0)
                speeds = float(approach[k]), h, e, world.slow, erp
                takes, push = RULES[rule](gap, *speeds)
                chosen.append(bool(takes))
                bias[k], compliance[k] = float(push), soft
            else:
                chosen.append(True)
                if c.role in ("loop", "gear"):
                    bias[rows], compliance[rows] = erp * np.asarray(c.gap) / h, soft
        return chosen, bias, compliance

    def _active(
        self, scene: Scene, free: np.ndarray, h: float, rule: str
    ) -> np.ndarray:
        """Say which blocks are met fast enough to bounce, (blocks,)."""
        approach, ahead = scene.J @ scene.qd, scene.J @ free
        return np.array(
            [
                c.closing
                and c.restitution > 0
                and _meets(c, approach[k], ahead[k], h, self.world, rule)
                for k, c in zip(scene.first, scene.constraints, strict=True)
            ],
            bool,
        )


def _meets(
    c: Constraint, approach: float, ahead: float, h: float, world: World, rule: str
) -> bool:
    """Whether a contact is met faster than slow; ahead of time by stewart_trinkle."""
    reach = h * ahead if rule == "stewart_trinkle" else 0.0
    return bool(approach < -world.slow and float(c.gap) + min(reach, 0.0) <= 0)


def error_terms(world: World, h: float) -> tuple[float, float]:
    """Give the part of errors that a step takes away, and the compliance of rows."""
    if world.stabilisation == "erp_cfm":
        return erp_and_cfm(h, world.stiffness, world.damping)
    return (world.erp if world.stabilisation == "baumgarte" else 0.0), 0.0


def _rows(scene: Scene, chosen: list[bool]) -> np.ndarray:
    """Say which rows belong to chosen blocks, (m,)."""
    counts = [c.rows for c in scene.constraints]
    return np.repeat(np.array(chosen, bool), counts)


def _normals_only(scene: Scene) -> Scene:
    """Give the same without the tangent rows of contacts."""
    kept = tuple(
        replace(c, kind="unilateral", J=c.J[:1], mu=()) if c.kind == "contact" else c
        for c in scene.constraints
    )
    return replace(scene, constraints=kept)


def _gaps(scene: Scene) -> np.ndarray:
    """Give the gap or error of each row, (m,)."""
    parts = [np.broadcast_to(c.gap, c.rows) for c in scene.constraints]
    return np.concatenate([np.zeros(0), *parts])
