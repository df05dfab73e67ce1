"""Report of one step with contacts: for logs, messages and plots."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dyn_core.contact.collision.pairs import Contact
from dyn_core.contact.problem.solution import Residuals, rank_and_condition
from dyn_core.contact.stepping.contact_model import ContactModel
from dyn_core.contact.stepping.integration import turning
from dyn_core.sharing import cached_property

_NO_CONSTRAINTS = ("friction", "prescribed")  # roles not in StepEnergy.constraints


@dataclass(frozen=True, eq=False)
class ContactForce:
    """One contact of a step and its force.

    Attributes:
        id: Key of the contact, the same in every step.
        link_a, link_b: Names of two links, or of a link and a half-space.
        body_a, body_b: Body numbers; 0 is the world.
        point: Contact point, world, (3,) [m].
        normal: Normal into body a, world, (3,).
        gap: Gap before the step; negative: overlap [m].
        impulse: Impulse along its rows, (rows,) [N·s].
        force: Mean force on body a over the step, world, (3,) [N]; the impulse [N·s]
            for an impact without duration.
        torque: Torque on body a about the point, likewise, (3,) [N·m].
        sliding: Tangential speed after the step [m/s]; NaN without friction.
    """

    id: Hashable
    link_a: str
    link_b: str
    body_a: int
    body_b: int
    point: np.ndarray
    normal: np.ndarray
    gap: float
    impulse: np.ndarray
    force: np.ndarray
    torque: np.ndarray
    sliding: float


class StepEnergy(NamedTuple):
    """Energy that each kind of force brings into the robot in one step [J].

        impulse . (qd + qd+) / 2 of each kind, with the impulse used in the step

    The kinetic energy of the step, at its H, changes by exactly these terms and the
    terms of gravity, springs and the velocity product; a robot at rest has zeros.

    Attributes:
        work: Of joint forces, of motors of prescribed joints, and of forces on bodies.
        dissipation: Energy removed by damping, at the end of the step, and by dry
            friction of joints, as a force or as a constraint.
        constraints: Work of contacts, limits, loops and gears.
        correction: Work against gravity and springs by the correction of positions.
    """

    work: float
    dissipation: float
    constraints: float
    correction: float


class StepDetails(NamedTuple):
    """Quantities of a report that are computed when they are read; see StepReport."""

    contacts: tuple[ContactForce, ...]
    impulses: Mapping[str, np.ndarray]
    energy_change: float
    kinetic_change: float


@dataclass(frozen=True, eq=False)
class StepReport:
    """Forces and energy of the constraints in one step, and the solver's residuals.

    Attributes:
        t: Start of the step [s].
        h: Duration; 0 for an impact [s].
        status: One of residuals.STATUSES.
        iterations, residuals, solver: Iterations and residuals of the contact solver,
            and its name; zeros for a motion without constraints.
        m: Number of rows.
        make_details: Function that computes the details; they are computed on first
            access, which may raise its errors, and cached, so that an unread report
            costs little.
        make_energy: Function that computes `energy`, likewise.
        make_spectrum: Function that computes the eigenvalues of the Delassus matrix for
            `rank` and `condition`, likewise.

    Source: LCP-20.
    """

    t: float
    h: float
    status: str
    iterations: int
    residuals: Residuals
    solver: str
    m: int
    make_details: Callable[[], StepDetails] = field(repr=False)
    make_energy: Callable[..., StepEnergy] = field(repr=False)
    make_spectrum: Callable[[], np.ndarray] = field(
        default=partial(np.zeros, 0), repr=False
    )

    @cached_property
    def _details(self) -> StepDetails:
        return self.make_details()

    @cached_property
    def _rank_and_condition(self) -> tuple[int, float]:
        return rank_and_condition(self.make_spectrum())

    @cached_property
    def energy(self) -> StepEnergy:
        """Work of each kind of force, computed on first access."""
        return self.make_energy()

    @property
    def contacts(self) -> tuple[ContactForce, ...]:
        """All contacts of the solved problem, also those without force.

        In an impact (h = 0) their force and torque are impulses [N·s], [N·m·s].
        """
        return self._details.contacts

    @property
    def impulses(self) -> Mapping[str, np.ndarray]:
        """Impulses of each block, (rows,), by its constraint's name [N·s | N·m·s].

        The first row of a contact is its normal.
        """
        return self._details.impulses

    @property
    def energy_change(self) -> float:
        """Kinetic energy that the impulses add to the free motion of the step [J].

        For a robot at rest it is minus the energy that gravity adds; see `energy`.
        """
        return self._details.energy_change

    @property
    def kinetic_change(self) -> float:
        """Change of kinetic energy in the step, at the initial H [J]."""
        return self._details.kinetic_change

    @property
    def rank(self) -> int:
        """Rank of the Delassus matrix; 0 without rows.

        Eigenvalues up to 1e-10 of the largest count as zero.
        """
        return self._rank_and_condition[0]

    @property
    def condition(self) -> float:
        """Condition number of the Delassus matrix.

        Infinite if the rank is less than the number of rows, 1 without rows.
        """
        return self._rank_and_condition[1]

    @property
    def converged(self) -> bool:
        """Whether the status is converged or not_unique: the solver's law holds."""
        return self.status in ("converged", "not_unique")

    @property
    def total_force(self) -> np.ndarray:
        """Sum of the contact forces from the world on all bodies, world axes, (3,) [N].

        For an impact without duration it is the sum of the impulses [N·s]. Zeros
        without contacts.
        """
        total = np.zeros(3)
        for c in self.contacts:
            total += c.force if c.body_b == 0 else 0.0
            total -= c.force if c.body_a == 0 else 0.0
        return total


