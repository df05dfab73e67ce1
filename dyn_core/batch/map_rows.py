"""A Program over all rows of a batch: the one call, whatever runs it."""

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

    Inputs are NumPy arrays, memory maps, zarr and Dask arrays, by position or name; one
    without the batch axis is shared by all rows. None is copied or converted whole. In
    their place one function of the row range, called as function(first, last), may
    return all inputs of these rows; which ranges it is asked for depends on the
    Program, count and chunk_rows alone.

    A result in a file has a journal beside it, with the name of the file and .journal.
    After Ctrl-C or a kill the same call does the chunks that are missing. It reads
    those that are done: rows that differ from their checksum in the journal are
    computed again, with a warning. A journal of other arguments, code or arithmetic is
    refused; the error says what differs. Files of inputs are compared in some places,
    not whole.

    Args:
        program: What is computed.
        args, named: Its inputs, or the function.
        out: None: new arrays in memory. A path ending in .npy, or in .zarr (a group for
            several outputs); another path is a folder with a .npy for each output. A
            URL that ends in .zarr, such as s3://bucket/x.zarr, which has a journal if
            `journal` names one. Or arrays, zarr arrays, of the right shape and dtype.
        status: Whether rows that fail are returned, instead of raising an error; their
            results are NaN, and a reduction leaves them out.
        reduce: Results are not kept but reduced: by a ufunc over the rows, such as
            np.maximum, or by a function of the results of some rows, which returns
            numbers or arrays (one, a tuple, a mapping).
        combine: How two such values become one, a ufunc or a function of two; default:
            that ufunc, or np.add. It is done in the order of the rows.
        count: How many rows the function can make.
        chunk_rows: Rows that are done at a time; None: 64 MiB of inputs and results,
            1 GiB where these are made and reduced, or in files that are mapped here.
        scheduler: "threads" of this process; "processes" of this machine; the address
            of a Dask scheduler (tcp://host:8786), or a distributed.Client.
        workers: Threads or processes; None: those of the Program, else all cores.
        journal: Its path, also for a reduction and for arrays that outlive the process.
        resume: Whether to continue where a journal is; False: begin anew.
        progress: Whether a terminal shows rows, rate and remaining time after two
            seconds; or a function that is called with the rows done and all rows.

    Returns:
        The results: an array, or a named tuple of several; of a reduction, its value.
        With status, also the FailedRows.

    Raises:
        ShapeError, SettingError: An argument does not fit.
        BatchError: The journal is of another run or damaged, a worker would compute
            other bits, or a file or the cluster is lost.
        RowError: Rows failed; has their indices. What is done is kept.
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
    """Return files for a path, None for all else."""
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
    """Return a function that is called with the rows done, before and now."""
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
