"""Steps of several states, one after the other in one call of machine code.

In the subset of machine_code.
"""

from __future__ import annotations

import math
from inspect import signature
from typing import NamedTuple

import numpy as np

from dyn_core.contact.problem.rows import Rows
from dyn_core.contact.solvers.coulomb import NEAR, solve_coulomb
from dyn_core.contact.solvers.newton import newton
from dyn_core.contact.solvers.row_solvers import ROW_SOLVERS
from dyn_core.contact.solvers.splitting import split
from dyn_core.contact.solvers.sweeps import sweep
from dyn_core.contact.solvers.work import ITERATIONS, SolverWork
from dyn_core.contact.stepping.assembly import end_step, prepare_step
from dyn_core.contact.stepping.contact_rows import cross, tangent
from dyn_core.contact.stepping.position_correction import (
    TOLERANCE,
    end_correction,
    prepare_correction,
)
from dyn_core.contact.stepping.step_tables import (
    CONTACT_ROLE,
    Scene,
    StepArrays,
)
from dyn_core.engines.machine_code import Reals, Reals3, Wholes, machine_code

METHODS = tuple(ROW_SOLVERS)
ADMM, NEWTON, RELAXATION, SWEEPS = range(len(METHODS))
LAW = 4  # residual of the law, in a report


class SolverChoice(NamedTuple):
    """A solver of Rows with its options.

    Attributes:
        method: Index in METHODS.
        max_iterations, tolerance: Of each.
        splittings: Of coulomb_newton.
        factor: Penalty of admm, relaxation of projected_gauss_seidel.
        correction_iterations, correction_tolerance: Where positions are corrected.
    """

    method: int
    max_iterations: int
    tolerance: float
    splittings: int
    factor: float
    correction_iterations: int
    correction_tolerance: float


class RowOutcomes(NamedTuple):
    """What is known of the last step of each state.

    Attributes:
        status: Index in residuals.STATUSES, (n,).
        iterations, contacts, rows: Numbers of the solver and of its problem, (n,).
        residual: Of the solver's own law, (n,).
        failed: Whether anything was not finite, (n,).
        corrected, short: Whether positions are corrected, and had no room, (n,).
        force: Sum of the contact forces on each chosen body, world axes, mean of the
            step, (n, chosen, 3) [N].
        world_force: Its part from the world, likewise.
    """

    status: Wholes
    iterations: Wholes
    contacts: Wholes
    rows: Wholes
    residual: Reals
    failed: Wholes
    corrected: Wholes
    short: Wholes
    force: Reals3
    world_force: Reals3


def solver_choice(name: str, options: dict[str, float]) -> SolverChoice:
    """Return a solver of ROW_SOLVERS with options beside its defaults."""

    def defaults(which: str) -> dict[str, float]:
        parameters = signature(ROW_SOLVERS[which]).parameters.values()
        return {p.name: p.default for p in parameters if p.default is not p.empty}

    chosen = defaults(name) | options
    correction = defaults(METHODS[RELAXATION])
    return SolverChoice(
        METHODS.index(name),
        int(chosen["max_iterations"]),
        float(chosen["tolerance"]),
        int(chosen.get("splittings", 0)),
        float(chosen.get("rho", chosen.get("relaxation", 0.0))),
        int(correction["max_iterations"]),
        TOLERANCE,
    )


def room_for_outcomes(n: int, chosen: int) -> RowOutcomes:
    """Return empty outcomes of n states, with the forces on some bodies."""
    status, iterations, contacts, rows = (np.zeros(n, np.int64) for _ in range(4))
    failed, corrected, short = (np.zeros(n, np.int64) for _ in range(3))
    force, world_force = (np.zeros((n, chosen, 3)) for _ in range(2))
    return RowOutcomes(
        status,
        iterations,
        contacts,
        rows,
        np.zeros(n),
        failed,
        corrected,
        short,
        force,
        world_force,
    )


@machine_code
def step_rows(
    scene: Scene,
    step: StepArrays,
    work: SolverWork,
    choice: SolverChoice,
    chosen: Wholes,
    outcomes: RowOutcomes,
    report: Reals,
    first: int,
    last: int,
    offset: int,
    dt: float,
    remaining: float,
) -> tuple[int, int]:
    """Take the step of some states, but for their positions.

    A state that is not finite, or becomes so, has failed: its velocity is zero, and its
    impulses are forgotten.

    Args:
        scene: Robots' and world's tables.
        step: Arrays with the terms of the states; qd_next and way are written.
        work: Room for the solver.
        choice: Solver.
        chosen: Place in `outcomes.force` of each body, world first; -1: none.
        outcomes: Written, for the states of a batch.
        report: Of the solver, (8,).
        first, last: States of `step` to advance.
        offset: Number in `outcomes` of state 0.
        dt: Step [s].
        remaining: Time for which the velocity acts [s].

    Returns:
        `last`, and 0; where a state has more contacts than there is room for, the
        number of the state, which is not advanced, and that of its contacts.

    Source: LCP-1 to LCP-4, LCP-11.
    """
    nv = len(scene.tables.coordinate)
    for state in range(first, last):
        n = offset + state
        clear_outcome(outcomes, n)
        if not finite_terms(step, state):
            fail(step, outcomes, state, n)
            continue
        touching, blocks, m = prepare_step(scene, step, state, 0, dt)
        if touching < 0:
            return state, -touching
        status = solve_rows(step.rows, blocks, m, nv, work, report, choice)
        outcomes.status[n], outcomes.iterations[n] = status, int(report[ITERATIONS])
        outcomes.residual[n] = report[LAW]
        outcomes.contacts[n], outcomes.rows[n] = touching, m
        if not end_step(scene, step, state, blocks):
            fail(step, outcomes, state, n)
            continue
        if outcomes.force.shape[1] > 0:
            add_forces(step, blocks, chosen, outcomes, n, dt)
        if scene.rule.apart > 0.0:
            apart, m_apart = prepare_correction(scene, step, blocks, dt, remaining)
            if m_apart > 0:
                outcomes.corrected[n] = 1
                status = newton(
                    step.normals,
                    apart,
                    m_apart,
                    nv,
                    work,
                    report,
                    choice.correction_iterations,
                    choice.correction_tolerance,
                    NEAR,
                    False,
                )
                if not end_correction(scene, step, state, apart) or status != 0:
                    outcomes.short[n] = 1
    return last, 0


