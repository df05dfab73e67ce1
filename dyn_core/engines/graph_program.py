"""The engine `graph`: a traced algorithm as straight-line Python over NumPy columns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from dyn_core.engines.base import Function, Program
from dyn_core.engines.graph.graph import Graph, Requirement
from dyn_core.engines.graph.source import Runner, compile_graph
from dyn_core.engines.graph.trace import trace
from dyn_core.engines.plain import PlainProgram


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
        return self._floats(numbers)

    def run_rows(self, columns: Sequence[Any], rows: int) -> tuple[Any, Any]:
        """Run on columns."""
        return self._columns(columns)

    def requirement(self, number: int) -> Requirement:
        """Return the requirement of the Graph."""
        return self.graph.requirements[number - 1]

    def _complex(self, arrays: Sequence[np.ndarray], out: Any) -> Any:
        """Leave complex numbers to the plain engine."""
        parts = ("recipe", "signature", "inputs", "outputs", "defaults", "finite")
        plain = PlainProgram(
            self.function, **{name: getattr(self, name) for name in parts}
        )
        return plain._complex(arrays, out)
