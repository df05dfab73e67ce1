"""Joints defined by a user's function, of their coordinates or of time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from dyn_core.errors import ModelError
from dyn_core.model.joints.base import Joint
from dyn_core.model.joints.moving_pose import (
    Drive,
    MovingPose,
    RotationPosition,
    moving_pose,
)
from dyn_core.numbers.scalar import Scalar
from dyn_core.numbers.taylor import TIME, Taylor
from dyn_core.spatial import Motion, MotionSubspace, Transform, Vector


class Driven(Joint):
    """A joint without coordinates that moves another joint's placement in time.

        vJ = sigma = vee(T^-1 dT/dt),   cJ = d sigma/dt in body coordinates

    S has no columns, so an algorithm only sees vJ and cJ. Their derivatives are
    computed with Taylor numbers.

    Args:
        pose: Function of t [s] that returns (R, p): R three rows or None for no
            rotation, p three numbers [m]; it uses the functions of dyn_core.authoring.
        t: Time [s].

    Source: RBD5-3.4 (time-dependent joints).
    """

    kind = "driven"
    nq = nv = 0

    def __init__(self, pose: Drive, t: Scalar = 0.0) -> None:
        self.pose, self.t = pose, t

    def at_time(self, t: Scalar) -> Driven:
        """Return a copy of the drive at the time t [s]."""
        return Driven(self.pose, t)

    def _placement(self) -> MovingPose:
        """Return rotation and position at time t with two time derivatives each."""
        return moving_pose(self.pose(Taylor(self.t, 1.0, 0.0, TIME)), "a drive")

    def X(self, q: Vector) -> Transform:
        """Return the transform to the driven placement at time t; q is empty.

        Raises ModelError if the user's function returns anything but (R, p).
        """
        return self._placement().X

    def S(self, q: Vector) -> MotionSubspace:
        """Return a motion subspace without columns."""
        return MotionSubspace(())

    def vJ(self, q: Vector, qd: Vector) -> Motion:
        """Return the velocity sigma of the placement at time t, body coordinates.

        Raises ModelError if the user's function returns anything but (R, p).
        """
        return self._placement().velocity

    def cJ(self, q: Vector, qd: Vector) -> Motion:
        """Return the time derivative of the components of sigma at time t.

        Raises ModelError if the user's function returns anything but (R, p).
        """
        return self._placement().acceleration

    def neutral(self) -> tuple[float, ...]:
        """Return an empty tuple: the joint has no coordinates."""
        return ()

    def random(self, rng: np.random.Generator) -> tuple[float, ...]:
        """Return an empty tuple: the joint has no coordinates."""
        return ()


class Custom(Joint):
    """A joint defined by its pose alone: q -> (R, p), qd = dq/dt.

        S_k = vee(T^-1 dT/dq_k),   cJ = d/dt (S qd) at constant qd

    The function returns R, three rows or None for no rotation, and p, three numbers
    [m]; it uses the functions of dyn_core.authoring. S and cJ are derived with Taylor
    numbers. Whether R is a rotation is checked in three positions only, when the joint
    is created.

    Args:
        pose: Function of a Vector q that returns the pose of the body in the frame
            before the joint.
        nq: Number of coordinates, 1 to 6.
        neutral: Initial coordinates, by default zeros; X need not be the identity
            there.
        span: Random coordinates differ from `neutral` by at most this each, 0 or more.

    Raises:
        ModelError: nq, neutral or span is not valid, or the function does not return a
            rotation and a finite position.
        TypeError, ValueError: neutral or span is no number, or pose no function.

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
        finite = all(map(math.isfinite, (*self.start, span)))
        if len(self.start) != nq or not finite or span < 0:
            raise ModelError(
                f"a custom joint of {nq} coordinates needs {nq} finite numbers as"
                f" neutral and a finite span, 0 or more, got {self.start} and {span}"
            )
        rng = np.random.default_rng(0)
        for q in (self.start, self.random(rng), self.random(rng)):
            self._check(q)

    def _check(self, q: tuple[float, ...]) -> None:
        """Raise ModelError unless the pose is finite, with a rotation (to 1e-6)."""
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
        """None: the coordinates act together, in no order."""
        return None

    def _along(self, q: Vector, qd: Vector) -> MovingPose:
        """Return the pose at q with two time derivatives, at constant qd."""
        moving = Vector(Taylor(x, v, 0.0, TIME) for x, v in zip(q, qd, strict=True))
        return moving_pose(self.pose(moving), "a custom joint")

    def _columns(self, q: Vector) -> Iterator[Motion]:
        """Yield the nv columns of S at q: the velocities at unit rates."""
        for k in range(self.nv):
            unit = Vector(float(j == k) for j in range(self.nv))
            yield self._along(q, unit).velocity

    def X(self, q: Vector) -> Transform:
        """Return the transform from the frame before the joint to the pose at q.

        Raises ModelError if the user's function returns anything but (R, p).
        """
        return self._along(q, Vector.zeros(self.nv)).X

    def S(self, q: Vector) -> MotionSubspace:
        """Return the motion subspace at q: the velocities at unit rates.

        Raises ModelError if the user's function returns anything but (R, p).
        """
        return MotionSubspace(self._columns(q))

    def vJ(self, q: Vector, qd: Vector) -> Motion:
        """Return the velocity across the joint, S(q) qd, in body coordinates.

        Raises ModelError if the user's function returns anything but (R, p).
        """
        return self._along(q, qd).velocity

    def cJ(self, q: Vector, qd: Vector) -> Motion:
        """Return the bias: time derivative of the components of S qd at constant qd.

        Raises ModelError if the user's function returns anything but (R, p).
        """
        return self._along(q, qd).acceleration

    def neutral(self) -> tuple[float, ...]:
        """Return the initial coordinates (nq); X need not be the identity there."""
        return self.start

    def random(self, rng: np.random.Generator) -> tuple[float, ...]:
        """Return coordinates (nq), uniform within `span` of their initial values."""
        drawn = rng.uniform(-self.span, self.span, self.nq)
        return tuple(float(x + d) for x, d in zip(self.start, drawn, strict=True))
