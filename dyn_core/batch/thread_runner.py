"""Chunks of a batch on threads of this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import Any, Protocol, TypeVar

Chunk = tuple[int, int, int]  # index, first row, row behind the last
Outcome = TypeVar("Outcome", covariant=True)
LOOK = 0.1  # timeout of the main thread, which then handles Ctrl-C [s]


class ChunkWork(Protocol[Outcome]):
    """A task that processes chunks, such as ChunkTask and ChunkSums."""

    def run(
        self, first: int, last: int, sent: Sequence[Any], stopped: Callable[[], bool]
    ) -> Outcome:
        """Process rows first to last - 1 and return the outcome.

        `sent` is as in ChunkTask.run; the task raises its own error if `stopped()`.
        """


def on_threads(
    task: ChunkWork[Outcome], chunks: Collection[Chunk], workers: int
) -> Iterator[tuple[int, Outcome]]:
    """Iterate over (index, outcome) of the chunks, in order of completion.

    Chunks are (index, first row, row behind the last); a single one runs on the calling
    thread. If the iteration ends early, or a chunk raises an error, which is raised
    here, chunks in progress are told by `stopped`, and all threads are joined; outcomes
    that were not returned yet are lost. `workers` is at least 1, which is not checked.
    """
    if len(chunks) == 1:  # a thread costs more than a small chunk
        for k, first, last in chunks:
            yield k, task.run(first, last, (), lambda: False)
        return
    ended: list[bool] = []  # not empty: all threads end
    # SimpleQueue, not futures.wait: Ctrl-C within the latter may leave locks behind,
    # for which the threads would wait forever.
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
    """Process chunks from `wanted` until None comes or `ended` is not empty.

    `done` gets (index, outcome) of each chunk; a raised exception is the outcome, and
    does not end the thread. An entry that another thread appends to `ended` also stops
    the task.
    """
    while (chunk := wanted.get()) is not None and not ended:
        k, first, last = chunk
        try:
            done.put((k, task.run(first, last, (), lambda: bool(ended))))
        except BaseException as error:  # raised again by the main thread
            done.put((k, error))
