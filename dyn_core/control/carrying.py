"""Check that the effort limits of a robot can hold a payload against gravity."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dyn_core.errors import SettingError
from dyn_core.model import Model
from dyn_core.model.payload import Payload

FAR = 1.0  # distance of a com from which a refusal asks for its unit [m]
POSITIONS = 256  # number of random positions at which a payload is checked

# Efforts (nv,) that hold the robot at q with a payload's ten inertial parameters.
Weight = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Carrying:
    """Checks whether the effort limits can hold a payload against gravity.

    A payload is refused if it cannot be held at the present position, or at none of a
    set of random positions within the joint limits (256, with a fixed seed; none with
    loops). Holding it at every position is not required: many arms carry their load
    near the body only.
    """

    def __init__(self, model: Model, limit: np.ndarray) -> None:
        self.model, self.limit = model, limit
        rng = np.random.default_rng(0)
        count = 0 if model.loops else POSITIONS
        rows = [model.random(rng) for _ in range(count)]
        self.positions = np.array(rows).reshape(count, model.nq)

    def check(self, payload: Payload, weight: Weight, q: np.ndarray | None) -> None:
        """Refuse a payload if it cannot be held at q, or not at any random position.

        An excess is accepted where the robot without the payload needs at least the
        same share of its limits: then the payload is not the cause. A robot with loops
        is checked at `q` only. `weight` returns the holding efforts, (nv,), from a
        position and ten inertial parameters.
        """
        ten = payload.parameters
        if q is not None:
            share, j = self._share(weight(q, ten))
            if share > max(1.0, self._share(weight(q, 0 * ten))[0]):
                self._refuse(payload, j, share, "here")
        if not len(self.positions):
            return
        shares = [self._share(weight(row, ten)) for row in self.positions]
        share, j = min(shares)
        if share <= 1.0:
            return
        bare = min(self._share(weight(row, 0 * ten))[0] for row in self.positions)
        if share > bare:
            where = f"in the best of {len(shares)} positions within its limits"
            self._refuse(payload, j, share, where)

    def _share(self, tau: np.ndarray) -> tuple[float, int]:
        """Return the largest ratio |tau| / limit, or the first NaN, and its joint."""
        shares = np.abs(tau) / self.limit
        j = int(shares.argmax())
        return float(shares[j]), j

    def _refuse(self, payload: Payload, j: int, share: float, where: str) -> None:
        """Raise the SettingError for a payload that is too heavy for joint j."""
        name, limit = self.model.joint_names[j], float(self.limit[j])
        far, hint = float(np.linalg.norm(payload.com)), ""
        if far > FAR:  # in a Payload alone this may be the tip of a boom
            hint = f"; com is {far:.4g} m from the origin of its link: is it in metres?"
        raise SettingError(
            f"a payload of {payload.mass:g} kg cannot be carried: joint '{name}' needs"
            f" {share * limit:.4g} N·m (N) to hold it {where}, and its effort limit is"
            f" {limit:g}{hint}",
            "payload.mass",
        )
