"""Base class of the solvers of constraint problems, and `solve` by name.

m is the number of rows of a problem.
"""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any

import numpy as np

from dyn_core.contact.problem.layout import ConstraintLayout
from dyn_core.contact.problem.problem import ConstraintProblem
from dyn_core.contact.problem.projections import HUGE
from dyn_core.contact.problem.residuals import INFEASIBLE, STATUSES
from dyn_core.contact.problem.solution import ContactSolution, Residuals
from dyn_core.engines import Program
from dyn_core.errors import PluginError, SignatureError, UnsupportedError
from dyn_core.problems import CONTACT_SOLVE
from dyn_core.solving.adapter import named_errors
from dyn_core.solving.build_options import BuildOptions
from dyn_core.solving.numpy_solver import ArraySolver, solve_failed
from dyn_core.solving.registry import solver_of
from dyn_core.solving.solver import Solver
from dyn_core.validation import shown

BEYOND = 1e9  # ratio of warm impulses, as velocities, to the velocities of a problem


class ContactSolver(ArraySolver):
    """A Solver of CONTACT_SOLVE that is given a ConstraintProblem.

    A subclass has `name` and `solve(problem, warm=None, option=default, ...)`;
    `ContactSolution.from_impulses(problem, impulses)` computes the other fields of a
    solution. A World, `dyn_core.contact.solve` and `build(layout)` accept an instance.

    Attributes:
        options: Options of `solve` with their defaults, read from its parameters.

    Raises:
        SignatureError: On definition of a subclass whose `solve` has other parameters.
    """

    signature = CONTACT_SOLVE

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        taken = inspect.signature(cls.solve)
        options = [x for x in taken.parameters.values() if x.kind != x.VAR_KEYWORD]
        if len(options) < 3 or any(x.default is x.empty for x in options[3:]):
            raise SignatureError(
                f"{cls.__name__}: solve takes {taken}; valid: (self, problem,"
                " warm=None, option=default, ...)"
            )
        cls.options = {x.name: x.default for x in options[3:]}

    @abstractmethod
    def solve(
        self, problem: ConstraintProblem, warm: np.ndarray | None = None, **options: Any
    ) -> ContactSolution:
        """Return the solution of a problem.

        Args:
            problem: Problem: blocks, G, b, bounds, and quantities derived from them.
            warm: Initial impulses, (m,); None: zeros.
            options: One argument for each entry of `options`.
        """

    def relaxes(self, layout: ConstraintLayout) -> str:
        """Return a description of the law that is solved approximately; empty: none.

        Always empty unless a subclass has its own method.
        """
        return ""

    def checked_solution(
        self, problem: ConstraintProblem, warm: np.ndarray, options: Mapping[str, Any]
    ) -> ContactSolution:
        """Return the result of `solve`, checked for its type and number of impulses.

        Args:
            problem: Problem.
            warm: Initial impulses, (m,).
            options: A value of each option.

        Raises:
            PluginError: `solve` raised an error that is not one of dyn_core's, or
                returned another type or number of impulses. Errors of dyn_core pass
                through.
        """
        name = f"{self.name} ({self.origin})" if self.origin else self.name
        try:
            solution: Any = self.solve(problem, warm, **options)
        except (Exception, SystemExit):
            with named_errors(name, solve_failed):
                raise
        fits = isinstance(solution, ContactSolution)
        if not fits or solution.impulses.shape != (problem.m,):
            raise PluginError(
                f"{name}: solve returned {type(solution).__name__}; valid: a"
                f" ContactSolution with {problem.m} impulses, as"
                " ContactSolution.from_impulses(problem, impulses)",
                name,
            )
        return solution

    def outputs(self, model: Any, *inputs: Any, **options: Any) -> tuple[Any, ...]:
        """Return the outputs of CONTACT_SOLVE from its inputs.

        Args:
            model: The ConstraintLayout.
            inputs: G, b, mu, lo, hi, compliance and warm, in this order; see
                ConstraintProblem.
            options: A value of each option of `solve`.

        Returns:
            Impulses and velocities G lambda + b, (m,) each; the residuals, (5,), in the
            order of law_residuals; and, as floats, the number of iterations and the
            index of the status in STATUSES: 0 converged, 1 max_iterations, 2
            infeasible, 3 ray, 4 not_unique.

        Raises:
            ModelError: An input is invalid.
            PluginError: `solve` raised an error that is not one of dyn_core's, or
                returned another type or number of impulses. Errors of dyn_core pass
                through.
        """
        *numbers, warm = inputs
        problem = ConstraintProblem(model, *numbers)
        solution = self.checked_solution(problem, warm, options)
        status = float(STATUSES.index(solution.status))
        residuals, count = np.array(solution.residuals), float(solution.iterations)
        return solution.impulses, solution.velocities, residuals, count, status


