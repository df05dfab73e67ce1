"""All derivatives of a step in one call of machine code, behind that of the step.

    modes -> contact_term_slopes -> contacts' geometry -> turned rows -> solve
    -> moved_state_slopes; the same for a correction of positions -> A, B

In the subset of machine_code; step_slopes.py has the equations.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dyn_core.contact.collision.detection.contact_slopes import (
    SlopeRoom,
    contact_slopes,
)
from dyn_core.contact.derivatives.slope_solution import (
    add_product,
    hold_corrections,
    hold_rows,
    solve_corrections,
    solve_slopes,
)
from dyn_core.contact.derivatives.step_slopes import (
    AT_BOUNDARY,
    SLIP,
    SMOOTH,
    SlopeArrays,
    find_corrections,
    find_modes,
)
from dyn_core.contact.derivatives.turned_rows import fill_turned
from dyn_core.contact.rows.step_tables import CONTACT_ROLE, Scene, StepArrays
from dyn_core.engines.machine_code import (
    FloatArray,
    FloatArray2,
    FloatArray3,
    IntArray,
    KernelAddress,
    machine_code,
    run_kernel,
)

NEAR = 1e-3  # beyond the margin, where a contact beside a state is looked for [m]
REFUSED = -1


class SlopeKernels(NamedTuple):
    """Programs, tied to the memory of a step, SlopeArrays and EndSlopes.

    Attributes:
        terms: contact_term_slopes.
        more: The same with a correction; its inertia is `inertia` of EndSlopes.
        end: moved_state_slopes from where constraints are taken to the end.
        start: The same from the start to there; its address is 0 where these are one.
    """

    terms: KernelAddress
    more: KernelAddress
    end: KernelAddress
    start: KernelAddress


class EndSlopes(NamedTuple):
    """What the derivatives of a state are made of; n is nv.

    Attributes:
        modes: By block, (blocks,).
        slipped: Whether columns of by_mu are not zero, by block, (blocks,).
        u: Velocity after the step, then with the correction, (n,).
        correction: Velocity that moves the position alone, (n,).
        pushes: Force of contacts on each body, body coordinates, (nb, 6).
        rates, rates_before: Of contact_term_slopes.
        dense: How the rows of loops and of limits of balls change with q, (rows, n, n).
        by_q, by_u, by_correction: Of the end, (2 n, n).
        start_q, start_qd: Of the middle by the state before the step, (2 n, n).
        inertia, kept_q, kept_rates: Of the robot's part without a correction.
        by_mu: By the coefficients of all blocks, (2 n, 3 blocks).
        A, B: (2 n, 2 n), (2 n, n).
        middle: A by the state where constraints are taken, (2 n, 2 n).
    """

    modes: IntArray
    slipped: IntArray
    u: FloatArray
    correction: FloatArray
    pushes: FloatArray2
    rates: FloatArray2
    rates_before: FloatArray2
    dense: FloatArray3
    by_q: FloatArray2
    by_u: FloatArray2
    by_correction: FloatArray2
    start_q: FloatArray2
    start_qd: FloatArray2
    inertia: FloatArray2
    kept_q: FloatArray2
    kept_rates: FloatArray2
    by_mu: FloatArray2
    A: FloatArray2
    B: FloatArray2
    middle: FloatArray2


def allocate_end_slopes(
    bodies: int, n: int, columns: int, dense: int, blocks: int
) -> EndSlopes:
    """Return empty arrays.

    Args:
        bodies: Number of bodies, without the world.
        n: Number of velocity coordinates.
        columns: Number of columns of all joints.
        dense: Number of rows of loops and of limits of balls.
        blocks: Largest number of blocks.
    """
    sizes: dict[str, tuple[int, ...]] = {
        name: (n, n) if name in ("inertia", "kept_q") else (2 * n, n)
        for name in EndSlopes._fields
    }
    rates = ("rates", "rates_before", "kept_rates")
    sizes |= dict.fromkeys(rates, (columns, 6))
    sizes |= dict.fromkeys(("A", "middle"), (2 * n, 2 * n))
    sizes |= {"u": (n,), "correction": (n,), "pushes": (bodies, 6)}
    sizes |= {"dense": (dense, n, n), "by_mu": (2 * n, 3 * blocks)}
    parts: dict[str, np.ndarray] = {name: np.zeros(x) for name, x in sizes.items()}
    parts |= {name: np.zeros(blocks, np.int64) for name in ("modes", "slipped")}
    return EndSlopes(**parts)


@machine_code
def take_slopes(
    scene: Scene,
    step: StepArrays,
    room: SlopeRoom,
    kernels: SlopeKernels,
    slopes: SlopeArrays,
    ends: EndSlopes,
    blocks: int,
    contacts: int,
    corrected: bool,
) -> int:
    """Fill A, B and by_mu of a step that was taken; return what is flagged of it.

    Args:
        scene: Robot, world and rule.
        step: Problem with its impulses and results; qd_next and impulses are
            overwritten where positions were corrected.
        room: Of contact_slopes.
        kernels: See there.
        slopes: Memory.
        ends: Results, with the modes of the velocity, and memory.
        blocks, contacts: Numbers of these.
        corrected: Whether positions were.

    Returns:
        AT_BOUNDARY, GAP_ZERO or SMOOTH; REFUSED by a Program.
    """
    n, slips = len(scene.tables.coordinate), False
    for j in range(n):
        ends.u[j], ends.correction[j] = step.qd_next[0, j], step.correction[0, j]
    for i in range(len(ends.pushes)):
        for j in range(6):
            ends.pushes[i, j] = 0.0
    flag = find_modes(scene, step, blocks, ends.pushes, slopes)
    if run_kernel(kernels.terms) != 0 or run_kernel(kernels.end) != 0:
        return REFUSED
    for k in range(blocks):
        ends.modes[k] = slopes.mode[k]
        slips = slips or slopes.mode[k] == SLIP
    if corrected:
        fill(ends.kept_q, slopes.by_q)
        fill(ends.kept_rates, ends.rates)
    move_rows(scene, step, room, blocks, contacts, slopes, ends)
    holding = hold_rows(scene, step, blocks, slopes)
    lost, disagree = solve_slopes(scene.rule.dt, blocks, holding, slips, slopes)
    write_ends(blocks, n, slopes, ends)
    if corrected:
        for j in range(n):
            step.qd_next[0, j] = ends.correction[j]
            ends.u[j] += ends.correction[j]
        opening = find_corrections(scene, step, blocks, ends.pushes, slopes)
        flag = opening if opening != SMOOTH else flag
        if run_kernel(kernels.more) != 0:
            return REFUSED
        subtract(slopes.by_q, ends.kept_q)
        subtract(ends.rates, ends.kept_rates)
        move_rows(scene, step, room, blocks, contacts, slopes, ends)
        holding = hold_corrections(scene, step, blocks, slopes)
        if slips:  # the inverse that is known has the drag of slip
            fill(slopes.inertia, ends.inertia)
        solve_corrections(holding, slips, slopes)
        add_product(ends.by_correction, slopes.du_dq, ends.middle, 2 * n, n, n, 0)
    if kernels.start.address == 0:
        fill(ends.A, ends.middle)
    elif run_kernel(kernels.start) != 0:
        return REFUSED
    else:
        clear(ends.A)
        add_product(ends.middle, ends.start_q, ends.A, 2 * n, 2 * n, n, 0)
        add_product(ends.middle, ends.start_qd, ends.A, 2 * n, 2 * n, n, n)
    return AT_BOUNDARY if disagree or (lost > 0 and slips) else flag


@machine_code
def move_rows(
    scene: Scene,
    step: StepArrays,
    room: SlopeRoom,
    blocks: int,
    contacts: int,
    slopes: SlopeArrays,
    ends: EndSlopes,
) -> None:
    """Add what constraints change by moving; arguments as of take_slopes."""
    contact_slopes(
        scene.shapes,
        scene.pairs,
        step.terms.poses[0],
        scene.rule.margin + NEAR,
        step.contacts,
        contacts,
        slopes.pressed,
        room,
        step.collision,
        slopes.geometry,
    )
    for k in range(blocks):
        contact = step.blocks.role[k] == CONTACT_ROLE
        if not contact and -1 - step.blocks.id[k] >= len(scene.joints.role):
            move_dense(step, k, slopes, ends)
    fill_turned(scene, step, blocks, ends.rates, ends.rates_before, slopes)


@machine_code
def move_dense(step: StepArrays, k: int, slopes: SlopeArrays, ends: EndSlopes) -> None:
    """Add what a loop, or a limit of a ball, changes by moving."""
    n, u, qd = len(ends.u), step.qd_next[0], step.terms.qd[0]
    for r in range(step.rows.count[k]):
        row, change = step.rows.start[k] + r, ends.dense[step.blocks.source[k] + r]
        turned, before, push = (
            slopes.turned[row],
            slopes.before[row],
            step.rows.impulse[row],
        )
        for j in range(n):
            turned[j], before[j] = 0.0, 0.0
        for i in range(n):
            for j in range(n):
                turned[j] += change[i, j] * u[i]
                before[j] += change[i, j] * qd[i]
                slopes.by_q[i, j] += change[i, j] * push


@machine_code
def write_ends(blocks: int, n: int, slopes: SlopeArrays, ends: EndSlopes) -> None:
    """Write the derivatives of the end by those of the velocity after the step."""
    for i in range(2 * n):
        for j in range(n):
            ends.middle[i, j], ends.middle[i, n + j] = ends.by_q[i, j], 0.0
            ends.B[i, j] = 0.0
    add_product(ends.by_u, slopes.du_dq, ends.middle, 2 * n, n, n, 0)
    add_product(ends.by_u, slopes.du_dqd, ends.middle, 2 * n, n, n, n)
    add_product(ends.by_u, slopes.du_dtau, ends.B, 2 * n, n, n, 0)
    for k in range(blocks):
        slips, was = slopes.mode[k] == SLIP, ends.slipped[k] != 0
        ends.slipped[k] = 1 if slips else 0
        if not (slips or was):  # its columns are zero
            continue
        for i in range(2 * n):
            for j in range(3 * k, 3 * k + 3):
                ends.by_mu[i, j] = 0.0
                if slips:
                    for m in range(n):
                        ends.by_mu[i, j] += ends.by_u[i, m] * slopes.du_dmu[m, j]


@machine_code
def fill(to: FloatArray2, a: FloatArray2) -> None:
    """Copy a matrix."""
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            to[i, j] = a[i, j]


@machine_code
def clear(to: FloatArray2) -> None:
    """Set a matrix to zero."""
    for i in range(to.shape[0]):
        for j in range(to.shape[1]):
            to[i, j] = 0.0


@machine_code
def subtract(a: FloatArray2, b: FloatArray2) -> None:
    """Subtract a matrix from another one."""
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] -= b[i, j]
