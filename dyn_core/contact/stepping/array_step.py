"""A step with contacts on arrays: one call of machine code from state to state.

The call is composite_step.take_step, the same code and the same memory as for a row of
a batch (array_batch.py); the dynamics in it are traced Programs of the robot. Solvers
of matrices (step_matrices.py) and some laws of impacts (poisson_and_sequential.py) are
called back from there. The capacity of the arrays for contacts doubles when there are
more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from dyn_core.contact.collision.detection.detection_arrays import Contacts
from dyn_core.contact.collision.pairs import Contact
from dyn_core.contact.problem.residuals import STATUSES
from dyn_core.contact.problem.solution import laws_of_blocks
from dyn_core.contact.problem.solving import impossible
from dyn_core.contact.rows.block_rows import copy_impulses
from dyn_core.contact.rows.constraints import contact_name
from dyn_core.contact.rows.problem_assembly import prepare_again
from dyn_core.contact.rows.step_tables import SCHEMES, Earlier, StepArrays
from dyn_core.contact.solvers.solver_memory import INFEASIBLE, MAX_ITERATIONS
from dyn_core.contact.stepping.composite_step import (
    DONE,
    REFUSED,
    StepKernels,
    StepLog,
    allocate_outcomes,
    take_step,
)
from dyn_core.contact.stepping.contact_model import ContactModel
from dyn_core.contact.stepping.integration import advanced
from dyn_core.contact.stepping.solver_choice import solver_name
from dyn_core.contact.stepping.step_matrices import (
    inertia_factor,
    keep_blocks,
    problem_of,
    sparse_rows,
)
from dyn_core.contact.stepping.step_memory import StepRoom, StepSetup
from dyn_core.contact.stepping.step_records import COUNTS, FastContacts, StepRecord
from dyn_core.engines.machine_code import NO_KERNEL, KernelAddress, TiedKernel, compiled
from dyn_core.errors import NonFiniteError, ShapeError

# Rows up to which a proof is tried that a problem has no solution. It takes memory by
# their square and time by their cube: 0.5 s for 1500, and 9 GB for 35000.
MOST_PROVEN = 1000


class ArrayStep:
    """The step of a robot in a World, in one call of machine code.

    Attributes:
        of: Robot and world.
        setup: Tables and Programs.
        room: Memory.
        h: Step [s].
        solver_name: Name of the contact solver.
        save_impulses: Function that stores the impulses of the next warm start.
        restore_impulses: Function that makes the stored ones the next warm start.
    """

    def __init__(
        self, contact_model: ContactModel, h: float, prescribed: Sequence[str] = ()
    ) -> None:
        """Build the Programs and allocate memory for a single state.

        Args:
            contact_model: Robot and world.
            h: Step [s].
            prescribed: Names of joints whose accelerations are given, zeros at first,
                in the order in which `accelerate` takes them.

        Raises:
            SettingError: The step is not a finite number above 0.
            ModelError: A name in `prescribed` is of no joint, or of a fixed or locked
                one, or two are the same or move together. Errors of the build of
                Programs pass through.
        """
        self.setup = setup = StepSetup(contact_model, h, prescribed)
        self.of, self.h = contact_model, setup.h
        self.solver_name = solver_name(contact_model.world)
        model = contact_model.model
        self._sizes = nq, nv = model.nq, model.nv
        self._impulses = nq + 2 * nv + 5  # where they begin in the log
        self._q_end, self._qd_end = np.zeros(nq), np.zeros(nv)
        rows = [k for part in setup.prescribed.values() for k in part]
        self._prescribed_rows = np.array(rows, int)
        self._accelerations = setup.scene.joints.acceleration
        self.room = StepRoom(setup, 1)
        terms = self.room.step.terms
        self._q, self._qd = terms.q[0], terms.qd[0]
        if setup.at_middle:
            self._q, self._qd = np.zeros(model.nq), np.zeros(model.nv)
        self._tau, self._f_ext = np.zeros(model.nv), np.zeros((model.nb, 6))
        self._carried = contact_model.carried
        self._payload = tuple(map(np.copy, self._carried.values))
        times = setup.h, setup.remaining, setup.h - setup.remaining
        self._times = tuple(np.array(dt) for dt in times)
        self._outcomes = allocate_outcomes(1, np.full(model.nb + 1, -1))
        self._corrected: Any = self._outcomes.corrected.data
        self._earlier: Earlier | None = None
        self._saved: Earlier | None = None
        import_module("scipy.optimize")  # of `impossible`: not while it steps
        self._tie()

    @property
    def contacts(self) -> int:
        """Contacts of the last step without an error; 0 before it, and after make_room.

        A failed step leaves the number as it is.
        """
        return int(self._log.integers[3])

    @property
    def m(self) -> int:
        """Rows of the last step without an error; 0 before it, and after make_room.

        A failed step leaves the number as it is.
        """
        return int(self._log.integers[4])

    @property
    def memory(self) -> StepArrays:
        """Arrays of the problem; replaced when the capacity for contacts grows."""
        return self._step

    @property
    def state(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Memory of q, (nq,), qd, (nv,), and tau, (nv,), which is never reallocated.

        `step` copies its inputs into it; the machine code reads it.
        """
        return self._q, self._qd, self._tau

    @property
    def payload(self) -> tuple[np.ndarray, ...]:
        """Memory of the payload's ten parameters, one array (10,); never reallocated.

        They are in the order of Payload.parameters. The tuple is empty without a
        payload link. `step` overwrites the memory with the values of
        ContactModel.carried.
        """
        return self._payload

    def make_room(self, contacts: int) -> None:
        """Allocate buffers for at least `contacts`; earlier impulses are preserved.

        The capacity at least doubles. The problem in the memory is lost.
        """
        self.room.grow(max(2 * self.room.contacts, contacts))
        self._tie()

    def _tie(self) -> None:
        """Bind the machine code to the present memory, and allocate a new log.

        The old log and the functions of `_call` for the old memory are dropped. Earlier
        impulses are kept, in larger arrays if the memory has grown.
        """
        room = self.room
        self._earlier = room.earlier(self._earlier, 1)
        self._saved = room.earlier(self._saved, 1)
        copy = compiled(copy_impulses)
        self.save_impulses = copy.bind(self._earlier, self._saved)
        self.restore_impulses = copy.bind(self._saved, self._earlier)
        self._step = room.step._replace(earlier=self._earlier)
        blocks, m = self._earlier.id.shape[1], self._earlier.impulse.shape[1]
        self._log = StepLog(
            np.zeros(COUNTS + 2 * blocks, np.int64),
            np.zeros(self._impulses + m),
            self._q_end,
            self._qd_end,
        )
        self._counts: Any = self._log.integers.data
        self._numbers: Any = self._log.floats.data
        self._kernels: list[TiedKernel] = []
        self._calls: list[Any] = [None, None]  # without, with forces
        if self.of.world.stepper in SCHEMES:
            self._calls[False] = self._call(False)
        self._prepare = compiled(prepare_again).bind(self.setup.scene, self._step)
        self._used: Any = self._step.fast.used.data

    def _call(self, with_forces: bool) -> Callable[[], int]:
        """Return the machine code of a step, take_step, bound to the memory.

        Each call binds anew: the caller stores the function in self._calls.
        """
        setup, step, room = self.setup, self._step, self.room
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
        memory = step, kernels, room.solver, self._outcomes, self._log
        return compiled(take_step).bind(setup.scene, *memory)

    def _tied(self, program: Any, inputs: Any, outputs: Any) -> KernelAddress:
        """Return the address of a float64 Program bound to arrays, one for each Port.

        The object behind it is stored to keep it alive.
        """
        self._kernels.append(TiedKernel(program, inputs, outputs))
        return self._kernels[-1].kernel

    def accelerate(self, accelerations: np.ndarray | None) -> None:
        """Prescribe accelerations for the following steps.

        Args:
            accelerations: Accelerations of all coordinates of prescribed joints, in the
                order of the constructor's `prescribed`, (coordinates,), or one number
                for all [rad/s² | m/s²]; ValueError for another number. None: no change.
        """
        if accelerations is not None:
            self._accelerations[self._prescribed_rows] = accelerations

    def forget(self) -> None:
        """Delete the impulses of earlier steps: the next warm start is zero.

        Those that save_impulses stored stay.
        """
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

        The impulses are stored as the next warm start. A problem that the solver did
        not solve is no error: see the record's status.

        Args:
            t: Start [s].
            q, qd: State, (nq,), (nv,).
            tau: Joint forces, (nv,) [N·m | N].
            f_ext: Force on each body, body coordinates, (nb, 6) [N·m; N]; None: zeros.
            accelerations: As in `accelerate`; None: as before.

        Returns:
            q, (nq,), qd, (nv,), and the record, all copies.

        Raises:
            ShapeError: An array has another shape.
            ValueError: accelerations has another size than one or all coordinates.
            NonFiniteError: The state before the step, or the state after it, is not
                finite.
            DynError: The dynamics cannot be computed at the state. Any error of a
                solver in Python passes through. After these and a NonFiniteError the
                impulses of earlier steps are deleted.

        Source: LCP-4.
        """
        nq, nv = sizes = self._sizes
        if np.shape(q) != (nq,) or np.shape(qd) != (nv,):
            got = f"{np.shape(q)}, {np.shape(qd)}"
            raise ShapeError("q, qd", f"shapes ({nq},), ({nv},)", got)
        if np.shape(tau) != (nv,):
            raise ShapeError("tau", f"shape ({nv},)", f"shape {np.shape(tau)}")
        self._q[...], self._qd[...], self._tau[...] = q, qd, tau
        forces = self._carried.values
        if forces:
            self._payload[0][:] = forces[0]
        with_forces = f_ext is not None
        if f_ext is not None:
            wanted = self._f_ext.shape
            if np.shape(f_ext) != wanted:
                raise ShapeError("f_ext", f"shape {wanted}", f"shape {np.shape(f_ext)}")
            self._f_ext[:] = f_ext
            forces = (self._f_ext.copy(), *forces)
        if accelerations is not None:
            self.accelerate(accelerations)
        call = self._calls[with_forces]
        if call is None or call() != DONE:
            self._try_again(with_forces)
        counts = self._counts
        status, m, blocks = counts[0], counts[4], counts[5]
        if status == MAX_ITERATIONS:
            status = self.proven(blocks, m)
        integers = counts[: COUNTS + 2 * blocks].tobytes()
        floats = self._numbers[: self._impulses + m].tobytes()
        short, q_end = counts[2], self._q_end.copy()
        shifted = q_end if self._corrected[0] else None
        fast = self._fast_contacts() if self._used[0] else None
        kept = (
            t, self.h, STATUSES[status], short, forces, self._tau.tobytes(), shifted,
            sizes, integers, floats, fast,
        )  # fmt: skip
        record = tuple.__new__(StepRecord, kept)  # the fastest way to make one
        return q_end, self._qd_end.copy(), record

    def proven(self, blocks: int, m: int) -> int:
        """Return INFEASIBLE if the prepared problem provably is, else MAX_ITERATIONS.

        No proof is tried for more than MOST_PROVEN (1000) rows.

        Args:
            blocks, m: Numbers of blocks and rows of the problem in the memory.
        """
        if m > MOST_PROVEN:
            return MAX_ITERATIONS
        problem = problem_of(self._step, blocks, m)
        return INFEASIBLE if impossible(problem) else MAX_ITERATIONS

    def _try_again(self, with_forces: bool) -> None:
        """Repeat a step that was not DONE with larger buffers, or raise its error.

        Impulses of earlier steps are deleted before an error is raised.
        """
        result = -1
        while result < 0:
            self.room.python.raise_error()
            call = self._calls[with_forces]
            if call is None:
                call = self._calls[with_forces] = self._call(with_forces)
            result = call()
            if result < 0:
                self.make_room(-result)
        if result == DONE:
            return
        self.forget()
        self.room.python.raise_error()
        if result == REFUSED:  # called from Python, the same Programs raise the error
            q, qd, forces = self._q, self._qd, (self._f_ext,) * with_forces
            if self.setup.at_middle:
                q, qd = self.setup.moved(q, qd, self.h - self.setup.remaining)
            program = self.setup.terms(with_forces)
            program(q, qd, self._tau, self.h, *forces, *self._payload)
        whole = np.isfinite(self._q).all()
        name, what = ("qd", "velocity") if whole else ("q", "position")
        raise NonFiniteError(f"contacts: the {what} is not finite", name)

    def fill_terms(
        self,
        q: np.ndarray,
        qd: np.ndarray,
        tau: np.ndarray,
        dt: float,
        bodies: tuple[np.ndarray, ...],
        carried: tuple[np.ndarray, ...],
    ) -> None:
        """Compute the terms of the dynamics at a state into the memory.

        Args:
            q, qd: State, (nq,), (nv,).
            tau: Joint forces, (nv,) [N·m | N].
            dt: Time in which forces act, 0 for an impact [s].
            bodies: Force on each body, (nb, 6), body coordinates [N·m; N], as the only
                entry; empty: no forces.
            carried: The payload's ten parameters, (10,), as the only entry; empty
                without a payload link.

        Raises:
            DynError: The dynamics cannot be computed at the state.
        """
        terms = self._step.terms
        terms.q[0], terms.qd[0] = q, qd
        out = tuple(x[0] for x in terms[2:])
        program = self.setup.terms(bool(bodies))
        program(q, qd, tau, dt, *bodies, *carried, out=out)

    def prepare_again(self, record: StepRecord) -> StepArrays:
        """Prepare the problem of an earlier step again; return the arrays.

        The problem in the memory is overwritten. The impulses of the step are not in
        the arrays, only in the record.

        Args:
            record: Record of that step, by this object.

        Returns:
            The memory of this object, valid until the next step, or until another
            problem is prepared.

        Raises:
            DynError: The dynamics cannot be computed at the state of the record.
        """
        bodies = record.forces[: record.with_forces]
        state = record.q, record.qd, record.tau
        self.fill_terms(*state, record.h, bodies, record.payload)
        touching = -1
        if record.fast is not None:
            known, step = record.fast, self._step
            touching = len(known.contacts.id)
            step.fast.velocity[: len(known.velocity)] = known.velocity
            step.fast.met[:], step.fast.met_time[:] = known.met, known.met_time
            for part, values in zip(step.contacts, known.contacts, strict=True):
                part[:touching] = values
        blocks = self._prepare(0, touching)
        ids = self._step.blocks.id[:blocks]
        if blocks != len(record.ids):  # the record has a subset, as events do
            keep_blocks(self._step, np.isin(ids, record.ids))
        return self._step

    def _fast_contacts(self) -> FastContacts:
        """Return copies of the last step's contacts, velocities and meetings."""
        step, count = self._step, self.contacts
        contacts = Contacts._make(part[:count].copy() for part in step.contacts)
        memory, used = step.fast, self._used[0]
        velocity = memory.velocity[:used].copy()
        return FastContacts(
            contacts, velocity, memory.met.copy(), memory.met_time.copy()
        )

    def shift(self, record: StepRecord) -> np.ndarray | None:
        """Return the displacement by which a step corrected its final position, (nv,).

        From the end without correction [rad | m], along the axes of the velocity there.
        With meetings of fast bodies it includes what these moved the bodies. None if
        there was neither a correction nor a meeting. The memory is not used.
        """
        if record.q_end is None:
            return None
        model = self.of.model
        remaining = record.h * (self.setup.remaining / self.setup.h)
        uncorrected, _ = advanced(model, record.q, record.velocity, remaining)
        return np.asarray(model.difference(uncorrected, record.q_end))

    def matrices(
        self, step: StepArrays, record: StepRecord
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return Y and L of the problem in the memory, after `prepare_again`.

        Args:
            step: Arrays that `prepare_again` returned.
            record: Record of the step; its numbers of blocks and rows are used.

        Returns:
            Y = J L^-1, (rows, nv), with the Jacobian J of the rows, and L, (nv, nv),
            the factor of the inertia with damping, L.T L = H + dt B; both new. dt is
            record.h, B the slopes of joint friction. Columns of Y and rows of L are in
            the order of elimination, columns of L by coordinate: L is not triangular
            unless both orders agree. See sparse_rows, inertia_factor.
        """
        Y = sparse_rows(step, len(record.starts), len(record.impulse))
        return Y, inertia_factor(step, self.setup.scene.tables)

    def contact(self, number: int) -> Contact:
        """Return a copy of a contact of the problem in the memory.

        number: Index of the contact, from 0; past the last contact are old entries.

        Raises IndexError past the capacity, AssertionError if contacts are off.
        """
        pairs = self.setup.of.pairs
        assert pairs is not None
        return pairs.contact(self.room.step.contacts, number)

    def constraint_name(self, number: int) -> str:
        """Return the name of a constraint that is no contact.

        number: Its negative id, as in StepRecord.ids; IndexError below all ids.
        """
        return self.setup.names[-1 - number]

    def names(self, record: StepRecord) -> str:
        """Return the names of the three constraints with the largest residuals.

        For messages: the largest first, separated by ", ", with ", ..." if there are
        more than three constraints; empty without any. The problem of the step is
        prepared again in the memory.

        Args:
            record: Record of the step.

        Raises:
            DynError: The dynamics cannot be computed at the state of the record.
        """
        step, x = self.prepare_again(record), record.impulse
        problem = problem_of(step, len(record.ids), len(x), matrix=False)
        missed = laws_of_blocks(problem, x)
        names = [
            contact_name(self.contact(int(step.blocks.source[k])))
            if record.ids[k] >= 0
            else self.constraint_name(int(record.ids[k]))
            for k in np.argsort(np.negative(missed), kind="stable")[:3]
        ]
        return ", ".join(names) + (", ..." if len(record.ids) > 3 else "")

    def prescribed_forces(self, record: StepRecord) -> np.ndarray:
        """Return the mean joint forces of the prescribed motion, (nv,) [N·m | N].

        They act in addition to record.tau; zero in all other coordinates. For an impact
        (record.h is 0) they are impulses [N·m·s | N·s]. The memory is not used.

        Args:
            record: Record of the step.
        """
        joints, tables = self.setup.scene.joints, self.setup.scene.tables
        force = np.zeros(tables.nv)
        row = dict(zip(record.ids.tolist(), record.starts.tolist(), strict=True))
        for k in self._prescribed_rows:
            coordinate = tables.coordinate[joints.place[joints.term_start[k]]]
            force[coordinate] += record.impulse[row[-1 - int(k)]]
        return force / (record.h or 1.0)
