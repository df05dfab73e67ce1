"""The work of one chunk: convert, compute, and write or reduce its rows in strips."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dyn_core.batch.failed_rows import Run, joined, runs_of
from dyn_core.batch.reduction import Reduction
from dyn_core.batch.storage.batch_rows import BatchRows
from dyn_core.batch.storage.result_targets import Targets, checksums
from dyn_core.engines import Program
from dyn_core.engines.results import make_result
from dyn_core.errors import RowError

# A strip fits in a core's cache: its rows are converted, then used at once.
STRIP = 2 << 20  # maximum size of inputs and results of a strip [bytes]
LANES = 512  # rows of chunks and strips are a multiple of it
CHUNK = 64 << 20  # maximum size of inputs and results of a chunk [bytes]
LIGHT_CHUNK = 1 << 30  # the same if only strips of them are in memory
LEAST, CHUNKS = 16384, 32  # minimum rows of a chunk; chunks of a small batch
BY_PYTHON = {"native": None, "graph": (512, 4096)}  # rows of strip and chunk by engine
# The same for engines that compute one row at a time in Python.
ROW_BY_ROW = (16, 512)


class Stopped(Exception):
    """A chunk was stopped by the function `stopped` of ChunkTask.run."""


@dataclass(frozen=True)
class ChunkOutcome:
    """The outcome of a chunk.

    `failed` has runs with indices in the batch. `value` is the reduced value, None
    without a reduction or if all rows failed. `results` are for the receiver to write
    or return, one array for each output; None if they are written or reduced. `sums`
    has the CRC-32 of each output's results; empty if not needed.
    """

    failed: tuple[Run, ...]
    value: Any = None
    results: tuple[np.ndarray, ...] | None = None
    sums: tuple[int, ...] = ()


def sizes(
    program: Program[Any], rows: BatchRows, grain: int, light: bool
) -> tuple[int, int]:
    """Return the number of rows of a strip and of a chunk, (strip, chunk).

    On engine native a strip has a multiple of 512 rows in at most 2 MiB of inputs and
    results, but at least 512; a chunk at most 64 MiB (1 GiB if `light`), and at most
    1/32 of the rows or 16384 rows, whichever is more. On engine graph they have 512 and
    4096 rows, on others 16 and 512. A chunk is then rounded down to a multiple of a
    step, but has at least one step, even beyond these limits and the batch's last row.
    The step is the least common multiple of `grain` and rows.grain if that is above 1
    and at most four chunks; else a strip, or 512 rows if the chunk is below a strip.
    Only the arguments count, so that a run gives the same bits on any machine.

    Args:
        program: Program that is evaluated.
        rows: Inputs of the batch.
        grain: Number of rows of the results that must be written together, a zarr
            file's; 1 for none.
        light: Whether only strips of inputs and results are in memory, not chunks;
            chunks may then be larger.
    """
    by_python = BY_PYTHON.get(program.engine, ROW_BY_ROW)
    item = program.dtype.itemsize
    size = rows.row_bytes + sum(item * port.size for port in program.outputs)
    if by_python is None:
        strip = _whole(STRIP // max(size, 1), LANES)
        most = LIGHT_CHUNK if light else CHUNK
        chunk = min(most // max(size, 1), max(rows.count // CHUNKS, LEAST))
    else:
        strip, chunk = by_python
    grain = int(np.lcm(grain, rows.grain))
    if (
        grain > 4 * chunk
    ):  # a file much larger than a chunk is read several times instead
        grain = 1
    if grain == 1:
        grain = strip if chunk >= strip else LANES
    return strip, _whole(chunk, grain)


def _whole(rows: int, step: int) -> int:
    """Return the largest multiple of `step` up to `rows`, but at least `step`."""
    return max(rows // step, 1) * step


class ChunkTask:
    """The computation of any chunk of a batch: Program, inputs and destination.

    Without `targets` results are returned. `strip` is a number of rows. With `status`
    failed rows are recorded, else they raise an error. `summed`: checksums are needed.
    """

    def __init__(
        self,
        program: Program[Any],
        rows: BatchRows,
        targets: Targets | None,
        reduction: Reduction | None,
        strip: int,
        status: bool,
        summed: bool = False,
    ) -> None:
        self.program, self.rows, self.targets = program, rows, targets
        self.reduction, self.strip, self.status = reduction, strip, status
        self.summed = summed

    def run(
        self,
        first: int,
        last: int,
        sent: Sequence[Any] = (),
        stopped: Callable[[], bool] = lambda: False,
    ) -> ChunkOutcome:
        """Compute the rows of one chunk, strip by strip.

        Results are written to `targets`; without targets and reduction they are in the
        outcome. After an error the targets may have some of the rows. `sent` has the
        arrays that came with the task, None for inputs that are read here; empty: all
        are. Stopped: `stopped`, called before each strip, returned True. UnseenRows: an
        input's file is not seen here. RowError has indices in the batch.
        """
        rows = self.rows.loaded(first, last, sent)
        memory = None if self.targets is None else self.targets.views(first, last)
        strips = self.reduction is not None  # result buffers of one strip are reused
        results = memory or self._memory(self.strip if strips else last - first)
        buffers: dict[int, np.ndarray] = {}
        failed: list[Run] = []
        value, sums = None, (0,) * len(self.program.outputs) * self.summed
        for a in range(first, last, self.strip):
            if stopped():
                raise Stopped
            b = min(a + self.strip, last)
            place = slice(0, b - a) if strips else slice(a - first, b - first)
            out = [x[place] for x in results]
            inputs = [self._fit(k, x, buffers) for k, x in enumerate(rows(a, b))]
            bad = self._call(inputs, out, a)
            failed += bad
            if self.summed:
                sums = checksums(out, sums)  # while the results are in the cache
            if self.reduction is not None:
                value = self._reduced(value, out, bad, a)
        outcome = ChunkOutcome(tuple(joined(failed)), value, sums=sums)
        if strips or memory is not None:
            return outcome
        if self.targets is None:
            return replace(outcome, results=tuple(results))
        self.targets.write(first, last, results)
        return outcome

    def _memory(self, count: int) -> list[np.ndarray]:
        ports, dtype = self.program.outputs, self.program.dtype
        return [np.empty((count, *port.shape), dtype) for port in ports]

    def _fit(
        self, k: int, array: np.ndarray, buffers: dict[int, np.ndarray]
    ) -> np.ndarray:
        """Return rows of input k in the dtype and memory layout of the Program.

        The result is `array` itself if that fits, else a C-contiguous copy, which may
        lie in one of the `buffers`: the next call for input k overwrites it.
        """
        flags, dtype = array.flags, self.program.dtype
        if array.dtype == dtype and flags.c_contiguous and flags.aligned:
            return array
        if array.shape[1:] == () or array.ndim == len(self.program.inputs[k].shape):
            return np.ascontiguousarray(array, dtype)
        if k not in buffers:
            buffers[k] = np.empty((self.strip, *array.shape[1:]), dtype)
        fitted = buffers[k][: len(array)]
        np.copyto(fitted, array, casting="unsafe")
        return fitted

    def _call(
        self, inputs: list[np.ndarray], out: list[np.ndarray], first: int
    ) -> list[Run]:
        """Compute a strip into `out`; return the runs of its failed rows, [] for none.

        A run is (first row, row behind the last, reason), with indices in the batch, in
        which the strip begins at `first`. Failed rows of `out` become NaN; without
        `status` they are a RowError. Inputs are (rows, *port.shape), or port.shape if
        all rows share it.
        """
        program = self.program
        into: Any = out[0] if len(out) == 1 else tuple(out)
        state: Any = program(*inputs, out=into, status=True)[1]
        bad = np.flatnonzero(state)
        if not len(bad):
            return []
        if not self.status:
            raise _error(program, inputs, bad, state, first)
        why = {n: _reason(program, n) for n in np.unique(state[bad]).tolist()}
        rows = (bad + first).tolist()
        return runs_of(rows, [why[int(state[k])] for k in bad])

    def _reduced(
        self, value: Any, out: list[np.ndarray], bad: list[Run], first: int
    ) -> Any:
        """Return the reduced value with a strip added; failed rows are left out.

        `bad` has runs of indices in the batch, in which the strip begins at `first`. If
        all rows failed, or there is no reduction, `value` is returned unchanged.
        """
        if bad:
            good = np.ones(len(out[0]), bool)
            for a, b, _ in bad:
                good[a - first : b - first] = False
            out = [x[good] for x in out]
        if self.reduction is None or not len(out[0]):
            return value
        names = tuple(port.name for port in self.program.outputs)
        results = out[0] if len(out) == 1 else make_result(names, out)
        part = self.reduction(results)
        return self.reduction.add(value, part)


def _error(
    program: Program[Any],
    inputs: Sequence[np.ndarray],
    bad: np.ndarray,
    state: np.ndarray,
    first: int,
) -> RowError:
    """Return the RowError of the rows `bad` of a strip, with indices in the batch.

    The Program is called again without a status, since that error also names the input;
    if it raises none, the error is that of the first failed row's status.
    """
    error = program.failure(int(state[bad[0]]), bad.tolist())
    try:
        program(*inputs)
    except RowError as detailed:  # has the name of the input, too
        error = detailed
    rows = bad if error.rows is None else error.rows
    return error.of_rows(np.add(rows, first).tolist())


class ChunkSums:
    """A task that computes the checksums of the results of chunks, as stored."""

    def __init__(self, targets: Targets) -> None:
        self.targets = targets

    def run(
        self, first: int, last: int, sent: Sequence[Any], stopped: Callable[[], bool]
    ) -> tuple[int, ...] | None:
        """Return the CRC-32 of these rows of each output; None: they cannot be read."""
        return self.targets.sums(first, last)


def _reason(program: Program[Any], number: int) -> str:
    error = program.failure(number)
    return f"{type(error).__name__}: {error}"
