"""Joints whose coordinates act together: exponential coordinates, user-defined ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from dyn_core.errors import ModelError
from dyn_core.jets import Jet
from dyn_core.model.joints.base import Joint
from dyn_core.model.joints.poses import Place, Pose, place
from dyn_core.spatial import Motion, MotionSubspace, Transform, Vector
from dyn_core.spatial.lie import dexp3, dexp3_rate, exp3

_ZERO = Vector((0.0, 0.0, 0.0))
_FAR = 2.5  # largest turn drawn for ball_exp; singular is 2 pi [rad]


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
        axis *= rng.uniform(0, _FAR) / np.linalg.norm(axis)
        return tuple(float(x) for x in axis)


class Custom(Joint):
    """A joint that a user defines by its pose alone: q -> (R, p), qd = dq/dt.

        S_k = vee(T^-1 dT/dq_k),   cJ = d/dt (S qd) at constant qd

    The function gives R, three rows or None for no rotation, and p, three numbers [m],
    made of the functions of dyn_core.scalar; S and cJ are found by Jets. R is trusted
    to be a rotation everywhere; it is checked at a few places when the joint is made.

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
        pose: Callable[[Vector], Pose],
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
        """Refuse a function that gives no pose."""
        found = place(self.pose(Vector(Jet(x) for x in q)), "a custom joint")
        R = np.asarray(found.R[0], float)
        off = np.abs(R.T @ R - np.eye(3)).max()
        if not off < 1e-6 or np.linalg.det(R) < 0:
            raise ModelError(
                f"a custom joint gave, at q = {q}, a matrix that is no rotation: R.T R"
                f" is off by {off:.3g} and det R is {np.linalg.det(R):.3g}"
            )
        if not np.isfinite(list(found.p[0])).all():
            raise ModelError(
                f"a custom joint gave, at q = {q}, a position that is not finite"
            )

    @property
    def series(self) -> None:
        """No order: the coordinates act together."""
        return None

    def _along(self, q: Vector, qd: Vector) -> Place:
        """Give the place while q moves at qd."""
        moving = Vector(Jet(x, v) for x, v in zip(q, qd, strict=True))
        return place(self.pose(moving), "a custom joint")

    def _columns(self, q: Vector) -> Iterator[Motion]:
        for k in range(self.nv):
            unit = Vector(float(j == k) for j in range(self.nv))
            yield self._along(q, unit).velocity

    def X(self, q: Vector) -> Transform:
        """Transform to the place that the function gives."""
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
