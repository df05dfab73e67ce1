"""Server process that runs jobs; a script that imports nothing of dyn_core.

A message consists of the sizes of two parts, a JSON mapping, and bytes.
"""

from __future__ import annotations

import json
import math
import os
import runpy
import select
import struct
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

IDLE = 60.0  # time without a job after which the server ends [s]
_SIZES = struct.Struct(">QQ")
Read = Callable[[int], bytes]


def write(target: int, head: Mapping[str, Any], data: bytes = b"") -> None:
    """Write a message, the mapping `head` as JSON and `data`, to a file descriptor.

    Waits until all is written to the descriptor `target`. Raises BrokenPipeError if the
    other side is gone, TypeError if `head` has a value that JSON does not have.
    """
    line = json.dumps(head).encode()
    for part in (_SIZES.pack(len(line), len(data)), line, data):
        rest = memoryview(part)
        while rest:
            rest = rest[os.write(target, rest) :]


def read(source: Read, largest: int = 2**40) -> tuple[dict[str, Any], bytes]:
    """Return a message: its mapping and its bytes, at most `largest` bytes each.

    `source` reads at most the given number of bytes, b"" at the end. EOFError: The
    other side is gone, or a part is too large.
    """
    sizes = _SIZES.unpack(_exactly(source, _SIZES.size))
    if max(sizes) > largest:
        raise EOFError
    head, data = (_exactly(source, size) for size in sizes)
    return json.loads(head), data


def _exactly(source: Read, size: int) -> bytes:
    """Return exactly `size` bytes; raise EOFError if the source ends earlier."""
    data = bytearray()
    while len(data) < size:
        piece = source(min(size - len(data), 1 << 20))
        if not piece:
            raise EOFError
        data += piece
    return bytes(data)


def main() -> None:
    """Serve jobs from standard input until it ends, or for 60 s (IDLE) without a job.

    The first message has `path` (sys.path) and `job` (the job's file, which defines the
    functions prepare and run); each further one is a job, which runs in a forked
    process. Results, questions and `status`, the exit status of a job that failed, are
    written to standard output. Errors of the job's file and of `prepare` end the
    server, and so do invalid messages and BrokenPipeError.
    """
    target = os.dup(1)
    os.dup2(2, 1)  # output of libraries must not mix with messages

    def source(size: int) -> bytes:
        """Return at most `size` bytes of standard input."""
        return os.read(0, size)

    try:
        first, _ = read(source)
        sys.path[:] = first["path"]
        job = runpy.run_path(first["job"])
        job["prepare"]()
        while select.select([0], [], [], IDLE)[0]:
            message, data = read(source)
            child = os.fork()
            if child == 0:
                _serve(job, message, data, source, target)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            if status != 0:
                write(target, {"status": status})
    except EOFError:
        pass


def _serve(
    job: Mapping[str, Any], message: Any, data: bytes, source: Read, target: int
) -> None:
    """Run one job within its bounds, write its result, and end this process.

    Exit status 0: result written, 2: out of memory, 1: any other failure; SIGXCPU if
    its CPU time is over. `message` has request, seconds of CPU time, memory [bytes],
    folder to work in, and environment, which replaces this process's.
    """

    def ask(question: str) -> Any:
        """Return the parent's answer; BrokenPipeError or EOFError if it is gone."""
        write(target, {"question": question})
        return read(source)[0]["answer"]

    try:
        _bound(float(message["seconds"]), int(message["memory"]))
        os.environ.clear()
        os.environ.update(message["environment"])
        os.chdir(message["folder"])
        facts, result = job["run"](message["request"], data, ask)
        write(target, {"result": facts}, result)
        os._exit(0)
    except MemoryError:
        os._exit(2)
    finally:
        os._exit(1)


def _bound(seconds: float, memory: int) -> None:
    """Limit CPU time [s], rounded up, and address space [bytes] of this process.

    Core dumps are switched off. A limit that the system refuses, as above its hard
    limit, stays as it is.
    """
    try:
        import resource
    except ImportError:
        return
    whole = math.ceil(seconds)
    limits = {"CORE": (0, 0), "CPU": (whole, whole + 1), "AS": (memory, memory)}
    for name, pair in limits.items():
        with suppress(AttributeError, OSError, ValueError):
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), pair)


if __name__ == "__main__":
    main()
