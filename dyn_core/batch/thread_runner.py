"""Chunks of a batch on threads of this process."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from dyn_core.batch.chunk_task import ChunkOutcome, ChunkTask

Chunk = tuple[int, int, int]  # number, first row, the one behind its last
LOOK = 0.1  # time after which the main thread looks for Ctrl-C [s]


def on_threads(
    task: ChunkTask, chunks: Iterable[Chunk], workers: int
) -> Iterator[tuple[int, ChunkOutcome]]:
    """Return chunks as they are done; where this ends early, so do all threads.

    Args:
        task: What a chunk needs; its Program runs on the thread that calls it.
        chunks: What is to be done.
        workers: Threads.
    """
    stop = threading.Event()
    pool = ThreadPoolExecutor(workers, thread_name_prefix="dyn batch")
    waiting: dict[Future[ChunkOutcome], int] = {}
    ahead = iter(chunks)
    try:
        while True:
            for k, first, last in ahead:
                run = pool.submit(task.run, first, last, (), stop.is_set)
                waiting[run] = k
                if len(waiting) >= 2 * workers:
                    break
            if not waiting:
                return
            done, _ = wait(waiting, LOOK, FIRST_COMPLETED)
            for run in sorted(done, key=lambda x: waiting[x]):
                yield waiting.pop(run), run.result()
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)
