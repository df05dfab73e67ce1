"""Programs that run row by row in Python, and note errors as a status."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dyn_core.engines.base import Program
from dyn_core.engines.graph.graph import Requirement
from dyn_core.errors import RequireError


class RowProgram(Program[Any]):
    """A Program that runs row by row on the spot; errors are noted as a status."""

    def __init__(self, *args: Any, **parts: Any) -> None:
        super().__init__(*args, **parts)
        self._noted: list[RequireError] = []

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Evaluate; see Program."""
        self._noted = []
        return super().__call__(*args, **named)

    def note(self, error: RequireError) -> tuple[list[float], int]:
        """Return NaN for a row that failed, and the status that names the error."""
        self._noted.append(error)
        size = sum(port.size for port in self.outputs)
        return [float("nan")] * size, len(self._noted)

    def run_rows(self, columns: Sequence[Any], rows: int) -> tuple[Any, Any]:
        """Run each row."""
        results, states = [], []
        for row in range(rows):
            numbers = [
                float(x[row]) if isinstance(x, np.ndarray) else x for x in columns
            ]
            result, state = self.run_row(numbers)
            results.append(result)
            states.append(state)
        return np.array(results, float).T, np.array(states)

    def requirement(self, number: int) -> Requirement:
        """Return what was noted under this number."""
        error = self._noted[number - 1]
        return Requirement(0, type(error), error.item)

    def failure(self, number: int, rows: Sequence[int] | None = None) -> RequireError:
        """Return the error that was noted, with what it keeps, such as a residual."""
        return self._noted[number - 1].of_rows(rows)
