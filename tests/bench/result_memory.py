"""What results in memory cost: kept and dropped ones, large batches, float32."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from bench.cases import DT, INPUTS, STATES, Robot
from bench.measure import MANY, ROWS
from bench.printed_tables import Progress, Table
from dyn_core.engines.llvm.call import result_memory
from dyn_core.solving.registry import solver

SOLVERS = ("rnea", "crba", "aba", "fd_derivatives")
KEPT = 64 << 20  # bytes of results that are kept at a time, about
REPEATS = 15
HEAD = ["solver", "KiB", "us out", "dropped", "kept", "kept new", "float32",
        "ms one core", "all cores", "float32"]  # fmt: skip
LEGEND = f"""\
KiB: results of {ROWS} rows; us out: such a batch on one core, into `out`; how many
times as long it takes where results are dropped, are kept in memory that was used
before, and are kept in memory that is new to the process; how many times faster float32
is. ms one core: {MANY} rows into `out`; how many times faster all cores and float32
are. The least of {REPEATS} repeats by the clock on the wall: nothing else may run."""


def tables(
    robots: Sequence[Robot], solvers: Sequence[str], progress: Progress
) -> Iterator[tuple[str, Table]]:
    """Return a table of each robot."""
    for robot in robots:
        rows = []
        for name in solvers:
            progress(f"{robot.name}: {name}")
            rows.append(_row(robot, name))
        yield robot.title, [HEAD, *rows]


def _row(robot: Robot, name: str) -> list[str]:
    """Measure one solver."""
    names = INPUTS[name].split(", ")
    choices = {"engine": "native", **robot.choices(name)}
    one = solver(name).build(robot.model, threads=1, **choices)
    every = solver(name).build(robot.model, **choices)
    single = solver(name).build(robot.model, threads=1, dtype="float32", **choices)

    def inputs(rows: int, dtype: type) -> list[np.ndarray]:
        turns = (rows // STATES, 1)
        arrays: list[Any] = [
            np.tile(robot.state[x], turns).astype(dtype) for x in names
        ]
        missing = len(one.inputs) - len(arrays)  # a step's dt
        return [*arrays, *[np.full(rows, DT, dtype)] * missing]

    def into(program: Any, rows: int, dtype: type = np.float64) -> Callable[[], Any]:
        taken = inputs(rows, dtype)
        arrays = [np.zeros((rows, *port.shape), dtype) for port in program.outputs]
        out: Any = arrays[0] if len(arrays) == 1 else tuple(arrays)
        return lambda: program(*taken, out=out)

    few = inputs(ROWS, np.float64)
    size = sum(8 * port.size for port in one.outputs) * ROWS
    count = max(KEPT // size, 4)

    def dropped() -> None:
        for _ in range(count):
            one(*few)

    def kept() -> Any:
        return [one(*few) for _ in range(count)]

    out, narrow = _least(into(one, ROWS)), _least(into(single, ROWS, np.float32))
    times = [_least(dropped), _least(kept), _least(kept, result_memory.trim)]
    many = _least(into(one, MANY))
    rates = [_least(into(every, MANY)), _least(into(single, MANY, np.float32))]
    return [
        name, f"{size / 1024:.0f}", f"{out * 1e6:.1f}",
        *(f"{t / count / out:.2f}x" for t in times), f"{out / narrow:.2f}x",
        f"{many * 1e3:.2f}", *(f"{many / t:.2f}x" for t in rates),
    ]  # fmt: skip


def _least(work: Callable[[], Any], before: Callable[[], Any] = lambda: None) -> float:
    """Return the least seconds of some repeats; what work returns dies untimed."""
    work()
    seconds = []
    for _ in range(REPEATS):
        before()
        start = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - start)
        del result
    return min(seconds)
