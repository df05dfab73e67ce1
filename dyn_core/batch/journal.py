"""The journal beside a result: the request, and the chunks that are finished.

The first line is a header with the request; each other line names a finished chunk,
with its failed rows, the checksums of its results and, in a reduction, its value. A
line is written in one piece after the results of its chunk, so that a process that is
killed loses only the chunks in progress; an incomplete last line is dropped. Each line
ends with a checksum of itself and of the token of its run: a line that is damaged, or
of another journal, is refused.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from dyn_core.batch.failed_rows import Run
from dyn_core.batch.program_facts import TITLES, fact_differences
from dyn_core.batch.storage.result_targets import is_url
from dyn_core.errors import BatchError, SettingError, why_unread

try:
    import fcntl
except ImportError:  # such as on Windows: a journal in use is not locked
    fcntl = None  # type: ignore[assignment]

FORMAT = 2
LONGEST = 1 << 20  # maximum length of a header [bytes]
# Keys of the header, and their titles in messages about differences.
HEADER_TITLES = {
    "format": "format of the journal",
    **TITLES,
    "rows": "number of rows",
    "chunk_rows": "rows of a chunk",
    "outputs": "outputs",
    "reduction": "reduction",
}


class DoneChunk(NamedTuple):
    """The entry of a journal for a finished chunk.

    `value` is the reduced value as JSON data, None without one; `sums` has the CRC-32
    of each output's results, empty in a reduction.
    """

    failed: tuple[Run, ...]
    value: Any
    sums: tuple[int, ...]


class Journal:
    """The journal of a run; its file is open between begin or resume, and close.

    An open file is locked for other processes, except on Windows.

    Attributes:
        path: Absolute path of the file.
        header: Request of the run as JSON data; after begin or resume also its "token".
        done: Finished chunks, by index; filled by resume and add.

    Args:
        path: Path of the file, which need not exist.
        header: Request of the run as JSON data, without "token".
    """

    def __init__(self, path: str, header: Mapping[str, Any]) -> None:
        self.path, self.header = os.path.abspath(path), dict(header)
        self.done: dict[int, DoneChunk] = {}
        self._file: Any = None

    @staticmethod
    def read_header(path: str) -> dict[str, Any] | None:
        """Return the header of the journal at `path`; None if there is no file.

        Its keys are format, library, program, model, arithmetic, rows, chunk_rows,
        outputs, reduction, inputs and token; only its checksum is checked.

        Raises:
            BatchError: The file cannot be read, is empty, or its first line is no
                header.
        """
        try:
            with open(path, "rb") as file:
                line = file.readline(LONGEST)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise BatchError(
                f"the journal '{path}' cannot be read: {error}; valid: another path"
            ) from error
        try:
            return dict(_content(line, ""))
        except ValueError as error:
            raise BatchError(
                f"'{path}' is no journal of a batch, or its first line is damaged;"
                " valid: another path, or resume=False, which replaces it"
            ) from error

    def begin(self) -> None:
        """Replace or create the file, with the header alone; keep it open and locked.

        A new random token is stored in `header`; `done` is not changed.

        Raises:
            BatchError: Another process writes the journal, or it cannot be written.
        """
        self.header["token"] = secrets.token_hex(8)
        if os.path.exists(self.path):
            self._open()  # raises if another process writes it
            self.close()
        fresh = f"{self.path}.{self.header['token']}"
        with _writing(self.path):
            with open(fresh, "wb") as file:
                file.write(_line(self.header, ""))
                file.flush()
                os.fsync(file.fileno())
            os.replace(fresh, self.path)
        self._open()

    def resume(self, kept: Mapping[str, Any]) -> None:
        """Continue a run: load its finished chunks into `done`, and keep the file open.

        An incomplete last line is cut off the file. `header` becomes a copy of `kept`.
        After an error the file may be open: call close.

        Args:
            kept: Header of the existing journal, see read_header.

        Raises:
            BatchError: The headers differ (says where), a line is damaged, another
                process writes the journal, or it cannot be written.
        """
        differences = list(_differences(kept, self.header))
        if differences:
            raise BatchError(
                f"the journal '{self.path}' is of another run:"
                f" {'; '.join(differences)}; valid: the same call, another path, or"
                " resume=False, which begins anew"
            )
        self.header = dict(kept)
        self._open()
        with _writing(self.path):
            end = 0
            self._file.seek(0)
            for number, line in enumerate(self._file):
                if not line.endswith(b"\n"):
                    break  # it was being written when the process was killed
                end += len(line)
                if number:
                    self._take(number, line)
            self._file.truncate(end)
            self._file.seek(end)

    def _take(self, number: int, line: bytes) -> None:
        """Add the finished chunk of a line to `done`; it replaces an equal index."""
        try:
            k, runs, value, sums = _content(line, self.header["token"])
            failed = tuple((a, b, str(why)) for a, b, why in runs)
            self.done[k] = DoneChunk(failed, value, tuple(sums))
        except ValueError as error:
            raise BatchError(
                f"the journal '{self.path}' is damaged in line {number + 1}; valid:"
                " resume=False, which begins anew"
            ) from error

    def _open(self) -> None:
        """Open the existing file for appending; lock it where there is fcntl."""
        with _writing(self.path):
            self._file = open(self.path, "r+b", buffering=0)
        if fcntl is not None:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                self._file.close()
                raise BatchError(
                    f"another process writes '{self.path}'; valid: another path"
                ) from error
        self._file.seek(0, os.SEEK_END)

    def add(self, k: int, chunk: DoneChunk) -> None:
        """Append a finished chunk to the file and to `done`.

        begin or resume must have run, and the results of the chunk must be written
        already. After an error `done` is unchanged.

        Args:
            k: Index of the chunk.
            chunk: Its entry.

        Raises:
            BatchError: The journal has chunk k already, or it cannot be written.
        """
        if k in self.done:
            raise BatchError(f"chunk {k} was done twice")
        line = _line([k, *chunk], self.header["token"])
        with _writing(self.path):
            if self._file.write(line) != len(line):  # its beginning fits on the disk
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.done[k] = chunk

    def close(self) -> None:
        """Close the file, which releases the lock; if none is open, nothing happens."""
        if self._file is not None:
            self._file.close()


@contextmanager
def _writing(path: str) -> Iterator[None]:
    """Context manager that turns an OSError in its block into a BatchError."""
    try:
        yield
    except OSError as error:
        raise BatchError(
            f"the journal '{path}' cannot be written: {why_unread(error)}; valid: the"
            " path of a file that may be written, on a disk with free space"
        ) from error


def _line(content: Any, mark: str) -> bytes:
    """Return a line: JSON, a space, a CRC-32 of `mark` and the JSON, a line end.

    `mark` is the token of the run, empty for the header.
    """
    text = json.dumps(content)
    return f"{text} {zlib.crc32((mark + text).encode()):08x}\n".encode()


def _content(line: bytes, mark: str) -> Any:
    """Return the JSON content of a line; ValueError: damaged, or of another `mark`."""
    text, _, end = line.rpartition(b" ")
    if end != b"%08x\n" % zlib.crc32(mark.encode() + text):
        raise ValueError("the checksum of a line differs")
    return json.loads(text)


def _differences(kept: Mapping[str, Any], asked: Mapping[str, Any]) -> Iterator[str]:
    """Iterate over the differences between two headers, in words; none if equal.

    Compared are the keys of HEADER_TITLES (all of a header but inputs and token), the
    names of the inputs, and of each input that both have the facts in `kept`.
    """
    yield from fact_differences(kept, asked, HEADER_TITLES)
    inputs = kept.get("inputs", {}), asked.get("inputs", {})
    for name in {**inputs[0], **inputs[1]}:
        before, now = (x.get(name) for x in inputs)
        if before is None or now is None:
            yield f"input {name}: {'missing' if now is None else 'new'} here"
            continue
        for fact in before:
            if before[fact] != now.get(fact):
                shown = "" if fact == "content" else f" {before[fact]} there,"
                other = "differs" if fact == "content" else f"{now.get(fact)} here"
                yield f"{fact} of the input {name}:{shown} {other}"


def beside(path: str) -> str:
    """Return the absolute path of a result file with .journal appended."""
    return os.path.abspath(path) + ".journal"


def journal_path(path: Any) -> str:
    """Return a journal's path as str; refuse a URL: no line can be appended there."""
    name = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(name, str) or is_url(name):
        what = "the URL " if isinstance(name, str) else ""
        message = f"journal is {what}{name!r}; valid: a path of this machine"
        raise SettingError(message, "journal")
    return name