@machine_code
def solve_rows(
    rows: Rows,
    blocks: int,
    m: int,
    nv: int,
    work: SolverWork,
    report: Reals,
    choice: SolverChoice,
) -> int:
    """Solve a problem by the chosen solver; return its status."""
    most, tolerance = choice.max_iterations, choice.tolerance
    if choice.method == NEWTON:
        return solve_coulomb(
            rows, blocks, m, nv, work, report, most, tolerance, choice.splittings
        )
    if choice.method == ADMM:
        return split(rows, blocks, m, nv, work, report, most, tolerance, choice.factor)
    if choice.method == RELAXATION:
        return newton(rows, blocks, m, nv, work, report, most, tolerance, NEAR, False)
    return sweep(rows, blocks, m, nv, work, report, most, tolerance, choice.factor)


@machine_code
def clear_outcome(outcomes: RowOutcomes, n: int) -> None:
    """Set what is known of a step to nothing."""
    outcomes.status[n], outcomes.iterations[n] = 0, 0
    outcomes.contacts[n], outcomes.rows[n], outcomes.residual[n] = 0, 0, 0.0
    outcomes.failed[n], outcomes.corrected[n], outcomes.short[n] = 0, 0, 0
    for k in range(outcomes.force.shape[1]):
        for i in range(3):
            outcomes.force[n, k, i], outcomes.world_force[n, k, i] = 0.0, 0.0


@machine_code
def finite_terms(step: StepArrays, state: int) -> bool:
    """Return whether a state and what its step depends on are finite."""
    terms, total = step.terms, 0.0
    for k in range(terms.q.shape[1]):
        total += 0.0 * terms.q[state, k]
    for k in range(terms.qd.shape[1]):
        total += 0.0 * terms.qd[state, k] + 0.0 * terms.free[state, k]
    for k in range(terms.factor.shape[1]):
        total += 0.0 * terms.factor[state, k]
    poses = terms.poses[state]
    for body in range(poses.shape[0]):
        for k in range(poses.shape[1]):
            total += 0.0 * poses[body, k]
    return not math.isnan(total)


@machine_code
def fail(step: StepArrays, outcomes: RowOutcomes, state: int, n: int) -> None:
    """Note that a state has failed."""
    outcomes.failed[n] = 1
    step.earlier.known[state] = 0
    for k in range(step.qd_next.shape[1]):
        step.qd_next[state, k], step.way[state, k] = 0.0, 0.0


@machine_code
def add_forces(
    step: StepArrays,
    used: int,
    chosen: Wholes,
    outcomes: RowOutcomes,
    n: int,
    dt: float,
) -> None:
    """Add the contact forces of a step to those on the chosen bodies.

    Source: LCP-2, LCP-15.
    """
    rows, blocks, contacts = step.rows, step.blocks, step.contacts
    for block in range(used):
        if blocks.role[block] != CONTACT_ROLE:
            continue
        c, row = blocks.source[block], rows.start[block]
        a, b = contacts.body_a[c], contacts.body_b[c]
        if chosen[a] < 0 and chosen[b] < 0:
            continue
        x, y, z = contacts.normal[c, 0], contacts.normal[c, 1], contacts.normal[c, 2]
        size = rows.impulse[row] / dt
        fx, fy, fz = size * x, size * y, size * z
        if rows.count[block] > 1:
            sx, sy, sz = tangent(x, y, z)
            tx, ty, tz = cross(x, y, z, sx, sy, sz)
            s, t = rows.impulse[row + 1] / dt, rows.impulse[row + 2] / dt
            fx, fy, fz = (
                fx + s * sx + t * tx,
                fy + s * sy + t * ty,
                fz + s * sz + t * tz,
            )
        add_force(outcomes, n, chosen[a], b == 0, fx, fy, fz)
        add_force(outcomes, n, chosen[b], a == 0, -fx, -fy, -fz)


@machine_code
def add_force(
    outcomes: RowOutcomes,
    n: int,
    k: int,
    of_world: bool,
    x: float,
    y: float,
    z: float,
) -> None:
    """Add a force to those on a chosen body; k < 0: it is not chosen."""
    if k < 0:
        return
    outcomes.force[n, k, 0] += x
    outcomes.force[n, k, 1] += y
    outcomes.force[n, k, 2] += z
    if of_world:
        outcomes.world_force[n, k, 0] += x
        outcomes.world_force[n, k, 1] += y
        outcomes.world_force[n, k, 2] += z
