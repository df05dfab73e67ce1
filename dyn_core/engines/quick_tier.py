"""What answers while a large kernel is compiled: the interpreter, with equal bits."""

from __future__ import annotations

import os
from functools import partial
from typing import Any
from weakref import ref

import numpy as np

from dyn_core.engines.graph.graph import Graph
from dyn_core.engines.llvm import interpreter, kernel
from dyn_core.engines.llvm.cached.trace_cache import GraphFacts
from dyn_core.engines.llvm.kernel import Variant
from dyn_core.errors import warn
from dyn_core.sharing import Lock

AT_ONCE = 4000  # nodes up to which a kernel is compiled at once: a third of a second


class QuickTier:
    """Serves one Program until its kernels are there.

    Args:
        program: The NativeProgram, which keeps this object.
        facts: What is known of its Graph.
        sizes: Sizes of its ports.
    """

    def __init__(self, program: Any, facts: GraphFacts, sizes: kernel.Sizes) -> None:
        self._program, self._facts, self._sizes = ref(program), facts, sizes
        self._made: interpreter.Interpreter | None = None
        self._started: set[tuple[str, int]] = set()
        self._lock = Lock()

    def variant(self, name: str) -> Variant | None:
        """Return what serves now and begin to make the kernel, scalar or batch.

        None where the kernel is at hand, or so small that it can be compiled at once,
        and for float32, which the interpreter does not know.
        """
        with self._lock:
            return self._variant(name)

    def _variant(self, name: str) -> Variant | None:
        made, started = self._made, (name, os.getpid())  # threads do not survive a fork
        if made is not None and started in self._started:
            return made.variants[name]
        program = self._program()
        if program is None or program.dtype != np.float64:
            return None
        if kernel.at_hand(name, self._facts.kernel) is not None:
            return None
        if graph_size(program.graph) <= AT_ONCE:
            return None
        if made is None:
            made = self._made = interpreter.Interpreter(program.graph, self._sizes)
        program.adopt(name, made.variants[name])
        if started not in self._started:
            self._started.add(started)
            then = partial(self._deliver, name)
            graph, sizes, lanes = program.graph, self._sizes, program.lanes
            kernel.later(name, self._facts.kernel, graph, sizes, lanes, then)
        return made.variants[name]

    def _deliver(self, name: str, job: Any) -> None:
        """Let the Program have its kernel; say why there is none."""
        program = self._program()
        if job.error is not None:
            warn(f"a kernel could not be made, a slower form serves on: {job.error}")
        elif program is not None:
            program.adopt(name, job.result)
            with self._lock:
                self._started.discard((name, os.getpid()))
                if not self._started:
                    self._made = None


def graph_size(graph: Graph) -> int:
    """Return the number of nodes, those of loops included."""
    inside = [node.data for node in graph.nodes if node.op == "loop"]
    inner = sum(graph_size(x.body) + graph_size(x.cond) for x in inside)
    return len(graph.nodes) + inner
