"""Contact and constraint problems: values, residuals, solutions and solvers."""

from dyn_core.contact.problem.conic import conic_libraries, minimise_over_cones
from dyn_core.contact.problem.inverse import impulse_of_velocity
from dyn_core.contact.problem.layout import KINDS, ConstraintBlock, ConstraintLayout
from dyn_core.contact.problem.problem import ConstraintProblem, ReducedProblem
from dyn_core.contact.problem.projections import HUGE, best_part
from dyn_core.contact.problem.residuals import (
    CONVERGED,
    INFEASIBLE,
    MAX_ITERATIONS,
    NOT_UNIQUE,
    RAY,
    RESIDUALS,
    STATUSES,
    cone_projection,
    disc_projection,
    law_residuals,
    norm,
    row_projection,
    weights,
)
from dyn_core.contact.problem.rows import Rows, rows_of
from dyn_core.contact.problem.softness import (
    compliance,
    erp_and_cfm,
    impedance,
    sap_rows,
    soft_rows,
)
from dyn_core.contact.problem.solution import ContactSolution, Residuals, residuals
from dyn_core.contact.problem.solving import ContactSolver, check_options, solve
from dyn_core.contact.solvers.admm import next_penalty
from dyn_core.contact.solvers.solver_calls import ROW_SOLVERS, RowSolver
from dyn_core.contact.solvers.solver_memory import SOLVED

__all__ = [
    "CONVERGED",
    "HUGE",
    "INFEASIBLE",
    "KINDS",
    "MAX_ITERATIONS",
    "NOT_UNIQUE",
    "RAY",
    "RESIDUALS",
    "ROW_SOLVERS",
    "SOLVED",
    "STATUSES",
    "ConstraintBlock",
    "ConstraintLayout",
    "ConstraintProblem",
    "ContactSolution",
    "ContactSolver",
    "ReducedProblem",
    "Residuals",
    "RowSolver",
    "Rows",
    "best_part",
    "check_options",
    "compliance",
    "cone_projection",
    "conic_libraries",
    "disc_projection",
    "erp_and_cfm",
    "impedance",
    "impulse_of_velocity",
    "law_residuals",
    "minimise_over_cones",
    "next_penalty",
    "norm",
    "residuals",
    "row_projection",
    "rows_of",
    "sap_rows",
    "soft_rows",
    "solve",
    "weights",
]
