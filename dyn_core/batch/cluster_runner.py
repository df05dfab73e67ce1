"""Chunks of a batch on a Dask cluster, and the task that its workers run.

Dask computes the chunks of a dead worker again. A chunk that is written twice has the
same bits, and the journal records it once.

A task is a few kilobytes: the Program, and references to its inputs and results. A
worker that sees those files reads and writes them itself; others are sent their rows,
and send results back.
"""

from __future__ import annotations

import asyncio
import pickle
import socket
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from dyn_core.batch.chunk_task import ChunkOutcome, ChunkTask
from dyn_core.batch.journal import Journal
from dyn_core.batch.program_facts import (
    TITLES,
    fact_differences,
    program_facts,
    release,
)
from dyn_core.batch.reduction import Reduction
from dyn_core.batch.storage.batch_rows import BatchRows
from dyn_core.batch.storage.cluster_libraries import library, made_by
from dyn_core.batch.storage.result_targets import Targets, targets_of
from dyn_core.batch.storage.row_sources import (
    DaskSource,
    Reference,
    RowSource,
    SentSource,
    UnseenRows,
    referred,
    source,
)
from dyn_core.batch.thread_runner import Chunk
from dyn_core.engines import Program
from dyn_core.errors import BatchError, ShapeError, UnsupportedError
from dyn_core.sharing import Lock

_OPENING = Lock()


@dataclass(frozen=True)
class TaskFacts:
    """A ChunkTask in transferable form: the data another process needs to rebuild it.

    Attributes:
        generated: GeneratedRows, evaluated on the worker; None if inputs are arrays.
        values: Inputs that all rows share, by index.
        references: Reference of each input's file; None for inputs that are sent.
        contents: Fingerprint of each input with a reference; else empty.
        results: References of the targets; None if results are sent back.
        journal, token: A worker that does not see them does not see the results either.
    """

    program: Program[Any]
    generated: BatchRows | None
    reduction: Reduction | None
    strip: int
    status: bool
    summed: bool
    rows: int
    values: dict[int, np.ndarray]
    references: tuple[Reference | None, ...]
    contents: tuple[str, ...]
    results: tuple[Reference, ...] | None
    journal: str
    token: str


def task_facts(task: ChunkTask, journal: Journal | None) -> TaskFacts:
    """Return a ChunkTask in transferable form.

    An input in a file becomes a reference with a fingerprint, a shared value an array.
    A function of rows is included; the rows of other inputs are sent with each chunk.
    Workers send results back if there is no journal, or if other processes cannot open
    a target; otherwise workers that see the targets write to them.
    """
    sources = task.rows.sources
    references = tuple(None if x.rows is None else x.reference() for x in sources)
    results = None if task.targets is None else task.targets.references()
    return TaskFacts(
        program=task.program,
        generated=None if sources else task.rows,
        reduction=task.reduction,
        strip=task.strip,
        status=task.status,
        summed=task.summed,
        rows=task.rows.count,
        values={
            k: np.asarray(x.load(0, 0)) for k, x in enumerate(sources) if x.rows is None
        },
        references=references,
        contents=tuple(
            "" if where is None else x.fingerprint()
            for x, where in zip(sources, references, strict=True)
        ),
        results=None if results is None or journal is None else tuple(results),
        journal="" if journal is None else journal.path,
        token=str(time.time_ns()) if journal is None else journal.header["token"],
    )


def packed(facts: TaskFacts) -> bytes:
    """Return a task as a pickle of (program facts, cloudpickled `facts`).

    The program facts come first, since only a worker with the same library can load the
    task. Raises UnsupportedError if cloudpickle is not installed; its own errors, as
    for objects that cannot be pickled, pass through.
    """
    content = library("cloudpickle", "a cluster").dumps(facts)
    return pickle.dumps((program_facts(facts.program), content))


def run_chunk(
    packed: bytes, first: int, last: int, sent: Sequence[Any]
) -> ChunkOutcome:
    """Compute a chunk, on a worker; `packed` is TaskFacts as bytes.

    Chunks of an engine that is not native run one after the other. `sent` has an array
    for each input that was sent, None for others; empty for generated rows. UnseenRows:
    the worker cannot read a file. BatchError: it would compute other bits.
    """
    with _OPENING:
        task = _task(packed)
    if task.program.engine == "native":
        return task.run(first, last, sent)
    with _OPENING:  # such a Program stores the failed rows in itself
        return task.run(first, last, sent)


@lru_cache(maxsize=4)
def _task(packed: bytes) -> ChunkTask:
    """Return the ChunkTask of packed TaskFacts, with its Program compiled.

    The last four are cached, so that all chunks of a run share one. A worker that would
    compute other bits is refused.
    """
    asked, content = pickle.loads(packed)
    _require_equal({"library": asked["library"]}, {"library": release()})
    facts: TaskFacts = pickle.loads(content)
    program = facts.program
    _require_equal(asked, program_facts(program))
    program.prepare(batch=True)
    rows = facts.generated
    if rows is None:
        rows = BatchRows([_source(facts, k) for k in range(len(program.inputs))])
    return ChunkTask(
        program, rows, _targets(facts), facts.reduction, facts.strip, facts.status,
        facts.summed,
    )  # fmt: skip


