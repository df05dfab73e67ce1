"""Solve a constraint problem by the name of a solver."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import Any

import numpy as np

from dyn_core.contact.laws import HUGE, STATUSES
from dyn_core.contact.layout import ConstraintLayout
from dyn_core.contact.problem import ConstraintProblem
from dyn_core.contact.solution import ContactSolution, Residuals, residuals
from dyn_core.engines import Program
from dyn_core.errors import SignatureError
from dyn_core.registry import solver as find
from dyn_core.registry import solvers
from dyn_core.signature import CONTACT_SOLVE
from dyn_core.solver import Solver


def solve(
    problem: ConstraintProblem,
    solver: str | Solver = "admm",
    warm: Any = None,
    **options: Any,
) -> ContactSolution:
    """Give the impulses of a problem by any solver of CONTACT_SOLVE.

        velocity = G lambda + b,   u = velocity + R lambda + bias

    Args:
        problem: What to solve.
        solver: Its name, or a Solver.
        warm: An earlier ContactSolution, or impulses by id, to begin from.
        options: The solver's own, and those of build (engine).

    Returns:
        The solution; where none was found its status says so.

    Raises:
        SignatureError: The solver is of another kind.
        UnsupportedError: The solver does not serve this layout, or needs an extra.

    Source: LCP-5 to LCP-14, LCP-19.
    """
    chosen = find(solver)
    if chosen.signature != CONTACT_SOLVE:
        valid = ", ".join(solvers(CONTACT_SOLVE))
        raise SignatureError(
            f"'{chosen.name}' solves {chosen.signature.name}, not"
            f" {CONTACT_SOLVE.name}; valid: {valid}"
        )
    start = problem.warm(warm)
    relaxes = getattr(chosen, "relaxes", None)
    words = "" if relaxes is None else relaxes(problem.layout)
    if not problem.m:
        none = np.zeros(0)
        nothing = Residuals(0.0, 0.0, 0.0, 0.0, 0.0)
        return ContactSolution(
            problem, none, none, nothing, STATUSES[0], 0, chosen.name, words
        )
    sweep = getattr(chosen, "sweep", None)
    if problem.matrix_free and sweep is not None:
        impulse, iterations, status = sweep(problem, start, **options)
        velocity = problem.apply(impulse) + problem.b
        proof = residuals(problem, impulse)
    else:
        key = tuple(sorted((k, v) for k, v in options.items()))
        program = _program(chosen, problem.layout, key)
        n = problem.numbers
        impulse, velocity, found, iterations, status = program(
            n.G, n.b, n.mu, *_finite(n.lo, n.hi), n.compliance, start
        )
        velocity = velocity - problem.bias
        proof = Residuals(*map(float, found))
    return ContactSolution(
        problem,
        impulse,
        velocity,
        proof,
        STATUSES[int(status)],
        int(iterations),
        chosen.name,
        words,
    )


def _finite(*bounds: np.ndarray) -> list[np.ndarray]:
    """Give bounds as Programs take them: beyond HUGE there is none."""
    return [np.clip(bound, -2 * HUGE, 2 * HUGE) for bound in bounds]


@lru_cache(maxsize=256)
def _program(
    chosen: Solver, layout: ConstraintLayout, options: tuple[tuple[str, Hashable], ...]
) -> Program:
    """Build a solver for a layout, once."""
    return chosen.build(layout, **dict(options))  # type: ignore[arg-type]
