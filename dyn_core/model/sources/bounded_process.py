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
    limit: float | None = None,
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
        limit: CPU time of the job [s]; None: LIMIT.

    Raises:
        JobError: It took too long, or its process ended.
    """
    server = _SERVERS.setdefault(job, _Server(job))
    with server.alone:
        if apart and _can_start():
            seconds = LIMIT if limit is None else limit
            return server.run(request, data, ask, seconds)
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
        self._content: dict[str, Any] = {}

    def run_here(self, request: Mapping[str, Any], data: bytes, ask: Ask) -> JobResult:
        """Return the result of a job that runs in this process, without bounds."""
        if not self._content:
            self._content = runpy.run_path(os.fspath(self.job))
            self._content["prepare"]()
        return JobResult(*self._content["run"](request, data, ask))

    def run(
        self, request: Mapping[str, Any], data: bytes, ask: Ask, seconds: float
    ) -> JobResult:
        """Return the result of a job; the server is started where it does not run."""
        message = {
            "request": dict(request), "folder": _folder(), "seconds": seconds,
            "memory": MEMORY, "environment": dict(os.environ),
        }  # fmt: skip
        end = time.monotonic() + CLOCK * seconds
        try:
            try:
                answer = self._answer(message, data, ask, end)
            except (EOFError, BrokenPipeError):  # it ended, as it does after a while
                self.end()
                answer = self._answer(message, data, ask, end)
        except (EOFError, BrokenPipeError) as error:
            self.end()
            raise JobError(_how_it_ended(1, seconds)) from error
        except BaseException:
            self.end()
            raise
        if "result" not in answer:
            raise JobError(_how_it_ended(int(answer["status"]), seconds))
        return JobResult(answer["result"], answer["data"])

    def _answer(
        self, message: Mapping[str, Any], data: bytes, ask: Ask, end: float
    ) -> dict[str, Any]:
        """Return what the server answers to a job; answer its questions before.

        Raises:
            EOFError: The server is gone.
            BrokenPipeError: The same.
            JobError: It took too long.
        """
        if self._process is None or self._process.poll() is not None:
            self._start()
        job_server.write(self._input(), message, data)
        while "question" in (answer := self._receive(end)):
            job_server.write(self._input(), {"answer": ask(answer["question"])})
        return answer

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
        first = {"job": os.fspath(self.job), "path": list(map(str, sys.path))}
        job_server.write(self._input(), first)

    def _input(self) -> int:
        """Return the descriptor that the server reads."""
        assert self._process is not None
        assert self._process.stdin is not None
        return self._process.stdin.fileno()

    def _receive(self, end: float) -> dict[str, Any]:
        """Return a message of the server, its bytes as `data`.

        Raises:
            EOFError: The server is gone.
            JobError: None came in time.
        """
        assert self._process is not None
        assert self._process.stdout is not None
        output = self._process.stdout.fileno()

        def source(size: int) -> bytes:
            left = max(end - time.monotonic(), 0.0)
            if not select.select([output], [], [], left)[0]:
                raise JobError("was stopped, since it did not end in time")
            return os.read(output, size)

        head, data = job_server.read(source, LARGEST)
        return {**head, "data": data}

    def end(self) -> None:
        """End the server and what it runs."""
        process, self._process = self._process, None
        if process is None:
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


def _how_it_ended(status: int, seconds: float) -> str:
    """Return how the process of a job ended, by its status as subprocess has it."""
    if status == -signal.SIGXCPU:
        return f"was stopped after {seconds:g} s of computing"
    if status == _NO_MEMORY:
        return f"needs more than {MEMORY >> 30} GiB of memory"
    how = f" by signal {-status}" if status < 0 else ""
    return f"ended the process that read it{how}"


_SERVERS: dict[Path, _Server] = {}
if hasattr(os, "register_at_fork"):  # pipes and locks of a parent are the parent's
    os.register_at_fork(after_in_child=_SERVERS.clear)


@atexit.register
def _end_servers() -> None:
    for server in _SERVERS.values():
        server.end()
