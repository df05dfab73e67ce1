"""Steps with contacts of many states at a time, in machine code, on several threads.

    contact_terms -> find contacts, assemble, solve, correct, row by row -> moved_state

A batch is worked on in blocks of rows that stay in the cache: dynamics of all rows of a
block by vectors, then one call of machine code for what depends on the number of
contacts (batch_rows.py), then the positions. The bits of a row depend neither on the
others nor on the threads; they are those of ArrayStep.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dyn_core.contact.problem.residuals import STATUSES
from dyn_core.contact.stepping.batch_memory import BatchTables, RowRange, ThreadMemory
from dyn_core.contact.stepping.batch_rows import (
    room_for_outcomes,
    solver_choice,
)
from dyn_core.contact.stepping.contact_model import ContactModel
from dyn_core.contact.stepping.joint_rows import dense_rows, joint_table
from dyn_core.contact.stepping.step_records import solver_name, why_not
from dyn_core.contact.stepping.step_solver import error_terms
from dyn_core.contact.stepping.step_tables import (
    SCHEMES,
    Rule,
    Scene,
)
from dyn_core.contact.stepping.structure import structure
from dyn_core.engines.llvm.threads import WORKERS, count
from dyn_core.errors import ShapeError, UnsupportedError
from dyn_core.solving.registry import solver

BLOCK = 128  # most rows of a block
SHARES = 4  # blocks that each thread takes, about, where there are enough rows
LANES = 8  # rows of a block are a multiple of it


class BatchOutcome(NamedTuple):
    """What is known of the steps of a batch.

    Attributes:
        failed: Whether a row, or its step, is not finite; its state stays, (n,).
        status: Index in residuals.STATUSES, (n,).
        iterations, contacts, rows: Of the solver, and of the problem, (n,).
        residual: Of the solver's own law, (n,) [N·s, m/s, J, scaled].
        short: Whether overlaps had no room to be corrected, (n,).
        force: Net contact force on each link that was asked for, world axes, mean over
            the step, (n, links, 3) [N].
        world_force: Its part from the world, likewise.
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
        """How many rows did not reach the tolerance of the solver."""
        return int(np.count_nonzero(self.status != STATUSES.index("converged")))


