"""Programs that run row by row in Python and convert errors to a status.

Flat inputs are the entries of all inputs in the order of the Ports, arrays row by row;
flat outputs likewise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dyn_core.engines.base import Program
from dyn_core.engines.status import NOT_FINITE_INPUT
from dyn_core.errors import RowError


class RowProgram(Program[Any]):
    """A Program that runs row by row in Python; a RowError becomes a status."""

    def solve_row(self, numbers: Sequence[Any]) -> Sequence[Any]:
        """Return the flat outputs for one state's flat inputs, or raise RowError."""
        raise NotImplementedError

    def run_row(self, numbers: Sequence[Any]) -> tuple[Any, int]:
        """Return (flat outputs, status) of one state; outputs are NaN where it failed.

        The status is -1 for an input that is not finite, checked with finite=True, and
        positive after a RowError, see `note`. Results are not checked for NaN.
        """
        if self.finite and not np.isfinite(numbers).all():
            size = sum(port.size for port in self.outputs)
            return [float("nan")] * size, NOT_FINITE_INPUT
        try:
            return self.solve_row(numbers), 0
        except RowError as error:
            return self.note(error)

    def run_rows(self, columns: Sequence[Any], rows: int) -> tuple[Any, Any]:
        """Return outputs (number, rows) and status (rows,), row by row as of `run_row`.

        `columns` has for each flat input an array (rows,), or one float for all rows.
        """
        results, states = [], []
        for row in range(rows):
            numbers = [
                float(x[row]) if isinstance(x, np.ndarray) else x for x in columns
            ]
            result, state = self.run_row(numbers)
            results.append(result)
            states.append(state)
        return np.array(results, float).T, np.array(states)
