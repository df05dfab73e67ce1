"""Where the rows of a batch come from: arrays, memory maps, zarr, Dask, a function."""

from __future__ import annotations

import hashlib
import os
from typing import Any

import numpy as np

from dyn_core.batch.storage.cluster_libraries import library, made_by
from dyn_core.engines.arrays import as_array
from dyn_core.errors import ShapeError
from dyn_core.problems import Port

SAMPLES = 64  # places of an array in memory that its fingerprint reads
STORED_SAMPLES = 3  # places of one that must be read from a store
SAMPLE_ROWS = 64  # rows of each

Reference = tuple[Any, ...]  # how a process that sees the same files finds an array


class RowSource:
    """An input of a batch: rows that can be read piece by piece.

    Attributes:
        name: Of the Port.
        rows: How many there are; None for a value that all rows share.
        dtype, row_bytes: Of its numbers as they lie there, and of a row of them.
        grain: Rows that are best read together.
        samples: Places that its fingerprint reads.
        mapped: Whether a process reads them without taking memory.
        file: Where they lie; empty for memory, and for what is computed.
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
        """Return rows, in memory or in a file that is mapped; all of a shared value."""
        return self.array if self.rows is None else self.array[first:last]

    def reference(self) -> Reference | None:
        """Return how another process finds the rows; None where they must be sent."""
        return None

    def fingerprint(self) -> str:
        """Return digits that stand for the numbers, read in some places."""
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
        """Return what a journal keeps of it."""
        return {
            "shape": list(self.array.shape),
            "dtype": str(self.dtype),
            "content": self.fingerprint(),
        }


class MappedSource(RowSource):
    """Rows of a file that is mapped into memory."""

    mapped = True

    def __init__(self, port: Port, array: Any) -> None:
        super().__init__(port, array)
        self.root = array
        while isinstance(self.root.base, np.memmap):
            self.root = self.root.base
        name = self.root.filename
        self.file = "" if name is None else os.path.abspath(name)

    def reference(self) -> Reference | None:
        """Return file, place in it, and strides."""
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
        where = zarr_place(array)
        self.file = where[1] if where and where[0] == "zarr" else ""

    def load(self, first: int, last: int) -> np.ndarray:
        """Return rows, read and decompressed."""
        part = self.array[...] if self.rows is None else self.array[first:last]
        return np.asarray(part)

    def reference(self) -> Reference | None:
        """Return where it is stored."""
        return zarr_place(self.array)


class DaskSource(RowSource):
    """Rows of a Dask array: its scheduler here computes them when they are read.

    Attributes:
        scheduler: That of Dask, by name, or a Client.
    """

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
        """Return rows, computed."""
        part = self.array if self.rows is None else self.array[first:last]
        return np.asarray(part.compute(scheduler=self.scheduler))


def source(port: Port, value: Any, dtype: np.dtype) -> RowSource:
    """Return an input as a RowSource.

    Raises:
        ShapeError: It does not fit the Port.
    """
    if made_by(value, "zarr") and hasattr(value, "chunks"):
        return ZarrSource(port, value)
    if made_by(value, "dask") and hasattr(value, "chunks"):
        return DaskSource(port, value)
    if isinstance(value, np.memmap) and value.dtype.kind in "fiub":
        return MappedSource(port, value)
    if isinstance(value, np.ndarray) and not np.ma.isMaskedArray(value):
        return RowSource(port, value)  # of any strides and dtype: never converted whole
    return RowSource(port, as_array(port, value, dtype))


def zarr_rows(array: Any) -> int:
    """Return how many rows of a zarr array one file of it has."""
    parts = getattr(array, "shards", None) or array.chunks
    return int(parts[0])


def zarr_place(array: Any) -> Reference | None:
    """Return where a zarr array is stored, if other processes may see it."""
    store, path = array.store, getattr(array, "path", "")
    folder = getattr(store, "root", None) or getattr(store, "path", None)
    if type(store).__name__ in ("LocalStore", "DirectoryStore", "NestedDirectoryStore"):
        return "zarr", os.path.join(os.path.abspath(str(folder)), path)
    if type(store).__name__ in ("FSStore", "FsspecStore", "ObjectStore"):
        return None if _in_memory(store) else ("zarr of a store", array)
    return None


def _in_memory(store: Any) -> bool:
    """Return whether a store is memory of this process, which no other one sees."""
    inner = getattr(store, "fs", None) or getattr(store, "store", None)
    protocol = getattr(inner, "protocol", ())
    return "memory" in protocol or type(inner).__name__ == "MemoryStore"


def referred(reference: Reference, mode: str = "r") -> Any:
    """Return the array that a reference names, to read, or to write by mode "r+".

    Raises:
        OSError: This process does not see it.
    """
    kind, *parts = reference
    if kind == "memmap":
        name, offset, dtype, shape, strides = parts
        whole = np.memmap(name, np.uint8, mode)  # type: ignore[call-overload]
        try:
            rows = np.ndarray(shape, dtype, whole, offset, strides)
        except (TypeError, ValueError) as error:  # the file is shorter
            raise OSError(f"{name}: {error}") from error
        return rows
    if kind == "zarr":
        zarr = library("zarr", "an array in zarr's format")
        try:
            return zarr.open_array(parts[0], mode=mode)
        except Exception as error:  # each release has its own
            raise OSError(f"{parts[0]}: {error}") from error
    return parts[0]


class SentSource:
    """Rows that come with each chunk, in a process that cannot read them itself.

    Attributes:
        name, rows, row_bytes, grain, mapped: As of a RowSource.
    """

    row_bytes, grain, mapped = 0, 1, False

    def __init__(self, name: str, rows: int) -> None:
        self.name, self.rows = name, rows

    def load(self, first: int, last: int) -> np.ndarray:
        """Refuse: they were not sent.

        Raises:
            UnseenRows: Always.
        """
        raise UnseenRows(self.name)


class UnseenRows(Exception):
    """Rows lie in a file that this process does not see."""
