"""Energy of a run: what it has, what came in, what was lost, what does not add up.

    kinetic + potential = start + work - dissipation + constraints + residual

`work` is that of the joint forces, `dissipation` what damping and dry friction of the
joints take, `constraints` what the impulses of contacts, limits and loops add (in a
World). The residual is the error of integration, of the quadrature of the dissipation,
and what limit stops of a plain Simulator store and take.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dyn_core.model import Model
from dyn_core.model.passive_forces import with_potentials, without_dry_friction
from dyn_core.problems import ENERGY
from dyn_core.simulation import Recording
from dyn_core.solving.registry import solver, solvers


class EnergyLedger(NamedTuple):
    """Energies at each row, (rows,) each [J]; sums run from the first row.

    Attributes:
        kinetic, potential: What the robot has; springs are counted.
        work: What the joint forces have brought in.
        dissipation: What damping and dry friction have taken.
        constraints: What the impulses of contacts and constraints have brought in.
        residual: What is left of the balance.
    """

    kinetic: np.ndarray
    potential: np.ndarray
    work: np.ndarray
    dissipation: np.ndarray
    constraints: np.ndarray
    residual: np.ndarray


def energy_ledger(
    model: Model,
    run: Recording,
    joint_friction: bool = True,
    joint_springs: bool = True,
    dry_friction: bool = True,
) -> EnergyLedger:
    """Return the balance of energy of a run.

    Joint forces are constant in a period, so that their work is tau times the
    displacement, without an error; the dissipation is summed by the trapezoidal rule.

    Args:
        model: Robot.
        run: Its recording.
        joint_friction, joint_springs: Whether they acted.
        dry_friction: Whether dry friction is a force; False where it is among the
            constraints, as in a World whose `friction` is on.
    """
    rows = len(run.t)
    if not rows:
        return EnergyLedger(*np.zeros((6, 0)))
    time = (run.t,) if model.driven else ()
    program = solver(solvers(ENERGY)[0]).build(
        with_potentials(model),
        inputs=["time"] if model.driven else [],
        joint_springs=joint_springs,
    )
    kinetic, potential = (np.asarray(x) for x in program(run.q, run.qd, *time))
    moved = np.asarray(model.difference(run.q[:-1], run.q[1:])).reshape(-1, model.nv)
    work = _sums((run.tau[:-1] * moved).sum(axis=1))
    dissipation = np.zeros(rows)
    if joint_friction:
        power = _friction_power(model, run, dry_friction)
        dissipation = _sums(0.5 * (power[:-1] + power[1:]) * np.diff(run.t))
    constraints = np.zeros(rows)
    if run.reports:
        added = [sum(step.energy_change for step in row) for row in run.reports]
        free = _work_on_free_motion(model, run, joint_friction and dry_friction)
        constraints = _sums(np.array(added[: rows - 1], float) - free)
    energy = kinetic + potential
    residual = energy - energy[0] - work + dissipation - constraints
    return EnergyLedger(kinetic, potential, work, dissipation, constraints, residual)


def _work_on_free_motion(model: Model, run: Recording, dry: bool) -> np.ndarray:
    """Return what impulses take of motion that they prevent in the same step [J].

        (qd+ - qd - h a).T (tau - C) h / 2,  a = H^-1 (tau - C)

    A report counts the energy that impulses take from the free motion of the step, and
    in a resting contact gravity brings the robot to that motion again in each step,
    without a displacement. Impulses times the mean of the velocities before and after
    the step do no such work. (rows - 1,), of all steps of a period.
    """
    robot = model if dry else without_dry_friction(model)
    inputs = ["time"] if model.driven else []
    acts = {"joint_friction": True, "joint_springs": True, "inputs": inputs}
    time, loops = ((run.t,) if model.driven else ()), "_loops" if model.loops else ""
    zero = np.zeros_like(run.qd)
    C = solver(f"rnea{loops}").build(robot, **acts)(run.q, run.qd, zero, *time)
    a = solver(f"aba{loops}").build(robot, **acts)(run.q, run.qd, run.tau, *time)
    h = np.diff(run.t)[:, None]
    steps = np.array([max(len(row), 1) for row in run.reports])[: len(h)]
    prevented = run.qd[1:] - run.qd[:-1] - h * np.asarray(a)[:-1]
    force = run.tau[:-1] - np.asarray(C)[:-1]
    return np.asarray((prevented * force * h).sum(axis=1) / (2 * steps))


def _sums(parts: np.ndarray) -> np.ndarray:
    """Return the sums up to each row, from zero at the first."""
    return np.concatenate([[0.0], np.cumsum(parts)])


def _friction_power(model: Model, run: Recording, dry: bool) -> np.ndarray:
    """Return the power that joint friction takes at each row [W]."""
    robot = model if dry else without_dry_friction(model)
    still = run.q, run.qd, np.zeros_like(run.qd)
    time = (run.t,) if model.driven else ()
    inputs = ["time"] if model.driven else []
    name = "rnea_loops" if model.loops else "rnea"
    forces = [
        np.asarray(
            solver(name).build(robot, joint_friction=acts, inputs=inputs)(*still, *time)
        )
        for acts in (True, False)
    ]
    return np.asarray(((forces[0] - forces[1]) * run.qd).sum(axis=1))
