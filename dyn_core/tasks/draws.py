"""Distributions of parameters that are drawn for each episode, as functions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dyn_core.validation import known_keywords


@known_keywords
@dataclass(frozen=True)
class Uniform:
    """Uniform distribution of a parameter's numbers.

    Attributes:
        low, high: Bounds: a number for each entry of the parameter; a scalar for a
            parameter of one entry.
    """

    low: tuple[float, ...] | float
    high: tuple[float, ...] | float

    def __call__(self, rng: np.random.Generator, rows: int) -> np.ndarray:
        """Return random numbers, (rows, entries)."""
        low, high = np.broadcast_arrays(np.atleast_1d(self.low), self.high)
        return rng.uniform(low, high, (rows, len(low)))


@known_keywords
@dataclass(frozen=True)
class PayloadMass:
    """Distribution of LINK.payload: a point mass at the link's origin, uniform.

    Attributes:
        low, high: Minimum and maximum of the mass [kg].
    """

    low: float
    high: float

    def __call__(self, rng: np.random.Generator, rows: int) -> np.ndarray:
        """Return random payloads, (rows, 10), as in RigidInertia.parameters."""
        payload = np.zeros((rows, 10))
        payload[:, 0] = rng.uniform(self.low, self.high, rows)
        return payload
