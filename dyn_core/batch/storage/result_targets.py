"""Destinations of the results of a batch: memory, mapped files or zarr arrays."""

from __future__ import annotations

import os
import re
import shutil
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dyn_core.batch.storage.cluster_libraries import library, made_by
from dyn_core.batch.storage.row_sources import (
    Reference,
    referred,
    zarr_place,
    zarr_rows,
)
from dyn_core.engines.arrays import check_out
from dyn_core.errors import (
    BatchError,
    SettingError,
    ShapeError,
    UnsupportedError,
    warn,
)
from dyn_core.problems import Port

VALID = (
    "None for memory, a path ending in .npy or .zarr, a folder for several outputs, a"
    " URL ending in .zarr, arrays, zarr arrays"
)
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_PURPOSE = "a result in zarr's format"


def is_url(path: str) -> bool:
    """Return whether a path begins with a scheme, two characters or more, and ":/"."""
    return _URL.match(path) is not None


def checksums(arrays: Sequence[np.ndarray], before: Sequence[int]) -> tuple[int, ...]:
    """Return the CRC-32 of each array's bytes in C order, continued from `before`."""
    return tuple(
        zlib.crc32(np.ascontiguousarray(x), crc)  # type: ignore[arg-type]
        for x, crc in zip(arrays, before, strict=True)
    )


class Targets:
    """Arrays for all outputs of a batch.

    Attributes:
        arrays: NumPy or zarr array of each output, (rows, ...).
        grain: Number of rows that must be written together, those of a file of a zarr
            array; 1 without one.

    Args:
        arrays: One array for each output.
        files: Paths of the arrays if they are memory-mapped files made by ResultFiles,
            else empty.
    """

    def __init__(self, arrays: Sequence[Any], files: Sequence[str] = ()) -> None:
        self.arrays = tuple(arrays)
        self._files = tuple(files)  # paths of mapped files made here
        stored = [zarr_rows(x) for x in arrays if not isinstance(x, np.ndarray)]
        self.grain = int(np.lcm.reduce(stored)) if stored else 1

    def views(self, first: int, last: int) -> list[np.ndarray] | None:
        """Return writable views of rows first to last - 1, one for each output.

        None if there are no arrays, or one is a zarr array.
        """
        if not self.arrays or not all(isinstance(x, np.ndarray) for x in self.arrays):
            return None
        return [x[first:last] for x in self.arrays]

    def write(self, first: int, last: int, results: Sequence[np.ndarray]) -> None:
        """Write the results of rows first to last - 1.

        Args:
            first, last: Range of the rows, last excluded.
            results: One array (last - first, *port.shape) for each output.

        Raises:
            BatchError: Writing fails, such as on a full disk, or for arrays that do not
                fit.
        """
        try:
            for array, result in zip(self.arrays, results, strict=True):
                array[first:last] = result
        except Exception as error:  # the type depends on store and release
            raise BatchError(
                f"out: rows {first} to {last - 1} cannot be written: {error}; what is"
                " done is kept; valid: the same call where they can, or another path"
            ) from error

    def sums(self, first: int, last: int) -> tuple[int, ...] | None:
        """Return the CRC-32 of these rows of each output; None if they cannot be read.

        Args:
            first, last: Range of the rows, last excluded.
        """
        try:
            rows = [np.asarray(x[first:last]) for x in self.arrays]
        except Exception:  # the type depends on codec and release
            return None
        return checksums(rows, (0,) * len(rows))

    def references(self) -> list[Reference] | None:
        """Return a reference of each array for other processes, in the order of arrays.

        It is ("memmap", file, offset [bytes], dtype, shape, strides), ("zarr", folder)
        or ("zarr of a store", array). None without arrays, or if an array is not in a
        file made here, a zarr folder, or a store of fsspec or obstore outside of this
        process.
        """
        found_by: list[Reference | None] = []
        for k, x in enumerate(self.arrays):
            if not isinstance(x, np.ndarray):
                found_by.append(zarr_place(x))
            elif self._files:
                facts = x.offset, x.dtype.str, x.shape, x.strides  # type: ignore[attr-defined]
                found_by.append(("memmap", self._files[k], *facts))
            else:
                found_by.append(None)
        places = [x for x in found_by if x is not None]
        return places if places and len(places) == len(found_by) else None

    def flush(self) -> None:
        """Flush memory-mapped files to disk; other arrays are left alone."""
        for x in self.arrays:
            if isinstance(x, np.memmap):
                x.flush()


def targets_of(references: Sequence[Reference]) -> Targets:
    """Return the Targets that another process described by references.

    OSError, UnsupportedError: an array cannot be opened here.
    """
    return Targets([referred(x, "r+") for x in references])


