"""Derivatives of a step with contacts by state, joint forces and friction coefficients.

import numpy as np
import dyn_core as dyn
from dyn_core.contact.stepping import step_derivatives

model = dyn.load_urdf(dyn.robots.path("quadruped"), root_joint="floating")
contact_model = dyn.authoring.ContactModel(model)
q, qd, tau = model.neutral(), np.zeros(model.nv), np.zeros(model.nv)
step = step_derivatives(contact_model, q, qd, tau, h=0.01)
step.A, step.B  # of the state after the step, (2 nv, 2 nv) and (2 nv, nv)
step.modes  # separate, stick or slip, by contact
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dyn_core.contact.collision.detection.contact_slopes import (
    contact_slopes,
    room_for_slopes,
)
from dyn_core.contact.collision.detection.tables import POLYGON
from dyn_core.contact.problem.layout import ConstraintLayout
from dyn_core.contact.problem.residuals import STATUSES
from dyn_core.contact.problem.rows import CONTACT
from dyn_core.contact.problem.solving import contact_solver, relaxed_part
from dyn_core.contact.stepping.array_step import ArrayStep
from dyn_core.contact.stepping.constraints import contact_name
from dyn_core.contact.stepping.contact_model import ContactModel
from dyn_core.contact.stepping.integration import moved
from dyn_core.contact.stepping.slope_solution import (
    hold_corrections,
    hold_rows,
    solve_slopes,
)
from dyn_core.contact.stepping.step_records import StepRecord
from dyn_core.contact.stepping.step_slopes import (
    AT_BOUNDARY,
    MEETING,
    MODES,
    SLIP,
    SlopeArrays,
    find_corrections,
    find_modes,
    room_for_step_slopes,
)
from dyn_core.contact.stepping.step_tables import SCHEMES, StepArrays
from dyn_core.contact.stepping.turned_rows import fill_turned
from dyn_core.engines.machine_code import compiled
from dyn_core.errors import UnsupportedError
from dyn_core.solving.registry import solver

STEP = 1e-4  # step of central differences of loops and limits of balls
MET = "met"  # the mode of blocks in a step in which fast bodies meet
_DU_DQ = SlopeArrays._fields.index("du_dq")
NEAR = 1e-3  # beyond the margin, where a contact beside a state is looked for [m]


class StepDerivatives(NamedTuple):
    """A step and its derivatives, x = (q, qd), dx = (dq, dqd).

        dx_next = A dx + B dtau + dx_dmu dmu

    Attributes:
        q_next, qd_next: State after the step, (nq,), (nv,).
        A, B: By state and joint forces, (2 nv, 2 nv), (2 nv, nv); dq is a displacement
            of q, and of q_next.
        dx_dmu: By the coefficients of all contacts, in the order of the problem,
            (2 nv, k).
        modes: By block: separate, stick, slip, closed, free (a box at its bound).
        not_differentiable: 1 where a block is at the boundary of two modes, so that
            the derivatives are one-sided, where slipping contacts are dependent, or
            the solver has not converged; 2 where a contact or limit that presses is at
            gap 0, where derivatives are those of one side; 3 where fast bodies meet
            within the step: A and B are central differences of it, dx_dmu is NaN, and
            no mode is known; else 0.
    """

    q_next: np.ndarray
    qd_next: np.ndarray
    A: np.ndarray
    B: np.ndarray
    dx_dmu: np.ndarray
    modes: dict[str, str]
    not_differentiable: int


class _Tied(NamedTuple):
    """Memory of derivatives, and machine code tied to it and to that of a step."""

    step: StepArrays
    slopes: SlopeArrays
    forces: np.ndarray
    pushes: np.ndarray
    robot_part: tuple[np.ndarray, ...]
    find_modes: Callable[..., Any]
    contact_slopes: Callable[..., Any]
    fill_turned: Callable[..., Any]
    hold_rows: Callable[..., Any]
    solve_slopes: Callable[..., Any]
    find_corrections: Callable[..., Any]
    hold_corrections: Callable[..., Any]

    def serves(self, step: StepArrays, contacts: int, blocks: int, m: int) -> bool:
        """Return whether it is that of a step, and large enough."""
        slopes = self.slopes
        room = len(slopes.pressed), len(slopes.mode), len(slopes.sigma)
        sizes = zip((contacts, blocks, m), room, strict=True)
        return self.step is step and all(n <= most for n, most in sizes)


class DifferentiableStep:
    """The step of a robot in a World, and its derivatives.

        F(z; p) = 0,   z = (u, lambda),   dz/dp = -(dF/dz)^-1 dF/dp

    F holds the equation of motion and the equations of each block's mode: separate (no
    impulse), stick (no velocity), slip (impulse on the cone, against the velocity).
    Those of the robot are derived, those of the contacts' points and normals central
    differences of collision detection, and those of loops and of limits of balls
    central differences of their rows. Where rows are dependent (a box on four corners)
    lambda is not unique but u is, unless such contacts slip.

    The rule of gaps has a kink at gap 0, where a robot at rest comes; see
    contact_euler_derivatives. Contacts of two bodies are on one side of it.

    The correction of positions of split_impulse is a second such system, whose velocity
    moves the position alone.

    Args:
        contact_model: Robot and world; a time step, and a solver of Coulomb's law.
        h: Step [s].

    Source: LCP-22.
    """

    def __init__(self, contact_model: ContactModel, h: float) -> None:
        world = contact_model.world
        relaxed = relaxed_part(
            contact_solver(world.solver), ConstraintLayout.of("contact")
        )
        if relaxed:
            raise UnsupportedError(
                f"derivatives: solver {world.solver}: {relaxed}; valid: a solver of"
                " Coulomb's law, such as coulomb_newton"
            )
        if world.stepper not in SCHEMES:
            raise UnsupportedError(
                f"derivatives: stepper {world.stepper}; valid: {', '.join(SCHEMES)}"
            )
        if world.restitution != "newton" or world.impacts != "simultaneous":
            raise UnsupportedError(
                f"derivatives: restitution {world.restitution}, impacts"
                f" {world.impacts}; valid: newton, simultaneous"
            )
        self._step = ArrayStep(contact_model, h)
        part = self._step.setup.remaining / self._step.setup.h
        self._terms = contact_model.build(
            "contact_term_slopes", "f_ext", remaining=part
        )
        self._moved = solver("moved_state_slopes").build(
            contact_model.model, engine=contact_model.engine
        )
        self._tied: _Tied | None = None
        self._names: dict[int, str] = {}
        self._known: tuple[bytes | None, list[str], Any] = None, [], ()

    def __call__(
        self,
        q: np.ndarray,
        qd: np.ndarray,
        tau: np.ndarray,
        f_ext: np.ndarray | None = None,
    ) -> StepDerivatives:
        """Return the step from a state, and its derivatives.

        Args:
            q, qd: State, (nq,), (nv,).
            tau: Joint forces, (nv,) [N·m | N].
            f_ext: Force on each body, body coordinates, (nb, 6) [N·m; N].
        """
        steps = self._step
        q, qd, tau = (np.asarray(x, float) for x in (q, qd, tau))
        q_next, qd_next, record = steps.step(0.0, q, qd, tau, f_ext)
        step, blocks = steps.memory, len(record.starts)
        if record.fast is not None and record.fast.contacts.turn.any():
            return self._of_meetings((q, qd, tau), f_ext, q_next, qd_next, record)
        correction = step.correction[0].copy()
        tied = self._tie(step, steps.contacts, blocks, len(record.impulse))
        tied.forces[:] = 0.0 if f_ext is None else f_ext
        tied.pushes[:] = 0.0
        flag = tied.find_modes(blocks)
        modes = tied.slopes.mode[:blocks].tolist()
        self._fill_robot_part(tied, record, record.velocity)
        robot = [] if record.q_end is None else [x.copy() for x in tied.robot_part[1:]]
        lost, disagree = self._solve(tied, record, tied.hold_rows)
        by_velocity: list[np.ndarray] = list(tied.slopes[_DU_DQ:])
        of_correction: list[np.ndarray] = []
        if robot:
            by_velocity = [x.copy() for x in by_velocity]
            opening = self._correct(tied, record, correction, robot)
            of_correction, flag = [*tied.slopes[_DU_DQ:]][:2], opening or flag
        if disagree or (lost and SLIP in modes) or record.status != STATUSES[0]:
            flag = AT_BOUNDARY
        names, coefficients = self._named(step, record)
        end = record.q, record.velocity, steps.setup.remaining, correction
        A, B, by_mu = self._of_state(q, qd, end, by_velocity, of_correction)
        return StepDerivatives(
            q_next,
            qd_next,
            A,
            B,
            by_mu[:, coefficients],
            dict(zip(names, (MODES[mode] for mode in modes), strict=True)),
            int(flag),
        )

    def _of_meetings(
        self,
        state: tuple[np.ndarray, ...],
        f_ext: np.ndarray | None,
        q_next: np.ndarray,
        qd_next: np.ndarray,
        record: StepRecord,
    ) -> StepDerivatives:
        """Return the derivatives of a step in which fast bodies meet, by differences.

        Args:
            state: q, qd and tau before the step.
            f_ext: Force on each body, (nb, 6), or None.
            q_next, qd_next, record: Of the step.
        """
        steps, model = self._step, self._step.of.model
        names, coefficients = self._named(steps.memory, record)

        def end(d: np.ndarray) -> np.ndarray:
            dq, dqd, dtau = np.split(d, 3)
            there = moved(model, state[0], dq), state[1] + dqd, state[2] + dtau
            steps.forget()
            q, qd, _ = steps.step(0.0, *there, f_ext)
            return np.concatenate([model.difference(q_next, q), qd])

        slopes, nx = _differences(end, 3 * model.nv), 2 * model.nv
        by_mu = np.full((nx, len(coefficients)), np.nan)
        modes = dict.fromkeys(names, MET)
        parts = slopes[:, :nx], slopes[:, nx:], by_mu, modes
        return StepDerivatives(q_next, qd_next, *parts, MEETING)

    def _fill_robot_part(self, tied: _Tied, record: StepRecord, u: np.ndarray) -> None:
        """Fill how the robot's part changes at a velocity u after the step."""
        state, payload = (record.q, record.qd, record.tau), record.payload
        forces = tied.pushes, tied.forces
        self._terms(*state, u, record.h, *forces, *payload, out=tied.robot_part)

    def _correct(
        self,
        tied: _Tied,
        record: StepRecord,
        correction: np.ndarray,
        robot: list[np.ndarray],
    ) -> int:
        """Solve for the derivatives of a correction of positions; return its flag.

        Args:
            tied: Memory, after the derivatives of the velocity.
            record: Of the step.
            correction: Velocity that moves the position alone, (nv,).
            robot: The robot's part without it.
        """
        tied.step.qd_next[0] = correction
        flag = tied.find_corrections(len(record.starts))
        self._fill_robot_part(tied, record, record.velocity + correction)
        for part, before in zip(tied.robot_part[1:], robot, strict=True):
            part -= before
        self._solve(tied, record, tied.hold_corrections)
        return int(flag)

    def _solve(
        self, tied: _Tied, record: StepRecord, hold: Callable[[int], int]
    ) -> tuple[int, bool]:
        """Add what constraints change by moving, and solve; see solve_slopes."""
        setup, blocks = self._step.setup, len(record.starts)
        tied.contact_slopes(setup.scene.rule.margin + NEAR, self._step.contacts)
        self._add_dense(tied, record)
        tied.fill_turned(blocks)
        return tied.solve_slopes(setup.h, blocks, hold(blocks))

    def _tie(self, step: StepArrays, contacts: int, blocks: int, m: int) -> _Tied:
        """Return memory for a problem and machine code tied to it."""
        known = self._tied
        if known is not None and known.serves(step, contacts, blocks, m):
            return known
        scene, model = self._step.setup.scene, self._step.of.model
        sizes = [max(8, 2 * n) for n in (contacts, blocks, m)]
        slopes = room_for_step_slopes(model.nb + 1, model.nv, *sizes)
        forces, pushes = np.zeros((2, model.nb, 6))
        rates, before = np.zeros((2, len(scene.tables.column_place), 6))
        poses, touching = step.terms.poses[0], step.contacts
        robot_part = slopes.inertia, slopes.by_q, slopes.by_qd
        changes = slopes.change_q, slopes.change_qd, slopes.change_tau
        room = slopes.pressed, room_for_slopes(POLYGON), step.collision
        self._tied = _Tied(
            step,
            slopes,
            forces,
            pushes,
            (*robot_part, *changes, rates, before),
            compiled(find_modes).bind(scene, step, pushes, slopes),
            compiled(contact_slopes).bind(
                scene.shapes, scene.pairs, poses, touching, *room, slopes.geometry
            ),
            compiled(fill_turned).bind(scene, step, rates, before, slopes),
            compiled(hold_rows).bind(scene, step, slopes),
            compiled(solve_slopes).bind(slopes),
            compiled(find_corrections).bind(scene, step, pushes, slopes),
            compiled(hold_corrections).bind(scene, step, slopes),
        )
        return self._tied

    def _add_dense(self, tied: _Tied, record: StepRecord) -> None:
        """Add what loops and limits of balls change by moving."""
        scene = self._step.setup.scene
        if not len(scene.dense.role):
            return
        last = -len(scene.joints.role)
        dense = [k for k, number in enumerate(record.ids.tolist()) if number < last]
        if not dense:
            return
        changes, slopes, step = self._row_slopes(record), tied.slopes, tied.step
        rows, velocity = step.rows, step.qd_next[0]
        for k in dense:
            first, source = int(rows.start[k]), int(step.blocks.source[k])
            part = slice(first, first + int(rows.count[k]))
            change = changes[source : source + int(rows.count[k])]
            slopes.turned[part] = np.einsum("rik,i->rk", change, velocity)
            slopes.before[part] = np.einsum("rik,i->rk", change, record.qd)
            slopes.by_q[:] += np.einsum("rik,r->ik", change, rows.impulse[part])

    def _row_slopes(self, record: StepRecord) -> np.ndarray:
        """Return the slopes of the rows of contact_terms, by a last axis for q."""
        program, model = self._step.setup.terms(False), self._step.of.model

        def rows(d: np.ndarray) -> np.ndarray:
            inputs = record.qd, record.tau, record.h, *record.payload
            return np.array(program(moved(model, record.q, d), *inputs).rows)

        return _differences(rows, model.nv)

    def _of_state(
        self,
        q: np.ndarray,
        qd: np.ndarray,
        end: tuple[Any, ...],
        by_velocity: list[np.ndarray],
        of_correction: list[np.ndarray],
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return A, B and the derivative by all coefficients.

        Args:
            q, qd: State before the step.
            end: What moved_state_slopes takes at the end of it.
            by_velocity: Derivatives of the velocity after the step.
            of_correction: Those of the correction by q and qd; none without one.
        """
        setup = self._step.setup
        by_q, by_u, by_correction = self._moved(*end)
        A = np.hstack([by_q + by_u @ by_velocity[0], by_u @ by_velocity[1]])
        if of_correction:
            A += by_correction @ np.hstack(of_correction)
        if setup.at_middle:
            first = self._moved(q, qd, setup.h - setup.remaining, np.zeros(len(qd)))
            A = A @ np.hstack(first[:2])
        return A, by_u @ by_velocity[2], by_u @ by_velocity[3]

    def _named(self, step: StepArrays, record: StepRecord) -> tuple[list[str], Any]:
        """Return the names of the blocks, and which of all coefficients are used."""
        key = record.ids.tobytes()
        if self._known[0] != key:
            used = np.array(_coefficients(step, len(record.ids)), int)
            self._known = key, self._block_names(step, record), used
        return self._known[1], self._known[2]

    def _block_names(self, step: StepArrays, record: StepRecord) -> list[str]:
        """Return how reports call the blocks, by their lasting numbers."""
        for k, number in enumerate(record.ids.tolist()):
            if number < 0 and number not in self._names:
                self._names[number] = self._step.constraint_name(number)
            elif number not in self._names:
                contact = self._step.contact(int(step.blocks.source[k]))
                self._names[number] = contact_name(contact)
        return [self._names[number] for number in record.ids.tolist()]


def _coefficients(step: StepArrays, blocks: int) -> list[int]:
    """Return which coefficients of all blocks are used: 1, 2, 3 of 3, 4, 6 rows."""
    kinds, counts = (x[:blocks].tolist() for x in (step.rows.kind, step.rows.count))
    pairs = enumerate(zip(kinds, counts, strict=True))
    contacts = [(k, n // 2) for k, (kind, n) in pairs if kind == CONTACT]
    return [3 * k + i for k, n in contacts for i in range(n)]


def step_derivatives(
    contact_model: ContactModel,
    q: np.ndarray,
    qd: np.ndarray,
    tau: np.ndarray,
    h: float,
) -> StepDerivatives:
    """Return a step and its derivatives; DifferentiableStep serves many states.

    Args:
        contact_model: Robot and world.
        q, qd: State, (nq,), (nv,).
        tau: Joint forces, (nv,) [N·m | N].
        h: Step [s].

    Raises:
        UnsupportedError: Steps of this World have no derivatives.

    Source: LCP-22.
    """
    return DifferentiableStep(contact_model, h)(q, qd, tau)


def _differences(function: Any, count: int) -> np.ndarray:
    """Return a derivative by central differences of fourth order, as a last axis."""
    columns = []
    for unit in np.eye(count) * STEP:
        near = function(unit) - function(-unit)
        far = function(2 * unit) - function(-2 * unit)
        columns.append((8 * near - far) / (12 * STEP))
    return np.stack(columns, axis=-1)
