"""Chunks of a batch on a Dask cluster: processes of this machine, or workers elsewhere.

Dask does the chunks of a worker that died once more. A chunk that is written twice has
the same bits, and the journal has it once.
"""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import numpy as np

from dyn_core.batch.chunk_task import ChunkOutcome, ChunkTask
from dyn_core.batch.journal import Journal
from dyn_core.batch.storage.cluster_libraries import library, made_by
from dyn_core.batch.storage.row_sources import DaskSource, RowSource, UnseenRows
from dyn_core.batch.thread_runner import Chunk
from dyn_core.batch.worker_task import packed, run_chunk, task_facts
from dyn_core.errors import BatchError

ANSWER = 10.0  # for the scheduler [s]
WAIT = 30.0  # for its first worker [s]
LOST = "the scheduler is lost; what is done is kept"
COUNT = 1.0  # time after which the workers are counted anew [s]
CLOSE = 0.4  # for workers to end, which are ended otherwise after that [s]
AHEAD = 2, 4  # chunks of a worker's thread; of chunks that bring and return no rows


@contextmanager
def connected(scheduler: Any, workers: int) -> Iterator[Any]:
    """Return a Client of the scheduler that is asked for; close what was opened.

    Args:
        scheduler: "processes", an address, or a Client.
        workers: Processes, where they are started here.

    Raises:
        UnsupportedError: Dask is not installed.
        BatchError: Nobody answers there.
    """
    distributed = library("distributed", f"scheduler={scheduler!r}")
    if made_by(scheduler, "distributed") and hasattr(scheduler, "submit"):
        yield scheduler
        return
    cluster = None
    try:
        if scheduler == "processes":
            cluster = distributed.LocalCluster(
                n_workers=workers, threads_per_worker=1, processes=True,
                memory_limit=0, dashboard_address="127.0.0.1:0", silence_logs=50,
            )  # fmt: skip
        client = distributed.Client(
            scheduler if cluster is None else cluster,
            timeout=ANSWER,
            set_as_default=False,
        )
    except (OSError, ValueError) as error:
        if cluster is not None:
            cluster.close()
        message = f"no scheduler answers as {scheduler!r}: {error}"
        raise BatchError(
            f"{message}; valid: an address such as tcp://host:8786"
        ) from error
    try:
        yield client
    finally:
        with suppress(TimeoutError):
            client.close(timeout=CLOSE)
        if cluster is not None:
            with suppress(TimeoutError):
                cluster.close(timeout=CLOSE)


def on_cluster(
    client: Any, task: ChunkTask, chunks: Iterable[Chunk], journal: Journal | None
) -> Iterator[tuple[int, ChunkOutcome]]:
    """Return chunks as they are done.

    Raises:
        BatchError: All workers, or the scheduler, are lost.
    """
    try:
        client.wait_for_workers(1, timeout=WAIT)
    except Exception as error:  # its own TimeoutError, by release
        raise BatchError(f"no worker came within {WAIT:.0f} s: {error}") from error
    yield from _ClusterRun(client, task, chunks, journal).outcomes()


@contextmanager
def _heard() -> Iterator[None]:
    """Say in words that the scheduler does not answer any more."""
    try:
        yield
    except (OSError, TimeoutError, CancelledError, asyncio.CancelledError) as error:
        raise BatchError(f"{LOST}: {error}") from error


class _ClusterRun:
    """Chunks that go out to workers, and come back."""

    def __init__(
        self,
        client: Any,
        task: ChunkTask,
        chunks: Iterable[Chunk],
        journal: Journal | None,
    ) -> None:
        self.client, self.task, self.chunks = client, task, iter(chunks)
        self.facts = task_facts(task, journal)
        self.packed = packed(self.facts)
        self.send_all = False  # workers see no files
        returned = task.reduction is None and self.facts.results is None
        sent = any(
            where is None and x.rows is not None
            for x, where in zip(task.rows.sources, self.facts.references, strict=True)
        )
        self.carried = returned or sent
        self.waiting: dict[Any, Chunk] = {}
        self.most, self.counted = 0, -np.inf

    def outcomes(self) -> Iterator[tuple[int, ChunkOutcome]]:
        """Return chunks as they are done."""
        completed = library("distributed", "a cluster").as_completed(
            loop=self.client.loop
        )
        try:
            self._fill(completed)
            for future in completed:
                chunk = self.waiting.pop(future)
                try:
                    outcome = self._result(future, chunk)
                except UnseenRows:
                    self.send_all = True
                    self._submit(chunk, completed)
                    continue
                if outcome.results is not None and self.task.targets is not None:
                    self.task.targets.write(chunk[1], chunk[2], outcome.results)
                    outcome = replace(outcome, results=None)
                yield chunk[0], outcome
                self._fill(completed)
        finally:
            with suppress(OSError, TimeoutError, CancelledError):
                self.client.cancel(list(self.waiting), asynchronous=False)

    def _result(self, future: Any, chunk: Chunk) -> ChunkOutcome:
        """Return what a worker did."""
        k, first, last = chunk
        where = f"chunk {k} (rows {first} to {last - 1})"
        if future.status == "cancelled":
            raise BatchError(f"{where}: {LOST}")
        if future.status == "error":
            with _heard():
                error = future.exception()
            if type(error).__name__ == "KilledWorker":
                message = f"{where}: each of several workers died with it: {error}"
                raise BatchError(f"{message}; what is done is kept") from error
            if isinstance(error, ImportError):
                message = f"a worker cannot do {where}: {error}"
                raise BatchError(f"{message}; valid: the same modules everywhere")
            raise error
        with _heard():  # waits where the worker died with it, and it is done again
            outcome: ChunkOutcome = future.result()
        return outcome

    def _fill(self, completed: Any) -> None:
        """Let every thread of the workers have chunks."""
        now = time.monotonic()
        if now - self.counted > COUNT:
            with _heard():
                threads = max(sum(self.client.nthreads().values()), 1)
            self.most = AHEAD[not self.carried] * threads
            self.counted = now
        while len(self.waiting) < self.most:
            chunk = next(self.chunks, None)
            if chunk is None:
                return
            self._submit(chunk, completed)

    def _submit(self, chunk: Chunk, completed: Any) -> None:
        """Send a chunk out, with rows that workers cannot read themselves.

        They are part of the task: where a worker dies, another one gets them.
        """
        _, first, last = chunk
        sources = enumerate(self.task.rows.sources)
        sent = [self._sent(j, x, first, last) for j, x in sources]
        with _heard(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph")
            future = self.client.submit(
                run_chunk, self.packed, first, last, sent, pure=False
            )
        self.waiting[future] = chunk
        completed.add(future)

    def _sent(self, j: int, source: RowSource, first: int, last: int) -> Any:
        """Return rows of an input to be sent with a task; None if it reads them."""
        if source.rows is None:
            return None
        if isinstance(source, DaskSource):
            with _heard():
                return self.client.compute(source.array[first:last])
        if self.facts.references[j] is None or self.send_all:
            return np.ascontiguousarray(source.load(first, last))
        return None