def in_memory(ports: Sequence[Port], count: int, dtype: np.dtype) -> Targets:
    """Return Targets of new, uninitialised arrays (count, *port.shape)."""
    return Targets([np.empty((count, *port.shape), dtype) for port in ports])


def given_arrays(
    out: Any, ports: Sequence[Port], count: int, dtype: np.dtype
) -> Targets:
    """Return Targets of the array or arrays of `out`; refuse what does not fit."""
    arrays = [out] if len(ports) == 1 and not isinstance(out, tuple | list) else out
    if not isinstance(arrays, tuple | list):
        raise SettingError(f"out is {type(out).__name__}; valid: {VALID}", "out")
    if len(arrays) != len(ports):
        raise ShapeError("out", f"{len(ports)} arrays", str(len(arrays)))
    for port, array in zip(ports, arrays, strict=True):
        shape = (count, *port.shape)
        if not made_by(array, "zarr"):
            check_out(port, shape, array, dtype)
        elif tuple(array.shape) != shape or array.dtype != dtype:
            got = f"{array.dtype} of shape {tuple(array.shape)}"
            raise ShapeError(f"out {port.name}", f"{dtype} of shape {shape}", got)
    return Targets(arrays)


class ResultFiles:
    """Files that results are written to.

    `path` ends in .zarr, also as a URL, which zarr opens (`remote`), in .npy for one
    output, or is a folder without a suffix. `stored`: the files are zarr arrays.
    `names` has the path or URL of each output's file.
    """

    def __init__(self, path: str, ports: Sequence[Port]) -> None:
        self.remote, self.ports = is_url(path), tuple(ports)
        self.path = path if self.remote else os.path.abspath(path)
        ending = Path(path).suffix
        self.stored = ending == ".zarr"
        if self.remote and (not self.stored or "://" not in path):
            valid = "a URL of zarr, such as s3://bucket/x.zarr; a path of this machine"
            raise SettingError(f"out is the URL '{path}'; valid: {valid}", "out")
        if ending not in (".npy", ".zarr", ""):
            raise SettingError(f"out is '{path}'; valid: {VALID}", "out")
        if ending == ".npy" and len(ports) > 1:
            names = ", ".join(port.name for port in ports)
            raise SettingError(
                f"out is '{path}', and there are several outputs ({names}); valid: a"
                " folder, a path ending in .zarr",
                "out",
            )
        tail = "" if self.stored else ".npy"
        one = ending == ".npy" or (self.stored and len(ports) == 1)
        self.names = [
            self.path if one else f"{self.path}{'/' if self.remote else os.sep}{name}"
            for name in (port.name + tail for port in ports)
        ]

    def exists(self) -> bool:
        """Return whether the file of any output, or the zarr store of a URL, exists."""
        if not self.remote:
            return any(map(os.path.lexists, self.names))
        store, place = self._store()
        try:
            return bool(store.exists(place))
        except Exception as error:  # the type depends on the protocol
            raise BatchError(f"out: '{self.path}' cannot be read: {error}") from error

    def _store(self) -> tuple[Any, str]:
        """Return (file system, path) of a URL, by fsspec."""
        fsspec = library("fsspec", f"out='{self.path}'")
        try:
            store, place = fsspec.core.url_to_fs(self.path)
        except Exception as error:  # ImportError, ValueError, or of the protocol
            raise UnsupportedError(
                f"out: the URL '{self.path}' cannot be opened: {error}; valid: a"
                " protocol of fsspec with its library, such as s3fs for s3://; a path"
            ) from error
        return store, str(place)

    def require(self) -> None:
        """Check that the folder of `path` or a URL's library exists; zarr if needed."""
        if self.stored:
            library("zarr", _PURPOSE)
        if self.remote:
            self._store()
            return
        folder = os.path.dirname(self.path)
        if not os.path.isdir(folder):
            raise SettingError(f"out: there is no folder '{folder}'", "out")

    def create(self, count: int, dtype: np.dtype, chunk_rows: int) -> Targets:
        """Create the files for `count` rows; older files of these names are removed.

        Numbers are not initialised. A folder or group `path` is made, with its parents;
        the folder of a single file must exist. A file of a zarr array has `chunk_rows`
        rows.
        """
        shapes = [(count, *port.shape) for port in self.ports]
        try:
            for name in () if self.remote else self.names:
                _remove(name)
            if self.stored:
                return self._stored(shapes, dtype, chunk_rows)
            return self._mapped(shapes, dtype)
        except OSError as error:
            raise BatchError(f"out: '{self.path}' cannot be made: {error}") from error

    def _stored(
        self, shapes: Sequence[tuple[int, ...]], dtype: np.dtype, chunk_rows: int
    ) -> Targets:
        """Create zarr arrays whose files have the rows of one chunk each.

        Existing arrays of these names are replaced. The group of several arrays is made
        if it is missing.
        """
        zarr = library("zarr", _PURPOSE)
        try:
            if self.names[0] != self.path:
                zarr.open_group(self.path, mode="a")
            return Targets(
                [
                    zarr.open_array(
                        name, mode="w", shape=shape, dtype=str(dtype),
                        chunks=(_rows_of_a_file(chunk_rows, shape[0]), *shape[1:]),
                    )
                    for name, shape in zip(self.names, shapes, strict=True)
                ]
            )  # fmt: skip
        except Exception as error:  # depends on protocol and release of zarr
            raise BatchError(f"out: '{self.path}' cannot be made: {error}") from error

    def _mapped(self, shapes: Sequence[tuple[int, ...]], dtype: np.dtype) -> Targets:
        """Create .npy files, memory-mapped, with disk space reserved (OSError: full).

        Existing files are overwritten.
        """
        if self.names[0] != self.path:
            os.makedirs(self.path, exist_ok=True)
        arrays = [
            np.lib.format.open_memmap(name, "w+", dtype, shape)
            for name, shape in zip(self.names, shapes, strict=True)
        ]
        for name in self.names:
            _reserve(name)
        return Targets(arrays, self.names)

    def open(self, count: int, dtype: np.dtype, chunk_rows: int) -> Targets:
        """Open the files of a resumed run as Targets; refuse what does not fit.

        A .npy file of another length than its header says is set to that length, with a
        warning; missing numbers become 0. A zarr array's file has `chunk_rows` rows.
        """
        arrays: list[Any] = []
        for port, name in zip(self.ports, self.names, strict=True):
            shape = (count, *port.shape)
            try:
                if self.stored:
                    array = library("zarr", _PURPOSE).open_array(name, mode="r+")
                    same = zarr_rows(array) == _rows_of_a_file(chunk_rows, count)
                    kind = array.shape, array.dtype
                else:
                    kind, same, start = _npy_header(name)
            except Exception as error:  # the type depends on the release of zarr
                raise BatchError(
                    f"'{name}' cannot be continued: {error}; valid: resume=False begins"
                    " anew"
                ) from error
            if kind != (shape, dtype) or not same:
                raise BatchError(
                    f"'{name}' is {kind[1]} of shape {kind[0]}, not what its journal"
                    " says; valid: resume=False begins anew"
                )
            if not self.stored:
                _resize(name, start + int(np.prod(shape)) * dtype.itemsize)
                array = np.lib.format.open_memmap(name, "r+")
            arrays.append(array)
        return Targets(arrays, () if self.stored else self.names)


