"""Solve a constraint problem by the name of a solver."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any

import numpy as np

from dyn_core.contact.problem.contact_solver import ContactSolver
from dyn_core.contact.problem.layout import ConstraintLayout
from dyn_core.contact.problem.problem import ConstraintProblem
from dyn_core.contact.problem.projections import HUGE
from dyn_core.contact.problem.residuals import INFEASIBLE, STATUSES
from dyn_core.contact.problem.solution import ContactSolution, Residuals
from dyn_core.engines import Program
from dyn_core.errors import SignatureError, UnsupportedError
from dyn_core.problems import CONTACT_SOLVE
from dyn_core.solving.build_options import BuildOptions
from dyn_core.solving.registry import solver as find
from dyn_core.solving.registry import solvers
from dyn_core.solving.solver import Solver

BEYOND = 1e9  # ratio of warm impulses, as velocities, to the velocities of a problem


def solve(
    problem: ConstraintProblem,
    solver: str | Solver = "admm",
    warm: Any = None,
    **options: Any,
) -> ContactSolution:
    """Return the impulses of a problem by any solver of CONTACT_SOLVE.

        velocity = G lambda + b,   u = velocity + R lambda + bias

    Args:
        problem: Problem.
        solver: Name of a solver, or a Solver.
        warm: Earlier ContactSolution, or impulses by id, for a warm start.
        options: Options of the solver and of build (engine).

    Returns:
        The solution; its status says whether the solver has converged.

    Raises:
        SignatureError: The solver is of another kind.
        UnsupportedError: The solver does not serve this layout, or needs an extra.

    Source: LCP-5 to LCP-14, LCP-19.
    """
    chosen = contact_solver(solver)
    start = _useful(problem, problem.warm(warm))
    key = tuple(sorted(options.items()))
    if not problem.m:
        solution = ContactSolution.from_impulses(problem, np.zeros(0))
    elif isinstance(chosen, ContactSolver):
        solution = chosen.checked_solution(
            problem, start, _settings(chosen, problem.layout, key)
        )
    else:
        solution = _traced(chosen, problem, start, key)
    if solution.status == "max_iterations" and impossible(problem):
        solution = replace(solution, status=STATUSES[int(INFEASIBLE)])
    relaxed = relaxed_part(chosen, problem.layout)
    return replace(solution, solver=chosen.name, relaxes=relaxed)


def relaxed_part(chosen: Solver, layout: ConstraintLayout) -> str:
    """Return which part of the law a solver does not solve exactly; empty: none."""
    relaxes = getattr(chosen, "relaxes", None)
    return "" if relaxes is None else relaxes(layout)


def _traced(
    chosen: Solver,
    problem: ConstraintProblem,
    start: np.ndarray,
    options: tuple[tuple[str, Hashable], ...],
) -> ContactSolution:
    """Return the solution by the Program of a TracedSolver."""
    program, n = _program(chosen, problem.layout, options), problem.arrays
    impulse, velocity, law_values, iterations, status = program(
        n.G, n.b, n.mu, *_finite(n.lo, n.hi), n.compliance, start
    )
    label, quality = STATUSES[int(status)], Residuals(*map(float, law_values))
    velocity = velocity - problem.bias
    return ContactSolution(problem, impulse, velocity, quality, label, int(iterations))


def impossible(problem: ConstraintProblem) -> bool:
    """Return whether a problem provably has no solution, whatever its G is."""
    return problem.arrays.without_free_rows().reduced.impossible


def _useful(problem: ConstraintProblem, start: np.ndarray) -> np.ndarray:
    """Return initial impulses, zero if they are far beyond all that velocities ask for.

    Solvers measure their progress by the velocities: impulses of an earlier problem
    would never be small beside velocities that are zero but for rounding errors.
    """
    diagonal: Any = problem.diagonal if problem.matrix_free else np.diag(problem.matrix)
    speed = float(np.abs(problem.b + problem.bias).max(initial=0.0))
    largest = float((np.abs(start) * (diagonal + problem.compliance)).max(initial=0.0))
    return start if largest <= BEYOND * speed else np.zeros(len(start))


def contact_solver(name: str | Solver) -> Solver:
    """Return the solver of CONTACT_SOLVE of a name; see `solve`."""
    chosen = name if isinstance(name, Solver) else find(name, CONTACT_SOLVE)
    if chosen.signature != CONTACT_SOLVE:
        valid = ", ".join(solvers(CONTACT_SOLVE))
        raise SignatureError(
            f"'{chosen.name}' solves {chosen.signature.name}, not"
            f" {CONTACT_SOLVE.name}; valid: {valid}"
        )
    return chosen


def check_options(chosen: Solver, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a solver itself, those of `build` left out.

    Raises:
        UnsupportedError: An option is unknown, or does not take the value; the message
            says what is valid.
    """
    common = {field.name for field in fields(BuildOptions)}
    settings = {key: value for key, value in options.items() if key not in common}
    chosen.with_options(**settings)
    return settings


def _finite(*bounds: np.ndarray) -> list[np.ndarray]:
    """Return bounds with infinity replaced by a finite number beyond HUGE."""
    return [np.clip(bound, -2 * HUGE, 2 * HUGE) for bound in bounds]


@lru_cache(maxsize=256)
def _settings(
    chosen: ContactSolver,
    layout: ConstraintLayout,
    options: tuple[tuple[str, Hashable], ...],
) -> dict[str, Any]:
    """Return a value of each option of a solver, cached.

    Raises:
        UnsupportedError: The layout is not served, an option is unknown, or does not
            take the value.
    """
    reason = chosen.refusal(layout)
    if reason is not None:
        raise UnsupportedError(f"{chosen.name}: {reason}")
    return chosen.read_options(None, dict(options))[1]


@lru_cache(maxsize=256)
def _program(
    chosen: Solver, layout: ConstraintLayout, options: tuple[tuple[str, Hashable], ...]
) -> Program:
    """Return the Program of a solver for a layout, cached."""
    return chosen.build(layout, **dict(options))  # type: ignore[arg-type]
