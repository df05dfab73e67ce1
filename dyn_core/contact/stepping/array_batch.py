"""Steps with contacts of many states at a time, in machine code, on several threads.

    contact_terms -> find contacts, assemble, solve, correct, row by row -> moved_state

A batch is processed in blocks of rows that fit into the cache: dynamics of all rows of
a block by vectors, then one call of machine code for the contacts
(composite_step.py), then the positions. The bits of a row depend neither on other rows
nor on the threads; they are equal to the bits of ArrayStep.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dyn_core.contact.problem.residuals import STATUSES
from dyn_core.contact.rows.step_tables import SCHEMES, Earlier, StepArrays
from dyn_core.contact.solvers.solver_calls import ROW_SOLVERS
from dyn_core.contact.stepping.composite_step import (
    NO_RESULT,
    RowOutcomes,
    allocate_outcomes,
    step_rows,
)
from dyn_core.contact.stepping.contact_model import ContactModel
from dyn_core.contact.stepping.lane_steps import (
    LaneRoom,
    StatePack,
    fits_lanes,
    step_packs,
)
from dyn_core.contact.stepping.solver_choice import in_machine_code, solver_name
from dyn_core.contact.stepping.step_memory import StepRoom, StepSetup, checked_step
from dyn_core.engines.llvm.threads import WORKERS, count
from dyn_core.engines.machine_code import TiedBatch, compiled
from dyn_core.errors import ShapeError, UnsupportedError

BLOCK = 128  # maximum number of rows of a block
WHOLE = 8  # the number of rows of a block's memory is a multiple of it
SHARES = 4  # approximate number of blocks per thread, if there are enough rows
_NOTHING: tuple[Any, Any] = (None, None)


class BatchOutcome(NamedTuple):
    """Results of the steps of a batch of n states.

    Attributes:
        failed: Whether a row, or its step, is not finite; its state is unchanged, and
            other results have no meaning, (n,).
        status: Index in residuals.STATUSES, (n,); -1 in failed rows.
        residual: Residual of the law that the solver solves, (n,) [1].
        short: Whether the correction of overlaps was incomplete, (n,).
        force: Net contact force on each requested link, world axes, mean over the step,
            (n, links, 3) [N].
        world_force: Contribution of contacts with the world, likewise.
    """

    failed: np.ndarray
    status: np.ndarray
    iterations: np.ndarray
    contacts: np.ndarray
    rows: np.ndarray
    residual: np.ndarray
    short: np.ndarray
    force: np.ndarray
    world_force: np.ndarray

    @property
    def not_converged(self) -> int:
        """Number of rows whose status is not "converged", failed ones included."""
        return int(np.count_nonzero(self.status != STATUSES.index("converged")))


class BatchStep:
    """Steps of a robot in a World, many states at a time.

    Attributes:
        h: Step [s].
        rows: Number n of states of a batch.
        threads: Maximum number of threads.
        links: Links whose contact forces an outcome has.
    """

    def __init__(
        self,
        contact_model: ContactModel,
        h: float,
        rows: int,
        threads: int | None = None,
        links: Sequence[str] = (),
    ) -> None:
        """Build the Programs and allocate memory.

        Args:
            contact_model: Robot and world.
            h: Step [s].
            rows: Number of states of a batch, n.
            threads: Maximum number of threads; None: DYN_THREADS, or all cores.
            links: Links whose contact forces are computed. Links fixed to each other
                are one body, and each has the force of that body; links of the world
                have zeros.

        Raises:
            UnsupportedError: A step of the world would call Python, so that it is for
                single states only.
            ModelError: A link is unknown. Errors of the build of Programs pass
                through.
            SettingError: The step is not a finite number above 0, or DYN_THREADS is
                read and is not a whole number >= 1.
        """
        model, world = contact_model.model, contact_model.world
        self._of, self.h, self.rows = contact_model, checked_step(h), int(rows)
        if not in_machine_code(world):
            raise UnsupportedError(
                f"steps of a batch: solver {solver_name(world)}, {world.stepper},"
                f" {world.restitution}, {world.impacts}; valid: one of"
                f" {', '.join(ROW_SOLVERS)}, of {', '.join(SCHEMES)}, and newton,"
                " simultaneous, or a ContactSimulator for each state"
            )
        setup = StepSetup(contact_model, h)
        self.links, bodies = tuple(links), [model.body_of(name) for name in links]
        chosen = sorted(set(bodies) - {0})
        numbers = np.full(model.nb + 1, -1)
        numbers[chosen] = np.arange(len(chosen))
        self._columns = numbers[bodies]  # -1, of the world, is made zero
        self._setup = setup
        self._outcomes = allocate_outcomes(self.rows, numbers)
        self.threads = max(1, count(threads))
        parts = SHARES * self.threads if self.threads > 1 else 1
        share = -(-self.rows // (parts * WHOLE)) * WHOLE
        size = min(BLOCK, max(share, WHOLE))
        self._blocks = [
            _RowRange(first, min(first + size, self.rows))
            for first in range(0, self.rows, size)
        ]
        self._runners = [
            _BlockRunner(setup, self._outcomes, size)
            for _ in range(max(1, min(self.threads, len(self._blocks))))
        ]

    def reset(self, rows: Any = None) -> None:
        """Delete the impulses of some rows' earlier steps: their warm start is zero.

        Args:
            rows: Indices, a slice or a mask (n,) of the rows; None: all.

        Raises:
            IndexError: An index or the length of the mask is wrong.
        """
        chosen = np.zeros(self.rows, bool)
        chosen[... if rows is None else rows] = True
        for block in self._blocks:
            if block.earlier is not None:
                block.earlier.known[chosen[block.first : block.last]] = 0

    def step(
        self,
        q: np.ndarray,
        qd: np.ndarray,
        tau: np.ndarray,
        f_ext: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray, BatchOutcome]:
        """Return the states after a step, and its results.

        A payload has the values of the ContactModel at the time of the call. The
        impulses of each row are stored as its next warm start; a failed row has none. A
        row with NaN or inf fails, without an error. Inputs are not changed.

        Args:
            q, qd: States, (n, nq), (n, nv), with n = self.rows.
            tau: Joint forces, (n, nv) [N·m | N].
            f_ext: Force on each body, [moment about its origin; force] in body
                coordinates, (n, nb, 6) [N·m; N]; None: zeros.

        Returns:
            q and qd after the step, (n, nq), (n, nv), unchanged in failed rows, and the
            outcome. All are new arrays.

        Raises:
            ShapeError: An array has another shape.
            ValueError, TypeError: One is no array of numbers.

        Source: LCP-4.
        """
        model = self._of.model
        q = _checked("q", q, (self.rows, model.nq))
        qd = _checked("qd", qd, (self.rows, model.nv))
        tau = _checked("tau", tau, (self.rows, model.nv))
        inputs: tuple[np.ndarray, ...] = (q, qd, tau)
        if f_ext is not None:
            inputs += (_checked("f_ext", f_ext, (self.rows, model.nb, 6)),)
        ends = np.empty_like(q), np.empty_like(qd)
        waiting, lock = list(reversed(self._blocks)), threading.Lock()

        def work(runner: _BlockRunner) -> None:
            while True:
                with lock:
                    if not waiting:
                        return
                    block = waiting.pop()
                runner.run(block, inputs, ends)

        if len(self._runners) == 1:
            work(self._runners[0])
        else:
            tasks = [partial(work, runner) for runner in self._runners]
            WORKERS.run(tasks, waiting.clear)
        return *ends, self._outcome()

    def _outcome(self) -> BatchOutcome:
        """Return the results of the last step except its states, in new arrays.

        Forces (n, links, 3) have the order of self.links, zeros for links of the world.
        """
        known = self._outcomes
        forces = []
        for part in (known.force, known.world_force):
            force = (
                part[:, self._columns]
                if part.shape[1]
                else np.zeros((self.rows, len(self._columns), 3))
            )
            force[:, self._columns < 0] = 0.0
            forces.append(force)
        return BatchOutcome(
            known.failed.astype(bool),
            known.status.copy(),
            known.iterations.astype(int),
            known.contacts.copy(),
            known.rows.copy(),
            known.residual.copy(),
            known.short.astype(bool),
            *forces,
        )


class _RowRange:
    """Rows `first` to `last` - 1, processed together, and their impulses before.

    `earlier` is None before the first step.
    """

    def __init__(self, first: int, last: int) -> None:
        self.first, self.last = first, last
        self.earlier: Earlier | None = None


class _BlockPrograms:
    """The Programs of a step, bound to the memory of a block."""

    def __init__(self, setup: StepSetup, step: StepArrays, size: int) -> None:
        """Bind the Programs, and allocate inputs of `size` rows, a multiple of WHOLE.

        `begin` writes step.terms; `end` reads terms.q, qd_next and correction.
        """
        model, terms, rest = setup.of.model, step.terms, np.array(setup.remaining)
        self._setup, self._terms = setup, terms
        self._q, self._qd = terms.q, terms.qd
        self._middle: TiedBatch | None = None
        if setup.at_middle:
            self._q, self._qd = np.zeros_like(terms.q), np.zeros_like(terms.qd)
            start = self._q, self._qd, np.array(setup.h - setup.remaining)
            self._middle = TiedBatch(setup.moved, start, (terms.q, terms.qd))
        self._tau = np.zeros((size, model.nv))
        self._f_ext = np.zeros((size, model.nb, 6))
        self._payload = tuple(map(np.copy, setup.of.carried.values))
        self._calls: dict[bool, TiedBatch] = {}
        self._ends = np.zeros_like(terms.q), np.zeros_like(terms.qd)
        motion = terms.q, step.qd_next, rest, step.correction
        self._end = TiedBatch(setup.moved_apart, motion, self._ends)

    def begin(
        self,
        n: int,
        q: np.ndarray,
        qd: np.ndarray,
        tau: np.ndarray,
        f_ext: np.ndarray | None = None,
    ) -> None:
        """Compute the terms of n states, at least 1, into the memory of the block.

        The payload's present values are copied. For schemes with a midpoint, the terms
        are computed at the position in the middle of the step. Further rows up to a
        multiple of eight become copies of state 0. f_ext is the force on each body,
        body coordinates, (n, nb, 6) [N·m; N].
        """
        inputs = [(self._q, q), (self._qd, qd), (self._tau, tau)]
        if f_ext is not None:
            inputs.append((self._f_ext, f_ext))
        for to, source in inputs:
            # Rows up to a multiple of WHOLE get a valid state, too.
            to[:n] = source
            to[n : n + -n % WHOLE] = source[0]
        for mine, now in zip(self._payload, self._setup.of.carried.values, strict=True):
            mine[...] = now
        if self._middle is not None:
            self._middle(n)
        with_forces = f_ext is not None
        call = self._calls.get(with_forces)
        if call is None:
            forces = (self._f_ext,) * with_forces
            values = (self._terms.q, self._terms.qd, self._tau, np.array(self._setup.h))
            program = self._setup.terms(with_forces)
            call = TiedBatch(
                program, (*values, *forces, *self._payload), self._terms[2:]
            )
            self._calls[with_forces] = call
        call(n)

    def end(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return positions and velocities of n states after the step.

        They are computed from qd_next and correction in the memory of the block, and
        are views that the next call overwrites.
        """
        self._end(n)
        return self._ends[0][:n], self._ends[1][:n]