def _require_equal(asked: dict[str, str], here: dict[str, str]) -> None:
    """Check that facts of this worker are the sender's: results have the same bits."""
    titles = {key: title for key, title in TITLES.items() if key in asked}
    differences = list(fact_differences(here, asked, titles))
    if differences:
        raise BatchError(
            f"the worker on {socket.gethostname()} would compute other bits:"
            f" {'; '.join(differences)}; valid: the same release, machine code and kind"
            " of processor everywhere"
        )


def _source(facts: TaskFacts, k: int) -> Any:
    """Return input k as a RowSource of a shared value or a file, or as a SentSource.

    It is a SentSource if the input has no reference, if this worker does not see or
    cannot read the file, or if the file has another shape or fingerprint than expected.
    """
    port, where = facts.program.inputs[k], facts.references[k]
    if k in facts.values:
        return RowSource(port, facts.values[k])
    if where is not None:
        try:
            known = source(port, referred(where), facts.program.dtype)
            if known.rows == facts.rows and known.fingerprint() == facts.contents[k]:
                return known
        except (OSError, ShapeError, UnsupportedError):
            pass  # another machine: the rows are sent
    return SentSource(port.name, facts.rows)


def _targets(facts: TaskFacts) -> Targets | None:
    """Return the Targets a worker writes to; None if it must send results back.

    It must if the task has no result references, if the file of the journal is missing,
    damaged or has another token, or if a result file cannot be opened here.
    """
    if facts.results is None:
        return None
    try:
        header = Journal.read_header(facts.journal)
        if header is None or header["token"] != facts.token:
            return None
        return targets_of(facts.results)
    except (BatchError, OSError, UnsupportedError):
        return None  # another machine, with other files


ANSWER = 10.0  # timeout for the scheduler's answer [s]
WAIT = 30.0  # timeout for its first worker [s]
LOST = "the scheduler is lost; what is done is kept"
COUNT = 1.0  # period after which the workers are counted again [s]
CLOSE = 0.4  # timeout for a clean end of the workers [s]
AHEAD = 2, 4  # chunks in flight for a thread; if they bring and return no rows


@contextmanager
def connected(scheduler: Any, workers: int) -> Iterator[Any]:
    """Context manager that yields a Client of the requested scheduler.

    The scheduler is "processes", an address, or a Client, which stays open; others are
    closed at the end, and so are the processes. BatchError: no scheduler answers within
    10 s, or an address is not valid.
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

    Chunks are (index, first row, row behind the last). Nothing is submitted before the
    first is asked for; if the iteration ends early, the remaining ones are cancelled.
    Results that workers send back are written to the task's targets here; the journal
    tells workers which files are shared. BatchError: no worker comes within 30 s, one
    would compute other bits, a chunk kills several, or the scheduler is lost.
    """
    try:
        client.wait_for_workers(1, timeout=WAIT)
    except Exception as error:  # the type of timeout error depends on the release
        raise BatchError(f"no worker came within {WAIT:.0f} s: {error}") from error
    yield from _ClusterRun(client, task, chunks, journal).outcomes()


@contextmanager
def _heard() -> Iterator[None]:
    """Context manager: an error of the connection to the scheduler is a BatchError."""
    try:
        yield
    except (OSError, TimeoutError, CancelledError, asyncio.CancelledError) as error:
        raise BatchError(f"{LOST}: {error}") from error


class _ClusterRun:
    """The submission of chunks to workers, and the collection of their outcomes."""

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
        and are then not in the outcome. The remaining chunks are cancelled after an
        error, or if the iteration ends early. Once a worker cannot see the file of an
        input, its chunk is submitted again with its rows, and all later ones with
        theirs.
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

        Errors of the worker, such as UnseenRows, are raised unchanged, except a lost
        chunk or module (BatchError).
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
        """Submit chunks until all are submitted or each worker thread has enough.

        That is 2 for each thread if chunks bring or return rows, else 4. Threads are
        counted at most once a second; no threads count as one.
        """
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

        The rows are part of the task: if a worker dies, the next one gets them. The
        future is added to `waiting` and `completed`.
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

        None also if all rows share the value. Rows of a Dask array are a future, others
        an array; once `send_all` is set, those of files, too.
        """
        if source.rows is None:
            return None
        if isinstance(source, DaskSource):
            with _heard():
                return self.client.compute(source.array[first:last])
        if self.facts.references[j] is None or self.send_all:
            return np.ascontiguousarray(source.load(first, last))
        return None
