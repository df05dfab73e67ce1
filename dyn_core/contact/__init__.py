"""Contacts and constraints: one problem as a value, its laws, and any solver of it."""

from dyn_core.contact.conic import conic_libraries, minimise_over_cones
from dyn_core.contact.inverse import impulse_of_velocity
from dyn_core.contact.laws import (
    CONVERGED,
    HUGE,
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
    weights,
)
from dyn_core.contact.layout import KINDS, Block, ConstraintLayout
from dyn_core.contact.numbers import Numbers, Reduced
from dyn_core.contact.problem import ConstraintProblem
from dyn_core.contact.softness import (
    erp_and_cfm,
    impedance,
    sap_rows,
    soft_rows,
)
from dyn_core.contact.solution import ContactSolution, Residuals, residuals
from dyn_core.contact.solving import solve
from dyn_core.contact.sweeps import gauss_seidel

__all__ = [
    "CONVERGED",
    "HUGE",
    "INFEASIBLE",
    "KINDS",
    "MAX_ITERATIONS",
    "NOT_UNIQUE",
    "RAY",
    "RESIDUALS",
    "STATUSES",
    "Block",
    "ConstraintLayout",
    "ConstraintProblem",
    "ContactSolution",
    "Numbers",
    "Reduced",
    "Residuals",
    "cone_projection",
    "conic_libraries",
    "disc_projection",
    "erp_and_cfm",
    "gauss_seidel",
    "impedance",
    "impulse_of_velocity",
    "law_residuals",
    "minimise_over_cones",
    "norm",
    "residuals",
    "sap_rows",
    "soft_rows",
    "solve",
    "weights",
]
