"""The engine `graph`: a traced text, run as straight-line Python over NumPy columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from dyn_core.engines.base import Program
from dyn_core.engines.graph import Graph, Requirement
from dyn_core.engines.plain import PlainProgram
from dyn_core.engines.source import Runner, compile_graph
from dyn_core.engines.trace import trace


class GraphProgram(Program):
    """A Graph for one robot; serves one state and batches."""

    engine = "graph"

    def __init__(
        self, text: Callable[[Sequence[Any]], Sequence[Any]], **parts: Any
    ) -> None:
        super().__init__(**parts)
        self.text = text

    @cached_property
    def graph(self) -> Graph:
        """The traced and pruned Graph."""
        return trace(self.text, sum(port.size for port in self.inputs))

    @cached_property
    def _floats(self) -> Runner:
        return compile_graph(self.graph, columns=False)

    @cached_property
    def _columns(self) -> Runner:
        return compile_graph(self.graph, columns=True)

    def run_row(self, numbers: Sequence[Any]) -> tuple[Any, int]:
        """Run on floats."""
        return self._floats(numbers)

    def run_block(self, columns: Sequence[Any], rows: int) -> tuple[Any, Any]:
        """Run on columns."""
        return self._columns(columns)

    def requirement(self, number: int) -> Requirement:
        """Give the requirement of the Graph."""
        return self.graph.requirements[number - 1]

    def _complex(self, arrays: Sequence[np.ndarray], out: Any) -> Any:
        """Leave complex numbers to the plain engine."""
        parts = ("recipe", "signature", "inputs", "outputs", "defaults", "finite")
        plain = PlainProgram(self.text, **{name: getattr(self, name) for name in parts})
        return plain._complex(arrays, out)
