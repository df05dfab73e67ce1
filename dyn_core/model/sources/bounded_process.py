"""Jobs on untrusted files in a separate process, bounded in time and memory.

Libraries that read MJCF, xacro and meshes can run forever, and native ones can crash
their process. Here this is a child of the interpreter. A server imports the library
once and forks for each job, so that jobs do not affect each other. It ends after a
minute without a job, and with its parent.
"""

from __future__ import annotations

import atexit
import os
import runpy
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from dyn_core.model.sources import job_server
from dyn_core.sharing import Lock

LIMIT = 60.0  # CPU time of a job [s]
CLOCK = 4.0  # allowed wall-clock time of a job as a multiple of its CPU time
MEMORY = 16 * 2**30  # address space of a job [bytes]
LARGEST = 2**33  # maximum size of a result [bytes]
_NO_MEMORY = 2  # exit status of a job that ran out of memory
Ask = Callable[[str], Any]


class JobResult(NamedTuple):
    """Result of a job: JSON values by name, and binary data."""

    facts: dict[str, Any]
    data: bytes


class JobError(Exception):
    """A job did not finish; the message is a clause that begins with a verb."""


def _no_questions(question: str) -> Any:
    """Raise JobError, as the default of run_job's `ask`: no question is allowed."""
    raise JobError(f"asks for {question}")


def run_job(
    job: Path,
    request: Mapping[str, Any],
    data: bytes = b"",
    ask: Ask = _no_questions,
    apart: bool = True,
    limit: float | None = None,
) -> JobResult:
    """Run a job and return its result, in the current folder and environment.

    Args:
        job: Python file with `prepare()`, which imports its libraries, and
            `run(request, data, ask)`, which returns JSON values and bytes. It must not
            import this package.
        ask: Function from a question (str) of the running job to the answer (a JSON
            value); its errors pass through.
        apart: Whether to use a separate process, if the system can start one; False
            only for trusted files: in this process a job has no bounds.
        limit: CPU time of the job [s]; None: LIMIT, 60 s.

    Jobs of one file run one after another. JobError: The job took too long or too much
    memory, or its process ended. In this process, errors of the job pass through.
    """
    server = _SERVERS.setdefault(job, _Server(job))
    with server.alone:
        if apart and _can_start():
            seconds = LIMIT if limit is None else limit
            return server.run(request, data, ask, seconds)
        return server.run_here(request, data, ask)


def _can_start() -> bool:
    """Return whether this interpreter can start servers."""
    frozen = getattr(sys, "frozen", False)  # its executable is another program
    return bool(sys.executable) and hasattr(os, "fork") and not frozen


class _Server:
    """Client of the server process for one kind of job, with one job at a time."""

    def __init__(self, job: Path) -> None:
        self.job, self.alone = job, Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._content: dict[str, Any] = {}

    def run_here(self, request: Mapping[str, Any], data: bytes, ask: Ask) -> JobResult:
        """Return the result of a job run in this process, without bounds.

        The caller must hold `alone`. The job's file is executed and prepared once, at
        the first call. Errors of the job and of `ask` pass through.
        """
        if not self._content:
            self._content = runpy.run_path(os.fspath(self.job))
            self._content["prepare"]()
        return JobResult(*self._content["run"](request, data, ask))

    def run(
        self, request: Mapping[str, Any], data: bytes, ask: Ask, seconds: float
    ) -> JobResult:
        """Return the result of a job within `seconds` of CPU time, and other bounds.

        These are 4 times (CLOCK) as much wall-clock time, and 16 GiB (MEMORY). The
        server is started if it is not running, and ended if it does not answer in time
        or `ask` raises an error. If it is gone, the job runs once more in a new server.
        """
        message = {
            "request": dict(request), "folder": _folder(), "seconds": seconds,
            "memory": MEMORY, "environment": dict(os.environ),
        }  # fmt: skip
        end = time.monotonic() + CLOCK * seconds
        try:
            try:
                answer = self._answer(message, data, ask, end)
            except (EOFError, BrokenPipeError):  # an idle server ends: start another
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
        """Send a job to the server, start it if need be, and return the final message.

        The message has `result`, the JSON values of the job, and `data`, its bytes; or
        `status`, the exit status of a job that failed. `end` is on the clock of
        time.monotonic(). EOFError or BrokenPipeError if the server is gone.
        """
        if self._process is None or self._process.poll() is not None:
            self._start()
        job_server.write(self._input(), message, data)
        while "question" in (answer := self._receive(end)):
            job_server.write(self._input(), {"answer": ask(answer["question"])})
        return answer

    def _start(self) -> None:
        """Start a new server and send it the job's file; end the previous server first.

        Does not wait for an answer. BrokenPipeError if the new server ends at once.
        """
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
        """Return the descriptor of the server's standard input; the server must run."""
        assert self._process is not None
        assert self._process.stdin is not None
        return self._process.stdin.fileno()

    def _receive(self, end: float) -> dict[str, Any]:
        """Return a message of the server: its mapping, with its bytes added as `data`.

        `end` is on the clock of time.monotonic(). EOFError if the server is gone, or a
        part of its message exceeds 8 GiB (LARGEST); JobError after `end`.
        """
        assert self._process is not None
        assert self._process.stdout is not None
        output = self._process.stdout.fileno()

        def source(size: int) -> bytes:
            """Return at most `size` bytes of the server; JobError at the deadline."""
            left = max(end - time.monotonic(), 0.0)
            if not select.select([output], [], [], left)[0]:
                raise JobError("was stopped, since it did not end in time")
            return os.read(output, size)

        head, data = job_server.read(source, LARGEST)
        return {**head, "data": data}

    def end(self) -> None:
        """Kill the server and its children, and wait for its end, if it is running."""
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
    """Return the current folder; the root folder if getcwd fails (it was deleted)."""
    try:
        return os.getcwd()
    except OSError:
        return os.sep


def _how_it_ended(status: int, seconds: float) -> str:
    """Return why a job ended without a result, as a clause that begins with a verb.

    `status` is the exit status of its process, negative for a signal.
    """
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
    """Kill all servers and their jobs; atexit calls it when the interpreter exits."""
    for server in _SERVERS.values():
        server.end()
