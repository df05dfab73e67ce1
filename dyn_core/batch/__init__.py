"""Batch evaluation of a Program on more rows than fit in memory, chunk by chunk.

`map_rows(program, ...)`, or `program.map(...)`, runs a Program over NumPy arrays,
memory maps, zarr and Dask arrays, or over rows that a function generates, on threads,
on processes of this machine or on a Dask scheduler elsewhere. A journal beside the
result lets the same call continue after a kill. Dask and zarr are the extra `cluster`;
they are imported on first use.
"""

from dyn_core.batch.failed_rows import FailedRows
from dyn_core.batch.map_rows import map_rows

RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py

__all__ = ["FailedRows", "map_rows"]
