"""What solvers cost before they serve: `dyn bench --compile`, robots by solvers."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any

from bench import child_environment
from bench.compile_worker import READY, Cell
from bench.printed_tables import Progress
from dyn_core.solving.registry import solver, solvers

# From 3 to 100 joints: shipped robots, robots of example-robot-data, and chains.
ROBOTS = (
    "four_bar", "ur5_robot", "panda", "every_joint", "quadruped:floating",
    "go2:floating", "g1_29dof_rev_1_0:floating", "talos_reduced:floating",
    "chain30", "chain100",
)  # fmt: skip
# Most of what nodes and examples build; `--full` takes every solver of robots.
USUAL = (
    "rnea", "aba", "bias", "gravity", "coriolis", "crba", "dense",
    "mass_matrix_inverse",
    "id_derivatives", "fd_derivatives", "id_second_contracted", "fd_second_contracted",
    "semi_implicit_euler", "semi_implicit_euler_derivatives", "rk4", "rk4_derivatives",
    "jacobian",
    "forward_kinematics", "centroidal_matrix", "regressor", "computed_torque",
)  # fmt: skip
LIMIT, START = 30.0, 120.0  # longest of a cell, and of loading a robot [s]
LEGEND = """\
Each robot in a process of its own with an empty cache of kernels. nodes: operations of
the Graph; trace: until it is there; first answer: of one state, from the beginning;
ready: until both kernels, for single states and for batches, are there; KiB: their
machine code. Seconds by the clock on the wall; cpu: of all threads until both kernels
are there. Solvers that do not serve a robot, or take longer than the limit, stand below
with the reason."""
HEAD = [
    "robot", "solver", "nodes", "trace s", "first answer s", "ready s", "cpu s", "KiB",
]  # fmt: skip


def every_solver() -> list[str]:
    """Return the solvers of robots that can be compiled."""
    return [
        name
        for name in solvers()
        if solver(name).signature.system == "robot"
        and hasattr(solver(name), "algorithm")
    ]


def tables(
    robots: Sequence[str],
    names: Sequence[str],
    limit: float,
    progress: Progress,
    kept: Path | None = None,
) -> Iterator[tuple[str, list[list[str]]]]:
    """Return one table of all robots and solvers, then one of what has no figures.

    Args:
        robots, names: Sources of compile_worker.py, and solvers.
        limit: Longest time of a solver [s].
        progress: Called with what is measured.
        kept: A file that cells are written to as they are measured; those in it are
            not measured again.
    """
    rows, without = [HEAD], [["robot", "solver", "reason"]]
    known = {} if kept is None else _read(kept)
    for number, source in enumerate(robots):
        robot = Path(source).stem
        left = [name for name in names if (source, name) not in known]
        done = number * len(names) + len(names) - len(left)
        count = _Counted(progress, done, len(robots) * len(names))
        for cell in cells(source, left, limit, count) if left else ():
            known[source, cell.solver] = cell
            if kept is not None:
                with kept.open("a") as file:  # the line before may be cut short
                    file.write(f"\n{json.dumps([source, asdict(cell)])}\n")
        for name in names:
            cell = known[source, name]
            if cell.reason:
                reason = " ".join(cell.reason.replace("|", "/").split())
                without.append([robot, name, reason])
            else:
                rows.append([robot, *_row(cell)])
    yield "compile time and code size", rows
    if len(without) > 1:
        yield "without figures", without


class _Counted:
    """Progress that says which of all cells is measured.

    Args:
        progress: Called with what is measured.
        done: Cells before the first one.
        count: All cells.
    """

    def __init__(self, progress: Progress, done: int, count: int) -> None:
        self.progress, self.done, self.count = progress, done, count

    def __call__(self, what: str) -> None:
        self.done += 1
        self.progress(f"{what} ({self.done} of {self.count})")


def _read(file: Path) -> dict[tuple[str, str], Cell]:
    """Return the cells of a file by robot and solver; a line cut short is left out."""
    cells = {}
    for line in file.read_text().splitlines() if file.exists() else ():
        try:
            source, numbers = json.loads(line)
            cell = Cell(**numbers)
        except (ValueError, TypeError):
            continue
        cells[str(source), cell.solver] = cell
    return cells


def _row(cell: Cell) -> list[str]:
    times = [f"{x:.2f}" for x in (cell.trace, cell.first, cell.ready, cell.cpu)]
    return [cell.solver, f"{cell.nodes}", *times, f"{cell.code / 1024:.0f}"]


def cells(
    robot: str, names: Sequence[str], limit: float, progress: Progress
) -> Iterator[Cell]:
    """Return a Cell for each solver; what takes too long is ended, the rest goes on."""
    left = list(names)
    while left:
        with TemporaryDirectory() as folder, _Compiling(robot, left, folder) as worker:
            reason = worker.start()
            if reason:
                yield from (Cell(name, reason=reason) for name in left)
                return
            while left:
                progress(f"{robot}: {left[0]}")
                line = worker.line(limit)
                name = left.pop(0)
                if line is None:
                    yield Cell(name, reason=worker.end(limit))
                    break  # another process for the rest
                yield Cell(**line)


class _Compiling:
    """A process of compile_worker.py."""

    def __init__(self, robot: str, names: Sequence[str], folder: str) -> None:
        command = [sys.executable, "-m", "bench.compile_worker", robot, *names]
        self.errors = TemporaryFile()
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self.errors,
            env=child_environment(DYN_CACHE_DIR=folder),
        )  # fmt: skip
        assert self.process.stdout is not None
        self.channel, self.rest = self.process.stdout, b""

    def __enter__(self) -> _Compiling:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self.channel.close()
        self.errors.close()

    def start(self) -> str:
        """Wait until the robot is loaded; return why it is not."""
        return "" if self.line(START) == READY else self.end(START)

    def line(self, limit: float) -> Any:
        """Return the next line; None if there is none within the limit [s]."""
        channel = self.channel.fileno()
        while b"\n" not in self.rest:
            if not select.select([channel], [], [], limit)[0]:
                return None
            read = os.read(channel, 65536)
            if not read:
                return None
            self.rest += read
        line, _, self.rest = self.rest.partition(b"\n")
        return json.loads(line)

    def end(self, limit: float) -> str:
        """End the process; return why it gave no line."""
        ended = self.process.poll() is not None or not self._waits()
        self.process.kill()
        self.process.wait()
        self.errors.seek(0)
        said = self.errors.read().decode(errors="replace").strip()
        if not ended:
            return f"over {limit:g} s"
        last = said.splitlines()[-1] if said else "no message"
        return f"the process ended ({self.process.returncode}): {last}"

    def _waits(self) -> bool:
        """Return whether the process runs on, a moment after its output ended."""
        try:
            self.process.wait(0.1)
        except subprocess.TimeoutExpired:
            return True
        return False
