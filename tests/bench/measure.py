"""Measurements of this library: calls, batches, builds, accuracy, growth with size."""

from __future__ import annotations

import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bench.cases import DT, INPUTS, STATES, Robot
from dyn_core.commands.timing import once, per_call
from dyn_core.engines import NativeProgram, Program
from dyn_core.engines.llvm import host_machine, kernel, threads
from dyn_core.errors import UnsupportedError
from dyn_core.numbers import scalar
from dyn_core.solving.registry import solver
from dyn_core.testing.flat_programs import flat_program, ulps
from dyn_core.testing.models import chain

ROWS, BLOCKED, MANY = 1024, 8192, 65536  # rows; in blocks; for all cores
RESULTS = 2**31  # bytes of results that a batch may have, or it has fewer rows


@dataclass
class Figures:
    """What was measured of one algorithm.

    Attributes:
        call: One state, `out` given [s].
        core, all: States of a batch, on one core and on all [1/s].
        blocks: The same on one core, for data kept in blocks of lanes.
        cold, load: Building both kernels: all anew, and from the disk [s].
        size: Machine code and scratch memory of both [bytes].
        flops: Additions, multiplications, divisions and roots of one state.
        values: Outputs at the robot's states, dense.
        peers: What stands beside it, by name.
    """

    algorithm: str
    call: float
    core: float
    all: float
    blocks: float
    cold: float
    load: float
    size: int
    flops: int
    values: tuple[np.ndarray, ...] = ()
    peers: dict[str, Beside] = field(default_factory=dict)


@dataclass(frozen=True)
class Beside:
    """What was measured of a peer's cell.

    Attributes:
        call: One state [s]; None: there is no figure.
        rate: States of a batch on one core [1/s]; None: it has none.
        reason: Why there is no figure, or in what it is not the same.
    """

    call: float | None = None
    rate: float | None = None
    reason: str = ""

    def ratios(self, figures: Figures) -> tuple[float, float] | None:
        """Return how much faster a call and a batch are here; None: no figure."""
        if self.call is None:
            return None
        rate = max(1 / self.call, self.rate or 0.0)
        return self.call / figures.call, figures.core / rate


