"""Reports of steps on arrays, made from records on demand."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dyn_core.contact.problem.solution import Residuals
from dyn_core.contact.rows.constraints import (
    ROLES,
    contact_name,
    unit_forces,
)
from dyn_core.contact.rows.step_tables import StepArrays
from dyn_core.contact.stepping.array_step import ArrayStep
from dyn_core.contact.stepping.reports import (
    StepDetails,
    StepEnergy,
    StepReport,
    contact_force,
    step_energy,
)
from dyn_core.contact.stepping.step_records import StepRecord


def report(arrays: ArrayStep, record: StepRecord) -> StepReport:
    """Return the report of a step; its parts are computed when first read.

    Args:
        arrays: Memory of the step. The first reading of details, energy or rank
            prepares the problem again and overwrites this memory; it raises DynError if
            the dynamics cannot be computed.
        record: Record of a step by `arrays`.
    """
    measured = Residuals(*map(float, record.residuals))
    return StepReport(
        record.t, record.h, record.status, record.iterations, measured,
        arrays.solver_name, len(record.impulse), partial(_details, arrays, record),
        partial(_energy, arrays, record), partial(_spectrum, arrays, record),
    )  # fmt: skip


class Reports(Sequence[StepReport]):
    """Reports of the steps of a period, each made when it is read. Slices are Reports.

    Args:
        arrays: Memory of the recorded steps; None if `steps` has no records.
        steps: Records of steps, and finished reports; a record is replaced by its
            report when it is read.
    """

    def __init__(
        self, arrays: ArrayStep | None, steps: list[StepRecord | StepReport]
    ) -> None:
        self._arrays, self._steps = arrays, steps

    def __len__(self) -> int:
        return len(self._steps)

    def __repr__(self) -> str:
        return f"<reports of {len(self)} steps>"

    def __getitem__(self, k: Any) -> Any:
        if isinstance(k, slice):
            return Reports(self._arrays, self._steps[k])
        step = self._steps[k]
        if isinstance(step, StepRecord):
            assert self._arrays is not None
            step = self._steps[k] = report(self._arrays, step)
        return step


class _Block(NamedTuple):
    """A block of a step; `contact` is valid for id >= 0, rows index the impulse."""

    id: int
    contact: int
    rows: slice


def _blocks(step: StepArrays, record: StepRecord) -> list[_Block]:
    """Return the blocks of a problem after ArrayStep.prepare_again, in their order."""
    ends = [*record.starts, len(record.impulse)][1:]
    return [
        _Block(number, int(step.blocks.source[k]), slice(start, end))
        for k, (number, start, end) in enumerate(
            zip(record.ids.tolist(), record.starts, ends, strict=True)
        )
    ]


def _details(arrays: ArrayStep, record: StepRecord) -> StepDetails:
    """Return contacts with their forces, impulses by constraint, energies of a step.

    The forces of an impact's contacts are impulses. Energies are the kinetic energy
    that the impulses add to the free motion, and the change of kinetic energy at the
    initial H [J]. The problem is prepared again: the memory of `arrays` is overwritten.
    """
    step = arrays.prepare_again(record)
    Y, L = arrays.matrices(step, record)
    change = Y @ (Y.T @ record.impulse)
    velocity, before = record.velocity, record.qd
    H = arrays.of.inertia(record.q, *record.payload)  # L.T L has the damping, too
    sigma = Y @ (L @ velocity)
    blocks = _blocks(step, record)
    touching = [block.contact for block in blocks if block.id >= 0]
    W = unit_forces(step.contacts.normal[touching], step.contacts.point[touching])
    contacts, impulses = [], {}
    for k, block in enumerate(blocks):
        x = record.impulse[block.rows]
        if block.id >= 0:
            contact = arrays.contact(block.contact)
            name = contact_name(contact)
            rows = W[k, : len(x)]
            contacts.append(
                contact_force(contact, rows, x, sigma[block.rows], record.h or 1.0)
            )
        else:
            name = arrays.constraint_name(block.id)
        impulses[name] = x
    return StepDetails(
        tuple(contacts),
        impulses,
        float(record.impulse @ (2 * sigma - change)) / 2,
        float(velocity @ H @ velocity - before @ H @ before) / 2,
    )


def _spectrum(arrays: ArrayStep, record: StepRecord) -> np.ndarray:
    """Return the eigenvalues of the Delassus matrix of a step, ascending, (rows,).

    It is Y Y.T of ArrayStep.matrices, without compliances. The problem is prepared
    again: the memory of `arrays` is overwritten.
    """
    Y = arrays.matrices(arrays.prepare_again(record), record)[0]
    return np.linalg.eigvalsh(Y @ Y.T) if len(Y) else np.zeros(0)


def _energy(arrays: ArrayStep, record: StepRecord) -> StepEnergy:
    """Return the energies of a step [J]: work, dissipation, constraints, correction.

    Dissipation is above zero where energy is lost; see StepEnergy. The problem is
    prepared again: the memory of `arrays` is overwritten.
    """
    step, of = arrays.prepare_again(record), arrays.of
    blocks, qd, velocity = _blocks(step, record), record.qd, record.velocity
    Y, L = arrays.matrices(step, record)
    work = record.impulse * (Y @ (L @ (qd + velocity))) / 2
    work_of = dict.fromkeys(ROLES, 0.0)
    for k, block in enumerate(blocks):
        work_of[ROLES[step.blocks.role[k]]] += float(work[block.rows].sum())
    f_ext = record.forces[0] if record.with_forces else None
    forces, start = (record.tau, f_ext, record.payload), (record.q, qd)
    damping, shift = record.h * of.slopes(qd), arrays.shift(record)
    return step_energy(of, start, velocity, record.h, damping, forces, work_of, shift)


def wrenches(arrays: ArrayStep, record: StepRecord) -> np.ndarray:
    """Return the contact impulses on each body in a step, body coordinates, (nb, 6).

    Row i - 1 is of body i, at record.q. Moment about the body's origin, then force
    [N·m·s; N·s], of all rows of contacts, also torsion and rolling. The problem is
    prepared again: the memory of `arrays` is overwritten.

    Source: LCP-15.
    """
    step = arrays.prepare_again(record)
    poses = step.terms.poses[0]
    world = np.zeros((len(poses), 6))
    for block in _blocks(step, record):
        if block.id >= 0:
            c, x = block.contact, record.impulse[block.rows]
            W = unit_forces(
                step.contacts.normal[c : c + 1], step.contacts.point[c : c + 1]
            )
            force = W[0, : len(x)].T @ x
            world[step.contacts.body_a[c]] += force
            world[step.contacts.body_b[c]] -= force
    R, p = poses[1:, :9].reshape(-1, 3, 3), poses[1:, 9:]
    moment, force = world[1:, :3], world[1:, 3:]
    moment = moment - np.cross(p, force)
    turned = [np.einsum("kji,kj->ki", R, part) for part in (moment, force)]
    return np.concatenate(turned, axis=1)
