"""What batches of any size cost: processes, memory, files, chunks, resuming."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from bench import batches_child, child_environment
from bench.batches_child import KILLED_CHUNKS, ROBOT, program, states
from bench.printed_tables import Progress, Table
from dyn_core.batch.cluster_runner import connected
from dyn_core.engines import Program
from dyn_core.errors import CompileError

COUNT = 10**9  # states that are made and reduced
SHARE = 100  # of them, one is stored
REPEATS = 3
SPAN = 4.0  # a run on one process takes about that long [s]
SMALL, SMALL_CHUNKS = 512, 1000  # rows of a chunk, and chunks, that show the overhead
MEMORY_ROWS = 2_000_000
LEGEND = f"""\
Batches of states of {ROBOT} by Program.map, the least of {REPEATS} runs, nothing else
may run. Processes: a local cluster of Dask, states made and results reduced in the
workers; CPU: seconds of the workers; linear: time of one over time of two, halved.
Memory: GB/s of inputs read and results written, beside a copy of as many bytes by
NumPy. Chunks: what one costs beside its rows. Peak: memory of the process at most, with
libraries."""


def tables(count: int, progress: Progress) -> Iterator[tuple[str, Table]]:
    """Return all tables.

    Args:
        count: States that are made and reduced; as many over 100 go through zarr.
        progress: Called with what is measured next.
    """
    progress("processes")
    yield "One and two processes, states made and results reduced", _processes()
    progress("memory")
    yield f"{MEMORY_ROWS} states in memory, results in memory", _memory()
    progress("chunks")
    yield f"{SMALL_CHUNKS} chunks of {SMALL} rows", _chunks()
    with tempfile.TemporaryDirectory() as folder:
        progress("resuming")
        yield f"A run of {KILLED_CHUNKS} chunks, killed at half", _resuming(folder)
    yield "States on disk and states that are made", _large(count, progress)


def _rows(solver_name: str, seconds: float) -> int:
    """Return how many states take about so long on one core."""
    made, rows = program(solver_name), 200_000
    run = _reduced(made, rows, {"workers": 1})
    run()
    return max(int(rows * seconds / _least(run)), rows)


def _reduced(made: Program[Any], rows: int, how: dict[str, Any]) -> Callable[[], Any]:
    return lambda: made.map(
        states, count=rows, reduce=np.maximum, progress=False, **how
    )


def _least(run: Callable[[], Any]) -> float:
    """Return the least seconds of some runs, by the clock on the wall."""
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def _processes() -> Table:
    """Measure one and two processes, and as many threads."""
    head = ["solver", "states", "s one", "s two", "linear", "CPU s one", "CPU s two",
            "s one thread", "s two", "linear"]  # fmt: skip
    table = [head]
    names = ("fd_derivatives", "rnea")
    measured: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    counts = {name: _rows(name, SPAN) for name in names}
    for workers in (1, 2):
        with connected("processes", workers) as client:
            client.wait_for_workers(workers)
            for name in names:
                how = {"scheduler": client}
                run = _reduced(program(name), counts[name], how)
                run()  # compiles
                before = _cpu(client)
                wall = _least(run)
                measured[name].append((wall, (_cpu(client) - before) / REPEATS))
    for name in names:
        (one, cpu_one), (two, cpu_two) = measured[name]
        threads = [
            _least(_reduced(program(name), counts[name], {"workers": n}))
            for n in (1, 2)
        ]
        table.append(
            [
                name, f"{counts[name]:.1e}", f"{one:.2f}", f"{two:.2f}",
                f"{one / two / 2:.0%}", f"{cpu_one:.2f}", f"{cpu_two:.2f}",
                f"{threads[0]:.2f}", f"{threads[1]:.2f}",
                f"{threads[0] / threads[1] / 2:.0%}",
            ]
        )  # fmt: skip
    return table


def _cpu(client: Any) -> float:
    """Return the seconds that the workers have computed."""
    return float(sum(client.run(time.process_time).values()))


def _memory() -> Table:
    """Measure what reads and writes memory, and a copy of as many bytes."""
    head = ["what", "B/state", "ns/state", "GB/s", "two threads: ns/state", "GB/s"]
    inputs = np.random.default_rng(0).random((3, MEMORY_ROWS, 7))
    rnea, out = program(), np.zeros((MEMORY_ROWS, 7))
    size = 28 * 8
    source, target = np.zeros((2, MEMORY_ROWS * size // 16))

    def copy(threads: int) -> Callable[[], Any]:
        ends = np.linspace(0, len(source), threads + 1).astype(int)
        pool = ThreadPoolExecutor(threads)

        def part(k: int) -> None:
            np.copyto(target[ends[k] : ends[k + 1]], source[ends[k] : ends[k + 1]])

        return lambda: list(pool.map(part, range(threads)))

    def mapped(threads: int) -> Callable[[], Any]:
        return lambda: rnea.map(*inputs, out=out, workers=threads, progress=False)

    table = [head]
    for what, made in (("rnea", mapped), ("copy", copy)):
        cells = [what, str(size)]
        for threads in (1, 2):
            made(threads)()
            per_row = _least(made(threads)) / MEMORY_ROWS
            cells += [f"{per_row * 1e9:.1f}", f"{size / per_row * 1e-9:.1f}"]
        table.append(cells)
    return table


def _chunks() -> Table:
    """Measure chunks that have next to nothing to do."""
    rows, rnea = SMALL * SMALL_CHUNKS, program()
    alone = _least(lambda: [rnea(*states(0, SMALL)) for _ in range(SMALL_CHUNKS)])
    table = [["by", "us/chunk", "of that its rows", "overhead"]]

    def line(by: str, how: dict[str, Any]) -> None:
        run = _reduced(rnea, rows, {"chunk_rows": SMALL, **how})
        run()
        seconds = _least(run)
        cells = [f"{1e6 * x / SMALL_CHUNKS:.0f}" for x in (seconds, alone)]
        over = max(seconds - alone, 0.0) / SMALL_CHUNKS
        table.append([by, *cells, f"{1e6 * over:.0f}"])

    line("one thread", {"workers": 1})
    with connected("processes", 1) as client:
        line("one process", {"scheduler": client})
    return table


def _resuming(folder: str) -> Table:
    """Measure how long it takes until a run goes on."""
    rows = 100 * KILLED_CHUNKS
    _child("killed", rows, folder)
    first: list[float] = []

    def until_first(count: int, where: str, **options: Any) -> float:
        start = time.perf_counter()

        def progress(done: int, all_rows: int) -> None:
            first.append(time.perf_counter() - start)
            raise _FirstChunk

        try:
            batches_child.run_again(count, where, progress=progress, **options)
        except _FirstChunk:
            return first[-1]
        return time.perf_counter() - start

    with tempfile.TemporaryDirectory() as fresh:
        new = [until_first(rows, fresh, chunk_rows=100, resume=False) for _ in range(2)]
    resumed = until_first(rows, folder)
    batches_child.run_again(rows, folder, progress=False)
    start = time.perf_counter()
    batches_child.run_again(rows, folder, progress=False)
    again = time.perf_counter() - start
    head = ["ms until the first chunk", "of a new run", "the call again, all done"]
    return [head, [f"{1e3 * x:.1f}" for x in (resumed, min(new), again)]]


class _FirstChunk(Exception):
    """The first chunk is done."""


def _large(count: int, progress: Progress) -> Table:
    """Measure what fits nowhere."""
    head = [
        "states",
        "from",
        "to",
        "s",
        "CPU s",
        "M/s",
        "peak MB",
        "bytes of states GB",
    ]
    table = [head]
    few = max(count // SHARE, 1)
    for kind, rows, origin, target in (
        ("stored", few, "zarr", "zarr"),
        ("generated", few, "a function", "np.maximum"),
        ("generated", count, "a function", "np.maximum"),
    ):
        progress(f"{rows:.0e} states, {kind}")
        with tempfile.TemporaryDirectory() as folder:
            x = _child(kind, rows, folder)
        table.append(
            [
                f"{rows:.0e}", origin, target, f"{x['seconds']:.1f}", f"{x['cpu']:.1f}",
                f"{rows / x['seconds'] * 1e-6:.1f}", f"{x['peak'] * 1e-6:.0f}",
                f"{rows * 28 * 8e-9:.2f}",
            ]
        )  # fmt: skip
    return table


def _child(kind: str, rows: int, folder: str) -> dict[str, float]:
    """Run a part in a process of its own; return its figures."""
    command = [sys.executable, "-m", "bench.batches_child", kind, str(rows)]
    run = subprocess.run(
        [*command, folder], stdout=subprocess.PIPE, text=True, env=child_environment()
    )
    if run.returncode not in (0, -9):
        raise CompileError(f"the part '{kind}' ended with status {run.returncode}")
    figures: dict[str, float] = json.loads(run.stdout or "{}")
    return figures