class BatchStep:
    """Steps of a robot in a World, many states at a time.

    Attributes:
        h: Step [s].
        rows: States of a batch.
        threads: Most threads that work on it.
        links: Those whose contact forces an outcome has.
    """

    def __init__(
        self,
        contact_model: ContactModel,
        h: float,
        rows: int,
        threads: int | None = None,
        links: Sequence[str] = (),
    ) -> None:
        """Build the Programs, and make room.

        Args:
            contact_model: Robot and world.
            h: Step [s].
            rows: States of a batch, n.
            threads: Most threads; None: DYN_THREADS, or all cores.
            links: Those whose contact forces are wanted. A link that is fixed to
                another shares the forces of the body that both are.

        Raises:
            UnsupportedError: The world, or the robot's constraints, are for single
                states only.
            ModelError: A link is unknown.
        """
        model, world = contact_model.model, contact_model.world
        self._of, self.h, self.rows = contact_model, float(h), int(rows)
        reason = why_not(world) or _dense(contact_model)
        if reason is not None:
            raise UnsupportedError(
                f"steps of a batch: {reason}; valid: a ContactSimulator for each state"
            )
        terms = contact_model.build("contact_terms")
        moved = solver("moved_state").build(model, engine=contact_model.engine)
        for program in (terms, moved):
            program.threads = 1  # blocks are what threads share
            program.prepare(batch=True)
        self.links, bodies = tuple(links), [model.body_of(name) for name in links]
        chosen = sorted(set(bodies) - {0})
        numbers = np.full(model.nb + 1, -1)
        numbers[chosen] = np.arange(len(chosen))
        self._columns = numbers[bodies]  # -1, of the world, is made zero
        tables = BatchTables(
            contact_model,
            self.h,
            _scene(contact_model, self.h),
            terms,
            moved,
            world.stepper == "moreau_jean",
            solver_choice(solver_name(world), dict(world.solver_options)),
            numbers,
            room_for_outcomes(self.rows, len(chosen)),
        )
        self._tables = tables
        self._with_forces: Any = None
        self.threads = max(1, count(threads))
        parts = SHARES * self.threads if self.threads > 1 else 1
        share = -(-self.rows // (parts * LANES)) * LANES
        size = min(BLOCK, max(share, LANES))
        self._blocks = [
            RowRange(first, min(first + size, self.rows))
            for first in range(0, self.rows, size)
        ]
        self._memories = [
            ThreadMemory(tables, size)
            for _ in range(max(1, min(self.threads, len(self._blocks))))
        ]

    def reset(self, rows: Any = None) -> None:
        """Forget the impulses of earlier steps of some rows.

        Args:
            rows: Numbers or mask of the rows; None: all.
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
        """Return the states after a step, and what is known of it.

        Args:
            q, qd: States, (n, nq), (n, nv).
            tau: Joint forces, (n, nv) [N·m | N].
            f_ext: Force on each body, body coordinates, (n, nb, 6) [N·m; N]; None:
                none.

        Returns:
            q and qd after the step, those of failed rows as they were, and the outcome.

        Raises:
            ShapeError: An array has another shape.

        Source: LCP-4.
        """
        model = self._of.model
        q = _checked("q", q, (self.rows, model.nq))
        qd = _checked("qd", qd, (self.rows, model.nv))
        tau = _checked("tau", tau, (self.rows, model.nv))
        inputs: tuple[np.ndarray, ...] = (q, qd, tau)
        program = self._tables.terms
        if f_ext is not None:
            inputs += (_checked("f_ext", f_ext, (self.rows, model.nb, 6)),)
            program = self._forced()
        ends = np.empty_like(q), np.empty_like(qd)
        waiting, lock = list(reversed(self._blocks)), threading.Lock()

        def work(memory: ThreadMemory) -> None:
            while True:
                with lock:
                    if not waiting:
                        return
                    block = waiting.pop()
                memory.run(block, program, inputs, ends)

        if len(self._memories) == 1:
            work(self._memories[0])
        else:
            tasks = [partial(work, memory) for memory in self._memories]
            WORKERS.run(tasks, waiting.clear)
        return *ends, self._outcome()

    def _outcome(self) -> BatchOutcome:
        """Return what is known of the last step."""
        known = self._tables.outcomes
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
            known.iterations.copy(),
            known.contacts.copy(),
            known.rows.copy(),
            known.residual.copy(),
            known.short.astype(bool),
            *forces,
        )

    def _forced(self) -> Any:
        """Return contact_terms with forces on bodies, built when first needed."""
        if self._with_forces is None:
            program = self._of.build("contact_terms", "f_ext")
            program.threads = 1
            program.prepare(batch=True)
            self._with_forces = program
        return self._with_forces


def _dense(of: ContactModel) -> str | None:
    """Return which constraints have rows that are computed for one state only."""
    anywhere = of.model.random(np.random.default_rng(0))
    names = [c.name for c in of.dense_constraints(anywhere, np.zeros(of.model.nv))]
    if not names:
        return None
    return f"the rows of {', '.join(names[:3])} are computed for one state at a time"


def _scene(of: ContactModel, h: float) -> Scene:
    """Return the tables of a robot in its world."""
    model, world, tables = of.model, of.world, structure(of.model)
    joints = joint_table(
        model, tables, of.joints, world.limits, world.limit_restitution, of.dry, ()
    ).rows
    erp, soft = error_terms(world, h)
    rule = Rule(
        scheme=SCHEMES[world.stepper],
        erp=erp,
        compliance=soft,
        threshold=world.restitution_threshold,
        push=np.inf if soft else world.push_out_speed,
        apart=world.erp if world.stabilisation == "split_impulse" else 0.0,
        margin=world.margin,
    )
    dense = dense_rows(tables, [], -1 - len(joints.role))
    return Scene(tables, *of.shapes_and_pairs, joints, dense, rule)


def _checked(name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return an input as an array of a shape."""
    array = np.ascontiguousarray(value, float)
    if array.shape != shape:
        raise ShapeError(name, f"shape {shape}", f"shape {array.shape}")
    return array
