"""One run of a batch: its chunks, result files and journal, and the final value."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from dyn_core.batch import arguments
from dyn_core.batch.chunk_task import ChunkOutcome, ChunkSums, ChunkTask, sizes
from dyn_core.batch.cluster_runner import on_cluster
from dyn_core.batch.failed_rows import FailedRows, Run, joined
from dyn_core.batch.journal import FORMAT, DoneChunk, Journal, beside
from dyn_core.batch.program_facts import program_facts
from dyn_core.batch.reduction import OrderedFold, Reduction, packed, unpacked
from dyn_core.batch.storage.batch_rows import BatchRows
from dyn_core.batch.storage.result_targets import (
    ResultFiles,
    Targets,
    given_arrays,
    in_memory,
    is_url,
)
from dyn_core.batch.thread_runner import Chunk, on_threads
from dyn_core.engines import Program
from dyn_core.engines.results import make_result
from dyn_core.errors import BatchError, SettingError, warn

Show = Callable[[int, int], Any]  # rows done before this run, rows done


class BatchRun:
    """The state of one batch: its chunks, and the destination of their results.

    Attributes:
        program: Program that computes the rows.
        rows: Inputs of the batch.
        reduction: Reduction that replaces the results, or None.
        status: Whether failed rows are recorded instead of raising an error.
        targets: Arrays that results are written to; None for a reduction.
        journal: Journal of the run, or None.
        strip, chunk: Number of rows of a strip and of a chunk.
        runs: Failed rows of each finished chunk, by the chunk's index.
    """

    def __init__(
        self,
        program: Program[Any],
        rows: BatchRows,
        reduction: Reduction | None,
        status: bool,
    ) -> None:
        self.program, self.rows, self.reduction = program, rows, reduction
        self.status = status
        self.targets: Targets | None = None
        self.journal: Journal | None = None
        self.strip = self.chunk = 1
        self.runs: dict[int, tuple[Run, ...]] = {}
        self._fold = OrderedFold(reduction)
        self._may_choose = True

    def place(
        self, out: Any, files: ResultFiles | None, chunk_rows: Any, near: bool
    ) -> None:
        """Choose the sizes of strips and chunks, and check the arrays of `out`.

        Sets `strip`, `chunk` and, if `out` has arrays, `targets`.

        Args:
            out: Argument of map_rows: None, a path, or arrays for the results.
            chunk_rows: Requested number of rows of a chunk; None: a default.
            files: Result files if `out` is a path, else None.
            near: Whether all workers see the files of this machine.

        Raises:
            ShapeError: An array of `out` has another shape or dtype, or shares memory
                with an input.
            SettingError: `out` is no array, or `chunk_rows` is not valid.
        """
        program, count, grain = self.program, self.rows.count, 1
        if out is not None and files is None:
            self.targets = given_arrays(out, program.outputs, count, program.dtype)
            arguments.require_other_memory(self.rows, self.targets)
            grain = self.targets.grain
        light = self.reduction is not None
        if self.rows.sources:
            mapped = files is not None and not files.stored
            light = near and self.rows.mapped and (light or mapped)
        self.strip, usual = sizes(program, self.rows, grain, light)
        self.chunk = arguments.checked_chunk_rows(chunk_rows, usual, self.rows, grain)
        self._may_choose = chunk_rows is None

    @contextmanager
    def journaled(
        self, path: Any, files: ResultFiles | None, resume: bool
    ) -> Iterator[None]:
        """Context manager of an open journal and open result files.

        Sets `journal`, which is closed at the end, and `targets`; both stay None if
        there are none. Result arrays in memory are created here, too. The chunk size
        of an existing journal replaces a default `chunk`.

        Args:
            path: Argument `journal` of map_rows; None: beside the result file, or no
                journal if `out` is a URL or no path.
            files: Result files if `out` is a path, else None.
            resume: Whether to continue the run of an existing journal.

        Raises:
            BatchError: The journal or a file belongs to another run, is damaged, or
                cannot be read or written; or the result exists without a journal.
            SettingError: The journal is a URL, or results in memory have a journal.
        """
        if files is not None and path is None and not files.remote:
            path = beside(files.path)
        in_vain = self.targets is None and files is None and self.reduction is None
        if path is not None and in_vain:
            message = (
                "results in memory are lost with the process; valid: a path as out"
            )
            raise SettingError(f"journal: {message}", "journal")
        name = "" if path is None else _journal_path(path)
        kept = Journal.read_header(name) if resume and path is not None else None
        if kept is None and resume and files is not None and files.exists():
            raise BatchError(
                f"out: '{files.path}' exists and has no journal; valid:"
                " resume=False, which replaces it, or another path"
            )
        program, count = self.program, self.rows.count
        if path is None:
            if in_vain:
                self.targets = in_memory(program.outputs, count, program.dtype)
            elif files is not None:
                self.targets = files.create(count, program.dtype, self.chunk)
            yield
            return
        if kept is not None and self._may_choose:
            self.chunk = int(kept["chunk_rows"])
        journal = self.journal = Journal(name, self._header())
        try:
            if kept is None:
                journal.begin()
            else:
                journal.resume(kept)
            if files is not None and journal.done:
                self.targets = files.open(count, program.dtype, self.chunk)
            elif files is not None:
                self.targets = files.create(count, program.dtype, self.chunk)
            yield
        finally:
            journal.close()

    def _header(self) -> dict[str, Any]:
        """Return the journal's header as JSON data: program facts, sizes and inputs.

        Keys are those of journal.HEADER_TITLES, and "inputs".
        """
        program, reduction = self.program, self.reduction
        dtype = str(program.dtype)
        return {
            "format": FORMAT,
            **program_facts(program),
            "rows": self.rows.count,
            "chunk_rows": self.chunk,
            "outputs": [[x.name, *x.shape, dtype] for x in program.outputs],
            "reduction": None if reduction is None else reduction.facts(),
            "inputs": self.rows.facts(),
        }

    def results(self, client: Any, workers: int, show: Show) -> Any:
        """Compute the missing chunks; return the result of map_rows.

        That is the value, or with `status` a pair of the value and the FailedRows.

        Args:
            client: Client of a Dask scheduler; None for threads.
            workers: Number of threads; with a client they only check finished chunks.
            show: Called after each chunk with the number of rows done before this run,
                and the number of rows done.

        Raises:
            BatchError: The journal has failed rows and `status` is False, or a file, a
                worker or the scheduler is lost.
            RowError: Rows fail and `status` is False.
        """
        before = self._recovered(workers)
        done = before
        missing = [chunk for chunk in self._chunks() if chunk[0] not in self.runs]
        for k, outcome in self._outcomes(client, workers, missing):
            if self.journal is not None:
                chunk = DoneChunk(outcome.failed, packed(outcome.value), outcome.sums)
                self.journal.add(k, chunk)
            self.runs[k] = outcome.failed
            self._fold.add(k, outcome.value)
            done += self._size(k)
            show(before, done)
        if self.targets is not None:
            self.targets.flush()
        if not self.status:
            return self._value()
        return self._value(), self._failed()

    def _recovered(self, workers: int) -> int:
        """Load the finished chunks of the journal; return how many rows they have.

        Raises BatchError if some of these rows failed and `status` is False.
        """
        self._drop_changed_chunks(workers)
        journal = {} if self.journal is None else self.journal.done
        for k, chunk in sorted(journal.items()):
            self.runs[k] = chunk.failed
            self._fold.add(k, unpacked(chunk.value))
        if any(self.runs.values()) and not self.status:
            raise BatchError(
                f"rows failed before this run: {self._failed()}; valid: status=True,"
                " resume=False, which begins anew"
            )
        return sum(map(self._size, self.runs))

    def _drop_changed_chunks(self, workers: int) -> None:
        """Drop finished chunks whose results differ from their checksums; warn once."""
        if self.journal is None or self.targets is None or not self.journal.done:
            return
        done, changed = self.journal.done, []
        chunks = {chunk[0]: chunk for chunk in self._chunks() if chunk[0] in done}
        for k, sums in on_threads(ChunkSums(self.targets), chunks.values(), workers):
            if sums != done[k].sums:
                del done[k]
                changed.append((*chunks[k][1:], "changed"))
        if changed:
            runs = joined(sorted(changed))
            ranges = [f"{first} to {last - 1}" for first, last, _ in runs]
            more = f" and {len(ranges) - 5} more ranges" if ranges[5:] else ""
            warn(
                f"results differ from what the journal '{self.journal.path}' says, in"
                f" rows {', '.join(ranges[:5])}{more}; these are computed again"
            )

    def _chunks(self) -> Iterator[Chunk]:
        for k, first in enumerate(range(0, self.rows.count, self.chunk)):
            yield k, first, min(first + self.chunk, self.rows.count)

    def _size(self, k: int) -> int:
        return min(self.chunk, self.rows.count - k * self.chunk)

    def _outcomes(
        self, client: Any, workers: int, missing: list[Chunk]
    ) -> Iterator[tuple[int, ChunkOutcome]]:
        """Iterate over (index, ChunkOutcome) of the missing chunks, as they finish.

        Args:
            client: Client of a Dask scheduler; None for threads.
            workers: Maximum number of threads; engines other than native use one.
            missing: Chunks to be computed.
        """
        if not missing:
            return iter(())
        program = self.program
        if client is not None or workers == 1 or len(missing) > 1:
            program = program.on_one_thread  # each worker computes chunks of its own
        task = ChunkTask(
            program, self.rows, self.targets, self.reduction, self.strip, self.status,
            summed=self.journal is not None and self.targets is not None,
        )  # fmt: skip
        if client is not None:
            return on_cluster(client, task, missing, self.journal)
        program.prepare(batch=True)
        if program.engine != "native":
            workers = 1  # Python code runs on one thread at a time
        return on_threads(task, missing, min(workers, len(missing)))

    def _value(self) -> Any:
        """Return the result arrays, or the value of the reduction."""
        if self.targets is None:
            return self._fold.value
        arrays = self.targets.arrays
        if len(arrays) == 1:
            return arrays[0]
        return make_result(tuple(port.name for port in self.program.outputs), arrays)

    def _failed(self) -> FailedRows:
        runs = joined(run for k in sorted(self.runs) for run in self.runs[k])
        return FailedRows(self.rows.count, tuple(runs))


def _journal_path(path: Any) -> str:
    """Return the path of a journal as str.

    Raises SettingError if it is a URL: lines must be appended and flushed at once.
    """
    name = os.fspath(path)
    if is_url(name):
        message = f"journal is the URL '{name}'; valid: a path of this machine"
        raise SettingError(message, "journal")
    return name