def measure(robot: Robot, algorithm: str) -> Figures:
    """Measure one algorithm on one robot."""
    names = INPUTS[algorithm].split(", ")
    inputs = [robot.state[name] for name in names]
    with _own_cache():
        alone, cold = _built(robot, algorithm, threads=1)
        program, load = _built(robot, algorithm)
    extra = f", {DT}" if algorithm == "semi_implicit_euler" else ""
    statement, one = f"p({', '.join(names)}{extra}, out=o)", ", ".join(names)
    states = [tuple(x[k] for x in inputs) for k in range(STATES)]
    call = per_call(statement, states, one, {"p": alone, "o": _room(alone, ())})

    def rate(program: Program, rows: int, clock: Callable[[], float]) -> float:
        rows = _fitting(program, rows)
        batch = [tuple(np.tile(x, (rows // STATES, 1)) for x in inputs)]
        space = {"p": program, "o": _room(program, (rows,))}
        return rows / per_call(statement, batch, one, space, clock)

    kernels = alone.kernels()
    return Figures(
        algorithm=algorithm,
        call=call,
        core=rate(alone, ROWS, time.process_time),
        all=rate(program, MANY, time.perf_counter),
        blocks=_blocked(alone, inputs),
        cold=cold,
        load=load,
        size=sum(kernel.size + kernel.scratch for kernel in kernels),
        flops=count_flops(alone.graph),
        values=_values(alone, inputs),
    )


def _values(program: NativeProgram, inputs: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Return the outputs of a batch, matrices dense."""
    steps = [DT] * (len(program.inputs) - len(inputs))
    results: Any = program(*inputs, *steps)
    results = results if isinstance(results, tuple) else (results,)
    pairs = zip(program.outputs, results, strict=True)
    return tuple(
        program.dense(port.name, x) if port.places is not None else np.asarray(x)
        for port, x in pairs
    )


def _fitting(program: Program, rows: int) -> int:
    """Return how many rows of a batch have results within RESULTS, STATES at least."""
    size = 8 * max(1, sum(port.size for port in program.outputs))
    most = RESULTS // size // STATES * STATES
    return max(STATES, min(rows, most))


def _blocked(program: NativeProgram, inputs: list[np.ndarray]) -> float:
    """Measure states a second of data that lies in blocks."""
    ports = program.inputs
    if len(ports) > len(inputs):  # the step's dt
        inputs = [*inputs, np.full((STATES, 1), DT)]
    count = _fitting(program, BLOCKED)
    rows = [np.tile(x, (count // STATES, 1)) for x in inputs]
    blocks = [program.to_blocks(x, p.name) for x, p in zip(rows, ports, strict=True)]
    lanes = program.lanes
    out = [np.empty((count // lanes, p.size, lanes)) for p in program.outputs]
    names = ", ".join(f"x{k}" for k in range(len(blocks)))
    space = {"p": program, "out": out}
    statement = f"p.run_blocks({names}, out=out)"
    return count / per_call(statement, [tuple(blocks)], names, space)


def count_flops(graph: Any) -> int:
    """Count additions, multiplications, divisions and roots of a Graph."""
    counted = ("add", "sub", "mul", "div", "sqrt")
    return sum(node.op in counted for node in graph.nodes)


def _built(
    robot: Robot, algorithm: str, threads: int | None = None
) -> tuple[NativeProgram, float]:
    """Build with kernels for states and batches; return Program and seconds."""
    kernel.forget()
    made: list[Any] = []

    def build() -> None:
        name, _, form = algorithm.partition(":")
        program = solver(name).build(
            robot.model,
            engine="native",
            threads=threads,
            matrices=form or "dense",
            **robot.choices(name),
        )
        made.append(program)
        made[0].prepare(batch=True)

    seconds = once(build)
    return made[0], seconds


def _room(program: Program, lead: tuple[int, ...]) -> Any:
    """Make arrays for the outputs."""
    arrays = tuple(np.empty((*lead, *port.shape)) for port in program.outputs)
    return arrays[0] if len(arrays) == 1 else arrays


@contextmanager
def _own_cache() -> Iterator[None]:
    """Keep kernels in a new, empty folder for a while."""
    before = os.environ.get("DYN_CACHE_DIR")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["DYN_CACHE_DIR"] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ["DYN_CACHE_DIR"]
            else:
                os.environ["DYN_CACHE_DIR"] = before


def peak() -> float:
    """Measure the multiply-adds a core can do, times two [1/s]."""
    chains, depth = 12, 200

    def chain_of_sums(x: list[Any]) -> list[Any]:
        values = [x[0] * float(k) for k in range(chains)]
        for _ in range(depth):
            values = [y * x[1] + x[2] for y in values]
        return values

    choices: dict[str, Any] = {"threads": 1, "wait": True}  # not its interpreter
    program = flat_program(chain_of_sums, 3, chains, engine="native", **choices)
    rows = np.full((ROWS, 3), [1.0, 0.5, 0.25])
    space = {"p": program, "o": np.empty((ROWS, chains))}
    return 2 * chains * depth * ROWS / per_call("p(x, out=o)", [(rows,)], "x", space)


def errors(count: int = 1_000_000) -> dict[str, float]:
    """Return the largest errors of sin and cos on [-1e4, 1e4], in ulps."""
    x = np.random.default_rng(7).uniform(-1e4, 1e4, count)

    def sine_and_cosine(angle: list[Any]) -> list[Any]:
        return [scalar.sin(angle[0]), scalar.cos(angle[0])]

    program = flat_program(sine_and_cosine, 1, 2, engine="native")
    results, largest = program(x[:, None]), {}
    for k, function in enumerate((np.sin, np.cos)):
        exact = function(x.astype(np.longdouble))
        apart = ulps(results[:, k].astype(np.longdouble), exact)
        largest[function.__name__] = float(apart.max())
    return largest


def growth(sizes: tuple[int, ...]) -> Iterator[tuple[int, str, float, float, int]]:
    """Joints, algorithm, seconds of a call, seconds of a build, bytes of code."""
    rng = np.random.default_rng(7)
    for n in sizes:
        model = chain(n)
        x = [tuple(rng.uniform(-1, 1, (3, n))) for _ in range(8)]
        for name in ("rnea", "aba"):
            kernel.forget()
            with _own_cache():
                program: Any = solver(name).build(model, engine="native")
                cold = once(program.prepare)
            space = {"p": program, "o": np.empty(n)}
            call = per_call("p(q, v, a, out=o)", x, "q, v, a", space)
            yield n, name, call, cold, program.kernels()[0].size


def require_native() -> None:
    """Refuse to measure where there is no machine code."""
    if host_machine.missing():
        raise UnsupportedError(f"nothing to measure: {host_machine.missing()}")


def machine() -> str:
    """Return what this was measured on."""
    import llvmlite

    cpu = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            named = [line for line in file if line.startswith("model name")]
            cpu = named[0].partition(":")[2].strip() if named else cpu
    except OSError:
        pass
    host = host_machine.machine()
    return (
        f"{cpu}, {threads.count()} cores used, {host.width} lanes, LLVM's {host.cpu};"
        f" Python {platform.python_version()}, NumPy {np.__version__},"
        f" llvmlite {llvmlite.__version__}"
    )
