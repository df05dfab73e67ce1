"""What a thread needs to take the steps of a block of states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dyn_core.contact.collision.detection.tables import room_for_contacts, room_for_work
from dyn_core.contact.problem.rows import room_for_rows
from dyn_core.contact.solvers.work import room_for_solvers
from dyn_core.contact.stepping.array_step import FIRST_ROOM
from dyn_core.contact.stepping.batch_rows import (
    RowOutcomes,
    SolverChoice,
    step_rows,
)
from dyn_core.contact.stepping.contact_model import ContactModel
from dyn_core.contact.stepping.step_tables import (
    Earlier,
    Scene,
    StepArrays,
    room_for_blocks,
    room_for_earlier,
    room_for_step,
    room_for_terms,
)
from dyn_core.engines.machine_code import compiled

_NOTHING: tuple[Any, Any] = (None, None)


class BatchTables(NamedTuple):
    """What all threads share.

    Attributes:
        of: Robot and world.
        h: Step [s].
        scene: Their tables.
        terms, moved: Programs of CONTACT_TERMS and MOVED_STATE, for one thread.
        at_middle: Whether constraints are taken at the middle of a step.
        choice: Solver.
        chosen: Place of each body among those whose forces are wanted; -1: none.
        outcomes: Of all rows, written.
    """

    of: ContactModel
    h: float
    scene: Scene
    terms: Any
    moved: Any
    at_middle: bool
    choice: SolverChoice
    chosen: np.ndarray
    outcomes: RowOutcomes


class RowRange:
    """Rows that are worked on together.

    Attributes:
        first, last: The rows.
        earlier: Their impulses of the step before; None before the first step.
    """

    def __init__(self, first: int, last: int) -> None:
        self.first, self.last = first, last
        self.earlier: Earlier | None = None


class ThreadMemory:
    """What a thread needs: terms of a block, and room for one problem."""

    def __init__(self, batch: BatchTables, size: int) -> None:
        """Make room.

        Args:
            batch: What all threads share.
            size: Most rows of a block.
        """
        self._batch, model = batch, batch.of.model
        shapes = {port.name: port.shape for port in batch.terms.outputs}
        self._terms = room_for_terms(size, model.nq, model.nv, shapes)
        self._next, self._way = (np.zeros((size, model.nv)) for _ in range(2))
        self._turned = np.zeros((size, model.nv))
        self._report = np.zeros(8)
        self._make_room(FIRST_ROOM)

    def _make_room(self, contacts: int) -> None:
        """Make arrays for a number of contacts."""
        scene, nv = self._batch.scene, self._batch.of.model.nv
        single, moved = len(scene.joints.role), scene.tables.moved_start
        longest = min(nv, 2 * int(np.diff(moved).max(initial=0)))
        blocks, m = contacts + single, 6 * contacts + single
        y = 6 * contacts * longest + single * nv
        rows = room_for_rows(blocks, m, contacts * longest + single * nv, y)
        normals = room_for_rows(blocks, m, 0, 0)
        self._step = StepArrays(
            terms=self._terms,
            qd_next=self._next,
            way=self._way,
            earlier=room_for_earlier(0, 0, 0),
            contacts=room_for_contacts(contacts),
            rows=rows,
            blocks=room_for_blocks(blocks, m),
            normals=normals._replace(support=rows.support, y=rows.y),
            collision=room_for_work(len(scene.shapes.kind), len(scene.pairs.first)),
            work=room_for_step(nv, 6),
        )
        self._solver_work = room_for_solvers(rows, nv)
        self._room = contacts
        self._calls: dict[int, tuple[Earlier, Callable[..., Any]]] = {}

    def _call(self, block: RowRange) -> Callable[..., Any]:
        """Return the machine code tied to this memory and the impulses of a block."""
        blocks, m = len(self._step.rows.kind), len(self._step.rows.b)
        known, earlier = block.earlier, block.earlier
        if earlier is None or earlier.id.shape[1] < blocks:
            earlier = room_for_earlier(block.last - block.first, blocks, m)
            for new, old in zip(earlier, known or (), strict=known is not None):
                new[..., : old.shape[-1]] = old
            block.earlier = earlier
        tied, call = self._calls.get(block.first, _NOTHING)
        if call is None or tied is not earlier:
            batch = self._batch
            call = compiled(step_rows).bind(
                batch.scene,
                self._step._replace(earlier=earlier),
                self._solver_work,
                batch.choice,
                batch.chosen,
                batch.outcomes,
                self._report,
            )
            self._calls[block.first] = earlier, call
        return call

    def run(
        self,
        block: RowRange,
        program: Any,
        inputs: tuple[np.ndarray, ...],
        ends: tuple[np.ndarray, np.ndarray],
    ) -> None:
        """Take the step of a block.

        Args:
            block: Its rows.
            program: Of CONTACT_TERMS.
            inputs: q, qd, tau and perhaps f_ext of the batch.
            ends: q and qd after the step, written.
        """
        batch, rows = self._batch, slice(block.first, block.last)
        n, rest = block.last - block.first, batch.h
        q, qd, tau, *f_ext = (x[rows] for x in inputs)
        start = q, qd
        terms = tuple(x[:n] for x in self._terms)
        if batch.at_middle:
            rest = batch.h / 2
            batch.moved(q, qd, rest, out=terms[:2], status=True)
            q, qd = terms[:2]
        else:
            terms[0][:], terms[1][:] = q, qd
        carried = batch.of.carried.values
        program(q, qd, tau, batch.h, *f_ext, *carried, out=terms[2:], status=True)
        done = 0
        while done < n:
            call = self._call(block)
            done, needed = call(done, n, block.first, batch.h, rest)
            if needed:
                self._make_room(max(2 * self._room, needed))
        q_end, qd_end = (x[rows] for x in ends)
        outcomes = batch.outcomes
        batch.moved(q, self._next[:n], rest, out=(q_end, qd_end), status=True)
        if outcomes.corrected[rows].any():
            turned = self._turned[:n]
            batch.moved(q, self._way[:n], rest, out=(q_end, turned), status=True)
        failed = outcomes.failed[rows]
        whole = np.isfinite(q_end).all(axis=1) & np.isfinite(qd_end).all(axis=1)
        if failed.any() or not whole.all():
            failed[~whole] = 1
            kept = failed != 0
            q_end[kept], qd_end[kept] = start[0][kept], start[1][kept]
            assert block.earlier is not None
            block.earlier.known[kept] = 0