def _rows_of_a_file(chunk_rows: int, count: int) -> int:
    """Return the rows of a zarr array's file."""
    return max(min(chunk_rows, count), 1)


def _npy_header(name: str) -> tuple[tuple[Any, Any], bool, int]:
    """Return ((shape, dtype), C order, offset [bytes]) of a .npy file.

    OSError or ValueError: the file cannot be read and written, or is no such file.
    """
    with open(name, "r+b") as file:
        np.lib.format.read_magic(file)
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
        return (shape, dtype), not fortran, file.tell()


def _resize(name: str, size: int) -> None:
    """Set the size of an existing file [bytes], with a warning if it changes.

    A longer file is cut, a shorter one filled with zeros.
    """
    before = os.path.getsize(name)
    if before == size:
        return
    warn(f"'{name}' is {before} bytes long, its journal says {size}: it was changed")
    try:
        os.truncate(name, size)
        _reserve(name)
    except OSError as error:
        raise BatchError(f"out: '{name}' cannot be made: {error}") from error


def _remove(name: str) -> None:
    """Remove an older result at `name`: file, empty folder, or zarr array or group.

    A folder with other files is refused.
    """
    marks = ("zarr.json", ".zarray", ".zgroup")
    if not os.path.isdir(name):
        if os.path.lexists(name):
            os.remove(name)
    elif any(os.path.exists(os.path.join(name, mark)) for mark in marks):
        shutil.rmtree(name)
    elif os.listdir(name):
        message = f"out: '{name}' is a folder with other files; valid: another path"
        raise BatchError(message)
    else:
        os.rmdir(name)


def _reserve(name: str) -> None:
    """Reserve the disk space of the file `name`, where there is posix_fallocate.

    Writing to a mapped file on a full disk would kill the process; here it is an
    OSError.
    """
    if hasattr(os, "posix_fallocate"):
        with open(name, "r+b") as file:
            os.posix_fallocate(file.fileno(), 0, os.path.getsize(name))
