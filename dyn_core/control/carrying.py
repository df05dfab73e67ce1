"""Payloads that the effort limits of a robot can carry."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dyn_core.errors import SettingError
from dyn_core.model import Model
from dyn_core.model.payload import Payload

POSITIONS = 256  # that are tried

Weight = Callable[[np.ndarray, np.ndarray], np.ndarray]  # of q and ten parameters


class Carrying:
    """Checks whether the efforts can hold a payload against gravity.

    A payload is refused that cannot be held at the present position, or in none of some
    positions within the limits of the joints, drawn with a fixed seed. That it can be
    held everywhere is not asked: many arms carry their load near the body only.

    Attributes:
        model: Robot.
        limit: Effort limits, (nv,).
        positions: Positions that are tried, (n, nq); of a robot with loops none.
    """

    def __init__(self, model: Model, limit: np.ndarray) -> None:
        self.model, self.limit = model, limit
        rng = np.random.default_rng(0)
        count = 0 if model.loops else POSITIONS
        rows = [model.random(rng) for _ in range(count)]
        self.positions = np.array(rows).reshape(count, model.nq)

    def check(self, payload: Payload, weight: Weight, q: np.ndarray | None) -> None:
        """Raise a SettingError for a payload that cannot be carried.

        Args:
            payload: What is to be carried.
            weight: Returns the efforts that hold the robot with a payload.
            q: Present position; None if there is none.
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
        """Return the largest effort as a share of its limit, and its joint."""
        shares = np.abs(tau) / self.limit
        j = int(shares.argmax())
        return float(shares[j]), j

    def _refuse(self, payload: Payload, j: int, share: float, where: str) -> None:
        name, limit = self.model.joint_names[j], float(self.limit[j])
        raise SettingError(
            f"a payload of {payload.mass:g} kg cannot be carried: joint '{name}' needs"
            f" {share * limit:.4g} N·m (N) to hold it {where}, and its effort limit is"
            f" {limit:g}",
            "payload.mass",
        )
