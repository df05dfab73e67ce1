"""Joints that a user defines by a function of their coordinates."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from dyn_core.errors import ModelError
from dyn_core.model.joints.base import Joint
from dyn_core.model.joints.moving_pose import MovingPose, RotationPosition, moving_pose
from dyn_core.numbers.taylor import TIME, Taylor
from dyn_core.spatial import Motion, MotionSubspace, Transform, Vector


class Custom(Joint):
    """A joint that a user defines by its pose alone: q -> (R, p), qd = dq/dt.

        S_k = vee(T^-1 dT/dq_k),   cJ = d/dt (S qd) at constant qd

    The function returns R, three rows or None for no rotation, and p, three numbers
    [m], made of the functions of dyn_core.authoring; S and cJ come from Taylor
    numbers. R is
    trusted to be a rotation; it is checked in a few positions when the joint is made.

    Args:
        pose: Where the body is in the frame before the joint, of a Vector q.
        nq: Number of coordinates, 1 to 6.
        neutral: Coordinates to start at, zeros unless given; X need not be the
            identity there.
        span: How far from there random coordinates are drawn.

    Source: KIM-2.4 (user-defined joints).
    """

    kind = "custom"

    def __init__(
        self,
        pose: Callable[[Vector], RotationPosition],
        nq: int,
        neutral: Iterable[float] | None = None,
        span: float = 1.0,
    ) -> None:
        if not isinstance(nq, int) or not 1 <= nq <= 6:
            raise ModelError(f"a custom joint has 1 to 6 coordinates, got {nq!r}")
        self.pose, self.span = pose, span
        self.nq = self.nv = nq
        self.start = tuple([0.0] * nq if neutral is None else map(float, neutral))
        if len(self.start) != nq or not all(map(math.isfinite, (*self.start, span))):
            raise ModelError(
                f"a custom joint of {nq} coordinates needs {nq} finite numbers as"
                f" neutral and a finite span, got {self.start} and {span}"
            )
        rng = np.random.default_rng(0)
        for q in (self.start, self.random(rng), self.random(rng)):
            self._check(q)

    def _check(self, q: tuple[float, ...]) -> None:
        """Check that the function returns a rotation and a finite position."""
        placed = self._along(Vector(q), Vector.zeros(self.nv))
        R = np.asarray(placed.R[0], float)
        off = np.abs(R.T @ R - np.eye(3)).max()
        if not off < 1e-6 or np.linalg.det(R) < 0:
            raise ModelError(
                f"a custom joint gave, at q = {q}, a matrix that is no rotation: R.T R"
                f" is off by {off:.3g} and det R is {np.linalg.det(R):.3g}"
            )
        if not np.isfinite(list(placed.p[0])).all():
            raise ModelError(
                f"a custom joint gave, at q = {q}, a position that is not finite"
            )

    @property
    def series(self) -> None:
        """No order: the coordinates act together."""
        return None

    def _along(self, q: Vector, qd: Vector) -> MovingPose:
        """Return the pose while q moves at qd."""
        moving = Vector(Taylor(x, v, 0.0, TIME) for x, v in zip(q, qd, strict=True))
        return moving_pose(self.pose(moving), "a custom joint")

    def _columns(self, q: Vector) -> Iterator[Motion]:
        """Return the velocity at the unit rate of each coordinate."""
        for k in range(self.nv):
            unit = Vector(float(j == k) for j in range(self.nv))
            yield self._along(q, unit).velocity

    def X(self, q: Vector) -> Transform:
        """Transform to the pose that the function returns."""
        return self._along(q, Vector.zeros(self.nv)).X

    def S(self, q: Vector) -> MotionSubspace:
        """Motion subspace: velocities at unit rates."""
        return MotionSubspace(self._columns(q))

    def vJ(self, q: Vector, qd: Vector) -> Motion:
        """Velocity across the joint: S qd."""
        return self._along(q, qd).velocity

    def cJ(self, q: Vector, qd: Vector) -> Motion:
        """Bias: the acceleration at constant qd."""
        return self._along(q, qd).acceleration

    def neutral(self) -> tuple[float, ...]:
        """Coordinates to start at."""
        return self.start

    def random(self, rng: np.random.Generator) -> tuple[float, ...]:
        """Within the span from the start."""
        drawn = rng.uniform(-self.span, self.span, self.nq)
        return tuple(float(x + d) for x, d in zip(self.start, drawn, strict=True))
