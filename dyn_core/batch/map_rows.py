"""Evaluation of a Program over all rows of a batch, on any scheduler: map_rows.

The arguments are checked before anything is computed. A run consists of chunks, with a
journal beside the result files, and ends in the final value.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from dyn_core.batch.chunk_task import ChunkOutcome, ChunkSums, ChunkTask, sizes
from dyn_core.batch.cluster_runner import connected, on_cluster
from dyn_core.batch.failed_rows import FailedRows, Run, joined
from dyn_core.batch.journal import FORMAT, DoneChunk, Journal, beside, journal_path
from dyn_core.batch.program_facts import program_facts
from dyn_core.batch.reduction import OrderedFold, Reduction, packed, unpacked
from dyn_core.batch.storage.batch_rows import BatchRows, GeneratedRows
from dyn_core.batch.storage.cluster_libraries import made_by
from dyn_core.batch.storage.result_targets import (
    ResultFiles,
    Targets,
    given_arrays,
    in_memory,
)
from dyn_core.batch.storage.row_sources import DaskSource, source
from dyn_core.batch.thread_runner import Chunk, on_threads
from dyn_core.engines import Program
from dyn_core.engines.llvm.threads import count as thread_count
from dyn_core.engines.results import make_result
from dyn_core.errors import BatchError, SettingError, ShapeError, unknown_name, warn
from dyn_core.recordings.progress import RowProgress
from dyn_core.solving.solver import check_function, takes
from dyn_core.validation import shown

VALID = (
    "'threads', 'processes', the address of a Dask scheduler such as tcp://host:8786, a"
    " distributed.Client"
)


def checked_workers(scheduler: Any, workers: Any, program: Program[Any]) -> int:
    """Return the number of threads or processes.

    With a Dask scheduler it is the number of threads of this process that check the
    finished chunks of a resumed run. `workers` None: the threads of the Program,
    else DYN_THREADS, else all cores.
    """
    known = isinstance(scheduler, str) and (
        scheduler in ("threads", "processes") or "://" in scheduler
    )
    client = made_by(scheduler, "distributed") and hasattr(scheduler, "submit")
    if not known and not client:
        raise SettingError(f"scheduler is {scheduler!r}; valid: {VALID}", "scheduler")
    if workers is None:
        return thread_count(program.threads)
    if scheduler not in ("threads", "processes"):
        message = (
            "workers is for scheduler='threads' and 'processes'; this one has its own"
        )
        raise SettingError(message, "workers")
    return _whole("workers", workers)


def _whole(name: str, value: Any) -> int:
    """Return a setting as int from 1; a float such as 1e9 is accepted, no bool."""
    good = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if isinstance(value, float) and value.is_integer():
        good = True  # such as 1e9
    if not good or value < 1:
        raise SettingError(f"{name} is {value!r}; valid: a whole number from 1", name)
    return int(value)


def checked_rows(
    program: Program[Any], args: Sequence[Any], named: Mapping[str, Any], count: Any
) -> BatchRows:
    """Return the inputs of a batch as BatchRows, or GeneratedRows for a function.

    A function of the row range stands alone and needs `count`, its number of rows.
    """
    functions = [x for x in args if callable(x) and not hasattr(x, "dtype")]
    if not functions:
        if count is not None:
            message = "count is for a function of rows; arrays have their own number"
            raise SettingError(message, "count")
        values = program._bind(args, named)
        ports = zip(program.inputs, values, strict=True)
        return BatchRows(
            [source(port, x, program.dtype, program.model) for port, x in ports]
        )
    if len(args) > 1 or named:
        wanted = (
            "a function (first, last) that returns all inputs, and nothing beside it"
        )
        raise ShapeError("arguments", wanted, f"{len(args) + len(named)}")
    if count is None:
        message = "a function of rows needs count, the number of all rows"
        raise SettingError(message, "count")
    total = _whole("count", count)
    rows, valid = functions[0], "a function (first, last) that returns all inputs"
    check_function("rows", rows, valid)
    if not takes(rows, 2):
        raise SettingError(f"rows is {shown(rows)}; valid: {valid}", "rows")
    return GeneratedRows(functions[0], total, program.inputs, program._bind)


def checked_chunk_rows(
    asked: Any, usual: int, rows: BatchRows, targets_grain: int
) -> int:
    """Return the number of rows of a chunk, which may exceed that of all rows.

    A number below that must be a multiple of `targets_grain`, the rows of a file of a
    zarr array in `out` (1 without): else two chunks would write one file.
    """
    chunk = usual if asked is None else _whole("chunk_rows", asked)
    if chunk % targets_grain and chunk < rows.count:
        step = f"a multiple of {targets_grain}, the rows of a file of `out`"
        raise SettingError(f"chunk_rows is {chunk}; valid: {step}", "chunk_rows")
    return chunk


def require_other_files(
    rows: BatchRows, files: ResultFiles | None, journal: str | None
) -> None:
    """Refuse a result or journal that is, contains or is in a file already used.

    Symbolic links are resolved.
    """
    used = [(x.file, f"the file of the input {x.name}") for x in rows.sources if x.file]
    written = [("out", x) for x in (() if files is None else files.names)]
    written += [("journal", x) for x in (journal,) if x is not None]
    for argument, name in written:
        path = Path(os.path.realpath(name.removeprefix("file://")))
        for other, what in used:
            there = Path(os.path.realpath(other.removeprefix("file://")))
            if there.is_relative_to(path) or path.is_relative_to(there):
                how = "contains" if there.is_relative_to(path) else "is within"
                how = "is" if path == there else how
                message = f"{argument}: '{name}' {how} {what}; valid: another path"
                raise SettingError(message, argument)
        used.append((name, "the result"))


def require_other_memory(rows: BatchRows, targets: Targets) -> None:
    """Raise ShapeError if a result array is an input, or may share memory with one.

    Of zarr arrays only the same object is noticed, not the same store.
    """
    for known in rows.sources:
        for array in targets.arrays:
            if array is known.array or (
                isinstance(array, np.ndarray)
                and isinstance(known.array, np.ndarray)
                and np.may_share_memory(array, known.array)
            ):
                wanted = "memory of its own: rows are computed in any order"
                raise ShapeError("out", wanted, f"that of the input {known.name}")


Show = Callable[[int, int], Any]  # rows done before this run, rows done


class BatchRun:
    """The state of one batch: its chunks, and the destination of their results.

    `place` must run first, then `results` within `journaled`. `targets` is None for a
    reduction; `strip` and `chunk` are numbers of rows; `runs` has the failed rows of
    each finished chunk, by its index.
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

        Sets `strip`, `chunk` and, if `out` has arrays, `targets`. `files` is None
        unless `out` is a path; `near`: all workers see the files of this machine.
        """
        program, count, grain = self.program, self.rows.count, 1
        if out is not None and files is None:
            self.targets = given_arrays(out, program.outputs, count, program.dtype)
            require_other_memory(self.rows, self.targets)
            grain = self.targets.grain
        light = self.reduction is not None
        if self.rows.sources:
            mapped = files is not None and not files.stored
            light = near and self.rows.mapped and (light or mapped)
        self.strip, usual = sizes(program, self.rows, grain, light)
        self.chunk = checked_chunk_rows(chunk_rows, usual, self.rows, grain)
        self._may_choose = chunk_rows is None

    @contextmanager
    def journaled(
        self, path: str | None, files: ResultFiles | None, resume: bool
    ) -> Iterator[None]:
        """Context manager of an open journal and open result files.

        Sets `journal`, closed at the end, or None; and `targets` to result files or new
        arrays in memory; arrays of the caller stay. Without `path` the journal is
        beside the result file; there is none if `out` is a URL or no path. With
        `resume` the chunk size of an existing journal replaces a default `chunk`, and
        refuses another; without it, journal and result files are replaced.
        """
        if files is not None and path is None and not files.remote:
            path = beside(files.path)
        in_vain = self.targets is None and files is None and self.reduction is None
        if path is not None and in_vain:
            message = (
                "results in memory are lost with the process; valid: a path as out"
            )
            raise SettingError(f"journal: {message}", "journal")
        kept = Journal.read_header(path) if resume and path is not None else None
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
                self.rows.facts()  # raises if a function of rows does not fit
                self.targets = files.create(count, program.dtype, self.chunk)
            yield
            return
        if kept is not None and self._may_choose:
            self.chunk = int(kept["chunk_rows"])
        journal = self.journal = Journal(path, self._header())
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
        """Return the journal's header as JSON data.

        Keys are those of journal.HEADER_TITLES, and "inputs". A function of rows is
        called for some samples.
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

        It is the results, or the reduced value; with `status` (this, FailedRows). With
        a client the workers only check finished chunks. `show` is called after each
        chunk with the numbers of rows done before this run, and of all rows done.
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
        """Load the finished chunks of the journal; return the number of their rows.

        Their failed rows are stored in `runs`, and the values of the reduction are
        combined. Chunks whose results differ from their checksums are left out. Without
        `status` failed rows are refused.
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
        """Drop finished chunks whose results cannot be read or have other checksums.

        They are removed from journal.done, and so computed again, with one warning for
        all. Nothing is checked for a reduction.
        """
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
        """Iterate over (index, ChunkOutcome) of the missing chunks as they finish.

        `workers` is the maximum number of threads without a client; engines other than
        native use one.
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
        """Return an array, a named tuple, or a reduction's value, which may be None."""
        if self.targets is None:
            return self._fold.value
        arrays = self.targets.arrays
        if len(arrays) == 1:
            return arrays[0]
        return make_result(tuple(port.name for port in self.program.outputs), arrays)

    def _failed(self) -> FailedRows:
        runs = joined(run for k in sorted(self.runs) for run in self.runs[k])
        return FailedRows(self.rows.count, tuple(runs))


