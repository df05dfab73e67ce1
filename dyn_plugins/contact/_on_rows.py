"""Solvers of rows in machine code, for a problem whose G is a matrix."""

from dyn_core.contact import ROW_SOLVERS, ProblemArrays, rows_of


def solve_on_rows(name, layout, G, b, mu, lo, hi, compliance, warm, **options):
    """Return the outputs of CONTACT_SOLVE by a solver of ROW_SOLVERS.

    The steps on arrays use the same code. G is written as a product of sparse rows
    before.

    Args:
        name: Of the solver.
        layout, G, b, mu, lo, hi, compliance, warm: Inputs of CONTACT_SOLVE.
        options: Of the solver.
    """
    problem = ProblemArrays(layout, G, b, mu, lo, hi, compliance, warm)
    rows, nv = rows_of(problem)
    solver = ROW_SOLVERS[name](rows, nv, **options)
    status = solver.solve(len(rows.kind), len(rows.b))
    velocity = problem.G @ rows.impulse + problem.b
    report = solver.report
    return rows.impulse, velocity, report[:5].copy(), report[5], float(status)
