"""Derivatives of a step with contacts by state, joint forces and friction coefficients.

import numpy as np
import dyn_core as dyn
from dyn_core.contact.derivatives import step_derivatives

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

from dyn_core.contact.collision.detection.contact_slopes import allocate_slopes
from dyn_core.contact.collision.detection.detection_arrays import POLYGON
from dyn_core.contact.derivatives.composite_slopes import (
    REFUSED,
    EndSlopes,
    SlopeKernels,
    allocate_end_slopes,
    take_slopes,
)
from dyn_core.contact.derivatives.step_slopes import (
    AT_BOUNDARY,
    MEETING,
    MODES,
    SlopeArrays,
    allocate_step_slopes,
)
from dyn_core.contact.problem.layout import ConstraintLayout
from dyn_core.contact.problem.residuals import STATUSES
from dyn_core.contact.problem.rows import CONTACT
from dyn_core.contact.problem.solving import relaxed_part
from dyn_core.contact.rows.constraints import contact_name
from dyn_core.contact.rows.step_tables import SCHEMES, StepArrays
from dyn_core.contact.stepping.array_step import ArrayStep
from dyn_core.contact.stepping.contact_model import ContactModel
from dyn_core.contact.stepping.integration import moved
from dyn_core.contact.stepping.step_records import StepRecord
from dyn_core.engines.machine_code import NO_KERNEL, TiedKernel, compiled
from dyn_core.errors import NonFiniteError, UnsupportedError
from dyn_core.problems import CONTACT_SOLVE
from dyn_core.solving.registry import solver, solver_of

STEP = 1e-4  # displacement of central differences [m | rad]
MET = "met"  # mode of all blocks of a step in which fast bodies meet


class StepDerivatives(NamedTuple):
    """Result of a step and its derivatives, x = (q, qd), dx = (dq, dqd).

        dx_next = A dx + B dtau + dx_dmu dmu

    Attributes:
        q_next, qd_next: State after the step, (nq,), (nv,).
        A, B: Derivatives by state and joint forces, (2 nv, 2 nv), (2 nv, nv); dq is a
            displacement in the nv velocity coordinates, before and after the step.
        dx_dmu: Derivatives by the k friction coefficients of all contacts, in the order
            of `modes`, (2 nv, k); each contact has one (sliding), two (and torsion) or
            three (and rolling). Zero for contacts that do not slip.
        modes: Mode of each block by its name: separate, stick, slip, closed (it holds,
            and has no friction), free (dry friction of a moving joint), or met.
        not_differentiable: 0: differentiable. 1: a block is at the boundary of two
            modes (A and B are one-sided), slipping contacts are linearly dependent, or
            the solver has not converged. 2: a pressing contact or limit is at gap 0 (A
            and B are one-sided). 3: fast bodies meet within the step; A and B are
            central differences, dx_dmu is NaN, and all modes are "met".
    """

    q_next: np.ndarray
    qd_next: np.ndarray
    A: np.ndarray
    B: np.ndarray
    dx_dmu: np.ndarray
    modes: dict[str, str]
    not_differentiable: int


class _Tied(NamedTuple):
    """Work arrays of the derivatives, and machine code bound to them and to `step`.

    `forces` is read by the code: force on each body, body coordinates, (nb, 6).
    `take_slopes` calls `kernels` by address and returns -1: a Program failed; 0:
    smooth; 1: at the boundary of two modes; 2: a pressing contact or limit is at
    gap 0.
    """

    step: StepArrays
    slopes: SlopeArrays
    ends: EndSlopes
    forces: np.ndarray
    kernels: list[TiedKernel]
    take_slopes: Callable[[int, int, bool], int]

    def serves(self, step: StepArrays, contacts: int, blocks: int, m: int) -> bool:
        """Return whether these arrays are bound to `step`, and large enough."""
        slopes = self.slopes
        room = len(slopes.pressed), len(slopes.mode), len(slopes.sigma)
        sizes = zip((contacts, blocks, m), room, strict=True)
        return self.step is step and all(n <= most for n, most in sizes)


class DifferentiableStep:
    """A step of a robot in a World, and its derivatives; call it with a state.

        F(z; p) = 0,   z = (u, lambda),   dz/dp = -(dF/dz)^-1 dF/dp

    F holds the equation of motion and the equations of each block's mode: separate (no
    impulse), stick (no velocity), slip (impulse on the cone, against the velocity).
    Derivatives of the robot's dynamics are analytic. Derivatives of the contacts'
    points and normals are central differences of collision detection; derivatives of
    loops and of limits of ball joints are central differences of their rows. If rows
    are dependent (a box on four corners), lambda is not unique but u is, unless such
    contacts slip.

    The bias of a gap has a kink at gap 0, which a robot at rest approaches; see
    contact_euler_derivatives. All contacts of two bodies use the same side of it.

    The position correction of split_impulse is a second such system, whose velocity
    moves the position alone.

    Args:
        contact_model: Robot and world; a time step, and a solver of Coulomb's law.
        h: Step [s], of all calls; above 0.

    Raises:
        SettingError: The step is not a finite number above 0.
        UnsupportedError: The World has a solver of another law than Coulomb's, a
            stepper other than stewart_trinkle, anitescu_potra and moreau_jean, a
            restitution other than "newton", or impacts other than "simultaneous".

    Source: LCP-22.
    """

    def __init__(self, contact_model: ContactModel, h: float) -> None:
        world = contact_model.world
        relaxed = relaxed_part(
            solver_of(world.solver, CONTACT_SOLVE), ConstraintLayout.of("contact")
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
        """Take a step from a state, and return it with its derivatives.

        The impulses of the previous call are the warm start of the solver. Points
        without a derivative are no error: see StepDerivatives.not_differentiable;
        dx_dmu is NaN if fast bodies meet.

        Args:
            q, qd: State, (nq,), (nv,) [rad | m], [rad/s | m/s].
            tau: Joint forces, (nv,) [N·m | N].
            f_ext: Force on each body, body coordinates, (nb, 6) [N·m; N]; None: zero.

        Raises:
            ShapeError: An argument has another shape.
            NonFiniteError: The state, the step, or a derivative of its dynamics is not
                finite. Other errors of the step pass through.
        """
        steps = self._step
        q, qd, tau = (np.asarray(x, float) for x in (q, qd, tau))
        q_next, qd_next, record = steps.step(0.0, q, qd, tau, f_ext)
        step, blocks = steps.memory, len(record.starts)
        if record.fast is not None and record.fast.contacts.turn.any():
            return self._of_meetings((q, qd, tau), f_ext, q_next, qd_next, record)
        tied = self._tie(step, steps.contacts, blocks, len(record.impulse))
        tied.forces[:] = 0.0 if f_ext is None else f_ext
        self._fill_dense(tied, record)
        corrected = record.q_end is not None
        flag = tied.take_slopes(blocks, steps.contacts, corrected)
        if flag == REFUSED:
            raise NonFiniteError("derivatives: a value is not finite", "q, qd")
        if record.status != STATUSES[0]:
            flag = AT_BOUNDARY
        names, coefficients = self._named(step, record)
        ends = tied.ends
        modes = [MODES[mode] for mode in ends.modes[:blocks].tolist()]
        return StepDerivatives(
            q_next,
            qd_next,
            ends.A.copy(),
            ends.B.copy(),
            ends.by_mu[:, coefficients],
            dict(zip(names, modes, strict=True)),
            flag,
        )

    def _of_meetings(
        self,
        state: tuple[np.ndarray, ...],
        f_ext: np.ndarray | None,
        q_next: np.ndarray,
        qd_next: np.ndarray,
        record: StepRecord,
    ) -> StepDerivatives:
        """Return a step in which fast bodies meet; derivatives are central differences.

        It takes further steps from displaced states, each without a warm start; the
        next call starts from the impulses of the step itself. dx_dmu is NaN, all modes
        are "met", and not_differentiable is 3.
        """
        steps, model = self._step, self._step.of.model
        names, coefficients = self._named(steps.memory, record)
        steps.save_impulses()

        def end(d: np.ndarray) -> np.ndarray:
            dq, dqd, dtau = np.split(d, 3)
            there = moved(model, state[0], dq), state[1] + dqd, state[2] + dtau
            steps.forget()
            q, qd, _ = steps.step(0.0, *there, f_ext)
            return np.concatenate([model.difference(q_next, q), qd])

        try:
            slopes, nx = _differences(end, 3 * model.nv), 2 * model.nv
        finally:
            steps.restore_impulses()
        by_mu = np.full((nx, len(coefficients)), np.nan)
        modes = dict.fromkeys(names, MET)
        parts = slopes[:, :nx], slopes[:, nx:], by_mu, modes
        return StepDerivatives(q_next, qd_next, *parts, MEETING)

    def _tie(self, step: StepArrays, contacts: int, blocks: int, m: int) -> _Tied:
        """Return arrays and code of the last call, or new ones for twice the need."""
        known = self._tied
        if known is not None and known.serves(step, contacts, blocks, m):
            return known
        steps, model = self._step, self._step.of.model
        setup, scene = steps.setup, steps.setup.scene
        # Twice the need, so that a growing problem does not allocate at each step.
        sizes = [max(8, 2 * n) for n in (contacts, blocks, m)]
        slopes = allocate_step_slopes(model.nb + 1, model.nv, *sizes)
        columns, dense = len(scene.tables.column_place), step.terms.rows.shape[1]
        ends = allocate_end_slopes(model.nb, model.nv, columns, dense, sizes[1])
        forces, still = np.zeros((model.nb, 6)), np.zeros(model.nv)
        h, remaining, before = map(
            np.array, (setup.h, setup.remaining, setup.h - setup.remaining)
        )
        state = step.terms.q[0], step.terms.qd[0]
        robot = steps.state[2], ends.u, h, ends.pushes, forces, *steps.payload
        parts = (
            *(slopes.by_q, slopes.by_qd),
            *(slopes.change_q, slopes.change_qd, slopes.change_tau),
            *(ends.rates, ends.rates_before),
        )
        end = state[0], ends.u, remaining, ends.correction
        by_end = ends.by_q, ends.by_u, ends.by_correction
        kernels = [
            TiedKernel(self._terms, (*state, *robot), (slopes.inertia, *parts)),
            TiedKernel(self._terms, (*state, *robot), (ends.inertia, *parts)),
            TiedKernel(self._moved, end, by_end),
        ]
        if setup.at_middle:
            start = *steps.state[:2], before, still
            by_start = ends.start_q, ends.start_qd, np.zeros_like(ends.by_correction)
            kernels.append(TiedKernel(self._moved, start, by_start))
        addresses = [tied.kernel for tied in kernels] + [NO_KERNEL]
        room = allocate_slopes(POLYGON), SlopeKernels(*addresses[:4])
        call = compiled(take_slopes).bind(scene, step, *room, slopes, ends)
        self._tied = _Tied(step, slopes, ends, forces, kernels, call)
        return self._tied

    def _fill_dense(self, tied: _Tied, record: StepRecord) -> None:
        """Set tied.ends.dense by _row_slopes if the step has such blocks."""
        scene = self._step.setup.scene
        last = -len(scene.joints.role)
        if len(scene.dense.role) and (record.ids < last).any():
            tied.ends.dense[:] = self._row_slopes(record)

    def _row_slopes(self, record: StepRecord) -> np.ndarray:
        """Return the derivatives by q of the rows of J of loops and ball limits.

        They are (rows, nv, nv), the last axis by q at record.q, by central differences.
        """
        program, model = self._step.setup.terms(False), self._step.of.model

        def rows(d: np.ndarray) -> np.ndarray:
            inputs = record.qd, record.tau, record.h, *record.payload
            return np.array(program(moved(model, record.q, d), *inputs).rows)

        return _differences(rows, model.nv)

    def _named(self, step: StepArrays, record: StepRecord) -> tuple[list[str], Any]:
        """Return the names of the blocks, and the used columns of ends.by_mu, cached.

        ends.by_mu has three columns for each block; contacts with 3, 4 and 6 rows use
        the first 1, 2 and 3 of theirs.
        """
        key = record.ids.tobytes()
        if self._known[0] != key:
            used = np.array(_coefficients(step, len(record.ids)), int)
            self._known = key, self._block_names(step, record), used
        return self._known[1], self._known[2]

    def _block_names(self, step: StepArrays, record: StepRecord) -> list[str]:
        """Return the names of the blocks in reports, cached by constraint number."""
        for k, number in enumerate(record.ids.tolist()):
            if number < 0 and number not in self._names:
                self._names[number] = self._step.constraint_name(number)
            elif number not in self._names:
                contact = self._step.contact(int(step.blocks.source[k]))
                self._names[number] = contact_name(contact)
        return [self._names[number] for number in record.ids.tolist()]


def _coefficients(step: StepArrays, blocks: int) -> list[int]:
    """Return the indices, 3 k + i, of the used friction coefficients i of blocks k.

    A contact with 1, 3, 4 or 6 rows uses 0, 1, 2 or 3; other blocks use none.
    """
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
    """Take a step and return it with its derivatives, for a single state.

    Use DifferentiableStep for many states: it compiles and allocates only once.

    Args:
        contact_model: Robot and world.
        q, qd: State, (nq,), (nv,) [rad | m], [rad/s | m/s].
        tau: Joint forces, (nv,) [N·m | N].
        h: Step [s]; above 0.

    Raises:
        SettingError: h is not a finite number above 0.
        UnsupportedError: The World has a solver of another law than Coulomb's, a
            stepper other than stewart_trinkle, anitescu_potra and moreau_jean, a
            restitution other than "newton", or impacts other than "simultaneous".
        ShapeError: q, qd or tau has another shape.
        NonFiniteError: The state, the step or a derivative of its dynamics is not
            finite. Other errors of the step pass through.

    Source: LCP-22.
    """
    return DifferentiableStep(contact_model, h)(q, qd, tau)


def _differences(function: Any, count: int) -> np.ndarray:
    """Return the derivatives at zero by `count` variables, along a new last axis.

    By central differences of fourth order with the displacement 1e-4.
    """
    columns = []
    for unit in np.eye(count) * STEP:
        near = function(unit) - function(-unit)
        far = function(2 * unit) - function(-2 * unit)
        columns.append((8 * near - far) / (12 * STEP))
    return np.stack(columns, axis=-1)
