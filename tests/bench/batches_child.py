"""Parts of the benchmark of batches that need a process of their own.

Peak memory is that of a process, and one of them is killed: `python -m
bench.batches_child KIND COUNT FOLDER` prints its figures as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from dyn_core.engines import Program
from dyn_core.model import load
from dyn_core.solving.registry import solver

ROBOT = "arm7"
STORED_ROWS = 100_000  # of a file of zarr
KILLED_CHUNKS = 1000  # of the run that is killed when half of them are done


def states(first: int, last: int) -> tuple[np.ndarray, ...]:
    """Return positions, velocities and accelerations or forces of a range of rows."""
    random = np.random.Generator(np.random.SFC64(first))
    return tuple(random.random((3, last - first, 7)))


def program(name: str = "rnea") -> Program[Any]:
    """Return what is measured."""
    return solver(name).build(load(ROBOT))


def generated(count: int, folder: str) -> dict[str, float]:
    """Measure states that are made chunk by chunk, and reduced."""
    rnea = program()
    rnea.map(states, count=10_000, reduce=np.maximum)  # compiles

    def run() -> None:
        rnea.map(states, count=count, reduce=np.maximum, progress=True)

    return _measured(run)


def stored(count: int, folder: str) -> dict[str, float]:
    """Measure states that lie in zarr arrays on the disk, with results there."""
    import zarr

    rnea = program()
    inputs, begun_writing = [], time.perf_counter()
    for k, name in enumerate(("q", "qd", "qdd")):
        array = zarr.open_array(
            f"{folder}/{name}.zarr", mode="w", shape=(count, 7), dtype="float64",
            chunks=(STORED_ROWS, 7),
        )  # fmt: skip
        for first in range(0, count, STORED_ROWS):
            last = min(first + STORED_ROWS, count)
            array[first:last] = states(first, last)[k]
        inputs.append(array)
    writing = time.perf_counter() - begun_writing
    rnea.map(*[x[:10_000] for x in inputs])  # compiles

    def run() -> None:
        rnea.map(*inputs, out=f"{folder}/tau.zarr")

    return {**_measured(run), "writing": writing}


def killed(count: int, folder: str) -> dict[str, float]:
    """Run until half the chunks are done, and be killed."""
    chunk = max(count // KILLED_CHUNKS, 1)

    def progress(done: int, rows: int) -> None:
        if done >= rows // 2:
            os.kill(os.getpid(), signal.SIGKILL)

    run_again(count, folder, progress=progress, chunk_rows=chunk)
    return {}


def run_again(count: int, folder: str, **options: Any) -> None:
    """Make, or resume, the run that is killed."""
    program().map(states, count=count, out=f"{folder}/tau.npy", **options)


def _measured(run: Callable[[], None]) -> dict[str, float]:
    """Return seconds by the clock and of the processor, and the peak of memory."""
    wall, cpu = time.perf_counter(), time.process_time()
    run()
    return {
        "seconds": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
        "peak": _peak(),
    }


def _peak() -> float:
    """Return the most memory that this process has had [bytes]."""
    try:
        with open("/proc/self/status", encoding="utf-8") as file:
            lines = [x.split() for x in file if x.startswith("VmHWM:")]
            return 1024.0 * float(lines[0][1])
    except OSError:  # no Linux; what a parent had counts there
        import resource

        return 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


KINDS = {"generated": generated, "stored": stored, "killed": killed}


if __name__ == "__main__":
    kind, asked, place = sys.argv[1:]
    print(json.dumps(KINDS[kind](int(asked), place)))
