"""Readers of NPZ and CSV files that check sizes before they allocate memory.

A file with invalid content raises a SettingError that names the file and the reason in
plain language. The meaning of the arrays is checked by the callers.
"""

from __future__ import annotations

import csv
import math
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np

from dyn_core.errors import SettingError, one_line, why_unread
from dyn_core.validation.tables import shown

RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py

SIZE = 2**30  # bytes of arrays in any file; in a larger file, RATIO bytes for each byte
RATIO = 20
_UNITS = "# units:"
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 0x1  # flag of a member
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


class CsvTable(NamedTuple):
    """The columns of a CSV; `numbers` (rows, columns) are NaN where a cell is empty.

    `units` is empty if the file has no line `# units:`.
    """

    units: list[str]
    labels: list[str]
    numbers: np.ndarray


def npz_arrays(file: Path, valid: str) -> dict[str, np.ndarray]:
    """Return the arrays of an NPZ file by name, in the order of the file.

    `valid` describes the names in errors; others pass. Refused are damaged or encrypted
    files, Python objects, and arrays of more bytes than both SIZE and RATIO times the
    file's.
    """
    try:
        with file.open("rb") as start:
            if start.read(6) == np.lib.format.MAGIC_PREFIX:
                raise _refused(file, f"it holds one array; valid: {valid}")
        with zipfile.ZipFile(file) as archive:
            members = {x.filename.removesuffix(".npy"): x for x in archive.infolist()}
            _check_total(file, sum(x.file_size for x in members.values()))
            return {name: _array(file, archive, x) for name, x in members.items()}
    except OSError as error:
        raise SettingError(f"{file}: {why_unread(error)}", "file") from error
    except SettingError:
        raise
    except zipfile.BadZipFile as error:
        reason = "it is no archive of arrays, or a damaged one"
        raise _refused(file, reason) from error
    except MemoryError as error:
        raise _refused(file, "it needs more memory than there is") from error
    except Exception as error:  # of zipfile and NumPy, for a file of any content
        raise _refused(file, "it is damaged") from error


def _refused(file: Path, reason: str) -> SettingError:
    """Return, without raising it, the SettingError that a file has invalid content."""
    kind = file.suffix[1:].upper()
    message = one_line(f"{file}: no {kind} that can be read: {reason}")
    return SettingError(message, "file")


def _check_total(file: Path, total: int) -> None:
    """Refuse `total` bytes of arrays above SIZE and RATIO times the file's size."""
    limit = max(SIZE, RATIO * file.stat().st_size)
    if total > limit:
        reason = f"its arrays have {total} bytes; valid: at most {limit}"
        raise _refused(file, reason)


def _array(file: Path, archive: Any, member: zipfile.ZipInfo) -> np.ndarray:
    """Return one array of an NPZ, after checking its header against its size.

    Errors of zipfile and NumPy, such as KeyError for an unknown version of the format,
    pass through.
    """
    name = member.filename.removesuffix(".npy")
    if member.flag_bits & _ENCRYPTED:
        raise _refused(file, f"array {name} is encrypted")
    if member.compress_type not in _COMPRESSIONS:
        valid = "what numpy.savez and savez_compressed write"
        raise _refused(file, f"array {name} is compressed otherwise; valid: {valid}")
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        shape, _, dtype = _HEADERS[version](stream)
        rest = member.file_size - stream.tell()
    if dtype.hasobject:
        valid = "numbers, names"
        raise _refused(file, f"array {name} holds objects of Python; valid: {valid}")
    if min(shape, default=0) < 0 or math.prod(shape) * max(dtype.itemsize, 1) > rest:
        reason = f"array {name} should have shape {shape} and type {dtype.str}"
        raise _refused(file, f"{reason}, and has {rest} bytes")
    with archive.open(member) as stream:
        array: np.ndarray = np.lib.format.read_array(stream, allow_pickle=False)
    return array


def csv_table(file: Path) -> CsvTable:
    """Return the columns of a CSV: numbers below one line of labels.

    Empty lines, lines of blanks and a byte-order mark are skipped. Lines that begin
    with # are comments; `# units:` before the labels gives units, separated by commas.
    An empty cell becomes NaN; NaN and infinity pass.
    """
    with _csv_lines(file) as lines:
        units, labels = _head(lines)
        return CsvTable(units, labels, _numbers(lines, labels))


