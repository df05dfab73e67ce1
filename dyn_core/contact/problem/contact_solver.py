"""The base of solvers of constraint problems: one method, from problem to solution."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from dyn_core.contact.problem.layout import ConstraintLayout
from dyn_core.contact.problem.problem import ConstraintProblem
from dyn_core.contact.problem.residuals import STATUSES
from dyn_core.contact.problem.solution import ContactSolution
from dyn_core.errors import PluginError, SignatureError
from dyn_core.problems import CONTACT_SOLVE
from dyn_core.solving.adapter import named_errors
from dyn_core.solving.numpy_solver import ArraySolver, solve_failed


class ContactSolver(ArraySolver):
    """A Solver of CONTACT_SOLVE that takes a ConstraintProblem.

    A leaf states `name` and writes `solve(problem, warm=None, option=default, ...)`;
    `ContactSolution.from_impulses(problem, impulses)` computes what else a solution
    has. A World, `dyn_core.contact.solve` and `build(layout)` take it as it is.

    Attributes:
        options: Options of `solve` with their defaults, as its parameters say.
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
            problem: Blocks, G, b and bounds; `problem.arrays` has them as arrays.
            warm: Impulses to begin with, (m,); None: zeros.
            options: Each of `options`.
        """

    def relaxes(self, layout: ConstraintLayout) -> str:
        """Return which part of the law is not solved exactly; empty: none."""
        return ""

    def checked_solution(
        self, problem: ConstraintProblem, warm: np.ndarray, options: Mapping[str, Any]
    ) -> ContactSolution:
        """Return what `solve` returns, checked.

        Args:
            problem, warm: As in `solve`.
            options: A value of each option.

        Raises:
            PluginError: `solve` failed, or returned no solution of the problem.
        """
        name = f"{self.name} ({self.origin})" if self.origin else self.name
        with named_errors(name, solve_failed):
            solution: Any = self.solve(problem, warm, **options)
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
        """Return the outputs of CONTACT_SOLVE from its inputs."""
        *numbers, warm = inputs
        problem = ConstraintProblem(model, *numbers)
        solution = self.checked_solution(problem, warm, options)
        status = float(STATUSES.index(solution.status))
        residuals, count = np.array(solution.residuals), float(solution.iterations)
        return solution.impulses, solution.velocities, residuals, count, status
