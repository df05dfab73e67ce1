"""Checks of the arguments of map_rows, made before anything is computed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dyn_core.batch.storage.batch_rows import BatchRows, GeneratedRows
from dyn_core.batch.storage.cluster_libraries import made_by
from dyn_core.batch.storage.result_targets import ResultFiles, Targets
from dyn_core.batch.storage.row_sources import source
from dyn_core.engines import Program
from dyn_core.engines.llvm.threads import count as thread_count
from dyn_core.errors import SettingError, ShapeError

VALID = (
    "'threads', 'processes', the address of a Dask scheduler such as tcp://host:8786, a"
    " distributed.Client"
)


def checked_workers(scheduler: Any, workers: Any, program: Program[Any]) -> int:
    """Return the number of threads or processes.

    For a Dask scheduler it is the number of threads of this process that check the
    finished chunks of a resumed run; the workers are the scheduler's own.

    Args:
        scheduler: "threads", "processes", the address of a Dask scheduler, or a
            distributed.Client.
        workers: Requested number; None: the threads of the Program, else all cores.
        program: Program that is evaluated.

    Raises:
        SettingError: `scheduler` is not valid, `workers` is not a whole number of at
            least 1, or `workers` is given for a Dask scheduler.
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
    """Return a setting as int; 1e9 is accepted.

    Raises SettingError if `value` is not a whole number of at least 1.
    """
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

    Args:
        program: Program that is evaluated.
        args, named: Inputs by position and by name, or one function of the row range.
        count: Number of rows that the function generates; None for arrays.

    Raises:
        ShapeError: An input does not fit its Port, no input has rows, the numbers of
            rows differ, or other inputs stand beside the function.
        SettingError: A function without `count`, or `count` without a function.
    """
    functions = [x for x in args if callable(x) and not hasattr(x, "dtype")]
    if not functions:
        if count is not None:
            message = "count is for a function of rows; arrays have their own number"
            raise SettingError(message, "count")
        values = program._bind(args, named)
        ports = zip(program.inputs, values, strict=True)
        return BatchRows([source(port, x, program.dtype) for port, x in ports])
    if len(args) > 1 or named:
        wanted = (
            "a function (first, last) that returns all inputs, and nothing beside it"
        )
        raise ShapeError("arguments", wanted, f"{len(args) + len(named)}")
    if count is None:
        message = "a function of rows needs count, the number of all rows"
        raise SettingError(message, "count")
    total = _whole("count", count)
    return GeneratedRows(functions[0], total, program.inputs, program._bind)


def checked_chunk_rows(
    asked: Any, usual: int, rows: BatchRows, targets_grain: int
) -> int:
    """Return the number of rows of a chunk.

    Args:
        asked: Argument chunk_rows of map_rows; None: `usual`.
        usual: Default number of rows of a chunk.
        rows: Inputs of the batch.
        targets_grain: Rows that each file of a zarr array in `out` has; 1 otherwise.

    Raises:
        SettingError: `asked` is not a whole number of at least 1; or it is below the
            number of all rows and no multiple of `targets_grain`, so that two chunks
            would write one file of a zarr array.
    """
    chunk = usual if asked is None else _whole("chunk_rows", asked)
    if chunk % targets_grain and chunk < rows.count:
        step = f"a multiple of {targets_grain}, the rows of a file of `out`"
        raise SettingError(f"chunk_rows is {chunk}; valid: {step}", "chunk_rows")
    return chunk


def require_other_files(rows: BatchRows, files: ResultFiles | None) -> None:
    """Raise SettingError if a result would be written to the file of an input."""
    for known in rows.sources if files is not None else ():
        for name in files.names if files is not None and known.file else ():
            if os.path.realpath(name) == os.path.realpath(known.file):
                message = f"out: '{name}' is the file of the input {known.name}"
                raise SettingError(f"{message}; valid: another path", "out")


def require_other_memory(rows: BatchRows, targets: Targets) -> None:
    """Raise ShapeError if a result array may share memory with an input."""
    for known in rows.sources:
        for array in targets.arrays:
            if array is known.array or (
                isinstance(array, np.ndarray)
                and isinstance(known.array, np.ndarray)
                and np.may_share_memory(array, known.array)
            ):
                wanted = "memory of its own: rows are computed in any order"
                raise ShapeError("out", wanted, f"that of the input {known.name}")
