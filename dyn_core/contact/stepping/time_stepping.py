"""Time-stepping schemes for a robot with contacts; event_driven is in events.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from dyn_core.contact.stepping.constrained_state import ConstrainedState
from dyn_core.contact.stepping.contact_model import ContactModel
from dyn_core.contact.stepping.integration import advanced
from dyn_core.contact.stepping.reports import (
    StepEnergy,
    StepReport,
    report,
    step_energy,
)
from dyn_core.contact.stepping.step_solver import StepSolution, StepSolver
from dyn_core.model import Model


class StepResult(NamedTuple):
    """State after a step, and what its contact problems gave.

    Attributes:
        q, qd: State after the step, (nq,), (nv,).
        reports: One per contact problem.
        solved: Solution of the last problem.
    """

    q: np.ndarray
    qd: np.ndarray
    reports: tuple[StepReport, ...]
    solved: StepSolution


@dataclass(frozen=True, eq=False)
class StepInput:
    """Forces and prescribed accelerations during a step.

    Attributes:
        tau: Joint forces, (nv,) [N·m | N].
        f_ext: Force on each body, body coordinates, (nb, 6) [N·m; N]; None: none.
        accelerations: Of prescribed joints, by name [rad/s² | m/s²].
    """

    tau: np.ndarray
    f_ext: np.ndarray | None = None
    accelerations: Mapping[str, Any] = field(default_factory=dict)

    def speeds(self, model: Model, qd: np.ndarray, h: float) -> dict[str, Any]:
        """Return the velocities of prescribed joints after a step."""
        accelerations = self.accelerations.items()
        return {
            name: qd[model.v_slice(name)] + h * np.asarray(a)
            for name, a in accelerations
        }


def stewart_trinkle(
    contact_model: ContactModel,
    step_solver: StepSolver,
    t: float,
    q: Any,
    qd: Any,
    inputs: StepInput,
    h: float,
) -> StepResult:
    """Return a semi-implicit step with constraints on the gaps at its end.

        (H + B)(qd+ - qd) = h (tau - C) + J.T lambda,   q+ = q (+) h qd+
        0 <= lambda_n  orthogonal to  sigma_n + gap / h >= 0

    A contact with restitution that closes within the step bounces at its start, if
    its speed of approach is above the threshold.

    Args:
        contact_model: Robot and world.
        step_solver: Solver of the contact problem.
        t: Start of the step [s].
        q, qd: State, (nq,), (nv,).
        inputs: Forces and prescribed accelerations.
        h: Step [s].

    Source: LCP-4.
    """
    return _euler("stewart_trinkle", contact_model, step_solver, t, q, qd, inputs, h)


def anitescu_potra(
    contact_model: ContactModel,
    step_solver: StepSolver,
    t: float,
    q: Any,
    qd: Any,
    inputs: StepInput,
    h: float,
) -> StepResult:
    """Return a semi-implicit step with velocity constraints at touching contacts.

        gap <= 0:  0 <= lambda_n  orthogonal to  sigma_n + e sigma_n- >= 0

    Args: as stewart_trinkle.

    Source: LCP-4.
    """
    return _euler("anitescu_potra", contact_model, step_solver, t, q, qd, inputs, h)


def moreau_jean(
    contact_model: ContactModel,
    step_solver: StepSolver,
    t: float,
    q: Any,
    qd: Any,
    inputs: StepInput,
    h: float,
) -> StepResult:
    """Return a step of the midpoint scheme, theta = 1/2.

        q_m = q (+) h qd / 2,   q+ = q_m (+) h qd+ / 2
        gap(q_m) <= 0:  0 <= lambda_n  orthogonal to  sigma_n + e sigma_n- >= 0

    Args: as stewart_trinkle.

    Source: LCP-4.
    """
    model = contact_model.model
    middle, v = advanced(model, q, qd, h / 2)
    state = contact_model.state(middle, v, h, inputs.f_ext, inputs.speeds(model, v, h))
    free = state.free(inputs.tau, h, remaining=0.5)
    solved = step_solver.solve_step(state, free, h, "moreau_jean")
    return _end(contact_model, step_solver, state, solved, inputs, t, h, h / 2)


def _euler(
    rule: str,
    contact_model: ContactModel,
    step_solver: StepSolver,
    t: float,
    q: np.ndarray,
    qd: np.ndarray,
    inputs: StepInput,
    h: float,
) -> StepResult:
    """Return a semi-implicit step with a gap rule."""
    model = contact_model.model
    state = contact_model.state(q, qd, h, inputs.f_ext, inputs.speeds(model, qd, h))
    solved = step_solver.solve_step(state, state.free(inputs.tau, h), h, rule)
    return _end(contact_model, step_solver, state, solved, inputs, t, h, h)


def step_report(
    contact_model: ContactModel,
    solved: StepSolution,
    inputs: StepInput,
    t: float,
    h: float,
    shift: np.ndarray | None = None,
) -> StepReport:
    """Return the report of a step.

    Args:
        contact_model: Robot and world.
        solved: Solution of its contact problem.
        inputs: Forces that act.
        t, h: Start and duration [s].
        shift: Displacement that corrects positions, (nv,); None: none.
    """
    state, u, carried = solved.state, solved.velocity, contact_model.carried.values

    def energy() -> StepEnergy:
        start, forces = (state.q, state.qd), (inputs.tau, inputs.f_ext, carried)
        return step_energy(
            contact_model, start, u, h, state.B, forces, solved.work_of, shift
        )

    return report(state, solved.solution, solved.impulse, u, t, h, energy)


def _end(
    contact_model: ContactModel,
    step_solver: StepSolver,
    state: ConstrainedState,
    solved: StepSolution,
    inputs: StepInput,
    t: float,
    h: float,
    remaining: float,
) -> StepResult:
    """Advance by the remaining time, and report."""
    model, u = state.model, solved.velocity
    q, qd = advanced(model, state.q, u, remaining)
    shift = None
    if step_solver.world.stabilisation == "split_impulse":
        correction = step_solver.correction(state, u, h, remaining)
        if correction.any():
            q, qd = advanced(model, state.q, u, remaining, u + correction)
            shift = remaining * correction
    step_solver.drop_stale(state)
    step = step_report(contact_model, solved, inputs, t, h, shift)
    return StepResult(q, qd, (step,), solved)


STEPPERS: dict[str, Callable[..., StepResult]] = {
    "stewart_trinkle": stewart_trinkle,
    "anitescu_potra": anitescu_potra,
    "moreau_jean": moreau_jean,
}