def step_energy(
    of: ContactModel,
    start: tuple[np.ndarray, np.ndarray],
    velocity: np.ndarray,
    h: float,
    damping: np.ndarray,
    forces: tuple[Any, ...],
    work_of: Mapping[str, float],
    shift: np.ndarray | None = None,
) -> StepEnergy:
    """Return the work of each kind of force in a step [J], see StepEnergy.

        H (qd+ - qd) = h (tau - C) - h B (qd+ - qd) + J.T lambda

    `start` is q and qd at which the constraints were evaluated; `velocity` qd+, along
    the axes of the velocity at q; `damping` h B. `forces` are joint forces, forces on
    bodies, (nb, 6), or None, and a tuple of the payload's ten parameters, empty without
    a payload link. `work_of` is the work of the impulses by role of their constraints
    [J]; `shift` the displacement that corrects positions.
    """
    (q, qd), (tau, f_ext, carried) = start, forces
    mean = (qd + velocity) / 2
    power = mean @ tau
    if f_ext is not None:
        bias = of.bias(q, qd, None, carried) - of.bias(q, qd, f_ext, carried)
        power += mean @ bias
    turned = h * turning(of.model, qd)
    friction = h * of.friction(qd) + damping @ (velocity - qd - turned)
    lift = 0.0 if shift is None else of.bias(q, 0 * qd, None, carried) @ shift
    others = sum(x for role, x in work_of.items() if role not in _NO_CONSTRAINTS)
    return StepEnergy(
        float(h * power) + work_of.get("prescribed", 0.0),
        float(mean @ friction) - work_of.get("friction", 0.0),
        others,
        float(lift),
    )


def contact_force(
    contact: Contact, W: np.ndarray, x: np.ndarray, sigma: np.ndarray, h: float
) -> ContactForce:
    """Return the report of one contact; its sliding is NaN without tangent rows.

    W are unit forces of its rows on body a about the world's origin, [moment; force]; x
    and sigma their impulses, and velocities after the step. The force is averaged over
    h [s]; 1 for an impact.
    """
    wrench = W.T @ x / h
    force = wrench[3:]
    sliding = float(np.sqrt(sigma[1:3] @ sigma[1:3])) if len(x) > 2 else np.nan
    key, torque = contact.id, wrench[:3] - np.cross(contact.point, force)
    return ContactForce(
        key, key.link_a, key.link_b, contact.body_a, contact.body_b, contact.point,
        contact.normal, contact.gap, x, force, torque, sliding,
    )  # fmt: skip
