"""Energy balance of a run: stored energy, work, losses, and the residual.

    kinetic + potential =
        start + work - dissipation + constraints + correction + residual

`work` is done by motors and by external forces on bodies, `dissipation` is lost to
damping and dry friction of the joints, `constraints` is added by contacts, limits and
loops, `correction` by moving bodies out of overlaps (both in a World). Each term uses
the forces that the steps used. The residual is the error of integration, together with
the energy that loops and limit stops of a plain Simulator store and dissipate.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dyn_core.contact.stepping.reports import StepEnergy
from dyn_core.model import Model
from dyn_core.model.passive_forces import (
    friction_force,
    friction_slope,
    with_potentials,
)
from dyn_core.problems import ENERGY
from dyn_core.problems.ports import qd
from dyn_core.problems.signatures import Port, Signature
from dyn_core.recordings.recording import Recording, RunSteps
from dyn_core.solving.registry import solver, solvers
from dyn_core.solving.solver import TracedSolver

RUNS_WHILE_TRACED = "wings"  # a mark, see engines/llvm/cached/fingerprint.py


class EnergyLedger(NamedTuple):
    """Energies at each row, (rows,) each [J]; sums begin at the first row with zero.

    Attributes:
        kinetic, potential: Energy of the robot; springs are included if they acted.
        work: Work of motors, including forces of prescribed joints and the weight that
            a robot compensates itself, and of forces on bodies.
        dissipation: Energy lost to damping and dry friction of joints.
        constraints: Energy added by contacts, limits, loops and gears of a World.
        correction: Energy added by position corrections of a World, which lift bodies
            out of overlaps and close loops against gravity and springs.
        residual: Difference that the other terms do not explain.
    """

    kinetic: np.ndarray
    potential: np.ndarray
    work: np.ndarray
    dissipation: np.ndarray
    constraints: np.ndarray
    correction: np.ndarray
    residual: np.ndarray


def energy_ledger(model: Model, run: Recording) -> EnergyLedger:
    """Return the energy balance of a run; empty arrays for a run without rows.

    Steps in a World report their energies themselves (StepEnergy); for other steps they
    are computed from states and joint forces, and `constraints` and `correction` are
    zero.

    Args:
        model: Robot.
        run: Recording of the robot, with velocities, else SettingError. Only the sizes
            of its states are checked: another size than the robot's is a ShapeError.

    Returns:
        kinetic, potential, work, dissipation, constraints, correction and residual,
        (rows,) each [J]; all but the first two are sums, 0 in the first row.
    """
    rows = len(run.t)
    if not rows:
        return EnergyLedger(*np.zeros((7, 0)))
    time = (run.t,) if model.driven else ()
    program = solver(solvers(ENERGY)[0]).build(
        with_potentials(model),
        inputs=["time"] if model.driven else [],
        joint_springs=run.joint_springs,
    )
    kinetic, potential = (np.asarray(x) for x in program(run.q, run.qd, *time))
    terms = _reported(run) if run.reports else _of_steps(model, run)
    sums = np.zeros((rows, len(StepEnergy._fields)))
    np.cumsum(terms[: rows - 1], axis=0, out=sums[1:])
    energy = kinetic + potential
    brought = sums @ StepEnergy(1.0, -1.0, 1.0, 1.0)
    residual = energy - energy[0] - brought
    return EnergyLedger._make((kinetic, potential, *sums.T, residual))


def _reported(run: Recording) -> np.ndarray:
    """Return the energies [J] reported in each row but the last, (rows - 1, 4).

    They are summed over the steps of the row. Columns as in StepEnergy: work,
    dissipation, constraints, correction.
    """
    energies = [[step.energy for step in row] for row in run.reports[: len(run.t) - 1]]
    sums = [np.sum(row, axis=0) for row in energies]
    return np.array(sums).reshape(-1, len(StepEnergy._fields))


def _of_steps(model: Model, run: Recording) -> np.ndarray:
    """Return the energies [J] of each row but the last, computed from its steps.

    The shape is (rows - 1, 4), columns as in StepEnergy: work, dissipation, and zeros
    for constraints and correction. If run.steps is None, each row is one explicit step
    with the joint forces run.tau.

        implicit:  h v . tau,   h v . (D + B (qd+ - qd)),   v = (qd + qd+) / 2
        explicit:  (q+ - q) . tau,   h (D . qd + D+ . qd+) / 2

    with the length h, the joint forces tau, the friction D and its slopes B at the
    start of a step, and + for its end; D is zero without run.joint_friction, and B
    where steps.implicit is False. The first is exact for a step that adds h B to the
    inertia; in the second the joint force, constant in a step, has no error, and the
    trapezoidal rule is of second order.
    """
    rows, steps = len(run.t), run.steps or RunSteps(run.q, run.qd, run.tau, None)
    count = len(steps.q) // rows
    last = (rows - 1) * count
    h = np.repeat(np.diff(run.t) / count, count)[:, None]
    q, qd, tau = steps.q[: last + 1], steps.qd[: last + 1], steps.effort[:last]
    friction = slopes = np.zeros_like(qd)
    if run.joint_friction:
        program = TracedSolver(
            "joint_friction", JOINT_FRICTION, joint_friction, by_joint=False
        )
        friction, slopes = map(
            np.asarray, program.build(model, joint_friction=True)(qd)
        )
    if steps.implicit is None:
        moved = np.asarray(model.difference(q[:-1], q[1:])).reshape(-1, model.nv)
        power = (friction * qd).sum(axis=1)
        lost = h[:, 0] * (power[:-1] + power[1:]) / 2
    else:
        moved = h * (qd[:-1] + qd[1:]) / 2
        later = np.where(steps.implicit, slopes[:-1], 0.0) * np.diff(qd, axis=0)
        lost = (moved * (friction[:-1] + later)).sum(axis=1)
    none = np.zeros_like(lost)
    terms = np.stack([(tau * moved).sum(axis=1), lost, none, none], axis=1)
    return np.asarray(terms.reshape(rows - 1, count, -1).sum(axis=1))


def joint_friction(model, qd):  # type: ignore[no-untyped-def]
    """Return joint friction [N·m | N] and its derivative by qd, (nv,) each.

    Friction is the joint force that overcomes damping and dry friction: it has the sign
    of the velocity. The derivative (friction_slope) is the one of implicit steps, never
    negative.
    """
    return friction_force(model, qd), friction_slope(model, qd)


JOINT_FRICTION = Signature(
    "joint_friction",
    (qd,),
    (
        Port("friction", ("nv",), "N·m | N", meaning="damping and dry friction"),
        Port("slopes", ("nv",), "SI", meaning="derivative by qd, never negative"),
    ),
    passive=("joint_friction",),
    meaning="friction in the joints",
)
