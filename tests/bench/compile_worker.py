"""One robot's solvers compiled in a process of its own, a line of JSON for each.

    python -m bench.compile_worker ROBOT SOLVER...

ROBOT is a path or name, ':floating' behind it frees its root; chain100: that many
hinges; four_bar: three bars whose tip is pinned to the ground. compiling.py starts it
with an empty cache of kernels, and ends what takes too long.
"""

from __future__ import annotations

import json
import re
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bench.cases import named
from dyn_core import robots
from dyn_core.engines.native_program import graph_size
from dyn_core.errors import DynError, ModelWarning
from dyn_core.model import Model, load_urdf
from dyn_core.model.loops.loop_constraints import make_loop
from dyn_core.solving.registry import solver
from dyn_core.testing.case import Case
from dyn_core.testing.models import chain

READY = "ready"  # the first line: the robot is loaded
FIRST = "gravity"  # compiled before: what only the first kernel of a process costs


@dataclass(frozen=True)
class Cell:
    """What a solver costs before it serves a robot.

    Attributes:
        solver: Name.
        nodes: Operations of its Graph, those of loops once.
        trace: Until the Graph is there [s].
        first: Until the first answer, from the beginning [s].
        ready: Until both kernels, for states and for batches, are there [s].
        cpu: Time of all threads until then [s].
        code: Machine code of both [bytes].
        reason: Why there is none.
    """

    solver: str
    nodes: int = 0
    trace: float = 0.0
    first: float = 0.0
    ready: float = 0.0
    cpu: float = 0.0
    code: int = 0
    reason: str = ""


def system(source: str) -> Model:
    """Return the robot that a source names."""
    links = re.fullmatch(r"chain(\d+)", source)
    if links:
        return chain(int(links[1]))
    if source == "four_bar":
        return four_bar()
    path, floating, _ = source.partition(":floating")
    return named(path, bool(floating)).model


def four_bar() -> Model:
    """Return planar3 with its tip pinned to the ground."""
    tip, place = {"xyz": (0.3, 0.0, 0.0)}, {"xyz": (0.6, 0.0, 1.2)}
    pin = make_loop("tip", "axes", "link3", at_b=tip, at_a=place, axes=("x", "z"))
    return load_urdf(robots.path("planar3")).with_loops(pin)


def cell(name: str, model: Model) -> Cell:
    """Build, call and compile a solver."""
    offered: Any = solver(name)
    if not hasattr(offered, "algorithm"):
        return Cell(name, reason="runs in NumPy")
    case = Case(offered, model, "native", np.random.default_rng(7))
    start, cpu = time.perf_counter(), time.process_time()
    try:
        program: Any = case.build(offered, engine="native")
        nodes = graph_size(program.graph)
        trace = time.perf_counter() - start
        arguments = case.arguments(program)
        asked = time.perf_counter()
        program(*arguments)
        first = trace + time.perf_counter() - asked
        program.prepare(batch=True)
        ready = trace + time.perf_counter() - asked
        cpu = time.process_time() - cpu
    except DynError as error:
        return Cell(name, reason=str(error))
    code = sum(kernel.size for kernel in program.kernels())
    return Cell(name, nodes, trace, first, ready, cpu, code)


def main(arguments: Sequence[str]) -> int:
    """Print READY, and a Cell for each solver."""
    source, *names = arguments
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        model = system(source)
    cell(FIRST, system("chain2"))
    print(json.dumps(READY), flush=True)
    for name in names:
        print(json.dumps(asdict(cell(name, model))), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
