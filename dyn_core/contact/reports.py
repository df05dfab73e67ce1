"""What one step did at the contacts: for logs, messages and plots."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dyn_core.contact.assembly import Scene
from dyn_core.contact.solution import ContactSolution, Residuals


@dataclass(frozen=True, eq=False)
class ContactForce:
    """One contact of a step, and what it carried.

    Attributes:
        id: What touches what; the same in every step.
        link_a, link_b: Links, or a link and a half-space.
        body_a, body_b: Numbers of the bodies; 0 is the world.
        point: World, (3,) [m].
        normal: Into body a, world, (3,).
        gap: Before the step; negative: overlap [m].
        impulse: Along its rows, (rows,) [N·s].
        force: On body a, mean over the step, world, (3,) [N]; of an impact without
            duration the impulse itself [N·s].
        torque: On body a about the point, alike, (3,) [N·m].
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
    """What the constraints did in one step, and how far to trust it.

    Attributes:
        t: When the step began [s].
        h: How long it was; 0: an impact without duration [s].
        contacts: All that were looked at.
        impulses: Of each block by its name [N·s | N·m·s].
        status, iterations, residuals, solver: Of the ContactSolution.
        energy_change: Kinetic energy that the impulses added [J].
        kinetic_change: Of the whole step at the inertia of its begin [J].
        rank, condition: Of the Delassus matrix; the latter infinite where singular.
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
    scene: Scene,
    solution: ContactSolution,
    impulse: np.ndarray,
    velocity: np.ndarray,
    t: float,
    h: float,
) -> StepReport:
    """Give the report of a step.

        kinetic_change = qd+.T H qd+ / 2 - qd.T H qd / 2

    Args:
        scene: What was constrained.
        solution: What the solver said.
        impulse: All impulses of the step, (m,): of the solution and of impacts.
        velocity: qd after the step, (nv,).
        t, h: When it began, and how long it was [s].

    Source: LCP-20.
    """
    free = velocity - scene.inverse @ (scene.J.T @ impulse)
    sigma = scene.J @ velocity
    H, blocks = scene.H, scene.layout.blocks
    contacts, impulses = [], {}
    for block, c in zip(blocks, scene.constraints, strict=True):
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
        float(impulse @ (sigma + scene.J @ free)) / 2,
        float(velocity @ H @ velocity - scene.qd @ H @ scene.qd) / 2,
        solution.rank if solution.problem.m else 0,
        solution.condition,
        scene.layout.m,
    )


def _force(c: Any, x: np.ndarray, sigma: np.ndarray, h: float) -> ContactForce:
    """Give one contact's part of a report."""
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
