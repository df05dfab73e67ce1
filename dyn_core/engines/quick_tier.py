"""The interpreter in place of a large kernel while it is compiled, with equal bits."""

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

# Graphs up to this number of nodes are compiled at once: that takes a third of a
# second.
AT_ONCE = 4000


class QuickTier:
    """Runs one Program by the interpreter while its kernels are compiled.

    `variant` starts the compilation in the background. A finished kernel goes to the
    Program; if compilation fails, there is a warning, and the interpreter stays.

    Args:
        program: NativeProgram that owns this object; referenced weakly.
        facts: Properties of its Graph.
        sizes: Sizes of its Ports.
    """

    def __init__(self, program: Any, facts: GraphFacts, sizes: kernel.Sizes) -> None:
        self._program, self._facts, self._sizes = ref(program), facts, sizes
        self._made: interpreter.Interpreter | None = None
        self._started: set[tuple[str, int]] = set()
        self._lock = Lock()

    def variant(self, name: str) -> Variant | None:
        """Return the interpreter and start compiling kernel `name`, scalar or batch.

        The Program gets the interpreter too, and the finished kernel in its place.

        Returns:
            None if the kernel is in memory or on disk, or small enough to be compiled
            at once; also for float32, which the interpreter does not support.
        """
        with self._lock:
            return self._variant(name)

    def _variant(self, name: str) -> Variant | None:
        """Return the interpreter or None, as `variant`; called with the lock closed."""
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
        """Give the finished kernel to the Program, or warn that compilation failed.

        Args:
            name: scalar or batch.
            job: Finished job with `result` and `error`.
        """
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
    """Return the number of nodes, including the nodes inside loops."""
    inside = [node.data for node in graph.nodes if node.op == "loop"]
    inner = sum(graph_size(x.body) + graph_size(x.cond) for x in inside)
    return len(graph.nodes) + inner
