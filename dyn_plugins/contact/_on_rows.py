"""Compiled solvers of sparse rows, applied to a problem with a dense matrix G.

ROW_SOLVERS are admm, coulomb_newton, convex_newton and projected_gauss_seidel. m is
the number of rows of the problem.
"""

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
        name: Name of the solver.
        problem: Problem.
        warm: Initial impulses, (m,) or one for all, else ValueError [N·s | N·m·s]; not
            changed; None: zeros.
        options: Options of the solver; defaults are in ROW_SOLVERS; values are not
            checked.

    Returns:
        ContactSolution: impulses, velocities G lambda + b, residuals, status and number
        of iterations. A problem that is not solved has a status, not an exception.

    Raises:
        SettingError: `name` or an option is unknown.
        numpy.linalg.LinAlgError: G is not finite.
    """
    x, *quality, count, status = solve_arrays(name, problem, warm, **options)
    u = problem.apply(x) + problem.b
    return ContactSolution(
        problem, x, u, Residuals(*quality), STATUSES[status], int(count)
    )


def solve_arrays(name, problem, warm=None, **options):
    """Return impulses, the five residuals, iterations and status of a problem.

    G is factorised as a product of sparse rows; time steps use the same solvers. A
    problem that is not solved has a status, not an exception.

    Args:
        name: Name of a solver of ROW_SOLVERS.
        problem: ConstraintProblem.
        warm: Initial impulses, (m,) or one for all, else ValueError [N·s | N·m·s];
            not changed; None: zeros.
        options: Options of the solver; defaults are in ROW_SOLVERS; values are not
            checked.

    Returns:
        Eight values: impulses (m,), primal, dual, complementarity, dissipation, law,
        number of iterations, and the status as an index in STATUSES. For convex_newton,
        `law` is the residual of the convex relaxation.

    Raises:
        SettingError: `name` or an option is unknown.
        numpy.linalg.LinAlgError: G is not finite.
    """
    rows, nv = rows_of(problem, 0.0 if warm is None else warm)
    solver = RowSolver(name, rows, nv, **options)
    status = solver.solve(len(rows.kind), len(rows.b))
    return rows.impulse, *solver.report[:6].tolist(), status
