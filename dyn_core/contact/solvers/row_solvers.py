"""Solvers of Rows by name, tied to their arrays as machine code."""

from __future__ import annotations

from typing import Any

import numpy as np

from dyn_core.contact.problem.rows import Rows
from dyn_core.contact.solvers.coulomb import NEAR, solve_coulomb, split_and_polish
from dyn_core.contact.solvers.newton import newton
from dyn_core.contact.solvers.sweeps import sweep
from dyn_core.contact.solvers.work import room_for_solvers
from dyn_core.engines.machine_code import compiled


class RowSolver:
    """A solver tied to the arrays of a problem.

    Attributes:
        report: Residuals (primal, dual, complementarity, dissipation, law), iterations,
            penalty and factorisations of the last solution, (8,).
    """

    def __init__(self, rows: Rows, nv: int) -> None:
        """Make room.

        Args:
            rows: Arrays of the problems to come; what is in them may change, they not.
            nv: Number of coordinates of the supports.
        """
        self.nv, self.report = int(nv), np.zeros(8)
        self._rows, self._work = rows, room_for_solvers(rows, nv)

    def _bind(self, function: Any) -> Any:
        """Return a solver's machine code for the arrays."""
        return compiled(function).bind(self._rows, self._work, self.report)

    def solve(self, blocks: int, m: int) -> int:
        """Replace the impulses by the solution; return its status.

        Args:
            blocks, m: Numbers of blocks and rows in use.

        Returns:
            Index in residuals.STATUSES, or work.NO_ROOM.
        """
        raise NotImplementedError


class RowSplitting(RowSolver):
    """Coulomb's law by `split_and_polish`."""

    def __init__(
        self,
        rows: Rows,
        nv: int,
        max_iterations: int = 5000,
        tolerance: float = 1e-10,
        rho: float = 1.0,
    ) -> None:
        super().__init__(rows, nv)
        self._options = int(max_iterations), float(tolerance)
        self._rho, self._solve = float(rho), self._bind(split_and_polish)

    def solve(self, blocks: int, m: int) -> int:
        """See RowSolver."""
        return int(self._solve(blocks, m, self.nv, *self._options, self._rho))


class RowNewton(RowSolver):
    """Coulomb's law by `solve_coulomb`."""

    def __init__(
        self,
        rows: Rows,
        nv: int,
        max_iterations: int = 120,
        tolerance: float = 1e-9,
        splittings: int = 3000,
    ) -> None:
        super().__init__(rows, nv)
        self._options = int(max_iterations), float(tolerance), int(splittings)
        self._solve = self._bind(solve_coulomb)

    def solve(self, blocks: int, m: int) -> int:
        """See RowSolver."""
        return int(self._solve(blocks, m, self.nv, *self._options))


class RowRelaxation(RowSolver):
    """The convex relaxation by `newton`."""

    def __init__(
        self, rows: Rows, nv: int, max_iterations: int = 100, tolerance: float = 1e-9
    ) -> None:
        super().__init__(rows, nv)
        self._options = int(max_iterations), float(tolerance)
        self._solve = self._bind(newton)

    def solve(self, blocks: int, m: int) -> int:
        """See RowSolver."""
        return int(self._solve(blocks, m, self.nv, *self._options, NEAR, False))


class RowSweeps(RowSolver):
    """Coulomb's law by `sweep`."""

    def __init__(
        self,
        rows: Rows,
        nv: int,
        max_iterations: int = 1000,
        tolerance: float = 1e-9,
        relaxation: float = 1.0,
    ) -> None:
        super().__init__(rows, nv)
        self._options = int(max_iterations), float(tolerance), float(relaxation)
        self._solve = self._bind(sweep)

    def solve(self, blocks: int, m: int) -> int:
        """See RowSolver."""
        return int(self._solve(blocks, m, self.nv, *self._options))


ROW_SOLVERS = {
    "admm": RowSplitting,
    "coulomb_newton": RowNewton,
    "convex_newton": RowRelaxation,
    "projected_gauss_seidel": RowSweeps,
}
