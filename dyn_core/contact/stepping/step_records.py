"""Which steps are taken on arrays, and what is kept of one."""

from __future__ import annotations

from inspect import signature
from typing import NamedTuple

import numpy as np

from dyn_core.contact.solvers.row_solvers import ROW_SOLVERS
from dyn_core.contact.stepping.step_tables import SCHEMES
from dyn_core.contact.stepping.world import World


def why_not(world: World) -> str | None:
    """Return why steps in a world are not taken on arrays; None if they are.

    This is the one place that says which step a user gets.
    """
    name = solver_name(world)
    if name not in ROW_SOLVERS:
        valid = ", ".join(ROW_SOLVERS)
        return f"the solver {name} takes one matrix G; on arrays: {valid}"
    known = signature(ROW_SOLVERS[name]).parameters
    for option in world.solver_options:
        if option not in known:
            return f"the option {option} is of {name} with one matrix G"
    if world.stepper not in SCHEMES:
        return f"the stepper {world.stepper} finds the times of impacts"
    if world.impacts != "simultaneous":
        return f"impacts are {world.impacts}"
    if world.restitution != "newton":
        return f"restitution is {world.restitution}'s"
    return None


def solver_name(world: World) -> str:
    """Return the name of a world's contact solver."""
    return world.solver if isinstance(world.solver, str) else world.solver.name


class StepRecord(NamedTuple):
    """What a report of a step is made from, later and only if somebody reads it.

    Attributes:
        t, h: Start and duration [s].
        q, qd: State at which the constraints were taken.
        velocity: qd after the step along the axes of q.
        with_forces, forces: Whether forces act on bodies; these, then the payload.
        targets: Prescribed velocities.
        ids, starts: Lasting number and first row of each block.
        impulse: Of all rows.
        status, iterations, residuals: Of the solver.
        short: Whether overlaps had no room to be corrected.
    """

    t: float
    h: float
    q: np.ndarray
    qd: np.ndarray
    velocity: np.ndarray
    with_forces: bool
    forces: tuple[np.ndarray, ...]
    targets: np.ndarray | None
    ids: np.ndarray
    starts: np.ndarray
    impulse: np.ndarray
    status: str
    iterations: int
    residuals: np.ndarray
    short: bool

    @property
    def payload(self) -> tuple[np.ndarray, ...]:
        """What a link carried, as an input of Programs, or nothing."""
        return self.forces[1:] if self.with_forces else self.forces
