"""Chunks of a batch on a Dask cluster: processes of this machine, or remote workers.

Dask computes the chunks of a dead worker again. A chunk that is written twice has the
same bits, and the journal records it once.
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

ANSWER = 10.0  # timeout for the scheduler's answer [s]
WAIT = 30.0  # timeout for its first worker [s]
LOST = "the scheduler is lost; what is done is kept"
COUNT = 1.0  # period after which the workers are counted again [s]
CLOSE = 0.4  # timeout for a clean end of the workers [s]
AHEAD = 2, 4  # chunks in flight for a thread; if they bring and return no rows


@contextmanager
def connected(scheduler: Any, workers: int) -> Iterator[Any]:
    """Context manager of a Client of the requested scheduler.

    A Client that is passed in is yielded and stays open; others are closed at the end.

    Args:
        scheduler: "processes", the address of a scheduler, or a distributed.Client.
        workers: Number of processes for "processes"; ignored otherwise.

    Raises:
        UnsupportedError: Dask is not installed.
        BatchError: No scheduler answers within 10 s, or the address is not valid.
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
    """Iterate over (index, ChunkOutcome) of the chunks, in order of completion.

    Args:
        client: Client of the scheduler.
        task: Task of each chunk.
        chunks: Chunks to be computed.
        journal: Journal of the run, or None; workers use it to recognise shared files.

    Raises:
        BatchError: No worker comes within 30 s, a chunk kills several workers, a worker
            cannot import the code, or the scheduler is lost.
        RowError: Rows fail and the task records no status.
    """
    try:
        client.wait_for_workers(1, timeout=WAIT)
    except Exception as error:  # the type of timeout error depends on the release
        raise BatchError(f"no worker came within {WAIT:.0f} s: {error}") from error
    yield from _ClusterRun(client, task, chunks, journal).outcomes()


@contextmanager
def _heard() -> Iterator[None]:
    """Context manager that raises BatchError if the scheduler does not answer."""
    try:
        yield
    except (OSError, TimeoutError, CancelledError, asyncio.CancelledError) as error:
        raise BatchError(f"{LOST}: {error}") from error


class _ClusterRun:
    """The submission of chunks to workers, and the collection of their outcomes.

    Args:
        client: Client of the scheduler.
        task: Task of each chunk.
        chunks: Chunks to be computed.
        journal: Journal of the run, or None.
    """

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
        self.send_all = False  # set once a worker does not see the input files
        returned = task.reduction is None and self.facts.results is None
        sent = any(
            where is None and x.rows is not None
            for x, where in zip(task.rows.sources, self.facts.references, strict=True)
        )
        self.carried = returned or sent
        self.waiting: dict[Any, Chunk] = {}
        self.most, self.counted = 0, -np.inf

    def outcomes(self) -> Iterator[tuple[int, ChunkOutcome]]:
        """Iterate over (index, ChunkOutcome) in order of completion.

        Results that workers send back are written to the task's targets, if it has any,
        and are then not in the outcome. The remaining chunks are cancelled if the
        iteration ends early. Once a worker cannot see the files of the inputs, its
        chunk and all later ones are sent with their rows.
        """
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
        """Return the ChunkOutcome of a finished future.

        Raises BatchError if the chunk was cancelled, killed its workers, or needs a
        module that the worker lacks; other errors of the worker are raised unchanged.
        """
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
        with _heard():  # waits if a worker died and the chunk is computed again
            outcome: ChunkOutcome = future.result()
        return outcome

    def _fill(self, completed: Any) -> None:
        """Submit chunks until each thread of the workers has several of them."""
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
        """Submit a chunk, with the rows that workers cannot read themselves.

        The rows are part of the task: if a worker dies, the next one gets them.
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
        """Return rows of input j to be sent with a task; None if the worker reads them.

        None also if all rows share the value. Rows of a Dask array are returned as a
        future.
        """
        if source.rows is None:
            return None
        if isinstance(source, DaskSource):
            with _heard():
                return self.client.compute(source.array[first:last])
        if self.facts.references[j] is None or self.send_all:
            return np.ascontiguousarray(source.load(first, last))
        return None
