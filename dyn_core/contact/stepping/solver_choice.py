"""The contact solver of a World, and whether its steps call Python."""

from __future__ import annotations

from dyn_core.contact.rows.step_tables import SCHEMES
from dyn_core.contact.solvers.solver_calls import ROW_SOLVERS, SolverChoice, choice_of
from dyn_core.contact.world import World


def solver_name(world: World) -> str:
    """Return the name of a world's contact solver."""
    return world.solver if isinstance(world.solver, str) else world.solver.name


def takes_rows(world: World) -> bool:
    """Return whether a world's solver, with the given options, works on Rows."""
    options = ROW_SOLVERS.get(solver_name(world))
    return options is not None and world.solver_options.keys() <= options.keys()


def in_machine_code(world: World) -> bool:
    """Return whether the steps of a world call no Python."""
    return takes_rows(world) and has_one_problem(world)


def has_one_problem(world: World) -> bool:
    """Return whether a step is a single problem: no impacts before it, no events."""
    newton = world.restitution == "newton" and world.impacts == "simultaneous"
    return newton and world.stepper in SCHEMES


def solver_choice(world: World) -> SolverChoice:
    """Return the solver of a world as numbers; IN_PYTHON if takes_rows is false."""
    impacts = world.restitution != "newton" or world.impacts != "simultaneous"
    name = solver_name(world) if takes_rows(world) else ""
    return choice_of(name, world.solver_options, impacts)