def csv_rows(file: Path) -> list[list[str]]:
    """Return the cells of a CSV as strings, row by row; rows may differ in length.

    Empty lines, lines of blanks and a byte-order mark are skipped, comments are not.
    """
    with _csv_lines(file) as lines:
        return list(_rows(lines))


def cell_number(cell: str) -> float:
    """Return the number in a cell of a CSV, or a typed one; it may be NaN or infinite.

    ValueError also for 1_0 or a digit of another script, which float() reads.
    """
    if "_" in cell or not cell.isascii():
        raise ValueError(f"{shown(cell)} is no number")
    return float(cell)


def _rows(lines: TextIO) -> Iterator[list[str]]:
    """Return the rows of a CSV; empty lines and lines of blanks are skipped."""
    return csv.reader(line for line in lines if line.strip())


@contextmanager
def _csv_lines(file: Path) -> Iterator[TextIO]:
    """Context manager that yields an open CSV as text; errors become SettingErrors.

    A byte-order mark is skipped. Errors of reading, and a ValueError of the body, which
    has the reason alone, get the name of the file.
    """
    try:
        with file.open(newline="", encoding="utf-8-sig") as lines:
            yield lines
    except OSError as error:
        raise SettingError(f"{file}: {why_unread(error)}", "file") from error
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise _refused(file, f"it is not in UTF-8: byte 0x{byte:02x}") from error
    except csv.Error as error:
        reason = "a line is longer than it may be, or has a character of value 0"
        raise _refused(file, reason) from error
    except ValueError as error:
        raise _refused(file, str(error)) from error


def _head(lines: TextIO) -> tuple[list[str], list[str]]:
    """Return (units, labels) of the columns; leave `lines` at the first row.

    Units are an empty list if there is no line `# units:`. ValueError without labels,
    with other separators than commas, or with another number of units.
    """
    units: list[str] = []
    while line := lines.readline():
        if line.startswith(_UNITS):
            units = [x.strip() for x in line.removeprefix(_UNITS).split(",")]
        elif line.strip() and not line.startswith("#"):
            labels = [label.strip() for label in next(csv.reader([line]))]
            if len(labels) == 1 and {*";\t"} & {*labels[0]}:
                raise ValueError(
                    "its columns are not separated by commas; valid: commas, and a"
                    " point in numbers"
                )
            if units and len(units) != len(labels):
                raise ValueError(f"{len(units)} units for {len(labels)} columns")
            return units, labels
    raise ValueError("it is empty")


def _numbers(lines: TextIO, labels: list[str]) -> np.ndarray:
    """Return the numbers below the labels, (rows, columns); an empty cell is NaN.

    Empty lines, lines of blanks and lines that begin with # are skipped. ValueError for
    no row, another number of cells than labels, or a cell that is no number.
    """
    start = lines.tell()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # there is no row
            # Not comments="#", which would cut a # inside of a row, too.
            rows = (line for line in lines if not line.startswith("#"))
            numbers = np.loadtxt(rows, delimiter=",", comments=None, ndmin=2)
    except ValueError:
        lines.seek(start)
        # np.loadtxt is quick, but refuses empty cells and does not name a bad cell.
        return _numbers_one_by_one(lines, labels)
    if not numbers.size:
        raise ValueError("it has no row")
    if numbers.shape[1] != len(labels):
        raise ValueError(f"row 1 has {numbers.shape[1]} cells for {len(labels)} labels")
    return numbers


def _numbers_one_by_one(lines: TextIO, labels: list[str]) -> np.ndarray:
    """Return the numbers as `_numbers`, cell by cell; an empty cell becomes NaN.

    A ValueError names the row, from 1, skipped lines not counted, and the label of a
    bad cell.
    """
    rows: list[list[float]] = []
    for row in _rows(lines):
        if row[0].startswith("#"):
            continue
        if len(row) != len(labels):
            raise ValueError(
                f"row {len(rows) + 1} has {len(row)} cells for {len(labels)} labels"
            )
        cells = []
        for label, cell in zip(labels, row, strict=True):
            try:
                cells.append(cell_number(cell) if cell.strip() else np.nan)
            except ValueError as error:
                raise ValueError(
                    f"row {len(rows) + 1}: {label} is {shown(cell)}, no number"
                ) from error
        rows.append(cells)
    if not rows:
        raise ValueError("it has no row")
    return np.array(rows)
