"""Ball joint in exponential coordinates (rotation vector)."""

from __future__ import annotations

import numpy as np

from dyn_core.model.joints.base import Joint
from dyn_core.spatial import Motion, MotionSubspace, Transform, Vector
from dyn_core.spatial.lie import dexp3, dexp3_rate, exp3

_ZERO = Vector((0.0, 0.0, 0.0))
_LARGEST_TURN = 2.5  # largest angle of random coordinates; singular at 2 pi [rad]


class BallExp(Joint):
    """Ball joint with a rotation vector q [rad]: R = exp[q], qd = dq/dt.

        S = (dexp_(-q); 0),   cJ = (d/dt dexp_(-q) qd; 0)

    Singular where |q| = 2 pi; shorter vectors reach every rotation.

    Source: KIM-2.4, KIM-S1 (exponential coordinates).
    """

    kind = "ball_exp"
    nq = nv = 3

    @property
    def series(self) -> None:
        """None: the coordinates act together, in no order."""
        return None

    def X(self, q: Vector) -> Transform:
        """Return the rotation E = exp[-q]."""
        return Transform(exp3(-q), _ZERO)

    def S(self, q: Vector) -> MotionSubspace:
        """Return the motion subspace; its columns form the body Jacobian dexp_(-q)."""
        columns = zip(*dexp3(-q).rows, strict=True)
        return MotionSubspace(Motion(Vector(c), _ZERO) for c in columns)

    def cJ(self, q: Vector, qd: Vector) -> Motion:
        """Return the bias: time derivative of the body Jacobian, times qd."""
        return Motion(dexp3_rate(-q, -qd) @ qd, _ZERO)

    def neutral(self) -> tuple[float, ...]:
        """Return zeros, at which X is the identity."""
        return (0.0, 0.0, 0.0)

    def random(self, rng: np.random.Generator) -> tuple[float, ...]:
        """Return a rotation vector about any axis, at most 2.5 rad long."""
        axis = rng.normal(size=3)
        axis *= rng.uniform(0, _LARGEST_TURN) / np.linalg.norm(axis)
        return tuple(float(x) for x in axis)
