"""Jobs on files of any content, in a process of its own: bounded in time and memory.

Libraries that read MJCF, xacro and meshes can run for ever, and native ones can end the
process that they run in. Here that is a child of the interpreter. A server imports the
library once and forks for each job, so that no job meets what an earlier one left. It
ends when it has nothing to do for a minute, and with its parent.
"""

from __future__ import annotations

import atexit
import os
import runpy
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from dyn_core.model.sources import job_server

LIMIT = 60.0  # CPU time of a job [s]
CLOCK = 4.0  # time by the clock that it may take, by its CPU time
MEMORY = 16 * 2**30  # address space of a job [bytes]
LARGEST = 2**33  # bytes of a result
_NO_MEMORY = 2  # exit status of a job
Ask = Callable[[str], Any]


class JobResult(NamedTuple):
    """What a job returned.

    Attributes:
        facts: Values of JSON by name.
        data: Bytes.
    """

    facts: dict[str, Any]
    data: bytes


class JobError(Exception):
    """A job that did not end; the message is a clause that begins with a verb."""


def _no_questions(question: str) -> Any:
    raise JobError(f"asks for {question}")


def run_job(
    job: Path,
    request: Mapping[str, Any],
    data: bytes = b"",
    ask: Ask = _no_questions,
    apart: bool = True,
) -> JobResult:
    """Return what a job makes of a request, in the current folder and environment.

    Args:
        job: Python file with `prepare()`, which imports its libraries, and
            `run(request, data, ask)`, which returns values of JSON and bytes. It
            imports nothing of this package.
        request: Values of JSON.
        data: Bytes that belong to them.
        ask: Answers what the job asks for while it runs, in values of JSON.
        apart: Whether it runs in a process of its own, where the system can start one;
            False for files that are trusted.

    Raises:
        JobError: It took too long, or its process ended.
    """
    server = _SERVERS.setdefault(job, _Server(job))
    with server.alone:
        if apart and _can_start():
            return server.run(request, data, ask)
        return server.run_here(request, data, ask)


def _can_start() -> bool:
    """Check whether this interpreter can start servers."""
    frozen = getattr(sys, "frozen", False)  # its executable is another program
    return bool(sys.executable) and hasattr(os, "fork") and not frozen


class _Server:
    """A server of one kind of job, as its parent sees it.

    Attributes:
        alone: One job at a time.
    """

    def __init__(self, job: Path) -> None:
        self.job, self.alone = job, threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._parent = 0
        self._content: dict[str, Any] = {}

    def run_here(self, request: Mapping[str, Any], data: bytes, ask: Ask) -> JobResult:
        """Return the result of a job that runs in this process, without bounds."""
        if not self._content:
            self._content = runpy.run_path(os.fspath(self.job))
            self._content["prepare"]()
        return JobResult(*self._content["run"](request, data, ask))

    def run(self, request: Mapping[str, Any], data: bytes, ask: Ask) -> JobResult:
        """Return the result of a job; the server is started where it does not run."""
        message = {
            "request": dict(request), "folder": _folder(), "seconds": LIMIT,
            "memory": MEMORY, "environment": dict(os.environ),
        }  # fmt: skip
        end = time.monotonic() + CLOCK * LIMIT
        try:
            self._send(message, data)
            while "question" in (answer := self._receive(end)):
                job_server.write(self._input(), {"answer": ask(answer["question"])})
        except BaseException:
            self.end()
            raise
        if "result" not in answer:
            raise JobError(_how_it_ended(int(answer["status"])))
        return JobResult(answer["result"], answer["data"])

    def _send(self, message: Mapping[str, Any], data: bytes) -> None:
        """Send a job to the server."""
        if not self._runs():
            self._start()
        try:
            job_server.write(self._input(), message, data)
        except BrokenPipeError:  # it ended just now, as it does after a while
            self._start()
            job_server.write(self._input(), message, data)

    def _runs(self) -> bool:
        """Check whether there is a server, and of this process, not of its parent."""
        process = self._process
        return (
            process is not None
            and self._parent == os.getpid()
            and process.poll() is None
        )

    def _start(self) -> None:
        self.end()
        single = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # it forks
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", os.fspath(job_server.__file__)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **single},
            start_new_session=True,
        )
        self._parent = os.getpid()
        first = {"job": os.fspath(self.job), "path": sys.path}
        job_server.write(self._input(), first)

    def _input(self) -> int:
        """Return the descriptor that the server reads."""
        assert self._process is not None
        assert self._process.stdin is not None
        return self._process.stdin.fileno()

    def _receive(self, end: float) -> dict[str, Any]:
        """Return a message of the server, its bytes as `data`.

        Raises:
            JobError: None came in time, or the server ended.
        """
        assert self._process is not None
        assert self._process.stdout is not None
        output = self._process.stdout.fileno()

        def source(size: int) -> bytes:
            left = max(end - time.monotonic(), 0.0)
            if not select.select([output], [], [], left)[0]:
                raise JobError(f"was stopped after {CLOCK * LIMIT:g} s")
            return os.read(output, size)

        try:
            head, data = job_server.read(source, LARGEST)
        except (EOFError, ValueError) as error:
            raise JobError(_how_it_ended(1)) from error
        return {**head, "data": data}

    def end(self) -> None:
        """End the server and what it runs; one of a forked parent is left to that."""
        process, self._process = self._process, None
        if process is None or self._parent != os.getpid():
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        process.wait()


def _folder() -> str:
    """Return the current folder; the root where that is gone."""
    try:
        return os.getcwd()
    except OSError:
        return os.sep


def _how_it_ended(status: int) -> str:
    """Return how the process of a job ended, by its status as subprocess has it."""
    if status == -signal.SIGXCPU:
        return f"was stopped after {LIMIT:g} s of computing"
    if status == _NO_MEMORY:
        return f"needs more than {MEMORY >> 30} GiB of memory"
    how = f" by signal {-status}" if status < 0 else ""
    return f"ended the process that read it{how}"


_SERVERS: dict[Path, _Server] = {}


@atexit.register
def _end_servers() -> None:
    for server in _SERVERS.values():
        server.end()
