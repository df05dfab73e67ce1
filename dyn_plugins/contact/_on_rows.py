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
    """Return the ContactSolution of a ConstraintProblem by a solver of ROW_SOLVERS.

    warm: Initial impulses, (m,) or one for all [N·s | N·m·s], not changed; None: zeros.
    Values of options are not checked. An unsolved problem has a status, no exception.
    """
    x, *quality, count, status = solve_arrays(name, problem, warm, **options)
    u = problem.apply(x) + problem.b
    return ContactSolution(
        problem, x, u, Residuals(*quality), STATUSES[status], int(count)
    )


def solve_arrays(name, problem, warm=None, **options):
    """Return impulses, the five residuals, iterations and status of a problem.

    Eight values: impulses (m,), primal, dual, complementarity, dissipation, law (for
    convex_newton that of the convex relaxation), number of iterations, and the status
    as an index in STATUSES. Arguments are those of solve_on_rows. G is factorised as a
    product of sparse rows; time steps use the same solvers.
    """
    rows, nv = rows_of(problem, 0.0 if warm is None else warm)
    solver = RowSolver(name, rows, nv, **options)
    status = solver.solve(len(rows.kind), len(rows.b))
    return rows.impulse, *solver.report[:6].tolist(), status
