"""Evaluation of a Program over all rows of a batch, on any scheduler: map_rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from dyn_core.batch import arguments
from dyn_core.batch.batch_run import BatchRun
from dyn_core.batch.cluster_runner import connected
from dyn_core.batch.interrupts import kept_interrupts
from dyn_core.batch.reduction import Reduction
from dyn_core.batch.storage.result_targets import ResultFiles
from dyn_core.batch.storage.row_sources import DaskSource
from dyn_core.engines import Program
from dyn_core.errors import SettingError
from dyn_core.recordings.progress import RowProgress


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
    the error says which. Input files are compared in some samples, not as a whole.

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
            arguments; default: the ufunc of `reduce`, or np.add. Values are combined in
            the order of the rows.
        count: Number of rows that the function generates.
        chunk_rows: Number of rows of a chunk; None: on engine native at most 64 MiB
            of inputs and results, or 1 GiB if only strips of them are in memory
            (generated inputs with a reduction, mapped inputs with a reduction or .npy
            results); on other engines about 512 or 4096 rows.
        scheduler: "threads" of this process; "processes" of this machine; the address
            of a Dask scheduler (tcp://host:8786), or a distributed.Client.
        workers: Number of threads or processes; None: threads of the Program, else all
            cores.
        journal: Path of the journal; None: beside a result file. A reduction, a URL and
            arrays of the caller have a journal only with a path.
        resume: Whether to continue the run of an existing journal; False: start anew.
        progress: Whether a terminal shows rows, rate and remaining time after two
            seconds; or a function that is called with the rows done and all rows.

    Returns:
        The results: an array, or a named tuple of several; for a reduction its value.
        With status=True a pair with the FailedRows.

    Raises:
        ShapeError, SettingError: An argument does not fit.
        BatchError: The journal is of another run or damaged, a worker would compute
            other bits, or a file or the cluster is lost.
        RowError: Rows failed; has their indices. Finished chunks stay in the journal.
        UnsupportedError: The extra `cluster` is needed, and not installed.
    """
    workers = arguments.checked_workers(scheduler, workers, program)
    rows = arguments.checked_rows(program, args, named, count)
    reduction = None if reduce is None else Reduction(reduce, combine)
    if reduction is None and combine is not None:
        raise SettingError("combine is for reduce; valid: both, or none", "combine")
    files = _files(out, program, reduction)
    arguments.require_other_files(rows, files)
    bar = _progress(rows.count, progress)
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
        bar_show = open_things.enter_context(bar)

        def show(before: int, done: int) -> None:
            bar_show(before, done)
            check()

        return run.results(client, workers, show)


def _files(
    out: Any, program: Program[Any], reduction: Reduction | None
) -> ResultFiles | None:
    """Return the result files if `out` is a path, else None.

    Raises SettingError if `out` is not valid, has no folder, or is given for a
    reduction, and UnsupportedError if a library for the path is not installed.
    """
    if reduction is not None and out is not None:
        message = "a reduction returns its value; valid: journal= to resume it, no out"
        raise SettingError(message, "out")
    if not isinstance(out, str | os.PathLike):
        return None
    files = ResultFiles(os.fspath(out), program.outputs)
    files.require()
    return files


@contextmanager
def _progress(count: int, wanted: Any) -> Iterator[Callable[[int, int], Any]]:
    """Context manager of a function (rows done before this run, rows done).

    Args:
        count: Number of rows of the batch.
        wanted: Whether a terminal shows the progress, or a function that is called with
            the rows done and all rows.

    Raises:
        SettingError: `wanted` is neither a bool nor a function.
    """
    if callable(wanted):
        yield lambda before, done: wanted(done, count)
        return
    if not isinstance(wanted, bool):
        message = "valid: True, False, a function (rows done, all rows)"
        raise SettingError(f"progress is {wanted!r}; {message}", "progress")
    line = RowProgress(count, wanted)
    try:
        yield lambda before, done: line.show(done, before)
    finally:
        line.end()
