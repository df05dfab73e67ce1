"""Factored covariances P = U D U.T and the updates of recursive estimation.

U is unit upper triangular, D diagonal. A covariance stored as its factors stays
symmetric and is never negative, despite rounding.

Source: G. Bierman, Factorization Methods for Discrete Sequential Estimation, Academic
Press, 1977.
"""

from dyn_core.authoring import Matrix, Vector, total, where


class CovarianceFactors:
    """Factors U, D of a covariance U D U.T; each method returns new ones.

    Attributes:
        U: Rows of numbers; only the entries above the diagonal are read.
        D: List of the diagonal numbers.
    """

    def __init__(self, U, D):
        self.U, self.D = U, D

    @classmethod
    def diagonal(cls, D):
        """Return the factors of a diagonal covariance with the variances D."""
        return cls([[0.0] * len(D) for _ in D], list(D))

    @classmethod
    def joined(cls, first, cross, second):
        """Return the factors of two groups of variables together.

            U = [[U_first, cross], [0, U_second]]

        Args:
            first, second: Factors.
            cross: Rows: one for each variable of `first`, as long as `second`.
        """
        nothing = [0.0] * len(first.D)
        top = [[*row, *more] for row, more in zip(first.U, cross, strict=True)]
        below = [[*nothing, *row] for row in second.U]
        return cls(top + below, first.D + second.D)

    def last(self, n):
        """Return the factors of the last n variables alone."""
        return CovarianceFactors([row[-n:] for row in self.U[-n:]], self.D[-n:])

    def either(self, condition, other):
        """Return these factors where `condition` holds, else `other`."""
        size = len(self.D)
        U = [[0.0] * size for _ in self.D]
        for i in range(size):
            for j in range(i + 1, size):
                U[i][j] = where(condition, self.U[i][j], other.U[i][j])
        pairs = zip(self.D, other.D, strict=True)
        return CovarianceFactors(U, [where(condition, a, b) for a, b in pairs])

    def shifted(self, A):
        """Return the factors of (x + A y, y), where y are the last variables.

        Args:
            A: Matrix, one row for each variable of x, one column for each of y.
        """
        rest, (size, _) = self.last(A.shape[1]), A.shape
        U = [list(row) for row in self.U]
        for i, row in enumerate(rest.onto(A)):
            for j, x in enumerate(row, size):
                U[i][j] = U[i][j] + x
        return CovarianceFactors(U, self.D)

    def onto(self, A):
        """Return the rows of A U, for a Matrix A with one column for each variable."""
        columns = range(len(self.D))
        return [
            [total([*(a[k] * self.U[k][j] for k in range(j)), a[j]]) for j in columns]
            for a in A.rows
        ]

    def wandered(self, first, deviations):
        """Return the factors after independent noise is added to consecutive variables.

        Args:
            first: Index of the first variable.
            deviations: Standard deviations of the noise, one for each variable.
        """
        factors = self
        for j, x in enumerate(deviations, first):
            factors = factors.with_noise(j, x * x)
        return factors

    def with_noise(self, j, variance):
        """Return the factors after `variance` is added to the variance of variable j.

        Source: W. Agee and R. Turner, Triangular Decomposition of a Positive Definite
        Matrix Plus a Symmetric Dyad, White Sands Missile Range TR-38, 1972.
        """
        U, D = [list(row) for row in self.U], list(self.D)
        a = [0.0] * j + [1.0]
        for k in reversed(range(j + 1)):
            scaled = variance * a[k]
            D[k] = self.D[k] + scaled * a[k]
            if k == 0:
                break
            over = where(D[k] > 0, 1.0 / where(D[k] > 0, D[k], 1.0), 0.0)
            for i in range(k):
                a[i] = a[i] - a[k] * self.U[i][k]
                U[i][k] = self.U[i][k] + scaled * over * a[i]
            variance = variance * (self.D[k] * over)
        return CovarianceFactors(U, D)

    def measured(self, h, variance):
        """Return the factors after a scalar measurement h.T x + noise.

        Args:
            h: Vector of the measurement, one number for each variable.
            variance: Variance of the noise, positive.

        Returns:
            Updated factors; the Kalman gain, which multiplies the innovation (measured
            minus predicted); the variance of the innovation.
        """
        size = len(self.D)
        U, D = [list(row) for row in self.U], list(self.D)
        gain, alpha = [0.0] * size, variance
        for j in range(size):
            f = total([*(self.U[i][j] * h[i] for i in range(j)), h[j]])
            v = self.D[j] * f
            before, alpha = alpha, alpha + f * v
            D[j] = self.D[j] * (before / alpha)
            slope = -f / before
            for i in range(j):
                U[i][j] = self.U[i][j] + gain[i] * slope
                gain[i] = gain[i] + self.U[i][j] * v
            gain[j] = v
        return CovarianceFactors(U, D), Vector(x / alpha for x in gain), alpha

    def matrix(self):
        """Return the covariance U D U.T as a Matrix."""
        size = range(len(self.D))
        full = [[self.U[i][j] if j > i else float(i == j) for j in size] for i in size]
        P = [[0.0] * len(size) for _ in size]
        for i in size:
            for j in range(i, len(size)):
                terms = (full[i][k] * self.D[k] * full[j][k] for k in size[j:])
                P[i][j] = P[j][i] = total(terms)
        return Matrix(P)
