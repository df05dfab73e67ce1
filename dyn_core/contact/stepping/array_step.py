"""A step with contacts on arrays: one call of machine code from state to state.

The call is composite_step.take_step, the same code and the same memory as for a row of
a batch (array_batch.py); the dynamics in it are traced Programs of the robot. Arrays
have room for a number of contacts, which doubles when there are more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from dyn_core.contact.collision.pairs import Contact
from dyn_core.contact.problem.layout import KINDS, ConstraintLayout
from dyn_core.contact.problem.problem import ConstraintProblem
from dyn_core.contact.problem.residuals import STATUSES
from dyn_core.contact.problem.solution import residuals
from dyn_core.contact.problem.solving import impossible
from dyn_core.contact.solvers.work import INFEASIBLE, MAX_ITERATIONS
from dyn_core.contact.stepping.assembly import prepare_step
from dyn_core.contact.stepping.composite_step import (
    DONE,
    REFUSED,
    StepKernels,
    StepLog,
    room_for_outcomes,
    take_step,
)
from dyn_core.contact.stepping.constraints import contact_name
from dyn_core.contact.stepping.contact_model import ContactModel
from dyn_core.contact.stepping.integration import advanced
from dyn_core.contact.stepping.step_memory import StepRoom, StepSetup
from dyn_core.contact.stepping.step_records import COUNTS, StepRecord, solver_name
from dyn_core.contact.stepping.step_tables import Earlier, StepArrays
from dyn_core.engines.machine_code import NO_KERNEL, KernelAddress, TiedKernel, compiled
from dyn_core.errors import NonFiniteError, ShapeError


class ArrayStep:
    """The step of a robot in a World, for the settings that `why_not` lets pass.

    Attributes:
        h: Step [s].
        solver_name: Of the contact solver.
    """

    def __init__(
        self, contact_model: ContactModel, h: float, prescribed: Sequence[str] = ()
    ) -> None:
        """Build the Programs, and make room.

        Args:
            contact_model: Robot and world.
            h: Step [s].
            prescribed: Joints whose accelerations are given.
        """
        self._setup = setup = StepSetup(contact_model, h, prescribed)
        self.h = setup.h
        self.solver_name = solver_name(contact_model.world)
        model = contact_model.model
        self._sizes = nq, nv = model.nq, model.nv
        self._impulses = nq + 2 * nv + 5  # where they begin in the log
        self._q_end, self._qd_end = np.zeros(nq), np.zeros(nv)
        rows = [k for part in setup.prescribed.values() for k in part]
        self._prescribed_rows = np.array(rows, int)
        self._accelerations = setup.scene.joints.acceleration
        self._room = StepRoom(setup, 1)
        terms = self._room.step.terms
        self._q, self._qd = terms.q[0], terms.qd[0]
        if setup.at_middle:
            self._q, self._qd = np.zeros(model.nq), np.zeros(model.nv)
        self._tau, self._f_ext = np.zeros(model.nv), np.zeros((model.nb, 6))
        self._payload = tuple(map(np.copy, contact_model.carried.values))
        times = setup.h, setup.remaining, setup.h - setup.remaining
        self._times = tuple(np.array(dt) for dt in times)
        self._outcomes = room_for_outcomes(1, np.full(model.nb + 1, -1))
        self._corrected: Any = self._outcomes.corrected.data
        self._earlier: Earlier | None = None
        import_module("scipy.optimize")  # of `impossible`: not while it steps
        self._tie()

    @property
    def contacts(self) -> int:
        """How many contacts the last step had."""
        return int(self._log.wholes[3])

    @property
    def m(self) -> int:
        """How many rows the last step had."""
        return int(self._log.wholes[4])

    @property
    def of(self) -> ContactModel:
        """Robot and world."""
        return self._setup.of

    def _make_room(self, contacts: int) -> None:
        """Make room for a number of contacts; earlier impulses are kept."""
        self._room.grow(contacts)
        self._tie()

    def _tie(self) -> None:
        """Tie the machine code to the memory."""
        room = self._room
        self._earlier = room.earlier(self._earlier, 1)
        self._step = room.step._replace(earlier=self._earlier)
        blocks, m = self._earlier.id.shape[1], self._earlier.impulse.shape[1]
        self._log = StepLog(
            np.zeros(COUNTS + 2 * blocks, np.int64),
            np.zeros(self._impulses + m),
            self._q_end,
            self._qd_end,
        )
        self._counts: Any = self._log.wholes.data
        self._numbers: Any = self._log.reals.data
        self._kernels: list[TiedKernel] = []
        self._calls: list[Any] = [self._call(False), None]  # without, with forces
        self._prepare = compiled(prepare_step).bind(self._setup.scene, self._step)

    def _call(self, with_forces: bool) -> Callable[[], int]:
        """Return the machine code of a step, tied to the memory."""
        setup, step, room = self._setup, self._step, self._room
        h, remaining, before = self._times
        q, qd, q_end = step.terms.q[0], step.terms.qd[0], self._q_end
        forces = (self._f_ext,) * with_forces
        inputs = self._q, self._qd, self._tau, h, *forces, *self._payload
        if setup.at_middle:
            middle = self._tied(setup.moved, (*inputs[:2], before), (q, qd))
            inputs = q, qd, *inputs[2:]
        terms = tuple(x[0] for x in step.terms[2:])
        kernels = StepKernels(
            middle=middle if setup.at_middle else NO_KERNEL,
            terms=self._tied(setup.terms(with_forces), inputs, terms),
            end=self._tied(
                setup.moved_apart,
                (q, step.qd_next[0], remaining, step.correction[0]),
                (q_end, self._qd_end),
            ),
        )
        return compiled(take_step).bind(
            setup.scene, step, kernels, room.solver, self._outcomes, self._log
        )

    def _tied(self, program: Any, inputs: Any, outputs: Any) -> KernelAddress:
        """Return a Program tied to arrays, and keep it."""
        self._kernels.append(TiedKernel(program, inputs, outputs))
        return self._kernels[-1].kernel

    def forget(self) -> None:
        """Forget the impulses of earlier steps: the next starts from zero."""
        self._step.earlier.known[0] = 0

    def step(
        self,
        t: float,
        q: np.ndarray,
        qd: np.ndarray,
        tau: np.ndarray,
        f_ext: np.ndarray | None = None,
        accelerations: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray, StepRecord]:
        """Return the state after a step, and its record.

        Args:
            t: Start [s].
            q, qd: State, (nq,), (nv,).
            tau: Joint forces, (nv,) [N·m | N].
            f_ext: Force on each body, body coordinates, (nb, 6) [N·m; N].
            accelerations: Of the prescribed coordinates, in their order.

        Raises:
            ShapeError: q or qd has another size.
            NonFiniteError: The state after the step is not finite.

        Source: LCP-4.
        """
        if len(q) != self._sizes[0] or len(qd) != self._sizes[1]:
            raise ShapeError("q, qd", f"lengths {self._sizes}", f"{len(q)}, {len(qd)}")
        self._q[...], self._qd[...], self._tau[...] = q, qd, tau
        forces = self._setup.of.carried.values
        if forces:
            self._payload[0][:] = forces[0]
        with_forces = f_ext is not None
        if with_forces:
            self._f_ext[:] = f_ext
            forces = (self._f_ext.copy(), *forces)
        if accelerations is not None:
            self._accelerations[self._prescribed_rows] = accelerations
        call = self._calls[with_forces]
        if call is None or call() != DONE:
            self._try_again(with_forces)
        counts = self._counts
        status, m, blocks = counts[0], counts[4], counts[5]
        if status == MAX_ITERATIONS and impossible(self._problem(blocks, m)):
            status = INFEASIBLE
        wholes = counts[: COUNTS + 2 * blocks].tobytes()
        reals = self._numbers[: self._impulses + m].tobytes()
        sizes, short, q_end = self._sizes, counts[2], self._q_end.copy()
        shifted = q_end if self._corrected[0] else None
        acting = forces, self._tau.tobytes(), shifted
        kept = t, self.h, STATUSES[status], short, *acting, sizes, wholes, reals
        record = tuple.__new__(StepRecord, kept)  # the fastest way to make one
        return q_end, self._qd_end.copy(), record

    def _try_again(self, with_forces: bool) -> None:
        """Take a step that was not done: make room, or say what is wrong with it."""
        result = -1
        while result < 0:
            call = self._calls[with_forces]
            if call is None:
                call = self._calls[with_forces] = self._call(with_forces)
            result = call()
            if result < 0:
                self._make_room(max(2 * self._room.contacts, -result))
        if result == DONE:
            return
        self.forget()
        if result == REFUSED:  # the same Programs say what they require
            q, qd, forces = self._q, self._qd, (self._f_ext,) * with_forces
            if self._setup.at_middle:
                q, qd = self._setup.moved(q, qd, self.h - self._setup.remaining)
            program = self._setup.terms(with_forces)
            program(q, qd, self._tau, self.h, *forces, *self._payload)
        raise NonFiniteError("contacts: the velocity is not finite", "qd")

    def prepare_again(self, record: StepRecord) -> StepArrays:
        """Return the arrays with the problem of an earlier step, but for its impulses.

        Args:
            record: Of that step.
        """
        terms, program = self._step.terms, self._setup.terms(record.with_forces)
        terms.q[0], terms.qd[0] = record.q, record.qd
        out = tuple(x[0] for x in terms[2:])
        program(record.q, record.qd, record.tau, self.h, *record.forces, out=out)
        self._prepare(0)
        return self._step

    def shift(self, record: StepRecord) -> np.ndarray | None:
        """Return the displacement that corrected the end of a step, (nv,)."""
        if record.q_end is None:
            return None
        model, remaining = self.of.model, self._setup.remaining
        uncorrected, _ = advanced(model, record.q, record.velocity, remaining)
        return np.asarray(model.difference(uncorrected, record.q_end))

    def sparse_rows(self, blocks: int, m: int) -> np.ndarray:
        """Return Y of the prepared problem by place, (m, nv): G = Y Y.T."""
        rows, Y = self._room.step.rows, np.zeros((m, self._setup.scene.tables.nv))
        for k in range(blocks):
            first, n = rows.support_start[k], rows.support_count[k]
            start, count, begin = rows.start[k], rows.count[k], rows.y_start[k]
            values = rows.y[begin : begin + count * n].reshape(count, n)
            Y[start : start + count, rows.support[first : first + n]] = values
        return Y

    def factor(self) -> np.ndarray:
        """Return L of the prepared problem, from coordinates to places: (nv, nv).

        H + dt B = L.T L
        """
        tables, packed = self._setup.scene.tables, self._room.step.terms.factor[0]
        n = tables.nv
        L = np.diag(1 / packed[:n])
        for k in range(n):
            start, stop = tables.above_start[k : k + 2]
            L[k, tables.above[start:stop]] = packed[n + start : n + stop]
        by_coordinate = np.zeros((n, n))
        by_coordinate[:, tables.coordinate] = L
        return by_coordinate

    def contact(self, number: int) -> Contact:
        """Return a contact of the prepared problem."""
        pairs = self._setup.of.pairs
        assert pairs is not None
        return pairs.contact(self._room.step.contacts, number)

    def constraint_name(self, number: int) -> str:
        """Return how reports call a constraint by its number; not for contacts."""
        return self._setup.names[-1 - number]

    def names(self, record: StepRecord) -> str:
        """Return the constraints whose laws a step misses most, for a message."""
        step, x = self.prepare_again(record), record.impulse
        problem = self._problem(len(record.ids), len(x))
        missed = [residuals(problem, x, block).law for block in problem.layout.blocks]
        names = [
            contact_name(self.contact(int(step.blocks.source[k])))
            if record.ids[k] >= 0
            else self.constraint_name(int(record.ids[k]))
            for k in np.argsort(np.negative(missed), kind="stable")[:3]
        ]
        return ", ".join(names) + (", ..." if len(record.ids) > 3 else "")

    def prescribed_forces(self, record: StepRecord) -> np.ndarray:
        """Return the mean joint forces of the prescribed motion, (nv,) [N·m | N]."""
        joints, tables = self._setup.scene.joints, self._setup.scene.tables
        force = np.zeros(tables.nv)
        row = dict(zip(record.ids.tolist(), record.starts.tolist(), strict=True))
        for k in self._prescribed_rows:
            coordinate = tables.coordinate[joints.place[joints.term_start[k]]]
            force[coordinate] += record.impulse[row[-1 - int(k)]] / record.h
        return force

    def _problem(self, blocks: int, m: int) -> ConstraintProblem:
        """Return the prepared problem with its matrix G."""
        rows, Y = self._room.step.rows, self.sparse_rows(blocks, m)
        heights = zip(rows.kind[:blocks], rows.count[:blocks], strict=True)
        layout = ConstraintLayout(tuple((KINDS[k], int(n)) for k, n in heights))
        mu = [
            x
            for k, block in enumerate(layout.blocks)
            for x in rows.mu[k, : block.count].tolist()
        ]
        lo, hi, compliance = rows.lo[:m], rows.hi[:m], rows.compliance[:m]
        return ConstraintProblem(layout, Y @ Y.T, rows.b[:m], mu, lo, hi, compliance)
