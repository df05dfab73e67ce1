"""Numbers of parameters that are drawn anew for each episode, as functions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dyn_core.validation import known_keywords


@known_keywords
@dataclass(frozen=True)
class Uniform:
    """Numbers drawn uniformly between a least and a most.

    Attributes:
        low, high: One number for each entry of the parameter; where it has one, a
            number alone will do.
    """

    low: tuple[float, ...] | float
    high: tuple[float, ...] | float

    def __call__(self, rng: np.random.Generator, rows: int) -> np.ndarray:
        """Return numbers, (rows, entries)."""
        low, high = np.broadcast_arrays(np.atleast_1d(self.low), self.high)
        return rng.uniform(low, high, (rows, len(low)))


@known_keywords
@dataclass(frozen=True)
class PayloadMass:
    """A point mass at the origin of a link, the value of LINK.payload.

    Attributes:
        low, high: Least and most mass [kg].
    """

    low: float
    high: float

    def __call__(self, rng: np.random.Generator, rows: int) -> np.ndarray:
        """Return payloads, (rows, 10)."""
        payload = np.zeros((rows, 10))
        payload[:, 0] = rng.uniform(self.low, self.high, rows)
        return payload
