"""Chunks of a batch on threads of this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import Any, Protocol, TypeVar

Chunk = tuple[int, int, int]  # number, first row, the one behind its last
Outcome = TypeVar("Outcome", covariant=True)
LOOK = 0.1  # time after which the main thread looks for Ctrl-C [s]


class ChunkWork(Protocol[Outcome]):
    """What is done with chunks; see ChunkTask."""

    def run(
        self, first: int, last: int, sent: Sequence[Any], stopped: Callable[[], bool]
    ) -> Outcome:
        """Do a chunk."""


def on_threads(
    task: ChunkWork[Outcome], chunks: Collection[Chunk], workers: int
) -> Iterator[tuple[int, Outcome]]:
    """Return chunks as they are done; where this ends early, so do all threads.

    The main thread waits for simple queues alone: Ctrl-C within `futures.wait` may
    leave locks behind, for which the threads would wait forever.

    Args:
        task: What a chunk needs; its Program runs on the thread that calls it.
        chunks: What is to be done; a single one, on the calling thread.
        workers: Threads.
    """
    if len(chunks) == 1:  # a thread costs more than a small chunk
        for k, first, last in chunks:
            yield k, task.run(first, last, (), lambda: False)
        return
    ended: list[bool] = []  # not empty: all threads end
    wanted: SimpleQueue[Chunk | None] = SimpleQueue()
    done: SimpleQueue[tuple[int, Any]] = SimpleQueue()
    threads = [
        threading.Thread(
            target=_work,
            args=(task, wanted, done, ended),
            name=f"dyn batch_{i}",
            daemon=True,
        )
        for i in range(workers)
    ]
    ahead, under_way = iter(chunks), 0
    try:
        for thread in threads:
            thread.start()
        while True:
            while under_way < 2 * workers and (chunk := next(ahead, None)) is not None:
                wanted.put(chunk)
                under_way += 1
            if not under_way:
                return
            try:
                k, outcome = done.get(timeout=LOOK)
            except Empty:
                continue
            under_way -= 1
            if isinstance(outcome, BaseException):
                raise outcome
            yield k, outcome
    finally:
        ended.append(True)
        for _ in threads:
            wanted.put(None)
        for thread in threads:
            if thread.ident is not None:
                thread.join()


def _work(
    task: ChunkWork[Any],
    wanted: SimpleQueue[Chunk | None],
    done: SimpleQueue[tuple[int, Any]],
    ended: list[bool],
) -> None:
    """Run chunks until there is none, or all threads end."""
    while (chunk := wanted.get()) is not None and not ended:
        k, first, last = chunk
        try:
            done.put((k, task.run(first, last, (), lambda: bool(ended))))
        except BaseException as error:  # raised again by the main thread
            done.put((k, error))
