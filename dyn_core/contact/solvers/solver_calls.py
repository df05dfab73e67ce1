"""Solvers of Rows by name, and the one function that calls the chosen one.

In the subset of machine code, but for what makes memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from dyn_core.contact.problem.rows import Rows
from dyn_core.contact.solvers.coulomb_newton import (
    NEAR,
    solve_coulomb,
    split_and_polish,
)
from dyn_core.contact.solvers.gauss_seidel import sweep
from dyn_core.contact.solvers.laws.law_residuals import row_residuals
from dyn_core.contact.solvers.proximal_newton import newton
from dyn_core.contact.solvers.solver_memory import LAW, SolverWork, allocate_solvers
from dyn_core.engines.machine_code import (
    NO_KERNEL,
    FloatArray,
    FloatArray2,
    KernelAddress,
    call_python,
    compiled,
    machine_code,
)

# Names, and options with their defaults.
ROW_SOLVERS: Mapping[str, Mapping[str, float]] = {
    "admm": {"max_iterations": 5000, "tolerance": 1e-10, "rho": 1.0},
    "coulomb_newton": {"max_iterations": 120, "tolerance": 1e-9, "splittings": 3000},
    "convex_newton": {"max_iterations": 100, "tolerance": 1e-9},
    "projected_gauss_seidel": {
        "max_iterations": 1000,
        "tolerance": 1e-9,
        "relaxation": 1.0,
    },
}
ADMM, NEWTON, RELAXATION, SWEEPS, IN_PYTHON = range(len(ROW_SOLVERS) + 1)
IMPACT, PROBLEM = range(2)  # what machine code asks Python for
RAISED = -1  # status: the Python function has raised an error


class SolverChoice(NamedTuple):
    """A solver with its options.

    Attributes:
        method: ADMM, NEWTON, RELAXATION or SWEEPS; IN_PYTHON: a solver of matrices.
        max_iterations, tolerance: Of each.
        splittings: Of coulomb_newton.
        factor: Penalty of admm, relaxation of projected_gauss_seidel.
        impacts: 1 where an impact by another law than Newton's comes before a step.
    """

    method: int
    max_iterations: int
    tolerance: float
    splittings: int
    factor: float
    impacts: int


class ChosenSolver(NamedTuple):
    """A solver with its memory.

    Attributes:
        choice: Which, and its options.
        work: Memory.
        reports: Of it, and of the correction of positions, (2, 8).
        python: Python function of IMPACT or PROBLEM, and the numbers of blocks and rows
            of the prepared problem; it returns a status, and RAISED after an error.
        impact: Impulses of the rows in the impact before a step.
    """

    choice: SolverChoice
    work: SolverWork
    reports: FloatArray2
    python: KernelAddress
    impact: FloatArray


def choice_of(
    name: str, options: Mapping[str, float], impacts: bool = False
) -> SolverChoice:
    """Return a solver by name, with some options beside the defaults.

    Args:
        name: One of ROW_SOLVERS; another one is called in Python, with its own options.
        options: Of the solver.
        impacts: Whether impacts come before the steps.
    """
    if name not in ROW_SOLVERS:
        return SolverChoice(IN_PYTHON, 0, 0.0, 0, 0.0, int(impacts))
    chosen = {**ROW_SOLVERS[name], **options}
    return SolverChoice(
        list(ROW_SOLVERS).index(name),
        int(chosen["max_iterations"]),
        float(chosen["tolerance"]),
        int(chosen.get("splittings", 0)),
        float(chosen.get("rho", chosen.get("relaxation", 0.0))),
        int(impacts),
    )


@machine_code
def solve_rows(rows: Rows, blocks: int, m: int, nv: int, solver: ChosenSolver) -> int:
    """Replace the impulses of a problem by the solution; return its status.

    Args:
        rows: Problem, with its warm start.
        blocks, m, nv: Numbers of blocks, rows and coordinates in use.
        solver: Which, and its memory.

    Returns:
        Index in residuals.STATUSES, or RAISED.
    """
    choice, work, report = solver.choice, solver.work, solver.reports[0]
    most, tolerance = choice.max_iterations, choice.tolerance
    if choice.method == NEWTON:
        return solve_coulomb(
            rows, blocks, m, nv, work, report, most, tolerance, choice.splittings
        )
    if choice.method == ADMM:
        return split_and_polish(
            rows, blocks, m, nv, work, report, most, tolerance, choice.factor
        )
    if choice.method == RELAXATION:
        return newton(rows, blocks, m, nv, work, report, most, tolerance, NEAR, False)
    if choice.method == IN_PYTHON:
        status = call_python(solver.python, PROBLEM, blocks, m)
        law = report[LAW]
        row_residuals(rows, blocks, nv, work.system.w, work.iterates.r, report)
        report[LAW] = law  # of the solver's own law
        return status
    return sweep(rows, blocks, m, nv, work, report, most, tolerance, choice.factor)


class RowSolver:
    """A solver of ROW_SOLVERS, tied to the arrays of a problem.

    Attributes:
        report: Residuals (primal, dual, complementarity, dissipation, law), iterations,
            penalty and factorisations of the last solution, (8,).
    """

    def __init__(self, name: str, rows: Rows, nv: int, **options: float) -> None:
        """Make memory.

        Args:
            name: One of ROW_SOLVERS.
            rows: Arrays of the problems to come; what is in them may change, they not.
            nv: Number of coordinates of the supports.
            options: Of the solver.
        """
        work, reports = allocate_solvers(rows, nv), np.zeros((2, 8))
        choice = choice_of(name, options)
        chosen = ChosenSolver(choice, work, reports, NO_KERNEL, np.zeros(0))
        self.nv, self.report = int(nv), reports[0]
        self._solve = compiled(solve_rows).bind(rows, chosen)

    def solve(self, blocks: int, m: int) -> int:
        """Replace the impulses by the solution; return its status; see solve_rows."""
        return int(self._solve(blocks, m, self.nv))
