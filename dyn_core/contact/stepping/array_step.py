"""A step with contacts on arrays, in machine code from the shapes to the velocity.

    contact_terms -> find contacts -> assemble rows -> solve -> velocity -> moved_state

Dynamics are traced Programs of the robot; what depends on the number of contacts is
compiled once for each machine (dyn_core/engines/machine_code). Arrays have room for a
number of contacts, which doubles when there are more.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from dyn_core.contact.collision.detection.tables import room_for_contacts, room_for_work
from dyn_core.contact.collision.pairs import Contact
from dyn_core.contact.problem.layout import KINDS, ConstraintLayout
from dyn_core.contact.problem.problem import ConstraintProblem
from dyn_core.contact.problem.residuals import STATUSES
from dyn_core.contact.problem.rows import room_for_rows
from dyn_core.contact.problem.solving import impossible
from dyn_core.contact.solvers.row_solvers import ROW_SOLVERS, RowRelaxation
from dyn_core.contact.solvers.work import INFEASIBLE, MAX_ITERATIONS
from dyn_core.contact.stepping.assembly import end_step, prepare_step
from dyn_core.contact.stepping.constraints import contact_name
from dyn_core.contact.stepping.contact_model import ContactModel
from dyn_core.contact.stepping.joint_rows import dense_rows, joint_table
from dyn_core.contact.stepping.position_correction import (
    TOLERANCE,
    end_correction,
    prepare_correction,
)
from dyn_core.contact.stepping.step_records import StepRecord, solver_name
from dyn_core.contact.stepping.step_solver import error_terms
from dyn_core.contact.stepping.step_tables import (
    SCHEMES,
    Earlier,
    Rule,
    Scene,
    StepArrays,
    room_for_blocks,
    room_for_earlier,
    room_for_step,
    room_for_terms,
)
from dyn_core.contact.stepping.structure import structure
from dyn_core.engines.machine_code import compiled
from dyn_core.errors import NonFiniteError
from dyn_core.solving.registry import solver

FIRST_ROOM = 16  # contacts for which there is room at first
NO_ROOM = 5  # status of a solver whose arrays are too small


class ArrayStep:
    """The step of a robot in a World, for the settings that `why_not` lets pass.

    Attributes:
        contacts, m: How many contacts and rows the last step had.
        inertia: Program of H, with the payload.
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
        self._of, self.h = contact_model, float(h)
        self.inertia = contact_model.inertia
        model, world = contact_model.model, contact_model.world
        self.tables = structure(model)
        self._joints = joint_table(
            model,
            self.tables,
            contact_model.joints,
            world.limits,
            world.limit_restitution,
            contact_model.dry,
            prescribed,
        )
        rows = [k for part in self._joints.prescribed.values() for k in part]
        self._prescribed_rows = np.array(rows, int)
        places = self._joints.rows.place
        starts = self._joints.rows.term_start
        self._prescribed = self.tables.coordinate[places[starts[:-1][rows]]]
        self._moved = solver("moved_state").build(model, engine=contact_model.engine)
        self._programs = {False: contact_model.build("contact_terms")}
        erp, soft = error_terms(world, self.h)
        self._rule = Rule(
            scheme=SCHEMES[world.stepper],
            erp=erp,
            compliance=soft,
            threshold=world.restitution_threshold,
            push=np.inf if soft else world.push_out_speed,
            apart=world.erp if world.stabilisation == "split_impulse" else 0.0,
            margin=world.margin,
        )
        self.solver_name = solver_name(world)
        self._at_middle = world.stepper == "moreau_jean"
        self.contacts = self.m = 0
        import_module("scipy.optimize")  # of `impossible`: not while it steps
        self._make_room(FIRST_ROOM)
        self._programs[False].prepare()
        self._moved.prepare()

    def _make_room(self, contacts: int) -> None:
        """Make arrays for a number of contacts, and tie the machine code to them."""
        of, joints, nv = self._of, self._joints.rows, self._of.model.nv
        anywhere = of.model.random(np.random.default_rng(0))  # where no entry vanishes
        dense = of.dense_constraints(anywhere, np.zeros(nv))
        self._dense = dense_rows(self.tables, dense, -1 - len(joints.role))
        self._names = [c.name for c in (*self._joints.constraints, *dense)]
        single, others = len(joints.role), len(self._dense.gap)
        longest = min(nv, 2 * int(np.diff(self.tables.moved_start).max(initial=0)))
        blocks, m = contacts + single + len(dense), 6 * contacts + single + others
        support = contacts * longest + (single + len(dense)) * nv
        y = 6 * contacts * longest + (single + others) * nv
        shapes = {port.name: port.shape for port in self._programs[False].outputs}
        surroundings = of.shapes_and_pairs
        scene = Scene(self.tables, *surroundings, joints, self._dense, self._rule)
        rows = room_for_rows(blocks, m, support, y)
        normals = room_for_rows(blocks, m, 0, 0)._replace(
            support=rows.support, y=rows.y
        )
        self._step = StepArrays(
            terms=room_for_terms(1, of.model.nq, nv, shapes),
            qd_next=np.zeros((1, nv)),
            way=np.zeros((1, nv)),
            earlier=self._earlier(blocks, m),
            contacts=room_for_contacts(contacts),
            rows=rows,
            blocks=room_for_blocks(blocks, m),
            normals=normals,
            collision=room_for_work(
                len(surroundings[0].kind), len(surroundings[1].first)
            ),
            work=room_for_step(nv, max([6, *(c.rows for c in dense)])),
        )
        self._out = tuple(x[0] for x in self._step.terms[2:])
        self._prepare = compiled(prepare_step).bind(scene, self._step)
        self._end = compiled(end_step).bind(scene, self._step)
        self._prepare_correction = compiled(prepare_correction).bind(scene, self._step)
        self._end_correction = compiled(end_correction).bind(scene, self._step)
        options = of.world.solver_options
        self._solver = ROW_SOLVERS[self.solver_name](rows, nv, **options)
        self._room = contacts
        if self._rule.apart:
            self._corrector = RowRelaxation(normals, nv, tolerance=TOLERANCE)

    def _earlier(self, blocks: int, rows: int) -> Earlier:
        """Return room for impulses, with those that are known."""
        earlier = room_for_earlier(1, blocks, rows)
        if hasattr(self, "_step"):
            for new, old in zip(earlier, self._step.earlier, strict=True):
                new[..., : old.shape[-1]] = old
        return earlier

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
            NonFiniteError: The velocity is not finite.

        Source: LCP-4.
        """
        h, carried, rest = self.h, self._of.carried.values, self.h
        if self._at_middle:
            rest = h / 2
            q, qd = self._moved(q, qd, rest)
        targets = None
        if accelerations is not None:
            targets = qd[self._prescribed] + h * accelerations
            self._joints.rows.target[self._prescribed_rows] = targets
        forces = carried if f_ext is None else (f_ext.copy(), *carried)
        state = q, qd, tau, h, *forces
        touching, blocks, m = self._prepare_at(state, f_ext is not None)
        while touching < 0:
            self._make_room(max(2 * self._room, -touching))
            touching, blocks, m = self._prepare_at(state, f_ext is not None)
        step = self._step
        status = self._solver.solve(blocks, m)
        if status == MAX_ITERATIONS and impossible(self._problem(blocks, m)):
            status = INFEASIBLE
        if not self._end(0, blocks):
            self.forget()
            raise NonFiniteError("contacts: the velocity is not finite", "qd")
        velocity = step.qd_next[0].copy()
        q_next, qd_next = self._moved(q, velocity, rest)
        short = False
        if self._rule.apart:
            blocks_apart, m_apart = self._prepare_correction(blocks, h, rest)
            if m_apart:
                short = self._correct(blocks_apart, m_apart)
                q_next, _ = self._moved(q, step.way[0], rest)
        report = self._solver.report
        record = StepRecord(
            t,
            h,
            q,
            qd,
            velocity,
            f_ext is not None,
            forces,
            targets,
            step.blocks.id[:blocks].copy(),
            step.rows.start[:blocks].copy(),
            step.rows.impulse[:m].copy(),
            STATUSES[status],
            int(report[5]),
            report[:5].copy(),
            short,
        )
        self.contacts, self.m = touching, m
        return q_next, qd_next, record

    def _prepare_at(
        self, state: tuple[Any, ...], with_forces: bool
    ) -> tuple[int, int, int]:
        """Prepare the problem of a state: numbers of contacts, blocks and rows.

        Args:
            state: q, qd, tau, h, then forces on bodies, if any, and the payload.
            with_forces: Whether there are forces on bodies.
        """
        q, qd, step = state[0], state[1], self._step
        self._program(with_forces)(*state, out=self._out)
        step.terms.q[0], step.terms.qd[0] = q, qd
        others = self._fill_dense(q, qd) if len(self._dense.role) else 0
        return self._prepare(0, others, state[3])  # type: ignore[no-any-return]

    def prepare_again(self, record: StepRecord) -> StepArrays:
        """Return the arrays with the problem of an earlier step, but for its impulses.

        Args:
            record: Of that step.
        """
        still = np.zeros(self.tables.nv)
        state = record.q, record.qd, still, record.h, *record.forces
        self._prepare_at(state, record.with_forces)
        return self._step

    def sparse_rows(self, blocks: int, m: int) -> np.ndarray:
        """Return Y of the prepared problem by place, (m, nv): G = Y Y.T."""
        rows, Y = self._step.rows, np.zeros((m, self.tables.nv))
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
        tables, packed = self.tables, self._step.terms.factor[0]
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
        pairs = self._of.pairs
        assert pairs is not None
        return pairs.contact(self._step.contacts, number)

    def constraint_name(self, number: int) -> str:
        """Return how reports call a constraint by its number; not for contacts."""
        return self._names[-1 - number]

    def names(self, record: StepRecord) -> str:
        """Return the first few constraints of a step, for an error."""
        step = self.prepare_again(record)
        names = [
            contact_name(self.contact(int(step.blocks.source[k])))
            if number >= 0
            else self.constraint_name(number)
            for k, number in enumerate(record.ids[:3].tolist())
        ]
        return ", ".join(names) + (", ..." if len(record.ids) > 3 else "")

    def prescribed_forces(self, record: StepRecord) -> np.ndarray:
        """Return the mean joint forces of the prescribed motion, (nv,) [N·m | N]."""
        force = np.zeros(self.tables.nv)
        row = dict(zip(record.ids.tolist(), record.starts.tolist(), strict=True))
        for k, place in zip(self._prescribed_rows, self._prescribed, strict=True):
            force[place] += record.impulse[row[-1 - int(k)]] / record.h
        return force

    def _problem(self, blocks: int, m: int) -> ConstraintProblem:
        """Return the prepared problem with its matrix G."""
        rows, Y = self._step.rows, self.sparse_rows(blocks, m)
        heights = zip(rows.kind[:blocks], rows.count[:blocks], strict=True)
        layout = ConstraintLayout(tuple((KINDS[k], int(n)) for k, n in heights))
        mu = [
            x
            for k, block in enumerate(layout.blocks)
            for x in rows.mu[k, : block.count].tolist()
        ]
        lo, hi, compliance = rows.lo[:m], rows.hi[:m], rows.compliance[:m]
        return ConstraintProblem(layout, Y @ Y.T, rows.b[:m], mu, lo, hi, compliance)

    def _program(self, with_forces: bool) -> Any:
        """Return contact_terms, with forces on bodies built when first needed."""
        if with_forces not in self._programs:
            inputs = ["f_ext"] if with_forces else []
            self._programs[with_forces] = self._of.build("contact_terms", *inputs)
        return self._programs[with_forces]

    def _fill_dense(self, q: np.ndarray, qd: np.ndarray) -> int:
        """Write the rows of loops and limits of balls; return how many blocks."""
        first = 0
        for k, c in enumerate(self._of.dense_constraints(q, qd)):
            rows = slice(first, first + c.rows)
            self._dense.J[rows], self._dense.gap[rows] = c.J, c.gap
            first, self._dense.restitution[k] = first + c.rows, c.restitution
        return len(self._dense.role)

    def _correct(self, blocks: int, m: int) -> bool:
        """Solve for the correction of positions; return whether there is no room."""
        status = self._corrector.solve(blocks, m)
        return not self._end_correction(0, blocks) or status != 0
