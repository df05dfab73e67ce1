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


COUNTS = 6  # numbers in `wholes` of a record before those of the blocks


class StepRecord(NamedTuple):
    """What a report of a step is made from, later and only if somebody reads it.

    Attributes:
        t, h: Start and duration [s].
        status: Of the solver.
        short: Whether overlaps had no room to be corrected.
        with_forces, forces: Whether forces act on bodies; these, then the payload.
        sizes: nq and nv.
        wholes, reals: As composite_step.StepLog has them.
    """

    t: float
    h: float
    status: str
    short: bool
    with_forces: bool
    forces: tuple[np.ndarray, ...]
    sizes: tuple[int, int]
    wholes: np.ndarray
    reals: np.ndarray

    @property
    def iterations(self) -> int:
        """Of the solver."""
        return int(self.wholes[1])

    @property
    def q(self) -> np.ndarray:
        """Position at which the constraints were taken."""
        return self.reals[: self.sizes[0]]

    @property
    def qd(self) -> np.ndarray:
        """Velocity at which the constraints were taken."""
        nq, nv = self.sizes
        return self.reals[nq : nq + nv]

    @property
    def velocity(self) -> np.ndarray:
        """Velocity after the step along the axes of q."""
        nq, nv = self.sizes
        return self.reals[nq + nv : nq + 2 * nv]

    @property
    def residuals(self) -> np.ndarray:
        """Of the solver, (5,)."""
        after = self._after
        return self.reals[after : after + 5]

    @property
    def impulse(self) -> np.ndarray:
        """Impulses of all rows."""
        return self.reals[self._after + 5 :]

    @property
    def ids(self) -> np.ndarray:
        """Lasting number of each block."""
        return self.wholes[COUNTS : COUNTS + int(self.wholes[5])]

    @property
    def starts(self) -> np.ndarray:
        """First row of each block."""
        return self.wholes[COUNTS + int(self.wholes[5]) :]

    @property
    def payload(self) -> tuple[np.ndarray, ...]:
        """What a link carried, as an input of Programs, or nothing."""
        return self.forces[1:] if self.with_forces else self.forces

    @property
    def _after(self) -> int:
        """Where in `reals` the residuals begin."""
        nq, nv = self.sizes
        return 2 * nq + 3 * nv