def solve(
    problem: ConstraintProblem,
    solver: str | Solver = "admm",
    warm: Any = None,
    **options: Any,
) -> ContactSolution:
    """Return the impulses of a problem by any solver of CONTACT_SOLVE.

        velocity = G lambda + b,   u = velocity + R lambda + bias

    Args:
        problem: Problem; without rows no solver is called and options are ignored.
        solver: Name of a solver, or a Solver.
        warm: Earlier ContactSolution, impulses by id, or an array (m,), for a warm
            start; None, or impulses far too large for the velocities: zeros.
        options: Options of the solver and of build (engine).

    Returns:
        The solution; its status says whether the solver has converged. It becomes
        infeasible if the solver reached its maximum of iterations and provably no
        solution exists.

    Raises:
        SolverNotFound: No solver has this name.
        SignatureError: The solver solves another kind of problem.
        UnsupportedError: The solver does not serve this layout, needs an extra, or an
            option is invalid.
        ModelError: `warm` is invalid.
        PluginError: Two plugins offer the name, or a ContactSolver failed, or returned
            no solution of the problem.

    Source: LCP-5 to LCP-14, LCP-19.
    """
    chosen = solver_of(solver, CONTACT_SOLVE)
    start = _useful(problem, problem.warm(warm))
    key = _hashable(chosen, options)
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


def _hashable(
    chosen: Solver, options: Mapping[str, Any]
) -> tuple[tuple[str, Hashable], ...]:
    """Return options as sorted pairs for the caches; refuse what is not hashable."""
    for name, value in options.items():
        try:
            hash(value)
        except TypeError as error:
            check_options(chosen, {name: value})
            raise UnsupportedError(
                f"{chosen.name}: {name} {shown(value)}; valid: a number, a name, or a"
                " tuple of them"
            ) from error
    return tuple(sorted(options.items()))


def relaxed_part(chosen: Solver, layout: ConstraintLayout) -> str:
    """Return a description of the law that a solver relaxes for a layout, or ""."""
    relaxes = getattr(chosen, "relaxes", None)
    return "" if relaxes is None else relaxes(layout)


def _traced(
    chosen: Solver,
    problem: ConstraintProblem,
    start: np.ndarray,
    options: tuple[tuple[str, Hashable], ...],
) -> ContactSolution:
    """Return the solution by the Program of a solver that is not a ContactSolver."""
    program, n = _program(chosen, problem.layout, options), problem
    impulse, velocity, law_values, iterations, status = program(
        n.matrix, n.offset, n.mu, *_finite(n.lo, n.hi), n.compliance, start
    )
    label, quality = STATUSES[int(status)], Residuals(*map(float, law_values))
    velocity = velocity - problem.bias
    return ContactSolution(problem, impulse, velocity, quality, label, int(iterations))


def impossible(problem: ConstraintProblem) -> bool:
    """Return whether a problem without its free rows provably has no solution."""
    return problem.without_free_rows().reduced.impossible


def _useful(problem: ConstraintProblem, start: np.ndarray) -> np.ndarray:
    """Return the start itself, or zeros if an impulse is too large for the velocities.

    Solvers measure their progress by the velocities: impulses of an earlier problem
    would never be small beside velocities that are zero but for rounding errors. Too
    large means that one, times its diagonal entry of G + R, exceeds 1e9 times the
    largest |b + bias|.
    """
    diagonal: Any = problem.diagonal if problem.matrix_free else np.diag(problem.matrix)
    speed = float(np.abs(problem.b + problem.bias).max(initial=0.0))
    largest = float((np.abs(start) * (diagonal + problem.compliance)).max(initial=0.0))
    return start if largest <= BEYOND * speed else np.zeros(len(start))


def check_options(chosen: Solver, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given options of the solver, without the options of `build`.

    Args:
        chosen: Solver.
        options: Options of the solver and of `build`, by name; not changed.

    Raises:
        UnsupportedError: An option is unknown, or its value is invalid; the message
            lists the valid ones.
    """
    for key in options:
        if not isinstance(key, str):
            raise UnsupportedError(
                f"options of {chosen.name}: {shown(key)} is no name of an option"
            )
    common = {field.name for field in fields(BuildOptions)}
    settings = {key: value for key, value in options.items() if key not in common}
    chosen.with_options(**settings)
    return settings


def _finite(*bounds: np.ndarray) -> list[np.ndarray]:
    """Return each bound clipped to +-2e300: Programs have no infinite inputs."""
    return [np.clip(bound, -2 * HUGE, 2 * HUGE) for bound in bounds]


@lru_cache(maxsize=256)
def _settings(
    chosen: ContactSolver,
    layout: ConstraintLayout,
    options: tuple[tuple[str, Hashable], ...],
) -> dict[str, Any]:
    """Return a value of each option of a solver: given ones and defaults, cached.

    UnsupportedError for a layout or an option that the solver does not serve.
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
