"""Settings of the operating system for steady timing: memory lock, CPUs, priorities."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import threading
from collections.abc import Sequence
from typing import Any

CURRENT, FUTURE = 1, 2  # flags of mlockall


def lock_memory() -> str | None:
    """Lock the memory of this process against paging; return why it failed, or None."""
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    # Below a finite limit, later allocations would fail.
    if soft != resource.RLIM_INFINITY and os.geteuid() != 0:
        return (
            f"memory_lock: the limit of locked memory is {soft} bytes; set it to"
            " unlimited (ulimit -l, or memlock in /etc/security/limits.conf)"
        )
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mlockall(CURRENT | FUTURE):
        return f"memory_lock: {os.strerror(ctypes.get_errno())}"
    return None


def use_cpus(cpus: Sequence[int]) -> str | None:
    """Restrict all threads of this process to some CPUs; return why it failed, or None.

    After a failure, some threads may be restricted already.
    """
    try:
        for thread in _threads():
            with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
                os.sched_setaffinity(thread, cpus)
    except (OSError, ValueError) as error:
        valid = ", ".join(map(str, sorted(os.sched_getaffinity(0))))
        reason = getattr(error, "strerror", None) or error
        return f"cpu_affinity {list(cpus)}: {reason}; allowed now: {valid}"
    return None


def raise_priority(priority: int, threads: Sequence[int]) -> str | None:
    """Schedule threads with SCHED_FIFO; return why it failed, or None.

    The first of the native ids gets `priority`, 1 to 98, each other one more than the
    previous, at most 99. Threads that they start do not inherit it. After a failure,
    earlier threads retain the new priority.
    """
    try:
        for k, thread in enumerate(threads):
            rank = os.sched_param(min(priority + k, 99))
            kind = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
            os.sched_setscheduler(thread, kind, rank)
    except OSError as error:
        return (
            f"priority {priority}: {error.strerror}; it needs CAP_SYS_NICE, or rtprio"
            " in /etc/security/limits.conf"
        )
    return None


def steady(node: Any, *threads: int) -> None:
    """Lock memory and set CPUs and priorities as a node's parameters ask.

    What the system refuses is logged. The calling thread is the executor's; `threads`
    are native ids of others, with increasing priorities above it.
    """
    value, refused = node.value, []
    if value("memory_lock"):
        refused.append(lock_memory())
    if value("cpu_affinity"):
        refused.append(use_cpus(value("cpu_affinity")))
    if value("priority"):
        every = [threading.get_native_id(), *threads]
        refused.append(raise_priority(value("priority"), every))
    for reason in filter(None, refused):
        node.get_logger().warning(reason)


def _threads() -> list[int]:
    """Return the native ids of all threads of this process."""
    return [int(name) for name in os.listdir("/proc/self/task")]
