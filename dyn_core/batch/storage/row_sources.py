"""Sources of the inputs' rows: arrays, memory maps, zarr and Dask arrays.

Errors of these libraries while rows are read pass through.
"""

from __future__ import annotations

import hashlib
import os
from typing import Any

import numpy as np

from dyn_core.batch.storage.cluster_libraries import library, made_by
from dyn_core.engines.arrays import as_array
from dyn_core.errors import ShapeError
from dyn_core.problems import Port
from dyn_core.validation import shown

SAMPLES = 64  # row ranges that the fingerprint of an array in memory reads
STORED_SAMPLES = 3  # the same for an array that is read from a store
SAMPLE_ROWS = 64  # rows of each range

Reference = tuple[Any, ...]  # locates an array for processes that see its file


class RowSource:
    """An input of a batch, whose rows can be read piece by piece.

    Attributes:
        array: Array with the rows, or the value that all rows share.
        rows: Number of rows; None for a value that all rows share.
        row_bytes: Size of a stored row [bytes].
        grain: Number of rows that are read together most efficiently.
        samples: Number of row ranges that the fingerprint reads.
        mapped: Whether rows are read from a file without allocating memory.
        file: Path or URL of the file; empty for memory, and for computed rows.
    """

    grain = 1
    samples = SAMPLES
    mapped = False
    file = ""

    def __init__(self, port: Port, array: Any) -> None:
        self.name, self.array = port.name, array
        self.dtype = np.dtype(array.dtype)
        shape = tuple(array.shape)
        if self.dtype.kind not in "fiub":
            raise ShapeError(port.name, "real numbers", f"dtype {self.dtype}")
        dims = len(port.shape)
        if len(shape) not in (dims, dims + 1) or shape[len(shape) - dims :] != (
            *port.shape,
        ):
            batch = ", ".join(["batch", *map(str, port.shape)])
            raise ShapeError(port.name, f"shape {port.shape} or ({batch})", f"{shape}")
        self.rows = shape[0] if len(shape) > dims else None
        self.row_bytes = self.dtype.itemsize * port.size

    def load(self, first: int, last: int) -> np.ndarray:
        """Return rows first to last - 1 as an array or view; a shared value whole."""
        return self.array if self.rows is None else self.array[first:last]

    def reference(self) -> Reference | None:
        """Return the Reference for another process; None: the rows must be sent."""
        return None

    def fingerprint(self) -> str:
        """Return a digest of sampled rows, or of all numbers of a shared value.

        Up to `samples` ranges of 64 rows, evenly spread, are read; others go unnoticed.
        """
        digest = hashlib.sha256()
        if self.rows is None:
            digest.update(np.ascontiguousarray(self.load(0, 0)).tobytes())
            return digest.hexdigest()[:16]
        last = max(self.rows - SAMPLE_ROWS, 0)
        for first in sorted({*np.linspace(0, last, self.samples).astype(int).tolist()}):
            rows = self.load(first, min(first + SAMPLE_ROWS, self.rows))
            digest.update(np.ascontiguousarray(rows).tobytes())
        return digest.hexdigest()[:16]

    def facts(self) -> dict[str, Any]:
        """Return "shape", "dtype" and "content", the fingerprint, for the journal."""
        return {
            "shape": list(self.array.shape),
            "dtype": str(self.dtype),
            "content": self.fingerprint(),
        }


class MappedSource(RowSource):
    """Rows of a memory-mapped file: `array` is the map `root`, or a view of it."""

    mapped = True

    def __init__(self, port: Port, array: Any) -> None:
        super().__init__(port, array)
        self.root = array
        while isinstance(self.root.base, np.memmap):
            self.root = self.root.base
        name = self.root.filename
        self.file = "" if name is None else os.path.abspath(name)

    def reference(self) -> Reference | None:
        """Return "memmap", file, offset [bytes], dtype, shape and strides, or None."""
        array, root = self.array, self.root
        place = [x.__array_interface__["data"][0] for x in (array, root)]
        if min(array.strides, default=0) < 0 or not self.file:
            return None
        offset = root.offset + place[0] - place[1]
        return "memmap", self.file, offset, array.dtype.str, array.shape, array.strides


class ZarrSource(RowSource):
    """Rows of a zarr array."""

    samples = STORED_SAMPLES

    def __init__(self, port: Port, array: Any) -> None:
        super().__init__(port, array)
        self.grain = 1 if self.rows is None else zarr_rows(array)
        self.file = _zarr_file(array)

    def load(self, first: int, last: int) -> np.ndarray:
        """Return rows first to last - 1 from the store; all of a shared value."""
        part = self.array[...] if self.rows is None else self.array[first:last]
        return np.asarray(part)

    def reference(self) -> Reference | None:
        """Return the zarr_place of the array; None: the rows must be sent."""
        return zarr_place(self.array)


