"""A body on which nothing acts, simulated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from common import array

import dyn_core as dyn
from dyn_core.authoring import Motion, RigidInertia, Vector
from dyn_core.model import Build, Description, JointSpec, LinkSpec, assemble
from dyn_core.spatial.guide import bodies


@dataclass(frozen=True)
class Flight:
    """A body in free flight, one row for each moment.

    Attributes:
        t: Times [s].
        v: Velocity of the body in its own coordinates, rows of six.
        energy: Kinetic energy [J].
        momentum: Spatial momentum in the world frame, rows of six.
    """

    t: np.ndarray
    v: np.ndarray
    energy: np.ndarray
    momentum: np.ndarray

    def drifts(self) -> tuple[float, float]:
        """Return the largest relative change of energy and of spatial momentum."""
        energy = np.abs(self.energy / self.energy[0] - 1).max()
        size = np.linalg.norm(self.momentum[0])
        change = np.linalg.norm(self.momentum - self.momentum[0], axis=1).max()
        return float(energy), float(change / size)


def free_flight(
    I: RigidInertia, v: Motion, duration: float, dt: float = 1e-3, every: int = 10
) -> Flight:
    """Return the flight of a body on which nothing acts, by RK4.

        I a + v x* I v = 0

    Args:
        I: Inertia of the body in its own frame.
        v: Its velocity at the start.
        duration: How long [s].
        dt: Step [s].
        every: Steps from one row to the next.

    Source: GUIDE (29); SV-8.1.
    """
    links = (LinkSpec("world", RigidInertia.zero()), LinkSpec("body", I))
    joints = (JointSpec("free", "floating", "world", "body"),)
    still = Build(Description("flight", links, joints), gravity=(0.0, 0.0, 0.0))
    model = assemble(still)
    step = dyn.solver("rk4").build(model)
    q, qd, rows = model.neutral(), array(v), []
    for k in range(round(duration / dt) + 1):
        if k % every == 0:
            X = model.joint[1].X(Vector(q.tolist()))
            body = Motion.of(qd.tolist())
            h = X.inverse @ (I @ body)
            rows.append((k * dt, qd, bodies.kinetic_energy(I, body), array(h)))
        q, qd = step(q, qd, np.zeros(6), dt)
    return Flight(*(np.array(column) for column in zip(*rows, strict=True)))
