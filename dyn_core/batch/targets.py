"""Where the results of a batch go: memory, memory-mapped files, zarr, or nowhere."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dyn_core.batch.libraries import library, made_by
from dyn_core.batch.sources import Reference, referred, zarr_place, zarr_rows
from dyn_core.engines.arrays import check_out
from dyn_core.errors import BatchError, SettingError, ShapeError
from dyn_core.problems import Port

VALID = (
    "None for memory, a path ending in .npy or .zarr, a folder for several outputs,"
    " arrays, zarr arrays"
)


class Targets:
    """Arrays for all outputs of a batch; without arrays, results are only reduced.

    Attributes:
        arrays: One for each output: NumPy or zarr arrays.
        grain: Rows that must be written together.
    """

    def __init__(self, arrays: Sequence[Any], files: Sequence[str] = ()) -> None:
        self.arrays = tuple(arrays)
        self._files = tuple(files)  # mapped ones that we made
        stored = [zarr_rows(x) for x in arrays if not isinstance(x, np.ndarray)]
        self.grain = int(np.lcm.reduce(stored)) if stored else 1

    def views(self, first: int, last: int) -> list[np.ndarray] | None:
        """Return the memory of some rows, None where there is none for all outputs."""
        if not self.arrays or not all(isinstance(x, np.ndarray) for x in self.arrays):
            return None
        return [x[first:last] for x in self.arrays]

    def write(self, first: int, last: int, results: Sequence[np.ndarray]) -> None:
        """Write results of some rows."""
        for array, result in zip(self.arrays, results, strict=True):
            array[first:last] = result

    def references(self) -> list[Reference] | None:
        """Return how another process finds the arrays; None if it cannot."""
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
        """Have the system write what it keeps of mapped files."""
        for x in self.arrays:
            if isinstance(x, np.memmap):
                x.flush()


def targets_of(references: Sequence[Reference]) -> Targets:
    """Return the arrays of another process.

    Raises:
        OSError: They cannot be seen here.
    """
    return Targets([referred(x, "r+") for x in references])


def in_memory(ports: Sequence[Port], count: int, dtype: np.dtype) -> Targets:
    """Return new arrays."""
    return Targets([np.empty((count, *port.shape), dtype) for port in ports])


def given_arrays(
    out: Any, ports: Sequence[Port], count: int, dtype: np.dtype
) -> Targets:
    """Return the arrays of `out`, checked.

    Raises:
        ShapeError: They do not fit exactly.
        SettingError: They are no arrays.
    """
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

    Attributes:
        path: That of one output's file, or of the folder or group of several.
        stored: Whether they are zarr arrays.
        names: File of each output.
    """

    def __init__(self, path: str, ports: Sequence[Port]) -> None:
        self.path, self.ports = os.path.abspath(path), tuple(ports)
        ending = Path(path).suffix
        self.stored = ending == ".zarr"
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
            self.path if one else os.path.join(self.path, port.name + tail)
            for port in ports
        ]

    def exists(self) -> bool:
        """Return whether something is there already."""
        return any(map(os.path.lexists, self.names))

    def require(self) -> None:
        """Require the folder around it, and zarr where it is in that format.

        Raises:
            SettingError: There is no such folder.
            UnsupportedError: zarr is not installed.
        """
        if self.stored:
            library("zarr", "a result in zarr's format")
        folder = os.path.dirname(self.path)
        if not os.path.isdir(folder):
            raise SettingError(f"out: there is no folder '{folder}'", "out")

    def create(self, count: int, dtype: np.dtype, chunk_rows: int) -> Targets:
        """Make the files, with room for all rows.

        Raises:
            BatchError: There is no room, or the place may not be written.
        """
        try:
            return self._create(count, dtype, chunk_rows)
        except OSError as error:
            raise BatchError(f"out: '{self.path}' cannot be made: {error}") from error

    def _create(self, count: int, dtype: np.dtype, chunk_rows: int) -> Targets:
        for name in self.names:
            _remove(name)
        shapes = [(count, *port.shape) for port in self.ports]
        if self.stored:
            zarr = library("zarr", "a result in zarr's format")
            if self.names[0] != self.path:
                zarr.open_group(self.path, mode="a")
            return Targets(
                [
                    zarr.open_array(
                        name, mode="w", shape=shape, dtype=str(dtype),
                        chunks=(max(min(chunk_rows, count), 1), *shape[1:]),
                    )
                    for name, shape in zip(self.names, shapes, strict=True)
                ]
            )  # fmt: skip
        if self.names[0] != self.path:
            os.makedirs(self.path, exist_ok=True)
        arrays = [
            np.lib.format.open_memmap(name, "w+", dtype, shape)
            for name, shape in zip(self.names, shapes, strict=True)
        ]
        for name in self.names:
            _reserve(name)
        return Targets(arrays, self.names)

    def open(self, count: int, dtype: np.dtype) -> Targets:
        """Open the files of a run that is resumed.

        Raises:
            BatchError: One of them is not what that run made.
        """
        arrays: list[Any] = []
        for port, name in zip(self.ports, self.names, strict=True):
            try:
                if self.stored:
                    zarr = library("zarr", "a result in zarr's format")
                    array = zarr.open_array(name, mode="r+")
                else:
                    array = np.lib.format.open_memmap(name, "r+")
            except Exception as error:  # each release of zarr has its own
                raise BatchError(
                    f"'{name}' cannot be continued: {error}; valid: resume=False begins"
                    " anew"
                ) from error
            if array.shape != (count, *port.shape) or array.dtype != dtype:
                raise BatchError(
                    f"'{name}' is {array.dtype} of shape {array.shape}, not what its"
                    " journal says; valid: resume=False begins anew"
                )
            arrays.append(array)
        return Targets(arrays, () if self.stored else self.names)


def _remove(name: str) -> None:
    """Remove an older result; no folder but that of a zarr array.

    Raises:
        BatchError: It is another folder.
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
    """Take the room of a file now: a full disk would end the process later."""
    if hasattr(os, "posix_fallocate"):
        with open(name, "r+b") as file:
            os.posix_fallocate(file.fileno(), 0, os.path.getsize(name))