class DaskSource(RowSource):
    """Rows of a Dask array, computed when read by `scheduler`, a name or a Client."""

    samples = STORED_SAMPLES
    scheduler: Any = "synchronous"

    def __init__(self, port: Port, array: Any) -> None:
        if any(np.isnan(array.shape)):
            wanted = "known numbers of rows (array.compute_chunk_sizes())"
            raise ShapeError(port.name, wanted, f"shape {array.shape}")
        super().__init__(port, array)
        if self.rows:
            self.grain = max(array.chunks[0])

    def load(self, first: int, last: int) -> np.ndarray:
        """Return rows first to last - 1 from `scheduler`; all of a shared value."""
        part = self.array if self.rows is None else self.array[first:last]
        return np.asarray(part.compute(scheduler=self.scheduler))


def source(port: Port, value: Any, dtype: np.dtype, model: object = None) -> RowSource:
    """Return an input as a RowSource of the class that fits its type.

    Args:
        port: Port of the input.
        value: Array of any supported library, or nested lists of numbers.
        dtype: Type that lists and arrays of other libraries are converted to; NumPy
            (without a mask), zarr and Dask arrays keep theirs.
        model: System of the Program; labels of a table that are not its joints do not
            count.

    Raises:
        ShapeError: The value does not fit the Port, has masked entries, is the name of
            a file, or a table labelled by a robot's joints in another order.
    """
    if isinstance(value, str | os.PathLike):
        file = shown(os.fspath(value))
        wanted = f"an array, as np.load({file}, mmap_mode='r') of a file"
        raise ShapeError(port.name, wanted, f"the name {file}")
    if made_by(value, "zarr") and hasattr(value, "chunks"):
        return ZarrSource(port, value)
    if made_by(value, "dask") and hasattr(value, "chunks"):
        return DaskSource(port, value)
    if isinstance(value, np.memmap) and value.dtype.kind in "fiub":
        return MappedSource(port, value)
    if isinstance(value, np.ndarray) and not np.ma.isMaskedArray(value):
        return RowSource(port, value)  # converted only strip by strip
    return RowSource(port, as_array(port, value, dtype, model))


def zarr_rows(array: Any) -> int:
    """Return the number of rows of one file (shard or chunk) of a zarr array."""
    parts = getattr(array, "shards", None) or array.chunks
    return int(parts[0])


def _zarr_file(array: Any) -> str:
    """Return the path of a zarr array, or its URL in a store of fsspec; else ""."""
    store = array.store
    folder = getattr(store, "root", None) or getattr(store, "path", None)
    if not isinstance(folder, str | os.PathLike):
        return ""
    files = getattr(store, "fs", None)
    start: str = files.unstrip_protocol(folder) if files else os.path.abspath(folder)
    return os.path.join(start, getattr(array, "path", ""))


def zarr_place(array: Any) -> Reference | None:
    """Return ("zarr", path) of a zarr array in a local folder.

    It is ("zarr of a store", array) in a store of fsspec or obstore; None in others.
    """
    store = array.store
    if type(store).__name__ in ("LocalStore", "DirectoryStore", "NestedDirectoryStore"):
        return "zarr", _zarr_file(array)
    if type(store).__name__ in ("FSStore", "FsspecStore", "ObjectStore"):
        return None if _in_memory(store) else ("zarr of a store", array)
    return None


def _in_memory(store: Any) -> bool:
    """Return whether a zarr store of fsspec or obstore is memory of this process.

    False if unknown, and for stores of other kinds, even zarr's own MemoryStore.
    """
    inner = getattr(store, "fs", None) or getattr(store, "store", None)
    protocol = getattr(inner, "protocol", ())
    return "memory" in protocol or type(inner).__name__ == "MemoryStore"


def referred(reference: Reference, mode: str = "r") -> Any:
    """Return the array of a Reference: a NumPy array in a mapped file, or a zarr array.

    `mode` is "r" to read, "r+" to write as well; an array in a store of fsspec or
    obstore is returned as it is. OSError: the file or folder cannot be opened here.
    """
    kind, *parts = reference
    if kind == "memmap":
        name, offset, dtype, shape, strides = parts
        try:
            whole = np.memmap(name, np.uint8, mode)  # type: ignore[call-overload]
            rows = np.ndarray(shape, dtype, whole, offset, strides)
        except (TypeError, ValueError) as error:  # the file is too short
            raise OSError(f"{name}: {error}") from error
        return rows
    if kind == "zarr":
        zarr = library("zarr", "an array in zarr's format")
        try:
            return zarr.open_array(parts[0], mode=mode)
        except Exception as error:  # the type depends on the release of zarr
            raise OSError(f"{parts[0]}: {error}") from error
    return parts[0]


class SentSource:
    """Rows that come with each chunk, for a process that cannot read them itself.

    `rows` is the number of the whole batch; nothing is read, so that `row_bytes` is 0.
    """

    row_bytes, grain, mapped = 0, 1, False

    def __init__(self, name: str, rows: int) -> None:
        self.name, self.rows = name, rows

    def load(self, first: int, last: int) -> np.ndarray:
        """Raise UnseenRows always: the rows should have been sent with the chunk."""
        raise UnseenRows(self.name)


class UnseenRows(Exception):
    """Rows of an input, named by the argument, are in a file not seen here."""
