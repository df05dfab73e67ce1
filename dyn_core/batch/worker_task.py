"""The cluster's side of a batch: a task in transferable form, and its chunks.

A task is a few kilobytes: the Program, and references to its inputs and results. A
worker that sees those files reads and writes them itself; others are sent their rows,
and send results back.
"""

from __future__ import annotations

import pickle
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
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
from dyn_core.batch.storage.cluster_libraries import library
from dyn_core.batch.storage.result_targets import Targets, targets_of
from dyn_core.batch.storage.row_sources import (
    Reference,
    RowSource,
    SentSource,
    referred,
    source,
)
from dyn_core.engines import Program
from dyn_core.errors import BatchError
from dyn_core.sharing import Lock

_OPENING = Lock()


@dataclass(frozen=True)
class TaskFacts:
    """A ChunkTask in transferable form: the data another process needs to rebuild it.

    Attributes:
        program: Program that computes the rows.
        reduction: Reduction that replaces the results, or None.
        strip: Number of rows of a strip.
        status: Whether failed rows are recorded instead of raising an error.
        summed: Whether checksums of the results are needed.
        generated: GeneratedRows, evaluated on the worker; None if inputs are arrays.
        rows: Number of rows of the batch.
        values: Inputs that all rows share, by index.
        references: Reference of each input's file; None for inputs that are sent.
        contents: Fingerprint of each input with a reference; else empty.
        results: References of the targets; None if results are sent back.
        journal, token: Path and token of the journal: a worker that does not see them
            does not see the result files either.
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

    Without a journal, workers send results back, even if `task` has targets.
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
    """Return a task as a pickle of its program facts and the cloudpickled task.

    The facts come first, since only a worker with the same library can load the task.
    """
    content = library("cloudpickle", "a cluster").dumps(facts)
    return pickle.dumps((program_facts(facts.program), content))


def run_chunk(
    packed: bytes, first: int, last: int, sent: Sequence[Any]
) -> ChunkOutcome:
    """Compute a chunk, on a worker.

    Args:
        packed: TaskFacts as bytes, see `packed`.
        first, last: Range of its rows, last excluded.
        sent: Inputs that were sent, one for each input; None for those it reads itself.

    Raises:
        UnseenRows: The worker does not see the file of an input that was not sent.
        BatchError: It would compute other bits (says what differs), or results cannot
            be written.
        RowError: Rows failed and the task records no status.
    """
    with _OPENING:
        task = _task(packed)
    if task.program.engine == "native":
        return task.run(first, last, sent)
    with _OPENING:  # such a Program stores the failed rows in itself
        return task.run(first, last, sent)


@lru_cache(maxsize=4)
def _task(packed: bytes) -> ChunkTask:
    """Return the ChunkTask of a run; cached, so that all its chunks share one.

    Raises BatchError if this worker would compute other bits.
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
    """Require that results of this worker have the bits of the others.

    Raises:
        BatchError: The facts differ; says where.
    """
    titles = {key: title for key, title in TITLES.items() if key in asked}
    differences = list(fact_differences(here, asked, titles))
    if differences:
        raise BatchError(
            f"the worker on {socket.gethostname()} would compute other bits:"
            f" {'; '.join(differences)}; valid: the same release, machine code and kind"
            " of processor everywhere"
        )


def _source(facts: TaskFacts, k: int) -> Any:
    """Return input k: a shared value, a file that this worker sees, or a SentSource.

    A file must have the expected number of rows and fingerprint.
    """
    port, where = facts.program.inputs[k], facts.references[k]
    if k in facts.values:
        return RowSource(port, facts.values[k])
    if where is not None:
        try:
            known = source(port, referred(where), facts.program.dtype)
            if known.rows == facts.rows and known.fingerprint() == facts.contents[k]:
                return known
        except OSError:
            pass  # another machine: the rows are sent
    return SentSource(port.name, facts.rows)


def _targets(facts: TaskFacts) -> Targets | None:
    """Return the Targets a worker writes to; None if it sends results back.

    None also if this worker does not see the journal of the run, or its result files.
    """
    if facts.results is None:
        return None
    try:
        header = Journal.read_header(facts.journal)
        if header is None or header["token"] != facts.token:
            return None
        return targets_of(facts.results)
    except (BatchError, OSError):
        return None  # another machine, with other files
