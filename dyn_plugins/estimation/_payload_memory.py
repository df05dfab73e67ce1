"""What a recursive estimate of a payload keeps from cycle to cycle."""

from dataclasses import dataclass
from typing import Any

from dyn_core.authoring import Matrix, Vector, sqrt, where
from dyn_plugins.estimation._carried_link import TEN
from dyn_plugins.estimation._covariance_factors import CovarianceFactors


@dataclass
class Memory:
    """State of the estimate, of n coordinates that move the link.

    Attributes:
        started: Above zero after a first cycle.
        P: Momentum of robot and payload, n.
        payload: Ten numbers.
        factors: Factors of the covariance of both, n + 10.
        beta, B: Rate of the momentum at the last state, n, and (n, 10).
        trend: Mean of the prediction errors by their deviations, n.
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
        """Read what `numbers` has written.

        Args:
            numbers: The Port `memory`; zeros are a memory of nothing.
            n: Number of coordinates that move the link.
            prior: Deviations of the payload where there is no memory, 10.
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
        """Return all as one row of numbers; of D the square root, which may be any."""
        factors = self.factors
        return [
            self.started,
            *self.P,
            *self.payload,
            *(sqrt(d) for d in factors.D),
            *(factors.U[i][j] for i, j in _places(len(factors.D))),
            *self.beta,
            *(x for row in self.B.rows for x in row),
            *self.trend,
        ]


def memory_size(n):
    """Return how many numbers a Memory of n coordinates has."""
    whole = n + TEN
    return 1 + n + TEN + whole + _pairs(whole) + n + n * TEN + n


def _pairs(n):
    return n * (n - 1) // 2


def _places(n):
    """Return the places above the diagonal of an (n, n) matrix, row by row."""
    return [(i, j) for i in range(n) for j in range(i + 1, n)]
