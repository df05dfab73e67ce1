"""The contact solver of a World, and whether its steps call Python."""

from __future__ import annotations

from dyn_core.contact.rows.step_tables import SCHEMES
from dyn_core.contact.solvers.solver_calls import ROW_SOLVERS, SolverChoice, choice_of
from dyn_core.contact.world import World


def solver_name(world: World) -> str:
    """Return the name of a world's contact solver."""
    return world.solver if isinstance(world.solver, str) else world.solver.name


def takes_rows(world: World) -> bool:
    """Return whether a world's solver works on Rows, with the given options.

    True if it is admm, coulomb_newton, convex_newton or projected_gauss_seidel and has
    all of world.solver_options. Otherwise it is called in Python with a
    ConstraintProblem.
    """
    options = ROW_SOLVERS.get(solver_name(world))
    return options is not None and world.solver_options.keys() <= options.keys()


def in_machine_code(world: World) -> bool:
    """Return whether the steps of a world call no Python.

    True if its solver, with the given options, works on Rows (takes_rows) and a step
    solves a single problem (has_one_problem).
    """
    return takes_rows(world) and has_one_problem(world)


def has_one_problem(world: World) -> bool:
    """Return whether a step of a world solves a single problem.

    True for the restitution newton, the impacts simultaneous and the stepper
    stewart_trinkle, anitescu_potra or moreau_jean; sequential impacts, Poisson's law
    and events solve further problems.
    """
    newton = world.restitution == "newton" and world.impacts == "simultaneous"
    return newton and world.stepper in SCHEMES


def solver_choice(world: World) -> SolverChoice:
    """Return the solver of a world as numbers for machine code.

    Its numbers are the world's options, else defaults. If takes_rows is false, its
    method is IN_PYTHON, without options. `impacts` is 0 if the restitution is newton
    and impacts are simultaneous, else 1.
    """
    impacts = world.restitution != "newton" or world.impacts != "simultaneous"
    name = solver_name(world) if takes_rows(world) else ""
    return choice_of(name, world.solver_options, impacts)
