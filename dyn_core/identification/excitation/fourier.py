"""Motions as finite Fourier series that start and end at rest.

    q(t) = q_0 + sum_k a_k (cos k w t - 1) + b_k sin k w t,   w = 2 pi / T
    sum_k k b_k = 0,   sum_k k² a_k = 0:   qd and qdd are zero at t = 0 and T

Coefficients that satisfy both conditions are linear combinations of a basis, so that
position, velocity and acceleration are linear in free variables.

Source: J. Swevers, C. Ganseman, D. Tükel, J. De Schutter and H. Van Brussel, Optimal
robot excitation and identification, IEEE Transactions on Robotics and Automation 13
(1997); conditions at the ends: K.-J. Park, Fourier-based optimal excitation
trajectories for the dynamic identification of robots, Robotica 24 (2006).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dyn_core.sharing import cached_property


@dataclass(frozen=True)
class Fourier:
    """Fourier series with one duration for all joints.

    Attributes:
        duration: Period T [s].
        harmonics: Number of harmonics, two or more.
    """

    duration: float
    harmonics: int

    @property
    def size(self) -> int:
        """Number of variables of a joint: initial position, then basis coefficients."""
        return 2 * self.harmonics - 1

    @cached_property
    def basis(self) -> np.ndarray:
        """Basis of coefficients [a; b] of motions at rest, (2 harmonics, size - 1).

        The columns are scaled so that their motions have speeds of about one. It is
        computed once.
        """
        k = np.arange(1, self.harmonics + 1)
        w = 2 * np.pi / self.duration * k
        # In terms of speeds c = w a or w b, the conditions are
        # sum k c_k = 0 and sum c_k = 0.
        even, odd = _complement(k.astype(float)), _complement(np.ones(len(k)))
        both = np.zeros((2 * len(k), 2 * (len(k) - 1)))
        both[: len(k), : len(k) - 1] = even / w[:, None]
        both[len(k) :, len(k) - 1 :] = odd / w[:, None]
        return both

    def matrices(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the matrices M from variables c to q, qd, qdd at times t [s]: q = M c.

        Their shape is (len(t), size). c, (size, nv), has the start, then coefficients
        of the basis.
        """
        w = 2 * np.pi / self.duration * np.arange(1, self.harmonics + 1)
        angle = np.asarray(t, float)[:, None] * w
        c, s = np.cos(angle), np.sin(angle)
        rows = (
            np.hstack([c - 1, s]),
            np.hstack([-s * w, c * w]),
            np.hstack([-c * w * w, -s * w * w]),
        )
        first = np.ones(len(angle)), np.zeros(len(angle)), np.zeros(len(angle))
        q, qd, qdd = (
            np.column_stack([one, row @ self.basis])
            for one, row in zip(first, rows, strict=True)
        )
        return q, qd, qdd

    def coefficients(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the coefficients a and b, (harmonics, joints) each.

        Args:
            x: Variables, (size, joints), as `matrices` multiplies them.
        """
        both = self.basis @ x[1:]
        return both[: self.harmonics], both[self.harmonics :]


def _complement(row: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis, columns (n, n - 1), of a row's complement, (n,)."""
    _, _, vt = np.linalg.svd(row[None] / np.linalg.norm(row))
    return np.asarray(vt[1:].T)
