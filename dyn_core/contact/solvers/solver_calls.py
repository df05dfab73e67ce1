"""Contact solvers by name, and the compiled function that calls the chosen one.

In the subset of machine code, except the functions that allocate arrays.
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
from dyn_core.errors import SettingError, unknown_name

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
IMPACT, PROBLEM = range(2)  # requests of machine code to the Python function
RAISED = -1  # status: the Python function has raised an error


class SolverChoice(NamedTuple):
    """A contact solver with its options, as numbers for machine code.

    Attributes:
        method: Index in ROW_SOLVERS; IN_PYTHON: a solver outside of these, which
            machine code calls through Python, with options of 0.
        splittings: Iterations of coulomb_newton's last splitting; else 0.
        factor: Initial penalty of admm, relaxation of projected_gauss_seidel; else 0.
        impacts: 1 if an impact by a law other than Newton's precedes each step, else 0.
    """

    method: int
    max_iterations: int
    tolerance: float
    splittings: int
    factor: float
    impacts: int


class ChosenSolver(NamedTuple):
    """A contact solver with its work arrays.

    Attributes:
        reports: Report of the solution (row 0) and of the position correction (row 1),
            (2, 8); see solver_memory.py for the columns.
        python: Address of the Python function f(request, blocks, m) -> status; request
            is IMPACT or PROBLEM. The status is RAISED after an error.
        impact: Impulses of the rows in the impact before a step [N·s | N·m·s].
    """

    choice: SolverChoice
    work: SolverWork
    reports: FloatArray2
    python: KernelAddress
    impact: FloatArray


def choice_of(
    name: str, options: Mapping[str, float], impacts: bool = False
) -> SolverChoice:
    """Return a solver by name, IN_PYTHON outside ROW_SOLVERS, with given options.

    Names of options are not checked; IN_PYTHON ignores all options.
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
    """Solve a problem by the chosen method; return its status.

    rows.impulse is the warm start, and becomes the solution. A solver IN_PYTHON writes
    only LAW and ITERATIONS of solver.reports[0]. The status is an index in
    residuals.STATUSES; NO_BUFFER (5): the work arrays are too small and the impulses
    unchanged; RAISED (-1): a solver IN_PYTHON raised an error.
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
        report[LAW] = law  # the Python solver may have a law of its own
        return status
    return sweep(rows, blocks, m, nv, work, report, most, tolerance, choice.factor)


class RowSolver:
    """A solver of ROW_SOLVERS, bound to the arrays of a problem.

    Attributes:
        nv: Number of coordinates.
        report: Residuals (primal, dual, complementarity, dissipation, law), iterations,
            penalty and factorisations of the last solution, (8,).
    """

    def __init__(self, name: str, rows: Rows, nv: int, **options: float) -> None:
        """Allocate work arrays and compile the solver for the arrays `rows`.

        Args:
            name: admm, coulomb_newton, convex_newton or projected_gauss_seidel.
            rows: Arrays of all problems to be solved. Their entries may change between
                solutions; the array objects must stay the same.
            nv: Number of coordinates of the supports.
            options: Options of the solver: max_iterations, tolerance, and rho (admm),
                splittings (coulomb_newton) or relaxation (projected_gauss_seidel), with
                the defaults of choice_of; values are not checked.

        Raises:
            SettingError: The name is unknown, or an option is none of this solver.
        """
        if name not in ROW_SOLVERS:
            message = unknown_name("solver of rows", name, ROW_SOLVERS)
            raise SettingError(message, "name")
        for option in options:
            if option not in ROW_SOLVERS[name]:
                valid = ROW_SOLVERS[name]
                message = unknown_name(f"option of {name}", option, valid)
                raise SettingError(message, option)
        work, reports = allocate_solvers(rows, nv), np.zeros((2, 8))
        choice = choice_of(name, options)
        chosen = ChosenSolver(choice, work, reports, NO_KERNEL, np.zeros(0))
        self.nv, self.report = int(nv), reports[0]
        self._solve = compiled(solve_rows).bind(rows, chosen)

    def solve(self, blocks: int, m: int) -> int:
        """Replace the impulses of the bound rows by the solution; return its status.

        The impulses in the rows are the warm start; self.report is overwritten.

        Args:
            blocks, m: Numbers of blocks and rows in use.

        Returns:
            Index in residuals.STATUSES: 0 converged, 1 max_iterations, 2 infeasible;
            with NO_BUFFER (5), the work arrays are too small and the impulses
            unchanged.
        """
        return int(self._solve(blocks, m, self.nv))
