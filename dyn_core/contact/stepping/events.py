"""Event-driven stepping: each impact is located in time and solved on its own."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dyn_core.contact.stepping.constrained_state import ConstrainedState
from dyn_core.contact.stepping.contact_model import ContactModel
from dyn_core.contact.stepping.integration import advanced, moved
from dyn_core.contact.stepping.step_solver import StepSolution, StepSolver
from dyn_core.contact.stepping.time_stepping import (
    STEPPERS,
    StepInput,
    StepResult,
    step_report,
)

CLOSED = 1e-8  # gap below which a contact is closed [m | rad]
DRIFT = 1e-4  # gap up to which a loaded contact stays closed [m | rad]
DRIFTING = 1e-3  # largest speed of such a contact [m/s]
RESTING = 1e-6  # opening speed below which a contact stays closed [m/s]
ON_TIME = 1e-12  # accuracy of an event's time, relative to the step
ROOTS = 60  # largest number of iterations for an event's time


def event_driven(
    contact_model: ContactModel,
    step_solver: StepSolver,
    t: float,
    q: Any,
    qd: Any,
    inputs: StepInput,
    h: float,
) -> StepResult:
    """Return the state after a step that stops at each impact.

        gap(t*) = 0:  sigma_n+ = -e sigma_n-,   H (qd+ - qd) = J.T Lambda

    Without closed contacts the motion between events is one step of RK4, with closed
    contacts a midpoint step that enforces them. Zeno guard: after World.max_impacts
    events in one step restitution is off for its remainder (counter `zeno`), and after
    twice as many the remaining time is one midpoint step with all contacts.

    Args:
        contact_model: Robot and world.
        step_solver: Solver of the contact problems.
        t: Start of the step [s].
        q, qd: State, (nq,), (nv,).
        inputs: Forces and prescribed accelerations.
        h: Step [s].

    Source: LCP-17.
    """
    remaining, events, reports = h, 0, []
    model, max_events = contact_model.model, contact_model.world.max_impacts
    solved: StepSolution | None = None
    while remaining > 1e-12 * h or solved is None:
        state = contact_model.state(
            q, qd, 0.0, inputs.f_ext, inputs.speeds(model, qd, 0.0)
        )
        if _approaching(state):
            solved = _impact(state, step_solver, events < max_events)
            qd = solved.velocity
            reports.append(step_report(contact_model, solved, inputs, t, 0.0))
        closed = _closed(state, qd, step_solver)
        flow = _motion(contact_model, step_solver, q, qd, inputs, closed)
        if events < 2 * max_events:
            closing_gaps = _closing_gaps(state, closed)
            elapsed, q, qd, solved = _until(
                contact_model, flow, closing_gaps, remaining, h
            )
        else:
            everything = {c.id for c in state.constraints}
            flow = _motion(contact_model, step_solver, q, qd, inputs, everything)
            elapsed, (q, qd, solved) = remaining, flow(remaining)
        events += 1
        step_solver.counters.update(["zeno"] * (events == max_events))
        reports.append(step_report(contact_model, solved, inputs, t, elapsed))
        t, remaining = t + elapsed, remaining - elapsed
    if contact_model.world.stabilisation == "split_impulse":
        rest = np.zeros(model.nv)
        end = contact_model.state(q, rest)
        correction = step_solver.correction(end, rest, h, h)
        if correction.any():
            q, qd = advanced(model, q, qd, h, correction)
            reports[-1] = step_report(
                contact_model, solved, inputs, t - elapsed, elapsed, h * correction
            )
    step_solver.drop_stale(state)
    return StepResult(q, qd, tuple(reports), solved)


FlowMap = Callable[[float], tuple[np.ndarray, np.ndarray, StepSolution]]


def _until(
    contact_model: ContactModel,
    flow: FlowMap,
    closing_gaps: Mapping[Hashable, float],
    remaining: float,
    h: float,
) -> tuple[float, np.ndarray, np.ndarray, StepSolution]:
    """Advance to the first closing gap or to the end of the step.

    Args:
        contact_model: Robot and world.
        flow: State after a time.
        closing_gaps: By contact: gap at which it closes, if not zero.
        remaining, h: Remaining time, and the step [s].

    Returns:
        Elapsed time, q, qd, and the solution of the contact problem.
    """
    end = flow(remaining)
    gap_high = _least_gap(contact_model, end[0], closing_gaps)
    if gap_high >= -CLOSED / 10:
        return remaining, *end
    low, high, x = 0.0, remaining, remaining
    gap_low, side = CLOSED, 0  # a contact that just separated is open
    for _ in range(ROOTS):
        x = high - gap_high * (high - low) / (gap_high - gap_low)
        if not low < x < high or abs(side) > 3:
            x, side = (low + high) / 2, 0
        end = flow(x)
        gap = _least_gap(contact_model, end[0], closing_gaps)
        if abs(gap) <= CLOSED / 100 or high - low <= ON_TIME * h:
            break
        if gap < 0:
            gap_low = gap_low / 2 if side < 0 else gap_low
            high, gap_high, side = x, gap, min(side, 0) - 1
        else:
            gap_high = gap_high / 2 if side > 0 else gap_high
            low, gap_low, side = x, gap, max(side, 0) + 1
    return x, *end


def _closing_gaps(
    state: ConstrainedState, closed: set[Hashable]
) -> dict[Hashable, float]:
    """Return the gap at which each contact closes.

    Zero; the present gap of an overlap; minus infinity of a closed contact.
    """
    closing_gaps = {
        c.id: min(float(c.gap), 0.0) for c in state.constraints if c.closing
    }
    return {**closing_gaps, **dict.fromkeys(closed, -np.inf)}


def _least_gap(
    contact_model: ContactModel, q: np.ndarray, closing_gaps: Mapping[Hashable, float]
) -> float:
    """Return the smallest gap of contacts and limits above their closing gap."""
    state = contact_model.state(q, np.zeros(contact_model.model.nv))
    gaps = [
        float(c.gap) - closing_gaps.get(c.id, 0.0)
        for c in state.constraints
        if c.closing
    ]
    return min(gaps, default=np.inf)


def _motion(
    contact_model: ContactModel,
    step_solver: StepSolver,
    q: np.ndarray,
    qd: np.ndarray,
    inputs: StepInput,
    closed: set[Hashable],
) -> FlowMap:
    """Return the flow from a state, a function of time, with some contacts closed."""
    model = contact_model.model

    def acceleration(
        position: np.ndarray, v: np.ndarray
    ) -> tuple[np.ndarray, ConstrainedState]:
        state = contact_model.state(position, v, 0.0, inputs.f_ext)
        state = state.only([False] * len(state.constraints))
        return state.inverse @ (inputs.tau - state.C), state

    def free(h: float) -> tuple[np.ndarray, np.ndarray, StepSolution]:
        k, state = acceleration(q, qd)
        v, a = [qd], [k]
        for part in (h / 2, h / 2, h):
            dv, speed = part * v[-1], qd + part * a[-1]
            k, _ = acceleration(moved(model, q, dv), speed)
            v.append(model.tangent_rate(dv, speed))
            a.append(k)
        weights = np.array([1, 2, 2, 1]) / 6
        there, after = h * (weights @ np.array(v)), qd + h * (weights @ np.array(a))
        solution = step_solver.solve(state.problem(after, h))
        state = replace(state, B=h / 2 * contact_model.slopes(qd))  # of a mean friction
        return (
            moved(model, q, there),
            after,
            StepSolution(state, solution, after, np.zeros(0)),
        )

    def constrained(h: float) -> tuple[np.ndarray, np.ndarray, StepSolution]:
        middle, v = advanced(model, q, qd, h / 2)
        state = contact_model.state(
            middle, v, h, inputs.f_ext, inputs.speeds(model, v, h)
        )
        state = state.only(lambda c: c.id in closed or not c.closing)
        solved = step_solver.solve_step(
            state, state.free(inputs.tau, h, 0.5), h, "stewart_trinkle", False
        )
        return *advanced(model, middle, solved.velocity, h / 2), solved

    start = contact_model.state(q, qd, 0.0, inputs.f_ext, inputs.speeds(model, qd, 0.0))
    smooth = not closed and all(c.closing for c in start.constraints)
    return free if smooth else constrained


def _impact(
    state: ConstrainedState, step_solver: StepSolver, bouncing: bool
) -> StepSolution:
    """Return the solution of an instantaneous impact at the closed contacts."""
    part = state.only(lambda c: not c.closing or c.gap <= CLOSED)
    part = _with_gaps(part, [0.0 for _ in part.constraints])
    return step_solver.solve_step(part, state.qd, 1e-12, "anitescu_potra", bouncing)


def _with_gaps(state: ConstrainedState, gaps: list[Any]) -> ConstrainedState:
    """Return a copy with other gaps."""
    pairs = zip(state.constraints, gaps, strict=True)
    return replace(state, constraints=tuple(replace(c, gap=g) for c, g in pairs))


def _approaching(state: ConstrainedState) -> bool:
    """Return whether a closed contact closes further."""
    sigma = state.J @ state.qd
    return any(
        c.closing and c.gap <= CLOSED and sigma[k] < -RESTING
        for k, c in zip(state.first, state.constraints, strict=True)
    )


def _closed(
    state: ConstrainedState, qd: np.ndarray, step_solver: StepSolver
) -> set[Hashable]:
    """Return the contacts that stay closed: not opening, and touching or loaded."""
    closed = set()
    for c in state.constraints:
        loaded = float(step_solver.earlier.get(c.id, (0.0,))[0]) > 0
        speed = float(c.J[0] @ qd)
        drifts = loaded and c.closing and c.gap <= DRIFT and abs(speed) <= DRIFTING
        if drifts or (c.closing and c.gap <= CLOSED and speed <= RESTING):
            closed.add(c.id)
    return closed


STEPPERS["event_driven"] = event_driven
