"""The solver of the constraint problems of steps, called from machine code."""

from __future__ import annotations

from inspect import signature
from typing import Any, NamedTuple

from dyn_core.contact.problem.rows import Rows
from dyn_core.contact.solvers.coulomb import NEAR, solve_coulomb, split_and_polish
from dyn_core.contact.solvers.newton import newton
from dyn_core.contact.solvers.row_solvers import ROW_SOLVERS
from dyn_core.contact.solvers.sweeps import sweep
from dyn_core.contact.solvers.work import SolverWork
from dyn_core.contact.stepping.position_correction import TOLERANCE
from dyn_core.contact.stepping.step_records import solver_name
from dyn_core.contact.stepping.step_tables import SCHEMES
from dyn_core.contact.stepping.world import World
from dyn_core.engines.machine_code import Reals2, machine_code

METHODS = tuple(ROW_SOLVERS)
ADMM, NEWTON, RELAXATION, SWEEPS = range(len(METHODS))


class SolverChoice(NamedTuple):
    """A solver of Rows with its options.

    Attributes:
        method: Index in METHODS.
        max_iterations, tolerance: Of each.
        splittings: Of coulomb_newton.
        factor: Penalty of admm, relaxation of projected_gauss_seidel.
        correction_iterations, correction_tolerance: Where positions are corrected.
    """

    method: int
    max_iterations: int
    tolerance: float
    splittings: int
    factor: float
    correction_iterations: int
    correction_tolerance: float


class ChosenSolver(NamedTuple):
    """A solver with its memory.

    Attributes:
        choice: Which, and its options.
        work: Memory.
        reports: Of it, and of the correction of positions, (2, 8).
    """

    choice: SolverChoice
    work: SolverWork
    reports: Reals2


def takes_rows(world: World) -> bool:
    """Return whether a world's solver takes Rows; else it takes a ConstraintProblem."""
    name = solver_name(world)
    if name not in ROW_SOLVERS:
        return False
    return world.solver_options.keys() <= signature(ROW_SOLVERS[name]).parameters.keys()


def in_one_call(world: World) -> bool:
    """Return whether the steps of a world are single calls of machine code."""
    return takes_rows(world) and has_one_problem(world)


def has_one_problem(world: World) -> bool:
    """Return whether a step of a world is one problem, whoever solves it.

    Impacts in sequence, those of Poisson's law and events have problems of their own.
    """
    newton = world.restitution == "newton" and world.impacts == "simultaneous"
    return newton and world.stepper in SCHEMES


def solver_choice(world: World) -> SolverChoice:
    """Return the solver of a world, with its options beside the defaults.

    That of a world whose solver takes no Rows serves for corrections alone.
    """
    name, options = solver_name(world), dict(world.solver_options)
    if not takes_rows(world):
        name, options = METHODS[NEWTON], {}

    def defaults(which: str) -> dict[str, float]:
        parameters = signature(ROW_SOLVERS[which]).parameters.values()
        return {p.name: p.default for p in parameters if p.default is not p.empty}

    chosen: dict[str, Any] = defaults(name) | options
    correction = defaults(METHODS[RELAXATION])
    return SolverChoice(
        METHODS.index(name),
        int(chosen["max_iterations"]),
        float(chosen["tolerance"]),
        int(chosen.get("splittings", 0)),
        float(chosen.get("rho", chosen.get("relaxation", 0.0))),
        int(correction["max_iterations"]),
        TOLERANCE,
    )


@machine_code
def solve_rows(rows: Rows, blocks: int, m: int, nv: int, solver: ChosenSolver) -> int:
    """Solve a problem by the chosen solver; return its status."""
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
    return sweep(rows, blocks, m, nv, work, report, most, tolerance, choice.factor)


@machine_code
def solve_correction(
    rows: Rows, blocks: int, m: int, nv: int, solver: ChosenSolver
) -> int:
    """Solve for a correction of positions; return the status."""
    most = solver.choice.correction_iterations
    tolerance, report = solver.choice.correction_tolerance, solver.reports[1]
    return newton(
        rows, blocks, m, nv, solver.work, report, most, tolerance, NEAR, False
    )
