"""Ball joint in exponential coordinates."""

from __future__ import annotations

import numpy as np

from dyn_core.model.joints.base import Joint
from dyn_core.spatial import Motion, MotionSubspace, Transform, Vector
from dyn_core.spatial.lie import dexp3, dexp3_rate, exp3

_ZERO = Vector((0.0, 0.0, 0.0))
_LARGEST_TURN = 2.5  # of random coordinates; singular is 2 pi [rad]


class BallExp(Joint):
    """Rotation by a vector q [rad]: R = exp[q], qd = dq/dt.

        S = (dexp_(-q); 0),   cJ = (d/dt dexp_(-q) qd; 0)

    Singular where q is 2 pi long; shorter vectors reach every rotation.

    Source: KIM-2.4, KIM-S1 (exponential coordinates).
    """

    kind = "ball_exp"
    nq = nv = 3

    @property
    def series(self) -> None:
        """No order: the coordinates act together."""
        return None

    def X(self, q: Vector) -> Transform:
        """Rotate: E = exp[-q]."""
        return Transform(exp3(-q), _ZERO)

    def S(self, q: Vector) -> MotionSubspace:
        """Motion subspace: the columns of the body Jacobian."""
        columns = zip(*dexp3(-q).rows, strict=True)
        return MotionSubspace(Motion(Vector(c), _ZERO) for c in columns)

    def cJ(self, q: Vector, qd: Vector) -> Motion:
        """Bias: rate of the body Jacobian, times qd."""
        return Motion(dexp3_rate(-q, -qd) @ qd, _ZERO)

    def neutral(self) -> tuple[float, ...]:
        """Coordinates at which X is the identity."""
        return (0.0, 0.0, 0.0)

    def random(self, rng: np.random.Generator) -> tuple[float, ...]:
        """Any axis, an angle of at most 2.5 rad."""
        axis = rng.normal(size=3)
        axis *= rng.uniform(0, _LARGEST_TURN) / np.linalg.norm(axis)
        return tuple(float(x) for x in axis)
