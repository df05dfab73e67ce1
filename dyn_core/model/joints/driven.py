"""Joint without coordinates whose placement is a given function of time."""

from __future__ import annotations

import numpy as np

from dyn_core.model.joints.base import Joint
from dyn_core.model.joints.moving_pose import Drive, MovingPose, moving_pose
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
        """Return rotation and position with their first and second time derivatives.

        Raises ModelError if the user's function returns anything but (R, p).
        """
        return moving_pose(self.pose(Taylor(self.t, 1.0, 0.0, TIME)), "a drive")

    def X(self, q: Vector) -> Transform:
        """Return the transform to the driven placement at time t."""
        return self._placement().X

    def S(self, q: Vector) -> MotionSubspace:
        """Return a motion subspace without columns."""
        return MotionSubspace(())

    def vJ(self, q: Vector, qd: Vector) -> Motion:
        """Return the velocity sigma of the placement."""
        return self._placement().velocity

    def cJ(self, q: Vector, qd: Vector) -> Motion:
        """Return the time derivative of the components of sigma."""
        return self._placement().acceleration

    def neutral(self) -> tuple[float, ...]:
        """Return no coordinates."""
        return ()

    def random(self, rng: np.random.Generator) -> tuple[float, ...]:
        """Return no coordinates."""
        return ()
