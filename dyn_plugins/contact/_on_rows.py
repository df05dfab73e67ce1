"""Solvers of rows in machine code, for a problem whose G is a matrix."""

from dyn_core.contact import (
    STATUSES,
    ContactSolution,
    Residuals,
    RowSolver,
    rows_of,
)


def solve_on_rows(name, problem, warm=None, **options):
    """Return the solution of a ConstraintProblem by a solver of ROW_SOLVERS.

    Args:
        name: Of the solver.
        problem: Problem.
        warm: Impulses to begin with, (m,); None: zeros.
        options: Of the solver.
    """
    x, *quality, count, status = solve_arrays(name, problem, warm, **options)
    u = problem.apply(x) + problem.b
    return ContactSolution(
        problem, x, u, Residuals(*quality), STATUSES[status], int(count)
    )


def solve_arrays(name, problem, warm=None, **options):
    """Return impulses, the five residuals, iterations and status of a problem.

    Steps use the same code. G is written as a product of sparse rows before.

    Args:
        name: Of a solver of ROW_SOLVERS.
        problem: Problem.
        warm: Impulses to begin with, (m,); None: zeros.
        options: Of the solver.
    """
    rows, nv = rows_of(problem, 0.0 if warm is None else warm)
    solver = RowSolver(name, rows, nv, **options)
    status = solver.solve(len(rows.kind), len(rows.b))
    return rows.impulse, *solver.report[:6].tolist(), status