@contextmanager
def kept_interrupts() -> Iterator[Callable[[], None]]:
    """Context manager that yields a function raising KeyboardInterrupt after Ctrl-C.

    Python ignores a KeyboardInterrupt that is raised while an object is deleted, as
    objects of Dask often are: call the function regularly to raise it again; the end of
    the block does. Ctrl-C raises it as usual, too. On other threads than the main one,
    and beside a SIGINT handler of the program, the function does nothing.
    """
    usual = signal.default_int_handler
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not usual:
        yield lambda: None
        return
    came: list[int] = []

    def listen(number: int, _: FrameType | None) -> None:
        came.append(number)
        raise KeyboardInterrupt

    def check() -> None:
        if came:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, listen)
    try:
        yield check
        check()
    finally:
        signal.signal(signal.SIGINT, usual)


def map_rows(
    program: Program[Any],
    *args: Any,
    out: Any = None,
    status: bool = False,
    reduce: Any = None,
    combine: Any = None,
    count: int | float | None = None,
    chunk_rows: int | None = None,
    scheduler: Any = "threads",
    workers: int | None = None,
    journal: str | None = None,
    resume: bool = True,
    progress: bool | Callable[[int, int], Any] = True,
    **named: Any,
) -> Any:
    """Return the results of all rows, computed chunk by chunk.

        tau = map_rows(rnea, Q, Qd, Qdd)                     arrays of any kind
        map_rows(rnea, Q, Qd, Qdd, out="tau.npy")            a file; so is "tau.zarr"
        map_rows(rnea, states, count=1e9, reduce=np.maximum) rows that a function makes

    Inputs are NumPy arrays, memory maps, zarr and Dask arrays, by position or name; an
    input without the batch axis is shared by all rows. No input is copied or converted
    as a whole. Instead of arrays, one function of the row range, called as
    function(first, last), may return all inputs of these rows; its ranges depend only
    on the Program, count and chunk_rows.

    A result in a file has a journal beside it, with the name of the file and .journal.
    After Ctrl-C or a kill the same call computes the missing chunks. It reads the
    finished ones: rows that differ from their checksum in the journal are computed
    again, with a warning. A journal of other arguments, code or arithmetic is refused;
    the error says which. Inputs are compared in some samples, not as a whole.

    Args:
        program: Program to be evaluated.
        args, named: Inputs of the Program, or the function of the row range.
        out: None: new arrays in memory. A path ending in .npy, or in .zarr (a group for
            several outputs); another path is a folder with a .npy for each output. A
            URL that ends in .zarr, such as s3://bucket/x.zarr, which has a journal only
            if `journal` names one. Or arrays, zarr arrays, of the right shape and
            dtype.
        status: Whether failed rows are returned instead of raising an error; their
            results are NaN, and a reduction leaves them out.
        reduce: None, or a reduction that replaces the results: a ufunc over the rows,
            such as np.maximum, or a function of the results of some rows, which returns
            numbers or arrays (one, a tuple, a mapping).
        combine: How two reduced values are combined: a ufunc or a function of two
            arguments; default: the ufunc of `reduce`, or np.add, for which `reduce` is
            called with some of the first rows more, to see whether its values add up.
            Values are combined in the order of the rows.
        count: Number of rows that the function generates.
        chunk_rows: Number of rows of a chunk; None: on engine native at most 64 MiB
            of inputs and results, or 1 GiB if only strips of them are in memory
            (generated inputs with a reduction, mapped inputs with a reduction or .npy
            results); on other engines about 512 or 4096 rows.
        scheduler: "threads" of this process; "processes" of this machine; the address
            of a Dask scheduler (tcp://host:8786), or a distributed.Client.
        workers: Number of threads or processes, not of a Dask scheduler; None: threads
            of the Program, else the environment variable DYN_THREADS, else all cores.
        journal: Path of the journal; None: beside a result file. A reduction, a URL and
            arrays of the caller have a journal only with a path.
        resume: Whether to continue the run of an existing journal; False: start anew
            and replace it and its results.
        progress: Whether standard error, if a terminal, shows rows, rate and remaining
            time from two seconds on; or a function called after each chunk with rows
            done and all rows.

    Returns:
        The results: an array (mapped .npy or zarr for files; `out` if it has arrays),
        or a named tuple of several; for a reduction its value, None if no row
        succeeded. With status=True a pair of this and the FailedRows.

    Raises:
        ShapeError, SettingError: An argument does not fit.
        BatchError: The journal is of another run, damaged, in use, or has failed rows
            and `status` is False; a result file exists without a journal and `resume`
            is True; a worker would compute other bits; a file or the cluster is lost.
        RowError: Rows failed; has indices of the first found. Finished chunks are kept.
        UnsupportedError: The extra `cluster` is needed, and not installed; or the URL
            of `out` cannot be opened.
        Exception: Errors of the caller's functions pass through, such as a KeyError for
            reduced values that differ in their keys.
    """
    for name, value in (("status", status), ("resume", resume)):
        if not isinstance(value, bool | np.bool_):
            raise SettingError(f"{name} is {value!r}; valid: True, False", name)
    if not callable(progress) and not isinstance(progress, bool):
        message = "valid: True, False, a function (rows done, all rows)"
        raise SettingError(f"progress is {progress!r}; {message}", "progress")
    if not isinstance(program, Program):
        message = "valid: a Program, as of dyn.solver('rnea').build(model)"
        raise SettingError(f"program is {shown(program)}; {message}", "program")
    inputs = [port.name for port in program.signature.inputs]
    known = [*(port.name for port in program.inputs), *(map_rows.__kwdefaults__ or ())]
    for name in named:
        if name not in {*known, *inputs}:
            message = unknown_name("argument of map", name, known, limit=None)
            raise SettingError(message, name)
    workers = checked_workers(scheduler, workers, program)
    rows = checked_rows(program, args, named, count)
    reduction = None if reduce is None else Reduction(reduce, combine)
    if reduction is None and combine is not None:
        raise SettingError("combine is for reduce; valid: both, or none", "combine")
    files = _files(out, program, reduction)
    journal = None if journal is None else journal_path(journal)
    require_other_files(rows, files, journal)
    with ExitStack() as open_things:
        check = open_things.enter_context(kept_interrupts())
        client = None
        if scheduler != "threads":
            client = open_things.enter_context(connected(scheduler, workers))
            for source in rows.sources:
                if isinstance(source, DaskSource):
                    source.scheduler = client
        run = BatchRun(program, rows, reduction, status)
        near = scheduler in ("threads", "processes")
        run.place(out, files, chunk_rows, near)
        open_things.enter_context(run.journaled(journal, files, resume))
        line = RowProgress(rows.count, progress is True)
        open_things.callback(line.end)

        def show(before: int, done: int) -> None:
            if callable(progress):
                progress(done, rows.count)
            line.show(done, before)
            check()

        try:
            return run.results(client, workers, show)
        except KeyboardInterrupt as stop:
            if run.journal is not None:
                stop.args = ("what is done is kept; the same call goes on",)
            raise


def _files(
    out: Any, program: Program[Any], reduction: Reduction | None
) -> ResultFiles | None:
    """Return the result files if `out` is a path or URL, else None."""
    if reduction is not None and out is not None:
        message = "a reduction returns its value; valid: journal= to resume it, no out"
        raise SettingError(message, "out")
    if not isinstance(out, str | os.PathLike):
        return None
    files = ResultFiles(os.fspath(out), program.outputs)
    files.require()
    return files
