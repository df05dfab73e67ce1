"""A placement that moves as a function of time: no coordinates, a prescribed motion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dyn_core.jets import variable
from dyn_core.model.joints.base import Joint
from dyn_core.model.joints.poses import Place, Pose, place
from dyn_core.spatial import Motion, MotionSubspace, Transform, Vector


class Driven(Joint):
    """What stands between a joint and its parent where the joint's place is driven.

        vJ = sigma = vee(T^-1 dT/dt),   cJ = d sigma/dt in body coordinates

    A joint of no coordinates: S has no columns, so an algorithm meets only its vJ and
    cJ. The function gives the pose of the place at t: (R, p), R rows or None for no
    rotation, made of the functions of dyn_core.scalar; its rates are found by Jets.

    Source: RBD5-3.4 (time-dependent joints).
    """

    kind = "driven"
    nq = nv = 0

    def __init__(self, pose: Callable[[Any], Pose], t: Any = 0.0) -> None:
        self.pose, self.t = pose, t

    def at(self, t: Any) -> Driven:
        """Give the same drive at the time t [s]."""
        return Driven(self.pose, t)

    def _place(self) -> Place:
        """Give rotation and position with their rates."""
        return place(self.pose(variable(self.t)), "a drive")

    def X(self, q: Vector) -> Transform:
        """Transform to the driven place at this time."""
        return self._place().X

    def S(self, q: Vector) -> MotionSubspace:
        """No motion is free."""
        return MotionSubspace(())

    def vJ(self, q: Vector, qd: Vector) -> Motion:
        """Velocity of the place: sigma."""
        return self._place().velocity

    def cJ(self, q: Vector, qd: Vector) -> Motion:
        """Rate of sigma's components."""
        return self._place().acceleration

    def neutral(self) -> tuple[float, ...]:
        """No coordinates."""
        return ()

    def random(self, rng: np.random.Generator) -> tuple[float, ...]:
        """No coordinates."""
        return ()
