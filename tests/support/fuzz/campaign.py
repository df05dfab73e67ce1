"""Many files in a row: counts, failures by cause, and how far it has come."""

from __future__ import annotations

import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from fuzz.doors import DOORS
from fuzz.files import draw_file
from fuzz.fuzz_file import FuzzFile
from fuzz.minimise import BUDGET, minimised
from fuzz.trial import LIMIT, Failure, try_file

_SHOWN = 4000  # characters of a file that are printed


@dataclass
class Campaign:
    """Random files of one kind, from a seed.

    Attributes:
        kind: urdf, mjcf, sidecar, ...: one of KINDS.
        count: How many files.
        seed: Seed of all of them.
        limit: CPU time for one file [s].
        budget: CPU time in which a file that fails is made smaller [s].
        folder: Where files that fail are written; None: nowhere.
        outcomes: How many were loaded and refused.
        failures: The first failure of each cause, and its file, made smaller.
        repeated: Failures by cause.
        slowest: Largest CPU time of a file, and its number [s].
    """

    kind: str
    count: int
    seed: int = 0
    limit: float = LIMIT
    budget: float = BUDGET
    folder: Path | None = None
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[Failure, FuzzFile]] = field(default_factory=list)
    repeated: Counter[Any] = field(default_factory=Counter)
    slowest: tuple[float, int] = (0.0, 0)

    def run(self, progress: TextIO | None = None) -> None:
        """Try all files; print failures, and on a terminal how far it has come."""
        DOORS[self.kind].prepare()
        for number in range(self.count):
            file = draw_file(self.kind, self.seed, number)
            start = time.process_time()
            outcome, failure = try_file(file, self.limit)
            self.slowest = max(self.slowest, (time.process_time() - start, number))
            self.outcomes[outcome] += 1
            if failure is not None:
                self._take(file, failure)
            if progress is not None and number % 20 == 0:
                line = f"{self.kind} {number}/{self.count}, {self.failed} failures"
                print(f"\r{line}", end="", file=progress, flush=True)
        if progress is not None:
            print("\r" + " " * 60 + "\r", end="", file=progress, flush=True)

    @property
    def failed(self) -> int:
        """How many files failed."""
        return sum(self.repeated.values())

    def _take(self, file: FuzzFile, failure: Failure) -> None:
        """Count a failure; make the file of a new one smaller and print it."""
        self.repeated[failure.key] += 1
        if self.repeated[failure.key] > 1:
            return
        small = minimised(file, failure, self.limit, self.budget)
        failure = try_file(small, self.limit)[1] or failure
        self.failures.append((failure, small))
        head = f"{file.kind}, seed {file.seed}, number {file.number}: {failure}"
        print(f"\n{_printable(head)}\n{_printable(str(small)[:_SHOWN])}", flush=True)
        if self.folder is not None:
            self._write(file, small, failure)

    def _write(self, file: FuzzFile, small: FuzzFile, failure: Failure) -> None:
        """Write the file that failed, the smaller one, and what went wrong."""
        assert self.folder is not None
        self.folder.mkdir(parents=True, exist_ok=True)
        name = f"{file.kind}_{file.seed}_{file.number}"
        for suffix, one in (("", file), ("_small", small)):
            content = one.content
            data = content if isinstance(content, bytes) else repr(content).encode()
            (self.folder / f"{name}{suffix}.{file.kind}").write_bytes(data)
        report = _printable(f"{failure}\n{small}\n")
        (self.folder / f"{name}.txt").write_text(report, encoding="utf-8")

    def __str__(self) -> str:
        loaded, refused = self.outcomes["loaded"], self.outcomes["refused"]
        causes = f" of {len(self.repeated)} causes" if self.repeated else ""
        taken, number = self.slowest
        return (
            f"{self.kind}: {self.count} files, {loaded} loaded, {refused} refused,"
            f" {self.failed} failures{causes}; slowest {taken:.2f} s (number {number})"
        )


def _printable(text: str) -> str:
    """Return text without what a terminal cannot show."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    clean = "".join(x if x == "\n" or x.isprintable() else ascii(x)[1:-1] for x in text)
    return clean.encode(encoding, "backslashreplace").decode(encoding)
