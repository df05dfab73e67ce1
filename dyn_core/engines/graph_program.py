"""The engine `graph`: a traced algorithm as straight-line Python over NumPy columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dyn_core.engines.base import Function, Program
from dyn_core.engines.graph.graph import Graph, Requirement
from dyn_core.engines.graph.source import Runner, compile_graph
from dyn_core.engines.graph.trace import trace
from dyn_core.engines.plain import PlainProgram
from dyn_core.errors import RowError
from dyn_core.sharing import cached_property


class GraphProgram(Program[Any]):
    """A Graph for one robot; serves one state and batches."""

    engine = "graph"

    def __init__(
        self, function: Function, graph: Graph | None = None, **parts: Any
    ) -> None:
        super().__init__(**parts)
        self.function = function
        if graph is not None:
            self.graph = graph  # traced already

    @cached_property
    def graph(self) -> Graph:
        """The traced and pruned Graph."""
        return trace(self.function, sum(port.size for port in self.inputs))

    @cached_property
    def _floats(self) -> Runner:
        return compile_graph(self.graph, columns=False)

    @cached_property
    def _columns(self) -> Runner:
        return compile_graph(self.graph, columns=True)

    def run_row(self, numbers: Sequence[Any]) -> tuple[Any, int]:
        """Run on floats."""
        try:
            return self._floats(numbers)
        except RowError as error:  # of a Program that it calls
            return self.note(error)

    def run_rows(self, columns: Sequence[Any], rows: int) -> tuple[Any, Any]:
        """Run on columns, without the rows that a Program that is called refuses."""
        try:
            return self._columns(columns)
        except RowError as error:
            refused = range(rows) if error.rows is None else error.rows
        results = np.full((len(self.graph.outputs), rows), np.nan)
        state = np.zeros(rows, int)
        for row in refused:
            results[:, row], state[row] = self.run_row(_rows_of(columns, row))
        others = np.delete(np.arange(rows), refused)
        if len(others):
            parts, state[others] = self.run_rows(_rows_of(columns, others), len(others))
            for k, column in enumerate(parts):
                results[k, others] = column
        return results, state

    def requirements(self) -> Sequence[Requirement]:
        """Return the requirements of the Graph."""
        return self.graph.requirements

    def _complex(self, arrays: Sequence[np.ndarray], out: Any) -> Any:
        """Leave complex numbers to the plain engine."""
        parts = ("recipe", "signature", "inputs", "outputs", "defaults", "finite")
        plain = PlainProgram(
            self.function, **{name: getattr(self, name) for name in parts}
        )
        return plain._complex(arrays, out)


def _rows_of(columns: Sequence[Any], rows: Any) -> list[Any]:
    """Return some rows of columns, or one as numbers; what all rows share stays."""
    parts = [x[rows] if isinstance(x, np.ndarray) else x for x in columns]
    return [x if isinstance(x, np.ndarray) else float(x) for x in parts]
