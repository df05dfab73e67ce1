"""What a solver of a constraint problem found, and residuals that prove it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dyn_core.contact.laws import law_residuals
from dyn_core.contact.numbers import RANK
from dyn_core.contact.problem import ConstraintProblem
from dyn_core.errors import ModelError


class Residuals(NamedTuple):
    """How far a solution is from the exact laws, largest over the blocks.

    Attributes:
        primal: Distance of impulses to cones and bounds [N·s].
        dual: Distance of velocities (with De Saxce's correction) to theirs [m/s].
        complementarity: Impulse times velocity where it should vanish [J].
        dissipation: What friction takes less than the most it could [J].
        law: Of the solver's own law, relative (laws.law_residuals) [1].

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
    """Give how far impulses are from the exact laws of a problem.

    Source: LCP-12.
    """
    x = np.asarray(impulse, float)
    u = problem.apply(x) + problem.b + problem.bias + problem.compliance * x
    given: Any = problem.diagonal
    diagonal = given if callable(problem.G) else np.diag(problem.matrix)
    found = law_residuals(
        problem.layout,
        x.tolist(),
        u.tolist(),
        problem.mu.tolist(),
        problem.lo.tolist(),
        problem.hi.tolist(),
        (diagonal + problem.compliance).tolist(),
        float(np.abs(problem.b + problem.bias).max(initial=0.0)),
    )
    return Residuals(*map(float, found))


@dataclass(frozen=True, eq=False)
class ContactSolution:
    """What a solver found, and how far to trust it.

    Attributes:
        problem: What was asked.
        impulses: lambda, (m,) [N·s | N·m·s].
        velocities: G lambda + b, (m,) [m/s | rad/s].
        residuals: How far the exact laws are from holding; the last, `law`, is of the
            law that the solver solves.
        status: One of laws.STATUSES.
        iterations: How many it took.
        solver: Its name.
        relaxes: What it does not solve exactly, in words; empty if nothing.

    Source: LCP-12, LCP-18, LCP-20.
    """

    problem: ConstraintProblem
    impulses: np.ndarray
    velocities: np.ndarray
    residuals: Residuals
    status: str
    iterations: int
    solver: str
    relaxes: str = ""

    @property
    def converged(self) -> bool:
        """Whether the solver's law holds."""
        return self.status in ("converged", "not_unique")

    @property
    def exact(self) -> bool:
        """Whether that law is the exact one."""
        return not self.relaxes

    @property
    def energy_change(self) -> float:
        """Kinetic energy that the impulses add [J].

        dT = lambda . (velocity + b) / 2
        """
        return float(self.impulses @ (self.velocities + self.problem.b)) / 2

    @property
    def rank(self) -> int:
        """Rank of G: eigenvalues above 1e-10 of the largest."""
        found = self.problem.spectrum
        return int((found > RANK * found.max(initial=0.0)).sum())

    @property
    def condition(self) -> float:
        """Largest over smallest eigenvalue of G; infinite where singular."""
        found = self.problem.spectrum
        if self.rank < len(found):
            return float("inf")
        return float(found[-1] / found[0]) if len(found) else 1.0

    @property
    def by_id(self) -> dict[Hashable, np.ndarray]:
        """Impulses of each block by its id: for the next step's warm start."""
        ids = self.problem.ids or ()
        pairs = zip(ids, self.problem.layout.blocks, strict=False)
        return {key: self.impulses[list(block.all)] for key, block in pairs}

    def of(self, name: str) -> np.ndarray:
        """Give the impulses of the block of a name."""
        names = self.problem.names or ()
        if name not in names:
            known = ", ".join(names) or "none"
            raise ModelError(f"no block is called '{name}'; known: {known}", name)
        return self.impulses[list(self.problem.layout.blocks[names.index(name)].all)]
