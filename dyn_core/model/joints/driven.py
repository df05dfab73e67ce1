"""A placement that moves as a function of time: no coordinates, a prescribed motion."""

from __future__ import annotations

import numpy as np

from dyn_core.model.joints.base import Joint
from dyn_core.model.joints.moving_pose import Drive, MovingPose, moving_pose
from dyn_core.numbers.scalar import Scalar
from dyn_core.numbers.taylor import TIME, Taylor
from dyn_core.spatial import Motion, MotionSubspace, Transform, Vector


class Driven(Joint):
    """What stands between a joint and its parent where the joint's place is driven.

        vJ = sigma = vee(T^-1 dT/dt),   cJ = d sigma/dt in body coordinates

    A joint of no coordinates: S has no columns, so an algorithm meets only its vJ and
    cJ. The function returns the pose at t: (R, p), R three rows or None for no
    rotation, made of the functions of dyn_core.authoring; its rates are those of
    Taylor numbers.

    Source: RBD5-3.4 (time-dependent joints).
    """

    kind = "driven"
    nq = nv = 0

    def __init__(self, pose: Drive, t: Scalar = 0.0) -> None:
        self.pose, self.t = pose, t

    def at_time(self, t: Scalar) -> Driven:
        """Return the same drive at the time t [s]."""
        return Driven(self.pose, t)

    def _placement(self) -> MovingPose:
        """Return rotation and position with their rates."""
        return moving_pose(self.pose(Taylor(self.t, 1.0, 0.0, TIME)), "a drive")

    def X(self, q: Vector) -> Transform:
        """Transform to the driven place at this time."""
        return self._placement().X

    def S(self, q: Vector) -> MotionSubspace:
        """No motion is free."""
        return MotionSubspace(())

    def vJ(self, q: Vector, qd: Vector) -> Motion:
        """Velocity of the place: sigma."""
        return self._placement().velocity

    def cJ(self, q: Vector, qd: Vector) -> Motion:
        """Rate of sigma's components."""
        return self._placement().acceleration

    def neutral(self) -> tuple[float, ...]:
        """No coordinates."""
        return ()

    def random(self, rng: np.random.Generator) -> tuple[float, ...]:
        """No coordinates."""
        return ()
