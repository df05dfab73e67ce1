"""The journal beside a result: what was asked, and which chunks are done.

The first line says what was asked; each other one names a chunk that is done, with the
rows that failed, the checksums of its results and, in a reduction, its value. A line is
written in one piece after the results of its chunk, so that a process that is killed
loses the chunks it was at, and nothing else; half a line at the end of the file is
dropped. Each line ends with a checksum of itself and of the mark of its run: a line
that is damaged, or of another journal, is refused.
"""

from __future__ import annotations

import json
import os
import secrets
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from dyn_core.batch.failed_rows import Run
from dyn_core.batch.program_facts import TITLES, fact_differences
from dyn_core.errors import BatchError

try:
    import fcntl
except ImportError:  # such as on Windows: nobody is kept from a run that goes on
    fcntl = None  # type: ignore[assignment]

FORMAT = 2
LONGEST = 1 << 20  # bytes of a first line
# What stands in the first line, and what it is called where it differs.
HEADER_TITLES = {
    "format": "format of the journal",
    **TITLES,
    "rows": "number of rows",
    "chunk_rows": "rows of a chunk",
    "outputs": "outputs",
    "reduction": "reduction",
}


class DoneChunk(NamedTuple):
    """What a journal says of a chunk that is done.

    Attributes:
        failed: Rows that failed.
        value: What its results were reduced to, as JSON keeps it.
        sums: Checksum of its results, one for each output; empty in a reduction.
    """

    failed: tuple[Run, ...]
    value: Any
    sums: tuple[int, ...]


class Journal:
    """The journal of a run; closed at its end.

    Attributes:
        path: File.
        header: What was asked.
        done: Chunks that are done.
    """

    def __init__(self, path: str, header: Mapping[str, Any]) -> None:
        self.path, self.header = os.path.abspath(path), dict(header)
        self.done: dict[int, DoneChunk] = {}
        self._file: Any = None

    @staticmethod
    def read_header(path: str) -> dict[str, Any] | None:
        """Return what the run was asked whose journal this is; None if there is none.

        Raises:
            BatchError: The file is no journal.
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
        """Begin anew: the file has a header, and no chunk is done."""
        self.header["token"] = secrets.token_hex(8)
        if os.path.exists(self.path):
            self._open()  # nobody writes it
            self.close()
        fresh = f"{self.path}.{self.header['token']}"
        try:
            with open(fresh, "wb") as file:
                file.write(_line(self.header, ""))
                file.flush()
                os.fsync(file.fileno())
            os.replace(fresh, self.path)
        except OSError as error:
            message = f"the journal '{self.path}' cannot be written: {error}"
            raise BatchError(message) from error
        self._open()

    def resume(self, kept: Mapping[str, Any]) -> None:
        """Continue the run whose header this is.

        Raises:
            BatchError: It was asked something else (says what), or it is going on.
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
        """Take over a chunk that is done."""
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
        """Note a chunk that is done: its results are written."""
        if k in self.done:
            raise BatchError(f"chunk {k} was done twice")
        self.done[k] = chunk
        self._file.write(_line([k, *chunk], self.header["token"]))

    def close(self) -> None:
        """Close the file; it stays."""
        if self._file is not None:
            self._file.close()


def _line(content: Any, mark: str) -> bytes:
    """Return a line of a journal: JSON, and a checksum of it and of a run's mark."""
    text = json.dumps(content)
    return f"{text} {zlib.crc32((mark + text).encode()):08x}\n".encode()


def _content(line: bytes, mark: str) -> Any:
    """Return the content of a line.

    Raises:
        ValueError: It is no whole line of that run.
    """
    text, _, end = line.rpartition(b" ")
    if end != b"%08x\n" % zlib.crc32(mark.encode() + text):
        raise ValueError("the checksum of a line differs")
    return json.loads(text)


def _differences(kept: Mapping[str, Any], asked: Mapping[str, Any]) -> Iterator[str]:
    """Return what two headers differ in, in words."""
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
    """Return the path of the journal of a result."""
    return os.path.abspath(path) + ".journal"