class _BlockRunner:
    """Memory of a thread for the steps of blocks of rows."""

    def __init__(self, setup: StepSetup, outcomes: RowOutcomes, size: int) -> None:
        """Allocate the memory for `size` rows at most, a multiple of eight.

        `outcomes` are the results of the whole batch; `run` writes those of its block.
        """
        self._setup, self._outcomes = setup, outcomes
        self._room = StepRoom(setup, size)
        self._programs = _BlockPrograms(setup, self._room.step, size)
        self._waiting = np.zeros(size, np.int64)
        states = min(size, len(outcomes.status))
        self._lanes = LaneRoom(setup) if fits_lanes(setup, states) else None
        self._pack: StatePack | None = None
        self._calls: dict[int, tuple[Earlier, Callable[..., Any]]] = {}

    def _call(self, block: _RowRange) -> Callable[..., Any]:
        """Return the machine code bound to this memory and the impulses of a block.

        Its arguments are the first and the end state and the index of state 0 in the
        outcomes. It returns the first state that is not stepped, and the number of
        contacts that the memory must hold for it, or 0. It is cached. If block.earlier
        is too small, it is first replaced by larger arrays with the same impulses; None
        by zeros.
        """
        room, setup = self._room, self._setup
        block.earlier = room.earlier(block.earlier, block.last - block.first)
        tied, call = self._calls.get(block.first, _NOTHING)
        if call is None or tied is not block.earlier:
            step = room.step._replace(earlier=block.earlier)
            fixed = setup.scene, step, room.solver, self._outcomes
            if self._lanes is None:
                call = compiled(step_rows).bind(*fixed)
            else:
                if self._pack is None:
                    chosen = self._outcomes.chosen
                    self._pack = self._lanes.pack(room, self._waiting, chosen)
                call = compiled(step_packs).bind(*fixed, self._pack)
            self._calls[block.first] = block.earlier, call
        return call

    def run(
        self,
        block: _RowRange,
        inputs: tuple[np.ndarray, ...],
        ends: tuple[np.ndarray, np.ndarray],
    ) -> None:
        """Compute the step of a block, and write its states and outcomes.

        The memory grows if there are more contacts. A row that is not finite is marked
        as failed, keeps its initial state, and loses its earlier impulses. inputs, q,
        qd, tau and perhaps f_ext (n, nb, 6), and ends, q and qd, are of the whole
        batch.
        """
        rows, n = slice(block.first, block.last), block.last - block.first
        start, programs = tuple(x[rows] for x in inputs), self._programs
        programs.begin(n, *start)
        done, self._waiting[:n] = 0, 1
        while done < n:
            done, needed = self._call(block)(done, n, block.first)
            if needed:
                self._room.grow(max(2 * self._room.contacts, needed))
                self._calls, self._pack = {}, None
        q_end, qd_end = (x[rows] for x in ends)
        outcomes = self._outcomes
        q_end[:], qd_end[:] = programs.end(n)
        failed = outcomes.failed[rows]
        whole = np.isfinite(q_end).all(axis=1) & np.isfinite(qd_end).all(axis=1)
        if failed.any() or not whole.all():
            failed[~whole], outcomes.status[rows][~whole] = 1, NO_RESULT
            kept = failed != 0
            q_end[kept], qd_end[kept] = start[0][kept], start[1][kept]
            assert block.earlier is not None
            block.earlier.known[kept] = 0


def _checked(name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return an input of a shape as a contiguous float array, itself if it is one."""
    array = np.ascontiguousarray(value, float)
    if array.shape != shape:
        raise ShapeError(name, f"shape {shape}", f"shape {array.shape}")
    return array
