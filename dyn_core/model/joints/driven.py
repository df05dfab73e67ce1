"""A placement that moves as a function of time: no coordinates, a prescribed motion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dyn_core.errors import ModelError
from dyn_core.jets import Jet, jet, variable
from dyn_core.model.joints.base import Joint
from dyn_core.spatial import Matrix, Motion, MotionSubspace, Transform, Vector

Pose = tuple[Any, Any]
_ONE = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


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

    def _jets(self) -> tuple[list[list[Jet]], list[Jet]]:
        """Give rotation and position with their rates."""
        given = self.pose(variable(self.t))
        try:
            R, p = given
            rows = [[jet(x) for x in row] for row in (_ONE if R is None else R)]
            place = [jet(x) for x in p]
            good = len(place) == 3 and [len(row) for row in rows] == [3, 3, 3]
        except TypeError:
            good = False
        if not good:
            raise ModelError(
                f"a drive gave {given!r}; it must give (R, p): three rows of three"
                " numbers or None, and three numbers"
            )
        return rows, place

    def X(self, q: Vector) -> Transform:
        """Transform to the driven place at this time."""
        R, p = self._jets()
        E = Matrix([x.x for x in row] for row in R).T
        return Transform(E, Vector(x.x for x in p))

    def S(self, q: Vector) -> MotionSubspace:
        """No motion is free."""
        return MotionSubspace(())

    def vJ(self, q: Vector, qd: Vector) -> Motion:
        """Velocity of the place: sigma."""
        R, p = self._jets()
        E = Matrix([x.x for x in row] for row in R).T
        turn = E @ Matrix([x.d1 for x in row] for row in R)
        return Motion(_vee(turn), E @ Vector(x.d1 for x in p))

    def cJ(self, q: Vector, qd: Vector) -> Motion:
        """Rate of sigma's components."""
        R, p = self._jets()
        E = Matrix([x.x for x in row] for row in R).T
        Ed = Matrix([x.d1 for x in row] for row in R).T
        turn = E @ Matrix([x.d2 for x in row] for row in R)
        lin = Ed @ Vector(x.d1 for x in p) + E @ Vector(x.d2 for x in p)
        return Motion(_vee(turn), lin)

    def neutral(self) -> tuple[float, ...]:
        """No coordinates."""
        return ()

    def random(self, rng: np.random.Generator) -> tuple[float, ...]:
        """No coordinates."""
        return ()


def _vee(W: Matrix) -> Vector:
    """Give the vector of the antisymmetric part of a 3x3 matrix."""
    pairs: Sequence[tuple[int, int]] = ((2, 1), (0, 2), (1, 0))
    return Vector((W[i, j] - W[j, i]) * 0.5 for i, j in pairs)
