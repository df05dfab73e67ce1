"""Report of one step with contacts: for logs, messages and plots."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dyn_core.contact.problem.solution import ContactSolution, Residuals
from dyn_core.contact.stepping.contact_model import ConstrainedState


@dataclass(frozen=True, eq=False)
class ContactForce:
    """One contact of a step and its force.

    Attributes:
        id: Key of the contact, the same in every step.
        link_a, link_b: Names of two links, or of a link and a half-space.
        body_a, body_b: Body numbers; 0 is the world.
        point: World, (3,) [m].
        normal: Into body a, world, (3,).
        gap: Before the step; negative: overlap [m].
        impulse: Along its rows, (rows,) [N·s].
        force: Mean force on body a over the step, world, (3,) [N]; the impulse [N·s]
            for an impact without duration.
        torque: Torque on body a about the point, likewise, (3,) [N·m].
        sliding: Tangential speed after the step [m/s].
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


@dataclass(frozen=True, eq=False)
class StepReport:
    """Forces and energy of the constraints in one step, and the solver's residuals.

    Attributes:
        t: Start of the step [s].
        h: Duration; 0 for an impact [s].
        contacts: All contacts that were tested.
        impulses: Impulses of each block, by name [N·s | N·m·s].
        status, iterations, residuals, solver: From the ContactSolution.
        energy_change: Kinetic energy added by the impulses [J].
        kinetic_change: Change of kinetic energy in the step, at the initial H [J].
        rank, condition: Of the Delassus matrix; condition is infinite if singular.
        m: Number of rows.

    Source: LCP-20.
    """

    t: float
    h: float
    contacts: tuple[ContactForce, ...]
    impulses: Mapping[str, np.ndarray]
    status: str
    iterations: int
    residuals: Residuals
    solver: str
    energy_change: float
    kinetic_change: float
    rank: int
    condition: float
    m: int

    @property
    def converged(self) -> bool:
        """Whether the solver's law holds."""
        return self.status in ("converged", "not_unique")

    @property
    def total_force(self) -> np.ndarray:
        """Sum of the contact forces from the world on all bodies, world, (3,) [N]."""
        total = np.zeros(3)
        for c in self.contacts:
            total += c.force if c.body_b == 0 else 0.0
            total -= c.force if c.body_a == 0 else 0.0
        return total


def report(
    state: ConstrainedState,
    solution: ContactSolution,
    impulse: np.ndarray,
    velocity: np.ndarray,
    t: float,
    h: float,
) -> StepReport:
    """Return the report of a step.

        kinetic_change = qd+.T H qd+ / 2 - qd.T H qd / 2

    Args:
        state: State and constraints before the step.
        solution: Solution of the contact problem.
        impulse: All impulses of the step, impacts included, (m,).
        velocity: qd after the step, (nv,).
        t, h: Start and duration [s].

    Source: LCP-20.
    """
    free = velocity - state.inverse @ (state.J.T @ impulse)
    sigma = state.J @ velocity
    H, blocks = state.H, state.layout.blocks
    contacts, impulses = [], {}
    for block, c in zip(blocks, state.constraints, strict=True):
        rows = slice(block.start, block.start + block.rows)
        impulses[c.name] = impulse[rows]
        if c.contact is not None and c.W is not None:
            contacts.append(_force(c, impulse[rows], sigma[rows], h or 1.0))
    return StepReport(
        t,
        h,
        tuple(contacts),
        impulses,
        solution.status,
        solution.iterations,
        solution.residuals,
        solution.solver,
        float(impulse @ (sigma + state.J @ free)) / 2,
        float(velocity @ H @ velocity - state.qd @ H @ state.qd) / 2,
        solution.rank if solution.problem.m else 0,
        solution.condition,
        state.layout.m,
    )


def _force(c: Any, x: np.ndarray, sigma: np.ndarray, h: float) -> ContactForce:
    """Return the report of one contact."""
    contact = c.contact
    wrench = c.W.T @ x / h
    force = wrench[3:]
    sliding = float(np.sqrt(sigma[1:3] @ sigma[1:3])) if len(x) > 2 else np.nan
    return ContactForce(
        contact.id,
        contact.id.link_a,
        contact.id.link_b,
        contact.body_a,
        contact.body_b,
        contact.point,
        contact.normal,
        contact.gap,
        x,
        force,
        wrench[:3] - np.cross(contact.point, force),
        sliding,
    )
