"""The journal beside a result: what was asked, and which chunks are done.

The first line says what was asked; each other one names a chunk that is done, with the
rows that failed and, in a reduction, its value. A line is written in one piece after
the results of its chunk, so that a process that is killed loses the chunks it was at,
and nothing else; half a line at the end of the file is dropped.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from dyn_core.batch.failed_rows import Run
from dyn_core.errors import BatchError

try:
    import fcntl
except ImportError:  # such as on Windows: nobody is kept from a run that goes on
    fcntl = None  # type: ignore[assignment]

FORMAT = 1
# What stands in the first line, and what it is called where it differs.
TITLES = {
    "format": "format of the journal",
    "library": "release of dyn_ros",
    "program": "Program",
    "model": "robot",
    "rows": "number of rows",
    "chunk_rows": "rows of a chunk",
    "outputs": "outputs",
    "reduction": "reduction",
}


class Journal:
    """The journal of a run; closed at its end.

    Attributes:
        path: File.
        header: What was asked.
        done: Chunks that are done: rows that failed, and the value as it is kept.
    """

    def __init__(self, path: str, header: Mapping[str, Any]) -> None:
        self.path, self.header = os.path.abspath(path), dict(header)
        self.done: dict[int, tuple[tuple[Run, ...], Any]] = {}
        self._file: Any = None

    @staticmethod
    def read_header(path: str) -> dict[str, Any] | None:
        """Return what the run was asked whose journal this is; None if there is none.

        Raises:
            BatchError: The file is no journal.
        """
        try:
            with open(path, encoding="utf-8") as file:
                line = file.readline()
        except FileNotFoundError:
            return None
        except (OSError, UnicodeError) as error:
            raise BatchError(f"the journal '{path}' cannot be read: {error}") from error
        try:
            header = json.loads(line)
            whole = line.endswith("\n") and {"token", "chunk_rows"} <= header.keys()
        except (ValueError, AttributeError):
            whole = False
        if not whole:
            raise BatchError(f"'{path}' is no journal of a batch; valid: another path")
        return dict(header)

    def begin(self) -> None:
        """Begin anew: the file has a header, and no chunk is done."""
        self.header["token"] = secrets.token_hex(8)
        if os.path.exists(self.path):
            self._open()  # nobody writes it
            self.close()
        fresh = f"{self.path}.{self.header['token']}"
        try:
            with open(fresh, "w", encoding="utf-8") as file:
                file.write(json.dumps(self.header) + "\n")
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
            k, runs, value = json.loads(line)
            self.done[int(k)] = tuple((a, b, str(why)) for a, b, why in runs), value
        except (ValueError, TypeError) as error:
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

    def add(self, k: int, failed: tuple[Run, ...], value: Any) -> None:
        """Note a chunk that is done: its results are written."""
        if k in self.done:
            raise BatchError(f"chunk {k} was done twice")
        self.done[k] = failed, value
        self._file.write((json.dumps([k, failed, value]) + "\n").encode())

    def close(self) -> None:
        """Close the file; it stays."""
        if self._file is not None:
            self._file.close()


def _differences(kept: Mapping[str, Any], asked: Mapping[str, Any]) -> Iterator[str]:
    """Return what two headers differ in, in words."""
    for key, title in TITLES.items():
        if kept.get(key) != asked.get(key):
            yield f"{title}: {kept.get(key)} there, {asked.get(key)} here"
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


def dyn_ros_version() -> str:
    """Return the release of this library."""
    try:
        return version("dyn_ros")
    except PackageNotFoundError:
        return "unknown"
