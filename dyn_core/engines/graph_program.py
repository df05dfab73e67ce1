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
    """A Program that runs a Graph as Python code, for one state and for batches.

    Args:
        function: Algorithm as a function of the flat inputs that returns the flat
            outputs.
        graph: Its Graph if already traced; None: traced at first use.
        parts: Keyword arguments of Program.
    """

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
        """The Graph without unused nodes, traced at the first use.

        Raises:
            TraceError: The algorithm cannot be traced.
        """
        return trace(self.function, sum(port.size for port in self.inputs))

    @cached_property
    def _floats(self) -> Runner:
        return compile_graph(self.graph, columns=False)

    @cached_property
    def _columns(self) -> Runner:
        return compile_graph(self.graph, columns=True)

    def run_row(self, numbers: Sequence[Any]) -> tuple[Any, int]:
        """Return (flat outputs, status) of one state for its flat inputs `numbers`.

        The status is 0, or the number (from 1) of the first requirement that fails; the
        outputs are as computed then. A RowError of a Program that the Graph calls is
        stored for `failure`, with a status above these numbers and NaN outputs. Inputs
        are not checked for NaN, also not with finite=True. Raises TraceError, at first
        use, if the algorithm cannot be traced.
        """
        try:
            return self._floats(numbers)
        except RowError as error:  # raised by a Program in a slot
            return self.note(error)

    def run_rows(self, columns: Sequence[Any], rows: int) -> tuple[Any, Any]:
        """Return (output columns, status) of a block of rows.

        If a Program that the Graph calls raises a RowError, the rows that it names, or
        all, are run one by one, and the remaining rows together. A column, or the
        status, may be one number for all rows. Outputs and status of failed rows are as
        in run_row. Raises TraceError as run_row.
        """
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
        """Return the requirements of the Graph, which is traced at the first use.

        Raises TraceError if it cannot be traced.
        """
        return self.graph.requirements

    def run_complex(self, numbers: Sequence[complex]) -> Sequence[Any]:
        """Return the flat outputs for flat complex inputs, computed by engine plain.

        They are complex; those that do not depend on an input are floats. The
        comparisons < and <=, and abs, decide by the real parts.

        Raises:
            UnsupportedError: An operation has no complex form, such as the call of a
                NumpySolver in a slot.
            RequireError: A requirement of the algorithm does not hold, or it divides by
                zero. The algorithm checks positions only if it was built with
                finite=True.
        """
        parts = ("recipe", "signature", "inputs", "outputs", "defaults", "finite")
        plain = PlainProgram(
            self.function, **{name: getattr(self, name) for name in parts}
        )
        return plain.run_complex(numbers)


def _rows_of(columns: Sequence[Any], rows: Any) -> list[Any]:
    """Return columns, arrays or shared floats, restricted to one row index or several.

    Shared floats stay floats; for one row all entries are floats.
    """
    parts = [x[rows] if isinstance(x, np.ndarray) else x for x in columns]
    return [x if isinstance(x, np.ndarray) else float(x) for x in parts]
