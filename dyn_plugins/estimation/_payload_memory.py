"""State of a recursive payload estimate between two cycles."""

from dataclasses import dataclass
from typing import Any

from dyn_core.authoring import Matrix, Vector, sqrt, where
from dyn_plugins.estimation._carried_link import TEN
from dyn_plugins.estimation._covariance_factors import CovarianceFactors


@dataclass
class Memory:
    """State of the payload estimate; n coordinates move the link.

    Attributes:
        started: Positive after the first cycle, zero before.
        P: Momentum of robot and payload, n.
        payload: Ten inertial parameters.
        factors: Factors of the covariance of P and payload, n + 10 variables.
        beta: Robot's rate of momentum without joint forces at the previous state, n.
        B: The same by the ten parameters, (n, 10).
        trend: Mean of the normalized prediction errors, n.
    """

    started: Any
    P: Any
    payload: Any
    factors: Any
    beta: Any
    B: Any
    trend: Any

    @classmethod
    def of(cls, numbers, n, prior):
        """Read the numbers that `Memory.numbers` has written.

        Args:
            numbers: The Port `memory`; all zeros are an estimate that has not started.
            n: Number of coordinates that move the link.
            prior: Standard deviations of the payload before the first cycle, 10.
        """
        rest, whole = list(numbers), n + TEN

        def take(count):
            taken = Vector(rest[:count])
            del rest[:count]
            return taken

        started = rest.pop(0)
        P, payload, root, above = take(n), take(TEN), take(whole), take(_pairs(whole))
        beta, B, trend = take(n), take(n * TEN), take(n)
        known = started > 0
        D = [x * x for x in root]
        D[n:] = [where(known, d, x * x) for d, x in zip(D[n:], prior, strict=True)]
        U = [[0.0] * whole for _ in D]
        for (i, j), x in zip(_places(whole), above, strict=True):
            U[i][j] = x if i < n else where(known, x, 0.0)
        return cls(
            started,
            P,
            Vector(where(known, x, 0.0) for x in payload),
            CovarianceFactors(U, D),
            beta,
            Matrix(B[TEN * k : TEN * (k + 1)] for k in range(n)),
            Vector(where(known, x, 0.0) for x in trend),
        )

    def numbers(self):
        """Return the state as one list of numbers, memory_size(n) long."""
        factors = self.factors
        return [
            self.started,
            *self.P,
            *self.payload,
            # Roots of D, so that every number is valid input: Memory.of squares them.
            *(sqrt(d) for d in factors.D),
            *(factors.U[i][j] for i, j in _places(len(factors.D))),
            *self.beta,
            *(x for row in self.B.rows for x in row),
            *self.trend,
        ]


def memory_size(n):
    """Return the length of Memory.numbers for n coordinates."""
    whole = n + TEN
    return 1 + n + TEN + whole + _pairs(whole) + n + n * TEN + n


def _pairs(n):
    return n * (n - 1) // 2


def _places(n):
    """Return the indices (i, j) above the diagonal of an (n, n) matrix, row by row."""
    return [(i, j) for i in range(n) for j in range(i + 1, n)]
