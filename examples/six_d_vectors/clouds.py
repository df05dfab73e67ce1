"""Clouds of particles that form one rigid body, and forces on them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from common import velocity_at

from dyn_core.authoring import Force, Motion, RigidInertia
from dyn_core.spatial.guide import bodies


@dataclass(frozen=True)
class Cloud:
    """Particles that form one rigid body.

    Attributes:
        m: Masses, n [kg].
        x: Places, n x 3 [m].
    """

    m: np.ndarray
    x: np.ndarray

    def inertia(self) -> RigidInertia:
        """Return the spatial inertia by the sums over particles."""
        c = self.m @ self.x / self.m.sum()
        d = self.x - c
        Ic = np.einsum("k,k,ij->ij", self.m, (d * d).sum(1), np.eye(3))
        Ic = Ic - np.einsum("k,ki,kj->ij", self.m, d, d)
        return bodies.rigid_body(self.m.sum(), c, Ic)

    def momentum(self, v: Motion) -> np.ndarray:
        """Return [sum x x p; sum p] of the particles, p = m (velocity at x)."""
        p = self.m[:, None] * velocity_at(v, self.x)
        return np.concatenate([np.cross(self.x, p).sum(0), p.sum(0)])


def random_cloud(rng: np.random.Generator, n: int = 8) -> Cloud:
    """Return n particles within about a metre."""
    return Cloud(rng.uniform(0.1, 1.0, n), rng.normal(size=(n, 3)))


def point_forces(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, Force]:
    """Return five forces (5, 3), where they act (5, 3), and their sum as one Force."""
    x, F = rng.normal(size=(2, 5, 3))
    total = sum(
        (Force(np.cross(a, b).tolist(), b.tolist()) for a, b in zip(x, F, strict=True)),
        Force.zero(),
    )
    return F, x, total
