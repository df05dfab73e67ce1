"""Positions and velocities of a robot: neutral, random, integrated, by joint name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dyn_core.model import coordinates
from dyn_core.system import System


class Configurations(System):
    """What a Model knows about its positions and velocities."""

    def neutral(self: Any) -> np.ndarray:
        """Position (nq,) with every joint at zero (unit quaternions)."""
        q = np.zeros(self.nq)
        for i in self.independent:
            q[self.q_slices[i]] = self.joint[i].neutral()
        return q

    def random(self: Any, rng: np.random.Generator) -> np.ndarray:
        """Position (nq,) drawn within the limits, or a joint's whole range."""
        q = np.zeros(self.nq)
        for i in self.independent:
            drawn = self.joint[i].random(rng)
            low, high = self.lower[self.v_slices[i]], self.upper[self.v_slices[i]]
            if self.joint[i].nv == 1 and np.isfinite(low[0]) and np.isfinite(high[0]):
                drawn = (rng.uniform(low[0], high[0]),)
            q[self.q_slices[i]] = drawn
        return q

    def integrate(self: Any, q: Any, dv: Any) -> Any:
        """Position after the displacement dv: (nq,), (nv,) -> (nq,); batches too.

        integrate(q0, difference(q0, q1)) = q1
        """
        return coordinates.call(self, coordinates.integrate, "q", q=q, dv=dv)

    def difference(self: Any, q0: Any, q1: Any) -> Any:
        """Displacement (nv,) that takes q0 to q1, tangent at q0; batches too."""
        return coordinates.call(self, coordinates.difference, "v", q0=q0, q1=q1)

    def normalize(self: Any, q: Any) -> Any:
        """Position with every quaternion scaled to unit length; batches too."""
        return coordinates.call(self, coordinates.normalize, "q", q=q)

    def position_rate(self: Any, q: Any, qd: Any) -> Any:
        """Rate of the coordinates, dq/dt = Q(q) qd, (nq,); batches too.

        Source: RBD5-3.4 (quasi-velocities).
        """
        return coordinates.call(self, coordinates.position_rate, "q", q=q, v=qd)

    def position(
        self: Any,
        joints: Mapping[str, float],
        tolerance: float = 1e-6,
        project: bool = False,
    ) -> np.ndarray:
        """Give q (nq,) of joint positions by name; others stay neutral.

        Args:
            joints: By name, for joints of one coordinate; followers may be among them.
            tolerance: How far a follower may be from its rule [rad | m].
            project: Whether to take the nearest consistent position instead.

        Source: TAZZ-5.1 (position level), TAZZ-5.3.
        """
        allowed = None if project else tolerance
        return coordinates.from_joints(self, joints, "position", allowed)

    def velocity(
        self: Any,
        joints: Mapping[str, float],
        tolerance: float = 1e-6,
        project: bool = False,
    ) -> np.ndarray:
        """Give qd (nv,) of joint velocities by name; others are zero; see position."""
        allowed = None if project else tolerance
        return coordinates.from_joints(self, joints, "velocity", allowed)

    def tangent_rate(self: Any, u: Any, qd: Any) -> Any:
        """Rate of the displacement u from a fixed start while moving at qd."""
        return coordinates.call(self, coordinates.tangent_rate, "v", u=u, v=qd)
