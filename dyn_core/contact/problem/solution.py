"""Solution of a constraint problem with m rows, and its residuals."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from dyn_core.contact.problem.problem import RANK, ConstraintProblem, ReducedProblem
from dyn_core.contact.problem.residuals import (
    CONVERGED,
    INFEASIBLE,
    MAX_ITERATIONS,
    STATUSES,
    law_residuals,
)
from dyn_core.errors import ModelError
from dyn_core.sharing import cached_property


class Residuals(NamedTuple):
    """Residuals of the exact laws, the largest over the blocks.

    Attributes:
        primal: Distance of impulses to cones and bounds [N·s].
        dual: Speed at which contacts close, and velocity of free rows [m/s].
        complementarity: Impulse times velocity where it should vanish [J].
        dissipation: Deficit of the friction work to its maximum [J].
        law: Relative residual of the law that the solver solves (law_residuals) [1].

    Source: LCP-12.
    """

    primal: float
    dual: float
    complementarity: float
    dissipation: float
    law: float


def residuals(
    problem: ConstraintProblem, impulse: Sequence[float] | np.ndarray
) -> Residuals:
    """Return the residuals of the exact laws for some impulses.

    All are NaN if a velocity is not finite.

    Args:
        problem: Problem.
        impulse: Impulses, (m,) [N·s | N·m·s]; ValueError for another number of them.

    Source: LCP-12.
    """
    layout = problem.layout
    return Residuals(*map(float, law_residuals(layout, *_measured(problem, impulse))))


def laws_of_blocks(
    problem: ConstraintProblem, impulse: Sequence[float] | np.ndarray
) -> list[float]:
    """Return `law` of each block, see `residuals`; a function G is called once."""
    values = _measured(problem, impulse)
    layouts: Any = [SimpleNamespace(blocks=(x,)) for x in problem.layout.blocks]
    return [float(law_residuals(layout, *values)[-1]) for layout in layouts]


def _measured(
    problem: ConstraintProblem, impulse: Sequence[float] | np.ndarray
) -> tuple[Any, ...]:
    """Return (impulse, velocity, mu, lo, hi, response, speed) for law_residuals.

    velocity is (G + R) impulse + b + bias, response the diagonal of G + R, speed the
    largest |b + bias|, 0 without rows.
    """
    x = np.asarray(impulse, float)
    u = problem.apply(x) + problem.b + problem.bias + problem.compliance * x
    diagonal_of_G: Any = problem.diagonal
    diagonal = diagonal_of_G if callable(problem.G) else np.diag(problem.matrix)
    return (
        x.tolist(),
        u.tolist(),
        problem.mu.tolist(),
        problem.lo.tolist(),
        problem.hi.tolist(),
        (diagonal + problem.compliance).tolist(),
        float(np.abs(problem.b + problem.bias).max(initial=0.0)),
    )


def rank_and_condition(spectrum: np.ndarray) -> tuple[int, float]:
    """Return rank and condition number of a matrix >= 0 from ascending eigenvalues.

    Those up to RANK (1e-10) of the largest count as zero: the condition is infinite.
    """
    rank = int((spectrum > RANK * spectrum.max(initial=0.0)).sum())
    if rank < len(spectrum):
        return rank, float("inf")
    return rank, float(spectrum[-1] / spectrum[0]) if rank else 1.0


@dataclass(frozen=True, eq=False)
class ContactSolution:
    """Impulses and velocities of a problem, with residuals and status.

    Attributes:
        problem: Problem that was solved.
        impulses: lambda, (m,) [N·s | N·m·s].
        velocities: G lambda + b, (m,) [m/s | rad/s].
        measured: Residuals of the exact laws, where the last, `law`, belongs to the law
            that the solver solves; or the residual `law` alone: then the others are
            computed when `residuals` is read.
        status: One of residuals.STATUSES, among them "converged", "max_iterations",
            "infeasible" (no solution exists) and "not_unique" (the law holds, but other
            impulses satisfy it, too).
        iterations: Number of iterations.
        solver: Name of the solver; `solve` sets it and `relaxes`.
        relaxes: Description of the law that is solved approximately; empty: none.

    Source: LCP-12, LCP-18, LCP-20.
    """

    problem: ConstraintProblem
    impulses: np.ndarray
    velocities: np.ndarray
    measured: Residuals | float
    status: str
    iterations: int
    solver: str = ""
    relaxes: str = ""

    @classmethod
    def from_impulses(
        cls,
        problem: ConstraintProblem,
        impulses: Sequence[float] | np.ndarray,
        iterations: int = 0,
        status: float | None = None,
        law: float | None = None,
        tolerance: float = 1e-6,
        reduction: ReducedProblem | None = None,
    ) -> ContactSolution:
        """Return the solution with some impulses: velocities, residuals and status.

        Args:
            problem: Problem.
            impulses: lambda, (m,), or with `reduction` the impulses of its reduced
                problem [N·s | N·m·s].
            iterations: Number of iterations.
            status: CONVERGED (0), MAX_ITERATIONS (1), INFEASIBLE (2), RAY (3) or
                NOT_UNIQUE (4) of dyn_core.contact; None: converged. A converged
                solution becomes MAX_ITERATIONS where `law` is above the tolerance or
                NaN, or an impulse is not finite. With `reduction` it becomes INFEASIBLE
                where its free rows have no solution, and MAX_ITERATIONS does where its
                reduced problem has none.
            law: Residual of the law that the solver solves [1]; None: of the exact law.
            tolerance: Tolerance of `law`.
            reduction: `problem.without_free_rows()`, if the solver used it.

        Raises:
            ValueError: `impulses` has another number of entries.
            IndexError: `status` is no status of dyn_core.contact.
        """
        x = np.array(impulses, float)
        if reduction is not None:
            x = reduction.widen(x)
            if status in (None, CONVERGED) and reduction.contradicts(x):
                status = INFEASIBLE
        measured: Residuals | float = 0.0 if law is None else float(law)
        if law is None:
            measured = residuals(problem, x)
            law = measured.law
        if status is None or status == CONVERGED:
            # A law that is NaN is not below the tolerance either.
            good = law <= tolerance and np.isfinite(x).all()
            status = CONVERGED if good else MAX_ITERATIONS
        if status == MAX_ITERATIONS and reduction is not None:
            status = INFEASIBLE if reduction.reduced.impossible else status
        velocities = problem.apply(x) + problem.b
        if not 0 <= status < len(STATUSES):
            raise IndexError(f"status {status}; valid: 0 to {len(STATUSES) - 1}")
        label = STATUSES[int(status)]
        return cls(problem, x, velocities, measured, label, int(iterations))

    def __repr__(self) -> str:
        worst = max(self.residuals, default=0.0)
        lines = [
            f"<ContactSolution by {self.solver}: {self.status} after"
            f" {self.iterations} iterations",
            f"  {len(self.impulses)} rows, largest residual {worst:.3g}",
            f"  impulses {_shortened(self.impulses)}",
            f"  velocities {_shortened(self.velocities)}",
        ]
        lines += [f"  not exact: {self.relaxes}"] if self.relaxes else []
        return "\n".join(lines) + ">"

    @cached_property
    def residuals(self) -> Residuals:
        """Residuals of the exact laws; `law`, the last, belongs to the solver's law.

        Computed on first access unless `measured` has them.
        """
        if isinstance(self.measured, Residuals):
            return self.measured
        return residuals(self.problem, self.impulses)._replace(law=self.measured)

    @property
    def law(self) -> float:
        """Relative residual of the law that the solver solves [1]."""
        known = self.measured
        return known.law if isinstance(known, Residuals) else known

    @property
    def converged(self) -> bool:
        """Whether the status is converged or not_unique: the solver's law holds."""
        return self.status in ("converged", "not_unique")

    @property
    def exact(self) -> bool:
        """Whether `relaxes` is empty: the solver solves the exact contact law."""
        return not self.relaxes

    @property
    def energy_change(self) -> float:
        """Kinetic energy that the impulses add [J].

        dT = lambda . (velocity + b) / 2
        """
        return float(self.impulses @ (self.velocities + self.problem.b)) / 2

    @property
    def rank(self) -> int:
        """Rank of G: number of eigenvalues above 1e-10 of the largest."""
        return rank_and_condition(self.problem.spectrum)[0]

    @property
    def condition(self) -> float:
        """Largest over smallest eigenvalue of G; inf if singular, 1 without rows."""
        return rank_and_condition(self.problem.spectrum)[1]

    @property
    def by_id(self) -> dict[Hashable, np.ndarray]:
        """Impulses of each block by id, (rows,), as copies, for a warm start.

        Empty where the problem has no ids.
        """
        ids = self.problem.ids or ()
        pairs = zip(ids, self.problem.layout.blocks, strict=False)
        return {key: self.impulses[list(block.all)] for key, block in pairs}

    def of(self, name: str) -> np.ndarray:
        """Return a copy of the impulses of the first block called `name`, (rows,).

        Raises:
            ModelError: No block has this name.
        """
        names = self.problem.names or ()
        if name not in names:
            known = ", ".join(names) or "none"
            raise ModelError(f"no block is called '{name}'; valid: {known}", name)
        return self.impulses[list(self.problem.layout.blocks[names.index(name)].all)]


def _shortened(values: np.ndarray, limit: int = 6) -> str:
    """Return the first `limit` numbers as [a, b], with "..." if there are more."""
    shown = ", ".join(f"{x:.4g}" for x in values[:limit])
    return f"[{shown}{', ...' if len(values) > limit else ''}]"
